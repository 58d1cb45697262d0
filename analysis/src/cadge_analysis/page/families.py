# SPDX-License-Identifier: BSD-3-Clause
"""Which measurements of a pattern belong together: those of one figure, and the one that answers for all of them."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence

from cadge_analysis.stats.compare import Row
from cadge_analysis.stats.load import Case, Family
from cadge_analysis.stats.offered import unlike
from cadge_results import PatternFile
from cadge_results.formats.point import Value


def main_family(rows: Sequence[Row]) -> Family | None:
    """Return the values of all other parameters with the most sizes on the diagonal (whatever follows, follows).

    One that ranks goes before all that do not. Of equal ones, the first that the pattern prefers: its lowest numbers
    (the highest where it says so), and of choices their defaults. Everything else is in the tables.
    """
    sizes: dict[Family, set[int]] = defaultdict(set)
    ranking = any(row.cell.case.does_rank for row in rows)
    for row in rows:
        if row.cell.case.on_diagonal and (row.cell.case.does_rank or not ranking):
            sizes[row.cell.case.family].add(row.cell.case.size)
    if not sizes:
        return None
    file = rows[0].cell.case.file
    return max(sizes, key=lambda family: (len(sizes[family]), *(_preference(file, *item) for item in family)))


def _preference(file: PatternFile, name: str, value: Value) -> int:
    one = file.parameters[name]
    if isinstance(value, int):
        return value if file.family.get(name) == "highest" else -value
    return len(one.values) if value == one.default else -one.values.index(value)


def in_family(case: Case, family: Family) -> bool:
    """Tell whether a case belongs to a figure."""
    return case.on_diagonal and case.family == family


def answering(rows: Sequence[Row]) -> Case | None:
    """Return the case of a pattern that answers for it: of the main family, at the size nearest to the first screen's.

    Where layers stand at unlike loads there, it is one whose rate was given to two layers or more: the middle rate.
    """
    family = main_family(rows)
    if family is None:
        return None
    members = {row.cell.case for row in rows if in_family(row.cell.case, family)}
    usual = min(members, key=lambda case: (abs(case.size - case.file.first_screen.at), case.size))
    rule = usual.file.one_load
    if rule is None or not unlike(row.cell for row in rows if row.cell.case == usual):
        return usual
    alike = {item for item in family if item[0] != rule.given}
    layers: Counter[Case] = Counter(row.cell.case for row in rows)
    rated = [
        case
        for case, count in layers.items()
        if count > 1 and case.on_diagonal and alike <= set(case.family) and case.workload.integer(rule.given)
    ]
    rated.sort(key=lambda case: case.workload.integer(rule.given))
    return rated[(len(rated) - 1) // 2] if rated else usual


def beside(rows: Sequence[Row]) -> Family | None:
    """Return the family of points that do not rank, beside the main one; None where there is none."""
    main = main_family(rows)
    parameters = rows[0].cell.case.file.parameters if rows else {}
    alike = {(name, value) for name, value in main or () if parameters[name].ranks is None}
    others = [
        row
        for row in rows
        if not row.cell.case.does_rank and row.cell.case.family != main and alike <= set(row.cell.case.family)
    ]
    return main_family(others)
