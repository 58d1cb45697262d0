# SPDX-License-Identifier: BSD-3-Clause
"""Launches of every pattern, for programs that compare two builds of the driver.

What is measured is derived from the patterns' files: the usual workload of each, and others that differ from it in one
parameter, so that each choice of a pattern is there. A point ends after its time, or after a number of operations. A
build is a folder with `bin/cadge-driver` and `layers`.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import secrets
import socket
import subprocess
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import hosts

from cadge_harness.plan.cast import Cast, cast_of
from cadge_results import LayerFile, PatternFile, Workload, read_workloads
from cadge_results.formats.point import Value
from cadge_results.plugins.catalogue import load_yaml
from cadge_results.plugins.parameter import Parameter
from cadge_results.plugins.pattern import declared

ROOT = Path(__file__).resolve().parents[2]
PATTERNS = read_workloads(ROOT / "harness").patterns
ENDPOINTS_MOST = 8
TIMEOUT_S = 120
OOB_PORT = 18600
"""Where endpoint 0 listens in a network namespace of its own."""

Json = dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class Setting:
    """What launches have in common."""

    layer: str
    place: str
    wait: str
    operations: int
    """Each point ends after so many; 0: after its time."""
    shims: tuple[str, ...] = ()
    settings: tuple[tuple[str, str], ...] = ()
    seed: int = 4711


def usual(parameter: Parameter) -> Value | None:
    """Return a value for a parameter: its default; a small size or number where it has none; None: it follows."""
    if parameter.default is not None or parameter.follows is not None:
        return parameter.default
    if parameter.type == "choice":
        return parameter.values[0]
    assert parameter.min is not None and parameter.max is not None  # noqa: S101, PT018 -- an integer has both
    return min(max(64 if parameter.unit == "bytes" else 2, parameter.min), parameter.max)


def others(parameter: Parameter) -> Iterator[Value]:
    """Yield other values: each word of a choice, and a larger size or number."""
    if parameter.type == "choice":
        yield from parameter.values
        return
    assert parameter.min is not None and parameter.max is not None  # noqa: S101, PT018 -- an integer has both
    first = usual(parameter)
    more = {"bytes": 5000, "ns": 20000, "percent": 50}.get(parameter.unit or "", int(first or 1) * 2)
    yield min(max(more, parameter.min), parameter.max)


def workloads_of(name: str, file: PatternFile, *, varied: bool) -> list[Workload]:
    """Return the usual workload of a pattern; `varied`: and others, with each parameter at other values in turn."""
    base = {key: value for key, one in file.parameters.items() if (value := usual(one)) is not None}
    given: list[Mapping[str, Value]] = [base]
    if varied:
        given += [{**base, key: value} for key, one in file.parameters.items() for value in others(one)]
    found: list[Workload] = []
    for values in given:
        with contextlib.suppress(ValueError):
            one = file.workload(name, values)
            fits = one not in found and file.exists(one) and not file.does_replay(one)
            if fits and sum(file.count_of(role, one) for role in file.roles) <= ENDPOINTS_MOST:
                found.append(one)
    return found


def chosen(names: Sequence[str], given: Sequence[str], *, varied: bool) -> dict[str, list[Workload]]:
    """Return workloads by pattern: of those named, or of all, and each one `given` (PATTERN,NAME=VALUE,...)."""
    found: dict[str, list[Workload]] = {}
    for text in given:
        name, *values = text.split(",")
        file = PATTERNS[name]
        base = {key: value for key, one in file.parameters.items() if (value := usual(one)) is not None}
        pairs = dict(value.split("=", 1) for value in values)
        typed = {key: value if file.parameters[key].type == "choice" else int(value) for key, value in pairs.items()}
        found.setdefault(name, []).append(file.workload(name, {**base, **typed}))
    if given and not names:
        return found
    for name in names or PATTERNS:
        found.setdefault(name, []).extend(workloads_of(name, PATTERNS[name], varied=varied))
    return found


def launches(workloads: Iterable[Workload], setting: Setting) -> Iterator[Json]:
    """Yield launch files of the workloads of one pattern: those with the same cast share one.

    At place between the hosts are the two that `hosts.two` makes.
    """
    there = [hosts.end(number)["host"] for number in range(2)] if setting.place == "between" else ["here"]
    by_cast: dict[Cast, list[Workload]] = {}
    for workload in workloads:
        file = PATTERNS[workload.pattern]
        by_cast.setdefault(cast_of(file, workload, setting.place, there), []).append(workload)  # type: ignore[arg-type]
    for cast, some in by_cast.items():
        yield document(cast, some, setting)


def launcher_of(layer: str) -> str:
    """Return what starts the endpoints of a layer."""
    style, substrate = layer.split("-", 1)
    return load_yaml(ROOT / "layers" / style / f"{substrate}.layer.yml", LayerFile).launcher


def document(cast: Cast, workloads: Sequence[Workload], setting: Setting) -> Json:
    """Return one launch file."""
    cores = sorted(os.sched_getaffinity(0))
    taken = iter(range(1000))
    ends = {hosts.end(number)["host"]: hosts.end(number) for number in range(2)}
    used = {one.pattern: PATTERNS[one.pattern] for one in workloads}
    return {
        "schema": "cadge.launch/2",
        "launch_id": "alike",
        "campaign_id": "alike",
        "kind": "layer",
        "layer": setting.layer,
        "shims": list(setting.shims),
        "launcher": launcher_of(setting.layer),
        "place": setting.place,
        "wait": setting.wait,
        "settings": dict(setting.settings),
        "seed": setting.seed,
        **({"operations": setting.operations} if setting.operations else {}),
        "deadline_ms": TIMEOUT_S * 1000,
        "ports": [0, 0],
        "endpoints": [
            {
                **ends.get(end.host, {"host": end.host, "device": "lo", "address": "127.0.0.1", "raw_device": ""}),
                "role": end.role,
                "cpus": [cores[next(taken) % len(cores)] for _ in range(end.threads)],
                "hands": [cores[next(taken) % len(cores)] for _ in range(end.hands)],
                "peers": list(end.peers),
            }
            for end in cast
        ],
        "patterns": {
            pattern: {name: one.model_dump(mode="json") for name, one in found.items()}
            for pattern, found in declared(used).items()
        },
        "points": [
            {
                "attempt_id": str(number),
                "point_id": f"{number:016x}",
                "workload": one.model_dump(mode="json"),
                "duration_ms": 50,
                "deadline_ms": 20000,
            }
            for number, one in enumerate(workloads)
        ],
    }


class LaunchError(Exception):
    """A launch gave no result."""


def free_port() -> int:
    """Return a port of the loopback that is free now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def run(build: Path, launch: Json, modules: Path, before: Sequence[str] = (), names: Sequence[str] = ()) -> Json:
    """Run a launch with the driver of a build, and the layers that lie in `modules`, and return its result.

    before: a program and options to run it under, where {endpoint} stands for the endpoint's number.
    names: the network namespaces of the endpoints, at place between.
    """
    meets = f"{hosts.address(0)}:{OOB_PORT}" if names else f"127.0.0.1:{free_port()}"
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "launch.json").write_text(json.dumps(launch), encoding="utf-8")
        (folder / "token").touch(mode=0o600)
        (folder / "token").write_text(secrets.token_hex(32), encoding="utf-8")
        commands = []
        for endpoint in range(len(launch["endpoints"])):
            command = [
                *hosts.on(names, endpoint),
                *(word.format(endpoint=endpoint) for word in before),
                *(str(build / "bin/cadge-driver"), "run", "--launch", str(folder / "launch.json")),
                *("--endpoint", str(endpoint), "--modules", str(modules)),
            ]
            if launch["place"] != "self":
                command += ["--oob", meets, "--token-file", str(folder / "token")]
            if endpoint == 0:
                command += ["--out", str(folder / "result.json")]
            commands.append(command)
        if launch["launcher"] == "mpirun":
            ranks = [word for command in commands for word in (":", "-n", "1", *command)]
            commands = [["mpirun", "--bind-to", "none", "--oversubscribe", *ranks[1:]]]
        environment = {**os.environ, "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
        processes = [
            subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, env=environment)
            for command in reversed(commands)
        ]
        said = []
        for process in processes:
            try:
                said.append(process.communicate(timeout=2 * TIMEOUT_S)[1])
            except subprocess.TimeoutExpired:
                process.kill()
                said.append(f"{process.communicate()[1]} it did not end in time")
        if not (folder / "result.json").exists():
            raise LaunchError(" ".join(said).strip()[-500:])
        result: Json = json.loads((folder / "result.json").read_text(encoding="utf-8"))
    return result


def options(parser: argparse.ArgumentParser) -> None:
    """Add what both programs take."""
    parser.add_argument("--patterns", nargs="*", default=[], help="these alone (usual: all)")
    parser.add_argument("--workload", action="append", default=[], help="PATTERN,NAME=VALUE,... just this one")
    parser.add_argument("--layer", default="null-self")
    parser.add_argument("--place", choices=["self", "within"], help="usual: self for null-self, else within")
    parser.add_argument("--wait", choices=["poll", "block"], default="poll")
    parser.add_argument("--shim", action="append", default=[], help="outermost first")
    parser.add_argument("--set", action="append", default=[], help="NAME=VALUE, such as fault.drop_ppm=20000")
    parser.add_argument("--modules", type=Path, help="layers of both drivers (usual: those of the last build)")
    parser.add_argument("--seed", type=int, default=4711)


def setting_of(given: argparse.Namespace, operations: int) -> Setting:
    """Return what the options say."""
    return Setting(
        layer=given.layer,
        place=given.place or ("self" if given.layer == "null-self" else "within"),
        wait=given.wait,
        operations=operations,
        shims=tuple(given.shim),
        settings=tuple(tuple(one.split("=", 1)) for one in given.set),
        seed=given.seed,
    )
