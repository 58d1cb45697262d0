# SPDX-License-Identifier: BSD-3-Clause
"""What was forced on endpoints from outside: settings files of the system, objects that nobody needs, scheduling."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath

from cadge_analysis.stats.load import Dataset
from cadge_results import LaunchRecord
from cadge_results.formats.result import EndpointFacts, ObjectFacts

USUAL = "other, nice 0"
ASKED = "env.LD_PRELOAD"
"""A setting of the sweep, which is shown as that."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SettingsFile:
    """A file that sets something. packaged: as its package brought it; None where nobody can tell."""

    path: str
    hosts: tuple[str, ...]
    lines: int
    packaged: bool | None


@dataclass(frozen=True, slots=True, kw_only=True)
class PreloadedObject:
    """An object that no other one needs, and in how many of the launches that say what was mapped it was."""

    file: str
    how: str
    launches: int
    of: int


def settings_files(data: Dataset) -> tuple[SettingsFile, ...]:
    """Return the settings files that are not known to be as their packages brought them, by path."""
    hosts: dict[tuple[str, int, bool | None], list[str]] = defaultdict(list)
    for node in data.nodes:
        files = node.configuration if isinstance(node.configuration, Mapping) else {}
        for path, facts in files.items():
            lines = facts.get("lines") if isinstance(facts, Mapping) else None  # None: of an older version
            if isinstance(facts, Mapping) and isinstance(lines, int) and lines and facts.get("packaged") is not True:
                packaged = False if facts.get("packaged") is False else None
                hosts[path, lines, packaged].append(node.host)
    return tuple(
        SettingsFile(path=path, hosts=tuple(there), lines=lines, packaged=packaged)
        for (path, lines, packaged), there in sorted(hosts.items(), key=lambda one: one[0][0])
    )


def forced(data: Dataset) -> tuple[PreloadedObject, ...]:
    """Return objects that were preloaded, came without the loader, or were loaded from where no dependency lies."""
    told = [
        record
        for record in data.records
        if record.result and record.result.objects and ASKED not in dict(record.launch.settings)
    ]
    often: dict[tuple[str, str], int] = defaultdict(int)
    for record in told:
        for key in {(one.file, one.how) for one in _forced_in(record)}:
            often[key] += 1
    return tuple(
        PreloadedObject(file=file, how=how, launches=launches, of=len(told))
        for (file, how), launches in sorted(often.items())
    )


def _forced_in(record: LaunchRecord) -> Iterator[ObjectFacts]:
    result = record.result
    assert result is not None  # noqa: S101 - the caller chose such records
    modules = {f"{record.launch.layer}.so", *(f"shim-{name}.so" for name in record.launch.shims)}
    if result.adapter is not None and result.adapter.file is not None:
        modules.add(PurePosixPath(result.adapter.file).name)
    folders = {PurePosixPath(one.file).parent for one in result.objects if one.how in ("needed", "program")}
    # each host has the build where its own inventory says
    folders |= {PurePosixPath(one.file).parent for one in result.objects if PurePosixPath(one.file).name in modules}
    for one in result.objects:
        own = PurePosixPath(one.file).name in modules
        loaded_apart = one.how == "loaded" and folders.isdisjoint(PurePosixPath(one.file).parents)
        if not own and (loaded_apart or one.how in ("preloaded", "mapped")):
            yield one


def scheduling(end: EndpointFacts) -> str:
    """Return how the kernel scheduled an endpoint; empty where it is not known."""
    found = end.scheduling
    if found is None:
        return ""
    return f"{found.policy}, nice {found.nice}" if not found.priority else f"{found.policy}, priority {found.priority}"


def schedulings(data: Dataset) -> Iterator[str]:
    """Yield how endpoints were scheduled, each way as often as it was stored."""
    for record in data.records:
        for end in record.result.endpoints if record.result else ():
            if said := scheduling(end):
                yield said


def objects(data: Dataset) -> dict[str, str]:
    """Return what was mapped besides the driver and adapters, by name: the ids of its builds."""
    found: dict[str, dict[str, None]] = defaultdict(dict)
    for result in (record.result for record in data.records if record.result):
        own = result.adapter.file if result.adapter else None
        for one in result.objects:
            if one.how != "program" and one.file != own:
                found[PurePosixPath(one.file).name][(one.build_id or one.sha256 or "?")[:12]] = None
    return {name: ", ".join(sorted(ids)) for name, ids in found.items()}
