# SPDX-License-Identifier: BSD-3-Clause
"""Where the endpoints of a host keep shared memory."""

from __future__ import annotations

import contextlib
import errno
import os
import re
import shutil
import signal
import subprocess
import time
from pathlib import Path

from cadge_agent.folders import own_folder, remove_own_folder
from cadge_agent.namespaces import keep_namespaces
from cadge_agent.segments import SHM, remove_segments

CAP_SYS_ADMIN = 21
ENTER = "nsenter"
FOLDER_VARIABLES = ("UCX_POSIX_DIR", "OMPI_MCA_btl_vader_backing_directory", "OMPI_MCA_btl_sm_backing_directory")


class SharedMemory:
    """Where the endpoints of this host keep shared memory: a place that is ours alone.

    UCX and Open MPI name their segments after no process, so in a place that others use as well nobody can tell what
    a killed endpoint left from what somebody keeps there.

    private: a process that sleeps (the keeper) holds a mount of /dev/shm and an IPC namespace; endpoints enter them,
    and with the last process all that was in them is gone. folder: where namespaces cannot be had (`why`), the
    libraries are told to use a folder of ours; libfabric's files and SysV segments cannot be moved, but say which
    process made them. shared: neither can be had; only those are removed.

    `before` is put before the command of each endpoint.
    """

    def __init__(self, work: Path, scratch: Path, driver: Path) -> None:
        """Make it for a work folder. `scratch`: where endpoints begin; `driver`: what they run."""
        self._scratch = scratch
        self.since_s = time.time()
        self.folder: Path | None = None
        self.variables: dict[str, str] = {}
        self.why: str | None = None
        self._keeper: int | None = None
        try:
            self._as_user = _needs_user_namespace(driver)
            self._keep()
            self._try_to_enter(driver)
        except OSError as error:
            self._end_keeper()
            self.kind, self.why = "folder", error.strerror
            self._use_folder(work)

    def _keep(self) -> None:
        self._keeper = keep_namespaces(self._scratch, as_user=self._as_user)
        self.kind = "private"
        # Root and working folder are the keeper's: a mount namespace begins at its own root, also for us in a chroot.
        self.before = [str(shutil.which(ENTER)), "--target", str(self._keeper), "--mount", "--ipc", "--root", "--wd"]
        if self._as_user:
            self.before += ["--user", "--preserve-credentials"]
        self.before += ["--"]

    def _try_to_enter(self, driver: Path) -> None:
        """Do what each endpoint will do, once. Raises OSError."""
        argv = [*self.before, "test", "-e", str(driver)]
        done = subprocess.run(argv, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
        if done.returncode != 0 and driver.exists():
            said = done.stderr.strip() or f"{driver} does not exist"
            raise PermissionError(errno.EPERM, f"the namespaces cannot be entered: {said}")

    def _end_keeper(self) -> None:
        if self._keeper is not None:
            with contextlib.suppress(OSError):
                os.kill(self._keeper, signal.SIGKILL)
                os.waitpid(self._keeper, 0)
            self._keeper = None

    def _use_folder(self, work: Path) -> None:
        try:
            self.folder = own_folder(SHM, work)
        except OSError as error:
            self.kind, self.why, self.before = "shared", f"{self.why}; {SHM}: {error.strerror}", []
            return
        self.variables = {name: str(self.folder) for name in FOLDER_VARIABLES}
        self.before = ["env", *(f"{name}={value}" for name, value in self.variables.items())]

    def renew(self) -> None:
        """Have a living keeper for the launch to come. Raises OSError."""
        if self._keeper is not None and os.waitpid(self._keeper, os.WNOHANG) != (0, 0):
            self._keeper = None
            self._keep()

    def tidy(self, ended: list[int]) -> list[str]:
        """Remove what endpoints left; `ended`: processes that we started and saw end. Returns the names."""
        left = []
        if self.folder is not None:
            with contextlib.suppress(OSError):
                left = list(self.folder.iterdir())
        removed = []
        for path in left:
            with contextlib.suppress(OSError):
                path.unlink()
                removed.append(str(path))
        return removed + ([] if self.kind == "private" else remove_segments(ended, self.since_s))

    def close(self) -> None:
        """End the keeper and remove the folder."""
        if self.folder is not None:
            remove_own_folder(self.folder)
        self._end_keeper()


def _needs_user_namespace(driver: Path) -> bool:
    """Whether the others need it. Raises OSError where they cannot be entered, or it would take rights of ours."""
    if shutil.which(ENTER) is None:
        raise FileNotFoundError(errno.ENOENT, f"there is no program {ENTER}")
    status = Path("/proc/self/status").read_text(encoding="utf-8")
    sets = {name: int(value, 16) for name, value in re.findall(r"^(Cap\w+):\s*([0-9a-f]+)$", status, re.MULTILINE)}
    if sets["CapEff"] >> CAP_SYS_ADMIN & 1:
        return False
    with contextlib.suppress(OSError):
        os.getxattr(driver, "security.capability")
        raise PermissionError(errno.EPERM, "the driver has file capabilities, which end in a user namespace")
    if sets["CapPrm"] or sets["CapAmb"]:
        raise PermissionError(errno.EPERM, "this user has capabilities, which end in a user namespace")
    return True
