# SPDX-License-Identifier: BSD-3-Clause
"""ucx_perftest of UCX: the final rows of its table, and the lines of -v (comma-separated).

Iterations; a quantile, the last average and the overall one of microseconds; two of MiB/s; two of messages a second.
The quantile is that of the last 2,048 iterations, 50 % unless -R says another; older versions call it typical. Times
are of half a round trip where a test is a ping-pong (..._lat), of whole operations where it fetches (ucp_get ...); of
streams the rates are read, for their time is only what passes from one message to the next.

The client prints neither test nor size; the server does, and a batch file (-b) names its rows: a name that is a test
or a number of bytes is taken for it. What is then still open has to be told.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from cadge_harness.printed.text import (
    MIB,
    PrintedError,
    ToolColumn,
    ToolHints,
    ToolLine,
    ToolNumbers,
    ToolOutput,
    lines_of,
    shown,
    size,
)
from cadge_results.formats.imported import Moves

_TESTS = {
    "tag_lat": "tag match latency",
    "tag_bw": "tag match bandwidth",
    "tag_sync_lat": "tag sync match latency",
    "tag_sync_bw": "tag sync match bandwidth",
    "ucp_put_lat": "put latency",
    "ucp_put_bw": "put bandwidth",
    "ucp_get": "get latency / bandwidth / message rate",
    "stream_lat": "stream latency",
    "stream_bw": "stream bandwidth",
    "ucp_am_lat": "am latency",
    "ucp_am_bw": "am bandwidth / message rate",
    "am_lat": "active message latency",
    "am_bw": "active message bandwidth / message rate",
    "put_lat": "put latency",
    "put_bw": "put bandwidth / message rate",
    "get": "get latency / bandwidth / message rate",
    "get_bw": "get bandwidth / message rate",
}
"""Tests as -t has them, with the words of the server's heading."""
_PROTOCOL = "protocol layer"
_FETCHES = ("ucp_get", "get")
_LABEL = r"[^\s,+|]{1,60}"
_HEADING = re.compile(
    r"(?P<names>(?:[^,]+,)*?)iterations,(?P<rank>[0-9]{1,3}(?:\.[0-9]{1,4})?_percentile|typical)_lat,avg_lat,.*"
)
_RANK = re.compile(
    r"\|\s*(?:(?P<stage>Stage|Test)\s*\|)?\s*# iterations\s*\|"
    r"\s*(?P<rank>[0-9]{1,3}(?:\.[0-9]{1,4})?%ile|typical)\s*\|.*"
)
_TIMES = re.compile(r"\|\s*\|\s*\|\s*(latency|overhead) \(usec\)\s*\|")
_BOX = re.compile(r"\|\s*(?P<key>API|Test|Message size|Window size):\s*(?P<value>.*?)\s*\|?\s*")
_BATCH = re.compile(rf"\+(?P<names>{_LABEL}?)-*\+(?:-+\+)+")
_THOUSANDS = re.compile(r"(?<=[0-9])[,'](?=[0-9]{3})")


def read(text: str, told: ToolHints) -> ToolOutput:
    """Return every series. Raises PrintedError."""
    found: dict[tuple[str, str, str, int], ToolNumbers] = {}
    rank, labels, csv, staged, times = "", "", 0, True, ""
    box: dict[str, str] = {}
    for line in lines_of(text):
        plain = line.text.strip()
        if heading := _HEADING.fullmatch(plain):
            rank, csv = heading["rank"].removesuffix("_percentile"), heading["names"].count(",") + 1
        elif heading := _TIMES.match(plain):
            times = heading[1]
        elif heading := _RANK.fullmatch(plain):
            rank, csv, staged = heading["rank"].removesuffix("%ile"), 0, heading["stage"] != "Test"
        elif item := _BOX.fullmatch(plain):
            box[item["key"]] = item["value"]
        elif batch := _BATCH.fullmatch(plain):
            labels = batch["names"].rstrip("-")
        elif rank and (row := _row(line, csv, staged=staged)):
            names, numbers = row
            test, count, about = _which([*names, *([] if names else labels.split("/"))], box, told, line)
            if times and not (names or labels) and (times == "overhead") == (_moves(test) != "one way"):
                raise PrintedError(f"{test} has no column of {times}: it is another test", line.number)
            table = found.setdefault((test, about, rank, len(numbers)), _table(test, about, rank, len(numbers)))
            table.add(count, numbers, line.number)
    series = [one for table in found.values() for one in table.series()]
    if not series:
        raise PrintedError("no final row of ucx_perftest: the client prints them, the server does not")
    return ToolOutput(series=tuple(series))


