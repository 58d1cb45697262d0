# SPDX-License-Identifier: BSD-3-Clause
"""Planning: from a sweep, the layers there are and a testbed to every point, launch and block.

Pure: no clock, no network, no file. The same input gives the same plan, and ids depend on what is measured alone.
"""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from cadge_harness.errors import NothingSelectedError, UsageError
from cadge_harness.plan.budget import Demand, spend, spoken
from cadge_harness.plan.cast import Cast, cast_of, contexts_of, hosts_of
from cadge_harness.plan.catalogue import Catalogue, Refusal, select
from cadge_harness.plan.floors import floor_wanted, refuse_floor
from cadge_harness.plan.link import PREFIX as LINK
from cadge_harness.plan.link import RATE, check_link, refuse_rate
from cadge_harness.plan.looks import most
from cadge_harness.plan.order import in_turns
from cadge_harness.plan.order import seeded as _random
from cadge_harness.plan.order import shuffled as _shuffled
from cadge_harness.plan.refuse import check_variables, refuse_point
from cadge_harness.plan.replay import refuse_replay, with_trace
from cadge_harness.plan.site import PlanSite, refuse_cast, refuse_place
from cadge_harness.plan.sizes import Dropped, layers_left_out, left_out, size_of
from cadge_harness.plan.sweep import FocusOn, WantedPoint, by_layers, focuses, idle_values, wanted
from cadge_harness.plan.timemodel import (
    ATTEMPT_BYTES,
    COUNTING_MS,
    RECORD_BYTES,
    TimeModel,
    launch_deadline_ms,
    report_ms,
    touched_bytes,
)
from cadge_harness.plan.twin import thing_of, twins_of
from cadge_harness.words import count_of, runs_only
from cadge_results import (
    PatternFile,
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
from cadge_results.formats.base import Launcher, Place, digest
from cadge_results.formats.plan import PlanEstimate
from cadge_results.formats.sweep import LayerEntry
from cadge_results.plugins.provider import AT

ATTEMPTS_MAX = 1_000_000
"""Of a campaign: it would take days, and a plan of that size minutes."""


@dataclass(frozen=True, kw_only=True)
class LaunchKey:
    """What the points of a launch share: the subject, how it is started, and the cast that its patterns ask for."""

    subject: Subject
    launcher: Launcher = "direct"
    cast: Cast

    @cached_property
    def identity(self) -> str:
        """A hash that depends on what is launched alone."""
        return digest([self.subject.model_dump(mode="json"), [one.model_dump(mode="json") for one in self.cast]])


@dataclass(frozen=True, slots=True, kw_only=True)
class _Item:
    """One point of a draft: its workload, its wish of time, and what surrounds the measured loop."""

    workload: Workload
    focus_ms: int | None
    around_ms: int


@dataclass(frozen=True, slots=True)
class _Part:
    """A part of a sweep whose patterns are all measured over the same layers."""

    sweep: SweepFile
    entries: list[LayerEntry]
    wishes: list[WantedPoint]


@dataclass(slots=True)
class _Draft:
    """Points of one launch key while durations are not yet known."""

    key: LaunchKey
    points: dict[str, _Item] = field(default_factory=dict)

    def launch_ms(self, times: TimeModel) -> int:
        """Return what surrounds all points of a launch."""
        key = self.key
        return times.launch_ms(key.subject.layer, key.launcher, len(self.points), contexts_of(key.cast))


@dataclass(slots=True)
class _Making:
    """A plan while it is made."""

    sweep: SweepFile
    site: PlanSite
    workloads: Workloads
    focuses: list[FocusOn]
    drafts: dict[LaunchKey, _Draft] = field(default_factory=dict)
    refused: dict[str, PlanPoint] = field(default_factory=dict)

    def pattern(self, workload: Workload) -> PatternFile:
        """Return the file of a workload's pattern or form."""
        return self.workloads.file(workload.pattern)

    def cast(self, wanted: WantedPoint) -> Cast:
        """Return the endpoints that a workload asks for at a place."""
        return cast_of(self.pattern(wanted.workload), wanted.workload, wanted.place, self.site.host_names)

    def place(self, key: LaunchKey, workload: Workload, why: Refusal | None, focused: Iterable[WantedPoint]) -> None:
        """Take a point in, or refuse it. `focused`: the workloads whose focus it shares."""
        focus_ms = self._focus_ms(focused)
        name = Point(subject=key.subject, workload=workload).point_id
        if why is not None:
            self.refused[name] = PlanPoint(
                point_id=name,
                subject=key.subject,
                workload=workload,
                duration_ms=focus_ms or self.sweep.duration.default,
                state="refused",
                reason=why.reason,
                reason_code=why.code,
            )
            return
        kind = key.subject.kind
        touched = touched_bytes(self.pattern(workload), workload, kind)
        around_ms = self.site.times.point_around_ms(touched, kind)
        item = _Item(workload=workload, focus_ms=focus_ms, around_ms=around_ms)
        self.drafts.setdefault(key, _Draft(key)).points[name] = item

    def _focus_ms(self, focused: Iterable[WantedPoint]) -> int | None:
        """Return the duration of the first focus that matches one of some workloads, or None."""
        found = list(focused)
        return next((focus.duration_ms for focus in self.focuses if any(map(focus.matches, found))), None)


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
) -> Plan:
    """Plan a sweep; `only` narrows it to some layers, `trace` is what some of its points may replay.

    all_sizes: no size is dropped for the budget, since they were asked for. add_rounds: where the budget has time left
    in the end, there may be more launches than the sweep has.

    Raises UsageError (unknown layer or shim, values that a pattern does not have, budget too small),
    NothingSelectedError (nothing could be measured).
    """
    wanted(sweep, workloads)  # as a whole it fits the patterns
    parts, notices = _parts(sweep, catalogue, workloads, only)
    _check_attempts(parts, sweep.looks[-1] if sweep.looks else sweep.launches)
    making = _Making(sweep, site, workloads, focuses(sweep, workloads))
    for part, entry in [(one, entry) for one in parts for entry in one.entries]:
        info = catalogue.get(entry.layer)
        for wish in _wishes_of(entry, part.sweep, workloads, part.wishes):
            item = with_trace(wish, making.pattern(wish.workload), trace)
            subject = Subject(
                kind="layer",
                layer=entry.layer,
                shims=entry.shims,
                settings=tuple(sorted(entry.settings.items())),
                place=item.place,
                wait=item.wait,
            )
            cast = making.cast(item)
            pattern = making.pattern(item.workload)
            why = (
                refuse_replay(item, pattern, trace)
                or refuse_rate(info, entry.settings, item, site)
                or refuse_point(info, item, pattern, cast, site, set_otherwise=_set_otherwise(entry))
            )
            making.place(LaunchKey(subject=subject, launcher=info.file.launcher, cast=cast), item.workload, why, [item])
    if not making.drafts:
        raise NothingSelectedError(_nothing(making.refused.values()))
    notices += _add_twins(making, _named(sweep, catalogue))
    if sweep.floors:
        _add_floors(making, list(dict.fromkeys(item for part in parts for item in part.wishes)))
    notices += _leave_out(making, may_drop_layers=not only, may_drop_sizes=not all_sizes)
    notices += _baseline_missing(making)
    notices += idle_values(sweep, workloads)
    durations, shortened = _durations(making)
    blocks, launches = _launches(making, durations)
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
    if sweep.looks or (add_rounds and sweep.budget is not None):
        sealed = sealed.model_copy(update={"later": most(sealed)})
    plan = _with_layers(sealed, catalogue)
    return plan.model_copy(update={"plan_hash": plan.expected_hash()})


