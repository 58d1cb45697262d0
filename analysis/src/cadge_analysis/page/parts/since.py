# SPDX-License-Identifier: BSD-3-Clause
"""A campaign beside an earlier one, in a report: what differed in conditions, and what became slower or faster."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from math import exp, log1p

from cadge_analysis import messages, units, words
from cadge_analysis.blocks.make import lede, plain_table
from cadge_analysis.blocks.model import SERIOUS, Item, Region, Span, Table
from cadge_analysis.groups import by_key
from cadge_analysis.page.parts.findings import clipped
from cadge_analysis.page.parts.provenance import told_command
from cadge_analysis.stats.inference.sequential import ERROR
from cadge_analysis.stats.inference.verdict import Verdict
from cadge_analysis.stats.load import Dataset
from cadge_analysis.versus import change_words, drift_words
from cadge_analysis.versus.against import Change, SideComparison
from cadge_analysis.versus.conditions import merged
from cadge_analysis.versus.moved import Movement

say = partial(messages.say, "report")

LAYERS_NAMED = 3
CONDITIONS_NAMED = 3
REASONS_NAMED = 2
FIRST = ("cadge", "library", "adapter", "path", "compiler", "sweep", "hosts", "kernel", "processor")
"""Conditions that are named first where there are many, by how they begin."""
VALUE_MOST = 48
PLANNED = ("command",)
"""What differs wherever two commands do, and says nothing of the measurement by itself."""


def since(found: SideComparison, data: Dataset) -> Region:
    """Return the tables of what is said beside an earlier campaign; its sentences stand at the top of the page."""
    note = say(
        "since.note",
        first=found.first,
        error=ERROR,
        margin=found.margin,
        command=told_command(data, "compare", found.first, found.second),
    )
    tables = filter(None, (of(found) for of in (_conditions, _drift, _machine, _changes, _left)))
    return Region(id="since", title=f"Since campaign {found.first}", blocks=(lede(note), *tables))


def findings_of(found: SideComparison) -> tuple[Item, ...]:
    """Return the sentences of the first screen: conditions, what became of the layers, and the machine itself."""
    return tuple(_findings(found))


def machine_tables(found: SideComparison) -> tuple[Table, ...]:
    """Return what the machine did between two campaigns; nothing of one campaign."""
    return tuple(filter(None, (_drift(found), _machine(found))))


def _findings(found: SideComparison) -> Iterator[Item]:
    yield from _of_conditions(found)
    slower, faster = (
        [change for change in found.changes if change.judged.verdict is verdict]
        for verdict in (Verdict.SLOWER, Verdict.FASTER)
    )
    yield from _together(found)
    yield _regression(found, slower, faster)
    yield from (_of_drift(found) if found.drift else _of_machine(found))
    if found.refused:
        reasons = sorted(found.refused.items(), key=lambda item: (-item[1], item[0]))
        said = "; ".join(f"{units.count_of(often, 'point')}: {clipped(why)}" for why, often in reasons[:REASONS_NAMED])
        more = f"; and {units.count_of(len(reasons) - REASONS_NAMED, 'further reason')}" if len(reasons) > 2 else ""
        head = Span(f"{units.count_of(sum(found.refused.values()), 'point')} cannot be compared", strong=True)
        spans = (head, Span(f" with {_first(found)}: {said}{more}."))
        yield Item(kind="refused", role="" if found.changes else SERIOUS, spans=spans)


def _of_conditions(found: SideComparison) -> Iterator[Item]:
    def order(what: str) -> int:
        return next((rank for rank, name in enumerate(FIRST) if what.startswith(name)), len(FIRST))

    told = sorted((one for one in found.conditions if one.what not in PLANNED), key=lambda one: order(one.what))
    others = [one for one in found.conditions if one.other_machine]
    if others:
        head = Span("Another machine", strong=True)
        said = "; ".join(f"{one.what} {clipped(one.first)}, now {clipped(one.second)}" for one in others)
        ends = say("since.across_hosts") if found.across_hosts else say("since.not_across_hosts")
        spans = (head, Span(f" than campaign {found.first}'s: {said}; {ends}."))
        yield Item(kind="conditions", role=SERIOUS, spans=spans)
    elif told:
        named = merged(told)
        said = "; ".join(
            f"{what} {clipped(first, VALUE_MOST) or 'nothing'}, now {clipped(second, VALUE_MOST) or 'nothing'}"
            for what, first, second in named[:CONDITIONS_NAMED]
        )
        more = len(named) - CONDITIONS_NAMED
        said += f"; and {units.count_of(more, 'condition')} more" if more > 0 else ""
        when = "" if found.paired else f" since {_first(found)}"
        head = Span("What differs" if found.paired else "What differed", strong=True)
        spans = (head, Span(f"{when} besides times: {said}."))
        yield Item(kind="conditions", spans=spans)


def _first(found: SideComparison) -> str:
    return found.first if found.paired else f"campaign {found.first}"


def _together(found: SideComparison) -> Iterator[Item]:
    """Say where layers moved and floors did not: a change of something that all of them share is no drift."""
    if found.changes and all(change.judged.withheld for change in found.changes):
        return
    one = drift_words.sharing(found.drift, log1p(found.margin))
    if one is not None and one.drift.layers is not None and one.drift.floors is not None:
        slower = one.drift.layers.value > one.drift.floors.value
        head = Span(f"Layers moved together, {drift_words.where(one)}", strong=True)
        said = say(
            "since.layers_moved",
            layers=drift_words.signed(one.drift.layers.value),
            floors=drift_words.signed(one.drift.floors.value),
        )
        yield Item(kind="together", role=SERIOUS if slower else "", spans=(head, Span(said)))


def _of_drift(found: SideComparison) -> Iterator[Item]:
    """Say where everything moved by more than what counts as the same: that is taken out of each change."""
    one = drift_words.beyond(found.drift, log1p(found.margin))
    if one is not None:
        head = Span(words.MACHINE_MOVED, strong=True)
        said = f", {drift_words.where(one)}: {drift_words.moved_alike(one)}."
        yield Item(kind="machine", spans=(head, Span(said)))


def _of_machine(found: SideComparison) -> Iterator[Item]:
    """Say where the machine itself changed by more than what counts as the same: changes of layers may be its."""
    beyond = [one for one in found.moved if abs(one.log_ratio) > log1p(found.margin)]
    if beyond:
        most = max(beyond, key=lambda one: abs(one.log_ratio))
        others = say("since.other_things", n=len(beyond) - 1) if beyond[1:] else ""
        text = " " + say("since.machine_took", ratio=most.ratio, what=most.what, others=others)
        spans = (Span(words.MACHINE_MOVED, strong=True), Span(text))
        yield Item(kind="machine", spans=spans)


def _regression(found: SideComparison, slower: Sequence[Change], faster: Sequence[Change]) -> Item:
    head = f"{found.second} beside {found.first}: " if found.paired else f"Since {_first(found)} "
    same, unknown = found.count(Verdict.SAME), found.count(Verdict.UNKNOWN)
    rest = []
    if same:
        one = "point is" if same == 1 else "points are"
        rest.append(f"{units.grouped(same)} {one} the same within {units.percent(found.margin, 0)}")
    drowned = sum(change.judged.drowned for change in found.changes)
    if unknown - drowned:
        why = f": {found.withheld}" if found.withheld and not drowned else " " + say("since.launches")
        rest.append(f"{units.grouped(unknown - drowned)} cannot be told{why}")
    if drowned:
        why = found.withheld or say("since.drowned")
        rest.append(f"{units.grouped(drowned)} cannot be told: {why}")
    if not found.changes:
        neither = say("since.no_number") if found.paired else say("since.no_cell")
        text = say("since.nothing_compared", why="all are refused" if found.refused else neither)
        return Item(kind="regression", role=SERIOUS, spans=(Span(f"{head}{text}.", strong=True),))
    spans = [Span(head)]
    for number, (word, changes) in enumerate((("slower", slower), ("faster", faster))):
        if changes:
            spans += [Span("; " if len(spans) > 1 else ""), *_listed(word, changes, named=not found.paired)]
        elif number == 0:
            spans.append(Span(_none_slower(unknown, len(found.changes)), strong=True))
    compared = units.count_of(len(found.changes), "point")
    spans.append(Span("".join(f"; {text}" for text in rest) + f" ({compared} compared)."))
    kind, role = ("regression", SERIOUS) if slower else ("since", "")
    return Item(kind=kind, role=role, spans=tuple(spans))


def _none_slower(unknown: int, of: int) -> str:
    """Say that nothing is slower, no more surely than it is known."""
    if unknown == of:
        return say("since.nothing_known")
    return say("since.nothing_surely_slower") if unknown else "nothing became slower"


def _listed(word: str, changes: Sequence[Change], *, named: bool) -> Iterator[Span]:
    """Yield the most changed cell of each series, and how many of its cells there are besides.

    named: whether it is to be said which series; of two layers the sentence has begun with them.
    """
    by_series = by_key(changes, lambda change: change.series)
    shown = list(by_series.items())[:LAYERS_NAMED]
    for number, (series, of) in enumerate(shown):
        worst = of[0]
        yield Span("; " if number else "")
        where = f"{words.PLACES[worst.case.place]}, {words.WAITS[worst.case.wait]}"
        begin = f"{series}, " if named else ""
        yield Span(
            f"{begin}{worst.case.pattern} of {worst.workload} {where}, is {share_text(worst)} {word}", strong=True
        )
        if len(of) > 1:
            beyond = len(of) - 1
            of_it = " of it" if named else ""
            yield Span(f", and {units.count_of(beyond, 'more point')}{of_it} {'is' if beyond == 1 else 'are'}")
    left = len(by_series) - len(shown)
    if left:
        cells = sum(len(of) for of in by_series.values()) - sum(len(of) for _, of in shown)
        yield Span(f"; and {units.count_of(cells, 'point')} of {units.count_of(left, 'further layer')} {word}")


def share_text(change: Change) -> str:
    """Return by how much a cell's number is worse, or better, with the interval: "22 % [18, 27]"."""
    sign = 1 if change.quantity.better == "low" else -1
    shares = [_share(change.shift.log_ratio * sign)]
    if change.judged.interval is not None:
        shares += sorted((_share(end * sign) for end in change.judged.interval), key=abs)
    text = [units.sig3(abs(100 * share)) for share in shares]
    ends = ""
    if change.judged.interval is not None:
        low, high = change.judged.interval
        far = "no bound" if exp(high - low) >= units.NO_BOUND else text[2]
        ends = f" {units.interval(text[1], far)}"
    return f"{text[0]}{units.THIN}%{ends}"


