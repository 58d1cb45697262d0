# SPDX-License-Identifier: BSD-3-Clause
"""The table of knees: the highest load that each layer bears, in the words of its pattern."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from functools import partial

from cadge_analysis import messages, units, words
from cadge_analysis.blocks.make import caption
from cadge_analysis.blocks.model import Column, Key, Table, TableLine
from cadge_analysis.cells.shown import Value, estimate_value, share_value
from cadge_analysis.groups import by_key
from cadge_analysis.page.parts.tables import LAYER, case_key, layer_cell
from cadge_analysis.stats.knee import P99_SAMPLES, Generator, Knee
from cadge_analysis.stats.load import Case, Series
from cadge_results import PatternFile
from cadge_results.plugins.rules import KneeRule

say = partial(messages.say, "report")


def knee_tables(found: Iterable[Knee], keys: Mapping[Series, Key]) -> tuple[Table, ...]:
    """Return one table for each set of values beside the axis; `found` is of one pattern and one place."""
    groups = by_key(found, lambda knee: Case("", "", knee.case.workload, knee.case.file))
    made = []
    for case, members in sorted(groups.items(), key=lambda item: item[0].sort_key):
        rule = case.file.knee
        if rule is None:
            continue
        ordered = sorted(members, key=lambda one: (words.WAIT_ORDER.index(one.case.wait), one.series))
        # said once, in the note
        left_out = {"generator"} if members[0].generator is None else set()
        title = f"Knee: {case.file.fill(case.file.words.figure, case.workload, words.value)}"
        note = _note(case.file, rule, members[0].generator)
        made.append(
            Table(
                label=title,
                role="plain knees",
                columns=(LAYER, *(one for one in _columns(case.file, rule) if one.key not in left_out)),
                lines=tuple(_line(one, keys, left_out) for one in ordered),
                caption=caption(title, note),
                fits=True,
                data=(("knee", case_key(members[0].case)),),
            )
        )
    return tuple(made)


def _columns(file: PatternFile, rule: KneeRule) -> tuple[Column, ...]:
    axis = file.parameters[file.axis]
    rest = words.value(axis, rule.rest)
    return (
        Column(key="wait", head="waits by", number=False),
        Column(key="knee", head=f"knee, {axis.title}"),
        Column(key="knee_rate", head=say("knee_table.rate"), unit="1/s"),
        Column(key="rest_p99", head=f"p99 at {rest}", unit="\u00b5s"),
        Column(key="generator", head=words.OF_GENERATORS_LIMIT, unit="%"),
        Column(key="launches", head="launches"),
    )


def _note(file: PatternFile, rule: KneeRule, generator: Generator | None) -> str:
    axis = file.parameters[file.axis]
    text = (
        say(
            "knee_table.knee",
            axis=axis.title,
            times=rule.times,
            rest=words.value(axis, rule.rest),
            share=rule.share,
        )
        + " "
    )
    return text + limit_text(generator, rule)


def limit_text(generator: Generator | None, rule: KneeRule) -> str:
    """Return what can be offered at most, and from which rates on they are marked."""
    if generator is None:
        return say("knee_table.limit_unknown", generator=rule.generator)
    at_least = "" if generator.reached else "at least "
    return say("knee_table.limit", at_least=at_least, limit=generator.limit.value, marked=rule.marked)


def _line(knee: Knee, keys: Mapping[Series, Key], left_out: Collection[str]) -> TableLine:
    values = {
        "wait": Value(text=knee.case.wait),
        **dict.fromkeys(("knee", "knee_rate", "rest_p99", "generator"), _withheld(knee)),
    }
    if not knee.withheld:
        values |= _found(knee)
    values |= {
        "launches": Value(
            text=units.grouped(knee.load.launches), detail=_launches_detail(knee), raw=str(knee.load.launches)
        ),
    }
    cells = (value for key, value in values.items() if key not in left_out)
    return TableLine(cells=(layer_cell(keys[knee.series]), *cells), data=(("point", ""), ("wait", knee.case.wait)))


def _withheld(knee: Knee) -> Value:
    if knee.why_not:
        return Value(text=units.MISSING, reason=f"withheld: {knee.why_not}")
    needs = f"{units.count_of(knee.fewest, 'sample')}, needs {units.grouped(P99_SAMPLES)}"
    return Value(text=units.MISSING, reason=say("knee_table.withheld", needs=needs))


def _found(knee: Knee) -> dict[str, Value]:
    """Return what is said of a knee that rests on samples enough."""
    return {
        "knee": _load(knee),
        "knee_rate": _rate(knee),
        "rest_p99": estimate_value(knee.rest_ns, scale=1 / units.NS_PER_US, reason=""),
        "generator": share_value(knee.share, knee.case.file.knee)
        if knee.rate.value > 0
        else Value(text=units.MISSING, reason="no rate"),
    }


def _rate(knee: Knee) -> Value:
    """Return the rate at the knee; where most launches bear no load that was measured, there is none."""
    if knee.rate.value > 0:
        return estimate_value(knee.rate, scale=1.0, reason="")
    return Value(text=units.MISSING, reason=say("knee_table.none_borne"))


def _load(knee: Knee) -> Value:
    """Return the knee on the axis; an end of what was measured is a bound."""
    plain = estimate_value(knee.load, scale=1.0, reason="")
    axis = knee.case.file.parameters[knee.case.file.axis]

    def say(load: float) -> str:
        if load < knee.loads[0]:  # between two launches' own it can be anything
            return f"below {words.value(axis, knee.loads[0])}"
        text = words.value(axis, round(load))
        return f"at least {text}" if load >= knee.loads[-1] else text

    low, high = knee.load.low, knee.load.high
    detail = plain.detail if low is None or high is None else units.interval(say(low), say(high))
    return Value(text=say(knee.load.value), detail=detail, raw=plain.raw)


def _bear(launches: int) -> str:
    return "bears" if launches == 1 else "bear"


def _launches_detail(knee: Knee) -> str:
    coverage = knee.load.coverage
    parts = [units.percent(coverage) if coverage else "no interval"]
    if knee.withheld:
        return parts[0]
    parts += [f"{knee.bearing_all} {_bear(knee.bearing_all)} all loads"] * bool(knee.bearing_all)
    parts += [f"{knee.bearing_none} {_bear(knee.bearing_none)} none"] * bool(knee.bearing_none)
    return ", ".join(parts)
