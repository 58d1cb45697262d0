# SPDX-License-Identifier: BSD-3-Clause
"""Runs a campaign's blocks through Ansible: one ansible-playbook process, under a lease.

This process holds the lease of every agent. When it ends, however it ends, the agents end what they run; what they have
finished stays on the hosts until the same campaign is run again or restored.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import secrets
import shlex
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cadge_harness import errors
from cadge_harness.plan.link import rate_of
from cadge_harness.run import ansible_files as files
from cadge_harness.run.lease import LeaseServer, Peer
from cadge_harness.run.playbook import Process, play
from cadge_harness.run.session import CampaignEnd
from cadge_harness.testbed.emulated import interpreter
from cadge_harness.testbed.model import Testbed
from cadge_harness.words import ended_how
from cadge_results import NO_ROOM
from cadge_results.command import command
from cadge_results.formats.event import (
    Alive,
    BlockFinished,
    Clock,
    Event,
    HostReport,
    LaunchFinished,
    LaunchRecorded,
    LaunchStarted,
    Note,
    PlaybookStart,
    Problem,
    ReachReport,
    Ready,
    Stage,
    Stats,
    TaskFailed,
)

if TYPE_CHECKING:
    import threading

TOUCHED = "hosts.json"
"""In the work folder: the hosts that this campaign has used."""
BY_HAND = "Check once by hand"
APART_S = 10.0
"""A busy host or network may hold up a message for seconds; `cadge doctor` measures clocks closer than this."""
LOST_ANOTHER = 4
"""Exit status of an agent that lost another host of its block (cadge_agent/main.py): nothing is wrong with its own."""
FROZEN_S = 5
"""For a login to a host that was silent for long already."""
_FULL = "full"
_ROOM_BYTES = 65536
"""Less room than this is none: Ansible and the store write more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOutcome(CampaignEnd):
    """How it ended: exit code 0, 3, 4, or 6 where it was stopped. Hosts that are not clean need the work folder."""

    launches: int = 0
    tasks_before_first_launch: int = 0


@dataclass(slots=True)
class _State:
    started: float
    problems: list[tuple[str, str]] = field(default_factory=list)  # (kind, sentence)
    lost: dict[str, None] = field(default_factory=dict)  # hosts, in the order of their loss
    frozen: bool = False
    seen: set[str] = field(default_factory=set)
    tasks: int = 0
    first_launch_s: float | None = None
    tasks_before: int = 0
    stopped: bool = False
    measuring: bool = False


class _Run:
    """One run of ansible-playbook and what comes from it."""

    def __init__(
        self,
        testbed: Testbed,
        work: Path,
        on_event: Callable[[Event], None],
        on_launch: Callable[[dict[str, Any]], None],
        *,
        without_ansible: bool = False,
        gone: set[str] | None = None,
    ) -> None:
        self.testbed = testbed
        self.away = set() if gone is None else gone
        self.without_ansible = without_ansible
        self.work = work
        self.on_event = on_event
        self.on_launch = on_launch
        self.state = _State(time.monotonic())

    # -- what arrives

    def event(self, peer: Peer, event: Event) -> None:
        """React to an event, and hand it on as far as it is of interest outside."""
        match event:
            case LaunchRecorded():
                self.take(event.record)
                peer.send({"ack": event.launch_id})
            case Ready():  # whatever a node calls itself: the inventory's name becomes a path
                self.compare_clock(peer.host, event.realtime_ns)
                node = None if event.node is None else {**event.node, "host": peer.host}
                self.on_event(event.model_copy(update={"host": peer.host, "node": node}))
            case LaunchStarted():
                if self.state.first_launch_s is None:
                    self.state.first_launch_s = time.monotonic() - self.state.started
                    self.state.tasks_before = self.state.tasks
                self.on_event(event)
            case LaunchFinished() | BlockFinished():
                self.on_event(event)
            case Problem():
                self.problem("agent", event.reason, host=peer.host)
            case Note():
                self.note(event.text, host=peer.host or event.host)
            case Stage():
                self.state.tasks += 1
                self.on_event(event)
            case TaskFailed(event="failed", rc=code) if code == LOST_ANOTHER:
                pass  # its agent or this process has said so already
            case TaskFailed():
                if event.event == "unreachable":
                    self.away.add(event.host)
                self.state.lost[event.host] = None
                self.problem(event.event, sentence(event), host=event.host)
            case PlaybookStart() | Stats() | Alive() | HostReport() | Clock() | ReachReport():
                pass

    def compare_clock(self, host: str, there_ns: int) -> None:
        """Tell of a clock that differs from this machine's by more than a message may take."""
        behind_s = (time.time_ns() - there_ns) / 1e9
        if there_ns and abs(behind_s) > APART_S:
            way = "behind" if behind_s > 0 else "ahead of"
            text = (
                f"the clock of {host} is {abs(behind_s):.0f} s {way} this machine's: durations are right, the times "
                "of day in its records are not; set it (timedatectl set-ntp true)"
            )
            self.problem("clock", text, host=host)

    def gone(self, peer: Peer) -> None:
        """Nothing to do: Ansible's own result says why an agent ended."""

    def take(self, record: dict[str, Any]) -> None:
        """Hand a record on, once."""
        name = record["launch"]["launch_id"]
        if name not in self.state.seen:
            self.on_launch(record)
            self.state.seen.add(name)

    def note(self, text: str, host: str) -> None:
        self.on_event(Note(host=host, text=f"{host}: {errors.printable(text)}"))

    def problem(self, kind: str, text: str, host: str = "") -> None:
        if kind in {"failed", "unreachable"} and (full := no_room(self.work)):
            kind, text = _FULL, full  # Ansible says of its own files what it says of a host's
        text = errors.printable(text)  # of a node, and for a terminal
        if (kind, text) not in self.state.problems:
            self.state.problems.append((kind, text))
            self.on_event(Problem(host=host, reason=text))


