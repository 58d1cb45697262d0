# SPDX-License-Identifier: BSD-3-Clause
"""Round trip of the null layer through driver and contract: what Cadge itself costs an operation, in ns.

Usage: null.py [--rounds N]
"""

import argparse
import statistics

import ours

from cadge_results.histogram import decode


def main() -> None:
    """Print the median over launches of the median and p99.9 for bare messages and for RPC."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=15)
    rounds = parser.parse_args().rounds
    points = [ours.point("pingpong", 200, bytes=8), ours.point("rpc", 200, request_bytes=8)]
    readings: dict[str, list[tuple[int, int]]] = {"pingpong": [], "rpc": []}
    for number in range(rounds):
        document = ours.launch_document("null-self", "self", {}, points, "direct")
        for attempt in ours.run(document, 18490 - number % 50):
            histogram = decode(ours.latency(attempt)["histogram"])
            pair = (histogram.percentile(50), histogram.percentile(99.9))
            readings[attempt["workload"]["pattern"]].append(pair)
    for pattern, pairs in readings.items():
        medians = [median for median, _ in pairs]
        print(
            f"null-self {pattern:8} 8 B: p50 {statistics.median(medians):.0f} ns "
            f"[{min(medians)}, {max(medians)}], p99.9 {statistics.median(tail for _, tail in pairs):.0f} ns, "
            f"{rounds} launches"
        )


if __name__ == "__main__":
    main()
