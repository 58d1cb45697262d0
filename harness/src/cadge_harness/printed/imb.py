# SPDX-License-Identifier: BSD-3-Clause
"""Intel MPI Benchmarks, IMB-MPI1: PingPong, PingPing, Sendrecv, Exchange, Uniband and Biband, and their Multi- forms.

A row a size: bytes, repetitions, microseconds, MB/s. PingPong prints half a round trip; the others, the time in which
each process has sent and received. Of t_min, t_max and t_avg, which are of the processes' means, t_avg is read.
MB are 10^6 bytes from 2018 on; older versions did not all count so, and their rates are not read. A PingPong's rate is
only its size over its time, and is not read either.
"""

from __future__ import annotations

import re

from cadge_harness.printed.text import (
    PrintedError,
    ToolColumn,
    ToolLine,
    ToolNumbers,
    ToolOutput,
    like_row,
    lines_of,
    nothing,
    size,
)
from cadge_results.formats.imported import Moves

_TITLE = re.compile(r"#\s*(Intel ?\(R\) MPI Benchmarks?( Suite)? V?(?P<year>[0-9]+)[0-9A-Za-z.]*)")
_TESTS: dict[str, tuple[Moves | None, Moves | None]] = {
    "PingPong": ("half round trip", None),
    "PingPing": ("both at once", "one way"),
    "Sendrecv": ("both at once", "both ways"),
    "Exchange": ("both at once", "both ways"),
    "Uniband": (None, "one way"),
    "Biband": (None, "both ways"),
}
"""What times and rates are of."""
_DECIMAL_SINCE = 2018


def read(text: str) -> ToolOutput:
    """Return every series of the tests above. Raises PrintedError."""
    tables: list[ToolNumbers] = []
    skipped: list[str] = []
    version, year = "", 0
    test = ""
    about: list[str] = []
    table: ToolNumbers | None = None
    for line in lines_of(text):
        plain = line.text.strip()
        if title := _TITLE.match(plain):
            version, year = version or title[1].rstrip(","), int(title["year"][:4])
        elif named := re.match(r"# Benchmarking (\S+)", plain):
            test, about, table = named[1], [], None
            if test.removeprefix("Multi-") not in _TESTS:
                skipped.append(test)
                test = ""
        elif not test:
            continue
        elif plain.startswith("#bytes"):
            table = ToolNumbers(test=test, columns=_columns(test, line, year), about=list(about))
            tables.append(table)
        elif plain.startswith(("# #processes", "# (")):
            about.append(" ".join(plain.strip("# ()").split()))
        elif table is not None and like_row(line.words):
            first, *words = line.words
            table.add(size(first, line.number), words, line.number)
    series = [one for table in tables for one in table.series()]
    if not series:
        raise nothing("no table of an IMB-MPI1 test between pairs of processes", skipped)
    return ToolOutput(series=tuple(series), version=version, skipped=tuple(skipped))


def _columns(test: str, heading: ToolLine, year: int) -> list[ToolColumn | None]:
    """Return what the headings mean, without that of the size. Raises PrintedError for an unknown one."""
    time, rate = _TESTS[test.removeprefix("Multi-")]
    found: list[ToolColumn | None] = []
    for word in heading.words[1:]:
        if word in {"t[usec]", "t_avg[usec]"} and time is not None:
            factor = 2000 if time == "half round trip" else 1000
            found.append(ToolColumn(heading=word, unit="us", kind="time", moves=time, statistic="mean", factor=factor))
        elif word == "Mbytes/sec" and rate is not None and year >= _DECIMAL_SINCE:
            found.append(
                ToolColumn(
                    heading=word, unit="MB/s", kind="bandwidth", moves=rate, statistic="overall", factor=1_000_000
                )
            )
        elif word == "Msg/sec" and rate is not None:
            found.append(ToolColumn(heading=word, unit="1/s", kind="rate", moves=rate, statistic="overall", factor=1))
        elif word in {"#repetitions", "t_min[usec]", "t_max[usec]", "Mbytes/sec", "Msg/sec", "t[usec]", "defects"}:
            found.append(None)
        else:
            raise PrintedError(f"unknown column {word[:60]!r}", heading.number)
    return found
