# SPDX-License-Identifier: BSD-3-Clause
"""A stored campaign, sorted into cells: what each series gave in each case, launch by launch.

A *series* is one layer as it was opened (its shims and settings included) or one floor; a *case* is a place, a wait
mode and a workload. Their product is a *cell*; it holds one sample a valid launch and an account of all planned
attempts, so that nothing planned can drop out of sight. Times are integer nanoseconds, sizes bytes.
"""

from __future__ import annotations

import marshal
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, cached_property, partial

from cadge_analysis import messages
from cadge_analysis.errors import NoDataError
from cadge_analysis.stats.attempt_columns import (
    Around,
    AttemptColumns,
    PackedCounts,
    PackedMapping,
    PackedUses,
    RoleUse,
    attempt_columns,
)
from cadge_analysis.stats.disturbance import disturbed
from cadge_analysis.stats.inference.rounds import RoundKey
from cadge_analysis.stats.natives import NativeRuns, runs_of
from cadge_results import (
    Attempt,
    Campaign,
    CampaignMeta,
    FormatError,
    LaunchRecord,
    NodeFacts,
    PatternFile,
    Plan,
    PlanLaunch,
    PlanPoint,
    PointOutcome,
    Reason,
    Subject,
    Workload,
)
from cadge_results.formats.base import SharedParts
from cadge_results.formats.histogram import NOTHING, Histogram, merge
from cadge_results.formats.imported import ImportedFile
from cadge_results.formats.point import AGAIN, Value, label_of
from cadge_results.plugins.catalogue import in_order
from cadge_results.plugins.parameter import Quantity
from cadge_results.store.looks import LooksState, looks_state
from cadge_results.store.outcomes import launch_outcomes
from cadge_results.uncollected import uncollected

say = partial(messages.say, "stats")

STATES = ("valid", "unsound", "failed", "refused", "missing")

PlannedRounds = tuple[tuple[int, ...], frozenset[int]]
"""The rounds that a point was planned in, in order, and those that were run."""


@dataclass(frozen=True, slots=True, order=True)
class Series:
    """One layer as it was opened, or one floor."""

    kind: str
    layer: str
    shims: tuple[str, ...]
    settings: tuple[tuple[str, str], ...]

    @property
    def label(self) -> str:
        """Name for people: the layer, with shims and settings where there are any."""
        return label_of(self.layer, self.shims, self.settings)


Family = tuple[tuple[str, Value], ...]
"""The values, by name, that all points of a figure share: those of every parameter but the axis and what follows."""


