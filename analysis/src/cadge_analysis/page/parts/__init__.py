# SPDX-License-Identifier: BSD-3-Clause
"""The sections of a report, and what they say: each function returns blocks, or the sentences of one."""
