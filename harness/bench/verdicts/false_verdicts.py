# SPDX-License-Identifier: BSD-3-Clause
"""How often verdicts are wrong, by simulation: campaigns whose launches are not what tests assume.

A campaign has --families families; each has a baseline and --members others, of which the first half are the same as it
and the other half --shift slower; launches spread by 5 % from round to round, and all share the baseline's. What is
unlike an ideal campaign is the case:

    independent         nothing
    rounds follow R     each layer is an autoregression over rounds
    skewed              a layer's launches are exponential above their least
    heavy tails         Student's t with two degrees of freedom
    stalls              one launch in twenty stalls
    levels P:Q          half of the layers are 30 % slower in Q of a hundred launches
    baseline P:Q        the baseline is
    stuck               each layer, in each campaign, is up to 10 % away from what it is on average
    epochs K            the testbed is made K times, for nine launches each, which moves each layer by 5 % each time

wrong: the share of false names among what is called faster or slower, the mean over campaigns, as the family's rule
bounds it by 5 %. A layer on levels, or beside a baseline on levels, is taken for the same, though the middle of its
differences is not zero: many launches find that. found: of the slower half, those that are called so. "four looks"
looks after 9, 12, 18 and 30 launches, and takes the look with the largest share.

Of layers that are stuck, and of one epoch, each launch says the same wrong thing, which no test of one campaign can
know: METHOD.md says what verdicts hold for. With two or three epochs a verdict needs their agreement, from four on
tests are over epochs (epochs.py). The lines before the table show how often one comparison alone is wrong, in %: at the
stated level, and at a fifth of it.

    python harness/bench/verdicts/false_verdicts.py [--campaigns 200] [--only CASE]
"""

import argparse
import random
from collections.abc import Callable, Iterator
from functools import partial
from math import log
from statistics import fmean

from cadge_analysis.stats.inference.epochs import OverEpochs, of_epochs
from cadge_analysis.stats.inference.levels import levels_of
from cadge_analysis.stats.inference.modes import scatter_within
from cadge_analysis.stats.inference.paired_verdicts import verdicts
from cadge_analysis.stats.inference.sequential import ERROR, FOUR_LOOKS, LookPlan, fixed
from cadge_analysis.stats.inference.serial import STRICTER, Serial, serial_correlation
from cadge_analysis.stats.inference.signed_rank import p_value

DELTA, SPREAD = 0.05, 0.05
NAMED = {"faster", "slower"}
LAUNCHES = (6, 9, 12, 18, 30)
EPOCHS = (1, 2, 3, 4, 6)
OF_AN_EPOCH = 9
Side = list[float]


def wander(chance: random.Random, rounds: int, correlation: float = 0.0) -> Side:
    """Return one layer's logarithms, round by round: an autoregression."""
    state, found = chance.gauss(0, 1), []
    for _ in range(rounds):
        found.append(SPREAD * state)
        state = correlation * state + (1 - correlation**2) ** 0.5 * chance.gauss(0, 1)
    return found


def skewed(chance: random.Random, rounds: int) -> Side:
    """Return a layer whose launches are exponential above their least."""
    return [SPREAD * chance.expovariate(1) for _ in range(rounds)]


def heavy(chance: random.Random, rounds: int) -> Side:
    """Return a layer whose launches are Student's t with two degrees of freedom."""
    return [SPREAD * chance.gauss(0, 1) / chance.expovariate(1) ** 0.5 for _ in range(rounds)]


def stalls(chance: random.Random, rounds: int) -> Side:
    """Return a layer of which one launch in twenty stalls."""
    return [one + (chance.expovariate(5) if chance.random() < 0.05 else 0) for one in wander(chance, rounds)]


def levels(chance: random.Random, rounds: int, share: float) -> Side:
    """Return a layer that is 30 % slower in a share of its launches."""
    return [one + (0.26 if chance.random() < share else 0) for one in wander(chance, rounds)]


def stuck(chance: random.Random, rounds: int) -> Side:
    """Return a layer that keeps in a campaign what it drew for it."""
    own = chance.uniform(-0.1, 0.1)
    return [one + own for one in wander(chance, rounds)]


