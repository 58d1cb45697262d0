# SPDX-License-Identifier: BSD-3-Clause
"""A stored campaign, sorted into cells: what each series gave in each case, launch by launch.

A *series* is one layer as it was opened (its shims and settings included) or one floor; a *case* is a place, a wait
mode and a workload. Their product is a *cell*; it holds one sample a valid launch and an account of all planned
attempts, so that nothing planned can drop out of sight. Times are integer nanoseconds, sizes bytes.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from cadge_analysis.errors import NoDataError
from cadge_analysis.stats.intervals import Counts
from cadge_results import Attempt, Campaign, CampaignMeta, LaunchRecord, NodeFacts, Plan, PlanPoint, PointOutcome
from cadge_results.histogram import decode
from cadge_results.outcomes import outcomes_of
from cadge_results.result import CpuUse

STATES = ("valid", "unsound", "failed", "refused", "missing")

RoundKey = tuple[int, int]  # round, and which launch of this round where there is more than one


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
        text = " + ".join((self.layer, *self.shims))
        return f"{text} ({', '.join(f'{k}={v}' for k, v in self.settings)})" if self.settings else text


@dataclass(frozen=True, slots=True)
class Case:
    """Where and how: place, wait mode and workload. Sizes in bytes."""

    place: str
    wait: str
    pattern: str
    request_bytes: int
    reply_bytes: int
    depth: int
    operation: str
    target: str

    @property
    def sort_key(self) -> tuple[str, str, str, str, str, int, int, int]:
        """Order of rows: small before large."""
        return (
            self.place,
            self.wait,
            self.pattern,
            self.operation,
            self.target,
            self.depth,
            self.request_bytes,
            self.reply_bytes,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """What one valid attempt of one launch gave. `histogram` is None for a stream."""

    launch_id: str
    round: RoundKey
    histogram: Counts | None
    remote: Counts | None
    elapsed_ns: int
    operations: int
    bytes: int
    lost: int
    late: int
    cpu: tuple[CpuUse, ...]
    steady: bool


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

    @property
    def state(self) -> str:
        """The point's own outcome: the best that its attempts reached; a point refused in the plan is refused."""
        return next((state for state in STATES if self.states.get(state, 0)), "missing")


@dataclass(frozen=True, slots=True, kw_only=True)
class Dataset:
    """A campaign ready for comparison."""

    campaign_id: str
    meta: CampaignMeta
    plan: Plan
    nodes: tuple[NodeFacts, ...]
    records: tuple[LaunchRecord, ...]
    cells: tuple[Cell, ...]
    rounds: int

    @property
    def layers(self) -> tuple[Series, ...]:
        """Every planned series that is a layer, in the order of names."""
        return tuple(sorted({cell.series for cell in self.cells if cell.series.kind == "layer"}))


def _series(point: PlanPoint) -> Series:
    return Series(point.kind, point.layer, point.shims, tuple(sorted(point.settings.items())))


def _case(point: PlanPoint) -> Case:
    return Case(
        place=point.place,
        wait=point.wait,
        pattern=point.pattern,
        request_bytes=point.request_bytes,
        reply_bytes=point.reply_bytes,
        depth=point.depth,
        operation=point.operation or "",
        target=point.target or "",
    )


def _counts(encoded: str | None) -> Counts | None:
    """Return the non-empty buckets of a stored histogram, each by its upper end."""
    if encoded is None:
        return None
    histogram = decode(encoded)
    return tuple(zip(histogram.highs, histogram.counts, strict=True))


def _sample(attempt: Attempt, launch_id: str, key: RoundKey) -> Sample:
    return Sample(
        launch_id=launch_id,
        round=key,
        histogram=_counts(attempt.histogram),
        remote=_counts(attempt.histogram_remote),
        elapsed_ns=attempt.elapsed_ns or 0,
        operations=attempt.operations or 0,
        bytes=attempt.bytes or 0,
        lost=attempt.lost or 0,
        late=attempt.late or 0,
        cpu=attempt.cpu or (),
        steady=attempt.warmup is None or attempt.warmup.steady,
    )


def _usable(attempt: Attempt | None) -> bool:
    """Tell whether an attempt without objections holds what its pattern needs."""
    if attempt is None or not attempt.elapsed_ns:
        return False
    return bool(attempt.bytes) if attempt.pattern == "stream" else bool(attempt.count and attempt.histogram)


