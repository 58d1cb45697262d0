# SPDX-License-Identifier: BSD-3-Clause
"""What the driver adds to a round trip: a pattern's, less that of a direct loop of the layer's post and poll.

All run in each launch, in turn and in random order, on the same module and connection; a launch gives a difference of
medians for each pattern. Over the null layer, in one process, nothing but the driver is there to differ. Printed are
medians over launches, the difference with its rank interval, and what nine of ten launches stay below.

Of that, so much is the price of writing the first 16 bytes of each message anew and reading them where it arrives, by
which a pattern knows that it is the right one: a direct loop that does so as well is timed beside. Where a layer lends
what lies in the sender's cache, those are lines that nobody else touches.

Usage: driver_tax.py [--launches N] [--layers NAME ...] [--bytes N]
"""

import argparse
import random
import statistics
import sys

import ours
from tax import rank_interval

from cadge_results.formats.histogram import decode

PATTERNS = {"pingpong": "bytes", "rpc": "request_bytes", "postpoll": "bytes", "stamped": "bytes"}
"""With the parameter that is the size; stamped: the direct loop with a stamp."""
TURNS = 3
POINT_MS = 50


def launch(layer: str, size: int, order: random.Random, port: int) -> dict[str, float]:
    """Return the median round trip of one launch by pattern, in ns."""
    place = "self" if layer == "null-self" else "within"
    launcher = "mpirun" if layer.startswith("mpi") else "direct"
    patterns = order.sample(list(PATTERNS), len(PATTERNS)) * TURNS
    points = [
        ours.point("postpoll", POINT_MS, bytes=size, stamp="write+read")
        if pattern == "stamped"
        else ours.point(pattern, POINT_MS, **{PATTERNS[pattern]: size})
        for pattern in patterns
    ]
    attempts = ours.run(ours.launch_document(layer, place, {}, points, launcher), port)
    found: dict[str, list[float]] = {pattern: [] for pattern in PATTERNS}
    for pattern, attempt in zip(patterns, attempts, strict=True):
        median = float(decode(ours.samples(attempt)["histogram"]).percentile(50))
        found[pattern].append(median / (ours.DIRECT_BATCH if pattern in ("postpoll", "stamped") else 1))
    return {pattern: statistics.median(medians) for pattern, medians in found.items()}


def main() -> int:
    """Print a line for each layer and pattern; exit 1 where one could not be measured."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--launches", type=int, default=15)
    parser.add_argument("--layers", nargs="*", default=["null-self"])
    parser.add_argument("--bytes", type=int, default=8)
    options = parser.parse_args()
    order = random.Random(1)  # noqa: S311 -- order of measurement, not a secret
    status = 0
    print(
        f"{'layer':14} {'pattern':9} {'bytes':>7} {'it takes':>9} {'direct':>9} {'driver':>8}  "
        "interval, nine of ten below; of that the stamp"
    )
    for layer in options.layers:
        try:
            found = [launch(layer, options.bytes, order, 18850 + number % 50) for number in range(options.launches)]
        except (ours.LaunchError, OSError) as error:
            print(f"{layer:14} not measured: {error}")
            status = 1
            continue
        direct_ns = statistics.median(one["postpoll"] for one in found)
        stamp_ns = statistics.median(one["stamped"] - one["postpoll"] for one in found)
        for pattern in PATTERNS:
            if pattern in ("postpoll", "stamped"):
                continue
            differences = sorted(one[pattern] - one["postpoll"] for one in found)
            low, high, coverage = rank_interval(differences)
            most = differences[-(-9 * len(differences) // 10) - 1]
            print(
                f"{layer:14} {pattern:9} {options.bytes:7} {statistics.median(one[pattern] for one in found):6.0f} ns "
                f"{direct_ns:6.0f} ns {statistics.median(differences):5.0f} ns  [{low:.0f}, {high:.0f}] "
                f"({coverage:.1%}), {most:.0f} ns; {stamp_ns:.0f} ns"
            )
    return status


if __name__ == "__main__":
    sys.exit(main())