def no_room(work: Path) -> str:
    """Return the sentence for a disk of this machine that takes nothing more; "" where the work folder's does."""
    scratch = work / f".{secrets.token_hex(8)}.part"
    try:
        try:
            with scratch.open("wb") as stream:
                stream.write(bytes(_ROOM_BYTES))
                stream.flush()
                os.fsync(stream.fileno())
        finally:
            scratch.unlink(missing_ok=True)
    except OSError as error:
        return no_room_sentence(work, error) if error.errno in NO_ROOM else ""
    return ""


def no_room_sentence(path: object, error: OSError) -> str:
    """Return the sentence for a file of this machine that there is no room for."""
    return (
        f"no space to write {path} on this machine: {error.strerror}. "
        f"Launches stored so far are whole; make room and continue with: {command('resume')}"
    )


def sentence(failed: TaskFailed) -> str:
    """Turn what Ansible says of a failure into a sentence that says what to do."""
    host, said = failed.host, " ".join(failed.message.split()).removeprefix("Task failed: ")
    low, by_hand = said.lower(), f"{BY_HAND}: ssh {shlex.quote(host)} true"
    if re.search(r"slurm job \d+ has expired|invalid job id", low):
        return f"Slurm has ended the job, and its hosts are gone; continue in another one: {command('resume')}"
    if "host key verification failed" in low:
        return f"{host} has a host key that is unknown or has changed: host key verification failed. {by_hand}"
    if "permission denied" in low and failed.event == "unreachable":
        return f"{host} refuses the login: permission denied. {by_hand}"
    if failed.event == "unreachable":
        return f"{host} cannot be reached: {said}"
    if "no space left on device" in low:
        return f"the disk of {host} is full: {said}"
    return f"{host}: {said}" if host not in said else said


def _playbook(
    run: _Run, names: list[str], variables: Path, work: Path, stop: threading.Event | None, hosts: list[str]
) -> int:
    """Run playbooks in one process; returns its exit status. stop None: cannot be stopped (cleaning up).

    They reach `hosts` alone, as far as the testbed has them, and all of its hosts where it has none of them.
    """
    given = json.loads(variables.read_text(encoding="utf-8"))
    if known := [host.name for host in run.testbed.hosts if host.name in hosts]:
        given["cadge_hosts"] = known
    if run.without_ansible:
        given["cadge_python"] = interpreter()
    if run.state.frozen:
        given["ansible_ssh_timeout"] = FROZEN_S

    def serve(server: LeaseServer, process: Process) -> None:
        if stop is not None:
            server.wake_when(stop)
        _serve(run, server, process, stop)

    return play(
        run.testbed,
        names,
        given,
        work,
        on_event=run.event,
        on_gone=run.gone,
        serve=serve,
        without_ansible=run.without_ansible,
    )


def _serve(run: _Run, server: LeaseServer, process: Process, stop: threading.Event | None) -> None:
    """Serve until Ansible ends or somebody is frozen.

    A stop is passed on to each agent once: also to those of blocks that begin later.
    """

    def over() -> bool:
        if server.frozen is not None:
            run.state.frozen = True
            run.state.lost.update(dict.fromkeys(filter(None, [server.frozen_host])))
            run.problem("unreachable", f"{server.frozen}: it, its ssh connection or its agent is frozen")
            return True
        if stop is not None and stop.is_set():
            run.state.stopped = True
            for peer in server.peers:
                if peer.is_agent and not peer.told_to_stop:
                    peer.told_to_stop = True
                    peer.send({"stop": "the user asked"})
            if not run.state.first_launch_s:
                return True  # nothing was measured yet: no need to wait for Ansible
        return process.poll() is not None

    server.run(over)


