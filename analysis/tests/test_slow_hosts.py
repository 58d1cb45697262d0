# SPDX-License-Identifier: BSD-3-Clause
"""Pairs of hosts: the fit, what is named, and what is not."""

from __future__ import annotations

import random
from collections.abc import Iterable
from dataclasses import replace
from math import exp, log
from pathlib import Path

import pytest
import synthetic
from hypothesis import given
from hypothesis import strategies as st

from cadge_analysis import report
from cadge_analysis.blocks.model import StackedFigure, Table
from cadge_analysis.pairs.fit import Pair, fit, slow_for_all, stalled_for_all
from cadge_analysis.pairs.matrix import matrices, without_pairs
from cadge_analysis.pairs.section import is_well, section, sentences
from cadge_analysis.stats.load import Dataset, read

HOSTS = [f"h{number}" for number in range(1, 9)]
PAIRS = [(one, other) for one in HOSTS for other in HOSTS if one != other]


def noisy(seed: int, spread: float = 0.02) -> dict[Pair, float]:
    """Return times of healthy hosts."""
    chance = random.Random(seed)
    return {pair: 10 * exp(chance.gauss(0, spread)) for pair in PAIRS}


def test_additive_effects_are_found_exactly() -> None:
    first = dict(zip(HOSTS, (0.0, 0.3, 0.0, -0.1, 0.0, 0.0, 0.1, 0.0), strict=True))
    second = dict(zip(HOSTS, (0.0, 0.0, 0.2, 0.0, 0.0, -0.2, 0.0, 0.0), strict=True))
    times = {pair: exp(1 + first[pair[0]] + second[pair[1]]) for pair in PAIRS}
    found = fit(times)
    assert found.middle == pytest.approx(1)
    assert found.first == pytest.approx(first)
    assert found.second == pytest.approx(second)
    assert max(abs(one) for one in found.rest.values()) < 1e-9


@given(st.integers(0, 10_000))
def test_one_wild_pair_moves_no_host(seed: int) -> None:
    times = noisy(seed)
    before = fit(times)
    wild = {**times, ("h2", "h5"): 1e6}
    after = fit(wild)
    for host in HOSTS:
        assert abs(after.first[host] - before.first[host]) < 0.06
    assert after.rest["h2", "h5"] > log(1e4)


@pytest.mark.parametrize("seed", range(5))
def test_healthy_hosts_are_not_named(seed: int) -> None:
    assert slow_for_all([noisy(seed), noisy(seed + 100)]) == []


@pytest.mark.parametrize("at", [0, 1])
def test_a_slow_host_is_named_with_its_direction(at: int) -> None:
    layers = [{pair: t * (1.8 if pair[at] == "h7" else 1) for pair, t in noisy(seed).items()} for seed in (1, 2)]
    (found,) = slow_for_all(layers)
    assert (found.part, found.hosts, found.slower, found.pairs) == (("first", "second")[at], ("h7",), 7, 7)
    assert found.times == pytest.approx(1.8, rel=0.05)


def test_a_slow_link_is_named_by_itself() -> None:
    slow = {("h3", "h8"), ("h8", "h3")}
    layers = [{pair: t * (1.5 if pair in slow else 1) for pair, t in noisy(seed).items()} for seed in (1, 2)]
    found = slow_for_all(layers)
    assert {(one.part, one.hosts) for one in found} == {("link", ("h3", "h8")), ("link", ("h8", "h3"))}


def test_links_that_interference_slows_are_not_named_and_a_slow_one_is() -> None:
    """One value in seven is slow by chance, by 35 % at most."""
    named = found = 0
    slow = {("h3", "h8"), ("h8", "h3")}
    for seed in range(100):
        chance = random.Random(seed)
        layers = [
            {
                pair: time * exp(chance.uniform(0, 0.3) if chance.random() < 0.15 else 0)
                for pair, time in noisy(2 * seed + number, 0.03).items()
            }
            for number in (0, 1)
        ]
        named += bool(slow_for_all(layers))
        with_slow = [{pair: time * (1.5 if pair in slow else 1) for pair, time in of.items()} for of in layers]
        found += bool(slow & {one.hosts for one in slow_for_all(with_slow)})
    assert (named <= 5, found >= 95) == (True, True), (named, found)


def test_what_is_slow_over_one_layer_alone_is_not_named() -> None:
    slow = {pair: t * (1.8 if pair[0] == "h7" else 1) for pair, t in noisy(1).items()}
    assert slow_for_all([slow])
    assert slow_for_all([slow, noisy(2)]) == []


def test_what_is_fast_is_not_named() -> None:
    layers = [{pair: t / (2 if pair[0] == "h7" else 1) for pair, t in noisy(seed).items()} for seed in (1, 2)]
    assert slow_for_all(layers) == []


def test_less_than_a_tenth_is_not_named() -> None:
    layers = [{pair: t * (1.08 if pair[0] == "h7" else 1) for pair, t in noisy(s, 0.001).items()} for s in (1, 2)]
    assert slow_for_all(layers) == []


