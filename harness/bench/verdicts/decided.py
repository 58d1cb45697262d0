# SPDX-License-Identifier: BSD-3-Clause
"""Which share of a campaign's pairs is decided, by how far they differ: of all pairs of layers in a case that ranks.

Pairs are judged as reports judge them beside a baseline, each family with each of its layers as the baseline. They are
told by the size of their estimate: up to 2 %, 5 %, 10 %, 25 %, and more. Below stand what a report says of the declared
baseline, and the median over pairs of the standard deviation of paired log ratios: what launches scatter by.

    python harness/bench/verdicts/decided.py CAMPAIGN...
"""

import argparse
from collections import Counter, defaultdict
from math import expm1, inf
from pathlib import Path
from statistics import median, stdev

from cadge_analysis.judged import judged
from cadge_analysis.making import ReportChoices
from cadge_analysis.reopen import carried
from cadge_analysis.report import judged_against
from cadge_analysis.stats.compare import Comparison, Row, compare
from cadge_analysis.stats.family_verdicts import judge_families
from cadge_analysis.stats.inference.look_plan import looks_planned
from cadge_analysis.stats.inference.verdict import Verdict
from cadge_analysis.stats.load import Case, Dataset, read
from cadge_analysis.stats.pairing import PairedRatios, Pairing
from cadge_analysis.verify import printed
from cadge_results import Campaign

SIZES = (0.02, 0.05, 0.10, 0.25, inf)


def data_of(path: Path) -> Dataset:
    """Return a campaign by its folder or its report."""
    if path.is_dir():
        return read(Campaign(path))
    found = printed(path.read_text(encoding="utf-8"), path.name)
    return judged_against(carried(found.data, path.name).data, ReportChoices.of(found.making).baseline)


def _pairing(comparison: Comparison) -> Pairing:
    values = {row.cell.point_id: row.numbers.by_round for row in comparison.rows}
    return Pairing(comparison.data, looks_planned(comparison.data.plan), values)


def main() -> None:
    """Print the shares of each campaign."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("campaigns", nargs="+", type=Path)
    for path in parser.parse_args().campaigns:
        comparison = compare(data_of(path))
        whole, pairing = judged(comparison), _pairing(comparison)
        cases: dict[Case, list[Row]] = defaultdict(list)
        for row in comparison.rows:
            if row.cell.case.does_rank:
                cases[row.cell.case].append(row)
        families: dict[tuple[str, ...], dict[tuple[str, str], PairedRatios]] = defaultdict(dict)
        for case, rows in cases.items():
            for base in rows:
                for ours in rows:
                    if ours is not base:
                        key = (case.pattern, case.place, case.wait, base.cell.series.label)
                        sides = ours.numbers.by_round, base.numbers.by_round
                        families[key][ours.cell.point_id, base.cell.point_id] = pairing.compared(
                            ours.cell, base.cell, *sides
                        )
        found, _ = judge_families(families, whole.delta)
        every, decided, spreads = Counter[float](), Counter[float](), []
        for key, one in found.items():
            for name, said in one.verdicts.items():
                if said.log_ratio is None:
                    continue
                size = next(size for size in SIZES if expm1(abs(said.log_ratio)) <= size)
                every[size] += 1
                decided[size] += said.says is not Verdict.UNKNOWN
                values = families[key][name].in_order
                spreads += [stdev(values)] if len(values) > 1 else []
        print(f"{path.name}: {comparison.data.rounds} launches, {sum(every.values())} pairs seen from either side")
        for size in SIZES:
            to = f"to {100 * size:.0f} %" if size < inf else "more"
            share = f"{100 * decided[size] / every[size]:5.1f} %" if every[size] else "    -"
            print(f"  {to:8} {decided[size]:6} of {every[size]:6}  {share}")
        print(f"  median standard deviation of paired log ratios: {median(spreads):.3f}" if spreads else "  no spread")
        of = ", ".join(f"{whole.count(verdict)} {verdict}" for verdict in Verdict)
        print(f"  beside {whole.baseline}: {whole.decided} of {whole.comparisons} decided ({of})")


if __name__ == "__main__":
    main()
