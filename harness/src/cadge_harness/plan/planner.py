# SPDX-License-Identifier: BSD-3-Clause
"""Planning: from a sweep, the layers there are and a testbed to every point, launch and block.

Pure: no clock, no network, no file. The same input gives the same plan, and ids depend on what is measured alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from cadge_harness.errors import NothingSelectedError, UsageError
from cadge_harness.plan.budget import durations_of, leave_out
from cadge_harness.plan.cast import PAIR, hosts_of, pair_of, pairs_of, with_pair
from cadge_harness.plan.cast import PREFIX as HOSTS
from cadge_harness.plan.catalogue import Catalogue, Context, select
from cadge_harness.plan.draft import LaunchDraft, LaunchKey, PlanDraft, launches_of
from cadge_harness.plan.floors import floor_wanted, refuse_floor
from cadge_harness.plan.kernel import check_values, is_value, refuse_values
from cadge_harness.plan.link import PREFIX as LINK
from cadge_harness.plan.link import check_link, refuse_rate
from cadge_harness.plan.looks import most
from cadge_harness.plan.order import seeded
from cadge_harness.plan.refuse import check_variables, refuse_point
from cadge_harness.plan.replay import refuse_replay, with_trace
from cadge_harness.plan.site import PlanSite, refuse_cast, refuse_place
from cadge_harness.plan.sweep import WantedPoint, by_layers, focuses, idle_values, wanted
from cadge_harness.plan.timemodel import (
    ATTEMPT_BYTES,
    RECORD_BYTES,
    report_ms,
)
from cadge_harness.plan.twin import twin_of, twins_of
from cadge_harness.words import count_of, runs_only
from cadge_results import (
    Plan,
    PlanBlock,
    PlanLaunch,
    PlanPoint,
    Point,
    Subject,
    SweepFile,
    TraceFacts,
    Workload,
    Workloads,
)
from cadge_results.formats.plan import PlanEstimate
from cadge_results.formats.sweep import LayerEntry
from cadge_results.plugins.build import AT, is_variant, on_variant

IDLE_NAMED = 3
"""So many hosts without a part are named."""
ATTEMPTS_MAX = 1_000_000
"""Of a campaign: it would take days, and a plan of that size minutes."""


@dataclass(frozen=True, slots=True)
class _Part:
    """A part of a sweep whose patterns are all measured over the same layers."""

    sweep: SweepFile
    entries: list[LayerEntry]
    wishes: list[WantedPoint]


def make_plan(
    sweep: SweepFile,
    catalogue: Catalogue,
    workloads: Workloads,
    site: PlanSite,
    *,
    only: Sequence[str] = (),
    trace: TraceFacts | None = None,
    all_sizes: bool = False,
    add_rounds: bool = True,
    beside_ms: Callable[[Subject, Workload], int] | None = None,
) -> Plan:
    """Plan a sweep; `only` narrows it to some layers, `trace` is what some of its points may replay.

    all_sizes: no size is dropped for the budget, since they were asked for. add_rounds: where the budget has time left
    in the end, there may be more launches than the sweep has. beside_ms: what else is measured beside a point takes, in
    each round.

    Raises UsageError (unknown layer or shim, values that a pattern does not have, budget too small),
    NothingSelectedError (nothing could be measured).
    """
    wanted(sweep, workloads)  # as a whole it fits the patterns
    parts, notices = _parts(sweep, catalogue, workloads, only)
    _check_attempts(parts, sweep.looks[-1] if sweep.looks else sweep.rounds)
    making = PlanDraft(sweep, site, workloads, focuses(sweep, workloads))
    if beside_ms is not None:
        making.beside_ms = beside_ms
    pairs = pairs_of(sweep.pairs, site.host_names, sweep.seed)
    for part, asked in [(one, entry) for one in parts for entry in one.entries]:
        entry = asked.model_copy(update={"settings": with_pair(asked.settings, site.host_names)})
        info = catalogue.get(entry.layer)
        wishes = _wishes_of(entry, part.sweep, workloads, part.wishes)
        for wish, settings in [(one, own) for one in wishes for own in _on_pairs(entry, one, making, pairs)]:
            item = with_trace(wish, making.pattern(wish.workload), trace)
            subject = Subject(
                kind="layer",
                layer=entry.layer,
                shims=entry.shims,
                settings=tuple(sorted(settings.items())),
                place=item.place,
                wait=item.wait,
            )
            cast = making.cast(item, pair_of(settings))
            pattern = making.pattern(item.workload)
            why = (
                refuse_replay(item, pattern, trace)
                or refuse_rate(info, entry.settings, item, site)
                or refuse_values(entry.settings, item, hosts_of(cast), site.set_here)
                or refuse_point(info, item, pattern, cast, site, set_otherwise=_set_otherwise(entry))
            )
            making.place(LaunchKey(subject=subject, launcher=info.file.launcher, cast=cast), item.workload, why, [item])
    if not making.drafts:
        raise NothingSelectedError(_nothing(making.refused.values()))
    notices += _add_twins(making, catalogue)
    if sweep.floors:
        _add_floors(making, list(dict.fromkeys(item for part in parts for item in part.wishes)))
    notices += leave_out(making, may_drop_layers=not only, may_drop_sizes=not all_sizes)
    notices += _baseline_missing(making)
    notices += idle_values(sweep, workloads)
    durations, shortened = durations_of(making)
    blocks, launches = launches_of(making, durations)
    notices += _idle_hosts(launches, site)
    points = [
        PlanPoint(
            point_id=name,
            subject=draft.key.subject,
            workload=item.workload,
            duration_ms=durations[name],
            state="planned",
        )
        for draft in making.drafts.values()
        for name, item in draft.points.items()
    ]
    notes = [*([f"{trace.said()}."] if trace else []), *notices, *([shortened] if shortened else [])]
    sealed = _seal(making, [*points, *making.refused.values()], launches, blocks, notes, trace)
    if sweep.looks or (add_rounds and sweep.budget is not None and sweep.epochs == 1):
        sealed = sealed.model_copy(update={"later": most(sealed)})
    plan = _with_layers(sealed, catalogue)
    return plan.model_copy(update={"plan_hash": plan.expected_hash()})


def _with_layers(plan: Plan, catalogue: Catalogue) -> Plan:
    """Return a plan that says which builds serve its layers, where they were chosen.

    And what is known of layers beside plain programs over the library that the build found by itself.
    """
    names = {point.subject.layer for point in plan.points}
    used = [info for info in catalogue.layers if info.name in names]
    builds = {info.name: info.build for info in used if info.build}
    beside = {info.name: info.file.beside_native for info in used if info.file.beside_native and not info.build}
    if not builds and not beside:
        return plan
    return plan.model_copy(update={"providers": builds, "beside_native": beside})


def _idle_hosts(launches: Sequence[PlanLaunch], site: PlanSite) -> list[str]:
    """Return which hosts of a cluster have no part in the plan, and how they would get one."""
    used = {end.host for launch in launches for end in launch.endpoints}
    idle = [name for name in site.host_names if name not in used]
    if site.here or not idle:
        return []
    named = ", ".join(idle[:IDLE_NAMED]) + (f" and {len(idle) - IDLE_NAMED} more" if len(idle) > IDLE_NAMED else "")
    return [
        f"{count_of(len(idle), 'host')} of {len(site.hosts)} take no part: {named} (pairs: all measures every pair)"
    ]


def _baseline_missing(making: PlanDraft) -> list[str]:
    """Return what a reader should know where nothing is planned of the layer that others are judged against."""
    label = making.sweep.baseline
    if label is None:
        return []
    for key in making.drafts:
        # in a variant each layer is judged against itself
        if key.subject.label == (on_variant(key.subject.label, label) if is_variant(label) else label):
            return []
    return [f"{label}, which this sweep judges layers against, is not measured: none is called faster or slower"]


def _set_otherwise(entry: LayerEntry) -> bool:
    """Tell whether a layer may grant something else than it does without settings of its own."""
    return any(not name.startswith((LINK, HOSTS)) and not is_value(name) for name in entry.settings)


def _on_pairs(
    entry: LayerEntry, wish: WantedPoint, making: PlanDraft, pairs: Sequence[tuple[str, str]]
) -> list[dict[str, str]]:
    """Return an entry's settings, for each pair of hosts where a point runs over two and the entry names none."""
    if PAIR in entry.settings or not pairs or wish.place != "between" or len(hosts_of(making.cast(wish))) != 2:
        return [entry.settings]
    return [{**entry.settings, PAIR: ",".join(pair)} for pair in pairs]