def _with_layers(plan: Plan, catalogue: Catalogue) -> Plan:
    """Return a plan that says whose builds of their libraries serve its layers, where they were chosen.

    And what is known of layers beside plain programs over the library that the build found by itself.
    """
    names = {point.subject.layer for point in plan.points}
    used = [info for info in catalogue.layers if info.name in names]
    providers = {info.name: info.provider for info in used if info.provider}
    beside = {info.name: info.file.beside_native for info in used if info.file.beside_native and not info.provider}
    if not providers and not beside:
        return plan
    return plan.model_copy(update={"providers": providers, "beside_native": beside})


def _baseline_missing(making: _Making) -> list[str]:
    """Return what a reader should know where nothing is planned of the layer that others are judged against."""
    label = making.sweep.baseline
    if label is None or any(key.subject.label == label for key in making.drafts):
        return []
    return [f"{label}, which this sweep judges layers against, is not measured: none is called faster or slower"]


def _set_otherwise(entry: LayerEntry) -> bool:
    """Tell whether a layer may grant something else than it does without settings; the link's are not its own."""
    return any(not name.startswith(LINK) for name in entry.settings)


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


def _add_twins(making: _Making, in_sweep: Sequence[str]) -> tuple[str, ...]:
    """Plan a second series of some layers, of all their planned points; return what a reader should know of it."""
    sweep = making.sweep
    planned = [(key.subject, len(draft.points)) for key, draft in making.drafts.items()]
    twins, said = twins_of(sweep, planned, in_sweep, lambda text: _random(sweep.seed, "twin", text))
    for key, draft in list(making.drafts.items()):
        if thing_of(key.subject) in twins:
            subject = key.subject.model_copy(update={"twin": True})
            twin = LaunchKey(subject=subject, launcher=key.launcher, cast=key.cast)
            points = {Point(subject=subject, workload=one.workload).point_id: one for one in draft.points.values()}
            making.drafts[twin] = _Draft(twin, points)
    return said


