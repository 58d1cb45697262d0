# SPDX-License-Identifier: BSD-3-Clause
"""What is known of a cell beside its number: texts that launches stated, and figures that were counted or measured."""

from __future__ import annotations

import shlex
from collections import defaultdict
from collections.abc import Iterator, Mapping
from functools import partial
from itertools import chain

from cadge_analysis import messages, units, words
from cadge_analysis.page.parts.provenance import NODE_FACTS, plain
from cadge_analysis.stats.costs import COSTS
from cadge_analysis.stats.intervals import median
from cadge_analysis.stats.launch_facts import distinct_paths
from cadge_analysis.stats.load import Cell
from cadge_analysis.stats.numbers import Numbers
from cadge_analysis.stats.steered import scheduling
from cadge_analysis.versus.conditions import PASSING, environment, pinned
from cadge_analysis.versus.sides import Side
from cadge_results import LaunchRecord
from cadge_results.formats.result import Result

say = partial(messages.say, "versus")

Key = tuple[str, str]
"""Group and name of what is told."""


def texts(side: Side, cell: Cell) -> dict[Key, str]:
    """Return what is stated of a cell in words: each of its values once, where launches differ."""
    records = _records(side, cell)
    found: dict[Key, dict[str, None]] = defaultdict(dict)
    for key, text in chain(
        _of_cell(side, cell), *(_of_record(side, record, cell) for record in records), _hosts(side, cell)
    ):
        if text:
            found[key][text] = None
    joined = {key: " | ".join(sorted(said)) for key, said in found.items()}
    used = [path.used for record in records if record.result for path in record.result.path if path.used]
    if used:
        joined["path", "used"] = distinct_paths(used)
    return joined


def figures(side: Side, cell: Cell, numbers: Numbers | None) -> dict[Key, tuple[float, str]]:
    """Return what was counted and measured around a cell: each figure, and how it is shown."""
    found: dict[Key, tuple[float, str]] = {}
    if numbers is not None:
        found.update(_costs(numbers))
        for name, often in numbers.counted.items():
            found[say("aspects.counted_by_layer"), name] = (often, units.sig3(often))
        found["trouble", "lost"] = _count(numbers.lost)
        found["trouble", "late"] = _count(numbers.late)
        found["trouble", say("aspects.launches_disturbed")] = _count(numbers.disturbed)
        found["trouble", say("aspects.launches_unsteady")] = _count(numbers.unsteady)
    records = _records(side, cell)
    found.update(_probe_aspects(side, cell))
    loads = [host.loadavg for record in records for host in record.load if host.loadavg is not None]
    if loads:
        found["machine meanwhile", "load average, median"] = (median(loads), units.sig3(median(loads)))
    return found


def _count(number: int) -> tuple[float, str]:
    return float(number), units.grouped(number)


def _records(side: Side, cell: Cell) -> list[LaunchRecord]:
    """Return the launches that were to measure a cell, as far as they were made."""
    names = {one.launch_id for one in side.data.plan.launches if cell.point_id in one.point_ids}
    return [record for record in side.data.records if record.launch_id in names]


def _of_cell(side: Side, cell: Cell) -> Iterator[tuple[Key, str]]:
    meta, case, series = side.data.meta, cell.case, cell.series
    yield ("what", "layer"), series.layer
    yield ("what", "shims"), ", ".join(series.shims) or "none"
    yield ("what", "settings"), ", ".join(f"{name}={value}" for name, value in series.settings) or "defaults"
    yield ("what", "place"), words.PLACES[case.place]
    yield ("what", "wait mode"), words.WAITS[case.wait]
    for name, parameter in case.file.parameters.items():
        yield ("what", parameter.title), words.value(parameter, case.workload[name])
    yield ("campaign", "id"), meta.campaign_id
    yield ("campaign", "sweep"), meta.sweep
    yield ("campaign", "command"), shlex.join(meta.command)
    yield ("campaign", "testbed"), f"{meta.testbed.kind} {meta.testbed.name}"
    tool = meta.tool
    yield ("campaign", "cadge"), f"{tool.version} {tool.revision}{' with changes' if tool.dirty else ''}"
    yield ("campaign", "duration of a measurement"), f"{side.data.plan.by_id[cell.point_id].duration_ms} ms"
    yield ("campaign", "launches"), units.grouped(cell.planned)


def _of_record(side: Side, record: LaunchRecord, cell: Cell) -> Iterator[tuple[Key, str]]:
    if record.result is not None:
        yield from _of_result(record.result, cell)
        compared = side.data.attempts[record.launch_id].compared.get(cell.point_id, ())
        when = [name for name, was in zip(("before", "meanwhile", "after"), compared, strict=False) if was]
        yield ("trouble", "messages compared"), ", ".join(when)
    yield ("settings", "environment"), environment(record)
    for one in record.shared_memory:
        yield ("settings", "shared memory"), words.SHARED_MEMORY[one.kind]
        for name, value in one.variables.items():
            yield ("settings", name), value
    for host in record.kernel:
        for name, value in host.during.items():
            yield ("settings", f"{name} of {host.host}, read back"), value
            yield ("settings", f"{name} of {host.host}, before"), host.before[name]
    yield ("settings", "processors of endpoints"), pinned(record)
    for link in record.link:
        before = link.before
        rate = f"{units.grouped(before.rate_bits)} bit/s" if before.rate_bits else say("aspects.unlimited_rate")
        yield ("settings", f"link of {link.host}, rate"), rate if before.rate_bits is not None else ""
        yield ("settings", f"link of {link.host}, offloads"), plain(before.offloads) if before.offloads else ""


