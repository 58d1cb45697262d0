# SPDX-License-Identifier: BSD-3-Clause
"""The example that the pages show: a report of made-up numbers, made by the report's own code when the site is built.

Its campaign is the one that tests use (analysis/tests/synthetic.py), so what a section shows here is what it shows now.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory

ROOT = Path(__file__).resolve().parents[2]
SECTION = re.compile(r"<section\b([^>]*)>.*?</section>", re.DOTALL)
NAME = re.compile(r'\b(?:id|aria-label)="([^"]+)"')
SHAPES = re.compile(r"<svg[^>]*><symbol.*?</svg>", re.DOTALL)
"""Markers, which are drawn once and used everywhere."""
LINK = re.compile(r'(<a\b[^>]*\bhref=")#([^"]*)')
PLACE = re.compile(r"^<!-- example: ([\w-]+)(?:, (\d+) lines)? -->$", re.MULTILINE)
LINES_USUAL = 24
REPORT = "example/report.html"
"""The whole of it, within the site."""


def report() -> str:
    """Return the example's report: four layers within a host, one of them measured twice."""
    sys.path.insert(0, str(ROOT / "analysis/tests"))
    import synthetic  # type: ignore[import-not-found]

    from cadge_analysis import report as made

    baseline = str(synthetic.Options().sweep["baseline"])
    others = [name for name in synthetic.LAYERS if name != baseline]
    options = synthetic.Options(
        layers=(baseline, *others[:3]),
        sizes=(8, 4096),
        places=("within",),
        waits=("poll",),
        launches=12,
        twins=(baseline,),
        seed=5,  # its rounds do not follow one another by chance
    )
    with TemporaryDirectory() as folder:
        campaign = synthetic.make(Path(folder), options)
        made.build(campaign.path, Path(folder) / "report.html", "An example, of made-up numbers")
        return (Path(folder) / "report.html").read_text(encoding="utf-8")


def sections(report: str) -> dict[str, str]:
    """Return each section of a report as a page of its own, by the section's anchor, or its label.

    It has the report's own head and shapes; where it links to another section, it leads to the whole report.
    """
    head = report[: report.index("<body")]
    shapes = "".join(SHAPES.findall(report))
    found = {}
    for match in SECTION.finditer(report):
        name = NAME.search(match[1])
        assert name, match[0][:80]
        own = set(re.findall(r'\bid="([^"]+)"', match[0]))
        text = match[0]
        for begin, anchor in set(LINK.findall(text)):
            if anchor not in own:
                text = text.replace(f'{begin}#{anchor}"', f'{begin}{Path(REPORT).name}#{anchor}"')
        found[name[1].lower()] = f"{head}<body>\n{shapes}\n<main>\n{text}\n</main>\n</body>\n</html>\n"
    return found


def heading(section: str) -> str:
    """Return a section's own heading."""
    found = re.search(r"<h2[^>]*>(.*?)</h2>", section, re.DOTALL)
    return re.sub(r"<[^>]+>", "", found[1]).strip() if found else "no heading"


def filled(name: str, text: str, known: Mapping[str, str]) -> str:
    """Return a page with pieces of the example where it asks for them, alone on a line.

    `<!-- example: ANCHOR -->`, or `<!-- example: ANCHOR, 9 lines -->` where its frame need not be as high as usual.
    """
    up = "../" * name.count("/")

    def piece(match: re.Match[str]) -> str:
        if match[1] not in known:
            raise SystemExit(f"{name}: the example's report has no section {match[1]}: {', '.join(known)}")
        place = f"{up}example/{match[1]}.html"
        title = f"The example: {heading(known[match[1]])}"
        high = f'style="height: {match[2] or LINES_USUAL}lh"'
        frame = f'<iframe class="report" {high} loading="lazy" title="{title}" src="{place}"></iframe>'
        return f'{frame}\n\n<a href="{place}">This piece alone</a>'

    return PLACE.sub(piece, text)
