# SPDX-License-Identifier: BSD-3-Clause
"""Sweeps: finding and reading a sweep file, and turning its values into workloads by the patterns' own files."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from math import prod
from pathlib import Path

from pydantic import JsonValue

from cadge_harness.errors import UsageError
from cadge_harness.plan.catalogue import no_layer
from cadge_harness.yamlbounds import OWN, check_bytes
from cadge_harness.yamlfile import load_document
from cadge_results import PatternFile, SweepFile, Workload, Workloads
from cadge_results.formats.base import Place, Wait
from cadge_results.formats.complaint import EXAMPLE, Complaint, nearest, with_example
from cadge_results.formats.point import Value
from cadge_results.formats.sweep import ALL_LAYERS, SAME, Focus, PatternEntry
from cadge_results.plugins.build import AT, matches
from cadge_results.plugins.parameter import Parameter
from cadge_results.plugins.pattern_problems import ENDPOINTS_MAX
from cadge_results.units import format_bytes, parse_bytes, parse_ns

_SEVERAL = re.compile(r"\s*,\s*|\s+(?=[0-9])")
COMBINATIONS_MAX = 10_000
"""Of values, places and wait modes in a sweep: many times what the largest of ours has."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WantedPoint:
    """A workload at a place and in a wait mode."""

    workload: Workload
    place: Place
    wait: Wait


@dataclass(frozen=True, slots=True, kw_only=True)
class FocusOn:
    """Points that get a duration of their own: one of the values of each parameter named, and place and wait mode."""

    pattern: str
    values: Mapping[str, tuple[Value, ...]]
    place: Place | None
    wait: Wait | None
    duration_ms: int

    def matches(self, wanted: WantedPoint) -> bool:
        """Tell whether a workload is in focus."""
        return (
            wanted.workload.pattern == self.pattern
            and self.place in (None, wanted.place)
            and self.wait in (None, wanted.wait)
            and all(wanted.workload.values.get(name) in values for name, values in self.values.items())
        )


def find_sweep(name: str, folder: Path) -> Path:
    """Return the file of a sweep, by path or by name. Raises UsageError with the nearest name."""
    path = Path(name)
    if "/" in name or path.suffix in {".yml", ".yaml"}:
        if not path.is_file():
            raise UsageError(f"sweep file {name} does not exist")
        return path
    found = folder / f"{name}.yml"
    if found.is_file():
        return found
    known = [item.stem for item in folder.glob("*.yml")]
    raise UsageError(f"unknown sweep {name!r}{nearest(name, known)}")


def read_sweep(path: Path, workloads: Workloads, layers: Sequence[str] = ()) -> tuple[SweepFile, str]:
    """Return a sweep that fits the patterns, and its text. Raises UsageError with line and column.

    layers: all that there are, the likeliest first, which those of the sweep and its baseline are looked for among;
    without them they are not looked for.
    """
    try:
        with path.open("rb") as stream:
            content = stream.read(OWN.text_bytes + 1)
        check_bytes(len(content), source=str(path))
        text = content.decode("utf-8")
    except UnicodeDecodeError as error:
        raise UsageError(f"{path}: not UTF-8 text (byte {error.start})") from error
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror}") from error

    def check(sweep: SweepFile) -> Iterator[Complaint]:
        yield from problems(sweep, workloads)
        yield from _baseline_problems(sweep, layers)

    def check_raw(raw: Mapping[str, JsonValue]) -> Iterator[Complaint]:
        yield from _layer_problems(raw, layers)

    return load_document(text, SweepFile, source=str(path), check=check, check_raw=check_raw), text


def _layer_problems(raw: Mapping[str, JsonValue], layers: Sequence[str]) -> Iterator[Complaint]:
    """Yield which layers of a sweep are not there. Of those on a provider the planner knows more."""
    named = [*_named_layers(raw, "without"), *_named_layers(raw, "layers")]
    patterns = raw.get("patterns")
    for number, entry in enumerate(patterns if isinstance(patterns, list) else ()):
        if isinstance(entry, dict):
            named += [(("patterns", number, *path), name) for path, name in _named_layers(entry, "layers")]
    for path, name in named if layers else ():
        if AT not in name and not any(matches(one, name) for one in layers):
            yield Complaint(path=path, text=no_layer(name, layers))


