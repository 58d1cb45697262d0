# SPDX-License-Identifier: BSD-3-Clause
"""The summary matrix: layer against question, sorted by results, with groups that are not separated.

Which questions there are follows from what was measured and from the patterns' own files: of each pattern its main
quantity where its file says that a report answers for it; of those that stand on the first screen, where they are
timed, a second size, the p99 and the time of processors as well.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise

from cadge_analysis import messages, units, words
from cadge_analysis.blocks.make import plain
from cadge_analysis.blocks.model import Key, Matrix, Question, Region, Replies, Reply
from cadge_analysis.page.families import answering, in_family
from cadge_analysis.page.parts.tables import SUMMARY_SIZES
from cadge_analysis.page.ranked import first_screen
from cadge_analysis.stats.beside_native import MARK, tax_text
from cadge_analysis.stats.campaign_verdicts import CampaignVerdicts, groups_in_order
from cadge_analysis.stats.compare import Comparison, Row
from cadge_analysis.stats.intervals import Estimate
from cadge_analysis.stats.load import Case, Cell, Series
from cadge_analysis.stats.measures import MAIN, TAIL, Measure, p99_of
from cadge_analysis.stats.offered import unlike

say = partial(messages.say, "report")

FARTHEST = 100.0
"""So many times its floor, or more, a number has the longest bar: the same scale in all tables."""
QUESTIONS_MOST = 7
"""Further questions stand in a table of their own."""
WORDS = {"valid": "no number", "missing": "not run"}
"""Why a layer has no value, where that is not the state's own name."""
NOT_PLANNED = "not planned"

Groups = tuple[tuple[Series, ...], ...]
Answering = Callable[[Row], Reply]


@dataclass(frozen=True, slots=True, kw_only=True)
class _CaseQuestion:
    """A question to all layers of a case: `reply` makes the cell of one that was measured. `measure` ranks, or None.

    `unlike`: why nothing is ranked by it, where layers stand at unlike loads.
    """

    case: Case
    head: str
    of: str
    reply: Answering
    measure: Measure | None
    unlike: str
    has_floor: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class _MatrixSource:
    """What all tables are made of. `ranked`: the groups of each case, by the ending of what ranks them."""

    comparison: Comparison
    verdicts: CampaignVerdicts
    keys: Mapping[Series, Key]
    ranked: Mapping[tuple[Case, str], Groups]


def questions(comparison: Comparison, verdicts: CampaignVerdicts, keys: Mapping[Series, Key]) -> Region | None:
    """Return a matrix a place and wait mode, and further ones of many questions; None where no layer was planned."""
    cells = [cell for cell in comparison.data.cells if cell.series.kind == "layer"]
    spots = [(place, wait) for wait in words.WAIT_ORDER for place in words.PLACE_ORDER]
    planned = [spot for spot in spots if any((cell.case.place, cell.case.wait) == spot for cell in cells)]
    asked = {spot: _asked(comparison, spot) for spot in planned}
    ranked = _ranked(comparison, verdicts, [one for some in asked.values() for one in some])
    made = _MatrixSource(comparison=comparison, verdicts=verdicts, keys=keys, ranked=ranked)
    tables, without = [], []
    first_wait = next((wait for (_, wait), some in asked.items() if some), "")
    for (place, wait), some in asked.items():
        title = f"{words.PLACES[place].capitalize()}, {words.WAITS[wait]}"
        if not some:
            without.append(say("questions.no_number", title=title))
        here = [cell for cell in cells if (cell.case.place, cell.case.wait) == (place, wait)]
        parts = _parts(some)
        for number, part in enumerate(parts):
            more = f": further questions{f', {number}' if len(parts) > 2 else ''}" if number else ""
            opened = wait == first_wait and not number
            tables.append(_table(f"{title}{more}", part, made, here, opened=opened))
    if not tables and not without:
        return None
    reading = _reading(tables, verdicts, any(map(_is_undecided, ranked.values())))
    how = plain(" ".join(filter(None, (reading, _bars(tables)))), "legend")
    rest = (plain(text, "dim") for text in without)
    return Region(id="questions", title=say("questions.title"), blocks=(how, *tables, *rest))


# ---- which questions ----


def _asked(comparison: Comparison, spot: tuple[str, str]) -> list[_CaseQuestion]:
    """Return the questions at a place and in a wait mode: those of the first screen, then one of each other pattern."""
    rows = [row for row in comparison.rows if (row.cell.case.place, row.cell.case.wait) == spot]
    patterns = {row.cell.case.pattern for row in rows}
    files = {name: file for name, file in comparison.data.patterns.items() if name in patterns}
    leading = first_screen(files)
    found: list[_CaseQuestion] = []
    for pattern in (*leading, *(name for name in files if name not in leading)):
        members = [row for row in rows if row.cell.case.pattern == pattern]
        found += _of_pattern(members, in_full=pattern in leading)
    return found


