# SPDX-License-Identifier: BSD-3-Clause
"""Verdicts on whole families of paired comparisons: whatever is compared, of which a table or a page says much at once.

A verdict holds after the correction for its family (families.py). The correlation of neighbouring rounds is estimated
over all families together, as serial.py was proved: a family's few rounds alone would be taken for correlated by
chance in one of six, and then decide nothing. A family whose own is clearly there, by serial.CLEARLY standard errors,
is judged by its own.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Generic, Protocol, TypeVar

from cadge_analysis.stats.inference.look_plan import looks_planned
from cadge_analysis.stats.inference.paired_verdicts import PairedVerdict, unsaid, verdicts
from cadge_analysis.stats.inference.serial import Serial, serial_correlation
from cadge_analysis.stats.load import Cell, Dataset
from cadge_analysis.stats.pairing import PairedRatios, Pairing, Rounds

_Family = TypeVar("_Family", bound=Hashable)
_Key = TypeVar("_Key", bound=Hashable)


@dataclass(frozen=True, slots=True, kw_only=True)
class FamilyMember(Generic[_Key]):
    """What is said of each member of a family. `serial`: what its tests allow for; `own`: what it shows by itself."""

    verdicts: Mapping[_Key, PairedVerdict]
    serial: Serial | None
    own: Serial | None


def judge_families(
    families: Mapping[_Family, Mapping[_Key, PairedRatios]],
    delta: float,
    *,
    others: Mapping[_Family, Sequence[Sequence[float]]] | None = None,
    withheld: bool = False,
) -> tuple[Mapping[_Family, FamilyMember[_Key]], Serial | None]:
    """Return the verdicts on each family, and how rounds followed one another over all of them.

    Members at unlike loads belong to no family: nothing is said of them.
    delta: what counts as the same, 0.05 for 5 %. others: differences in the order of rounds that tell of a family which
    compares nothing. withheld: nothing may be said.
    """
    spare = others or {}
    rounds: dict[_Family, list[Sequence[float]]] = {}
    baselines: dict[_Family, int] = {}
    for key, members in families.items():
        pieces = [one.stretches for one in members.values()]
        rounds[key] = list(chain.from_iterable(pieces)) or list(spare.get(key, ()))
        baselines[key] = max(map(len, pieces), default=int(bool(rounds[key])))
    whole = serial_correlation(chain.from_iterable(rounds.values()), baselines=max(1, sum(baselines.values())))
    found = {}
    for key, every in families.items():
        members = {name: one for name, one in every.items() if not one.unlike}
        own = serial_correlation(rounds[key], baselines=max(1, baselines[key]))
        serial = own if own and own.is_clear else whole
        said = verdicts(
            {name: one.pairs for name, one in members.items()},
            delta,
            {name: one.looks for name, one in members.items()},
            correlation=serial.used if serial else 0.0,
            withheld=withheld or (serial is not None and serial.withheld),
            levels={name: one.levels for name, one in members.items() if one.levels},
        )
        said |= {name: unsaid(one.looks) for name, one in every.items() if one.unlike}
        found[key] = FamilyMember(verdicts=said, serial=serial, own=own)
    return found, whole


def as_one_family(
    members: Mapping[_Key, PairedRatios], correlations: Iterable[float], delta: float, *, withheld: bool
) -> dict[_Key, PairedVerdict]:
    """Return the verdicts on comparisons of several families that one table or exit code tells of together.

    correlations: what the tests of these families allow for; the largest is allowed for here.
    """
    return dict(
        verdicts(
            {name: one.pairs for name, one in members.items()},
            delta,
            {name: one.looks for name, one in members.items()},
            correlation=max(correlations, default=0.0),
            withheld=withheld,
            levels={name: one.levels for name, one in members.items() if one.levels},
        )
    )


class JudgedSide(Protocol):
    """One side of a comparison: whose it is, and what it measured round by round, all above zero."""

    @property
    def cell(self) -> Cell:
        """The point in the campaign's plan."""

    @property
    def by_round(self) -> Rounds:
        """What its launches gave."""


def told_apart(
    data: Dataset, families: Mapping[_Family, Iterable[tuple[JudgedSide, JudgedSide]]], *, withheld: bool = False
) -> dict[_Family, dict[str, PairedVerdict]]:
    """Return whether the first of two sides differs from the second, by however little: by family and its point.

    All of a campaign, judged at the looks that it was planned with. `PairedVerdict.differs` is the answer. withheld:
    nothing may be said.
    """
    every = {key: tuple(sides) for key, sides in families.items()}
    values = {side.cell.point_id: side.by_round for sides in every.values() for both in sides for side in both}
    pairing = Pairing(data, looks_planned(data.plan), values)
    compared = {
        key: {
            ours.cell.point_id: pairing.compared(ours.cell, base.cell, ours.by_round, base.by_round)
            for ours, base in sides
        }
        for key, sides in every.items()
    }
    found, _ = judge_families(compared, 0.0, withheld=withheld)
    return {key: dict(one.verdicts) for key, one in found.items()}
