# SPDX-License-Identifier: BSD-3-Clause
"""One sweep at a time on a machine, whoever the users are: two would measure each other.

The lock is a name, not a file: a listening socket in the kernel's abstract name space (unix(7)). One process has it,
until it ends, however it ends. No path leads to it, so nobody can put something else there or take its permissions
away; and who has it is what the kernel says, so nobody can pass for somebody else. What remains is that any user can
have it for ever: a user other than oneself and root is waited for no longer than FOREIGN_WAIT_S.

A sweep that is told not to wait has a name like it with a number. Each sweep says that it measures to those that do so
when it begins: of two that overlap, both know it.
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
SWEEPS_MOST = 16
"""At once on a machine: one holds it, others were told not to wait."""
_LOOK_AGAIN_S = 0.5
_MEASURES = b"m"
"""What a sweep says to those that measure when it begins; who waits says nothing."""
_VISITORS_MOST = 256


def lock_name(number: int = 0) -> bytes:
    """Return the lock's name, or of another number: one a machine, or one for each CADGE_LOCK."""
    own = os.environ.get("CADGE_LOCK", "")
    name = b"\0cadge-sweep" + (f"-{hashlib.sha256(own.encode()).hexdigest()[:16]}".encode() if own else b"")
    return name + (f"-beside-{number}".encode() if number else b"")


class MachineTurn:
    """This sweep's right to measure on the machine, from when it was given until the process ends.

    number: 0 of the one that holds the machine; of sweeps that measure beside it the least that none of them has.
    before: who measured when it was given.
    """

    def __init__(self, listener: socket.socket, number: int) -> None:
        """Take over a socket that listens under the name of a number; the sweeps that measure are told of this one."""
        self._listener = listener
        self._listener.setblocking(False)
        self._visitors: list[socket.socket] = []
        self.number = number
        self.before = [holder for other in range(SWEEPS_MOST) if other != number for holder in _visit(other, number)]

    def beside(self) -> list[Holder]:
        """Return who has measured on this machine in the meantime, or does, besides this sweep."""
        with contextlib.suppress(OSError):
            while len(self._visitors) < _VISITORS_MOST:  # kept open: for those who wait, its end is that of this turn
                self._visitors.append(self._listener.accept()[0])
        since = [_peer(one) for one in self._visitors if _peek(one) == _MEASURES]
        return list(dict.fromkeys([*self.before, *since]))

    def end(self) -> None:
        """Give the right back."""
        for one in (self._listener, *self._visitors):
            one.close()


@contextlib.contextmanager
def machine_lock(
    command: str,
    on_wait: Callable[[str], None],
    *,
    queue: bool = True,
    should_stop: Callable[[], bool] = lambda: False,
) -> Iterator[MachineTurn]:
    """Hold the machine; where another sweep holds it, call `on_wait` with a sentence that says so, and wait.

    Without `queue` nobody is waited for, and the turn may be one beside another's. `command` is what the user can run
    to measure at once. Raises UnfitError where there is no turn, or another user has the machine for too long;
    KeyboardInterrupt where `should_stop` turns true while waiting.
    """
    try:
        lock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    except OSError as error:
        raise UnfitError(f"the lock of this machine cannot be taken: {error.strerror}") from error
    with lock:
        if queue:
            _hold(lock, command, on_wait, should_stop)
        number = 0 if queue else next((one for one in range(SWEEPS_MOST) if _take(lock, one)), None)
        if number is None:
            raise UnfitError(f"{SWEEPS_MOST} sweeps measure on this machine; wait until some of them end")
        turn = MachineTurn(lock, number)
        try:
            yield turn
        finally:
            turn.end()


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


def _visit(other: int, number: int) -> list[Holder]:
    """Tell whoever measures under another number that this sweep measures too, and return who that is."""
    with _ask(other) as (holder, connection):
        if connection is None and other > number:  # of lower numbers it is known that somebody has them
            return []
        with contextlib.suppress(OSError):
            if connection is not None:
                connection.send(_MEASURES, socket.MSG_NOSIGNAL)
    return [holder]


def _peek(connection: socket.socket) -> bytes:
    with contextlib.suppress(OSError):
        return connection.recv(len(_MEASURES), socket.MSG_DONTWAIT | socket.MSG_PEEK)
    return b""


def _take(lock: socket.socket, number: int = 0) -> bool:
    try:
        lock.bind(lock_name(number))
        lock.listen(socket.SOMAXCONN)  # whoever waits is connected, and is told by the kernel when we end
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            return False
        raise UnfitError(f"the lock of this machine cannot be taken: {error.strerror}") from error
    return True


@contextlib.contextmanager
def _ask(number: int = 0) -> Iterator[tuple[Holder, socket.socket | None]]:
    """Yield who has the lock, or another number, and a connection that ends with it, where it takes one."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        connection.setblocking(False)
        try:
            connection.connect(lock_name(number))
        except OSError:  # it does not listen (yet), or its queue is full
            yield Holder(0, None), None
            return
        yield _peer(connection), connection


def _peer(connection: socket.socket) -> Holder:
    """Return who is at the other end, by what the kernel says: who listened there, or who connected."""
    raw = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("iII"))
    pid, uid, _gid = struct.unpack("iII", raw)
    return Holder(pid, uid)


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
