# SPDX-License-Identifier: BSD-3-Clause
"""Two campaigns, or two series, against each other."""