def _variables(
    testbed: Testbed,
    blocks: list[dict[str, Any]],
    work: Path,
    build: Path,
    *,
    tune: bool,
    of_launches: Sequence[Path] = (),
    programs: Sequence[str] = (),
) -> Path:
    """Write what the playbooks are given."""
    token = work / "token"
    files.write_secret(token)
    complete = [files.complete_block(block, testbed) for block in blocks]
    paths = [files.write_json(work / "blocks" / f"{block['block_id']}.json", block) for block in complete]
    listed = [
        {"id": block["block_id"], "hosts": [host["name"] for host in block["hosts"]], "link_bits": _link_bits(block)}
        for block in complete
    ]
    layers = {str(launch["layer"]) for block in complete for launch in block["launches"]}
    archive, marker = files.pack(build, [token, *paths], work, of_launches=of_launches, layers=layers)
    return files.write_json(
        work / "variables.json",
        {
            "cadge_campaign": blocks[0]["campaign_id"],
            "cadge_archive": str(archive),
            "cadge_archive_marker": marker,
            "cadge_fetch_folder": str(work / "fetched"),
            "cadge_programs": " ".join(programs),
            "cadge_blocks": listed,
            "cadge_tune": tune,
            "cadge_link": any(block["link_bits"] for block in listed),
        },
    )


def _link_bits(block: dict[str, Any]) -> int:
    """Return the rate that the link has in a block, which its launches share, in bits a second; 0: as it is."""
    return rate_of(block["launches"][0]["settings"])


def _take_fetched(run: _Run, work: Path) -> None:
    """Hand on launches that came by fetching, because their record had not been acknowledged."""
    for path in sorted((work / "fetched" / "launches").glob("*.json")):
        with contextlib.suppress(ValueError):
            run.take(json.loads(path.read_text(encoding="utf-8")))
            path.unlink()


def _without(blocks: list[dict[str, Any]], made: set[str]) -> list[dict[str, Any]]:
    left = [{**b, "launches": [item for item in b["launches"] if item["launch_id"] not in made]} for b in blocks]
    return [block for block in left if block["launches"]]


def run_campaign(
    testbed: Testbed,
    blocks: list[dict[str, Any]],
    work: Path,
    on_event: Callable[[Event], None],
    on_launch: Callable[[dict[str, Any]], None],
    stop: threading.Event,
    *,
    build: Path | None = None,
    tune: bool = False,
    of_launches: Sequence[Path] = (),
    programs: Sequence[str] = (),
    without_ansible: bool = False,
    gone: set[str] | None = None,
) -> RunOutcome:
    """Run the blocks, in order, on the testbed.

    blocks: cadge.block/2 documents of one campaign, with the launches to make; without any, the hosts are cleaned of
    what an earlier run of it left. work: a folder of this campaign's own on this machine, kept between runs of it;
    afterwards work/ansible.log is what Ansible said. What a host is comes with its Ready.
    on_launch gets each cadge.launch-record/2 once, before the next launch starts; when it has returned, the record
    counts as stored. Both callbacks run in this thread. `stop`: when set, the launch that is running is finished,
    then everything ends in order. build: the build tree to deploy, else the checkout's. of_launches: files
    that launches name, which every host gets. programs: beside the build; each host tells which version it has.
    without_ansible: this machine is the only host, and nothing is tuned: the steps of the playbooks are done directly.
    What an earlier run with `tune` left tuned, because it was killed, is put back before a run without it measures.
    gone: hosts that an earlier run of the same command could not log in to. They are not cleaned; more are added.

    Does not raise for what hosts do; see RunOutcome. Raises UnfitError where there is no build or no Ansible.
    """
    work.mkdir(parents=True, exist_ok=True)
    still_tuned = not tune and _may_be_tuned(work)
    run = _Run(testbed, work, on_event, on_launch, without_ansible=without_ansible and not still_tuned, gone=gone)
    if still_tuned and not _clean_up(run, work / "variables.json", work, _touched(work)):
        return _outcome(run, 1, clean=False)
    _take_fetched(run, work)  # brought home by an earlier restore
    blocks = _without(blocks, run.state.seen)
    if not blocks:  # it was killed after its last launch: what it left on the hosts goes
        left = work / "variables.json"
        code = _playbook(run, ["cleanup"], left, work, stop, _touched(work)) if left.exists() else 0
        return _outcome(run, code, clean=code == 0)
    variables = _variables(
        testbed, blocks, work, build or default_build(), tune=tune, of_launches=of_launches, programs=programs
    )
    hosts, earlier = _hosts_of(blocks), _touched(work)
    files.write_json(work / TOUCHED, [*hosts, *(host for host in earlier if host not in hosts)])
    code, finished = 70, False
    try:
        code = _playbook(run, ["site"], variables, work, stop, hosts)
        finished = True
    finally:
        if not finished or code != 0 or run.state.stopped:
            _take_fetched(run, work)
    dirty = [host for host in _touched(work) if code != 0 or host not in hosts]
    clean = not dirty or _clean_up(run, variables, work, dirty)
    if clean:
        (work / TOUCHED).unlink(missing_ok=True)
    _take_fetched(run, work)
    return _outcome(run, code, clean=clean)


