# SPDX-License-Identifier: BSD-3-Clause
"""Folders of sockets, one for each run of Ansible; those of processes that were killed are swept by the next one."""

from __future__ import annotations

import contextlib
import fcntl
import shutil
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from cadge_harness.testbed.users import is_held

_OWNER = "owner"
"""In each folder: a file that its process holds a lock on for as long as it lives."""
_OLD_S = 86_400.0
"""A folder without such a file is of an older version, or was never finished."""


@contextlib.contextmanager
def scratch_folder(state: Path) -> Iterator[Path]:
    """Make a folder below the state folder, with a short name (ssh puts sockets below it), and remove it at the end."""
    sweep(state)
    made = Path(tempfile.mkdtemp(prefix="new-run-", dir=state))
    with (made / _OWNER).open("w") as owner:
        fcntl.flock(owner, fcntl.LOCK_EX)
        folder = made.rename(made.with_name(made.name.removeprefix("new-")))  # from now on others may look at it
        try:
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)


def sweep(state: Path) -> None:
    """Remove the folders whose processes are gone."""
    for folder in [*state.glob("run-*"), *state.glob("new-run-*")]:
        with contextlib.suppress(OSError):
            if _is_left(folder):
                shutil.rmtree(folder, ignore_errors=True)


def _is_left(folder: Path) -> bool:
    if folder.name.startswith("new-") or not (folder / _OWNER).exists():
        return time.time() - folder.lstat().st_mtime > _OLD_S
    return not is_held(folder / _OWNER)
