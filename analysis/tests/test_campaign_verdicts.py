# SPDX-License-Identifier: BSD-3-Clause
"""What a campaign decides: families against the declared baseline, leading groups, looks with lost launches."""

from __future__ import annotations

import random
from collections.abc import Mapping
from math import log
from pathlib import Path
from typing import Any

import pytest
import synthetic

from cadge_analysis.stats import compare, load
from cadge_analysis.stats.campaign_verdicts import CampaignVerdicts, judge_campaign
from cadge_analysis.stats.compare import Comparison
from cadge_analysis.stats.inference.sequential import LookPlan
from cadge_results import Campaign

BASE = "sockets-tcp"
TRUTH = {BASE: 1.0, "native-ucx": 0.8, "native-ofi": 0.8, "rdma-ucx": 1.01, "mpi-p2p": 1.5}
"""Times as multiples of the baseline's; rates are as many times less."""
TWO_LOOKS = LookPlan((9, 12), (0.03, 0.04))


def world(point: dict[str, Any], attempt: dict[str, Any], number: int) -> None:
    """Everything drifts with the round; layers differ by what is true and a percent, up in one round, down in the next.

    So rounds that follow each other are anything but alike, whatever chance does.
    """
    known = synthetic.flat(point)
    rng = random.Random(f"{number}/{point['point_id']}")
    is_up = (number + list(TRUTH).index(known["layer"])) % 2
    factor = TRUTH[known["layer"]] * (1 + number / 10) * (1 + (1 if is_up else -1) * rng.uniform(0.002, 0.01))
    attempt |= {"operations": 2000, "elapsed_ns": round(20_000_000 * factor)}
    if known["pattern"] == "stream":
        synthetic.set_rate(attempt, 1_000_000_000, round(20_000_000 * factor))
    else:
        synthetic.set_samples(attempt, [(round(10_000 * factor), 2000)])


def made(folder: Path, **changes: Any) -> Campaign:  # noqa: ANN401
    common: dict[str, Any] = {
        "layers": tuple(TRUTH),
        "sizes": (8, 4096, 65536),
        "places": ("within",),
        "waits": ("poll",),
        "patterns": (("rpc", 1), ("stream", 16)),
        "launches": 12,
        "samples": 100,
        "floors": False,
        "troubles": False,
        "attempt_hook": world,
    }
    return synthetic.make(folder, synthetic.Options(**{**common, **changes}))


def compared(campaign: Campaign) -> Comparison:
    return compare.compare(load.read(campaign))


@pytest.fixture(scope="module")
def usual(tmp_path_factory: pytest.TempPathFactory) -> Comparison:
    return compared(made(tmp_path_factory.mktemp("verdicts")))


def said(found: CampaignVerdicts, pattern: str = "rpc") -> dict[str, set[str]]:
    by_layer: dict[str, set[str]] = {}
    for family in found.families:
        if family.key.pattern == pattern:
            for one in family.cells:
                by_layer.setdefault(one.cell.series.layer, set()).add(str(one.says))
    return by_layer


@pytest.mark.parametrize("pattern", ["rpc", "stream"])
def test_each_layer_is_judged_against_the_baseline_of_its_family(usual: Comparison, pattern: str) -> None:
    """The drift of the rounds is twice what layers differ by, and cancels. More of a rate is better."""
    found = judge_campaign(usual)
    assert [(one.key.pattern, one.key.place, one.key.wait) for one in found.families] == [
        ("rpc", "within", "poll"),
        ("stream", "within", "poll"),
    ]
    assert said(found, pattern) == {
        "native-ucx": {"faster"},
        "native-ofi": {"faster"},
        "rdma-ucx": {"same"},
        "mpi-p2p": {"slower"},
    }
    assert (found.comparisons, found.decided, found.undecided) == (24, 24, ())
    slow = next(one for one in found.families[pattern == "stream"].cells if one.cell.series.layer == "mpi-p2p")
    ratio, truth = slow.ratio, 1 / 1.5 if pattern == "stream" else 1.5
    assert ratio is not None
    assert ratio.low is not None
    assert ratio.high is not None
    assert ratio.low < ratio.value < ratio.high
    assert ratio.value == pytest.approx(truth, rel=0.02)
    assert slow.verdict.log_ratio == pytest.approx(log(1.5), abs=0.02)  # above zero is worse, whatever is better


def test_those_that_cannot_be_told_apart_lead_together(usual: Comparison) -> None:
    found = judge_campaign(usual)
    groups = list(found.groups.values())
    assert len(groups) == 6
    for group in groups:
        assert {one.layer for one in group.members} == {"native-ucx", "native-ofi"}
        assert (group.best, group.ranked, group.launches, group.unranked) == (None, 5, 12, ())
        assert group.alike, "surely within 5 % of one another"


def test_without_a_declared_baseline_there_are_leading_groups_alone(tmp_path: Path) -> None:
    found = judge_campaign(compared(made(tmp_path, sweep={})))
    assert (found.baseline, found.comparisons) == (None, 0)
    assert all({one.layer for one in group.members} <= {"native-ucx", "native-ofi"} for group in found.groups.values())
    assert all(family.serial is not None for family in found.families)


