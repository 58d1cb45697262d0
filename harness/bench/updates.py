# SPDX-License-Identifier: BSD-3-Clause
"""What the style vmmc costs above bare puts: its updates beside rdma's puts on the same substrate, and notification.

Each round runs every layer once in fresh processes, in random order, within a host; a launch measures all sizes, in
random order. The time is that of a put and its quiet, until the bytes are visible there; the target polls. Ratios are
taken within a round; printed are medians over rounds, with the rank interval of the ratio: of an update to the put, and
of an update that notifies to one that does not.

    python harness/bench/updates.py --rounds 11
    python harness/bench/updates.py --substrates ofi --sizes 8 64 512 --depth 16
"""

import argparse
import random
import statistics
from collections.abc import Sequence

import ours
from tax import rank_interval

from cadge_results.formats.histogram import decode

SIZES = (8, 4096, 65536, 1 << 20)
PUT, UPDATE, NOTIFIED = "put", "update", "notified"


def times_us(
    layer: str, notify: str, arguments: argparse.Namespace, port: int, order: random.Random
) -> dict[int, float]:
    """Return the median time of one launch by size until a put is visible; sizes that a layer cannot do are missing."""
    sizes = order.sample(arguments.sizes, len(arguments.sizes))
    given = {"operation": "put", "target": "active", "depth": arguments.depth, "notify": notify}
    points = [ours.point("onesided", 200, bytes=size, **given) for size in sizes]
    attempts = ours.run(ours.launch_document(layer, "within", {}, points, "direct"), port, some=True)
    return {
        size: decode(attempt["quantities"]["visible"][0]["histogram"]).percentile(50) / 1000
        for size, attempt in zip(sizes, attempts, strict=True)
        if attempt
    }


def show(layer: str, what: str, size: int, times: Sequence[float], base: Sequence[float]) -> None:
    """Print one row."""
    ratios = [mine / other for mine, other in zip(times, base, strict=True)]
    low, high, _ = rank_interval(ratios)
    ratio = f"{statistics.median(ratios):6.3f} [{low:.3f}, {high:.3f}] of {len(ratios)}"
    print(f"{layer:10} {what:18} {size:9} {statistics.median(times):10.3f} {ratio}", flush=True)


def measure(substrate: str, arguments: argparse.Namespace, order: random.Random) -> None:
    """Run all rounds of one substrate, and print its rows."""
    subjects = {
        PUT: (f"rdma-{substrate}", "none"),
        UPDATE: (f"vmmc-{substrate}", "none"),
        NOTIFIED: (f"vmmc-{substrate}", "each"),
    }
    rounds = [
        {
            name: times_us(*subjects[name], arguments, 18600 + number % 50, order)
            for name in order.sample(list(subjects), len(subjects))
        }
        for number in range(arguments.rounds)
    ]
    for name, base, what in (
        (PUT, PUT, "put"),
        (UPDATE, PUT, "update \u00f7 put"),
        (NOTIFIED, UPDATE, "notified \u00f7 update"),
    ):
        for size in arguments.sizes:
            both = [(one[name][size], one[base][size]) for one in rounds if size in one[name] and size in one[base]]
            if both:
                times, others = zip(*both, strict=True)
                show(subjects[name][0], what, size, times, others)
            else:
                print(f"{subjects[name][0]:10} {what:18} {size:9} no figures")


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--substrates", nargs="+", default=["ucx", "ofi"])
    parser.add_argument("--sizes", nargs="+", type=int, default=list(SIZES))
    parser.add_argument("--depth", type=int, default=1, help="puts of a round, which a quiet closes")
    parser.add_argument("--rounds", type=int, default=11)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    order = random.Random(arguments.seed)  # noqa: S311 - the order of a benchmark
    print(f"rounds of {arguments.depth} and a quiet, within: us until visible; ratio")
    for substrate in arguments.substrates:
        measure(substrate, arguments, order)


if __name__ == "__main__":
    main()
