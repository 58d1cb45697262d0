# SPDX-License-Identifier: BSD-3-Clause
"""Verdicts in words: a layer beside the baseline, leading groups, families, and what could not be told.

A verdict is a word and a sign, never a colour alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial

from cadge_analysis import messages, units, words
from cadge_analysis.blocks.make import facts_of, plain_table
from cadge_analysis.blocks.model import Fact, Table
from cadge_analysis.cells.shown import SIGNS
from cadge_analysis.groups import by_key
from cadge_analysis.stats.beside_native import MARK
from cadge_analysis.stats.campaign_verdicts import (
    RANKED_LEAST,
    CampaignVerdicts,
    Family,
    LeadingGroup,
)
from cadge_analysis.stats.compare import Row
from cadge_analysis.stats.inference.rounds import EPOCHS_LEAST
from cadge_analysis.stats.inference.sequential import ERROR
from cadge_analysis.stats.inference.serial import STRICTER, WARNED, WITHHELD, Serial
from cadge_analysis.stats.inference.verdict import Verdict
from cadge_analysis.stats.load import Case, Cell
from cadge_analysis.stats.measures import samples_needed
from cadge_analysis.stats.numbers import P99
from cadge_analysis.stats.offered import unlike

say = partial(messages.say, "findings")

ORDER = (Verdict.FASTER, Verdict.SLOWER, Verdict.SAME, Verdict.UNKNOWN)
NAMED_MOST = 3
"""Of more layers with one verdict a sentence gives the figures of the first and the last alone."""


def mark(cell: Cell, verdicts: CampaignVerdicts) -> str:
    """Return the mark of a point that lies off a plain program over the same library; "" where that is not known."""
    return MARK if cell.point_id in verdicts.taxes else ""


def _held(group: LeadingGroup) -> str:
    """Say why a case has no ranking."""
    return group.unlike or "verdicts are withheld"


def give_one_rate(case: Case) -> str:
    """Say what makes points of a case comparable that stand at unlike loads."""
    rule = case.file.one_load
    return say("verdict_words.give_one_rate", given=rule.given) if rule is not None else ""


def load_note(rows: Sequence[Row]) -> str:
    """Say in a caption that points of one place on the axis stand at unlike loads; nothing where none do."""
    by_size = by_key([row.cell for row in rows], lambda cell: cell.case.size)
    apart = [why for cells in by_size.values() if len(cells) > 1 and (why := unlike(cells))]
    if not apart:
        return ""
    axis = rows[0].cell.case.file.parameters[rows[0].cell.case.file.axis].title
    return " " + say("verdict_words.unlike_loads", n=len(apart), values=len(by_size), axis=axis, first=apart[0])


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
    return say("verdict_words.tie", n=len(said), named=named)


# -- of the whole campaign


def cannot(verdicts: CampaignVerdicts) -> Iterator[str]:
    """Yield what the campaign's verdicts leave open, in sentences."""
    if verdicts.withheld:
        yield say("verdict_words.all_withheld", withheld=verdicts.withheld)
        return
    if verdicts.baseline is None:
        yield say("verdict_words.no_baseline")
        return
    yield from _at_other_loads(verdicts)
    if not verdicts.comparisons:
        if not verdicts.without:
            yield say("verdict_words.baseline_alone", baseline=verdicts.baseline)
        return
    left = len(verdicts.undecided)
    if left:
        yield (
            say(
                "verdict_words.undecided",
                left=_of_all(left, verdicts.comparisons),
                baseline=words.isolated(verdicts.baseline),
            )
        )
    yield from _tails_cannot(verdicts)
    held = [family for family in verdicts.families if family.withheld and family.cells]
    if held:
        said = units.listing([f"{_pattern(one)} {words.PLACES[one.key.place]}" for one in held])
        yield say("verdict_words.rounds_alike", where=said)


def _at_other_loads(verdicts: CampaignVerdicts) -> Iterator[str]:
    """Yield how many points are not compared with the baseline, and what makes them comparable."""
    cases = {case.pattern: case for case, group in verdicts.groups.items() if group.unlike}
    left = len(verdicts.without)
    if left:
        how = " ".join(dict.fromkeys(map(give_one_rate, cases.values())))
        yield (
            say(
                "verdict_words.load_unlike",
                n=left,
                baseline=words.isolated(verdicts.baseline or ""),
                how=how,
            )
        ).strip()