def lossy(seed: int, share: float, slow_pairs: Iterable[Pair]) -> dict[Pair, float]:
    """Return mean times of a call where a share of calls waits 200 ms, the better of two launches of 50 ms."""
    chance, means = random.Random(seed), noisy(seed)
    for pair in slow_pairs:
        calls = [min(5000, int(log(1 - chance.random()) / log(1 - share)) + 1) for _ in range(2)]
        means[pair] = min(means[pair] + (200e3 / n if n < 5000 else 0) for n in calls)
    return means


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("share", [0.02, 0.002])
def test_a_host_that_loses_packets_is_named_once_and_no_link_of_it(seed: int, share: float) -> None:
    own = [pair for pair in PAIRS if "h3" in pair]
    (found,) = stalled_for_all([lossy(seed, share, own), lossy(seed + 100, share, own)])
    assert (found.part, found.hosts, found.pairs) == ("host", ("h3",), 14)
    assert found.slower >= 12
    assert found.times > 10


def test_a_link_that_loses_packets_is_named_once() -> None:
    own = [("h3", "h8"), ("h8", "h3")]
    (found,) = stalled_for_all([lossy(1, 0.02, own), lossy(2, 0.02, own)])
    assert (found.part, set(found.hosts)) == ("link", {"h3", "h8"})


def test_calls_of_half_as_long_again_do_not_stall() -> None:
    layers = [{pair: t * (1.8 if "h7" in pair else 1) for pair, t in noisy(seed).items()} for seed in (1, 2)]
    layers[0]["h1", "h2"] *= 300
    assert stalled_for_all(layers) == []


def test_pairs_may_be_missing() -> None:
    chance = random.Random(3)
    layers = [
        {pair: t * (1.8 if pair[0] == "h7" else 1) for pair, t in noisy(seed).items() if chance.random() < 0.6}
        for seed in (1, 2)
    ]
    assert [(one.part, one.hosts) for one in slow_for_all(layers)] == [("first", ("h7",))]


def test_three_hosts_are_too_few() -> None:
    few = {pair: 10.0 for pair in PAIRS if set(pair) <= {"h1", "h2", "h3"}}
    assert slow_for_all([{**few, ("h1", "h2"): 30.0}] * 2) == []
    assert slow_for_all([]) == []


def measured(folder: Path, *settings: dict[str, str], launches: int = 2) -> Dataset:
    """Return a campaign of a layer between hosts, once for each of some settings."""
    options = synthetic.Options(
        layers=["sockets-tcp"],
        sizes=[8],
        places=["between"],
        waits=["poll"],
        patterns=[("rpc", 1)],
        launches=launches,
        floors=False,
        troubles=False,
        settings=settings,
    )
    return read(synthetic.make(folder, options))


def test_matrices_of_a_campaign(tmp_path: Path) -> None:
    data = measured(tmp_path, {}, {"hosts.pair": "h1,h2"}, {"hosts.pair": "h2,h1"})
    (found,) = matrices(data)
    assert (found.series.label, found.case.pattern, found.launches, dict(found.missing)) == (
        "sockets-tcp",
        "rpc",
        2,
        {},
    )
    assert found.hosts == ("h1", "h2")
    cells = {dict(cell.series.settings).get("hosts.pair"): cell for cell in data.cells}
    for first, second in (("h1", "h2"), ("h2", "h1")):
        own = cells[f"{first},{second}"]
        medians = [sample.quantities["latency"].counts.percentile(50) for sample in own.samples]
        assert found.values[first, second] == pytest.approx(min(medians), rel=0.01)
        assert found.spreads[first, second] == pytest.approx(max(medians) / min(medians) - 1, abs=0.01)
    assert sentences([found]) == ["2 hosts: at least 4 are needed to say which of them is slow"]
    assert is_well([found])


def test_a_picture_shows_what_is_off_by_size_and_colour(tmp_path: Path) -> None:
    (two,) = matrices(measured(tmp_path, {"hosts.pair": "h1,h2"}, {"hosts.pair": "h2,h1"}))
    values = dict.fromkeys(PAIRS, 10.0)
    values |= {("h3", "h1"): 13.0, ("h3", "h2"): 20.0, ("h1", "h2"): 8.0}
    del values["h7", "h8"]
    spreads = {("h1", "h2"): 0.2, ("h2", "h3"): 0.1, ("h3", "h1"): 0.3}
    one = replace(two, hosts=tuple(HOSTS), values=values, missing={("h7", "h8"): "a host is gone"}, spreads=spreads)
    of_many = section([one])
    assert of_many is not None
    (picture,) = [block for block in of_many.blocks if isinstance(block, StackedFigure)]
    assert [variable for variable, _ in picture.parts] == ["s0", "ghost", "s8", "s1", "grid"]
    svg = str(picture.svg)
    assert "slower than the middle by more than 10 %: h3 to h1, h3 to h2." in svg
    assert [svg.count(f"var(--{name},") for name in ("s0", "s1", "s8")] == [1, 1, 1]
    captions = ["".join(span.text for span in block.caption) for block in of_many.blocks if isinstance(block, Table)]
    (launches,) = (text.partition("launches of one pair")[2] for text in captions)
    assert launches == " differ by 20\u202f%, at most by 30\u202f%"
    assert svg.count("h10.8v10.8") == len(PAIRS) - 4, "what is even has one size"
    of_two = section([two])
    assert of_two is not None
    assert not [block for block in of_two.blocks if isinstance(block, StackedFigure)], "of two hosts none stands out"


