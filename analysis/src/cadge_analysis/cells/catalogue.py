# SPDX-License-Identifier: BSD-3-Clause
"""Every column of the table of cells, once: for programs its fields, for people its heading, unit and text.

An entry is a quantity with its companions: an estimate has one column in a report and three fields in an export. Which
entries there are depends on the patterns of a plan alone. The order here is that of exports; a report has its own (see
`page.tables`), and puts an entry that it does not place last. columns.yml says what fields hold.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial

from cadge_analysis import messages, units, words
from cadge_analysis.cells import shown
from cadge_analysis.cells.build import CellRow
from cadge_analysis.cells.entry import (
    CAMPAIGN_ID,
    RANGE,
    Entry,
    Field,
    Heads,
    bounded,
    headed,
    of_numbers,
    parameter_fields,
    subject_fields,
    unseen,
)
from cadge_analysis.cells.shown import Value
from cadge_analysis.cells.table import Scalar, beside, parameters_of
from cadge_analysis.stats.campaign_verdicts import CellVerdict
from cadge_analysis.stats.compare import BaselineRatio
from cadge_analysis.stats.costs import COSTS, Cost, PerOperation
from cadge_analysis.stats.floors import Floor
from cadge_analysis.stats.intervals import Estimate, Tail
from cadge_results import PatternFile
from cadge_results.formats.plan import Plan
from cadge_results.plugins.catalogue import in_order
from cadge_results.plugins.parameter import Quantity

say = partial(messages.say, "cells")

NS_TO_US = 1 / units.NS_PER_US
SYMBOL_BY = "\u00f7"

# ---- what a row is of ----


def _point() -> Entry:
    fields: tuple[Field[CellRow], ...] = (
        Field("point_id", lambda row: row.cell.point_id),
        *subject_fields(lambda row: row.cell.series, lambda row: row.cell, lambda row: row.cell.case),
        Field("hosts", lambda row: row.hosts),
        Field("pattern", lambda row: row.cell.case.pattern),
    )
    return Entry("point", fields)


def _parameters(files: Sequence[PatternFile], others: Iterable[Entry]) -> Entry:
    """Return the parameters of some patterns; `others` are all other entries."""
    fixed = (CAMPAIGN_ID, *(field.column() for entry in others for field in entry.fields))
    columns = beside(fixed, parameters_of(files))
    return Entry("parameters", parameter_fields(columns, lambda row: row.cell.case.workload))


def _state() -> Iterator[Entry]:
    yield unseen(
        ("state", lambda row: row.cell.state),
        ("reason", lambda row: "; ".join(trouble.reason for trouble in row.cell.troubles)),
        ("attempts_planned", lambda row: row.cell.planned),
        ("attempts_valid", lambda row: len(row.cell.samples)),
        ("coverage", lambda row: row.numbers.central.coverage if row.numbers else None),
    )


# ---- what was measured ----


def _quantity(name: str, quantity: Quantity, main: str) -> Iterator[Entry]:
    """Yield what one quantity gives; tails and pooled rates are of main quantities alone.

    main: that of the one pattern whose tables are asked for; "" for an export, which has those of all patterns.
    """
    is_beside = main not in ("", name)

    def is_main(row: CellRow) -> bool:
        return row.numbers is not None and row.cell.case.file.main == name

    def found(row: CellRow) -> Estimate | None:
        if row.numbers is None:
            return None
        return row.numbers.central if is_main(row) else row.numbers.others.get(name)

    def of_main(which: str) -> Callable[[CellRow], Tail | None]:
        return lambda row: getattr(row.numbers, which) if is_main(row) else None

    def show(row: CellRow) -> Value:
        own = row.cell.case.file.quantities[name]
        if is_main(row):
            return shown.marked_value(shown.central_value(row.measured), row.cell, row.verdicts)
        reason = own.absent or say("shown.not_of_this_operation")
        return shown.estimate_value(found(row), scale=words.shown(own).scale, reason=reason)

    def heads(file: PatternFile, _: str) -> tuple[str, str]:
        own = file.quantities[name]
        return own.heading, words.shown(own).unit

    def tail_heads(head: str) -> Heads:
        return lambda file, _: (head, words.shown(file.quantities[name]).unit)

    is_timed, unit = quantity.kind == "histogram", words.slug(quantity)
    yield Entry(
        name if is_beside else "p50",
        bounded(f"{name}_p50", "ns", found) if is_timed else bounded(name, unit, found),
        heads,
        show,
        is_seen=lambda *_: not (is_beside and quantity.caveat),
        group="quantities",
    )
    if is_beside:
        return
    for which, head in (("p99", "p99"), ("p999", "p99.9")) * is_timed:
        of = of_main(which)
        yield Entry(
            which,
            bounded(f"{name}_{which}", "ns", of, RANGE),
            tail_heads(head),
            lambda row, of=of: shown.tail_value(of(row)),  # type: ignore[misc]
        )
    if quantity.kind == "rate":
        yield Entry(
            "pooled",
            (Field(f"{name}_pooled_{unit}", lambda row: row.measured.pooled if is_main(row) else None),),
            tail_heads("all launches together"),
            lambda row: shown.plain_value(row.measured.pooled, scale=words.shown(row.measured.quantity).scale),
        )


def _samples(row: CellRow) -> Value:
    return shown.samples_value(row.measured, row.cell.case.file.words.operations.partition("/")[0])


def _measured(files: Sequence[PatternFile], main: str = "") -> Iterator[Entry]:
    yield Entry("samples", (Field("samples", of_numbers("samples")),), headed("samples"), _samples)
    yield unseen(("operations", of_numbers("operations")))
    for name, quantity in {name: one for file in files for name, one in file.quantities.items()}.items():
        yield from _quantity(name, quantity, main)
    yield Entry(
        "apart",
        bounded("ends_apart", "", lambda row: row.numbers.apart if row.numbers else None),
        headed(f"highest {SYMBOL_BY} lowest end"),
        lambda row: shown.estimate_value(row.measured.apart, scale=1.0, reason="one end measured"),
        is_seen=lambda _, rows, __: any(row.numbers.apart for row in rows),
    )
    yield Entry(
        "rate",
        (Field("operations_per_s", of_numbers("operations_s")),),
        lambda file, _: (file.words.operations, ""),
        lambda row: shown.plain_value(row.measured.operations_s),
    )


# ---- what it is held against ----


def _floor(of: Callable[[Floor], Scalar]) -> Callable[[CellRow], Scalar]:
    return lambda row: of(row.row.floor) if row.row is not None and row.row.floor is not None else None


def _floors() -> Iterator[Entry]:
    def show(row: CellRow) -> Value:
        floor = row.compared.floor
        text = words.floor_name(floor, row.data) if floor else units.MISSING
        return Value(text=text, reason=row.compared.reason or "")

    def title(row: CellRow) -> Scalar:
        floor = row.row.floor if row.row is not None else None
        return words.floor_name(floor, row.data) if floor is not None else None

    of_floor: tuple[Field[CellRow], ...] = (
        Field("floor", _floor(lambda one: one.program.cell.series.label)),
        Field("floor_point_id", _floor(lambda one: one.program.cell.point_id)),
        Field("floor_size_bytes", _floor(lambda one: one.program.cell.case.size)),
        Field("floor_composed", _floor(lambda one: one.composed)),
        Field("floor_title", title),
        Field("floor_without", lambda row: row.row.reason if row.row else None),
    )
    yield Entry("floor", of_floor, headed("its floor"), show, is_number=False)

    def references(row: CellRow) -> Scalar:
        return "; ".join(one.program.cell.series.label for one in row.row.references) if row.row else None

    def values(row: CellRow) -> Scalar:
        return "; ".join(units.raw(one.central.value) for one in row.row.references) if row.row else None

    yield Entry(
        "references",
        (Field("references", references), Field("references_values", values)),
        headed("references"),
        lambda row: shown.references_value(row.compared, row.data),
        is_number=False,
    )


def _by_baseline(
    key: str, name: str, head: str, of: Callable[[BaselineRatio], Estimate | None], why: Callable[[BaselineRatio], str]
) -> Entry:
    """Return a point divided by its pattern's baseline."""

    def against(row: CellRow) -> BaselineRatio | None:
        return row.row.baseline if row.row is not None else None

    def show(row: CellRow) -> Value:
        one = against(row)
        if one is None:
            return Value(text=units.MISSING, reason=say("shown.nothing_to_compare"))
        return shown.estimate_value(of(one), scale=1.0, reason=why(one))

    return Entry(
        key,
        bounded(name, "", lambda row: of(one) if (one := against(row)) is not None else None),
        lambda file, _: (f"{head}{SYMBOL_BY} {words.baseline(file)}", ""),
        show,
        is_seen=lambda file, _, __: key == "base" or file.main_quantity.kind == "histogram",
    )


