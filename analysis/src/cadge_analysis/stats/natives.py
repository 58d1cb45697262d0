# SPDX-License-Identifier: BSD-3-Clause
"""What Cadge takes more than native tools: pairs of one round each, in ns where messages are short, else as a ratio.

A tool that prints its median is compared with Cadge's median, one that prints means with Cadge's mean. A mean holds
whatever else ran meanwhile, so rounds in which one of the processes waited for its processor are left out there, and
where a tool prints the best of several means; of medians they are counted, and stay; where they are more than a
fifth nothing is concluded. Differences and ratios are taken
within a round; shown is their median over rounds, with its interval by order statistics.

Where the bare loop ran in the same launch, the difference has parts: what the driver adds to the loop (a reading of
the clock for every round trip, histogram, bookkeeping), what a look at each message costs, which no tool takes, and
what is left between the loop and the tool: the adapter. A batch of the loop is a mean of its round trips, so these are
of rounds in which nobody waited, as far as there are any.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from math import exp, log
from typing import Literal

from cadge_analysis import messages
from cadge_analysis.groups import by_key
from cadge_analysis.stats.disturbance import DISTURBED_MOST, DISTURBED_SHARE, disturbed_share
from cadge_analysis.stats.inference.shift import Shift, paired
from cadge_analysis.stats.intervals import TARGET_COVERAGE, Estimate, do_disagree, median, over_pairs
from cadge_results import (
    Attempt,
    Campaign,
    NativeAbsent,
    NativeCell,
    NativeFile,
    NativeReading,
    PatternFile,
    Plan,
    PlanPoint,
    PointOutcome,
)
from cadge_results.formats.histogram import decode

say = partial(messages.say, "stats")

SHORT_BYTES = 4096
"""Below this a difference is told in ns, from here on as a ratio."""
LATENCY_MOST = 1.03
RATE_LEAST = 0.97
TAX_SHARE, TAX_NS = 0.05, 50.0
"""A layer that surely takes more than its direct program, and by more than either, is marked in ranks."""
Says = Literal["more", "less", "alike", "cannot tell", "withheld", "no figure"]


@dataclass(frozen=True, slots=True, kw_only=True)
class NativePair:
    """A pair and what was found: `ours` and `theirs` are medians over rounds, in `unit`."""

    cell: NativeCell
    layer: str
    place: str
    wait: str
    pattern: str
    work: str = ""
    """Which of the pattern's operations, where it has several; of rates, how many messages are under way, and pairs."""
    unit: str = "ns"
    """ns of a whole round trip, bytes/s, or messages/s."""
    rounds: int = 0
    """With a reading on both sides, which count."""
    waited: int = 0
    """Rounds in which a process waited for its processor; left out where the tool prints a mean."""
    disturbed: int = 0
    """Runs in rounds that count, two each, in which a process waited for its processor."""
    ours: float | None = None
    theirs: float | None = None
    tax_ns: Estimate | None = None
    ratio: Shift | None = None
    unclocked: Estimate | None = None
    """What the bare loop takes more than the tool: neither clock nor check is in it."""
    parts: Mapping[str, Estimate] = field(default_factory=dict)
    """driver, look, adapter: together the tax."""
    clock_ns: float | None = None
    """One reading of the clock, as the driver found it."""
    reason: str = ""
    """Why there is no figure, or no more of them."""

    @property
    def runs(self) -> int:
        """How many runs of the layer and of the tool count."""
        return 2 * self.rounds

    @property
    def does(self) -> str:
        """What is measured, in a word or two."""
        return f"{self.pattern} {self.work}".rstrip()

    @property
    def short(self) -> bool:
        """Whether the difference is told in ns."""
        return self.cell.statistic != "rate" and self.cell.bytes < SHORT_BYTES

    @property
    def pairs_disagree(self) -> bool:
        """The ratio, the median over rounds, is not what both medians say that stand beside it."""
        if self.ratio is None or not self.ours or not self.theirs:
            return False
        return do_disagree(log(self.ours / self.theirs), self.ratio.log_ratio, self.ratio.low, self.ratio.high)

    @property
    def slower(self) -> tuple[float, float, float] | None:
        """How many times longer Cadge takes, with its interval; None where there is none of 95 %."""
        if self.ratio is None or self.ratio.coverage < TARGET_COVERAGE:
            return None
        sign = -1 if self.cell.statistic == "rate" else 1
        ends = (self.ratio.log_ratio, self.ratio.low, self.ratio.high)
        middle, low, high = (None if one is None else exp(sign * one) for one in ends)
        if middle is None or low is None or high is None:
            return None
        return middle, min(low, high), max(low, high)

    @property
    def is_taxed(self) -> bool:
        """True where the layer surely takes more, by over 5 % or 50 ns."""
        if self.says != "more" or self.slower is None:
            return False
        more_ns = self.tax_ns.value if self.short and self.tax_ns is not None else 0.0
        return self.slower[0] > 1 + TAX_SHARE or more_ns > TAX_NS

    @property
    def says(self) -> Says:
        """Against the goal: no interval of the difference above zero; no more than 1.03 times, no less than 0.97.

        Withheld where too many of the runs that count were disturbed, by the bound of reports.
        """
        if self.disturbed > DISTURBED_MOST * self.runs:
            return "withheld"
        if self.short:
            found = self.tax_ns
            if found is None or found.low is None or found.high is None or found.coverage < TARGET_COVERAGE:
                return "no figure" if found is None else "cannot tell"
            return "more" if found.low > 0 else "less" if found.high < 0 else "cannot tell"
        ends = self.slower
        if ends is None:
            return "no figure" if self.ratio is None else "cannot tell"
        most = 1 / RATE_LEAST if self.cell.statistic == "rate" else LATENCY_MOST
        if ends[1] > most:
            return "more"
        return "less" if ends[2] < 1 else "alike" if ends[2] <= most else "cannot tell"


