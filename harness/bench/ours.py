# SPDX-License-Identifier: BSD-3-Clause
"""One launch of Cadge's own driver on this machine: the other half of each comparison with a native tool."""

import json
import os
import secrets
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import hosts

from cadge_results import read_workloads
from cadge_results.plugins.pattern import declared

ROOT = Path(__file__).resolve().parents[2]
DRIVER = ROOT / "build/bin/cadge-driver"
MODULES = ROOT / "build/layers"
DIRECT_BATCH = 64
"""Round trips that a sample of the pattern postpoll is of."""
ADDRESS = "127.0.0.1"
TIMEOUT_S = 60


WORKLOADS = read_workloads(ROOT / "harness")


class LaunchError(Exception):
    """The driver gave no valid attempt."""


def point(pattern: str, duration_ms: int, **parameters: int | str) -> dict[str, Any]:
    """Return a point of a launch file; parameters that are not given are at their defaults, but data are not touched.

    Native tools do not touch theirs.
    """
    file = WORKLOADS.patterns[pattern]
    untouched = {"touch": "none"} if "touch" in file.parameters else {}
    workload = file.workload(pattern, {**untouched, **parameters})
    return {"workload": workload.model_dump(mode="json"), "duration_ms": duration_ms}


def samples(attempt: dict[str, Any]) -> dict[str, Any]:
    """Return the one histogram of an attempt."""
    ((found,),) = attempt["quantities"].values()
    return dict(found)


def latency(attempt: dict[str, Any]) -> dict[str, Any]:
    """Return the latencies that the client of an attempt recorded."""
    (samples,) = attempt["quantities"]["latency"]
    found: dict[str, Any] = samples
    return found


def launch_document(
    layer: str,
    place: str,
    settings: dict[str, str],
    points: list[dict[str, Any]],
    launcher: str,
    names: Sequence[str] = (),
) -> dict[str, Any]:
    """Return a launch file for two processes of this machine, or of hosts.two: server on core 0, client on core 1."""
    here = {"host": "localhost", "device": "lo", "address": ADDRESS, "raw_device": ""}
    at = [hosts.end(number) if names else here for number in range(2)]
    client = {**at[0], "role": "client", "cpus": [1], "peers": [0 if place == "self" else 1]}
    ends = [client] if place == "self" else [client, {**at[1], "role": "server", "cpus": [0], "peers": [0]}]
    used = {one["workload"]["pattern"]: WORKLOADS.file(one["workload"]["pattern"]) for one in points}
    filled = [
        {"attempt_id": str(number), "point_id": f"{number:016x}", "deadline_ms": 20000, **point}
        for number, point in enumerate(points, 1)
    ]
    return {
        "schema": "cadge.launch/2",
        "launch_id": "bench",
        "campaign_id": "bench",
        "kind": "layer",
        "layer": layer,
        "shims": [],
        "launcher": launcher,
        "place": place,
        "wait": "poll",
        "settings": settings,
        "seed": secrets.randbelow(2**62),
        "deadline_ms": 50000,
        "ports": [18700, 18799],
        "endpoints": ends,
        "patterns": {
            pattern: {name: one.model_dump(mode="json") for name, one in found.items()}
            for pattern, found in declared(used).items()
        },
        "points": filled,
    }


def run(
    document: dict[str, Any], port: int, driver: Path = DRIVER, names: Sequence[str] = (), *, some: bool = False
) -> list[dict[str, Any]]:
    """Run one launch, on these hosts of hosts.two if any, and return its attempts; every one has to be valid.

    With `some` one that is not is an empty dictionary.
    """
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "launch.json").write_text(json.dumps(document), encoding="utf-8")
        token = folder / "token"
        token.touch(mode=0o600)
        token.write_text(secrets.token_hex(32), encoding="utf-8")
        out = folder / "result.json"

        def command(endpoint: int) -> list[str]:
            return [
                *hosts.on(names, endpoint),
                str(driver),
                "run",
                "--launch",
                str(folder / "launch.json"),
                "--endpoint",
                str(endpoint),
                "--modules",
                str(MODULES),
                "--oob",
                f"{document['endpoints'][0]['address']}:{port}",
                "--token-file",
                str(token),
                *(["--out", str(out)] if endpoint == 0 else []),
            ]

        environment = dict(os.environ)
        if document["launcher"] == "mpirun":
            if os.geteuid() == 0:
                environment |= {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
            ranks = [
                "mpirun",
                "--bind-to",
                "none",
                "--oversubscribe",
                "-n",
                "1",
                *command(0),
                ":",
                "-n",
                "1",
                *command(1),
            ]
            commands = [ranks]
        else:
            commands = [command(end) for end in reversed(range(len(document["endpoints"])))]
        processes = [
            subprocess.Popen(c, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, env=environment) for c in commands
        ]
        messages = []
        for process in processes:
            try:
                messages.append(process.communicate(timeout=TIMEOUT_S)[1].decode(errors="replace"))
            except subprocess.TimeoutExpired:
                process.kill()
                messages.append("did not end in time")
        if not out.exists():
            raise LaunchError(f"{document['layer']}: no result: {' '.join(messages).strip()[-300:]}")
        result = json.loads(out.read_text(encoding="utf-8"))
    if result["status"] != "done":
        raise LaunchError(f"{document['layer']}: {result['status']}: {result['reason']}")
    attempts: list[dict[str, Any]] = result["attempts"]
    for number, attempt in enumerate(attempts):
        bad = [check for check in attempt["checks"] if not check["ok"] and check["name"] != "wait_mode"]
        if attempt["status"] in ("done", "unsound") and not bad:
            continue
        if not some:
            raise LaunchError(f"{document['layer']}: {attempt['status']}: {attempt['reason'] or bad}")
        attempts[number] = {}
    return attempts
