# SPDX-License-Identifier: BSD-3-Clause
"""Statistics against hand-made numbers, the binomial definition and the hdrhistogram package."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

import pytest
from hdrh.histogram import HdrHistogram
from hypothesis import given
from hypothesis import strategies as st
from synthetic import counted, encoded

from cadge_analysis.stats import intervals
from cadge_analysis.stats.inference.rounds import RoundKey
from cadge_results.formats.histogram import Histogram, decode


def test_median_is_a_middle_value_or_between_the_two_middle_ones() -> None:
    assert intervals.median([5.0, 1.0, 3.0]) == 3.0
    assert intervals.median([4.0, 1.0, 3.0, 100.0]) == 3.5
    with pytest.raises(ValueError, match="nothing"):
        intervals.median([])


@pytest.mark.parametrize(
    ("launches", "rank", "coverage"),
    [(2, 1, 0.5), (5, 1, 0.9375), (6, 1, 0.96875), (8, 1, 0.9921875), (9, 2, 0.9609375), (10, 2, 0.978515625)],
)
def test_rank_intervals_have_the_tabulated_coverage(launches: int, rank: int, coverage: float) -> None:
    assert intervals.rank_of_interval(launches) == rank
    assert intervals.rank_coverage(launches, rank) == coverage


@pytest.mark.parametrize("launches", [2, 3, 6, 9, 10])
def test_coverage_counted_over_every_pattern_of_above_and_below(launches: int) -> None:
    rank = intervals.rank_of_interval(launches)
    inside = 0
    for signs in product((0, 1), repeat=launches):  # 1: the launch lies below the true median
        below = sum(signs)
        inside += rank <= below <= launches - rank
    assert intervals.rank_coverage(launches, rank) == inside / 2**launches


def test_six_launches_give_the_full_range() -> None:
    estimate = intervals.over_launches([7.0, 3.0, 5.0, 4.0, 6.0, 9.0])
    assert (estimate.value, estimate.low, estimate.high) == (5.5, 3.0, 9.0)
    assert estimate.coverage == 0.96875


def test_nine_launches_drop_one_at_each_end() -> None:
    estimate = intervals.over_launches([float(value) for value in range(1, 10)])
    assert (estimate.value, estimate.low, estimate.high) == (5.0, 2.0, 8.0)


def test_one_launch_has_no_interval() -> None:
    estimate = intervals.over_launches([4.0])
    assert (estimate.value, estimate.low, estimate.high, estimate.coverage) == (4.0, None, None, 0.0)


@given(st.lists(st.floats(1, 1e9), min_size=1, max_size=40))
def test_the_interval_encloses_the_median(values: list[float]) -> None:
    estimate = intervals.over_launches(values)
    assert min(values) <= estimate.value <= max(values)
    if estimate.low is not None and estimate.high is not None:
        assert estimate.low <= estimate.value <= estimate.high


@given(
    st.lists(st.integers(1, 10**11), min_size=1, max_size=300),
    st.sampled_from([1, 10, 250, 500, 900, 990, 999, 1000]),
)
def test_quantiles_are_those_of_hdrhistogram(values: list[int], per_mille: int) -> None:
    histogram = HdrHistogram(1, 100_000_000_000, 3)
    for value in values:
        histogram.record_value(value)
    assert encoded((value, 1) for value in values) == histogram.encode().decode()
    ours = intervals.quantile(counted(*((value, 1) for value in values)), per_mille)
    assert ours == histogram.get_value_at_percentile(per_mille / 10)


def test_no_samples_have_no_quantile() -> None:
    with pytest.raises(ValueError, match="no samples"):
        intervals.quantile(counted(), 500)


def tail(histograms: Sequence[Histogram], per_mille: int) -> intervals.Tail:
    [found] = intervals.tails(histograms, [per_mille])
    return found


def test_counts_are_added_before_any_quantile_is_taken() -> None:
    one, other = counted((10, 9_900), (1000, 100)), counted((20, 10_000))
    assert tail([one, other], 990).value == 20
    assert intervals.tails([one, other], [500, 990]) == [tail([one, other], 500), tail([one, other], 990)]


def test_a_tail_needs_a_hundred_samples_beyond_it() -> None:
    enough = tail([counted((5, 5000)), counted((5, 4900), (8, 100))], 990)
    assert enough.value == 5
    assert enough.samples == 10_000
    short = tail([counted((5, 9_999))], 990)
    assert short.value is None
    assert short.reason == "9\u202f999 samples; needs 10\u202f000"
    assert tail([counted((5, 99_999))], 999).value is None
    assert tail([counted((5, 100_000))], 999).value == 5


def test_a_tail_shows_the_range_of_launches() -> None:
    found = tail([counted((5, 9_800), (6, 200)), counted((5, 9_500), (50, 500))], 990)
    assert (found.value, found.low, found.high) == (50, 6, 50)


def test_buckets_of_different_width_give_no_tail() -> None:
    coarse = HdrHistogram(1, 100_000_000_000, 2)
    coarse.record_value(5, 20_000)
    found = tail([counted((5, 20_000)), decode(coarse.encode().decode())], 990)
    assert (found.value, found.samples) == (None, 40_000)
    assert found.reason is not None
    assert "different width" in found.reason


def test_ratios_are_paired_by_round_where_every_launch_has_its_partner() -> None:
    ours = {RoundKey(0): 20.0, RoundKey(1): 44.0, RoundKey(2): 90.0}
    base = {RoundKey(0): 10.0, RoundKey(1): 20.0, RoundKey(2): 30.0, RoundKey(3): 1.0}
    found = intervals.ratio(ours, base)
    assert found.paired
    assert (found.value, found.low, found.high) == pytest.approx(((2.2 * 6**0.5) ** 0.5, 2.0, 3.0))
    gap = intervals.difference(ours, base)
    assert (gap.value, gap.low, gap.high) == (29.5, 10.0, 60.0)


def test_without_partners_the_medians_are_divided_and_the_interval_is_wide() -> None:
    ours = {RoundKey(0): 20.0, RoundKey(5): 40.0}
    base = {RoundKey(0): 10.0, RoundKey(1): 16.0}
    found = intervals.ratio(ours, base)
    assert not found.paired
    assert found.value == 30.0 / 13.0
    assert (found.low, found.high) == (20.0 / 16.0, 40.0 / 10.0)
    assert found.coverage == 0.25
    gap = intervals.difference(ours, base)
    assert (gap.value, gap.low, gap.high) == (17.0, 4.0, 30.0)
    assert intervals.ratio({RoundKey(9): 3.0}, {RoundKey(1): 2.0}).low is None
