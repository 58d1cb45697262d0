# SPDX-License-Identifier: BSD-3-Clause
"""What a survey of hosts means: a table with a column for each host, and a finding for each thing that is wrong."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from cadge_harness.errors import printable
from cadge_harness.plan.site import TO_LOG_IN
from cadge_harness.run.crosscheck import node_problems
from cadge_harness.run.findings import HostFinding, NeededProgram, little_memory
from cadge_harness.run.survey import Offset, Survey
from cadge_harness.surroundings import MORE_MEMORY
from cadge_harness.testbed.model import Host, Testbed
from cadge_harness.words import count_of
from cadge_results import FormatError, NodeFacts
from cadge_results.formats.event import Fault, HostReport

CODES = {
    "login": "D60", "python": "D61", "build": "D62", "layers": "D63", "device": "D64", "address": "D65",
    "processors": "D66", "clock": "D67", "libraries": "D68", "ports": "D69", "reach": "D70", "kernel": "D71",
    "memory": "D72", "mpirun": "D73",
}  # fmt: skip
"""Of findings, by what was looked at."""
APART_NS = 1_000_000_000
"""Clocks that are further apart than this spoil the order of events that several hosts' records tell."""
SAME = ("version", "abi", "schema", "revision")
"""What a driver says of itself that must be the same on all hosts."""
_SLOW_CLOCKS = ("hpet", "acpi_pm", "jiffies", "refined-jiffies")
_NOTHING = "-"

