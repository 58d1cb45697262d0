# SPDX-License-Identifier: BSD-3-Clause
"""Reading stored histograms: HdrHistogram's V2 compressed encoding in base64.

A histogram holds integer nanoseconds in buckets whose width is at most 10^-digits of the value. The
percentile rule is HdrHistogram's own, so any HDR tool gives the same answer from the same bytes.

A campaign has a hundred thousand of them, of a hundred filled buckets each: they are decoded many at a time.
"""

from __future__ import annotations

import base64
import binascii
import struct
import sys
import zlib
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from functools import cache, lru_cache
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cadge_results.errors import FormatError

Places = NDArray[np.int32]
Integers = NDArray[np.int64]
AnyIntegers = NDArray[np.integer[Any]]

_COOKIE_MASK = ~0xF0 & 0xFFFFFFFF
_COOKIE_PLAIN = 0x1C849303
_COOKIE_COMPRESSED = 0x1C849304
_HEADER = struct.Struct(">IIIIqqd")
_INFLATED_BYTES_MAX = 64 * 1024 * 1024
_NUMBER_BYTES_MAX = 9
"""Of HDR's LEB128: the ninth byte is taken whole."""
_GAP_MAX = 1 << 32
"""No histogram has so many buckets: a longer gap leads above its highest value as well."""
_TOTAL_MAX = float(1 << 62)


class Resolution(NamedTuple):
    """From which value to which a histogram counts, and with how many significant digits."""

    lowest: int
    highest: int
    digits: int


class Histogram:
    """Counts by bucket, in rising order of value; buckets with no counts are left out. It never changes.

    `places` are the buckets' numbers, from 0 at the lowest value; `upto` is how many values lie in a bucket or below
    it. Both are of one length, which is that of the histogram: one without values is false. They are kept as bytes, in
    integers that are no wider than need be: an analysis holds one or two histograms an attempt.
    """

    __slots__ = ("_packed", "resolution")

    def __init__(self, resolution: Resolution, places: AnyIntegers, upto: AnyIntegers) -> None:
        """Keep so many values in such buckets."""
        [packed] = _packed(places, upto, [(0, len(places))])
        self.resolution, self._packed = resolution, packed

    @classmethod
    def _of(cls, resolution: Resolution, packed: bytes) -> Histogram:
        made = cls.__new__(cls)
        made.resolution, made._packed = resolution, packed
        return made

    @property
    def packed(self) -> tuple[int, int, int, bytes]:
        """Its resolution and its buckets, of kinds that `marshal` knows."""
        return (*self.resolution, self._packed)

    @classmethod
    def unpacked(cls, packed: tuple[int, int, int, bytes]) -> Histogram:
        """Return a histogram of what `packed` gave."""
        return cls._of(_resolution(*packed[:3]), packed[3])

    @property
    def places(self) -> AnyIntegers:
        """The buckets' numbers."""
        return np.frombuffer(self._packed, _KINDS[self._packed[-1]][0], len(self))

    @property
    def upto(self) -> AnyIntegers:
        """How many values lie in each bucket or below it."""
        places, upto, _ = _KINDS[self._packed[-1]]
        often = len(self)
        return np.frombuffer(self._packed, upto, often, often * places.itemsize)

    @property
    def counts(self) -> Integers:
        """How many values lie in each bucket."""
        found = self.upto.astype(np.int64)
        found[1:] -= found[:-1].copy()
        return found

    @property
    def lows(self) -> Integers:
        """The smallest nanoseconds that fall into each bucket."""
        return _edges(self.resolution, self.places)[0]

    @property
    def highs(self) -> Integers:
        """The largest nanoseconds that fall into each bucket."""
        return _edges(self.resolution, self.places)[1]

    @property
    def total(self) -> int:
        """How many values were recorded."""
        packed = self._packed
        return int.from_bytes(packed[-1 - _KINDS[packed[-1]][1].itemsize : -1], sys.byteorder)

    def percentile(self, percent: float) -> int:
        """Return the value at a percentile (0..100) in ns by HDR's rule; 0 for an empty histogram.

        The rule: the bucket that holds the value number `max(1, floor(percent/100 * total + 0.5))`; its
        highest value (for percentile 0 its lowest).
        """
        if not 0.0 <= percent <= 100.0:
            raise ValueError(f"percentile {percent} is not between 0 and 100")
        if not self:
            return 0
        if percent == 0:
            return int(self.lows[0])
        return self.value_of(max(int(percent * self.total / 100 + 0.5), 1))

    def value_of(self, number: int) -> int:
        """Return the upper end of the bucket that holds the value of this number, counted from 1, in ns.

        Of a number above the total, that of the last bucket. Raises ValueError where nothing was recorded.
        """
        packed = self._packed  # numpy takes several times as long for one value of a short row
        places, upto, both = _KINDS[packed[-1]]
        often, width = len(packed) // both, places.itemsize
        if not often:
            raise ValueError("a histogram without values has none of any number")
        sums = memoryview(packed)[often * width : often * both].cast(_FORMATS[upto.itemsize])
        at = min(bisect_left(sums, number), often - 1) * width
        place = int.from_bytes(packed[at : at + width], sys.byteorder)
        magnitude, half_bits = _bits(self.resolution)
        doublings = max((place >> half_bits) - 1, 0)  # as in _edges, which costs ten times as much for one alone
        return ((place - (doublings << half_bits) + 1) << magnitude + doublings) - 1

    def __len__(self) -> int:
        """Return how many buckets have counts."""
        return len(self._packed) // _KINDS[self._packed[-1]][2]

    def __eq__(self, other: object) -> bool:
        """Tell whether another one has the same resolution and the same counts."""
        if not isinstance(other, Histogram):
            return NotImplemented
        return (
            self.resolution == other.resolution
            and np.array_equal(self.places, other.places)
            and np.array_equal(self.upto, other.upto)
        )

    def __hash__(self) -> int:
        """Return the same number for equal ones."""
        return hash((self.resolution, len(self), self.total))

    def __iter__(self) -> Iterator[tuple[int, int, int]]:
        """Yield (low, high, count) for each bucket that has counts."""
        lows, highs = _edges(self.resolution, self.places)
        return iter(zip(lows.tolist(), highs.tolist(), self.counts.tolist(), strict=True))