def _of_result(result: Result, cell: Cell) -> Iterator[tuple[Key, str]]:
    for path in result.path:
        yield ("path", "medium"), path.medium
        yield ("path", "as asked"), plain(path.as_asked) if path.read_back else "not read back"
        yield ("path", "device"), path.device
        yield ("path", "note"), path.note
    limits = result.limits
    if limits is not None:
        known = limits.short_bytes_max > 0
        yield (
            ("protocol", say("aspects.short_up_to")),
            units.size(limits.short_bytes_max) if known else "not stated",
        )
        yield ("protocol", say("aspects.short_path")), limits.short_path
        yield ("protocol", say("aspects.long_path")), limits.long_path
        yield ("protocol", "largest message"), units.size(limits.message_bytes_max)
        yield ("protocol", say("aspects.depth_max")), units.grouped(limits.depth_max)
        yield ("protocol", say("aspects.overhead")), units.size(limits.wire_overhead_bytes)
        yield ("protocol", say("aspects.pieces_max")), units.grouped(limits.iov_max) if limits.iov_max else ""
        for size in sorted(set(cell.case.file.moved_bytes(cell.case.workload))) if known else ():
            short = size <= limits.short_bytes_max
            by = limits.short_path if short else limits.long_path
            yield (
                ("protocol", say("aspects.own_messages")),
                f"{units.size(size)}: {'short' if short else 'longer'}" + (f", by {by}" if by else ""),
            )
    adapter, library = result.adapter, result.library
    if adapter is not None:
        for name, value in adapter.traits.items():
            group = "copies" if name.startswith("copies_") else "traits"
            yield (group, name.replace("_", " ")), plain(value)
        for name, who in adapter.semantics.items():
            yield ("done by", name), who
        yield ("done by", "remote calls"), adapter.rpc or ""
        yield ("traits", "capabilities"), ", ".join(sorted(adapter.caps))
    if library is not None:
        yield ("versions", "library"), f"{library.name} {library.stated_version}".strip()
        yield ("versions", "library's file"), library.file or ""
        yield ("versions", "library's build id"), library.build_id or ""
    if adapter is not None:
        yield ("versions", "adapter's build id"), adapter.build_id or ""
    driver = result.driver
    yield ("versions", "driver"), f"{driver.version} {driver.revision}, ABI {driver.abi}"
    yield ("versions", "compiler"), driver.compiler
    for clock in result.clock:
        yield ("versions", "clock"), clock.source
    for end in result.endpoints:
        yield ("settings", "scheduling"), scheduling(end)


def _hosts(side: Side, cell: Cell) -> Iterator[tuple[Key, str]]:
    """Yield facts of the cell's hosts; of what has members each by itself, so that only what differs stands out."""
    hosts = {host for _, host in side.hosts(cell)}
    for node in side.data.nodes:
        if hosts and node.host not in hosts:
            continue
        for name, title in NODE_FACTS:
            value = getattr(node, name)
            if name in PASSING or value is None:
                continue
            if isinstance(value, Mapping) and set(value) != {"unknown"}:
                for member, inner in value.items():
                    yield ("host", f"{title}, {member}"), plain(inner)
            else:
                yield ("host", title), plain(value)


def _costs(numbers: Numbers) -> Iterator[tuple[Key, tuple[float, str]]]:
    group = "costs an operation"
    for cost in COSTS:
        found = numbers.costs.of.get(cost.key)
        if found is None:
            continue
        sides = found.by_role.items() if len(found.by_role) > 1 else ()
        for whose, value in (("all", found.all_roles), *sides):
            yield (group, f"{cost.told}, {whose}"), (value, f"{units.sig3(value)} {cost.unit}".rstrip())
    tail = numbers.p99.value if numbers.p99 is not None else None
    if tail is not None:
        yield ("result", "p99"), (tail, words.shown(numbers.quantity).text(tail))


def _probe_aspects(side: Side, cell: Cell) -> Iterator[tuple[Key, tuple[float, str]]]:
    seen: dict[str, list[float]] = defaultdict(list)
    for record in _records(side, cell):
        for name, value in side.data.around(record.launch_id, cell.point_id).items():
            seen[name].append(value)
    for name, values in seen.items():
        middle = median(values)
        spread = f", {units.sig3(min(values))} to {units.sig3(max(values))}" if len(values) > 1 else ""
        yield ("machine meanwhile", f"{words.PROBES[name]}, median"), (middle, f"{units.sig3(middle)} ns{spread}")
