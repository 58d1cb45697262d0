# SPDX-License-Identifier: BSD-3-Clause
"""How often a cache has what is asked for, where requests follow a Zipf distribution.

Files are numbered by how popular they are, and have two mean lengths: what has most of the requests is shorter. Two
answers to the same question: Zipf's mass, of a cache that holds what is most popular; and Che's approximation, of one
that forgets what was least recently used (Che, Tung and Wang, Hierarchical Web Caching Systems, IEEE JSAC 2002): a file
is in it where it was asked for within the last T requests, and T is such that what is in it fills it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from math import expm1, log

POPULAR = 0.7
EXPONENT = 0.8
"""As the program makes its files: what has so many of the requests with this exponent is scaled by one factor."""
GROWTH = 1.02
"""Ranks are taken together up to so many times the first of them: 10^6 files become some hundreds of groups."""
STEPS = 40
HEAD = 20


@dataclass(frozen=True, slots=True)
class Group:
    """Files of neighbouring ranks: how many, the share of requests that each has, and how long each is."""

    files: float
    share: float
    size: float


def _mass(first: int, last: int, alpha: float) -> float:
    """Return the sum of i^-alpha over ranks from first to last, both included."""
    if last - first < 200:
        return float(sum(i**-alpha for i in range(first, last + 1)))
    # Euler and Maclaurin's first terms: off by less than 10^-6 of it from rank 10 on
    whole = last ** (1 - alpha) - first ** (1 - alpha)
    integral = whole / (1 - alpha) if abs(alpha - 1) > 1e-9 else log(last / first)
    return float(integral + (first**-alpha + last**-alpha) / 2)


def _head_and_tail(count: int, alpha: float) -> float:
    """Return the mass of all ranks: the first ones one by one."""
    return _mass(1, HEAD, alpha) + _mass(HEAD + 1, count, alpha) if count > HEAD else _mass(1, count, alpha)


@dataclass(frozen=True)
class FileSet:
    """A set of files: how many bytes all of them have, the means of a file and of a reply, and Zipf's exponent."""

    total_bytes: float
    file_bytes: float
    reply_bytes: float
    alpha: float

    @cached_property
    def count(self) -> int:
        """How many files there are, at least two."""
        return max(2, int(self.total_bytes / self.file_bytes))

    @cached_property
    def groups(self) -> tuple[Group, ...]:
        """All files, the most popular first."""
        popular = _popular_of(self.count)
        share = popular / self.count
        replies = self.reply_bytes / self.file_bytes
        other = max(0.0, (POPULAR - replies * share) / (POPULAR - share)) if share != POPULAR else 1.0
        often = max(0.0, (replies - other * (1 - POPULAR)) / POPULAR)
        every = _head_and_tail(self.count, self.alpha)
        found, first = [], 1
        while first <= self.count:
            last = min(self.count, max(first, int(first * GROWTH)))
            last = popular if first <= popular < last else last
            scale = often if last <= popular else other
            each = _mass(first, last, self.alpha) / every / (last - first + 1)
            found.append(Group(last - first + 1, each, scale * self.file_bytes))
            first = last + 1
        return tuple(found)

    @cached_property
    def bytes(self) -> float:
        """What all files have together, as they were made."""
        return sum(one.files * one.size for one in self.groups)

    @cached_property
    def asked_bytes(self) -> float:
        """The mean length of what is asked for, with this exponent."""
        return sum(one.files * one.share * one.size for one in self.groups)

    def mass(self, cache_bytes: float) -> float:
        """Return the share of requests that the most popular files have which fill so many bytes: Zipf's mass."""
        left, found = cache_bytes, 0.0
        for one in self.groups:
            fits = min(one.files, left / one.size) if one.size else one.files
            found += fits * one.share
            left -= fits * one.size
            if left <= 0:
                break
        return min(1.0, found)

    def kept(self, cache_bytes: float) -> float:
        """Return the share of requests that a cache of so many bytes has, if it forgets the least recently used."""
        if cache_bytes >= self.bytes:
            return 1.0

        def filled(time: float) -> float:
            return sum(one.files * one.size * -expm1(-one.share * time) for one in self.groups)

        time = _root(filled, cache_bytes, 1.0)
        return sum(one.files * one.share * -expm1(-one.share * time) for one in self.groups)


def _root(rising: Callable[[float], float], wanted: float, start: float) -> float:
    """Return where a rising function reaches a value."""
    low, high = 0.0, start
    while rising(high) < wanted:
        low, high = high, 2 * high
    for _ in range(STEPS):
        middle = (low + high) / 2
        low, high = (middle, high) if rising(middle) < wanted else (low, middle)
    return high


def _popular_of(count: int) -> int:
    """Return how many of the most popular files have POPULAR of all requests."""
    every = _head_and_tail(count, EXPONENT)
    found, popular = 0.0, 0
    for first, last in _stretches(count):
        part = _mass(first, last, EXPONENT)
        if found + part >= POPULAR * every:
            each = part / (last - first + 1)
            return min(count - 1, popular + int((POPULAR * every - found) / each + 1))
        found += part
        popular = last
    return max(1, count - 1)


def _stretches(count: int) -> Iterator[tuple[int, int]]:
    first = 1
    while first <= count:
        last = min(count, max(first, int(first * GROWTH)))
        yield first, last
        first = last + 1
