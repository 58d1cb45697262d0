# SPDX-License-Identifier: BSD-3-Clause
"""How often `cadge health` finds what is slow, and names what is not, by simulation.

Pairs of hosts are drawn anew from what stored campaigns of the sweep `health` measured, which must be of healthy hosts:
of each layer and case, the rest that median polish leaves is drawn with replacement, a pair's independently of all
others, and beside it normal noise of each --spread. Faults: none; a host that is slow as sender (--times); a link, both
ways. named: runs that name anything though nothing is slow; found: runs that name the fault.

    python harness/bench/verdicts/slow_hosts.py [CAMPAIGN...] [--runs 1000] [--times 1.5]
"""

import argparse
import random
from collections.abc import Callable
from math import exp
from pathlib import Path
from statistics import fmean

from cadge_analysis.pairs.fit import Pair, fit, slow_for_all
from cadge_analysis.pairs.matrix import matrices
from cadge_analysis.stats.load import read
from cadge_results import Campaign

SENDER, LINK = "h2", ("h1", "h3")
CASES, LAYERS = 2, 2
Draw = Callable[[], float]


def drawn(draw: list[list[Draw]], hosts: int, slow: Callable[[Pair], float]) -> list[list[dict[Pair, float]]]:
    """Return a run's times, by case and layer."""
    names = [f"h{number + 1}" for number in range(hosts)]
    pairs = [(one, other) for one in names for other in names if one != other]
    return [[{pair: exp(of_layer()) * slow(pair) for pair in pairs} for of_layer in of_case] for of_case in draw]


def line(draw: list[list[Draw]], hosts: int, runs: int, times: float) -> str:
    """Return how many runs of each fault are right, in percent."""
    alike = [any(slow_for_all(case) for case in drawn(draw, hosts, lambda _: 1.0)) for _ in range(runs)]
    by_host, by_link = [], []
    for _ in range(runs):
        run = drawn(draw, hosts, lambda pair: times if pair[0] == SENDER else 1.0)
        by_host.append(
            any(one.part == "first" and one.hosts == (SENDER,) for case in run for one in slow_for_all(case))
        )
        run = drawn(draw, hosts, lambda pair: times if set(pair) == set(LINK) else 1.0)
        by_link.append(any(set(one.hosts) == set(LINK) for case in run for one in slow_for_all(case)))
    shares = (100 * fmean(part) for part in (alike, by_host, by_link))
    return "".join(f"{share:10.1f}" for share in shares)


def rests(path: Path) -> list[list[list[float]]]:
    """Return a campaign's rests, by case and layer. Ends with a sentence where it has none."""
    found: dict[str, list[list[float]]] = {}
    for one in matrices(read(Campaign(path))):
        found.setdefault(str(one.case.sort_key), []).append(list(fit(one.times).rest.values()))
    if not found:
        raise SystemExit(f"{path} measured no pairs of hosts")
    return list(found.values())


def main() -> None:
    """Print a line for each source of noise and number of hosts."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("campaigns", nargs="*", type=Path)
    parser.add_argument("--runs", type=int, default=1000)
    parser.add_argument("--times", type=float, default=1.5)
    parser.add_argument("--spread", type=float, nargs="*", default=[0.02, 0.05, 0.08])
    parser.add_argument("--hosts", type=int, nargs="*", default=[4, 8, 16])
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    chance = random.Random(given.seed)  # noqa: S311 - repeatable on purpose
    print(f"{'':24}{'hosts':>6}{'named':>10}{'host':>10}{'link':>10}   in %")
    sources: dict[str, list[list[Draw]]] = {
        f"normal, {spread:.0%}": [[lambda s=spread: chance.gauss(0, s)] * LAYERS] * CASES  # type: ignore[misc]
        for spread in given.spread
    }
    for path in given.campaigns:
        sources[path.name[:23]] = [
            [lambda r=rest: chance.choice(r) for rest in of_case]
            for of_case in rests(path)  # type: ignore[misc]
        ]
    for name, draw in sources.items():
        for hosts in given.hosts:
            print(f"{name:24}{hosts:>6}{line(draw, hosts, given.runs, given.times)}", flush=True)


if __name__ == "__main__":
    main()
