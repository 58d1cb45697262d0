# SPDX-License-Identifier: BSD-3-Clause
"""What differed between two sides besides what is compared: tool, testbed, hosts, durations, libraries, paths."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from cadge_analysis import messages, units, words
from cadge_analysis.page.parts.provenance import NODE_FACTS, STEERING, plain
from cadge_analysis.stats.launch_facts import LaunchFacts, launch_facts, without_numbers
from cadge_analysis.stats.load import Dataset
from cadge_analysis.stats.steered import forced, objects, schedulings
from cadge_analysis.versus.forbidden import MACHINE, of_the_machine
from cadge_analysis.versus.sides import Side
from cadge_results import LaunchRecord, NodeFacts

say = partial(messages.say, "versus")

PASSING: Mapping[str, frozenset[str]] = {
    "memory": frozenset({"MemAvailable"}),
    "hugepages": frozenset({"free"}),
    "interfaces": frozenset({"index", "state"}),
}
"""What of facts is of a moment, wherever it stands in them."""
NUMBERED = frozenset({"namespaces", "nodename"})
"""Facts that name a host, and are others on each."""

OBJECTS_NAMED = 10

OF_LAYERS = ("library", "adapter", "path", "thresholds")
"""Conditions of a layer at a place and in a wait mode, as they begin."""
HARMLESS = frozenset({"sweep", "command", "campaign", "launches of each", "places"})
"""Conditions that say what was run and how often; a number does not depend on them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """A condition and what it was on either side. `other_machine`: what is compared is machines then, not layers."""

    what: str
    first: str
    second: str
    other_machine: bool = False


def differences(first: Side, second: Side) -> tuple[Difference, ...]:
    """Return every condition that differed, that of the machines first. Nothing of one campaign with itself."""
    found = list(_of_campaigns(first, second)) if first.data.campaign_id != second.data.campaign_id else []
    found += _of_layers(first, second)
    return tuple(sorted(found, key=lambda one: not one.other_machine))


def boots(campaigns: Sequence[Dataset]) -> int | None:
    """Return how many boots of their hosts campaigns are of; None where one did not record it."""
    found = [{node.host: node.boot for node in data.nodes} for data in campaigns]
    if not all(one and all(isinstance(boot, str) for boot in one.values()) for one in found):
        return 1 if len({data.campaign_id for data in campaigns}) == 1 else None
    apart: list[dict[str, object]] = []
    for one in found:
        if not any(all(known.get(host, boot) == boot for host, boot in one.items()) for known in apart):
            apart.append(dict(one))
    return len(apart)


def holds(campaigns: Sequence[Dataset]) -> str:
    """Return what verdicts on some campaigns hold for."""
    several = boots(campaigns)
    if several is None:
        return say("conditions.holds_unknown")
    has_epochs = any(data.plan.epochs > 1 for data in campaigns)
    return say("conditions.holds_epochs" if has_epochs else "conditions.holds", boots=several)


def merged(told: Iterable[Difference]) -> list[tuple[str, str, str]]:
    """Return conditions, each once: that of a layer is often the same at every place and in every wait mode."""
    found: dict[tuple[str, str, str], None] = {}
    for one in told:
        name, bracket, inner = one.what.partition(" (")
        what = f"{name} of {inner[:-1].rsplit(', ', 2)[0]}" if bracket and name in OF_LAYERS else one.what
        found[what, one.first, one.second] = None
    return list(found)


def _of_campaigns(first: Side, second: Side) -> Iterator[Difference]:
    ours, theirs = _campaign_facts(first), _campaign_facts(second)
    for what in ours:
        if ours[what] != theirs[what]:
            yield Difference(what=what, first=ours[what], second=theirs[what])
    for name, title in NODE_FACTS:
        if name not in NUMBERED:
            yield from _of_hosts(first.data, second.data, name, title)
    yield from _of_objects(first, second)
    yield from _of_patterns(first, second)


def _campaign_facts(side: Side) -> dict[str, str]:
    data = side.data
    meta, records = data.meta, data.records
    return {
        "sweep": meta.sweep,
        "command": shlex.join(meta.command),
        "testbed": f"{meta.testbed.kind} {meta.testbed.name}",
        "hosts": ", ".join(meta.testbed.hosts),
        "campaign": meta.status,
        "launches of each": units.grouped(data.rounds),
        "places": ", ".join(sorted({cell.case.place for cell in side.cells.values()})),
        "duration": ", ".join(f"{ms} ms" for ms in sorted({point.duration_ms for point in data.plan.points})),
        "cadge": _tool(data),
        "compiler": _distinct(record.result.driver.compiler for record in records if record.result),
        "processors of endpoints": _distinct(pinned(record) for record in records if record.result),
        "shared memory": _distinct(words.SHARED_MEMORY[one.kind] for record in records for one in record.shared_memory),
        "environment": _distinct(environment(record) for record in records),
        "ranks started by": _distinct(record.started_by for record in records),
        "scheduling": _distinct(schedulings(data)),
        say("conditions.forced_libraries"): _distinct(f"{one.file} ({one.how})" for one in forced(data)),
    }


def _distinct(texts: Iterable[str]) -> str:
    return " | ".join(sorted({text for text in texts if text}))


