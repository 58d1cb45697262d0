# SPDX-License-Identifier: BSD-3-Clause
"""The page of two sides: can they be compared, what changed, how did the tails, which cells came or went."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from math import log1p

from cadge_analysis import messages, units, words
from cadge_analysis.blocks.model import (
    Block,
    Command,
    Document,
    Fact,
    Facts,
    Fold,
    Heading,
    Item,
    Items,
    PanelFigure,
    Region,
    Span,
    Table,
    TableCell,
    TableLine,
    caption,
    plain,
    plain_table,
    row_name,
    sections_of,
    titled_spans,
    words_cell,
    words_column,
)
from cadge_analysis.cells.shown import SIGNS
from cadge_analysis.draw import palette
from cadge_analysis.draw.palette import Identity
from cadge_analysis.page import provenance
from cadge_analysis.page.beside_charts import CHANGED, TAILS_LEAST, key_of, mode_of, ratio_figures, tail_figures
from cadge_analysis.page.sheet import dressed
from cadge_analysis.page.since import findings_of, machine_tables
from cadge_analysis.page.viewmodel import Finding, Remark
from cadge_analysis.page.warned import banner
from cadge_analysis.stats.sequential import ERROR
from cadge_analysis.stats.verdict import Verdict
from cadge_analysis.versus import change_words, drift_words
from cadge_analysis.versus.against import Against, Change, Fate, Left
from cadge_analysis.versus.as_data import with_launches
from cadge_analysis.versus.conditions import HARMLESS, Difference, merged
from cadge_analysis.versus.sides import Side

FIRST_MOST = 15
"""So many changes stand in the first table; where there are more, all stand folded, pattern by pattern."""
UNDECIDED_MOST = 100
FATES_MOST = 40
FLAGS = {Verdict.SLOWER: "worse", Verdict.FASTER: "better"}
FATES = {
    Fate.FAILING: ("Newly failing", "The first has a number, and the second tried in vain.", True),
    Fate.LOST: ("No longer measured", "The first has a number; in the second it was refused, or did not run.", True),
    Fate.DISAPPEARED: ("Disappeared", "The second did not plan them.", False),
    Fate.APPEARED: ("Appeared", "The first did not plan them.", False),
    Fate.WORKING: ("Newly measured", "The second has a number, and the first tried in vain, or could not.", False),
    Fate.REFUSED: ("Refused", "Both sides have them, and they are not the same thing.", True),
    Fate.UNMATCHED: ("Not to be matched", "Both sides have numbers, and no ratio can be made of them.", False),
    Fate.NEITHER: ("On neither side", "Planned, and without a number on either side.", False),
}


def _title(found: Against) -> str:
    """Return who is held against whom; of two layers of one campaign their names, as the campaign's stands below."""
    (one, first), (other, second) = (side.partition(":")[::2] for side in (found.first, found.second))
    return f"{second} against {first}" if one == other and first and second else f"{found.second} against {found.first}"


def page(found: Against, first: Side, second: Side, *, vary: Sequence[str] = (), generated: str) -> Document:
    """Return the page. vary: the conditions under study, by how they begin; `generated`: the page's time stamp."""
    looks = _looks(found, first, second)
    remarks = tuple(_remarks(found))
    command = _command(found, vary)
    blocks = tuple(_sections(found, (first, second), looks, vary, command))
    return Document(
        title=_title(found),
        kicker=(Span("Cadge comparison"),),
        deck=_deck(found, first, second),
        styles=("part/beside.css",),
        sections=sections_of(blocks),
        banner=banner(_verdict(found, remarks), remarks),
        blocks=blocks,
        sheet=dressed((), command, with_launches(found), generated=generated, looks=looks.values()),
    )


def _say(key: str) -> str:
    return messages.say("beside", key)


