# SPDX-License-Identifier: BSD-3-Clause
"""Two sides in one campaign, each layer once on A and once on B: builds of Cadge.

A side is a variant of each layer (`cadge_results.plugins.build`): what follows its name, as in `@cadge-1a2b3c4d5e`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from cadge_harness.errors import NothingSelectedError, UnfitError
from cadge_harness.plan.patterns import ask_driver, ask_version, pattern_differences
from cadge_harness.providers.source import MadeBuild, equal_files
from cadge_results import Plan, SweepFile, Workloads
from cadge_results.formats.sweep import TWIN_ALL, LayerEntry
from cadge_results.plugins.build import AT, is_variant, variant_of


@dataclass(frozen=True, slots=True, kw_only=True)
class BuildPair:
    """Two builds, A and B, and what differs between them.

    changed: layers whose adapter or driver differs. equal: layers of which both are the same, byte for byte.
    lacks: why a layer is not on both sides, by its name.
    """

    first: MadeBuild
    second: MadeBuild
    driver_differs: bool
    changed: tuple[str, ...]
    equal: tuple[str, ...]
    lacks: Mapping[str, str]

    @property
    def variants(self) -> tuple[str, str]:
        """What follows an adapter's name on A and on B."""
        return f"{AT}{self.first.build.name}", f"{AT}{self.second.build.name}"

    @property
    def control(self) -> tuple[str, ...]:
        """The layers that are measured twice on A as the A/A control: one beside others, all where nothing differs."""
        return self.equal[:1] if self.changed or self.lacks else self.equal


def pair_builds(first: MadeBuild, second: MadeBuild, layers: Iterable[str]) -> BuildPair:
    """Return what differs. Raises NothingSelectedError where no layer is on both sides."""
    lacks, changed, equal = dict[str, str](), list[str](), list[str]()
    driver_differs = not equal_files(first.driver, second.driver)
    for name in layers:
        if why := [made.lacks[name] for made in (first, second) if name in made.lacks]:
            lacks[name] = "; ".join(dict.fromkeys(why))
        elif driver_differs or not equal_files(first.modules[name], second.modules[name]):
            changed.append(name)
        else:
            equal.append(name)
    if not changed and not equal:
        raise NothingSelectedError("; ".join(f"{name} cannot be compared: {why}" for name, why in lacks.items()))
    return BuildPair(
        first=first,
        second=second,
        driver_differs=driver_differs,
        changed=tuple(changed),
        equal=tuple(equal),
        lacks=lacks,
    )


def paired_sweep(sweep: SweepFile, pair: BuildPair, margin: float) -> SweepFile:
    """Return a sweep that measures both builds of what changed round by round, each layer against itself on A.

    A layer that one side lacks is measured on the other and refused there, with the reason. margin: within it both
    sides are the same.
    """
    first, second = pair.variants
    names = [f"{name}{variant}" for name in (*pair.changed, *pair.lacks) for variant in (first, second)]
    control = [f"{name}{first}" for name in pair.control]
    changes: dict[str, object] = {
        "layers": tuple(LayerEntry(layer=name) for name in dict.fromkeys((*names, *control))),
        "without": (),
        "baseline": first,
        "same_within": 100 * margin,
    }
    if control:  # else one of those that changed, by the seed
        changes["twin"] = control[0] if names else TWIN_ALL
    return sweep.model_copy(update=changes)


def sides_of(plan: Plan) -> tuple[str, str] | None:
    """Return the variants A and B of a campaign of `cadge ab`; B is A without another one. None if there are more."""
    base = plan.baseline or ""
    if not is_variant(base):
        return None
    labels = [point.subject.label for point in plan.points if point.subject.kind == "layer" and not point.subject.twin]
    others = {one for label in labels if (one := variant_of(label, base)) not in {"", base}}
    return (base, others.pop() if others else base) if len(others) < 2 else None


def check_build(driver: Path, title: str, here: Path, workloads: Workloads, patterns: Sequence[str]) -> None:
    """Raise UnfitError where a build's driver cannot measure these patterns as the driver `here` does."""
    own, ours = ask_version(driver), ask_version(here)
    if own is None or ours is None or own.get("schema") != ours.get("schema"):
        said = own.get("schema") if own else "nothing"
        raise UnfitError(f"{title} cannot be measured beside this checkout: its driver writes {said}")
    raw = ask_driver(driver)
    wrong = [raw] if isinstance(raw, str) else list(pattern_differences(raw, workloads, patterns))
    if wrong:
        raise UnfitError(f"{title} cannot be measured beside this checkout: {wrong[0]}")
