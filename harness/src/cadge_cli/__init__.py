# SPDX-License-Identifier: BSD-3-Clause
"""The command line: what stands above harness and analysis, and is imported by neither."""