def _named_layers(raw: Mapping[str, JsonValue], key: str) -> Iterator[tuple[tuple[str | int, ...], str]]:
    """Yield the names below a key with their places. What is no name is none of ours: the format refuses it."""
    value = raw.get(key)
    for number, item in enumerate(value if isinstance(value, list) else [value]):
        name = item.get("layer") if isinstance(item, dict) else item
        if isinstance(name, str) and name != ALL_LAYERS and not re.search(r"[\s,]", name):
            yield (key, number), name


def _baseline_problems(sweep: SweepFile, layers: Sequence[str]) -> Iterator[Complaint]:
    """Yield why a sweep's baseline is no layer of it."""
    if sweep.baseline is None or not layers:
        return
    labels: dict[str, None] = {}
    for part in by_layers(sweep):
        if not part.layers:
            labels.update(dict.fromkeys(name for name in layers if name not in sweep.without and AT not in name))
        for entry in part.layers:
            names = [name for name in layers if matches(name, entry.layer)]
            labels.update(dict.fromkeys(entry.model_copy(update={"layer": name}).label for name in names))
    if sweep.baseline not in labels:
        alike = [label for label in labels if label.split()[:1] == sweep.baseline.split()[:1]]
        hint = nearest(sweep.baseline, alike or labels)
        yield Complaint(path=("baseline",), text=f"{sweep.baseline!r} is no layer of this sweep{hint}")


def problems(sweep: SweepFile, workloads: Workloads) -> Iterator[Complaint]:
    """Yield what does not fit the patterns."""
    left = COMBINATIONS_MAX
    for number, entry in enumerate(sweep.patterns):
        where = ("patterns", number)
        pattern = workloads.patterns.get(entry.pattern)
        if pattern is None:
            yield _unknown(where, entry.pattern, workloads)
            continue
        found = list(_value_problems(where, entry, pattern, sweep))
        yield from found
        lacking = [name for name, one in pattern.parameters.items() if one.is_required and name not in entry.parameters]
        if lacking:
            example = ", ".join(_example(name, pattern.parameters[name]) for name in lacking)
            yield Complaint(
                path=where,
                text=f"{entry.pattern} needs {' and '.join(lacking)}{EXAMPLE}{{pattern: {entry.pattern}, {example}}}",
            )
        elif not found:
            try:
                left -= _count(entry, sweep, pattern, left)
                list(_workloads(entry, sweep, pattern))
            except ValueError as error:
                yield Complaint(path=where, text=str(error))
    for number, focus in enumerate(sweep.duration.focus):
        at = ("duration", "focus", number)
        pattern = workloads.patterns.get(focus.pattern)
        if pattern is None:
            yield _unknown(at, focus.pattern, workloads)
        else:
            yield from _value_problems(at, focus, pattern, sweep)


def _unknown(where: tuple[str | int, ...], name: str, workloads: Workloads) -> Complaint:
    hint = nearest(name, workloads.patterns, before="pattern: ")
    return Complaint(path=(*where, "pattern"), text=f"{name!r} is not allowed{hint}")


def _value_problems(
    where: tuple[str | int, ...], entry: PatternEntry | Focus, pattern: PatternFile, sweep: SweepFile
) -> Iterator[Complaint]:
    for key, raw in entry.parameters.items():
        path = (*where, key)
        if key not in pattern.parameters:
            known = [*pattern.parameters, *(name for name in type(entry).model_fields if name != "parameters")]
            text = f"{entry.pattern} has no parameter {key}{nearest(key, known)}"
            yield Complaint(path=path, text=text, of_key=True)
            continue
        if pattern.parameters[key].unit == "trace":
            yield Complaint(path=path, text="is what --trace FILE gives, and cannot be written", of_key=True)
            continue
        try:
            values(raw, pattern.parameters[key], sweep)
        except ValueError as error:
            text = str(error)
            said = text if "like" in text else with_example(text, _example(key, pattern.parameters[key]))
            yield Complaint(path=path, text=said)