def epochs(chance: random.Random, _: int, count: int) -> Side:
    """Return a layer that so many epochs move, by as much as launches scatter."""
    moved = [chance.gauss(0, SPREAD) for _ in range(count)]
    return [one + moved[at // OF_AN_EPOCH] for at, one in enumerate(wander(chance, count * OF_AN_EPOCH))]


Draw = Callable[[random.Random, int], Side]
CASES: dict[str, tuple[Draw, Draw]] = {  # the baseline, and the layers beside it
    "independent": (wander, wander),
    **{
        f"rounds follow {r}": (one := lambda chance, rounds, r=r: wander(chance, rounds, r), one)  # type: ignore[misc]
        for r in (0.1, 0.2, 0.3)
    },
    "skewed": (skewed, skewed),
    "heavy tails": (heavy, heavy),
    "stalls": (stalls, stalls),
    "levels 50:50": (wander, lambda chance, rounds: levels(chance, rounds, 0.5)),
    "levels 80:20": (wander, lambda chance, rounds: levels(chance, rounds, 0.2)),
    "baseline 50:50": (lambda chance, rounds: levels(chance, rounds, 0.5), wander),
    "baseline 80:20": (lambda chance, rounds: levels(chance, rounds, 0.2), wander),
    "stuck": (stuck, stuck),
    **{f"epochs {k}": (partial(epochs, count=k),) * 2 for k in EPOCHS},
}


class Family:
    """A family's launches: the baseline's and the members', the second half shifted."""

    def __init__(self, chance: random.Random, case: str, members: int, rounds: int, shift: float) -> None:
        """Draw it. Of a case of levels every other layer is plain."""
        of_base, of_layer = CASES[case]
        self.base = of_base(chance, rounds)
        self.sides = {}
        for at in range(members):
            plain = case.startswith("levels") and at % 2
            own = (wander if plain else of_layer)(chance, rounds)
            self.sides[at] = [one + (shift if 2 * at >= members else 0) for one in own]

    def differences(self, launches: int) -> Iterator[tuple[int, Side]]:
        """Yield each member's paired differences."""
        for at, side in self.sides.items():
            yield at, [one - base for one, base in zip(side[:launches], self.base, strict=False)]

    def named(self, launches: int, looks: LookPlan, serial: Serial | None) -> tuple[float, float]:
        """Return the share of false names, and of the slower ones that are called so."""
        pairs = {at: dict(enumerate(one)) for at, one in self.differences(launches)}
        base, sides = self.base[:launches], {at: one[:launches] for at, one in self.sides.items()}
        scatter = scatter_within([base, *sides.values()])
        seen = {at: found for at, one in sides.items() if (found := levels_of(one, base, scatter))}
        used, withheld = (serial.used, serial.withheld) if serial else (0.0, False)
        if isinstance(looks, OverEpochs):
            seen = {}
        found = verdicts(pairs, DELTA, looks, correlation=used, withheld=withheld, levels=seen)
        half = len(pairs) / 2
        names = [at for at, one in found.items() if one.says in NAMED]
        right = sum(at >= half and found[at].says == "slower" for at in names)
        return (len(names) - right) / max(1, len(names)), right / (len(pairs) - half)


def campaign(families: list[Family], launches: int, looks: LookPlan) -> tuple[float, float, bool]:
    """Return what a campaign's first family comes to, and whether verdicts are withheld."""
    serial = serial_correlation(
        (part for of in families for _, one in of.differences(launches) for part in looks.stretches(one)),
        baselines=len(families) * max(1, len(looks.stretches([]))),
    )
    wrong, found = families[0].named(launches, looks, serial)
    return wrong, found, bool(serial and serial.withheld)


def plans_of(case: str) -> Iterator[tuple[int, LookPlan]]:
    """Yield after how many launches a case is looked at."""
    if case.startswith("epochs"):
        count = int(case.split()[1])
        launches = count * OF_AN_EPOCH
        yield launches, of_epochs(fixed(launches), [OF_AN_EPOCH] * count)
    else:
        yield from ((launches, fixed(launches)) for launches in LAUNCHES)


def one_comparison(chance: random.Random, draws: int = 6000) -> None:
    """Print how often one comparison without a difference is called one, where launches are not what the test takes."""
    ways: dict[str, Draw] = {
        **{
            f"rounds follow {r}": lambda chance, n, r=r: wander(chance, n, r)  # type: ignore[misc]
            for r in (0.1, 0.3, 0.5)
        },
        "exponential": lambda chance, n: [chance.expovariate(1) - log(2) for _ in range(n)],
    }
    for launches in (9, 12):
        for name, draw in ways.items():
            ps = [p_value(draw(chance, launches)) for _ in range(draws)]
            wrong = (100 * sum(p <= level for p in ps) / draws for level in (ERROR, ERROR / STRICTER))
            print(f"{name:20}{launches:>10}" + "".join(f"{one:8.1f}" for one in wrong))


def main() -> None:
    """Print one line for each case and number of launches."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--campaigns", default=200, type=int)
    parser.add_argument("--members", default=20, type=int)
    parser.add_argument("--families", default=4, type=int, help="of a campaign, which show how rounds follow")
    parser.add_argument("--shift", default=0.1, type=float)
    parser.add_argument("--seed", default=1, type=int)
    parser.add_argument("--only", choices=CASES)
    given = parser.parse_args()
    if not given.only:
        one_comparison(random.Random(given.seed))  # noqa: S311 - repeatable on purpose
    print(f"{'':20}{'launches':>10}{'wrong':>8}{'found':>8}{'withheld':>10}   in %")
    for case in [given.only] if given.only else CASES:
        chance = random.Random(given.seed)  # noqa: S311 - repeatable on purpose
        made = [
            [Family(chance, case, given.members, LAUNCHES[-1], given.shift) for _ in range(given.families)]
            for _ in range(given.campaigns)
        ]
        lines = [(str(n), [campaign(one, n, plan) for one in made]) for n, plan in plans_of(case)]
        if not case.startswith("epochs"):
            looks = [[campaign(one, n, FOUR_LOOKS) for n in FOUR_LOOKS.looks] for one in made]
            lines.append(("four looks", [(max(of)[0], of[-1][1], any(one[2] for one in of)) for of in looks]))
        for name, outcomes in lines:
            wrong, found, withheld = (100 * fmean(part) for part in zip(*outcomes, strict=True))
            print(f"{case:20}{name:>10}{wrong:8.1f}{found:8.1f}{withheld:10.1f}", flush=True)


if __name__ == "__main__":
    main()