def _wishes_of(
    entry: LayerEntry, sweep: SweepFile, workloads: Workloads, wishes: Sequence[WantedPoint]
) -> Sequence[WantedPoint]:
    """Return what is wanted of one layer: of all the same, unless it has places of its own."""
    if entry.places is None:
        return wishes
    return wanted(sweep.model_copy(update={"places": entry.places}), workloads)


def _check_attempts(parts: Sequence[_Part], launches: int) -> None:
    attempts = sum(len(part.entries) * len(part.wishes) for part in parts) * launches
    if attempts > ATTEMPTS_MAX:
        layers, combinations = sum(len(part.entries) for part in parts), sum(len(part.wishes) for part in parts)
        made = f"{count_of(layers, 'layer')}, {count_of(combinations, 'combination')}, {launches} launches"
        raise UsageError(f"this sweep makes {attempts} attempts ({made}); at most {ATTEMPTS_MAX}")


def _named(sweep: SweepFile, catalogue: Catalogue) -> list[str]:
    """Return every layer that a sweep has, whether it was asked for or not."""
    written = [*sweep.layers, *(one for entry in sweep.patterns for one in entry.layers or ())]
    if not written:
        return [info.name for info in catalogue.usual]
    return [one.layer for entry in written for one in _expanded(entry, catalogue)]


