# SPDX-License-Identifier: BSD-3-Clause
"""`cadge history` as users run it: what it prints, its exit codes, and what it says of wrong input."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from cadge_harness.paths import Checkout
from cadge_results import Store

from .conftest import Answer, FakeRunner
from .test_compare import campaigns
from .test_learn import carry_out

__all__ = ["campaigns"]  # a fixture
Cadge = Callable[..., Answer]
pytestmark = pytest.mark.spare


def test_all_campaigns_or_those_named(campaigns: list[str], cadge: Cadge, tmp_path: Path) -> None:
    campaigns = sorted(campaigns)  # those of one second have the order of their names
    every = cadge("history")
    assert every.code == 0
    assert [line.split()[1] for line in every.out.splitlines()[2:4]] == campaigns
    assert "2 campaigns, " in every.out
    assert "fewer than 10 comparable campaigns (at most 2)" in every.err
    assert cadge("history", *campaigns[::-1]).out == every.out
    data = json.loads(cadge("history", "--json").out)["data"]
    assert [one["campaign_id"] for one in data["campaigns"]] == campaigns
    assert (data["campaigns_needed"], data["margin"]) == (10, 0.05)
    assert all(len(cell["values"]) == 2 and not cell["changes"] for cell in data["cells"])

    page = tmp_path / "history.html"
    answer = cadge("history", "--format", "html", "--margin", "10%", "-o", str(page))
    assert answer.code == 0
    assert answer.out.splitlines()[0].startswith(f"{page}  ")
    assert "2 campaigns over time" in page.read_text()
    assert f"cadge history {' '.join(campaigns)} --margin 10% --format html" in page.read_text()
    assert cadge("history", "--format", "html", "--margin", "10%").out == page.read_text()


def test_mistakes_have_a_sentence_and_a_code(campaigns: list[str], cadge: Cadge, tmp_path: Path) -> None:
    for argv, code, said in (
        ((campaigns[0],), 5, "a history needs at least two campaigns, and ten to find a change; there is 1"),
        ((campaigns[0], campaigns[0]), 5, "there is 1"),
        ((campaigns[0], "nothing"), 5, "no campaign 'nothing'"),
        (("--results", str(tmp_path)), 5, "there is none"),
        (("--margin", "much"), 2, "--margin"),
        (("--format", "html", "--json"), 2, "add -o FILE"),
        (("--format", "html", "-o", str(tmp_path / "no" / "f.html")), 3, "does not exist"),
    ):
        answer = cadge("history", *argv)
        assert answer.code == code, (argv, answer.err)
        assert said in answer.err + answer.out, argv


def test_a_damaged_campaign_is_said(campaigns: list[str], cadge: Cadge, checkout: Checkout) -> None:
    campaign = Store(checkout.campaigns).open(campaigns[0])
    path = campaign.layout.launch(min(campaign.launch_ids()))
    path.chmod(0o644)
    path.write_bytes(path.read_bytes()[:-100])
    answer = cadge("history")
    assert answer.code == 7
    assert f"{path} is damaged" in answer.err


def test_campaigns_without_a_common_cell_have_no_history(
    campaigns: list[str], cadge: Cadge, checkout: Checkout, runner: FakeRunner
) -> None:
    assert runner
    sweep = checkout.sweeps / "tiny.yml"
    sweep.write_text(sweep.read_text().replace("[8B, 4KiB]", "[16B]"))
    carry_out(cadge, checkout)
    newest = Store(checkout.campaigns).open("last").campaign_id
    answer = cadge("history", campaigns[0], newest)
    assert answer.code == 5
    assert "no two of 2 campaigns have a comparable point" in answer.err
