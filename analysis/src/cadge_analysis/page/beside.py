# SPDX-License-Identifier: BSD-3-Clause
"""The page of two sides: can they be compared, what changed, how did the tails, which cells came or went."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from math import log1p

from cadge_analysis import messages, units, words
from cadge_analysis.blocks.make import (
    facts_of,
    plain,
    plain_table,
    row_name,
    titled_spans,
    words_cell,
)
from cadge_analysis.blocks.model import (
    Block,
    Command,
    Fact,
    Facts,
    Fold,
    Heading,
    Items,
    PageDocument,
    Region,
    Remark,
    Span,
    Table,
    TableCell,
    TableLine,
)
from cadge_analysis.cells.shown import SIGNS
from cadge_analysis.draw import palette
from cadge_analysis.draw.palette import Identity
from cadge_analysis.groups import by_key
from cadge_analysis.page.documents import document as document_of
from cadge_analysis.page.figures.beside_charts import (
    CHANGED,
    TAILS_LEAST,
    key_of,
    mode_of,
    panels,
    ratio_figures,
    tail_figures,
)
from cadge_analysis.page.parts import provenance
from cadge_analysis.page.parts.since import findings_of, machine_tables
from cadge_analysis.page.parts.warned import validity
from cadge_analysis.page.sheet import dressed
from cadge_analysis.stats.inference.sequential import ERROR
from cadge_analysis.stats.inference.verdict import Verdict
from cadge_analysis.versus import change_words, drift_words
from cadge_analysis.versus.against import Change, Exclusion, Fate, SideComparison
from cadge_analysis.versus.as_data import document
from cadge_analysis.versus.conditions import HARMLESS, Difference, merged
from cadge_analysis.versus.sides import Side, side_title, variant_title

say = partial(messages.say, "beside")

FIRST_MOST = 15
"""So many changes stand in the first table; where there are more, all stand folded, pattern by pattern."""
UNDECIDED_MOST = 100
FATES_MOST = 40
FLAGS = {Verdict.SLOWER: "worse", Verdict.FASTER: "better"}
FATES = {
    Fate.FAILING: ("Newly failing", say("beside.failing"), True),
    Fate.LOST: ("No longer measured", say("beside.lost"), True),
    Fate.DISAPPEARED: ("Disappeared", say("beside.not_planned", side="second"), False),
    Fate.APPEARED: ("Appeared", say("beside.not_planned", side="first"), False),
    Fate.WORKING: ("Newly measured", say("beside.working"), False),
    Fate.REFUSED: ("Refused", say("beside.refused"), True),
    Fate.UNMATCHED: (say("beside.unmatched_title"), say("beside.unmatched"), False),
    Fate.NEITHER: ("On neither side", say("beside.neither"), False),
}


def _title(found: SideComparison) -> str:
    """Return who is held against whom; of two layers of one campaign their names, as the campaign's stands below."""
    sides = found.first, found.second
    (one, first), (other, second) = (side.partition(":")[::2] for side in sides)
    titles = map(variant_title, (first, second)) if one == other and first and second else map(side_title, sides)
    return "{1} against {0}".format(*titles)


def page(found: SideComparison, first: Side, second: Side, *, vary: Sequence[str] = (), generated: str) -> PageDocument:
    """Return the page. vary: the conditions under study, by how they begin; `generated`: the page's time stamp."""
    looks = _looks(found, first, second)
    remarks = tuple(_remarks(found))
    command = _command(found, vary)
    blocks = tuple(_sections(found, (first, second), looks, vary, command))
    return document_of(
        blocks,
        kind="comparison",
        title=_title(found),
        deck=_deck(found, first, second),
        styles=("part/beside.css",),
        above=(validity(_verdict(found, remarks), remarks, holds=found.holds),),
        sheet=dressed((), command, document(found, launches=True), generated=generated, looks=looks.values()),
    )


