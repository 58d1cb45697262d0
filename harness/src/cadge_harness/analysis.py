# SPDX-License-Identifier: BSD-3-Clause
"""The seam to the analysis room: the harness knows nothing of it, and finds its functions by name when they run."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

ANALYSIS = "cadge_analysis"


def analysis(module: str, name: str) -> Callable[..., Any]:
    """Return a function of the analysis, found by name."""
    found: Callable[..., Any] = getattr(importlib.import_module(f"{ANALYSIS}.{module}"), name)
    return found
