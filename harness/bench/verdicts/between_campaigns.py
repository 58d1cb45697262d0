# SPDX-License-Identifier: BSD-3-Clause
"""How often `cadge compare` calls a change what is none, and finds one that is there: by campaigns, and by simulation.

Of stored campaigns of one sweep, builds and machine being the same, every pair is compared: whatever is called slower
or faster is drift. With --plant, each layer in turn is made slower in the second campaign of each pair by these shares.

    launches: what the rank sum of launches alone says, as if there were no drift between campaigns
    epochs: the same over epochs, where there are several
    drift: what `cadge compare` says
    p: cells with a p of 5 % or less, without correction; called: cells called faster or slower, with it
    pairs: pairs of campaigns in which any cell that nothing was done to was called
    wrong: such cells' share among verdicts, "the same" among them: the mean over pairs, which the rule bounds by 5 %

    python harness/bench/verdicts/between_campaigns.py CAMPAIGN CAMPAIGN... [--plant 5,10,20]
    python harness/bench/verdicts/between_campaigns.py --simulate 200 [--plant 5,10,20] [--epochs 4:4]

Simulated are pairs of campaigns of --series layers and five floors with four cells each, --launches launches that lie
2 % apart, of which one in twenty stalls; the machine moves all by 4 %, each series by --drift and each cell by half of
it. --epochs: how many both have, of so many launches each; an epoch moves each cell by 2 %, as launches do. No drift:
what `cadge compare --across-hosts` says of two machines is then the line "epochs".
"""

import argparse
import random
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import chain, combinations
from math import exp
from pathlib import Path

from cadge_analysis.stats.inference.between import CellMove, between
from cadge_analysis.stats.inference.drifted import ShiftEstimate
from cadge_analysis.stats.inference.shift import Shift, between_epochs, unpaired
from cadge_analysis.stats.inference.verdict import judge
from cadge_analysis.stats.load import read
from cadge_analysis.stats.numbers import Numbers
from cadge_analysis.versus.against import against
from cadge_analysis.versus.sides import Side
from cadge_results import Campaign

MARGIN = 0.05
NAMED = {"faster", "slower"}
CELLS, FLOORS = 4, 5
METHODS = ("launches", "epochs", "drift")
SPREAD = 0.02
Epochs = list[list[float]]


class SlowedSide(Side):
    """A campaign in which all cells of one layer took so many times as long."""

    layer = ""
    times = 1.0

    @cached_property
    def everything(self) -> dict[tuple[str, str, str, str, str], Numbers]:
        """Return what was measured, with what was planted."""
        found = dict(Side(self.name, self.data).everything)
        for key, numbers in found.items():
            if key[:2] == ("layer", self.layer):
                times = 1 / self.times if numbers.more_is_better else self.times
                found[key] = replace(numbers, by_round={at: one * times for at, one in numbers.by_round.items()})
        return found

    @cached_property
    def numbers(self) -> dict[tuple[str, str, str, str], Numbers]:
        """Return the same, of layers."""
        return {self.key(one.cell): one for key, one in self.everything.items() if key[0] == "layer"}


class Count:
    """What came of pairs of campaigns, by method."""

    def __init__(self) -> None:
        self.pairs = self.cells = self.planted = 0
        self.p = dict.fromkeys(METHODS, 0)
        self.called = dict.fromkeys(METHODS, 0)
        self.any = dict.fromkeys(METHODS, 0)
        self.found = dict.fromkeys(METHODS, 0)
        self.wrong = dict.fromkeys(METHODS, 0.0)

    def add(self, cells: Sequence[tuple[Shift, ShiftEstimate, str, bool]]) -> None:
        """Count the cells of a pair.

        Each is its shift by launches, and less drift, what is better, and whether something was planted in it.
        """
        self.pairs += 1
        self.planted += sum(planted for *_, planted in cells)
        self.cells += sum(not planted for *_, planted in cells)
        for method in METHODS:
            of = {"launches": lambda one: ShiftEstimate(one[0]), "epochs": lambda one: ShiftEstimate(one[1].shift)}
            shifts = [of.get(method, lambda one: one[1])(one) for one in cells]
            judged = judge([(one, better) for one, (*_, better, _) in zip(shifts, cells, strict=True)], MARGIN)
            false = 0
            for shift, one, (*_, planted) in zip(shifts, judged, cells, strict=True):
                if planted:
                    self.found[method] += one.verdict == "slower"
                else:
                    self.p[method] += shift.p <= 0.05
                    false += one.verdict in NAMED
            self.called[method] += false
            self.any[method] += false > 0
            self.wrong[method] += false / max(1, sum(one.verdict != "cannot tell" for one in judged))

    def lines(self) -> Iterator[str]:
        """Yield a line for each method."""
        for method in METHODS:
            said = (
                f"{method:>9}: of {self.cells:,} untouched cells p {100 * self.p[method] / self.cells:5.1f} %, called"
            )
            said += f" {self.called[method]:5} = {100 * self.called[method] / self.cells:5.2f} %;"
            said += f" pairs {self.any[method]} of {self.pairs}; wrong {100 * self.wrong[method] / self.pairs:.1f} %"
            if self.planted:
                said += f"; found {100 * self.found[method] / self.planted:5.1f} % of {self.planted:,} planted cells"
            yield said


