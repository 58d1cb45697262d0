# SPDX-License-Identifier: BSD-3-Clause
"""Tables of a section (one pattern at one place): the summary of a few sizes, and every size in full."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

from cadge_analysis import units, words
from cadge_analysis.page.viewmodel import CaseTable, Column, Key, Summary, SummaryCell, SummaryRow, TableRow, Value
from cadge_analysis.stats.compare import Comparison, Numbers, Row, standing
from cadge_analysis.stats.intervals import Estimate, Tail
from cadge_analysis.stats.load import Case, Cell, LaunchFacts, Series

SUMMARY_SIZES = (8, 4 * units.KIB, units.MIB)

_BEFORE = (Column(key="wait", head="waits by", number=False),)
_AFTER = (
    Column(key="floor", head="its floor", number=False),
    Column(key="cpu_client", head="CPU client", unit="\u00b5s"),
    Column(key="cpu_server", head="CPU server", unit="\u00b5s"),
    Column(key="cpu_both", head="CPU both", unit="\u00b5s"),
    Column(key="switches_client", head="switches client"),
    Column(key="switches_server", head="switches server"),
    Column(key="lost", head="lost"),
    Column(key="rpc", head="RPC", number=False),
    Column(key="work", head="done by", number=False),
    Column(key="launches", head="launches"),
    Column(key="samples", head="samples"),
)
LATENCY_COLUMNS = (
    *_BEFORE,
    Column(key="p50", head="p50", unit="\u00b5s"),
    Column(key="p99", head="p99", unit="\u00b5s"),
    Column(key="p999", head="p99.9", unit="\u00b5s"),
    Column(key="ratio", head="ratio to floor"),
    Column(key="above", head="above floor", unit="\u00b5s"),
    Column(key="rate", head="operations/s"),
    *_AFTER,
)
ONESIDED_COLUMNS = (
    *_BEFORE,
    Column(key="p50", head="p50, local completion", unit="\u00b5s"),
    Column(key="remote", head="p50, visible at the target", unit="\u00b5s"),
    Column(key="p99", head="p99", unit="\u00b5s"),
    Column(key="p999", head="p99.9", unit="\u00b5s"),
    Column(key="ratio", head="ratio to floor"),
    Column(key="above", head="above floor", unit="\u00b5s"),
    Column(key="rate", head="operations/s"),
    *_AFTER,
)
STREAM_COLUMNS = (
    *_BEFORE,
    Column(key="p50", head="rate", unit="MB/s"),
    Column(key="pooled", head="all launches together", unit="MB/s"),
    Column(key="ratio", head="ratio to floor"),
    Column(key="rate", head="messages/s"),
    *_AFTER,
)


def columns_of(pattern: str) -> tuple[Column, ...]:
    """Return the columns of a pattern's tables."""
    return {"stream": STREAM_COLUMNS, "onesided": ONESIDED_COLUMNS}.get(pattern, LATENCY_COLUMNS)


def _raw(*values: float | None) -> str:
    return " ".join(f"{value:.12g}" for value in values if value is not None)


def estimate_value(estimate: Estimate | None, *, scale: float, reason: str, flag: str = "", sign: str = "") -> Value:
    """Return a median over launches with its interval; one launch has none and says so."""
    if estimate is None:
        return Value(text=units.MISSING, reason=reason)
    detail = "1 launch, no interval"
    if estimate.low is not None and estimate.high is not None:
        detail = units.interval(units.sig3(estimate.low * scale), units.sig3(estimate.high * scale))
    return Value(
        text=f"{units.sig3(estimate.value * scale)}{sign}",
        detail=detail,
        raw=_raw(estimate.value, estimate.low, estimate.high),
        flag=flag,
    )


def _tail(tail: Tail | None) -> Value:
    if tail is None or tail.value is None or tail.low is None or tail.high is None:
        return Value(text=units.MISSING, reason=(tail.reason or "").replace(",", units.THIN) if tail else "no samples")
    return Value(
        text=units.us(tail.value),
        detail=f"{units.us(tail.low)}\u2026{units.us(tail.high)}",
        raw=_raw(tail.value, tail.low, tail.high),
    )


