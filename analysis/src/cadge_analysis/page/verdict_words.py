# SPDX-License-Identifier: BSD-3-Clause
"""Verdicts in words: a layer beside the baseline, leading groups, families, and what could not be told.

A verdict is a word and a sign, never a colour alone.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence

from cadge_analysis import units, words
from cadge_analysis.blocks.model import Fact
from cadge_analysis.cells.shown import SIGNS, more_text, ratio_text
from cadge_analysis.page.viewmodel import FactTable
from cadge_analysis.stats.beside_native import MARK, tax_note
from cadge_analysis.stats.campaign_verdicts import (
    RANKED_LEAST,
    CampaignVerdicts,
    CellVerdict,
    Family,
    LeadingGroup,
)
from cadge_analysis.stats.compare import P99, Row
from cadge_analysis.stats.load import Case, Cell
from cadge_analysis.stats.measures import BEYOND, samples_needed
from cadge_analysis.stats.offered import unlike
from cadge_analysis.stats.sequential import ERROR
from cadge_analysis.stats.serial import CLEARLY, IGNORED, WITHHELD, Serial
from cadge_analysis.stats.verdict import Verdict

ORDER = (Verdict.FASTER, Verdict.SLOWER, Verdict.SAME, Verdict.UNKNOWN)
NAMED_MOST = 3
"""Of more layers with one verdict a sentence gives the figures of the first and the last alone."""


def beside_baseline(verdicts: CampaignVerdicts, rows: Sequence[Row]) -> str:
    """Say how the layers of one case stand to the baseline; empty where there is none."""
    found = [one for row in rows if (one := verdicts.by_point.get(row.cell.point_id)) is not None]
    if not found or verdicts.baseline is None:
        return ""
    parts = []
    for verdict in ORDER:
        here = sorted((one for one in found if one.says == verdict), key=_by_size)
        if here:
            parts.append(f"{len(here)} {_of_verdict(verdict, verdicts.delta)}: {_named(here, verdicts)}")
    base = next((row.cell for row in rows if row.cell.series.label == verdicts.baseline), None)
    name = f"{words.isolated(verdicts.baseline)}{mark(base, verdicts) if base else ''}"
    return f"Against {name}{_measure_of(found[0].cell.case)}: {'; '.join(parts)}."


def _measure_of(case: Case) -> str:
    """Say of what ratios are, and which end is the better one."""
    quantity = case.file.main_quantity
    return f", as a ratio of {quantity.heading} ({'lower' if quantity.better == 'low' else 'higher'} is better)"


def _by_size(one: CellVerdict) -> tuple[float, str]:
    return (one.verdict.log_ratio if one.verdict.log_ratio is not None else 0.0), one.cell.series.label


def _of_verdict(verdict: Verdict, delta: float) -> str:
    if verdict == Verdict.SAME:
        return f"the same within {units.percent(delta, 0 if round(delta * 100, 6).is_integer() else 1)}"
    return "cannot be told yet" if verdict == Verdict.UNKNOWN else str(verdict)


def mark(cell: Cell, verdicts: CampaignVerdicts) -> str:
    """Return the mark of a point that lies off a plain program over the same library; "" where that is not known."""
    return MARK if cell.point_id in verdicts.taxes else ""


def tax_notes(cells: Iterable[Cell], verdicts: CampaignVerdicts) -> Iterator[str]:
    """Yield what the mark says of each of some points that has it."""
    for cell in cells:
        if (one := verdicts.taxes.get(cell.point_id)) is not None:
            yield tax_note(cell, one)


def _named(found: Sequence[CellVerdict], verdicts: CampaignVerdicts) -> str:
    """Return the layers with their ratios; of many those at both ends."""
    if len(found) <= NAMED_MOST:
        return words.listing([_one(one, verdicts) for one in found])
    between = units.count_of(len(found) - 2, "layer")
    return f"from {_one(found[0], verdicts)} to {_one(found[-1], verdicts)}, {between} between them"


def _one(one: CellVerdict, verdicts: CampaignVerdicts) -> str:
    text = f"{words.isolated(one.cell.series.label)}{mark(one.cell, verdicts)}"
    if one.ratio is not None:
        text += f" {ratio_text(one.ratio)}"
    if one.says == Verdict.UNKNOWN:
        text += f" ({more_text(one)})"
    if one.pairs_disagree:
        text += f" ({units.PAIRS_DISAGREE})"
    return f"{text} (early)" if one.verdict.early else text


def _held(group: LeadingGroup) -> str:
    """Say why a case has no ranking."""
    return group.unlike or "verdicts are withheld"


def give_one_rate(case: Case) -> str:
    """Say what makes points of a case comparable that stand at unlike loads."""
    rule = case.file.one_load
    return f"Give all of them one rate, with {rule.given} in the sweep." if rule is not None else ""


def load_note(rows: Sequence[Row]) -> str:
    """Say in a caption that points of one place on the axis stand at unlike loads; nothing where none do."""
    by_size: dict[int, list[Cell]] = defaultdict(list)
    for row in rows:
        by_size[row.cell.case.size].append(row.cell)
    apart = [why for cells in by_size.values() if len(cells) > 1 and (why := unlike(cells))]
    if not apart:
        return ""
    axis = rows[0].cell.case.file.parameters[rows[0].cell.case.file.axis].title
    return (
        f" Lines are not to be compared with one another: at {len(apart)} of {len(by_size)} values of the {axis}, "
        f"layers stand at unlike loads (first of them: {apart[0]})."
    )


def not_told_apart(group: LeadingGroup, delta: float) -> str:
    """Say that the members of a leading group are not told apart, and by how many launches."""
    if group.withheld:
        return _held(group)
    few = f"{group.launches} to " if group.launches < group.launches_most else ""
    alike = f"surely within {units.percent(delta, 0)} of one another, and " if group.alike else ""
    return f"{alike}not told apart by {few}{units.count_of(group.launches_most, 'launch', 'launches')}"


def none_told_apart(group: LeadingGroup) -> str:
    """Say that of all layers none is told apart from another one, and by how many launches; or that it is withheld."""
    if group.withheld:
        return _held(group)
    few = f"{group.launches} to " if group.launches < group.launches_most else ""
    launches = f"{few}{units.count_of(group.launches_most, 'launch', 'launches')}"
    none = "the two" if group.ranked == 2 else f"any of the {units.grouped(group.ranked)}"
    return f"{launches} do not tell {none} apart"


def unranked(group: LeadingGroup) -> str:
    """Say which layers have too few launches to be ranked; empty where none has."""
    if not group.unranked:
        return ""
    named = words.listing([words.isolated(series.label) for series in group.unranked])
    return f" {named} gave too few numbers to be ranked."


def gist(verdicts: CampaignVerdicts, rows: Sequence[Row], case: Case) -> str:
    """Return who leads in a case, in a few words; empty where nobody has a number."""
    group = verdicts.groups.get(case)
    if group is None or not group.members:
        return ""
    by_series = {row.cell.series: row.numbers for row in rows if row.cell.case == case}
    shown = words.shown(case.file.main_quantity)
    marks = {one: mark(numbers.cell, verdicts) for one, numbers in by_series.items()}
    said = [
        f"{words.isolated(one.label)}{marks[one]} {shown.text(by_series[one].central.value)}" for one in group.members
    ]
    if len(said) == 1:
        return said[0]
    if group.withheld:
        return _held(group)
    named = ", ".join(said) if len(said) <= NAMED_MOST else f"{', '.join(said[:NAMED_MOST])} and others"
    return f"leading group of {len(said)}: {named}"


# -- of the whole campaign


def cannot(verdicts: CampaignVerdicts) -> Iterator[str]:
    """Yield what the campaign's verdicts leave open, in sentences."""
    if verdicts.withheld:
        yield f"Which layer is faster or slower: {verdicts.withheld}."
        return
    if verdicts.baseline is None:
        yield "Which layers are faster or slower than a common one: the sweep declares no baseline."
        return
    yield from _at_other_loads(verdicts)
    if not verdicts.comparisons:
        if not verdicts.without:
            yield f"Which layers are faster or slower than {verdicts.baseline}: it was not measured beside others."
        return
    left = len(verdicts.undecided)
    if left:
        yield (
            f"{_of_all(left, verdicts.comparisons)} with {words.isolated(verdicts.baseline)}: which is faster, or "
            "whether they are the same. Each says about how many launches more would tell, or that they hardly would."
        )
    yield from _tails_cannot(verdicts)
    held = [family for family in verdicts.families if family.withheld and family.cells]
    if held:
        said = words.listing([f"{_pattern(one)} {words.PLACES[one.key.place]}" for one in held])
        yield f"Anything that compares layers of {said}: neighbouring rounds are too much alike, see Method."


