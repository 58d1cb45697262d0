# SPDX-License-Identifier: BSD-3-Clause
"""Compare floors, or variants of one, which are settings of it, to see that none beats the first.

All variants run in every round, in an order drawn anew. A round gives one ratio a variant and size: its time over that
of the first variant, which is the median of round trips or, of streams (--form flow), the time for a message. Shown is
the median of the ratios with its interval by order statistics. Exit 1 where a variant is told apart from the first one,
beside all variants and sizes, and is faster.

    python harness/bench/floors.py floor-copyflag pages=huge pages=small --sizes 65536 262144 1048576 --rounds 15
    python harness/bench/floors.py floor-packet default packet=60k floor-tcp --form flow --between

A variant is NAME=WORD[,NAME=WORD...], or "default", or another floor's name for its default. With --against the default
of another driver, made from other sources, runs as well. --between: the two ends are two hosts, network namespaces made
for the run, which takes root.
"""

import argparse
import contextlib
import random
import sys
from pathlib import Path
from typing import Any

import hosts
import ours

from cadge_analysis.stats.family_verdicts import judge_families
from cadge_analysis.stats.inference.rounds import RoundKey
from cadge_analysis.stats.inference.verdict import Verdict
from cadge_analysis.stats.intervals import over_launches
from cadge_analysis.stats.pairing import paired
from cadge_results.formats.histogram import decode

Variant = tuple[str, Path]


def settings(variant: str) -> dict[str, str]:
    """Return the settings that a variant names."""
    return dict(part.split("=", 1) for part in variant.split(",")) if "=" in variant else {}


def time_ns(form: str, attempt: dict[str, Any]) -> float:
    """Return the median round trip, or the time for a message of a stream."""
    if form == "exchange":
        return float(decode(ours.latency(attempt)["histogram"]).percentile(50))
    return float(attempt["elapsed_ns"] / attempt["operations"])


def times(floor: str, variant: Variant, given: argparse.Namespace, names: list[str], port: int) -> list[float]:
    """Run one launch; return its time of each size in ns."""
    form = ours.WORKLOADS.forms[given.form]
    depth = {"depth": given.depth} if given.form == "flow" else {}
    points = [
        {
            "workload": form.workload(given.form, {"bytes": size, "touch": given.touch, **depth}).model_dump(
                mode="json"
            ),
            "duration_ms": given.duration_ms,
        }
        for size in given.sizes
    ]
    name = variant[0] if variant[0].startswith("floor-") else floor
    place = "between" if names else "within"
    document = ours.launch_document(name, place, settings(variant[0]), points, "direct", names)
    attempts = ours.run({**document, "kind": "floor", "wait": given.wait}, port, driver=variant[1], names=names)
    return [time_ns(given.form, attempt) for attempt in attempts]


def main() -> int:
    """Print one line a variant and size."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("floor")
    parser.add_argument("variants", nargs="+")
    parser.add_argument("--sizes", type=int, nargs="+", default=[65536, 262144, 1048576])
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--duration-ms", type=int, default=100)
    parser.add_argument("--against", type=Path, help="another cadge-driver")
    parser.add_argument("--depth", type=int, default=16, help="window of a flow (16)")
    parser.add_argument("--form", choices=sorted(ours.WORKLOADS.forms), default="exchange")
    parser.add_argument(
        "--touch", choices=("none", "write+read"), default="write+read", help="whether data are touched"
    )
    parser.add_argument("--wait", choices=("poll", "block"), default="poll")
    parser.add_argument("--between", action="store_true", help="between two hosts")
    given = parser.parse_args()
    variants = [(name, ours.DRIVER) for name in given.variants]
    if given.against:
        variants.append(("default", given.against))
    found: dict[Variant, list[list[float]]] = {variant: [] for variant in variants}
    with contextlib.ExitStack() as stack:
        names = stack.enter_context(hosts.two()) if given.between else []
        for number in range(given.rounds):
            for variant in random.sample(variants, len(variants)):
                found[variant].append(times(given.floor, variant, given, names, 18490 - number % 50))
    rounds = {
        variant: [
            {RoundKey(k): launch[place] for k, launch in enumerate(launches)} for place in range(len(given.sizes))
        ]
        for variant, launches in found.items()
    }
    compared = {
        (variant, place): paired(values, rounds[variants[0]][place])
        for variant in variants[1:]
        for place, values in enumerate(rounds[variant])
    }
    said = judge_families({given.floor: compared}, 0.0)[0][given.floor].verdicts
    beaten = 0
    for place, size in enumerate(given.sizes):
        first = [launch[place] for launch in found[variants[0]]]
        for variant in variants:
            values = [launch[place] for launch in found[variant]]
            ratio = over_launches([ours_ns / base for ours_ns, base in zip(values, first, strict=True)], paired=True)
            faster = variant != variants[0] and said[variant, place].says == Verdict.FASTER
            beaten += faster
            ends = "" if ratio.low is None or ratio.high is None else f" [{ratio.low:.3f}, {ratio.high:.3f}]"
            print(
                f"{given.floor} {variant[0]:24} {variant[1].parent.parent.name:10} {size:>9} B "
                f"{over_launches(values).value / 1000:9.2f} us  {ratio.value:.3f}{ends}{'  FASTER' if faster else ''}"
            )
    return 1 if beaten else 0


if __name__ == "__main__":
    sys.exit(main())
