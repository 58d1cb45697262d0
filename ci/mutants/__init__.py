# SPDX-License-Identifier: BSD-3-Clause
"""Mutants of the analysis: `python -m ci.mutants --help`."""
