# SPDX-License-Identifier: BSD-3-Clause
"""What our plugins use of Ansible's inside, with every ansible-core that is here: ours, and those of CADGE_ANSIBLES.

CADGE_ANSIBLES holds folders of programs, with colons between them: those of other virtual environments, each with an
ansible-playbook of another version.
"""

from __future__ import annotations

import json
import os
import re
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest
import yaml

Json = dict[str, Any]
PLAYBOOKS = Path(__file__).parents[2] / "playbooks"
OURS = str(Path(sys.executable).parent)
FOLDERS = [OURS, *filter(None, os.environ.get("CADGE_ANSIBLES", "").split(":"))]


@cache
def version(folder: str) -> str:
    if folder == OURS:  # asked whenever tests are collected
        return metadata.version("ansible-core")
    said = subprocess.run([f"{folder}/ansible-playbook", "--version"], capture_output=True, text=True, check=False)
    found = re.search(r"core (\S+)\]", said.stdout)
    return found.group(1) if found else folder


ROLE = [
    {"name": "Say", "ansible.builtin.command": {"argv": ["sh", "-c", "echo on stderr >&2"]}, "changed_when": False},
]
PLAY = [
    {
        "hosts": "all",
        "gather_facts": False,
        "roles": ["speaks"],
        "tasks": [
            {
                "name": "Run the agent",
                "cadge_agent": {
                    "argv": ["echo", "~/a b", "{{ inventory_hostname }}"],
                    "lease_socket": "{{ lease }}",
                    "block_id": "b0",
                },
            },
            {
                "name": "Keep it secret",
                "ansible.builtin.command": {"argv": ["sh", "-c", "echo SECRET >&2; exit 3"]},
                "no_log": True,
                "ignore_errors": False,
            },
        ],
    }
]
FAKE_SSH = """#!/bin/sh
# the last word is the command for the host
for word in "$@"; do last=$word; done
printf '%s\n' "$*" >>"$FAKE_SSH_LOG"
exec sh -c "$last"
"""


class Listener:
    """The controller's end of a socket: everything that is written to it, by connection."""

    def __init__(self, path: Path) -> None:
        self.lines: list[Json] = []
        self._server = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._server.bind(str(path))
        self._server.listen(8)
        self._threads: list[threading.Thread] = []
        self._accepting = threading.Thread(target=self._accept, daemon=True)
        self._accepting.start()

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._server.accept()
            except OSError:
                return
            self._threads.append(threading.Thread(target=self._read, args=(connection,), daemon=True))
            self._threads[-1].start()

    def _read(self, connection: socket.socket) -> None:
        with connection, connection.makefile() as stream:
            for line in stream:
                self.lines.append(json.loads(line) if line.startswith("{") else {"said": line})

    def close(self) -> None:
        if self._server.fileno() < 0:
            return
        self._server.shutdown(socket.SHUT_RDWR)
        self._accepting.join(10)
        self._server.close()
        for thread in self._threads:
            thread.join(10)


@pytest.fixture
def listening(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Listener, Path]]:
    path = tmp_path_factory.mktemp("s") / "s"
    listener = Listener(path)
    yield listener, path
    listener.close()