def _sections(
    found: Against, sides: tuple[Side, Side], looks: Mapping[str, Identity], vary: Sequence[str], command: str
) -> Iterator[Region]:
    findings = Items(tuple(map(_item, findings_of(found))), "found")
    yield Region(id="answer", title="Answer", role="first", blocks=(findings,))
    conditions = tuple(_conditions(found, vary)) or (plain(_say("no_conditions")),)
    yield Region(id="comparability", title=_say("comparability"), short="What differed", blocks=conditions)
    yield Region(id="changes", title="Changes", blocks=tuple(_changed(found, looks)))
    if figures := ratio_figures(found, looks):
        yield _panels("ratios", _say("ratios"), _ratios_note(found), figures, short="Ratios")
    if figures := tail_figures(found, looks):
        yield _panels("tails", _say("tails"), _tails_note(found), figures, short="Tails")
    if fates := tuple(_fates(found.left)):
        yield Region(id="fates", title=_say("fates"), short="Came and went", blocks=fates)
    if machine := machine_tables(found):
        tables = tuple(plain_table(one.title, one.columns, one.rows) for one in machine)
        yield Region(id="machine", title=_say("machine"), short="Machine", blocks=tables)
    yield Region(id="method", title="Method", blocks=(Facts(tuple(_method(found))),))
    facts = (
        block
        for side in _distinct(*sides)
        for block in (Heading(3, side.name), Facts(provenance.campaign_facts(side.data)))
    )
    again = (plain(_say("again")), Command(command, label="Command"))
    yield Region(id="provenance", title="Provenance", blocks=(*facts, *again))


def _panels(name: str, title: str, note: str, figures: tuple[PanelFigure, ...], *, short: str) -> Region:
    return Region(
        id=name, title=title, short=short, blocks=(plain(note, "lede"), Region(blocks=figures, role="panels"))
    )


def _item(one: Finding) -> Item:
    return Item(spans=one.spans, role="grave" if one.grave else "", kind=one.kind)


def _distinct(first: Side, second: Side) -> tuple[Side, ...]:
    """Return the sides whose campaigns differ."""
    return (first,) if first.data.campaign_id == second.data.campaign_id else (first, second)


def _looks(found: Against, first: Side, second: Side) -> dict[str, Identity]:
    """Return how each series looks, by what it is called; of two layers of one campaign, as the second one does."""
    looks = palette.identities({*first.data.layers, *second.data.layers})
    if second.series is not None:
        return {change.series: looks[second.series] for change in found.changes}
    return {series.label: look for series, look in looks.items()}


def _deck(found: Against, first: Side, second: Side) -> str:
    when = [
        f"{side.name}: {units.day(made)}, {units.clock_time(made)} UTC, "
        f"{units.count_of(side.data.rounds, 'launch', 'launches')} of each"
        for side in _distinct(first, second)
        for made in (provenance.moment(side.data.meta.created_utc),)
    ]
    how = "paired by round" if found.paired else "two campaigns, not paired"
    return f"{units.count_of(len(found.changes), 'cell')} compared, {how}. {'; '.join(when)}."


def _command(found: Against, vary: Sequence[str]) -> str:
    options = ["--margin", f"{100 * found.margin:g}%", *(["--across-hosts"] if found.across_hosts else [])]
    options += [part for one in vary for part in ("--vary", one)]
    return shlex.join(["cadge", "compare", found.first, found.second, *options, "--format", "html"])


# ---- can they be compared ----


def _verdict(found: Against, remarks: Iterable[Remark]) -> str:
    if not found.changes:
        return "Nothing can be compared"
    warnings = sum(remark.grave for remark in remarks)
    return f"Comparable, with {units.count_of(warnings, 'warning')}" if warnings else "Comparable"


