# SPDX-License-Identifier: BSD-3-Clause
"""Looks at every host of an inventory before anybody measures there: one run of Ansible, all hosts at a time.

A host that cannot be reached, or does not answer in time, is a fault of its own and holds up no other.
"""

from __future__ import annotations

import secrets
import tempfile
import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from cadge_harness.errors import printable
from cadge_harness.run import ansible_files as files
from cadge_harness.run.ansible_io import BY_HAND, sentence
from cadge_harness.run.lease import LeaseServer, Peer
from cadge_harness.run.playbook import Process, play
from cadge_harness.testbed.model import Host, Testbed
from cadge_results import BlockHost
from cadge_results.formats.event import Clock, Event, Fault, HostReport, ReachReport, Stage, TaskFailed

LOOK_S = 180.0
"""For an agent to look: two layers at a time, each of which may hang for 20 s."""
REACH_S = 60.0
LOGINS_MOST = 16
"""So many of the others each host logs in to: every one of a small cluster, and a sample of a large one."""
CLOCK_S = 2.0
END_S = 120.0
LAST_WORDS_S = 0.2
"""For what Ansible said just before it ended."""
CLOCK_ROUNDS = 5
"""The quickest of these tells a host's time best."""

PYTHON_TASK = "Look for Python"
LOOK_TASK = "Look at the host"
REMOVE_TASK = "Remove the folder"


