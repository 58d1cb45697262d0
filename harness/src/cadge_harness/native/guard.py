# SPDX-License-Identifier: BSD-3-Clause
"""Runs processes of native tools on a host, one after the other, pinned, and says how each fared.

This file is run by itself. Each line of its standard input says what to run, as JSON; an empty object ends what runs,
and the end of the input ends everything: on another host no signal of ours comes. On standard output come lines of
JSON: one when somebody listens on the port, where that was asked, and one at the end of each process, with what it
printed, how long it ran once it had started, and how long its main thread was ready to run and did not meanwhile, which
the kernel still tells of a process that ended and nobody has waited for. While a process runs, this one sleeps.

    python3 guard.py                          as said above
    python3 guard.py rank NUMBER CPU ARGV...  a rank of a launcher: what it prints goes its way, how it fared goes into
                                              a file of the folder that the launcher's guard made, which reads it
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

LISTEN_S = 5.0
END_S = 2.0
START_S = 0.2
"""So long after it began, how long a process has waited so far is looked at, once: that is not in what it measures."""
PRINTED_MOST = 1 << 20
RANKS = "CADGE_NATIVE_RANKS"
"""The variable that says to ranks where to write how they fared: on the host that they run on."""
_LISTENING = {"tcp": ("0A", ("tcp", "tcp6")), "udp": ("07", ("udp", "udp6"))}


class Input:
    """Lines of the standard input, read as they come."""

    def __init__(self) -> None:
        self.partial = b""
        self.ended = False

    def read(self) -> None:
        """Read what is there."""
        data = os.read(0, 1 << 16)
        self.ended = not data
        self.partial += data

    def line(self) -> dict[str, object] | None:
        """Return the next whole line, None where there is none yet."""
        if b"\n" not in self.partial:
            return None
        first, _, self.partial = self.partial.partition(b"\n")
        found: dict[str, object] = json.loads(first)
        return found


def _begin(cpu: int) -> None:
    os.setpgid(0, 0)
    if cpu >= 0:
        os.sched_setaffinity(0, {cpu})


def run_wait_ns(pid: int) -> int | None:
    """How long a process's main thread was ready to run and did not."""
    with contextlib.suppress(OSError, ValueError, IndexError):
        return int(Path(f"/proc/{pid}/schedstat").read_text(encoding="ascii").split()[1])
    return None


_ACCEPTS = 0x10000
"""The flag of a UNIX socket that listens (__SO_ACCEPTCON)."""


def listens_unix(port: int) -> bool:
    """Say whether a UNIX socket of this network namespace listens under the abstract name cadge-native-PORT."""
    with contextlib.suppress(OSError):
        for line in Path("/proc/net/unix").read_text(encoding="utf-8", errors="replace").splitlines()[1:]:
            words = line.split()
            if words[-1] == f"@cadge-native-{port}" and int(words[3], 16) & _ACCEPTS:
                return True
    return False


def listens(kind: str, port: int) -> bool:
    """Say whether a socket of this network namespace listens on a port."""
    if kind == "unix":
        return listens_unix(port)
    state, files = _LISTENING[kind]
    wanted = f":{port:04X}"
    for name in files:
        with contextlib.suppress(OSError):
            for line in Path(f"/proc/net/{name}").read_text(encoding="ascii").splitlines()[1:]:
                words = line.split()
                if words[1].endswith(wanted) and words[3] == state:
                    return True
    return False


def fared(pid: int, since_ns: int, before_ns: int) -> dict[str, object]:
    """Wait for a process to end, and return how it fared since a moment at which it had waited so long."""
    os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
    wall_ns = time.monotonic_ns() - since_ns
    waited_ns = run_wait_ns(pid)
    _, status, usage = os.wait4(pid, 0)
    return {
        "code": os.waitstatus_to_exitcode(status),
        "wall_ns": wall_ns,
        "run_wait_ns": None if waited_ns is None else max(waited_ns - before_ns, 0),
        "voluntary_switches": usage.ru_nvcsw,
    }


def _tell(line: dict[str, object]) -> None:
    sys.stdout.write(json.dumps(line) + "\n")
    sys.stdout.flush()


def _kill(pid: int, ended: int) -> None:
    for number in (signal.SIGTERM, signal.SIGKILL):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(pid, number)
        if select.select([ended], [], [], END_S)[0]:
            return


