# SPDX-License-Identifier: BSD-3-Clause
"""Which estimator of a shift is to be believed: both candidates on stored campaigns, on pairs that are alike.

A/A pairs are made of each layer's own launches: of the rounds 0 and 1, 2 and 3, ..., a coin throws one on the one side
and one on the other, so that both sides are the same layer on the machine as it drifted, and no side is the earlier
one. That is harder than pairs within a round, as a round lies between them, and has half as many launches; the coin
hides what is alike from round to round, which the serial correlation shows. Where a campaign carries a layer twice,
--twins takes the rounds of both as they are, which is what a verdict does.

alarms: intervals without 1 among A/A pairs, with the standard error over cells (those of one campaign are not
independent); stated: what the intervals say of themselves. width: the interval's upper end / its lower, median, A/A.
decided: of the pairs of two layers in all rounds those whose 95 % interval is without 1, each layer against the
first by name. Rates of different campaigns are to be pooled by campaign, not by cell.

    python harness/bench/estimators.py [CAMPAIGN ...]

Campaigns are folders, or names in --results; the last one where none is named.
"""

import argparse
import random
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from math import exp, log, sqrt
from pathlib import Path

from cadge_analysis.stats.compare import Numbers, numbers_of
from cadge_analysis.stats.estimators import ESTIMATORS, Side
from cadge_analysis.stats.intervals import TARGET_COVERAGE, median
from cadge_analysis.stats.load import Case, Dataset, read
from cadge_analysis.stats.machine_index import MachineIndex, machine_index
from cadge_analysis.stats.serial import serial_correlation
from cadge_results import Store

Pair = tuple[Side, Side]
ROUNDS_LEAST = 8
"""Four A/A pairs: with fewer the rank sum has no interval of 95 %."""


@dataclass
class Tally:
    """What one estimator did on one campaign."""

    alarms: list[float] = field(default_factory=list)
    """Of each cell, the share of its A/A pairs."""
    stated: list[float] = field(default_factory=list)
    widths: list[float] = field(default_factory=list)
    decided: int = 0
    pairs: int = 0

    def line(self) -> str:
        """Return the numbers for people."""
        if not self.alarms:
            return "no A/A pairs with an interval"
        rate = sum(self.alarms) / len(self.alarms)
        spread = sqrt(sum((one - rate) ** 2 for one in self.alarms)) / len(self.alarms)
        return (
            f"{100 * rate:5.1f} % +-{100 * spread:4.1f}  {100 * sum(self.stated) / len(self.stated):5.1f} %  "
            f"{median(self.widths):6.3f}  {self.decided:5} of {self.pairs:5}  {len(self.alarms):6}"
        )


def layers_of(data: Dataset) -> dict[Case, list[Numbers]]:
    """Return the numbers of layers, by case, in the order of names."""
    found: dict[Case, list[Numbers]] = defaultdict(list)
    for cell in data.cells:
        if cell.series.kind == "layer" and (numbers := numbers_of(cell)) and min(numbers.by_round.values()) > 0:
            found[cell.case].append(numbers)
    return found


def side(numbers: Numbers, index: MachineIndex, without: tuple[Numbers, ...]) -> Side:
    """Return what a cell measured, with the machine's index from launches of other series than these."""
    series = {one.cell.series for one in without}
    way = -1 if numbers.more_is_better else 1
    machine = {sample.round: way * index.at(sample.launch_id, series) for sample in numbers.cell.samples}
    return Side(values=numbers.by_round, machine=machine)


def alike(whole: Side, chance: random.Random) -> Pair:
    """Return two sides of one series: neighbouring rounds, each thrown on one side by a coin."""
    keys = sorted(whole.values)
    sides: tuple[dict, dict, dict, dict] = ({}, {}, {}, {})
    for number, pair in enumerate(zip(keys[::2], keys[1::2], strict=False)):
        for way, key in enumerate(pair if chance.random() < 0.5 else pair[::-1]):
            sides[way][number, 0] = whole.values[key]
            sides[way + 2][number, 0] = whole.machine[key]
    return Side(values=sides[0], machine=sides[2]), Side(values=sides[1], machine=sides[3])