def _verdict(outcome: PointOutcome) -> tuple[str, str, str]:
    """Return state, code and reason of an attempt; one in which nothing was completed has failed."""
    if outcome.status == "valid" and not _usable(outcome.attempt):
        lost = outcome.attempt.lost if outcome.attempt else 0
        return "failed", "EMPTY", f"no operation was completed ({lost or 0} lost)"
    return outcome.status, outcome.reason_code or "", outcome.reason or "no reason was stored"


def _cell(point: PlanPoint, found: list[PointOutcome]) -> Cell:
    """Sort the outcomes of one point into samples and troubles."""
    samples: list[Sample] = []
    used: Counter[int] = Counter()
    states: Counter[str] = Counter()
    tally: Counter[tuple[str, str, str]] = Counter()
    for outcome in sorted(found, key=lambda o: (o.round or 0, o.launch_id or "")):
        verdict = _verdict(outcome)
        states[verdict[0]] += 1
        if verdict[0] != "valid":
            tally[verdict] += 1
        elif outcome.attempt is not None and outcome.launch_id is not None:
            number = outcome.round or 0
            samples.append(_sample(outcome.attempt, outcome.launch_id, (number, used[number])))
            used[number] += 1
    return Cell(
        series=_series(point),
        case=_case(point),
        point_id=point.point_id,
        planned=sum(outcome.launch_id is not None for outcome in found),
        samples=tuple(samples),
        states=states,
        troubles=tuple(
            Trouble(state=state, code=code, reason=reason, attempts=n)
            for (state, code, reason), n in sorted(tally.items())
        ),
    )


def read(campaign: Campaign) -> Dataset:
    """Read everything that the analysis needs from a campaign. Raises NoDataError where nothing was planned."""
    plan, meta = campaign.plan, campaign.meta
    if not plan.points:
        raise NoDataError(f"campaign {meta.campaign_id} planned no points")
    records = tuple(campaign.launches())
    by_point: dict[str, list[PointOutcome]] = defaultdict(list)
    for outcome in outcomes_of(plan, records):
        by_point[outcome.point.point_id].append(outcome)
    cells = [_cell(point, by_point[point.point_id]) for point in plan.points]
    return Dataset(
        campaign_id=meta.campaign_id,
        meta=meta,
        plan=plan,
        nodes=tuple(campaign.nodes()),
        records=records,
        cells=tuple(sorted(cells, key=lambda c: (c.case.sort_key, c.series))),
        rounds=len({launch.round for launch in plan.launches}),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchFacts:
    """What a series really was at one place and in one wait mode: library, path, who does the work."""

    library: str
    version: str
    file: str
    build_id: str
    adapter_file: str
    adapter_build_id: str
    rpc: str
    semantics: Mapping[str, str]
    used: str
    short_bytes: int
    short_path: str
    long_path: str


def without_numbers(path: str) -> str:
    """Return a path with its numbers (buffer sizes, addresses) taken out: what makes two paths the same one."""
    return re.sub(r"[0-9]+", "#", path)


def distinct_paths(paths: Iterable[str]) -> str:
    """Return the differing paths, joined; of those that differ in numbers alone, the first."""
    first: dict[str, str] = {}
    for path in paths:
        first.setdefault(without_numbers(path), path)
    return " | ".join(first.values())


def launch_facts(data: Dataset) -> dict[tuple[Series, str, str], tuple[LaunchFacts, ...]]:
    """Return, by series, place and wait mode, every differing set of facts that its launches stated (usually one)."""
    found: dict[tuple[Series, str, str], dict[str, LaunchFacts]] = defaultdict(dict)
    for record in data.records:
        result, launch = record.result, record.launch
        if result is None or result.status != "done":
            continue
        series = Series(launch.kind, launch.layer, launch.shims, tuple(sorted(launch.settings.items())))
        library, adapter, limits = result.library, result.adapter, result.limits
        facts = LaunchFacts(
            library=library.name if library else "",
            version=library.stated_version if library else "",
            file=(library.file or "") if library else "",
            build_id=(library.build_id or "") if library else "",
            adapter_file=(adapter.file or "") if adapter else "",
            adapter_build_id=(adapter.build_id or "") if adapter else "",
            rpc=(adapter.rpc or "") if adapter else "",
            semantics=dict(adapter.semantics) if adapter else {},
            used=distinct_paths(path.used for path in result.path if path.used),
            short_bytes=limits.short_bytes_max if limits else 0,
            short_path=limits.short_path if limits else "",
            long_path=limits.long_path if limits else "",
        )
        found[series, launch.place, launch.wait].setdefault(repr(facts), facts)
    return {key: tuple(facts[text] for text in sorted(facts)) for key, facts in found.items()}