def _tails_cannot(verdicts: CampaignVerdicts) -> Iterator[str]:
    """Yield what is left open of the p99."""
    tails = verdicts.tails
    if tails is None:
        return
    if tails.withheld:
        yield say("verdict_words.p99_withheld", withheld=tails.withheld)
        return
    left, few = len(tails.undecided), len(tails.without)
    if left:
        yield say("verdict_words.p99_undecided", left=_of_all(left, tails.comparisons))
    if few:
        yield say("verdict_words.p99_few_samples", n=few, samples=samples_needed(P99))


def _of_all(left: int, comparisons: int) -> str:
    """Return how many comparisons are open: "All 12 comparisons", "3 of 12 comparisons"."""
    every = units.count_of(comparisons, "comparison")
    return f"All of {every}" if left == comparisons else f"{units.grouped(left)} of {every}"


def _pattern(family: Family) -> str:
    return family.cells[0].cell.case.file.title if family.cells else family.key.pattern


def facts(verdicts: CampaignVerdicts, titles: Mapping[str, str]) -> tuple[Fact, ...]:
    """Return how verdicts are made, and what was allowed for here. titles: of patterns, by name."""
    margin = units.percent(verdicts.delta, 0 if round(verdicts.delta * 100, 6).is_integer() else 1)
    baseline = words.isolated(verdicts.baseline or "")
    against = say("verdict_words.against", baseline=baseline)
    if verdicts.baseline_chosen:
        against = say("verdict_words.against_chosen", baseline=baseline)
    elif not verdicts.baseline:
        against = say("verdict_words.baseline_none")
    method = say("verdict_words.method_verdicts", against=against, margin=margin)
    return facts_of(
        {
            "Verdicts": " ".join(filter(None, (method, _looks(verdicts)))),
            "Families": say("verdict_words.method_families", error=ERROR),
            "Verdicts on the p99": say("verdict_words.method_p99", samples=samples_needed(P99)),
            "Ties": say("verdict_words.method_leaders", probability=1 - ERROR, ranked_least=RANKED_LEAST),
            say("verdict_words.method_rounds_title"): _rounds(verdicts, titles),
        }
    )


def _looks(verdicts: CampaignVerdicts) -> str:
    if verdicts.epochs >= EPOCHS_LEAST:
        return say("verdict_words.epochs_over", epochs=verdicts.epochs)
    if verdicts.looks is None or len(verdicts.looks.looks) == 1:
        return say("verdict_words.epochs_beside", epochs=verdicts.epochs) if verdicts.epochs > 1 else ""
    at = units.listing([str(look) for look in verdicts.looks.looks])
    return say("verdict_words.looked_after", at=at)


def _rounds(verdicts: CampaignVerdicts, titles: Mapping[str, str]) -> str:
    if verdicts.serial is None:
        return say("verdict_words.no_rounds")
    apart = [one for one in verdicts.families if one.serial is not verdicts.serial and one.serial is not None]
    text = f"{_serial(verdicts.serial)}."
    if verdicts.tails is not None and verdicts.tails.serial is not None:
        text += " " + say("verdict_words.p99_correlation", serial=_serial(verdicts.tails.serial))
    for family in apart:
        where = f"{titles.get(family.key.pattern, family.key.pattern)} {words.PLACES[family.key.place]}"
        text += f" {where}, {words.WAITS[family.key.wait]}: {_serial(family.serial)}."
    return f"{text} {say('verdict_words.method_rounds', warned=WARNED, stricter=STRICTER, withheld=WITHHELD)}"


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


def table(verdicts: CampaignVerdicts, titles: Mapping[str, str]) -> Table:
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
    return plain_table(
        title=say("verdict_words.families_title", baseline=words.isolated(verdicts.baseline))
        if verdicts.baseline
        else "Families",
        columns=(
            "pattern",
            "place",
            "waits by",
            "compared by",
            "comparisons",
            *(f"{SIGNS[verdict]} {verdict.word}" for verdict in ORDER),
            "decided",
            "on two levels",
            say("verdict_words.own_correlation"),
            "correlation allowed for",
        ),
        rows=tuple(rows),
    )