_KINDS = [
    (np.dtype(places), np.dtype(upto), np.dtype(places).itemsize + np.dtype(upto).itemsize)
    for places in ("u2", "i4")
    for upto in ("u2", "u4", "i8")
]
"""How wide places and sums are kept, and both together: its number here is the last byte of a packed histogram."""
_FORMATS: dict[int, Literal["H", "I", "Q"]] = {2: "H", 4: "I", 8: "Q"}


def _packed(places: AnyIntegers, upto: AnyIntegers, parts: Sequence[tuple[int, int]]) -> list[bytes]:
    """Return several histograms of a row, from where to where each, packed."""
    has_narrow = int(places.max(initial=0)) < 1 << 16
    numbers = places.astype(_KINDS[0 if has_narrow else 3][0])
    sums = [upto.astype(_KINDS[width][1]) for width in range(3)]  # of each only those are taken that fit
    found = []
    for begin, end in parts:
        total = int(upto[end - 1]) if end > begin else 0
        width = 0 if total < 1 << 16 else 1 if total < 1 << 32 else 2
        kind = width + (0 if has_narrow else 3)
        found.append(numbers[begin:end].tobytes() + sums[width][begin:end].tobytes() + bytes((kind,)))
    return found


NOTHING = Histogram(Resolution(1, 2, 1), np.zeros(0, np.int32), np.zeros(0, np.int64))
"""A histogram without values."""


class Columns(NamedTuple):
    """Several histograms in a row: of each resolution and number of buckets, of each bucket what a Histogram has."""

    resolutions: Sequence[Resolution]
    lengths: Integers
    places: Places
    upto: Integers

    def histograms(self) -> list[Histogram]:
        """Return them one by one."""
        ends = self.lengths.cumsum().tolist()
        packed = _packed(self.places, self.upto, list(zip([0, *ends], ends, strict=False)))
        return [Histogram._of(*one) for one in zip(self.resolutions, packed, strict=True)]


