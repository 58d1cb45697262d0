# SPDX-License-Identifier: BSD-3-Clause
"""A page as a list of blocks (model.py) and its printers: HTML by one template with a macro a block (html.py)."""
