# SPDX-License-Identifier: BSD-3-Clause
"""Tests, intervals and corrections on arrays of numbers: nothing here knows a cell or a campaign."""
