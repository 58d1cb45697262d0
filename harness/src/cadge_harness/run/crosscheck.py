# SPDX-License-Identifier: BSD-3-Clause
"""Judging a collected launch by what surrounded it: how it ended, and whether its payload went where it was asked to.

The verdicts are computed once, when a launch is stored, from the counters and link states that the agent read around
it and the paths that the libraries stated. A verdict that is not ok makes every attempt of the launch unsound.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping

from pydantic import JsonValue

from cadge_harness.plan.kernel import is_value
from cadge_harness.plan.link import rate_of
from cadge_harness.words import ended_how
from cadge_results import Check, LaunchRecord, NodeFacts
from cadge_results.formats.record import HostCounters
from cadge_results.formats.result import Attempt, PathFacts
from cadge_results.plugins.build import Build, loaded_otherwise, run_otherwise

STRAY_BYTES_MIN = 256 * 1024
"""Below this much payload counters say nothing: control traffic is as large."""
STRAY_SHARE = 0.2
"""An interface that was not asked for may carry this share of the payload at most."""
CONTROL_SHARE = 1.5
"""And so many times what the drivers said and heard there: headers of their many small messages make 1.2 to 1.45."""
ENDPOINT_BYTES = 8192
"""And for each endpoint: how the drivers prove their token, SSH, what starts ranks; 1 to 7 kB of 124 launches."""
CONTROL_BYTES = 4096
"""Of records that do not say what the drivers said: for each context beyond two, for its addresses."""
ATTEMPT_BYTES = 5120
"""Of such records: for each attempt and endpoint, for phases and counts; at most 4,436 in three campaigns."""
DATA_SHARE = 0.8
"""The data network carries at least this share of what was asked to go through it."""

RATE_SHARE = 0.001
"""By how much the kernel's rate may differ: it counts whole bytes."""

HASH_DIGITS = 64
HASH_SHOWN = 8
"""Of a SHA-256 in hexadecimal digits."""


def crosschecks(record: LaunchRecord, *, own_traffic: bool = False, build: Build | None = None) -> tuple[Check, ...]:
    """Return every verdict on a launch; none for one that measured nothing.

    `own_traffic`: processes of one of its patterns speak over the data network beside the layer. `build`: which
    was chosen to serve the layer.
    """
    result = record.result
    if result is None or result.status != "done":
        return ()
    return (
        _as_asked(record),
        *((_build(record, build),) if build else ()),
        _link(record),
        *_kernel(record),
        ended_well(record),
        counters_read(record),
        _counters(record, own_traffic=own_traffic),
    )


def with_crosschecks(record: LaunchRecord, *, own_traffic: bool = False, build: Build | None = None) -> LaunchRecord:
    """Return the record with its verdicts."""
    verdicts = crosschecks(record, own_traffic=own_traffic, build=build)
    return record.model_copy(update={"crosschecks": verdicts})


def _build(record: LaunchRecord, build: Build) -> Check:
    """Judge what was really loaded: the library, or the adapter and the driver, of the build that the layer names."""
    result = record.result
    if build.of_cadge:
        drivers = {one.build_id for one in result.objects if one.how == "program"} if result else set()
        adapter = result.adapter.build_id if result and result.adapter else None
        wrong = run_otherwise(build, record.launch.layer, adapter, drivers)
    elif result is None or result.library is None:
        wrong = "the driver did not say what was loaded"
    else:
        library = result.library
        wrong = loaded_otherwise(build, library.stated_version, library.file, library.build_id)
    detail = f"{record.launch.layer} is not served by {build.title} {build.version}: {wrong}" if wrong else ""
    return Check(name="build_as_asked" if build.of_cadge else "library_as_asked", ok=not wrong, detail=detail)


