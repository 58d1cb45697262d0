# SPDX-License-Identifier: BSD-3-Clause
"""Write a made-up campaign of full size: for the time and the memory that reading takes, and for nothing else.

The plan is the planner's own, for full_size.yml and every layer of this checkout; the launches go through the store's
own writer. The numbers are drawn: a cost to start, a cost a byte, an offset of each launch, a right tail. Each
histogram has as many filled buckets and as many first samples as a real one of 50 ms. The same options give the same
bytes.

    python harness/bench/full_size.py FOLDER [--launches 9] [--day 1]
    python harness/bench/full_size.py FOLDER --measure

--measure takes the campaigns that are in the folder, and prints what each command over them takes.
"""

from __future__ import annotations

import argparse
import base64
import itertools
import os
import struct
import subprocess
import sys
import tempfile
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from cadge_harness.paths import Checkout
from cadge_harness.plan.blocks import make_blocks
from cadge_harness.plan.catalogue import Catalogue, read_catalogue
from cadge_harness.plan.planner import make_plan
from cadge_harness.plan.site import site_of
from cadge_harness.plan.sweep import read_sweep
from cadge_harness.testbed.model import DEFAULT_PORTS, Host, Testbed, TestbedKind
from cadge_results import (
    Campaign,
    CampaignMeta,
    CampaignWriter,
    LaunchFile,
    LaunchRecord,
    NodeFacts,
    PatternFile,
    Plan,
    Workload,
    campaign_id,
    read_workloads,
)

ROOT = Path(__file__).resolve().parents[2]
SWEEP = Path(__file__).with_suffix(".yml")
CREATED = datetime(2026, 11, 25, 3, 0, tzinfo=UTC)
MEASURED_NS = 50_000_000
FIRST = 1000
"""Samples that a driver writes down beside the histogram."""
HALF_BITS = 10
"""Of three significant digits: 2 * 10^3 values take 11 bits."""
DRAWN_MOST = 4000
"""Values drawn for one attempt: more samples than this are the same values, several times."""
HOST = "h1"
COMMANDS: Mapping[str, Sequence[str]] = {
    "report": ("report", "{last}", "-o", "{out}/report.html"),
    "report --format text": ("report", "{last}", "--format", "text", "-o", "{out}/report.txt"),
    "report --against": ("report", "{last}", "--against", "{first}", "-o", "{out}/against.html"),
    "compare": ("compare", "{first}", "{last}", "-o", "{out}/compare.txt"),
    "compare --format html": ("compare", "{first}", "{last}", "--format", "html", "-o", "{out}/compare.html"),
    "compare --json": ("--json", "compare", "{first}", "{last}"),
    "history": ("history", "{first}", "{last}"),
    "history --format html": ("history", "{first}", "{last}", "--format", "html", "-o", "{out}/history.html"),
    "history --json": ("--json", "history", "{first}", "{last}"),
    "export --format csv": ("export", "{last}", "-o", "{out}/cells.csv"),
    "export --format json": ("export", "{last}", "--format", "json", "-o", "{out}/export.json"),
    "export --format parquet": ("export", "{last}", "--format", "parquet", "-o", "{out}/cells.parquet"),
    "export --format svg": ("export", "{last}", "--format", "svg", "-o", "{out}/figures"),
    "export --format loggp": ("export", "{last}", "--format", "loggp", "-o", "{out}/loggp.json"),
    "export --table values": ("export", "{last}", "--table", "values", "-o", "{out}/values.csv"),
    "export --table attempts": ("export", "{last}", "--table", "attempts", "-o", "{out}/attempts.csv"),
    "export --table samples": ("export", "{last}", "--table", "samples", "-o", "{out}/samples.csv"),
    "query of cells": ("query", "SELECT state, count(*) FROM cells GROUP BY ALL", "{last}"),
    "query of samples": ("query", "SELECT quantity, sum(count) FROM samples GROUP BY ALL", "{last}"),
}
"""What --measure runs, of the campaign of the last day and of the first one."""


def buckets(values: np.ndarray) -> np.ndarray:
    """Return the index of the bucket of each value in ns, as HdrHistogram numbers them from 1 ns on, three digits."""
    shifts = np.maximum(np.frexp(values.astype(np.float64))[1] - (HALF_BITS + 1), 0)
    return (shifts << HALF_BITS) + (values >> shifts)


