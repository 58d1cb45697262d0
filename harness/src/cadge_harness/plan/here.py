# SPDX-License-Identifier: BSD-3-Clause
"""Where a pattern runs: each layer at each place and in each wait mode, or why not. Nothing is measured for it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import product

from cadge_harness.plan.cast import cast_of
from cadge_harness.plan.catalogue import Catalogue
from cadge_harness.plan.refuse import refuse_point
from cadge_harness.plan.site import PlanSite
from cadge_harness.plan.sweep import WantedPoint
from cadge_results import PatternFile, Reason, Workload, Workloads
from cadge_results.formats.base import Place, Wait
from cadge_results.formats.point import Value
from cadge_results.plugins.parameter import Parameter

WAITS: tuple[Wait, ...] = ("poll", "block")
SIZE_BYTES = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerSupport:
    """One layer with one pattern at one place in one wait mode.

    `runs` names the choices that run (one empty name where the pattern has none to make), `why` each reason of those
    that do not, with its code.
    """

    pattern: str
    layer: str
    place: Place
    wait: Wait
    runs: tuple[str, ...]
    why: Mapping[str, Reason]


@dataclass(frozen=True, slots=True, kw_only=True)
class CellCount:
    """How many of some cells run, how many of these with only some of their choices, and why the others do not.

    A cell in which nothing runs counts once, by the code of its first reason.
    """

    cells: int
    run: int
    in_part: int
    refused: Mapping[Reason, int]


def count_cells(cells: Iterable[LayerSupport]) -> CellCount:
    """Count what runs. The most frequent reason comes first."""
    found = list(cells)
    running = [cell for cell in found if cell.runs]
    codes = Counter(next(iter(cell.why.values())) for cell in found if not cell.runs)
    return CellCount(
        cells=len(found),
        run=len(running),
        in_part=sum(bool(cell.why) for cell in running),
        refused=dict(codes.most_common()),
    )


def where_it_runs(pattern: str, catalogue: Catalogue, workloads: Workloads, site: PlanSite) -> Iterator[LayerSupport]:
    """Yield every cell of one pattern, layer by layer. `catalogue` should say what its layers grant."""
    file = workloads.patterns[pattern]
    trials = list(_trials(pattern, file))
    for info in catalogue.usual:
        for place in file.places:
            for wait in WAITS:
                runs: list[str] = []
                why: dict[str, Reason] = {}
                for name, workload in trials:
                    wanted = WantedPoint(workload=workload, place=place, wait=wait)
                    found = refuse_point(info, wanted, file, cast_of(file, workload, place, site.host_names), site)
                    if found is None:
                        runs.append(name)
                    else:
                        why.setdefault(found.reason, found.code)
                yield LayerSupport(pattern=pattern, layer=info.name, place=place, wait=wait, runs=tuple(runs), why=why)


def _trials(name: str, file: PatternFile) -> Iterator[tuple[str, Workload]]:
    """Yield the smallest workload of each choice that a sweep has to make, with the choice in words."""
    asked = {key: one for key, one in file.parameters.items() if one.is_required}
    choices = [key for key, one in asked.items() if one.type == "choice"]
    numbers: dict[str, Value] = {key: _small(one) for key, one in asked.items() if one.type == "integer"}
    for words in product(*(asked[key].values for key in choices)):
        workload = file.workload(name, {**numbers, **dict(zip(choices, words, strict=True))})
        if file.exists(workload):
            yield ", ".join(words), workload


def _small(one: Parameter) -> int:
    low, high = one.min or 0, one.max or 0
    return min(max(SIZE_BYTES, low), high) if one.unit == "bytes" else low
