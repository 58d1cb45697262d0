# SPDX-License-Identifier: BSD-3-Clause
"""How much slower attempts are from which others took a share of their time, in campaigns on an idle machine.

An attempt is compared with the undisturbed ones of the same point: those that lost at most 0.5 % of their time. For
each class of lost time: attempts; their values by the undisturbed median of the point, as median and mean (1.01: 1 %
slower, rates turned over); the median absolute deviation of those ratios. The last column is the share of attempts that
lose more, which a limit there would call disturbed.

    python harness/bench/verdicts/disturbance.py CAMPAIGN...
"""

import argparse
from collections import defaultdict
from math import inf
from pathlib import Path
from statistics import fmean, median

from cadge_analysis.stats.compare import compare
from cadge_analysis.stats.disturbance import disturbed_shares
from cadge_analysis.stats.load import read
from cadge_results import Campaign

CLASSES = (0.005, 0.01, 0.02, 0.05, 0.1, 0.2, inf)


def slower(path: Path) -> list[tuple[float, float]]:
    """Return for each attempt of a campaign the share that others took, and how often the undisturbed value it has."""
    found = []
    for row in compare(read(Campaign(path))).rows:
        samples = [one for one in row.cell.samples if one.cpu and one.round in row.numbers.by_round]
        uses = [[use for _, use in one.cpu] for one in samples]
        shares = disturbed_shares(uses, row.cell.case.wait)
        values = [row.numbers.by_round[one.round] for one in samples]
        usual = [value for value, share in zip(values, shares, strict=True) if share <= CLASSES[0]]
        if len(usual) > 1 and median(usual) > 0:
            turned = -1 if row.numbers.more_is_better else 1
            found += [(s, (v / median(usual)) ** turned) for v, s in zip(values, shares, strict=True) if v > 0]
    return found


def main() -> None:
    """Print a line for each class of lost time, over all campaigns."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("campaigns", nargs="+", type=Path)
    every = [one for path in parser.parse_args().campaigns for one in slower(path)]
    classes: dict[float, list[float]] = defaultdict(list)
    for share, ratio in every:
        classes[next(limit for limit in CLASSES if share <= limit)].append(ratio)
    print(f"{'lost':>10}{'attempts':>10}{'median':>8}{'mean':>8}{'MAD':>8}{'lose more':>11}")
    more = len(every)
    for limit in CLASSES:
        ratios = classes[limit]
        more -= len(ratios)
        if ratios:
            middle = median(ratios)
            spread = median(abs(one - middle) for one in ratios)
            name = "more" if limit == inf else f"to {limit:.1%}"
            print(f"{name:>10}{len(ratios):10}{middle:8.3f}{fmean(ratios):8.3f}{spread:8.3f}{more / len(every):11.1%}")


if __name__ == "__main__":
    main()