def _add_floors(making: _Making, wishes: Sequence[WantedPoint]) -> None:
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
        notices += _left_out_said([name for name in chosen if name in left_out], elsewhere)
    return entries, notices


def _left_out_said(without: Sequence[str], elsewhere: Mapping[str, Sequence[str]]) -> list[str]:
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


def _fixed_ms(making: _Making, times: TimeModel) -> int:
    """Return what everything but measuring takes."""
    launches = making.sweep.launches
    fixed_ms = round(times.campaign_ms)
    attempts = 0
    for draft in making.drafts.values():
        kind = draft.key.subject.kind
        attempts += launches * len(draft.points)
        fixed_ms += launches * draft.launch_ms(times)
        for item in draft.points.values():
            touched = touched_bytes(making.pattern(item.workload), item.workload, kind)
            fixed_ms += launches * times.point_around_ms(touched, kind) + COUNTING_MS
    blocks = sum(1 for _ in _parts_by_link(making))
    return fixed_ms + blocks * round(times.block_ms) + report_ms(attempts)


def _leave_out(making: _Making, *, may_drop_layers: bool, may_drop_sizes: bool) -> list[str]:
    """Take out what the budget has no time for (sizes.py); return what a reader should know of it."""
    sweep = making.sweep
    if sweep.budget is None:
        return []
    over_ms = _over_ms(making, sweep.duration.default)
    enough_ms = sweep.budget + over_ms
    both_ms: Counter[int] = Counter()
    untouched_ms: Counter[int] = Counter()
    in_focus: set[int] = set()
    for item in (one for draft in making.drafts.values() for one in draft.points.values()):
        pattern = making.pattern(item.workload)
        size = size_of(pattern, item.workload)
        if size is None:
            continue
        cost_ms = sweep.launches * (round(_duration_ms(making, item, sweep.duration.default)) + item.around_ms)
        both_ms[size] += cost_ms
        untouched_ms[size] += 0 if pattern.does_rank(item.workload) else cost_ms
        in_focus |= {size} if item.focus_ms else set()
    sizes = left_out(both_ms, in_focus if may_drop_sizes else both_ms, over_ms)
    over_ms -= sum(both_ms[size] for size in sizes)
    ranks = any(untouched_ms[size] < both_ms[size] for size in both_ms)
    rest_ms = {size: ms for size, ms in untouched_ms.items() if ms and size not in sizes and ranks}
    untouched = left_out(rest_ms, in_focus, over_ms, keep=0)
    _keep(making, lambda _, workload: _stays(making.pattern(workload), workload, sizes, untouched))
    layers = _drop_layers(making) if may_drop_layers else ()
    if not sizes and not untouched and not layers:
        return []
    dropped = Dropped(sizes=sizes, untouched=untouched, layers=layers)
    return [dropped.notice(spoken(sweep.budget), f"{-(-enough_ms // 60_000)}min")]


