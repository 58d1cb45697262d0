# SPDX-License-Identifier: BSD-3-Clause
"""The floor at a size is the lower envelope of all programs at that size and above, and large copies are composed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from statistics import median
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st
from synthetic import WORKLOADS

from cadge_analysis.stats import intervals
from cadge_analysis.stats.floors import Floors, group_of
from cadge_analysis.stats.inference.rounds import RoundKey
from cadge_analysis.stats.load import Case, Series
from cadge_analysis.stats.numbers import Numbers

KIB, MIB = 1 << 10, 1 << 20
LINE, COPY, REFERENCE = "floor-cacheline", "floor-copyflag", "floor-tcp"


@dataclass(frozen=True, slots=True)
class Cell:
    """What a floor asks of a measured cell."""

    series: Series
    case: Case


@dataclass(frozen=True, slots=True)
class Program:
    """What a floor asks of the numbers of a program."""

    cell: Cell
    by_round: Mapping[tuple[int, int], float]

    @property
    def central(self) -> intervals.Estimate:
        return intervals.over_launches(list(self.by_round.values()))


def program(layer: str, form: str, size: int, values: list[float], *, wait: str = "poll", **given: int) -> Numbers:
    """Return a program with a value for each round."""
    workload = WORKLOADS.forms[form].workload(form, {"bytes": size, **given})
    case = Case("within", wait, workload, WORKLOADS.forms[form])
    cell = Cell(Series("floor", layer, (), ()), case)
    return cast(Numbers, Program(cell, {RoundKey(number): value for number, value in enumerate(values)}))


def floor_of(programs: list[Numbers], like: Numbers, size: int) -> Any:  # noqa: ANN401 - a floor, which the test expects
    return Floors(programs, WORKLOADS.floors).at((*group_of(like.cell.case), size))


SIZES = st.sampled_from([0, 1, 8, 56, 1000, 4 * KIB, 64 * KIB, 64 * KIB + 1, 256 * KIB, MIB, 4 * MIB])
VALUES = st.lists(st.floats(min_value=50, max_value=1e9), min_size=3, max_size=3)
EXCHANGES = st.builds(program, st.sampled_from([LINE, COPY, "floor-xdp"]), st.just("exchange"), SIZES, VALUES)
FLOWS = st.builds(program, st.sampled_from([COPY, "floor-xdp"]), st.just("flow"), SIZES.filter(bool), VALUES)


@given(st.lists(EXCHANGES, min_size=1, max_size=6), st.lists(FLOWS, max_size=4), SIZES, SIZES)
def test_an_exchange_has_no_floor_above_a_program_and_it_never_falls(
    exchanges: list[Numbers], flows: list[Numbers], one: int, other: int
) -> None:
    programs = [*exchanges, *flows]
    small, large = (floor_of(programs, exchanges[0], size) for size in sorted((one, other)))
    for floor, size in ((small, min(one, other)), (large, max(one, other))):
        above = [p.central.value for p in exchanges if p.cell.case.size >= size]
        assert floor is not None or not above
        assert floor is None or floor.central.value <= min(above, default=float("inf"))
    assert large is None or (small is not None and small.central.value <= large.central.value * (1 + 1e-9))


@given(st.lists(FLOWS, min_size=1, max_size=6), SIZES.filter(bool), SIZES.filter(bool))
def test_a_flow_takes_no_longer_for_a_message_than_a_program_of_larger_ones(
    flows: list[Numbers], one: int, other: int
) -> None:
    small, large = (floor_of(flows, flows[0], size) for size in sorted((one, other)))
    for floor, size in ((small, min(one, other)), (large, max(one, other))):
        for p in flows:
            if p.cell.case.size >= size:
                assert floor.central.value >= p.central.value * size / p.cell.case.size * (1 - 1e-9)
    if large is not None:
        times = [size / floor.central.value for floor, size in ((small, min(one, other)), (large, max(one, other)))]
        assert times[0] <= times[1] * (1 + 1e-9)


def test_a_program_of_larger_messages_is_the_floor_of_smaller_ones() -> None:
    programs = [program(LINE, "exchange", 8, [200.0] * 6), program(COPY, "exchange", 8, [260.0] * 6)]
    programs += [program(COPY, "exchange", 64, [240.0] * 6), program(COPY, "exchange", 4 * KIB, [900.0] * 6)]
    floor = floor_of(programs, programs[0], 32)
    assert (floor.central.value, floor.size, floor.program.cell.case.size) == (240.0, 32, 64)
    assert floor_of(programs, programs[0], 8).program.cell.series.layer == LINE


def test_a_round_that_moved_nothing_is_in_no_floor() -> None:
    """A rate of 0 stands for no time."""
    flow = program("floor-xdp", "flow", 4 * KIB, [0.0, 800.0, 900.0])
    assert set(floor_of([flow], flow, 4 * KIB).by_round) == {RoundKey(1), RoundKey(2)}


def test_large_messages_are_a_line_and_the_best_copy_rate_round_by_round() -> None:
    lines = [200.0, 220.0, 240.0, 260.0, 280.0, 300.0]
    line = program(LINE, "exchange", 8, lines)
    own = program(COPY, "exchange", MIB, [400_000.0] * 6)
    # 65.536 KB in 4,096 ns or a bit more: 16,000 MB/s and less, which is the best rate
    rates = [16_000.0, 15_900.0, 15_800.0, 15_700.0, 15_600.0, 15_500.0]
    stream = program(COPY, "flow", 64 * KIB, rates, depth=16)
    floor = floor_of([line, own, stream], line, MIB)
    expected = [bounced + 2 * MIB * 1000 / rate for bounced, rate in zip(lines, rates, strict=True)]
    assert list(floor.by_round.values()) == pytest.approx(expected)
    assert floor.central.value == pytest.approx(median(expected))
    assert (floor.central.low, floor.central.high) == pytest.approx((min(expected), max(expected)))
    assert floor.composed
    assert floor.programs == (line, stream)
    # at 64 KiB nothing is composed but as a bound of what is larger
    assert floor_of([line, program(COPY, "exchange", 64 * KIB, [9000.0] * 6), stream], line, 64 * KIB).composed
    rate = floor_of([line, own, stream], stream, MIB)
    assert list(rate.by_round.values()) == pytest.approx(rates)
    assert (rate.programs, rate.composed) == ((stream,), True)


def test_what_does_not_copy_lends_no_rate() -> None:
    line = program(LINE, "exchange", 8, [200.0] * 6)
    frames = program("floor-xdp", "exchange", 64 * KIB, [20_000.0] * 6)
    assert floor_of([line, frames], line, MIB) is None


def test_other_places_waits_and_parameters_have_their_own_floors() -> None:
    deep = program(COPY, "flow", 64, [900.0] * 6, depth=16)
    shallow = program(COPY, "flow", 64, [100.0] * 6, depth=1)
    blocking = program(COPY, "flow", 64, [10.0] * 6, depth=16, wait="block")
    programs = [deep, shallow, blocking]
    assert [floor_of(programs, one, 64).central.value for one in programs] == [900.0, 100.0, 10.0]


def test_references_are_in_no_floor() -> None:
    beside = [program(REFERENCE, "exchange", size, [float(size)] * 6) for size in (64, 4 * KIB)]
    floors = Floors([*beside, program(LINE, "exchange", 8, [200.0] * 6)], WORKLOADS.floors)
    group = group_of(beside[0].cell.case)
    assert floors.at((*group, 64)) is None
    assert [one.programs for one in floors.references_at((*group, 64))] == [(beside[0],)]
    assert floors.references_at((*group, 32)) == ()


def test_which_floors_are_references_stands_in_their_files_alone() -> None:
    files = {name: replace_reference(file) for name, file in WORKLOADS.floors.items()}
    one = program(REFERENCE, "exchange", 64, [300.0] * 6)
    floor = Floors([one], files).at((*group_of(one.cell.case), 64))
    assert floor is not None
    assert floor.programs == (one,)


def replace_reference(file: Any) -> Any:  # noqa: ANN401 - a floor's file
    return file.model_copy(update={"reference": False})
