# SPDX-License-Identifier: BSD-3-Clause
"""What the tests of patterns read from an attempt that is done."""

from __future__ import annotations

from typing import Any

from cadge_results.formats.histogram import decode

Json = dict[str, Any]


def only(attempt: Json, name: str) -> Json:
    """Return a quantity that one endpoint alone has."""
    [found] = attempt["quantities"][name]
    assert isinstance(found, dict)
    return found


def quantile(attempt: Json, name: str, percent: float = 50) -> float:
    """Return a percentile of its samples."""
    return float(decode(only(attempt, name)["histogram"]).percentile(percent))