def _stays(pattern: PatternFile, workload: Workload, sizes: Collection[int], untouched: Collection[int]) -> bool:
    size = size_of(pattern, workload)
    return size not in sizes and (size not in untouched or pattern.does_rank(workload))


def _drop_layers(making: _Making) -> tuple[str, ...]:
    """Take out the layers for which there is no time even where points are as short as the sweep lets them be."""
    sweep = making.sweep
    least_ms = sweep.duration.least or sweep.duration.default
    cost_ms: Counter[str] = Counter()
    spared = {str(sweep.baseline).partition(" ")[0]}
    for key, draft in making.drafts.items():
        if key.subject.kind != "layer":
            continue
        points_ms = sum(_duration_ms(making, item, least_ms) + item.around_ms for item in draft.points.values())
        cost_ms[key.subject.layer] += sweep.launches * round(draft.launch_ms(making.site.times) + points_ms)
        spared |= {key.subject.layer} if key.subject.twin else set()
    layers = layers_left_out(cost_ms, spared, _over_ms(making, least_ms))
    _keep(making, lambda subject, _: subject.kind != "layer" or subject.layer not in layers)
    return layers


def _over_ms(making: _Making, each_ms: int) -> int:
    """Return how much longer than the budget all takes where points out of focus take so long; negative: room."""
    measuring_ms = sum(
        making.sweep.launches * round(_duration_ms(making, item, each_ms))
        for draft in making.drafts.values()
        for item in draft.points.values()
    )
    return _fixed_ms(making, making.site.times) + measuring_ms - (making.sweep.budget or 0)


def _duration_ms(making: _Making, item: _Item, each_ms: int) -> float:
    return (item.focus_ms or each_ms) * making.pattern(item.workload).takes


def _keep(making: _Making, stays: Callable[[Subject, Workload], bool]) -> None:
    """Take out all other points."""
    for key, draft in making.drafts.items():
        draft.points = {name: item for name, item in draft.points.items() if stays(key.subject, item.workload)}
    making.drafts = {key: draft for key, draft in making.drafts.items() if draft.points}
    making.refused = {name: one for name, one in making.refused.items() if stays(one.subject, one.workload)}


