# SPDX-License-Identifier: BSD-3-Clause
"""Remarks on validity: everything known that limits what the numbers mean, found in the data."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from cadge_analysis import messages, units, words
from cadge_analysis.blocks.model import Remark
from cadge_analysis.judged import disturbed
from cadge_analysis.page.parts import launch_remarks, modes, provenance
from cadge_analysis.page.parts.itself import withheld
from cadge_analysis.selftest.pinned import warning, withholds
from cadge_analysis.stats.compare import Comparison, Row
from cadge_analysis.stats.disturbance import DISTURBED_SHARE
from cadge_analysis.stats.intervals import TARGET_COVERAGE, rank_coverage
from cadge_analysis.stats.knee import Loads, does_nothing
from cadge_analysis.stats.launch_facts import changed_libraries
from cadge_analysis.stats.load import Dataset
from cadge_analysis.stats.numbers import MANY_ATTEMPTS, OPERATIONS_MIN
from cadge_analysis.stats.twin import TwinRate
from cadge_results.plugins.parameter import Quantity

_TAKEN_SHARE = 0.01
_FEW_SHARE = 0.5
_COARSE_SHARE = 0.02
_NAMED = 3
_BBR = "congestion control bbr"
_WORST = 2
"""So many sizes are named where a warning says how much it touches."""


def say(key: str, /, **values: object) -> str:
    """Return a sentence of this module's catalogue."""
    return messages.say("remarks", key, **values)


def remark(  # says: title, text, size
    key: str,
    /,
    *,
    serious: bool = False,
    stops: bool = False,
    some: int | None = None,
    every: int = 0,
    share: float = 0.0,
    size: str | None = None,
    text: str | None = None,
    items: tuple[str, ...] = (),
    **values: object,
) -> Remark:
    """Return a remark whose title, text and size are the catalogue's.

    It touches `some` of `every`, which the sentences call n, every and part; or a share of all.
    """
    values = {"every": every, **values}
    if some is not None:
        share = some / every if every else 0.0
        values = {"n": some, "part": units.percent(share, 0 if some >= every else 1), **values}
        size = say(f"{key}.size", **values) if size is None else size
    return Remark(
        serious=serious,
        title=say(f"{key}.title", **values),
        text=say(f"{key}.text", **values) if text is None else text,
        size=size or "",
        share=share,
        stops=stops,
        items=items,
        key=key,
    )


def _surroundings(data: Dataset) -> Iterator[Remark]:
    """Say what of the hosts and the network between them is virtual: one remark of both."""
    machine = words.virtualisation(data)
    veth = words.on_veth(data) and any(cell.case.place == "between" for cell in data.cells)
    said = [
        *([say("virtual.machine", says=machine)] if machine else []),
        *([say("virtual.network")] if veth else []),
    ]
    if said:
        which = "both" if machine and veth else "machine" if machine else "network"
        size = {"both": "", "machine": say("virtual.size"), "network": say("virtual.between")}[which]
        title = say(f"virtual.titles.{which}")
        yield Remark(serious=True, title=title, text=" ".join(said), size=size, share=1.0)
    if not data.nodes:
        yield remark("unknown_hosts", serious=True, size=say("unknown_hosts.size"), share=1.0)


def _paced(data: Dataset) -> Iterator[Remark]:
    """Say that the kernel paces TCP between hosts, where a layer's path says so."""
    layers = {
        record.launch.subject.layer
        for record in data.records
        if record.launch.place == "between" and record.result is not None
        if any(_BBR in path.used for path in record.result.path)
    }
    if layers:
        yield remark("paced", layers=sorted(layers), layer=min(layers))


def _chosen(data: Dataset) -> Iterator[Remark]:
    if data.baseline_chosen:
        yield remark("chosen_baseline", serious=True, baseline=data.plan.baseline)


def opened_again(data: Dataset, file: str) -> Remark:
    """Return what a page that was made of a report's embedded cells says of them. file: that report's name."""
    against = f"against {data.plan.baseline}" if data.plan.baseline else say("opened_again.no_baseline")
    chosen = say("opened_again.baseline_chosen") if data.baseline_chosen else ""
    return remark("opened_again", serious=True, size="", share=1, file=file, against=against, chosen=chosen)


