# SPDX-License-Identifier: BSD-3-Clause
"""One adapter on several builds of its library: what each build is, and what became faster or slower between them.

Of an adapter, each layer with a provider is held against the one whose library the build found by itself, or against
the first where that was not measured. Verdicts are those of `cadge compare`, for each two layers a family of its own.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial

from cadge_analysis import messages, units, words
from cadge_analysis.blocks.make import lede, plain_table
from cadge_analysis.blocks.model import Block, Items, Region, Table
from cadge_analysis.page.parts.provenance import told_command
from cadge_analysis.page.parts.since import findings_of
from cadge_analysis.stats.inference.sequential import ERROR
from cadge_analysis.stats.launch_facts import LaunchFacts
from cadge_analysis.stats.load import Dataset, Series
from cadge_analysis.versus import change_words
from cadge_analysis.versus.against import Change, SideComparison, against
from cadge_analysis.versus.sides import Side
from cadge_results.plugins.build import AT, adapter_of

say = partial(messages.say, "report")

Facts = Mapping[tuple[Series, str, str], tuple[LaunchFacts, ...]]
HEADS = ("layer", "library", say("versions.own_version"), "from", "loaded from", "build id")
BUILD_ID_DIGITS = 12


def versions(data: Dataset, facts: Facts, delta: float) -> Region | None:
    """Return versions side by side; None where no adapter has several. `delta`: within it two are the same."""
    groups = _groups(data)
    if not groups:
        return None
    two = (f"{data.campaign_id}:LAYER", f"{data.campaign_id}:LAYER@VERSION")
    found = [_held(data, first, second, delta) for first, *others in groups for second in others]
    note = say("versions.note", error=ERROR, delta=delta, command=told_command(data, "compare", *two))
    sentences = (one for each in found for one in findings_of(each) if one.kind != "conditions")
    plain = tuple(replace(one, role="", kind="") for one in sentences)
    tables = [table for each in found for of in (_changes, _left) if (table := of(each))]
    blocks: tuple[Block, ...] = (lede(note), Items(plain), _builds(data, facts, groups), *tables)
    return Region(id="versions", title=say("versions.title"), blocks=blocks)


def _groups(data: Dataset) -> list[list[Series]]:
    """Return plain layers of the same adapter that are several; the baseline, or the one on no build, comes first."""
    by_adapter: dict[str, list[Series]] = defaultdict(list)
    for series in data.layers:
        if not series.shims and not series.settings:
            by_adapter[adapter_of(series.layer)].append(series)

    def place(one: Series) -> tuple[bool, bool, str]:
        return one.label != data.plan.baseline_of(one.label), AT in one.layer, one.layer

    ordered = (sorted(several, key=place) for several in by_adapter.values())
    return [several for several in ordered if len(several) > 1]


def _held(data: Dataset, first: Series, second: Series, delta: float) -> SideComparison:
    return against(Side(first.label, data, first), Side(second.label, data, second), delta)


def _builds(data: Dataset, facts: Facts, groups: Sequence[Sequence[Series]]) -> Table:
    def said(series: Series) -> Iterator[LaunchFacts]:
        for (of, _, _), several in facts.items():
            if of == series:
                yield from several

    def joined(values: Iterator[str]) -> str:
        return "; ".join(dict.fromkeys(filter(None, values)))

    rows = []
    for series in (one for several in groups for one in several):
        build = data.plan.providers.get(series.layer)
        origin = f"{build.source}: {build.origin}" if build else say("versions.as_found")
        more = "".join(f"; no {what}" for what in build.lacks) if build else ""
        more += f"; {build.made_with}" if build and build.made_with else ""
        own = bool(build and build.of_cadge)
        rows.append(
            (
                series.label,
                joined(one.library for one in said(series)) or units.MISSING,
                joined(one.version for one in said(series)) or units.MISSING,
                f"{origin}{more}",
                joined(one.file for one in said(series)) or units.MISSING,
                joined((one.adapter_build_id if own else one.build_id)[:BUILD_ID_DIGITS] for one in said(series))
                or say("versions.no_build_id"),
            )
        )
    return plain_table(title="What was loaded", columns=HEADS, rows=tuple(rows))


def _changes(found: SideComparison) -> Table | None:
    if not found.changes:
        return None
    order = sorted(found.changes, key=_place_of)
    rows = tuple(
        (
            f"{one.case.pattern}, {words.PLACES[one.case.place]}, {words.WAITS[one.case.wait]}",
            one.workload,
            *one.values,
            f"{units.times(one.ratio)} {change_words.interval(one)}".strip() + change_words.disagreement(one),
            one.judged.verdict.word,
        )
        for one in order
    )
    heads = ("pattern", "workload", found.first, found.second, "second / first", say("versions.verdict"))
    return plain_table(title=f"{found.second} beside {found.first}", columns=heads, rows=rows)


def _place_of(change: Change) -> tuple[str, int, str, int, str]:
    case = change.case
    return case.pattern, words.PLACE_ORDER.index(case.place), case.wait, case.size, change.workload


def _left(found: SideComparison) -> Table | None:
    """Return what could not be compared, and why."""
    counts = {**found.refused, **found.missing}
    rows = tuple((why, units.grouped(often)) for why, often in counts.items())
    title = say("versions.not_compared", second=found.second, first=found.first)
    return plain_table(title=title, columns=("why", "points"), rows=rows) if rows else None