def _example(name: str, parameter: Parameter) -> str:
    """Return a parameter with a value as a sweep may write it."""
    if parameter.type == "choice":
        return f"{name}: {parameter.values[0]}"
    least = parameter.min or 0
    usual = parameter.default if isinstance(parameter.default, int) else max(least, 1)
    if parameter.unit == "bytes":
        return f"{name}: {format_bytes(max(8, least) if parameter.default is None else usual)}"
    return f"{name}: {usual}ns" if parameter.unit == "ns" else f"{name}: {usual}"


def values(raw: JsonValue, parameter: Parameter, sweep: SweepFile) -> tuple[Value, ...]:
    """Return the values that a sweep gives for a parameter; the word `same` stays. Raises ValueError."""
    if isinstance(raw, str) and parameter.unit == "bytes" and raw.isalpha() and raw != SAME:
        if raw not in sweep.vectors:
            known = ", ".join(sorted(sweep.vectors)) or "none"
            raise ValueError(f"no vector is called {raw!r}; vectors here: {known}; a size is written like 8B or 4KiB")
        found: list[Value] = list(sweep.vectors[raw])
    elif isinstance(raw, str) and (several := _SEVERAL.split(raw.strip()))[1:]:
        raise ValueError(f"several values must be a list, like [{', '.join(several)}]")
    else:
        found = [_value(item, parameter) for item in (raw if isinstance(raw, list) else [raw])]
    if not found:
        raise ValueError("at least one value is needed")
    for value in found:
        if value == SAME and parameter.type == "integer":
            if parameter.follows is None:
                raise ValueError(f"`{SAME}` is for a parameter that follows another; this one does not")
        elif why := parameter.refuse(value):
            raise ValueError(why)
    return tuple(found)


def _value(raw: JsonValue, parameter: Parameter) -> Value:
    if raw == SAME and parameter.type == "integer":
        return SAME
    if parameter.unit == "bytes":
        return parse_bytes(raw)
    if parameter.unit == "ns":
        return parse_ns(raw)
    if parameter.type == "choice":
        if not isinstance(raw, str) or raw not in parameter.values:
            raise ValueError(f"{raw!r} is not allowed{nearest(str(raw), parameter.values)}")
        return raw
    if not isinstance(raw, int) or isinstance(raw, bool):
        raise ValueError(f"{raw!r} is not a whole number from {parameter.min} to {parameter.max}")  # noqa: TRY004 - what a user wrote
    return raw


def focuses(sweep: SweepFile, workloads: Workloads) -> list[FocusOn]:
    """Return what is in focus, in the order of the file."""
    return [_focus(focus, workloads.patterns[focus.pattern], sweep) for focus in sweep.duration.focus]


def _focus(focus: Focus, pattern: PatternFile, sweep: SweepFile) -> FocusOn:
    return FocusOn(
        pattern=focus.pattern,
        values={name: values(raw, pattern.parameters[name], sweep) for name, raw in focus.parameters.items()},
        place=focus.place,
        wait=focus.wait,
        duration_ms=focus.duration,
    )


def wanted(sweep: SweepFile, workloads: Workloads) -> list[WantedPoint]:
    """Return every workload at every place in every wait mode of a sweep once, in the order of the file.

    Raises UsageError for what does not fit the patterns.
    """
    for problem in problems(sweep, workloads):
        raise UsageError(f"{'.'.join(map(str, problem.path))}: {problem.text}")
    found: dict[WantedPoint, None] = {}
    for entry in sweep.patterns:
        places, waits = entry.places or sweep.places, entry.waits or sweep.waits
        made = _workloads(entry, sweep, workloads.patterns[entry.pattern])
        for place, wait, workload in product(places, waits, list(made)):
            found[WantedPoint(workload=workload, place=place, wait=wait)] = None
    return list(found)