def _remarks(found: Against) -> Iterator[Remark]:
    if any(one.other_machine for one in found.conditions):
        text = (
            "What is compared is machines, not layers, as --across-hosts asked."
            if found.across_hosts
            else "Nothing that was measured on them is compared; --across-hosts compares the machines."
        )
        yield Remark(grave=True, title="Other machines", text=text)
    if found.refused:
        cells = units.count_of(sum(found.refused.values()), "cell")
        yield Remark(grave=True, title=f"{cells} refused", text=f"{_first_reasons(found.refused)}.")
    if found.withheld:
        yield Remark(grave=True, title="Verdicts are withheld", text=f"{_sentence(found.withheld)}.")
    if found.drift_is_unknown and not found.withheld:
        said = drift_words.unknown(has_usual=bool(found.usual))
        yield Remark(grave=not found.usual, title="The machine's drift", text=f"{_sentence(said)}.")
    one = drift_words.beyond(found.drift, log1p(found.margin))
    if one is not None:
        text = f"{_sentence(drift_words.where(one))}: {drift_words.moved_alike(one)}."
        yield Remark(grave=False, title="The machine itself took another time", text=text)
    gone = Counter(left.fate for left in found.left)
    lost = gone[Fate.FAILING] + gone[Fate.LOST] + gone[Fate.DISAPPEARED]
    if lost:
        text = "They are listed where cells came and went; nothing else here speaks of them."
        yield Remark(
            grave=gone[Fate.FAILING] > 0,
            title=f"{units.count_of(lost, 'cell')} of the first {'has' if lost == 1 else 'have'} no counterpart",
            text=text,
        )


def _first_reasons(counts: Mapping[str, int]) -> str:
    reasons = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    more = f"; and {units.count_of(len(reasons) - 1, 'further reason')}" if len(reasons) > 1 else ""
    return f"{_sentence(reasons[0][0])}{more}"


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}"


def _conditions(found: Against, vary: Sequence[str]) -> Iterator[Table]:
    """Yield what differed, by what it means for the comparison."""

    def is_varied(one: Difference) -> bool:
        return any(one.what.casefold().startswith(name.casefold()) for name in vary)

    def kind(one: Difference) -> str:
        if one.other_machine:
            return "breaks"
        if is_varied(one):
            return "varied"
        return "harmless" if one.what in HARMLESS else "may"

    breaks = "What is compared is machines." if found.across_hosts else "Cells of these machines are not compared."
    for name, title, note, flag in (
        ("breaks", "Breaks the comparison", breaks, "breaks"),
        ("varied", "Under study", "Declared with --vary: what changed is meant to come from it.", "varied"),
        ("may", "May be the reason", "Whoever looks for the reason of a change begins here.", "may"),
        ("harmless", "Harmless", "Says what was run, and how often; numbers do not depend on it.", "harmless"),
    ):
        rows = merged([one for one in found.conditions if kind(one) == name])
        if rows:
            yield Table(
                label=title,
                role=f"plain conditions {flag}",
                columns=tuple(map(words_column, ("condition", "first", "second"))),
                lines=tuple(
                    TableLine(cells=(row_name(what), words_cell(one or "nothing"), words_cell(other or "nothing")))
                    for what, one, other in rows
                ),
                caption=caption(title, note),
                fits=True,
            )


# ---- what changed ----


def _changed(found: Against, looks: Mapping[str, Identity]) -> Iterator[Block]:
    if none := _no_changes(found):
        yield plain(none)
    yield from _changes(found, looks)
    yield from _counts(found)
    if means := tuple(_means(found)):
        yield Fold(summary=(Span(_say("means")),), blocks=means)


def _changes(found: Against, looks: Mapping[str, Identity]) -> Iterator[Block]:
    changed = [one for one in found.changes if one.judged.verdict in CHANGED]
    if changed:
        most = changed[:FIRST_MOST]
        whole = len(most) == len(changed)
        title = f"{'What' if whole else f'The {FIRST_MOST} that'} changed most: slower first, then faster"
        yield _change_table(title, _gist(found), most, looks)
    if len(changed) > FIRST_MOST:
        groups: dict[tuple[str, str, str], list[Change]] = {}
        for one in changed:
            groups.setdefault((one.pattern, one.place, one.wait), []).append(one)
        for of in groups.values():
            case = of[0].sides[0].cell.case
            title = f"{words.pattern(case)}, {mode_of(case)}"
            yield _folded(title, f"{units.count_of(len(of), 'cell')} changed", of, looks)
    undecided = [one for one in found.changes if one.judged.verdict is Verdict.UNKNOWN]
    if undecided:
        more = len(undecided) - UNDECIDED_MOST
        left = f"; the {UNDECIDED_MOST} that may have changed most" if more > 0 else ""
        gist = f"{units.count_of(len(undecided), 'cell')}{left}"
        yield _folded("What cannot be told", gist, undecided[:UNDECIDED_MOST], looks)