def _sections(
    found: SideComparison, sides: tuple[Side, Side], looks: Mapping[str, Identity], vary: Sequence[str], command: str
) -> Iterator[Region]:
    findings = Items(findings_of(found), "found")
    yield Region(id="answer", title="Answer", role="first", blocks=(findings,))
    conditions = tuple(_conditions(found, vary)) or (plain(say("no_conditions")),)
    yield Region(id="comparability", title=say("comparability"), short="What differed", blocks=conditions)
    yield Region(id="changes", title="Changes", blocks=tuple(_changed(found, looks)))
    if figures := ratio_figures(found, looks):
        yield panels("ratios", say("ratios"), figures, short="Ratios", note=_ratios_note(found), role="lede")
    if figures := tail_figures(found, looks):
        yield panels("tails", say("tails"), figures, short="Tails", note=_tails_note(found), role="lede")
    if fates := tuple(_fates(found.left)):
        yield Region(id="fates", title=say("fates"), short="Came and went", blocks=fates)
    if machine := machine_tables(found):
        yield Region(id="machine", title=say("machine"), short="Machine", blocks=machine)
    yield Region(id="method", title="Method", blocks=(Facts(_method(found)),))
    facts = (
        block
        for side in _distinct(*sides)
        for block in (Heading(3, side_title(side.name)), Facts(provenance.campaign_facts(side.data)))
    )
    again = (plain(say("again")), Command(command, label="Command"))
    yield Region(id="provenance", title="Provenance", blocks=(*facts, *again))


def _distinct(first: Side, second: Side) -> tuple[Side, ...]:
    """Return the sides whose campaigns differ."""
    return (first,) if first.data.campaign_id == second.data.campaign_id else (first, second)


def _looks(found: SideComparison, first: Side, second: Side) -> dict[str, Identity]:
    """Return how each series looks, by what it is called; of two layers of one campaign, as the second one does."""
    looks = palette.identities({*first.data.layers, *second.data.layers})
    if second.series is not None:
        return {change.series: looks[second.series] for change in found.changes}
    return {series.label: look for series, look in looks.items()}


def _deck(found: SideComparison, first: Side, second: Side) -> str:
    when = [
        f"{side_title(side.name)}: {units.day(made)}, {units.clock_time(made)} UTC, "
        f"{units.count_of(side.data.rounds, 'launch', 'launches')} of each"
        for side in _distinct(first, second)
        for made in (provenance.moment(side.data.meta.created_utc),)
    ]
    how = "paired by round" if found.paired else say("beside.not_paired")
    return f"{units.count_of(len(found.changes), 'point')} compared, {how}. {'; '.join(when)}."


def _command(found: SideComparison, vary: Sequence[str]) -> str:
    options = ["--margin", f"{100 * found.margin:g}%", *(["--across-hosts"] if found.across_hosts else [])]
    options += [part for one in vary for part in ("--vary", one)]
    return shlex.join(["cadge", "compare", found.first, found.second, *options, "--format", "html"])


# ---- can they be compared ----


def _verdict(found: SideComparison, remarks: Iterable[Remark]) -> str:
    if not found.changes:
        return say("beside.nothing")
    warnings = sum(remark.serious for remark in remarks)
    return f"Comparable, with {units.count_of(warnings, 'warning')}" if warnings else "Comparable"


def _remarks(found: SideComparison) -> Iterator[Remark]:
    if any(one.other_machine for one in found.conditions):
        text = say("beside.machines_asked") if found.across_hosts else say("beside.machines_not_asked")
        yield Remark(serious=True, title="Other machines", text=text)
    if found.refused:
        cells = units.count_of(sum(found.refused.values()), "point")
        yield Remark(serious=True, title=f"{cells} refused", text=f"{_first_reasons(found.refused)}.")
    if found.withheld:
        yield Remark(serious=True, title="Verdicts are withheld", text=f"{_sentence(found.withheld)}.")
    if found.drift_is_unknown and not found.withheld:
        said = drift_words.unknown(has_usual=bool(found.usual))
        yield Remark(serious=not found.usual, title="The machine's drift", text=f"{_sentence(said)}.")
    one = drift_words.beyond(found.drift, log1p(found.margin))
    if one is not None:
        text = f"{_sentence(drift_words.where(one))}: {drift_words.moved_alike(one)}."
        yield Remark(serious=False, title=words.MACHINE_MOVED, text=text)
    gone = Counter(left.fate for left in found.left)
    lost = gone[Fate.FAILING] + gone[Fate.LOST] + gone[Fate.DISAPPEARED]
    if lost:
        text = say("beside.counterparts")
        yield Remark(
            serious=gone[Fate.FAILING] > 0,
            title=say("beside.counterparts_title", lost=lost),
            text=text,
        )


def _first_reasons(counts: Mapping[str, int]) -> str:
    reasons = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    more = f"; and {units.count_of(len(reasons) - 1, 'further reason')}" if len(reasons) > 1 else ""
    return f"{_sentence(reasons[0][0])}{more}"


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}"