def _durations(making: _Making) -> tuple[dict[str, int], str | None]:
    sweep = making.sweep
    demands = [
        Demand(
            point_id=name,
            attempts=sweep.launches,
            duration_ms=item.focus_ms or sweep.duration.default,
            focus=item.focus_ms is not None,
            layer=draft.key.subject.layer,
            around_ms=item.around_ms,
            takes=making.pattern(item.workload).takes,
        )
        for draft in making.drafts.values()
        for name, item in draft.points.items()
    ]
    least_ms = sweep.duration.least or sweep.duration.default

    def within(budget_ms: int | None) -> tuple[dict[str, int], str | None]:
        spent, note = spend(
            demands,
            fixed_ms=_fixed_ms(making, making.site.times),
            idle_fixed_ms=_fixed_ms(making, TimeModel()),
            budget_ms=budget_ms,
            least_ms=least_ms,
        )
        return dict(spent), note

    if sweep.looks and sweep.budget is not None:
        # half of it is left to later looks, but points are not shortened below what the sweep asks for because of that
        with contextlib.suppress(UsageError):
            spent, _ = within(sweep.budget // 2)
            if all(spent[one.point_id] >= min(one.duration_ms, least_ms) for one in demands):
                return spent, f"the first look has half of the budget of {spoken(sweep.budget)}, others have the rest"
    return within(sweep.budget)


@dataclass(frozen=True, slots=True)
class _LinkPart:
    """Launches that share the hosts and the rate of their link; within one host there is no rate."""

    place: Place
    hosts: tuple[str, ...]
    rate: str
    keys: list[LaunchKey]

    @property
    def link(self) -> tuple[Place, tuple[str, ...]]:
        return self.place, self.hosts


def _parts_by_link(making: _Making) -> Iterator[tuple[_LinkPart, range]]:
    """Yield what makes a block, in the sweep's order: launches, and the rounds in which they are made."""
    parts: dict[tuple[Place, tuple[str, ...], str], _LinkPart] = {}
    for key in making.drafts:
        used = hosts_of(key.cast)
        hosts = tuple(name for name in making.site.host_names if name in used)
        rate = key.subject.setting(RATE) or ""
        place = key.subject.place
        parts.setdefault((place, hosts, rate), _LinkPart(place, hosts, rate, [])).keys.append(key)
    turns = range(making.sweep.launches)
    return in_turns(parts.values(), lambda part: part.link, lambda part: part.rate, making.sweep.seed, turns)


def _launches(making: _Making, durations: dict[str, int]) -> tuple[list[PlanBlock], list[PlanLaunch]]:
    """Return blocks with their launches."""
    blocks: list[PlanBlock] = []
    launches: list[PlanLaunch] = []
    for number, (part, turns) in enumerate(_parts_by_link(making), start=1):
        block_id = f"b{number}"
        here: list[PlanLaunch] = []
        for turn in turns:
            for key in _shuffled(part.keys, lambda item: item.identity, making.sweep.seed, block_id, turn):
                here.append(_launch(making, making.drafts[key], durations, block_id, turn, len(here)))
        launches.extend(here)
        blocks.append(
            PlanBlock(
                block_id=block_id,
                place=part.place,
                hosts=part.hosts,
                launch_ids=tuple(launch.launch_id for launch in here),
                wall_ms=round(making.site.times.block_ms) + sum(launch.wall_ms for launch in here),
            )
        )
    return blocks, launches


def _launch(
    making: _Making, draft: _Draft, durations: dict[str, int], block_id: str, turn: int, number: int
) -> PlanLaunch:
    key, seed = draft.key, making.sweep.seed
    ids = _shuffled(list(draft.points), str, seed, key.identity, turn)
    wall_ms = draft.launch_ms(making.site.times) + sum(
        round(durations[item] * making.pattern(draft.points[item].workload).takes) + draft.points[item].around_ms
        for item in ids
    )
    wall_ms += COUNTING_MS * len(ids) if turn == 0 else 0
    return PlanLaunch(
        launch_id=f"{block_id}-{number:04d}-{digest([key.identity, turn])[:8]}",
        block=block_id,
        subject=key.subject,
        launcher=key.launcher,
        endpoints=key.cast,
        round=turn,
        seed=_random(seed, "launch", key.identity, turn) >> 1,
        point_ids=tuple(ids),
        wall_ms=wall_ms,
        deadline_ms=launch_deadline_ms(wall_ms, key.launcher, contexts_of(key.cast)),
    )


def _seal(
    making: _Making,
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
        wall_s=round((site.times.campaign_ms + report_ms(attempts) + sum(b.wall_ms for b in blocks)) / 1000, 1),
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
    reasons = dict.fromkeys(
        f"{point.subject.layer} {point.subject.place}/{point.subject.wait}: {point.reason}" for point in refused
    )
    listed = "; ".join(list(reasons)[:4])
    more = f"; and {len(reasons) - 4} more" if len(reasons) > 4 else ""
    return f"nothing can be measured: {listed}{more}"
