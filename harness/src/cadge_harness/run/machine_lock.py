# SPDX-License-Identifier: BSD-3-Clause
"""One sweep at a time on a machine, whoever the users are: two would measure each other.

The lock is a name, not a file: a listening socket in the kernel's abstract name space (unix(7)). One process has it,
until it ends, however it ends. No path leads to it, so nobody can put something else there or take its permissions
away; and who has it is what the kernel says, so nobody can pass for somebody else. What remains is that any user can
have it for ever: a user other than oneself and root is waited for no longer than FOREIGN_WAIT_S.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import select
import socket
import struct
import time
from collections.abc import Callable, Iterator

from cadge_harness.errors import UnfitError
from cadge_harness.holder import Holder
from cadge_harness.words import clock

FOREIGN_WAIT_S = 2 * 3600.0
_LOOK_AGAIN_S = 0.5


def lock_name() -> bytes:
    """Return the lock's name: one a machine, or one for each CADGE_LOCK."""
    own = os.environ.get("CADGE_LOCK", "")
    return b"\0cadge-sweep" + (f"-{hashlib.sha256(own.encode()).hexdigest()[:16]}".encode() if own else b"")


@contextlib.contextmanager
def machine_lock(
    command: str,
    on_wait: Callable[[str], None],
    *,
    queue: bool = True,
    should_stop: Callable[[], bool] = lambda: False,
) -> Iterator[Holder | None]:
    """Hold the machine; where another sweep holds it, call `on_wait` with a sentence that says so, and wait.

    Yields None, or without `queue` who else holds it. `command` is what the user can run to measure at once. Raises
    UnfitError where it cannot be held, or another user has it for too long; KeyboardInterrupt where `should_stop`
    turns true while waiting.
    """
    try:
        lock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    except OSError as error:
        raise UnfitError(f"the lock of this machine cannot be taken: {error.strerror}") from error
    with lock:
        if queue:
            _hold(lock, command, on_wait, should_stop)
        yield None if queue or _take(lock) else _other()


def _hold(lock: socket.socket, command: str, on_wait: Callable[[str], None], should_stop: Callable[[], bool]) -> None:
    """Wait until nobody else has the lock, and take it."""
    deadline_s = time.monotonic() + FOREIGN_WAIT_S
    told = False
    while not _take(lock):
        with _ask() as (holder, connection):
            if not told:
                on_wait(_sentence(holder, command))
                told = True
            _await_end(connection, holder, deadline_s, should_stop)
        if should_stop():
            raise KeyboardInterrupt
        if holder.foreign and time.monotonic() >= deadline_s:
            raise UnfitError(
                f"another user has kept this machine for {clock(FOREIGN_WAIT_S)} ({holder}); nothing was measured. "
                "To measure beside it:",
                commands=(command,),
            )


def _other() -> Holder:
    with _ask() as (holder, _connection):
        return holder


def _take(lock: socket.socket) -> bool:
    try:
        lock.bind(lock_name())
        lock.listen(socket.SOMAXCONN)  # whoever waits is connected, and is told by the kernel when we end
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            return False
        raise UnfitError(f"the lock of this machine cannot be taken: {error.strerror}") from error
    return True


@contextlib.contextmanager
def _ask() -> Iterator[tuple[Holder, socket.socket | None]]:
    """Yield who has the lock, and a connection that ends with it, where it takes one."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        connection.setblocking(False)
        try:
            connection.connect(lock_name())
        except OSError:  # it does not listen (yet), or its queue is full
            yield Holder(0, None), None
            return
        raw = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("iII"))
        pid, uid, _gid = struct.unpack("iII", raw)
        yield Holder(pid, uid), connection


def _await_end(
    connection: socket.socket | None, holder: Holder, deadline_s: float, should_stop: Callable[[], bool]
) -> None:
    """Return when the holder is gone, or the time for a foreign one is over, or `should_stop`."""
    if connection is None:
        time.sleep(_LOOK_AGAIN_S)
        return
    poll = select.poll()
    poll.register(connection, select.POLLHUP)
    while not should_stop() and not (holder.foreign and time.monotonic() >= deadline_s):
        if poll.poll(_LOOK_AGAIN_S * 1000):
            time.sleep(0.05)  # one that ends every connection must not keep us busy
            return


def _sentence(holder: Holder, command: str) -> str:
    waiting = "waiting for it to end"
    if holder.foreign:
        waiting += f", for {clock(FOREIGN_WAIT_S)} at most"
    return f"another sweep measures on this machine ({holder}); {waiting}. To measure beside it: {command}"
