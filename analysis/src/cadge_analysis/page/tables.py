# SPDX-License-Identifier: BSD-3-Clause
"""Tables of a section (one pattern at one place): the summary of a few sizes, and every size in full."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from cadge_analysis import units, words
from cadge_analysis.page import verdict_words
from cadge_analysis.page.viewmodel import CaseTable, Column, Key, Summary, SummaryCell, SummaryRow, TableRow, Value
from cadge_analysis.stats.beside_native import MARK, tax_text
from cadge_analysis.stats.campaign_verdicts import CampaignVerdicts
from cadge_analysis.stats.compare import OPERATIONS_MIN, Against, Comparison, Numbers, Row
from cadge_analysis.stats.costs import PerOperation
from cadge_analysis.stats.intervals import Estimate, Tail
from cadge_analysis.stats.load import STATES, Case, Cell, Dataset, LaunchFacts, Series
from cadge_results import PatternFile, Workload
from cadge_results.pattern import KneeRule, Quantity

SUMMARY_SIZES = (8, 4 * units.KIB, units.MIB)

_WAIT = Column(key="wait", head="waits by", number=False)
_FLOOR = Column(key="floor", head="its floor", number=False)
_REFERENCES = Column(key="references", head="references", number=False)
_COUNTED = {
    "system_calls": "system calls",
    "faults": "page faults",
    "cycles": "cycles",
    "instructions": "instructions",
}
"""Of all sides together, an operation; under it of each side."""
_LAST = (
    Column(key="lost", head="lost"),
    Column(key="calls", head="RPC", number=False),
    Column(key="work", head="done by", number=False),
    Column(key="launches", head="launches"),
    Column(key="samples", head="samples"),
)


def uncounted(rows: Iterable[Row]) -> Iterator[str]:
    """Yield what was counted nowhere, and why, in sentences: one a reason."""
    every = [row.numbers.costs for row in rows]
    by_reason: dict[str, list[str]] = defaultdict(list)
    for name, head in _COUNTED.items():
        if every and all(getattr(costs, name) is None for costs in every):
            said = sorted({costs.why[name] for costs in every if costs.why.get(name)})
            # where some could not and some were not asked to, that they could not says more
            why = next((text for text in said if text.startswith("not to be had")), said[0] if said else "not recorded")
            by_reason[why].append(head)
    for why, heads in by_reason.items():
        yield f"How many {words.listing(heads)} an operation takes: {why}."


def columns_of(file: PatternFile, rows: Sequence[Row], baseline: str | None) -> tuple[Column, ...]:
    """Return the columns of a pattern's tables; what was counted in none of its rows has none.

    baseline: what layers are judged against, where they are.
    """
    main = file.main_quantity
    shown = words.shown(main)
    columns = [_WAIT, Column(key="p50", head=main.heading, unit=shown.unit)]
    if baseline:
        columns.append(Column(key="verdict", head=f"beside {baseline}"))
    if main.kind == "rate":
        columns.append(Column(key="pooled", head="all launches together", unit=shown.unit))
    for name, quantity in file.quantities.items():
        if name != file.main and not quantity.caveat:
            columns.append(Column(key=name, head=quantity.heading, unit=words.shown(quantity).unit))
    if main.kind == "histogram":
        columns.append(Column(key="p99", head="p99", unit=shown.unit))
        if baseline:
            columns.append(Column(key="p99_verdict", head=f"p99 beside {baseline}"))
        columns.append(Column(key="p999", head="p99.9", unit=shown.unit))
    if file.baseline is not None:
        base = words.baseline(file)
        columns.append(Column(key="base", head=f"\u00f7 {base}"))
        if main.kind == "histogram":
            columns.append(Column(key="base_p99", head=f"p99 \u00f7 {base}"))
    if file.knee is not None:
        columns.append(Column(key="generator", head="of the generator's limit", unit="%"))
    if any(row.numbers.apart for row in rows):
        columns.append(Column(key="apart", head="highest \u00f7 lowest end"))
    columns.append(Column(key="ratio", head="ratio to floor"))
    if main.unit == "ns":
        columns.append(Column(key="above", head="above floor", unit=shown.unit))
    columns += [Column(key="rate", head=file.words.operations), _FLOOR, _REFERENCES]
    columns += [Column(key=f"cpu_{role}", head=f"CPU {role}", unit="\u00b5s") for role in file.roles]
    together = "both" if len(file.roles) == 2 else "all"
    if len(file.roles) > 1:
        columns.append(Column(key="cpu_all", head=f"CPU {together}", unit="\u00b5s"))
    columns += [Column(key=f"switches_{role}", head=f"switches {role}") for role in file.roles]
    if len(file.roles) > 1:
        columns.append(Column(key="switches_all", head=f"switches {together}"))
    every = [row.numbers.costs for row in rows]
    for key, head in _COUNTED.items():
        if any(getattr(costs, key) is not None for costs in every):
            columns.append(Column(key=key, head=head))
    return (*columns, *_LAST)


def parted(file: PatternFile, columns: Sequence[Column]) -> tuple[tuple[Column, ...], tuple[Column, ...]]:
    """Return the columns of the first table and those of the second one.

    The first has what is compared, as few as fit beside each other: what the pattern measures, the tail, verdicts, how
    many launches stand behind, and the distance to the floor. Of a pattern with details it leaves those out, and has
    the processors' time.
    """
    details = {name for name, one in file.quantities.items() if one.detail}
    seen_first = {"wait", "p50", "verdict", "p99", "p99_verdict", "launches", *file.quantities} - details
    if not details:
        seen_first.add("ratio")
    without = {"ratio", "above", "floor", "references"} if details and not file.floor.form else set()

    def is_first(column: Column) -> bool:
        return column.key in seen_first or (bool(details) and column.key.startswith("cpu_"))

    rest = (one for one in columns if not is_first(one) and one.key not in without)
    return tuple(filter(is_first, columns)), tuple(rest)


def estimate_value(estimate: Estimate | None, *, scale: float, reason: str, flag: str = "", sign: str = "") -> Value:
    """Return a median over launches with its interval; one launch has none and says so."""
    if estimate is None:
        return Value(text=units.MISSING, reason=reason)
    detail = "1 launch, no interval"
    if estimate.low is not None and estimate.high is not None:
        detail = units.interval(units.sig3(estimate.low * scale), units.sig3(estimate.high * scale))
    if estimate.pairs_disagree:
        detail += f"; {units.PAIRS_DISAGREE}"
    return Value(
        text=f"{units.sig3(estimate.value * scale)}{sign}",
        detail=detail,
        raw=units.raw(estimate.value, estimate.low, estimate.high),
        flag=flag,
    )


def _tail(tail: Tail | None) -> Value:
    if tail is None or tail.value is None or tail.low is None or tail.high is None:
        return Value(text=units.MISSING, reason=_thin_spaces(tail.reason or "") if tail else "no samples")
    return Value(
        text=units.us(tail.value),
        detail=f"{units.us(tail.low)}\u2026{units.us(tail.high)}",
        raw=units.raw(tail.value, tail.low, tail.high),
    )


def _plain(value: float | None, *, scale: float = 1.0, reason: str = "not recorded") -> Value:
    if value is None:
        return Value(text=units.MISSING, reason=reason)
    return Value(text=units.sig3(value * scale), raw=units.raw(value))


def _of_role(found: PerOperation | None, role: str, case: Case, *, scale: float = 1.0) -> Value:
    if role not in case.file.roles_of(case.workload):
        return Value(text=units.MISSING, reason="not there")
    return _plain(found.by_role.get(role) if found else None, scale=scale)


def _cost(cost: PerOperation | None, reason: str) -> Value:
    """Return what an operation took of all sides together; what each of them took stands under it."""
    if cost is None:
        return Value(text=units.MISSING, reason=reason)
    sides = ", ".join(f"{role} {units.sig3(value)}" for role, value in cost.by_role.items())
    return Value(
        text=units.sig3(cost.all_roles), raw=units.raw(cost.all_roles), detail=sides if len(cost.by_role) > 1 else ""
    )


def _count(number: int, detail: str = "") -> Value:
    return Value(text=units.grouped(number), raw=str(number), detail=detail)


def _lost(numbers: Numbers) -> Value:
    late = f"{units.grouped(numbers.late)} came late" if numbers.late else ""
    return _count(numbers.lost, late)


def _launches_detail(numbers: Numbers) -> str:
    """Return how sure their interval is, how many were hindered, and of how many a caveat holds."""
    coverage = numbers.central.coverage
    parts = [units.percent(coverage) if coverage else "no interval"]
    parts += [f"{numbers.hindered} disturbed"] * bool(numbers.hindered)
    quantities = numbers.cell.case.file.quantities
    parts += [f"{often} {quantities[name].title}" for name, often in numbers.caveats.items()]
    return ", ".join(parts)


def _mark(numbers: Numbers) -> str:
    """Return how the main number is marked: as one to be read with care, or not at all."""
    return "few" if numbers.to_be_read else ""


def _central(numbers: Numbers) -> Value:
    """Return the main number, with what care it is to be read."""
    value = estimate_value(numbers.central, scale=words.shown(numbers.quantity).scale, reason="", flag=_mark(numbers))
    return replace(value, detail=", ".join((value.detail, *numbers.to_be_read)))


def _marked(value: Value, cell: Cell, verdicts: CampaignVerdicts) -> Value:
    """Return a number with what is known of it beside a plain program over the same library."""
    tax = verdicts.taxes.get(cell.point_id)
    return value if tax is None else replace(value, detail=f"{value.detail}; {MARK} {tax_text(cell, tax)}")


def _samples(numbers: Numbers, noun: str) -> Value:
    if numbers.quantity.kind != "histogram":
        return _count(numbers.operations, noun)
    return _count(numbers.samples, f"under {OPERATIONS_MIN} in a launch" if numbers.thin else "")


def _work(facts: LaunchFacts | None, case: Case) -> str:
    """Return who carries out the operation: direct, library or cadge."""
    if facts is None:
        return ""
    return facts.semantics.get(case.file.fill(case.file.words.work, case.workload, lambda _, value: str(value)), "")


def _values(
    row: Row, facts: LaunchFacts | None, data: Dataset, shares: Mapping[str, float], verdicts: CampaignVerdicts
) -> dict[str, Value]:
    numbers, case = row.numbers, row.cell.case
    file, main = case.file, numbers.quantity
    scale = words.shown(main).scale
    none = row.reason or ""
    flag = "below" if row.beats_floor else ""
    floor = words.floor_name(row.floor, data) if row.floor else units.MISSING
    costs = numbers.costs
    cpu, switches = costs.cpu_ns, costs.switches
    us = 1 / units.NS_PER_US
    noun = file.words.operations.partition("/")[0]
    return {
        "wait": Value(text=case.wait),
        "p50": _marked(_central(numbers), row.cell, verdicts),
        "verdict": verdict_words.value_of(verdicts.by_point.get(row.cell.point_id), row, verdicts),
        "pooled": _plain(numbers.pooled, scale=scale),
        **{
            name: estimate_value(
                numbers.others.get(name),
                scale=words.shown(quantity).scale,
                reason=quantity.absent or "not measured for this operation",
            )
            for name, quantity in file.quantities.items()
            if name != file.main
        },
        "p99": _tail(numbers.p99),
        "p99_verdict": verdict_words.of_tail(row, verdicts),
        "p999": _tail(numbers.p999),
        **_baseline(row.baseline),
        "generator": share_value(shares.get(row.cell.point_id), file.knee),
        "apart": estimate_value(numbers.apart, scale=1.0, reason="one end measured"),
        "ratio": estimate_value(row.ratio, scale=1.0, reason=none, flag=flag),
        "above": estimate_value(row.above, scale=us, reason=none, flag=flag),
        "rate": _plain(numbers.operations_s),
        "floor": Value(text=floor, reason=none),
        "references": _references(row, data),
        **{f"cpu_{role}": _of_role(cpu, role, case, scale=us) for role in file.roles},
        "cpu_all": _plain(cpu.all_roles if cpu else None, scale=us),
        **{f"switches_{role}": _of_role(switches, role, case) for role in file.roles},
        "switches_all": _plain(switches.all_roles if switches else None),
        **{name: _cost(getattr(costs, name), costs.why.get(name, "not recorded")) for name in _COUNTED},
        "lost": _lost(numbers),
        "calls": Value(text=(whose_calls(facts.caps, file, case.workload) if facts else "") or units.MISSING),
        "work": Value(text=_work(facts, case) or units.MISSING),
        "launches": _count(numbers.central.launches, _launches_detail(numbers)),
        "samples": _samples(numbers, noun),
    }


def _baseline(found: Against | None) -> dict[str, Value]:
    if found is None:
        itself = Value(text=units.MISSING, reason="the baseline itself, or nothing to compare with")
        return {"base": itself, "base_p99": itself}
    return {
        "base": estimate_value(found.central, scale=1.0, reason=found.reason),
        "base_p99": estimate_value(found.p99, scale=1.0, reason=_thin_spaces(found.reason or found.p99_reason)),
    }


def share_value(share: float | None, rule: KneeRule | None) -> Value:
    """Return a rate as a share of the generator's limit, marked where it is above what the pattern says."""
    if share is None or rule is None:
        return Value(text=units.MISSING, reason="the generator's limit was not measured with these values")
    marked = share > rule.marked
    detail = f"above {units.percent(rule.marked, 0)}" if marked else ""
    return Value(text=units.sig3(100 * share), detail=detail, raw=units.raw(share), flag="few" if marked else "")


