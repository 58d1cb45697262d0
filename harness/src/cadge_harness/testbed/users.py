# SPDX-License-Identifier: BSD-3-Clause
"""Who uses a testbed: each process holds a lock on a file of its own, which the kernel releases however it ends.

The caller excludes others while users come and go: a file that is not locked yet is one that nobody holds.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import tempfile
from pathlib import Path

from cadge_harness.holder import Holder

FOLDER = "users"
"""Below the folder of a testbed: one file a user, whose name begins with the number of its process."""


class Use:
    """This process's use of the testbed in `folder`, from now until `end` or the end of the process."""

    def __init__(self, folder: Path) -> None:
        """Begin it. Raises OSError."""
        self.folder = folder
        users = folder / FOLDER
        users.mkdir(mode=0o700, exist_ok=True)
        self._descriptor, name = tempfile.mkstemp(prefix=f"{os.getpid()}-", dir=users)
        self._path = Path(name)
        fcntl.flock(self._descriptor, fcntl.LOCK_EX)

    def end(self) -> None:
        """End it; again, it does nothing."""
        if self._descriptor >= 0:
            self._path.unlink(missing_ok=True)
            os.close(self._descriptor)
            self._descriptor = -1


def users(folder: Path) -> list[Holder]:
    """Return the processes that use the testbed in `folder`: those that live."""
    return [
        Holder(int(path.name.partition("-")[0]), os.geteuid())  # the folder of states is one's own
        for path in sorted((folder / FOLDER).glob("[0-9]*-*"))
        if is_held(path)
    ]


def is_held(path: Path) -> bool:
    """Tell whether a process that lives holds the lock of a file; nobody does where it is gone."""
    with contextlib.suppress(FileNotFoundError), path.open("r+") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False
