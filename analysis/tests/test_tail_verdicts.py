# SPDX-License-Identifier: BSD-3-Clause
"""Verdicts on the p99: families of their own, only where each launch has samples enough, and A against A as well."""

from __future__ import annotations

import csv
import io
import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pagereader
import pytest
import synthetic

from cadge_analysis import export, messages, report
from cadge_analysis.judged import judged
from cadge_analysis.messages import say
from cadge_analysis.page.parts.remarks import remarks
from cadge_analysis.stats import compare, load
from cadge_analysis.stats.campaign_verdicts import CampaignVerdicts, TailVerdicts
from cadge_analysis.stats.knee import loads
from cadge_analysis.stats.measures import TAIL, samples_needed
from cadge_analysis.stats.twin import twin_rate
from cadge_results import Campaign

BASE, CALM, WILD, FEW = "sockets-tcp", "native-ucx", "native-ofi", "mpi-p2p"
TOO_FEW = messages.say("stats", "measures.few_samples", fewest=999, needed=1000)
SAMPLES = 1000
Hook = Callable[[dict[str, Any], dict[str, Any], int], None]


def world(*, few: int = 999, twin_tail: float = 1.0) -> Hook:
    """All have one median. One layer's tail is twice as long, one has a launch with too few samples for a p99.

    twin_tail: how many times as long the tail of the second series is.
    """

    def hook(point: dict[str, Any], attempt: dict[str, Any], number: int) -> None:
        known = synthetic.flat(point)
        noise = random.Random(f"{number}/{point['point_id']}").uniform(0.995, 1.005)
        samples = few if known["layer"] == FEW and number == 4 else SAMPLES
        up = 1.02 if number % 2 else 1.0
        tail = (
            20_000 * (2 if known["layer"] == WILD else 1) * (twin_tail if point["subject"].get("twin") else 1) * noise
        )
        if known["pattern"] == "stream":
            synthetic.set_rate(attempt, 1_000_000_000, round(20_000_000 * noise * up))
        else:
            synthetic.set_samples(attempt, [(round(10_000 * noise), samples - 20), (round(tail * up), 20)])
        attempt |= {"operations": samples, "elapsed_ns": 20_000_000}

    return hook


def made(folder: Path, hook: Hook, **changes: Any) -> Campaign:  # noqa: ANN401
    common: dict[str, Any] = {
        "layers": (BASE, CALM, WILD, FEW),
        "sizes": (8, 64, 4096),
        "places": ("within",),
        "waits": ("poll",),
        "patterns": (("rpc", 1), ("stream", 16)),
        "launches": 12,
        "samples": 100,
        "floors": False,
        "troubles": False,
        "attempt_hook": hook,
        "sweep": {"baseline": BASE},
        "twins": (BASE,),
    }
    return synthetic.make(folder, synthetic.Options(**{**common, **changes}))


@pytest.fixture(scope="module")
def campaign(tmp_path_factory: pytest.TempPathFactory) -> Campaign:
    return made(tmp_path_factory.mktemp("tails"), world())


def found(campaign: Campaign) -> tuple[compare.Comparison, CampaignVerdicts, TailVerdicts]:
    comparison = compare.compare(load.read(campaign))
    verdicts = judged(comparison)
    assert verdicts.tails is not None
    return comparison, verdicts, verdicts.tails


def by_layer(tails: TailVerdicts) -> dict[str, set[str]]:
    said: dict[str, set[str]] = {}
    for one in tails.by_point.values():
        said.setdefault(one.cell.series.layer, set()).add(str(one.says))
    return said


def test_a_launch_needs_ten_samples_beyond_its_quantile() -> None:
    assert (samples_needed(990), samples_needed(999)) == (1000, 10_000)


def test_tails_are_judged_apart_from_the_medians(campaign: Campaign) -> None:
    _, verdicts, tails = found(campaign)
    assert {str(one.says) for one in verdicts.by_point.values() if one.cell.case.pattern == "rpc"} == {"same"}
    assert by_layer(tails) == {CALM: {"same"}, WILD: {"slower"}}
    (family,) = tails.families
    assert (family.key.pattern, family.key.quantity, len(family.cells)) == ("rpc", "latency_p99", 6)
    ratios = [one.ratio for one in family.cells if one.cell.series.layer == WILD]
    assert all(ratio is not None and ratio.value == pytest.approx(2, rel=0.01) for ratio in ratios)


def test_one_launch_without_samples_enough_takes_the_point_out_of_its_family(
    campaign: Campaign, tmp_path: Path
) -> None:
    _, _, tails = found(campaign)
    assert len(tails.without) == 3
    assert set(tails.without.values()) == {TOO_FEW}
    enough = found(made(tmp_path, world(few=1000)))[2]
    assert not enough.without
    assert by_layer(enough)[FEW] == {"same"}


def test_all_launches_together_need_as_many_samples_as_a_p99_that_is_shown(tmp_path: Path) -> None:
    """Nine launches of 1,000 samples are 9,000."""
    tails = found(made(tmp_path, world(few=1000), launches=9))[2]
    assert not tails.by_point
    assert all("needs 10" in why for why in tails.without.values())


