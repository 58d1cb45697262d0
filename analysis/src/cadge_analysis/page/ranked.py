# SPDX-License-Identifier: BSD-3-Clause
"""The ranked panels of a campaign: which questions a first screen asks, who leads in each, and the marks of layers.

Values, intervals and ratios are those of the report's tables, but for the p99: its panels show the median over launches
of each one's own, as its verdicts do, and tables the p99 of all samples together.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from cadge_analysis import messages, units, words
from cadge_analysis.blocks.model import Key
from cadge_analysis.blocks.ranked import Bar, PanelNote, Picture, PicturedQuestion
from cadge_analysis.cells.shown import wire_bytes
from cadge_analysis.groups import by_key
from cadge_analysis.judged import disturbed, judged
from cadge_analysis.page.families import answering
from cadge_analysis.page.parts.opening import usual
from cadge_analysis.stats.beside_native import MARK, DirectPrograms
from cadge_analysis.stats.campaign_verdicts import CampaignVerdicts, LeadingGroup, groups_in_order
from cadge_analysis.stats.compare import Comparison, Row
from cadge_analysis.stats.inference import modes
from cadge_analysis.stats.inference.rounds import EPOCHS_LEAST
from cadge_analysis.stats.inference.verdict import LAUNCHES_FOR_AN_INTERVAL, Verdict
from cadge_analysis.stats.intervals import Estimate
from cadge_analysis.stats.launch_facts import LaunchFacts, launch_facts
from cadge_analysis.stats.load import Case, Cell, Dataset, Series
from cadge_analysis.stats.measures import TAIL, p99_of
from cadge_analysis.stats.numbers import MANY_ATTEMPTS
from cadge_results import PatternFile
from cadge_results.plugins.parameter import Quantity

say = partial(messages.say, "ranked")

NAMED_MOST = 3
"""So many members of a tie are named in a headline."""
REFUSED, TRIED_IN_VAIN = "refused", ("unsound", "failed", "missing")
"""States of cells without a number."""
EMULATED, LEVELS = "e", "\u2225"
"""Marks of a row, beside MARK of a tax and the bytes on the wire."""
DIRECT = "\u25cb"
RATIO_INTERVAL = f"{units.TIMES} ["


# ---- which questions ----


def first_screen(patterns: Mapping[str, PatternFile]) -> list[str]:
    """Return whose answers stand first: those of rank 0, and of the others where none of rank 0 says how low, or high.

    What should be low goes before what should be high.
    """
    firm = {file.main_quantity.better for file in patterns.values() if file.first_screen.rank == 0}
    chosen = [
        name for name, file in patterns.items() if file.first_screen.rank == 0 or file.main_quantity.better not in firm
    ]
    return sorted(chosen, key=lambda name: patterns[name].main_quantity.better == "high")


def first_questions(comparison: Comparison) -> Iterator[list[Row]]:
    """Yield the rows of each question of the first screen: pattern by pattern, by place, polling before blocking."""
    groups, patterns = _grouped(comparison)
    for wait in words.WAIT_ORDER:
        for pattern in first_screen(patterns):
            if wait not in patterns[pattern].first_screen.waits:
                continue
            for place in words.PLACE_ORDER:
                if rows := _answering(groups.get((pattern, place, wait), [])):
                    yield rows


Spot = tuple[str, str, str]


def _grouped(comparison: Comparison) -> tuple[Mapping[Spot, list[Row]], Mapping[str, PatternFile]]:
    groups: dict[Spot, list[Row]] = defaultdict(list)
    for row in comparison.rows:
        case = row.cell.case
        groups[case.pattern, case.place, case.wait].append(row)
    measured = {pattern for pattern, _, _ in groups}
    return groups, {name: file for name, file in comparison.data.patterns.items() if name in measured}


def _answering(rows: list[Row]) -> list[Row]:
    chosen = answering(rows)
    return [row for row in rows if row.cell.case == chosen]


def bare_questions(comparison: Comparison) -> Iterator[list[Row]]:
    """Yield the rows of what is exchanged as in a question of the first screen, but by another pattern.

    Those are the messages that calls are made of: they have the floor of a call.
    """
    groups, patterns = _grouped(comparison)
    leading = first_screen(patterns)
    forms = {patterns[name].floor.form for name in leading} - {None}
    wait = next((one for one in words.WAIT_ORDER if any(spot[2] == one for spot in groups)), "")
    for name, file in patterns.items():
        for place in words.PLACE_ORDER if name not in leading and file.floor.form in forms else ():
            if rows := _answering(groups.get((name, place, wait), [])):
                yield rows


# ---- panels ----


@dataclass(frozen=True, slots=True, kw_only=True)
class PanelSource:
    """What panels are made of. `keys`: looks, where there is a page; `facts`: what a layer really was."""

    comparison: Comparison
    verdicts: CampaignVerdicts
    keys: Mapping[Series, Key]
    facts: Mapping[tuple[Series, str, str], tuple[LaunchFacts, ...]]
    direct: DirectPrograms

    @classmethod
    def of(
        cls, comparison: Comparison, verdicts: CampaignVerdicts, keys: Mapping[Series, Key] | None = None
    ) -> PanelSource:
        """Return it of a campaign that was judged."""
        data = comparison.data
        return cls(
            comparison=comparison,
            verdicts=verdicts,
            keys=keys or {},
            facts=launch_facts(data),
            direct=DirectPrograms.of(data),
        )


def pictured(comparison: Comparison) -> Picture:
    """Return the first screen of a campaign."""
    if not comparison.rows:
        return Picture(questions=(), conclusion=say("conclusion.no_number"))
    return first_picture(PanelSource.of(comparison, judged(comparison)))


def first_picture(source: PanelSource) -> Picture:
    """Return the panels of the first screen."""
    found = [(rows, leading_group(rows, source.verdicts)) for rows in first_questions(source.comparison)]
    asked = [rows for rows, _ in found]
    groups = [group for _, group in found if group]
    questions = tuple(_question(source, rows, group) for rows, group in found)
    conclusion = _conclusion(source.comparison.data, source.verdicts, asked, groups)
    return Picture(questions=questions, conclusion=conclusion, notes=_notes(source, questions, asked))


def further_picture(source: PanelSource, before: Picture) -> Picture:
    """Return the panels that follow: bare messages, the p99, and what an operation takes of processors.

    before: the picture above it, whose notes are not repeated.
    """
    first = [rows for rows in first_questions(source.comparison) if rows[0].cell.case.wait == _first_wait(source)]
    bare = list(bare_questions(source.comparison))
    times = [rows for rows in first if rows[0].numbers.quantity.kind == "histogram"]
    questions = (
        *(_question(source, rows, leading_group(rows, source.verdicts)) for rows in bare),
        *(_tail_question(source, rows) for rows in times if any(_has_p99(row) for row in rows)),
        *(_cpu_question(source, rows) for rows in times if any(row.numbers.cpu_ns is not None for row in rows)),
    )
    medians = [PanelNote(text=say("notes.medians"))] if len(questions) > len(bare) else []
    known = {note.text for note in before.notes}
    found = [note for note in (*_notes(source, questions, bare), *medians) if note.text not in known]
    return Picture(questions=questions, conclusion="", notes=tuple(found))


def _first_wait(source: PanelSource) -> str:
    waits = {row.cell.case.wait for row in source.comparison.rows}
    return next((one for one in words.WAIT_ORDER if one in waits), "")


def leading_group(rows: Sequence[Row], verdicts: CampaignVerdicts) -> LeadingGroup | None:
    """Return who leads in the case of rows; None where nobody has a number."""
    group = next((found for row in rows if (found := verdicts.groups.get(row.cell.case)) is not None), None)
    return group if group is not None and group.members else None


def is_undecided(group: LeadingGroup) -> bool:
    """Tell whether all layers are in the group: nothing is decided then, however far they lie apart."""
    return len(group.members) == group.ranked > 1 and not group.alike


def nothing_decided(comparison: Comparison, verdicts: CampaignVerdicts) -> bool:
    """Tell whether a first screen asks several questions and none is decided, nor withheld."""
    found = [group for rows in first_questions(comparison) if (group := leading_group(rows, verdicts))]
    return len(found) > 1 and all(is_undecided(group) and not group.withheld for group in found)


def _question(source: PanelSource, rows: Sequence[Row], group: LeadingGroup | None) -> PicturedQuestion:
    case = rows[0].cell.case
    quantity = case.file.main_quantity
    shown = words.shown(quantity)
    speaks = group is not None and not group.withheld and len(group.members) < group.ranked
    leading = set(group.members) if group is not None and speaks else set()
    alike = set(group.members) if group is not None and group.alike and not group.withheld else set()
    bars = [_bar(source, row, shown.scale, leads=row.cell.series in leading | alike) for row in rows]
    floor = next((row.floor for row in rows if row.floor is not None), None)
    return PicturedQuestion(
        workload=_workload(case),
        place=case.place,
        wait=case.wait,
        quantity=_quantity(quantity),
        unit=shown.unit,
        better=quantity.better,
        floor=None if floor is None else floor.central.value * shown.scale,
        bars=(*_sorted(bars, quantity), *_without(source.comparison.data, case)),
        topic=_topic(case, _quantity(quantity)),
        headline=_headline(rows, group, source.verdicts),
        caution=_caution(rows),
        absent=absent(source.comparison.data, {case}),
    )


def _caution(rows: Sequence[Row]) -> str:
    """Return which warnings on attempts hold for these rows, and for how many of theirs."""
    attempts = sum(row.numbers.central.launches for row in rows)
    often = {
        "unsteady": sum(row.numbers.unsteady for row in rows),
        "disturbed": sum(row.numbers.disturbed for row in rows),
    }
    parts = [
        say(f"caution.{what}", share=some / attempts) for what, some in often.items() if some > MANY_ATTEMPTS * attempts
    ]
    return say("touched", parts=parts) if parts else ""


def absent(data: Dataset, cases: Collection[Case], states: Collection[str] = (REFUSED,)) -> str:
    """Return which layers have numbers elsewhere and in all of some cases one of some states, and why."""
    measured = defaultdict(set)
    for cell in data.cells:
        if cell.samples:
            measured[cell.series].add(cell.case.place)
    here = [cell for cell in data.cells if cell.case in cases and measured[cell.series]]
    refused = by_key(here, lambda cell: cell.series)
    layers = [
        say("absent.layer", layer=words.isolated(series.label), why=_why_absent(cells[0], measured[series]))
        for series, cells in sorted(refused.items())
        if all(cell.state in states for cell in cells)
    ]
    if len(layers) > NAMED_MOST + 1:
        layers[NAMED_MOST:] = [say("absent.more", n=len(layers) - NAMED_MOST)]
    return say("absent.here", layers=layers) if layers else ""


def _why_absent(cell: Cell, places: Collection[str]) -> str:
    code = next((one.code.lower() for one in cell.troubles), "")
    if f"absent.why.{code}" not in messages.catalogue("ranked"):
        return cell.state
    return say(f"absent.why.{code}", places=[words.PLACES[one] for one in words.PLACE_ORDER if one in places])


def _workload(case: Case) -> str:
    return f"{words.pattern(case)} of {words.workload(case)}"


def _quantity(quantity: Quantity) -> str:
    return f"median {quantity.title}" if quantity.kind == "histogram" else quantity.title


def _topic(case: Case, quantity: str) -> str:
    workload = _workload(case)
    waits = "" if case.wait == "poll" else f", {words.WAITS[case.wait]}"
    parted = ", " if "," in workload else " "
    return say(
        "topic.main", workload=workload, parted=parted, place=words.PLACES[case.place], waits=waits, quantity=quantity
    )


def _sorted(bars: Iterable[Bar], quantity: Quantity) -> list[Bar]:
    sign = 1 if quantity.better == "low" else -1
    return sorted(bars, key=lambda bar: (sign * (bar.value or 0), bar.name))


def _without(data: Dataset, case: Case) -> list[Bar]:
    """Return the layers of a case that gave no number."""
    return [
        Bar(name=cell.series.label, point_id=cell.point_id, why=cell.state)
        for cell in data.cells
        if cell.series.kind == "layer" and cell.case == case and cell.state in TRIED_IN_VAIN
    ]


def _bar(source: PanelSource, row: Row, scale: float, *, leads: bool) -> Bar:
    central = row.numbers.central
    pair = source.direct.beside(row.cell)
    direct = pair.theirs if pair is not None and pair.short and pair.says != "withheld" else None
    return replace(
        _plain_bar(source, row),
        value=central.value * scale,
        low=None if central.low is None else central.low * scale,
        high=None if central.high is None else central.high * scale,
        floor_times=row.ratio.value if row.ratio is not None else None,
        pairs_disagree=row.ratio is not None and row.ratio.pairs_disagree,
        launches=central.launches,
        leads=leads,
        direct=None if direct is None else direct * scale,
        transport=_transport(source, row),
        marks=tuple(_marks(source, row)),
    )


def _plain_bar(source: PanelSource, row: Row) -> Bar:
    series = row.cell.series
    key = source.keys.get(series)
    return Bar(
        name=series.label,
        point_id=row.cell.point_id,
        number=key.number if key else 0,
        dashed=bool(key and key.dashed),
    )


def _facts(source: PanelSource, row: Row) -> LaunchFacts | None:
    case = row.cell.case
    return next(iter(source.facts.get((row.cell.series, case.place, case.wait), ())), None)


def _transport(source: PanelSource, row: Row) -> str:
    facts = _facts(source, row)
    return facts.transport if facts is not None else ""


def _marks(source: PanelSource, row: Row) -> Iterator[str]:
    case = row.cell.case
    if row.cell.point_id in source.verdicts.taxes:
        yield MARK
    facts = _facts(source, row)
    if facts is not None and case.file.calls and not case.file.calls_are_native(facts.caps):
        yield EMULATED
    if facts is not None and (carried := wire_bytes(facts, case.file, case.workload)) is not None:
        yield units.size(carried)
    if modes.of_launches(row.numbers.by_round) is not None:
        yield LEVELS


def _has_p99(row: Row) -> bool:
    return not isinstance(p99_of(row.numbers), str)


def _tail_question(source: PanelSource, rows: Sequence[Row]) -> PicturedQuestion:
    case = rows[0].cell.case
    quantity = case.file.main_quantity
    shown = words.shown(quantity)
    tails = source.verdicts.tails
    families = tails.families if tails is not None and not tails.withheld else ()
    groups = groups_in_order(source.comparison, families, {case}, source.verdicts.looks, TAIL).get(case, ())
    leading = groups[0] if len(groups) > 1 else ()
    bars = [_estimated(source, row, p99_of(row.numbers), shown.scale) for row in rows]
    bars = [replace(bar, leads=row.cell.series in leading) for bar, row in zip(bars, rows, strict=True)]
    floor = next((row.floor for row in rows if row.floor is not None and not row.floor.composed), None)
    limit = None if floor is None else p99_of(floor.program)
    found = _other_question(source, case, say("topic.p99", quantity=quantity.title), shown.unit, bars)
    return found if limit is None or isinstance(limit, str) else replace(found, floor=limit.value * shown.scale)


def _cpu_question(source: PanelSource, rows: Sequence[Row]) -> PicturedQuestion:
    case = rows[0].cell.case
    noun = case.file.words.operations.partition("/")[0].removesuffix("s")
    bars = [
        _estimated(source, row, found, 1 / units.NS_PER_US) for row in rows if (found := row.numbers.cpu_ns) is not None
    ]
    return _other_question(source, case, say("topic.cpu", noun=noun), "\u00b5s", bars)


def _estimated(source: PanelSource, row: Row, found: Estimate | str, scale: float) -> Bar:
    bar = _plain_bar(source, row)
    if isinstance(found, str):
        return replace(bar, why="few samples")
    low, high = (None if end is None else end * scale for end in (found.low, found.high))
    return replace(bar, value=found.value * scale, low=low, high=high, launches=found.launches)


def _other_question(source: PanelSource, case: Case, quantity: str, unit: str, bars: Sequence[Bar]) -> PicturedQuestion:
    """Return a question whose number is not the main one."""
    ordered = sorted(bars, key=lambda bar: (bar.value is None, bar.value or 0, bar.name))
    measured = [bar for bar in ordered if bar.value is not None]
    return PicturedQuestion(
        workload=_workload(case),
        place=case.place,
        wait=case.wait,
        quantity=quantity,
        unit=unit,
        better="low",
        floor=None,
        bars=tuple(ordered),
        topic=_topic(case, quantity),
        headline=_plain_headline(measured, unit, [bar for bar in measured if bar.leads]),
        absent=absent(source.comparison.data, {case}),
    )


# ---- headlines ----


def _plain_headline(measured: Sequence[Bar], unit: str, leading: Sequence[Bar]) -> str:
    texts = [f"{units.sig3(bar.value or 0)} {unit}" for bar in measured]
    if len(measured) == 1:
        return say("headline.alone", layer=words.isolated(measured[0].name), value=texts[0], floor="")
    if leading:
        value = f"{units.sig3(leading[0].value or 0)} {unit}"
        near = [bar.name for bar in leading if _overlap(bar, leading[0])]
        if len(near) == 1 < len(leading):
            layer, others = words.isolated(leading[0].name), _others([bar.name for bar in leading])
            return say("headline.ahead", layer=layer, others=others, value=value, beside="")
        return _leaders(near, value, "", alike=None)
    first, last = measured[0], measured[-1]
    return say(
        "headline.unranked",
        end=say("lowest"),
        layer=words.isolated(first.name),
        value=texts[0],
        other_end=say("highest").lower(),
        other=words.isolated(last.name),
        other_value=texts[-1],
    )


def _others(members: Sequence[str]) -> str:
    """Return who a leading group holds beside the first: a name, or how many."""
    return words.isolated(members[1]) if len(members) == 2 else say("headline.others", n=len(members) - 1)


def _leaders(names: Sequence[str], value: str, beside: str, *, alike: float | None) -> str:
    named = [words.isolated(name) for name in names]
    if len(named) == 1:
        return say("headline.leads", layer=named[0], value=value, beside=beside)
    few = named if len(named) <= NAMED_MOST + 1 else named[:NAMED_MOST]
    names = ", ".join(few)
    if len(few) < len(named):
        names = f"{names} {say('headline.more', n=len(named) - len(few))}"
    given = {"n": len(named), "names": names, "value": value, "beside": beside}
    return say("headline.tie", **given) if alike is None else say("headline.alike", delta=alike, **given)


def _headline(rows: Sequence[Row], group: LeadingGroup | None, verdicts: CampaignVerdicts) -> str:
    """Return who leads, with value, ratio to the floor and to the baseline; or why nobody does."""
    sign = -1.0 if rows[0].numbers.more_is_better else 1.0
    ordered = sorted(rows, key=lambda row: (sign * row.numbers.central.value, row.cell.series.label))
    members = [row for row in ordered if group is not None and row.cell.series in group.members]
    first = (members or ordered)[0]
    shown = words.shown(first.numbers.quantity)
    value = shown.text(first.numbers.central.value)
    layer = words.isolated(first.cell.series.label)
    floor = "" if first.ratio is None else say("headline.floor", times=units.times(first.ratio.value))
    end = say("lowest" if first.numbers.quantity.better == "low" else "highest")
    if len(rows) == 1:
        return say("headline.alone", layer=layer, value=value, floor=floor)
    if group is None and not first.cell.case.does_rank:
        last = ordered[-1]
        return say(
            "headline.unranked",
            end=end,
            layer=layer,
            value=value,
            other_end=say("highest" if end == say("lowest") else "lowest").lower(),
            other=words.isolated(last.cell.series.label),
            other_value=shown.text(last.numbers.central.value),
        )
    if group is None or group.unlike or group.withheld:
        given = {"end": end, "layer": layer, "value": value}
        if group is not None and group.unlike:
            return say("headline.unlike", **given)
        return say("headline.withheld", floor=floor, **given)
    if is_undecided(group):
        few = f"{group.launches} to " if group.launches < group.launches_most else ""
        launches = few + units.count_of(group.launches_most, "launch", "launches")
        return say(
            "headline.undecided", launches=launches, n=group.ranked, end=end, layer=layer, value=value, floor=floor
        )
    beside = f"{floor}{_faster(first, verdicts)}"
    near = [row for row in members if _overlap(row.numbers.central, first.numbers.central)]
    if len(near) == 1 < len(members) and not group.alike:
        others = _others([row.cell.series.label for row in members])
        return say("headline.ahead", layer=layer, others=others, value=value, beside=beside)
    names = [row.cell.series.label for row in (members if group.alike else near)]
    return _leaders(names, value, beside, alike=verdicts.delta if group.alike else None)


def _overlap(one: Estimate | Bar, other: Estimate | Bar) -> bool:
    """Tell whether two intervals have a point in common; true where either has none."""
    ends = (one.low, one.high, other.low, other.high)
    if any(end is None for end in ends):
        return True
    return (one.low or 0) <= (other.high or 0) and (other.low or 0) <= (one.high or 0)


def _faster(first: Row, verdicts: CampaignVerdicts) -> str:
    found = verdicts.by_point.get(first.cell.point_id)
    if found is None or found.says != Verdict.FASTER or found.ratio is None or verdicts.baseline is None:
        return ""
    value, low, high = (
        one if found.more_is_better or one is None else 1 / one
        for one in (found.ratio.value, found.ratio.low, found.ratio.high)
    )
    if not found.more_is_better:
        low, high = high, low
    times = units.times(value or 0.0)
    if low is not None and high is not None:
        times += f" {units.interval(units.sig3(low), units.sig3(high))}"
    return say("headline.faster", times=times, baseline=words.isolated(verdicts.baseline))


def _conclusion(
    data: Dataset, verdicts: CampaignVerdicts, asked: Sequence[Sequence[Row]], groups: Sequence[LeadingGroup]
) -> str:
    """Return why nothing is concluded: of a first look, where verdicts are withheld, or where no layer leads.

    Empty where one does, and where nothing was measured of what a first screen asks.
    """
    if not asked:
        return ""
    launches = max(row.numbers.central.launches for rows in asked for row in rows)
    of_each = units.count_of(launches, "launch", "launches")
    if launches < LAUNCHES_FOR_AN_INTERVAL[True]:
        busy = disturbed(data)
        more = f" {busy[0].upper()}{busy[1:]}." if busy else ""
        return say("conclusion.first_look", of_each=of_each, more=more)
    if verdicts.withheld:
        return say("conclusion.withheld", why=verdicts.withheld)
    if any(group.alike or len(group.members) < group.ranked for group in groups if not group.withheld):
        return ""
    return say("conclusion.no_leader", of_each=of_each)


# ---- what the marks of a picture mean ----


def cached_bytes(case: Case) -> int | None:
    """Return over how many bytes a rate's buffers rotate, so that a cache may hold them; None where it cannot be one.

    A pattern has `spread` where its buffers can rotate over more than the caches hold.
    """
    file, workload = case.file, case.workload
    can_spread = "spread" in file.parameters and file.parameters["spread"].unit == "bytes"
    if file.main_quantity.kind != "rate" or not can_spread or workload.values.get("spread"):
        return None
    return workload.integer(file.axis) * (1 if workload.values.get("buffers") == "same" else file.deep(workload))


def _notes(
    source: PanelSource, questions: Sequence[PicturedQuestion], asked: Sequence[Sequence[Row]]
) -> tuple[PanelNote, ...]:
    """Return what stands in a picture, each mark with what it means."""
    bars = [bar for one in questions for bar in one.bars]
    marks = {mark for bar in bars for mark in bar.marks}
    launches, coverage = usual([row for some in asked for row in some if row.numbers.central.coverage])
    epochs = source.comparison.data.plan.epochs
    found = []
    if any(bar.leads for bar in bars):
        found.append(PanelNote(drawn="shaded", text=say("notes.leads")))
    if epochs >= EPOCHS_LEAST:
        found.append(PanelNote(drawn="bar", text=say("notes.epochs", epochs=epochs)))
    elif coverage and any(bar.low is not None for bar in bars):
        found.append(PanelNote(drawn="bar", text=say("notes.interval", coverage=coverage, launches=launches)))
    if any(RATIO_INTERVAL in one.headline for one in questions):
        found.append(PanelNote(mark="[ ]", text=say("notes.brackets")))
    if any(one.floor is not None for one in questions):
        found.append(PanelNote(drawn="dashed", text=say("notes.floor")))
    if has_direct := any(bar.direct is not None for bar in bars):
        found.append(PanelNote(mark=DIRECT, text=say("notes.direct")))
    if MARK in marks:
        program = DIRECT if has_direct else say("notes.program")
        found.append(PanelNote(mark=MARK, text=say("notes.taxed", program=program)))
    if carried := next((bar.transport for bar in bars if bar.transport), ""):
        found.append(PanelNote(mark=carried, text=say("notes.transport")))
    if EMULATED in marks:
        found.append(PanelNote(mark=EMULATED, text=say("notes.emulated")))
    if sizes := [mark for bar in bars for mark in bar.marks if mark not in (MARK, EMULATED, LEVELS)]:
        found.append(PanelNote(mark=sizes[0], text=say("notes.wire")))
    if LEVELS in marks:
        found.append(PanelNote(mark=LEVELS, text=say("notes.levels")))
    if held := [size for some in asked if (size := cached_bytes(some[0].cell.case)) is not None]:
        found.append(PanelNote(text=say("notes.cached", size=units.size(held[0]))))
    if any(bar.pairs_disagree for bar in bars):
        found.append(PanelNote(mark="?", text=say("notes.doubt")))
    return tuple(found)
