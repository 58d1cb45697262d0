# SPDX-License-Identifier: BSD-3-Clause
"""Which layers a campaign carries twice, so that it can say how often it calls a difference what is none (A/A).

By the seed, each place and wait mode has a layer of its own: a fault that one layer alone shows is met more often, at
the cost of one layer. Each is measured twice in whole launches, as a part of them would not be like the others.

The twin is a series of its own with the very same subject: its launches are planned, shuffled and made like any other
layer's. That it is the twin stands in the plan alone, which stays here; its launch files say no more than those of the
layer itself, so that no driver, agent or host can treat it otherwise.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable

from cadge_harness.errors import UsageError
from cadge_harness.words import count_of
from cadge_results import Subject, SweepFile
from cadge_results.formats.complaint import nearest
from cadge_results.formats.sweep import TWIN_ALL, TWIN_BY_SEED, TWIN_NONE

LAUNCHES_LEAST = 6
"""2 / 2^6 is the first p below 5 %: with fewer launches A against A is never called different, and says nothing."""

Thing = tuple[str, tuple[str, ...], tuple[tuple[str, str], ...]]
"""Layer, shims and settings."""


Twin = tuple[Thing, str, str]
"""What is measured twice, at which place and in which wait mode."""


def thing_of(subject: Subject) -> Thing:
    """Return what a subject is, wherever it is measured."""
    return subject.layer, subject.shims, subject.settings


def twin_of(subject: Subject) -> Twin:
    """Return what a subject is as one that may be measured twice."""
    return thing_of(subject), subject.place, subject.wait


def twins_of(
    sweep: SweepFile, planned: Iterable[tuple[Subject, int]], in_sweep: Iterable[str], chance: Callable[[str], int]
) -> tuple[frozenset[Twin], tuple[str, ...]]:
    """Return what is measured twice, and what a reader should know of that.

    `planned`: each subject with the number of its points that run, as far as is known. `in_sweep`: the layers of the
    sweep, also those that were not asked for. `chance`: a number that depends on the sweep's seed and the text. Raises
    UsageError where a layer is named that the sweep does not have.
    """
    where: dict[tuple[str, str], Counter[Thing]] = defaultdict(Counter)
    for subject, points in planned:
        if subject.kind == "layer":
            where[subject.place, subject.wait][thing_of(subject)] += points
    every = frozenset((thing, *at) for at, here in where.items() for thing in here)
    things = {one[0] for one in every}
    if sweep.twin == TWIN_NONE:
        return frozenset(), ()
    if sweep.twin == TWIN_ALL:
        return every, (f"every layer is measured twice, {count_of(len(things), 'twin')} in all",)
    if sweep.twin == TWIN_BY_SEED:
        chosen = _by_seed(where, chance) if sweep.rounds >= LAUNCHES_LEAST else frozenset()
        return chosen, _notices(chosen)
    names = sorted(set(in_sweep))
    if sweep.twin not in names:
        raise UsageError(f"twin: {sweep.twin!r} is not a layer of this sweep{nearest(sweep.twin, names)}")
    named = sorted((one for one in things if one[0] == sweep.twin), key=_plain_first)
    if not named:
        return frozenset(), (f"no layer is measured twice: {sweep.twin}, the sweep's twin, is not measured here",)
    chosen = frozenset(one for one in every if one[0] == named[0])
    return chosen, _notices(chosen)


def _notices(chosen: frozenset[Twin]) -> tuple[str, ...]:
    names = sorted({thing[0] for thing, _, _ in chosen})
    if len(names) < 2:
        return tuple(
            f"{name} is measured twice, as two series, to see how often they are called different" for name in names
        )
    listed = f"{', '.join(names[:-1])} and {names[-1]}"
    return (
        f"{listed} are measured twice, a layer for each place and wait mode, to see how often it is called different",
    )


def _plain_first(thing: Thing) -> tuple[bool, Thing]:
    return bool(thing[1] or thing[2]), thing


def _by_seed(where: dict[tuple[str, str], Counter[Thing]], chance: Callable[[str], int]) -> frozenset[Twin]:
    """Return for each place and wait mode of several layers one that has not few points there.

    Plain ones go before others, and those that were not chosen elsewhere before these.
    """
    chosen: list[Twin] = []
    for at, here in sorted(where.items()):
        full = [one for one, points in here.items() if 2 * points >= max(here.values())]
        plain = [one for one in full if not one[1] and not one[2]]
        taken = {thing for thing, _, _ in chosen}
        fresh = [one for one in plain or full if one not in taken]
        if len(here) > 1:
            found = min(fresh or plain or full, key=lambda one: (chance(f"{one!r} {at!r}"), one))
            chosen.append((found, *at))
    return frozenset(chosen)