def _conditions(found: SideComparison, vary: Sequence[str]) -> Iterator[Table]:
    """Yield what differed, by what it means for the comparison."""

    def is_varied(one: Difference) -> bool:
        return any(one.what.casefold().startswith(name.casefold()) for name in vary)

    def kind(one: Difference) -> str:
        if one.other_machine:
            return "breaks"
        if is_varied(one):
            return "varied"
        return "harmless" if one.what in HARMLESS else "may"

    breaks = say("beside.across_hosts") if found.across_hosts else say("beside.not_across_hosts")
    for name, title, note in (
        ("breaks", "Breaks the comparison", breaks),
        ("varied", "Under study", say("beside.varied")),
        ("may", say("beside.may_title"), say("beside.may")),
        ("harmless", "Harmless", say("beside.harmless")),
    ):
        rows = merged([one for one in found.conditions if kind(one) == name])
        if rows:
            lines = (
                TableLine(cells=(row_name(what), words_cell(one or "nothing"), words_cell(other or "nothing")))
                for what, one, other in rows
            )
            yield plain_table(title, ("condition", "first", "second"), lines, f"plain conditions {name}", note)


# ---- what changed ----


def _changed(found: SideComparison, looks: Mapping[str, Identity]) -> Iterator[Block]:
    if none := _no_changes(found):
        yield plain(none)
    yield from _changes(found, looks)
    yield from _counts(found)
    if means := tuple(_means(found)):
        yield Fold(summary=(Span(say("means")),), blocks=means)


def _changes(found: SideComparison, looks: Mapping[str, Identity]) -> Iterator[Block]:
    changed = [one for one in found.changes if one.judged.verdict in CHANGED]
    if changed:
        most = changed[:FIRST_MOST]
        whole = len(most) == len(changed)
        title = say("beside.changed_title", which="What" if whole else f"The {FIRST_MOST} that")
        yield _change_table(title, _gist(found), most, looks)
    if len(changed) > FIRST_MOST:
        for of in by_key(changed, lambda one: one.mode).values():
            case = of[0].case
            title = f"{words.pattern(case)}, {mode_of(case)}"
            yield _folded(title, f"{units.count_of(len(of), 'point')} changed", of, looks)
    undecided = [one for one in found.changes if one.judged.verdict is Verdict.UNKNOWN]
    if undecided:
        more = len(undecided) - UNDECIDED_MOST
        left = say("beside.undecided_first", n=UNDECIDED_MOST) if more > 0 else ""
        gist = f"{units.count_of(len(undecided), 'point')}{left}"
        yield _folded(say("beside.undecided_title"), gist, undecided[:UNDECIDED_MOST], looks)


def _folded(title: str, gist: str, changes: Sequence[Change], looks: Mapping[str, Identity]) -> Fold:
    return Fold(summary=titled_spans(title, gist), blocks=(_change_table(title, gist, changes, looks),), role="case")


def _change_table(title: str, gist: str, changes: Sequence[Change], looks: Mapping[str, Identity]) -> Table:
    heads = ("verdict", "series", "point", "first", "second", "change", "launches", say("beside.p_of"))
    return plain_table(title, heads, (_line(one, looks) for one in changes), "plain changes", gist)


def _gist(found: SideComparison) -> str:
    same, unknown = found.count(Verdict.SAME), found.count(Verdict.UNKNOWN)
    within = units.percent(found.margin, 0)
    said = [f"{units.count_of(same, 'point')} the same within {within}"] if same else []
    said += [say("beside.undecided", unknown=unknown)] if unknown else []
    return f"Not listed here: {units.listing(said)}." if said else ""


def _no_changes(found: SideComparison) -> str:
    if not found.changes:
        return say("beside.no_cell")
    if any(one.judged.verdict in CHANGED for one in found.changes):
        return ""
    return say("beside.none_changed", counts=_gist(found)).rstrip()


