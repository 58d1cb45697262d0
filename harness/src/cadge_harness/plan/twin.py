# SPDX-License-Identifier: BSD-3-Clause
"""Which layer a campaign carries twice, so that it can say how often it calls a difference what is none (A/A).

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


def thing_of(subject: Subject) -> Thing:
    """Return what a subject is, wherever it is measured."""
    return subject.layer, subject.shims, subject.settings


def twins_of(
    sweep: SweepFile, planned: Iterable[tuple[Subject, int]], in_sweep: Iterable[str], chance: Callable[[str], int]
) -> tuple[frozenset[Thing], tuple[str, ...]]:
    """Return what is measured twice, and what a reader should know of that.

    `planned`: each subject with the number of its points. `in_sweep`: the layers of the sweep, also those that were not
    asked for. `chance`: a number that depends on the sweep's seed and the text. Raises UsageError where a layer is
    named that the sweep does not have.
    """
    where: dict[Thing, Counter[tuple[str, str]]] = defaultdict(Counter)
    for subject, points in planned:
        if subject.kind == "layer":
            where[thing_of(subject)][subject.place, subject.wait] += points
    if sweep.twin == TWIN_NONE:
        return frozenset(), ()
    if sweep.twin == TWIN_ALL:
        return frozenset(where), (f"every layer is measured twice, {count_of(len(where), 'twin')} in all",)
    if sweep.twin == TWIN_BY_SEED:
        if len(where) < 2 or sweep.rounds < LAUNCHES_LEAST:
            return frozenset(), ()
        chosen = _by_seed(where, chance)
    else:
        names = sorted(set(in_sweep))
        if sweep.twin not in names:
            raise UsageError(f"twin: {sweep.twin!r} is not a layer of this sweep{nearest(sweep.twin, names)}")
        named = sorted((one for one in where if one[0] == sweep.twin), key=_plain_first)
        if not named:
            return frozenset(), (f"no layer is measured twice: {sweep.twin}, the sweep's twin, is not measured here",)
        chosen = named[0]
    return frozenset((chosen,)), (
        f"{chosen[0]} is measured twice, as two series, to see how often they are called different",
    )


def _plain_first(thing: Thing) -> tuple[bool, Thing]:
    return bool(thing[1] or thing[2]), thing


def _by_seed(where: dict[Thing, Counter[tuple[str, str]]], chance: Callable[[str], int]) -> Thing:
    """Return one of those that run in all places and wait modes and have not few points, plain ones before others."""
    widest = max(map(len, where.values()))
    wide = {one: found.total() for one, found in where.items() if len(found) == widest}
    full = [one for one, points in wide.items() if 2 * points >= max(wide.values())]
    plain = [one for one in full if not one[1] and not one[2]]
    return min(plain or full, key=lambda one: (chance(repr(one)), one))
