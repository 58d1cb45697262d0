# SPDX-License-Identifier: BSD-3-Clause
"""What our plugins use of Ansible that its documentation does not promise, in one place.

Each function says what it stands on. A test runs all of them with every ansible-core that it is given, so that a new
release that changes one of these things is found there, and mended here.
"""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ansible import constants
from ansible.errors import AnsibleActionFail

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ansible.executor.task_result import CallbackTaskResult as TaskResult
    from ansible.playbook.task import Task
    from ansible.plugins.action import ActionBase

LOCAL = ("local", "ansible.builtin.local")
SSH = ("ssh", "ansible.builtin.ssh")


@dataclass(frozen=True)
class Answer:
    """What a task gave on a host."""

    host: str
    result: Mapping[str, Any]
    hidden: bool
    """no_log: nobody is to see it."""


def answer_of(task_result: TaskResult) -> Answer:
    """Read what a callback is given: `result` and `host`, which were `_result` and `_host` before 2.19."""
    result = task_result.result if hasattr(task_result, "result") else task_result._result
    host = task_result.host if hasattr(task_result, "host") else task_result._host
    hidden = bool(result.get("_ansible_no_log")) or "censored" in result
    return Answer(host=str(host.get_name()), result=result, hidden=hidden)


def role_of(task: Task) -> str:
    """Return the name of the role that a task stands in, empty where it stands in none: `_role`."""
    role = getattr(task, "_role", None)
    return str(role.get_name()) if role else ""


def poll_interval_s() -> float:
    """Return how often Ansible looks whether a task has ended: DEFAULT_INTERNAL_POLL_INTERVAL, read each time."""
    return float(constants.DEFAULT_INTERNAL_POLL_INTERVAL)


def set_poll_interval(seconds: float) -> None:
    """Change it."""
    constants.DEFAULT_INTERNAL_POLL_INTERVAL = seconds


def in_check_mode(action: ActionBase) -> bool:
    """Say whether nothing is to be changed: `_task.check_mode`."""
    return bool(action._task.check_mode)


def is_local(action: ActionBase) -> bool:
    """Say whether the host is this machine itself: `_connection.transport`."""
    return action._connection.transport in LOCAL


def ssh_command(action: ActionBase, remote: str) -> list[Any]:
    """Return the command that runs a line of shell on the host, over the connection's own ssh, master and options.

    `_build_command` of the connection, which looks at its `host`.
    """
    connection = action._connection
    if connection.transport not in SSH:
        kind = shlex.quote(connection.transport)
        raise AnsibleActionFail(f"a host must be reached by ssh or be this machine itself, not by {kind}")
    connection.host = connection.get_option("host") or action._play_context.remote_addr
    command: list[Any] = connection._build_command(
        connection.get_option("ssh_executable"), "ssh", connection.host, remote
    )
    return command
