# SPDX-License-Identifier: BSD-3-Clause
"""Pairs of hosts: the fit, what is named, and what is not."""

from __future__ import annotations

import random
from math import exp, log

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cadge_analysis.pairs.fit import Pair, fit, slow_for_all, slow_parts

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


def test_what_is_slow_over_one_layer_alone_is_not_named() -> None:
    slow = {pair: t * (1.8 if pair[0] == "h7" else 1) for pair, t in noisy(1).items()}
    assert slow_parts(slow)
    assert slow_for_all([slow, noisy(2)]) == []


def test_what_is_fast_is_not_named() -> None:
    layers = [{pair: t / (2 if pair[0] == "h7" else 1) for pair, t in noisy(seed).items()} for seed in (1, 2)]
    assert slow_for_all(layers) == []


def test_less_than_a_tenth_is_not_named() -> None:
    layers = [{pair: t * (1.08 if pair[0] == "h7" else 1) for pair, t in noisy(s, 0.001).items()} for s in (1, 2)]
    assert slow_for_all(layers) == []


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
