# SPDX-License-Identifier: BSD-3-Clause
"""The viewer: a page that shows exported records which its reader drops on it. It holds no campaign's data.

Names of columns, of formats and of units, words and colours are those of the rest of the program: the page carries them
as data, and its script repeats none. What it reads is in analysis/VIEWER.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib.resources import files

from cadge_analysis import export, units, words
from cadge_analysis.draw.palette import LIGHT, LOOKS
from cadge_analysis.page import layout
from cadge_analysis.page.render import environment, tidy
from cadge_analysis.page.script import Script, script_of
from cadge_analysis.page.sheet import dressed
from cadge_analysis.page.viewmodel import Sheet
from cadge_analysis.tables import TABLES
from cadge_analysis.tables.cells import ENDS
from cadge_results.imported import UNITS as IMPORTED_UNITS
from cadge_results.schemas import DOCUMENTS

MOST_BYTES = 400 * 1000 * 1000
"""Of a file, unpacked: a browser's text may have 512 million characters."""
MOST_CELLS = 20_000_000
"""Of a table in memory, some 8 bytes each; rows beyond are counted, and not shown."""
_PARTS = ("dom", "shown", "read", "known", "looks", "table", "chart", "page")
"""Files of the script, each using those before it."""
_BESIDE = {"cadge.published": 1}
"""Formats that stand above this package."""
SAYS = (
    "It shows what the file says: estimates, intervals and verdicts are those that Cadge wrote. It computes none, "
    "ranks nobody, and orders rows and series as the reader asks.",
    "Numbers of an import stay marked as imported: they have no interval and no verdict.",
    "A row that does not count (refused, failed, unsound, missing) is marked, and never drawn.",
    "Whether a run was retracted stands in its run.json alone: drop that too, and the page says so.",
    "It does not check checksums: cadge verify, or sha256sum --check, do.",
    "What a report says beside its numbers (warnings, self-test, coverage, method) is not in these files: read the "
    "report, which needs no scripts.",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Viewer:
    """What its template shows."""

    title: str
    deck: str
    version: str
    most: str
    says: tuple[str, ...]
    sheet: Sheet


def _units() -> list[dict[str, object]]:
    """Return what the end of a column's name says of its unit: steps in which it is shown, each with its divisor."""
    kib, mib = units.KIB, units.MIB
    times: list[tuple[str, float]] = [("ns", 1), ("\u00b5s", units.NS_PER_US), ("ms", 1e6), ("s", units.NS_PER_S)]
    return [
        {"end": "_ns", "steps": times},
        {"end": "_ms", "steps": [("ms", 1), ("s", 1000)]},
        {"end": "_s", "steps": [("s", 1)]},
        {"end": "_ppm", "steps": [("ppm", 1)]},
        {"end": "_mb_s", "steps": [("MB/s", 1)]},
        {"end": "_per_s", "steps": [("1/s", 1)]},
        {"end": "_bytes_per_s", "steps": [("B/s", 1), ("MB/s", 1e6), ("GB/s", 1e9)]},
        {"end": "_bytes", "exact": True, "steps": [("B", 1), ("KiB", kib), ("MiB", mib), ("GiB", 1024 * mib)]},
    ]


def known(version: str) -> dict[str, object]:
    """Return what the script knows."""
    formats = {one.NAME: one.MAJOR for one in DOCUMENTS} | _BESIDE
    name, _, major = export.SCHEMA.partition("/")
    return {
        "version": version,
        "most_bytes": MOST_BYTES,
        "most_cells": MOST_CELLS,
        "few_columns": layout.FEW,
        "formats": formats | {name: int(major)},
        "tables": [
            {
                "name": table.name,
                "title": f"table {table.name}",
                "about": table.about,
                "columns": [{"name": one.name, "kind": one.kind, "about": one.about} for one in table.fixed],
            }
            for table in TABLES.values()
        ],
        "about": ENDS,
        "ends": [{"low": low, "high": high, "about": about} for low, high, about in export.ENDS],
        "units": _units(),
        "imported": {kind: f"_{_ENDING[unit]}" for kind, unit in IMPORTED_UNITS.items()},
        "states": words.STATES,
        "words": {"place": words.PLACES, "wait": words.WAITS},
        "looks": {
            "colours": len(LIGHT),
            "markers": list(LOOKS.markers),
            "shapes": list(LOOKS.markers.values()),
            "substrates": LOOKS.substrates,
            "styles": LOOKS.styles,
            "variants": [one.model_dump() for one in LOOKS.variants],
        },
    }


_ENDING = {"ns": "ns", "bytes/s": "bytes_per_s", "messages/s": "per_s"}
"""How a unit of an import ends a column's name."""


def _script() -> Script:
    """Return the page's script: its files in one scope, which takes what it knows from the page's data."""
    folder = files("cadge_analysis.page") / "templates" / "viewer"
    parts = [(folder / f"{name}.js").read_text("utf-8") for name in _PARTS]
    begin = '// SPDX-License-Identifier: BSD-3-Clause\n"use strict";\n(() => {\n'
    data = 'const KNOWN = JSON.parse(document.getElementById("data").textContent);\n'
    return script_of(tidy(f"{begin}{data}{''.join(parts)}}})();").rstrip("\n"))


def html(version: str) -> str:
    """Return the page as one HTML document that needs nothing else; the same version gives the same bytes."""
    page = Viewer(
        title="Look at exported records",
        deck="Drop a file that Cadge exported, and this page shows its rows and draws a chart. The file stays here: "
        "the page needs no network, and can reach none.",
        version=version,
        most=f"{MOST_BYTES // 1_000_000} MB",
        says=SAYS,
        sheet=dressed((), "", known(version), generated=""),
    )
    return tidy(environment().get_template("viewer.html.j2").render(page=page, script=_script()))