def rounds_of_both(first: Side, second: Side) -> Pair:
    """Return two sides in the rounds that both have."""
    both = set(first.values) & set(second.values)
    return tuple(  # type: ignore[return-value]
        Side(values={k: one.values[k] for k in both}, machine={k: one.machine[k] for k in both})
        for one in (first, second)
    )


def twins_of(data: Dataset, found: dict[Case, list[Numbers]]) -> Iterator[tuple[Numbers, Numbers]]:
    """Yield the numbers of each cell that was measured twice."""
    own = {(one.cell.series, case): one for case, members in found.items() for one in members}
    for cell in data.twins:
        first, second = own.get((cell.series, cell.case)), numbers_of(cell)
        if first is not None and second is not None and min(second.by_round.values()) > 0:
            yield first, second


def alike_cells(
    found: dict[Case, list[Numbers]],
    index: MachineIndex,
    twins: Iterable[tuple[Numbers, Numbers]],
    seed: int,
    repeats: int,
) -> Iterator[list[Pair]]:
    """Yield the A/A pairs of each cell: of `twins`, or where there are none of each series' own rounds."""
    chance = random.Random(seed)  # noqa: S311 - repeatable on purpose
    pairs = list(twins)
    for pair in pairs:
        yield [rounds_of_both(*(side(one, index, pair) for one in pair))]
    for members in found.values():
        for one in [] if pairs else members:
            whole = side(one, index, (one,))
            if len(whole.values) >= ROUNDS_LEAST:
                yield [alike(whole, chance) for _ in range(repeats)]


def judge(data: Dataset, given: argparse.Namespace) -> tuple[dict[str, Tally], str]:
    """Return what each estimator did on a campaign, and its serial correlation in words."""
    found, index = layers_of(data), machine_index(data)
    tallies = {name: Tally() for name in ESTIMATORS}
    twins = twins_of(data, found) if given.twins else ()
    for pairs in alike_cells(found, index, twins, given.seed, given.repeats):
        for name, estimate in ESTIMATORS.items():
            shifts = [shift for first, second in pairs if (shift := estimate(first, second)) and shift.coverage]
            ended = [
                (one.low, one.high, one.coverage) for one in shifts if one.low is not None and one.high is not None
            ]
            if ended:
                tally = tallies[name]
                tally.alarms.append(sum(low > 0 or high < 0 for low, high, _ in ended) / len(ended))
                tally.stated.append(1 - ended[0][2])
                tally.widths += [exp(high - low) for low, high, _ in ended]
    differences = []
    for base, *others in found.values():
        for other in others:
            first, second = rounds_of_both(*(side(one, index, (base, other)) for one in (base, other)))
            differences.append([log(second.values[key] / first.values[key]) for key in sorted(first.values)])
            for name, estimate in ESTIMATORS.items():
                shift = estimate(first, second)
                tallies[name].pairs += 1
                if shift and shift.low is not None and shift.high is not None and shift.coverage >= TARGET_COVERAGE:
                    tallies[name].decided += shift.low > 0 or shift.high < 0
    serial = serial_correlation(differences)
    said = f"{serial.correlation:+.2f} in {serial.cells} pairs" if serial else "not seen"
    return tallies, f"serial correlation {said}"


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("campaigns", nargs="*", default=["last"], metavar="CAMPAIGN")
    parser.add_argument("--results", default="build/campaigns", type=Path)
    parser.add_argument("--repeats", default=4, type=int, help="coins thrown for each cell (4)")
    parser.add_argument("--seed", default=1, type=int)
    parser.add_argument("--twins", action="store_true", help="A/A pairs are what the campaign measured twice")
    given = parser.parse_args()
    for name in given.campaigns:
        folder = Path(name)
        where = (folder.parent, folder.name) if (folder / "campaign.json").is_file() else (given.results, name)
        data = read(Store(where[0]).open(where[1]))
        tallies, serial = judge(data, given)
        print(f"{data.campaign_id}  {data.rounds} rounds, {serial}")
        print(f"  {'':18} {'alarms':>14}  {'stated':>7}  {'width':>6}  {'decided':>14}  {'cells':>6}")
        for estimator, tally in tallies.items():
            print(f"  {estimator:18} {tally.line()}")


if __name__ == "__main__":
    main()