def _completeness(data: Dataset) -> Iterator[Remark]:
    every = sum(cell.planned for cell in data.planned)
    missing = sum(cell.states.get("missing", 0) for cell in data.planned)
    if data.meta.status != "finished" or missing:
        status = data.meta.status if data.meta.status in ("running", "interrupted") else "finished"
        yield remark(
            "incomplete",
            serious=bool(missing),
            stops=bool(missing),
            some=missing,
            every=every,
            missing=missing,
            size=None if missing else "",
            state=say(f"incomplete.states.{status}"),
            command=provenance.run_again(data),
        )
    unsound = sum(cell.states.get("unsound", 0) for cell in data.planned)
    if unsound:
        yield remark("unsound", some=unsound, every=every, unsound=unsound)


def _made_again(data: Dataset) -> Iterator[Remark]:
    """Say how many launches were made a second time, and why: whoever chooses what is made again chooses results."""
    if not data.made_again:
        return
    reasons = [
        say(f"repeated.reasons.{why}", n=len(names)) for why, names in sorted(data.made_again.items(), reverse=True)
    ]
    every = frozenset().union(*data.made_again.values())
    yield remark("repeated", some=len(every), every=len(data.records), reasons=reasons)


def _floors(rows: tuple[Row, ...], data: Dataset) -> Iterator[Remark]:
    beaten = [row for row in rows if row.beats_floor and row.cell.case.does_rank]
    if beaten:
        named = []
        for row in beaten[:_NAMED]:
            case = row.cell.case
            floor = words.floor_name(row.floor, data) if row.floor else ""
            ratio = units.times(row.ratio.value) if row.ratio else ""
            named.append(
                say(
                    "better_than_floor.one",
                    layer=_layer(row),
                    pattern=words.pattern(case),
                    workload=words.workload(case),
                    place=words.PLACES[case.place],
                    wait=words.WAITS[case.wait],
                    ratio=ratio,
                    floor=floor,
                )
            )
        rest = say("better_than_floor.rest", n=len(beaten) - _NAMED) if len(beaten) > _NAMED else ""
        yield remark(
            "better_than_floor", serious=True, stops=True, some=len(beaten), every=len(rows), named=named, rest=rest
        )
    without = sum(row.ratio is None for row in rows)
    if without:
        reasons = sorted({row.reason for row in rows if row.reason})
        text = say("without_floor.text", reason=reasons[0]) if len(reasons) == 1 else say("without_floor.several")
        items = tuple(reasons) if len(reasons) > 1 else ()
        yield remark("without_floor", some=without, every=len(rows), text=text, items=items)


def _replication(data: Dataset, rows: tuple[Row, ...]) -> Iterator[Remark]:
    few = [row for row in rows if row.numbers.central.coverage < TARGET_COVERAGE]
    if few:
        worst = min(row.numbers.central.launches for row in few)
        said = (
            say("few_launches.none")
            if worst == 1
            else say("few_launches.some", n=worst, coverage=rank_coverage(worst, 1))
        )
        yield remark(
            "few_launches", serious=len(few) > _FEW_SHARE * len(rows), some=len(few), every=len(rows), worst=said
        )
    yield from _warmup(rows)
    if data.meta.tool.dirty:
        yield remark("uncommitted", revision=data.meta.tool.revision)


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
    often = [say("warmup.often", name=name, share=one) for name, one in share.items() if one > MANY_ATTEMPTS]
    where = say("warmup.where", along=along, often=often) if often else ""
    worst = sorted((name for name in share if share[name] > MANY_ATTEMPTS), key=lambda name: -share[name])
    of_all = _share(unsteady.total(), attempts.total())
    size = "; ".join([say("warmup.size", share=of_all), *_worst({name: share[name] for name in worst})])
    yield remark(
        "warmup",
        serious=bool(often),
        share=of_all,
        size=size,
        unsteady=unsteady.total(),
        every=attempts.total(),
        where=where,
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
        few = names if len(names) <= _NAMED else [*names[:_NAMED], say("warmup.more", n=len(names) - _NAMED)]
        yield say("warmup.worst", names=few, share=shares[names[0]])


def _few_operations(rows: tuple[Row, ...]) -> Iterator[Remark]:
    """Name where a launch's own median has few operations behind it."""
    few = [row for row in rows if row.numbers.thin]
    if not few:
        return
    _, group = _parted(rows)
    sizes = dict.fromkeys(group(row) for row in _by_size(few))
    yield remark("few_operations", some=len(few), every=len(rows), least=OPERATIONS_MIN, sizes=list(sizes))


def _coarse(data: Dataset, rows: tuple[Row, ...]) -> Iterator[Remark]:
    """Say how many rows are so short that the clock's step is a part of them."""
    step_ns = data.clock_step_ns
    timed = [row for row in rows if row.cell.case.file.main_quantity.kind == "histogram"]
    near = [row for row in timed if 0 < row.numbers.central.value * _COARSE_SHARE < step_ns]
    if near:
        shortest = min(row.numbers.central.value for row in near)
        yield remark(
            "coarse",
            some=len(near),
            every=len(rows),
            step=step_ns,
            shortest=units.us(shortest),
            known=step_ns / shortest,
        )


def _parted(rows: Sequence[Row]) -> tuple[str, Callable[[Row], str]]:
    """Return by what rows are separated, and how: where their axes differ, 4 is of one and not of another."""
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
        say("disturbed.tally", name=name, often=often, every=attempts[name]) for name, often in found.items() if often
    )
    return found.total(), attempts.total(), listed


