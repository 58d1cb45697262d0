# SPDX-License-Identifier: BSD-3-Clause
"""What the machine itself can do at a size: the lower envelope of all floor programs of a place, wait mode and form.

A program that moves m bytes can move fewer in the same time, so the floor at n bytes is the fastest of all programs at
n bytes and above; of a rate, what they take for a message counts. Above the size that a form's file states, where
programs copy, it is composed: so many bounced lines, and the bytes at the best copy rate found. References are in
neither. Which programs copy and which are references, their files say; nothing here knows a floor by name.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from statistics import median

from cadge_analysis.stats import intervals
from cadge_analysis.stats.inference.rounds import RoundKey
from cadge_analysis.stats.intervals import Estimate
from cadge_analysis.stats.load import Case, Family
from cadge_analysis.stats.numbers import Numbers
from cadge_results import FloorFile

Group = tuple[str, str, str, Family]
"""Place, wait mode, form, and the values of the form's parameters but its axis."""
FloorKey = tuple[str, str, str, Family, int]
"""A group and a size."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Floor:
    """A floor at `size`: of one program, or of a line's and a copy's where it is composed. Keyed by round as they are.

    `case` is of the programs that it stands for; one that copies may be of another form.
    """

    case: Case
    size: int
    by_round: Mapping[RoundKey, float]
    central: Estimate
    programs: tuple[Numbers, ...]
    composed: bool

    @property
    def program(self) -> Numbers:
        """The program that it is of; of a composed one, the one that copies."""
        return self.programs[-1]


def group_of(case: Case) -> Group:
    """Return which programs a program stands beside."""
    return case.place, case.wait, case.pattern, case.family


def _moved(case: Case, size: int) -> int:
    """Return the bytes that an operation moves where the axis has the value `size`."""
    names = case.file.moves or case.file.byte_parameters
    return sum(size if name == case.file.axis else case.workload.integer(name) for name in names)


def _exchange(value: float, case: Case, size: int) -> float:
    """Return the ns that an operation takes for a value of the main quantity, and as well the value for such ns."""
    quantity = case.file.main_quantity
    if quantity.better == "low":
        return value
    return _moved(case, size) * 1e3 / value if quantity.unit == "MB/s" else 1e9 / value


def _scaled(numbers: Numbers, size: int) -> dict[RoundKey, float]:
    """Return what each launch of a program would show of messages of `size`, which take as long as its own."""
    case = numbers.cell.case
    return {
        key: _exchange(_exchange(value, case, case.size), case, size)
        for key, value in numbers.by_round.items()
        if value > 0
    }


def _of_program(numbers: Numbers, size: int) -> Floor | None:
    by_round = _scaled(numbers, size)
    if not by_round:
        return None
    central = intervals.over_rounds(by_round)
    case = numbers.cell.case
    return Floor(case=case, size=size, by_round=by_round, central=central, programs=(numbers,), composed=False)


def _rank(floor: Floor) -> tuple[float, bool, int, object]:
    """Return the order of floors at one size: the fastest first; of equal ones the smaller size, then the name."""
    cell = floor.program.cell
    return _exchange(floor.central.value, floor.case, floor.size), floor.composed, cell.case.size, cell.series


class Floors:
    """All floor programs of a campaign."""

    def __init__(self, programs: Iterable[Numbers], files: Mapping[str, FloorFile]) -> None:
        """Take in the programs; `files` are their files, by name."""
        self._files = files
        self._limits: dict[Group, list[Numbers]] = defaultdict(list)
        self._references: dict[Group, list[Numbers]] = defaultdict(list)
        for numbers in programs:
            file = files.get(numbers.cell.series.layer)
            chosen = self._references if file is not None and file.reference else self._limits
            chosen[group_of(numbers.cell.case)].append(numbers)
        self._copies = {group: self._best_copy(group) for group in self._limits}
        self._found: dict[FloorKey, Floor | None] = {}
        self._found_references: dict[FloorKey, tuple[Floor, ...]] = {}

    @property
    def keys(self) -> set[FloorKey]:
        """Every group and size that a program was measured at, references included."""
        return {
            (*group, numbers.cell.case.size)
            for groups in (self._limits, self._references)
            for group, members in groups.items()
            for numbers in members
        }

    def at(self, key: FloorKey) -> Floor | None:
        """Return the floor at a size, or None where no program was measured at it or above. All layers share it."""
        if key not in self._found:
            self._found[key] = self._at(key)
        return self._found[key]

    def _at(self, key: FloorKey) -> Floor | None:
        group, size = key[:4], key[4]
        found = [_of_program(one, size) for one in self._limits.get(group, ()) if one.cell.case.size >= size]
        found.append(self._composed(group, size))
        return min((floor for floor in found if floor is not None), key=_rank, default=None)

    def references_at(self, key: FloorKey) -> tuple[Floor, ...]:
        """Return the references measured at that very size, the fastest first."""
        if key not in self._found_references:
            self._found_references[key] = self._references_at(key)
        return self._found_references[key]

    def _references_at(self, key: FloorKey) -> tuple[Floor, ...]:
        group, size = key[:4], key[4]
        found = (_of_program(one, size) for one in self._references.get(group, ()) if one.cell.case.size == size)
        return tuple(sorted((floor for floor in found if floor is not None), key=_rank))

    def _line(self, group: Group) -> Numbers:
        """Return the fastest program of a group: where small messages were measured, that of one line."""

        def cost_ns(numbers: Numbers) -> tuple[float, object]:
            case = numbers.cell.case
            return _exchange(numbers.central.value, case, case.size), numbers.cell.series

        return min(self._limits[group], key=cost_ns)

    def _best_copy(self, group: Group) -> tuple[Numbers, Mapping[RoundKey, float]] | None:
        """Return the program that copies a byte fastest, and its ns a byte by round; None where nothing is composed."""
        if self._limits[group][0].cell.case.file.copied is None:
            return None
        found = [
            (numbers, per_byte)
            for other, members in self._limits.items()
            if other[:2] == group[:2] and _agree(other[3], group[3])
            for numbers, per_byte in self._copy_rates(other, members)
        ]
        return min(
            found, key=lambda one: (median(one[1].values()), one[0].cell.series, one[0].cell.case.size), default=None
        )

    def _copy_rates(
        self, group: Group, members: Iterable[Numbers]
    ) -> Iterator[tuple[Numbers, Mapping[RoundKey, float]]]:
        """Yield the programs of a group that copy, each with its ns a byte by round: what is over the bounced lines."""
        for numbers in members:
            case = numbers.cell.case
            file, rule = self._files.get(numbers.cell.series.layer), case.file.copied
            if file is None or not file.copies or rule is None or (rule.lines and case.size < rule.above_bytes):
                continue
            line = self._lines(group)
            moved = _moved(case, case.size)
            per_byte = {
                key: (_exchange(value, case, case.size) - line(key)) / moved
                for key, value in numbers.by_round.items()
                if value > 0 and moved
            }
            if per_byte and min(per_byte.values()) > 0:
                yield numbers, per_byte

    def _lines(self, group: Group) -> Callable[[RoundKey], float]:
        """Return what the bounced lines of an operation take, by round; the usual time in a round without one."""
        line = self._line(group)
        rule = line.cell.case.file.copied
        many = rule.lines if rule is not None else 0
        usual = line.central.value
        return lambda key: many * line.by_round.get(key, usual) if many else 0.0

    def _composed(self, group: Group, size: int) -> Floor | None:
        """Return bounced lines and bytes at the best copy rate: of `size`, or of where composing begins if larger."""
        copy = self._copies.get(group)
        rule = self._limits[group][0].cell.case.file.copied if copy else None
        if copy is None or rule is None:
            return None
        numbers, per_byte = copy
        case = self._limits[group][0].cell.case
        lines, moved = self._lines(group), _moved(case, max(size, rule.above_bytes))
        by_round = {key: _exchange(lines(key) + moved * cost, case, size) for key, cost in per_byte.items()}
        programs = (self._line(group), numbers) if rule.lines else (numbers,)
        central = intervals.over_rounds(by_round)
        return Floor(case=case, size=size, by_round=by_round, central=central, programs=programs, composed=True)


def _agree(one: Family, other: Family) -> bool:
    """Tell whether two forms have the same values where both have a parameter."""
    values = dict(other)
    return all(values.get(name, value) == value for name, value in one)
