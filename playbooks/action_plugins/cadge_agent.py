# SPDX-License-Identifier: BSD-3-Clause
"""Runs the agent of one block on a host, for as long as the controller holds its lease.

The agent is started over the connection's own ssh (or directly, for a local connection) with its standard input held
open. This process joins it to the lease socket of the controller: what the agent prints goes up, what the controller
writes goes down, and the end of either side ends the other. Nothing is read or computed here.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import select
import shlex
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from ansible.errors import AnsibleActionFail, AnsibleConnectionFailure
from ansible.plugins.action import ActionBase

sys.path.append(str(Path(__file__).resolve().parents[1]))
import ansible_internals as internals

SSH_FAILED = 255
LOST_ANOTHER = 4
"""Exit status that says that nothing is wrong with this host, as the agent's own (cadge_agent/main.py)."""
GRACE_S = 10.0
TAIL = 2000


def _die_with_parent() -> None:
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)


def _quote(word: str) -> str:
    """Quote a word for the shell of the host, all but the ~/ that it may begin with."""
    return "~/" + shlex.quote(word[2:]) if word.startswith("~/") else shlex.quote(word)


class ActionModule(ActionBase):
    """See library/cadge_agent.py for the arguments."""

    TRANSFERS_FILES = False

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        """Ansible's entry: returns when the agent has ended."""
        result: dict[str, Any] = super().run(tmp, task_vars)
        host = str((task_vars or {})["inventory_hostname"])
        _, arguments = self.validate_argument_spec(
            argument_spec={
                "argv": {"type": "list", "elements": "str", "required": True},
                "lease_socket": {"type": "path", "required": True},
                "block_id": {"type": "str", "required": True},
            }
        )
        if internals.in_check_mode(self):
            return {**result, "skipped": True, "msg": "the agent is not started in check mode"}
        lease = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            lease.connect(arguments["lease_socket"])
            hello = {"hello": "agent", "host": host, "block_id": arguments["block_id"], "pid": os.getpid()}
            lease.sendall((json.dumps(hello) + "\n").encode())
        except OSError as error:
            raise AnsibleActionFail(f"the controller does not hold its lease any more: {error}") from error
        with lease:
            agent = subprocess.Popen(
                self._command(arguments["argv"]),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                preexec_fn=_die_with_parent,
            )
            errors, lost = self._join(lease, agent)
        code = agent.returncode
        result.update(rc=code, changed=True)
        last = errors.decode("utf-8", errors="replace").strip().splitlines()
        said = last[-1] if last else f"exit status {code}"
        if lost:
            result.update(failed=True, rc=LOST_ANOTHER, msg="the controller ended its lease")
        elif code == SSH_FAILED and not internals.is_local(self):
            raise AnsibleConnectionFailure(f"the connection to {host} was lost while the agent ran: {said}")
        elif code != 0:
            how = f"was killed by signal {-code}" if code < 0 else f"ended with exit status {code}"
            result.update(failed=True, msg=f"the agent on {host} {how}: {said}")
        return result

    def _command(self, argv: list[str]) -> list[Any]:
        """Make the local command that runs `argv` on the host."""
        if internals.is_local(self):
            return [str(Path(word).expanduser()) if word.startswith("~/") else word for word in argv]
        return internals.ssh_command(self, "exec " + " ".join(map(_quote, argv)))

    @staticmethod
    def _join(lease: socket.socket, agent: subprocess.Popen[bytes]) -> tuple[bytes, bool]:
        """Carry bytes both ways until the agent ends; returns (end of its standard error, whether the lease ended)."""
        if agent.stdin is None or agent.stdout is None or agent.stderr is None:
            raise AnsibleActionFail("the agent was started without pipes")
        streams = {agent.stdout.fileno(): "out", agent.stderr.fileno(): "err"}
        descriptors = [lease.fileno(), *streams]
        errors, lost, until = b"", False, float("inf")
        while streams and time.monotonic() < until:
            timeout = None if until == float("inf") else max(0.0, until - time.monotonic())
            ready, _, _ = select.select(descriptors, [], [], timeout)
            for descriptor in ready:
                try:
                    data = os.read(descriptor, 1 << 16)
                except OSError:
                    data = b""
                if descriptor == lease.fileno():
                    if data:
                        with contextlib.suppress(OSError):
                            os.write(agent.stdin.fileno(), data)
                        continue
                    lost, until = True, time.monotonic() + GRACE_S
                    agent.stdin.close()
                    descriptors.remove(descriptor)
                elif not data:
                    del streams[descriptor]
                    descriptors.remove(descriptor)
                elif streams[descriptor] == "err":
                    errors = (errors + data)[-TAIL:]
                elif not lost:
                    with contextlib.suppress(OSError):  # the end of the lease is seen when it is read
                        lease.sendall(data)
        if not lost:
            agent.stdin.close()
        try:
            agent.wait(max(1.0, min(until - time.monotonic(), GRACE_S)))
        except subprocess.TimeoutExpired:
            agent.kill()
            agent.wait()
        return errors, lost
