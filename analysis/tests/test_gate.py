# SPDX-License-Identifier: BSD-3-Clause
"""Where a report withholds its verdicts, nothing else that is made of the same campaign concludes anything."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import ablated
import pagereader
import pytest
import synthetic
import test_knee_report
import test_study_models
from pageparts import headline, limits, sections
from test_loggp_report import by_hand

from cadge_analysis import export, messages, report
from cadge_analysis.blocks.make import tables_of
from cadge_analysis.blocks.model import TableCell, Text
from cadge_analysis.cells.shown import Value
from cadge_analysis.judged import disturbed, gated, judged, withheld_of
from cadge_analysis.page.parts import ablation_table
from cadge_analysis.page.views import of_campaign, page
from cadge_analysis.stats.compare import compare
from cadge_analysis.stats.inference.verdict import Verdict
from cadge_analysis.stats.knee import loads
from cadge_analysis.stats.load import read
from cadge_analysis.study import published
from cadge_analysis.study.models import models
from cadge_analysis.study.views import build
from cadge_analysis.versus.against import against
from cadge_analysis.versus.history import history
from cadge_analysis.versus.sides import Side
from cadge_analysis.versus.why import why
from cadge_results import Campaign

STUDIES = Path(__file__).parents[1] / "studies"
LAUNCHES = 10
GIVEN: Any = ({}, {"delay_percent": 100}, {"messages": 4})
WHY = "other work on the machine disturbed 30\u202f% of 80 attempts, more than 20\u202f%"


def busy(launches: int) -> Callable[[dict[str, Any], dict[str, Any], int], None]:
    """Of so many launches all attempts are disturbed; native-ucx is twice as fast as sockets-tcp in all of them."""

    def hook(point: dict[str, Any], attempt: dict[str, Any], number: int) -> None:
        known = synthetic.flat(point)
        value = (10_000 if known["layer"] == "sockets-tcp" else 5_000) + 100 * (number * 3 % 7)
        synthetic.set_samples(attempt, [(value, 400)])
        for one in attempt["cpu"]:
            one |= {"wall_ns": 25_000_000, "run_wait_ns": 9_000_000 if number < launches else 0, "stolen_ns": None}

    return hook


def made(folder: Path, disturbed: int, **changes: Any) -> Campaign:  # noqa: ANN401
    usual: dict[str, Any] = {
        "layers": ("sockets-tcp", "native-ucx"),
        "sizes": (8, 4096),
        "places": ("within", "between"),
        "waits": ("poll",),
        "patterns": (("rpc", 1),),
        "launches": LAUNCHES,
        "samples": 400,
        "floors": False,
        "troubles": False,
        "attempt_hook": busy(disturbed),
    }
    return synthetic.make(folder, synthetic.Options(**(usual | changes)))


@pytest.fixture(scope="module")
def disturbed_one(tmp_path_factory: pytest.TempPathFactory) -> Campaign:
    return made(tmp_path_factory.mktemp("busy"), 3)


@pytest.fixture(scope="module")
def calm(tmp_path_factory: pytest.TempPathFactory) -> Campaign:
    return made(tmp_path_factory.mktemp("calm"), 2, seed=8)


def test_a_fifth_is_not_too_many_and_more_is(calm: Campaign, disturbed_one: Campaign) -> None:
    assert disturbed(read(calm)) == ""
    assert judged(compare(read(calm))).count(Verdict.FASTER) == 4
    assert disturbed(read(disturbed_one)) == WHY
    found = judged(compare(read(disturbed_one)))
    assert found.withheld == found.tails.withheld == WHY  # type: ignore[union-attr]
    assert {one.says for one in found.by_point.values()} == {Verdict.UNKNOWN}
    assert all(group.withheld for group in found.groups.values())


def test_the_first_screen_says_so(disturbed_one: Campaign, calm: Campaign) -> None:
    made_page = page(compare(read(disturbed_one)), of_campaign(generated="now"))
    assert headline(made_page).startswith(f"{messages.say('remarks', 'warned.reserve')}: 1 ")
    assert ["all verdicts are withheld" in one.size for one in limits(made_page) if one.stops] == [True]
    assert not any(one.stops for one in limits(page(compare(read(calm)), of_campaign(generated="now"))))


def test_exports_say_nothing_of_who_leads(disturbed_one: Campaign) -> None:
    stream = io.StringIO()
    export.write(disturbed_one, "json", stream)
    said = json.loads(stream.getvalue())
    assert said["verdicts"]["withheld"] == WHY
    assert {(tuple(one["leading"]), one["withheld"]) for one in said["verdicts"]["groups"]} == {((), True)}
    layers = [row for row in said["rows"] if row["kind"] == "layer"]
    assert {row.get("leads") for row in layers} == {None}
    assert {row.get("verdict") for row in layers if row["layer"] == "native-ucx"} == {"cannot tell"}


@pytest.mark.parametrize("kind", ["text", "markdown"])
def test_text_and_markdown_obey(disturbed_one: Campaign, calm: Campaign, kind: str) -> None:
    said, free = (
        report.edition(page(compare(read(one)), of_campaign(generated="now")), kind) for one in (disturbed_one, calm)
    )
    assert WHY in said
    assert "leading group of" not in said.lower()
    assert "\u25b2 faster" in free
    assert "\u25b2 faster [" not in said


def test_a_report_that_is_opened_again_knows_it(disturbed_one: Campaign, tmp_path: Path) -> None:
    path = tmp_path / "report.html"
    report.build(disturbed_one.path, path)
    again = report.html(report.page_again(path.read_text(), "report.html", None))
    assert WHY in pagereader.read(again).text


def test_a_comparison_of_campaigns_withholds_what_either_does(calm: Campaign, disturbed_one: Campaign) -> None:
    first, second = (Side(one.campaign_id, read(one)) for one in (calm, disturbed_one))
    for sides in ((first, second), (second, first)):
        found = against(*sides, 0.05)
        assert WHY in found.withheld
        assert {change.judged.verdict for change in found.changes} == {Verdict.UNKNOWN}


def test_a_history_is_made_of_campaigns_that_conclude(calm: Campaign, disturbed_one: Campaign) -> None:
    assert withheld_of(read(calm)) == ""
    found = history([Side(one.campaign_id, read(one)) for one in (calm, disturbed_one, calm)], 0.05)
    assert {len(course.stops) for course in found.courses} == {2}
    assert [often for why, often in found.left.items() if WHY in why] == [8]


@pytest.mark.parametrize(("launches", "count", "said"), [(10, 10, WHY[:36] + "100"), (0, 2, "too few for an interval")])
def test_shares_of_variance_and_spans_are_withheld(launches: int, count: int, said: str, tmp_path: Path) -> None:
    layers = ("native-ucx", "am-ucx", "native-ofi", "am-ofi")
    campaign = made(tmp_path, launches, layers=layers, launches=count, patterns=(("pingpong", 1),), places=("within",))
    out = tmp_path / "sc98.html"
    build([campaign], STUDIES / "sc98", out)
    text = pagereader.read(out.read_text()).text
    assert said in text
    assert "Of the variance of the logarithm" not in text
    assert ("Conclusions are withheld" in text) == (launches > 0)


def test_an_ablation_marks_nothing(tmp_path: Path) -> None:
    def hook(point: dict[str, Any], attempt: dict[str, Any], number: int) -> None:
        ablated.by_hand(point, attempt, number)
        for one in attempt["cpu"]:
            one |= {"wall_ns": 25_000_000, "run_wait_ns": 9_000_000, "stolen_ns": None}

    quiet = ablation_table.answer(ablated.make(tmp_path / "quiet", launches=9))
    assert quiet.data["differ"]
    assert quiet.data["withheld"] is None
    busy_one = ablation_table.answer(ablated.make(tmp_path / "busy", launches=9, attempt_hook=hook))
    assert busy_one.data["differ"] == 0
    assert busy_one.note.startswith("Whether ratios differ from 1 is withheld: other work")
    assert {row["differs"] for row in busy_one.data["rows"]} == {None}  # type: ignore[attr-defined]


def test_what_a_campaign_withholds_its_comparison_knows(calm: Campaign, disturbed_one: Campaign) -> None:
    assert gated(compare(read(calm))).why_not("rpc", "within", "poll") == ""
    assert gated(compare(read(disturbed_one))).why_not("rpc", "within", "poll") == WHY


def hindering(hook: Callable[[dict[str, Any], dict[str, Any], int], None]) -> Any:  # noqa: ANN401
    """Return a hook that does the same, and lets something else have the processors all the time."""

    def fill(point: dict[str, Any], attempt: dict[str, Any], number: int) -> None:
        hook(point, attempt, number)
        for one in attempt["cpu"]:
            one |= {"wall_ns": 25_000_000, "run_wait_ns": 9_000_000, "stolen_ns": None}

    return fill


def test_no_knee_is_told(tmp_path: Path) -> None:
    usual = test_knee_report.campaign(tmp_path / "usual")
    held = test_knee_report.campaign(tmp_path / "held", hooked=hindering(test_knee_report.hook(test_knee_report.usual)))
    assert not any(knee.withheld for knee in loads(gated(compare(read(usual)))).knees)
    found = loads(gated(compare(read(held)))).knees
    assert found
    assert all(knee.withheld.startswith("other work on the machine disturbed 100") for knee in found)
    stream = io.StringIO()
    export.write(held, "json", stream)
    said = json.loads(stream.getvalue())["knees"]
    assert {(one["load_percent"], one["rate_per_s"], one["rest_p99_ns"]) for one in said} == {(None, None, None)}
    built = page(compare(read(held)), of_campaign(generated="now"))
    knees = (table for table in tables_of(sections(built)) if "knees" in table.role)
    cells = [cell for table in knees for line in table.lines if isinstance(cell := line.cells[2], Value)]
    assert cells
    assert all(value.reason.startswith("withheld: other work") for value in cells)


def test_no_model_holds_and_no_message_is_more_processor(tmp_path: Path) -> None:
    usual, held = (
        test_study_models.make(
            tmp_path / name, patterns=(("loggp", 1), ("pingpong", 1)), given=GIVEN, launches=5, attempt_hook=hook
        )
        for name, hook in (("usual", by_hand), ("held", hindering(by_hand)))
    )

    def said(campaign: Campaign) -> tuple[set[str], str]:
        built = page(compare(read(campaign)), of_campaign(generated="now"))
        tables = [table for table in tables_of(sections(built)) if table.label.startswith("Predictions")]
        blocks = models(gated(compare(read(campaign))), published.read(test_study_models.LOGP))
        words = " ".join(span.text for one in blocks if isinstance(one, Text) for span in one.spans)
        last = [line.cells[-1] for table in tables for line in table.lines]
        return {"".join(span.text for span in cell.spans) for cell in last if isinstance(cell, TableCell)}, words

    verdicts, sentence = said(usual)
    assert verdicts <= {"holds", "does not hold"}
    assert verdicts
    assert "more processor than network in" in sentence
    verdicts, sentence = said(held)
    assert verdicts == {"withheld"}
    assert "more processor than network in" not in sentence


def test_no_layer_is_better_than_its_floor(tmp_path: Path) -> None:
    def hook(point: dict[str, Any], attempt: dict[str, Any], number: int) -> None:
        floor = point["subject"]["kind"] == "floor"
        attempt["quantities"] = {}
        synthetic.set_samples(attempt, [((2000 if floor else 1000) + number * 3 % 7, 400)])

    of: dict[str, Any] = {"floors": True, "places": ("within",)}
    usual = compare(read(made(tmp_path / "usual", 0, attempt_hook=hook, **of)))
    held = compare(read(made(tmp_path / "held", 0, attempt_hook=hindering(hook), **of)))
    assert any(row.beats_floor for row in gated(usual).rows)
    assert any(row.beats_floor for row in held.rows)
    assert not any(row.beats_floor for row in gated(held).rows)
    built = page(held, of_campaign(generated="now"))
    assert not any(one.key == "better_than_floor" for one in limits(built))


def test_two_cells_side_by_side_conclude_nothing(calm: Campaign, disturbed_one: Campaign) -> None:
    first, second = (Side(one.campaign_id, read(one)) for one in (calm, disturbed_one))
    assert why(first, first.data.cells[0], first, first.data.cells[1], 0.05).withheld == ""
    for one, other in ((first, second), (second, first), (second, second)):
        assert why(one, one.data.cells[0], other, other.data.cells[1], 0.05).withheld == WHY
