# SPDX-License-Identifier: BSD-3-Clause
"""How one layer stands to another while data are touched, and while they are not: calls within one host.

Each round runs both layers in fresh processes, in random order; a launch measures both values of touch, in random
order. Printed are the medians over rounds of the time of a call, and of the ratio within a round, with rank intervals.

    python harness/bench/touch.py FIRST SECOND --bytes 16384 --rounds 15
"""

import argparse
import random
import statistics
from pathlib import Path

import ours
from tax import rank_interval

from cadge_results.formats.histogram import decode

TOUCHES = ("none", "write+read")


def medians_us(layer: str, size: int, port: int, order: random.Random) -> dict[str, float]:
    """Return the median call of one launch by touch, in us."""
    touches = order.sample(TOUCHES, len(TOUCHES))
    points = [ours.point("rpc", 150, request_bytes=size, touch=touch) for touch in touches]
    attempts = ours.run(ours.launch_document(layer, "within", {}, points, "direct"), port)
    histograms = [decode(ours.latency(attempt)["histogram"]) for attempt in attempts]
    return {touch: found.percentile(50) / 1000 for touch, found in zip(touches, histograms, strict=True)}


def steal_share() -> tuple[int, int]:
    """Return what the host took from this machine so far, and all there was, in ticks."""
    fields = [int(field) for field in Path("/proc/stat").read_text(encoding="ascii").splitlines()[0].split()[1:9]]
    return fields[7], sum(fields)


def main() -> None:
    """Print a line for each value of touch."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("layers", nargs=2, metavar="LAYER")
    parser.add_argument("--bytes", type=int, default=16384)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    order = random.Random(given.seed)  # noqa: S311 - order of measurement, not a secret
    found: dict[str, list[tuple[float, float]]] = {touch: [] for touch in TOUCHES}
    stolen, spent = steal_share()
    for number in range(given.rounds):
        readings = {
            layer: medians_us(layer, given.bytes, 18400 + number % 50, order) for layer in order.sample(given.layers, 2)
        }
        for touch, pairs in found.items():
            pairs.append((readings[given.layers[0]][touch], readings[given.layers[1]][touch]))
    for touch, pairs in found.items():
        low, high, coverage = rank_interval([first / second for first, second in pairs])
        ratio = statistics.median(first / second for first, second in pairs)
        first, second = (statistics.median(column) for column in zip(*pairs, strict=True))
        print(
            f"touch {touch:10} {given.layers[0]} {first:.3f} us, {given.layers[1]} {second:.3f} us, "
            f"ratio {ratio:.3f} [{low:.3f}, {high:.3f}] ({coverage:.0%}, {len(pairs)} rounds)"
        )
    stolen, spent = (now - before for now, before in zip(steal_share(), (stolen, spent), strict=True))
    print(f"steal {stolen / spent:.1%}")


if __name__ == "__main__":
    main()
