# SPDX-License-Identifier: BSD-3-Clause
"""What a command line asks in place of a sweep file: patterns, sizes, places, wait modes, launches, durations.

What the file says of the whole sweep is replaced. An entry with places or wait modes of its own keeps those that were
asked for, and goes where none is.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from pydantic import JsonValue

from cadge_harness.errors import UsageError
from cadge_harness.plan.sweep import problems, values
from cadge_results import PatternFile, SweepFile, Workloads
from cadge_results.formats.base import Place, Wait
from cadge_results.formats.complaint import nearest
from cadge_results.formats.sweep import TWIN_NONE, LayerEntry, PatternEntry
from cadge_results.units import format_bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Narrowing:
    """What was asked for; what is empty leaves the sweep as it is."""

    patterns: tuple[str, ...] = ()
    sizes: tuple[int, ...] = ()
    launches: int | None = None
    duration_ms: int | None = None
    places: tuple[Place, ...] = ()
    waits: tuple[Wait, ...] = ()

    def said(self) -> str:
        """Return it as a title has it, e.g. `rpc; 8B, 4KiB; 3 launches`."""
        parts = [
            ", ".join(self.patterns),
            ", ".join(map(format_bytes, self.sizes)),
            f"launches: {self.launches}" if self.launches else "",
            f"{self.duration_ms} ms a point" if self.duration_ms else "",
            ", ".join(self.places),
            ", ".join(self.waits),
        ]
        return "; ".join(filter(None, parts))


NOTHING_ASKED = Narrowing()


def narrowed(
    sweep: SweepFile, workloads: Workloads, asked: Narrowing, *, name: str, folder: Path
) -> tuple[SweepFile, tuple[str, ...]]:
    """Return a sweep with what was asked for in its place, and what a reader should know of what goes.

    More launches than the file has make its budget grow with them; for a duration that was asked for it has none.
    name, folder: of the sweep, and of all sweeps. Raises UsageError where nothing is left, or nothing takes a size.
    """
    if asked == NOTHING_ASKED:
        return sweep, ()
    _check_patterns(sweep, workloads, asked, name, folder)
    changes: dict[str, object] = {"title": f"{sweep.title} ({asked.said()})"}
    if asked.places:
        changes |= {"places": asked.places, "layers": tuple(_layers(sweep.layers, asked.places))}
    if asked.waits:
        changes["waits"] = asked.waits
    if asked.launches:
        changes |= {"launches": asked.launches, "looks": None}
        if sweep.budget is not None:
            changes["budget"] = sweep.budget * max(asked.launches, sweep.launches) // sweep.launches
    if asked.duration_ms:
        each = {"default": asked.duration_ms, "least": None, "focus": ()}
        changes |= {"duration": sweep.duration.model_copy(update=each), "budget": None}
    changed = sweep.model_copy(update=changes)
    entries, gone = _entries(changed, workloads, asked)
    _check_sizes(entries, workloads, asked.sizes, gone)
    if not entries or (sweep.layers and not changed.layers):
        why = "; ".join(f"{pattern}: {why}" for pattern, why in gone.items()) or "its layers have places of their own"
        raise UsageError(f"the sweep {name} has nothing of {asked.said()}: {why}")
    left = {entry.pattern for entry in entries}
    notices = tuple(f"{pattern} is left out: {why}" for pattern, why in gone.items() if pattern not in left)
    return changed.model_copy(update={"patterns": tuple(entries)}), notices


def _check_patterns(sweep: SweepFile, workloads: Workloads, asked: Narrowing, name: str, folder: Path) -> None:
    """Raise UsageError for a pattern that there is not, or that the sweep does not measure."""
    here = dict.fromkeys(entry.pattern for entry in sweep.patterns)
    for pattern in asked.patterns:
        if pattern not in workloads.patterns:
            hint = nearest(pattern, workloads.patterns, before="--patterns ")
            raise UsageError(f"--patterns: unknown pattern {pattern!r}{hint}")
        if pattern not in here:
            text = f"pattern: {pattern}"
            others = [path.stem for path in sorted(folder.glob("*.yml")) if _names(path, text)]
            example = folder / "smoke.yml"
            advice = (
                f"{pattern} is in --sweep {', '.join(others)}"
                if others
                else f"copy {example}, write {{pattern: {pattern}, ...}} under patterns, and use --sweep FILE"
            )
            raise UsageError(
                f"--patterns: the sweep {name} does not measure {pattern}, but {', '.join(here)}; {advice}"
            )


def _names(path: Path, text: str) -> bool:
    words = path.read_text(encoding="utf-8", errors="replace").replace(",", "\n").replace("}", "\n").splitlines()
    return any(line.strip(" -{").rstrip() == text for line in words)


def _check_sizes(
    entries: Sequence[PatternEntry], workloads: Workloads, sizes: Sequence[int], gone: Mapping[str, str]
) -> None:
    """Raise UsageError for a size that no pattern of those takes that take any."""
    files = {name: workloads.patterns[name] for name in (*(one.pattern for one in entries), *gone)}
    takers = {name: file.parameters[key] for name, file in files.items() if (key := file.size_parameter)}
    if sizes and not takers:
        raise UsageError(f"--sizes: no pattern here has a size: {', '.join(files)}")
    for size in sizes:
        refused = {name: why for name, one in takers.items() if (why := one.refuse(size))}
        if len(refused) == len(takers):
            name, why = next(iter(refused.items()))
            raise UsageError(f"--sizes: {format_bytes(size)}: {why}, for {name}")


def _layers(layers: Sequence[LayerEntry], places: Collection[Place]) -> Iterator[LayerEntry]:
    """Yield the layers that are measured at some of the places, each at no others."""
    for entry in layers:
        kept = tuple(place for place in entry.places or () if place in places)
        if entry.places is None or kept:
            yield entry.model_copy(update={"places": kept or None})


def _entries(sweep: SweepFile, workloads: Workloads, asked: Narrowing) -> tuple[list[PatternEntry], dict[str, str]]:
    """Return the entries that are left, and of each pattern that loses one why."""
    entries: list[PatternEntry] = []
    gone: dict[str, str] = {}
    for entry in sweep.patterns:
        if asked.patterns and entry.pattern not in asked.patterns:
            continue
        one = _where_asked(entry, asked)
        if isinstance(one, PatternEntry) and asked.sizes:
            one = _of_sizes(one, sweep, workloads, asked.sizes)
        if isinstance(one, str):
            gone[entry.pattern] = one
        elif one not in entries:
            entries.append(one)
    return entries, gone


def _where_asked(entry: PatternEntry, asked: Narrowing) -> PatternEntry | str:
    """Return an entry with those of its own places and wait modes that were asked for, or why none is left."""
    places = tuple(one for one in entry.places or () if not asked.places or one in asked.places)
    waits = tuple(one for one in entry.waits or () if not asked.waits or one in asked.waits)
    layers = tuple(_layers(entry.layers or (), asked.places)) if asked.places else entry.layers or ()
    if (entry.places and not places) or (entry.waits and not waits) or (entry.layers and not layers):
        own = ", ".join((*(entry.places or ()), *(entry.waits or ()))) or "layers with places of their own"
        return f"the sweep has it only {own}"
    return entry.model_copy(update={"places": places or None, "waits": waits or None, "layers": layers or None})


def _of_sizes(entry: PatternEntry, sweep: SweepFile, workloads: Workloads, sizes: Sequence[int]) -> PatternEntry | str:
    """Return an entry with those of the sizes that its pattern takes, or why it takes none.

    A reply whose sizes are written like the request's gets the same. Of parameters that advance together (`zip`) those
    values stay that stand beside one of the sizes.
    """
    pattern = workloads.patterns[entry.pattern]
    name = pattern.size_parameter
    if name is None:
        return entry
    fitting = [size for size in sizes if pattern.parameters[name].refuse(size) is None]
    if not fitting:
        return f"{pattern.parameters[name].refuse(sizes[0])}"
    group = next((group for group in entry.zip if name in group), ())
    if group:
        listed = _listed(entry, name, pattern, sweep)
        texts = {format_bytes(size) for size in fitting}
        rows = [row for row, text in enumerate(listed) if text in texts]
        if not rows:
            return f"{' and '.join(group)} advance together, by sizes that were not asked for"
        given = {key: [_listed(entry, key, pattern, sweep)[row] for row in rows] for key in group}
    else:
        like = entry.parameters.get(name)
        alike = [key for key in pattern.moves if like is not None and entry.parameters.get(key) == like]
        given = {key: [format_bytes(size) for size in fitting] for key in (name, *alike)}
    one = entry.model_copy(update={"parameters": {**entry.parameters, **given}})
    problem = next(problems(sweep.model_copy(update={"patterns": (one,)}), workloads), None)
    return one if problem is None else problem.text


def _listed(entry: PatternEntry, key: str, pattern: PatternFile, sweep: SweepFile) -> list[JsonValue]:
    """Return the values of a parameter as a file has them, sizes in one way."""
    raw = entry.parameters[key]
    if pattern.parameters[key].unit != "bytes":
        return raw if isinstance(raw, list) else [raw]
    found = values(raw, pattern.parameters[key], sweep)
    return [format_bytes(value) if isinstance(value, int) else value for value in found]


PILOT_LAUNCHES = 3
"""The middle one of three is taken of each point."""


def shares_of(workloads: Workloads, pattern: str) -> dict[str, tuple[str, str]]:
    """Return the parameters of a pattern that are shares: what replaces each, and the rate that it is a share of."""
    parameters = workloads.patterns[pattern].parameters
    return {name: (one.unless, one.of) for name, one in parameters.items() if one.unless and one.of}


def pilot_of(sweep: SweepFile, workloads: Workloads) -> tuple[SweepFile, str]:
    """Return a short sweep over the baseline alone, and the baseline's layer. Raises UsageError."""
    if sweep.baseline is None:
        raise UsageError("--pilot measures the baseline, and this sweep names none")
    entries = tuple(_relative(sweep, workloads))
    if not entries:
        raise UsageError("--pilot: this sweep has no point whose load can be given as a rate")
    changes = {
        "title": f"Pilot: {sweep.title}",
        "patterns": entries,
        "launches": PILOT_LAUNCHES,
        "looks": None,
        "budget": None,
        "floors": False,
        "twin": TWIN_NONE,
    }
    return sweep.model_copy(update=changes), sweep.baseline.split()[0]


def _relative(sweep: SweepFile, workloads: Workloads) -> Iterator[PatternEntry]:
    """Yield the entries whose load can be a rate, at the usual share of a closed loop, each once."""
    seen: list[PatternEntry] = []
    for entry in sweep.patterns:
        shares = shares_of(workloads, entry.pattern)
        dropped = {*shares, *(rate for rate, _ in shares.values())}
        kept = {name: value for name, value in entry.parameters.items() if name not in dropped}
        groups = tuple(group for group in entry.zip if not dropped & set(group))
        one = entry.model_copy(update={"parameters": kept, "zip": groups})
        if shares and one not in seen:
            seen.append(one)
            yield one
