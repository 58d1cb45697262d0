# SPDX-License-Identifier: BSD-3-Clause
"""Our reader against HdrHistogram's own Python library."""

from __future__ import annotations

import base64
import struct
import zlib

import numpy as np
import pytest
from hdrh.histogram import HdrHistogram  # type: ignore[import-untyped]  # publishes no types
from hypothesis import given, settings
from hypothesis import strategies as st

from cadge_results.errors import FormatError
from cadge_results.formats.histogram import Columns, Histogram, Resolution, decode, decode_all, merge

PERCENTS = [0.0, 0.1, 25.0, 50.0, 75.0, 90.0, 99.0, 99.9, 99.999, 100.0]


def reference(values: list[int]) -> HdrHistogram:
    histogram = HdrHistogram(1, 10**11, 3)
    for value in values:
        assert histogram.record_value(value)
    return histogram


def test_known_values() -> None:
    histogram = decode(reference([1, 2, 2, 2047, 2048, 4097, 10**11]).encode().decode())
    assert histogram.total == 7
    assert histogram.lows[:5].tolist() == [1, 2, 2047, 2048, 4096]
    assert histogram.highs[:5].tolist() == [1, 2, 2047, 2049, 4099]
    assert histogram.counts.tolist() == [1, 2, 1, 1, 1, 1]
    assert [count for _, _, count in histogram] == [1, 2, 1, 1, 1, 1]
    assert histogram.percentile(50) == 2047


def test_empty() -> None:
    histogram = decode(reference([]).encode().decode())
    assert histogram.total == 0
    assert not histogram
    assert histogram.percentile(50) == 0
    with pytest.raises(ValueError, match="without values"):
        histogram.value_of(1)


@settings(max_examples=60)
@given(st.lists(st.integers(1, 10**11) | st.integers(1, 5000), min_size=1, max_size=300))
def test_agrees_with_the_reference_library(values: list[int]) -> None:
    theirs = reference(values)
    ours = decode(theirs.encode().decode())
    assert ours.total == theirs.get_total_count() == len(values)
    for percent in PERCENTS:
        assert ours.percentile(percent) == theirs.get_value_at_percentile(percent)


@settings(max_examples=30)
@given(
    st.lists(st.integers(1, 10**9), min_size=1, max_size=100), st.lists(st.integers(1, 10**9), min_size=1, max_size=100)
)
def test_merging_is_the_same_as_recording_together(left: list[int], right: list[int]) -> None:
    merged = merge([decode(reference(left).encode().decode()), decode(reference(right).encode().decode())])
    assert merged == decode(reference(left + right).encode().decode())


def test_large_counts_survive() -> None:
    theirs = HdrHistogram(1, 10**11, 3)
    theirs.record_value(500, 2**40)
    assert decode(theirs.encode().decode()).counts.tolist() == [2**40]


def packed(body: bytes, *, lowest: int = 1, highest: int = 10**11, digits: int = 3) -> str:
    """Return a stored histogram with such bytes for its counts."""
    plain = struct.pack(">IIIIqqd", 0x1C849313, len(body), 0, digits, lowest, highest, 1.0) + body
    inner = zlib.compress(plain)
    return base64.b64encode(struct.pack(">II", 0x1C849314, len(inner)) + inner).decode()


def number(value: int) -> bytes:
    """Return a count, or buckets without counts below zero, as HDR writes it: its ninth byte is a whole one."""
    left, found = (value << 1) ^ (value >> 63), bytearray()
    while left > 0x7F and len(found) < 8:
        found.append(left & 0x7F | 0x80)
        left >>= 7
    return bytes([*found, left])


@settings(max_examples=60)
@given(st.lists(st.lists(st.integers(1, 10**11) | st.integers(1, 5000), max_size=60), max_size=8))
def test_many_at_once_are_as_one_by_one(several: list[list[int]]) -> None:
    texts = [reference(values).encode().decode() for values in several]
    assert decode_all(texts).histograms() == [decode(text) for text in texts]


@settings(max_examples=200)
@given(st.lists(st.tuples(st.integers(0, 300), st.integers(1, 2**57)), max_size=12), st.integers(3, 5))
def test_counts_of_any_size_are_read(gaps: list[tuple[int, int]], digits: int) -> None:
    """Each bucket by the loop that HDR's format is defined by, up to counts whose ninth byte looks unfinished."""
    body, place, expected = bytearray(), 0, []
    for gap, count in gaps:
        body += number(-gap) if gap else b""
        body += number(count)
        expected.append((place + gap, count))
        place += gap + 1
    found = decode_all([packed(bytes(body), digits=digits), packed(number(3)), packed(bytes(body), digits=digits)])
    first, middle, last = found.histograms()
    assert list(zip(first.places.tolist(), first.counts.tolist(), strict=True)) == expected
    assert last == first
    assert list(middle) == [(0, 0, 3)]