def _ratios(files: Sequence[PatternFile]) -> Iterator[Entry]:
    if any(file.baseline for file in files):
        yield _by_baseline("base", "baseline_ratio", "", lambda one: one.central, lambda one: one.reason)
        yield _by_baseline(
            "base_p99",
            "baseline_p99_ratio",
            "p99 ",
            lambda one: one.p99,
            lambda one: shown.thin_spaces(one.reason or one.p99_reason),
        )
    if any(file.knee for file in files):
        yield Entry(
            "generator",
            (Field("generator_share", lambda row: row.share),),
            headed(words.OF_GENERATORS_LIMIT, "%"),
            lambda row: shown.share_value(row.share, row.cell.case.file.knee),
        )

    def by_floor(name: str, scale: float) -> Callable[[CellRow], Value]:
        return lambda row: shown.estimate_value(
            getattr(row.compared, name), scale=scale, reason=row.compared.reason or "",
            flag="below" if row.compared.beats_floor else "",
        )  # fmt: skip

    yield Entry(
        "ratio",
        (
            *bounded("ratio", "", lambda row: row.row.ratio if row.row else None),
            Field("below_floor", lambda row: row.row.beats_floor if row.row and row.row.floor else None),
        ),
        headed("ratio to floor"),
        by_floor("ratio", 1.0),
    )
    yield Entry(
        "above",
        bounded("above_floor", "ns", lambda row: row.row.above if row.row else None),
        lambda file, _: ("above floor", words.shown(file.main_quantity).unit),
        by_floor("above", NS_TO_US),
        is_seen=lambda file, _, __: file.main_quantity.unit == "ns",
    )


