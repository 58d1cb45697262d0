# SPDX-License-Identifier: BSD-3-Clause
"""What a style costs: each style on a substrate beside the substrate's own messages (native-*).

Each round runs every layer once in fresh processes, in random order; a launch measures all sizes, in random order, and
data are written before and read after each message. The ratio to native-* is taken within a round; printed are the
median over rounds of the time of a round trip, and of the ratio, with its rank interval. With --between the processes
are on two hosts: network namespaces with a link between them, made for the run (which takes root) and gone after it.

    python harness/bench/styles.py --rounds 11
    python harness/bench/styles.py --substrates ofi --styles fm --pattern rpc --sizes 8 64 512
"""

import argparse
import contextlib
import random
import statistics
from collections.abc import Sequence

import hosts
import ours
from tax import rank_interval

from cadge_results.formats.histogram import decode

SIZES = (8, 4096, 65536, 1 << 20)
BYTES = {"pingpong": ("bytes",), "rpc": ("request_bytes", "reply_bytes")}
"""The parameters of a pattern that are a size."""


def styles_of(substrate: str) -> list[str]:
    """Return the styles that have a module on this substrate, but native and the shims."""
    names = [path.stem.split("-", 1) for path in sorted(ours.MODULES.glob(f"*-{substrate}.so"))]
    return [style for style, _ in names if style not in ("native", "shim", "peregrine")]


def medians_us(
    layer: str, pattern: str, sizes: Sequence[int], port: int, names: Sequence[str], order: random.Random
) -> dict[int, float]:
    """Return the median round trip of one launch by size, in us; sizes that a layer cannot do are missing."""
    shuffled = order.sample(list(sizes), len(sizes))
    points = [ours.point(pattern, 200, touch="write+read", **dict.fromkeys(BYTES[pattern], size)) for size in shuffled]
    place = "between" if names else "within"
    document = ours.launch_document(layer, place, {}, points, "direct", names)
    attempts = ours.run(document, port, names=names, some=True)
    return {
        size: decode(ours.latency(attempt)["histogram"]).percentile(50) / 1000
        for size, attempt in zip(shuffled, attempts, strict=True)
        if attempt
    }


def show(layer: str, size: int, times: Sequence[float], ratios: Sequence[float]) -> None:
    """Print one row."""
    low, high, _ = rank_interval(list(ratios))
    ratio = f"{statistics.median(ratios):6.3f} [{low:.3f}, {high:.3f}] of {len(ratios)}"
    print(f"{layer:14} {size:9} {statistics.median(times):10.3f} {ratio}", flush=True)


def measure(substrate: str, arguments: argparse.Namespace, names: Sequence[str], order: random.Random) -> None:
    """Run all rounds of one substrate, and print its rows."""
    native = f"native-{substrate}"
    layers = [native, *(f"{style}-{substrate}" for style in arguments.styles or styles_of(substrate))]
    rounds: list[dict[str, dict[int, float]]] = []
    for number in range(arguments.rounds):
        port = 18600 + number % 50
        rounds.append(
            {
                layer: medians_us(layer, arguments.pattern, arguments.sizes, port, names, order)
                for layer in order.sample(layers, len(layers))
            }
        )
    for layer in layers:
        for size in arguments.sizes:
            both = [one for one in rounds if size in one[layer] and size in one[native]]
            if both:
                times = [one[layer][size] for one in both]
                show(layer, size, times, [one[layer][size] / one[native][size] for one in both])
            else:
                print(f"{layer:14} {size:9} no figures")


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--substrates", nargs="+", default=["ucx", "ofi"])
    parser.add_argument("--styles", nargs="+", help="default: all that are built")
    parser.add_argument("--pattern", choices=sorted(BYTES), default="pingpong")
    parser.add_argument("--sizes", nargs="+", type=int, default=list(SIZES))
    parser.add_argument("--rounds", type=int, default=11)
    parser.add_argument("--between", action="store_true", help="between two hosts")
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    order = random.Random(arguments.seed)  # noqa: S311 - the order of a benchmark
    print(f"{arguments.pattern}, {'between' if arguments.between else 'within'}; us a round trip; ratio to native")
    with contextlib.ExitStack() as stack:
        names = stack.enter_context(hosts.two()) if arguments.between else []
        for substrate in arguments.substrates:
            measure(substrate, arguments, names, order)


if __name__ == "__main__":
    main()