def _share(log_ratio: float) -> float:
    return exp(log_ratio) - 1


# ---- tables ----


def _conditions(found: SideComparison) -> Table | None:
    if not found.conditions:
        return None
    rows = tuple((one.what, one.first or "nothing", one.second or "nothing") for one in found.conditions)
    return plain_table(title=say("since.conditions_title"), columns=("condition", "then", "now"), rows=rows)


def _machine(found: SideComparison) -> Table | None:
    if not found.moved:
        return None
    rows = tuple((one.what, units.times(one.ratio), _spread(one)) for one in found.moved)
    title = say("since.machine_title")
    return plain_table(title=title, columns=("what", "now / then", "least and most"), rows=rows)


def _spread(one: Movement) -> str:
    return f"{units.times(one.least)} to {units.times(one.most)}, of {one.parts}" if one.parts > 1 else ""


def _changes(found: SideComparison) -> Table | None:
    if not found.changes:
        return None
    rows = [
        (
            one.judged.verdict.word,
            one.name,
            *one.values,
            f"{units.times(one.ratio)}{change_words.disagreement(one)}",
            f"{units.times(one.change)} {change_words.interval(one)}".strip(),
            one.objections,
        )
        for one in found.changes
    ]
    heads = ("verdict", "point", "then", "now", "now / then", "change", "launches without a number")
    columns = len(heads) if any(one.objections for one in found.changes) else len(heads) - 1
    return plain_table(
        title=say("since.cells_title"),
        columns=heads[:columns],
        rows=tuple(row[:columns] for row in rows),
    )


def _drift(found: SideComparison) -> Table | None:
    rows = [(drift_words.where(one), drift_words.moved_alike(one)) for one in found.drift]
    if found.drift_is_unknown:
        rows.append(("the others", drift_words.unknown(has_usual=bool(found.usual))))
    title = say("since.drift_title")
    return plain_table(title=title, columns=("of", "what it did"), rows=tuple(rows)) if rows else None


def _left(found: SideComparison) -> Table | None:
    counts = [("refused", found.refused), (say("since.one_campaign"), found.missing)]
    rows = tuple((what, why, units.grouped(often)) for what, of in counts for why, often in of.items())
    return (
        plain_table(title=say("since.not_compared_title"), columns=("what", "why", "points"), rows=rows)
        if rows
        else None
    )
