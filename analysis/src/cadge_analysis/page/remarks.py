# SPDX-License-Identifier: BSD-3-Clause
"""Remarks on validity: everything known that limits what the numbers mean, found in the data."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from cadge_analysis import units, words
from cadge_analysis.judged import disturbed
from cadge_analysis.page import launch_remarks, modes, provenance
from cadge_analysis.page.itself import withheld
from cadge_analysis.page.viewmodel import Remark
from cadge_analysis.selftest.pinned import warning, withholds
from cadge_analysis.stats.compare import OPERATIONS_MIN, Comparison, Row
from cadge_analysis.stats.hindrance import HINDERED_SHARE
from cadge_analysis.stats.intervals import TARGET_COVERAGE, rank_coverage
from cadge_analysis.stats.knee import does_nothing, loads
from cadge_analysis.stats.load import Dataset, changed_libraries
from cadge_analysis.stats.twin import TwinRate
from cadge_results.pattern import Quantity

_STEAL_SHARE = 0.01
_UNSTEADY_SHARE = 0.1
_HINDERED_SHARE = 0.1
_FEW_SHARE = 0.5
_COARSE_SHARE = 0.02
_NAMED = 3
_WORST = 2
"""So many sizes are named where a warning says how much it touches."""


def _surroundings(data: Dataset) -> Iterator[Remark]:
    """Say what of the hosts and the network between them is virtual: one remark of both."""
    machine, veth = words.virtualisation(data), words.on_veth(data)
    said = []
    if machine:
        said.append(
            f"The hosts say: {', '.join(machine)}. Ratios between layers hold here; absolute times do not carry over "
            "to real hardware, where no other guest shares it and no hypervisor takes a CPU away."
        )
    if veth:
        said.append(
            "The hosts are namespaces of one kernel, joined by virtual interfaces: \u201cbetween hosts\u201d has no "
            "wire and no network card in it, and its floors include that kernel's work."
        )
    title = "Measured on a virtual machine" if machine else "The network is emulated"
    if machine and veth:
        title = "Measured on a virtual machine, over an emulated network"
    if said:
        yield Remark(grave=True, title=title, text=" ".join(said), size="every number", share=1.0)
    if not data.nodes:
        text = "No host's facts were stored with this campaign."
        yield Remark(grave=True, title="The hosts are unknown", text=text, size="every number", share=1.0)


def _chosen(data: Dataset) -> Iterator[Remark]:
    if data.baseline_chosen:
        yield Remark(
            grave=True,
            title="The baseline was chosen after the measurement",
            text=f"Layers are judged against {data.plan.baseline}, as whoever made this report asked, and not against "
            "what the sweep declares. Of many baselines that one may try, some show what another does not: tell "
            "readers why it is this one.",
        )


def _completeness(data: Dataset) -> Iterator[Remark]:
    every = sum(cell.planned for cell in data.planned)
    missing = sum(cell.states.get("missing", 0) for cell in data.planned)
    if data.meta.status != "finished" or missing:
        state = {"running": "is still running", "interrupted": "was interrupted"}.get(data.meta.status, "is finished")
        yield Remark(
            grave=bool(missing),
            title="The campaign is incomplete",
            text=f"The campaign {state}; {units.count_of(missing, 'planned attempt')} "
            f"{'is' if missing == 1 else 'are'} missing. "
            f"`{provenance.run_again(data)}` makes them.",
            size=_of(missing, every, "planned attempt") if missing else "",
            share=_share(missing, every),
            stops=bool(missing),
        )
    unsound = sum(cell.states.get("unsound", 0) for cell in data.planned)
    if unsound:
        yield Remark(
            grave=False,
            title="Unsound attempts were left out",
            text=f"In {units.count_of(unsound, 'attempt')} a check failed; none of their numbers is used. "
            "The reasons stand under \u201cPoints without a result\u201d.",
            size=_of(unsound, every, "planned attempt"),
            share=_share(unsound, every),
        )


_AGAIN = {
    "failed": "{launches} because attempts had failed or were unsound",
    "damaged": "{launches} because the stored record was damaged",
    "hindered": "{launches} because other work on the machine disturbed attempts",
    "alone": "{launches} because native tools had not run after them, or had given nothing",
}


def _made_again(data: Dataset) -> Iterator[Remark]:
    """Say how many launches were made a second time, and why: whoever chooses what is made again chooses results."""
    if not data.made_again:
        return
    parts = [
        _AGAIN[why].format(launches=units.count_of(len(names), "launch", "launches"))
        for why, names in sorted(data.made_again.items(), reverse=True)
    ]
    every = frozenset().union(*data.made_again.values())
    yield Remark(
        grave=False,
        title=f"{units.count_of(len(every), 'launch was', 'launches were')} repeated",
        text=f"{', '.join(parts)}. Each counts once, as it was made last; the earlier records lie in the campaign's "
        "folder \u201caside\u201d and count nowhere.",
        size=_share_of(len(every), len(data.records), "launch", "launches"),
        share=_share(len(every), len(data.records)),
    )


def _floors(rows: tuple[Row, ...], data: Dataset) -> Iterator[Remark]:
    beaten = [row for row in rows if row.beats_floor and row.cell.case.does_rank]
    if beaten:
        names = []
        for row in beaten[:_NAMED]:
            case = row.cell.case
            floor = words.floor_name(row.floor, data) if row.floor else ""
            ratio = units.times(row.ratio.value) if row.ratio else ""
            names.append(
                f"{words.isolated(row.cell.series.label)}, {words.pattern(case)} of {words.workload(case)} "
                f"{words.PLACES[case.place]}, {words.WAITS[case.wait]}: {ratio} of {floor}"
            )
        rest = f"; and {len(beaten) - _NAMED} more" if len(beaten) > _NAMED else ""
        yield Remark(
            grave=True,
            title=f"{units.count_of(len(beaten), 'measurement')} better than the floor",
            text="Either the floor is weak or the measurement is wrong; do not rely on these ratios, each of which "
            "stands up to all others of its pattern, place and wait mode: "
            f"{'; '.join(names)}{rest}.",
            size=_share_of(len(beaten), len(rows), "number"),
            share=_share(len(beaten), len(rows)),
            stops=True,
        )
    without = sum(row.ratio is None for row in rows)
    if without:
        reasons = sorted({row.reason for row in rows if row.reason})
        yield Remark(
            grave=False,
            title=f"{units.count_of(without, 'number')} without a floor",
            text=f"They show no ratio{': ' + reasons[0] if len(reasons) == 1 else '; why, by what was measured:'}",
            items=tuple(reasons) if len(reasons) > 1 else (),
            size=_share_of(without, len(rows), "number"),
            share=_share(without, len(rows)),
        )


def _replication(data: Dataset, rows: tuple[Row, ...]) -> Iterator[Remark]:
    few = [row for row in rows if row.numbers.central.coverage < TARGET_COVERAGE]
    if few:
        worst = min(row.numbers.central.launches for row in few)
        text = (
            "one launch has no interval"
            if worst == 1
            else f"{worst} launches: {units.percent(rank_coverage(worst, 1))}"
        )
        yield Remark(
            grave=len(few) > _FEW_SHARE * len(rows),
            title=f"{units.count_of(len(few), 'number')} from too few launches for an interval of 95\u202f%",
            text=f"Six valid launches are needed for one; these intervals cover less ({text} at worst), as each row "
            "says. Differences between layers may then be those of two moments, and not of two layers.",
            size=_share_of(len(few), len(rows), "number"),
            share=_share(len(few), len(rows)),
        )
    yield from _warmup(rows)
    if data.meta.tool.dirty:
        yield Remark(
            grave=False,
            title="The tool had changes that were not committed",
            text=f"Revision {data.meta.tool.revision} alone does not describe what measured.",
        )


def _by_size(rows: Iterable[Row]) -> list[Row]:
    return sorted(rows, key=lambda row: row.cell.case.size)


def _warmup(rows: tuple[Row, ...]) -> Iterator[Remark]:
    """Say in how many attempts times had not become steady, and where that is many."""
    attempts: Counter[str] = Counter()
    unsteady: Counter[str] = Counter()
    along, group = _parted(rows)
    for row in _by_size(rows):
        attempts[group(row)] += row.numbers.central.launches
        unsteady[group(row)] += row.numbers.unsteady
    if not unsteady.total():
        return
    share = {name: unsteady[name] / often for name, often in attempts.items()}
    often = [f"{name} {units.percent(one)}" for name, one in share.items() if one > _UNSTEADY_SHARE]
    where = f" By {along}: {', '.join(often)}." if often else ""
    worst = sorted((name for name in share if share[name] > _UNSTEADY_SHARE), key=lambda name: -share[name])
    of_all = _share(unsteady.total(), attempts.total())
    yield Remark(
        grave=bool(often),
        title="Warm-up cut short",
        text=f"In {units.grouped(unsteady.total())} of {units.grouped(attempts.total())} attempts warm-up ended by its "
        f"time limit, not because times had become steady.{where}",
        size="; ".join(
            [
                f"{units.percent(of_all, 0)} of attempts did not settle",
                *_worst({name: share[name] for name in worst}),
            ]
        ),
        share=of_all,
    )


def _worst(shares: Mapping[str, float]) -> Iterator[str]:
    """Yield the first ones of shares in descending order; those that are alike together, so that none is left out."""
    alike: dict[str, list[str]] = defaultdict(list)
    for name, share in shares.items():
        alike[units.percent(share)].append(name)
    named = 0
    for names in alike.values():
        if named >= _WORST:
            return
        named += len(names)
        few = names if len(names) <= _NAMED else [*names[:_NAMED], f"{units.grouped(len(names) - _NAMED)} more"]
        yield f"{words.listing(few)}: {units.percent(shares[names[0]], 0)}"


def _few_operations(rows: tuple[Row, ...]) -> Iterator[Remark]:
    """Name where a launch's own median has few operations behind it."""
    few = [row for row in rows if row.numbers.thin]
    if not few:
        return
    _, group = _parted(rows)
    sizes = dict.fromkeys(group(row) for row in _by_size(few))
    yield Remark(
        grave=False,
        title=f"{units.count_of(len(few), 'number')} on few operations",
        text=f"In some launch fewer than {OPERATIONS_MIN} operations were measured: {', '.join(sizes)}. These numbers "
        "say so; longer points (`duration` of the sweep) mend it.",
        size=_share_of(len(few), len(rows), "number"),
        share=_share(len(few), len(rows)),
    )


