# SPDX-License-Identifier: BSD-3-Clause
"""Two sides in one campaign, each layer once on A and once on B: builds of Cadge, providers, or settings.

A side is a variant of each layer (`cadge_results.plugins.build`): what follows its name, as in `@cadge-1a2b3c4d5e`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path

from cadge_harness.errors import NothingSelectedError, UnfitError, UsageError, shown
from cadge_harness.plan.catalogue import Catalogue
from cadge_harness.plan.patterns import ask_driver, ask_version, pattern_differences
from cadge_harness.providers.source import MadeBuild, equal_files
from cadge_results import Plan, SweepFile, Workloads
from cadge_results.formats.complaint import nearest
from cadge_results.formats.sweep import TWIN_ALL, LayerEntry
from cadge_results.plugins.build import AT, NO_SETTINGS, Build, is_variant, variant_of

SOURCES, SETTINGS, PROVIDER = "sources", "settings", "provider:"
"""Kinds of sides; a provider is named behind the last one."""
DEFAULT = "default"
"""The side of a layer without settings, beside a setting."""
TWO_OF_A_KIND = "give two revisions or folders, two of provider:NAME, two of KEY=VALUE, or default and KEY=VALUE"
_SETTING = re.compile(r"[A-Za-z][A-Za-z0-9_]*(\.[A-Za-z0-9_-]+)*=.*")


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


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerPair:
    """Two providers or two settings, A and B, of which nothing is made: the variants, and the layers in both."""

    variants: tuple[str, str]
    entries: tuple[LayerEntry, ...]


def chosen_pair(
    catalogue: Catalogue, builds: Mapping[str, Build], sides: tuple[str, str], layers: Iterable[str]
) -> LayerPair | None:
    """Return two providers (`provider:NAME`) or two settings (`KEY=VALUE`, or `default` beside one).

    None where both sides name sources. Raises UsageError.
    """
    kinds = {_kind(text) for text in sides if text != DEFAULT}
    if kinds <= {SOURCES}:
        return None
    if kinds == {SETTINGS}:
        return _settings_pair(catalogue, sides, layers)
    if kinds == {PROVIDER} and DEFAULT not in sides:
        return _providers_pair(catalogue, builds, sides, layers)
    raise UsageError(f"{' and '.join(map(shown, sides))} are no pair: {TWO_OF_A_KIND}")


def _kind(text: str) -> str:
    if text.startswith(PROVIDER):
        return PROVIDER
    return SETTINGS if _SETTING.fullmatch(text) and not Path(text).is_dir() else SOURCES


def _providers_pair(
    catalogue: Catalogue, builds: Mapping[str, Build], sides: tuple[str, str], layers: Iterable[str]
) -> LayerPair:
    found, entries = dict[str, None](), list[LayerEntry]()
    chosen = [_build_named(builds, text.removeprefix(PROVIDER)) for text in sides]
    for name in layers:
        substrate = catalogue.get(name).file.substrate
        variants = [f"{AT}{build.label(substrate)}" for build in chosen]
        entries += [LayerEntry(layer=catalogue.get(f"{name}{one}").name) for one in variants]
        found["\0".join(variants)] = None
    if len(found) > 1:
        raise UsageError("these layers name their builds in different ways: compare them in two campaigns")
    first, second = next(iter(found)).split("\0")
    return LayerPair(variants=(first, second), entries=tuple(entries))


def _build_named(builds: Mapping[str, Build], name: str) -> Build:
    """Return a provider by its name, or by its version where one alone has it. Raises UsageError."""
    several = [build for of, build in builds.items() if name in {of, build.version}]
    if name in builds or len(several) == 1:
        return builds.get(name) or several[0]
    which = "several providers have that version" if several else "no provider is called so"
    raise UsageError(f"{PROVIDER}{name}: {which}{nearest(name, builds)}", commands=("cadge provider list",))


def _settings_pair(catalogue: Catalogue, sides: tuple[str, str], layers: Iterable[str]) -> LayerPair:
    chosen = [{} if text == DEFAULT else dict([text.split("=", 1)]) for text in sides]
    entries = []
    for info, given in product(map(catalogue.get, layers), chosen):
        options = info.description.options if info.description else ()
        for key in given:
            if "." not in key and info.description and key not in options:
                has = nearest(key, options) or "; it has none"
                raise UsageError(
                    f"{info.name} has no setting {shown(key)}{has}; env.NAME sets a variable of its library"
                )
        entries.append(LayerEntry(layer=info.name, settings=given))
    first, second = (variant_of(entry.label, NO_SETTINGS) for entry in entries[:2])
    return LayerPair(variants=(first, second), entries=tuple(entries))


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


def paired_sweep(sweep: SweepFile, pair: BuildPair | LayerPair, margin: float) -> SweepFile:
    """Return a sweep that measures both sides of what changed round by round, each layer against itself on A.

    A layer that one side lacks is measured on the other and refused there, with the reason. margin: within it both
    sides are the same.
    """
    first, second = pair.variants
    changes: dict[str, object] = {"without": (), "baseline": first, "same_within": 100 * margin}
    if isinstance(pair, LayerPair):
        entries = pair.entries if first != second else pair.entries[::2]
        changes |= {"layers": entries, **({"twin": TWIN_ALL} if first == second else {})}
        return sweep.model_copy(update=changes)
    names = [f"{name}{variant}" for name in (*pair.changed, *pair.lacks) for variant in (first, second)]
    control = [f"{name}{first}" for name in pair.control]
    changes["layers"] = tuple(LayerEntry(layer=name) for name in dict.fromkeys((*names, *control)))
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
        raise UnfitError(f"{title} cannot be measured beside this Cadge: its driver writes {said}")
    raw = ask_driver(driver)
    wrong = [raw] if isinstance(raw, str) else list(pattern_differences(raw, workloads, patterns))
    if wrong:
        raise UnfitError(f"{title} cannot be measured beside this Cadge: {wrong[0]}")