def _at_other_loads(verdicts: CampaignVerdicts) -> Iterator[str]:
    """Yield how many points are not compared with the baseline, and what makes them comparable."""
    cases = {case.pattern: case for case, group in verdicts.groups.items() if group.unlike}
    left = len(verdicts.without)
    if left:
        how = " ".join(dict.fromkeys(map(give_one_rate, cases.values())))
        yield (
            f"How {units.count_of(left, 'point')} {'compares' if left == 1 else 'compare'} with "
            f"{words.isolated(verdicts.baseline or '')}: launches were offered unlike loads. {how}"
        ).strip()


def _tails_cannot(verdicts: CampaignVerdicts) -> Iterator[str]:
    """Yield what is left open of the p99."""
    tails = verdicts.tails
    if tails is None:
        return
    if tails.withheld:
        yield f"Which layer is faster or slower by its p99: {tails.withheld}."
        return
    left, few = len(tails.undecided), len(tails.without)
    if left:
        yield f"{_of_all(left, tails.comparisons)} by the p99: which is faster, or whether they are the same."
    if few:
        yield (
            f"How {units.count_of(few, 'further point')} {'compares' if few == 1 else 'compare'} by the p99: not every "
            f"launch has the {units.grouped(samples_needed(P99))} samples that its own p99 needs."
        )


