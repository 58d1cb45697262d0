# SPDX-License-Identifier: BSD-3-Clause
"""Tax: Cadge's bare message exchange beside the native tool of the same library, and where the difference lies.

Each round runs every cell once, ours and the tool's in random order, cells in random order; same cores, both polling,
same bytes, and the statistic that the tool prints. The ratio is taken within a round; printed are the median over
rounds and its rank interval.

A launch of ours also runs a direct loop of the layer's post and poll on the same connection, and one that also writes
the first 16 bytes of each message anew and compares them where it arrives. What the exchange takes more than the latter
is the driver's; what that takes more than the bare loop is the look at a message, which no tool takes; what the bare
loop takes more than the tool is the adapter's (its conversion of the library to the contract: callbacks, matching,
checks, progress). All three are printed in ns of half a round trip.

Usage: tax.py [--rounds N] [--cells NAME,NAME] [--seed N] [--json]
"""

import argparse
import json
import math
import random
import statistics
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import native
import ours

from cadge_results.formats.histogram import decode


@dataclass(frozen=True, kw_only=True)
class Cell:
    """One comparison: how to get our reading and the tool's, and what counts as good."""

    name: str
    tool: str
    unit: str  # "ns": lower is better; "B/s": higher is better
    measure: Callable[[int], tuple[float, float | None, float | None]]  # ours; the loops with and without a look
    peer: Callable[[int], float]  # the tool's, given a port


Statistic = Callable[[list[dict[str, Any]]], float]
"""Of the histograms of the attempts of one launch, in ns of what a sample is of."""


def median_ns(trials: list[dict[str, Any]]) -> float:
    """Median over trials of their medians."""
    return statistics.median(float(decode(one["histogram"]).percentile(50)) for one in trials)


def mean_ns(trials: list[dict[str, Any]]) -> float:
    """Median over trials of their means."""
    return statistics.median(float(one["sum_ns"]) / float(one["count"]) for one in trials)


def best_mean_ns(trials: list[dict[str, Any]]) -> float:
    """Lowest mean of the trials, as NetPIPE takes the best of its trials."""
    return min(float(one["sum_ns"]) / float(one["count"]) for one in trials)


def bytes_per_s(attempts: list[dict[str, Any]]) -> float:
    """Receiver-confirmed payload bytes per second."""
    (rate,) = attempts[0]["quantities"]["throughput"]
    return float(rate["amount"]) / (float(rate["elapsed_ns"]) / 1e9)


