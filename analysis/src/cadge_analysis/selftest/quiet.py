# SPDX-License-Identifier: BSD-3-Clause
"""Variables and files that steer a communication library: none may change a number that does not say so.

Two campaigns of one sweep: one made in a user's surroundings that are full of such variables and files, the other in
surroundings without. Where a layer was measured with its defaults, both have to have used the same path and thresholds,
and no endpoint of either may have had such a variable. Where the sweep sets one, its
series carries it in its name, or did not get as far as a number: refused, failed or unsound.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import partial

from cadge_analysis import messages
from cadge_analysis.stats.launch_facts import launch_facts, without_numbers
from cadge_analysis.stats.load import Dataset, Series
from cadge_analysis.stats.numbers import CellNumbers

say = partial(messages.say, "selftest")

VARIABLE = "env."
EFFECT = 1.25
"""A time so many times another one's shows that a variable does something."""

_Used = tuple[str, int, str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """One variable that the sweep sets for a layer: how it ended, and what it changed."""

    layer: str
    variable: str
    ended: str
    """As a series with this name, or refused, failed or unsound."""
    shown: bool
    """It ended as it may: never as a number of the layer's own name."""
    steers: str
    """What of the path, the thresholds or the time it changed; empty: nothing here."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EnvironmentCheck:
    """What became of variables and files of the user's, and of those that the sweep set."""

    layers: tuple[str, ...]
    """Measured with their defaults in both surroundings."""
    leaked: tuple[str, ...]
    """What of the user's reached an endpoint or changed a path, a sentence each."""
    settings: tuple[Setting, ...]


def _used(data: Dataset) -> Mapping[Series, frozenset[_Used]]:
    found: dict[Series, set[_Used]] = {}
    for (series, _, _), facts in launch_facts(data).items():
        found.setdefault(series, set()).update(
            (without_numbers(one.used), one.short_bytes, one.short_path, one.long_path) for one in facts
        )
    return {series: frozenset(used) for series, used in found.items()}


def _variables(series: Series) -> tuple[str, ...]:
    return tuple(
        f"{name.removeprefix(VARIABLE)}={value}" for name, value in series.settings if name.startswith(VARIABLE)
    )


def quiet(clean: Dataset, steered: Dataset, names: Collection[str]) -> EnvironmentCheck:
    """Compare both campaigns. names: the variables of the user's surroundings in which `steered` was made."""
    leaked = [
        say("quiet.reached_endpoint", name=name, layer=record.launch.layer)
        for record in steered.records
        if not any(setting.startswith(VARIABLE) for setting, _ in record.launch.subject.settings)
        for host in record.environment
        for name in sorted(set(host.variables) & set(names))
    ]
    before, after = _used(clean), _used(steered)
    plain = sorted(series for series in before if not _variables(series))
    for series in plain:
        if series not in after:
            leaked.append(say("quiet.not_measured", series=series.label))
        elif before[series] != after[series]:
            leaked.append(
                say(
                    "quiet.used_another",
                    series=series.label,
                    after=_path_text(after[series]),
                    before=_path_text(before[series]),
                )
            )
    return EnvironmentCheck(
        layers=tuple(series.label for series in plain if series in after),
        leaked=tuple(dict.fromkeys(leaked)),
        settings=tuple(_setting(series, clean, before) for series in clean.layers if _variables(series)),
    )


def _setting(series: Series, data: Dataset, used: Mapping[Series, frozenset[_Used]]) -> Setting:
    cells = [cell for cell in data.cells if cell.series == series]
    states = sorted({cell.state for cell in cells})
    variables = _variables(series)
    named = all(variable in series.label for variable in variables)
    default = Series(series.kind, series.layer, series.shims, ())
    return Setting(
        layer=series.layer,
        variable=", ".join(variables),
        ended=series.label if states == ["valid"] else ", ".join(states),
        shown=named or "valid" not in states,
        steers=_effect(series, default, data, used),
    )


def _effect(series: Series, default: Series, data: Dataset, used: Mapping[Series, frozenset[_Used]]) -> str:
    if series in used and default in used and used[series] != used[default]:
        return f"{_path_text(used[series])} in place of {_path_text(used[default])}"
    usual, numbers = {cell.case: cell for cell in data.cells if cell.series == default}, CellNumbers(data)
    for cell in data.cells:
        if cell.series != series or cell.case not in usual:
            continue
        ours, theirs = numbers.get(cell.point_id), numbers.get(usual[cell.case].point_id)
        if ours and theirs and not 1 / EFFECT <= (ratio := ours.central.value / theirs.central.value) <= EFFECT:
            return say("quiet.slower", ratio=ratio, size=cell.case.size)
    return ""


def _path_text(used: Collection[_Used]) -> str:
    return " | ".join(
        sorted(f"{path or 'no path'}, {short} up to {most} B, then {rest}" for path, most, short, rest in used)
    )
