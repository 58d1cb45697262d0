# SPDX-License-Identifier: BSD-3-Clause
"""Peregrine from Python: the functions of pgr.h that tests and small tools need, by ctypes alone.

    server = Endpoint("udp", "127.0.0.1")
    server.serve(1, bytes.upper)
    client = Endpoint("udp", "127.0.0.1")
    peer = client.bind(server.address)
    peer.start(1, b"falcon", print)
    while client.poll() == 0:
        server.poll()

The library is libpgr.so.2, found as the system finds libraries, or what PGR_LIBRARY names. An endpoint is used by one
thread at a time. In a process that multiprocessing has forked it is closed: close it there, and open another one.
Errors are Error, with the code of pgr.h and its words; BUSY among them: poll, then try again.
"""

from __future__ import annotations

import ctypes
import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from types import TracebackType

OK, QUEUED, BUSY = 0, 1, 2
ARGUMENT, CLOSED = -1, -9
FAILED = -64
"""The code of a procedure that raised; its own are this and below."""
ADDRESS_BYTES = 32
TEXT_BYTES = 80
KEY_BYTES = 16


class Error(Exception):
    """What the engine refuses, or how a call ended."""

    def __init__(self, code: int, words: str = "") -> None:
        super().__init__(words or _library().pgr_code_name(code).decode())
        self.code = code


@dataclass(frozen=True, slots=True)
class PassOn:
    """What a procedure returns to have another server answer its caller. That server has to `trust` this endpoint."""

    peer: Peer
    procedure: int
    arguments: bytes


Done = Callable[["bytes | Error"], None]
"""What a call ends with: its result, or what became of it."""
Handler = Callable[[bytes], "bytes | PassOn"]


class _Config(ctypes.Structure):
    _fields_ = (
        ("bytes", ctypes.c_uint32),
        ("wire", ctypes.c_char_p),
        ("device", ctypes.c_char_p),
        ("address", ctypes.c_char_p),
        ("xdp_attach", ctypes.c_char_p),
        ("port_first", ctypes.c_uint16),
        ("port_last", ctypes.c_uint16),
        ("block", ctypes.c_uint32),
        ("off", ctypes.c_uint32),
        ("packet_bytes_max", ctypes.c_uint32),
        ("peers_max", ctypes.c_uint32),
        ("clients_max", ctypes.c_uint32),
        ("message_bytes_max", ctypes.c_uint64),
        ("pool_bytes_max", ctypes.c_uint64),
        ("give_up_ns", ctypes.c_uint64),
        ("memory_ns", ctypes.c_uint64),
        ("rto_min_ns", ctypes.c_uint64),
        ("key", ctypes.c_char_p),
        ("error", ctypes.c_char_p),
        ("error_bytes", ctypes.c_size_t),
        ("in_place_bytes_min", ctypes.c_uint64),
    )


class _Iov(ctypes.Structure):
    _fields_ = (("base", ctypes.c_void_p), ("bytes", ctypes.c_size_t))


class _Token(ctypes.Structure):
    _fields_ = (("word", ctypes.c_uint64 * 4),)


class _Request(ctypes.Structure):
    _fields_ = (
        ("pgr", ctypes.c_void_p),
        ("procedure", ctypes.c_uint32),
        ("args", ctypes.c_void_p),
        ("args_bytes", ctypes.c_size_t),
        ("token", _Token),
        ("client", ctypes.c_uint64),
        ("client_data", ctypes.c_void_p),
        ("shared", ctypes.c_uint32),
    )


_HANDLER = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.POINTER(_Request))
_DONE = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int, ctypes.c_void_p, ctypes.c_size_t)
_SENT = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int)


def _library() -> ctypes.CDLL:
    library = ctypes.CDLL(os.environ.get("PGR_LIBRARY", "libpgr.so.2"))
    library.pgr_code_name.restype = ctypes.c_char_p
    library.pgr_drain.restype = ctypes.c_uint32
    return library


def _iov(data: bytes) -> tuple[_Iov, ctypes.Array[ctypes.c_char]]:
    room = ctypes.create_string_buffer(data, max(len(data), 1))
    return _Iov(ctypes.addressof(room), len(data)), room


