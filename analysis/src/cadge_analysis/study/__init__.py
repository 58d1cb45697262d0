# SPDX-License-Identifier: BSD-3-Clause
"""Studies: one paper's published figures beside a campaign of ours, as one page.

A study is a folder of `analysis/studies` with two files: `published.yml` (the figures, each with its source) and
`page.html.j2` (the prose), and where it needs code that it alone uses, a package of it (see plugin.py). What is here
serves every study and knows no paper.
"""
