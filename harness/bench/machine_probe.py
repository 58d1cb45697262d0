# SPDX-License-Identifier: BSD-3-Clause
"""How much of what launches differ by goes with the state of the machine: a table over stored campaigns.

Each line: one pattern, or one form of floors, at one place of one campaign, and one machine probe (a bounced line, a
copy, a reading of the clock): its median, how far it wandered, and the share of the variance between launches that it
explains, with its slope.

    python harness/bench/machine_probe.py [CAMPAIGN ...]        the last campaign where none is named
"""

import argparse
from collections import defaultdict
from pathlib import Path

from cadge_analysis.stats.load import Cell, read
from cadge_analysis.stats.strips import explained
from cadge_results import Store


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("campaigns", nargs="*", default=["last"], metavar="CAMPAIGN")
    parser.add_argument("--results", default="build/campaigns", type=Path)
    given = parser.parse_args()
    print(f"{'campaign':26} {'place':8} {'pattern':10} {'probe':9} {'median':>9} {'wander':>7}  share  slope  attempts")
    for name in given.campaigns:
        data = read(Store(given.results).open(name))
        groups: dict[tuple[str, str], list[Cell]] = defaultdict(list)
        for cell in data.cells:
            groups[cell.case.place, cell.case.pattern].append(cell)
        for (place, pattern), cells in sorted(groups.items()):
            for one in explained(data, cells):
                print(
                    f"{data.campaign_id:26} {place:8} {pattern:10} {one.probe:9} {one.median_ns:9.1f} "
                    f"{one.wander:7.2f}  {one.share:5.3f} {one.slope:6.2f}  {one.attempts} in {one.cells} cells"
                )


if __name__ == "__main__":
    main()