def _folded(title: str, gist: str, changes: Sequence[Change], looks: Mapping[str, Identity]) -> Fold:
    return Fold(summary=titled_spans(title, gist), blocks=(_change_table(title, gist, changes, looks),), role="case")


def _change_table(title: str, gist: str, changes: Sequence[Change], looks: Mapping[str, Identity]) -> Table:
    heads = ("verdict", "series", "cell", "first", "second", "change", "launches", "adjusted p")
    return Table(
        label=title,
        role="plain changes",
        columns=tuple(map(words_column, heads)),
        lines=tuple(_line(one, looks) for one in changes),
        caption=caption(title, gist),
        fits=True,
    )


def _gist(found: Against) -> str:
    same, unknown = found.count(Verdict.SAME), found.count(Verdict.UNKNOWN)
    within = units.percent(found.margin, 0)
    said = [f"{units.count_of(same, 'cell')} the same within {within}"] if same else []
    said += [f"{units.count_of(unknown, 'cell')} of which it cannot be told"] if unknown else []
    return f"Not listed here: {units.listing(said)}." if said else ""


def _no_changes(found: Against) -> str:
    if not found.changes:
        return "No cell is compared; the reasons stand above and below."
    if any(one.judged.verdict in CHANGED for one in found.changes):
        return ""
    return f"No cell became slower or faster, as far as it can be told. {_gist(found)}".rstrip()