def decode(text: str) -> Histogram:
    """Decode a stored histogram. Raises FormatError where the bytes are damaged."""
    return decode_all([text]).histograms()[0]


def decode_all(texts: Sequence[str]) -> Columns:
    """Decode stored histograms, all at once. Raises FormatError where the bytes of one are damaged."""
    opened = [_opened(text) for text in texts]
    resolutions = [resolution for resolution, _ in opened]
    values, owner = _numbers([body for _, body in opened])
    # ZigZag: odd ones are below zero, so many buckets without counts
    is_gap = (values & np.uint64(1)).astype(bool)
    halves = values >> np.uint64(1)
    steps = np.where(is_gap, np.minimum(halves, _GAP_MAX) + np.uint64(1), np.uint64(1)).astype(np.int64)
    places = _within(steps.cumsum(), owner, len(texts)) - steps
    kept = ~is_gap & (values != 0)
    places, owner, counts = places[kept], owner[kept], halves[kept].astype(np.int64)
    lengths = np.bincount(owner, minlength=len(texts)).astype(np.int64)
    _check_highest(resolutions, owner, places)
    if counts.sum(dtype=np.float64) > _TOTAL_MAX:
        raise FormatError("histogram holds more values than can be counted")
    return Columns(resolutions, lengths, places.astype(np.int32), _within(counts.cumsum(), owner, len(texts)))


def _opened(text: str) -> tuple[Resolution, bytes]:
    """Return how fine a stored histogram is, and the bytes of its counts."""
    try:
        blob = base64.b64decode(text, validate=True)
        payload = _inflate(blob)
        cookie, size, offset, digits, lowest, highest, _ratio = _HEADER.unpack_from(payload)
    except (binascii.Error, zlib.error, struct.error, ValueError) as error:
        raise FormatError(f"histogram cannot be decoded: {error}") from error
    if cookie & _COOKIE_MASK != _COOKIE_PLAIN:
        raise FormatError(f"histogram cookie {cookie:#x} is not that of HDR V2")
    if offset != 0 or not 1 <= digits <= 5 or lowest < 1 or highest < 2 * lowest:
        raise FormatError("histogram header holds impossible values")
    body = payload[_HEADER.size : _HEADER.size + size]
    if len(body) != size:
        raise FormatError(f"histogram is cut short: {len(body)} of {size} bytes")
    return _resolution(lowest, highest, digits), body


@lru_cache(64)
def _resolution(lowest: int, highest: int, digits: int) -> Resolution:
    """Return one object for all that count alike."""
    return Resolution(lowest, highest, digits)


def _inflate(blob: bytes) -> bytes:
    cookie, size = struct.unpack_from(">II", blob)
    if cookie & _COOKIE_MASK != _COOKIE_COMPRESSED:
        raise FormatError(f"histogram cookie {cookie:#x} is not that of compressed HDR V2")
    if len(blob) < 8 + size:
        raise FormatError(f"histogram is cut short: {len(blob) - 8} of {size} bytes")
    inflater = zlib.decompressobj()
    payload = inflater.decompress(blob[8 : 8 + size], _INFLATED_BYTES_MAX)
    if inflater.unconsumed_tail or not inflater.eof:
        raise FormatError("histogram is too large or cut short")
    return payload


