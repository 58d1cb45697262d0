# SPDX-License-Identifier: BSD-3-Clause
"""Tells the controller what Ansible does, as JSON lines over the unix socket named by CADGE_EVENT_SOCKET.

    {"event": "task", "name", "role"}                a task begins
    {"event": "note", "host", "text"}                a line that a program said on standard error while it succeeded
    {"event": "failed" | "unreachable", "host", "task", "message", "rc"}
    {"event": "stats", "hosts": {host: {"ok", "changed", "failures", "unreachable"}}}

When the controller's end of that socket closes, this process ends itself: sudo, which may stand between the two, hides
the death of a parent. While agents run, Ansible looks for their end once a second instead of a hundred times.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import socket
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING

from ansible.plugins.callback import CallbackBase

sys.path.append(str(Path(__file__).resolve().parents[1]))
import ansible_internals as internals

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ansible.executor.stats import AggregateStats
    from ansible.playbook.task import Task

DOCUMENTATION = r"""
name: cadge_events
type: notification
short_description: Events for the controller of a campaign
description:
  - Writes JSON lines to the unix socket named by CADGE_EVENT_SOCKET, and does nothing where that is not set.
"""

AGENT_ACTION = "cadge_agent"
WAIT_S = 1.0
SSH_ENDS = re.compile(r"(Shared c|C)onnection to .* closed\.?$")
"""What ssh itself says at the end."""


def _last_words(said: Mapping[str, object]) -> str:
    """Return the last line that a module wrote before it broke; over a terminal stderr comes with stdout."""
    for stream in ("module_stderr", "module_stdout"):
        lines = [line.strip() for line in str(said.get(stream) or "").splitlines()]
        spoken = [line for line in lines if line and not SSH_ENDS.match(line)]
        if spoken:
            return spoken[-1]
    return ""


class CallbackModule(CallbackBase):
    """One connection to the controller for the life of the process."""

    CALLBACK_VERSION = 2.0
    CALLBACK_TYPE = "notification"
    CALLBACK_NAME = "cadge_events"
    CALLBACK_NEEDS_ENABLED = True

    def __init__(self) -> None:
        super().__init__()
        self._poll_s = internals.poll_interval_s()
        self._task = ""
        self._socket: socket.socket | None = None
        if path := os.environ.get("CADGE_EVENT_SOCKET"):
            self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            self._socket.connect(path)
            self._send(event="begin", pid=os.getpid())
            threading.Thread(target=self._watch, args=(self._socket, os.getpid()), daemon=True).start()

    @staticmethod
    def _watch(connection: socket.socket, pid: int) -> None:
        with contextlib.suppress(OSError):
            while connection.recv(4096):
                pass
        if os.getpid() == pid:
            os._exit(143)

    def _send(self, **fields: object) -> None:
        if self._socket is not None:
            with contextlib.suppress(OSError):
                self._socket.sendall((json.dumps(fields) + "\n").encode())

    def v2_playbook_on_task_start(self, task: Task, is_conditional: bool) -> None:
        """Tell the name of the task."""
        del is_conditional
        waits = str(task.action).rpartition(".")[2] == AGENT_ACTION
        internals.set_poll_interval(WAIT_S if waits else self._poll_s)
        self._task = str(task.name or task.action)
        if str(task.action).rpartition(".")[2] == "validate_argument_spec":
            self._task = "Check the variables"
        self._send(event="task", name=self._task, role=internals.role_of(task))

    def v2_runner_on_ok(self, result: internals.TaskResult) -> None:
        """Tell what a program of ours had to say while it did what it should."""
        answer = internals.answer_of(result)
        for line in answer.result.get("stderr_lines") or ():
            self._send(event="note", host=answer.host, text=line)

    def v2_runner_on_failed(self, result: internals.TaskResult, ignore_errors: bool = False) -> None:
        """Tell what failed, unless the playbook goes on."""
        if not ignore_errors:
            self._problem("failed", result)

    def v2_runner_on_unreachable(self, result: internals.TaskResult) -> None:
        """Tell which host does not answer."""
        self._problem("unreachable", result)

    def _problem(self, event: str, result: internals.TaskResult) -> None:
        answer = internals.answer_of(result)
        said = answer.result
        message = str(said.get("msg") or said.get("stderr") or "no message")
        if said.get("stderr") and said.get("rc"):
            message = str(said["stderr"]).strip().splitlines()[-1]
        elif last := _last_words(said):
            # Of a module that broke Ansible says only that it did.
            message = f"{message.splitlines()[0]}: {last}"
        if answer.hidden:
            message = "its output is kept secret"
        self._send(event=event, host=answer.host, task=self._task, message=message[-2000:], rc=said.get("rc"))

    def v2_playbook_on_stats(self, stats: AggregateStats) -> None:
        """Tell the totals, by host."""
        hosts = {}
        for host in stats.processed:
            total = stats.summarize(host)
            hosts[host] = {key: total[key] for key in ("ok", "changed", "failures", "unreachable")}
        self._send(event="stats", hosts=hosts)
