# SPDX-License-Identifier: BSD-3-Clause
"""Logins to a cluster's hosts: as whom, and by which options, as the inventory or else ssh's configuration says."""

from __future__ import annotations

import getpass
import shlex
import subprocess
from collections.abc import Iterable, Mapping

from cadge_harness.testbed.model import Testbed, TestbedKind

_BY_SSH = ("ssh", "smart", "ansible.builtin.ssh")
_ANSWER_S = 10
_ELSEWHERE = ("ansible_become", "cadge_build_path")
"""Variables by which somebody else may run the drivers, or drivers may have rights of their own."""

_WITH_VALUE = {f"-{letter}" for letter in "BbcDEeFIiJLlmOopQRSWw"}
_ANYWHERE = ("-4", "-6", "-c", "-i", "-l", "-m", "-p")
_OF_HERE = ("proxy", "control", "userknownhostsfile", "globalknownhostsfile", "identityagent", "localforward")
"""Beginnings of ssh's options that name a way, a file or a socket of this machine. A missing key does no harm."""


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


def ssh_between(variables: Iterable[Mapping[str, object]]) -> tuple[str, ...]:
    """Return the command by which mpirun reaches hosts of an inventory with these variables; empty for its own.

    The inventory says how this machine reaches them. Between them, ways through a gateway and files of this machine
    have no meaning; keys, ports and other options hold as well. None is used that hosts disagree on.
    """
    each = [_options_between(own) for own in variables]
    if not each or not each[0] or any(one != each[0] for one in each):
        return ()
    return ("ssh", *each[0])


def _options_between(own: Mapping[str, object]) -> list[str]:
    if own.get("ansible_connection", _BY_SSH[0]) not in _BY_SSH:
        return []
    options: list[str] = []
    for variable in ("ansible_ssh_common_args", "ansible_ssh_extra_args"):
        try:
            options += _kept(shlex.split(str(own.get(variable) or "")))
        except ValueError:  # as Ansible will say
            return []
    if own.get("ansible_host_key_checking", own.get("ansible_ssh_host_key_checking")) in (False, "false", "no"):
        options += ["-o", "StrictHostKeyChecking=no"]
    for flag, names in (
        ("-p", ("ansible_port", "ansible_ssh_port")),
        ("-i", ("ansible_private_key_file", "ansible_ssh_private_key_file")),
    ):
        options += next(([flag, str(own[name])] for name in names if own.get(name)), [])
    whole = all(word and "{{" not in word and not any(map(str.isspace, word)) for word in options)
    return options if whole else []  # launchers put a space between words, and nothing else


def _kept(words: list[str]) -> Iterable[str]:
    """Yield the options of ssh that hold on any machine."""
    at = 0
    while at < len(words):
        flag, value = words[at][:2], words[at][2:]
        at += 1
        if flag in _WITH_VALUE and not value and at < len(words):
            value = words[at]
            at += 1
        here = value.lower().startswith(_OF_HERE) and not value.endswith("/dev/null")
        if not here if flag == "-o" else flag in _ANYWHERE:
            yield from (flag, value) if value else (flag,)