def _row(line: ToolLine, csv: int, *, staged: bool) -> tuple[list[str], list[str]] | None:
    """Return the names and the numbers of a final row; None for other lines. Raises PrintedError for a damaged one.

    csv: how many names a line has, and one; 0 for a table. staged: the table has rows before the final ones.
    """
    if csv:
        cells = [cell.strip() for cell in line.text.split(",")]
        names, numbers = cells[: csv - 1], cells[csv - 1 :]
        if len(numbers) < 2 or not numbers[0][:1].isdigit():
            return None
    else:
        words = line.words
        final = words[:1] == ["Final:"]
        if staged and not final:
            return None
        words = words[1:] if final else words
        names = words[0].split("/") if len(words) in (9, 5) else []
        numbers = [_THOUSANDS.sub("", word) for word in words[bool(names) :]]
        if not (final or all(word[:1].isdigit() for word in numbers)) or not numbers:
            return None
    if len(numbers) not in (8, 4):
        raise PrintedError(f"{len(numbers)} numbers, where a final row has 8, or 4 of several threads", line.number)
    return names, numbers


def _which(names: Sequence[str], box: dict[str, str], told: ToolHints, line: ToolLine) -> tuple[str, int, str]:
    """Return test, size and what else the row's names say. Raises PrintedError where something is open."""
    named = [name for name in names if name]
    tests = [name for name in named if name in _TESTS]
    sizes = [name for name in named if name.isascii() and name.isdecimal()]
    test = tests[0] if len(tests) == 1 else told.test or _of_box(box)
    if not test:
        raise PrintedError("nothing says which test it is: add --test, e.g. --test tag_lat", line.number)
    if test not in _TESTS:
        raise PrintedError(f"{shown(test)} is no test that is read; there are {', '.join(_TESTS)}", line.number)
    if len(sizes) == 1:
        count = size(sizes[0], line.number)
    elif "Message size" in box:
        count = size(box["Message size"], line.number)
        if told.bytes not in (None, count):
            raise PrintedError(f"--bytes says {told.bytes}, and the text {count}", line.number)
    elif told.bytes is not None:
        count = told.bytes
    else:
        raise PrintedError("nothing says of how many bytes its messages are: add --bytes", line.number)
    rest = [name for name in named if name not in (*tests, *sizes)]
    window = [f"window {box['Window size']}"] if "Window size" in box else []
    return test, count, "; ".join(("/".join(rest), *window) if rest else window)


def _of_box(box: dict[str, str]) -> str:
    upper = box.get("API", _PROTOCOL) == _PROTOCOL
    own = {"am_lat", "am_bw", "put_lat", "put_bw", "get", "get_bw"}
    fitting = (name for name, text in _TESTS.items() if text == box.get("Test") and (name not in own) == upper)
    return next(fitting, "")


def _moves(test: str) -> Moves:
    return "half round trip" if test.endswith("_lat") else "operation" if test in _FETCHES else "one way"


def _table(test: str, about: str, rank: str, numbers: int) -> ToolNumbers:
    """Return the table of a test, for rows of so many numbers."""
    statistic = "p50" if rank == "typical" else "max" if float(rank) >= 100 else f"p{float(rank):g}"
    moves = _moves(test)
    columns: list[ToolColumn | None]
    five: list[ToolColumn | None] = [None] * 5
    if moves == "one way":
        bandwidth = ToolColumn(
            heading="bandwidth, overall", unit="MiB/s", kind="bandwidth", moves=moves, statistic="overall", factor=MIB
        )
        rate = ToolColumn(
            heading="message rate, overall", unit="1/s", kind="rate", moves=moves, statistic="overall", factor=1
        )
        columns = [None, None, bandwidth, rate] if numbers == 4 else [*five, bandwidth, None, rate]
    else:
        factor = 2000 if moves == "half round trip" else 1000
        quantile = ToolColumn(
            heading=f"{rank}%ile" if rank != "typical" else rank,
            unit="us", kind="time", moves=moves, statistic=statistic, factor=factor,
        )  # fmt: skip
        mean = ToolColumn(
            heading="latency, overall", unit="us", kind="time", moves=moves, statistic="mean", factor=factor
        )
        columns = [None, mean, None, None] if numbers == 4 else [None, quantile, None, mean, *five[:4]]
    return ToolNumbers(test=test, columns=columns, about=[about] if about else [])