def _thin_spaces(reason: str) -> str:
    return reason.replace(",", units.THIN)


EMULATED_CALL_BYTES = 16
"""What a call that is made of messages carries behind its payload (DRV_RPC_TRAILER_BYTES of the driver's server.h)."""


def whose_calls(caps: Collection[str], file: PatternFile, workload: Workload) -> str:
    """Tell whose calls the operations are: the layer's own, or made of messages, longer by what they carry."""
    if not file.calls:
        return ""
    if file.calls_are_native(caps):
        return "native"
    request_bytes = file.moved_bytes(workload)[0]
    return f"emulated, {units.size(request_bytes + EMULATED_CALL_BYTES)} on the wire"


def _references(row: Row, data: Dataset) -> Value:
    """Return the bare exchanges that are no floors, each with its value."""
    shown = words.shown(row.numbers.quantity)
    texts = [f"{words.program_name(one.program.cell, data)}: {shown.text(one.central.value)}" for one in row.references]
    return Value(text="; ".join(texts) or units.MISSING)


def _gist(rows: Sequence[Row], verdicts: CampaignVerdicts) -> str:
    """Return the short answer of one workload: who leads in each wait mode."""
    if rows and not rows[0].cell.case.does_rank:
        return words.RANKS_NOTHING
    cases = {row.cell.case.wait: row.cell.case for row in rows}
    said = {
        wait: verdict_words.gist(verdicts, rows, case)
        for wait in words.WAIT_ORDER
        if (case := cases.get(wait)) is not None
    }
    return " \u00b7 ".join(f"{words.WAITS[wait]}: {text}" for wait, text in said.items() if text)


