# SPDX-License-Identifier: BSD-3-Clause
"""Compare two builds of Cadge on this machine, to see whether the new one is as fast as the old one.

Both builds run the same points in turn, old and new swapping who is first from round to round. A round gives one ratio
new / old a layer and point: of the median round trip, or of the time for a byte of a stream. Shown is the median of
the ratios with its 95 % interval by order statistics. A layer passes when the median is at most 1.02 and the upper end
of the interval at most 1.05. With --sizes the points are calls with arguments and results of so many bytes, which are
written before and read after each message. With --between the two endpoints are two hosts: network namespaces with a
link between them for data and one for raw frames, made for the run (which takes root) and gone after it.

    python harness/bench/sidebyside.py OLD/build NEW/build --rounds 15 --layers sockets-tcp native-ucx
    python harness/bench/sidebyside.py OLD/build NEW/build --layers peregrine-shm --sizes 4096 65536 1048576
"""

import argparse
import contextlib
import json
import math
import os
import secrets
import socket
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import hosts

from cadge_results.formats.histogram import decode

Json = dict[str, Any]
Points = dict[str, tuple[str, Json]]
"""What is measured, by a name for it: a pattern and its parameters."""
POINTS: dict[str, Json] = {
    "rpc": {"request_bytes": 8, "reply_bytes": 8, "depth": 1},
    "pingpong": {"bytes": 8},
    "stream": {"bytes": 65536, "depth": 16},
}
CHOICES = {
    "touch": {"type": "choice", "values": ["none", "write+read"]},
    "buffers": {"type": "choice", "values": ["rotated", "same"]},
    "spread": {"type": "integer", "min": 0, "max": 1 << 30},
    "payload": {"type": "choice", "values": ["usual", "solicited", "unsolicited", "copied"]},
    "reply": {"type": "choice", "values": ["cont", "wait", "defer"]},
    "ways": {"type": "choice", "values": ["one", "both"]},
    "pairs": {"type": "integer", "min": 1, "max": 32},
}
"""What older builds do not have, where they did what is now the first value, or the least, of each."""
MEDIAN_MAX, UPPER_MAX = 1.02, 1.05
OOB_PORT = 18600
"""Where an endpoint in a namespace of its own listens; on this host a free port is taken."""
TIMEOUT_S = 60


def is_first_schema(driver: Path) -> bool:
    """Say whether a driver reads cadge.launch/1."""
    said = subprocess.run([driver, "version"], capture_output=True, text=True, check=True, timeout=10)
    return str(json.loads(said.stdout)["schema"]).endswith("/1")


def choices_of(driver: Path) -> dict[str, list[str]]:
    """Return, by pattern, which of CHOICES a driver has."""
    if is_first_schema(driver):
        return {}
    said = subprocess.run([driver, "patterns", "--json"], capture_output=True, text=True, check=True, timeout=10)
    has = json.loads(said.stdout)["patterns"]
    return {pattern: [name for name in CHOICES if name in has[pattern]["parameters"]] for pattern in POINTS}


def touched_calls(sizes: list[int]) -> Points:
    """Return calls that carry so many bytes both ways, touched at both ends."""
    parameters = {"depth": 1, "touch": "write+read"}
    return {f"rpc {size}": ("rpc", {**parameters, "request_bytes": size, "reply_bytes": size}) for size in sizes}


def point(pattern: str, values: Json, number: int, duration_ms: int, first_schema: bool, choices: list[str]) -> Json:
    """Return one point of a launch file."""
    head = {"attempt_id": str(number), "point_id": f"{number:016x}", "duration_ms": duration_ms, "deadline_ms": 20000}
    if not first_schema:
        chosen = {name: CHOICES[name].get("values", [CHOICES[name].get("min")])[0] for name in choices}
        return {**head, "workload": {"pattern": pattern, "parameters": {**chosen, **values}}}
    size = values.get("request_bytes", values.get("bytes"))
    reply = 0 if pattern == "stream" else size
    depth = values.get("depth", 1)
    return {**head, "pattern": pattern, "request_bytes": size, "reply_bytes": reply, "depth": depth}