def _coarse(data: Dataset, rows: tuple[Row, ...]) -> Iterator[Remark]:
    """Say how many rows are so short that the clock's step is a part of them."""
    step_ns = data.clock_step_ns
    timed = [row for row in rows if row.cell.case.file.main_quantity.kind == "histogram"]
    near = [row for row in timed if 0 < row.numbers.central.value * _COARSE_SHARE < step_ns]
    if near:
        shortest = min(row.numbers.central.value for row in near)
        yield Remark(
            grave=False,
            title=f"{units.count_of(len(near), 'number')} near the clock's step",
            text=f"The clock counts in steps of {units.sig3(step_ns)} ns: the shortest of these medians, "
            f"{units.us(shortest)} \u00b5s, is known to {units.percent(step_ns / shortest, 0)} at best, however "
            "narrow its interval is.",
            size=_share_of(len(near), len(rows), "number"),
            share=_share(len(near), len(rows)),
        )


def _parted(rows: Sequence[Row]) -> tuple[str, Callable[[Row], str]]:
    """Return by what rows are told apart, and how: where their axes differ, 4 is of one and not of another."""
    if len({_along([row]) for row in rows}) == 1:
        return _along(rows), lambda row: words.size(row.cell.case)
    return "pattern", lambda row: row.cell.case.file.title


