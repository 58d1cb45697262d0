# SPDX-License-Identifier: BSD-3-Clause
"""Quantities in files that people write: a number and its unit, never a bare number."""

from __future__ import annotations

import re
from typing import Annotated

from pydantic import BeforeValidator, WithJsonSchema

_QUANTITY = re.compile(r"^(?P<number>[0-9]+)\s?(?P<unit>[A-Za-zµ]*)$")
_PERCENT = re.compile(r"^(?P<number>[0-9]{1,3}(\.[0-9]{1,3})?)\s?%$")
_DIGITS_MAX = 20
"""Enough for 64 bits; to read a number takes time with the square of its digits."""

BYTES_BY_UNIT = {
    "B": 1,
    "KiB": 1024,
    "MiB": 1024**2,
    "GiB": 1024**3,
    "kB": 1000,
    "MB": 1000**2,
    "GB": 1000**3,
}
MS_BY_UNIT = {"ms": 1, "s": 1000, "min": 60_000, "h": 3_600_000}
NS_BY_UNIT = {"ns": 1, "us": 1000, "µs": 1000, "ms": 1_000_000, "s": 1_000_000_000}
BITS_BY_UNIT = {"Mbit": 1_000_000, "Gbit": 1_000_000_000}

_NEAR = {
    "KB": "KiB (1024) or kB (1000)",
    "K": "KiB",
    "M": "MiB",
    "G": "GiB",
    "b": "B",
    "mb": "MB",
    "m": "min",
    "mbit": "Mbit",
    "gbit": "Gbit",
}


def parse_bytes(value: object) -> int:
    """Return bytes for text such as 8B, 4KiB, 1MB. Raises ValueError with what is allowed."""
    return _parse(value, BYTES_BY_UNIT, what="size", example="8B or 4KiB")


def parse_ms(value: object) -> int:
    """Return milliseconds for text such as 250ms, 2s, 5min. Raises ValueError with what is allowed."""
    return _parse(value, MS_BY_UNIT, what="duration", example="250ms or 5min")


def parse_ns(value: object) -> int:
    """Return nanoseconds for text such as 500ns, 20us, 1ms. Raises ValueError with what is allowed."""
    return _parse(value, NS_BY_UNIT, what="time", example="500ns or 20us")


def parse_rate(value: object) -> int:
    """Return bits a second for text such as 100Mbit, 1Gbit. Raises ValueError with what is allowed."""
    return _parse(value, BITS_BY_UNIT, what="rate", example="100Mbit or 1Gbit")


def parse_percent(value: object) -> float:
    """Return per cent for text such as 5% or 2.5 %. Raises ValueError with what is allowed."""
    match = _PERCENT.match(value) if isinstance(value, str) else None
    if match is None:
        raise ValueError(f"{value!r} is not a share; write it like 5% or 2.5%")
    return float(match["number"])


def _parse(value: object, factors: dict[str, int], *, what: str, example: str) -> int:
    match = _QUANTITY.match(value) if isinstance(value, str) else None
    if match is not None and len(match["number"]) > _DIGITS_MAX:
        raise ValueError(f"a number of {len(match['number'])} digits; at most {_DIGITS_MAX}")
    if match is None or not match["unit"]:
        if match is not None or (isinstance(value, int | float) and not isinstance(value, bool)):
            raise ValueError(f"{value} has no unit; a {what} is written like {example}")
        raise ValueError(f"{value!r} is not a {what}; write it like {example}")
    factor = factors.get(match["unit"])
    if factor is None:
        near = _NEAR.get(match["unit"])
        hint = f"; did you mean {near}?" if near else ""
        raise ValueError(f"{value!r} has an unknown unit; units of a {what}: {', '.join(factors)}{hint}")
    return int(match["number"]) * factor


def format_bytes(count: int) -> str:
    """Return a size in the largest binary unit that divides it, e.g. 4KiB; parse_bytes reads it back."""
    for unit in ("GiB", "MiB", "KiB"):
        if count and count % BYTES_BY_UNIT[unit] == 0:
            return f"{count // BYTES_BY_UNIT[unit]}{unit}"
    return f"{count}B"


Bytes = Annotated[
    int,
    BeforeValidator(parse_bytes),
    WithJsonSchema({"type": "string", "pattern": "^[0-9]+ ?(B|KiB|MiB|GiB|kB|MB|GB)$", "examples": ["8B", "4KiB"]}),
]
Millis = Annotated[
    int,
    BeforeValidator(parse_ms),
    WithJsonSchema({"type": "string", "pattern": "^[0-9]+ ?(ms|s|min|h)$", "examples": ["250ms", "5min"]}),
]
Percent = Annotated[
    float,
    BeforeValidator(parse_percent),
    WithJsonSchema({"type": "string", "pattern": "^[0-9]{1,3}(\\.[0-9]{1,3})? ?%$", "examples": ["5%"]}),
]