def endpoint(number: int, place: str, first_schema: bool) -> Json:
    """Return one endpoint: the client on core 1, the server on core 0."""
    end: Json = {"host": "localhost", "device": "lo", "address": "127.0.0.1", "raw_device": ""}
    if place == "between":
        end = hosts.end(number)
    cpu = 1 - number
    if first_schema:
        return {**end, "cpu": cpu}
    return {**end, "cpus": [cpu], "role": ("client", "server")[number], "peers": [0 if place == "self" else 1 - number]}


def document(
    points: Points,
    layer: str,
    place: str,
    wait: str,
    duration_ms: int,
    first_schema: bool,
    choices: dict[str, list[str]],
) -> Json:
    """Return a launch file."""
    launcher = "mpirun" if layer.startswith("mpi-") else "direct"
    integer = {"type": "integer", "min": 0, "max": 1 << 30}
    declared = {
        pattern: {**dict.fromkeys(values, integer), **{name: CHOICES[name] for name in choices.get(pattern, [])}}
        for pattern, values in points.values()
    }
    return {
        "schema": f"cadge.launch/{1 if first_schema else 2}",
        "launch_id": "sidebyside",
        "campaign_id": "sidebyside",
        "kind": "layer",
        "layer": layer,
        "shims": [],
        "launcher": launcher,
        "place": place,
        "wait": wait,
        "settings": {},
        "seed": secrets.randbelow(2**62),
        "deadline_ms": 50000,
        "ports": [18700, 18799],
        "endpoints": [endpoint(number, place, first_schema) for number in range(1 if place == "self" else 2)],
        "points": [
            point(pattern, values, number, duration_ms, first_schema, choices.get(pattern, []))
            for number, (pattern, values) in enumerate(points.values())
        ],
        **({} if first_schema else {"patterns": declared}),
    }


def figure(attempt: Json) -> float | None:
    """Return the median round trip, or the time for a megabyte, of either schema; None where there is none."""
    if attempt["status"] not in ("done", "unsound"):
        return None
    quantities = attempt.get("quantities")
    histogram = attempt.get("histogram") if quantities is None else None
    if quantities and "latency" in quantities:
        histogram = quantities["latency"][0]["histogram"]
    if histogram:
        return float(decode(histogram).percentile(50))
    return float(attempt["elapsed_ns"] / attempt["bytes"] * 1e6) if attempt["bytes"] else None