def _numbers(bodies: Sequence[bytes]) -> tuple[NDArray[np.uint64], Integers]:
    """Return the LEB128 numbers of several bodies in a row, and of which body each is."""
    octets = np.frombuffer(b"".join(bodies), np.uint8)
    ends = np.cumsum([len(body) for body in bodies], dtype=np.int64)
    more = octets >= 0x80
    last = np.flatnonzero(~more)
    sizes = np.diff(last, prepend=-1)
    if sizes.max(initial=0) >= _NUMBER_BYTES_MAX:
        last = _ends_one_by_one(bodies)
        sizes = np.diff(last, prepend=-1)
    elif more[ends[ends > np.concatenate(([0], ends[:-1]))] - 1].any():
        raise FormatError("histogram ends within a number")
    values = np.zeros(len(last), np.uint64)
    for place in range(int(sizes.max(initial=0))):
        has = sizes > place
        part = octets[last[has] - sizes[has] + 1 + place].astype(np.uint64)
        if place < _NUMBER_BYTES_MAX - 1:
            part &= np.uint64(0x7F)
        values[has] |= part << np.uint64(7 * place)
    return values, np.searchsorted(ends, last, side="right").astype(np.int64)


def _ends_one_by_one(bodies: Sequence[bytes]) -> Integers:
    """Return where numbers end where some have nine bytes, of which the last may look like any other."""
    found: list[int] = []
    begin = 0
    for body in bodies:
        taken = 0
        for place, octet in enumerate(body):
            taken += 1
            if octet < 0x80 or taken == _NUMBER_BYTES_MAX:
                found.append(begin + place)
                taken = 0
        if taken:
            raise FormatError("histogram ends within a number")
        begin += len(body)
    return np.array(found, np.int64)


def _within(cumulated: Integers, owner: Integers, owners: int) -> Integers:
    """Return sums that begin anew with each owner, from sums over all; the owners rise."""
    before = np.concatenate(([0], cumulated))[np.searchsorted(owner, np.arange(owners))]
    found: Integers = cumulated - before[owner]
    return found


def _check_highest(resolutions: Sequence[Resolution], owner: Integers, places: Integers) -> None:
    """Raise FormatError where a bucket lies above the highest value of its histogram."""
    for resolution in set(resolutions):
        mine = [number for number, one in enumerate(resolutions) if one == resolution]
        found = places if len(mine) == len(resolutions) else places[np.isin(owner, mine)]
        magnitude, half_bits = _bits(resolution)
        if (found >> half_bits).max(initial=0) + magnitude + half_bits > 63:
            raise FormatError("histogram holds counts above its highest value")
        lows, highs = _edges(resolution, found)
        if (lows - (highs - lows + 1) > resolution.highest).any():
            raise FormatError("histogram holds counts above its highest value")


@cache
def _bits(resolution: Resolution) -> tuple[int, int]:
    """Return how many bits are below the lowest value, and how many number the buckets of half a doubling."""
    return resolution.lowest.bit_length() - 1, max((2 * 10**resolution.digits - 1).bit_length(), 1) - 1


def _edges(resolution: Resolution, places: AnyIntegers) -> tuple[Integers, Integers]:
    """Return the smallest and the largest value of buckets."""
    magnitude, half_bits = _bits(resolution)
    wide = places.astype(np.int64)
    # the first two halves are as wide as the lowest value; each further one is twice as wide as the last
    doublings = np.maximum((wide >> half_bits) - 1, 0)
    shifts = magnitude + doublings
    within = wide - (doublings << half_bits)
    return within << shifts, ((within + 1) << shifts) - 1


def mergeable(items: Iterable[Histogram]) -> bool:
    """Tell whether the buckets of histograms are the same ones: of the same lowest value and digits."""
    return len({(one.resolution.lowest, one.resolution.digits) for one in items}) < 2


def merge(parts: Iterable[Histogram]) -> Histogram:
    """Add histograms of the same lowest value and digits. Raises ValueError for none or differing ones."""
    items = list(parts)
    if not items:
        raise ValueError("nothing to merge")
    lowest, _, digits = items[0].resolution
    if not mergeable(items):
        raise ValueError("histograms of different resolution cannot be merged")
    every = np.concatenate([item.places for item in items])
    order = every.argsort(kind="stable")
    counts = np.concatenate([item.counts for item in items])[order]
    ordered = every[order]
    is_last = np.diff(ordered, append=-1) != 0  # of its bucket
    highest = max(item.resolution.highest for item in items)
    return Histogram(Resolution(lowest, highest, digits), ordered[is_last], counts.cumsum()[is_last])
