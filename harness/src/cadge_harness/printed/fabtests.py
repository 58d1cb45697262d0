# SPDX-License-Identifier: BSD-3-Clause
"""fi_pingpong of libfabric, and fabtests: ping-pongs and streams.

A row a size: bytes, how many were sent (and acknowledged), total bytes, time, MB/s (10^6), microseconds a transfer,
millions of transfers a second. Where the program is a ping-pong the microseconds are half a round trip; else they are
a whole operation where only one is under way (-W 1), and not read where several are. Sizes have units of 1,024, and
are cut after a digit: what is left of 20,000 is `19k`. With -m (fabtests) program and sizes are printed whole;
without, nothing says which program it was.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from cadge_harness.printed.text import (
    PrintedError,
    ToolColumn,
    ToolHints,
    ToolLine,
    ToolNumbers,
    ToolOutput,
    lines_of,
    size,
)

_ENDS = ("total", "time", "MB/sec", "usec/xfer", "Mxfers/sec")
_SIZE = re.compile(r"(?P<whole>[0-9]{1,15})(\.(?P<tenths>[0-9]))?(?P<unit>[kmg]?)")
_UNITS = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30}
_ENTRY = re.compile(r"- \{ (?P<pairs>xfer_size: .*) \}\s*")
_COMMAND = re.compile(r"(?P<program>\S*fi_[a-z0-9_]+)(?P<options>( \S+)*?) ?:\s*")
_ROUNDED = "sizes from 1 KiB on are as the tool cuts them"
PINGPONG_OF_LIBFABRIC = "fi_pingpong"


def read(text: str, told: ToolHints) -> ToolOutput:
    """Return the series of the tables in a text. Raises PrintedError."""
    tables: list[ToolNumbers] = []
    columns = 0
    table: ToolNumbers | None = None
    before = ""
    for line in lines_of(text):
        words, before, last = line.words, line.text, before
        if words and tuple(words[-len(_ENDS) :]) == _ENDS:
            columns, table = len(words), _table(_program(words, told, line), line, [_ROUNDED])
            tables.append(table)
        elif last == "---" and (command := _COMMAND.fullmatch(line.text)):
            columns, table = 0, _table(command["program"].rpartition("/")[2] + command["options"], line, [])
            tables.append(table)
        elif table is not None and (entry := _ENTRY.fullmatch(line.text)):
            pairs = dict(pair.partition(": ")[::2] for pair in entry["pairs"].split(", "))
            table.add(size(pairs.get("xfer_size", ""), line.number), _pick(pairs, line), line.number)
        elif table is not None and columns and _like_row(words, columns):
            if len(words) != columns:
                raise PrintedError(f"{len(words)} columns, where the heading has {columns}", line.number)
            row = dict(zip(_ENDS, words[-len(_ENDS) :], strict=True))
            bytes_at = -columns if words[0][0].isdigit() and columns > len(_ENDS) else 0
            table.add(_bytes(words[bytes_at], line.number), _pick(row, line), line.number)
    series = [one for table in tables for one in table.series()]
    if not series:
        raise PrintedError("no table of fi_pingpong or of fabtests")
    return ToolOutput(series=tuple(series))


def _program(words: Sequence[str], told: ToolHints, line: ToolLine) -> str:
    if "#ack" in words:
        return PINGPONG_OF_LIBFABRIC
    if words[0] == "name":
        raise PrintedError("a table with a column of names is not read", line.number)
    if not told.test:
        raise PrintedError(
            "the text does not say which program printed it: add --test PROGRAM, e.g. --test fi_rdm_pingpong or "
            '--test "fi_rma_bw -W 1", or run the program with -m',
            line.number,
        )
    if told.test.partition(" ")[0] == PINGPONG_OF_LIBFABRIC:
        raise PrintedError(f"{PINGPONG_OF_LIBFABRIC} prints #sent and #ack, and this has no such columns", line.number)
    return told.test


def _table(program: str, line: ToolLine, about: list[str]) -> ToolNumbers:
    """Return the table of a program: its time where that means something, else its rate."""
    name, _, options = program.partition(" ")
    alone = re.search(r"(^| )-W ?1( |$)", options) is not None
    if name.endswith("_pingpong"):
        of_time = ToolColumn(
            heading="usec/xfer", unit="us", kind="time", moves="half round trip", statistic="mean", factor=2000
        )
        return ToolNumbers(test=name, columns=[of_time, None], about=about)
    if not name.endswith("_bw"):
        raise PrintedError(f"{name[:60]!r} is not read: only ping-pongs and streams (..._bw) are", line.number)
    of_time = ToolColumn(heading="usec/xfer", unit="us", kind="time", moves="operation", statistic="mean", factor=1000)
    of_rate = ToolColumn(
        heading="MB/sec", unit="MB/s", kind="bandwidth", moves="one way", statistic="overall", factor=1_000_000
    )
    more = [f"with{options and ' '}{options}" if options else "", *about]
    return ToolNumbers(test=name, columns=[of_time if alone else None, of_rate], about=[one for one in more if one])


def _pick(row: dict[str, str], line: ToolLine) -> list[str]:
    try:
        return [row["usec/xfer"], row["MB/sec"]]
    except KeyError as error:
        raise PrintedError(f"no {error.args[0]}", line.number) from error


def _like_row(words: Sequence[str], columns: int) -> bool:
    """Tell a row, also a damaged one, from what else is printed between rows."""
    return len(words) >= columns - 1 and bool(_SIZE.fullmatch(words[0])) and words[0].isascii()


def _bytes(word: str, line: int) -> int:
    """Return a size with a unit. Raises PrintedError where no whole number of bytes is printed so."""
    match = _SIZE.fullmatch(word)
    if match is None or not word.isascii():
        raise PrintedError(f"{word[:60]!r} is no size", line)
    unit = _UNITS[match["unit"]]
    tenths = int(match["whole"]) * 10 + int(match["tenths"] or 0)
    found, left = divmod(tenths * unit, 10)
    if left:
        raise PrintedError(f"{word} is a size that the tool has cut: run it with -m, which prints sizes whole", line)
    return found
