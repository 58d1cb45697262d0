# SPDX-License-Identifier: BSD-3-Clause
"""One launch, from its first port to its record."""

from __future__ import annotations

import contextlib
import json
import os

from cadge_agent import AGENT_VERSION
from cadge_agent.child import Child, say_code
from cadge_agent.errors import HostLostError, LaunchFailedError
from cadge_agent.fleet.fleet import Fleet
from cadge_agent.formats import RECORD_SCHEMA, Json, Launch, Record
from cadge_agent.host.network import with_port
from cadge_agent.mpirun import mpi_command, mpi_environment, patience_of, started_by
from cadge_agent.outcome import outcome, port_taken, with_room
from cadge_agent.output import LeaseOutput, tell_removed
from cadge_agent.reactor import Reactor
from cadge_agent.segments import room_of
from cadge_agent.site import RESERVED_PORTS, HostSite

AFTER_PEER_S = 3.0  # one endpoint gone: the others get this long to write what they know
PORTS_A_CONTEXT = 2  # that a layer may want on one host


def make_launch(given: Launch, fleet: Fleet, reactor: Reactor, output: LeaseOutput) -> Record:
    """Make a launch, once more if a port was taken (with others); returns its record."""
    for attempt in range(2):
        launch = given.copy()
        contexts = sum(len(endpoint["cpus"]) or 1 for endpoint in given["endpoints"])
        launch["ports"] = ports_of(fleet.site.block["ports"], contexts, attempt)
        record = _Making(launch, attempt, fleet, reactor, output).record()
        if not port_taken(record):
            break
    return record


def ports_of(block: list[int], contexts: int, attempt: int) -> list[int]:
    """Return the ports that a launch's layers may use: half of the block's for each attempt, all where half is few.

    Each thread of an endpoint has a context, which may want ports of its own.
    """
    first, last = block[0], block[1] - RESERVED_PORTS
    half = (last - first) // 2
    if half < PORTS_A_CONTEXT * contexts:
        return [first, last]
    return [first + attempt * half, first + attempt * half + half]


class _Making:
    """One attempt at a launch."""

    def __init__(self, launch: Launch, attempt: int, fleet: Fleet, reactor: Reactor, output: LeaseOutput) -> None:
        self.launch = launch
        self.attempt = attempt
        self.fleet = fleet
        self.site: HostSite = fleet.site
        self.reactor = reactor
        self.output = output
        self.started_by = ""
        self.patience_s = 0.0

    def record(self) -> Record:
        """Make it; returns its record."""
        failure: LaunchFailedError | None = None
        result: Json | None = None
        result_file = self.site.result_file(self.launch)
        with contextlib.suppress(OSError):
            result_file.unlink()
        try:
            self._start()
            failure = self._await()
        except LaunchFailedError as error:
            failure = error
        except OSError as error:
            failure = LaunchFailedError("SYSTEM", f"the launch could not be started: {error.strerror or error}")
        first = self.site.children.get(0)
        good = failure is None and first is not None and first.code() == 0
        grace_s = AFTER_PEER_S if good and self.launch["launcher"] == "direct" else 0.0
        reports = self.fleet.finish(self.launch, grace_s)
        with contextlib.suppress(OSError, ValueError):
            result = json.loads(result_file.read_text(encoding="utf-8"))
        with contextlib.suppress(OSError):
            result_file.unlink()
        codes: dict[str, int | None] = {}
        logs: dict[str, str] = {}
        for report in reports:
            codes.update(report["exit_codes"])
            logs.update(report["logs"])
            host = report["counters"]["host"]
            tell_removed(self.output, host, report["removed"])
            for text in report["problems"]:
                self.output.emit({"event": "problem", "host": host, "reason": text})
        status, reason, reason_code = outcome(result, failure, codes, logs)
        if status == "failed":
            reason = with_room(reason, logs.values(), room_of(self.site.name))
        numbers = [str(number) for number in range(len(self.launch["endpoints"]))]
        record: Record = {
            "schema": RECORD_SCHEMA,
            "launch": self.launch,
            "result": result,
            "status": status,
            "reason": reason,
            "reason_code": reason_code,
            "counters": [report["counters"] for report in reports],
            "link": [report["link"] for report in reports],
            "load": [report["load"] for report in reports],  # cadge: another load, that of the hosts
            "shared_memory": [report["shared_memory"] for report in reports],
            "environment": [report["environment"] for report in reports],
            "exit_codes": [codes.get(number) for number in numbers],
            "log_tail": [logs.get(number, "") for number in numbers],
            "agent_version": AGENT_VERSION,
        }
        if kernel := [report["kernel"] for report in reports if report["kernel"]["before"]]:
            record["kernel"] = kernel
        if self.started_by:
            record["started_by"] = self.started_by
        return record

    def _start(self) -> None:
        programs = self.fleet.prepare(self.launch)
        self._refuse_what_is_not_built()
        oob = ""
        if len(self.launch["endpoints"]) > 1:
            oob = with_port(self.site.host["management_address"], self.site.meeting_port(self.attempt))
        if self.launch["launcher"] == "mpirun":
            argv = mpi_command(self.site, self.launch, programs, oob)
            self.started_by, self.patience_s = started_by(self.site), patience_of(self.site)
            self.site.given = mpi_environment(self.site, self.launch)
            log = self.site.log_file(self.launch, 0)
            self.site.children[0] = Child(argv, log, self.site.given, self.site.home)
        else:
            self.fleet.start(self.launch, programs[self.site.name], oob)

    def _refuse_what_is_not_built(self) -> None:
        """Raise LaunchFailedError where the program or the layer is not on this host."""
        program = self.site.program
        if not os.access(program, os.X_OK):
            raise LaunchFailedError("BUILD_ABSENT", f"{self.site.name} has no program {program.name} in its build")
        layer = self.launch["layer"]
        layers = self.site.build / "layers"
        if self.launch["kind"] == "layer" and not (layers / f"{layer}.so").exists():
            absent = layers / f"{layer}.absent"
            why = absent.read_text(encoding="utf-8").strip() if absent.exists() else "it was not built"
            raise LaunchFailedError("BUILD_ABSENT", f"layer {layer} is not in the build: {why}")

    def _await(self) -> LaunchFailedError | None:
        """Sleep until the launch is over; returns what went wrong outside the driver, if anything."""
        first = self.site.children[0]

        def over() -> bool:
            return first.code() is not None or self.fleet.lost(self.launch) or bool(self._lost_endpoints())

        deadline_s = self.launch["deadline_ms"] / 1000 + 1.0 + self.patience_s
        if not self.reactor.wait(over, deadline_s):
            return LaunchFailedError("DEADLINE", f"the launch did not end within {self.launch['deadline_ms']} ms")
        if self.fleet.lost(self.launch):
            raise HostLostError("a host of the launch is gone")
        if first.code() is None:  # another went first: endpoint 0 is given time to say so itself
            number, code = next(iter(self._lost_endpoints().items()))
            self.reactor.wait(lambda: first.code() is not None, AFTER_PEER_S)
            return LaunchFailedError("PEER_LOST", f"endpoint {number} ended early {say_code(code)}")
        if first.code() == 0:
            self.reactor.wait(self.site.ended, AFTER_PEER_S)
        return None

    def _lost_endpoints(self) -> dict[int, int]:
        return {number: code for number, code in self.fleet.ended_badly(self.launch).items() if number != 0}
