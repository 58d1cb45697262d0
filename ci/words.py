# SPDX-License-Identifier: BSD-3-Clause
"""Words of reports, by page and section: `words.py REPORT...`. The pages beside a report of several are found.

Ends with 1 where a report has more words than one of the default sweep may have.
"""

from __future__ import annotations

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "analysis/tests"))

from wordcount import MOST, Words, counted  # noqa: E402 - found by the line above


def pages(report: Path) -> dict[str, Words]:
    """Return the pages of a report by their file names, the main one first."""
    beside = sorted(report.parent.glob(f"{report.stem}-*{report.suffix}"))
    found = {path.name: counted(path.read_text(encoding="utf-8")) for path in (report, *beside)}
    return {name: one for name, one in found.items() if name == report.name or one.part_of == report.name}


def over(found: dict[str, Words]) -> list[str]:
    """Return which budgets the pages of a report exceed, in sentences."""
    main, *parts = found.values()
    several = [("report", main.total), ("first screen", main.screen)]
    several += [("page of a pattern", one.total) for one in parts]
    several += [("all pages", sum(one.total for one in found.values()))]
    return [f"{name}: {often} words, {MOST[name]} at most" for name, often in several if often > MOST[name]]


def main(*reports: str) -> int:
    """Print the words of reports. Returns the exit status."""
    wrong = []
    for report in reports:
        found = pages(Path(report))
        for name, one in found.items():
            print(f"{one.total:6} {name} (first screen {one.screen}; {one.cells.total()} more in cells of tables)")
            for section, often in one.sections.items():
                print(f"{often:6}   {section} ({one.cells[section]} in cells)")
        print(f"{sum(one.total for one in found.values()):6} all pages")
        wrong += [f"{report}: {text}" for text in over(found)]
    print(*wrong, sep="\n", file=sys.stderr, end="\n" if wrong else "")
    return 1 if wrong else 0


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    sys.exit(main(*sys.argv[1:]))