class Endpoint:
    """One open wire: it calls and serves."""

    def __init__(
        self,
        wire: str,
        address: str | None = None,
        *,
        port: int = 0,
        device: str | None = None,
        key: bytes | None = None,
        packet_bytes_max: int = 0,
        give_up_s: float = 0,
    ) -> None:
        """Open it; raises Error with a sentence that says why it is not to be had."""
        self._pgr = ctypes.c_void_p()
        if key is not None and len(key) != KEY_BYTES:
            raise Error(ARGUMENT, f"a key has {KEY_BYTES} bytes, not {len(key)}")
        if not 0 <= port < 1 << 16:
            raise Error(ARGUMENT, f"there is no port {port}")
        self._library = _library()
        error = ctypes.create_string_buffer(256)
        config = _Config(
            bytes=ctypes.sizeof(_Config),
            wire=wire.encode(),
            address=address.encode() if address else None,
            device=device.encode() if device else None,
            port_first=port,
            port_last=port,
            block=1,
            packet_bytes_max=packet_bytes_max,
            give_up_ns=int(give_up_s * 1e9),
            key=key,
            error=ctypes.cast(error, ctypes.c_char_p),
            error_bytes=len(error),
        )
        code = self._library.pgr_open(ctypes.byref(config), ctypes.byref(self._pgr))
        if code != OK:
            raise Error(code, error.value.decode(errors="replace"))
        self._kept: list[object] = []  # handlers, for as long as the endpoint is open
        self._lent: dict[int, tuple[Done | None, object]] = {}  # continuation and buffer of what is outstanding
        self._waiting: list[tuple[_Token, bytes | PassOn]] = []  # answers for which there was no room
        self._number = 0
        self._raised: BaseException | None = None
        self._polls = False
        self._done = _DONE(self._on_done)
        self._sent = _SENT(self._on_sent)

    def __enter__(self) -> Endpoint:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """End it; what is outstanding gets no event. Not from within a poll."""
        if self._polls:
            raise Error(ARGUMENT, "an endpoint cannot be closed by what it runs")
        self._library.pgr_close(self._pgr)
        self._pgr = ctypes.c_void_p()
        self._lent.clear()
        self._waiting.clear()

    @property
    def address(self) -> str:
        """Its own address, as text."""
        room, text = ctypes.create_string_buffer(ADDRESS_BYTES), ctypes.create_string_buffer(TEXT_BYTES)
        length = ctypes.c_size_t(ADDRESS_BYTES)
        self._must(self._library.pgr_address(self._live(), room, ctypes.byref(length)))
        self._must(self._library.pgr_address_text(self._live(), room, length, text, ctypes.c_size_t(TEXT_BYTES)))
        return text.value.decode()

    def serve(self, procedure: int, handler: Handler) -> None:
        """Serve a procedure: arguments in, result out.

        What it raises fails the call. An Error of FAILED or below is for the caller alone; the poll raises all others.
        """

        def run(_arg: int | None, request: ctypes._Pointer[_Request]) -> None:
            token = _Token.from_buffer_copy(request.contents.token)
            try:
                arguments = ctypes.string_at(request.contents.args or 0, request.contents.args_bytes)
                self._answer(token, handler(arguments))
            except BaseException as error:  # noqa: BLE001 the poll raises it, where it can be caught
                self._fail(token, error)

        called = _HANDLER(run)
        self._kept.append(called)
        self._must(self._library.pgr_serve(self._live(), ctypes.c_uint32(procedure), None, called, None))

    def trust(self, address: str) -> None:
        """Take calls that the server at this address passes on."""
        room, length = self._resolve(address)
        self._must(self._library.pgr_delegations_from(self._live(), room, length, ctypes.c_uint32(1)))

    def bind(self, address: str) -> Peer:
        """Bind to the server at this address; nothing is sent yet."""
        (room, length), peer = self._resolve(address), ctypes.c_void_p()
        self._must(self._library.pgr_bind(self._live(), room, length, ctypes.byref(peer)))
        return Peer(self, peer)

    def poll(self) -> int:
        """Do what is to be done; returns how many handlers and continuations ran. Raises what one of them raised."""
        if self._polls:
            raise Error(ARGUMENT, "an endpoint cannot be polled by what it runs")
        self._polls = True
        try:
            ran = self._library.pgr_poll(self._live())
        finally:
            self._polls = False
        waiting, self._waiting = self._waiting, []
        for token, result in waiting:
            try:
                self._answer(token, result)
            except Error as error:
                self._fail(token, error)
        if self._raised:
            raised, self._raised = self._raised, None
            raise raised
        self._must(ran)
        return int(ran)

    def wait(self, seconds: float) -> None:
        """Sleep until there may be something to poll."""
        nanoseconds = int(max(0, 0.001 if self._waiting else seconds) * 1e9)
        self._must(self._library.pgr_wait(self._live(), ctypes.c_uint64(nanoseconds)))

    def drain(self) -> int:
        """Take no new calls; returns how many are still here."""
        return int(self._library.pgr_drain(self._live()))

    def _live(self) -> ctypes.c_void_p:
        if not self._pgr:
            raise Error(CLOSED)
        return self._pgr

    def _resolve(self, address: str) -> tuple[ctypes.Array[ctypes.c_char], ctypes.c_size_t]:
        room, length = ctypes.create_string_buffer(ADDRESS_BYTES), ctypes.c_size_t(ADDRESS_BYTES)
        self._must(self._library.pgr_resolve(self._live(), address.encode(), room, ctypes.byref(length)))
        return room, length

    def _answer(self, token: _Token, result: bytes | PassOn) -> None:
        if isinstance(result, PassOn):
            if result.peer._endpoint is not self:
                raise Error(ARGUMENT, "a call is passed on to a peer of the endpoint that it came to")
            iov, room = _iov(result.arguments)
            code = self._library.pgr_delegate(
                result.peer._peer, ctypes.byref(token), ctypes.c_uint32(result.procedure), ctypes.byref(iov), 1
            )
        else:
            iov, room = _iov(result)
            number = self._lend(None, room)
            code = self._library.pgr_reply(
                self._pgr, ctypes.byref(token), ctypes.byref(iov), 1, 0, self._sent, ctypes.c_void_p(number)
            )
            if code != QUEUED:
                self._give_back(number)
        if code == BUSY:
            self._waiting.append((token, result))
        self._must(code)

    def _fail(self, token: _Token, error: BaseException) -> None:
        code = min(error.code, FAILED) if isinstance(error, Error) else FAILED
        self._library.pgr_fail(self._pgr, ctypes.byref(token), code)
        if not isinstance(error, Error) or error.code > FAILED:
            self._raised = self._raised or error

    def _on_done(self, number: int, code: int, result: int | None, result_bytes: int) -> None:
        done = self._give_back(number)
        if not done:
            return
        try:
            done(ctypes.string_at(result or 0, result_bytes) if code == OK else Error(code))
        except BaseException as error:  # noqa: BLE001 as in serve
            self._raised = self._raised or error

    def _on_sent(self, number: int, _code: int) -> None:
        self._give_back(number)

    def _must(self, code: int) -> None:
        if code < 0:
            raise Error(code)

    def _lend(self, done: Done | None, room: object) -> int:
        self._number += 1
        self._lent[self._number] = (done, room)
        return self._number

    def _give_back(self, number: int) -> Done | None:
        return self._lent.pop(number, (None, None))[0]


