# SPDX-License-Identifier: BSD-3-Clause
"""What each series really was in its launches: library, path, who does the work."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from cadge_analysis.stats.load import Dataset, Series, series_of
from cadge_results import LaunchRecord
from cadge_results.formats.result import Result


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchFacts:
    """What a series really was at one place and in one wait mode: library, path, who does the work."""

    library: str
    version: str
    file: str
    build_id: str
    adapter_file: str
    adapter_build_id: str
    rpc: str
    semantics: Mapping[str, str]
    caps: tuple[str, ...]
    traits: Mapping[str, object]
    used: str
    short_bytes: int
    short_path: str
    long_path: str
    overhead_bytes: int = 0
    """Of a short message: the headers of adapter and library, as far as the layer knows them."""

    @property
    def transport(self) -> str:
        """What carries short messages, in a word of its library's path: shm, tcp, rc; "" where the path has none."""
        found = next((match[1] for one in _TRANSPORTS if (match := one.search(self.used))), "")
        return "shm" if found in _SHARED_MEMORY else found


_TRANSPORTS = tuple(
    re.compile(one)
    for one in (
        r"(?:^|[ #\d])am\b[^:;]*: (\w+)/",
        r"^provider (\w+)",
        r"\b[bm]tl (?!none\b)(\w+)",
        r"^PAIR over (\w+)",
        r"^(tcp|udp|shared memory)\b",
    )
)
"""Of UCX the lane of active messages, then libfabric, Open MPI, ZeroMQ, sockets and Peregrine."""
_SHARED_MEMORY = frozenset({"sysv", "posix", "xpmem", "cma", "knem", "vader", "sm", "shared memory"})


def without_numbers(path: str) -> str:
    """Return a path with its numbers (buffer sizes, addresses) taken out: what makes two paths the same one."""
    return re.sub(r"[0-9]+", "#", path)


def distinct_paths(paths: Iterable[str]) -> str:
    """Return the differing paths, joined; of those that differ in numbers alone, the first."""
    first: dict[str, str] = {}
    for path in paths:
        first.setdefault(without_numbers(path), path)
    return " | ".join(first.values())


def launch_facts(data: Dataset) -> dict[tuple[Series, str, str], tuple[LaunchFacts, ...]]:
    """Return, by series, place and wait mode, every differing set of facts that its launches stated (usually one)."""
    found: dict[tuple[Series, str, str], dict[str, LaunchFacts]] = defaultdict(dict)
    for record, result in _done(data):
        facts = _facts(result)
        found[_where(record)].setdefault(repr(facts), facts)
    return {key: tuple(facts[text] for text in sorted(facts)) for key, facts in found.items()}


def changed(data: Dataset) -> list[tuple[Series, str, str]]:
    """Return the series that were not the same in all launches: the library, or the path among the same hosts.

    Where a launch has several endpoints on a host, their channels take another path than those between hosts.
    Numbers in a path (buffer sizes, addresses) may differ.
    """
    paths: dict[tuple[tuple[Series, str, str], tuple[str, ...]], set[str]] = defaultdict(set)
    for record, result in _done(data):
        hosts = tuple(endpoint.host for endpoint in record.launch.endpoints)
        paths[_where(record), hosts].add(without_numbers(_facts(result).used))
    return sorted({*changed_libraries(data), *(key for (key, _), used in paths.items() if len(used) > 1)})


def changed_libraries(data: Dataset) -> list[tuple[Series, str, str]]:
    """Return the series whose launches did not all load the same library and adapter, with place and wait mode."""
    libraries: dict[tuple[Series, str, str], set[tuple[str, ...]]] = defaultdict(set)
    for record, result in _done(data):
        one = _facts(result)
        identity = (one.library, one.version, one.file, one.build_id, one.adapter_file, one.adapter_build_id)
        libraries[_where(record)].add(identity)
    return sorted(key for key, identities in libraries.items() if len(identities) > 1)


def _done(data: Dataset) -> Iterator[tuple[LaunchRecord, Result]]:
    for record in data.records:
        if record.result is not None and record.result.status == "done":
            yield record, record.result


def _where(record: LaunchRecord) -> tuple[Series, str, str]:
    return series_of(record.launch.subject), record.launch.place, record.launch.wait


def _facts(result: Result) -> LaunchFacts:
    library, adapter, limits = result.library, result.adapter, result.limits
    return LaunchFacts(
        library=library.name if library else "",
        version=library.stated_version if library else "",
        file=(library.file or "") if library else "",
        build_id=(library.build_id or "") if library else "",
        adapter_file=(adapter.file or "") if adapter else "",
        adapter_build_id=(adapter.build_id or "") if adapter else "",
        rpc=(adapter.rpc or "") if adapter else "",
        semantics=dict(adapter.semantics) if adapter else {},
        caps=adapter.caps if adapter else (),
        traits=dict(adapter.traits) if adapter else {},
        used=distinct_paths(path.used for path in result.path if path.used),
        short_bytes=limits.short_bytes_max if limits else 0,
        short_path=limits.short_path if limits else "",
        long_path=limits.long_path if limits else "",
        overhead_bytes=limits.wire_overhead_bytes if limits else 0,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerMemory:
    """Bytes that are resident once all channels are up, less those before the layer was loaded, without files.

    `shared` is a part of `memory`. shared_part: of it, each page divided by the processes that touched it.
    """

    memory: int
    shared: int
    shared_part: int


def heaviest(record: LaunchRecord) -> int:
    """Return the endpoint with the most channels; of equal ones the last, since the first gathers what all say."""
    ends = record.launch.endpoints
    return max(range(len(ends)), key=lambda number: (len(ends[number].peers), number))


def taken(record: LaunchRecord) -> LayerMemory | None:
    """Return what the process with the most channels took; None where the record does not hold it."""
    told = record.result.resident_bytes if record.result is not None and record.status == "done" else ()
    number = heaviest(record)
    if number >= len(told):
        return None
    before, after = told[number].before, told[number].connected
    if before is None or after is None:
        return None
    return LayerMemory(
        memory=after.memory - before.memory,
        shared=after.shared - before.shared,
        shared_part=after.shared_part - before.shared_part,
    )