def _plain(value: float | None, *, scale: float = 1.0, reason: str = "not recorded") -> Value:
    if value is None:
        return Value(text=units.MISSING, reason=reason)
    return Value(text=units.sig3(value * scale), raw=_raw(value))


def _count(number: int, detail: str = "") -> Value:
    return Value(text=units.grouped(number), raw=str(number), detail=detail)


def _lost(numbers: Numbers) -> Value:
    late = f"{units.grouped(numbers.late)} came late" if numbers.late else ""
    return _count(numbers.lost, late)


def _work(facts: LaunchFacts | None, case: Case) -> str:
    """Return who carries out the operation: direct, library or cadge."""
    if facts is None:
        return ""
    return facts.semantics.get(case.operation if case.pattern == "onesided" else "message", "")


def _values(row: Row, facts: LaunchFacts | None, *, veth: bool) -> dict[str, Value]:
    numbers, case = row.numbers, row.cell.case
    scale = 1.0 if numbers.is_rate else 1 / units.NS_PER_US
    none = row.reason or ""
    flag = "below" if row.beats_floor else ""
    floor = words.floor_name(row.floor.cell.series, veth=veth) if row.floor else units.MISSING
    cpu, switches = numbers.cpu, numbers.switches
    coverage = numbers.central.coverage
    return {
        "wait": Value(text=case.wait),
        "p50": estimate_value(numbers.central, scale=scale, reason=""),
        "pooled": _plain(numbers.pooled_mb_s),
        "remote": estimate_value(numbers.remote, scale=scale, reason="not measured for this operation"),
        "p99": _tail(numbers.p99),
        "p999": _tail(numbers.p999),
        "ratio": estimate_value(row.ratio, scale=1.0, reason=none, flag=flag),
        "above": estimate_value(row.above, scale=1 / units.NS_PER_US, reason=none, flag=flag),
        "rate": _plain(numbers.operations_s),
        "floor": Value(text=floor, reason=none),
        "cpu_client": _plain(cpu.client_ns if cpu else None, scale=1 / units.NS_PER_US),
        "cpu_server": _plain(cpu.server_ns if cpu else None, scale=1 / units.NS_PER_US),
        "cpu_both": _plain(cpu.both_ns if cpu else None, scale=1 / units.NS_PER_US),
        "switches_client": _plain(switches[0] if switches else None),
        "switches_server": _plain(switches[1] if switches else None),
        "lost": _lost(numbers),
        "rpc": Value(text=(facts.rpc if facts and case.pattern == "rpc" else "") or units.MISSING),
        "work": Value(text=_work(facts, case) or units.MISSING),
        "launches": _count(numbers.central.launches, units.percent(coverage) if coverage else "no interval"),
        "samples": _count(numbers.samples) if not numbers.is_rate else _count(numbers.operations, "messages"),
    }


def _gist(rows: Sequence[Row]) -> str:
    """Return the short answer of one workload: the best median of each wait mode, with ties."""
    parts = []
    for wait in words.WAIT_ORDER:
        here = standing(row for row in rows if row.cell.case.wait == wait)
        if here is None:
            continue
        best = here.best
        value = best.numbers.central.value
        text = f"{units.sig3(value)} MB/s" if best.numbers.is_rate else f"{units.us(value)} \u00b5s"
        ties = len(here.undecided())
        tied = f" (and {ties} that cannot be told apart)" if ties else ""
        parts.append(f"{words.WAITS[wait]}: {best.cell.series.label} {text}{tied}")
    return " \u00b7 ".join(parts)


def case_tables(
    rows: Iterable[Row], keys: Mapping[Series, Key], facts: Mapping[tuple[Series, str, str], LaunchFacts], *, veth: bool
) -> tuple[CaseTable, ...]:
    """Return one table a workload, with a row for each layer and wait mode that has numbers."""
    groups: dict[Case, list[Row]] = defaultdict(list)
    for row in rows:
        groups[_without_wait(row.cell.case)].append(row)
    tables = []
    for case, members in sorted(groups.items(), key=lambda item: item[0].sort_key):
        ordered = sorted(members, key=lambda r: (words.WAIT_ORDER.index(r.cell.case.wait), r.cell.series))
        columns = columns_of(case.pattern)
        shown = []
        for row in ordered:
            series, wait = row.cell.series, row.cell.case.wait
            values = _values(row, facts.get((series, case.place, wait)), veth=veth)
            shown.append(
                TableRow(
                    key=keys[series],
                    point_id=row.cell.point_id,
                    layer=series.label,
                    wait=wait,
                    cells=tuple(values[column.key] for column in columns),
                )
            )
        title = words.workload(case)
        tables.append(CaseTable(title=title, case=case_key(case), gist=_gist(members), rows=tuple(shown)))
    return tuple(tables)


