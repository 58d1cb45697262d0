# SPDX-License-Identifier: BSD-3-Clause
"""How many processors control groups allow this process and its children, and how long they held them up.

Of both versions (Linux: admin-guide/cgroup-v2, "cpu.max"; scheduler/sched-bwc). Groups lie in each other: the least
quota of all counts, and each holds up by its own.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

from cadge_agent.formats import Json
from cadge_agent.host.reading import unknown

PROC_SELF = Path("/proc/self")


def quota(proc: Path = PROC_SELF) -> float | str | Json:
    """Return how many processors at once groups allow on average over a period; "none", or why it is not known."""
    try:
        folders = list(_folders(proc))
        allowed = [one for folder in folders if (one := _quota_of(folder)) is not None]
    except (OSError, ValueError) as error:
        return unknown(error)
    return min(allowed, default="none") if folders else unknown("no control groups are visible")


def throttled_ns(proc: Path = PROC_SELF) -> int | None:
    """Return how long groups have held up what runs in them, all together; None where that is not known."""
    try:
        folders = list(_folders(proc))
        return sum(map(_throttled_ns, folders)) if folders else None
    except (OSError, ValueError):
        return None


def _folders(proc: Path) -> Iterator[Path]:
    """Yield the folders of this process's groups that share out processors, the innermost first."""
    mounted = {kind: (root, point) for kind, root, point in _mounts(proc)}
    for line in (proc / "cgroup").read_text(encoding="utf-8").splitlines():
        _, controllers, path = line.split(":", 2)
        kind = "2" if not controllers else "1" if "cpu" in controllers.split(",") else ""
        if kind not in mounted:
            continue
        root, point = mounted[kind]
        inner = Path(path)
        parts = inner.relative_to(root).parts if inner.is_relative_to(root) else ()
        for depth in range(len(parts), -1, -1):
            folder = point.joinpath(*parts[:depth])
            if folder.is_dir():
                yield folder


def _mounts(proc: Path) -> Iterator[tuple[str, Path, Path]]:
    """Yield the version of each hierarchy that shares out processors, which part of it is mounted, and where."""
    for line in (proc / "mountinfo").read_text(encoding="utf-8").splitlines():
        before, _, after = line.partition(" - ")
        root, point = before.split(" ")[3:5]
        kind, _, options = after.split(" ", 2)
        if kind == "cgroup2":
            yield "2", Path(root), Path(point)
        elif kind == "cgroup" and "cpu" in options.split(" ")[-1].split(","):
            yield "1", Path(root), Path(point)


def _quota_of(folder: Path) -> float | None:
    with contextlib.suppress(FileNotFoundError):
        most, period = (folder / "cpu.max").read_text(encoding="ascii").split()
        return None if most == "max" else int(most) / int(period)
    with contextlib.suppress(FileNotFoundError):
        most_us = int((folder / "cpu.cfs_quota_us").read_text(encoding="ascii"))
        return None if most_us < 0 else most_us / int((folder / "cpu.cfs_period_us").read_text(encoding="ascii"))
    return None


def _throttled_ns(folder: Path) -> int:
    with contextlib.suppress(FileNotFoundError):
        counted = dict(line.split() for line in (folder / "cpu.stat").read_text(encoding="ascii").splitlines())
        return int(counted.get("throttled_usec", 0)) * 1000 + int(counted.get("throttled_time", 0))
    return 0