def _as_asked(record: LaunchRecord) -> Check:
    """Judge what the libraries said of their paths. Where one does not say, `_counters` alone decides, and this why."""
    paths = record.result.path if record.result is not None else ()
    astray = [path for path in paths if not path.as_asked and not _no_network_between(record, path)]
    wrong = dict.fromkeys(_path_sentence(path) for path in astray if path.read_back)
    silent = dict.fromkeys(_path_sentence(path) for path in astray if not path.read_back)
    return Check(name="path_as_asked", ok=not wrong, detail="; ".join(wrong or silent))


def _path_sentence(path: PathFacts) -> str:
    used = f"used {path.used}" if path.read_back else path.used
    return f"endpoint {path.endpoint} asked for {path.asked}, {used}"


def _no_network_between(record: LaunchRecord, path: PathFacts) -> bool:
    """Tell whether a channel of a launch between hosts is one between two endpoints of the same host."""
    ends = record.launch.endpoints
    if record.launch.place != "between" or path.endpoint == path.peer or max(path.endpoint, path.peer) >= len(ends):
        return False
    return ends[path.endpoint].host == ends[path.peer].host


def _link(record: LaunchRecord) -> Check:
    """Judge the data link: it has the rate that was asked for, if any.

    An XDP program on it, or offloads that changed, cost TCP most of its speed.
    """
    wrong = []
    asked = rate_of(dict(record.launch.settings))
    for link in record.link:
        if link.before.xdp or link.after.xdp:
            wrong.append(f"{link.host}: an XDP program is attached to the data link")
        for rate in dict.fromkeys((link.before.rate_bits, link.after.rate_bits)):
            if rate is None and asked:
                wrong.append(f"{link.host}: the data link's rate could not be read")
            elif rate is not None and abs(rate - asked) > asked * RATE_SHARE:
                wrong.append(f"{link.host}: the data link's rate is {_rate(rate)}, not {_rate(asked)}")
        changed = sorted(
            name
            for name in link.before.offloads.keys() | link.after.offloads.keys()
            if link.before.offloads.get(name) != link.after.offloads.get(name)
        )
        if changed:
            wrong.append(f"{link.host}: offloads of the data link changed: {', '.join(changed)}")
    return Check(name="data_link", ok=not wrong, detail="; ".join(wrong))


def _kernel(record: LaunchRecord) -> Iterator[Check]:
    """Judge the values of the kernel that were asked for: each was set, and stayed until the launch ended."""
    asked = {name for name, _ in record.launch.settings if is_value(name)}
    if not asked:
        return
    never = sorted(asked - {name for host in record.kernel for name in host.during})
    wrong = [f"nobody set {name}" for name in never]
    for host in record.kernel:
        for name, value in host.during.items():
            if (after := host.after.get(name)) != value:
                wrong.append(f"{host.host}: {name} was {value}, and {after} at the end of the launch")
    yield Check(name="kernel_values", ok=not wrong, detail="; ".join(wrong))


def _rate(bits: int) -> str:
    return f"{bits / 1e6:g} Mbit/s" if bits else "as it was made"


def payload_bytes(attempts: Iterable[Attempt]) -> int:
    """Return how many bytes the measured loops moved, all ways; warm-up comes on top."""
    return sum(attempt.bytes or 0 for attempt in attempts)


