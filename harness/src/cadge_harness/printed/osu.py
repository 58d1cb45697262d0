# SPDX-License-Identifier: BSD-3-Clause
"""OSU Micro-Benchmarks 5 to 7: point-to-point and one-sided tests.

A title with the version, lines of what is used, the columns' headings, and a row a size. MB are 10^6 bytes; times are
microseconds, of half a round trip or of a whole one-sided operation. With -z (from 7.3 on) quantiles stand beside the
mean, with -c the tool's own check of the data.
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

_TITLE = re.compile(r"#?\s*(OSU (?P<name>MPI.*?) v(?P<version>[0-9][0-9A-Za-z.+_-]*))\s*$")
_TESTS: dict[str, tuple[str, Moves]] = {
    "MPI LATENCY TEST": ("osu_latency", "half round trip"),
    "MPI LATENCY PERSISTENT TEST": ("osu_latency_persistent", "half round trip"),
    "MPI MULTI LATENCY TEST": ("osu_multi_lat", "half round trip"),
    "MPI MULTI-THREADED LATENCY TEST": ("osu_latency_mt", "half round trip"),
    "MPI MULTI-PROCESS LATENCY TEST": ("osu_latency_mp", "half round trip"),
    "MPI BANDWIDTH TEST": ("osu_bw", "one way"),
    "MPI BANDWIDTH PERSISTENT TEST": ("osu_bw_persistent", "one way"),
    "MPI BI-DIRECTIONAL BANDWIDTH TEST": ("osu_bibw", "both ways"),
    "MPI BI-DIRECTIONAL BANDWIDTH PERSISTENT TEST": ("osu_bibw_persistent", "both ways"),
    "MPI MULTIPLE BANDWIDTH / MESSAGE RATE TEST": ("osu_mbw_mr", "one way"),
    "MPI_PUT LATENCY TEST": ("osu_put_latency", "operation"),
    "MPI_GET LATENCY TEST": ("osu_get_latency", "operation"),
    "MPI_PUT BANDWIDTH TEST": ("osu_put_bw", "one way"),
    "MPI_GET BANDWIDTH TEST": ("osu_get_bw", "one way"),
    "MPI_PUT BI-DIRECTIONAL BANDWIDTH TEST": ("osu_put_bibw", "both ways"),
}
"""By title, without the names of accelerators."""
_ACCELERATOR = re.compile(r"-(CUDA|OPENACC|ROCM|SYCL)\b")
_HEADING = re.compile(
    r"(?P<time>(?P<which>Avg |Min |Max |P(?P<tile>[0-9]{1,2}) Tail )?(Latency|Lat) ?\(us\))"
    r"|(?P<tail>P(?P<rank>[0-9]{1,2}) Tail BW ?\(MB/s\))"
    r"|(?P<bandwidth>(Bandwidth \()?MB/s\)?)|(?P<rate>Messages/s)|(?P<check>Validation)|(?P<count>Iterations)"
)
_CHECK = ("Pass", "Fail")


def read(text: str) -> ToolOutput:
    """Return every series of the tests above. Raises PrintedError."""
    tables: list[ToolNumbers] = []
    skipped: list[str] = []
    version = ""
    test: tuple[str, Moves] | None = None
    about: list[str] = []
    table: _Rows | None = None
    for line in lines_of(text):
        title = _TITLE.fullmatch(line.text.strip())
        if title:
            version = version or title[1]
            test, about, table = _TESTS.get(_ACCELERATOR.sub("", title["name"].upper())), [], None
            if test is None:
                skipped.append(title[1])
        elif test is None:
            continue
        elif re.match(r"# ?Size\b", line.text):
            table = _Rows(test, line, about)
            tables.append(table.table)
        elif re.match(r"#\s{6,}\d", line.text):
            raise PrintedError("a table over window sizes (osu_mbw_mr -V) is not read; run it without -V", line.number)
        elif line.text.startswith("#"):
            about.append(line.text.strip("# .\t[]").replace(" ] [ ", ", "))
        elif table is not None and like_row(line.words, _CHECK):
            table.add(line)
    series = [one for table in tables for one in table.series()]
    if not series:
        raise nothing("no table of a point-to-point or one-sided OSU test", skipped)
    return ToolOutput(series=tuple(series), version=version, skipped=tuple(skipped))


class _Rows:
    """A table, and which of its columns is the tool's own check."""

    def __init__(self, test: tuple[str, Moves], heading: ToolLine, about: list[str]) -> None:
        self.columns = _columns(test[1], heading)
        self.checks = [index for index, column in enumerate(self.columns) if column == "check"]
        read = [None if isinstance(column, str) else column for column in self.columns]
        self.table = ToolNumbers(test=test[0], columns=read, about=list(about))

    def add(self, line: ToolLine) -> None:
        first, *words = line.words
        if len(words) == len(self.columns) and any(words[index] != "Pass" for index in self.checks):
            raise PrintedError("the tool found damaged data here (Validation)", line.number)
        self.table.add(size(first, line.number), words, line.number)


def _columns(moves: Moves, heading: ToolLine) -> list[ToolColumn | str]:
    """Return what the headings mean; of what is not read, its name. Raises PrintedError for an unknown one."""
    text = re.sub(r"^# ?Size", "", heading.text)
    if left := _HEADING.sub("", text).strip():
        raise PrintedError(f"unknown column {left[:60]!r}", heading.number)
    found: list[ToolColumn | str] = []
    for match in _HEADING.finditer(text):
        name = " ".join(match[0].split())
        if match["time"]:
            which = (match["which"] or "Avg ").strip()
            statistic = {"Avg": "mean", "Min": "min", "Max": "max"}.get(which) or f"p{match['tile']}"
            factor = 2000 if moves == "half round trip" else 1000
            found.append(
                ToolColumn(heading=name, unit="us", kind="time", moves=moves, statistic=statistic, factor=factor)
            )
        elif match["tail"] or match["bandwidth"]:
            statistic = f"p{match['rank']}" if match["tail"] else "overall"
            found.append(
                ToolColumn(
                    heading=name, unit="MB/s", kind="bandwidth", moves=moves, statistic=statistic, factor=1_000_000
                )
            )
        elif match["rate"]:
            found.append(ToolColumn(heading=name, unit="1/s", kind="rate", moves=moves, statistic="overall", factor=1))
        else:
            found.append("check" if match["check"] else "count")
    if not found or {column.kind == "time" for column in found if isinstance(column, ToolColumn)} != {
        moves in ("half round trip", "operation")
    }:
        raise PrintedError("these columns are none of this test", heading.number)
    return found