def _of_pattern(rows: Sequence[Row], *, in_full: bool) -> Iterator[_CaseQuestion]:
    case = answering(rows)
    if case is None:
        return
    file = case.file
    yield _main(case, rows)
    if not in_full or file.main_quantity.kind != "histogram":
        return
    if file.parameters[file.axis].unit == "bytes":
        cases = {row.cell.case.size: row.cell.case for row in rows if in_family(row.cell.case, case.family)}
        further = next((size for size in SUMMARY_SIZES if size > case.size and size in cases), None)
        if further is not None:
            yield _main(cases[further], rows)
    what = f"{words.pattern(case)} {words.stands_at(case)}"
    apart = _unlike(case, rows)
    yield _CaseQuestion(
        case=case,
        head=f"{what}, p99",
        of=f"p99, {file.main_quantity.title}",
        reply=_p99,
        measure=TAIL,
        unlike=apart,
    )
    if any("cpu" in row.numbers.costs.of for row in rows if row.cell.case == case):
        noun = file.words.operations.partition("/")[0].removesuffix("s")
        yield _CaseQuestion(
            case=case,
            head=f"{what}, CPU",
            of=say("questions.processors", noun=noun),
            reply=_cpu,
            measure=None,
            unlike=apart,
        )


def _unlike(case: Case, rows: Iterable[Row]) -> str:
    cells = [row.cell for row in rows if row.cell.case == case]
    return unlike(cells) if len(cells) > 1 else ""


def _main(case: Case, rows: Sequence[Row]) -> _CaseQuestion:
    quantity = case.file.main_quantity
    what = f"p50, {quantity.title}" if quantity.kind == "histogram" else quantity.title
    return _CaseQuestion(
        case=case,
        head=f"{words.pattern(case)} {words.stands_at(case)}",
        of=what,
        reply=_central,
        measure=MAIN,
        unlike=_unlike(case, rows),
        has_floor=any(row.ratio for row in rows if row.cell.case == case),
    )


def _parts(asked: Sequence[_CaseQuestion]) -> list[Sequence[_CaseQuestion]]:
    return [asked[at : at + QUESTIONS_MOST] for at in range(0, len(asked), QUESTIONS_MOST)]


# ---- replies ----


def _central(row: Row) -> Reply:
    numbers = row.numbers
    shown = words.shown(numbers.quantity)
    central = numbers.central
    detail = units.ends(central.low, central.high, shown.scale).lstrip() or "1 launch"
    ends = (central.value, central.low, central.high)
    return Reply(
        question="",
        text=shown.text(central.value),
        detail=", ".join((detail, *numbers.to_be_read)),
        floor=f"{units.times(row.ratio.value)} floor" if row.ratio else "",
        bar=bar(row.ratio.value, more_is_better=numbers.more_is_better) if row.ratio else "",
        below=row.beats_floor,
        raw=units.raw(*ends),
    )


def _p99(row: Row) -> Reply:
    found = p99_of(row.numbers)
    if isinstance(found, str):
        return _none("few samples", found.replace(",", units.THIN))
    return _estimated(found)


def _cpu(row: Row) -> Reply:
    found = row.numbers.cpu_ns
    return _none("not recorded", "") if found is None else _estimated(found)


def _estimated(found: Estimate) -> Reply:
    """Return the cell of a median over launches with its interval, of a time."""
    return Reply(
        question="",
        text=f"{units.us(found.value)} \u00b5s",
        detail=units.ends(found.low, found.high, 1 / units.NS_PER_US).lstrip() or "1 launch",
        raw=units.raw(found.value, found.low, found.high),
    )


def _none(reason: str, why: str) -> Reply:
    return Reply(question="", text=units.MISSING, reason=reason, why=why)


def bar(ratio: float, *, more_is_better: bool) -> str:
    """Return how long a ratio's bar is, in percent: the logarithm of how far from its floor a number is, up to 100."""
    away = 1 / ratio if more_is_better else ratio
    return f"{100 * min(1.0, max(0.0, math.log(away) / math.log(FARTHEST))):.0f}"


# ---- ranks and rows ----


def _ranked(
    comparison: Comparison, verdicts: CampaignVerdicts, asked: Sequence[_CaseQuestion]
) -> dict[tuple[Case, str], Groups]:
    """Return the groups of each case by main quantity and by p99; none where verdicts on these are withheld."""
    found: dict[tuple[Case, str], Groups] = {}
    for measure, judged in ((MAIN, verdicts), (TAIL, verdicts.tails)):
        if judged is None or judged.withheld:
            continue
        cases = {one.case for one in asked if one.measure is measure}
        groups = groups_in_order(comparison, judged.families, cases, verdicts.looks, measure)
        found |= {(case, measure.ending): some for case, some in groups.items()}
    return found


def ranks(groups: Groups) -> dict[Series, tuple[int, int]]:
    """Return each layer's rank and how many share it: 1, 1, 3 where two lead."""
    found: dict[Series, tuple[int, int]] = {}
    for members in groups:
        rank = len(found) + 1
        found |= {series: (rank, len(members)) for series in members}
    return found


