# SPDX-License-Identifier: BSD-3-Clause
"""The files of what is found by wildcard: patterns, floors, layers, and builds of libraries."""