class Peer:
    """A binding to a server. Owned by its endpoint."""

    def __init__(self, endpoint: Endpoint, peer: ctypes.c_void_p) -> None:
        """Made by Endpoint.bind."""
        self._endpoint = endpoint
        self._peer = peer
        self._library = endpoint._library

    def start(self, procedure: int, arguments: bytes, done: Done, *, within_s: float = 0) -> int:
        """Call; `done` gets the result, or the Error, in a poll. Returns what `cancel` takes."""
        self._endpoint._live()
        iov, room = _iov(arguments)
        number = self._endpoint._lend(done, room)
        code = self._library.pgr_call(
            self._peer,
            ctypes.c_uint32(procedure),
            None,
            ctypes.byref(iov),
            1,
            None,
            0,
            0,
            self._endpoint._done,
            ctypes.c_void_p(number),
        )
        if code != QUEUED:
            self._endpoint._give_back(number)
            raise Error(code)
        if within_s:
            self._library.pgr_deadline(self._peer, ctypes.c_void_p(number), ctypes.c_uint64(int(within_s * 1e9)))
        return number

    def call(self, procedure: int, arguments: bytes = b"", *, within_s: float = 0) -> bytes:
        """Call, and poll this endpoint until the result is here. Raises Error."""
        results: list[bytes | Error] = []
        self.start(procedure, arguments, results.append, within_s=within_s)
        while not results:
            if self._endpoint.poll() == 0 and not results:
                self._endpoint.wait(0.1)
        if isinstance(results[0], Error):
            raise results[0]
        return results[0]

    def cancel(self, number: int) -> bool:
        """End a call before its result comes: its `done` gets the Error. False: it has ended."""
        self._endpoint._live()
        return bool(self._library.pgr_cancel(self._peer, ctypes.c_void_p(number)))


def poll_all(endpoints: list[Endpoint], until: Callable[[], bool], seconds: float = 10) -> None:
    """Poll endpoints of one thread in turn until something holds; raises TimeoutError."""
    deadline = time.monotonic() + seconds
    while not until():
        if time.monotonic() > deadline:
            raise TimeoutError
        for endpoint in endpoints:
            endpoint.poll()