def _layer(row: Row) -> str:
    return words.isolated(row.cell.series.label)


def _tally(rows: Iterable[Row], count: Callable[[Row], int], group: Callable[[Row], str]) -> tuple[int, int, str]:
    """Return of how many attempts something holds, of how many, and by group: "sockets-tcp 3 of 18"."""
    attempts: Counter[str] = Counter()
    found: Counter[str] = Counter()
    for row in rows:
        attempts[group(row)] += row.numbers.central.launches
        found[group(row)] += count(row)
    listed = ", ".join(
        f"{name} {units.grouped(often)} of {units.grouped(attempts[name])}" for name, often in found.items() if often
    )
    return found.total(), attempts.total(), listed


def _hindered(data: Dataset, rows: tuple[Row, ...]) -> Iterator[Remark]:
    """Say by layer how many attempts something else on the machine hindered, and what follows where it is too many."""
    hindered, attempts, listed = _tally(sorted(rows, key=_layer), lambda row: row.numbers.hindered, _layer)
    if not hindered:
        return
    share = hindered / attempts
    too_many = bool(disturbed(data))
    follows = (
        " Verdicts are withheld: measure again while nothing else runs, or repeat those launches with "
        f"`{provenance.run_again(data, '--hindered')}`."
    )
    size = _share_of(hindered, attempts, "attempt")
    yield Remark(
        grave=too_many or share > _HINDERED_SHARE,
        title=f"{units.count_of(hindered, 'attempt')} disturbed",
        text=f"For more than {units.percent(HINDERED_SHARE)} of its time an endpoint was ready to run and had no "
        f"processor, or the host took it away: {listed}. None of them is dropped.{follows if too_many else ''}",
        size=f"{size}; all verdicts are withheld" if too_many else size,
        share=share,
        stops=too_many,
    )