def run_launcher(request: dict[str, object], given: Input) -> None:
    """Run a launcher as `run` does a process, and say how each of its ranks fared."""
    with tempfile.TemporaryDirectory(prefix="cadge-native-") as folder:
        run({**request, "variables": {**dict(request["variables"]), RANKS: folder}}, given, Path(folder))  # type: ignore[call-overload]


def run(request: dict[str, object], given: Input, ranks: Path | None = None) -> None:
    """Run one process to its end, or until the input says that it has to end. ranks: where its ranks say theirs."""
    argv, variables, cpu = request["argv"], request["variables"], request["cpu"]
    try:
        process = subprocess.Popen(  # type: ignore[call-overload] # as the other end wrote it
            argv,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env=variables,
            preexec_fn=lambda: _begin(int(str(cpu))),  # one thread: safe
        )
    except OSError as error:
        _tell({"code": 127, "printed": f"cannot be started: {error.strerror}", "wall_ns": 0})
        return
    since_ns, before_ns = time.monotonic_ns(), 0
    ended = os.pidfd_open(process.pid)
    output, printed = process.stdout.fileno(), bytearray()
    try:
        if port := int(str(request["port"])):
            _await(str(request["kind"]), port, ended)
        watched = [0, output, ended]
        left_s: float | None = max(START_S - (time.monotonic_ns() - since_ns) / 1e9, 0.0)
        while ended in watched:
            if 0 in watched and (given.ended or given.line() is not None):  # it may have come with the request
                watched.remove(0)
                _kill(process.pid, ended)
            found_ready = select.select(watched, [], [], left_s)[0]
            if not found_ready:
                since_ns, before_ns, left_s = time.monotonic_ns(), run_wait_ns(process.pid) or 0, None
            for ready in found_ready:
                if ready == output:
                    data = os.read(output, 1 << 16)
                    printed += data[: PRINTED_MOST - len(printed)]
                    if not data:
                        watched.remove(output)
                elif ready == ended:
                    watched.remove(ended)
                else:
                    given.read()
        found = fared(process.pid, since_ns, before_ns)
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)  # what it left
        while output in watched and (data := os.read(output, 1 << 16)):
            printed += data[: PRINTED_MOST - len(printed)]
        process.returncode = int(str(found["code"]))
    finally:
        os.close(ended)
        process.stdout.close()
    files = sorted(ranks.iterdir()) if ranks else []
    told = [json.loads(file.read_text(encoding="utf-8")) for file in files]
    _tell({**found, "printed": printed.decode("utf-8", "replace"), "ranks": told})


def _await(kind: str, port: int, ended: int) -> None:
    until = time.monotonic() + LISTEN_S
    while not listens(kind, port):
        if select.select([ended], [], [], 0.005)[0] or time.monotonic() > until:
            return
    _tell({"listens": True})


def main() -> int:
    """Run what the input says, until it ends."""
    given = Input()
    while not given.ended:
        request = given.line()
        if request is None:
            given.read()
        elif request:
            (run_launcher if request.get("ranks") else run)(request, given)
    return 0


def rank(number: str, cpu: int, argv: list[str]) -> int:
    """Run a rank: a child that is pinned; write down how it fared."""
    file = Path(os.environ.pop(RANKS), number)
    since_ns, before_ns = time.monotonic_ns(), 0
    pid = os.fork()
    if pid == 0:
        try:
            if cpu >= 0:
                os.sched_setaffinity(0, {cpu})
            os.execvp(argv[0], argv)  # noqa: S606 - a program and its arguments
        finally:
            os._exit(127)
    ended = os.pidfd_open(pid)
    if not select.select([ended], [], [], START_S)[0]:
        since_ns, before_ns = time.monotonic_ns(), run_wait_ns(pid) or 0
    os.close(ended)
    found = fared(pid, since_ns, before_ns)
    file.write_text(json.dumps(found), encoding="utf-8")
    return int(str(found["code"])) & 0xFF


if __name__ == "__main__":
    if sys.argv[1:2] == ["rank"]:
        sys.exit(rank(sys.argv[2], int(sys.argv[3]), sys.argv[4:]))
    sys.exit(main())