Row = tuple[str, dict[str, str]]


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnBuild:
    """The build of this machine, which plans are made by: what its driver says of itself, and its layers.

    programs: what hosts need beside it.
    """

    driver: Mapping[str, object]
    layers: frozenset[str]
    programs: tuple[NeededProgram, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class HostsSummary:
    """What is known of the hosts: rows of a name and what it is on each host, and what is wrong, by host.

    A finding that is of several hosts stands under "".
    """

    hosts: tuple[str, ...]
    rows: tuple[Row, ...]
    findings: tuple[tuple[str, HostFinding], ...]
    packages: frozenset[str] = frozenset()
    """Those rows that are versions of packages."""


def read_survey(survey: Survey, testbed: Testbed, own: OwnBuild) -> HostsSummary:
    """Return what a survey means, beside the build of this machine."""
    names = tuple(host.name for host in testbed.hosts)
    nodes = {name: looked.node for name, looked in survey.looked.items()}
    table: dict[str, dict[str, str]] = {}
    for host in testbed.hosts:
        for what, cell in _row(host, survey, testbed).items():
            table.setdefault(what, {})[host.name] = cell
    packages = _packages(nodes, "libraries") | _packages(nodes, "programs")
    table |= packages
    findings = [
        *((name, _finding(fault)) for name in names for fault in _faults(survey, name)),
        *_build_findings(survey, own),
        *_layer_findings(survey, own),
        *_program_findings(nodes, own),
        *_clock_findings(survey, names),
        *_memory_findings(survey),
        *_login_findings(survey, names),
        *(("", _finding(fault)) for fault in _library_faults(nodes)),
    ]
    return HostsSummary(
        hosts=names,
        rows=tuple(
            (printable(what), {host: printable(cells.get(host, _NOTHING)) for host in names})
            for what, cells in table.items()
        ),
        findings=tuple(findings),
        packages=frozenset(map(printable, packages)),
    )


def _finding(fault: Fault) -> HostFinding:
    code = CODES.get(fault.about, CODES["build"])
    return HostFinding(code=code, level=fault.level, text=printable(fault.text), fix=printable(fault.fix))


def _faults(survey: Survey, name: str) -> Iterator[Fault]:
    yield from survey.faults.get(name, ())
    if name in survey.looked:
        yield from survey.looked[name].faults
    if name in survey.reached:
        yield from survey.reached[name].faults


# ----------------------------------------------------------------------------------------------------------- the table


def _row(host: Host, survey: Survey, testbed: Testbed) -> dict[str, str]:
    """Return what is known of one host, by name."""
    faults = list(_faults(survey, host.name))
    looked = survey.looked.get(host.name)
    if looked is None:
        reached = not any(fault.about == "login" for fault in faults)
        return {"login": "yes" if reached else "NO", **({"python": "NO"} if reached and _bad(faults, "python") else {})}
    node, first, last = looked.node, *testbed.ports
    free = last - first + 1 - len(looked.taken_ports)
    return {
        "login": "yes",
        "python": _text(node.get("python")),
        "system": f"{_of(node, 'kernel', 'release')}, {_of(node, 'kernel', 'machine')}",
        "build": _build(looked),
        "layers": _layers(looked),
        "device": _marked(_device(host, node), _bad(faults, "device")),
        "address": _marked(host.address, _bad(faults, "address")),
        "processors": _marked(_processors(host, node), _bad(faults, "processors")),
        "clock": _of(node, "clocksource", "current"),
        "clock, from here": _offset(survey.offsets.get(host.name)),
        "ports": _marked(f"{free} of {last - first + 1} free", _bad(faults, "ports")),
        "other hosts": _others(host, survey, testbed),
    }


def _bad(faults: list[Fault], about: str) -> bool:
    return any(fault.about == about and fault.level == "fail" for fault in faults)


def _marked(cell: str, bad: bool) -> str:
    return f"{cell}: NO" if bad else cell


def _text(value: object) -> str:
    """Return a fact, or that it is not known."""
    return value if isinstance(value, str) and value else _NOTHING


def _of(node: Mapping[str, object], *path: str) -> str:
    value: object = node
    for key in path:
        value = value.get(key) if isinstance(value, Mapping) else None
    return str(value) if isinstance(value, str | int) else _NOTHING


def _build(looked: HostReport) -> str:
    if looked.driver is None:
        return "NO"
    return " ".join(str(looked.driver.get(key))[:12] for key in ("version", "revision"))


def _layers(looked: HostReport) -> str:
    usable = sum(1 for layer in looked.layers.values() if not layer.trouble)
    return f"{usable} of {len(looked.layers)}"


def _device(host: Host, node: Mapping[str, object]) -> str:
    if _of(node, "interfaces", host.device, "mtu") == _NOTHING:
        return host.device
    state, mtu, driver = (_of(node, "interfaces", host.device, key) for key in ("state", "mtu", "driver"))
    return f"{host.device}, {state}, MTU {mtu}, {driver}"


def _processors(host: Host, node: Mapping[str, object]) -> str:
    cores = node.get("cores")
    allowed = cores.get("allowed") if isinstance(cores, Mapping) else None
    of = f" of {len(allowed)} there" if isinstance(allowed, list) else ""
    return f"{', '.join(map(str, host.cpus)) or 'none pinned'}{of}"


def _offset(offset: Offset | None) -> str:
    if offset is None:
        return _NOTHING
    most_ms = (abs(offset.offset_ns) + offset.error_ns) / 1e6
    if near := next((limit for limit in (1, 10, 100) if most_ms < limit), 0):
        return f"within {near} ms"
    return f"{offset.offset_ns / 1e6:+.1f} ms, +-{offset.error_ns / 1e6:.1f}"


def _others(host: Host, survey: Survey, testbed: Testbed) -> str:
    """Say how many of the other hosts this one reached."""
    others = [one.name for one in testbed.hosts if one.name != host.name]
    reached = survey.reached.get(host.name)
    if not others:
        return _NOTHING
    return f"{len(reached.reached) if reached else 0} of {len(others)} reached"


_PACKAGE = re.compile(r"(?P<package>[^\s:]+)(?::\S+)? (?P<version>\S+)")


def _packages(nodes: Mapping[str, Mapping[str, object]], kind: str) -> dict[str, dict[str, str]]:
    """Return the version of each package of a kind of files, by host; of a file without package, its build id."""
    found: dict[str, dict[str, str]] = {}
    for host, node in nodes.items():
        files = node.get(kind)
        for name, entry in files.items() if isinstance(files, Mapping) else ():
            if not isinstance(entry, Mapping):
                continue
            if packaged := _PACKAGE.fullmatch(str(entry.get("version"))):
                found.setdefault(packaged["package"], {})[host] = packaged["version"]
            else:
                found.setdefault(name, {})[host] = f"build {entry['build_id']}"[:18] if entry.get("build_id") else "NO"
    return dict(sorted(found.items()))


# -------------------------------------------------------------------------------------------------------- comparisons


def _build_findings(survey: Survey, own: OwnBuild) -> Iterator[tuple[str, HostFinding]]:
    """Compare the drivers with this machine's: its formats have to be the same, and all hosts' builds one."""
    drivers = {name: looked.driver for name, looked in survey.looked.items() if looked.driver is not None}
    differ = len({tuple(str(driver.get(key)) for key in SAME) for driver in drivers.values()}) > 1
    for name, driver in drivers.items():
        wrong = [key for key in SAME if driver.get(key) != own.driver.get(key)]
        if wrong:
            said = ", ".join(f"{key} {driver.get(key)} where ours has {own.driver.get(key)}" for key in wrong)
            text = f"the build on {name}, {survey.looked[name].build}, differs from this machine's: {said}"
            fix = "Build these sources there, or leave cadge_build_path out of the inventory: then our build is copied"
            yield name, _warn("build", text, fix, fail=differ or bool({"abi", "schema"} & set(wrong)))


def _layer_findings(survey: Survey, own: OwnBuild) -> Iterator[tuple[str, HostFinding]]:
    """Say which layers of this machine's build, by which sweeps are planned, a host's build does not have."""
    for name, looked in survey.looked.items():
        missing = sorted(own.layers - looked.layers.keys()) if looked.driver is not None else []
        if missing:
            text = f"the build on {name}, {looked.build}, lacks {count_of(len(missing), 'layer')}: {', '.join(missing)}"
            yield name, _warn("layers", text, "Build with their libraries there, or measure other layers (--layers)")


def _program_findings(nodes: Mapping[str, Mapping[str, object]], own: OwnBuild) -> Iterator[tuple[str, HostFinding]]:
    """Say which programs beside the build a host lacks, and what is refused there for it."""
    for name, node in nodes.items():
        for needed in own.programs:
            if _of(node, "programs", needed.program, "file") == _NOTHING:
                yield name, needed.missing(f" on {name}")


def _clock_findings(survey: Survey, names: tuple[str, ...]) -> Iterator[tuple[str, HostFinding]]:
    """Compare the clocks with that of the first host, and name sources that are slow to read or differ."""
    first = next((name for name in names if name in survey.offsets), "")
    for name in names:
        if name == first or name not in survey.offsets:
            continue
        here, there = survey.offsets[first], survey.offsets[name]
        apart_ns = there.offset_ns - here.offset_ns
        if abs(apart_ns) - here.error_ns - there.error_ns > APART_NS:
            way = "ahead of" if apart_ns > 0 else "behind"
            text = (
                f"the clock of {name} is {abs(apart_ns) / 1e9:.1f} s {way} that of {first}: records of both mix times"
            )
            yield name, _warn("clock", text, "Let both take their time from the same server (timedatectl set-ntp true)")
    sources = {name: _of(looked.node, "clocksource", "current") for name, looked in survey.looked.items()}
    for name, source in sources.items():
        if source in _SLOW_CLOCKS:
            text = f"the clock source of {name} is {source}, and reading it takes microseconds"
            yield name, _warn("clock", text, "Find out why the kernel does not use the processor's own (dmesg)")
    if len(set(sources.values())) > 1:
        said = ", ".join(f"{source} on {name}" for name, source in sources.items())
        yield "", _warn("clock", f"the clock sources differ: {said}", "Compare times of these hosts with care")


def _memory_findings(survey: Survey) -> Iterator[tuple[str, HostFinding]]:
    """Say which hosts have little shared memory."""
    for name, looked in survey.looked.items():
        if looked.shm_free_bytes is not None and (text := little_memory(looked.shm_free_bytes, f" of {name}")):
            yield name, _warn("memory", text, MORE_MEMORY)


def _login_findings(survey: Survey, names: tuple[str, ...]) -> Iterator[tuple[str, HostFinding]]:
    """Say which hosts cannot log in to others, those with the same reason together: mpirun has to."""
    by_reason: dict[str, list[tuple[str, str]]] = {}
    for name in names:
        reached = survey.reached.get(name)
        for other, why in reached.no_login.items() if reached else ():
            by_reason.setdefault(why, []).append((name, other))
    for why, pairs in by_reason.items():
        (name, other), more = pairs[0], len(pairs) - 1
        also = f" (and {count_of(more, 'other pair')} of hosts)" if more else ""
        text = f"mpirun on {name} cannot log in to {other} by SSH{also}: {why}. MPI layers between them are refused"
        yield "", _warn("mpirun", text, f"{TO_LOG_IN[0].upper()}{TO_LOG_IN[1:]}")


def _library_faults(nodes: Mapping[str, Mapping[str, object]]) -> Iterator[Fault]:
    """Say which libraries, and which of their settings, differ between hosts."""
    read = []
    for name, node in nodes.items():
        try:
            read.append(NodeFacts.from_object({**node, "host": name}, source=f"facts of {name}"))
        except FormatError as error:
            yield Fault(about="build", text=str(error), fix="Report this: the agent came from here")
    for text in node_problems(read):
        yield Fault(about="libraries", level="warn", text=text, fix="Install the same versions on all hosts")


def _warn(about: str, text: str, fix: str, *, fail: bool = False) -> HostFinding:
    return _finding(Fault(about=about, level="fail" if fail else "warn", text=text, fix=fix))
