# SPDX-License-Identifier: BSD-3-Clause
"""Run SimGrid as a child of its own: the system's Python, JSON in and out, a deadline and a limit of memory."""

from __future__ import annotations

import json
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache, partial
from pathlib import Path

from pydantic import ValidationError

from cadge_analysis import messages
from cadge_analysis.errors import SimulatorMissingError
from cadge_analysis.models.message import Message
from cadge_analysis.models.topology import Topology, latency_ns, platform
from cadge_results.formats.base import Frozen

say = partial(messages.say, "models")

PYTHON = Path("/usr/bin/python3")
"""Debian's, which its package python3-simgrid is for; the registry's simgrid has to be compiled."""
PACKAGE = "python3-simgrid"
CHILD = Path(__file__).with_name("simgrid_child.py")
STACK_BYTES = 1 << 18
"""Each simulated endpoint is a thread, and thousands of the usual 8 MiB are more than the limit of memory."""


class SimulationAnswer(Frozen):
    """What the child answers."""

    simgrid: str
    finished_ns: float
    messages: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Simulator:
    """Whose SimGrid is used, and what one simulation may take."""

    python: Path = field(default_factory=lambda: PYTHON)
    deadline_s: float = 120.0
    memory_bytes: int = 4 << 30

    def version(self) -> str:
        """Return SimGrid's version. Raises SimulatorMissingError where this machine has none."""
        return _version(self.python)

    def simulate(self, routes: Sequence[Sequence[int]], topology: Topology, message: Message) -> SimulationAnswer | str:
        """Return when the last message was taken, or why that was not found out.

        `routes`: of each endpoint to whom it sends, in order. Raises SimulatorMissingError where there is no SimGrid.
        """
        self.version()
        with tempfile.TemporaryDirectory(prefix="cadge-simgrid-") as folder:
            path = Path(folder, "platform.xml")
            path.write_text(platform(topology, message, "of one simulation"), encoding="utf-8")
            asked = {
                "platform": str(path),
                "routes": routes,
                "expects": expects(routes, topology, message),
                "bytes": message.size - 1,  # LogGP counts from the second byte on
                "send_ns": message.send_ns,
                "receive_ns": message.receive_ns,
                "gap_ns": message.gap_ns,
                "sends_every_ns": message.sends_every_ns,
            }
            return self._ask(json.dumps(asked))

    def _ask(self, asked: str) -> SimulationAnswer | str:
        argv = ["prlimit", f"--stack={STACK_BYTES}", f"--as={self.memory_bytes}", str(self.python), "-I", str(CHILD)]
        try:
            done = subprocess.run(
                argv, input=asked, capture_output=True, text=True, timeout=self.deadline_s, check=False
            )
        except subprocess.TimeoutExpired:
            return f"not over after {self.deadline_s:g} s"
        if done.returncode:
            memory = f"{self.memory_bytes // (1 << 20)} MiB of memory"
            return say("simulate.ended", status=done.returncode, memory=memory, stderr=_last_line(done.stderr))
        try:
            return SimulationAnswer.model_validate_json(done.stdout)
        except ValidationError:
            return say("simulate.no_json", stdout=_last_line(done.stdout))


def expects(routes: Sequence[Sequence[int]], topology: Topology, message: Message) -> list[list[int]]:
    """Return for each endpoint from whom its messages come, in the order in which they do if nothing holds them up."""
    coming: list[list[tuple[float, int]]] = [[] for _ in routes]
    for sender, route in enumerate(routes):
        for step, to in enumerate(route):
            way_ns = latency_ns(message, topology.links(sender, to))
            coming[to].append((step * message.sends_every_ns + way_ns, sender))
    return [[sender for _, sender in sorted(one)] for one in coming]


@cache
def _version(python: Path) -> str:
    script = "import simgrid; print(simgrid.simgrid_version)"
    try:
        asked = subprocess.run([python, "-I", "-c", script], capture_output=True, text=True, timeout=30, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise SimulatorMissingError(say("simulate.cannot_run", python=python, error=error)) from error
    if asked.returncode:
        raise SimulatorMissingError(say("simulate.no_module", python=python, package=PACKAGE))
    return asked.stdout.strip()


def _last_line(text: str) -> str:
    """Return the last line that says something."""
    return next((line.strip() for line in reversed(text.splitlines()) if line.strip()), "without a word")