def ping(
    layer: str, place: str, size: int, settings: dict[str, str], statistic: Statistic,
    port: int, *, trials: int = 2, launcher: str = "direct",
) -> tuple[float, float, float]:  # fmt: skip
    """Return half a round trip of the bare exchange through Cadge, and of both direct loops in the same launch."""
    forms: tuple[tuple[str, dict[str, int | str]], ...] = (
        ("pingpong", {}), ("postpoll", {"stamp": "write+read"}), ("postpoll", {}),
    )  # fmt: skip
    points = [ours.point(pattern, 500 // trials, bytes=size, **more) for pattern, more in forms] * trials
    attempts = ours.run(ours.launch_document(layer, place, settings, points, launcher), port)
    exchange, looking, bare = (statistic([ours.samples(one) for one in attempts[k::3]]) for k in range(3))
    return exchange / 2, looking / ours.DIRECT_BATCH / 2, bare / ours.DIRECT_BATCH / 2


def stream(
    layer: str, place: str, size: int, settings: dict[str, str], window: int, port: int
) -> tuple[float, None, None]:
    """Return one reading of one-way bandwidth through Cadge, from one buffer, as the tools send."""
    point = ours.point("stream", 700, bytes=size, depth=window, buffers="same")
    return bytes_per_s(ours.run(ours.launch_document(layer, place, settings, [point], "direct"), port)), None, None


TCP = {"transports": "tcp,self"}
CELLS = [
    Cell(name="native-ucx shm 8 B", tool="ucx_perftest ucp_am_lat", unit="ns",
         measure=partial(ping, "native-ucx", "within", 8, {}, median_ns),
         peer=lambda port: native.ucx_latency(port, 8, "")),
    Cell(name="native-ucx tcp 8 B", tool="ucx_perftest ucp_am_lat", unit="ns",
         measure=partial(ping, "native-ucx", "between", 8, TCP, median_ns),
         peer=lambda port: native.ucx_latency(port, 8, "tcp,self")),
    Cell(name="rdma-ucx shm 8 B", tool="ucx_perftest ucp_put_lat", unit="ns",
         measure=partial(ping, "rdma-ucx", "within", 8, {}, median_ns),
         peer=lambda port: native.ucx_latency(port, 8, "", "ucp_put_lat")),
    Cell(name="rdma-ucx shm 1 KiB", tool="ucx_perftest ucp_put_lat", unit="ns",
         measure=partial(ping, "rdma-ucx", "within", 1024, {}, median_ns),
         peer=lambda port: native.ucx_latency(port, 1024, "", "ucp_put_lat")),
    Cell(name="native-ofi shm 64 B", tool="fi_pingpong", unit="ns",
         measure=partial(ping, "native-ofi", "within", 64, {}, mean_ns),
         peer=lambda port: native.ofi_latency(port, 64, "shm")),
    Cell(name="native-ofi tcp;ofi_rxm 64 B", tool="fi_pingpong", unit="ns",
         measure=partial(ping, "native-ofi", "between", 64, {}, mean_ns),
         peer=lambda port: native.ofi_latency(port, 64, "tcp;ofi_rxm")),
    Cell(name="mpi-p2p shm 8 B", tool="NPopenmpi -a", unit="ns",
         measure=partial(ping, "mpi-p2p", "within", 8, {}, best_mean_ns, trials=5, launcher="mpirun"),
         peer=lambda port: native.mpi_latency(port, 8)),
    Cell(name="sockets-tcp 64 B", tool="sockperf --nonblocked", unit="ns",
         measure=partial(ping, "sockets-tcp", "within", 64, {}, median_ns),
         peer=lambda port: native.sockperf_latency(port, 64)),
    # The tool sends all of its window from one buffer, which stays in the cache; and so does ours here.
    Cell(name="native-ucx shm 1 MiB stream", tool="ucx_perftest tag_bw", unit="B/s",
         measure=partial(stream, "native-ucx", "within", 2**20, {}, 1),
         peer=lambda port: native.ucx_bandwidth(port, 2**20, "", 1)),
    Cell(name="the same, window of 32", tool="ucx_perftest tag_bw -O 32", unit="B/s",
         measure=partial(stream, "native-ucx", "within", 2**20, {}, 32),
         peer=lambda port: native.ucx_bandwidth(port, 2**20, "", 32)),
    Cell(name="sockets-tcp 1 MiB stream", tool="iperf3", unit="B/s",
         measure=partial(stream, "sockets-tcp", "within", 2**20, {}, 8),
         peer=lambda port: native.iperf_bandwidth(port, 2**20)),
]  # fmt: skip


def rank_interval(values: list[float]) -> tuple[float, float, float]:
    """Return low, high and coverage of the narrowest order-statistic interval of the median that covers >= 95 %."""
    ordered, n = sorted(values), len(values)
    best = (ordered[0], ordered[-1], 1 - 2 * 0.5**n)
    for skip in range(1, n // 2):
        tail = sum(math.comb(n, k) for k in range(skip + 1)) / 2**n
        if 1 - 2 * tail < 0.95:
            break
        best = (ordered[skip], ordered[n - 1 - skip], 1 - 2 * tail)
    return best


def shown(value: float, unit: str) -> str:
    """Return a reading as people write it."""
    return f"{value:.0f} ns" if unit == "ns" else f"{value / 1e6:.0f} MB/s"


def interval(differences: list[float]) -> tuple[float, float, float] | None:
    """Return median, low and high; None of nothing."""
    return (statistics.median(differences), *rank_interval(differences)[:2]) if differences else None


def part(found: tuple[float, float, float] | None) -> str:
    """Return a part of the difference as people write it."""
    return f"{found[0]:+.0f} [{found[1]:+.0f}, {found[2]:+.0f}]" if found else ""


def main() -> int:
    """Run the rounds and print one line a cell; exit 1 where a cell could not be measured."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--cells", default="", help="comma-separated parts of names")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    wanted = [part for part in options.cells.split(",") if part]
    cells = [cell for cell in CELLS if not wanted or any(part in cell.name for part in wanted)]
    order = random.Random(options.seed)  # noqa: S311 -- order of measurement, not a secret
    readings: dict[str, list[tuple[float, float | None, float | None, float]]] = {cell.name: [] for cell in cells}
    problems: dict[str, str] = {}
    port = 18500
    for number in range(options.rounds):
        for cell in order.sample(cells, len(cells)):
            port = 18500 + (port - 18499) % 150
            ours_first = order.random() < 0.5
            try:
                reading = cell.measure(port) if ours_first else None
                tool = cell.peer(port + 150)
                through, looking, direct = reading or cell.measure(port)
            except (ours.LaunchError, native.ToolError, OSError) as error:
                problems[cell.name] = str(error)
                continue
            readings[cell.name].append((through, looking, direct, tool))
        print(f"round {number + 1} of {options.rounds}", file=sys.stderr)
    rows = []
    for cell in cells:
        pairs = readings[cell.name]
        if not pairs:
            rows.append({"cell": cell.name, "tool": cell.tool, "problem": problems.get(cell.name, "no reading")})
            continue
        ratios = [through / tool for through, _, _, tool in pairs]
        driver = [through - looking for through, looking, _, _ in pairs if looking is not None]
        look = [looking - direct for _, looking, direct, _ in pairs if looking is not None and direct is not None]
        adapter = [direct - tool for _, _, direct, tool in pairs if direct is not None]
        low, high, coverage = rank_interval(ratios)
        rows.append(
            {
                "cell": cell.name,
                "tool": cell.tool,
                "rounds": len(pairs),
                "ours": statistics.median(through for through, _, _, _ in pairs),
                "native": statistics.median(tool for _, _, _, tool in pairs),
                "driver_ns": interval(driver),
                "look_ns": interval(look),
                "adapter_ns": interval(adapter),
                "unit": cell.unit,
                "ratio": statistics.median(ratios),
                "low": low,
                "high": high,
                "coverage": coverage,
                "problem": problems.get(cell.name),
            }
        )
    if options.json:
        print(json.dumps(rows, indent=1))
    else:
        print(
            f"{'cell':29} {'native tool':25} {'rounds':>6} {'ours':>11} {'tool':>11} {'ratio':>6}  interval (coverage)"
            "     driver, ns          look, ns          adapter, ns"
        )
        for row in rows:
            if "ratio" not in row:
                print(f"{row['cell']:29} {row['tool']:25} not measured: {row['problem']}")
                continue
            print(
                f"{row['cell']:29} {row['tool']:25} {row['rounds']:6} {shown(row['ours'], row['unit']):>11} "
                f"{shown(row['native'], row['unit']):>11} {row['ratio']:6.3f}  [{row['low']:.3f}, {row['high']:.3f}] "
                f"({row['coverage']:.1%}) {part(row['driver_ns']):>17} {part(row['look_ns']):>17} "
                f"{part(row['adapter_ns']):>19}"
            )
    return 1 if any("ratio" not in row for row in rows) else 0


if __name__ == "__main__":
    sys.exit(main())
