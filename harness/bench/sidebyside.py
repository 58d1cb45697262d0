# SPDX-License-Identifier: BSD-3-Clause
"""Compare two builds of Cadge on this machine, to see whether the new one is as fast as the old one.

Both builds run the same launch files in turn, old and new swapping who is first from round to round. A round gives one
ratio new / old a layer and workload: of the median latency (load: of the response time), or of the time for a byte.
Shown is the median of the ratios with its 95 % interval by order statistics. A layer passes when the median is at most
1.02 and the upper end of the interval at most 1.05. The layers are those of each build, or with --modules the same for
both, so that the drivers alone differ. With --between the two endpoints are two hosts: network namespaces with a link
between them for data and one for raw frames, made for the run (which takes root) and gone after it.

    python harness/bench/sidebyside.py OLD/build NEW/build --rounds 15 --layers sockets-tcp native-ucx
    python harness/bench/sidebyside.py OLD/build NEW/build --modules NEW/build/layers --patterns load --layers null-self
    python harness/bench/sidebyside.py OLD/build NEW/build --workload rpc,request_bytes=4096,reply_bytes=4096

The new driver's patterns say what is measured; an old one that cannot do it gives no figure. Exit status: 0: all pass;
1: a layer is slower.
"""

import argparse
import contextlib
import math
import statistics
import sys
from collections.abc import Sequence
from pathlib import Path

import alike_launches as alike
import hosts

from cadge_results.formats.histogram import decode

USUAL = ("rpc,request_bytes=8,reply_bytes=8,depth=1", "pingpong,bytes=16", "stream,bytes=65536,depth=16")
MEDIAN_MAX, UPPER_MAX = 1.02, 1.05


def figure_ns(attempt: alike.Json) -> float | None:
    """Return the median of the first quantity with samples, or the time for a byte; None where nothing was measured."""
    if attempt["status"] not in ("done", "unsound"):
        return None
    for series in attempt["quantities"].values():
        if histogram := series[0].get("histogram"):
            return float(decode(histogram).percentile(50))
    return float(attempt["elapsed_ns"] / attempt["bytes"]) if attempt["bytes"] else None


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


def compare(launch: alike.Json, given: argparse.Namespace, names: Sequence[str]) -> bool:
    """Run all rounds of one launch file, print a line for its workload, and return whether it passes."""
    found: list[tuple[float, float]] = []
    reason = ""
    for number in range(given.rounds):
        figures: list[float | None] = [None, None]
        for which in (0, 1) if number % 2 else (1, 0):
            build = given.builds[which]
            try:
                (attempt,) = alike.run(build, launch, given.modules or build / "layers", names=names)["attempts"]
            except alike.LaunchError as error:
                reason = str(error)
                continue
            figures[which] = figure_ns(attempt)
            reason = attempt["reason"] or reason
        old, new = figures
        if old and new:
            found.append((old, new))
    head = f"{launch['layer']:16} {launch['wait']:5} {launch['points'][0]['workload']['pattern']:10}"
    if not found:
        print(f"{head} no figures: {reason}", flush=True)
        return True
    low, middle, high = interval([new / old for old, new in found])
    good = middle <= MEDIAN_MAX and high <= UPPER_MAX
    olds, news = (statistics.median(column) for column in zip(*found, strict=True))
    print(
        f"{head} {middle:.3f} [{low:.3f}, {high:.3f}] of {len(found)}"
        f"  old {olds:.4g} ns, new {news:.4g} ns  {'ok' if good else 'SLOWER'}",
        flush=True,
    )
    return good


def main() -> int:
    """Compare, and exit with 1 when a layer is slower."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("builds", nargs=2, type=Path, metavar="BUILD", help="old and new build folder")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--duration-ms", type=int, default=250)
    parser.add_argument("--between", action="store_true", help="between two hosts; not for mpirun")
    parser.add_argument("--layers", nargs="*", help="usual: all that both builds have")
    alike.options(parser)
    given = parser.parse_args()
    built = [{path.stem for path in (build / "layers").glob("*.so")} for build in given.builds]
    layers = given.layers or sorted(name for name in built[0] & built[1] if not name.startswith("shim-"))
    usual = [] if given.patterns or given.workload else USUAL
    works = [
        work for some in alike.chosen(given.patterns, [*given.workload, *usual], varied=False).values() for work in some
    ]
    passes = True
    with contextlib.ExitStack() as stack:
        names = stack.enter_context(hosts.two()) if given.between else []
        for layer in layers:
            for work in works:
                given.layer = layer
                given.place = "between" if given.between and layer != "null-self" else None
                for launch in alike.launches([work], alike.setting_of(given, 0)):
                    for point in launch["points"]:
                        point["duration_ms"] = given.duration_ms
                    passes &= compare(launch, given, names)
    return 0 if passes else 1


if __name__ == "__main__":
    sys.exit(main())
