# SPDX-License-Identifier: BSD-3-Clause
"""The keeper: a process that sleeps, and holds a mount of /dev/shm and an IPC namespace."""

from __future__ import annotations

import errno
import os
import signal
from pathlib import Path

from cadge_agent.segments import SHM
from cadge_agent.system import LIBC, PR_SET_NAME, die_with_parent, system

CLONE_NEWNS, CLONE_NEWIPC, CLONE_NEWUSER = 0x00020000, 0x08000000, 0x10000000
MS_NOSUID, MS_NODEV, MS_NOEXEC, MS_REC, MS_SLAVE = 2, 4, 8, 0x4000, 0x80000


def keep_namespaces(scratch: Path, *, as_user: bool) -> int:
    """Start the keeper, in `scratch`; returns its number when its namespaces are ready. Raises OSError, in words."""
    flags, options = _shm_mount()
    read, write = os.pipe()
    parent = os.getpid()
    child = os.fork()
    if child == 0:
        try:
            signal.set_wakeup_fd(-1)
            for number in (signal.SIGCHLD, signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
                signal.signal(number, signal.SIG_DFL)
            os.setsid()
            LIBC.prctl(PR_SET_NAME, b"cadge-keeper")
            _enter_own_namespaces(flags, options, as_user=as_user)
            os.chdir(scratch)
            die_with_parent()
            null = os.open(os.devnull, os.O_RDWR)
            for stream in range(3):
                os.dup2(null, stream)
            os.write(write, b"ready")
            os.closerange(3, 1 << 16)
            while os.getppid() == parent:
                signal.pause()
        except OSError as error:
            os.write(write, f"{error.filename or ''} {error.strerror}".strip().encode())
        finally:
            os._exit(0)
    os.close(write)
    with os.fdopen(read, "rb") as pipe:
        said = pipe.read().decode()
    if said != "ready":
        os.waitpid(child, 0)
        raise PermissionError(errno.EPERM, f"no namespaces: {said or 'the attempt crashed'}")
    return child


def _enter_own_namespaces(flags: int, options: str, *, as_user: bool) -> None:
    """Give this process a mount of /dev/shm and an IPC namespace of its own. Raises OSError with what was tried."""
    user, group = os.geteuid(), os.getegid()
    system("unshare", CLONE_NEWNS | CLONE_NEWIPC | (CLONE_NEWUSER if as_user else 0))
    if as_user:  # it stays who it is
        Path("/proc/self/setgroups").write_text("deny", encoding="ascii")
        Path("/proc/self/uid_map").write_text(f"{user} {user} 1", encoding="ascii")
        Path("/proc/self/gid_map").write_text(f"{group} {group} 1", encoding="ascii")
    system("mount", b"none", b"/", None, MS_REC | MS_SLAVE, None)  # from here, nothing is mounted for others
    system("mount", b"tmpfs", str(SHM).encode(), b"tmpfs", flags, options.encode())


def _shm_mount() -> tuple[int, str]:
    """Find flags and options for a mount that is like the host's own /dev/shm, so that it is as fast and as large."""
    flags, options = MS_NOSUID | MS_NODEV, ["mode=1777"]
    place = str(SHM.resolve())
    for line in Path("/proc/self/mountinfo").read_text(encoding="utf-8", errors="replace").splitlines():
        own, _, system = line.partition(" - ")
        words, (kind, _, super_options) = own.split(), system.split(" ", 2)
        if words[4] == place and kind == "tmpfs":  # the last one counts: it lies on top
            flags = MS_NOSUID | MS_NODEV | (MS_NOEXEC if "noexec" in words[5].split(",") else 0)
            kept = [o for o in super_options.split(",") if o.split("=")[0] in ("size", "nr_inodes", "huge", "mpol")]
            options = ["mode=1777", *kept]
    return flags, ",".join(options)
