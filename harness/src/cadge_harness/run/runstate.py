# SPDX-License-Identifier: BSD-3-Clause
"""How far a running campaign is: fed by launches and events, read by displays. No clock of its own."""

from __future__ import annotations

from dataclasses import dataclass, field

from cadge_results import LaunchRecord, Plan
from cadge_results.formats.result import Attempt


@dataclass(slots=True)
class RunState:
    """Counts of one campaign in progress. Times are seconds of the caller's monotonic clock."""

    plan: Plan
    campaign_id: str
    testbed: str
    started_s: float
    look: str = ""
    """Which look of several; "" where there are none."""
    stage: str = "prepare"
    done: int = 0
    attempts: dict[str, int] = field(default_factory=dict)
    """Of layers, by outcome: those that verdicts and sentences of the end count."""
    floor_attempts: dict[str, int] = field(default_factory=dict)
    current: str = ""
    last: str = ""
    wall_done_ms: int = 0
    measuring_since_s: float | None = None
    _made_here: int = 0

    @property
    def total(self) -> int:
        """How many launches were planned."""
        return len(self.plan.launches)

    def already(self, done: frozenset[str]) -> None:
        """Count launches that were stored before."""
        for launch in self.plan.launches:
            if launch.launch_id in done:
                self.done += 1
                self.wall_done_ms += launch.wall_ms

    def begin_launch(self, launch_id: str, now_s: float) -> None:
        """Note that a launch began."""
        if self.measuring_since_s is None:
            self.measuring_since_s = now_s
        self.stage = "measure"
        self.current = self._describe(launch_id)

    def add(self, record: LaunchRecord, soundness: dict[str, int]) -> None:
        """Count a stored launch; `soundness` counts its attempts by outcome."""
        self.done += 1
        self._made_here += 1
        launch = next((one for one in self.plan.launches if one.launch_id == record.launch_id), None)
        counts = self.floor_attempts if launch is not None and launch.subject.kind == "floor" else self.attempts
        for name, count in soundness.items():
            counts[name] = counts.get(name, 0) + count
        self.wall_done_ms += launch.wall_ms if launch is not None else 0
        self.last = self._describe(record.launch_id)

    def left_s(self, now_s: float) -> float:
        """Return the estimated seconds to go: the plan's, corrected by how fast this campaign has been."""
        all_ms = sum(launch.wall_ms for launch in self.plan.launches)
        left_ms = all_ms - self.wall_done_ms
        pace = 1.0
        if self.measuring_since_s is not None and self._made_here >= 5:
            here_ms = self.wall_done_ms
            spent_ms = (now_s - self.measuring_since_s) * 1000
            pace = min(max(spent_ms / here_ms, 0.3), 4.0) if here_ms else 1.0
        return left_ms * pace / 1000

    def _describe(self, launch_id: str) -> str:
        launch = next((item for item in self.plan.launches if item.launch_id == launch_id), None)
        if launch is None:
            return launch_id
        rounds = self.plan.launches[-1].round + 1
        subject = launch.subject
        return f"{subject.layer} {subject.place}/{subject.wait}, launch {launch.round + 1} of {rounds}"


def attempt_counts(record: LaunchRecord) -> dict[str, int]:
    """Count a record's attempts by outcome: valid, unsound, failed, refused."""
    counts: dict[str, int] = {}
    if record.result is None or not record.result.attempts:
        name = "refused" if record.status == "refused" else "failed"
        return {name: len(record.launch.points)}
    for attempt in record.result.attempts:
        name = _outcome(record, attempt)
        counts[name] = counts.get(name, 0) + 1
    return counts


def _outcome(record: LaunchRecord, attempt: Attempt) -> str:
    from cadge_results.store.outcomes import failed_checks

    if attempt.status in {"refused", "failed"}:
        return attempt.status
    return "unsound" if attempt.status == "unsound" or failed_checks(record, attempt) else "valid"