def test_what_stalls_is_a_sentence_with_its_means(tmp_path: Path) -> None:
    (two,) = matrices(measured(tmp_path, {"hosts.pair": "h1,h2"}, {"hosts.pair": "h2,h1"}))
    assert set(two.means) == set(two.values)
    assert all(two.means[pair] >= two.values[pair] / 2 for pair in two.values)
    means = {pair: 4e6 if "h3" in pair else 1e4 for pair in PAIRS}
    one = replace(two, hosts=tuple(HOSTS), values=dict.fromkeys(PAIRS, 1e4), missing={}, means=means)
    assert sentences([one]) == [
        "h3 loses packets or stalls: calls take 400\u00d7 as long on average in RPC 8 B (14 of 14 pairs)"
    ]
    assert not is_well([one])
    of_one = section([one])
    assert of_one is not None
    captions = ["".join(span.text for span in one.caption) for one in of_one.blocks if isinstance(one, Table)]
    assert ["mean time of a call" in text for text in captions] == [False, True]
    slow_too = replace(one, values=means)
    assert [text.partition(":")[0] for text in sentences([slow_too])] == [
        "h3 is slow as sender to everybody",
        "h3 is slow as receiver from everybody",
    ]


def test_a_host_that_loses_packets_stands_for_its_slow_links(tmp_path: Path) -> None:
    (two,) = matrices(measured(tmp_path, {"hosts.pair": "h1,h2"}, {"hosts.pair": "h2,h1"}))
    values = dict.fromkeys(PAIRS, 1e4) | {("h3", "h7"): 5e4, ("h1", "h2"): 5e4}
    means = {pair: 4e6 if "h3" in pair else 1e4 for pair in PAIRS}
    one = replace(two, hosts=tuple(HOSTS), values=values, missing={}, means=means)
    assert [text.partition(":")[0] for text in sentences([one])] == [
        "link h1-h2 is slow",
        "h3 loses packets or stalls",
    ]


def test_lost_packets_that_delay_the_median_too_are_lost_packets(tmp_path: Path) -> None:
    (two,) = matrices(measured(tmp_path, {"hosts.pair": "h1,h2"}, {"hosts.pair": "h2,h1"}))
    means = {pair: 4e6 if "h3" in pair else 1e4 for pair in PAIRS}
    values = {pair: 1.3e4 if pair[1] == "h3" else 1e4 for pair in PAIRS}
    one = replace(two, hosts=tuple(HOSTS), values=values, missing={}, means=means)
    assert [text.partition(":")[0] for text in sentences([one])] == ["h3 loses packets or stalls"]


def test_most_pairs_of_a_host_that_is_gone_are_one_sentence(tmp_path: Path) -> None:
    (two,) = matrices(measured(tmp_path, {"hosts.pair": "h1,h2"}, {"hosts.pair": "h2,h1"}))
    alive = {pair: 10.0 for pair in PAIRS if "h3" not in pair or pair == ("h3", "h1")}
    gone = {pair: "the launch has not been made" for pair in PAIRS if pair not in alive} | {("h1", "h2"): "DEADLINE"}
    del alive["h1", "h2"]
    one = replace(two, hosts=tuple(HOSTS), values=alive, missing=gone)
    assert sentences([one]) == [
        "h3 gave no number in 13 of 14 pairs: the launch has not been made",
        "h1-h2 gave no number: DEADLINE",
    ]


def test_a_report_ranks_no_pairs(tmp_path: Path) -> None:
    data = measured(tmp_path, {}, {"hosts.pair": "h1,h2"}, {"hosts.pair": "h2,h1"})
    others = without_pairs(data)
    assert [cell.series.settings for cell in others.cells] == [()]
    assert {record.launch.launch_id for record in others.records} == {one.launch_id for one in others.plan.launches}
    assert len(others.plan.launches) * 3 == len(data.plan.launches)
    text = report.html(report.page_of(data))
    assert "Pairs of hosts" in text
    assert "hosts.pair" not in text.partition("Pairs of hosts")[0].partition("<body")[2]


def test_a_report_of_pairs_alone_begins_with_them(tmp_path: Path) -> None:
    data = measured(tmp_path, {"hosts.pair": "h1,h2"}, {"hosts.pair": "h2,h1"})
    assert without_pairs(data).cells == ()
    text = report.edition(report.page_of(data), "text")
    assert text.index("Pairs of hosts") < text.index("Limits of this run")
    assert text.startswith("Pairs of hosts compared\n")
    assert "1 layer, 2 launches of each point" in text
    for of_layers in ("Layers", "Coverage", "Points without a result"):
        assert f"\n{of_layers}\n-" not in text, of_layers