def _line(change: Change, looks: Mapping[str, Identity]) -> TableLine:
    judged = change.judged
    ours, theirs = change.sides
    shown = words.shown(ours.quantity)
    case = ours.cell.case
    mode = f"{words.PLACES_SHORT[case.place]}, {words.WAITS[case.wait]}"

    def ends(low: float | None, high: float | None) -> str:
        if low is None or high is None:
            return ""
        return units.interval(units.sig3(low * shown.scale), units.sig3(high * shown.scale))

    first, second = change.shift.shift.launches
    ratio, changed = units.times(change.ratio), units.times(change.change)
    interval = f"{change_words.interval(change)}{change_words.disagreement(change)}".strip("; ")
    return TableLine(
        cells=(
            row_name(
                f"{SIGNS[judged.verdict]} {judged.verdict}",
                change_words.more(change) if judged.verdict is Verdict.UNKNOWN else "",
            ),
            TableCell(key=key_of(change.series, looks[change.series])),
            _below(f"{change.pattern}, {change.workload}, {mode}", change.objections),
            _below(f"{units.sig3(change.first)} {change.unit}", ends(ours.central.low, ours.central.high)),
            _below(f"{units.sig3(change.second)} {change.unit}", ends(theirs.central.low, theirs.central.high)),
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


def _counts(found: Against) -> Iterator[Table]:
    """Yield how many cells have which verdict, by pattern, place and wait mode."""
    groups: dict[tuple[str, str, str], list[Change]] = {}
    for one in sorted(found.changes, key=lambda one: (one.pattern, one.place, one.wait)):
        groups.setdefault((one.pattern, one.place, one.wait), []).append(one)
    if not groups:
        return
    order = (Verdict.SLOWER, Verdict.FASTER, Verdict.SAME, Verdict.UNKNOWN)
    rows = []
    for of in groups.values():
        tally = Counter(one.judged.verdict for one in of)
        case = of[0].sides[0].cell.case
        rows.append((words.pattern(case), mode_of(case), units.grouped(len(of)), *(f"{tally[one]}" for one in order)))
    heads = tuple(f"{SIGNS[one]} {one}" for one in order)
    yield plain_table("Cells by verdict", ("pattern", "where", "compared", *heads), rows)


# ---- notes, fates, means, method ----


def _ratios_note(found: Against) -> str:
    stripe = f"The grey stripe is what counts as the same, {units.percent(found.margin, 0)} either way."
    part = "" if found.paired or found.across_hosts else " What the machine did meanwhile is out of each ratio."
    return (
        "Second / first, against size; a small chart for each pattern, place and wait mode of which two sizes are "
        f"compared, all on one scale. {stripe}{part} Bands are the intervals that verdicts are read from. A series "
        "that changed in the chart has its colour and marker; all others are grey. A triangle at the edge is a ratio "
        "beyond the scale, with its value."
    )


def _tails_note(found: Against) -> str:
    return (
        "Second / first for each percentile of launches' own times, where every launch of both sides has at least ten "
        "samples beyond it. A median that stayed says nothing of the tail; here it shows. The band of a chart holds "
        f"for all of its percentiles together, with {units.percent(1 - ERROR, 0)} (Bonferroni); it does not allow for "
        "how many cells were looked through, so this is to look at, and no verdict. Shown are the cells of which some "
        f"percentile leaves the stripe with its whole interval, the farthest first; of fewer than {TAILS_LEAST} such, "
        "others as well, as evidence that nothing moved."
        + ("" if found.paired else " The machine's part is that of the median; tails may drift otherwise.")
    )


def _fates(left: Sequence[Left]) -> Iterator[Fold]:
    for fate, (title, note, grave) in FATES.items():
        of = [one for one in left if one.fate is fate]
        if of:
            more = len(of) - FATES_MOST
            name = f"{title}: {units.count_of(len(of), 'cell')}"
            table = Table(
                label=name,
                role="plain",
                columns=tuple(map(words_column, ("cell", "why"))),
                lines=tuple(TableLine(cells=(row_name(one.name), words_cell(one.why))) for one in of[:FATES_MOST]),
                fits=True,
            )
            text = f"{units.count_of(more, 'cell')} more in the data of this page."
            rest = (plain(text, "dim"),) if more > 0 else ()
            yield Fold(summary=titled_spans(name, note), blocks=(table, *rest), is_open=grave)


def _means(found: Against) -> Iterator[Table]:
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
    title = "Geometric means of changes, series by series: not judged, and no score"
    if rows:
        yield plain_table(title, ("series", "of", "better", "cells", "mean"), rows)


def _method(found: Against) -> Iterator[Fact]:
    yield Fact(name="Ratio", text="Second / first, of each cell's main quantity: medians over launches.")
    if found.paired:
        allowed = f", allowing for rounds that correlate by up to {found.correlation:.2f}" if found.correlation else ""
        yield Fact(name="Pairs", text=f"Launches of one round stand beside each other (sign test{allowed}).")
    elif found.across_hosts:
        yield Fact(name="Pairs", text="None: launches of one machine against launches of another (rank sum).")
    else:
        yield Fact(
            name="Change",
            text="The ratio less what the machine did between the campaigns, as floors, references and layers show it "
            "together; intervals are wider by how far series drift apart by themselves.",
        )
    yield Fact(
        name="Verdict",
        text=f"Slower or faster where the interval leaves out 1{units.TIMES}, the same where it lies within "
        f"{units.percent(found.margin, 0)}, else it cannot be told. On average at most {units.percent(ERROR, 0)} of "
        "the cells called different are not, and of those called the same (Benjamini and Yekutieli, over all cells).",
    )
    yield Fact(name="p", text="Two-sided, and adjusted for all cells that are compared together.")
    yield Fact(name="Launches", text="Of the first side, and of the second: what the interval rests on.")
