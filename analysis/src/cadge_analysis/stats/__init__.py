# SPDX-License-Identifier: BSD-3-Clause
"""From a stored campaign to numbers: loading, statistics over launches, comparison."""
