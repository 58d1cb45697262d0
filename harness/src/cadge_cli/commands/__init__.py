# SPDX-License-Identifier: BSD-3-Clause
"""A module a command, imported when the command runs; `resume` stands with `run`."""