def _add_twins(making: PlanDraft, catalogue: Catalogue) -> tuple[str, ...]:
    """Plan a second series of some layers, of all their planned points; return what a reader should know of it."""
    sweep = making.sweep
    planned = [
        (key.subject, sum(one.runs for one in draft.points.values()) if _opens(key, catalogue, making.site) else 0)
        for key, draft in making.drafts.items()
    ]
    twins, said = twins_of(sweep, planned, _named(sweep, catalogue), lambda text: seeded(sweep.seed, "twin", text))
    for key, draft in list(making.drafts.items()):
        if twin_of(key.subject) in twins:
            subject = key.subject.model_copy(update={"twin": True})
            twin = LaunchKey(subject=subject, launcher=key.launcher, cast=key.cast)
            points = {Point(subject=subject, workload=one.workload).point_id: one for one in draft.points.values()}
            making.drafts[twin] = LaunchDraft(twin, points)
    return said


def _opens(key: LaunchKey, catalogue: Catalogue, site: PlanSite) -> bool:
    """Tell whether a layer can be opened, as far as this machine can tell: not what mpirun starts, nor other hosts."""
    known = catalogue.get(key.subject.layer).description
    if known is None or not site.here or key.launcher != "direct":
        return True
    return isinstance(known.contexts.get((key.subject.place, key.subject.wait)), Context)


def _add_floors(making: PlanDraft, wishes: Sequence[WantedPoint]) -> None:
    """Take in the machine's own limits wherever a layer is measured."""
    used = {(key.subject.place, key.subject.wait) for key in making.drafts}
    for found in floor_wanted((item for item in wishes if (item.place, item.wait) in used), making.workloads):
        floor, item = found.floor, found.wanted
        subject = Subject(kind="floor", layer=floor.name, place=item.place, wait=item.wait)
        cast = making.cast(item)
        sleeper = floor.name if "block" in floor.waits else ""
        why = (
            refuse_place(making.site, item.place)
            or refuse_cast(making.site, item.place, item.wait, cast, sleeper=sleeper)
            or refuse_floor(floor, item, cast, making.workloads, making.site)
        )
        making.place(LaunchKey(subject=subject, cast=cast), item.workload, why, found.beside)


def _parts(
    sweep: SweepFile, catalogue: Catalogue, workloads: Workloads, only: Sequence[str]
) -> tuple[list[_Part], list[str]]:
    """Return what is to be measured over which layers, and what a reader should know of what is left out."""
    parts: list[_Part] = []
    notices: list[str] = []
    for part in by_layers(sweep):
        wishes = wanted(part, workloads)
        entries, said = _entries(part, catalogue, wishes, only)
        notices += said
        if entries:
            parts.append(_Part(part, entries, wishes))
        elif len(part.patterns) < len(sweep.patterns):
            names = ", ".join(dict.fromkeys(entry.layer for entry in part.layers))
            notices.append(f"what this sweep measures over {names} alone is left out: not among the layers asked for")
    if not parts:
        raise NothingSelectedError(f"none of the layers {', '.join(only)} is in this sweep")
    return parts, list(dict.fromkeys(notices))