def _of_all(left: int, comparisons: int) -> str:
    """Return how many comparisons are open: "All 12 comparisons", "3 of 12 comparisons"."""
    every = units.count_of(comparisons, "comparison")
    return f"All of {every}" if left == comparisons else f"{units.grouped(left)} of {every}"


def _pattern(family: Family) -> str:
    return family.cells[0].cell.case.file.title if family.cells else family.key.pattern


def facts(verdicts: CampaignVerdicts, titles: Mapping[str, str]) -> tuple[Fact, ...]:
    """Return how verdicts are made, and what was allowed for here. titles: of patterns, by name."""
    margin = units.percent(verdicts.delta, 0 if round(verdicts.delta * 100, 6).is_integer() else 1)
    chosen = "was chosen for this report" if verdicts.baseline_chosen else "the sweep declares"
    against = (
        f"the baseline that {chosen}, {words.isolated(verdicts.baseline)}"
        if verdicts.baseline
        else "a baseline, where a sweep declares one; this one declares none"
    )
    return (
        Fact(
            name="Verdicts",
            text=f"Each layer against {against}, in each case that ranks: never all pairs. Estimator: the median of "
            "the paired ratios, round by round, so that what the machine does for longer than a round cancels; tested "
            "by signs, and where all of nine or more rounds agree also by how many times their own range they lie away "
            "from 1, with the interval that belongs to the test. That distance says nothing where launches switch "
            "between two levels: such a comparison is judged by signs alone, and the more of a family switch, the less "
            "the distance adds to any of it. Faster or slower: "
            f"the interval lies wholly on one side of 1. The same: it lies wholly within {margin} of 1. Else the "
            "report says that it cannot tell, which is not to say that they are equal, and about how many launches "
            f"more would tell with a probability of 80{units.THIN}%, if rounds go on as they went. {_looks(verdicts)}",
        ),
        Fact(
            name="Families",
            text="A family is a pattern at a place, in a wait mode, with its main quantity. Of what a family calls "
            f"different at most {units.percent(ERROR, 0)} is not, on average, and so of what it calls the same: by the "
            "correction of Benjamini and Yekutieli, which holds however comparisons depend on one another. The "
            "intervals beside verdicts are those of that level, wider than the intervals of single values. A "
            "comparison that has no number counts as one that cannot be told.",
        ),
        Fact(
            name="Verdicts on the p99",
            text="Where the main quantity is a time, each launch's own p99 is compared in the same way, in families of "
            "its own, with their own correction and their own correlation of rounds. A launch has one where at least "
            f"{BEYOND} of its samples lie beyond it, so from {units.grouped(samples_needed(P99))} samples on; where a "
            "launch of either side has fewer the row says how many. Layers that lead are found by the main quantity.",
        ),
        Fact(
            name="Leading group",
            text="\u201cFastest\u201d, or what a pattern says for it, is said of a layer that alone is not beaten by "
            "another one. Otherwise the layers that may be the best are a leading group: in each case it holds the "
            f"truly best with a probability of {units.percent(1 - ERROR, 0)} (multiple comparisons with the best; each "
            f"pair by the same test at {units.percent(ERROR, 0)} divided by the other layers). Layers with numbers "
            f"from less than {units.percent(RANKED_LEAST, 0)} of their launches are not ranked.",
        ),
        Fact(name="Rounds that follow each other", text=_rounds(verdicts, titles)),
    )


