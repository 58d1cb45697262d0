# SPDX-License-Identifier: BSD-3-Clause
"""Testbeds: choose one, bring it up, take it down, run a command in it."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from cadge_harness.errors import UnfitError, UsageError
from cadge_harness.surroundings import shm_free_bytes
from cadge_harness.testbed import emulated, inventory_file, slurm
from cadge_harness.testbed.model import DEFAULT_PORTS, Host, Testbed, TestbedKind

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

__all__ = [
    "Host",
    "Testbed",
    "TestbedKind",
    "down",
    "exec_command",
    "release",
    "resolve",
    "status",
    "up",
]

KINDS = ("auto", "local", "emulated", slurm.NAME)

BESIDE, ANEW = "another sweep measures on this machine", "each epoch rebuilds its hosts"
"""Why emulated hosts are made for a campaign alone."""


def local(*, notes: tuple[str, ...] = (), own: int = 0) -> Testbed:
    """Describe this machine alone: loopback and shared memory, Ansible's local connection, no root.

    own: which sweep at once; each has ports that no other one uses, for all of them share the loopback.
    """
    folder = emulated.state_folder()
    cpus = tuple(sorted(os.sched_getaffinity(0)))
    host = Host(
        name="localhost",
        management_address="127.0.0.1",
        device="lo",
        address="127.0.0.1",
        raw_device="",
        cpus=cpus,
        shm_free_bytes=shm_free_bytes(),
    )
    variables: dict[str, dict[str, object]] = {
        host.name: {
            "ansible_connection": "local",
            "ansible_python_interpreter": emulated.interpreter(),
            "cadge_device": host.device,
            "cadge_address": host.address,
            "cadge_management_address": host.management_address,
            "cadge_raw_device": host.raw_device,
            "cadge_cpus": list(host.cpus),
        }
    }
    path = folder / "local.json"
    part = folder / f"local.{os.getpid()}.part"
    part.write_text(json.dumps({"cadge": {"hosts": variables}}, indent=1), encoding="utf-8")
    part.replace(path)
    first, last = DEFAULT_PORTS
    step = own * (last - first + 1)
    return Testbed(
        name="local",
        kind=TestbedKind.LOCAL,
        hosts=(host,),
        inventory_path=path,
        notes=notes,
        ports=(first + step, last + step),
        host_variables=variables,
    )


def resolve(
    kind: str = "auto",
    inventory: Path | None = None,
    *,
    start: bool = True,
    hosts: int = emulated.DEFAULT_HOSTS,
    exactly: bool = False,
    own: int = 0,
    anew: bool = False,
) -> Testbed:
    """Choose the testbed to use and make it for use, until `release`.

    kind: auto | local | emulated | slurm or slurm:DEVICE; an inventory decides alone, but beside slurm, where it states
    variables. auto is slurm inside an allocation, else emulated where root can be had and namespaces can be made (it is
    tried), else local with a line in `notes` that says why. start=False describes an emulated
    testbed without making it (then exec_prefix is empty unless it is up already), for planning. An emulated one has
    `hosts` where it is made; of one that is up with more, all are used, or `exactly` so many. own: 0, or the number
    of a sweep that measures beside others: an emulated one that nobody else uses, whatever is up, or ports of its own.
    anew: an emulated one is made, whatever is up.

    Raises UsageError (2), UnfitError (3).
    """
    kind, _, device = kind.partition(":")
    if kind == slurm.NAME or (kind == "auto" and inventory is None and slurm.is_allocated()):
        return slurm.allocation(inventory, device)
    if inventory is not None:
        if kind not in ("auto", ""):
            raise UsageError("give either an inventory or a testbed, not both")
        return inventory_file.load(inventory)
    if kind not in KINDS or device:
        raise UsageError(f"there is no testbed {kind!r}; there are {', '.join(KINDS)}, or an inventory")
    if kind == "local":
        return local(own=own)
    now = emulated.status()
    if now["state"] != "up":
        if kind == "auto":
            able, why = emulated.may_be_root()
            if not able and why != emulated.NEEDS_PASSWORD:
                return local(notes=(f"testbed local, not emulated: {why}",), own=own)
        if reason := emulated.probe():
            if kind == "auto":
                return local(notes=(f"testbed local, not emulated: {reason}",), own=own)
            raise UnfitError(f"the emulated testbed cannot be made: {reason}", commands=("cadge run --testbed local",))
    if start:
        joined = emulated.join(hosts, own=BESIDE if own else ANEW if anew else "")
        found = emulated.describe(joined.status, use=joined.use, notes=joined.notes)
    elif now["state"] == "up" and not (own or anew) and len(now["hosts"]) >= hosts:
        found = emulated.describe(now)
    else:
        found = emulated.describe({"folder": now["folder"], "hosts": emulated.host_names(hosts)})
    return replace(found, hosts=found.hosts[:hosts]) if exactly else found


def up(hosts: int = emulated.DEFAULT_HOSTS, *, shared: Sequence[Path] = ()) -> dict[str, Any]:
    """Bring the emulated testbed up for the user; one that is up stays, and is his from now on.

    shared: see emulated.up. Returns its status with "made" added.
    """
    now, made = emulated.up(hosts, shared=shared)
    emulated.describe(now)
    return {**now, "made": made}


def down() -> bool:
    """Take the user's emulated testbed down. Returns whether there was one. Raises UnfitError while it is used."""
    return emulated.down()


def release(testbed: Testbed) -> None:
    """End the use that `resolve` began; what it brought up goes with its last user."""
    if testbed.use is not None:
        emulated.leave(testbed.use)


def status() -> dict[str, Any]:
    """Return the status of the user's emulated testbed (see emulated.status), and those of campaigns' own as "own"."""
    return {**emulated.status(), "own": emulated.others()}


def exec_command(argv: list[str], host: str | None = None) -> int:
    """Run a command in the testbed's network namespace, or on one of its hosts. Returns its exit status."""
    now = emulated.status()
    if now["state"] != "up":
        raise UnfitError("no emulated testbed is up", commands=("cadge testbed up",))
    prefix = list(emulated.exec_prefix(now["pid"]))
    if not host:
        return subprocess.run([*prefix, *argv], check=False).returncode
    if host not in now["hosts"]:
        raise UsageError(f"the testbed has no host {host!r}; it has {', '.join(now['hosts'])}")
    ssh = ["ssh", "-F", f"{now['folder']}/ssh_config", host, "--", *map(shlex.quote, argv)]
    return subprocess.run([*prefix, *ssh], check=False).returncode
