# SPDX-License-Identifier: BSD-3-Clause
"""Native tools between the launches of a campaign: while one runs, the agent waits for us to take its last record.

An agent begins its next launch when the record of the one before has been stored. So what runs before that stands
between two launches, on the same hosts and the same processors, and nothing of ours runs beside it.
"""

from __future__ import annotations

import subprocess
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from pydantic import JsonValue

from cadge_harness.native.cells import WINDOW, Pair, by_size, cells_of, schedule
from cadge_harness.native.hosts import Hosts
from cadge_harness.native.tool import Ask, ToolError, last_words
from cadge_results import CampaignWriter, LaunchRecord, NativeAbsent, NativeFile, NativeReading, Plan

if TYPE_CHECKING:
    from cadge_harness.run.session import Ended, OnEvent, OnLaunch, Runner
    from cadge_harness.testbed.model import Testbed
    from cadge_results.launch import Endpoint

PORTS = (18750, 19749)
"""Those of the tools, in turn: a server that ended first keeps its port from others for a minute."""


class Beside:
    """A campaign's pairs: its plan, and its runner with the tools between the launches."""

    def __init__(self, pairs: Sequence[Pair], absent: Sequence[NativeAbsent], rounds: int) -> None:
        """`absent`: tools that do not run at all."""
        self._pairs = {pair.cell_id: pair for pair in pairs}
        self._absent = tuple(absent)
        self._rounds = rounds

    def plan(self, plan: Plan) -> Plan:
        """Return the plan with a launch for each pattern and size."""
        return by_size(plan, len(self._pairs) * self._rounds)

    def runner(self, inner: Runner, writer: CampaignWriter) -> Runner:
        """Return a runner that runs tools between launches and stores what they print."""
        plan = writer.campaign.plan
        cells = cells_of(list(self._pairs.values()), plan)
        found = NativeFile(
            schema_=NativeFile.schema_id(),
            rounds=self._rounds,
            cells=cells,
            absent=self._absent,
            versions=_versions(sorted({pair.tool.package for pair in self._pairs.values() if pair.tool.package})),
        )
        writer.put_native(found)
        return _Between(inner, writer, found, self._pairs)


class _Between:
    """A runner around another one."""

    def __init__(self, inner: Runner, writer: CampaignWriter, found: NativeFile, pairs: Mapping[str, Pair]) -> None:
        self._inner = inner
        self._writer = writer
        self._found = found
        self._pairs = pairs
        plan = writer.campaign.plan
        self._after = schedule(found.cells, plan)
        self._rounds = {launch.launch_id: launch.round for launch in plan.launches}
        self._port = PORTS[0]

    def __call__(
        self,
        testbed: Testbed,
        blocks: list[dict[str, JsonValue]],
        campaign: Path,
        on_event: OnEvent,
        on_launch: OnLaunch,
        stop: threading.Event,
    ) -> Ended:
        """Carry the blocks out."""
        hosts = Hosts(testbed)

        def took(raw: Mapping[str, object]) -> None:
            on_launch(raw)
            launch = raw.get("launch")
            name = str(launch.get("launch_id", "")) if isinstance(launch, dict) else ""
            if not stop.is_set() and self._after.get(name):
                self._run(name, hosts)

        with hosts:
            return self._inner(testbed, blocks, campaign, on_event, took, stop)

    def _run(self, launch_id: str, hosts: Hosts) -> None:
        """Run the tools that stand after a launch where it ran, on the processors of its two endpoints."""
        record = self._writer.campaign.launch(launch_id)
        ends = _ends(record)
        readings = [self._reading(cell_id, launch_id, ends, hosts) for cell_id in self._after[launch_id]]
        self._found = self._found.model_copy(update={"readings": (*self._found.readings, *readings)})
        self._writer.put_native(self._found)

    def _reading(self, cell_id: str, launch_id: str, ends: tuple[Endpoint, Endpoint], hosts: Hosts) -> NativeReading:
        pair = self._pairs[cell_id]
        client, server = ends
        self._port = PORTS[0] + (self._port + 1 - PORTS[0]) % (PORTS[1] - PORTS[0])
        ask = Ask(
            bytes=pair.bytes,
            window=WINDOW if pair.rate else 1,
            place=pair.place,
            address=server.address,
            device=server.device,
            port=self._port,
            cpus=(client.cpus[0], server.cpus[0]),
        )
        head = {"cell_id": cell_id, "round": self._rounds[launch_id], "after": launch_id}
        try:
            fared = hosts.run(pair.tool, ask, client.host, server.host)
        except (ToolError, OSError) as error:
            return NativeReading.model_validate({**head, "reason": str(error), "command": pair.tool.name})
        more = {
            **head,
            "command": fared.command,
            "printed": last_words(fared.text),
            "wall_ns": fared.wall_ns,
            "run_wait_ns": fared.run_wait_ns,
            "voluntary_switches": fared.voluntary_switches,
        }
        try:
            value = pair.tool.read(fared.text, ask)
        except ToolError as error:
            return NativeReading.model_validate({**more, "reason": str(error)})
        return NativeReading.model_validate({**more, "value": value})


def _ends(record: LaunchRecord) -> tuple[Endpoint, Endpoint]:
    """Return who asks and who answers."""
    client, *others = record.launch.endpoints
    return client, others[0]


def _versions(packages: Sequence[str]) -> dict[str, str]:
    """Return the versions of Debian packages, as far as dpkg knows them."""
    query = ["dpkg-query", "--show", "--showformat", "${Package} ${Version}\n", *packages]
    try:
        done = subprocess.run(query, capture_output=True, text=True, check=False, timeout=20)
    except (OSError, subprocess.SubprocessError):
        return {}
    return dict(line.split(" ", 1) for line in done.stdout.splitlines() if " " in line)