# ---- what an operation takes ----


def _cost(row: CellRow, cost: Cost) -> PerOperation | None:
    return row.numbers.costs.of.get(cost.key) if row.numbers is not None else None


def _of_side(cost: Cost, role: str) -> Field[CellRow]:
    return Field(
        f"{cost.begins}_{role}{cost.ends}",
        lambda row: found.by_role.get(role) if (found := _cost(row, cost)) is not None else None,
    )


def _together(cost: Cost) -> Field[CellRow]:
    return Field(
        f"{cost.begins}_all{cost.ends}",
        lambda row: found.all_roles if (found := _cost(row, cost)) is not None else None,
    )


def _parted(cost: Cost, roles: Iterable[str]) -> Iterator[Entry]:
    """Yield a cost with a column for each side, and one of all sides."""
    scale, unit = (NS_TO_US, "\u00b5s") if cost.unit else (1.0, "")

    def of_side(role: str) -> Callable[[CellRow], Value]:
        return lambda row: shown.role_value(_cost(row, cost), role, row.cell.case, scale=scale)

    def of_all(row: CellRow) -> Value:
        found = _cost(row, cost)
        return shown.plain_value(found.all_roles if found else None, scale=scale)

    for role in roles:
        head = headed(f"{cost.title} {role}", unit)
        yield Entry(f"{cost.key}_{role}", (_of_side(cost, role),), head, of_side(role), group=cost.key)
    yield Entry(
        f"{cost.key}_all",
        (_together(cost),),
        lambda file, _: (f"{cost.title} {'both' if len(file.roles) == 2 else 'all'}", unit),
        of_all,
        is_seen=lambda file, _, __: len(file.roles) > 1,
        group=cost.key,
    )