Wait = Callable[[Callable[[], bool], float], bool]
"""Serve until then, or for so many seconds; returns whether it came to that."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Offset:
    """By how much a host's clock is ahead of this machine's, and how far that can be wrong."""

    offset_ns: int
    error_ns: int


@dataclass(slots=True)
class Survey:
    """What became of each host: by its name, what it said, its clock, and what is wrong with it."""

    looked: dict[str, HostReport] = field(default_factory=dict)
    offsets: dict[str, Offset] = field(default_factory=dict)
    reached: dict[str, ReachReport] = field(default_factory=dict)
    faults: dict[str, list[Fault]] = field(default_factory=dict)
    """Of the host as seen from here. What it said of itself stands in `looked` and `reached`."""


def survey(
    testbed: Testbed,
    build: Path,
    programs: Sequence[str] = (),
    layers: Collection[str] | None = None,
    *,
    logins: bool = False,
) -> Survey:
    """Look at every host. `build` is brought to the hosts that have none. Raises UnfitError where there is none.

    programs: beside the build, which some points need. layers: those that are looked at, None for all of the build.
    logins: let the hosts log in to each other, as launchers of ranks will.
    """
    with tempfile.TemporaryDirectory(prefix="cadge-look-") as folder:
        return _Surveyor(testbed, Path(folder), logins=logins).run(build, programs, layers)


def as_seen(testbed: Testbed, found: Survey) -> Testbed:
    """Return the testbed with what a plan depends on, as far as the hosts were looked at."""

    def seen(host: Host) -> Host:
        looked, reached = found.looked.get(host.name), found.reached.get(host.name)
        return replace(
            host,
            shm_free_bytes=looked.shm_free_bytes if looked else None,
            no_login=tuple(reached.no_login.items()) if reached else (),
        )

    return replace(testbed, hosts=tuple(map(seen, testbed.hosts)))


class _Surveyor:
    """One run of the playbook, and what comes from it."""

    def __init__(self, testbed: Testbed, work: Path, *, logins: bool) -> None:
        self._testbed = testbed
        self._work = work
        self._logins = logins
        self._found = Survey()
        self._names = [host.name for host in testbed.hosts]
        self._lost: set[str] = set()
        self._peers: dict[str, Peer] = {}
        self._times: dict[int, tuple[int, int]] = {}
        """What time it was on the host that was asked, and here when its answer came, by the question's number."""
        self._begun = False
        """Whether Ansible has come to where agents look."""

    def run(self, build: Path, programs: Sequence[str], layers: Collection[str] | None) -> Survey:
        hosts = [BlockHost.model_validate(host, from_attributes=True) for host in self._testbed.hosts]
        listed = {
            "hosts": [host.model_dump(mode="json") for host in hosts],
            "ports": list(self._testbed.ports),
            "programs": list(programs),
            "ssh": list(self._testbed.host_ssh),
        }
        listing = files.write_json(self._work / "hosts.json", listed)
        archive, marker = files.pack(build, [listing], self._work, layers=layers)
        given = {
            "cadge_campaign": f"look-{secrets.token_hex(4)}",
            "cadge_archive": str(archive),
            "cadge_archive_marker": marker,
            "cadge_hosts": self._names,
        }
        play(self._testbed, ["look"], given, self._work, on_event=self._event, on_gone=self._gone, serve=self._serve)
        for name in self._names:
            if name not in self._found.looked and name not in self._lost:
                self._fault(name, "login", f"{name} was not looked at: {self._last_words()}", _by_hand(name))
        return self._found

    # -- what arrives

    def _event(self, peer: Peer, event: Event) -> None:
        match event:
            case HostReport():
                self._found.looked[peer.host] = event
                self._peers[peer.host] = peer
            case Clock():
                self._times[event.number] = (event.realtime_ns, time.time_ns())
            case ReachReport():
                self._found.reached[peer.host] = event
            case Stage(name=name) if name == LOOK_TASK:
                self._begun = True
            case TaskFailed():
                self._failed(event)
            case _:
                pass

    def _gone(self, peer: Peer) -> None:
        self._peers.pop(peer.host, None)

    def _failed(self, failed: TaskFailed) -> None:
        host, said = failed.host, printable(" ".join(failed.message.split()))
        if failed.task == REMOVE_TASK:
            text = f"{host}: a folder of Cadge's stays in ~/.cache/cadge there: {said}"
            self._fault(host, "login", text, "Remove it (rm -r ~/.cache/cadge/look-*)", level="warn")
        elif host in self._lost:  # the same again
            return
        elif failed.event == "unreachable":
            text = printable(sentence(failed)).partition(f". {BY_HAND}")[0]
            self._lose(host, "login", text, _by_hand(host))
        elif failed.task == PYTHON_TASK:
            needed = ", and 3.9 or later is needed" if " is Python " in said else ""
            fix = "Install Python there, or set ansible_python_interpreter in the inventory to one that is there"
            self._lose(host, "python", f"{host}: {said}{needed}", fix)
        else:
            text = printable(sentence(failed))
            self._lose(host, "build", f"{text} (task {failed.task!r})", f"Mend that on {host}")

    def _lose(self, host: str, about: str, text: str, fix: str) -> None:
        self._lost.add(host)
        self._fault(host, about, text, fix)

    def _fault(self, host: str, about: str, text: str, fix: str, *, level: str = "fail") -> None:
        found = Fault.model_validate({"about": about, "level": level, "text": text, "fix": fix})
        self._found.faults.setdefault(host, []).append(found)

    def _last_words(self) -> str:
        """Return the last thing that Ansible said, for what nothing else explains."""
        try:
            lines = (self._work / "ansible.log").read_text(encoding="utf-8", errors="replace").split("\n")
        except OSError:
            lines = []
        return printable(next((line.strip() for line in reversed(lines) if line.strip()), "Ansible did not say why"))

    # -- what is done, in this order

    def _serve(self, server: LeaseServer, process: Process) -> None:
        def wait(until: Callable[[], bool], timeout_s: float | None = None) -> bool:
            """Wait until then, for so long, or until Ansible ends."""
            server.run(lambda: until() or process.poll() is not None, timeout_s)
            return until()

        wait(lambda: self._begun or server.frozen is not None)
        wait(lambda: set(self._names) <= self._found.looked.keys() | self._lost, LOOK_S)
        for name in self._names if self._begun and process.poll() is None else ():
            if name not in self._found.looked and name not in self._lost:
                self._lose(name, "login", f"{name} logs in, but gave no answer for {LOOK_S:.0f} s", _by_hand(name))
        self._ask_clocks(wait)
        self._ask_to_reach(wait)
        for peer in server.peers:
            if peer.is_agent and peer.host not in self._peers:  # frozen
                server.end_lease(peer)
            elif peer.is_agent:
                peer.send({"stop": "that is all"})
        wait(lambda: False, END_S)
        server.run(lambda: False, LAST_WORDS_S)

    def _ask_clocks(self, wait: Wait) -> None:
        """Ask each host what time it is, one after the other: what answers two at a time answers one of them late."""
        number = 0
        for host, peer in list(self._peers.items()):
            tried = []
            for _ in range(CLOCK_ROUNDS):
                number += 1
                offset = self._ask_clock(peer, number, wait)
                if offset is None:
                    break
                tried.append(offset)
            if tried:
                self._found.offsets[host] = min(tried, key=lambda one: one.error_ns)

    def _ask_clock(self, peer: Peer, number: int, wait: Wait) -> Offset | None:
        asked_ns = time.time_ns()
        peer.send({"clock": number})
        if not wait(lambda: number in self._times, CLOCK_S):
            return None
        there_ns, answered_ns = self._times[number]
        return Offset(offset_ns=there_ns - (asked_ns + answered_ns) // 2, error_ns=(answered_ns - asked_ns) // 2)

    def _ask_to_reach(self, wait: Wait) -> None:
        """Let each host try to reach all the others at once."""
        asked = dict(self._peers) if len(self._peers) > 1 else {}
        for host, peer in asked.items():
            targets = [target for other in asked if other != host for target in self._targets(other)]
            logins = self._to_log_in(host, [*asked])
            peer.send({"reach": targets, **({"login": logins} if logins else {})})
        if not wait(lambda: asked.keys() & self._peers.keys() <= self._found.reached.keys(), REACH_S):
            for host in asked.keys() - self._found.reached.keys():
                text = f"{host} did not say within {REACH_S:.0f} s whether it reaches the other hosts"
                self._fault(host, "reach", text, _by_hand(host))

    def _to_log_in(self, name: str, among: Sequence[str]) -> list[dict[str, str]]:
        """Return the hosts that follow one, which it is to log in to; each begins with another one."""
        at = among.index(name)
        following = [*among[at + 1 :], *among[:at]][:LOGINS_MOST] if self._logins else []
        address = {host.name: host.management_address for host in self._testbed.hosts}
        return [{"host": other, "address": address[other]} for other in following]

    def _targets(self, name: str) -> list[dict[str, object]]:
        (host,) = (host for host in self._testbed.hosts if host.name == name)
        addresses = {"cadge_management_address": host.management_address, "cadge_address": host.address}
        return [
            {"host": name, "variable": variable, "address": addresses[variable], "port": port}
            for variable, port in self._found.looked[name].greets.items()
            if variable in addresses
        ]


def _by_hand(host: str) -> str:
    return f"{BY_HAND}: ssh {host} true"
