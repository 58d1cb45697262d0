# SPDX-License-Identifier: BSD-3-Clause
"""The agents of a block: the leader, its followers, and how they talk."""

from __future__ import annotations
