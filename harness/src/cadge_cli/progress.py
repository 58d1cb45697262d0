# SPDX-License-Identifier: BSD-3-Clause
"""Showing progress: a live display on a terminal, plain lines where there is none."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from cadge_cli.output import Output, is_terminal
from cadge_cli.words import say
from cadge_harness.run.runstate import RunState, attempt_counts
from cadge_harness.run.session import Progress
from cadge_harness.words import clock, count_of
from cadge_results import LaunchRecord, PatternFile, Workload
from cadge_results.command import command
from cadge_results.plugins.parameter import plain
from cadge_results.store.outcomes import launch_checks

if TYPE_CHECKING:
    from rich.console import Group, RenderableType
    from rich.live import Live

EVERY_S = 30.0
"""How often plain progress speaks where nothing else happens."""


def make_progress(state: RunState, output: Output, clock_s: Callable[[], float] = time.monotonic) -> Progress:
    """Return the display that suits stderr."""
    if is_terminal(output.stderr):
        return LiveProgress(state, output, clock_s)
    return PlainProgress(state, output, clock_s)


class PlainProgress:
    """A line at each stage, each kind of failure, and every 30 s."""

    def __init__(self, state: RunState, output: Output, clock_s: Callable[[], float]) -> None:
        self._state = state
        self._output = output
        self._clock_s = clock_s
        self._spoke_s = clock_s()
        self._seen: set[str] = set()

    def stage(self, name: str) -> None:
        """Print when the hosts begin to be prepared, and when they begin to be put back; not each step of it."""
        self._state.stage = name
        measuring = self._state.measuring_since_s is not None
        phase = "collect and restore" if measuring else "prepare the hosts"
        if not self._output.brief and (self._state.done in {0, self._state.total} or not measuring):
            self._once(phase)

    def begin_launch(self, launch_id: str) -> None:
        """Print nothing but the first time."""
        first = self._state.measuring_since_s is None
        self._state.begin_launch(launch_id, self._clock_s())
        if first:
            left = clock(self._state.left_s(self._clock_s()))
            self._say(f"measure: {count_of(self._state.total - self._state.done, 'launch', 'launches')}, about {left}")

    def add(self, record: LaunchRecord) -> None:
        """Print failures, each reason once, and how far it is."""
        counts = attempt_counts(record)
        self._state.add(record, counts)
        for text in launch_troubles(record, self._state.plan.patterns):
            self._once(f"{record.launch.layer} {record.launch.place}/{record.launch.wait}: {text}")
        if self._clock_s() - self._spoke_s >= EVERY_S or self._state.done == self._state.total:
            self._say(summary_line(self._state, self._clock_s()))

    def note(self, text: str) -> None:
        """Print the text."""
        self._say(text)

    def close(self) -> None:
        """Do nothing: lines need no end."""

    def _once(self, text: str) -> None:
        if text not in self._seen:
            self._seen.add(text)
            self._say(text)

    def _say(self, text: str) -> None:
        self._spoke_s = self._clock_s()
        self._output.say(text)


class LiveProgress:
    """At most ten lines, redrawn only between launches: while one measures, this process sleeps."""

    def __init__(self, state: RunState, output: Output, clock_s: Callable[[], float]) -> None:
        from rich.console import Console
        from rich.live import Live

        self._state = state
        self._told = output.told
        self._brief = output.brief
        self._resume = command("resume", state.campaign_id)
        self._clock_s = clock_s
        self._console = Console(file=output.stderr)
        self._seen: set[str] = set()
        self._live: Live = Live(
            console=self._console, get_renderable=self._render, auto_refresh=False, transient=True, screen=False
        )
        self._live.start(refresh=True)

    def stage(self, name: str) -> None:
        """Show the stage."""
        self._state.stage = name
        self._live.refresh()

    def begin_launch(self, launch_id: str) -> None:
        """Show the launch."""
        self._state.begin_launch(launch_id, self._clock_s())
        self._live.refresh()

    def add(self, record: LaunchRecord) -> None:
        """Count the launch, and print a new kind of trouble above the display."""
        self._state.add(record, attempt_counts(record))
        for text in launch_troubles(record, self._state.plan.patterns):
            key = f"{record.launch.layer} {record.launch.place}/{record.launch.wait}: {text}"
            if key not in self._seen:
                self._seen.add(key)
                self.note(key)

    def note(self, text: str) -> None:
        """Print a line above the display."""
        self._told.add(text)
        self._console.print(text, markup=False, highlight=False)

    def close(self) -> None:
        """Take the display away."""
        self._live.stop()

    def _render(self) -> Group:
        from rich.console import Group
        from rich.progress_bar import ProgressBar
        from rich.table import Table
        from rich.text import Text

        state, now_s = self._state, self._clock_s()

        def line(width: int, *more: Text) -> Table:
            """Return the bar, and what stands beside it; by itself it would not end its line."""
            grid = Table.grid(padding=(0, 1))
            grid.add_row(ProgressBar(total=max(state.total, 1), completed=state.done, width=width), *more)
            return grid

        if self._brief:
            return Group(line(20, Text(short_line(state, now_s), overflow="ellipsis", no_wrap=True)))
        lines: list[RenderableType] = [
            Text(f"campaign {state.campaign_id}   {state.stage}   testbed {state.testbed}", style="bold"),
            line(min(60, self._console.width)),
            Text(summary_line(state, now_s)),
            Text(f"now   {state.current}", style="dim"),
            Text(f"last  {state.last}", style="dim"),
            Text(say("progress.stops", command=self._resume), style="dim"),
        ]
        return Group(*lines)


def summary_line(state: RunState, now_s: float) -> str:
    """Return one line that says how far a campaign is."""
    look = f"{state.look}: " if state.look else ""
    done = f"{state.done} of {count_of(state.total, 'launch', 'launches')}"
    spent, left = clock(now_s - state.started_s), clock(state.left_s(now_s))
    attempts = attempts_words(state.attempts, state.floor_attempts)
    return say("progress.so_far", look=look, done=done, spent=spent, left=left, attempts=attempts)


def attempts_words(of_layers: Mapping[str, int], of_floors: Mapping[str, int]) -> str:
    """Return attempts by outcome, floors' apart: what is said of a campaign's attempts is said of its layers'."""
    layers, floors = (
        ", ".join(f"{count} {name}" for name, count in sorted(counts.items())) for counts in (of_layers, of_floors)
    )
    return f"attempts: {layers or 'none yet'}" + (f"; of floors: {floors}" if floors else "")