def _line(change: Change, looks: Mapping[str, Identity]) -> TableLine:
    judged = change.judged
    shown = words.shown(change.sides[0].quantity)
    case = change.sides[0].cell.case
    mode = f"{words.PLACES_SHORT[case.place]}, {words.WAITS[case.wait]}"
    central = (one.central for one in change.sides)
    first_ends, second_ends = (units.ends(one.low, one.high, shown.scale).lstrip() for one in central)
    first, second = change.shift.shift.launches
    ratio, changed = units.times(change.ratio), units.times(change.change)
    interval = f"{change_words.interval(change)}{change_words.disagreement(change)}".strip("; ")
    return TableLine(
        cells=(
            row_name(
                f"{SIGNS[judged.verdict]} {judged.verdict.word}",
                change_words.more(change) if judged.verdict is Verdict.UNKNOWN else "",
            ),
            TableCell(key=key_of(change.series, looks[change.series])),
            _below(f"{change.case.pattern}, {change.workload}, {mode}", change.objections),
            _below(change.values[0], first_ends),
            _below(change.values[1], second_ends),
            _below(changed, interval, f"as seen {ratio}" if ratio != changed else "", role="b"),
            words_cell(f"{first}, {second}"),
            words_cell(_p(judged.p)),
        ),
        role=FLAGS.get(judged.verdict, ""),
    )


def _below(text: str, *small: str, role: str = "") -> TableCell:
    return TableCell(spans=(Span(text, role=role),), small=tuple(("", one) for one in small if one))


def _p(value: float) -> str:
    return "<0.0001" if value < 0.0001 else f"{min(value, 1.0):.2g}"


def _counts(found: SideComparison) -> Iterator[Table]:
    """Yield how many cells have which verdict, by pattern, place and wait mode."""
    groups = by_key(sorted(found.changes, key=lambda one: one.mode), lambda one: one.mode)
    if not groups:
        return
    order = (Verdict.SLOWER, Verdict.FASTER, Verdict.SAME, Verdict.UNKNOWN)
    rows = []
    for of in groups.values():
        tally = Counter(one.judged.verdict for one in of)
        case = of[0].case
        rows.append((words.pattern(case), mode_of(case), units.grouped(len(of)), *(f"{tally[one]}" for one in order)))
    heads = tuple(f"{SIGNS[one]} {one.word}" for one in order)
    yield plain_table("Points by verdict", ("pattern", "where", "compared", *heads), rows)


# ---- notes, fates, means, method ----


def _ratios_note(found: SideComparison) -> str:
    stripe = say("beside.stripe", margin=found.margin)
    part = "" if found.paired or found.across_hosts else " " + say("beside.without_drift")
    return say("beside.ratios_caption", stripe=stripe, part=part)


def _tails_note(found: SideComparison) -> str:
    return say("beside.tails_caption", probability=1 - ERROR, tails_least=TAILS_LEAST) + (
        "" if found.paired else " " + say("beside.tails_drift")
    )


def _fates(left: Sequence[Exclusion]) -> Iterator[Fold]:
    for fate, (title, note, serious) in FATES.items():
        of = [one for one in left if one.fate is fate]
        if of:
            more = len(of) - FATES_MOST
            name = f"{title}: {units.count_of(len(of), 'point')}"
            lines = (TableLine(cells=(row_name(one.name), words_cell(one.why))) for one in of[:FATES_MOST])
            table = replace(plain_table(name, ("point", "why"), lines), caption=())
            text = say("beside.more_cells", more=more)
            rest = (plain(text, "dim"),) if more > 0 else ()
            yield Fold(summary=titled_spans(name, note), blocks=(table, *rest), is_open=serious)


def _means(found: SideComparison) -> Iterator[Table]:
    rows = tuple(
        (
            one.series,
            f"{one.pattern}, {one.quantity}",
            "less is better" if one.better == "low" else "more is better",
            units.grouped(one.cells),
            units.times(one.mean) if one.mean is not None else f"none: {one.why}",
        )
        for one in found.wholes
    )
    title = say("beside.means_title")
    if rows:
        yield plain_table(title, ("series", "of", "better", "points", "mean"), rows)


def _method(found: SideComparison) -> tuple[Fact, ...]:
    allowed = say("beside.correlation", correlation=found.correlation) if found.paired and found.correlation else ""
    paired = say("beside.pairs", allowed=allowed) if found.paired else say("beside.no_pairs")
    is_of_pairs = found.paired or found.across_hosts
    return facts_of(
        {
            "Ratio": say("beside.ratio"),
            "Pairs" if is_of_pairs else "Change": paired if is_of_pairs else say("beside.change"),
            "Verdict": say("beside.verdict", margin=found.margin, error=ERROR),
            "p of no difference": say("beside.p", error=ERROR),
            "Epochs" if found.is_over_epochs else "Launches": say(
                "beside.epochs" if found.is_over_epochs else "beside.launches"
            ),
        }
    )
