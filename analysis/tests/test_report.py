# SPDX-License-Identifier: BSD-3-Clause
"""The report as a document: self-contained, escaped, complete without a browser, the same bytes each time."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pagereader
import pytest
import synthetic

from cadge_analysis import report, units
from cadge_analysis.errors import BadInputError, NoDataError
from cadge_analysis.messages import say
from cadge_analysis.stats import load
from cadge_results import Campaign, OutputError

POLICY = (
    r"default-src 'none'; script-src 'sha256-[\w+/]{43}='; style-src 'unsafe-inline'; img-src data:; base-uri 'none';"
    r" form-action 'none'"
)
COLOUR = r"var\(--(k\d+,var\(--dim,var\(--|t\d+,var\(--)?\w+,#[0-9a-f]{6}\){1,3}"
SMALL = synthetic.Options(
    layers=("sockets-tcp",), sizes=(8,), places=("within",), waits=("poll",), patterns=(("rpc", 1),), samples=200
)


def test_it_is_one_file_that_asks_for_nothing(report_text: str) -> None:
    root = pagereader.read(report_text)
    metas = {m.attrs.get("http-equiv"): m.attrs.get("content") for m in root.all("meta")}
    assert re.fullmatch(POLICY, metas["Content-Security-Policy"] or "")
    assert not root.all("link")
    assert not root.all("img")
    assert not root.all("iframe")
    assert [script.attrs for script in root.all("script")] == [{"type": "application/json", "id": "data"}, {}]
    for node in root.walk():
        for name, value in node.attrs.items():
            assert not name.startswith("on"), f"{node.tag} has a handler"
            if name in ("src", "href", "xlink:href", "action", "data"):
                assert value.startswith("#"), f"{node.tag} {name}={value}"
    assert "http:" not in report_text
    assert "https:" not in report_text
    assert "@import" not in report_text
    assert not re.findall(r"url\((?!#)", report_text)


def test_its_links_lead_somewhere_and_ids_are_unique(report_text: str) -> None:
    root = pagereader.read(report_text)
    ids = [node.attrs["id"] for node in root.walk() if "id" in node.attrs]
    assert len(ids) == len(set(ids))
    for link in root.all("a"):
        assert link.attrs["href"].removeprefix("#") in ids
    for node in root.walk():
        for reference in node.attrs.get("aria-labelledby", "").split():
            assert reference in ids
    for reference in re.findall(r"url\(#([^)]+)\)", report_text):
        assert reference in ids


def test_size_stays_small(report_text: str) -> None:
    assert len(report_text.encode()) <= 3_000_000


def test_figures_are_told_in_words_and_numbers(report_text: str) -> None:
    root = pagereader.read(report_text)
    others = [
        figure
        for figure in root.all("figure", class_="fig")
        if figure.attrs["id"].endswith(("-bill", "-processors", "strips"))
    ]
    assert len(others) == 7
    for figure in others:
        assert figure.one("desc").text
        assert figure.one("details").one("table").all("td")
    figures = [figure for figure in root.all("figure", class_="fig") if figure not in others]
    assert len(figures) == 12  # rpc and stream, within and between, polling and blocking, and the tails of rpc
    tails = [figure for figure in figures if figure.attrs["id"].endswith("-tails")]
    assert len(tails) == 4
    for figure in figures:
        assert figure.one("details").one("table").all("td")
        for svg in figure.all("svg", role="img"):
            assert svg.all("title")[0].text
        assert len(figure.all("desc")) == 1, "small pictures are of what it describes"
    figures = [figure for figure in figures if figure not in tails]
    main = [figure.all("svg", role="img")[0] for figure in figures]
    with_ratio = [figure.attrs["id"] for figure, svg in zip(figures, main, strict=True) if "ratio to" in svg.text]
    assert with_ratio == [figure.attrs["id"] for figure in figures]
    to_baseline = [figure.attrs["id"] for figure, svg in zip(figures, main, strict=True) if "ratio to s" in svg.text]
    assert to_baseline == ["fig-stream-between-poll", "fig-stream-between-block"], "no floor of a stream between hosts"


def test_colours_are_variables_with_fallbacks(report_text: str) -> None:
    root = pagereader.read(report_text)
    for svg in root.all("svg", role="img"):
        for node in svg.walk():
            for name in ("fill", "stroke"):
                value = node.attrs.get(name, "none")
                assert value in ("none", "transparent") or re.fullmatch(COLOUR, value), value


def test_the_first_screen_answers(report_text: str) -> None:
    root = pagereader.read(report_text)
    assert say("remarks", "virtual.titles.both") in root.one("section", class_="banner").text
    panels = root.one("section", id="answer").all("figure", class_="ranking")
    assert len(panels) == 6
    assert len(root.one("section", id="further").all("figure", class_="ranking")) == 4, "p99 and processors of rpc"
    assert panels[0].one("h3").text.startswith("No layer leads: 5 to 6 launches cannot separate")
    first = panels[0].one("tbody").all("tr")[0]
    assert (first.one("bdi").text, first.all("td")[1].text) == ("rdma-ucx", "0.356")
    assert root.one("h1").text == "Communication layers compared, within one host and between hosts"
    assert "two hosts" not in report_text, "there may be more of them"


def test_a_floor_that_is_only_a_reference_is_called_one(report_text: str) -> None:
    read = report_text.partition('<script type="application/json"')[0]  # what it carries holds the floors' files
    named = re.findall(r"bare (?:TCP|UDP)[^<()]{0,13}", read)
    assert named
    assert {name[8:] for name in named} == {", a reference"}
    assert "kernel included, a reference" not in report_text


@pytest.mark.long
def test_what_is_shorter_than_the_clock_can_tell_is_marked(report_text: str, tmp_path: Path) -> None:
    assert "near the clock" not in report_text
    path = tmp_path / "report.html"
    report.build(synthetic.make(tmp_path / "store", synthetic.Options(clock_step_ns=10.0)).path, path)
    text = path.read_text()
    assert "near the clock" in text
    assert "steps of 10.0 ns" in text
    assert "10.0 ns</td>" in text, "the table of clocks has it"


def test_equal_records_give_equal_bytes(
    campaign: Campaign, report_path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TZ", "Pacific/Kiritimati")
    monkeypatch.setenv("LC_ALL", "C")
    report.build(campaign.path, tmp_path / "again.html")
    assert (tmp_path / "again.html").read_bytes() == report_path.read_bytes()


def test_source_date_epoch_is_the_only_clock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = synthetic.make(tmp_path, SMALL)
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "0")
    report.build(found.path, tmp_path / "r.html")
    assert "(1970-01-01 00:00:00 UTC)" in (tmp_path / "r.html").read_text()
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "tomorrow")
    with pytest.raises(BadInputError, match="tomorrow"):
        report.build(found.path, tmp_path / "r.html")


@pytest.mark.parametrize(
    "name",
    [
        "<script>alert(1)</script>",
        '"><img src=x onerror=alert(1)>',
        "</script><script>alert(1)</script>",
        "]]>--></style><b>",
        "{{ 7*7 }}",
        "a'+alert(1)+'b",
    ],
)
@pytest.mark.first(2)
def test_a_layer_with_a_hostile_name_is_only_text(name: str, tmp_path: Path) -> None:
    def hostile(point: dict[str, Any], attempt: dict[str, Any], number: int) -> None:
        if number == 1 and point["subject"]["kind"] == "layer":
            attempt |= {"status": "failed", "reason": name, "reason_code": "LIBRARY", "checks": []}

    options = synthetic.Options(
        layers=(name,),
        sizes=(8, 64),
        places=("within",),
        waits=("poll",),
        patterns=(("rpc", 1),),
        samples=200,
        troubles=False,
        attempt_hook=hostile,
    )
    path = tmp_path / "r.html"
    report.build(synthetic.make(tmp_path / "store", options).path, path, title=name)
    root = pagereader.read(path.read_text())
    assert root.one("h1").text == name
    assert pagereader.full_rows(root)[0].layer == name
    assert len(root.all("script")) == 2
    assert not root.all("img")
    assert not root.all("b", class_="x")
    assert name in root.one("table", class_="reasons").text
    assert name in root.all("svg", role="img")[0].text
    subjects = json.loads(root.one("script", id="data").text)["subjects"]
    assert name in {subject["layer"] for subject in subjects}


def test_too_few_launches_are_no_verdict(tmp_path: Path) -> None:
    options = synthetic.Options(
        layers=("sockets-tcp", "rdma-ucx"),
        sizes=(8,),
        places=("within",),
        waits=("poll",),
        patterns=(("rpc", 1),),
        launches=5,
        samples=200,
        troubles=False,
    )
    path = tmp_path / "r.html"
    report.build(synthetic.make(tmp_path / "store", options).path, path)
    panel = pagereader.read(path.read_text()).all("figure", class_="ranking")[0]
    assert panel.one("h3").text.startswith(
        "No layer leads: 5 launches cannot separate 2 layers. Lowest: rdma-ucx, 0.358 \u00b5s"
    )
    assert not panel.all("tr", class_="leads"), "where nothing is decided nobody leads"


def test_one_launch_and_one_layer(tmp_path: Path) -> None:
    options = synthetic.Options(
        layers=("sockets-tcp",),
        sizes=(8, 64),
        places=("within",),
        waits=("poll",),
        patterns=(("rpc", 1),),
        launches=1,
        samples=200,
        floors=False,
        troubles=False,
        virtual=False,
    )
    path = tmp_path / "r.html"
    report.build(synthetic.make(tmp_path / "store", options).path, path)
    root = pagereader.read(path.read_text())
    row = pagereader.full_rows(root)[0]
    assert row.fields["p50"].smalls == ["1 launch, no interval"]
    assert row.fields["ratio"].smalls == [say("stats", "compare.floor_not_measured", size="8 B", wait="poll")]
    assert root.all("figure", class_="ranking")[0].one("h3").text.startswith("Only sockets-tcp has a number: ")
    assert "virtual machine" not in root.one("section", class_="banner").text
    assert "ratio to the floor" not in root.one("section", id="field").text


def test_other_patterns_depths_and_zero_bytes(tmp_path: Path) -> None:
    options = synthetic.Options(
        layers=("rdma-ucx", "null-self"),
        sizes=(0, 1, 8, 65536),
        places=("self", "within"),
        waits=("poll",),
        patterns=(("pingpong", 1), ("rpc", 8), ("onesided", 1)),
        launches=2,
        samples=200,
        troubles=False,
    )
    path = tmp_path / "r.html"
    report.build(synthetic.make(tmp_path / "store", options).path, path)
    root = pagereader.read(path.read_text())
    rows = {row.case: row for row in pagereader.full_rows(root)}
    assert rows["rpc/within/8/8/8/usual/cont/write+read"].fields["ratio"].smalls == [
        "a floor has one operation in flight"
    ]
    put = rows["onesided/within/8/1/put/passive/none/0/library"]
    assert put.fields["visible"].numbers[0] > put.fields["p50"].numbers[0]
    assert put.fields["work"].text == "direct"
    assert rows["pingpong/within/0/write+read/1"].fields["p50"].numbers[0] > 0
    assert root.one("section", id="pingpong-self")
    (ratio,) = {row.fields["ratio"].smalls[0] for name, row in rows.items() if name.startswith("pingpong/self/")}
    assert ratio == say("stats", "compare.floor_has_two_ends")
    assert "0 B" in root.one("figure", id="fig-pingpong-within-poll").text


def test_many_layers_get_a_picture_a_style(tmp_path: Path) -> None:
    """Of a pattern that has no chart among those that stand first."""
    options = synthetic.Options(
        sizes=(8, 64, 4096), places=("within",), waits=("poll",), patterns=(("rpc", 1), ("pingpong", 1)), launches=2,
        samples=100, troubles=False,
    )  # fmt: skip
    page = report.page_of(load.read(synthetic.make(tmp_path, options)))
    figure = pagereader.read(report.html(page)).one("figure", id="fig-pingpong-within-poll")
    pictures = figure.one("div", class_="small-multiples").all("svg", role="img")
    styles = [picture.one("title").text.split(":")[0] for picture in pictures]
    assert styles == sorted({name.partition("-")[0] for name in synthetic.LAYERS})
    assert all(picture.all("use", href="#pingpong-within-poll-back") for picture in pictures)
    assert figure.one("g", id="pingpong-within-poll-back").all("text")[0].text == "8 B"


def test_a_report_that_cannot_be_written(tmp_path: Path) -> None:
    found = synthetic.make(tmp_path, SMALL)
    with pytest.raises(OutputError, match="cannot write"):
        report.build(found.path, tmp_path / "nowhere" / "r.html")


def test_a_campaign_without_points_is_no_data(tmp_path: Path) -> None:
    options = synthetic.Options(layers=(), floors=False)
    with pytest.raises(NoDataError):
        report.build(synthetic.make(tmp_path, options).path, tmp_path / "r.html")
    assert not (tmp_path / "r.html").exists()


def test_long_coverage_and_reasons_fold_behind_their_sums(tmp_path: Path) -> None:
    """Of many layers, patterns and places; how many points became what stands open, and adds up."""
    options = synthetic.Options(
        sizes=(8, 64), patterns=(("rpc", 1), ("stream", 64), ("pingpong", 1)), launches=2, samples=100, floors=False
    )
    path = tmp_path / "r.html"
    report.build(synthetic.make(tmp_path / "store", options).path, path)
    coverage = pagereader.read(path.read_text()).one("section", id="coverage")
    table = coverage.one("table", class_="covered")
    assert coverage.one("details").one("table", class_="matrix")
    assert [head.text for head in table.one("thead").all("th")][:3] == ["layer", "planned points", "valid"]
    for row in table.one("tbody").all("tr"):
        planned, *became = [int(cell.text) if cell.text != units.MISSING else 0 for cell in row.all("td")]
        assert planned == sum(became) > 0
