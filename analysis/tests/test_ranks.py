# SPDX-License-Identifier: BSD-3-Clause
"""Points that rank and points that stand beside them: verdicts are of the former, and floors made the same choices."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pagereader
import pytest
import synthetic

from cadge_analysis import report, words
from cadge_analysis.messages import say
from cadge_analysis.page.parts import remarks
from cadge_analysis.stats import compare, load
from cadge_analysis.stats.campaign_verdicts import judge_campaign
from cadge_analysis.stats.knee import loads
from cadge_results import Campaign

SLOW = "sockets-tcp"


def untouched_wins(point: dict[str, Any], attempt: dict[str, Any], number: int) -> None:
    """Where data are not touched the slowest layer is the fastest, and below its floor."""
    known = synthetic.flat(point)
    if known.get("touch") != "none" or known["pattern"] not in ("rpc", "exchange"):
        return
    p50 = 200 if known["kind"] == "floor" else 100 if known["layer"] == SLOW else 900
    p50 += (4, 0, 6, 1, 8, 2, 5, 3, 7)[number]  # no round is like the one before
    synthetic.set_samples(attempt, [(p50, 2000)])
    attempt |= {"operations": 2000, "elapsed_ns": 2000 * p50}


def options(**changes: Any) -> synthetic.Options:  # noqa: ANN401
    common: dict[str, Any] = {
        "layers": ("rdma-ucx", SLOW),
        "sizes": (8, 4096, 1 << 20),
        "places": ("within",),
        "waits": ("poll",),
        "patterns": (("rpc", 1), ("stream", 16)),
        "samples": 200,
        "launches": 9,
        "troubles": False,
    }
    return synthetic.Options(**{**common, **changes})


@pytest.fixture(scope="module")
def campaign(tmp_path_factory: pytest.TempPathFactory) -> Campaign:
    made = options(touches=("none", "write+read"), attempt_hook=untouched_wins)
    return synthetic.make(tmp_path_factory.mktemp("ranks"), made)


@pytest.fixture(scope="module")
def found(campaign: Campaign) -> compare.Comparison:
    return compare.compare(load.read(campaign))


@pytest.fixture(scope="module")
def page(campaign: Campaign, tmp_path_factory: pytest.TempPathFactory) -> pagereader.Node:
    path = tmp_path_factory.mktemp("ranks-report") / "r.html"
    report.build(campaign.path, path)
    return pagereader.read(path.read_text())


def test_a_point_is_divided_by_a_floor_of_the_same_choice(found: compare.Comparison) -> None:
    touches = set()
    for row in found.rows:
        assert row.floor is not None
        touch = row.cell.case.workload["touch"]
        assert row.floor.case.workload["touch"] == touch
        touches.add(touch)
    assert touches == {"none", "write+read"}


def test_what_stands_beside_ranks_nothing(found: compare.Comparison) -> None:
    beside = [row for row in found.rows if not row.cell.case.does_rank]
    assert {row.cell.case.workload["touch"] for row in beside} == {"none"}
    judged = judge_campaign(found)
    assert not {row.cell.point_id for row in beside} & judged.by_point.keys()
    assert not {row.cell.case for row in beside} & judged.groups.keys()
    lower = [row for row in beside if row.cell.series.layer == SLOW and row.cell.case.pattern == "rpc"]
    assert all(row.beats_floor for row in lower)
    assert len(lower) == 3
    said = remarks.remarks(found, loads(found))
    assert not any(one.key == "better_than_floor" for one in said)


def test_answers_and_figures_are_of_what_ranks(page: pagereader.Node) -> None:
    answers = page.one("section", id="answer").text
    assert f"{SLOW} has the lowest" not in answers
    assert "touch none" not in page.one("figure", id="fig-rpc-within-poll").text


def test_it_is_shown_beside(page: pagereader.Node) -> None:
    section = page.one("section", id="rpc-within")
    captions = [node.text for node in section.all("caption") if "touch" in node.text]
    assert [text.split("; ")[-1] for text in captions] == ["touch none, not ranked"], "the default is not said"
    titles = [node.text.split("  ")[0] for node in section.all("summary")]
    sizes = [text for text in titles if text.startswith(("8 B", "4 KiB", "1 MiB"))]
    beside = f", touch none {words.RANKS_NOTHING}"
    wanted = [f"{size}{how}" for size in ("8 B", "4 KiB", "1 MiB") for how in ("", beside)]
    assert [text[: len(begin)] for text, begin in zip(sizes, wanted, strict=True)] == wanted
    method = page.one("section", id="method").text
    assert (
        say("report", "method.ranked", titles=["RPC and Stream"], title="touch", value="write+read", others="none")
        in method
    )


def test_where_nothing_ranks_there_is_no_verdict(tmp_path: Path) -> None:
    path = tmp_path / "r.html"
    report.build(synthetic.make(tmp_path / "store", options(touches=("none",))).path, path)
    page = pagereader.read(path.read_text())
    assert "has the lowest" not in page.one("main").text
    assert page.one("figure", id="fig-rpc-within-poll"), "figures are shown nevertheless"


def test_campaigns_of_older_versions_stay_readable(tmp_path: Path) -> None:
    """Their patterns have nothing that ranks, so all of their points do."""
    path = tmp_path / "r.html"
    campaign = synthetic.make(tmp_path / "store", options(aged=True))
    found = compare.compare(load.read(campaign))
    assert all("touch" not in row.cell.case.workload.values for row in found.rows)
    assert all(row.floor is not None and row.cell.case.does_rank for row in found.rows)
    report.build(campaign.path, path)
