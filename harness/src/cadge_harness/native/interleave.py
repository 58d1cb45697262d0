# SPDX-License-Identifier: BSD-3-Clause
"""Native tools between the launches of a campaign: while one runs, the agent waits for us to take its last record.

An agent begins its next launch when the record of the one before has been stored. So what runs before that stands
between two launches, on the same hosts and the same processors, and nothing of ours runs beside it.

Which tools run is stored with the campaign, so that one that was broken off goes on with them.
"""

from __future__ import annotations

import subprocess
import threading
import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from pydantic import JsonValue

from cadge_harness.native.cells import NativeSelection, Pair, by_size, cells_of, is_beside
from cadge_harness.native.due import pairs_of, schedule, tools_of
from cadge_harness.native.hosts import Hosts
from cadge_harness.native.tool import TARGET_MS, Ask, ToolError, last_words
from cadge_harness.plan.cast import PAIR
from cadge_results import (
    CampaignWriter,
    LaunchRecord,
    NativeAbsent,
    NativeFile,
    NativeReading,
    PatternFile,
    Plan,
    PlanPoint,
    Subject,
    Workload,
)

if TYPE_CHECKING:
    from cadge_harness.run.session import CampaignEnd, OnEvent, OnLaunch, Runner
    from cadge_harness.testbed.model import Testbed
    from cadge_results.formats.launch import Endpoint

PORTS = (18750, 19749)
"""Those of the tools, in turn: a server that ended first keeps its port from others for a minute.

The first one goes with the clock, so that a campaign that is resumed at once begins behind the last one.
"""


BEGIN_WITHIN_S = 10.0
"""So long after a launch another tool begins: one that hangs takes 18 s, and the agents wait for 30."""


SWEEP_MS = 60
"""How long a tool measures beside the points of a sweep, which take about as long."""
START_MS, RANKS_START_MS = 120, 350
"""What starting and ending a tool takes, and one whose ranks a launcher starts."""


class NativeCampaign:
    """What a new campaign measures beside native tools: its plan, and what it stores of them."""

    def __init__(self, pairs: Sequence[Pair], absent: Sequence[NativeAbsent], rounds: int) -> None:
        """`absent`: tools that do not run at all."""
        self._pairs = {pair.cell_id: pair for pair in pairs}
        self._absent = tuple(absent)
        self._rounds = rounds

    def plan(self, plan: Plan) -> Plan:
        """Return the plan with a launch for each pattern and size."""
        return by_size(plan, len(self._pairs) * self._rounds)

    def native(self, plan: Plan) -> NativeFile:
        """Return what is to run, before any of it has."""
        layers = {name for one in self._absent for name in one.layers}
        return _native_file(list(self._pairs.values()), self._absent, plan, self._rounds, layers)


class NativesOfSweep:
    """Native tools beside points that a sweep has anyway: its plan stays as it is, with the time that they take."""

    def __init__(self, selection: NativeSelection, patterns: Mapping[str, PatternFile]) -> None:
        """`patterns`: those that the sweep may have."""
        self._selection = selection
        self._patterns = patterns

    def round_ms(self, subject: Subject, workload: Workload) -> int:
        """Return what tools beside a point take in each round, as estimated."""
        file = self._patterns.get(workload.pattern)
        if file is None:
            return 0
        return sum(_run_ms(pair) for pair in self._selection.pairs if is_beside(pair, subject, workload, file))

    def plan(self, plan: Plan) -> Plan:
        """Return the plan as it is."""
        return plan

    def notices(self, plan: Plan) -> list[str]:
        """Return what a reader of a plan should know of the tools that it has not."""
        wanted = any(pair.place == "between" for pair in self._selection.pairs)
        over_pairs = any(point.subject.setting(PAIR) for point in plan.points)
        cells = cells_of(self._selection.pairs, plan)
        if not wanted or not over_pairs or any(plan.by_id[cell.point_id].subject.place == "between" for cell in cells):
            return []
        return ["no native tool runs between hosts: this sweep measures pairs of hosts, tools the first two"]

    def native(self, plan: Plan) -> NativeFile:
        """Return what is to run, before any of it has."""
        layers = {point.subject.layer for point in plan.points}
        made = _native_file(self._selection.pairs, self._selection.absent, plan, plan.rounds, layers)
        return made.model_copy(update={"measure_ms": SWEEP_MS})


def _run_ms(pair: Pair) -> int:
    somewhere = Ask(bytes=pair.bytes, window=1, place=pair.place, address="", device="", port=0, cpus=(0, 1))
    return SWEEP_MS + (RANKS_START_MS if pair.tool.commands(somewhere).ranks else START_MS)


def _native_file(
    pairs: Sequence[Pair], absent: Sequence[NativeAbsent], plan: Plan, rounds: int, layers: Collection[str]
) -> NativeFile:
    cells = cells_of(pairs, plan)
    ran = {cell.tool for cell in cells}
    return NativeFile(
        schema_=NativeFile.schema_id(),
        rounds=rounds,
        cells=cells,
        absent=tuple(
            one.model_copy(update={"layers": beside})
            for one in absent
            if (beside := tuple(name for name in one.layers if name in layers))
        ),
        versions=_versions({pair.tool.package for pair in pairs if pair.tool.name in ran}),
    )


