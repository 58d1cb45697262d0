# SPDX-License-Identifier: BSD-3-Clause
"""The Peregrine engine on shared memory beside the other libraries, and what the contract costs it.

Each round takes every reading once, in random order, on the same two cores: the engine's own null call; the round trip
of a message of 8 bytes as each library's own tool measures it (twice the half that the tool prints); UCX's one-sided
put ping-pong, which does less; the same calls through Cadge's contract and driver, every operation timed.

Usage: rivals.py [--rounds N] [--seed N] [--json]
"""

import argparse
import json
import random
import statistics
import subprocess
import sys
from collections.abc import Callable
from functools import partial

import native
import ours
from tax import rank_interval

from cadge_results.formats.histogram import decode

ENGINE = "engine: null call"
CONTRACT = "contract: null call"
RATE = "contract: calls a second, 64 outstanding"
BENCH = ours.ROOT / "build/bench/pgr-bench"


def engine_null_ns(_port: int) -> float:
    """Return the engine's null call on shared memory, by its own benchmark."""
    try:
        done = subprocess.run(
            [BENCH, "--json", "1", "shm null"], capture_output=True, text=True, timeout=60, check=True
        )
    except (OSError, subprocess.SubprocessError) as error:
        raise native.ToolError(f"pgr-bench: {error}; build it with: make bench") from error
    readings = {item["name"]: item["median"] for item in json.loads(done.stdout)["readings"]}
    return float(readings["shm null"])


def call_ns(port: int) -> float:
    """Return the median null call through contract and driver."""
    point = ours.point("rpc", 300, request_bytes=0)
    attempts = ours.run(ours.launch_document("peregrine-shm", "within", {}, [point], "direct"), port)
    return float(decode(ours.latency(attempts[0])["histogram"]).percentile(50))


def calls_a_second(port: int) -> float:
    """Return how many null calls complete a second with 64 outstanding, each of them timed."""
    point = ours.point("rpc", 500, request_bytes=0, depth=64)
    attempt = ours.run(ours.launch_document("peregrine-shm", "within", {}, [point], "direct"), port)[0]
    return float(attempt["operations"]) / float(attempt["elapsed_ns"]) * 1e9


def ucx(test: str, port: int) -> float:
    """Return a round trip of one of UCX's ping-pongs."""
    return 2 * native.ucx_latency(port, 8, "", test)


def ofi(port: int) -> float:
    """Return a round trip of libfabric's ping-pong on shared memory."""
    return 2 * native.ofi_latency(port, 8, "shm")


def mpi(port: int) -> float:
    """Return a round trip of Open MPI's."""
    return 2 * native.mpi_latency(port, 8)


READINGS: dict[str, tuple[str, Callable[[int], float]]] = {
    ENGINE: ("pgr-bench", engine_null_ns),
    "UCX: active message there and back": ("ucx_perftest -t ucp_am_lat", partial(ucx, "ucp_am_lat")),
    "libfabric shm: message there and back": ("fi_pingpong", ofi),
    "Open MPI: message there and back": ("NPopenmpi -a", mpi),
    "UCX: put there and back (one-sided)": ("ucx_perftest -t ucp_put_lat", partial(ucx, "ucp_put_lat")),
    CONTRACT: ("cadge-driver", call_ns),
    RATE: ("cadge-driver", calls_a_second),
}
TWO_SIDED = [name for name in READINGS if "there and back" in name and "one-sided" not in name]


def main() -> int:
    """Run the rounds and print one line a reading; exit 1 where one could not be taken."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=6)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    order = random.Random(options.seed)  # noqa: S311 -- order of measurement, not a secret
    rounds: list[dict[str, float]] = []
    problems: dict[str, str] = {}
    port = 18500
    for number in range(options.rounds):
        taken: dict[str, float] = {}
        for name in order.sample(list(READINGS), len(READINGS)):
            port = 18500 + (port - 18499) % 150
            try:
                taken[name] = READINGS[name][1](port)
            except (ours.LaunchError, native.ToolError, OSError) as error:
                problems[name] = str(error)
        rounds.append(taken)
        print(f"round {number + 1} of {options.rounds}", file=sys.stderr)
    rows: list[dict[str, object]] = []
    for name, (tool, _) in READINGS.items():
        values = [taken[name] for taken in rounds if name in taken]
        row: dict[str, object] = {"reading": name, "tool": tool, "rounds": len(values), "problem": problems.get(name)}
        rows.append(row | ({"median": statistics.median(values)} if values else {}))
    whole = [taken for taken in rounds if ENGINE in taken and any(name in taken for name in TWO_SIDED)]
    for name in (ENGINE, CONTRACT):
        ratios = [
            taken[name] / min(taken[peer] for peer in TWO_SIDED if peer in taken) for taken in whole if name in taken
        ]
        if ratios:
            low, high, _ = rank_interval(ratios)
            row = {"reading": f"{name} / the fastest two-sided", "rounds": len(ratios), "problem": None}
            rows.append(row | {"median": statistics.median(ratios), "low": low, "high": high})
    if options.json:
        print(json.dumps(rows, indent=1))
    else:
        for row in rows:
            if "median" not in row:
                print(f"{row['reading']:50} not measured: {row['problem']}")
                continue
            interval = f"  [{row['low']:.3f}, {row['high']:.3f}]" if "low" in row else f"  {row['tool']}"
            shape = ".3f" if "low" in row else ".3e" if row["reading"] == RATE else ".0f"
            print(f"{row['reading']:50} {row['median']:>10{shape}}{interval}")
    return 1 if any("median" not in row for row in rows) else 0


if __name__ == "__main__":
    sys.exit(main())
