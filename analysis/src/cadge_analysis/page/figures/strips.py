# SPDX-License-Identifier: BSD-3-Clause
"""The figure of launches in the order in which they ran, above what their machine probe measured."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import partial
from math import log
from statistics import median

from cadge_analysis import messages, units, words
from cadge_analysis.blocks.model import DataTable, Figure
from cadge_analysis.draw import strips as draw
from cadge_analysis.draw.chart import Line
from cadge_analysis.draw.strips import LaunchDot, Strip
from cadge_analysis.page.figures.main_figure import FigureSource, drawn
from cadge_analysis.stats.attempt_columns import MACHINE_PROBES
from cadge_analysis.stats.numbers import Numbers
from cadge_analysis.stats.strips import SAMPLES_MIN, LaunchDrift, LaunchEffect, drift, launches

say = partial(messages.say, "figures")

PROBE_LABELS = {one: say(f"strips.probes.{one}") for one in ("line_ns", "copy_ns", "clock_ns")}
PLAIN_MAX, TABLE_MAX = 120, 60
"""Of more launches the table has those alone that something is said of, and of these the farthest off."""
NOTABLE = 1.1
"""An effect beyond this, either way, is said of a launch."""


def strips_figure(source: FigureSource, numbers: Mapping[str, Numbers] | None = None) -> Figure | None:
    """Return the figure; None where no launch has an effect or a machine probe. numbers: see `launches`."""
    ran = launches(source.data, numbers)
    if not any(one.effect or one.probed for one in ran):
        return None
    begin = ran[0].started
    minutes = {one.launch_id: (one.started - begin).total_seconds() / 60 for one in ran}
    strips, drifts = [], {}
    for place in words.PLACE_ORDER:
        here = [one for one in ran if one.place == place]
        if any(one.effect for one in here):
            drifts[place] = drift(here)
            strips.append(_strip(place, here, minutes, drifts[place], begin))
        probe = next((name for name in MACHINE_PROBES if any(name in one.probed for one in here)), None)
        if probe is not None:
            strips.append(
                _probe_strip(probe, here, minutes, "" if place in drifts else f"{words.PLACES_SHORT[place]}: ")
            )
    series = [one for one in source.keys if any(one == launch.series for launch in ran)]
    lines = [Line(label=one.label, look=source.looks[one]) for one in series]
    return drawn(
        draw.figure(strips, lines),
        name="strips",
        title=say("strips.title"),
        description=_spoken_text(ran),
        caption=_caption(ran, drifts, begin),
        marks=_marks(ran, has_effects=bool(drifts)),
        keys=tuple(source.keys[one] for one in series) if drifts else (),
        table=_table(ran, minutes),
    )


def _strip(
    place: str, ran: Sequence[LaunchEffect], minutes: Mapping[str, float], found: LaunchDrift | None, begin: datetime
) -> Strip:
    middle = median(one.effect for one in ran if one.effect)
    return Strip(
        title=f"{words.PLACES_SHORT[place]}: effect",
        dots=tuple(
            LaunchDot(
                label=one.series.label,
                minutes=minutes[one.launch_id],
                ratio=one.effect,
                tagged=_is_tagged(one),
                rejected=one.rejected > 0,
            )
            for one in ran
        ),
        drift=tuple(zip(_span(found, begin), _ends(middle, found), strict=True)) if found else (),
    )


def _span(found: LaunchDrift, begin: datetime) -> tuple[float, float]:
    """Return from which minute to which a drift is known."""
    return (found.begin - begin).total_seconds() / 60, (found.end - begin).total_seconds() / 60


def _ends(middle: float, found: LaunchDrift) -> tuple[float, float]:
    return middle / found.factor**0.5, middle * found.factor**0.5


def _probe_strip(name: str, ran: Sequence[LaunchEffect], minutes: Mapping[str, float], place: str) -> Strip:
    """Return the strip of what a machine probe measured; where none of effects stands above it, it names its place."""
    seen = [one for one in ran if name in one.probed]
    usual = median(one.probed[name] for one in seen)
    return Strip(
        title=f"{place}machine probe",
        dots=tuple(
            LaunchDot(label=one.series.label, minutes=minutes[one.launch_id], ratio=one.probed[name] / usual or None)
            for one in seen
        ),
        of_probe=True,
    )


def _drift_text(place: str, found: LaunchDrift | None, begin: datetime) -> str:
    where = words.PLACES[place]
    if found is None:
        return say("strips.few_launches", where=where)
    change = f"{units.times(found.factor)} {units.interval(units.sig3(found.low), units.sig3(found.high))}"
    sure = "" if found.low > 1 or found.high < 1 else say("strips.not_sure")
    over = ""
    if found.apart:
        first, last = (units.grouped(round(at)) for at in _span(found, begin))
        alone = f"{units.count_of(found.apart, 'launch', 'launches')} that {'stands' if found.apart == 1 else 'stand'}"
        over = " " + say("strips.minutes", first=first, last=last, alone=alone)
    return say("strips.drift", where=where, change=change, over=over, sure=sure)


def _spoken_text(ran: Sequence[LaunchEffect]) -> str:
    effects = [one.effect for one in ran if one.effect]
    if not effects:
        return say("strips.probe_alone", n=len(ran))
    span = f"{units.times(min(effects))} to {units.times(max(effects))}"
    return say("strips.effects", n=len(ran), span=span)


def _caption(ran: Sequence[LaunchEffect], drifts: Mapping[str, LaunchDrift | None], begin: datetime) -> str:
    tagged, rejected = sum(_is_tagged(one) for one in ran), sum(one.rejected > 0 for one in ran)
    few = " " + say("strips.table_of_some", table_max=TABLE_MAX)
    few = few if len(ran) > PLAIN_MAX else ""
    if not drifts:
        return say("strips.no_effects", samples_min=SAMPLES_MIN, few=few)
    drifted = "; ".join(_drift_text(place, found, begin) for place, found in drifts.items())
    crosses = " " + say("strips.crosses", rejected=rejected) if rejected else ""
    return say("strips.effects_of", tagged=tagged, crosses=crosses, few=few, drifted=drifted)


def _marks(ran: Sequence[LaunchEffect], *, has_effects: bool) -> str:
    """Return what the marks of each strip are."""
    seen = dict.fromkeys(
        PROBE_LABELS[next(name for name in MACHINE_PROBES if any(name in one.probed for one in here))]
        for place in words.PLACE_ORDER
        if (here := [one for one in ran if one.place == place and one.probed])
    )
    said = [say("strips.marks")] * has_effects
    return " ".join([*said, *[say("strips.grey_marks", seen=seen)] * bool(seen)])


def _table(ran: Sequence[LaunchEffect], minutes: Mapping[str, float]) -> DataTable:
    """Return a row a launch, in the order of time; of very many those that something is said of, the farthest first."""
    shown = list(ran)
    if len(ran) > PLAIN_MAX:
        shown = sorted((one for one in ran if _is_notable(one)), key=_off, reverse=True)[:TABLE_MAX]
    names = [name for name in MACHINE_PROBES if any(name in one.probed for one in ran)]
    alike: dict[str, int] = defaultdict(int)
    for one in ran:
        alike[one.wait] += 1
    return DataTable(
        columns=(
            "launch",
            "minutes",
            "layer",
            "where",
            "effect",
            "attempts used",
            "disturbed",
            "not settled",
            "without a number",
            *(f"{PROBE_LABELS[name]}, ns" for name in names),
        ),
        rows=tuple(
            (
                one.launch_id,
                f"{minutes[one.launch_id]:.2f}",
                one.series.label,
                words.PLACES_SHORT[one.place] + (f", {words.WAITS[one.wait]}" if len(alike) > 1 else ""),
                units.times(one.effect) if one.effect else units.MISSING,
                str(one.used),
                str(one.disturbed),
                str(one.unsteady),
                str(one.rejected),
                *(units.sig3(one.probed[name]) if name in one.probed else units.MISSING for name in names),
            )
            for one in shown
        ),
    )


def _off(one: LaunchEffect) -> float:
    """Return how far a launch is off, for an order."""
    return abs(log(one.effect)) if one.effect else 0.0


def _is_tagged(one: LaunchEffect) -> bool:
    return 2 * max(one.disturbed, one.unsteady) > one.used


def _is_notable(one: LaunchEffect) -> bool:
    off = one.effect is not None and not 1 / NOTABLE <= one.effect <= NOTABLE
    return off or _is_tagged(one) or one.rejected > 0
