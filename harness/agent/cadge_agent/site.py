# SPDX-License-Identifier: BSD-3-Clause
"""What one host does for a launch."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import socket
import sys
import tempfile
from collections.abc import Iterable, Iterator, Sequence, Set
from pathlib import Path

from cadge_agent.child import MARK, Child, kill_all, kill_marked, tail
from cadge_agent.environment import empty_folder, endpoint_environment, of_the_driver, variables_of
from cadge_agent.errors import BadBlockError, LaunchFailedError
from cadge_agent.folders import OWN_FOLDERS, own_folder, remove_own_folder
from cadge_agent.formats import Block, Json, Launch
from cadge_agent.host.kernel import KernelValues
from cadge_agent.host.network import (
    address_of,
    device_of,
    family_of,
    interface_counters,
    offloads,
    rate_of,
    steal_ns,
    xdp_attached,
)
from cadge_agent.host.quota import throttled_ns
from cadge_agent.orders import OfProvider, Programs, Report
from cadge_agent.provider import provider_of, with_provider
from cadge_agent.shared_memory import SharedMemory

RESERVED_PORTS = 8  # of the block's range, at its end: 4 for drivers to find each other, then 4 for agents

LENDER = Path("/run/cadge-rights/setpriv")
"""On emulated hosts alone, where the supervisor makes it (cadge_harness/testbed/supervisor.py)."""


def lending(rights: Sequence[str]) -> list[str]:
    """Return what is put before a command that needs rights; nothing where root has them, or nobody lends any.

    The command has them in its ambient set, and gives them up once it is open (harness/driver/session/rights.h).
    """
    if not rights or os.geteuid() == 0 or not os.access(LENDER, os.X_OK):
        return []
    names = ",".join(f"+{name}" for name in rights)
    return [str(LENDER), "--inh-caps", names, "--ambient-caps", names, "--"]


def listening(address: str, ports: Iterable[int]) -> socket.socket | None:
    """Listen at the first free of `ports`; None: all are taken. Raises OSError."""
    own = address_of(address)
    for port in ports:
        listener = socket.socket(family_of(own))
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind((own, port))
            listener.listen(64)
        except OSError as error:
            listener.close()
            if error.errno != errno.EADDRINUSE:
                raise
            continue
        return listener
    return None


class HostSite:
    """What one host does for a launch: keep files, look at its devices, run endpoints. Used on leader and followers."""

    def __init__(self, block: Block, name: str, work: Path, build: Path) -> None:
        self.block = block
        self.name = name
        self.work = work
        self.build = build
        found = next((host for host in block["hosts"] if host["name"] == name), None)
        if found is None:
            raise BadBlockError(f"block {block['block_id']} has no host {name}")
        self.host = found
        self.token_file = work / "token"
        self.mark = f"{block['campaign_id']}:{block['block_id']}"
        for folder in ("done", "collected", "launches", "logs"):
            (work / folder).mkdir(exist_ok=True)
        self.scratch = own_folder(Path(tempfile.gettempdir()), work)
        self.home = self.scratch / "home"
        empty_folder(self.home)
        self.memory = SharedMemory(work, self.home, self.program)
        folders = [str(folder) for folder in (self.scratch, self.memory.folder) if folder]
        (work / OWN_FOLDERS).write_text(json.dumps(folders), encoding="utf-8")
        self.kernel = KernelValues(work, name, found["device"], block["campaign_id"])
        self.children: dict[int, Child] = {}
        self.given: dict[str, str] = {}
        self.variables: dict[str, str] = {}
        self.provider: OfProvider | None = None
        self._before: Json = {}
        management = None
        with contextlib.suppress(OSError):
            address = address_of(self.host["management_address"])  # which may be a name
            management = device_of(address)
        self.node: Json | None = None
        with contextlib.suppress(OSError, ValueError):
            self.node = json.loads((work / "node.json").read_text(encoding="utf-8"))
        self.management_device = management[0] if management else None
        self.management_network = f"{address}/{management[1]}" if management else None
        devices = [self.host["device"], self.management_device, self.host.get("raw_device"), "lo"]
        self.devices = [device for device in devices if device]

    @property
    def program(self) -> Path:
        """The driver."""
        return self.build / "bin" / "cadge-driver"

    # -- ports

    def listener(self, ports: Iterable[int]) -> socket.socket | None:
        """Listen at the first free of `ports`; None: all are taken. Raises BadBlockError where no port could be had."""
        address = self.host["management_address"]
        try:
            return listening(address, ports)
        except OSError as error:
            raise BadBlockError(
                f"{self.name} cannot listen at {address}: {error.strerror}; "
                "set its cadge_management_address to an address of its own"
            ) from error

    def meeting_port(self, attempt: int) -> int:
        """Find a free port for endpoint 0 to wait for the others at. Raises LaunchFailedError, and as `listener`."""
        last = int(self.block["ports"][1])
        candidates = [last - RESERVED_PORTS + 1 + (attempt + step) % 4 for step in range(4)]
        trial = self.listener(candidates)
        if trial is None:
            taken = f"ports {min(candidates)}-{max(candidates)} of {self.name} are all taken"
            raise LaunchFailedError("PORT", taken)
        with trial:
            return int(trial.getsockname()[1])

    # -- looking at the host

    def _snapshot(self) -> Json:
        device = self.host["device"]
        return {
            "counters": interface_counters(self.devices),
            "link": {"xdp": xdp_attached(device), "offloads": offloads(device), "rate_bits": rate_of(device)},
            "loadavg": os.getloadavg()[0],
            "steal_ns": steal_ns(),
            "throttled_ns": throttled_ns(),
        }

    def _uncounted(self, counted: Set[str]) -> list[str]:
        """Say which interfaces should have been counted and were not: what they carried, nobody knows."""
        missing = [f"{device}: there is no such interface" for device in self.devices if device not in counted]
        if self.management_device is None:
            missing.append(f"the management network: no interface here has {self.host['management_address']}")
        return missing

    # -- a launch

    def prepare(self, launch: Launch, *, of_machine: bool) -> Programs:
        """Get ready for a launch; returns what makes the commands of this host's endpoints.

        of_machine: set also values of the kernel that hosts share. Raises LaunchFailedError.
        """
        self.children = {}
        self.variables = variables_of(launch["settings"])
        self.provider = provider_of(self.build, launch["layer"])
        self.given = self.environment()
        empty_folder(self.home)
        self.memory.renew()
        self.launch_file(launch).write_text(json.dumps(of_the_driver(launch)), encoding="utf-8")
        self.kernel.set(launch["settings"], of_machine=of_machine)
        self._before = self._snapshot()
        return {
            # rights end where a user namespace begins; who needs them keeps nothing in shared memory
            "before": lending(launch.get("rights", ())) or self.memory.before,
            "program": (self.provider and self.provider["driver"]) or str(self.program),
            "launch_file": str(self.launch_file(launch)),
            "modules": str(self.build / "layers"),
            "token_file": str(self.token_file),
            "environment": self.environment(),
            "folder": str(self.home),
        }

    def own_endpoints(self, launch: Launch) -> Iterator[int]:
        """Yield the numbers of the endpoints that run on this host."""
        return (number for number, endpoint in enumerate(launch["endpoints"]) if endpoint["host"] == self.name)

    def launch_file(self, launch: Launch) -> Path:
        """Where this host keeps the launch file."""
        return self.work / "launches" / f"{launch['launch_id']}.json"

    def result_file(self, launch: Launch) -> Path:
        """Where endpoint 0 writes."""
        return self.work / "launches" / f"{launch['launch_id']}.result.json"

    def log_file(self, launch: Launch, endpoint: int) -> Path:
        """Where an endpoint's output goes."""
        return self.work / "logs" / f"{launch['launch_id']}.{endpoint}.log"

    def environment(self) -> dict[str, str]:
        """Environment of every process of a launch."""
        found = with_provider(endpoint_environment(self.host, self.home, self.scratch), self.provider)
        return {**self.variables, **found, MARK: self.mark}

    def start(self, launch: Launch, programs: Programs, oob: str) -> None:
        """Start this host's endpoints of a launch with launcher direct."""
        for number in self.own_endpoints(launch):
            argv = [*endpoint_command(programs, oob), "--endpoint", str(number)]
            if number == 0:
                argv += ["--out", str(self.result_file(launch))]
            self.children[number] = Child(argv, self.log_file(launch, number), self.given, self.home)

    def ended_badly(self) -> dict[int, int]:
        """Return the endpoints that have ended otherwise than well, with their exit statuses."""
        codes = {number: child.code() for number, child in self.children.items()}
        return {number: code for number, code in codes.items() if code}

    def ended(self) -> bool:
        """Whether every endpoint of this host has ended."""
        return all(child.code() is not None for child in self.children.values())

    def end(self, launch: Launch) -> list[str]:
        """Kill what is left of the launch; returns the names of what it had left in shared memory and is removed."""
        kill_all(self.children)
        ended = [child.pid for child in self.children.values()]
        if launch["launcher"] == "mpirun":
            ended += kill_marked(self.mark)
        return self.memory.tidy(ended)

    def finish(self, launch: Launch) -> Report:
        """End the launch and report: snapshots, exit codes and logs of the endpoints that ran here."""
        removed = self.end(launch)
        after = self._snapshot()
        before = self._before or after
        report: Report = {
            "counters": {
                "host": self.name,
                "before": before["counters"],
                "after": after["counters"],
                "uncounted": self._uncounted(before["counters"].keys() | after["counters"].keys()),
            },
            "link": {"host": self.name, "before": before["link"], "after": after["link"]},
            "load": {  # cadge: another load, that of the host
                "host": self.name,
                "loadavg": before["loadavg"],
                "steal_ns": max(0, after["steal_ns"] - before["steal_ns"]),
                "throttled_ns": _more(before["throttled_ns"], after["throttled_ns"]),
            },
            "shared_memory": {
                "host": self.name,
                "kind": self.memory.kind,
                "why": self.memory.why,
                "variables": self.memory.variables,
            },
            "environment": {
                "host": self.name,
                "variables": {name: value for name, value in sorted(self.given.items()) if name != MARK},
            },
            "kernel": self.kernel.report(),
            "removed": removed,
            "problems": self.kernel.restore(),
            "exit_codes": {str(number): child.code() for number, child in self.children.items()},
            "logs": {str(number): tail(self.log_file(launch, number)) for number in self.children},
        }
        for number in self.children:
            with contextlib.suppress(OSError):
                self.log_file(launch, number).unlink()
        with contextlib.suppress(OSError):
            self.launch_file(launch).unlink()
        return report

    def close(self) -> list[str]:
        """Leave nothing: processes, shared memory, scratch files; returns the names of what was in shared memory."""
        kill_all(self.children, 0)
        ended = [child.pid for child in self.children.values()] + kill_marked(self.mark)
        removed = self.memory.tidy(ended)
        for text in self.kernel.restore():
            sys.stderr.write(f"agent: {text}\n")
        self.memory.close()
        remove_own_folder(self.scratch)
        return removed


def _more(before: int | None, after: int | None) -> int | None:
    return None if before is None or after is None else max(0, after - before)


def endpoint_command(programs: Programs, oob: str) -> list[str]:
    """Command line of an endpoint, but for its number and its output; `oob` is empty where it is the only one."""
    found = [*programs["before"], programs["program"], "run", "--launch", programs["launch_file"]]
    found += ["--modules", programs["modules"]]
    return found + (["--oob", oob, "--token-file", programs["token_file"]] if oob else [])
