# SPDX-License-Identifier: BSD-3-Clause
"""A table of what the conformance suite found, from the logs that `ci/conformance all` keeps.

    python3 ci/conformance_table.py FOLDER    Markdown, on standard output

A row a layer, a column a place and wait mode: how many tests passed, failed, and do not apply. Below it stands each
reason why tests do not apply, why a layer is not offered somewhere, and which known faults failed.
"""

from __future__ import annotations

import re
import sys
from collections import defaultdict
from pathlib import Path

LINE = re.compile(
    r"^(?P<not>not )?ok (?P<number>\d+) - (?P<test>[a-z_0-9]+)(?: # SKIP (?P<why>.*?))?(?:,? (?:# )?[0-9]+ ms)?$"
)
COLUMNS = [f"{place}.{wait}" for place in ("self", "within", "between") for wait in ("poll", "block")]
OPENS = "opens_and_limits"  # where it is a skip, the layer does not open there, and most else is one too
WHOLE = re.compile(r"^1\.\.0 # SKIP (?P<why>.*)$")


def read(text: str) -> tuple[list[str], list[str], dict[str, str], str]:
    """Return the tests that passed, that failed, that do not apply with the reason, and why nothing ran."""
    passed, failed, skipped = [], [], {}
    for line in text.splitlines():
        if whole := WHOLE.match(line):
            return [], [], {}, whole["why"]
        if not (found := LINE.match(line)):
            continue
        if found["not"]:
            failed.append(found["test"])
        elif found["why"] is not None:
            skipped[found["test"]] = found["why"]
        else:
            passed.append(found["test"])
    return passed, failed, skipped, skipped.get(OPENS, "")


def parts(name: str) -> tuple[str, str]:
    """Return of which layer a log is, and where it ran: "within.poll". A layer on a provider has dots in its name."""
    layer, place, wait = name.rsplit(".", 2)
    return layer, f"{place}.{wait}"


def where(name: str) -> str:
    """Return a log's name for people: am-ucx.within.poll becomes "am-ucx within, poll"."""
    layer, column = parts(name)
    return f"{layer} {column.replace('.', ', ')}"


def table(folder: Path) -> str:
    """Return the whole table. Raises SystemExit where the folder holds no logs."""
    logs = {path.stem: read(path.read_text(errors="replace")) for path in sorted(folder.glob("*.tap"))}
    if not logs:
        raise SystemExit(f"conformance_table: {folder} holds no logs (*.tap): run ci/conformance all")
    layers = sorted({parts(name)[0] for name in logs})
    reasons: dict[str, list[str]] = defaultdict(list)
    faults = []
    cells: dict[tuple[str, str], str] = {}
    for name, (passed, failed, skipped, why) in logs.items():
        layer, column = parts(name)
        if why:
            cells[layer, column] = "\u2013" if "does not claim the place" in why else "not offered"
            reasons[why] += [where(name)] * (cells[layer, column] == "not offered")
            continue
        words = [f"{len(passed)} passed"] + [f"**{len(failed)} failed**"] * bool(failed)
        cells[layer, column] = ", ".join([*words, *[f"{len(skipped)} do not apply"] * bool(skipped)])
        faults += [f"- {where(name)}: {', '.join(failed)}"] * bool(failed)
        for test, reason in skipped.items():
            reasons[f"`{test}`: {reason}"].append(where(name))
    columns = [c for c in COLUMNS if any(c == column for _, column in cells)]
    out = ["| layer | " + " | ".join(c.replace(".", ", ") for c in columns) + " |", "|---" * (len(columns) + 1) + "|"]
    out += [f"| {layer} | {' | '.join(cells.get((layer, c), 'not run') for c in columns)} |" for layer in layers]
    if faults:
        out += ["", "Failed:", "", *faults]
    out += ["", "Not run, by reason:", ""]
    out += [f"- {why}: {'; '.join(members)}" for why, members in sorted(reasons.items()) if members]
    return "\n".join(out)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        raise SystemExit(__doc__)
    print(table(Path(sys.argv[1])))