@dataclass(frozen=True)
class Case:
    """Where and how: place, wait mode and workload; `file` is what its pattern says of itself."""

    place: str
    wait: str
    workload: Workload
    file: PatternFile = field(compare=False, repr=False)

    @property
    def pattern(self) -> str:
        """The pattern's name."""
        return self.workload.pattern

    @property
    def size(self) -> int:
        """The value of the pattern's axis."""
        return self.workload.integer(self.file.axis)

    @cached_property
    def sort_key(self) -> tuple[str, str, str, tuple[Value, ...]]:
        """Order of rows: small before large, and what ranks before what stands beside it."""
        values, parameters = self.workload.values, self.file.parameters
        # numbers that rank go before all others, words before all words
        ordered = ((values[name], parameters[name]) for name in self.file.reading_order)
        key = tuple(v if one.ranks != v else -1 if isinstance(v, int) else "" for v, one in ordered)
        return self.place, self.wait, self.pattern, key

    @cached_property
    def does_rank(self) -> bool:
        """True where layers are ranked by it; else it stands beside one that does."""
        return self.file.does_rank(self.workload)

    @cached_property
    def on_diagonal(self) -> bool:
        """True where every parameter that follows another does: such points make figures."""
        return all(self.file.is_usual(name, self.workload) for name in self._followers)

    @cached_property
    def family(self) -> Family:
        """What it shares with the other points of a figure."""
        apart = {self.file.axis, *self._followers}
        return tuple((name, self.workload[name]) for name in self.file.parameters if name not in apart)

    @property
    def _followers(self) -> tuple[str, ...]:
        return tuple(name for name, one in self.file.parameters.items() if one.follows is not None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Measurement:
    """What one launch measured of one quantity: a histogram of all its endpoints, or one amount or number each."""

    counts: Histogram = NOTHING
    by_end: tuple[Histogram, ...] = ()
    """Each endpoint's own histogram, where several have one."""
    amounts: tuple[tuple[int, int], ...] = ()
    """(amount, ns), one an endpoint."""
    numbers: tuple[float, ...] = ()
    """One an endpoint; of a report's launches, whose samples are not at hand, the launch's own number of any kind."""
    p99_ns: float | None = None
    """The launch's own p99, where the histogram is not at hand."""


class PackedMeasures(PackedMapping[Measurement]):
    """What one launch measured, by quantity."""

    __slots__ = ()

    def __init__(self, measures: Mapping[str, Measurement]) -> None:
        """Pack what was measured."""
        self._packed = marshal.dumps(
            [
                (name, [one.packed for one in (of.counts, *of.by_end) if one], of.amounts, of.numbers)
                for name, of in measures.items()
            ]
        )

    def __getitem__(self, name: str) -> Measurement:
        """Return what was measured of a quantity, without making objects of the others."""
        for other, *of in marshal.loads(self._packed):  # noqa: S302 - what this object packed
            if other == name:
                return _measured_of(*of)
        raise KeyError(name)

    def _unpacked(self) -> dict[str, Measurement]:
        every = marshal.loads(self._packed)  # noqa: S302 - what this object packed
        return {name: _measured_of(*of) for name, *of in every}


def _measured_of(
    packed: Sequence[tuple[int, int, int, bytes]], amounts: tuple[tuple[int, int], ...], numbers: tuple[float, ...]
) -> Measurement:
    counts, *ends = map(Histogram.unpacked, packed) if packed else (NOTHING,)
    return Measurement(counts=counts, by_end=tuple(ends), amounts=amounts, numbers=numbers)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """What one valid attempt of one launch gave: quantities by name, and the use of processors by role.

    counters: what the layers of all endpoints counted meanwhile, together, by the layer's own names. counted: how
    system calls, cycles and instructions were counted, or why not.
    """

    launch_id: str
    round: RoundKey
    quantities: Mapping[str, Measurement]
    elapsed_ns: int
    operations: int
    lost: int
    late: int
    cpu: Sequence[RoleUse]
    steady: bool
    disturbed: bool
    counters: Mapping[str, int] = field(default_factory=dict)
    counted_operations: int = 0
    counted: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Trouble:
    """Why some attempts of a point gave no number."""

    state: str
    code: str
    reason: str
    attempts: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """A series in a case: its samples and the account of its planned attempts (states → how many).

    `planned` counts the launches that were to attempt it; it is 0 for a point that the plan refused, whose one state
    entry is "refused".
    """

    series: Series
    case: Case
    point_id: str
    planned: int
    samples: tuple[Sample, ...]
    states: Mapping[str, int]
    troubles: tuple[Trouble, ...]
    twin: bool = False
    """A second series of the very same layer: see Dataset.twins."""

    @property
    def label(self) -> str:
        """The series' name for people, of a twin as well."""
        return f"{self.series.label} {AGAIN}" if self.twin else self.series.label

    @property
    def state(self) -> str:
        """The point's own outcome: the best that its attempts reached; a point refused in the plan is refused."""
        return next((state for state in STATES if self.states.get(state, 0)), "missing")


@dataclass(frozen=True, kw_only=True)
class Dataset:
    """A campaign ready for comparison."""

    campaign_id: str
    meta: CampaignMeta
    plan: Plan
    nodes: tuple[NodeFacts, ...]
    records: tuple[LaunchRecord, ...]
    """Without their attempts and probes: those are in `cells` and `attempts`."""
    cells: tuple[Cell, ...]
    rounds: int
    attempts: Mapping[str, AttemptColumns] = field(default_factory=dict)
    """By the launch's id, of each record."""
    twins: tuple[Cell, ...] = ()
    """The cells of what was measured a second time, each of the same series and case as one of `cells`.

    They stand apart, so that a twin is no competitor anywhere: what it is for is in twin.py alone.
    """
    made_again: Mapping[str, frozenset[str]] = field(default_factory=dict)
    """Which launches were made again, by why an earlier record does not count."""
    looks: LooksState | None = None
    """How many looks were made, where the sweep names some."""
    imported: tuple[ImportedFile, ...] = ()
    """What other tools printed, which the user set beside; no figure of the campaign is computed from it."""
    natives: NativeRuns | None = None
    """Native tools that ran between its launches, beside its numbers."""
    baseline_chosen: bool = False
    """True where what layers are judged against was chosen after the measurement, and is not what the sweep says."""

    not_run: frozenset[str] | None = None
    """The launches that were not run, where there are no records to tell."""
    withheld: str | None = None
    """Why a report withholds its verdicts, "" where it does not, where there are no hosts and no records to ask."""

    @property
    def is_reported(self) -> bool:
        """True where a report's embedded cells are all that is known: each launch's own numbers, and no records."""
        return self.not_run is not None

    @property
    def recorded(self) -> frozenset[str]:
        """The launches that were run."""
        if self.not_run is not None:
            return frozenset(launch.launch_id for launch in self.plan.launches) - self.not_run
        return frozenset(record.launch_id for record in self.records)

    @cached_property
    def rounds_of_points(self) -> Mapping[str, PlannedRounds]:
        """The rounds of each point that a launch was planned for. Most points share them."""
        planned: dict[str, list[int]] = defaultdict(list)
        run: dict[str, list[int]] = defaultdict(list)
        recorded = self.recorded
        for launch in self.plan.launches:
            for name in launch.point_ids:
                planned[name].append(launch.round)
                if launch.launch_id in recorded:
                    run[name].append(launch.round)
        shared: dict[PlannedRounds, PlannedRounds] = {}
        found = {name: (tuple(sorted(rounds)), frozenset(run.get(name, ()))) for name, rounds in planned.items()}
        return {name: shared.setdefault(rounds, rounds) for name, rounds in found.items()}

    def around(self, launch_id: str, point_id: str) -> Around:
        """Return what the machine probe said around an attempt, by its name; nothing where none is known."""
        attempts = self.attempts.get(launch_id)
        return attempts.around(point_id) if attempts is not None else {}

    @property
    def planned(self) -> tuple[Cell, ...]:
        """Every cell that was planned, twins as well."""
        return (*self.cells, *self.twins)

    @property
    def clock_step_ns(self) -> float:
        """By what readings of the coarsest clock differ at least; 0 where older records do not say."""
        clocks = (clock for record in self.records if record.result for clock in record.result.clock)
        return max((clock.step_ns or 0.0 for clock in clocks), default=0.0)

    @property
    def layers(self) -> tuple[Series, ...]:
        """Every planned series that is a layer, in the order of names."""
        return tuple(sorted({cell.series for cell in self.cells if cell.series.kind == "layer"}))

    @property
    def patterns(self) -> Mapping[str, PatternFile]:
        """The patterns that a layer was planned with, as a report shows them; without the forms of floors."""
        used = {cell.case.pattern for cell in self.cells if cell.series.kind == "layer"}
        files = {name: self.plan.patterns[name] for name in used}
        return {name: files[name] for name in in_order(files)}


def series_of(subject: Subject) -> Series:
    """Return the series that a subject belongs to."""
    return Series(subject.kind, subject.layer, subject.shims, subject.settings)


def _measured(attempt: Attempt, name: str, quantity: Quantity) -> Measurement | None:
    """Return what an attempt holds of a quantity; None where there is nothing of its kind."""
    if quantity.kind == "histogram":
        ends = tuple(one.buckets for one in attempt.samples(name) if one.count)
        if len(ends) > 1:
            return Measurement(counts=merge(ends), by_end=ends)
        return Measurement(counts=ends[0]) if ends else None
    if quantity.kind == "rate":
        rates = tuple((one.amount, one.elapsed_ns) for one in attempt.rates(name) if one.elapsed_ns)
        return Measurement(amounts=rates) if any(amount for amount, _ in rates) else None
    numbers = tuple(float(one.value) for one in attempt.numbers(name))
    return Measurement(numbers=numbers) if numbers else None


def _counted(record: LaunchRecord) -> dict[str, str]:
    """Return how the endpoints of a launch counted, or why one of them did not."""
    endpoints = record.result.endpoints if record.result is not None else ()
    said: dict[str, str] = {}
    for endpoint in endpoints:
        said = endpoint.counted | {name: text for name, text in said.items() if text.startswith("not ")}
    return said


def _sample(
    attempt: Attempt, file: PatternFile, launch: PlanLaunch, cpu: Sequence[RoleUse], counted: Mapping[str, str]
) -> Sample:
    """Return what an attempt gave, as the first of its round; which it is, and whether it was disturbed, others say."""
    found = {name: _measured(attempt, name, quantity) for name, quantity in file.quantities.items()}
    return Sample(
        launch_id=launch.launch_id,
        round=_round_key(launch.round, 0, launch.epoch),
        quantities=PackedMeasures({name: one for name, one in found.items() if one is not None}),
        elapsed_ns=attempt.elapsed_ns or 0,
        operations=attempt.operations or 0,
        lost=attempt.lost or 0,
        late=attempt.late or 0,
        cpu=cpu,
        steady=attempt.warmup is None or attempt.warmup.steady,
        disturbed=False,
        counters=PackedCounts(_together(attempt.counters)),
        counted_operations=attempt.counted_operations,
        counted=counted,
    )


def _together(counters: Sequence[Mapping[str, int]]) -> dict[str, int]:
    """Return what endpoints counted, together, without what stayed 0."""
    found: dict[str, int] = {}
    for one in counters:
        for name, often in one.items():
            found[name] = found.get(name, 0) + often
    return {name: often for name, often in found.items() if often > 0}


def _usable(attempt: Attempt | None, file: PatternFile) -> bool:
    """Tell whether an attempt without objections holds its pattern's main quantity."""
    if attempt is None or not attempt.elapsed_ns:
        return False
    if file.main_quantity.kind == "histogram":
        return any(one.count for one in attempt.samples(file.main))
    return _measured(attempt, file.main, file.main_quantity) is not None


def _verdict(outcome: PointOutcome, file: PatternFile) -> tuple[str, str, str]:
    """Return state, code and reason of an attempt; one in which nothing was completed has failed."""
    if outcome.status == "valid" and not _usable(outcome.attempt, file):
        lost = outcome.attempt.lost if outcome.attempt else 0
        return "failed", str(Reason.EMPTY), say("load.no_operation", lost=lost or 0)
    if outcome.status == "valid":
        return VALID
    return outcome.status, str(outcome.reason_code or ""), outcome.reason or say("load.no_reason_stored")


VALID = ("valid", "", "")
"""Nobody asks why."""


@dataclass(frozen=True, slots=True)
class PlannedAttempt:
    """One planned attempt: what became of it, its processors' use, and its sample where it is valid."""

    round: int
    launch_id: str
    verdict: tuple[str, str, str]
    cpu: Sequence[RoleUse]
    sample: Sample | None


def _attempted(
    campaign: Campaign, launch: PlanLaunch, record: LaunchRecord | None
) -> Iterator[tuple[str, PlannedAttempt]]:
    """Yield each planned attempt of a launch, with its point."""
    counted = _counted(record) if record is not None else {}
    roles = tuple(record.launch.roles) if record is not None else ()
    for outcome in launch_outcomes(campaign.plan, launch, record):
        attempt, file = outcome.attempt, campaign.plan.pattern_of(outcome.point)
        verdict = _verdict(outcome, file)
        cpu = PackedUses(roles, attempt.cpu) if attempt is not None and attempt.cpu else ()
        sample = None
        if attempt is not None and verdict[0] == "valid":
            try:
                sample = _sample(attempt, file, launch, cpu, counted)
            except FormatError as error:
                campaign.blame(launch.launch_id, error)
        one = PlannedAttempt(launch.round, launch.launch_id, verdict, cpu, sample)
        yield outcome.point.point_id, one


@cache
def _round_key(number: int, launch: int, epoch: int) -> RoundKey:
    """Return one object for all attempts of a round."""
    return RoundKey(number, launch, epoch)


def _cell(point: PlanPoint, series: Series, case: Case, found: list[PlannedAttempt]) -> Cell:
    """Sort the attempts of one point into samples and troubles."""
    found.sort(key=lambda one: (one.round, one.launch_id))
    verdicts = [one.verdict for one in found]
    if point.state == "refused":
        verdicts.append(("refused", str(point.reason_code or ""), point.reason or say("load.no_reason_stored")))
    flags = disturbed([[use for _, use in one.cpu] for one in found], point.subject.wait)
    samples: list[Sample] = []
    used: Counter[int] = Counter()
    for one, is_disturbed in zip(found, flags, strict=True):
        if one.sample is not None:
            key = _round_key(one.round, used[one.round], one.sample.round.epoch)
            is_known = one.sample.round == key and not is_disturbed
            samples.append(one.sample if is_known else replace(one.sample, round=key, disturbed=is_disturbed))
            used[one.round] += 1
    tally = Counter(verdict for verdict in verdicts if verdict[0] != "valid")
    return Cell(
        series=series,
        case=case,
        point_id=point.point_id,
        planned=len(found),
        samples=tuple(samples),
        states=Counter(state for state, _, _ in verdicts),
        troubles=tuple(
            Trouble(state=state, code=code, reason=reason, attempts=n)
            for (state, code, reason), n in sorted(tally.items())
        ),
        twin=point.subject.twin,
    )


def whole(cell: Cell) -> Cell:
    """Return all of a cell."""
    return cell


def cells_of(plan: Plan, found: dict[str, list[PlannedAttempt]], kept: Callable[[Cell], Cell] = whole) -> list[Cell]:
    """Return the cells of a plan in their order, and empty `found`: the attempts at each of its points.

    kept: what of a cell stays; the rest is gone before the next one is made.
    """
    all_series: dict[Series, Series] = {}
    cases: dict[Case, Case] = {}

    def cell(point: PlanPoint) -> Cell:
        subject = point.subject
        series, case = series_of(subject), Case(subject.place, subject.wait, point.workload, plan.pattern_of(point))
        shared = all_series.setdefault(series, series), cases.setdefault(case, case)
        return kept(_cell(point, *shared, found.pop(point.point_id)))

    cells = [cell(point) for point in plan.points]
    cells.sort(key=lambda c: (c.case.sort_key, c.series))
    return cells


@uncollected()
def read(
    campaign: Campaign,
    *,
    rounds: int | None = None,
    afresh: bool = False,
    kept: Callable[[Cell], Cell] = whole,
) -> Dataset:
    """Read everything that the analysis needs from a campaign. Raises NoDataError where nothing was planned.

    rounds: as it was after so many. afresh: from the raw files, whatever a cache has of them. kept: see `cells_of`.
    """
    plan, meta = campaign.plan, campaign.meta
    if not plan.points:
        raise NoDataError(say("load.no_points", campaign_id=meta.campaign_id))
    return _read(campaign, plan, meta, rounds, afresh=afresh, kept=kept)


def _read(
    campaign: Campaign,
    plan: Plan,
    meta: CampaignMeta,
    rounds: int | None,
    *,
    afresh: bool,
    kept: Callable[[Cell], Cell],
) -> Dataset:
    """Read launch by launch: of the attempts of each nothing stays but what is made of them here."""
    if rounds is not None:
        plan = plan.up_to(rounds)
    missing = {launch.launch_id: launch for launch in plan.launches}
    found: dict[str, list[PlannedAttempt]] = {point.point_id: [] for point in plan.points}
    records: list[LaunchRecord] = []
    attempts: dict[str, AttemptColumns] = {}
    shared = SharedParts()
    for record in campaign.readings(afresh=afresh):
        launch = missing.pop(record.launch_id, None)
        if launch is not None:
            for point_id, one in _attempted(campaign, launch, record):
                found[point_id].append(one)
            attempts[record.launch_id] = attempt_columns(record)
            records.append(shared.of(without_attempts(record)))
    for launch in missing.values():
        for point_id, one in _attempted(campaign, launch, None):
            found[point_id].append(one)
    cells = cells_of(plan, found, kept)
    return Dataset(
        campaign_id=meta.campaign_id,
        meta=meta,
        plan=plan,
        nodes=tuple(campaign.nodes()),
        records=tuple(records),
        attempts=attempts,
        cells=tuple(cell for cell in cells if not cell.twin),
        twins=tuple(cell for cell in cells if cell.twin),
        rounds=len({launch.round for launch in plan.launches}),
        made_again={str(why): names for why, names in campaign.made_again().items()},
        looks=looks_state(campaign) if rounds is None else None,
        imported=campaign.imported() if rounds is None else (),
        natives=runs_of(campaign) if rounds is None else None,
    )


def without_attempts(record: LaunchRecord) -> LaunchRecord:
    """Return a record as a dataset keeps it."""
    if record.result is None:
        return record
    return record.model_copy(update={"result": record.result.model_copy(update={"attempts": (), "witness": ()})})
