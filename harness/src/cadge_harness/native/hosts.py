# SPDX-License-Identifier: BSD-3-Clause
"""Running both ends of a native tool on the hosts of a testbed that share this machine's files."""

from __future__ import annotations

import contextlib
import json
import os
import select
import shlex
import subprocess
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from cadge_harness.native.tool import Ask, Commands, Tool, ToolError, last_words
from cadge_harness.paths import find_checkout
from cadge_harness.testbed.emulated import interpreter

if TYPE_CHECKING:
    from cadge_harness.testbed.model import Testbed

GUARD = Path(__file__).with_name("guard.py")
TIMEOUT_S = 12.0
"""The agents wait 30 s for us between two launches."""
END_S = 6.0
_SYSTEM_FOLDERS = "/usr/local/sbin:/usr/sbin:/sbin"


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolOutcome:
    """What a tool printed, and how its processes fared: the client first."""

    text: str
    command: str
    wall_ns: tuple[int, ...]
    run_wait_ns: tuple[int | None, ...]
    voluntary_switches: tuple[int, ...]


class _Guard:
    """A guard on a host, which runs one process after the other."""

    def __init__(self, prefix: tuple[str, ...]) -> None:
        argv = [interpreter(), "-I", str(GUARD)]
        self._process = subprocess.Popen(
            [*prefix, *map(shlex.quote, argv)] if prefix else argv,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,  # a terminal's Ctrl-C is for us: what runs ends, and counts
        )
        assert self._process.stdin is not None  # noqa: S101 - pipes were asked for
        assert self._process.stdout is not None  # noqa: S101
        self._input, self._output = self._process.stdin, self._process.stdout
        self._partial = b""

    def say(self, request: Mapping[str, object]) -> None:
        """Tell it what to run; nothing: to end what runs."""
        try:
            self._input.write((json.dumps(request) + "\n").encode())
            self._input.flush()
        except OSError as error:
            raise ToolError(f"its guard is gone: {error.strerror}") from error

    def line(self, timeout_s: float) -> dict[str, Any]:
        """Return the next thing that it says. Raises ToolError where nothing comes."""
        until = time.monotonic() + timeout_s
        while b"\n" not in self._partial:
            left = until - time.monotonic()
            if left <= 0 or not select.select([self._output], [], [], left)[0]:
                raise ToolError(f"it did not end within {timeout_s:.0f} s")
            data = os.read(self._output.fileno(), 1 << 16)
            if not data:
                raise ToolError("its guard ended without a word")
            self._partial += data
        first, _, self._partial = self._partial.partition(b"\n")
        found: dict[str, Any] = json.loads(first)
        return found

    def close(self) -> None:
        """End it, and what it runs."""
        with contextlib.suppress(OSError):
            self._input.close()
        try:
            self._process.wait(timeout=END_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._output.close()


def variables(more: Mapping[str, str]) -> dict[str, str]:
    """Return the environment of a tool: as endpoints have it, nothing of the user's that steers a library."""
    path = f"{os.environ.get('PATH', '/usr/bin:/bin')}:{_SYSTEM_FOLDERS}:{find_checkout().programs}"
    own = {"PATH": path, "LC_ALL": "C.UTF-8", "HOME": "/nonexistent", **more}
    if os.geteuid() == 0:
        own |= {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    return own


class Hosts:
    """Where tools run: two guards, one for clients and one for servers, on the hosts that are asked for."""

    def __init__(self, testbed: Testbed) -> None:
        """Start nothing yet."""
        self._testbed = testbed
        self._guards: dict[tuple[str, str], _Guard] = {}

    def __enter__(self) -> Self:
        """Return itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End all guards."""
        self.close()

    def close(self) -> None:
        """End all guards, and what they run."""
        for guard in self._guards.values():
            guard.close()
        self._guards.clear()

    def run(self, tool: Tool, ask: Ask, client: str, server: str) -> ToolOutcome:
        """Run a tool once, its two ends on these hosts. Raises ToolError."""
        commands = tool.commands(ask)
        try:
            return self._ranks(commands, ask, client) if commands.ranks else self._pair(commands, ask, client, server)
        except ToolError:
            self.close()  # whatever state they are in
            raise

    def _guard(self, host: str, part: str) -> _Guard:
        found = self._guards.get((host, part))
        if found is None:
            found = self._guards[host, part] = _Guard(_prefix(self._testbed, host))
        return found

    def _pair(self, commands: Commands, ask: Ask, client: str, server: str) -> ToolOutcome:
        answering, asking = self._guard(server, "server"), self._guard(client, "client")
        answering.say(_request(commands, commands.server, ask.cpus[1], ask.port))
        first = answering.line(TIMEOUT_S)
        if not first.get("listens"):
            raise ToolError(f"its server did not begin: {last_words(str(first.get('printed', '')))}")
        asking.say(_request(commands, commands.client, ask.cpus[0]))
        mine = asking.line(TIMEOUT_S)
        answering.say({})
        theirs = answering.line(END_S)
        _check(mine)
        return _fared(mine, _command_line(commands), [mine, theirs])

    def _ranks(self, commands: Commands, ask: Ask, client: str) -> ToolOutcome:
        argv = ["mpirun", "--bind-to", "none", "--oversubscribe"]
        for number, cpu in enumerate(ask.cpus):
            argv += [":"] if number else []
            argv += ["-n", "1", interpreter(), "-I", str(GUARD), "rank", str(number), str(cpu), *commands.client]
        launcher = self._guard(client, "client")
        launcher.say(_request(commands, tuple(argv), -1, ranks=True))
        mine = launcher.line(TIMEOUT_S)
        _check(mine)
        return _fared(mine, _command_line(commands, len(ask.cpus)), mine["ranks"])


def _prefix(testbed: Testbed, host: str) -> tuple[str, ...]:
    """Return what puts a command onto a host."""
    if testbed.ssh_config is None:
        return ()
    return (*testbed.exec_prefix, "ssh", "-q", "-F", str(testbed.ssh_config), host, "--")


def _request(
    commands: Commands, argv: tuple[str, ...], cpu: int, port: int = 0, *, ranks: bool = False
) -> dict[str, object]:
    own = variables(commands.variables)
    return {"argv": list(argv), "cpu": cpu, "variables": own, "port": port, "kind": commands.listens, "ranks": ranks}


def _command_line(commands: Commands, ranks: int = 0) -> str:
    words = [f"{name}={shlex.quote(value)}" for name, value in commands.variables.items()]
    return " ".join([*words, *(["mpirun", "-n", str(ranks)] if commands.ranks else []), shlex.join(commands.client)])


def _check(mine: Mapping[str, Any]) -> None:
    if mine["code"] != 0:
        raise ToolError(f"it ended with {mine['code']}: {last_words(str(mine.get('printed', '')))}")


def _fared(mine: Mapping[str, Any], command: str, told: list[dict[str, Any]]) -> ToolOutcome:
    return ToolOutcome(
        text=str(mine["printed"]),
        command=command,
        wall_ns=tuple(one["wall_ns"] for one in told),
        run_wait_ns=tuple(one.get("run_wait_ns") for one in told),
        voluntary_switches=tuple(one.get("voluntary_switches", 0) for one in told),
    )