def short_line(state: RunState, now_s: float) -> str:
    """Return how far a short campaign is, in few words."""
    if state.measuring_since_s is None:
        return state.stage
    done = f"{state.done} of {count_of(state.total, 'launch', 'launches')}"
    return f"{done}, about {clock(state.left_s(now_s))} left: {state.current}"


def launch_troubles(record: LaunchRecord, patterns: Mapping[str, PatternFile]) -> list[str]:
    """Return what went wrong in a launch, in one line: of several points the first, and how many more there are."""

    def points_words(workload: Workload) -> str:
        file = patterns[workload.pattern]
        return f"{workload.pattern} {file.fill(file.workload_words, workload, plain)}"

    stolen_ns = max((load.steal_ns or 0 for load in record.load), default=0)
    # Deadlines are generous: a machine that was held up is the likeliest cause.
    held_up = " " + say("progress.stolen", seconds=stolen_ns / 1e9) if stolen_ns >= 1e9 else ""
    if record.status == "failed":
        return [f"failed: {record.reason}{held_up}"]
    result = record.result
    if result is None:
        return []
    if failed := [check for check in launch_checks(record) if not check.ok]:
        return ["unsound: " + "; ".join(f"{check.name}: {check.detail}" for check in failed)]
    found: list[str] = []
    for attempt in result.attempts:
        if attempt.status == "failed":
            found.append(f"{points_words(attempt.workload)} failed: {attempt.reason}{held_up}")
        elif wrong := [f"{check.name}: {check.detail}" for check in attempt.checks if not check.ok]:
            found.append(f"{points_words(attempt.workload)} unsound: {'; '.join(wrong)}")
    more = say("progress.more_points", n=len(found) - 1) if len(found) > 1 else ""
    return [f"{found[0]}{more}"] if found else []