def baseline_of(rows: Iterable[Row], verdicts: CampaignVerdicts) -> str | None:
    """Return what some of these rows are judged against; None where none is."""
    return verdicts.baseline if any(row.cell.point_id in verdicts.by_point for row in rows) else None


def case_tables(
    rows: Sequence[Row],
    keys: Mapping[Series, Key],
    facts: Mapping[tuple[Series, str, str], LaunchFacts],
    data: Dataset,
    shares: Mapping[str, float],
    verdicts: CampaignVerdicts,
) -> tuple[CaseTable, ...]:
    """Return one table a workload, with a row for each layer and wait mode that has numbers.

    `shares`: of the generator's limit, by point.
    """
    groups: dict[Case, list[Row]] = defaultdict(list)
    every = list(rows)
    for row in every:
        groups[_without_wait(row.cell.case)].append(row)
    tables = []
    for case, members in sorted(groups.items(), key=lambda item: item[0].sort_key):
        ordered = sorted(members, key=lambda r: (words.WAIT_ORDER.index(r.cell.case.wait), r.cell.series))
        columns, rest = parted(case.file, columns_of(case.file, every, baseline_of(every, verdicts)))
        shown, more = [], []
        for row in ordered:
            series, wait = row.cell.series, row.cell.case.wait
            values = _values(row, facts.get((series, case.place, wait)), data, shares, verdicts)
            one = TableRow(
                key=keys[series],
                point_id=row.cell.point_id,
                wait=wait,
                cells=tuple(values[column.key] for column in columns),
            )
            shown.append(one)
            more.append(replace(one, cells=tuple(values[column.key] for column in rest)))
        tables.append(
            CaseTable(
                title=words.workload(case),
                case=case_key(case),
                gist=_gist(members, verdicts),
                rows=tuple(shown),
                more=tuple(more) if rest else (),
            )
        )
    return tuple(tables)


