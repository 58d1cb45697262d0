# SPDX-License-Identifier: BSD-3-Clause
"""Two builds of Cadge in one campaign: which layers are measured on both, and what serves as the A/A control."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from cadge_harness.errors import NothingSelectedError, UnfitError
from cadge_harness.plan.patterns import ask_driver, ask_version, pattern_differences
from cadge_harness.providers.source import MadeBuild, equal_files
from cadge_results import SweepFile, Workloads
from cadge_results.formats.sweep import TWIN_ALL, LayerEntry
from cadge_results.plugins.build import AT


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
    def labels(self) -> tuple[str, str]:
        """What follows an adapter's name for A and for B; of A twice where nothing differs."""
        one, other = (f"{AT}{made.build.name}" for made in (self.first, self.second))
        return one, other if self.changed else one

    @property
    def control(self) -> tuple[str, ...]:
        """The layers that are measured twice on A as the A/A control: one beside what changed, else all."""
        return self.equal[:1] if self.changed else self.equal


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


def paired_sweep(sweep: SweepFile, pair: BuildPair) -> SweepFile:
    """Return a sweep that measures both builds of what changed round by round, each layer against itself on A."""
    first, second = pair.labels
    names = [f"{name}{label}" for name in pair.changed for label in (first, second)]
    control = [f"{name}{first}" for name in pair.control]
    changes: dict[str, object] = {
        "layers": tuple(LayerEntry(layer=name) for name in (*names, *control)),
        "without": (),
        "baseline": first,
    }
    if control:  # else one of those that changed, by the seed
        changes["twin"] = control[0] if pair.changed else TWIN_ALL
    return sweep.model_copy(update=changes)


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