@pytest.mark.parametrize("over", ["local", "ssh"])
@pytest.mark.parametrize("folder", FOLDERS, ids=version)
@pytest.mark.first(1)
def test_plugins_work_with_this_ansible(
    folder: str, over: str, tmp_path: Path, listening: tuple[Listener, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Events by the callback, the agent by the action; over ssh a program that runs the command here."""
    listener, path = listening
    (tmp_path / "roles/speaks/tasks").mkdir(parents=True)
    (tmp_path / "roles/speaks/tasks/main.yml").write_text(yaml.safe_dump(ROLE))
    (tmp_path / "play.yml").write_text(yaml.safe_dump(PLAY))
    ssh = tmp_path / "ssh"
    ssh.write_text(FAKE_SSH)
    ssh.chmod(0o755)
    host: Json = {"ansible_connection": over, "ansible_python_interpreter": sys.executable}
    host |= {"ansible_host": "127.0.0.1", "ansible_ssh_executable": str(ssh), "ansible_ssh_transfer_method": "piped"}
    inventory = {"all": {"hosts": {"n1": host}, "vars": {"lease": str(path)}}}
    (tmp_path / "inventory.yml").write_text(yaml.safe_dump(inventory))
    monkeypatch.setenv("PATH", folder, prepend=":")
    for name, value in {
        "ANSIBLE_CONFIG": str(PLAYBOOKS / "ansible.cfg"),
        "ANSIBLE_ROLES_PATH": str(tmp_path / "roles"),
        "ANSIBLE_HOME": str(tmp_path / "home"),
        "CADGE_EVENT_SOCKET": str(path),
        "FAKE_SSH_LOG": str(tmp_path / "ssh.log"),
        "HOME": str(tmp_path),
    }.items():
        monkeypatch.setenv(name, value)
    argv = [f"{folder}/ansible-playbook", "-i", str(tmp_path / "inventory.yml"), str(tmp_path / "play.yml")]
    done = subprocess.run(argv, capture_output=True, text=True, check=False, timeout=120, cwd=tmp_path)
    assert done.returncode == 2, done.stdout + done.stderr
    listener.close()
    events = [line for line in listener.lines if "event" in line]
    tasks = {line["name"]: line["role"] for line in events if line["event"] == "task"}
    assert tasks == {"Say": "speaks", "Run the agent": "", "Keep it secret": ""}
    assert [line for line in events if line["event"] == "note"] == [
        {"event": "note", "host": "n1", "text": "on stderr"}
    ]
    assert [line for line in events if line["event"] == "failed"] == [
        {"event": "failed", "host": "n1", "task": "Keep it secret", "message": "its output is kept secret", "rc": None}
    ]
    assert "SECRET" not in done.stdout + done.stderr
    assert {"said": f"{tmp_path}/a b n1\n"} in listener.lines
    assert [line["block_id"] for line in listener.lines if line.get("hello") == "agent"] == ["b0"]
    log = (tmp_path / "ssh.log").read_text() if over == "ssh" else ""
    assert ("ControlMaster=auto" in log and "exec echo ~/'a b' n1" in log) == (over == "ssh")
    assert events[-1] == {
        "event": "stats",
        "hosts": {"n1": {"ok": 2, "changed": 1, "failures": 1, "unreachable": 0}},
    }


BREAKS = """#!/usr/bin/python
import sys
from ansible.module_utils.basic import AnsibleModule  # it is a module of the usual kind
print("before", file=sys.stderr)
sys.exit("shutil.Error: nothing can be copied\\n\\n")
"""


@pytest.mark.parametrize("over", ["local", "ssh"])
@pytest.mark.parametrize("folder", FOLDERS, ids=version)
@pytest.mark.first(1)
def test_a_module_that_breaks_says_why(
    folder: str, over: str, tmp_path: Path, listening: tuple[Listener, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ansible only says that it failed, and where to look; the last line that it wrote says of what."""
    listener, path = listening
    (tmp_path / "library").mkdir()
    (tmp_path / "library/breaks.py").write_text(BREAKS)
    (tmp_path / "play.yml").write_text(
        yaml.safe_dump([{"hosts": "all", "gather_facts": False, "tasks": [{"name": "Break", "breaks": {}}]}])
    )
    ssh = tmp_path / "ssh"
    ssh.write_text(FAKE_SSH.replace("exec sh", "trap 'echo Shared connection to 127.0.0.1 closed. >&2' EXIT; sh"))
    ssh.chmod(0o755)
    host: Json = {"ansible_connection": over, "ansible_python_interpreter": sys.executable}
    host |= {"ansible_host": "127.0.0.1", "ansible_ssh_executable": str(ssh), "ansible_ssh_transfer_method": "piped"}
    (tmp_path / "inventory.yml").write_text(yaml.safe_dump({"all": {"hosts": {"n1": host}}}))
    monkeypatch.setenv("PATH", folder, prepend=":")
    for name, value in {
        "ANSIBLE_CONFIG": str(PLAYBOOKS / "ansible.cfg"),
        "ANSIBLE_LIBRARY": str(tmp_path / "library"),
        "ANSIBLE_HOME": str(tmp_path / "home"),
        "CADGE_EVENT_SOCKET": str(path),
        "FAKE_SSH_LOG": str(tmp_path / "ssh.log"),
        "HOME": str(tmp_path),
    }.items():
        monkeypatch.setenv(name, value)
    argv = [f"{folder}/ansible-playbook", "-i", str(tmp_path / "inventory.yml"), str(tmp_path / "play.yml")]
    done = subprocess.run(argv, capture_output=True, text=True, check=False, timeout=120, cwd=tmp_path)
    assert done.returncode == 2, done.stdout + done.stderr
    listener.close()
    (failed,) = [line for line in listener.lines if line.get("event") == "failed"]
    assert failed["message"].endswith(": shutil.Error: nothing can be copied"), failed
    assert "\n" not in failed["message"]


INTERVAL = """
import ansible_internals as internals
internals.set_poll_interval(0.5)
from ansible import constants
assert constants.DEFAULT_INTERNAL_POLL_INTERVAL == internals.poll_interval_s() == 0.5
from ansible.plugins.strategy import StrategyBase
import inspect
assert "DEFAULT_INTERNAL_POLL_INTERVAL" in inspect.getsource(StrategyBase), "it is not read each time any more"
"""


@pytest.mark.parametrize("folder", FOLDERS, ids=version)
def test_ansible_reads_the_interval_each_time(folder: str) -> None:
    python = next(path for path in (Path(folder) / "python", Path(folder) / "python3") if path.exists())
    done = subprocess.run([python, "-c", INTERVAL], capture_output=True, text=True, check=False, cwd=PLAYBOOKS)
    assert done.returncode == 0, done.stderr