def case_key(case: Case) -> str:
    """Return a workload and its place as one word for programs: pattern/place, then the parameters in their order."""
    return "/".join(str(part) for part in (case.pattern, case.place, *(case.workload[k] for k in case.file.parameters)))


def _without_wait(case: Case) -> Case:
    return replace(case, wait="")


def summary_sizes(sizes: Iterable[int], *, known: bool = True) -> tuple[int, ...]:
    """Return 8 B, 4 KiB and 1 MiB where they were measured; else, and of no bytes, smallest, middle and largest."""
    every = sorted(set(sizes))
    wanted = [size for size in SUMMARY_SIZES if known and size in every]
    if len(wanted) >= 2 or not every:
        return tuple(wanted)
    return tuple(sorted({every[0], every[len(every) // 2], every[-1]}))


def _bar(row: Row, largest: float) -> str:
    """Return the length of a ratio's bar in percent: a share where more is better, else a logarithm."""
    if row.ratio is None or row.ratio.value <= 0:
        return "0"
    if row.numbers.more_is_better:
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
    scale = words.shown(numbers.quantity).scale
    value = estimate_value(numbers.central, scale=scale, reason="")
    ratio = units.times(row.ratio.value) if row.ratio else ""
    tail = _tail(numbers.p90)
    p90 = f"{tail.text}|{tail.detail or tail.reason}" if numbers.p90 else ""
    detail = ", ".join((value.detail, *numbers.to_be_read))
    return SummaryCell(text=value.text, detail=detail, ratio=ratio, bar=_bar(row, largest), p90=p90)


def summary(comparison: Comparison, cells: Sequence[Cell], keys: Mapping[Series, Key], *, wait: str) -> Summary | None:
    """Return the short table of one figure's cells: all are of one pattern, place and family."""
    here = {(cell.series, cell.case.size): cell for cell in cells if cell.case.wait == wait}
    ids = {cell.point_id for cell in here.values()}
    rows = {(r.cell.series, r.cell.case.size): r for r in comparison.rows if r.cell.point_id in ids}
    if not rows:
        return None
    file = cells[0].case.file
    axis = file.parameters[file.axis]
    sizes = summary_sizes((size for _, size in rows), known=axis.unit == "bytes")
    largest = max((r.ratio.value for r in rows.values() if r.ratio), default=1.0)
    has_ratios = any(row.ratio for (_, size), row in rows.items() if size in sizes)
    cases = {size: row.cell.case for (_, size), row in rows.items()}
    series = sorted({name for name, _ in here})
    shown = [name for name in series if any((name, size) in rows for size in sizes)]
    return Summary(
        caption=f"{words.WAITS[wait].capitalize()}: {file.words.unit or _unit(file.main_quantity)}"
        f"{words.ranked_by(cells[0].case)}",
        note=f"{words.figure(cells[0].case)}. Under each value its interval over launches"
        + (
            "; beside it, round by round, the ratio to the floor."
            if has_ratios
            else ". No floor to divide by was measured."
        ),
        wait=wait,
        cases=tuple(case_key(cases[size]) for size in sizes),
        sizes=tuple(words.value(axis, size) for size in sizes),
        has_ratios=has_ratios,
        columns=1 + len(sizes) * (2 if has_ratios else 1),
        rows=tuple(
            SummaryRow(
                key=keys[name],
                cells=tuple(_summary_cell(rows.get((name, size)), here.get((name, size)), largest) for size in sizes),
            )
            for name in shown
        ),
        without=_without(
            {name: [cell for size in sizes if (cell := here.get((name, size)))] for name in series if name not in shown}
        ),
    )


def _without(found: Mapping[Series, Sequence[Cell]]) -> str:
    """Return which layers have no number at any of a table's sizes, by what became of their points there."""
    by_state: dict[str, list[str]] = defaultdict(list)
    for series, cells in found.items():
        states = [state for state in STATES if any(cell.state == state for cell in cells)]
        by_state[" or ".join(states) or "not planned"].append(words.isolated(series.label))
    said = "; ".join(f"{', '.join(labels)} ({state})" for state, labels in by_state.items())
    return f"Without a number here: {said}." if said else ""


def _unit(quantity: Quantity) -> str:
    what = f"p50 of the {quantity.title}" if quantity.kind == "histogram" else quantity.title
    return f"{what}, {words.shown(quantity).unit}"
