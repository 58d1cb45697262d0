# SPDX-License-Identifier: BSD-3-Clause
"""Two groups are found where there are two, rarely where there is one, and a report names them."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pagereader
import pytest
import synthetic

from cadge_analysis import messages, report
from cadge_analysis.page.ranked import LEVELS
from cadge_analysis.stats.inference import modes
from cadge_analysis.stats.inference.rounds import RoundKey
from cadge_results.formats.histogram import Histogram, decode

DRAWS = 4000


def rounds(values: Sequence[float]) -> Mapping[tuple[int, int], float]:
    return {RoundKey(number): value for number, value in enumerate(values)}


def normal(rng: random.Random) -> float:
    return rng.gauss(0, 1)


def uniform(rng: random.Random) -> float:
    return rng.random()


def long_tail(rng: random.Random) -> float:
    return rng.expovariate(1)


@pytest.mark.parametrize(
    ("draw", "launches", "at_most"),
    [(normal, 9, 0.015), (uniform, 9, 0.045), (long_tail, 9, 0.035), (normal, 18, 0.002), (uniform, 18, 0.003)],
)
def test_one_group_seldom_looks_like_two(draw: Callable[[random.Random], float], launches: int, at_most: float) -> None:
    rng = random.Random(19)
    found = sum(
        modes.of_launches(rounds([2.0 ** draw(rng) for _ in range(launches)])) is not None for _ in range(DRAWS)
    )
    assert found <= at_most * DRAWS


@pytest.mark.parametrize(
    ("draw", "launches", "least", "most"),
    [
        (normal, 9, 0.05, 0.09),
        (normal, 15, 0.05, 0.1),
        (normal, 40, 0.0, 0.1),
        (lambda rng: normal(rng) + 5.2 * (rng.random() < 0.5), 9, 0.6, 0.8),
        (lambda rng: normal(rng) + 5.2 * (rng.random() < 0.5), 18, 0.9, 1.0),
        (lambda rng: normal(rng) + 5.2 * (rng.random() < 0.2), 30, 0.65, 1.0),
    ],
)
def test_for_verdicts_two_groups_are_suspected_sooner(
    draw: Callable[[random.Random], float], launches: int, least: float, most: float
) -> None:
    rng = random.Random(20)
    found = sum(modes.may_have_two_levels([draw(rng) for _ in range(launches)]) for _ in range(DRAWS))
    assert least * DRAWS <= found <= most * DRAWS
    assert not modes.may_have_two_levels([1.0] * launches)
    assert not modes.may_have_two_levels([1.0, 2.0] * 4)


def test_two_groups_of_launches() -> None:
    mixed = modes.of_launches(rounds([1000, 1900, 1010, 1920, 990, 1005, 1910, 1000, 1890]))
    assert mixed == modes.Modes(low=1000, high=1905, lower=5, upper=4, border=1890, in_order=False)
    stepped = modes.of_launches(rounds([1000, 1010, 990, 1005, 1000, 1900, 1920, 1910, 1890]))
    assert stepped is not None
    assert stepped.in_order


@pytest.mark.parametrize(
    "values",
    [
        [1000, 1900, 1010, 1920, 990, 1005, 1910, 1000],  # too few
        [1000, 1001, 1002, 1003, 1004, 1060, 1061, 1062, 1063],  # too near to matter
        [1000, 1001, 1002, 1003, 1004, 1005, 1006, 1900, 1901],  # two launches are outliers, no group
        [1000, 1100, 1210, 1331, 1464, 1610, 1771, 1948, 2143],
        [0, 0, 0, 0, 0, 5, 5, 5, 5],  # no logarithm
        [7.0] * 9,
    ],
)
def test_no_two_groups_of_launches(values: Sequence[float]) -> None:
    assert modes.of_launches(rounds(values)) is None


def draws(rng: random.Random, middles: Sequence[tuple[float, int]], spread: float = 0.04) -> Counter[int]:
    return Counter(round(rng.lognormvariate(0, spread) * at_ns) for at_ns, often in middles for _ in range(often))


def samples(rng: random.Random, middles: Sequence[tuple[float, int]], spread: float = 0.04) -> Histogram:
    return decode(synthetic.encoded(draws(rng, middles, spread).items()))


def test_two_groups_of_operations() -> None:
    found = modes.of_operations(samples(random.Random(3), [(5900, 6000), (9800, 4000)]))
    assert found is not None
    assert found.low == pytest.approx(5900, rel=0.02)
    assert found.high == pytest.approx(9800, rel=0.02)
    assert found.lower == pytest.approx(6000, abs=30)


@pytest.mark.parametrize(
    "middles",
    [
        [(5900.0, 10_000)],
        [(5900.0, 9_500), (9800.0, 500)],  # a tail, no group
        [(5900.0, 5_000), (6500.0, 5_000)],  # one hill
        [(5900.0, 900), (9800.0, 900)],  # too few
    ],
)
def test_no_two_groups_of_operations(middles: Sequence[tuple[float, int]]) -> None:
    assert modes.of_operations(samples(random.Random(3), middles)) is None


def test_launches_that_differ_are_not_operations_that_do() -> None:
    rng = random.Random(6)
    low, high = samples(rng, [(5900, 3000)]), samples(rng, [(9800, 3000)])
    assert modes.within_launches([low, high, low, high]) is None
    assert modes.within_launches([samples(rng, [(5900, 3000), (9800, 3000)])] * 3 + [low]) is not None
    assert modes.within_launches([]) is None


def test_a_machine_probe_tells_groups_apart() -> None:
    values = [1000.0, 1900, 1010, 1920, 990, 1005, 1910, 1000, 1890]
    two = modes.of_launches(rounds(values))
    assert two is not None
    beside = [(value, {"line_ns": 80.0 if value < 1500 else 110.0, "clock_ns": 9.5}) for value in values]
    assert modes.separating_probes(two, beside) == (modes.ProbeSplit(probe="line_ns", low_ns=80, high_ns=110),)
    beside[0] = (1000.0, {"line_ns": 115.0})
    assert modes.separating_probes(two, beside) == (), "once it was otherwise"
    assert modes.separating_probes(two, [(value, {}) for value in values]) == ()


def test_a_wide_hill_is_one_group() -> None:
    assert modes.of_operations(samples(random.Random(4), [(5900, 20_000)], spread=0.6)) is None


def test_the_clock_s_steps_are_no_groups() -> None:
    """Short times are multiples of what the clock counts in."""
    coarse: Counter[int] = Counter()
    for value_ns, often in draws(random.Random(5), [(100, 20_000)], spread=0.2).items():
        coarse[value_ns // 20 * 20] += often
    assert modes.of_operations(decode(synthetic.encoded(coarse.items()))) is None


def whole(tmp_path: Path, spoil: Callable[[dict[str, Any], dict[str, Any], int], None]) -> pagereader.Node:
    options = synthetic.Options(
        layers=("sockets-tcp", "native-ucx"),
        sizes=(8,),
        places=("within",),
        waits=("poll",),
        patterns=(("rpc", 1),),
        launches=9,
        troubles=False,
        attempt_hook=spoil,
    )
    path = tmp_path / "report.html"
    report.build(synthetic.make(tmp_path / "store", options).path, path)
    return pagereader.read(path.read_text())


def banner(tmp_path: Path, spoil: Callable[[dict[str, Any], dict[str, Any], int], None]) -> str:
    return whole(tmp_path, spoil).one("section", class_="banner").text.replace("\u00a0", " ")


def test_a_report_names_the_row(tmp_path: Path) -> None:
    def in_two(point: dict[str, Any], attempt: dict[str, Any], number: int) -> None:
        if point["subject"]["layer"] == "native-ucx":
            synthetic.set_samples(attempt, [(9_000 if number % 2 else 6_000, 4000)])

    said = banner(tmp_path, in_two)
    title = messages.say("remarks", "modes.launches_title", n=1)
    assert title in said
    assert "native-ucx" in said.partition(title)[2]


def test_a_panel_marks_a_layer_whose_launches_lie_on_two_levels(tmp_path: Path) -> None:
    def in_two(point: dict[str, Any], attempt: dict[str, Any], number: int) -> None:
        if point["subject"]["layer"] == "native-ucx":
            synthetic.set_samples(attempt, [(900 if number % 2 else 350, 4000)])

    rows = whole(tmp_path, in_two).one("section", id="answer").all("tbody")[0].all("tr")
    assert {row.one("bdi").text: LEVELS in row.text for row in rows} == {"native-ucx": True, "sockets-tcp": False}


def test_a_report_is_silent_where_there_is_one_group(tmp_path: Path) -> None:
    assert "two groups" not in banner(tmp_path, lambda *_: None)
