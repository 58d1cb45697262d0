# SPDX-License-Identifier: BSD-3-Clause
"""How often `cadge health` finds what is slow, and names what is not, by simulation.

Pairs of hosts are drawn anew from what stored campaigns of the sweep `health` measured, which must be of healthy hosts:
of each layer and case, the rest that median polish leaves is drawn with replacement, a pair's independently of all
others, and beside it normal noise of each --spread. Faults: none; a host that is slow as sender (--times); a link, both
ways. Columns: runs that name anything though nothing is slow, and runs that name the host or the link.

Of a campaign in which h3 lost packets (--loss), launches are drawn with replacement: those of pairs with h3 for such
pairs, and the others' for others. Its column: runs that name h3 and nothing else.

    python harness/bench/verdicts/slow_hosts.py [CAMPAIGN...] [--loss CAMPAIGN] [--runs 1000] [--times 1.5]
"""

import argparse
import random
from collections.abc import Callable
from math import exp
from pathlib import Path
from statistics import fmean

from cadge_analysis.pairs.fit import Pair, fit, slow_for_all, stalled_for_all
from cadge_analysis.pairs.matrix import PAIR, matrices
from cadge_analysis.stats.load import read
from cadge_results import Campaign

SENDER, LINK = "h2", ("h1", "h3")
LOSING = "h3"
CASES, LAYERS, LAUNCHES = 2, 2, 2
Draw = Callable[[], float]


def pairs_of(hosts: int) -> list[Pair]:
    """Return every pair of so many hosts."""
    names = [f"h{number + 1}" for number in range(hosts)]
    return [(one, other) for one in names for other in names if one != other]


def drawn(draw: list[list[Draw]], hosts: int, slow: Callable[[Pair], float]) -> list[list[dict[Pair, float]]]:
    """Return a run's times, by case and layer."""
    return [
        [{pair: exp(of_layer()) * slow(pair) for pair in pairs_of(hosts)} for of_layer in of_case] for of_case in draw
    ]


def line(draw: list[list[Draw]], means: list[Draw], hosts: int, runs: int, times: float) -> str:
    """Return how many runs of each fault are right, in percent."""
    alike = [
        any(slow_for_all(case) for case in drawn(draw, hosts, lambda _: 1.0))
        or any(stalled_for_all(case) for case in drawn([means], hosts, lambda _: 1.0))
        for _ in range(runs)
    ]
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


def rests(path: Path) -> tuple[list[list[list[float]]], list[list[float]]]:
    """Return a campaign's rests: of times by case and layer, and of mean times by layer.

    Ends with a sentence where it has none.
    """
    found: dict[str, list[list[float]]] = {}
    means: list[list[float]] = []
    for one in matrices(read(Campaign(path))):
        found.setdefault(str(one.case.sort_key), []).append(list(fit(one.times).rest.values()))
        if one.means:
            means.append(list(fit(one.means).rest.values()))
    if not found:
        raise SystemExit(f"{path} measured no pairs of hosts")
    return list(found.values()), means


def launches(path: Path) -> list[dict[bool, list[float]]]:
    """Return each launch's mean time of a call, by layer, and by whether its pair has the host that loses packets."""
    found: dict[str, dict[bool, list[float]]] = {}
    for cell in read(Campaign(path)).planned:
        if cell.case.file.main_quantity.kind == "histogram":
            of_layer = found.setdefault(cell.series.layer, {True: [], False: []})
            loses = LOSING in dict(cell.series.settings)[PAIR].split(",")
            of_layer[loses] += [one.elapsed_ns / one.operations for one in cell.samples]
    return list(found.values())


def losses(found: list[dict[bool, list[float]]], chance: random.Random, hosts: int, runs: int) -> float:
    """Return how many runs name the host that loses packets and nothing else, in percent."""

    def best(of_layer: dict[bool, list[float]], pair: Pair) -> float:
        return min(chance.choices(of_layer[LOSING in pair], k=LAUNCHES))

    named = [
        stalled_for_all([{pair: best(of_layer, pair) for pair in pairs_of(hosts)} for of_layer in found])
        for _ in range(runs)
    ]
    return 100 * fmean([one.hosts for one in parts] == [(LOSING,)] for parts in named)


def main() -> None:
    """Print a line for each source of noise and number of hosts."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("campaigns", nargs="*", type=Path)
    parser.add_argument("--loss", nargs="*", type=Path, default=[])
    parser.add_argument("--runs", type=int, default=1000)
    parser.add_argument("--times", type=float, default=1.5)
    parser.add_argument("--spread", type=float, nargs="*", default=[0.02, 0.05, 0.08])
    parser.add_argument("--hosts", type=int, nargs="*", default=[4, 8, 16])
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    chance = random.Random(given.seed)  # noqa: S311 - repeatable on purpose
    print(f"{'':24}{'hosts':>6}{'named':>10}{'host':>10}{'link':>10}{'loss':>10}   in %")

    def from_normal(spread: float) -> Draw:
        return lambda: chance.gauss(0, spread)

    def from_rest(rest: list[float]) -> Draw:
        return lambda: chance.choice(rest)

    sources: dict[str, tuple[list[list[Draw]], list[Draw]]] = {}
    for spread in given.spread:
        layers = [from_normal(spread)] * LAYERS
        sources[f"normal, {spread:.0%}"] = [layers] * CASES, layers
    for path in given.campaigns:
        of_cases, means = rests(path)
        sources[path.name[:23]] = [list(map(from_rest, one)) for one in of_cases], list(map(from_rest, means))
    for name, (draw, means_drawn) in sources.items():
        for hosts in given.hosts:
            print(f"{name:24}{hosts:>6}{line(draw, means_drawn, hosts, given.runs, given.times)}", flush=True)
    for path in given.loss:
        found = launches(path)
        for hosts in given.hosts:
            share = losses(found, chance, hosts, given.runs)
            print(f"{path.name[:23]:24}{hosts:>6}{share:40.1f}", flush=True)


if __name__ == "__main__":
    main()
