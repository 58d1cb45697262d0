# SPDX-License-Identifier: BSD-3-Clause
"""`cadge compare` as users run it: what it prints, its exit codes, and what it says of wrong input."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from cadge_harness.paths import Checkout
from cadge_results import Store

from .conftest import Answer, FakeRunner
from .test_learn import carry_out

Cadge = Callable[..., Answer]


@pytest.fixture
def campaigns(checkout: Checkout, cadge: Cadge, runner: FakeRunner) -> list[str]:
    """Two campaigns of the tiny sweep."""
    assert runner
    for _ in range(2):
        carry_out(cadge, checkout)
    return [one.campaign_id for one in Store(checkout.campaigns).campaigns()]


def test_two_campaigns(campaigns: list[str], cadge: Cadge) -> None:
    answer = cadge("compare", campaigns[0], campaigns[1])
    assert answer.code == 0, answer.err
    assert answer.out.splitlines()[0].split() == ["first", campaigns[0]]
    assert "not paired; the same is within 5 %" in answer.out
    assert "cannot tell (about 1 launches more)" in answer.out or "same" in answer.out
    markdown = cadge("compare", campaigns[0], campaigns[1], "--format", "markdown")
    assert "| verdict | second / first | first | second | cell |" in markdown.out
    data = json.loads(cadge("compare", campaigns[0], campaigns[1], "--json").out)["data"]
    assert (data["first"], data["second"], data["paired"]) == (campaigns[0], campaigns[1], False)
    assert len(data["changes"]) > 2
    assert {change["verdict"] for change in data["changes"]} <= {"faster", "slower", "same", "cannot tell"}


def test_a_campaign_beside_itself(campaigns: list[str], cadge: Cadge) -> None:
    answer = cadge("compare", campaigns[0], campaigns[0], "--fail-on", "slower", "--fail-on", "faster", "--json")
    assert answer.code == 0
    assert {change["ratio"] for change in json.loads(answer.out)["data"]["changes"]} == {1.0}


def test_two_layers_of_one(campaigns: list[str], cadge: Cadge) -> None:
    answer = cadge("compare", f"{campaigns[0]}:a-one", f"{campaigns[0]}:b-two")
    assert answer.code == 0, answer.err
    assert "paired by round" in answer.out
    assert "a-one \u2192 b-two" in answer.out


def test_exit_codes(campaigns: list[str], cadge: Cadge, checkout: Checkout) -> None:
    del campaigns
    answer = cadge("run", "--sweep", "tiny", "--layers", "a-one", "--no-report")
    assert answer.code == 0, answer.err
    before, after = (one.campaign_id for one in Store(checkout.campaigns).campaigns()[-2:])
    lacking = cadge("compare", before, after, "--fail-on", "missing")
    assert lacking.code == 8
    assert "cells" in lacking.err
    assert cadge("compare", after, before, "--fail-on", "missing").code == 0
    assert cadge("compare", before, after, "--fail-on", "slower:5000%").code == 0


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--margin", "5"), "a share is written like 5% or 2.5%"),
        (("--margin", "0%"), "above 0% and at most 100%"),
        (("--fail-on", "worse"), "it is slower, faster (also with a share"),
        (("--fail-on", "slower:much"), "a share is written like"),
        (("--fail-on", "missing:5%"), "or missing"),
    ],
)
def test_wrong_options(campaigns: list[str], cadge: Cadge, arguments: tuple[str, ...], said: str) -> None:
    answer = cadge("compare", campaigns[0], campaigns[1], *arguments)
    assert answer.code == 2
    assert said in answer.err


def test_wrong_sides(campaigns: list[str], cadge: Cadge) -> None:
    assert "no layer 'a-onne'; did you mean a-one?" in cadge("compare", "last:a-onne", "last:b-two").err
    answer = cadge("compare", "last:a-one", campaigns[0])
    assert (answer.code, "one side is a layer" in answer.err) == (2, True)
    assert cadge("compare", "20200101T000000Z-00000000", "last").code == 5
