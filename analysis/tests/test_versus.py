# SPDX-License-Identifier: BSD-3-Clause
"""Two campaigns, or two layers of one: what is matched, what differed around them, and verdicts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import synthetic

from cadge_analysis.stats import load
from cadge_analysis.stats.verdict import Verdict
from cadge_analysis.versus.against import Against, against
from cadge_analysis.versus.sides import Side
from cadge_results import Campaign

SLOW = "native-ucx"
FAST = "sockets-tcp"


def made(folder: Path, **options: Any) -> Campaign:  # noqa: ANN401
    usual = {
        "layers": (FAST, SLOW),
        "sizes": (8, 4096),
        "places": ("within",),
        "waits": ("poll",),
        "launches": 14,
        "samples": 400,
        "troubles": False,
        "floors": False,
    }
    return synthetic.make(folder, synthetic.Options(**(usual | options)))


def side(campaign: Campaign, layer: str = "") -> Side:
    data = load.read(campaign)
    found = {series.label: series for series in data.layers}
    return Side(f"{campaign.campaign_id}:{layer}" if layer else campaign.campaign_id, data, found.get(layer))


def slower(point: dict[str, Any], attempt: dict[str, Any], _: int) -> None:
    """Calls of one layer take three times as long; everything of the other is as it was."""
    if point["subject"]["layer"] == SLOW and point["workload"]["pattern"] == "rpc":
        synthetic.set_samples(attempt, [(60_000, 400)])


def verdicts(found: Against) -> dict[tuple[str, str], set[Verdict]]:
    said: dict[tuple[str, str], set[Verdict]] = {}
    for change in found.changes:
        said.setdefault((change.series, change.pattern), set()).add(change.judged.verdict)
    return said


def test_a_campaign_beside_itself(tmp_path: Path) -> None:
    one = side(made(tmp_path))
    found = against(one, one, 0.05)
    assert found.paired
    assert found.conditions == ()
    assert found.missing == {}
    assert {change.judged.verdict for change in found.changes} == {Verdict.SAME}
    assert len(found.changes) == 2 * 2 * 2


def test_what_became_slower_stands_first_and_backwards_it_became_faster(tmp_path: Path) -> None:
    before, after = side(made(tmp_path / "a")), side(made(tmp_path / "b", seed=8, attempt_hook=slower))
    there, back = against(before, after, 0.05), against(after, before, 0.05)
    assert not there.paired
    assert {change.series for change in there.changes[:2]} == {SLOW}
    assert verdicts(there)[SLOW, "rpc"] == {Verdict.SLOWER}
    assert verdicts(back)[SLOW, "rpc"] == {Verdict.FASTER}
    assert not verdicts(there)[FAST, "rpc"] & {Verdict.SLOWER, Verdict.FASTER}
    by_cell = {(one.series, one.pattern, one.workload): one for one in back.changes}
    for change in there.changes:
        mirror = by_cell[change.series, change.pattern, change.workload]
        assert mirror.shift == change.shift.mirrored()


def test_more_is_better_where_the_pattern_says_so(tmp_path: Path) -> None:
    """Of a stream the one with more MB/s is the faster one."""
    campaign = made(tmp_path)
    found = against(side(campaign, FAST), side(campaign, SLOW), 0.05)
    assert found.paired
    for change in found.changes:
        if change.judged.verdict in (Verdict.FASTER, Verdict.SLOWER):
            better = change.second > change.first if change.pattern == "stream" else change.second < change.first
            assert better == (change.judged.verdict is Verdict.FASTER)
    assert any(change.judged.verdict is Verdict.FASTER for change in found.changes)


def test_what_one_side_lacks_is_counted(tmp_path: Path) -> None:
    before, after = side(made(tmp_path / "a")), side(made(tmp_path / "b", sizes=(8,), layers=(FAST,)))
    found = against(before, after, 0.05)
    assert found.missing == {f"not planned in {after.name}": 2 * 2 * 2 - 2}
    assert len(found.changes) == 2


def test_conditions_that_differed(tmp_path: Path) -> None:
    before = side(made(tmp_path / "a"))
    after = side(made(tmp_path / "b", seed=8, node={"cpu": {"model name": "Another One"}, "governor": "powersave"}))
    found = {one.what: one for one in against(before, after, 0.05).conditions}
    assert found["processor"].other_machine
    assert "Another One" in found["processor"].second
    assert not found["frequency governor"].other_machine
    assert next(iter(found)) == "processor"


def test_a_number_that_is_not_above_zero_is_no_ratio(tmp_path: Path) -> None:
    def nothing(point: dict[str, Any], attempt: dict[str, Any], _: int) -> None:
        if point["workload"]["pattern"] == "stream" and point["subject"]["layer"] == SLOW:
            attempt["quantities"] = {}

    before, after = side(made(tmp_path / "a")), side(made(tmp_path / "b", seed=8, attempt_hook=nothing))
    found = against(before, after, 0.05)
    assert found.missing == {f"failed in {after.name}": 2}


@pytest.mark.parametrize("margin", [0.01, 0.5])
def test_the_margin_decides_what_is_the_same(tmp_path: Path, margin: float) -> None:
    found = against(side(made(tmp_path / "a")), side(made(tmp_path / "b", seed=9)), margin)
    same = found.count(Verdict.SAME)
    assert same == len(found.changes) if margin == 0.5 else same < len(found.changes)
