# SPDX-License-Identifier: BSD-3-Clause
"""The outputs of a scene as named texts: what a reader or a program gets, without bytes that nobody sees.

Of an HTML page these are its cells (place, raw values, text), its words in order, and what it embeds; of a figure its
specification, so that nothing is drawn here.
"""

from __future__ import annotations

import io
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from html.parser import HTMLParser
from unittest.mock import patch

from cadge_analysis import export, report
from cadge_analysis.blocks.model import PageDocument
from cadge_analysis.draw import svg
from cadge_analysis.flat import lines
from cadge_analysis.tables import TABLES
from cadge_analysis.versus.against import SideComparison
from cadge_results import Campaign
from golden.editions import lacking

Outputs = dict[str, str]
_RAW = ("data-", "href", "class")
_UNSEEN = ("script", "style")


class _Reader(HTMLParser):
    """Cells, words and embedded data of a page. A cell's place: table, row, column."""

    def __init__(self) -> None:
        super().__init__()
        self.cells: list[str] = []
        self.words: list[str] = []
        self.scripts: list[str] = []
        self._table = self._row = self._column = -1
        self._case = self._point = ""
        self._open: list[str] | None = None
        self._hidden = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = dict(attrs)
        if tag in _UNSEEN:
            self._hidden = tag
            if found.get("type") == "application/json":
                self._hidden = "json"
                self.scripts.append("")
        if tag == "table":
            self._table, self._row = self._table + 1, -1
            self._case = found.get("data-case") or str(self._table)
        elif tag == "tr":
            self._row, self._column = self._row + 1, -1
            self._point = found.get("data-point") or str(self._row)
        elif tag in ("td", "th"):
            self._column += 1
            raw = " ".join(f"{key}={value}" for key, value in sorted(attrs) if key.startswith(_RAW))
            self._open = [f"{self._case}|{self._point}|{self._column}", raw, ""]

    def handle_data(self, data: str) -> None:
        if self._hidden:
            if self._hidden == "json":
                self.scripts[-1] += data
            return
        if self._open is not None:
            self._open[2] += data
        if text := _squeezed(data):
            self.words.append(text)

    def handle_endtag(self, tag: str) -> None:
        if tag in _UNSEEN:
            self._hidden = ""
        if tag in ("td", "th") and self._open is not None:
            self.cells.append("\t".join(map(_squeezed, self._open)))
            self._open = None


def _squeezed(text: str) -> str:
    return re.sub(r"[ \n\t]+", " ", text).strip()


def of_html(text: str, name: str) -> Outputs:
    """Return the cells, the words and the embedded data of an HTML page."""
    reader = _Reader()
    reader.feed(text)
    found = {f"{name}.cells": "\n".join(reader.cells), f"{name}.words": "\n".join(reader.words)}
    if reader.scripts:
        data = (json.dumps(json.loads(one), sort_keys=True, indent=0) for one in reader.scripts if one.strip())
        found[f"{name}.data"] = re.sub(r'"program": "\w+"', '"program": "of these files"', "\n".join(data))
    return found


class Figures:
    """Takes the place of the renderer: keeps each figure's specification by name, and draws nothing."""

    def __init__(self) -> None:
        self._specs: dict[str, Mapping[str, object]] = {}
        self._patch = patch.object(svg, "_rendered", self._keep)

    def _keep(self, spec: Mapping[str, object], name: str) -> str:
        self._specs[name] = spec
        return "<g></g>"

    def __enter__(self) -> Figures:
        self._patch.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._patch.stop()

    def text(self) -> str:
        """Return all specifications as JSON with sorted keys, a figure after the other."""
        return "\n".join(
            f"{name}\n{json.dumps(spec, sort_keys=True, indent=0)}" for name, spec in sorted(self._specs.items())
        )


def of_page(page: PageDocument, name: str = "html", kinds: Sequence[str] = ()) -> Outputs:
    """Return a page as HTML, and some of its other editions; each edition has every text of its blocks."""
    found = {kind: report.edition(page, kind) for kind in ("text", "markdown")}
    html = report.html(page)
    assert (left_out := lacking(page, found | {"html": html})) == [], left_out
    return {kind: found[kind] for kind in kinds} | of_html(html, name)


def of_exports(campaign: Campaign) -> Iterator[tuple[str, str]]:
    """Yield the exports of a campaign."""
    for kind in ("csv", "json"):
        stream = io.StringIO(newline="")
        export.write(campaign, kind, stream)
        yield f"export.{kind}", stream.getvalue()


def of_tables(campaign: Campaign) -> Iterator[tuple[str, str]]:
    """Yield the tables of a campaign and their columns; the folder of the campaign is left out."""
    for name, table in TABLES.items():
        columns = table.columns(campaign)
        text = "".join(lines("jsonl", [one.name for one in columns], table.rows(campaign)))
        yield f"table.{name}", text.replace(str(campaign.path), "PATH")
        yield f"columns.{name}", "\n".join(f"{one.name}\t{one.kind}\t{one.about}" for one in columns)


def as_json(document: object) -> str:
    """Return a document for programs, a value a line."""
    return json.dumps(document, sort_keys=True, indent=0, default=str)


def repr_of(found: SideComparison) -> str:
    """Return the changes of a comparison with all their numbers."""
    return "\n".join(map(repr, found.changes))
