# SPDX-License-Identifier: BSD-3-Clause
"""One sweep at a time on a machine: two would measure each other."""

from __future__ import annotations

import contextlib
import fcntl
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from cadge_harness.errors import UnfitError

_LOOK_AGAIN_S = 0.5


def lock_path() -> Path:
    """Return the lock file: one a machine, whoever the user is."""
    return Path(os.environ.get("CADGE_LOCK") or "/tmp/cadge.lock")  # noqa: S108 - shared by all users on purpose


@contextlib.contextmanager
def machine_lock(
    owner: str, on_wait: Callable[[str], None], *, should_stop: Callable[[], bool] = lambda: False
) -> Iterator[None]:
    """Hold the machine; where another sweep holds it, call `on_wait` once with who that is, and wait.

    The lock ends with the process, whatever ends it. Raises UnfitError where the lock file cannot be used,
    KeyboardInterrupt where `should_stop` turns true while waiting.
    """
    path = lock_path()
    fd = _open(path)
    try:
        told = False
        while not _try(fd):
            if not told:
                on_wait(_holder(fd))
                told = True
            if should_stop():
                raise KeyboardInterrupt
            time.sleep(_LOOK_AGAIN_S)
        with contextlib.suppress(OSError):  # the name of the holder is a courtesy; the lock itself is held
            os.ftruncate(fd, 0)
            os.pwrite(fd, f"{os.getpid()} {owner}\n".encode(), 0)
        yield
    finally:
        os.close(fd)


def _open(path: Path) -> int:
    flags = os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW
    try:
        try:
            # In a sticky folder the kernel may refuse O_CREAT on another user's file, so that comes second.
            return os.open(path, flags)
        except FileNotFoundError:
            fd = os.open(path, flags | os.O_CREAT, 0o666)
            with contextlib.suppress(OSError):
                os.fchmod(fd, 0o666)
            return fd
        except PermissionError:
            return os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
    except OSError as error:
        raise UnfitError(
            f"cannot use the lock file {path}: {error.strerror}; set CADGE_LOCK to a file of yours"
        ) from error


def _try(fd: int) -> bool:
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _holder(fd: int) -> str:
    text = os.pread(fd, 200, 0).decode(errors="replace").strip()
    return text or "unknown"
