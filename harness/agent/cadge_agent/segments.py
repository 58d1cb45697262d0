# SPDX-License-Identifier: BSD-3-Clause
"""Shared memory that ended processes left where others keep theirs."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
from pathlib import Path

from cadge_agent.system import system

SHM = Path("/dev/shm")  # noqa: S108 - where libraries keep shared memory, whatever TMPDIR says
IPC_RMID = 0


def room_of(host: str) -> str:
    """Say how much shared memory a host has, this one."""
    try:
        usage = shutil.disk_usage(SHM)
    except OSError as error:
        return f"{SHM} of {host} cannot be read: {error.strerror}"
    return f"{SHM} of {host} has {usage.total / 1e6:.0f} MB, of which {usage.free / 1e6:.0f} MB are free"


def remove_segments(pids: list[int], since_s: float) -> list[str]:
    """Remove what these processes, which have ended, made and left; returns the names.

    That is libfabric's files, PID:UID:NUMBER, and SysV segments; none that is older than `since_s` (a process number
    comes again) or that some process uses.
    """
    removed = []
    user = os.geteuid()
    ours = re.compile(rf"({'|'.join(map(str, pids))}):{user}:\d+")
    found = []
    with contextlib.suppress(OSError):
        found = [path for path in SHM.iterdir() if pids and ours.fullmatch(path.name)]
    used = mapped_in(SHM) if found else set()
    for path in found:
        with contextlib.suppress(OSError):
            facts = path.lstat()
            if facts.st_uid == user and facts.st_ctime >= since_s - 1 and path.name not in used:
                path.unlink()
                removed.append(str(path))
    with contextlib.suppress(OSError):
        heading, *lines = Path("/proc/sysvipc/shm").read_text(encoding="ascii").splitlines()
        for line in lines:
            segment = dict(zip(heading.split(), map(int, line.split())))
            fresh = segment["ctime"] >= since_s - 1
            if fresh and segment["cpid"] in pids and segment["uid"] == user and segment["nattch"] == 0:
                system("shmctl", segment["shmid"], IPC_RMID, None)
                removed.append(f"SysV segment {segment['shmid']}")
    return removed


def mapped_in(folder: Path) -> set[str]:
    """Names of the files below `folder` that some process has mapped, as far as we may look."""
    names: set[str] = set()
    for maps in Path("/proc").glob("[0-9]*/maps"):
        with contextlib.suppress(OSError):
            names.update(re.findall(rf"{folder}/(\S+)", maps.read_text(errors="replace")))
    return names