@dataclass(frozen=True, slots=True, kw_only=True)
class NativeRuns:
    """What a campaign measured beside native tools: a row a pair, and the tools that did not run."""

    pairs: tuple[NativePair, ...]
    absent: tuple[NativeAbsent, ...] = ()
    of_sweep: bool = False
    """Beside points of a sweep, whose launches carry messages of several sizes."""


def runs_of(campaign: Campaign) -> NativeRuns | None:
    """Return a campaign's native tools beside it, in the order of its file; None where there are none."""
    found = campaign.native()
    if found is None:
        return None
    pairs = tuple(rows_of(campaign, found))
    return NativeRuns(pairs=pairs, absent=found.absent, of_sweep=found.measure_ms is not None)


def rows_of(campaign: Campaign, found: NativeFile) -> list[NativePair]:
    """Return a row a pair, in the order of the file."""
    plan = campaign.plan
    by_point: dict[str, dict[int, PointOutcome]] = {}
    for outcome in campaign.outcomes():
        if outcome.round is not None:
            by_point.setdefault(outcome.point.point_id, {})[outcome.round] = outcome
    clocks = [
        one.read_cost_ns for record in campaign.launches() if record.result for one in record.result.clock if one.ok
    ]
    clock_ns = median(clocks) if clocks else None
    theirs = by_key(found.by_run().values(), lambda reading: reading.cell_id)
    return [_row(cell, plan, by_point, theirs.get(cell.cell_id, []), clock_ns) for cell in found.cells]


def _row(
    cell: NativeCell,
    plan: Plan,
    by_point: Mapping[str, Mapping[int, PointOutcome]],
    readings: Sequence[NativeReading],
    clock_ns: float | None,
) -> NativePair:
    point = plan.by_id[cell.point_id]
    file = plan.pattern_of(point)
    outcomes = by_point.get(cell.point_id, {})
    mine = _values(outcomes, cell, plan)
    tool = {one.round: one.value for one in readings if one.value is not None}
    poll = point.subject.wait == "poll"
    tools_waited = {one.round for one in readings if _tool_waited(one, poll=poll)}
    ours_waited = {number for number, one in outcomes.items() if _attempt_waited(one.attempt, poll=poll)}
    waited = tools_waited | ours_waited
    both = mine.keys() & tool.keys()
    kept = both - waited if cell.statistic in ("mean", "best") else both
    ours: dict[Hashable, float] = {number: mine[number] for number in kept}
    others: dict[Hashable, float] = {number: tool[number] for number in kept}
    row = NativePair(
        cell=cell,
        layer=point.subject.layer,
        place=point.subject.place,
        wait=point.subject.wait,
        pattern=point.workload.pattern,
        work=_work(point, file, cell),
        unit=_unit(file, cell),
        rounds=len(kept),
        waited=len(both & waited),
        disturbed=len(kept & tools_waited) + len(kept & ours_waited),
        clock_ns=clock_ns,
    )
    if not kept:
        return replace(row, reason=_why(point.state == "refused", point.reason, outcomes, readings, both))
    calm = kept - waited or kept  # a batch is a mean of its round trips
    loops: dict[str, dict[Hashable, float]] = {
        name: {
            number: value / cell.batch
            for number, outcome in by_point.get(point_id, {}).items()
            if (value := _histogram(outcome, plan, mean=False)) is not None and number in calm
        }
        for name, point_id in cell.beside.items()
    }
    parts: dict[str, Estimate | None] = {}
    if {"bare", "looking"} <= loops.keys():
        parts = {
            "driver": _difference(ours, loops["looking"]),
            "look": _difference(loops["looking"], loops["bare"]),
            "adapter": _difference(loops["bare"], others),
        }
    failed = next((one.reason for one in readings if one.reason), "")
    return replace(
        row,
        ours=median(list(ours.values())),
        theirs=median(list(others.values())),
        tax_ns=None if cell.statistic == "rate" else _difference(ours, others),
        ratio=paired(others, ours),
        unclocked=parts.get("adapter"),
        parts={name: one for name, one in parts.items() if one is not None},
        reason=failed,
    )


