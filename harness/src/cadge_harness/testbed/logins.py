# SPDX-License-Identifier: BSD-3-Clause
"""As whom Cadge logs in to a cluster's hosts: what an inventory says of it, else ssh's configuration."""

from __future__ import annotations

import getpass
import shlex
import subprocess
from collections.abc import Mapping

from cadge_harness.testbed.model import Testbed, TestbedKind

_BY_SSH = ("ssh", "smart", "ansible.builtin.ssh")
_ANSWER_S = 10
_ELSEWHERE = ("ansible_become", "cadge_build_path")
"""Variables by which somebody else may run the drivers, or drivers may have rights of their own."""


def login_of(testbed: Testbed, name: str) -> str | None:
    """Return the user whose rights a host's drivers have; None where that cannot be said without logging in.

    It cannot on the hosts of other testbeds, and where drivers are a build of the host's: it may have capabilities.
    """
    own = testbed.host_variables.get(name, {})
    if testbed.kind is not TestbedKind.CLUSTER or any(own.get(variable) for variable in _ELSEWHERE):
        return None
    stated = own.get("ansible_user") or own.get("ansible_ssh_user")
    if stated:
        return str(stated) if "{{" not in str(stated) else None
    connection = own.get("ansible_connection", _BY_SSH[0])
    if connection == "local":
        return getpass.getuser()
    return _of_ssh(own, name) if connection in _BY_SSH else None


def _of_ssh(own: Mapping[str, object], name: str) -> str | None:
    """Ask ssh, which connects to nobody for it."""
    given = [str(own.get(f"ansible_ssh_{part}_args") or "") for part in ("common", "extra")]
    host = str(own.get("ansible_host") or own.get("ansible_ssh_host") or name)
    try:
        argv = ["ssh", *(word for part in given for word in shlex.split(part)), "-G", host]
        done = subprocess.run(
            argv, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=_ANSWER_S, check=True
        )
    except (OSError, ValueError, subprocess.SubprocessError):
        return None
    words = (line.partition(" ") for line in done.stdout.splitlines())
    return next((value for key, _, value in words if key == "user"), None)
