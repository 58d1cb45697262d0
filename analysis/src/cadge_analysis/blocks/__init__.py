# SPDX-License-Identifier: BSD-3-Clause
"""A page as a list of blocks (model.py) and its printers.

HTML has one template with a macro a block (html.py); Markdown and text are of the same lines (lines.py).
"""
