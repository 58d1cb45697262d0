# SPDX-License-Identifier: BSD-3-Clause
"""Compare variants of a floor, which are settings of it, within this host, to see that none beats the default.

All variants run in every round, in an order drawn anew. A round gives one ratio a variant and size: the median of its
round trips over that of the first variant. Shown is the median of the ratios with its interval by order statistics.
Exit 1 where a variant is told apart from the first one, and is faster.

    python harness/bench/floors.py floor-copyflag pages=huge pages=small --sizes 65536 262144 1048576 --rounds 15

A variant is NAME=WORD[,NAME=WORD...], or "default". With --against the default of another driver, made from other
sources, runs as well.
"""

import argparse
import random
import sys
from pathlib import Path

import ours

from cadge_analysis.stats.compare import decided
from cadge_analysis.stats.intervals import over_launches
from cadge_results.histogram import decode

Variant = tuple[str, Path]


def settings(variant: str) -> dict[str, str]:
    """Return the settings that a variant names."""
    return {} if variant == "default" else dict(part.split("=", 1) for part in variant.split(","))


def medians(floor: str, variant: Variant, sizes: list[int], duration_ms: int, port: int) -> list[float]:
    """Run one launch; return the median round trip of each size in ns."""
    form = ours.WORKLOADS.forms["exchange"]
    points = [
        {"workload": form.workload("exchange", {"bytes": size}).model_dump(mode="json"), "duration_ms": duration_ms}
        for size in sizes
    ]
    document = ours.launch_document(floor, "within", settings(variant[0]), points, "direct")
    attempts = ours.run({**document, "kind": "floor"}, port, driver=variant[1])
    return [float(decode(ours.latency(attempt)["histogram"]).percentile(50)) for attempt in attempts]


def main() -> int:
    """Print one line a variant and size."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("floor")
    parser.add_argument("variants", nargs="+")
    parser.add_argument("--sizes", type=int, nargs="+", default=[65536, 262144, 1048576])
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--duration-ms", type=int, default=100)
    parser.add_argument("--against", type=Path, help="another cadge-driver")
    given = parser.parse_args()
    variants = [(name, ours.DRIVER) for name in given.variants]
    if given.against:
        variants.append(("default", given.against))
    found: dict[Variant, list[list[float]]] = {variant: [] for variant in variants}
    for number in range(given.rounds):
        for variant in random.sample(variants, len(variants)):
            found[variant].append(medians(given.floor, variant, given.sizes, given.duration_ms, 18490 - number % 50))
    beaten = 0
    for place, size in enumerate(given.sizes):
        first = [launch[place] for launch in found[variants[0]]]
        for variant in variants:
            values = [launch[place] for launch in found[variant]]
            ratio = over_launches([ours_ns / base for ours_ns, base in zip(values, first, strict=True)], paired=True)
            faster = decided(ratio) and ratio.value < 1
            beaten += faster
            ends = "" if ratio.low is None or ratio.high is None else f" [{ratio.low:.3f}, {ratio.high:.3f}]"
            print(
                f"{given.floor} {variant[0]:24} {variant[1].parent.parent.name:10} {size:>9} B "
                f"{over_launches(values).value / 1000:9.2f} us  {ratio.value:.3f}{ends}{'  FASTER' if faster else ''}"
            )
    return 1 if beaten else 0


if __name__ == "__main__":
    sys.exit(main())
