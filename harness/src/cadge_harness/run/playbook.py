# SPDX-License-Identifier: BSD-3-Clause
"""Runs playbooks in one ansible-playbook process, whose events and agents' leases this process serves meanwhile."""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import signal
import subprocess
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

from cadge_harness.run import ansible_files as files
from cadge_harness.run import here
from cadge_harness.run.lease import LeaseServer, Peer
from cadge_harness.testbed.emulated import state_folder
from cadge_harness.testbed.inventory_file import tool
from cadge_harness.testbed.users import is_held

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from cadge_harness.testbed.model import Testbed
    from cadge_results.formats.event import Event

_OWNER = "owner"
"""In each folder: a file that its process holds a lock on for as long as it lives."""
_OLD_S = 86_400.0
"""A folder without such a file is of an older version, or was never finished."""
_END_S = 15.0
_KILL_S = 5.0

Process = subprocess.Popen[bytes]


def play(
    testbed: Testbed,
    names: list[str],
    given: Mapping[str, object],
    work: Path,
    *,
    on_event: Callable[[Peer, Event], None],
    on_gone: Callable[[Peer], None],
    serve: Callable[[LeaseServer, Process], None],
    without_ansible: bool = False,
) -> int:
    """Run playbooks with the variables `given`; returns the exit status of ansible-playbook.

    `serve` runs the server until it has what it wants. Then, or when it raises, whatever still runs is ended.
    without_ansible: one playbook, `site` or `cleanup`, on this machine alone: see `here`.
    """
    with scratch_folder(state_folder()) as sockets:
        server = LeaseServer(sockets / "lease", on_event, on_gone)
        folder = files.playbooks()
        variables = {**given, "cadge_lease_socket": str(sockets / "lease")}
        if without_ansible:
            variables["cadge_steps"] = here.stored(folder / f"{names[0]}.yml")
        own = files.write_json(work / "run-variables.json", variables)
        if without_ansible:
            argv = here.command(own)
        else:
            argv = [tool("ansible-playbook"), "-i", str(testbed.inventory_path), "-e", f"@{own}"]
            argv += [str(folder / f"{name}.yml") for name in names]
        command = _command(testbed, argv, files.environment(work, sockets, testbed))
        with (work / "ansible.log").open("ab") as log:
            process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=folder, process_group=0
            )
        watched = server.watch_process(process.pid)
        try:
            serve(server, process)
        finally:
            _end(process, server)
            _end_masters(testbed, sockets)
            os.close(watched)
            server.close()
        return process.returncode


def _command(testbed: Testbed, argv: list[str], env: dict[str, str]) -> list[str]:
    """Return the command with prefix and environment; it dies with this process wherever the kernel can see to that."""
    command = testbed.command_with_environment(argv, env)
    return ["setpriv", "--pdeathsig", "KILL", "--", *command]


def _end(process: Process, server: LeaseServer) -> None:
    """End what is left: first the agents, in order, then Ansible."""
    server.end_leases()
    server.run(lambda: not any(peer.is_agent for peer in server.peers), timeout_s=_END_S)
    server.drop_all()
    for number in (None, signal.SIGTERM, signal.SIGKILL):
        if number is not None and process.poll() is None:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, number)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(_KILL_S)


def _end_masters(testbed: Testbed, sockets: Path) -> None:
    """End the ssh processes that kept connections open for the next task, rather than let them run out of time."""
    for path in (sockets / "cp").glob("*"):
        argv = ["ssh", "-o", f"ControlPath={path}", "-O", "exit", "--", testbed.hosts[0].name]
        with contextlib.suppress(OSError, subprocess.TimeoutExpired):
            subprocess.run(argv, stdin=subprocess.DEVNULL, capture_output=True, check=False, timeout=5)


# ---- folders of sockets, one a run; those of processes that were killed are swept by the next one ----


@contextlib.contextmanager
def scratch_folder(state: Path) -> Iterator[Path]:
    """Make a folder below the state folder, with a short name (ssh puts sockets below it), and remove it at the end."""
    sweep(state)
    made = Path(tempfile.mkdtemp(prefix="new-run-", dir=state))
    with (made / _OWNER).open("w") as owner:
        fcntl.flock(owner, fcntl.LOCK_EX)
        folder = made.rename(made.with_name(made.name.removeprefix("new-")))  # from now on others may look at it
        try:
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)


def sweep(state: Path) -> None:
    """Remove the folders whose processes are gone."""
    for folder in [*state.glob("run-*"), *state.glob("new-run-*")]:
        with contextlib.suppress(OSError):
            if _is_left(folder):
                shutil.rmtree(folder, ignore_errors=True)


def _is_left(folder: Path) -> bool:
    if folder.name.startswith("new-") or not (folder / _OWNER).exists():
        return time.time() - folder.lstat().st_mtime > _OLD_S
    return not is_held(folder / _OWNER)
