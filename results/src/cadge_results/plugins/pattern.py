# SPDX-License-Identifier: BSD-3-Clause
"""The pattern file: a workload as a plug-in (`harness/patterns/NAME/NAME.pattern.yml`, `cadge.pattern/1`).

It holds what people read and what every other part needs: parameters with their limits, quantities, roles, axis, floor
and words. Planner, store, export, tables, charts and sentences read it; none of them knows a pattern by name. The forms
of floors (`harness/floors/FORM.pattern.yml`) are described in the same way.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping
from functools import cached_property
from typing import Self

from pydantic import model_validator

from cadge_results.formats.point import Value, Workload
from cadge_results.plugins.parameter import (
    LESS_ONE,
    ByChoice,
    ByOne,
    DeclaredChoice,
    DeclaredInteger,
    Parameter,
    holds,
)
from cadge_results.plugins.pattern_fields import PatternFields
from cadge_results.plugins.pattern_problems import problems
from cadge_results.plugins.rules import PLACEHOLDER

Say = Callable[[Parameter, Value], str]
_SECTION = re.compile(r"\[(!?)([^\[\]]*)\]")


class PatternFile(PatternFields):
    """One pattern, or one form of floors."""

    @property
    def takes(self) -> float:
        """How much time a point takes for each second for which it is measured."""
        return 1 + self.warmup_percent / 100

    @cached_property
    def byte_parameters(self) -> tuple[str, ...]:
        """Names of the parameters that are sizes."""
        return tuple(name for name, one in self.parameters.items() if one.unit == "bytes")

    @cached_property
    def size_parameter(self) -> str | None:
        """The parameter that says how long a message is: the axis, or where that is no size, what is moved first."""
        sizes = self.byte_parameters
        moved = [name for name in self.moves if name in sizes]
        return next((name for name in (self.axis, *moved) if name in sizes), None)

    @cached_property
    def reading_order(self) -> tuple[str, ...]:
        """Names of the parameters as rows are sorted by them.

        Choices, other numbers, the axis, what follows it; last what has a value that ranks, so that points with another
        stand beside those with that one.
        """

        def rank(name: str) -> int:
            one = self.parameters[name]
            if one.ranks is not None:
                return 4
            if one.type == "choice":
                return 0
            if name == self.axis:
                return 2
            return 3 if one.follows == self.axis else 1

        return tuple(sorted(self.parameters, key=rank))

    def workload(self, name: str, given: Mapping[str, Value]) -> Workload:
        """Return a workload of this pattern, called `name`, defaults filled in. Raises ValueError."""
        values: dict[str, Value] = {}
        unknown = sorted(set(given) - set(self.parameters))
        if unknown:
            raise ValueError(f"{name} has no parameter {unknown[0]}; it has {', '.join(self.parameters)}")
        for key, one in self.parameters.items():
            value = given.get(key, one.default)
            if value is None and one.follows is not None:
                leader = self.parameters[one.follows]
                value = given.get(one.follows, leader.default)
            if value is None:
                raise ValueError(f"{name} needs {key}")
            values[key] = value
        self.check(name, values)
        return Workload(pattern=name, parameters=tuple(sorted(values.items())))

    def check(self, name: str, values: Mapping[str, Value]) -> None:
        """Raise ValueError where names or values are not those that this pattern, called `name`, has."""
        for key in [*self.parameters, *values]:
            if key not in values:
                raise ValueError(f"{name}: {key} is missing")
            if key not in self.parameters:
                raise ValueError(f"{name} has no parameter {key}")
            if why := self.parameters[key].refuse(values[key]):
                raise ValueError(f"{name}: {key}: {why}")

    def exists(self, workload: Workload) -> bool:
        """Tell whether a combination of values is one that the pattern has."""
        kept = all(self.is_usual(name, workload) for name in self.replaced(workload))
        return kept and all(holds(one.then, workload) for one in self.constraints if holds(one.when, workload))

    def replaced(self, workload: Workload) -> tuple[str, ...]:
        """Return the parameters that another one replaces here."""
        return tuple(
            name for name, one in self.parameters.items() if one.unless and not self.is_usual(one.unless, workload)
        )

    def calls_are_native(self, caps: Collection[str]) -> bool:
        """Tell whether a layer that grants these capabilities carries out the operations with calls of its own."""
        return {"RPC", *self.call_caps} <= set(caps)

    def baseline_of(self, workload: Workload) -> Workload | None:
        """Return the workload that one is divided by; None where it is such a one itself, or there is none.

        It is alike but for what a constraint asks for where the baseline's value holds.
        """
        if self.baseline is None or workload[self.baseline.parameter] == self.baseline.value:
            return None
        own = {self.baseline.parameter: self.baseline.value}
        values = {**workload.values, **own}
        for one in self.constraints:
            if one.when == own:
                values |= one.then
        made = Workload(pattern=workload.pattern, parameters=tuple(sorted(values.items())))
        return made if self.exists(made) else None

    def does_replay(self, workload: Workload) -> bool:
        """Tell whether a workload replays a trace."""
        return self.replays is not None and holds(self.replays.when, workload)

    def caps_needed(self, workload: Workload) -> tuple[str, ...]:
        """Return the capabilities that a layer needs for a workload."""
        return tuple(cap for need in self.needs if holds(need.when, workload) for cap in need.caps)

    def number(self, value: int | str | ByOne | ByChoice, workload: Workload) -> int:
        """Return a number that is given as it is, by a parameter's name, or either by a choice."""
        if isinstance(value, dict):
            [(choice, words)] = value.items()
            return self.number(words[str(workload[choice])], workload)
        if isinstance(value, int):
            return value
        return workload.integer(value.removesuffix(LESS_ONE)) - value.endswith(LESS_ONE)

    def count_of(self, name: str, workload: Workload) -> int:
        """Return how many endpoints play a role; none where it is not there."""
        role = self.roles[name]
        return self.number(role.count, workload) if holds(role.when, workload) else 0

    def roles_of(self, workload: Workload) -> tuple[str, ...]:
        """Return the roles that are there."""
        return tuple(name for name, role in self.roles.items() if holds(role.when, workload))

    def is_usual(self, name: str, workload: Workload) -> bool:
        """Tell whether a parameter is at its default, or has the value of the one that it follows."""
        one = self.parameters[name]
        if one.follows is not None:
            return workload[name] == workload[one.follows]
        return one.default is not None and workload[name] == one.default

    def does_rank(self, workload: Workload) -> bool:
        """Tell whether layers are ranked by such a point, or it only stands beside."""
        return all(one.ranks is None or workload[name] == one.ranks for name, one in self.parameters.items())

    def moved_bytes(self, workload: Workload) -> tuple[int, ...]:
        """Return the bytes of each message of an operation."""
        return tuple(workload.integer(name) for name in self.moves or self.byte_parameters)

    def deep(self, workload: Workload) -> int:
        """Return how many operations are under way at a time."""
        return workload.integer(self.outstanding) if self.outstanding else 1

    def fill(self, template: str, workload: Workload, say: Say) -> str:
        """Return a template with the values of a workload; what is usual in [...] is left out.

        So is what a trace decides, where one is replayed, and what another parameter replaces; in [!...] only that is.
        """
        decided = self.replaced(workload)
        if self.replays is not None and self.does_replay(workload):
            decided += self.replays.decides

        def section(match: re.Match[str]) -> str:
            always, text = match[1], match[2]
            names = PLACEHOLDER.findall(text)
            goes = (name in decided or (not always and self.is_usual(name, workload)) for name in names)
            return "" if all(goes) else text

        def value(match: re.Match[str]) -> str:
            return say(self.parameters[match[1]], workload[match[1]])

        return PLACEHOLDER.sub(value, _SECTION.sub(section, template))

    @cached_property
    def workload_words(self) -> str:
        """The template of a point in words."""
        if self.words.workload:
            return self.words.workload
        said = []
        for name, one in self.parameters.items():
            if name == self.axis:
                continue
            text = one.say.replace("{title}", one.title).replace("{value}", f"{{{name}}}")
            said.append(f", {text}" if one.is_required else f"[, {text}]")
        return f"{{{self.axis}}}{''.join(said)}"

    @model_validator(mode="after")
    def _names_known(self) -> Self:
        for problem in problems(self):
            raise ValueError(problem)
        return self


def declared(files: Mapping[str, PatternFile]) -> dict[str, dict[str, DeclaredInteger | DeclaredChoice]]:
    """Return types and limits of every parameter of some patterns, as a launch file declares them."""
    return {
        pattern: {name: parameter.limits() for name, parameter in file.parameters.items()}
        for pattern, file in files.items()
    }