def encoded(values: np.ndarray, often: int) -> str:
    """Return the stored form of a histogram of values in ns, each so often: HdrHistogram's V2, compressed."""
    index, counts = np.unique(buckets(values), return_counts=True)
    body = bytearray()
    gaps = np.diff(index, prepend=-1) - 1
    for gap, count in zip(gaps.tolist(), (counts * often).tolist(), strict=True):
        if gap:
            body += number(-gap)
        body += number(count)
    plain = struct.pack(">IIIIqqd", 0x1C849313, len(body), 0, 3, 1, 100_000_000_000, 1.0) + body
    packed = zlib.compress(plain)
    return base64.b64encode(struct.pack(">II", 0x1C849314, len(packed)) + packed).decode()


def number(value: int) -> bytes:
    """Return a number in HdrHistogram's encoding (ZigZag, LEB128), for less than 2^55."""
    left = (value << 1) ^ (value >> 63)
    found = bytearray()
    while left > 0x7F:
        found.append(left & 0x7F | 0x80)
        left >>= 7
    found.append(left)
    return bytes(found)


class Numbers:
    """Draws what a launch would have measured."""

    def __init__(self, launch: LaunchFile, plan: Plan, day: int) -> None:
        """Draw what all attempts of a launch share."""
        self.random = np.random.default_rng((launch.seed, day))
        style = sum(launch.layer.encode())  # a layer's own costs: always the same for the same name
        self.start_ns, self.ns_a_byte = 400.0 + style % 29 * 300, 0.05 + style % 7 * 0.05
        self.offset = float(np.exp(self.random.normal(0, 0.05)))
        self.launch, self.plan = launch, plan

    def attempt(self, order: int, point_id: str, workload: Workload) -> dict[str, Any]:
        """Return an attempt in which everything went well."""
        file = self.plan.patterns[workload.pattern]
        roles = file.roles_of(workload)
        moved = sum(file.moved_bytes(workload))
        centre_ns = (self.start_ns + self.ns_a_byte * moved) * self.offset * float(np.exp(self.random.normal(0, 0.03)))
        operations = max(60, round(MEASURED_NS / centre_ns))
        use = [self._use(operations) for _ in roles]
        return {
            "attempt_id": str(order),
            "point_id": point_id,
            "workload": workload.model_dump(mode="json"),
            "order": order,
            "status": "done",
            "started_ns_since_launch": 200_000_000 + order * 110_000_000,
            "warmup": {"operations": 600, "ns": 2_000_000, "steady": True, "rule": "three windows within 2 %"},
            "elapsed_ns": MEASURED_NS,
            "operations": operations,
            "bytes": operations * moved,
            "lost": 0,
            "late": 0,
            "quantities": self._quantities(file, workload, centre_ns, operations, moved),
            "executions": {"expected": operations, "server": operations},
            "verified": {"in_loop": operations, "full_before": 8, "full_after": 8, "mismatches": 0},
            "cpu": use,
            "counters": [{"copied_bytes": operations * moved, "polls": operations * 4} for _ in roles],
            "checks": [{"name": name, "ok": True, "detail": ""} for name in ("payload", "executions", "processors")],
        }

    def _quantities(
        self, file: PatternFile, workload: Workload, centre_ns: float, operations: int, moved: int
    ) -> dict[str, list[dict[str, Any]]]:
        acting = [number for number, role in enumerate(file.roles_of(workload)) if file.roles[role].acts is True]
        found: dict[str, list[dict[str, Any]]] = {}
        for name, quantity in file.quantities.items():
            if quantity.kind == "histogram":
                found[name] = [self._samples(end, centre_ns, operations) for end in acting]
            elif quantity.kind == "rate":
                amount = operations * moved if quantity.unit == "MB/s" else operations
                found[name] = [{"endpoint": end, "amount": amount, "elapsed_ns": MEASURED_NS} for end in acting]
            else:
                value = 0 if quantity.kind == "count" else float(self.random.uniform(1, 90))
                found[name] = [{"endpoint": acting[0], "value": value}]
        return found

    def _samples(self, endpoint: int, centre_ns: float, operations: int) -> dict[str, Any]:
        drawn = min(operations, DRAWN_MOST)
        spread = np.abs(self.random.normal(0, 0.02, drawn)) + 0.3 * (self.random.random(drawn) > 0.99)
        values = np.maximum(centre_ns * np.exp(spread), 1).astype(np.int64)
        often = operations // drawn
        squares = float(np.square(values, dtype=np.float64).sum())
        return {
            "endpoint": endpoint,
            "histogram": encoded(values, often),
            "count": drawn * often,
            "sum_ns": int(values.sum()) * often,
            "min_ns": int(values.min()),
            "max_ns": int(values.max()),
            "sum_sq_ns2": str(int(squares) * often),
            "first_ns": values[:FIRST].tolist(),
        }

    def _use(self, operations: int) -> dict[str, int]:
        return {
            "user_ns": MEASURED_NS * 3 // 5,
            "system_ns": MEASURED_NS * 2 // 5,
            "voluntary_switches": 1,
            "involuntary_switches": 2,
            "minor_faults": 3,
            "major_faults": 0,
            "wall_ns": MEASURED_NS,
            "run_wait_ns": int(self.random.integers(0, 40_000)),
            "stolen_ns": 0,
            "cycles": operations * 3000,
            "instructions": operations * 5000,
        }


