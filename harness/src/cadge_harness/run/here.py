# SPDX-License-Identifier: BSD-3-Clause
"""The playbooks `site` and `cleanup` for this machine alone, without Ansible, which takes seconds to begin and to end.

The playbooks say which steps there are, in which order; a step is done here, by the same agent under the same lease.
`playbook.play` runs this program in place of ansible-playbook. It takes the same variables, reports its steps as
callback_plugins/cadge_events.py does, and what it prints is the campaign's ansible.log. Roles that a role includes are
left out: they tune a host and give its link a rate, and that needs the playbooks.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import socket
import subprocess
import sys
import tarfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import astuple, dataclass, replace
from itertools import groupby
from pathlib import Path
from typing import Any

from cadge_harness.run.agent_file import NAME
from cadge_harness.run.room import OF_HOSTS

EXIT_FAILED = 2
"""As ansible-playbook ends where a task failed."""


class StepFailedError(Exception):
    """A step failed, for the reason given."""


@dataclass(frozen=True, slots=True)
class Step:
    """A task of a role; for each block where a play says so."""

    role: str
    name: str
    of_each_block: bool = False


def steps(playbook: Path) -> Iterator[Step]:
    """Yield the steps of a playbook, without those of roles that a role includes."""
    for play in _yaml(playbook):
        if "ansible.builtin.import_playbook" in play:
            yield from steps(playbook.with_name(play["ansible.builtin.import_playbook"]))
        for role in play.get("roles", ()):
            yield from _steps_of(playbook.parent / "roles" / role["role"], "main.yml")
        for task in play.get("tasks", ()):
            role = playbook.parent / "roles" / task["ansible.builtin.include_role"]["name"]
            yield from (replace(step, of_each_block=True) for step in _steps_of(role, "main.yml"))


def stored(playbook: Path) -> list[tuple[str, str, bool]]:
    """Return the steps of a playbook as the variables of `command` hold them."""
    return [astuple(step) for step in steps(playbook)]


def _steps_of(role: Path, file: str) -> Iterator[Step]:
    yield from _steps_in(_yaml(role / "tasks" / file), role)


def _steps_in(tasks: Iterable[Mapping[str, Any]], role: Path) -> Iterator[Step]:
    for task in tasks:
        if "block" in task:
            yield from _steps_in([*task["block"], *task.get("always", ())], role)
        elif "ansible.builtin.import_tasks" in task:
            yield from _steps_of(role, task["ansible.builtin.import_tasks"])
        elif "ansible.builtin.include_role" not in task:
            yield Step(role.name, task["name"])


def _yaml(path: Path) -> list[dict[str, Any]]:
    import yaml  # not in the program that does the steps

    from cadge_results.plugins.catalogue import SafeLoader

    found: list[dict[str, Any]] = yaml.load(path.read_text(encoding="utf-8"), Loader=SafeLoader)  # noqa: S506 - a safe one
    return found


class _Here:
    """One run on this machine."""

    def __init__(self, given: Mapping[str, Any]) -> None:
        self._given = given
        self._host = str(given["cadge_hosts"][0])
        self._campaign = str(given["cadge_campaign"])
        self._folder = Path.home() / OF_HOSTS / f"{self._campaign}-{self._host}"
        self._build = self._folder / "build"
        self._step = ""
        self._block = ""
        self._left: list[Path] = []
        self._controller = self._connected()
        self._send(event="begin", pid=os.getpid())

    def play(self) -> int:
        """Do the steps that were given; returns the exit status."""
        every = [Step(*one) for one in self._given["cadge_steps"]]
        try:
            for of_each_block, found in groupby(every, key=lambda step: step.of_each_block):
                several = list(found)
                for block in self._given["cadge_blocks"] if of_each_block else [{"id": ""}]:
                    self._block = str(block["id"])
                    for step in several:
                        self._do(step)
        except (StepFailedError, OSError, tarfile.TarError) as error:
            self._send(event="failed", host=self._host, task=self._step, message=str(error))
            _log(f"failed: {self._step}: {error}")
            return EXIT_FAILED
        return 0

    def _do(self, step: Step) -> None:
        self._step = step.name
        if (step.role, step.name) not in DONE_BY:
            raise StepFailedError(f"{step.role} has a step that is not known here")
        done_by = DONE_BY[step.role, step.name]
        if done_by is None:
            return
        _log(f"{step.role.removeprefix('cadge_')}: {step.name}")
        self._send(event="task", name=step.name, role=step.role)
        done_by(self)

    def _check_names(self) -> None:
        if not all(re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_.-]*", name) for name in (self._campaign, self._host)):
            raise StepFailedError("Campaign and host names may hold only letters, digits, dot, dash and underscore.")

    def _make_folder(self) -> None:
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)

    def _unpack(self) -> None:
        if not (self._folder / self._given["cadge_archive_marker"]).exists():
            with tarfile.open(self._given["cadge_archive"], "r:*") as archive:
                archive.extraction_filter = lambda member, _path: member  # it is of our own making
                archive.extractall(self._folder)  # noqa: S202

    def _check_build(self) -> None:
        programs = str(self._given.get("cadge_programs") or "")
        self._agent("check", "--host", self._host, "--build", str(self._build), "--programs", programs)

    def _measure(self) -> None:
        """Run the agent of a block, whose lease is its own connection to the controller."""
        argv = [*self._argv("run"), "--block", str(self._folder / f"{self._block}.json"), "--host", self._host]
        with self._connected() as lease:
            hello = {"hello": "agent", "host": self._host, "block_id": self._block, "pid": os.getpid()}
            lease.sendall((json.dumps(hello) + "\n").encode())
            done = subprocess.run(
                [*argv, "--build", str(self._build)],
                stdin=lease.fileno(),
                stdout=lease.fileno(),
                stderr=subprocess.PIPE,
                check=False,
            )
        said = _lines(done.stderr)
        if done.returncode != 0:
            how = f"was killed by signal {-done.returncode}" if done.returncode < 0 else f"ended with {done.returncode}"
            raise StepFailedError(f"the agent on {self._host} {how}: {said[-1] if said else 'it said nothing'}")

    def _find_left(self) -> None:
        self._left = sorted((self._folder / "done").glob("*.json"))

    def _fetch(self) -> None:
        fetched = Path(self._given["cadge_fetch_folder"], "launches")
        for path in self._left:
            fetched.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, fetched / path.name)

    def _end(self) -> None:
        if (self._folder / NAME).exists():
            self._agent("clean")

    def _remove_folder(self) -> None:
        with contextlib.suppress(FileNotFoundError):
            shutil.rmtree(self._folder)

    def _argv(self, verb: str) -> list[str]:
        return [str(self._given["cadge_python"]), str(self._folder / NAME), verb, "--work", str(self._folder)]

    def _agent(self, verb: str, *more: str) -> None:
        """Have the agent do something, and tell what it had to say."""
        argv = [*self._argv(verb), "--campaign", self._campaign, *more]
        done = subprocess.run(argv, stdin=subprocess.DEVNULL, capture_output=True, check=False)
        said = _lines(done.stderr)
        if done.returncode != 0:
            raise StepFailedError(said[-1] if said else f"the agent ended with exit status {done.returncode}")
        for line in said:
            self._send(event="note", host=self._host, text=line)

    def _connected(self) -> socket.socket:
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        connection.connect(self._given["cadge_lease_socket"])
        return connection

    def _send(self, **fields: object) -> None:
        with contextlib.suppress(OSError):  # the controller is gone, and the kernel ends this process
            self._controller.sendall((json.dumps(fields) + "\n").encode())


DONE_BY: Mapping[tuple[str, str], Callable[[_Here], None] | None] = {
    ("cadge_validate", "Refuse names that could lead out of the folder"): _Here._check_names,
    ("cadge_validate", "Refuse a build that is not at an absolute path"): None,
    ("cadge_prepare", "Make the folder"): _Here._make_folder,
    ("cadge_deploy", "Unpack what is brought"): _Here._unpack,
    ("cadge_deploy", "See whether the build runs here and what the host is"): _Here._check_build,
    ("cadge_deploy", "Refuse versions that differ between hosts"): None,
    ("cadge_block", "Run the agent"): _Here._measure,
    ("cadge_collect", "Look for launches that were not acknowledged"): _Here._find_left,
    ("cadge_collect", "Fetch them"): _Here._fetch,
    ("cadge_restore", "End what is left running"): _Here._end,
    ("cadge_restore", "Remove the folder"): _Here._remove_folder,
}
"""What does a step: None where one host has nothing to do. The order is that of the playbooks."""


def _log(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def _lines(said: bytes) -> list[str]:
    return said.decode("utf-8", errors="replace").strip().splitlines()


def command(variables: Path) -> list[str]:
    """Return the command that does what a playbook does, with the variables of a file, its steps among them."""
    return [sys.executable, "-P", "-m", "cadge_harness.run.here", str(variables)]


def main() -> int:
    """Run as a program: VARIABLES."""
    return _Here(json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))).play()


if __name__ == "__main__":
    sys.exit(main())