def _tool(data: Dataset) -> str:
    tool = data.meta.tool
    return f"{tool.version} {tool.revision}{' with changes' if tool.dirty else ''}"


def pinned(record: LaunchRecord) -> str:
    """Return on which processors the endpoints of a launch ran, as read back."""
    pinning = record.result.pinning if record.result else ()
    ends = zip(record.launch.roles, pinning, strict=False)
    where = "; ".join(f"{role} {','.join(map(str, pin.actual))}" for role, pin in ends)
    return f"{record.launch.place}: {where}" if where else ""


def environment(record: LaunchRecord) -> str:
    """Return which variables the endpoints of a launch were given; the values of those that choose libraries."""
    names = {
        f"{name}={value}" if name in STEERING else name
        for host in record.environment
        for name, value in host.variables.items()
    }
    return ", ".join(sorted(names))


def _of_hosts(first: Dataset, second: Dataset, name: str, title: str) -> Iterator[Difference]:
    ours, theirs = ({plain(_lasting(node, name)): node for node in data.nodes} for data in (first, second))
    if list(ours) == list(theirs):
        return
    other = name in MACHINE and {plain(of_the_machine(one, name)) for one in ours.values()} != {
        plain(of_the_machine(one, name)) for one in theirs.values()
    }
    # where it is one value on either side, only what differs in it
    values = [_lasting(node, name) for found in (ours, theirs) for node in found.values()]
    known = [value for value in values if isinstance(value, Mapping) and set(value) != {"unknown"}]
    if len(values) == len(known) == 2:
        one, two = known
        keys = [key for key in (*one, *two) if one.get(key) != two.get(key)]
        said = [plain({key: value[key] for key in keys if key in value}) for value in known]
    else:
        said = [" | ".join(ours), " | ".join(theirs)]
    yield Difference(what=title, first=said[0], second=said[1], other_machine=other)


def _lasting(node: NodeFacts, name: str) -> object:
    """Return a fact of a host without what is of a moment."""
    return _without(getattr(node, name), PASSING.get(name, frozenset()))


def _without(value: object, names: frozenset[str]) -> object:
    if not names or not isinstance(value, Mapping):
        return value
    return {key: _without(inner, names) for key, inner in value.items() if key not in names}


def _of_objects(first: Side, second: Side) -> Iterator[Difference]:
    """Yield which libraries were mapped in other builds, or on one side alone, where both sides say what was."""
    ours, theirs = objects(first.data), objects(second.data)
    apart = [name for name in sorted(ours.keys() | theirs.keys()) if ours.get(name) != theirs.get(name)]
    if ours and theirs and apart:
        said = [
            ", ".join(f"{name} {found.get(name, 'not there')}" for name in apart[:OBJECTS_NAMED])
            + (f" and {len(apart) - OBJECTS_NAMED} more" if len(apart) > OBJECTS_NAMED else "")
            for found in (ours, theirs)
        ]
        yield Difference(what="mapped libraries", first=said[0], second=said[1])


def _of_patterns(first: Side, second: Side) -> Iterator[Difference]:
    ours, theirs = first.data.plan.patterns, second.data.plan.patterns
    for name in sorted(ours.keys() & theirs.keys()):
        if ours[name].measures != theirs[name].measures:
            yield Difference(
                what=f"how {name} is measured",
                first=plain(_measures(first, name)),
                second=plain(_measures(second, name)),
            )


def _measures(side: Side, name: str) -> object:
    return side.data.plan.patterns[name].model_dump(mode="json")["measures"]


def _of_layers(first: Side, second: Side) -> Iterator[Difference]:
    ours, theirs = _by_layer(first), _by_layer(second)
    for key in sorted(ours.keys() & theirs.keys()):
        for what in ("library", "adapter", "path", "thresholds"):
            one, other = ours[key][what], theirs[key][what]
            if one != other:
                yield Difference(what=f"{what} ({', '.join(filter(None, key))})", first=one, second=other)


def _by_layer(side: Side) -> Mapping[tuple[str, str, str], Mapping[str, str]]:
    found = {}
    for (series, place, wait), stated in launch_facts(side.data).items():
        if series.kind == "layer" and side.has(series):
            found[side.shared_name(series), place, wait] = {
                "library": " | ".join(dict.fromkeys(map(_library, stated))),
                "adapter": " | ".join(dict.fromkeys(one.adapter_build_id[:12] for one in stated)),
                "path": " | ".join(sorted({without_numbers(one.used) for one in stated})),
                "thresholds": " | ".join(dict.fromkeys(map(thresholds, stated))),
            }
    return found


def _library(facts: LaunchFacts) -> str:
    return f"{facts.library} {facts.version} {facts.build_id[:12]}".strip()


def thresholds(facts: LaunchFacts) -> str:
    """Return how short messages go, up to which size, and how longer ones do; empty where the layer does not say."""
    if not facts.short_bytes:
        return ""
    if facts.short_path and facts.short_path == facts.long_path:
        return facts.short_path
    short, long = (f" {path}" if path else "" for path in (facts.short_path, facts.long_path))
    return f"up to {units.size(facts.short_bytes)}{short}; above{long or ' otherwise'}"
