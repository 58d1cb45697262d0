# SPDX-License-Identifier: BSD-3-Clause
"""Cadge beside native tools between two emulated hosts, over the data link.

Each round is a campaign through the agents, as any sweep is, and one run of each tool on the same two hosts, in random
order; untouched data, streams from one buffer, both polling, pinned to the cores that the hosts' inventory names. Only
attempts that are valid count. The ratio is taken within a round; printed are the median over rounds and its rank
interval. The testbed is brought up where it is not, and then taken down again.

A tool's connection carries messages of one size and nothing else, a launch of Cadge carries all points of a layer, and
TCP remembers: messages of 4 KiB take 1.2 times as long after some of 2 to 3 KiB, or of 64, as on a new connection.
With --alone each point has a launch of its own, as the tools do.

Usage: link.py [--rounds N] [--seed N] [--only TEXT] [--alone] [--json]
"""

import argparse
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import native
import ours
from native import Ends
from tax import rank_interval, shown

from cadge_harness.testbed import testbeds
from cadge_results import Store
from cadge_results.formats.histogram import decode
from cadge_results.store.outcomes import PointOutcome

TCP = "tcp,self"
"""Two emulated hosts share one machine, and UCX would find that out."""
PORTS = (18750, 18799)
"""Those of the tools; campaigns have others."""
SWEEP = """\
schema: cadge.sweep/2
title: Beside native tools between hosts
layers: [{layers}]
places: between
waits: poll
patterns:
{patterns}
launches: 1
seed: {seed}
floors: false
duration: {{default: 200ms}}
"""

POINTS = {
    "pingpong": "  - {{pattern: pingpong, bytes: [{sizes}], touch: none}}",
    "stream": "  - {{pattern: stream, bytes: [{sizes}], depth: 16, touch: none, buffers: same}}",
}

Statistic = Callable[[PointOutcome], float]
Reading = Callable[[int, Ends], float]


def median_ns(outcome: PointOutcome) -> float:
    """Half the median round trip of an attempt."""
    assert outcome.attempt is not None  # noqa: S101 - a valid one has one
    (samples,) = outcome.attempt.samples("latency")
    return float(decode(samples.histogram).percentile(50)) / 2


def mean_ns(outcome: PointOutcome) -> float:
    """Half the mean round trip."""
    assert outcome.attempt is not None  # noqa: S101
    (samples,) = outcome.attempt.samples("latency")
    return samples.sum_ns / samples.count / 2


def bytes_per_s(outcome: PointOutcome) -> float:
    """Bytes that came, a second."""
    assert outcome.attempt is not None  # noqa: S101
    (rate,) = outcome.attempt.rates("throughput")
    return rate.amount / (rate.elapsed_ns / 1e9)


@dataclass(frozen=True, kw_only=True)
class Cell:
    """One comparison: which point is ours, what is read of it, and the tool."""

    layer: str
    pattern: str
    size: int
    tool: str
    statistic: Statistic
    peer: Reading

    @property
    def name(self) -> str:
        """Name for people."""
        return f"{self.layer} {self.pattern} {self.size} B"

    @property
    def unit(self) -> str:
        """As tax.py shows it."""
        return "B/s" if self.pattern == "stream" else "ns"


def _ucx(port: int, ends: Ends, *, size: int, test: str) -> float:
    return native.ucx_latency(port, size, TCP, test, ends)


def _ucx_stream(port: int, ends: Ends, *, size: int) -> float:
    return native.ucx_bandwidth(port, size, TCP, 16, ends)


def _sockperf(port: int, ends: Ends, *, size: int, udp: bool) -> float:
    return native.sockperf_latency(port, size, ends, udp=udp)


CELLS = [
    *(
        Cell(
            layer=f"sockets-{kind}",
            pattern="pingpong",
            size=size,
            tool=f"sockperf, {kind}",
            statistic=median_ns,
            peer=partial(_sockperf, size=size, udp=kind == "udp"),
        )
        for kind, size in (("tcp", 64), ("tcp", 4096), ("udp", 64), ("udp", 4096))
    ),
    *(
        Cell(
            layer=layer,
            pattern="pingpong",
            size=size,
            tool=f"ucx_perftest {test}",
            statistic=median_ns,
            peer=partial(_ucx, size=size, test=test),
        )
        for layer, test in (("native-ucx", "ucp_am_lat"), ("rdma-ucx", "ucp_put_lat"))
        for size in (8, 4096, 65536)
    ),
    Cell(
        layer="native-ofi",
        pattern="pingpong",
        size=64,
        tool="fi_pingpong",
        statistic=mean_ns,
        peer=lambda port, ends: native.ofi_latency(port, 64, "tcp;ofi_rxm", ends),
    ),
    Cell(
        layer="native-ucx",
        pattern="stream",
        size=65536,
        tool="ucx_perftest tag_bw -O 16",
        statistic=bytes_per_s,
        peer=partial(_ucx_stream, size=65536),
    ),
    Cell(
        layer="sockets-tcp",
        pattern="stream",
        size=2**20,
        tool="iperf3",
        statistic=bytes_per_s,
        peer=lambda port, ends: native.iperf_bandwidth(port, 2**20, ends),
    ),
]


