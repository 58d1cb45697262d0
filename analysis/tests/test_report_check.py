# SPDX-License-Identifier: BSD-3-Clause
"""A report held against its raw records: what was altered is found, wherever it stands."""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import replace
from pathlib import Path

import pytest
import synthetic

from cadge_analysis import making, report, words
from cadge_analysis.errors import BadInputError
from cadge_analysis.making import ReportChoices
from cadge_analysis.messages import say
from cadge_analysis.stats import load
from cadge_analysis.verify import ReportCheck, Sort, check, printed, words_of
from cadge_results import Campaign, DamagedError

SMALL = synthetic.Options(
    layers=("sockets-tcp", "am-ucx"), sizes=(8, 4096), places=("within",), waits=("poll",), samples=2000
)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Campaign:
    return synthetic.make(tmp_path_factory.mktemp("checked"), SMALL)


@pytest.fixture(scope="module")
def text(made: Campaign) -> str:
    return anew(made, ReportChoices())


def anew(campaign: Campaign, choices: ReportChoices) -> str:
    return report.html(report.made_as(load.read(campaign), choices))


def held(text: str, against: str) -> ReportCheck:
    return check(printed(text, "report.html"), against)


def altered(text: str, pattern: str, by: str) -> str:
    changed, often = re.subn(pattern, by, text, count=1, flags=re.DOTALL)
    assert often == 1
    assert changed != text
    return changed


def older(text: str) -> str:
    """The same report, as if another version had made it."""
    return altered(text, r'"program":"[0-9a-f]+"', '"program":"0123456789abcdef"')


def test_what_was_not_altered_agrees(text: str) -> None:
    found = held(text, text)
    assert found.agrees
    assert found.numbers > 500
    assert all(found.recomputed[sort] > 20 for sort in (Sort.CELL, Sort.DATA, Sort.CHART, Sort.TEXT))
    assert next(words_of(found)).startswith(f"{found.numbers} numbers recomputed, all agree (")


ALTERED = {
    "a number of a table": (r'(data-f="p50".*?<td data-v="[^"]*">)\d', r"\g<1>9", "p50"),
    "the number behind a cell": (r'(data-f="p50".*?<td data-v=")\d', r"\g<1>9", "p50"),
    "the embedded data": (r'("by_launch":\{"\d+":)\d', r"\g<1>99", "data, cells, "),
    "a chart": (r'(<svg class="chart".*? d="M)\d', r"\g<1>99", "chart"),
    "a chart's text": (r'(<svg class="chart".*?<text[^>]*>)\d', r"\g<1>99", "chart"),
    "a sentence": (r'(<figure class="ranking">.*?<h3>[^<]*?)\d', r"\g<1>99", "answer: h3"),
    "a verdict": (r"(data-f=\"verdict\".*?)faster", r"\g<1>slower", "verdict"),
}


@pytest.mark.parametrize("where", ALTERED)
@pytest.mark.parametrize("version", ["the same", "another"])
@pytest.mark.first(5)
def test_what_was_altered_is_found(where: str, version: str, text: str) -> None:
    pattern, by, place = ALTERED[where]
    changed = altered(text, pattern, by)
    found = held(changed if version == "the same" else older(changed), text)
    assert not found.agrees
    places = [one.place for one in found.differences] or list(found.unchecked)
    assert len(places) == 1
    assert place in places[0]


REMOVED = {
    "a row": (r'<tr data-point="86c3ede43d1cf18d".*?</tr>', 8, "am-ucx 86c3ede43d1cf18d, "),
    "a table": (r'<table class="plain numbers".*?</table>', 12, ": rpc-within-poll"),
    "a block": (r'<section id="floors">.*?</section>', 12, "floors: "),
    "a figure": (r'<svg class="chart".*?</svg>', 75, "chart "),
    "a sentence": (r"(?<=</em>)\s*<h3>.*?</h3>", 1, "answer: h3"),
    "a cell of the data": (r'\{"point_id":"86c3ede43d1cf18d".*?\},(?=\{)', 16, "data, cells, 86c3ede43d1cf18d, "),
}
"""By what is removed: its places, and how their names begin or go on."""


@pytest.mark.parametrize("where", REMOVED)
@pytest.mark.parametrize("version", ["the same", "another"])
def test_what_was_removed_is_named(where: str, version: str, text: str) -> None:
    pattern, count, named = REMOVED[where]
    changed = altered(text, pattern, "")
    found = held(changed if version == "the same" else older(changed), text)
    places = [one.place for one in found.differences] or list(found.unchecked)
    assert not found.agrees
    assert len([place for place in places if named in place]) == count
    if version == "another":
        assert len(places) == count


def test_numbers_that_two_sentences_exchanged_are_found(text: str) -> None:
    changed = altered(text, r"2 layers, 6 launches(.*?\()2 sizes\)", r"6 layers, 2 launches\g<1>2 sizes)")
    assert len(held(older(changed), text).unchecked) == 1


