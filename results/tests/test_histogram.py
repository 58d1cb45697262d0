# SPDX-License-Identifier: BSD-3-Clause
"""Our reader against HdrHistogram's own Python library."""

from __future__ import annotations

import base64
import zlib

import pytest
from hdrh.histogram import HdrHistogram  # type: ignore[import-untyped]  # publishes no types
from hypothesis import given, settings
from hypothesis import strategies as st

from cadge_results.errors import FormatError
from cadge_results.histogram import decode, merge

PERCENTS = [0.0, 0.1, 25.0, 50.0, 75.0, 90.0, 99.0, 99.9, 99.999, 100.0]


def reference(values: list[int]) -> HdrHistogram:
    histogram = HdrHistogram(1, 10**11, 3)
    for value in values:
        assert histogram.record_value(value)
    return histogram


def test_known_values() -> None:
    histogram = decode(reference([1, 2, 2, 2047, 2048, 4097, 10**11]).encode().decode())
    assert histogram.total == 7
    assert histogram.lows[:5] == (1, 2, 2047, 2048, 4096)
    assert histogram.highs[:5] == (1, 2, 2047, 2049, 4099)
    assert histogram.counts == (1, 2, 1, 1, 1, 1)
    assert histogram.percentile(50) == 2047


def test_empty() -> None:
    histogram = decode(reference([]).encode().decode())
    assert histogram.total == 0
    assert histogram.percentile(50) == 0


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
    assert decode(theirs.encode().decode()).counts == (2**40,)


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
