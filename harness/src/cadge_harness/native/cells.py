# SPDX-License-Identifier: BSD-3-Clause
"""Which points of a campaign and which native tools belong together: the sweep, its plan, and the pairs.

Each size of a pattern has launches of its own, as tools have it: a connection carries messages of one size, for TCP
remembers others. Where messages are short, a launch also runs the bare loop, without its clock and checks.
"""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from cadge_harness.errors import NothingSelectedError, UsageError
from cadge_harness.native.tool import Tool
from cadge_harness.native.tools import why_absent
from cadge_harness.plan.timemodel import TimeModel, launch_deadline_ms
from cadge_results import (
    LayerFile,
    NativeAbsent,
    NativeCell,
    PatternFile,
    Plan,
    PlanBlock,
    PlanLaunch,
    PlanPoint,
    Subject,
    Workload,
)
from cadge_results.formats.base import Place, digest
from cadge_results.formats.point import Value
from cadge_results.plugins.layerfile import Native

SHORT_BYTES = 4096
"""Below this the difference is told in ns, and the bare loop stands beside."""
CALL_MAX_BYTES = 4096
"""Calls are compared up to this size: what they do more than the tool is a header, whatever the size."""
RATE_MAX_BYTES = 4096
"""Messages a second are compared up to this size: above it bytes a second say the same."""
FLOW_MIN_BYTES = 65536
"""Streams from this size on, unless the tool sends one by one: what goes together below it is its own choice."""
WINDOW = 16
"""How many messages of a stream are under way, where the layer's file does not say."""
NEARLY = 0.99
"""The most that a tool takes stands for a size of which it is so much."""
TOOL_MS = 900
"""What one run of a tool takes, with its start, as estimated."""
_AROUND_MS = 20
_AS_TOOLS_DO = {"touch": "none", "buffers": "same"}
"""Values of parameters, where a pattern has them: native tools touch no data, and send from one buffer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """A tool, the layer that it stands beside, and where."""

    tool: Tool
    layer: str
    native: Native
    place: Place
    bytes: int
    rate: bool
    """Whether a stream is measured."""

    @property
    def cell_id(self) -> str:
        """Its name in files."""
        values = [f"{name}={value}" for name, value in sorted(self.native.parameters.items())]
        return " / ".join((self.tool.name, self.layer, self.native.pattern, self.place, str(self.bytes), *values))

    def is_of(self, workload: Workload) -> bool:
        """Say whether a workload has the values that its native tool asks for."""
        return all(workload[name] == value for name, value in self.native.parameters.items())


@dataclass(frozen=True, slots=True, kw_only=True)
class NativeSelection:
    """What is to be compared, and what cannot be."""

    pairs: tuple[Pair, ...]
    absent: tuple[NativeAbsent, ...] = field(default=())


def natives_of(files: Iterable[LayerFile]) -> dict[str, tuple[Native, ...]]:
    """Return the layers that have native tools, with these."""
    return {file.name: file.natives for file in files if file.natives}


def choose(
    tools: Sequence[Tool],
    natives: Mapping[str, tuple[Native, ...]],
    patterns: Mapping[str, PatternFile],
    *,
    layers: Collection[str],
    named: Collection[str],
    only: Collection[str],
    places: Sequence[Place],
    sizes: Sequence[int],
    may_be_empty: bool = False,
) -> NativeSelection:
    """Return the pairs of a choice; of layers, tools (the usual ones) and patterns, nothing stands for all.

    Where none of a layer's usual tools for a pattern is installed, the first other one stands for them that is. Raises
    UsageError where a layer's file names a tool or a pattern that is none, and NothingSelectedError.
    """
    known = {tool.name: tool for tool in tools}
    pairs: dict[str, Pair] = {}
    absent: dict[str, list[str]] = defaultdict(list)
    stand_ins = () if named else _stand_ins(known, natives)
    for layer, native in ((layer, one) for layer, ones in natives.items() for one in ones):
        tool = known.get(native.tool)
        if tool is None or native.pattern not in patterns:
            raise UsageError(f"the file of layer {layer} names {native.tool}, {native.pattern}: there is no such pair")
        here = [place for place in places if place in native.places]
        is_named = tool.name in named or tool.name.split()[0] in named
        chosen = (not layers or layer in layers) and (not only or native.pattern in only)
        if not here or not chosen or not (is_named if named else native.usual or native in stand_ins):
            continue
        if why_absent(tool):
            absent[tool.name].append(layer)
            continue
        for place in here:
            for pair in _of_sizes(tool, layer, native, place, sizes, patterns[native.pattern]):
                pairs[pair.cell_id] = pair
    missing = tuple(
        NativeAbsent(tool=name, layers=tuple(dict.fromkeys(beside)), reason=why_absent(known[name]))
        for name, beside in absent.items()
    )
    if not pairs and not may_be_empty:
        why = "; ".join(f"{one.tool}: {one.reason}" for one in missing) or "no native tool measures what was chosen"
        raise NothingSelectedError(f"nothing can be compared: {why}")
    return NativeSelection(pairs=tuple(pairs.values()), absent=missing)


def _stand_ins(known: Mapping[str, Tool], natives: Mapping[str, tuple[Native, ...]]) -> list[Native]:
    """Return tools, none of them usual, that stand for usual ones which are not installed: one a pattern and wait mode.

    That is one of the same pattern, place and values that waits in the same way.
    """
    found: list[Native] = []
    for ones in natives.values():
        of_kind: dict[tuple[object, ...], list[Native]] = defaultdict(list)
        for one in ones:
            if one.tool in known:
                values = tuple(sorted(one.parameters.items()))
                of_kind[one.pattern, one.places, values, known[one.tool].wait].append(one)
        for alike in of_kind.values():
            here = [one for one in alike if not why_absent(known[one.tool])]
            if any(one.usual for one in alike) and not any(one.usual for one in here):
                found += here[:1]
    return found


def _of_sizes(
    tool: Tool, layer: str, native: Native, place: Place, sizes: Sequence[int], pattern: PatternFile
) -> Iterator[Pair]:
    """Yield a pair a size; the least that the tool takes stands for smaller ones, the most for hardly larger ones."""
    rate = pattern.main_quantity.kind == "rate"
    least = FLOW_MIN_BYTES if rate and not tool.one_by_one else 0
    most = CALL_MAX_BYTES if pattern.calls else RATE_MAX_BYTES if pattern.main_quantity.unit == "1/s" else max(sizes)
    fitting = [size for size in sizes if least <= size <= most]
    nearly = [min(size, tool.max_bytes) if size * NEARLY <= tool.max_bytes else size for size in fitting]
    for size in dict.fromkeys(max(size, tool.min_bytes) for size in nearly):
        if size <= tool.max_bytes:
            yield Pair(tool=tool, layer=layer, native=native, place=place, bytes=size, rate=rate)


def sweep_text(
    pairs: Sequence[Pair], patterns: Mapping[str, PatternFile], *, rounds: int, seed: int, duration_ms: int
) -> str:
    """Return the sweep file that measures Cadge's side."""
    groups: dict[tuple[str, str, str, str, tuple[tuple[str, Value], ...]], set[int]] = defaultdict(set)
    for pair in pairs:
        own = tuple(sorted(pair.native.parameters.items()))
        groups[pair.native.pattern, pair.layer, pair.tool.wait, pair.place, own].add(pair.bytes)
    entries = []
    for (pattern, layer, wait, place, own), sizes in groups.items():
        where = f"layers: [{layer}], waits: {wait}, places: {place}"
        file = patterns[pattern]
        given: dict[str, Value] = {name: value for name, value in _AS_TOOLS_DO.items() if name in file.parameters}
        if file.main_quantity.kind == "rate" and file.outstanding:
            given[file.outstanding] = WINDOW
        values = "".join(f"{name}: {value}, " for name, value in (given | dict(own)).items())
        listed = ", ".join(f"{size}B" for size in sorted(sizes))
        entries.append(f"{{pattern: {pattern}, {file.size_parameter}: [{listed}], {values}{where}}}")
        short = ", ".join(f"{size}B" for size in sorted(sizes) if size < SHORT_BYTES)
        for name, loop in loops_of(pattern, patterns).items():
            if short and wait == "poll" and loop.unclocked is not None:
                both = f"{loop.unclocked.parameter}: [{loop.unclocked.bare}, {loop.unclocked.looking}]"
                entries.append(f"{{pattern: {name}, {loop.axis}: [{short}], {both}, {where}}}")
    lines = "".join(f"  - {entry}\n" for entry in entries)
    return (
        "schema: cadge.sweep/2\ntitle: Beside native tools\n"
        f"places: [{', '.join(dict.fromkeys(pair.place for pair in pairs))}]\n"
        f"patterns:\n{lines}launches: {rounds}\nseed: {seed}\nfloors: false\nduration: {{default: {duration_ms}ms}}\n"
    )


