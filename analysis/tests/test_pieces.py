# SPDX-License-Identifier: BSD-3-Clause
"""Lines and their breaks, against data that were made from known lines."""

from __future__ import annotations

import random
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cadge_analysis.models.pieces import Curve, PoorFit, StraightLine, pieces, straight

SIZES = tuple(16 << power for power in range(17))


def curve(values: list[float], sizes: tuple[int, ...] = SIZES) -> Curve:
    return Curve(sizes, tuple(values), tuple(values))


@given(st.floats(1, 1e5), st.floats(1e-4, 10))
def test_a_line_is_found_again(start: float, slope: float) -> None:
    known = StraightLine(start, slope)
    found = straight(curve([known.at(size) for size in SIZES]))
    # of a start that is nothing beside what the smallest size takes, little is known
    assert found.start == pytest.approx(start, rel=1e-6, abs=1e-6 * known.at(SIZES[0]))
    assert found.slope == pytest.approx(slope, rel=1e-6)


@given(st.lists(st.floats(1, 1e6), min_size=3, max_size=17))
def test_no_line_is_negative_and_none_with_its_signs_is_nearer(values: list[float]) -> None:
    of = curve(values, SIZES[: len(values)])
    found = straight(of)
    assert found.start >= 0
    assert found.slope >= 0
    least = sum(off * off for off in of.off(found))
    for start, slope in ((0.9, 1), (1.1, 1), (1, 0.9), (1, 1.1), (0.99, 1.01), (1.01, 0.99)):
        other = StraightLine(found.start * start, found.slope * slope)
        assert sum(off * off for off in of.off(other)) >= least * (1 - 1e-9) - 1e-12


@pytest.mark.parametrize("cuts", [(), (8,), (5, 11), (4, 8, 13)])
def test_breaks_are_found_where_they_are(cuts: tuple[int, ...]) -> None:
    """A protocol adds to the start what it costs to agree on it, and takes a copy away from the slope."""
    values = []
    for number, size in enumerate(SIZES):
        step = sum(number >= cut for cut in cuts)
        values.append(StraightLine(300 * 8**step, 0.5 / 2**step).at(size))
    ends = [0, *cuts, len(SIZES)]
    assert pieces([curve(values)], tolerance=0.15, most=4) == tuple(pairwise(ends))


def test_noise_is_no_break() -> None:
    rng = random.Random(3)
    known = StraightLine(2000, 0.3)
    for _ in range(20):
        values = [known.at(size) * (1 + rng.uniform(-0.05, 0.05)) for size in SIZES]
        assert pieces([curve(values)], tolerance=0.15, most=4) == ((0, len(SIZES)),)


def test_a_break_of_one_curve_is_one_of_all() -> None:
    flat = curve([StraightLine(500, 0.1).at(size) for size in SIZES])
    broken = curve([StraightLine(500, 0.1).at(size) + (9000 if size > 4096 else 0) for size in SIZES])
    assert pieces([flat, broken], tolerance=0.15, most=4) == ((0, 9), (9, 17))


def test_what_is_no_line_is_refused() -> None:
    zigzag = curve([1000.0 * (1 + number % 2) for number in range(len(SIZES))])
    found = pieces([zigzag], tolerance=0.15, most=4)
    assert isinstance(found, PoorFit)
    assert found.off > 0.3
    assert found.size in SIZES
