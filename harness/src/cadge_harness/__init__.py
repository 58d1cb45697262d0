# SPDX-License-Identifier: BSD-3-Clause
"""The harness room: sweeps become plans, plans become blocks, blocks become stored launches."""

from __future__ import annotations

__version__ = "0.2.0"