def test_the_sweep_states_within_what_layers_are_the_same(tmp_path: Path) -> None:
    found = judge_campaign(compared(made(tmp_path, sweep={"baseline": BASE, "same_within": 0.01})))
    assert found.delta == pytest.approx(0.0001)
    assert "same" not in said(found)["rdma-ucx"]
    assert not any(group.alike for group in found.groups.values())


def test_a_launch_that_gave_no_number_takes_its_round_from_both(tmp_path: Path) -> None:
    """Eleven pairs are left at the one look, and decide; of a layer that lost most launches nothing is said."""

    def broken(point: dict[str, Any], attempt: dict[str, Any], number: int) -> None:
        world(point, attempt, number)
        layer = point["subject"]["layer"]
        if (layer == "native-ucx" and number == 3) or (layer == "native-ofi" and number > 2):
            attempt |= {"status": "failed", "reason_code": "DEADLINE", "reason": "no progress", "checks": []}
            attempt |= dict.fromkeys(("elapsed_ns", "operations", "bytes", "cpu", "executions", "verified"))
            attempt |= {"quantities": {}, "warmup": None}

    found = judge_campaign(compared(made(tmp_path, attempt_hook=broken)))
    one = next(one for one in found.families[0].cells if one.cell.series.layer == "native-ucx")
    assert (one.says, one.verdict.launches, one.lost) == ("faster", 11, 1)
    few = next(one for one in found.families[0].cells if one.cell.series.layer == "native-ofi")
    assert (few.says, few.verdict.launches, few.lost) == ("cannot tell", 3, 9)
    group = next(iter(found.groups.values()))
    assert [one.layer for one in group.members] == ["native-ucx"]
    assert group.best == group.members[0]
    assert [one.layer for one in group.unranked] == ["native-ofi"]


def test_a_look_that_was_not_reached_says_nothing(tmp_path: Path) -> None:
    """Of an interrupted campaign: rounds that may still come are no lost ones."""
    campaign = made(tmp_path, status="interrupted", lost=lambda launch: launch["round"] > 9)
    found = judge_campaign(compared(campaign))
    assert {one.says for one in found.undecided} == {"cannot tell"}
    assert len(found.undecided) == found.comparisons
    assert {(one.verdict.launches, one.verdict.more, one.lost) for one in found.undecided} == {(10, 2, 0)}
    assert all(len(group.members) == 5 for group in found.groups.values())
    early = judge_campaign(compared(campaign), TWO_LOOKS)
    slow = next(one for one in early.families[0].cells if one.cell.series.layer == "mpi-p2p")
    assert (slow.says, slow.verdict.launches, slow.verdict.early) == ("slower", 9, True)


def test_at_the_last_look_nothing_is_early(usual: Comparison) -> None:
    found = judge_campaign(usual, TWO_LOOKS)
    assert {one.verdict.launches for one in found.by_point.values()} == {12}
    assert not any(one.verdict.early for one in found.by_point.values())


def test_a_round_lost_before_a_look_shortens_that_look(tmp_path: Path) -> None:
    """The first look has eight pairs then, and later ones as many as there are: none is skipped or looked at twice."""

    def lost(launch: Mapping[str, Any]) -> bool:
        return launch["round"] > 9 or (launch["round"] == 1 and launch["subject"]["layer"] == "mpi-p2p")

    found = judge_campaign(compared(made(tmp_path, status="interrupted", lost=lost)), TWO_LOOKS)
    slow = next(one for one in found.families[0].cells if one.cell.series.layer == "mpi-p2p")
    assert (slow.verdict.launches, slow.lost) == (8, 1)
    fast = next(one for one in found.families[0].cells if one.cell.series.layer == "native-ucx")
    assert (fast.verdict.launches, fast.lost) == (9, 0)


def test_nothing_is_said_where_the_instrument_is_in_doubt(usual: Comparison) -> None:
    found = judge_campaign(usual, withhold="the self-test is of another machine")
    assert found.withheld
    assert found.decided == 0
    assert all(one.verdict.withheld and one.verdict.more is None for one in found.by_point.values())
    assert all(group.best is None and len(group.members) == 5 for group in found.groups.values())


def test_rounds_that_follow_each_other_alike_withhold_verdicts(tmp_path: Path) -> None:
    def sticky(point: dict[str, Any], attempt: dict[str, Any], number: int) -> None:
        world(point, attempt, number)
        if point["subject"]["layer"] != BASE and point["workload"]["pattern"] == "rpc":
            synthetic.set_samples(attempt, [(9000 if number < 6 else 11000 + number, 2000)])

    found = judge_campaign(compared(made(tmp_path, attempt_hook=sticky)))
    family = next(family for family in found.families if family.key.pattern == "rpc")
    assert family.withheld
    assert family.serial == family.own  # its own, which is clear, not the campaign's
    assert {(one.says, one.verdict.withheld) for one in family.cells} == {("cannot tell", True)}