def loops_of(pattern: str, patterns: Mapping[str, PatternFile]) -> dict[str, PatternFile]:
    """Return the bare loops of a pattern."""
    return {name: file for name, file in patterns.items() if file.unclocked and file.unclocked.of == pattern}


def size_of(point: PlanPoint, patterns: Mapping[str, PatternFile]) -> int:
    """Return how long the messages of a point are."""
    name = patterns[point.workload.pattern].size_parameter
    return point.workload.integer(name) if name else 0


def _family(point: PlanPoint, patterns: Mapping[str, PatternFile]) -> tuple[str, int]:
    """Return what points of one launch share: pattern, or the one whose bare loop it is, and size."""
    loop = patterns[point.workload.pattern].unclocked
    return loop.of if loop else point.workload.pattern, size_of(point, patterns)


def by_size(plan: Plan, tool_runs: int) -> Plan:
    """Return the plan with launches of one pattern and size each, in random order within a round.

    `tool_runs`: how many runs of tools stand between them.
    """
    order = random.Random(plan.seed)  # noqa: S311 - order of measurement, not a secret
    launches: list[PlanLaunch] = []
    blocks: list[PlanBlock] = []
    for block in plan.blocks:
        rounds: dict[int, list[PlanLaunch]] = defaultdict(list)
        for launch in (one for one in plan.launches if one.block == block.block_id):
            rounds[launch.round] += _split(launch, plan)
        here: list[PlanLaunch] = []
        for turn in sorted(rounds):
            for launch in order.sample(rounds[turn], len(rounds[turn])):
                name = f"{block.block_id}-{len(here):04d}-{launch.launch_id}"
                here.append(launch.model_copy(update={"launch_id": name}))
        launches += here
        wall_ms = sum(launch.wall_ms for launch in here)
        names = tuple(launch.launch_id for launch in here)
        blocks.append(block.model_copy(update={"launch_ids": names, "wall_ms": wall_ms}))
    wall_ms = sum(one.wall_ms for one in blocks) + tool_runs * TOOL_MS + round(TimeModel().campaign_ms)
    estimate = plan.estimate.model_copy(update={"wall_s": round(wall_ms / 1000, 1)})
    update = {"launches": tuple(launches), "blocks": tuple(blocks), "estimate": estimate, "later": ()}
    split = plan.model_copy(update=update)
    return split.model_copy(update={"plan_hash": split.expected_hash()})


