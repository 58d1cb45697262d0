# SPDX-License-Identifier: BSD-3-Clause
"""The playbooks `site` and `cleanup` for this machine alone, without Ansible, which takes seconds to begin and to end.

The same steps in the same order, by the same agent under the same lease. `playbook.play` runs this program in place of
ansible-playbook. It takes the same variables, reports its steps as callback_plugins/cadge_events.py does, and what it
prints is the campaign's ansible.log. It tunes nothing and gives no link a rate: that needs the playbooks.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import socket
import subprocess
import sys
import tarfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from cadge_harness.run.agent_file import NAME
from cadge_harness.run.room import OF_HOSTS

EXIT_FAILED = 2
"""As ansible-playbook ends where a task failed."""


class StepFailedError(Exception):
    """A step failed, for the reason given."""


class _Here:
    """One run on this machine."""

    def __init__(self, given: Mapping[str, Any]) -> None:
        self._given = given
        self._host = str(given["cadge_hosts"][0])
        self._campaign = str(given["cadge_campaign"])
        self._folder = Path.home() / OF_HOSTS / f"{self._campaign}-{self._host}"
        self._build = self._folder / "build"
        self._step = ""
        self._controller = self._connected()
        self._send(event="begin", pid=os.getpid())

    def play(self, name: str) -> int:
        """Do what the playbook of this name does; returns its exit status."""
        try:
            if name == "site":
                self._begin("prepare", "Make the folder")
                self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
                self._deploy()
                for block in self._given["cadge_blocks"]:
                    self._measure(str(block["id"]))
            self._collect()
            self._restore()
        except (StepFailedError, OSError, tarfile.TarError) as error:
            self._send(event="failed", host=self._host, task=self._step, message=str(error))
            _log(f"failed: {self._step}: {error}")
            return EXIT_FAILED
        return 0

    def _deploy(self) -> None:
        self._begin("deploy", "Bring build, agent, token and blocks")
        if not (self._folder / self._given["cadge_archive_marker"]).exists():
            with tarfile.open(self._given["cadge_archive"], "r:*") as archive:
                archive.extraction_filter = lambda member, _path: member  # it is of our own making
                archive.extractall(self._folder)  # noqa: S202
        self._begin("deploy", "See whether the build runs here and what the host is")
        programs = str(self._given.get("cadge_programs") or "")
        self._agent("check", "--host", self._host, "--build", str(self._build), "--programs", programs)

    def _measure(self, block: str) -> None:
        """Run the agent of a block, whose lease is its own connection to the controller."""
        self._begin("block", "Run the agent")
        argv = [*self._argv("run"), "--block", str(self._folder / f"{block}.json"), "--host", self._host]
        with self._connected() as lease:
            hello = {"hello": "agent", "host": self._host, "block_id": block, "pid": os.getpid()}
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

    def _collect(self) -> None:
        self._begin("collect", "Look for launches that were not acknowledged")
        fetched = Path(self._given["cadge_fetch_folder"], "launches")
        for path in sorted((self._folder / "done").glob("*.json")):
            fetched.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, fetched / path.name)

    def _restore(self) -> None:
        self._begin("restore", "End what is left running")
        if (self._folder / NAME).exists():
            self._agent("clean")
        self._begin("restore", "Remove the folder")
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

    def _begin(self, role: str, step: str) -> None:
        self._step = step
        _log(f"{role}: {step}")
        self._send(event="task", name=step, role=f"cadge_{role}")

    def _connected(self) -> socket.socket:
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        connection.connect(self._given["cadge_lease_socket"])
        return connection

    def _send(self, **fields: object) -> None:
        with contextlib.suppress(OSError):  # the controller is gone, and the kernel ends this process
            self._controller.sendall((json.dumps(fields) + "\n").encode())


def _log(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def _lines(said: bytes) -> list[str]:
    return said.decode("utf-8", errors="replace").strip().splitlines()


def command(name: str, variables: Path) -> list[str]:
    """Return the command that does what a playbook does, with the variables of a file."""
    return [sys.executable, "-P", "-m", "cadge_harness.run.here", name, str(variables)]


def main() -> int:
    """Run as a program: NAME VARIABLES."""
    name, variables = sys.argv[1:]
    return _Here(json.loads(Path(variables).read_text(encoding="utf-8"))).play(name)


if __name__ == "__main__":
    sys.exit(main())
