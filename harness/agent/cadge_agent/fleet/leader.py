# SPDX-License-Identifier: BSD-3-Clause
"""The host that makes the block's launches, one after the other."""

from __future__ import annotations

import contextlib
import json
import time

from cadge_agent import AGENT_VERSION
from cadge_agent.fleet.fleet import Fleet
from cadge_agent.folders import write_whole
from cadge_agent.formats import Record
from cadge_agent.launch import make_launch
from cadge_agent.output import LeaseOutput
from cadge_agent.reactor import Reactor
from cadge_agent.site import HostSite

ACK_S = 30.0  # the controller has to take a record within this, else the block goes on


class Leader:
    """The host of endpoint 0 of every launch."""

    def __init__(self, site: HostSite, reactor: Reactor, output: LeaseOutput) -> None:
        self.site = site
        self.reactor = reactor
        self.output = output
        self.fleet = Fleet(site, reactor)

    def run(self) -> int:
        """Make every launch of the block that is not done yet."""
        launches = self.site.block["launches"]
        token = self.site.token_file.read_bytes().strip()
        todo = sum(1 for launch in launches if self._known(launch["launch_id"]) is None)
        self.output.emit(
            {
                "event": "ready",
                "host": self.site.name,
                "leader": True,
                "todo": todo,
                "agent_version": AGENT_VERSION,
                "realtime_ns": time.time_ns(),
                "node": self.site.node,
            }
        )
        self.fleet.connect(token)
        made = kept = 0
        for number, launch in enumerate(launches):
            self.reactor.check()
            if self.reactor.stop_reason is not None:
                break
            name = launch["launch_id"]
            record = self._known(name)
            known = record is not None
            started = time.monotonic_ns()
            if record is None:
                self.output.emit(
                    {"event": "launch_started", "launch_id": name, "number": number + 1, "of": len(launches)}
                )
                record = make_launch(launch, self.fleet, self.reactor, self.output)
                self._keep(record)
                made += 1
            else:
                kept += 1
            self.output.emit(
                {
                    "event": "launch_finished",
                    "launch_id": name,
                    "status": record["status"],
                    "reason": record["reason"],
                    "reason_code": record["reason_code"],
                    "wall_ns": time.monotonic_ns() - started,
                    "kept": known,
                }
            )
            self._send(record)
        self.fleet.goodbye()
        stopped = self.reactor.stop_reason is not None
        self.output.emit(
            {"event": "block_finished", "host": self.site.name, "made": made, "kept": kept, "stopped": stopped}
        )
        return 0

    def _send(self, record: Record) -> None:
        name = record["launch"]["launch_id"]
        self.output.emit({"event": "launch_record", "launch_id": name, "record": record})
        if self.reactor.wait(lambda: name in self.reactor.acks, ACK_S):
            with contextlib.suppress(OSError):
                (self.site.work / "done" / f"{name}.json").replace(self.site.work / "collected" / f"{name}.json")

    def _known(self, launch_id: str) -> Record | None:
        for folder in ("done", "collected"):
            path = self.site.work / folder / f"{launch_id}.json"
            with contextlib.suppress(OSError, ValueError):
                found: Record = json.loads(path.read_text(encoding="utf-8"))
                return found
        return None

    def _keep(self, record: Record) -> None:
        try:
            write_whole(self.site.work / "done" / f"{record['launch']['launch_id']}.json", record)
        except OSError as error:
            reason = f"a finished launch could not be stored on {self.site.name}: {error.strerror}"
            self.output.emit({"event": "problem", "host": self.site.name, "reason": reason})