def of_campaigns(sides: Sequence[Side], plant: float | None) -> Count:
    """Compare every pair of campaigns; with something planted, once for each layer."""
    count = Count()
    for first, second in combinations(sides, 2):
        layers = sorted({series.label for series in second.data.layers}) if plant else [""]
        for layer in layers:
            changed = second
            if plant:
                changed = SlowedSide(second.name, second.data)
                vars(changed).update(layer=layer, times=1 + plant)
            found = against(first, changed, MARGIN)
            count.add(
                [(by_launches(one.sides), one.shift, one.quantity.better, one.series == layer) for one in found.changes]
            )
    return count


def by_launches(sides: Sequence[Numbers]) -> Shift:
    """Return the shift between two cells, over all their launches."""
    found = unpaired(*(list(side.by_round.values()) for side in sides))
    assert found is not None  # noqa: S101 - both have launches
    return found


def launches(chance: random.Random, middle: float, often: int, epochs: int) -> Epochs:
    """Return what the launches of a cell gave, epoch by epoch; of several each moves it."""

    def launch(middle: float) -> float:
        return exp(middle + chance.gauss(0, SPREAD) + (chance.expovariate(5) if chance.random() < 0.05 else 0))

    moved = [chance.gauss(0, SPREAD) for _ in range(epochs)] if epochs else [0.0]
    return [[launch(middle + by) for _ in range(often)] for by in moved]


def simulated(
    chance: random.Random, series: int, drift: float, plant: float | None, often: int, epochs: tuple[int, int]
) -> list[tuple[Shift, ShiftEstimate, str, bool]]:
    """Return the cells of a pair of campaigns, in the first layer of which something may be planted."""
    machine = chance.gauss(0, 2 * drift)
    seen: list[tuple[int, Shift, Shift]] = []
    for number in range(series + FLOORS):
        own = machine + chance.gauss(0, drift)
        for _ in range(CELLS):
            by = own + chance.gauss(0, drift / 2)
            first, second = launches(chance, 0.0, often, epochs[0]), launches(chance, by, often, epochs[1])
            if plant and number == 0:
                second = [[one * (1 + plant) for one in epoch] for epoch in second]
            shift, alike = between_epochs(first, second), unpaired(*(list(chain(*side)) for side in (first, second)))
            if shift is not None and alike is not None:
                seen.append((number, alike, shift))
    moves = [
        CellMove(series=str(number), is_floor=number >= series, shift=one.log_ratio, error=one.error())
        for number, _, one in seen
    ]
    found = []
    for number, alike, one in seen:
        if number >= series:
            continue
        known = between(moves, without=str(number))
        if known is None:
            raise SystemExit("--series: with so few series drift is not known")
        commons = (known.common.value,) if known.has_floors else (0.0, known.common.value)
        estimate = ShiftEstimate(one, commons, known.error, known.freedom)
        found.append((alike, estimate, "low", bool(plant) and number == 0))
    return found


def main() -> None:
    """Print what came of it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("campaigns", nargs="*", type=Path, metavar="CAMPAIGN")
    parser.add_argument("--simulate", type=int, metavar="PAIRS")
    parser.add_argument("--plant", default="", metavar="PERCENT,...")
    parser.add_argument("--series", type=int, default=10)
    parser.add_argument("--drift", type=float, default=0.02)
    parser.add_argument("--launches", type=int, default=9)
    parser.add_argument("--epochs", default="0:0", metavar="FIRST:SECOND")
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    first, second = map(int, given.epochs.split(":"))
    sides = [Side(str(path), read(Campaign(path))) for path in given.campaigns]
    for plant in (None, *(float(share) / 100 for share in given.plant.split(",") if share)):
        if given.simulate:
            chance, count = random.Random(given.seed), Count()  # noqa: S311 - repeatable on purpose
            for _ in range(given.simulate):
                count.add(simulated(chance, given.series, given.drift, plant, given.launches, (first, second)))
        else:
            count = of_campaigns(sides, plant)
        print(f"planted {100 * plant:.0f} %" if plant else "nothing planted", flush=True)
        for line in count.lines():
            print(line, flush=True)


if __name__ == "__main__":
    main()