def _counters(record: LaunchRecord, *, own_traffic: bool) -> Check:
    """Compare what the interfaces carried with the payload that was measured."""
    result = record.result
    payload = payload_bytes(result.attempts) if result is not None else 0
    carried = [_carried(host) for host in record.counters]
    endpoints = Counter(end.host for end in record.launch.endpoints)
    control = {host.host: _control(record, host.host) for host in record.counters}
    if payload < max((STRAY_BYTES_MIN, *control.values())):
        return Check(name="counters", ok=True, detail=f"payload of {payload} bytes is too little to judge by")
    devices = {end.host: end.device for end in record.launch.endpoints}
    raw = {end.raw_device for end in record.launch.endpoints if end.raw_device}
    # What a pattern's processes say beside the layer is on the management network then, and nobody knows how much.
    apart = any(end.management_address for end in record.launch.endpoints)
    pair = record.launch.place == "between" and len(endpoints) == len(record.launch.endpoints) == 2
    wrong, seen_at_all = [], 0
    for host, deltas in zip(record.counters, carried, strict=True):
        device = devices.get(host.host, "")
        allowed = _allowed(record, device, raw, several=endpoints[host.host] > 1) | ({device} if own_traffic else set())
        for name, delta in sorted(deltas.items()):
            if name not in allowed and not apart and delta > payload * STRAY_SHARE + control[host.host]:
                wrong.append(f"{host.host}: {delta} bytes went through {name}; the payload was {payload} bytes")
        seen = _on_allowed(deltas, allowed)
        seen_at_all += seen
        if pair and seen < payload * DATA_SHARE:
            wrong.append(f"{host.host}: {' and '.join(sorted(allowed))} carried {seen} of {payload} bytes of payload")
    if record.launch.place == "between" and not pair and seen_at_all < 2 * payload * DATA_SHARE:  # sent and received
        wrong.append(f"all hosts together sent and received {seen_at_all} bytes; the payload was {payload} bytes")
    return Check(name="counters", ok=not wrong, detail="; ".join(wrong))


def _control(record: LaunchRecord, host: str) -> float:
    """Return how many bytes that are nobody's payload an interface of a host carries at most."""
    ends, result = record.launch.endpoints, record.result
    if result is not None and len(result.control_bytes) == len(ends):
        here = [said for end, said in zip(ends, result.control_bytes, strict=True) if end.host == host]
        said = result.control_bytes[0] if ends[0].host == host else sum(here)
        return CONTROL_SHARE * said + ENDPOINT_BYTES * len(ends)
    contexts = sum(len(end.cpus) or 1 for end in ends)
    attempts = len(result.attempts) if result is not None else 0
    return CONTROL_BYTES * max(contexts - 2, 0) + ATTEMPT_BYTES * attempts * len(ends)


def _allowed(record: LaunchRecord, device: str, raw: set[str], *, several: bool) -> set[str]:
    """Return what payload may use: the data network's device; the raw link for raw frames; within, loopback.

    Endpoints on the same host of several reach each other's address through its loopback.
    """
    if record.launch.place != "between":
        return {"lo"}
    path = record.result.path if record.result is not None else ()
    used = {entry.device for entry in path} & raw
    return (used or {device}) | ({"lo"} if several else set())


def _on_allowed(deltas: dict[str, int], allowed: set[str]) -> int:
    """Return what these interfaces sent and received together; loopback's one side stands for both."""
    pairs = ((name, delta) for name, delta in deltas.items() if name in allowed)
    return sum(delta * (2 if name == "lo" else 1) for name, delta in pairs)


def _carried(host: HostCounters) -> dict[str, int]:
    """Return bytes sent and received by each interface during the launch.

    Loopback counts each byte on both sides, so one side is taken.
    """
    deltas = {}
    for name, after in host.after.items():
        before = host.before.get(name)
        if before is None:
            continue
        sent, received = after.tx_bytes - before.tx_bytes, after.rx_bytes - before.rx_bytes
        deltas[name] = sent if name == "lo" else sent + received
    return deltas


def node_problems(nodes: Iterable[NodeFacts]) -> tuple[str, ...]:
    """Return a sentence for each library, program and file of libraries' settings that is not the same on all hosts."""
    libraries: dict[str, dict[str, list[str]]] = {}
    files: dict[str, dict[str, list[str]]] = {}
    hosts = []
    for node in nodes:
        if isinstance(node.libraries, dict):
            _add_facts(libraries, node.host, node.libraries, "version")
        if isinstance(node.programs, dict):
            _add_facts(libraries, node.host, node.programs, "version")
        if isinstance(node.configuration, dict):
            hosts.append(node.host)
            _add_facts(files, node.host, node.configuration, "sha256")
    for of_file in files.values():
        without = [host for host in hosts if not any(host in some for some in of_file.values())]
        if without:
            of_file["not there"] = without
    return (*_differences(libraries), *_differences(files))