def _looks(verdicts: CampaignVerdicts) -> str:
    if verdicts.looks is None or len(verdicts.looks.looks) == 1:
        return "Looked at once, when all planned launches were there."
    at = words.listing([str(look) for look in verdicts.looks.looks])
    return (
        f"Looked at after {at} launches, with the error spent over these looks; what was decided before the last one "
        "is marked as early: its ratio lies further from 1 than the truth does, on average."
    )


def _rounds(verdicts: CampaignVerdicts, titles: Mapping[str, str]) -> str:
    text = (
        "Tests take one round's difference for independent of the next one's. Their correlation is estimated over "
        f"the campaign from ranks; a family whose own lies above {CLEARLY:g} of its standard errors is judged by "
        f"its own, every other one by that of all families together. Of whichever it is: up to {IGNORED:g}, or one "
        f"standard error, nothing changes; above it p and intervals allow for it and one standard "
        f"error more; above {WITHHELD:g}, and that clearly, verdicts are withheld. "
    )
    if verdicts.serial is None:
        return f"{text}Here no rounds can tell."
    apart = [one for one in verdicts.families if one.serial is not verdicts.serial and one.serial is not None]
    text += f"Here it is {_serial(verdicts.serial)}."
    if verdicts.tails is not None and verdicts.tails.serial is not None:
        text += f" Of the p99 it is {_serial(verdicts.tails.serial)}."
    for family in apart:
        where = f"{titles.get(family.key.pattern, family.key.pattern)} {words.PLACES[family.key.place]}"
        text += f" {where}, {words.WAITS[family.key.wait]}: {_serial(family.serial)}."
    return text


def _serial(found: Serial | None) -> str:
    if found is None:
        return units.MISSING
    used = "withheld" if found.withheld else f"allowed for: {units.sig3(found.used)}"
    return f"{_estimated(found)} ({used})"


def _estimated(found: Serial | None) -> str:
    if found is None:
        return units.MISSING
    text = f"{found.correlation:.2f}"
    return f"{text if text.strip('-0.') else '0.00'} \u00b1 {found.error:.2f}".replace("-", units.MINUS)


def _allowed(found: Serial | None) -> str:
    """Return what a family's tests allow for: of its own correlation where that is clear, else of all families'."""
    if found is None:
        return units.MISSING
    return "withheld" if found.withheld else units.sig3(found.used)


def table(verdicts: CampaignVerdicts, titles: Mapping[str, str]) -> FactTable:
    """Return the families, and how many comparisons of each came to which verdict."""
    rows = []
    tails = verdicts.tails.families if verdicts.tails else ()
    for family in (*verdicts.families, *tails):
        if not family.cells:
            continue
        counts = [sum(one.says == verdict for one in family.cells) for verdict in ORDER]
        rows.append(
            (
                titles.get(family.key.pattern, family.key.pattern),
                words.PLACES[family.key.place],
                words.WAITS[family.key.wait],
                "p99" if family in tails else family.cells[0].cell.case.file.main_quantity.heading,
                units.grouped(len(family.cells)),
                *map(units.grouped, counts),
                units.percent(family.decided / len(family.cells), 0),
                units.grouped(sum(one.verdict.two_levels for one in family.cells)),
                _estimated(family.own),
                _allowed(family.serial),
            )
        )
    return FactTable(
        title=f"Comparisons with {words.isolated(verdicts.baseline)}, family by family"
        if verdicts.baseline
        else "Families",
        columns=(
            "pattern",
            "place",
            "waits by",
            "compared by",
            "comparisons",
            *(f"{SIGNS[verdict]} {verdict}" for verdict in ORDER),
            "decided",
            "on two levels",
            "own correlation of rounds",
            "correlation allowed for",
        ),
        rows=tuple(rows),
    )
