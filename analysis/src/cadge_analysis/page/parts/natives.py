# SPDX-License-Identifier: BSD-3-Clause
"""What Cadge takes more than native tools: tables with notes, for a report and `cadge crosscheck`, and as data."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from math import exp

from pydantic import JsonValue

from cadge_analysis import messages, units
from cadge_analysis.blocks.make import lede, plain, plain_table
from cadge_analysis.blocks.model import Block, Region
from cadge_analysis.stats.inference.verdict import Verdict
from cadge_analysis.stats.intervals import Estimate
from cadge_analysis.stats.natives import NativePair, NativeRuns

say = partial(messages.say, "report")
in_section = partial(messages.say, "sections")

HEADS = ("layer", "measured", "native tool", "Cadge", "tool", "difference", "rounds", "says")
PART_HEADS = ("layer", "bytes", "native tool", "more, ns", "driver", "a look", "adapter")


def natives_section(runs: NativeRuns | None) -> Region | None:
    """Return the section of a report; None where no native tool was to run."""
    if runs is None:
        return None
    return Region(
        id="natives",
        title=in_section("natives.title"),
        blocks=(lede(in_section("natives.lede")), *blocks_of(runs)),
    )


def blocks_of(runs: NativeRuns) -> Iterator[Block]:
    """Yield the tables and the notes below them."""
    if runs.pairs or runs.absent:
        yield plain_table(say("natives.table"), HEADS, (*_main(runs.pairs), *_absent(runs)))
    if any(row.parts for row in runs.pairs):
        yield plain_table(say("natives.parts_table"), PART_HEADS, _parts(runs.pairs))
    yield from map(plain, _notes(runs))


def _figure(value: float | None, row: NativePair) -> str:
    if value is None:
        return "-"
    if row.unit == "messages/s":
        return f"{value / 1e6:.3g} M/s"
    if row.cell.statistic == "rate":
        return f"{value / 1e6:.3g} MB/s" if value < 1e9 else f"{value / 1e6:.0f} MB/s"
    return f"{value:.0f} ns" if value < 10_000 else f"{value / 1000:.2f} µs"


def _estimate(found: Estimate | None) -> str:
    if found is None:
        return "-"
    ends = "" if found.low is None or found.high is None else f" [{found.low:+.0f}, {found.high:+.0f}]"
    return f"{found.value:+.0f}{ends}"


def _times(row: NativePair) -> str:
    """Return how many times Cadge's figure the tool's is: of rates, the rate."""
    shift = row.ratio
    if shift is None:
        return "-"
    ends = "" if shift.low is None or shift.high is None else f" [{exp(shift.low):.3f}, {exp(shift.high):.3f}]"
    return f"{exp(shift.log_ratio):.3f}{units.TIMES}{ends}{f', {units.PAIRS_DISAGREE}' if row.pairs_disagree else ''}"


def _difference(row: NativePair) -> str:
    """Return what Cadge takes more: ns of a short message's round trip, else the ratio of the two."""
    return f"{_estimate(row.tax_ns)} ns" if row.short and row.tax_ns is not None else _times(row)


def _says(row: NativePair) -> str:
    if row.says == "no figure":
        return row.reason
    if row.says == "withheld":
        return say("natives.withheld", disturbed=row.disturbed, runs=row.runs)
    goal = {"alike": "no more", "cannot tell": Verdict.UNKNOWN.word}.get(row.says, row.says)
    more = ", and does more" if row.cell.more else ""
    return goal + (more if row.says == "more" else "")


def _main(rows: Sequence[NativePair]) -> Iterator[tuple[str, ...]]:
    for row in rows:
        yield (
            row.layer,
            f"{row.does} {units.size(row.cell.bytes)}, {row.place}, {row.wait}",
            f"{row.cell.tool}, {row.cell.statistic}",
            _figure(row.ours, row),
            _figure(row.theirs, row),
            _difference(row),
            f"{row.rounds}{f' ({row.waited} waited)' if row.waited else ''}",
            _says(row),
        )


def _absent(runs: NativeRuns) -> Iterator[tuple[str, ...]]:
    for one in runs.absent:
        yield ", ".join(one.layers), "", one.tool, "-", "-", "-", "", f"not run: {one.reason}"


def _parts(rows: Sequence[NativePair]) -> Iterator[tuple[str, ...]]:
    for row in rows:
        if row.parts:
            parts = (_estimate(row.parts.get(name)) for name in ("driver", "look", "adapter"))
            yield row.layer, units.size(row.cell.bytes), row.cell.tool, _estimate(row.tax_ns), *parts


def _notes(runs: NativeRuns) -> Iterator[str]:
    rows = runs.pairs
    clock = next((row.clock_ns for row in rows if row.clock_ns is not None), None)
    yield (say("natives.round_trips"))
    if runs.of_sweep:
        yield say("natives.of_sweep")
    if any(row.parts for row in rows):
        read = " " + say("natives.clock", clock=clock) if clock is not None else ""
        yield say("natives.parts", read=read)
    yield from dict.fromkeys(
        f"{row.layer}, {row.does}, {row.cell.tool}: {said}"
        for row in rows
        for said in (row.cell.more, row.cell.note)
        if said
    )
    for row in rows:
        if row.reason and row.rounds:
            yield say(
                "natives.gave_nothing",
                layer=row.layer,
                size=units.size(row.cell.bytes),
                tool=row.cell.tool,
                reason=row.reason,
            )


def data_of(row: NativePair) -> dict[str, JsonValue]:
    """Return a row for programs."""

    def ends(found: Estimate | None) -> JsonValue:
        if found is None:
            return None
        return {"value": found.value, "low": found.low, "high": found.high, "coverage": found.coverage}

    slower = row.slower
    return {
        "layer": row.layer,
        "place": row.place,
        "wait": row.wait,
        "pattern": row.pattern,
        "work": row.work,
        "bytes": row.cell.bytes,
        "tool": row.cell.tool,
        "statistic": row.cell.statistic,
        "clocked": row.cell.clocked,
        "unit": row.unit,
        "cadge": row.ours,
        "native": row.theirs,
        "tax_ns": ends(row.tax_ns),
        "slower": None if slower is None else {"value": slower[0], "low": slower[1], "high": slower[2]},
        "parts_ns": {name: ends(one) for name, one in row.parts.items()},
        "clock_ns": row.clock_ns,
        "rounds": row.rounds,
        "disturbed": row.waited,
        "pairs_disagree": row.pairs_disagree,
        "says": row.says,
        "reason": row.reason,
        "more": row.cell.more,
        "note": row.cell.note,
    }
