# SPDX-License-Identifier: BSD-3-Clause
"""Processes of a launch: starting, ending, and finding what was left."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

from cadge_agent.system import die_with_parent

KILL_S = 1.0  # between TERM and KILL
TAIL_BYTES = 4000
MARK = "CADGE_MARK"


def _begin() -> None:
    """Become the leader of a group, in the agent's session: the kernel may share processors out by session first."""
    os.setpgid(0, 0)
    die_with_parent()


class Child:
    """A process of a launch: leader of its own group, dies with the agent, logs to a file."""

    def __init__(self, argv: list[str], log: Path, environment: dict[str, str], folder: Path) -> None:
        self.log = log
        with log.open("ab") as sink:
            self._process = subprocess.Popen(
                argv,
                stdin=subprocess.DEVNULL,
                stdout=sink,
                stderr=subprocess.STDOUT,
                env=environment,
                cwd=folder,
                preexec_fn=_begin,  # one thread: safe
            )

    @property
    def pid(self) -> int:
        """Its process number."""
        return self._process.pid

    def code(self) -> int | None:
        """Exit status, negative for a signal; None while it runs."""
        return self._process.poll()

    def _signal_group(self, number: int) -> None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, number)

    def ask_to_end(self) -> None:
        """Send TERM to the whole group, if it runs."""
        if self.code() is None:
            self._signal_group(signal.SIGTERM)

    def kill(self, grace_s: float) -> None:
        """Wait so long for it to end, then end the whole group."""
        if self.code() is None and grace_s > 0:
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(grace_s)
        self._signal_group(signal.SIGKILL)
        self._process.wait()


def kill_all(children: dict[int, Child], grace_s: float = KILL_S) -> None:
    """End processes and their groups: TERM to all, then KILL, after `grace_s` for all of them together."""
    until = time.monotonic() + grace_s
    if grace_s > 0:
        for child in children.values():
            child.ask_to_end()
    for child in children.values():
        child.kill(until - time.monotonic())


def tail(path: Path) -> str:
    """Return the last bytes of a log, as text; empty if there is none."""
    try:
        with path.open("rb") as log:
            log.seek(0, os.SEEK_END)
            log.seek(max(0, log.tell() - TAIL_BYTES))
            return log.read().decode("utf-8", errors="replace")
    except OSError:
        return ""


def kill_marked(prefix: str) -> list[int]:
    """Kill every process here whose environment carries our mark: what a launcher started and then left alone.

    Returns the numbers of those that were seen to end.
    """
    wanted = f"{MARK}={prefix}".encode()
    return _kill("environ", lambda environment: any(item.startswith(wanted) for item in environment))


def kill_agents(work: Path) -> list[int]:
    """Kill the agents that run a block in this folder: one that is frozen never sees that its lease ended.

    Returns the numbers of those that were seen to end.
    """

    def runs_here(words: list[bytes]) -> bool:
        given = dict(zip(words, words[1:]))
        folder = Path(os.fsdecode(given.get(b"--work", b""))).expanduser()
        return b"run" in words and folder == work and any(word.endswith(b"agent.pyz") for word in words)

    return _kill("cmdline", runs_here)


def _kill(file: str, wanted: Callable[[list[bytes]], bool]) -> list[int]:
    killed = []
    for folder in Path("/proc").iterdir():
        if not folder.name.isdigit() or int(folder.name) == os.getpid():
            continue
        try:
            words = (folder / file).read_bytes().split(b"\0")
        except OSError:
            continue
        if wanted(words):
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(int(folder.name), signal.SIGKILL)
                killed.append(int(folder.name))
    until = time.monotonic() + KILL_S
    while time.monotonic() < until and any(map(runs, killed)):
        time.sleep(0.01)
    return [pid for pid in killed if not runs(pid)]


def runs(pid: int) -> bool:
    """Whether a process is there and has not ended; one that nobody has waited for has."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return False
    return stat.rpartition(")")[2].split()[0] not in "ZX"


def say_code(code: int | None) -> str:
    """Put an exit status in words."""
    if code is None:
        return "without an exit status"
    if code < 0:
        return f"by signal {-code} ({signal.Signals(-code).name})"
    return f"with exit status {code}"
