# SPDX-License-Identifier: BSD-3-Clause
"""A plan while it is made: its points, launch by launch, and the blocks and launches that they become."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from cadge_harness.plan.cast import PAIR, Cast, cast_of, contexts_of, hosts_of
from cadge_harness.plan.catalogue import Refusal
from cadge_harness.plan.link import RATE
from cadge_harness.plan.order import in_turns, seeded, shuffled
from cadge_harness.plan.site import PlanSite
from cadge_harness.plan.sweep import FocusOn, WantedPoint
from cadge_harness.plan.timemodel import TimeModel, launch_deadline_ms, touched_bytes
from cadge_results import PatternFile, PlanBlock, PlanLaunch, PlanPoint, Point, Subject, SweepFile, Workload, Workloads
from cadge_results.formats.base import Launcher, Place, digest


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
class PointDraft:
    """One point of a draft: its workload, its wish of time, and what surrounds the measured loop."""

    workload: Workload
    focus_ms: int | None
    around_ms: int
    runs: bool = True
    """False: the driver refuses it, as far as is known, and no time is planned for it."""


@dataclass(slots=True)
class LaunchDraft:
    """Points of one launch key while durations are not yet known."""

    key: LaunchKey
    points: dict[str, PointDraft] = field(default_factory=dict)

    def launch_ms(self, times: TimeModel) -> int:
        """Return what surrounds all points of a launch."""
        key = self.key
        return times.launch_ms(key.subject.layer, key.launcher, len(self.points), contexts_of(key.cast))


@dataclass(slots=True)
class PlanDraft:
    """A plan while it is made."""

    sweep: SweepFile
    site: PlanSite
    workloads: Workloads
    focuses: list[FocusOn]
    drafts: dict[LaunchKey, LaunchDraft] = field(default_factory=dict)
    refused: dict[str, PlanPoint] = field(default_factory=dict)
    beside_ms: Callable[[Subject, Workload], int] = lambda _subject, _workload: 0
    """What else is measured beside a point in each round takes."""

    @property
    def round_beside_ms(self) -> int:
        """What is measured beside all points takes in a round."""
        return sum(
            self.beside_ms(key.subject, item.workload)
            for key, draft in self.drafts.items()
            for item in draft.points.values()
            if item.runs
        )

    def pattern(self, workload: Workload) -> PatternFile:
        """Return the file of a workload's pattern or form."""
        return self.workloads.file(workload.pattern)

    def cast(self, wanted: WantedPoint, hosts: Sequence[str] | None = None) -> Cast:
        """Return the endpoints that a workload asks for at a place; on these hosts, or all of the site."""
        return cast_of(self.pattern(wanted.workload), wanted.workload, wanted.place, hosts or self.site.host_names)

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
        runs = name not in self.site.times.refused
        item = PointDraft(workload=workload, focus_ms=focus_ms, around_ms=around_ms, runs=runs)
        self.drafts.setdefault(key, LaunchDraft(key)).points[name] = item

    def _focus_ms(self, focused: Iterable[WantedPoint]) -> int | None:
        """Return the duration of the first focus that matches one of some workloads, or None."""
        found = list(focused)
        return next((focus.duration_ms for focus in self.focuses if any(map(focus.matches, found))), None)


@dataclass(frozen=True, slots=True)
class LinkPart:
    """Launches that share the hosts and the rate of their link; within one host there is no rate.

    Of launches over pairs of hosts, those that share their first host, which leads the block.
    """

    place: Place
    hosts: tuple[str, ...]
    rate: str
    keys: list[LaunchKey]

    @property
    def link(self) -> tuple[Place, tuple[str, ...]]:
        """Where its link is."""
        return self.place, self.hosts


def parts_by_link(making: PlanDraft) -> Iterator[tuple[LinkPart, range]]:
    """Yield what makes a block, epoch by epoch in the sweep's order: launches, and the rounds that they are made in."""
    parts: dict[tuple[Place, tuple[str, ...], str], LinkPart] = {}
    with_first: dict[str, set[str]] = {}
    for key in making.drafts:
        if key.subject.setting(PAIR):
            first, other = hosts_of(key.cast)
            with_first.setdefault(first, set()).add(other)
    for key in making.drafts:
        used = hosts_of(key.cast)
        hosts = tuple(name for name in making.site.host_names if name in used)
        if key.subject.setting(PAIR):
            others = with_first[used[0]]
            hosts = (used[0], *(name for name in making.site.host_names if name in others))
        rate = key.subject.setting(RATE) or ""
        place = key.subject.place
        parts.setdefault((place, hosts, rate), LinkPart(place, hosts, rate, [])).keys.append(key)
    each, seed = making.sweep.launches, making.sweep.seed
    for epoch in range(making.sweep.epochs):
        turns = range(epoch * each, (epoch + 1) * each)
        yield from in_turns(parts.values(), lambda part: part.link, lambda part: part.rate, seed, turns)


def launches_of(making: PlanDraft, durations: dict[str, int]) -> tuple[list[PlanBlock], list[PlanLaunch]]:
    """Return blocks with their launches."""
    blocks: list[PlanBlock] = []
    launches: list[PlanLaunch] = []
    for number, (part, turns) in enumerate(parts_by_link(making), start=1):
        block_id = f"b{number}"
        here: list[PlanLaunch] = []
        for turn in turns:
            for key in shuffled(part.keys, lambda item: item.identity, making.sweep.seed, block_id, turn):
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
    making: PlanDraft, draft: LaunchDraft, durations: dict[str, int], block_id: str, turn: int, number: int
) -> PlanLaunch:
    key, seed = draft.key, making.sweep.seed
    ids = shuffled(list(draft.points), str, seed, key.identity, turn)
    counting_ms = round(making.site.times.counting_ms) if turn == 0 else 0
    each_ms = {
        name: round(durations[name] * making.pattern(item.workload).takes) + item.around_ms + counting_ms
        for name, item in draft.points.items()
    }
    around_ms = draft.launch_ms(making.site.times)
    wall_ms = around_ms + sum(each_ms[name] for name, item in draft.points.items() if item.runs)
    longest_ms = around_ms + sum(each_ms.values())
    return PlanLaunch(
        launch_id=f"{block_id}-{number:04d}-{digest([key.identity, turn])[:8]}",
        block=block_id,
        subject=key.subject,
        launcher=key.launcher,
        endpoints=key.cast,
        round=turn,
        epoch=turn // making.sweep.launches,
        seed=seeded(seed, "launch", key.identity, turn) >> 1,
        point_ids=tuple(ids),
        wall_ms=wall_ms,
        deadline_ms=launch_deadline_ms(longest_ms, key.launcher, contexts_of(key.cast)),
    )