def _add_facts(found: dict[str, dict[str, list[str]]], host: str, facts: Mapping[str, JsonValue], key: str) -> None:
    """Add what a host says of each thing: to {thing: {what is said: hosts}}."""
    for name, of_thing in facts.items():
        said = of_thing.get(key) if isinstance(of_thing, dict) else None
        if isinstance(said, str):
            found.setdefault(name, {}).setdefault(said, []).append(host)


def _differences(found: dict[str, dict[str, list[str]]]) -> tuple[str, ...]:
    return tuple(
        f"{name} differs between hosts: "
        + ", ".join(f"{_short(said)} on {' and '.join(hosts)}" for said, hosts in sorted(by_said.items()))
        for name, by_said in sorted(found.items())
        if len(by_said) > 1
    )


def _short(said: str) -> str:
    """Shorten a hash to what people can compare."""
    return said[:HASH_SHOWN] if len(said) == HASH_DIGITS else said


def version_problems(records: Iterable[LaunchRecord]) -> tuple[str, ...]:
    """Return a sentence for each layer whose launches did not all load the same library."""
    seen: dict[str, dict[str, None]] = {}
    for record in records:
        library = record.result.library if record.result is not None else None
        if library is None:
            continue
        build = f" (build {library.build_id[:12]})" if library.build_id else ""
        seen.setdefault(record.launch.layer, {})[f"{library.stated_version}{build}"] = None
    return tuple(
        f"{layer}: launches used different libraries: {', '.join(versions)}"
        for layer, versions in sorted(seen.items())
        if len(versions) > 1
    )


# ---- how its processes ended, and whether the agent could read what it is judged by ----


def ended_well(record: LaunchRecord) -> Check:
    """Judge how processes ended: who breaks after its results may have been broken before them.

    Of ranks only their launcher's exit status is known, which is not 0 where one of theirs is not.
    """
    codes = record.exit_codes
    if record.launch.launcher == "direct":
        of_all = [codes[number] if number < len(codes) else None for number in range(len(record.launch.endpoints))]
        wrong = [
            f"endpoint {number} ended {ended_how(code)}, after its results"
            for number, code in enumerate(of_all)
            if code != 0
        ]
    else:
        first = codes[0] if codes else None
        wrong = [] if first == 0 else [f"the launcher ended {ended_how(first)}, after the results"]
    return Check(name="ended_well", ok=not wrong, detail="; ".join(wrong))


def counters_read(record: LaunchRecord) -> Check:
    """Judge whether every interface was counted that could show where payload went."""
    by_host = {host.host: host for host in record.counters}
    wrong = []
    for name in dict.fromkeys(end.host for end in record.launch.endpoints):
        if name in by_host:
            wrong += [f"{name}: {said}" for said in _missing(record, by_host[name])]
        else:
            wrong.append(f"{name}: there are no counters at all")
    return Check(name="counters_read", ok=not wrong, detail="; ".join(wrong))


def _missing(record: LaunchRecord, host: HostCounters) -> Iterator[str]:
    ends = [end for end in record.launch.endpoints if end.host == host.host]
    wanted = {"lo", *(end.device for end in ends), *(end.raw_device for end in ends if end.raw_device)}
    told = {said.partition(":")[0] for said in host.uncounted}
    for name in sorted((wanted | host.before.keys() | host.after.keys()) - told):
        if name not in host.before and name not in host.after:
            yield f"there are no counters of {name}"
        elif name not in host.before or name not in host.after:
            yield f"there are no counters of {name} {'after' if name in host.before else 'before'} the launch"
    for said in host.uncounted:
        yield f"not counted: {said}"