def _whole(cost: Cost, roles: Iterable[str]) -> Entry:
    """Return a cost with a field for each side, and one column that has all of them."""
    return Entry(
        cost.key,
        (*(_of_side(cost, role) for role in roles), _together(cost)),
        headed(cost.title),
        lambda row: shown.cost_value(_cost(row, cost), row.measured.costs.why.get(cost.key, "not recorded")),
        is_seen=lambda _, rows, __: cost.is_seen and any(cost.key in row.numbers.costs.of for row in rows),
    )


def _costs(files: Sequence[PatternFile]) -> Iterator[Entry]:
    roles = tuple(dict.fromkeys(role for file in files for role in file.roles))
    for cost in COSTS:
        yield from _parted(cost, roles) if cost.is_parted else (_whole(cost, roles),)
    lost = (Field("lost", of_numbers("lost")), Field("late", of_numbers("late")))
    yield Entry("lost", lost, headed("lost"), lambda row: shown.lost_value(row.measured))


# ---- what is said of it ----

_OF_VERDICT: tuple[tuple[str, Callable[[CellVerdict], Scalar]], ...] = (
    ("_ratio", lambda one: one.ratio.value if one.ratio else None),
    ("_ratio_low", lambda one: one.ratio.low if one.ratio else None),
    ("_ratio_high", lambda one: one.ratio.high if one.ratio else None),
    ("_pairs_disagree", lambda one: one.pairs_disagree),
    ("_bound", lambda one: one.verdict.bound),
    ("_p", lambda one: one.verdict.p),
    ("_level", lambda one: one.verdict.level),
    ("_launches", lambda one: one.verdict.launches),
    ("_early", lambda one: one.verdict.early),
    ("_two_levels", lambda one: one.verdict.two_levels),
    ("_epochs", lambda one: " ".join(f"{ratio:.4g}" for ratio in one.epochs) or None),
    ("_epochs_disagree", lambda one: one.verdict.epochs_disagree),
    ("_withheld", lambda one: one.verdict.withheld),
    ("_more", lambda one: one.verdict.more),
)


def _judged(
    name: str, of: Callable[[CellRow], CellVerdict | None], without: Callable[[CellRow], Scalar]
) -> tuple[Field[CellRow], ...]:
    """Return the fields of a verdict."""

    def part(get: Callable[[CellVerdict], Scalar]) -> Callable[[CellRow], Scalar]:
        return lambda row: get(one) if (one := of(row)) is not None else None

    return (
        Field(name, part(lambda one: str(one.verdict.says))),
        Field(f"{name}_against", lambda row: row.verdicts.baseline if of(row) is not None else None),
        *(Field(f"{name}{end}", part(get)) for end, get in _OF_VERDICT),
        Field(f"{name}_without", without),
    )


def _verdicts() -> Iterator[Entry]:
    yield Entry(
        "verdict",
        _judged("verdict", lambda row: row.verdict, lambda row: row.without),
        lambda _, against: (f"beside {against}", ""),
        lambda row: shown.verdict_value(row.verdict, row.compared, row.verdicts),
        is_seen=lambda _, __, against: against is not None,
    )
    yield Entry(
        "p99_verdict",
        _judged("p99_verdict", lambda row: row.tail_verdict, lambda row: row.tail_without),
        lambda _, against: (f"p99 beside {against}", ""),
        lambda row: shown.tail_verdict_value(row.compared, row.verdicts),
        is_seen=lambda file, _, against: against is not None and file.main_quantity.kind == "histogram",
    )
    yield unseen(
        ("beside_native_low", lambda row: row.tax.ratio[0] if row.tax else None),
        ("beside_native_high", lambda row: row.tax.ratio[1] if row.tax else None),
        ("leads", lambda row: row.leads),
    )