def rank_text(rank: int, members: int) -> str:
    """Return a rank as it is printed: "1=" where several share it."""
    return f"{rank}{'=' if members > 1 else ''}"


def _table(
    title: str, asked: Sequence[_CaseQuestion], made: _MatrixSource, cells: Sequence[Cell], *, opened: bool
) -> Matrix:
    columns = [_column(one, made, cells) for one in asked]
    first, first_ranks = columns[0], _ranks_of(asked[0], made.ranked)
    series = {cell.series for cell in cells}

    def order(one: Series) -> tuple[bool, int, float, Series]:
        value = None if asked[0].unlike else _value(first[one], asked[0])
        return value is None, first_ranks.get(one, (len(series) + 1, 0))[0], value or 0.0, one

    ordered = sorted(series, key=order)
    # those without any number last
    ordered.sort(key=lambda one: all(column[one].reason for column in columns))
    place_of = {one: first_ranks.get(one, (0, 0))[0] for one in ordered}
    begins = {later for earlier, later in pairwise(ordered) if place_of[earlier] != place_of[later]}
    return Matrix(
        title=title,
        opened=opened,
        sorted_by="sorted by name" if asked[0].unlike else f"sorted by {asked[0].head}",
        questions=tuple(
            Question(
                head=one.head,
                of="; ".join(filter(None, (one.of, one.unlike))),
                floor="" if one.has_floor or one.measure is not MAIN else "no floor",
            )
            for one in asked
        ),
        rows=tuple(
            Replies(key=made.keys[one], begins=one in begins, cells=tuple(column[one] for column in columns))
            for one in ordered
        ),
    )


def _value(reply: Reply, asked: _CaseQuestion) -> float | None:
    """Return what sorts a reply: small is good; None where it has no value."""
    if reply.reason or not reply.raw:
        return None
    value = float(reply.raw.split(" ")[0])
    return -value if asked.case.file.main_quantity.better == "high" else value


def _ranks_of(asked: _CaseQuestion, ranked: Mapping[tuple[Case, str], Groups]) -> dict[Series, tuple[int, int]]:
    """Return the ranks of a question; none where all layers make one group, which says nothing of any of them."""
    groups = ranked.get((asked.case, asked.measure.ending), ()) if asked.measure else ()
    return {} if _is_undecided(groups) else ranks(groups)


def _is_undecided(groups: Groups) -> bool:
    return len(groups) == 1 and len(groups[0]) > 1


def _column(asked: _CaseQuestion, made: _MatrixSource, cells: Sequence[Cell]) -> dict[Series, Reply]:
    """Return the replies of all layers of a table to one question."""
    rows = {row.cell.series: row for row in made.comparison.rows if row.cell.case == asked.case}
    points = {cell.series: cell for cell in cells if cell.case == asked.case}
    places = _ranks_of(asked, made.ranked)
    found = {}
    for series in dict.fromkeys(cell.series for cell in cells):
        row = rows.get(series)
        reply = asked.reply(row) if row is not None else _without(points.get(series))
        tax = made.verdicts.taxes.get(row.cell.point_id) if row is not None and asked.measure is MAIN else None
        if row is not None and tax is not None:
            reply = replace(reply, detail=f"{reply.detail}; {MARK} {tax_text(row.cell, tax)}")
        found[series] = _placed(reply, asked.head, places.get(series))
    return found


def _placed(reply: Reply, head: str, place: tuple[int, int] | None) -> Reply:
    if place is None or reply.reason:
        return replace(reply, question=head)
    rank, members = place
    shared = f", shared by {members} layers" if members > 1 else ""
    return replace(
        reply,
        question=head,
        rank=rank_text(rank, members),
        spoken=f"rank {rank}{shared}",
        leads=rank == 1,
    )


def _without(cell: Cell | None) -> Reply:
    """Return why a layer has no value: in a word, and with the reason that was given."""
    if cell is None:
        return _none(NOT_PLANNED, "")
    why = cell.troubles[0].reason if cell.troubles else ""
    return _none(WORDS.get(cell.state, cell.state), why)


def _reading(tables: Collection[Matrix], verdicts: CampaignVerdicts, undecided: bool) -> str:
    cells = [cell for table in tables for row in table.rows for cell in row.cells]
    said = []
    if any(cell.rank for cell in cells):
        said.append(say("questions.shared_ranks"))
        if undecided:
            said.append(say("questions.columns_without_ranks"))
    elif cells and undecided:
        said.append(say("questions.nothing_separated"))
    elif cells:
        why = verdicts.withheld or say("questions.why_not_ranked")
        said.append(say("questions.nothing_ranked", why=why))
    return " ".join(said)


def _bars(tables: Collection[Matrix]) -> str:
    if not any(cell.bar for table in tables for row in table.rows for cell in row.cells):
        return ""
    return say("questions.bars", farthest=FARTHEST)
