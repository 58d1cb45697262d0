# SPDX-License-Identifier: BSD-3-Clause
"""What share of a campaign's pairs is decided, as reports did it before there were families, and as they do it now.

Of the cases that rank, pairs of which both have a number, unless said otherwise:

    beside the best: each layer against the one that looked best in its case, by a 95 % interval of its own; as it was
    beside the baseline: each layer against the declared baseline, in the same way
    or the same: as before, or that interval lies wholly within +-delta
    verdicts: faster, slower or the same against the baseline, by the correction of each family; also of pairs without
        a number, which nothing decides
    one leads: of the cases with two layers or more, those of which one alone may be the best

The first three hold their error for each pair alone: of a hundred pairs without a difference they call four different.
The verdicts hold it for what they name.

    python harness/bench/verdicts/decided.py CAMPAIGN...
"""

import argparse
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

from cadge_analysis.judged import judged
from cadge_analysis.stats import intervals
from cadge_analysis.stats.campaign_verdicts import CampaignVerdicts
from cadge_analysis.stats.compare import Comparison, Row, compare
from cadge_analysis.stats.inference.verdict import Verdict
from cadge_analysis.stats.intervals import TARGET_COVERAGE, Estimate
from cadge_analysis.stats.load import Case, read
from cadge_results import Campaign


def decided(ratio: Estimate) -> bool:
    """Tell whether a ratio's own interval covers at least 95 % and lies wholly on one side of 1: the rule of before."""
    if ratio.low is None or ratio.high is None or ratio.coverage < TARGET_COVERAGE:
        return False
    return ratio.low > 1 or ratio.high < 1


def cases_of(comparison: Comparison) -> list[list[Row]]:
    """Return the rows of each case that ranks, the best first."""
    found: dict[Case, list[Row]] = defaultdict(list)
    for row in comparison.rows:
        if row.cell.case.does_rank:
            found[row.cell.case].append(row)

    def rank(row: Row) -> tuple[float, str]:
        value = row.numbers.central.value
        return -value if row.numbers.more_is_better else value, row.cell.series.label

    return [sorted(rows, key=rank) for rows in found.values()]


def beside(cases: list[list[Row]], baseline: str | None) -> Iterator[Estimate]:
    """Yield the ratio of each layer to the baseline, or where there is none to name, to the best of its case."""
    for rows in cases:
        found = [row for row in rows if row.cell.series.label == baseline] if baseline else rows[:1]
        for row in rows:
            if found and row is not found[0]:
                yield intervals.ratio(row.numbers.by_round, found[0].numbers.by_round)


def same(ratio: Estimate, delta: float) -> bool:
    """Tell whether a ratio's own interval lies within the margin."""
    is_sure = ratio.coverage >= TARGET_COVERAGE and ratio.low is not None and ratio.high is not None
    return is_sure and 1 / (1 + delta) < ratio.low and ratio.high < 1 + delta


def line(name: str, some: int, of: int, more: str = "") -> None:
    """Print a share."""
    share = f"{100 * some / of:5.1f} %" if of else "     -"
    print(f"  {name:24} {some:6} of {of:6}  {share}{more}")


def told(found: CampaignVerdicts) -> str:
    """Say how many of each."""
    return "  " + ", ".join(f"{found.count(verdict)} {verdict}" for verdict in Verdict)


def main() -> None:
    """Print the shares of each campaign."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("campaigns", nargs="+", type=Path)
    for path in parser.parse_args().campaigns:
        comparison = compare(read(Campaign(path)))
        found, cases = judged(comparison), cases_of(comparison)
        to_best, to_base = list(beside(cases, None)), list(beside(cases, found.baseline)) if found.baseline else []
        margin = 100 * found.delta
        print(f"{path.name}: {comparison.data.rounds} launches, baseline {found.baseline}, delta {margin:g} %")
        line("before, beside the best", sum(map(decided, to_best)), len(to_best))
        line("before, beside baseline", sum(map(decided, to_base)), len(to_base))
        line("   or the same", sum(decided(one) or same(one, found.delta) for one in to_base), len(to_base))
        line("now, verdicts", found.decided, found.comparisons, told(found))
        groups = [group for group in found.groups.values() if group.ranked > 1]
        line("   one leads", sum(group.best is not None for group in groups), len(groups))
        for family in found.families:
            if family.cells:
                name = f"{family.key.pattern}, {family.key.place}, {family.key.wait}"
                line(f"   {name}", family.decided, len(family.cells), f"  allowed for: {family.correlation:g}")


if __name__ == "__main__":
    main()