def _entries(
    sweep: SweepFile, catalogue: Catalogue, wishes: Sequence[WantedPoint], only: Sequence[str]
) -> tuple[list[LayerEntry], list[str]]:
    """Return the layers to plan and what a reader should know of those left out."""
    usual = [info.name for info in catalogue.usual]
    chosen = select(catalogue, only) if only else catalogue.names() if sweep.layers else usual
    notices = [
        f"{one.layer} is no layer: no provider of its library was added (cadge provider --help)"
        for one in sweep.layers
        if AT in one.layer and "*" in one.layer and not catalogue.matching(one.layer)
    ]
    for entry in sweep.layers:
        for shim in entry.shims:
            catalogue.check_shim(shim)
    written = {
        (one.layer, one.shims, tuple(sorted(one.settings.items()))): one
        for entry in sweep.layers
        for one in _expanded(entry, catalogue)
    }
    for entry in written.values():
        check_variables(catalogue.get(entry.layer).file, entry.settings)
        check_link(entry.settings)
        check_values(entry.settings)
    entries = [entry for entry in written.values() if entry.layer in chosen]
    if not sweep.layers:
        places = {item.place for item in wishes}
        left_out = set() if only else set(select(catalogue, sweep.without))
        elsewhere: dict[str, list[str]] = {}
        for name in chosen:
            if name in left_out:
                continue
            if only or places & set(catalogue.get(name).file.places):
                entries.append(LayerEntry(layer=name))
            else:
                elsewhere.setdefault(runs_only(catalogue.get(name).file.places), []).append(name)
        notices += _left_out_notices([name for name in chosen if name in left_out], elsewhere)
    return entries, notices


def _left_out_notices(without: Sequence[str], elsewhere: Mapping[str, Sequence[str]]) -> list[str]:
    """Say in one line which layers a sweep leaves out, and where those run that run elsewhere alone."""
    parts = [", ".join(without)] if without else []
    parts += [f"{', '.join(names)} ({where})" for where, names in elsewhere.items()]
    measures = "; --layers all measures every layer" if without else ""
    return [f"left out of this sweep: {'; '.join(parts)}{measures}"] if parts else []


def _expanded(entry: LayerEntry, catalogue: Catalogue) -> list[LayerEntry]:
    """Return an entry for each layer that it names: one, or with `*` every layer whose name matches."""
    if "*" not in entry.layer:
        catalogue.get(entry.layer)
        return [entry]
    matching = catalogue.matching(entry.layer)
    if not matching and AT in entry.layer:
        return []  # no provider was added
    if not matching:
        raise UsageError(f"no layer matches {entry.layer!r}; there are: {', '.join(catalogue.names())}")
    return [entry.model_copy(update={"layer": name}) for name in matching]


def _seal(
    making: PlanDraft,
    points: list[PlanPoint],
    launches: list[PlanLaunch],
    blocks: list[PlanBlock],
    notices: list[str],
    trace: TraceFacts | None,
) -> Plan:
    site, sweep = making.site, making.sweep
    duration_by_id = {point.point_id: point.duration_ms for point in points}
    attempts = sum(len(launch.point_ids) for launch in launches)
    measure_ms = sum(duration_by_id[item] for launch in launches for item in launch.point_ids)
    patterns = dict.fromkeys(point.workload.pattern for point in points)
    floors = dict.fromkeys(point.subject.layer for point in points if point.subject.kind == "floor")
    estimate = PlanEstimate(
        wall_s=round(
            (
                site.times.around_ms(sweep.epochs)
                + report_ms(attempts)
                + sum(b.wall_ms for b in blocks)
                + sweep.rounds * making.round_beside_ms
            )
            / 1000,
            1,
        ),
        disk_bytes=len(launches) * RECORD_BYTES + attempts * ATTEMPT_BYTES + (trace.content_bytes if trace else 0),
        measure_s=round(measure_ms / 1000, 1),
        ports=site.ports,
        basis=site.times.basis,
    )
    return Plan(
        schema_=Plan.schema_id(),
        plan_hash="0" * 64,
        sweep=sweep.to_object(),
        seed=sweep.seed,
        points=tuple(points),
        launches=tuple(launches),
        blocks=tuple(blocks),
        patterns={name: making.workloads.file(name) for name in patterns},
        floors={name: making.workloads.floors[name] for name in floors},
        trace=trace,
        estimate=estimate,
        notices=tuple(notices),
    )


def _nothing(refused: Iterable[PlanPoint]) -> str:
    """Say why nothing is left of a plan, each reason once."""
    by_reason: dict[str | None, dict[str, None]] = {}
    for point in refused:
        subject = point.subject
        by_reason.setdefault(point.reason, {})[f"{subject.layer} {subject.place}/{subject.wait}"] = None
    reasons = [f"{', '.join(list(of)[:4])}{', ...' if len(of) > 4 else ''}: {why}" for why, of in by_reason.items()]
    more = f"; and {len(reasons) - 4} more" if len(reasons) > 4 else ""
    return f"nothing can be measured: {'; '.join(reasons[:4])}{more}"