def _unit(file: PatternFile, cell: NativeCell) -> str:
    if cell.statistic != "rate":
        return "ns"
    return "messages/s" if file.main_quantity.unit == "1/s" else "bytes/s"


def _work(point: PlanPoint, file: PatternFile, cell: NativeCell) -> str:
    if file.words.names_work:
        return file.fill(file.words.work, point.workload, lambda _, value: str(value))
    if cell.statistic != "rate":
        return ""
    pairs = file.count_of(file.roles_of(point.workload)[0], point.workload)
    return f"window {file.deep(point.workload)}" + (f", {pairs} pairs" if pairs > 1 else "")


def _difference(first: Mapping[Hashable, float], second: Mapping[Hashable, float]) -> Estimate | None:
    both = [number for number in first if number in second]
    return over_pairs([first[number] - second[number] for number in both]) if both else None


def _values(outcomes: Mapping[int, PointOutcome], cell: NativeCell, plan: Plan) -> dict[int, float]:
    """Return our number of each round in which there is one."""
    found = {}
    for number, outcome in outcomes.items():
        if cell.statistic == "rate":
            value = _rate(outcome, plan)
        else:
            value = _histogram(outcome, plan, mean=cell.statistic == "mean")
        if value:
            found[number] = value
    return found


def _histogram(outcome: PointOutcome, plan: Plan, *, mean: bool) -> float | None:
    if outcome.status != "valid" or outcome.attempt is None:
        return None
    samples = outcome.attempt.samples(plan.pattern_of(outcome.point).main)
    if len(samples) != 1 or not samples[0].count:
        return None
    return samples[0].sum_ns / samples[0].count if mean else float(decode(samples[0].histogram).percentile(50))


def _rate(outcome: PointOutcome, plan: Plan) -> float | None:
    if outcome.status != "valid" or outcome.attempt is None:
        return None
    rates = outcome.attempt.rates(plan.pattern_of(outcome.point).main)
    if not rates or not all(one.elapsed_ns for one in rates):
        return None
    return sum(one.amount / one.elapsed_ns * 1e9 for one in rates)


def _tool_waited(reading: NativeReading, *, poll: bool) -> bool:
    """Say whether a process that polls waited for its processor; for one that sleeps each wake is such a wait."""
    if not poll:
        return False
    times = zip(reading.run_wait_ns, reading.wall_ns, strict=True)
    return any((waited or 0) > DISTURBED_SHARE * wall for waited, wall in times)


def _attempt_waited(attempt: Attempt | None, *, poll: bool) -> bool:
    uses = attempt.cpu if poll and attempt is not None else None
    return any((disturbed_share(use) or 0.0) > DISTURBED_SHARE for use in uses or ())


def _why(
    refused: bool,
    reason: str | None,
    outcomes: Mapping[int, PointOutcome],
    readings: Sequence[NativeReading],
    both: set[int],
) -> str:
    """Return why a pair has no figure."""
    if refused:
        return say("natives.no_such_point", reason=reason)
    if both:
        return say("natives.all_disturbed")
    if said := next((one.reason for one in readings if one.reason), ""):
        return f"the tool: {said}"
    if bad := next((one.reason for one in outcomes.values() if one.status != "valid" and one.reason), ""):
        return f"Cadge: {bad}"
    return say("natives.no_round_with_both")