def ends_of(testbed: testbeds.Testbed) -> Ends:
    """Return how to start something on the first two hosts: the client on the first, as campaigns have it."""
    first, second = testbed.hosts[:2]

    def on(host: testbeds.Host) -> tuple[str, ...]:
        return (*testbed.exec_prefix, "ssh", "-q", "-F", str(testbed.ssh_config), host.name, "--")

    return Ends(
        server=on(second),
        client=on(first),
        address=second.address,
        device=second.device,
        server_cpu=second.cpus[0],
        client_cpu=first.cpus[-1],  # emulated hosts share their processors
    )


Found = Mapping[tuple[str, str, int], PointOutcome]


def campaign(cells: Sequence[Cell], seed: int, results: Path) -> Found:
    """Run one with these cells' points and return the valid attempts by layer, pattern and size."""
    sizes = {pattern: sorted({cell.size for cell in cells if cell.pattern == pattern}) for pattern in POINTS}
    patterns = [
        line.format(sizes=", ".join(f"{size}B" for size in sizes[pattern]))
        for pattern, line in POINTS.items()
        if sizes[pattern]
    ]
    with tempfile.NamedTemporaryFile("w", suffix=".yml", encoding="utf-8") as sweep:
        layers = ", ".join(sorted({cell.layer for cell in cells}))
        sweep.write(SWEEP.format(layers=layers, seed=seed, patterns="\n".join(patterns)))
        sweep.flush()
        argv = ["run", "--sweep", sweep.name, "--testbed", "emulated", "--no-report", "--results", str(results)]
        done = subprocess.run(
            [sys.executable, "-m", "cadge_cli.cli", *argv],
            env={"CADGE_ROOT": str(ours.ROOT), **os.environ},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    if done.returncode not in (0, 1):
        raise SystemExit(f"link.py: the campaign ended with {done.returncode}: {done.stderr.strip()[-500:]}")
    found = {}
    for outcome in Store(results).open("last").outcomes():
        if outcome.status == "valid":
            workload = outcome.point.workload
            found[outcome.point.subject.layer, workload.pattern, workload.integer("bytes")] = outcome
    return found


def main() -> int:
    """Run the rounds and print one line a cell; exit 1 where a cell could not be measured."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", default="", help="the cells whose names contain this")
    parser.add_argument("--alone", action="store_true", help="each point in a launch of its own")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    cells = [cell for cell in CELLS if options.only in cell.name]
    if not cells:
        parser.error(f"no cell's name contains '{options.only}'; there are: {', '.join(cell.name for cell in CELLS)}")
    order = random.Random(options.seed)  # noqa: S311 - order of measurement, not a secret
    readings: dict[str, list[tuple[float, float]]] = {cell.name: [] for cell in cells}
    problems: dict[str, str] = {}
    testbed = testbeds.resolve("emulated")
    try:
        ends = ends_of(testbed)
        port = PORTS[0]
        with tempfile.TemporaryDirectory() as results:
            for number in range(options.rounds):
                seed = options.seed + number
                mine = {} if options.alone else campaign(cells, seed, Path(results))
                for cell in order.sample(cells, len(cells)):
                    if options.alone:
                        mine = campaign([cell], seed, Path(results))
                    outcome = mine.get((cell.layer, cell.pattern, cell.size))
                    port = PORTS[0] + (port + 1 - PORTS[0]) % (PORTS[1] - PORTS[0])
                    try:
                        tool = cell.peer(port, ends)
                    except (native.ToolError, OSError) as error:
                        problems[cell.name] = str(error)
                        continue
                    if outcome is None:
                        problems[cell.name] = "the campaign's attempt is not valid"
                        continue
                    readings[cell.name].append((cell.statistic(outcome), tool))
                print(f"round {number + 1} of {options.rounds}", file=sys.stderr)
    finally:
        testbeds.release(testbed)
    rows = [row(cell, readings[cell.name], problems.get(cell.name)) for cell in cells]
    if options.json:
        print(json.dumps(rows, indent=1))
    else:
        print(
            f"{'cell':29} {'native tool':27} {'rounds':>6} {'ours':>11} {'tool':>11} {'ratio':>6}  interval (coverage)"
        )
        for cell, one in zip(cells, rows, strict=True):
            print(line(cell, one))
    return 1 if any("ratio" not in one for one in rows) else 0


def row(cell: Cell, pairs: list[tuple[float, float]], problem: str | None) -> dict[str, object]:
    """Return a cell's figures."""
    found: dict[str, object] = {"cell": cell.name, "tool": cell.tool, "rounds": len(pairs), "problem": problem}
    if pairs:
        ratios = [mine / tool for mine, tool in pairs]
        low, high, coverage = rank_interval(ratios)
        found |= {
            "ours": statistics.median(mine for mine, _ in pairs),
            "native": statistics.median(t for _, t in pairs),
        }
        found |= {"ratio": statistics.median(ratios), "low": low, "high": high, "coverage": coverage}
    return found


def line(cell: Cell, one: Mapping[str, object]) -> str:
    """Return a cell's figures as people read them."""
    head = f"{cell.name:29} {cell.tool:27} {one['rounds']:6}"
    if "ratio" not in one:
        return f"{head} not measured: {one['problem']}"
    mine, tool = (shown(float(str(one[key])), cell.unit) for key in ("ours", "native"))
    sure = f"[{one['low']:.3f}, {one['high']:.3f}] ({one['coverage']:.1%})"
    return f"{head} {mine:>11} {tool:>11} {one['ratio']:6.3f}  {sure}"


if __name__ == "__main__":
    sys.exit(main())
