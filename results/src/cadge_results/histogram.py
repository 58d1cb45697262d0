# SPDX-License-Identifier: BSD-3-Clause
"""Reading stored histograms: HdrHistogram's V2 compressed encoding in base64.

A histogram holds integer nanoseconds in buckets whose width is at most 10^-digits of the value. The
percentile rule is HdrHistogram's own, so any HDR tool gives the same answer from the same bytes.
"""

from __future__ import annotations

import base64
import binascii
import struct
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from cadge_results.errors import FormatError

_COOKIE_MASK = ~0xF0 & 0xFFFFFFFF
_COOKIE_PLAIN = 0x1C849303
_COOKIE_COMPRESSED = 0x1C849304
_HEADER = struct.Struct(">IIIIqqd")
_INFLATED_BYTES_MAX = 64 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Histogram:
    """Counts by bucket, in rising order of value; buckets with no counts are left out.

    `lows[i]` and `highs[i]` are the smallest and largest nanoseconds that fall into bucket i, inclusive.
    """

    lowest: int
    highest: int
    digits: int
    lows: tuple[int, ...]
    highs: tuple[int, ...]
    counts: tuple[int, ...]

    @property
    def total(self) -> int:
        """How many values were recorded."""
        return sum(self.counts)

    def percentile(self, percent: float) -> int:
        """Return the value at a percentile (0..100) in ns by HDR's rule; 0 for an empty histogram.

        The rule: the bucket that holds the value number `max(1, floor(percent/100 * total + 0.5))`; its
        highest value (for percentile 0 its lowest).
        """
        if not 0.0 <= percent <= 100.0:
            raise ValueError(f"percentile {percent} is not between 0 and 100")
        wanted = max(int(percent * self.total / 100 + 0.5), 1)
        seen = 0
        for low, high, count in zip(self.lows, self.highs, self.counts, strict=True):
            seen += count
            if seen >= wanted:
                return high if percent > 0 else low
        return 0

    def __iter__(self) -> Iterator[tuple[int, int, int]]:
        """Yield (low, high, count) for each bucket that has counts."""
        return iter(zip(self.lows, self.highs, self.counts, strict=True))


def decode(text: str) -> Histogram:
    """Decode a stored histogram. Raises FormatError where the bytes are damaged."""
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
    return _collect(body, lowest=lowest, highest=highest, digits=digits)


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


def _collect(body: bytes, *, lowest: int, highest: int, digits: int) -> Histogram:
    """Read counts and place them: half of a report's time is spent here, so that one loop does all."""
    magnitude = lowest.bit_length() - 1
    half_magnitude = max((2 * 10**digits - 1).bit_length(), 1) - 1
    half = 1 << half_magnitude
    lows: list[int] = []
    highs: list[int] = []
    counts: list[int] = []
    index = position = 0
    end = len(body)
    while position < end:
        value = body[position]
        position += 1
        if value >= 0x80:
            value, position = _long_number(body, position - 1)
        if value & 1:  # ZigZag: below zero, so many buckets without counts
            index += (value + 1) >> 1
            continue
        if value:
            # the first two halves are as wide as the lowest value; each further one is twice as wide as the last
            bucket = (index >> half_magnitude) - 1
            shift = magnitude + bucket if bucket > 0 else magnitude
            low = (index if bucket < 0 else (index & (half - 1)) + half) << shift
            width = 1 << shift
            if low > highest + width:
                raise FormatError("histogram holds counts above its highest value")
            lows.append(low)
            highs.append(low + width - 1)
            counts.append(value >> 1)
        index += 1
    return Histogram(lowest, highest, digits, tuple(lows), tuple(highs), tuple(counts))


def _long_number(body: bytes, position: int) -> tuple[int, int]:
    """Return a LEB128 number of HDR's encoding (at most nine bytes, the ninth taken whole), and where the next is."""
    value = shift = 0
    while position < len(body):
        byte = body[position]
        position += 1
        if shift == 56:
            return value | byte << 56, position
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, position
        shift += 7
    raise FormatError("histogram ends within a number")


def merge(parts: Iterable[Histogram]) -> Histogram:
    """Add histograms of the same lowest value and digits. Raises ValueError for none or differing ones."""
    items = list(parts)
    if not items:
        raise ValueError("nothing to merge")
    first = items[0]
    if any((item.lowest, item.digits) != (first.lowest, first.digits) for item in items):
        raise ValueError("histograms of different resolution cannot be merged")
    sums: dict[tuple[int, int], int] = {}
    for item in items:
        for low, high, count in item:
            sums[low, high] = sums.get((low, high), 0) + count
    keys = sorted(sums)
    return Histogram(
        first.lowest,
        max(item.highest for item in items),
        first.digits,
        tuple(low for low, _ in keys),
        tuple(high for _, high in keys),
        tuple(sums[key] for key in keys),
    )