def run(build: Path, launch: Json, names: list[str]) -> list[float | None]:
    """Run one launch, in these network namespaces if any, and return a figure a point."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "launch.json").write_text(json.dumps(launch), encoding="utf-8")
        token = folder / "token"
        token.touch(mode=0o600)
        token.write_text(secrets.token_hex(16), encoding="utf-8")
        listens = -1 if launch["schema"].endswith("/1") else 0  # the server, then; endpoint 0, now
        address, port = launch["endpoints"][listens]["address"], OOB_PORT
        if not names:
            with socket.socket() as probe:
                probe.bind((address, 0))
                port = probe.getsockname()[1]

        def command(number: int) -> list[str]:
            files = ["--launch", str(folder / "launch.json"), "--modules", str(build / "layers")]
            meet = ["--oob", f"{address}:{port}", "--token-file", str(token)] if launch["place"] != "self" else []
            out = ["--out", str(folder / "out.json")] if number == 0 else []
            return [
                *hosts.on(names, number),
                str(build / "bin/cadge-driver"),
                "run",
                "--endpoint",
                str(number),
                *files,
                *meet,
                *out,
            ]

        environment = {**os.environ, "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
        numbers = range(len(launch["endpoints"]))
        commands = [command(number) for number in numbers]
        if launch["launcher"] == "mpirun":
            ranks = [part for each in commands for part in (":", "-n", "1", *each)]
            commands = [["mpirun", "--bind-to", "none", "--oversubscribe", *ranks[1:]]]
        processes = [
            subprocess.Popen(each, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, env=environment)
            for each in commands
        ]
        for process in processes:
            try:
                process.communicate(timeout=TIMEOUT_S)
            except subprocess.TimeoutExpired:
                process.kill()
                process.communicate()
        out = folder / "out.json"
        attempts = json.loads(out.read_text(encoding="utf-8"))["attempts"] if out.exists() else []
    return [figure(attempt) for attempt in attempts] or [None] * len(launch["points"])


def interval(ratios: list[float]) -> tuple[float, float, float]:
    """Return lower end, median and upper end: order statistics that hold the median with at least 95 %."""
    values = sorted(ratios)
    count = len(values)
    lowest, outside = 0, 0.0
    while lowest < count // 2:
        outside += math.comb(count, lowest) / 2**count
        if 2 * outside > 0.05:
            break
        lowest += 1
    lowest = max(lowest - 1, 0)
    return values[lowest], statistics.median(values), values[count - 1 - lowest]


def compare(
    layer: str, points: Points, builds: list[Path], rounds: int, duration_ms: int, wait: str, names: list[str]
) -> bool:
    """Run all rounds of one layer, print a line a point, and return whether all pass."""
    schemas = [is_first_schema(build / "bin/cadge-driver") for build in builds]
    choices = [choices_of(build / "bin/cadge-driver") for build in builds]
    place = "self" if layer.startswith("null-") else "between" if names else "within"
    found: dict[str, list[tuple[float, float]]] = {name: [] for name in points}
    for number in range(rounds):
        figures: dict[int, list[float | None]] = {}
        for which in (0, 1) if number % 2 else (1, 0):
            launch = document(points, layer, place, wait, duration_ms, schemas[which], choices[which])
            figures[which] = run(builds[which], launch, names)
        for name, old, new in zip(points, figures[0], figures[1], strict=True):
            if old and new:
                found[name].append((old, new))
    passes = True
    for name, pairs in found.items():
        if not pairs:
            print(f"{layer:16} {wait:5} {name:11} no figures")
            continue
        low, middle, high = interval([new / old for old, new in pairs])
        good = middle <= MEDIAN_MAX and high <= UPPER_MAX
        passes &= good
        olds, news = (statistics.median(column) for column in zip(*pairs, strict=True))
        verdict = "ok" if good else "SLOWER"
        print(
            f"{layer:16} {wait:5} {name:11} {middle:.3f} [{low:.3f}, {high:.3f}] of {len(pairs)}"
            f"  old {olds:.0f} new {news:.0f}  {verdict}",
            flush=True,
        )
    return passes


def main() -> int:
    """Compare, and exit with 1 when a layer is slower."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("builds", nargs=2, type=Path, metavar="BUILD", help="old and new build folder")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--duration-ms", type=int, default=250)
    parser.add_argument("--wait", choices=("poll", "block"), default="poll")
    parser.add_argument("--between", action="store_true", help="between two hosts; not for mpirun")
    parser.add_argument("--sizes", nargs="+", type=int, help="bytes of touched calls, in place of the three points")
    parser.add_argument("--layers", nargs="*", help="default: all that both builds have")
    arguments = parser.parse_args()
    names = [{path.stem for path in (build / "layers").glob("*.so")} for build in arguments.builds]
    layers = arguments.layers or sorted(name for name in names[0] & names[1] if not name.startswith("shim-"))
    points = touched_calls(arguments.sizes) if arguments.sizes else {name: (name, POINTS[name]) for name in POINTS}
    how = points, arguments.builds, arguments.rounds, arguments.duration_ms, arguments.wait
    with contextlib.ExitStack() as stack:
        names = stack.enter_context(hosts.two()) if arguments.between else []
        results = [compare(layer, *how, names) for layer in layers]
    return 0 if all(results) else 1


if __name__ == "__main__":
    sys.exit(main())
