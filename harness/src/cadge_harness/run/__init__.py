# SPDX-License-Identifier: BSD-3-Clause
"""Carrying a plan out: Ansible, the lease of the agents, and what becomes of the launches that come back."""
