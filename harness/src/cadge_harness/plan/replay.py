# SPDX-License-Identifier: BSD-3-Clause
"""Points that replay a trace: which of a sweep do, which trace they carry, and why one cannot be made without."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from pydantic import JsonValue

from cadge_harness.errors import UsageError
from cadge_harness.plan.catalogue import Refusal
from cadge_harness.plan.sweep import WantedPoint
from cadge_harness.plan.weblog import ReplayBounds
from cadge_results import PatternFile, Reason, SweepFile, TraceFacts, Workload, Workloads
from cadge_results.formats.sweep import PatternEntry
from cadge_results.plugins.rules import Replays


def bounds(workloads: Workloads) -> ReplayBounds:
    """Return what every pattern that replays a trace can have of one. Raises UsageError where none does."""
    rules = [file.replays for file in workloads.patterns.values() if file.replays is not None]
    if not rules:
        raise UsageError("--trace: there is no pattern that replays a trace")
    return ReplayBounds(
        files_max=min(rule.files_max for rule in rules),
        min_bytes=max(rule.min_bytes for rule in rules),
        max_bytes=min(rule.max_bytes for rule in rules),
    )


def replaying(sweep: SweepFile, workloads: Workloads, given: str) -> SweepFile:
    """Return a sweep with a trace in every entry that leaves it open what is replayed; `given` is what it is called.

    What the trace decides is taken out of those. Raises UsageError where no entry replays one.
    """
    entries = []
    found = False
    for entry in sweep.patterns:
        rule = workloads.patterns[entry.pattern].replays
        entries.append(entry if rule is None else _replaying(entry, rule))
        found |= rule is not None and _asks(entries[-1].parameters, rule)
    if not found:
        able = [name for name, file in workloads.patterns.items() if file.replays is not None]
        raise UsageError(
            f"--trace: nothing in sweep {given} replays a trace; a sweep of {' or '.join(able)} does",
            commands=tuple(f"cadge patterns {name}" for name in able),
        )
    return sweep.model_copy(update={"patterns": tuple(entries)})


def _asks(parameters: Mapping[str, JsonValue], rule: Replays) -> bool:
    """Tell whether an entry has the word that asks for a trace."""
    [(choice, word)] = rule.when.items()
    given = parameters.get(choice)
    return word in given if isinstance(given, list) else word == given


def _replaying(entry: PatternEntry, rule: Replays) -> PatternEntry:
    [(choice, word)] = rule.when.items()
    if choice in entry.parameters:
        return entry
    kept = {name: value for name, value in entry.parameters.items() if name not in rule.decides}
    groups = (tuple(name for name in group if name in kept) for group in entry.zip)
    return entry.model_copy(
        update={"parameters": {**kept, choice: word}, "zip": tuple(group for group in groups if group)}
    )


def with_trace(wanted: WantedPoint, pattern: PatternFile, trace: TraceFacts | None) -> WantedPoint:
    """Return what is wanted with the number of the trace in it, where it replays one."""
    rule = pattern.replays
    if rule is None or trace is None or not pattern.does_replay(wanted.workload):
        return wanted
    values = {**wanted.workload.values, rule.by: trace.number}
    return replace(wanted, workload=Workload(pattern=wanted.workload.pattern, parameters=tuple(sorted(values.items()))))


def refuse_replay(wanted: WantedPoint, pattern: PatternFile, trace: TraceFacts | None) -> Refusal | None:
    """Return why a point cannot be made: it replays a trace, and none was given."""
    if trace is not None or pattern.replays is None or not pattern.does_replay(wanted.workload):
        return None
    [(choice, word)] = pattern.replays.when.items()
    return Refusal(
        code=Reason.NO_TRACE,
        reason=f"{choice} {word} replays the log of a web server, and none was given; --trace FILE gives it",
    )
