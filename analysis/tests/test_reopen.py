# SPDX-License-Identifier: BSD-3-Clause
"""A report opened again from its own numbers says what its campaign would have said, and names what it cannot say."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path

import pagereader
import pytest
import synthetic

from cadge_analysis import report
from cadge_analysis.errors import BadInputError
from cadge_analysis.messages import say
from cadge_analysis.page.parts.provenance import as_json
from cadge_analysis.page.views import NEEDS_RAW
from cadge_analysis.stats import load
from cadge_analysis.verify import check, printed
from cadge_results import Campaign

TOLD = {"wait", "p50", "verdict", "p99_verdict", "ratio", "above", "floor", "references"}


@pytest.fixture(scope="module")
def twice(tmp_path_factory: pytest.TempPathFactory) -> Campaign:
    """With a layer measured twice, launches that were lost, settings, and attempts that gave no number."""
    options = synthetic.Options(
        sizes=(8, 65536),
        waits=("poll",),
        samples=1500,
        launches=9,
        twins=("sockets-tcp",),
        settings=({}, {"window": "2"}),
        drop_launches=3,
    )
    return synthetic.make(tmp_path_factory.mktemp("reopened"), options)


def of_campaign(campaign: Campaign, baseline: str | None = None) -> str:
    return _of_folder(campaign.path, baseline)


@cache
def _of_folder(folder: Path, baseline: str | None) -> str:
    return report.html(report.page_of(load.read(Campaign(folder)), baseline=baseline))


@cache
def opened(text: str, name: str = "report.html", baseline: str | None = None) -> str:
    """Return the page of a report that is opened again."""
    return report.html(report.page_again(text, name, baseline))


@pytest.fixture(scope="module")
def text(twice: Campaign) -> str:
    return of_campaign(twice)


def answer_of(text: str) -> list[str]:
    root = pagereader.read(text)
    return [one.text for one in root.all("div", class_="ranks")[0].all("h3")]


@pytest.mark.parametrize("baseline", [None, "native-ucx", pytest.param("rdma-ucx", marks=pytest.mark.long)])
@pytest.mark.first(1)
def test_it_says_what_the_campaign_would(twice: Campaign, text: str, baseline: str | None) -> None:
    ours = of_campaign(twice, baseline)
    again = opened(text, baseline=baseline)
    assert answer_of(again) == answer_of(ours)
    rows = {row.point_id: row for row in pagereader.full_rows(pagereader.read(ours))}
    found = pagereader.full_rows(pagereader.read(again))
    assert {row.point_id for row in found} == set(rows)
    verdicts = set()
    for row in found:
        assert set(row.fields) <= TOLD
        assert {"p50", "verdict", "ratio"} <= set(row.fields)
        for name, cell in row.fields.items():
            assert cell == rows[row.point_id].fields[name]
        verdicts.add(row.fields["verdict"].text)
    assert len(verdicts) > 2
    tables = [
        [
            (table.one("caption").text, table.text)
            for table in pagereader.read(page).one("section", id="method").all("table")
        ]
        for page in (ours, again)
    ]
    assert tables[0] == tables[1]


def test_it_names_what_it_cannot_say(text: str) -> None:
    again = report.html(report.page_again(text, "r<b>.html", "native-ucx"))
    assert all(said.partition("`")[0] in again for said in NEEDS_RAW)
    assert "opened again from r&lt;b&gt;.html" in again
    assert say("remarks", "virtual.titles.both") in again, "the warnings of the file stay"
    assert 'class="chart"' not in again
    for heading in (
        "Layers and their paths",
        "Every planned attempt gave a result",
        "an operation takes: not recorded",
    ):
        assert heading not in again


def test_it_can_be_opened_once_more(text: str) -> None:
    again = opened(text, baseline="native-ucx")
    assert answer_of(report.html(report.page_again(again, "again.html", None))) == answer_of(text)


def test_a_baseline_that_was_chosen_stays(twice: Campaign) -> None:
    chosen = of_campaign(twice, "native-ucx")
    again = opened(chosen)
    assert answer_of(again) == answer_of(chosen)
    assert "against native-ucx" in again


def test_it_is_the_page_of_a_campaign_without_what_needs_raw_data(twice: Campaign, text: str) -> None:
    ids = [
        {one.attrs["id"] for one in pagereader.read(page).all("section") if "id" in one.attrs}
        for page in (
            of_campaign(twice, "native-ucx"),
            opened(text, baseline="native-ucx"),
        )
    ]
    assert ids[0] - ids[1] == {"layers", "itself", "without", "questions", "field"}
    assert ids[1] <= ids[0]


def of_before(text: str, names: Mapping[str, str], version: int) -> str:
    """Return a report as an older version wrote it: launches in `runs`, of each cell a list of their values."""
    begun, script, rest = re.split(r'(?<=id="data">)(.*?)(?=</script>)', text, maxsplit=1, flags=re.DOTALL)
    data = json.loads(script)
    data |= {"schema": f"cadge.report-data/{version}", "runs": []}
    for cell in data["cells"]:
        if launches := cell.get("by_launch"):
            cell["at"] = len(data["runs"])
            data["runs"].append([int(place) for place in launches])
        for now, then in names.items():
            if now in cell:
                found = cell.pop(now)
                cell[then] = list(found.values()) if isinstance(found, dict) else found
    return begun + as_json(data) + rest


@pytest.mark.parametrize(
    ("version", "names"),
    [(3, ("values", "p99", "offered", "samples")), (4, ("value", "p99_ns", "offered_per_s", "fewest_samples"))],
)
def test_data_of_the_forms_before_is_read(text: str, version: int, names: tuple[str, ...]) -> None:
    """Files that older versions wrote have launches and their values apart."""
    now = ("by_launch", "p99_ns_by_launch", "offered_per_s_by_launch", "fewest_samples")
    older = of_before(text, dict(zip(now, names, strict=True)), version)
    assert f'"{names[0]}":[' in older
    for baseline in (None, "native-ucx"):
        again = opened(older, baseline=baseline)
        assert again == opened(text, baseline=baseline)
    of_another_program = re.sub(r'"program":"\w+"', '"program":"0"', older)
    held = check(printed(of_another_program, "report.html"), text)
    assert not held.differences
    assert not [place for place in held.unchecked if place.startswith("data, cells")]
    damaged = older.replace('"runs":[[', '"runs":[[[],')
    assert damaged != older
    with pytest.raises(BadInputError, match=r"r\.html"):
        report.html(report.page_again(damaged, "r.html", None))


def test_damaged_data_is_refused(text: str) -> None:
    for pattern, by in (
        (r'"launches":\[\[', '"launches":[7,['),
        (r'"by_launch":\{"\d+"', '"by_launch":{"99999"'),
        (r'"planned":\[\d+', '"planned":[99999'),
        (r'"planned":\[\d+,', '"planned":['),
        (r'"subject":\d+', '"subject":"x"'),
        (r'"pattern":"rpc"', '"pattern":"rpx"'),
        (r'"withheld":"",', ""),
        (r'"p99_ns_by_launch":\{"\d+"', '"p99_ns_by_launch":{"x"'),
        (r'("by_launch":\{"\d+":)[\d.]+', r"\g<1>NaN"),
        (r'"remarks":\[\[', '"remarks":[7,['),
        (r'"axis":"[a-z_]+"', '"axis":"none"'),
    ):
        damaged, often = re.subn(pattern, by, text, count=1)
        assert often == 1, pattern
        with pytest.raises(BadInputError, match=r"r\.html: its embedded data is damaged"):
            report.html(report.page_again(damaged, "r.html", None))
    with pytest.raises(BadInputError, match="has no layer 'none'"):
        report.html(report.page_again(text, "r.html", "none"))


def test_the_data_stays_small(text: str) -> None:
    """Each number of a launch takes some fifteen bytes with its launch, and what many cells share stands once."""
    data = pagereader.read(text).one("script", id="data").text
    values = len(re.findall(r'[{,]"\d+":', data))
    cells = data.count('"point_id"')
    files = len(re.search(r'"patterns":.*"launches":', data)[0])  # type: ignore[index]
    assert len(data) < files + 16_000 + 90 * cells + 17 * values


def test_nothing_of_the_file_can_escape(twice: Campaign, tmp_path: Path) -> None:
    hostile = report.html(report.page_of(load.read(twice), title="</script><script>alert(7)</script>"))
    again = report.html(report.page_again(hostile, "<i>.html", None))
    assert "<script>alert" not in again
    assert "&lt;/script&gt;" in again
    (tmp_path / "again.html").write_text(again)