def changed_versions(found: NativeFile) -> list[str]:
    """Return a sentence for each package of a tool that is another one than when the campaign began."""
    now = _versions(found.versions)
    return [
        f"{package} was {then} when the campaign began, and is {now.get(package, 'gone')} now"
        for package, then in found.versions.items()
        if now.get(package) != then
    ]


class InterleavingRunner:
    """A runner around another one: it runs a campaign's tools between the launches, and stores what they print."""

    def __init__(self, inner: Runner, writer: CampaignWriter, found: NativeFile) -> None:
        """`found`: as stored. Raises UnfitError where one of the tools is not here."""
        self._inner = inner
        self._writer = writer
        self._found = found
        self._cells = {cell.cell_id: cell for cell in found.cells}
        self._tools = tools_of(found)
        self._after: Mapping[str, Sequence[str]] = {}
        self._rounds: Mapping[str, int] = {}
        self._port = PORTS[0] + int(time.time()) % (PORTS[1] - PORTS[0])

    def __call__(
        self,
        testbed: Testbed,
        blocks: list[dict[str, JsonValue]],
        campaign: Path,
        on_event: OnEvent,
        on_launch: OnLaunch,
        stop: threading.Event,
    ) -> CampaignEnd:
        """Carry the blocks out. The plan may have grown since the last call."""
        plan = self._writer.campaign.plan
        self._after = schedule(self._found.cells, plan)
        self._rounds = {launch.launch_id: launch.round for launch in plan.launches}
        hosts = Hosts(testbed)

        def took(raw: Mapping[str, object]) -> None:
            before = self._writer.campaign.launch_ids()
            on_launch(raw)
            for name in self._writer.campaign.launch_ids() - before:  # none, where it came twice or fits no format
                self._run(name, hosts, stop)

        with hosts:
            return self._inner(testbed, blocks, campaign, on_event, took, stop)

    def _run(self, launch_id: str, hosts: Hosts, stop: threading.Event) -> None:
        """Run the tools that stand after a launch where it ran, on the processors of its two endpoints.

        Those that have given a number in this round do not run again; those for which there is no time are left.
        """
        begun_s, ran = time.monotonic(), False
        record = self._writer.campaign.launch(launch_id)
        for cell_id in self._after.get(launch_id, ()):
            had = self._found.by_run().get((cell_id, self._rounds[launch_id]))
            if had is not None and had.value is not None:
                continue
            if stop.is_set() or (ran and time.monotonic() - begun_s > BEGIN_WITHIN_S):
                return
            ran = True
            reading = self._reading(cell_id, record, hosts)
            self._found = self._found.model_copy(update={"readings": (*self._found.readings, reading)})
            self._writer.put_native(self._found)

    def _reading(self, cell_id: str, record: LaunchRecord, hosts: Hosts) -> NativeReading:
        cell, tool, plan = self._cells[cell_id], self._tools[cell_id], self._writer.campaign.plan
        launch_id, point = record.launch.launch_id, plan.by_id[cell.point_id]
        clients, servers = _ends(record, point, plan)
        client, server = clients[0], servers[0]
        self._port = PORTS[0] + (self._port + 1 - PORTS[0]) % (PORTS[1] - PORTS[0])
        ask = Ask(
            bytes=cell.bytes,
            window=plan.pattern_of(point).deep(point.workload) if cell.statistic == "rate" else 1,
            place=point.subject.place,
            address=server.address,
            device=server.device,
            port=self._port,
            cpus=tuple(end.cpus[0] for end in (*clients, *servers)),
            measure_ms=self._found.measure_ms or TARGET_MS,
        )
        head = {"cell_id": cell_id, "round": self._rounds[launch_id], "after": launch_id}
        try:
            fared = hosts.run(tool, ask, client.host, server.host)
        except (ToolError, OSError) as error:
            return NativeReading.model_validate({**head, "reason": str(error), "command": tool.name})
        more = {
            **head,
            "command": fared.command,
            "printed": last_words(fared.text),
            "wall_ns": fared.wall_ns,
            "run_wait_ns": fared.run_wait_ns,
            "voluntary_switches": fared.voluntary_switches,
        }
        try:
            value = tool.read(fared.text, ask)
        except ToolError as error:
            return NativeReading.model_validate({**more, "reason": str(error)})
        return NativeReading.model_validate({**more, "value": value})


def _ends(record: LaunchRecord, point: PlanPoint, plan: Plan) -> tuple[list[Endpoint], list[Endpoint]]:
    """Return who asks and who answers, as many pairs of them as the point has."""
    first = record.launch.endpoints[0].role
    clients = [end for end in record.launch.endpoints if end.role == first]
    servers = [end for end in record.launch.endpoints if end.role != first]
    pairs = pairs_of(point, plan)
    return clients[:pairs], servers[:pairs]


def _versions(packages: Iterable[str]) -> dict[str, str]:
    """Return the versions of Debian packages, as far as dpkg knows them."""
    named = sorted(set(packages) - {""})
    if not named:
        return {}
    query = ["dpkg-query", "--show", "--showformat", "${Package} ${Version}\n", *named]
    try:
        done = subprocess.run(query, capture_output=True, text=True, check=False, timeout=20)
    except (OSError, subprocess.SubprocessError):
        return {}
    return dict(line.split(" ", 1) for line in done.stdout.splitlines() if " " in line)