def _split(launch: PlanLaunch, plan: Plan) -> Iterator[PlanLaunch]:
    groups: dict[tuple[str, int], list[str]] = defaultdict(list)
    for point_id in launch.point_ids:
        groups[_family(plan.by_id[point_id], plan.patterns)].append(point_id)
    for family, ids in sorted(groups.items()):
        wall_ms = round(TimeModel().start_ms[launch.launcher]) + sum(
            plan.by_id[one].duration_ms + _AROUND_MS for one in ids
        )
        own = digest([launch.launch_id, *family])
        yield launch.model_copy(
            update={
                "launch_id": own[:8],
                "point_ids": tuple(ids),
                "seed": int(own[:15], 16),
                "wall_ms": wall_ms,
                "deadline_ms": launch_deadline_ms(wall_ms, launch.launcher),
            }
        )


def is_beside(pair: Pair, subject: Subject, workload: Workload, file: PatternFile) -> bool:
    """Tell whether a tool does what is measured at a point: as plainly, of as many bytes, and with its values."""
    plainly = all(workload[name] == value for name, value in _AS_TOOLS_DO.items() if name in file.parameters)
    alone = not subject.shims and not subject.settings and not subject.twin
    same = (subject.layer, subject.place, subject.wait) == (pair.layer, pair.place, pair.tool.wait)
    bytes_ = workload.integer(file.size_parameter) if file.size_parameter else 0
    is_size = (workload.pattern, bytes_) == (pair.native.pattern, pair.bytes)
    return same and alone and is_size and plainly and pair.is_of(workload)


def cells_of(pairs: Sequence[Pair], plan: Plan) -> tuple[NativeCell, ...]:
    """Return the pairs with their points."""
    patterns, found = plan.patterns, []
    for pair in pairs:
        here = [
            point
            for point in plan.points
            if point.subject.layer == pair.layer
            and point.subject.place == pair.place
            and point.subject.wait == pair.tool.wait
            and point.subject.kind == "layer"
            and _family(point, patterns) == (pair.native.pattern, pair.bytes)
        ]
        own = next(
            (one for one in here if is_beside(pair, one.subject, one.workload, patterns[one.workload.pattern])), None
        )
        if own is None:
            continue
        beside: dict[Literal["bare", "looking"], str] = {}
        batch = 1
        for point in here:
            loop = patterns[point.workload.pattern].unclocked
            if loop is not None and point.state == "planned":
                batch = loop.batch
                beside["bare" if point.workload[loop.parameter] == loop.bare else "looking"] = point.point_id
        notes = [pair.native.note, pair.tool.note]
        found.append(
            NativeCell(
                cell_id=pair.cell_id,
                point_id=own.point_id,
                tool=pair.tool.name,
                bytes=pair.bytes,
                statistic=pair.tool.statistic,
                clocked=pair.tool.clocked,
                beside=beside,
                batch=batch,
                more=pair.native.more,
                note="; ".join(note for note in notes if note),
            )
        )
    return tuple(found)