def test_a_difference_names_both_numbers(text: str) -> None:
    (one,) = held(
        altered(text, r'(class="plain same".*?data-f="samples".*?<td data-v="12000">)12', r"\g<1>13"), text
    ).differences
    assert (one.printed[-6:], one.recomputed[-6:]) == ("13\u202f000", "12\u202f000")
    assert one.place.endswith("samples")


@pytest.mark.parametrize(
    ("pattern", "by"),
    [
        (r"</main>", "<p>am-ucx is 7 times as fast.</p></main>"),
        (r'<section id="floors">.*?</section>', ""),
        (r"</style>", 'td{content:"7"}</style>'),
        (r"<body>", "<body><!-- -->"),
        (r'<html lang="en">', "<html lang=en>"),
        (r"</main>", "<div>" * 20000 + "</main>"),
    ],
)
def test_what_was_added_or_taken_out_is_found(pattern: str, by: str, text: str) -> None:
    assert held(altered(text, pattern, by), text).differences


def test_another_version_may_word_its_sentences_and_pages_otherwise(text: str) -> None:
    changed = older(altered(text, r'<section id="method">', '<section id="method" class="new">'))
    assert held(changed, text).agrees
    found = held(older(altered(text, r"(<h2>)Answer(</h2>)", r"\g<1>In short\g<2>")), text)
    assert not found.differences
    assert found.unchecked == ("answer: h2",)
    assert not found.agrees, "what was not recomputed is not passed over as right"
    assert "Another version of cadge" in next(words_of(found))


def test_altered_raw_data_is_found(made: Campaign, text: str, tmp_path: Path) -> None:
    copy = tmp_path / made.path.name
    copy.mkdir()
    for path in (one for one in made.path.rglob("*") if one.is_file()):
        target = copy / path.relative_to(made.path)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(path.read_bytes())
    assert held(text, anew(Campaign(copy), ReportChoices())).agrees
    of_layer = {one.launch_id for one in made.plan.launches if one.subject.layer == "am-ucx"}
    launch = next(path for path in sorted((copy / "launches").glob("*.json")) if path.stem in of_layer)
    raw = json.loads(launch.read_text())
    for attempt in raw["result"]["attempts"]:
        attempt["elapsed_ns"] *= 2
    launch.chmod(0o644)
    launch.write_text(json.dumps(raw))
    with pytest.raises(DamagedError):
        anew(Campaign(copy), ReportChoices())
    proof = Path(f"{launch}.sha256")
    proof.chmod(0o644)
    proof.write_text(f"{hashlib.sha256(launch.read_bytes()).hexdigest()}  {launch.name}\n")
    found = held(text, anew(Campaign(copy), ReportChoices()))
    assert any(one.place.endswith(", rate") for one in found.differences)


def test_a_report_says_what_it_was_made_with(made: Campaign, text: str) -> None:
    chosen = ReportChoices(title="A title of 7 <b>", baseline="am-ucx", epoch=1_700_000_000)
    other = anew(made, chosen)
    read_back = printed(other, "report.html")
    assert ReportChoices.of(read_back.making) == chosen
    assert read_back.making["program"] == making.program()
    assert held(other, anew(made, ReportChoices.of(read_back.making))).agrees
    assert held(other, text).differences


def test_a_baseline_that_was_chosen_afterwards_says_so(made: Campaign, text: str) -> None:
    other = anew(made, ReportChoices(baseline="am-ucx"))
    assert say("remarks", "chosen_baseline.title") in other
    assert say("findings", "verdict_words.against_chosen", baseline=words.isolated("am-ucx")) in other
    assert "beside am-ucx" in other
    assert "beside sockets-tcp" not in other
    assert "chosen after" not in text
    declared = report.judged_against(load.read(made), "sockets-tcp")
    assert not declared.baseline_chosen
    with pytest.raises(BadInputError, match="has no layer 'am-ofi' to be the baseline; it has am-ucx, sockets-tcp"):
        report.judged_against(declared, "am-ofi")


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("", "holds no embedded data"),
        ("<p>7</p>", "holds no embedded data"),
        ('<script id="data">{"schema":</script>', "cannot be read"),
        ('<script id="data">[]</script>', "is not cadge.report-data/5"),
        ('<script id="data">{"schema":"cadge.report-data/9"}</script>', "is not cadge.report-data/5"),
    ],
)
def test_what_is_no_report_is_refused(content: str, said: str) -> None:
    with pytest.raises(BadInputError, match=said):
        printed(content, "page.html")


def test_choices_of_another_kind_are_not_taken() -> None:
    assert (
        ReportChoices.of({"title": 7, "baseline": None, "margin": "5", "epoch": True, "further": 1}) == ReportChoices()
    )
    assert replace(ReportChoices(), margin=0.05) == ReportChoices.of({"margin": 0.05})