def _disturbed(data: Dataset, rows: tuple[Row, ...]) -> Iterator[Remark]:
    """Say by layer how many attempts other work on the machine disturbed, and what follows where it is too many."""
    often, attempts, listed = _tally(sorted(rows, key=_layer), lambda row: row.numbers.disturbed, _layer)
    if not often:
        return
    too_many = bool(disturbed(data))
    part = units.percent(often / attempts, 0 if often >= attempts else 1)
    command = provenance.run_again(data, "--disturbed")
    yield remark(
        "disturbed",
        serious=too_many or often / attempts > MANY_ATTEMPTS,
        stops=too_many,
        some=often,
        every=attempts,
        size=say("disturbed.withheld", every=attempts, part=part) if too_many else None,
        limit=DISTURBED_SHARE,
        listed=listed,
        follows=" " + say("disturbed.follows", command=command) if too_many else "",
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
        yield remark(
            "caveat",
            serious=_share(often, attempts) > _FEW_SHARE,
            some=often,
            every=attempts,
            quantity=quantity.title,
            caveat=quantity.caveat,
            along=_along(rows),
            by_size=by_size,
            by_layer=by_layer,
            pattern=rows[0].cell.case.file.title,
        )


def _generator(found: Loads, rows: Sequence[Row]) -> Iterator[Remark]:
    """Say what whoever makes a load can offer at most, and how many rows come near it."""
    for pattern, file in {row.cell.case.pattern: row.cell.case.file for row in rows}.items():
        rule = file.knee
        if rule is None:
            continue
        limits = [limit for (name, _), limit in found.generators.items() if name == pattern]
        if not limits:
            yield remark("no_generator_limit", pattern=file.title, style=rule.generator)
            continue
        near = [
            row
            for row in rows
            if found.shares.get(row.cell.point_id, 0.0) > rule.marked and not does_nothing(row, rule)
        ]
        rates = sorted(limit.limit.value for limit in limits)
        low, high = rates[0], rates[-1]
        said = say("near_generator_limit.range", low=low, high=high) if len(rates) > 1 else units.sig3(low)
        yield remark(
            "near_generator_limit",
            some=len(near),
            every=len(rows),
            marked=rule.marked,
            pattern=file.title,
            rates=said,
        )


def _along(rows: Sequence[Row]) -> str:
    file = rows[0].cell.case.file
    axis = file.parameters[file.axis]
    return "size" if axis.unit == "bytes" else axis.title


def _taken(data: Dataset, what: str) -> tuple[int, float]:
    """Return from how many launches a host took too much of their time, and the largest share."""
    shares = [
        max((getattr(load, what) or 0 for load in record.load), default=0) / record.result.wall_ns
        for record in data.records
        if record.result and record.result.wall_ns
    ]
    return sum(share > _TAKEN_SHARE for share in shares), max(shares, default=0.0)


def _machine(data: Dataset) -> Iterator[Remark]:
    some, worst = _taken(data, "steal_ns")
    if some:
        yield remark("stolen", some=some, every=len(data.records), worst=worst)
    some, worst = _taken(data, "throttled_ns")
    if some:
        yield remark("throttled", serious=True, some=some, every=len(data.records), worst=worst)
    samples = [sample for cell in data.planned for sample in cell.samples]
    lost = sum(sample.lost for sample in samples)
    done = sum(sample.operations for sample in samples)
    if lost:
        share = f"{units.sig3(100 * lost / (lost + done))}{units.THIN}%"
        size = say("lost.size", share=share, every=lost + done)
        yield remark("lost", n=lost, size=size, share=lost / (lost + done))


def _identity(data: Dataset) -> Iterator[Remark]:
    # a path that changed is a finding, with both of its paths
    mixed = [
        say(
            "changed_library.one", layer=words.isolated(series.label), place=words.PLACES[place], wait=words.WAITS[wait]
        )
        for series, place, wait in changed_libraries(data)
    ]
    if mixed:
        size = say("changed_library.size", n=len({series for series, _, _ in changed_libraries(data)}))
        yield remark("changed_library", serious=True, stops=True, share=1.0, size=size, layers=mixed)


def _of_itself(rate: TwinRate | None) -> Iterator[Remark]:
    if rate is not None and (said := withheld(rate)):
        size = say("differs_by_p99.size" if rate.ending else "differs_from_itself.size")
        yield remark(
            "differs_by_p99" if rate.ending else "differs_from_itself",
            serious=True,
            stops=True,
            share=1.0,
            size=size,
            said=said,
        )


def _of_the_selftest(data: Dataset) -> Iterator[Remark]:
    title, text = warning(data.meta, data.nodes)
    if title:
        withheld_for_it = bool(withholds(data.meta, data.nodes))
        yield Remark(
            serious=True,
            title=title,
            text=text,
            size=say(f"selftest.{'withheld' if withheld_for_it else 'not_resting'}"),
            share=1.0,
            stops=withheld_for_it,
        )


def _said_by_others(data: Dataset) -> Iterator[Remark]:
    """Say what harness and planner said, each of them as one."""
    problems, notices = data.meta.problems, data.plan.notices
    if problems:
        yield Remark(
            serious=True,
            title=say("harness.one") if len(problems) == 1 else say("harness.several", n=len(problems)),
            text=problems[0] if len(problems) == 1 else "",
            items=tuple(problems) if len(problems) > 1 else (),
            share=1.0,
            stops=True,
        )
    if notices:
        yield Remark(
            serious=False,
            title=say("planner.one") if len(notices) == 1 else say("planner.several", n=len(notices)),
            text=notices[0] if len(notices) == 1 else "",
            items=tuple(notices) if len(notices) > 1 else (),
        )


def _share(some: int, every: int) -> float:
    return some / every if every else 0.0


def remarks(comparison: Comparison, offered: Loads, *rates: TwinRate | None) -> tuple[Remark, ...]:
    """Return every remark, serious ones first, each kind in the order of this file.

    offered: what the campaign says of loads; rates: A against A, by measures.
    """
    data = comparison.data
    found = [
        *_surroundings(data),
        *_paced(data),
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
        *launch_remarks.remarks(comparison),
        *modes.remarks(data, comparison.rows),
        *_disturbed(data, comparison.rows),
        *_caveats(comparison.rows),
        *_generator(offered, comparison.rows),
        *_machine(data),
        *_said_by_others(data),
    ]
    return tuple(sorted(found, key=lambda remark: not remark.serious))


def counted(found: Sequence[Remark]) -> str:
    """Return how many there are: 3 warnings, 5 notes."""
    serious = sum(remark.serious for remark in found)
    parts = [say("counted.warnings", n=serious)] * bool(serious)
    parts += [say("counted.notes", n=len(found) - serious)] * (len(found) > serious)
    return ", ".join(parts)