def record_of(launch: LaunchFile, plan: Plan, day: int = 0) -> LaunchRecord:
    """Return what a launch would have sent."""
    numbers = Numbers(launch, plan, day)
    attempts = [numbers.attempt(order, one.point_id, one.workload) for order, one in enumerate(launch.points)]
    ends = range(len(launch.endpoints))
    witness = [
        {"at": at, "endpoint": end, "line_ns": 118.0 if end == 0 else None, "copy_ns": 3100.0, "clock_ns": 17.0}
        for at in range(len(attempts) + 1)
        for end in (0, 1)
    ]
    result = {
        "schema": "cadge.result/2",
        **launch.model_dump(mode="json", include={"launch_id", "kind", "layer", "place", "wait", "seed"}),
        "status": "done",
        "driver": {"version": "0.2.0", "abi": 1, "revision": "made-up", "compiler": "gcc 12.2.0"},
        "started_utc": "2026-11-25T03:00:05.123456Z",
        "wall_ns": 110_000_000 * len(attempts),
        "phases_ns": {"open": 3_000_000, "measure": MEASURED_NS * len(attempts)},
        "library": {"name": "made up", "stated_version": "1.0"},
        "adapter": {"name": launch.layer, "style": launch.layer.partition("-")[0], "substrate": "made up"},
        "limits": {"message_bytes_max": 1 << 30, "depth_max": 128},
        "path": [{"endpoint": end, "medium": "memory", "as_asked": True, "used": "made up"} for end in ends],
        "clock": [
            {"source": "tsc", "hz": 2_400_000_000, "read_cost_ns": 14.0, "drift_ppm": 0.4, "bracket_ns": 41, "ok": True}
            for _ in ends
        ],
        "pinning": [{"asked": end, "actual": [end], "ok": True} for end in ends],
        "endpoints": [{"host": HOST, "pid": 100 + end, "kernel": "6.12"} for end in ends],
        "checks": [{"name": "path", "ok": True}],
        "witness": witness,
        "attempts": attempts,
    }
    record = {
        "schema": "cadge.launch-record/2",
        "launch": launch.to_object(),
        "result": result,
        "status": "done",
        "load": [{"host": HOST, "loadavg": 1.9, "steal_ns": 0}],
        "exit_codes": [0 for _ in ends],
        "agent_version": "0.2.0",
    }
    return LaunchRecord.from_object(record, source=launch.launch_id)


def planned(launches: int | None) -> tuple[Plan, Testbed]:
    """Return the plan of full_size.yml as if every layer were built, and the testbed that it is for."""
    found = read_catalogue(Checkout(ROOT))
    catalogue = Catalogue(tuple(replace(info, absent=None) for info in found.layers), found.shims)
    host = Host(name=HOST, management_address="", device="lo", address="127.0.0.1", raw_device="", cpus=(0, 1, 2, 3))
    testbed = Testbed(
        name="local", kind=TestbedKind.LOCAL, hosts=(host,), inventory_path=Path("/nowhere"), ports=DEFAULT_PORTS
    )
    workloads = read_workloads(ROOT / "harness")
    sweep, _ = read_sweep(SWEEP, workloads)
    if launches:
        sweep = sweep.model_copy(update={"launches": launches})
    return make_plan(sweep, catalogue, workloads, site_of(testbed)), testbed