def _caveats(rows: tuple[Row, ...]) -> Iterator[Remark]:
    """Say of how many attempts a pattern's own caveat holds, by size and by layer."""
    patterns = {row.cell.case.pattern: row.cell.case.file for row in rows}
    for pattern, file in patterns.items():
        members = [row for row in rows if row.cell.case.pattern == pattern]
        for name, quantity in file.quantities.items():
            if quantity.caveat:
                yield from _caveat(members, name, quantity)


def _caveat(rows: Sequence[Row], name: str, quantity: Quantity) -> Iterator[Remark]:
    def count(row: Row) -> int:
        return row.numbers.caveats.get(name, 0)

    often, attempts, by_size = _tally(_by_size(rows), count, lambda row: words.size(row.cell.case))
    _, _, by_layer = _tally(sorted(rows, key=_layer), count, _layer)
    if often:
        yield Remark(
            grave=_share(often, attempts) > _FEW_SHARE,
            title=f"{units.count_of(often, 'attempt')} {quantity.title}",
            text=f"{quantity.caveat} By {_along(rows)}: {by_size}; by layer: {by_layer}. A number "
            "of which it holds in more than half of its launches says so; none is dropped.",
            size=f"{_share_of(often, attempts, 'attempt')} of {rows[0].cell.case.file.title}",
            share=_share(often, attempts),
        )


def _generator(comparison: Comparison) -> Iterator[Remark]:
    """Say what whoever makes a load can offer at most, and how many rows come near it."""
    found, rows = loads(comparison), comparison.rows
    for pattern, file in {row.cell.case.pattern: row.cell.case.file for row in rows}.items():
        rule = file.knee
        if rule is None:
            continue
        limits = [limit for (name, _), limit in found.generators.items() if name == pattern]
        if not limits:
            yield Remark(
                grave=False,
                title="The generator's limit was not measured",
                text=f"{file.title}: nothing says how near its rates come to what can be offered at most; a layer of "
                f"style {rule.generator} at place self in the same campaign would.",
            )
            continue
        near = [
            row
            for row in rows
            if found.shares.get(row.cell.point_id, 0.0) > rule.marked and not does_nothing(row, rule)
        ]
        rates = sorted(limit.limit.value for limit in limits)
        said = units.sig3(rates[0]) + (f" to {units.sig3(rates[-1])}" if len(rates) > 1 else "")
        yield Remark(
            grave=False,
            title=f"{units.count_of(len(near), 'number')} above {units.percent(rule.marked, 0)} of the generator's "
            "limit",
            text=f"{file.title}: over a layer that does nothing at most {said} a second are achieved, by what else is "
            "asked. Near that the lag may be the generator's own; rows say how near they are.",
            size=_share_of(len(near), len(rows), "number"),
            share=_share(len(near), len(rows)),
        )


def _along(rows: Sequence[Row]) -> str:
    file = rows[0].cell.case.file
    axis = file.parameters[file.axis]
    return "size" if axis.unit == "bytes" else axis.title


def _machine(data: Dataset) -> Iterator[Remark]:
    shares = [
        max((load.steal_ns or 0 for load in record.load), default=0) / record.result.wall_ns
        for record in data.records
        if record.result and record.result.wall_ns
    ]
    stolen = sum(share > _STEAL_SHARE for share in shares)
    if stolen:
        yield Remark(
            grave=False,
            title="Time was stolen by the hypervisor",
            text=f"In {units.count_of(stolen, 'launch', 'launches')} a host's processors together lost more than "
            f"1\u202f% of the wall time to it, at worst {units.percent(max(shares))}. None is dropped for it.",
            size=_of(stolen, len(data.records), "launch", "launches"),
            share=_share(stolen, len(data.records)),
        )
    samples = [sample for cell in data.planned for sample in cell.samples]
    lost = sum(sample.lost for sample in samples)
    done = sum(sample.operations for sample in samples)
    if lost:
        yield Remark(
            grave=False,
            title=f"{units.count_of(lost, 'operation')} lost",
            text="They got no answer before their deadline and are in no quantile; the tables of every size count "
            "them, in the column \u201clost\u201d.",
            size=f"{units.sig3(100 * lost / (lost + done))}{units.THIN}% of {units.grouped(lost + done)}",
            share=lost / (lost + done),
        )