def idle_values(sweep: SweepFile, workloads: Workloads) -> Iterator[str]:
    """Yield a sentence for each value of a list that stands in no point, as the pattern has no combination with it."""
    for entry in sweep.patterns:
        pattern = workloads.patterns[entry.pattern]
        made = [workload.values for workload in _workloads(entry, sweep, pattern)]
        for name, raw in entry.parameters.items():
            listed = values(raw, pattern.parameters[name], sweep)
            used = {one.get(name) for one in made}
            follows = pattern.parameters[name].follows  # `same` is its value then, and no word of a choice
            idle = [value for value in listed if value not in used and not (follows and value == SAME)]
            if idle and len(listed) > 1:
                which = ", ".join(map(str, idle))
                yield f"{entry.pattern} has no combination of this sweep with {name} {which}: it is measured nowhere"


def by_layers(sweep: SweepFile) -> Iterator[SweepFile]:
    """Yield a sweep in parts whose patterns are all measured over the same layers, which are the part's."""
    common = tuple(entry for entry in sweep.patterns if entry.layers is None)
    if common:
        yield sweep.model_copy(update={"patterns": common})
    for entry in sweep.patterns:
        if entry.layers is not None:
            yield sweep.model_copy(update={"patterns": (entry,), "layers": entry.layers})


def _workloads(entry: PatternEntry, sweep: SweepFile, pattern: PatternFile) -> Iterator[Workload]:
    """Yield every combination that the pattern has. Raises ValueError."""
    axes = _axes(entry, sweep, pattern)
    made = False
    for combination in _combinations(axes, entry.zip):
        given = {
            name: combination[pattern.parameters[name].follows or name] if value == SAME else value
            for name, value in combination.items()
        }
        workload = pattern.workload(entry.pattern, given)
        if pattern.exists(workload):
            made = True
            count = sum(pattern.count_of(role, workload) for role in pattern.roles)
            if count > ENDPOINTS_MAX:
                raise ValueError(f"{entry.pattern}: {count} endpoints are more than {ENDPOINTS_MAX}")
            yield workload
    if not made:
        raise ValueError(f"{entry.pattern} has none of these combinations")


def _count(entry: PatternEntry, sweep: SweepFile, pattern: PatternFile, left: int) -> int:
    """Return how many combinations an entry makes, without making them. Raises ValueError for more than are left."""
    groups = _groups(_axes(entry, sweep, pattern), entry.zip)
    count = prod(map(len, (*groups, entry.places or sweep.places, entry.waits or sweep.waits)))
    if count > left:
        raise ValueError(
            f"makes {count} of the sweep's combinations of values, places and wait modes; "
            f"there may be {COMBINATIONS_MAX}" + (f", and {left} are left" if left < COMBINATIONS_MAX else "")
        )
    return count


def _axes(entry: PatternEntry, sweep: SweepFile, pattern: PatternFile) -> dict[str, tuple[Value, ...]]:
    """Return the values of each parameter, defaults filled in."""
    axes: dict[str, tuple[Value, ...]] = {}
    for name, parameter in pattern.parameters.items():
        if name in entry.parameters:
            axes[name] = values(entry.parameters[name], parameter, sweep)
        else:
            axes[name] = (SAME if parameter.default is None else parameter.default,)
    return axes


def _groups(axes: dict[str, tuple[Value, ...]], zipped: tuple[tuple[str, ...], ...]) -> list[list[dict[str, Value]]]:
    """Return what is combined with what; parameters of one zip group advance together. Raises ValueError."""
    groups: list[list[dict[str, Value]]] = []
    done: set[str] = set()
    for names in zipped:
        lengths = {name: len(axes[name]) for name in names}
        if len(set(lengths.values())) > 1:
            listed = ", ".join(f"{name} has {count}" for name, count in lengths.items())
            raise ValueError(f"zip: parameters that advance together need as many values each; {listed}")
        groups.append([dict(zip(names, row, strict=True)) for row in zip(*(axes[name] for name in names), strict=True)])
        done.update(names)
    groups.extend([{name: value} for value in values] for name, values in axes.items() if name not in done)
    return groups


def _combinations(
    axes: dict[str, tuple[Value, ...]], zipped: tuple[tuple[str, ...], ...]
) -> Iterator[dict[str, Value]]:
    """Yield every combination."""
    for parts in product(*_groups(axes, zipped)):
        merged: dict[str, Value] = {}
        for part in parts:
            merged |= part
        yield merged
