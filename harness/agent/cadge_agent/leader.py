# SPDX-License-Identifier: BSD-3-Clause
"""The host that makes the block's launches."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import shlex
import shutil
import time

from cadge_agent import AGENT_VERSION
from cadge_agent.auth import connect_follower
from cadge_agent.child import MARK, Child, say_code
from cadge_agent.errors import HostLostError, LaunchFailedError
from cadge_agent.folders import write_whole
from cadge_agent.formats import RECORD_SCHEMA, Json
from cadge_agent.line import ANSWER_S, Line
from cadge_agent.names import hosts_of
from cadge_agent.outcome import outcome, port_taken
from cadge_agent.output import Output, tell_removed
from cadge_agent.reactor import Reactor
from cadge_agent.site import RESERVED_PORTS, Site, endpoint_command

ACK_S = 30.0  # the controller has to take a record within this, else the block goes on
AFTER_PEER_S = 3.0  # one endpoint gone: the other gets this long to write what it knows


class Leader:
    """The host of endpoint 0: makes the block's launches one after the other."""

    def __init__(self, site: Site, reactor: Reactor, output: Output) -> None:
        self.site = site
        self.block = site.block
        self.reactor = reactor
        self.output = output
        self.followers: dict[str, Line] = {}

    # -- talking to followers

    def _ask(self, host: str, order: Json, timeout_s: float = ANSWER_S) -> Json:
        line = self.followers[host]
        try:
            line.send(order)
            while True:
                answer = line.receive(timeout_s)
                if answer.get("answer") == order["do"]:
                    break
        except HostLostError as error:
            raise HostLostError(f"{host}: {error}") from error
        if "error" in answer:
            raise OSError(errno.EIO, answer["error"])
        return answer

    # -- one launch

    def _hosts_of(self, launch: Json) -> list[str]:
        return list(dict.fromkeys(endpoint["host"] for endpoint in launch["endpoints"]))

    def _prepare(self, launch: Json, attempt: int) -> dict[str, Json]:
        found = {}
        for host in self._hosts_of(launch):
            if host == self.site.name:
                found[host] = self.site.prepare(launch, attempt)
            else:
                found[host] = self._ask(host, {"do": "prepare", "launch": launch, "attempt": attempt})
        return found

    def _start(self, launch: Json, sites: dict[str, Json]) -> None:
        last = launch["endpoints"][-1]
        port = sites[last["host"]]["port"]
        address = next(host for host in self.block["hosts"] if host["name"] == last["host"])["management_address"]
        oob = f"{address}:{port}"
        if launch["launcher"] == "mpirun":
            argv = self._mpirun(launch, sites, oob)
            self.site.children[0] = Child(argv, self.site.log_file(launch, 0), self._mpi_environment())
            return
        if len(launch["endpoints"]) > 1:
            if last["host"] == self.site.name:
                self.site.start(launch, 1, oob)
            else:
                order = {"do": "start", "launch": launch, "endpoint": 1, "oob": oob}
                self._ask(last["host"], order)
        self.site.start(launch, 0, oob)

    def _mpi_environment(self) -> dict[str, str]:
        own = self.site.environment()
        if os.geteuid() == 0:  # only there: a user's mpirun is not told to allow what he is not
            for prefix in ("OMPI", "PRTE"):
                own[f"{prefix}_ALLOW_RUN_AS_ROOT"] = "1"
                own[f"{prefix}_ALLOW_RUN_AS_ROOT_CONFIRM"] = "1"
        return own

    def _mpirun(self, launch: Json, sites: dict[str, Json], oob: str) -> list[str]:
        mpirun = self.block.get("mpirun") or {}
        program = shutil.which(mpirun.get("path", "mpirun"), path=self.site.environment()["PATH"])
        if program is None:
            raise LaunchFailedError("NODE_LACKS", f"{self.site.name} has no program {mpirun.get('path', 'mpirun')}")
        argv = [program, *mpirun.get("options", [])]
        if launch["place"] == "between" and self.site.management_network:
            argv += ["--mca", "oob_tcp_if_include", self.site.management_network]
        # One command for both, which looks at its rank: PMIx 5.0.7 crashes over two commands joined by ':'.
        cases = []
        for number, endpoint in enumerate(launch["endpoints"]):
            command = endpoint_command(sites[endpoint["host"]], number, oob)
            if number == 0:
                command += ["--out", str(self.site.result_file(launch))]
            cases.append(f"{number}) exec {' '.join(map(shlex.quote, command))};;")
        hosts = [f"{endpoint['host']}:1" for endpoint in launch["endpoints"]]
        where = ",".join(hosts) if launch["place"] == "between" else f"localhost:{len(hosts)}"
        script = f"case $OMPI_COMM_WORLD_RANK in {' '.join(cases)} esac; exit 70"
        return [*argv, "-n", str(len(hosts)), "--host", where, "-x", MARK, "sh", "-c", script]

    def _await(self, launch: Json) -> LaunchFailedError | None:
        """Sleep until the launch is over; returns what went wrong outside the driver, if anything."""
        first, own_server = self.site.children[0], self.site.children.get(1)
        remote = [self.followers[host] for host in self._hosts_of(launch) if host != self.site.name]
        exited: list[Json] = []

        def over() -> bool:
            for line in remote:
                exited.extend(message for message in line.lines if "exited" in message)
                line.lines = [message for message in line.lines if "exited" not in message]
                if line.lost:
                    return True
            server_gone = bool(exited) or (own_server is not None and own_server.code() not in (None, 0))
            return first.code() is not None or server_gone

        deadline_s = launch["deadline_ms"] / 1000 + 1.0
        if not self.reactor.wait(over, deadline_s):
            return LaunchFailedError("DEADLINE", f"the launch did not end within {launch['deadline_ms']} ms")
        if any(line.lost for line in remote):
            raise HostLostError("a host of the launch is gone")
        if first.code() is None:  # the server went first: the client is given time to say so itself
            self.reactor.wait(lambda: first.code() is not None, AFTER_PEER_S)
            code = exited[0]["code"] if exited else (own_server.code() if own_server else None)
            return LaunchFailedError("PEER_LOST", f"endpoint 1 ended early {say_code(code)}")
        if own_server is not None and first.code() == 0:
            self.reactor.wait(lambda: own_server.code() is not None, AFTER_PEER_S)
        return None

    def _finish(self, launch: Json, good: bool) -> list[Json]:
        reports = []
        for host in self._hosts_of(launch):
            if host == self.site.name:
                reports.append(self.site.finish(launch))
            else:
                grace_s = AFTER_PEER_S if good and launch["launcher"] == "direct" else 0
                order = {"do": "finish", "launch": launch, "grace_s": grace_s}
                reports.append(self._ask(host, order, ANSWER_S + AFTER_PEER_S))
        return reports

    def _one(self, launch: Json, attempt: int) -> Json:
        """Make one launch; returns its record."""
        failure: LaunchFailedError | None = None
        result: Json | None = None
        result_file = self.site.result_file(launch)
        with contextlib.suppress(OSError):
            result_file.unlink()
        try:
            lacking = self._lacking(launch)
            sites = self._prepare(launch, attempt)
            if lacking:
                raise lacking
            self._start(launch, sites)
            failure = self._await(launch)
        except LaunchFailedError as error:
            failure = error
        except OSError as error:
            failure = LaunchFailedError("TRANSPORT", f"the launch could not be started: {error.strerror or error}")
        first = self.site.children.get(0)
        good = failure is None and first is not None and first.code() == 0
        reports = self._finish(launch, good)
        with contextlib.suppress(OSError, ValueError):
            result = json.loads(result_file.read_text(encoding="utf-8"))
        with contextlib.suppress(OSError):
            result_file.unlink()
        codes: Json = {}
        logs: Json = {}
        for report in reports:
            codes.update(report.pop("exit_codes"))
            logs.update(report.pop("logs"))
            tell_removed(self.output, report["counters"]["host"], report.pop("removed"))
        numbers = [str(number) for number in range(len(launch["endpoints"]))]
        status, reason, reason_code = outcome(result, failure, codes.get("0"))
        return {
            "schema": RECORD_SCHEMA,
            "launch": launch,
            "result": result,
            "status": status,
            "reason": reason,
            "reason_code": reason_code,
            "counters": [report["counters"] for report in reports],
            "link": [report["link"] for report in reports],
            "load": [report["load"] for report in reports],
            "shared_memory": [report["shared_memory"] for report in reports],
            "exit_codes": [codes.get(number) for number in numbers],
            "log_tail": [logs.get(number, "") for number in numbers],
            "agent_version": AGENT_VERSION,
        }

    def _lacking(self, launch: Json) -> LaunchFailedError | None:
        """Give a reason not to start at all: the program or the layer is not on this host."""
        program = self.site.program(launch)
        if not os.access(program, os.X_OK):
            return LaunchFailedError("BUILD_ABSENT", f"{self.site.name} has no program {program.name} in its build")
        layers = self.site.build / "layers"
        if launch["kind"] == "layer" and not (layers / f"{launch['layer']}.so").exists():
            absent = layers / f"{launch['layer']}.absent"
            why = absent.read_text(encoding="utf-8").strip() if absent.exists() else "it was not built"
            return LaunchFailedError("BUILD_ABSENT", f"layer {launch['layer']} is not in the build: {why}")
        return None

    def make(self, given: Json) -> Json:
        """Make a launch, once more with other ports if one was taken; returns its record."""
        first, last = self.block["ports"]
        record: Json = {}
        for attempt in range(2):
            span = (last - RESERVED_PORTS - first) // 2
            shift = attempt * span
            launch = {**given, "ports": [first + shift, first + shift + span]}
            record = self._one(launch, attempt)
            if not port_taken(record):
                break
        return record

    # -- the block

    def _send(self, record: Json) -> None:
        name = record["launch"]["launch_id"]
        self.output.emit("launch_record", launch_id=name, record=record)
        if self.reactor.wait(lambda: name in self.reactor.acks, ACK_S):
            with contextlib.suppress(OSError):
                (self.site.work / "done" / f"{name}.json").replace(self.site.work / "collected" / f"{name}.json")

    def _known(self, launch_id: str) -> Json | None:
        for folder in ("done", "collected"):
            path = self.site.work / folder / f"{launch_id}.json"
            with contextlib.suppress(OSError, ValueError):
                found: Json = json.loads(path.read_text(encoding="utf-8"))
                return found
        return None

    def run(self) -> int:
        """Make every launch of the block that is not done yet."""
        launches = self.block["launches"]
        token = self.site.token_file.read_bytes().strip()
        todo = sum(1 for launch in launches if self._known(launch["launch_id"]) is None)
        node, name = self.site.node, self.site.name
        self.output.emit("ready", host=name, leader=True, todo=todo, agent_version=AGENT_VERSION, node=node)
        needed = hosts_of(launches) - {self.site.name}
        for host in self.block["hosts"]:
            if host["name"] in needed:
                self.followers[host["name"]] = connect_follower(host, self.block, token, self.reactor)
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
                self.output.emit("launch_started", launch_id=name, number=number + 1, of=len(launches))
                record = self.make(launch)
                self._keep(record)
                made += 1
            else:
                kept += 1
            self.output.emit(
                "launch_finished",
                launch_id=name,
                status=record["status"],
                reason=record["reason"],
                reason_code=record["reason_code"],
                wall_ns=time.monotonic_ns() - started,
                kept=known,
            )
            self._send(record)
        for line in self.followers.values():
            line.send({"do": "bye"})
        stopped = self.reactor.stop_reason is not None
        self.output.emit("block_finished", host=self.site.name, made=made, kept=kept, stopped=stopped)
        return 0

    def _keep(self, record: Json) -> None:
        try:
            write_whole(self.site.work / "done" / f"{record['launch']['launch_id']}.json", record)
        except OSError as error:
            reason = f"a finished launch could not be kept on {self.site.name}: {error.strerror}"
            self.output.emit("problem", host=self.site.name, reason=reason)
