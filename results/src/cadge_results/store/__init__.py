# SPDX-License-Identifier: BSD-3-Clause
"""Where files lie, and everything that reads, writes, proves or moves them."""
