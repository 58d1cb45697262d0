# SPDX-License-Identifier: BSD-3-Clause
"""Imports in a report: marked, in whole round trips, without influence on any other figure, hostile words harmless."""

from __future__ import annotations

from dataclasses import replace

import pytest

from cadge_analysis.blocks.lines import lines_of
from cadge_analysis.blocks.make import every, tables_of
from cadge_analysis.blocks.markdown import markdown
from cadge_analysis.blocks.model import Facts, Figure, Heading, PageDocument, Region
from cadge_analysis.messages import say
from cadge_analysis.page.parts.imported import imported, imported_lines
from cadge_analysis.report import html, page_of
from cadge_analysis.stats.load import Case, Dataset, read
from cadge_results import Campaign
from cadge_results.formats.base import Place
from cadge_results.formats.imported import ImportedFile, ImportedSeries, ImportedValue, Kind, Moves


def series(kind: Kind, moves: Moves, statistic: str, pattern: str, *values: tuple[int, float, str]) -> ImportedSeries:
    return ImportedSeries(
        test="a_test",
        column="Latency (us)",
        unit="us",
        kind=kind,
        moves=moves,
        statistic=statistic,
        about="<i>about</i>",
        patterns=(pattern,),
        values=tuple(ImportedValue(bytes=n, value=v, printed=text, line=1) for n, v, text in values),
    )


def file(pattern: str, place: Place | None = "within") -> ImportedFile:
    return ImportedFile(
        schema_=ImportedFile.schema_id(),
        imported_id="0123456789ab",
        imported_utc="2026-11-26T01:02:03Z",
        format="osu",
        file="a.txt",
        sha256="0" * 64,
        size_bytes=10,
        version="",
        label="</script><script>alert(1)</script>",
        place=place,
        note="\u202eabc",
        series=(
            series("time", "half round trip", "mean", pattern, (8, 2460.0, "1.23"), (1024, 0.0, "0.00")),
            series("time", "half round trip", "p50", pattern, (8, 780.0, "0.39")),
            series("bandwidth", "both ways", "overall", "", (64, 3_804_930_000.0, "3804.93")),
        ),
    )


@pytest.fixture(scope="module")
def data(campaign: Campaign) -> Dataset:
    return read(campaign)


def case_of(data: Dataset, wait: str = "poll") -> Case:
    """Return a case of layers within a host whose axis is a size and whose main quantity is a time."""
    return next(
        cell.case
        for cell in data.cells
        if cell.series.kind == "layer"
        and (cell.case.place, cell.case.wait, cell.case.file.main_quantity.kind) == ("within", wait, "histogram")
        and cell.case.file.parameters[cell.case.file.axis].unit == "bytes"
    )


def facts_of(region: Region | None) -> dict[str, str]:
    assert region is not None
    return {fact.name: fact.text for block in region.blocks if isinstance(block, Facts) for fact in block.facts}


def test_a_table_has_whole_round_trips_and_what_was_printed(data: Dataset) -> None:
    assert imported(data) is None
    found = imported(replace(data, imported=(file("any"),)))
    assert found is not None
    assert Heading(3, "</script><script>alert(1)</script>") in found.blocks
    (test,) = tables_of((found,))
    assert [(one.head, one.unit) for one in test.columns[1:]] == [
        ("mean, whole round trip", "\u00b5s"),
        ("p50, whole round trip", "\u00b5s"),
        ("overall, both ways together", "MB/s"),
    ]
    assert test.columns[1].below == ("printed: Latency (us), half",)
    edition = markdown(lines_of((test,))).replace("\\", "").splitlines()
    assert edition[-3:] == [
        "| 8 B | 2.46 (1.23) | 0.78 (0.39) |  |",
        "| 64 B |  |  | 3\u202f800 (3804.93) |",
        "| 1 KiB | 0 (0.00) |  |  |",
    ]
    facts = facts_of(found)
    assert facts["Place"] == "within one host"
    assert facts["Tool, as printed"] == say("report", "imported.no_version")
    assert facts_of(imported(replace(data, imported=(file("any", None),))))["Place"] == "not said"


def test_a_figure_gets_the_median_of_its_own_pattern_place_and_wait_mode(data: Dataset) -> None:
    case = case_of(data)

    def lines(one: ImportedFile, where: Case = case) -> list[tuple[tuple[int, float], ...]]:
        return [line.marks for line in imported_lines(replace(data, imported=(one,)), where)]

    assert lines(file(case.pattern)) == [((8, 780.0),)]
    assert lines(file("another")) == []
    assert lines(file(case.pattern, "between")) == []
    assert lines(file(case.pattern, None)) == []
    assert lines(file(case.pattern), case_of(data, "block")) == []


def figures(page: PageDocument) -> list[Figure]:
    return [one for one in every(page.blocks) if isinstance(one, Figure)]


def without_figures(page: PageDocument) -> PageDocument:
    """Return a page without its figures, those that stand side by side with their note, and its section of imports."""
    regions = (one for one in page.blocks if isinstance(one, Region) and one.id not in ("imported", "field"))
    bare = (replace(one, blocks=tuple(b for b in one.blocks if not isinstance(b, Figure))) for one in regions)
    links = (replace(one, below=tuple(b for b in one.below if b.href != "#imported")) for one in page.sections)
    return replace(page, blocks=tuple(bare), sections=tuple(links))


def test_a_report_with_an_import_differs_in_that_alone(data: Dataset) -> None:
    bare = page_of(data)
    with_it = page_of(replace(data, imported=(file(case_of(data).pattern),)))
    assert without_figures(with_it) == without_figures(bare)
    changed = [one for one in zip(figures(with_it), figures(bare), strict=True) if one[0] != one[1]]
    ((drawn, before),) = changed
    assert "imported: " in drawn.svg
    assert "<script" not in drawn.svg
    assert drawn.caption == before.caption
    assert [row[-1] for row in drawn.table.rows] == ["0.780", *["\u2013"] * (len(drawn.table.rows) - 1)]
    assert [row[:-1] for row in drawn.table.rows] == list(before.table.rows)
    text = html(with_it)
    assert say("figures", "figures.foreign") in text
    assert say("figures", "figures.foreign") not in html(bare)
    assert 'id="imported"' in text
    assert 'id="imported"' not in html(bare)
    assert "alert(1)</script>" not in text.replace("&lt;/script&gt;", "")
    assert "&lt;/script&gt;&lt;script&gt;alert(1)" in text
    assert "&lt;i&gt;about" in text