def _identity(data: Dataset) -> Iterator[Remark]:
    # a path that changed is a finding, with both of its paths
    mixed = [
        f"{words.isolated(series.label)} ({words.PLACES[place]}, {words.WAITS[wait]})"
        for series, place, wait in changed_libraries(data)
    ]
    if mixed:
        yield Remark(
            grave=True,
            title="A layer's library changed during the campaign",
            text=f"Its launches loaded different libraries or files: {', '.join(mixed)}. Their numbers do not compare.",
            size=units.count_of(len({series for series, _, _ in changed_libraries(data)}), "layer"),
            share=1.0,
            stops=True,
        )


def _of_itself(rate: TwinRate | None) -> Iterator[Remark]:
    if rate is not None and (said := withheld(rate)):
        yield Remark(
            grave=True,
            title=f"A layer differs from itself{' by its p99' if rate.ending else ''}",
            text=f"{said}. Something else than the layers made differences here: look at what was disturbed, at the "
            "machine's load, and measure again.",
            size="verdicts on the p99 are withheld" if rate.ending else "all verdicts are withheld",
            share=1.0,
            stops=True,
        )


def _of_the_selftest(data: Dataset) -> Iterator[Remark]:
    title, text = warning(data.meta, data.nodes)
    if title:
        withheld_for_it = bool(withholds(data.meta, data.nodes))
        yield Remark(
            grave=True,
            title=title,
            text=text,
            size="all verdicts are withheld" if withheld_for_it else "verdicts do not rest on it",
            share=1.0,
            stops=withheld_for_it,
        )


def _said_by_others(data: Dataset) -> Iterator[Remark]:
    """Say what harness and planner said, each of them as one."""
    problems, notices = data.meta.problems, data.plan.notices
    if problems:
        one = "Problem reported by the harness"
        yield Remark(
            grave=True,
            title=one if len(problems) == 1 else f"{len(problems)} problems reported by the harness",
            text=problems[0] if len(problems) == 1 else "",
            items=tuple(problems) if len(problems) > 1 else (),
            share=1.0,
            stops=True,
        )
    if notices:
        yield Remark(
            grave=False,
            title="Note of the planner" if len(notices) == 1 else f"{len(notices)} notes of the planner",
            text=notices[0] if len(notices) == 1 else "",
            items=tuple(notices) if len(notices) > 1 else (),
        )


def _share(some: int, every: int) -> float:
    return some / every if every else 0.0


def _share_of(some: int, every: int, noun: str, plural: str | None = None) -> str:
    """Return "7.5 % of 40 rows", beside a title that says how many they are."""
    share = units.percent(_share(some, every), 0 if some >= every else 1)
    return f"{share} of {units.count_of(every, noun, plural)}"


def _of(some: int, every: int, noun: str, plural: str | None = None) -> str:
    """Return "3 of 40 rows (7.5 %)"."""
    share = f" ({units.percent(_share(some, every), 0 if some >= every else 1)})" if every else ""
    return f"{units.grouped(some)} of {units.count_of(every, noun, plural)}{share}"


def remarks(comparison: Comparison, *rates: TwinRate | None) -> tuple[Remark, ...]:
    """Return every remark, grave ones first, each kind in the order of this file. rates: A against A, by measures."""
    data = comparison.data
    found = [
        *_surroundings(data),
        *_chosen(data),
        *_completeness(data),
        *_made_again(data),
        *_floors(comparison.rows, data),
        *_identity(data),
        *(remark for rate in rates for remark in _of_itself(rate)),
        *_of_the_selftest(data),
        *_replication(data, comparison.rows),
        *_few_operations(comparison.rows),
        *_coarse(data, comparison.rows),
        *launch_remarks.remarks(data, comparison.rows),
        *modes.remarks(data, comparison.rows),
        *_hindered(data, comparison.rows),
        *_caveats(comparison.rows),
        *_generator(comparison),
        *_machine(data),
        *_said_by_others(data),
    ]
    return tuple(sorted(found, key=lambda remark: not remark.grave))


def counted(found: Sequence[Remark]) -> str:
    """Return how many there are: 3 warnings, 5 notes."""
    grave = sum(remark.grave for remark in found)
    parts = [units.count_of(grave, "warning")] * bool(grave)
    parts += [units.count_of(len(found) - grave, "note")] * (len(found) > grave)
    return ", ".join(parts)