@settings(max_examples=100)
@given(st.integers(1, 2**40), st.integers(1, 5), st.lists(st.integers(0, 40_000), min_size=1, max_size=30, unique=True))
def test_edges_are_those_that_hdr_defines(lowest: int, digits: int, places: list[int]) -> None:
    magnitude, half_bits = lowest.bit_length() - 1, (2 * 10**digits - 1).bit_length() - 1
    expected = []
    for place in sorted(places):
        bucket = (place >> half_bits) - 1
        shift = magnitude + max(bucket, 0)
        low = (place if bucket < 0 else (place & ((1 << half_bits) - 1)) + (1 << half_bits)) << shift
        expected.append((low, low + (1 << shift) - 1))
    body, before = b"", -1
    for place in sorted(places):
        body += (number(before + 1 - place) if place > before + 1 else b"") + number(1)
        before = place
    text = packed(body, lowest=lowest, highest=2**63 - 1, digits=digits)
    if expected[-1][1] >= 2**63:
        with pytest.raises(FormatError, match="above its highest"):
            decode(text)
        return
    histogram = decode(text)
    assert [(low, high) for low, high, _ in histogram] == expected
    assert [histogram.value_of(n) for n in range(1, len(places) + 2)] == [*(h for _, h in expected), expected[-1][1]]


@pytest.mark.parametrize(
    "body",
    [
        b"\x80",
        number(5) + b"\xff",
        b"\xff" * 8,
        number(-(10**6)) + number(1),
        number(-(2**62)) + number(1),
        number(-(2**62)) * 4 + number(1),
        number(2**61) * 3,
    ],
)
def test_counts_that_cannot_be_are_refused(body: bytes) -> None:
    for texts in ([packed(body)], [packed(number(1)), packed(body), packed(number(1))]):
        with pytest.raises(FormatError):
            decode_all(texts)


@pytest.mark.parametrize(
    "damage",
    [
        lambda text: text[:20],
        lambda text: "!" + text[1:],
        lambda text: "AAAA" + text[4:],
        lambda text: base64.b64encode(base64.b64decode(text)[:-3]).decode(),
        lambda text: base64.b64encode(base64.b64decode(text)[:8] + zlib.compress(b"x" * 50)).decode(),
        lambda text: "",  # noqa: ARG005
    ],
)
def test_damage_is_refused(damage: object) -> None:
    assert callable(damage)
    good = reference([1, 1000, 10**6]).encode().decode()
    with pytest.raises(FormatError):
        decode(damage(good))


def test_different_resolutions_are_not_merged() -> None:
    fine = decode(reference([5]).encode().decode())
    coarse = HdrHistogram(1, 10**11, 2)
    coarse.record_value(5)
    with pytest.raises(ValueError, match="resolution"):
        merge([fine, decode(coarse.encode().decode())])
    with pytest.raises(ValueError, match="nothing"):
        merge([])


@pytest.mark.parametrize("last", [1, (1 << 16) - 1, 1 << 16, (1 << 32) - 1, 1 << 32, 1 << 60])
@pytest.mark.parametrize("place", [5, (1 << 16) - 1, 1 << 16, 1 << 20])
def test_places_and_sums_of_any_width_are_kept_as_they_are(place: int, last: int) -> None:
    resolution = Resolution(1, 10**11, 5)
    places, upto = np.array([4, place], np.int32), np.array([1, last + 1], np.int64)
    one = Histogram(resolution, places, upto)
    assert one.places.tolist() == [4, place]
    assert one.upto.tolist() == [1, last + 1]
    assert one.counts.tolist() == [1, last]
    assert (one.total, len(one)) == (last + 1, 2)
    assert one.value_of(last + 1) == one.highs[-1]
    assert merge([one, one]).counts.tolist() == [2, 2 * last]
    columns = Columns([resolution] * 2, np.array([0, 2]), places, upto)
    assert columns.histograms() == [Histogram(resolution, places[:0], upto[:0]), one]


def test_a_histogram_takes_four_bytes_a_bucket_where_that_is_enough() -> None:
    one = Histogram(Resolution(1, 10**11, 3), np.arange(1000), np.arange(1, 1001))
    assert len(one._packed) == 4001
