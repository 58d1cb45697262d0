# SPDX-License-Identifier: BSD-3-Clause
"""Pairs of hosts: what was measured over each, and which host or link is off."""
