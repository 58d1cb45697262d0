# SPDX-License-Identifier: BSD-3-Clause
"""Stored JSON that two readers could take for different things is refused where a document is read.

I-JSON (RFC 7493) asks for the like: no key stands twice in an object, an integer fits in 64 bits with a sign, and
nothing is infinite or NaN. Nesting and lone surrogates are refused by the parser itself (pydantic's, at 200 levels).
"""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Callable
from typing import NoReturn

LARGEST = 2**63 - 1
_FEW = 19
"""An integer of fewer digits fits."""
_NUMBER = re.compile(rb"-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?")
_LISTS = re.compile(rb"\[[0-9,]+\]")
_AS_ZEROS = bytes.maketrans(b"123456789", b"000000000")
_ZEROS = re.compile(rb"0*")
_EXPONENTS = (re.compile(rb"e\+?\d{3}"), re.compile(rb"E\+?\d{3}"))
"""From 100 on. Two expressions, since one that begins with a single byte is searched for 30 times as fast."""
_CONSTANTS = (re.compile(rb"NaN"), re.compile(rb"Infinity"))
_BEFORE = b":,[ \t\r\n"
"""What stands before a number in JSON."""


class _RefusedError(Exception):
    """A key that stands twice, or a number that nothing could compute with."""


def refusal(data: bytes) -> str | None:
    """Return why no document may hold these bytes, or None; what else is wrong with them is left to the parser.

    Numbers are looked at one by one only where a search found something: most documents have thousands. So lists of
    numbers, most of a record, are left out at first: no key stands in them, and equal keys stay equal.
    """
    if not _is_suspicious(data) and _read(_LISTS.sub(b"[]", data), object_pairs_hook=_once) is None:
        return None
    return _read(data, parse_int=_integer, parse_float=_real, parse_constant=_constant, object_pairs_hook=_once)


def _read(data: bytes, **hooks: Callable[..., object]) -> str | None:
    try:
        json.loads(data, **hooks)  # type: ignore[arg-type]
    except _RefusedError as error:
        return str(error)
    except (ValueError, RecursionError):
        return None
    return None


def _is_suspicious(data: bytes) -> bool:
    """Tell whether something looks like such a number; in a text it may be none."""
    if any(_is_number(data, found.start()) for word in _CONSTANTS for found in word.finditer(data)):
        return True  # and not the base64 of a histogram, which often has the letters
    if any(_is_number(data, found.start()) for pattern in _EXPONENTS for found in pattern.finditer(data)):
        return True
    zeros = data.translate(_AS_ZEROS)
    at = zeros.find(b"0" * _FEW)
    while at >= 0:
        if _is_number(data, at) and not _fits(data, at):
            return True
        end = _ZEROS.match(zeros, at)
        at = zeros.find(b"0" * _FEW, end.end() if end else at + 1)
    return False


def _begin(data: bytes, at: int) -> int:
    """Return where a number begins that has a digit there."""
    while at and data[at - 1] in b"0123456789.-":
        at -= 1
    return at


def _is_number(data: bytes, at: int) -> bool:
    """Tell whether what ends there may be a number's beginning, and no part of a text."""
    begin = _begin(data, at)
    return begin == 0 or data[begin - 1] in _BEFORE


def _fits(data: bytes, at: int) -> bool:
    """Tell whether the number that has a digit there fits: a seed has 19 digits."""
    found = _NUMBER.match(data, _begin(data, at))
    if found is None or len(found[0]) > _FEW + 1:
        return False
    return not found[0].lstrip(b"-").isdigit() or -LARGEST - 1 <= int(found[0]) <= LARGEST


def _once(pairs: list[tuple[str, object]]) -> None:
    """Refuse a key that stands twice: of two values, pydantic takes the last one, and other readers the first."""
    if len(dict(pairs)) < len(pairs):
        twice = next(key for key, often in Counter(key for key, _ in pairs).items() if often > 1)
        raise _RefusedError(f"the key {twice[:40]!r} occurs twice in one object")


def _integer(token: str) -> int:
    if len(token) > _FEW + 1 or not -LARGEST - 1 <= int(token) <= LARGEST:
        raise _RefusedError(f"an integer of {len(token.lstrip('-'))} digits does not fit in 64 bits")
    return int(token)


def _real(token: str) -> float:
    if not math.isfinite(float(token)):
        raise _RefusedError(f"{token[:20]} is more than a number can be")
    return float(token)


def _constant(token: str) -> NoReturn:
    raise _RefusedError(f"{token} is no number")