def make(root: Path, launches: int | None = None, day: int = 0) -> Campaign:
    """Write the campaign below `root`, as many launches a point as wanted, and return it for reading."""
    plan, testbed = planned(launches)
    created = CREATED + timedelta(days=day)
    name = campaign_id(created, plan.plan_hash)
    meta = CampaignMeta.from_object(
        {
            "schema": "cadge.campaign/1",
            "campaign_id": name,
            "created_utc": f"{created:%Y-%m-%dT%H:%M:%SZ}",
            "status": "running",
            "sweep": SWEEP.stem,
            "testbed": {"name": testbed.name, "kind": str(testbed.kind), "hosts": [HOST]},
            "seed": plan.seed,
            "plan_hash": plan.plan_hash,
            "tool": {"version": "0.2.0", "revision": "made-up", "dirty": False},
            "command": ["python", "harness/bench/full_size.py"],
            "planned": {
                "points": len(plan.points),
                "attempts": sum(len(launch.point_ids) for launch in plan.launches),
                "launches": len(plan.launches),
                "wall_s": plan.estimate.wall_s,
            },
        },
        source="made-up campaign",
    )
    with CampaignWriter.create(root, meta=meta, plan=plan, sweep_text=SWEEP.read_text(encoding="utf-8")) as writer:
        facts = {"schema": "cadge.node/1", "host": HOST, "kernel": "6.12", "cores": 4, "virtualisation": "none"}
        writer.add_node(NodeFacts.from_object(facts, source=HOST))
        for launch in launches_of(plan, testbed, name):
            writer.add_launch(record_of(launch, plan, day))
            writer.campaign.forget(launch.launch_id)
        writer.finish("finished", at=created)
        return writer.campaign


def launches_of(plan: Plan, testbed: Testbed, name: str) -> Iterator[LaunchFile]:
    """Return the launch files of all blocks, in their order."""
    return itertools.chain.from_iterable(block.launches for block in make_blocks(plan, testbed, name))


class Use(NamedTuple):
    """What a command took: seconds of processors, and the most memory that one of its processes ever had."""

    code: int
    cpu_s: float
    most_kib: int


def used(argv: Sequence[str], environment: Mapping[str, str] | None = None) -> Use:
    """Run `cadge` with arguments, and return what it took."""
    whole = [sys.executable, "-m", "cadge_cli.cli", *argv]
    with subprocess.Popen(whole, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) as child:
        _, status, found = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
    return Use(child.returncode, found.ru_utime + found.ru_stime, found.ru_maxrss)


def command_of(name: str, folder: Path, out: Path) -> list[str]:
    """Return the arguments of one of COMMANDS over the campaigns of a folder."""
    campaigns = sorted(folder.iterdir())
    return [word.format(first=campaigns[0], last=campaigns[-1], out=out) for word in COMMANDS[name]]


def measure(folder: Path, only: Sequence[str]) -> None:
    """Print what each command takes, with a cache that the first one fills."""
    with tempfile.TemporaryDirectory() as out:
        environment = {**os.environ, "XDG_CACHE_HOME": f"{out}/cache"}
        for name in only or COMMANDS:
            use = used(command_of(name, folder, Path(out)), environment)
            print(
                f"{name:26}{use.cpu_s:8.1f} CPU s{use.most_kib >> 10:8} MiB{f'  exit {use.code}' * bool(use.code)}",
                flush=True,
            )


def main() -> None:
    """Write the campaign and say where it is, or measure commands over campaigns."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--launches", type=int)
    parser.add_argument("--day", type=int, default=0, help="another day has other numbers of the same plan")
    parser.add_argument("--measure", nargs="*", metavar="COMMAND", help="all of them, or those named")
    given = parser.parse_args()
    if given.measure is not None:
        measure(given.folder, given.measure)
        return
    campaign = make(given.folder, given.launches, given.day)
    print(f"{campaign.path}: {campaign.meta.planned.attempts} attempts in {campaign.meta.planned.launches} launches")


if __name__ == "__main__":
    main()