ITSELF = tuple(f"itself{of}_{what}" for of in ("", "_p99") for what in ("ratio", "p", "launches"))
"""How a second series compares with the first one."""


def _of_itself(name: str) -> Callable[[CellRow], Scalar]:
    return lambda row: row.itself.get(name)


def _tail_without(which: str) -> Callable[[CellRow], Scalar]:
    return lambda row: tail.reason if row.numbers and (tail := getattr(row.numbers, which)) else None


def _cost_without(key: str) -> Callable[[CellRow], Scalar]:
    return lambda row: row.numbers.costs.why.get(key) if row.numbers else None


def _baseline_without(of: Callable[[BaselineRatio], str]) -> Callable[[CellRow], Scalar]:
    return lambda row: of(row.row.baseline) or None if row.row and row.row.baseline else None


def _caveats(row: CellRow) -> Scalar:
    """Return in how many launches each caveat held."""
    if row.numbers is None:
        return None
    return "; ".join(f"{name} {often}" for name, often in row.numbers.caveats.items()) or None


def _read_with_care() -> Iterator[Entry]:
    """Yield what a reader has to know of a number, and why others are absent."""

    def calls(row: CellRow) -> str:
        return shown.whose_calls(row.facts.caps, row.cell.case.file) if row.facts else ""

    def work(row: CellRow) -> str:
        return shown.work_done_by(row.facts, row.cell.case)

    def text(of: Callable[[CellRow], str]) -> Callable[[CellRow], Value]:
        return lambda row: Value(text=of(row) or units.MISSING)

    yield Entry("wait", (), headed("waits by"), lambda row: Value(text=row.cell.case.wait), is_number=False)
    yield Entry("calls", (Field("calls", lambda row: calls(row) or None),), headed("RPC"), text(calls), is_number=False)
    yield Entry(
        "work", (Field("done_by", lambda row: work(row) or None),), headed("done by"), text(work), is_number=False
    )
    of_launches: tuple[Field[CellRow], ...] = (
        Field("launches_disturbed", of_numbers("disturbed")),
        Field("few_operations", of_numbers("thin")),
        Field("caveats", _caveats),
    )
    yield Entry("launches", of_launches, headed("launches"), lambda row: shown.launches_value(row.measured))
    yield unseen(
        *((f"{which}_without", _tail_without(which)) for which in ("p99", "p999")),
        ("baseline_without", _baseline_without(lambda one: one.reason)),
        ("baseline_p99_without", _baseline_without(lambda one: one.reason or one.p99_reason)),
        *((f"{cost.key}_without", _cost_without(cost.key)) for cost in COSTS if cost.said),
    )


def entries(files: Sequence[PatternFile], *, twins: bool = False) -> Iterator[Entry]:
    """Yield all entries of some patterns in the order of an export. twins: whether something is measured twice."""
    first = _point()
    rest = (
        *_state(),
        *_measured(files),
        *_floors(),
        *_ratios(files),
        *_costs(files),
        *_verdicts(),
        *_read_with_care(),
        *(unseen((name, _of_itself(name))) for name in ITSELF * twins),
    )
    yield first
    yield _parameters(files, (first, *rest))
    yield from rest


def catalogue(file: PatternFile) -> dict[str, Entry]:
    """Return the entries that a report shows of one pattern, by name."""
    of = (file,)
    every = (*_measured(of, file.main), *_floors(), *_ratios(of), *_costs(of), *_verdicts(), *_read_with_care())
    return {one.name: one for one in every}


def fields_of(plan: Plan) -> tuple[Field[CellRow], ...]:
    """Return the fields of a campaign: they depend on its plan alone."""
    files = [plan.patterns[key] for key in in_order(plan.patterns)]
    found = entries(files, twins=any(point.subject.twin for point in plan.points))
    return tuple(field for entry in found for field in entry.fields)
