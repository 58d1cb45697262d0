# SPDX-License-Identifier: BSD-3-Clause
"""Points of a pattern that is offered a load are compared at one load alone, wherever a campaign is concluded from."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pagereader
import pytest
import synthetic
from pageparts import section

from cadge_analysis import export, messages, report
from cadge_analysis.blocks.model import Matrix
from cadge_analysis.judged import judged
from cadge_analysis.page.ranked import pictured
from cadge_analysis.page.views import of_campaign, page
from cadge_analysis.stats.ablation import ablations
from cadge_analysis.stats.campaign_verdicts import CampaignVerdicts
from cadge_analysis.stats.compare import compare
from cadge_analysis.stats.decide import decide
from cadge_analysis.stats.inference.verdict import Verdict
from cadge_analysis.stats.load import read
from cadge_analysis.stats.offered import NOT_RECORDED
from cadge_analysis.study import contrast, features
from cadge_analysis.versus.against import against
from cadge_analysis.versus.history import history
from cadge_analysis.versus.sides import Side
from cadge_results import Campaign, FormatError, PatternFile

SPAN_NS = 10**9
LAYERS = ("sockets-tcp", "native-ucx", "am-ucx")
RATES = {"sockets-tcp": 120, "native-ucx": 132, "am-ucx": 9564}
WHY = "offered 9\u202f564/s and 120/s: no comparison"
Rate = Callable[[str, int], int]


def usual(layer: str, _: int) -> int:
    """One layer is within a tenth of the baseline; the other is offered eighty times as much."""
    return RATES[layer]


def hook(rate: Rate) -> Callable[[dict[str, Any], dict[str, Any], int], None]:
    def fill(point: dict[str, Any], attempt: dict[str, Any], number: int) -> None:
        layer = point["subject"]["layer"]
        attempt["quantities"] = {}
        value = 1000 + number * 5 % 3 if layer == "sockets-tcp" else 2000 + number * 3 % 7
        synthetic.set_samples(attempt, [(value, 2000)], "response")
        if offered := rate(layer, number):
            synthetic.set_rate(attempt, offered, SPAN_NS, "offered")
            synthetic.set_rate(attempt, offered, SPAN_NS, "achieved")

    return fill


def made(folder: Path, rate: Rate = usual, **changes: Any) -> Campaign:  # noqa: ANN401
    given: dict[str, Any] = {
        "layers": LAYERS,
        "sizes": (50,),
        "places": ("within",),
        "waits": ("poll",),
        "patterns": (("load", 64),),
        "given": ({"request_bytes": 8},),
        "launches": 10,
        "floors": False,
        "troubles": False,
        "attempt_hook": hook(rate),
    }
    return synthetic.make(folder, synthetic.Options(**(given | changes)))


def verdicts(campaign: Campaign) -> CampaignVerdicts:
    return judged(compare(read(campaign)))


@pytest.fixture(scope="module")
def unlike(tmp_path_factory: pytest.TempPathFactory) -> Campaign:
    return made(tmp_path_factory.mktemp("unlike"))


def by_layer(found: CampaignVerdicts) -> dict[str, Verdict]:
    return {one.cell.series.layer: one.says for one in found.by_point.values()}


def test_only_what_stands_at_the_baselines_load_is_compared(unlike: Campaign) -> None:
    found = verdicts(unlike)
    assert by_layer(found) == {"native-ucx": Verdict.SLOWER}
    assert list(found.without.values()) == [WHY]
    assert found.tails is not None
    assert list(found.tails.without.values()) == [WHY]
    [group] = found.groups.values()
    assert group.best is None
    assert group.withheld
    assert group.unlike == "offered 120 to 9\u202f564/s: no comparison"


@pytest.mark.parametrize(("rate", "is_one"), [(110, True), (111, False), (91, True), (90, False)])
def test_a_tenth_is_one_load_and_more_is_not(tmp_path: Path, rate: int, is_one: bool) -> None:
    found = verdicts(made(tmp_path, lambda layer, _: 100 if layer == "sockets-tcp" else rate))
    assert len(found.by_point) == (2 if is_one else 0)
    assert [bool(group.unlike) for group in found.groups.values()] == [not is_one]


def test_one_launch_at_another_load_is_enough(tmp_path: Path) -> None:
    found = verdicts(made(tmp_path, lambda layer, number: 300 if (layer, number) == ("am-ucx", 3) else 100))
    assert list(found.without.values()) == ["offered 100 to 300/s and 100/s: no comparison"]


def test_a_rate_that_was_given_is_one_load_whatever_chance_made_of_it(tmp_path: Path) -> None:
    found = verdicts(made(tmp_path, given=({"request_bytes": 8, "offered_per_s": 100},)))
    assert by_layer(found) == {"native-ucx": Verdict.SLOWER, "am-ucx": Verdict.SLOWER}
    [group] = found.groups.values()
    assert group.best is not None
    assert group.best.layer == "sockets-tcp"


def test_a_load_that_was_not_recorded_is_no_load(tmp_path: Path) -> None:
    found = verdicts(made(tmp_path, lambda layer, number: 0 if (layer, number) == ("am-ucx", 3) else 100))
    assert list(found.without.values()) == [NOT_RECORDED]


def test_patterns_without_a_load_are_compared_as_ever(tmp_path: Path) -> None:
    found = verdicts(made(tmp_path, patterns=(("rpc", 1),), attempt_hook=None))
    assert len(found.by_point) == 2
    assert not found.without


def test_exports_give_the_reason(unlike: Campaign) -> None:
    stream = io.StringIO()
    export.write(unlike, "csv", stream)
    rows = {row["layer"]: row for row in csv.DictReader(io.StringIO(stream.getvalue()))}
    assert {name: (row["verdict"], row["verdict_without"], row["leads"]) for name, row in rows.items()} == {
        "sockets-tcp": ("", "", ""),
        "native-ucx": ("slower", "", ""),
        "am-ucx": ("", WHY, ""),
    }
    stream = io.StringIO()
    export.write(unlike, "json", stream)
    said = json.loads(stream.getvalue())["verdicts"]
    assert list(said["without"].values()) == [WHY]
    [group] = said["groups"]
    assert (group["leading"], group["withheld"]) == ([], True)
    assert group["unlike"] == "offered 120 to 9\u202f564/s: no comparison"


@pytest.mark.spare
def test_the_report_ranks_nothing_and_says_why(tmp_path: Path) -> None:
    path = tmp_path / "report.html"
    report.build(made(tmp_path / "c", sizes=(10, 50, 90)).path, path)
    root = pagereader.read(path.read_text())
    first = root.one("section", id="answer") if root.all("section", id="answer") else root
    text = root.text
    assert "No ranking, layers ran at unlike loads" in first.text
    assert WHY in text
    assert not first.all("tr", class_="leads")
    values = {"n": 3, "values": 3, "axis": "load", "first": ""}
    unlike = messages.say("findings", "verdict_words.unlike_loads", **values)
    assert unlike.partition(" (")[0] in text
    again = report.html(report.page_again(path.read_text(), "report.html", None))
    assert WHY in pagereader.read(again).text


def at_rates(*rates: int) -> tuple[dict[str, int], ...]:
    return ({"request_bytes": 8}, *({"request_bytes": 8, "offered_per_s": rate} for rate in rates))


@pytest.mark.parametrize(("rates", "asked"), [((100,), "100"), ((100, 400, 200), "200"), ((100, 200), "100")])
def test_a_rate_that_was_given_answers_where_shares_are_unlike_loads(
    tmp_path: Path, rates: tuple[int, ...], asked: str
) -> None:
    """The middle one of them: on the first screen and in the summary."""
    comparison = compare(read(made(tmp_path, given=at_rates(*rates))))
    [first] = pictured(comparison).questions
    assert f"{asked} calls/s" in first.topic
    assert first.headline.startswith("sockets-tcp leads")
    built = page(comparison, of_campaign(generated="now"))
    [table] = [one for one in section(built, "questions").blocks if isinstance(one, Matrix)]
    assert {question.head.partition(",")[0] for question in table.questions} == {f"Load {asked} calls/s offered"}
    assert [row.cells[0].rank for row in table.rows] == ["1", "2=", "2="]


def test_shares_answer_where_they_are_one_load_or_no_rate_was_given(unlike: Campaign, tmp_path: Path) -> None:
    alike = compare(read(made(tmp_path / "alike", lambda _, __: 100, given=at_rates(100))))
    for comparison in (alike, compare(read(unlike))):
        [first] = pictured(comparison).questions
        assert "50 %" in first.topic.replace("\u00a0", " ").replace("\u202f", " ")


def test_the_summary_is_sorted_by_name(unlike: Campaign) -> None:
    built = page(compare(read(unlike)), of_campaign(generated="now"))
    [table] = [one for one in section(built, "questions").blocks if isinstance(one, Matrix)]
    assert table.sorted_by == "sorted by name"
    assert {cell.rank for row in table.rows for cell in row.cells} == {""}
    assert ["no comparison" in one.of for one in table.questions] == [True] * len(table.questions)


def test_two_campaigns_are_compared_at_one_load_alone(unlike: Campaign, tmp_path: Path) -> None:
    other = made(tmp_path, lambda layer, _: 130 if layer == "sockets-tcp" else 500, seed=8)
    first, second = (Side(one.campaign_id, read(one)) for one in (unlike, other))
    found = against(first, second, 0.05)
    assert [change.series for change in found.changes] == ["sockets-tcp"]
    assert sorted(found.refused) == [
        "offered 132/s and 500/s: no comparison",
        "offered 9\u202f564/s and 500/s: no comparison",
    ]
    left = history([first, second], 0.05).left
    assert [why for why in left if "no comparison" in why]


def test_two_series_of_one_campaign_too(unlike: Campaign) -> None:
    data = read(unlike)
    tcp, am = (next(one for one in data.layers if one.layer == name) for name in ("sockets-tcp", "am-ucx"))
    found = against(Side("tcp", data, tcp), Side("am", data, am), 0.05)
    assert found.changes == ()
    assert list(found.refused) == ["offered 120/s and 9\u202f564/s: no comparison"]


def test_a_setting_is_worth_nothing_at_another_load(tmp_path: Path) -> None:
    settings: Any = ({}, {"batch": "1"})

    def fill(point: dict[str, Any], attempt: dict[str, Any], number: int) -> None:
        hook(lambda *_: 500 if point["subject"]["settings"] else 100)(point, attempt, number)

    found = ablations(compare(read(made(tmp_path, settings=settings, attempt_hook=fill))))
    variants = [variant for one in found for variant in one.variants]
    assert len(variants) == len(LAYERS)
    assert {one.unlike for one in variants} == {"offered 500/s and 100/s: no comparison"}
    assert {(one.ratio, one.verdict) for one in variants} == {(None, None)}


def test_no_study_divides_points_at_unlike_loads(tmp_path: Path) -> None:
    """By another layer, and by another value of a parameter."""
    arrivals: Any = ({"request_bytes": 8}, {"request_bytes": 8, "arrivals": "fixed"})

    def fill(point: dict[str, Any], attempt: dict[str, Any], number: int) -> None:
        fixed = point["workload"]["parameters"]["arrivals"] == "fixed"
        hook(lambda layer, _: RATES[layer] * (1 + fixed))(point, attempt, number)

    comparison = compare(read(made(tmp_path, given=arrivals, attempt_hook=fill)))
    cells = {(cell.series.layer, cell.case.workload["arrivals"]): cell for cell in comparison.data.cells}
    numbers = {row.cell.point_id: row.numbers for row in comparison.rows}
    tcp, fixed, am = (
        cells[key] for key in (("sockets-tcp", "poisson"), ("sockets-tcp", "fixed"), ("am-ucx", "poisson"))
    )
    near = cells["native-ucx", "poisson"]
    assert features._ratio(tcp, am, comparison, "am").why == "offered 120/s and 9\u202f564/s: no comparison"
    assert features._ratio(tcp, am, comparison, "am").sides is None
    assert features._ratio(tcp, near, comparison, "near").ratio is not None
    assert contrast._found(fixed, tcp, numbers).why == "offered 120/s and 240/s: no comparison"
    assert contrast._found(fixed, tcp, numbers).ratio is None
    assert contrast._found(near, tcp, numbers).ratio is not None


def test_no_launch_more_is_measured_for_what_cannot_be_compared(tmp_path: Path) -> None:
    sweep = {"baseline": "sockets-tcp", "looks": [8, 10]}
    decision = decide(made(tmp_path, lambda layer, _: {"sockets-tcp": 1}.get(layer, 1000), sweep=sweep), 1, version="1")
    assert not any(family.undecided for family in decision.families)
    assert decision.leading == ()


@pytest.mark.parametrize(
    ("rule", "why"),
    [
        ({"offered": "response", "given": "offered_per_s", "within": 0.1}, "there is no rate response"),
        ({"offered": "nothing", "given": "offered_per_s", "within": 0.1}, "there is no rate nothing"),
        ({"offered": "offered", "given": "depth", "within": 0.1}, "depth replaces no share of a rate"),
        ({"offered": "offered", "given": "offered_per_s", "within": 0}, "one_load.within"),
        ({"offered": "offered", "given": "offered_per_s", "within": 1}, "one_load.within"),
        ({"offered": "offered", "given": "offered_per_s"}, "one_load.within"),
    ],
)
def test_a_wrong_rule_is_refused_with_its_place(rule: dict[str, object], why: str) -> None:
    raw = synthetic.WORKLOADS.file("load").to_object() | {"one_load": rule}
    with pytest.raises(FormatError, match=why):
        PatternFile.from_object(raw, source="load.pattern.yml")


def test_every_pattern_that_offers_a_share_compares_at_one_load() -> None:
    """A ratio to what the same attempt measured of itself is no load to compare at."""
    shares = {
        name: any(one.of is not None for one in file.parameters.values())
        for name, file in synthetic.WORKLOADS.patterns.items()
    }
    assert any(shares.values())
    assert shares == {name: file.one_load is not None for name, file in synthetic.WORKLOADS.patterns.items()}