def test_where_the_baseline_has_too_few_nothing_is_compared(tmp_path: Path) -> None:
    _, verdicts, tails = found(made(tmp_path, world(), sweep={"baseline": FEW}))
    assert verdicts.comparisons == 18
    assert not tails.by_point
    assert set(tails.without.values()) == {f"{FEW}: {TOO_FEW}"}


def test_a_point_without_a_number_is_no_comparison_by_the_p99(tmp_path: Path) -> None:
    hook = world()

    def broken(point: dict[str, Any], attempt: dict[str, Any], number: int) -> None:
        hook(point, attempt, number)
        if point["subject"]["layer"] == CALM:
            synthetic._spoil(attempt, "CHECK", "a reply was not the one that was asked for")

    _, verdicts, tails = found(made(tmp_path, broken))
    assert verdicts.comparisons == 18
    assert by_layer(tails) == {WILD: {"slower"}}
    assert say("stats", "campaign_verdicts.no_number") in tails.without.values()


def test_a_layer_that_differs_from_itself_by_its_p99_alone(campaign: Campaign, tmp_path: Path) -> None:
    comparison, verdicts, _ = found(campaign)
    calm = twin_rate(comparison, verdicts, measure=TAIL)
    assert calm is not None
    assert (calm.cells, calm.called, calm.ending) == (3, 0, "_p99")
    comparison, verdicts, tails = found(made(tmp_path, world(twin_tail=1.5)))
    rate = twin_rate(comparison, verdicts)
    assert rate is not None
    assert (rate.cells, rate.called) == (6, 0)
    assert not verdicts.withheld
    assert tails.withheld.startswith(f"{BASE} differed from itself in the p99 of 3 of 3 points")
    assert {one.says for one in tails.by_point.values()} == {"cannot tell"}
    said = remarks(comparison, loads(comparison), rate, twin_rate(comparison, verdicts, measure=TAIL))
    assert [one.text.startswith("Verdicts on the p99 are withheld") for one in said if "by its p99" in one.title] == [
        True
    ]


def test_the_report_says_it(campaign: Campaign, tmp_path: Path) -> None:
    out = tmp_path / "r.html"
    report.build(campaign.path, out)
    root = pagereader.read(out.read_text())
    cells = {
        (row.layer, row.fields["p99_verdict"].text) for row in pagereader.full_rows(root) if "p99_verdict" in row.fields
    }
    assert {layer for layer, text in cells if "slower" in text} == {WILD}
    assert {layer for layer, text in cells if "same" in text} == {CALM}
    assert TOO_FEW in root.text
    rates = {"rate": 0.0, "nominal": 0.0, "after_correction": 0, "limit": 0}
    none = messages.say("remarks", "itself.p99", cells=3, called="none", called_n=0, **rates)
    assert none.partition(" (")[0] in root.text


def test_the_export_says_it_with_its_twins(campaign: Campaign) -> None:
    text = {}
    for kind in ("csv", "json"):
        stream = io.StringIO()
        export.write(campaign, kind, stream)
        text[kind] = stream.getvalue()
    rows = list(csv.DictReader(io.StringIO(text["csv"])))
    assert {row["point_id"] for row in rows} == {point.point_id for point in campaign.plan.points}
    assert {row["p99_verdict"] for row in rows if row["layer"] == WILD and row["pattern"] == "rpc"} == {"slower"}
    assert {row["p99_verdict"] for row in rows if row["pattern"] == "stream"} == {""}
    few = [row for row in rows if row["layer"] == FEW and row["pattern"] == "rpc"]
    assert {(row["p99_verdict"], row["p99_verdict_without"]) for row in few} == {("", TOO_FEW)}
    twins = [row for row in rows if row["twin"] == "True"]
    assert rows[-len(twins) :] == twins
    assert {row["layer"] for row in twins} == {BASE}
    assert len(twins) == 6
    assert {row["verdict"] for row in twins} == {row["leads"] for row in twins} == {""}
    assert all(float(row["itself_ratio"]) == pytest.approx(1, abs=0.01) for row in twins)
    assert {row["itself_p99_ratio"] == "" for row in twins if row["pattern"] == "stream"} == {True}
    assert {row["itself_p"] for row in rows if row["twin"] == "False"} == {""}
    document = json.loads(text["json"])
    assert (document["verdicts"]["p99"]["comparisons"], len(document["verdicts"]["p99"]["without"])) == (6, 3)
    assert document["a_against_a_p99"]["cells"] == 3
    assert [row["point_id"] for row in document["twins"]] == [row["point_id"] for row in twins]
    assert all(len(row["by_launch"]) == 12 for row in document["twins"])
    shown = {row["point_id"]: row for row in document["twins"]}
    assert all(shown[row["point_id"]]["itself_ratio"] == float(row["itself_ratio"]) for row in twins)