def _hosts_of(blocks: list[dict[str, Any]]) -> list[str]:
    """Return the hosts that launches of the blocks use. No other host of the testbed is touched."""
    names = (end["host"] for block in blocks for launch in block["launches"] for end in launch["endpoints"])
    return list(dict.fromkeys(names))


def _touched(work: Path) -> list[str]:
    """Return the hosts that runs of this campaign have used so far."""
    with contextlib.suppress(OSError, ValueError):
        return [str(host) for host in json.loads((work / TOUCHED).read_text(encoding="utf-8"))]
    return []


def _may_be_tuned(work: Path) -> bool:
    """Tell whether an earlier run of this campaign was to tune its hosts, and ended before it had put all back."""
    if not _touched(work):
        return False
    with contextlib.suppress(OSError, ValueError):
        return bool(json.loads((work / "variables.json").read_text(encoding="utf-8")).get("cadge_tune", True))
    return False


def _clean_up(run: _Run, variables: Path, work: Path, hosts: list[str]) -> bool:
    """Fetch what was not acknowledged, end what runs, remove the folders, where these hosts answer.

    Returns whether every one of them did. A host that took no login before is not tried again.
    """
    answering = [host for host in hosts if host not in run.away]
    if not answering:
        return False
    kept = list(run.state.problems)
    code = _playbook(run, ["cleanup"], variables, work, None, answering)
    run.state.problems[:] = kept
    return code == 0 and answering == hosts


def default_build() -> Path:
    """Return the checkout's build tree."""
    return Path(os.environ.get("CADGE_BUILD") or files.playbooks().parent / "build")


def _outcome(run: _Run, code: int, *, clean: bool) -> RunOutcome:
    state = run.state
    exit_code = errors.EXIT_OK
    if state.stopped:
        exit_code = errors.EXIT_STOPPED
    elif code != 0 and ((full := no_room(run.work)) or _FULL in {kind for kind, _ in state.problems}):
        exit_code = errors.EXIT_STOPPED
        if (_FULL, full) not in state.problems and full:
            state.problems.append((_FULL, full))
    elif code != 0:
        kinds = {kind for kind, _ in state.problems}
        lost = "unreachable" in kinds or code == errors.EXIT_UNREACHABLE
        measured = state.first_launch_s is not None
        exit_code = errors.EXIT_UNREACHABLE if lost else errors.EXIT_STOPPED if measured else errors.EXIT_UNFIT
        if not state.problems:
            program = "the program that starts the agent" if run.without_ansible else "ansible-playbook"
            state.problems.append(("failed", f"{program} ended {ended_how(code)}"))
    return RunOutcome(
        ok=exit_code == 0,
        exit_code=exit_code,
        clean=clean,
        problems=tuple(text for _, text in state.problems),
        lost=tuple(state.lost),
        launches=len(state.seen),
        tasks_before_first_launch=state.tasks_before,
    )


def restore(testbed: Testbed, campaign_id: str, work: Path, on_event: Callable[[Event], None]) -> RunOutcome:
    """Put a campaign's hosts back as they were: tuned settings, processes, folder. Works after a kill, again and again.

    Launches found on the hosts are fetched to work/fetched/launches first.
    """
    work.mkdir(parents=True, exist_ok=True)
    run = _Run(testbed, work, on_event, lambda _record: None)
    given = {
        "cadge_campaign": campaign_id,
        "cadge_fetch_folder": str(work / "fetched"),
    }
    variables = files.write_json(work / "variables.json", given)
    code = _playbook(run, ["cleanup"], variables, work, None, _touched(work))
    return _outcome(run, code, clean=code == 0)
