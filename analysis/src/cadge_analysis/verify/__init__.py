# SPDX-License-Identifier: BSD-3-Clause
"""A report held against one that is made anew of its campaign's raw records."""
