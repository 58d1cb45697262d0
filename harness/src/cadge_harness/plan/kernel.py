# SPDX-License-Identifier: BSD-3-Clause
"""Values of the kernel as settings of a layer: kernel.NAME (a sysctl), sys.NAME (a file of /sys), device.NAME.

The agent sets them for each launch, reads them back and restores them (cadge_agent/host/kernel.py). What this user
cannot set is refused when planning, as far as it is known here.
"""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Callable, Iterable, Mapping
from fnmatch import fnmatchcase
from functools import partial
from pathlib import Path

from cadge_harness.errors import UsageError
from cadge_harness.plan.catalogue import Refusal
from cadge_harness.plan.sweep import WantedPoint
from cadge_harness.testbed.inventory_rules import truth
from cadge_harness.testbed.logins import login_of
from cadge_harness.testbed.model import Testbed, TestbedKind
from cadge_results import Reason

PREFIXES = ("kernel.", "sys.", "device.")
ALLOWED = (
    "kernel.net.core.*",
    "kernel.net.ipv4.tcp_*",
    "kernel.net.ipv4.udp_*",
    "kernel.net.mptcp.*",
    "kernel.net.unix.*",
    "kernel.vm.*",
    "kernel.numa_balancing*",
    "kernel.sched_*",
    "kernel.timer_migration",
    "sys.kernel.mm.transparent_hugepage.*",
    "device.gro_flush_timeout",
    "device.napi_defer_hard_irqs",
    "device.threaded",
    "device.tx_queue_len",
)
"""What steers communication and memory, and can cut no host off from its network."""
NOT_ALLOWED = (
    "kernel.net.ipv4.tcp_fastopen_key*",
    "kernel.vm.drop_caches",
    "kernel.vm.compact_memory",
    "kernel.vm.panic*",
)
"""Among these: a secret, orders, which are no values, and what stops the machine."""
_NAME = re.compile(r"[a-z]+(\.[A-Za-z0-9_-]+)+")
_VALUE = re.compile(r"[A-Za-z0-9_.:/+-]+( [A-Za-z0-9_.:/+-]+)*")
_PROC_SYS, _SYS = Path("/proc/sys"), Path("/sys")
SetHere = Callable[[str, str], Refusal | None]
"""Why a host cannot be given a value: host and setting."""


def is_value(name: str) -> bool:
    """Tell whether a setting is a value of the kernel."""
    return name.startswith(PREFIXES)


def file_of(name: str, device: str) -> Path:
    """Return the file of a setting on a host with this data device; the same as in cadge_agent/host/kernel.py."""
    prefix, _, rest = name.partition(".")
    if prefix == "device":
        return _SYS / "class/net" / device / rest
    if prefix == "sys":
        return _SYS / rest.replace(".", "/")
    return _PROC_SYS / (rest if rest.startswith(("net.", "vm.")) else name).replace(".", "/")


def check_values(settings: Mapping[str, str]) -> None:
    """Raise UsageError where a setting is no value of the kernel that a sweep may set, or cannot be one."""
    for name, value in settings.items():
        if not is_value(name):
            continue
        if not _NAME.fullmatch(name) or _one_of(name, NOT_ALLOWED) or not _one_of(name, ALLOWED):
            raise UsageError(
                f"{name[:80]!r} is not among the values of the kernel that may be set: {', '.join(ALLOWED)}"
            )
        if not _VALUE.fullmatch(value):
            raise UsageError(
                f"{name}: {value[:80]!r} is not words of letters, digits and _.:/+- with single spaces between"
            )


def _one_of(name: str, patterns: Iterable[str]) -> bool:
    return any(fnmatchcase(name, pattern) for pattern in patterns)


def refuse_values(
    settings: Mapping[str, str], wanted: WantedPoint, hosts: Iterable[str], set_here: SetHere
) -> Refusal | None:
    """Return why a layer cannot be measured with the values of the kernel that its settings state, or None."""
    asked = [name for name in settings if is_value(name)]
    for name in asked:
        if name.startswith("device.") and wanted.place != "between":
            return Refusal(code=Reason.PLACE, reason=f"{name} is of the data device, which place between alone uses")
    found = (set_here(host, name) for host in hosts for name in asked)
    return next((one for one in found if one is not None), None)


def set_here_of(testbed: Testbed) -> SetHere:
    """Return what says why a host of a testbed cannot be given a value."""
    return partial(_on_a_cluster, testbed) if testbed.kind is TestbedKind.CLUSTER else _on_this_machine


def _on_this_machine(_host: str, name: str) -> Refusal | None:
    """Return why; hosts that are emulated have this kernel, whose devices are all of one make."""
    path = file_of(name, "lo")
    if not path.exists():
        return Refusal(code=Reason.NODE_LACKS, reason=f"this kernel has no {name} ({path})")
    if os.geteuid() != 0:
        return Refusal(code=Reason.PERMISSION, reason=f"only root may set {name} (run cadge with sudo)")
    try:
        os.close(os.open(path, os.O_WRONLY))
    except OSError as error:
        code = Reason.PERMISSION if error.errno in {errno.EACCES, errno.EPERM, errno.EROFS} else Reason.NODE_LACKS
        return Refusal(code=code, reason=f"{name} cannot be set on this machine ({path}: {error.strerror})")
    return None


def _on_a_cluster(testbed: Testbed, host: str, name: str) -> Refusal | None:
    """Return why, as far as the inventory says it; the rest is for the host to say."""
    if not truth(testbed.host_variables.get(host, {}).get("cadge_tunable", True)):
        return Refusal(code=Reason.PERMISSION, reason=f"the inventory forbids {name} on {host} (cadge_tunable: false)")
    user = login_of(testbed, host)
    if user not in (None, "root"):
        reason = f"only root may set {name}, and {user} logs in to {host}: set ansible_user there"
        return Refusal(code=Reason.PERMISSION, reason=reason)
    return None