def case_key(case: Case) -> str:
    """Return a workload and its place as one word for programs: rpc/within/8/8/1, with operation and target last."""
    parts = (case.pattern, case.place, case.request_bytes, case.reply_bytes, case.depth, case.operation, case.target)
    return "/".join(str(part) for part in parts if part != "")


def _without_wait(case: Case) -> Case:
    return Case(
        place=case.place,
        wait="",
        pattern=case.pattern,
        request_bytes=case.request_bytes,
        reply_bytes=case.reply_bytes,
        depth=case.depth,
        operation=case.operation,
        target=case.target,
    )


def summary_sizes(sizes: Iterable[int]) -> tuple[int, ...]:
    """Return 8 B, 4 KiB and 1 MiB where they were measured; else the smallest, the middle and the largest size."""
    every = sorted(set(sizes))
    wanted = [size for size in SUMMARY_SIZES if size in every]
    if len(wanted) >= 2 or not every:
        return tuple(wanted)
    return tuple(sorted({every[0], every[len(every) // 2], every[-1]}))


def _bar(row: Row, largest: float) -> str:
    """Return the length of a ratio's bar in percent: a share for rates, a logarithm for times."""
    if row.ratio is None or row.ratio.value <= 0:
        return "0"
    if row.numbers.is_rate:
        return f"{min(1.0, row.ratio.value) * 100:.0f}"
    if largest <= 1:
        return "2"
    return f"{max(2.0, min(1.0, math.log(row.ratio.value) / math.log(largest)) * 100):.0f}"


def _summary_cell(row: Row | None, cell: Cell | None, largest: float) -> SummaryCell:
    if row is None:
        reason = "not planned"
        if cell is not None:
            reason = cell.state if cell.state != "valid" else "no number"
        return SummaryCell(text=units.MISSING, detail=reason, ratio="", bar="0", reason=reason)
    numbers = row.numbers
    scale = 1.0 if numbers.is_rate else 1 / units.NS_PER_US
    value = estimate_value(numbers.central, scale=scale, reason="")
    ratio = units.times(row.ratio.value) if row.ratio else ""
    return SummaryCell(text=value.text, detail=value.detail, ratio=ratio, bar=_bar(row, largest))


def summary(
    comparison: Comparison, cells: Sequence[Cell], keys: Mapping[Series, Key], *, wait: str, depth: int
) -> Summary | None:
    """Return the short table of one pattern, place and wait mode (all `cells` are of one pattern and place)."""
    here = {
        (cell.series, cell.case.request_bytes): cell
        for cell in cells
        if cell.case.wait == wait and cell.case.depth == depth
    }
    ids = {cell.point_id for cell in here.values()}
    rows = {(r.cell.series, r.cell.case.request_bytes): r for r in comparison.rows if r.cell.point_id in ids}
    if not rows:
        return None
    sizes = summary_sizes(size for _, size in rows)
    largest = max((r.ratio.value for r in rows.values() if r.ratio), default=1.0)
    series = sorted({name for name, _ in here})
    is_rate = next(iter(rows.values())).numbers.is_rate
    first = cells[0].case
    unit = "MB/s" if is_rate else "p50 of the round trip, \u00b5s"
    if first.pattern == "onesided":
        unit = "p50 until local completion, \u00b5s"
    return Summary(
        caption=f"{words.WAITS[wait].capitalize()}: {unit}",
        note="Under each value its interval over launches; beside it the ratio to the floor.",
        sizes=tuple(units.size(size) for size in sizes),
        rows=tuple(
            SummaryRow(
                key=keys[name],
                cells=tuple(_summary_cell(rows.get((name, size)), here.get((name, size)), largest) for size in sizes),
            )
            for name in series
        ),
    )
