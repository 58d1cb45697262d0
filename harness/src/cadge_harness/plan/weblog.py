# SPDX-License-Identifier: BSD-3-Clause
"""From the log of a web server, in Common Log Format or NCSA's Combined one, to a trace.

    host ident user [time] "GET /file HTTP/1.0" 200 2326
    host ident user [time] "GET /file HTTP/1.0" 200 2326 "referer" "user agent"

What is in front of the time, and behind the bytes, is not looked at. A line is replayed if it asks for a file and was
sent one: method GET, status 200, no query and no cgi-bin. A status of 304 stands for a request too, but no file was
sent for it; to replay it would move bytes that never were moved. HEAD sends no file either. A request without protocol
(HTTP/0.9) is one, and blanks belong to a name. Names are compared byte by byte, without what follows a #; nothing is
decoded.

A file is as long as the largest answer for it: others were cut off. Where no answer tells a length (`-` or 0 bytes each
time) the file is left out. What is left out is counted by reason.

Time grows with the length of the log alone, and memory with files and requests, of which there may be so many: lines
are read in blocks, and one that is too long is passed over.
"""

from __future__ import annotations

import hashlib
import itertools
import re
import zlib
from array import array
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from cadge_harness.errors import UsageError, printable
from cadge_results import Omission, Trace, TraceFacts
from cadge_results.formats.trace import say_left_out

LINE_BYTES_MAX = 65_536
REQUESTS_MAX = 1 << 25
_CHUNK_BYTES = 1 << 20
_NAME_BYTES = 64
"""A longer name is kept as its hash."""
_GZIP = b"\x1f\x8b\x08"

TOO_LONG = f"longer than {LINE_BYTES_MAX:,} bytes"
NO_LINE = "not in Common Log Format"
NO_NAME = "that name no file"
OTHER_METHOD = "with another method than GET"
PROGRAM = "for a program, not a file (a query, or cgi-bin)"
NOT_MODIFIED = "not modified (304), so that no file was sent"
REDIRECTED = "redirected (other 3xx)"
FAILED = "answered with an error (4xx, 5xx)"
OTHER_STATUS = "with another status than 200"
NO_LENGTH = "for a file whose length no answer gives"
REASONS = (
    TOO_LONG,
    NO_LINE,
    NO_NAME,
    OTHER_METHOD,
    NOT_MODIFIED,
    REDIRECTED,
    FAILED,
    OTHER_STATUS,
    PROGRAM,
    NO_LENGTH,
)
"""Why a line is left out, in the order in which it is looked at."""

_BEFORE = b'] "'
"""What stands between the time and the request."""
_AFTER = re.compile(rb'" ([0-9]{3}) ([0-9]{1,18}|-)(?![^\s])')
"""What follows the request: status and bytes. Searched from one place, so it takes a time in proportion to the line."""
_PROTOCOL = re.compile(rb"(?:^|\s)HTTP/[0-9.]*\Z")
_METHOD = re.compile(rb"[!#$%&'*+.^_`|~0-9A-Za-z-]+\Z")
_CLASSES = {b"3": REDIRECTED, b"4": FAILED, b"5": FAILED}


@dataclass(frozen=True, kw_only=True)
class Replay:
    """A trace that was made of a log, and what there is to know of it."""

    trace: Trace
    facts: TraceFacts


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayBounds:
    """What can be replayed: how many files, and how long one may be."""

    files_max: int
    min_bytes: int
    max_bytes: int


@dataclass(slots=True)
class _Reading:
    """What has been read so far. A file has a number, by when it came first."""

    files_max: int
    lines: int = 0
    numbers: dict[bytes, int] = field(default_factory=dict)
    lengths: array[int] = field(default_factory=lambda: array("Q"))
    first_lines: array[int] = field(default_factory=lambda: array("Q"))
    requests: array[int] = field(default_factory=lambda: array("I"))
    left_out: dict[str, list[int]] = field(default_factory=dict)
    """By reason: how many lines, and the first of them."""

    def leave_out(self, reason: str, line: int, count: int = 1) -> None:
        """Count lines that are not replayed."""
        found = self.left_out.setdefault(reason, [0, line])
        found[0] += count
        found[1] = min(found[1], line)

    def take(self, lines: Iterable[bytes | None]) -> None:
        """Read every line; None is one that was too long. Raises UsageError for more than there may be."""
        numbers, lengths, requests = self.numbers, self.lengths, self.requests
        line = 0
        for line, text in enumerate(lines, start=1):
            found = look(text) if text is not None else TOO_LONG
            if isinstance(found, str):
                self.leave_out(found, line)
                continue
            name, length = found
            number = numbers.setdefault(name, len(numbers))
            if number == len(lengths):
                if number == self.files_max:
                    raise UsageError(f"line {line:,} asks for a further file, and a trace has at most {number:,}")
                lengths.append(length)
                self.first_lines.append(line)
            elif length > lengths[number]:
                lengths[number] = length
            if len(requests) == REQUESTS_MAX:
                raise UsageError(f"line {line:,} is a further request, and a trace has at most {REQUESTS_MAX:,}")
            requests.append(number)
        self.lines = line


def look(line: bytes) -> tuple[bytes, int] | str:
    """Return what a line asks for, the name of the file and how many bytes were sent; or why it is not replayed."""
    begin = line.find(_BEFORE)
    after = _AFTER.search(line, begin + len(_BEFORE)) if begin >= 0 else None
    if after is None:
        return NO_LINE
    method, _, name = line[begin + len(_BEFORE) : after.start()].strip().partition(b" ")
    name = name[:-9] if name.endswith((b" HTTP/1.0", b" HTTP/1.1")) else _PROTOCOL.sub(b"", name)
    name = name.partition(b"#")[0].strip()
    if not name:
        return NO_NAME
    if method != b"GET":
        return OTHER_METHOD if _METHOD.match(method) else NO_NAME
    status, length = after.groups()
    if status != b"200":
        return NOT_MODIFIED if status == b"304" else _CLASSES.get(status[:1], OTHER_STATUS)
    if b"?" in name or b"/cgi-bin/" in name:
        return PROGRAM
    return (name if len(name) <= _NAME_BYTES else hashlib.sha256(name).digest()), 0 if length == b"-" else int(length)


def read_log(path: Path, bounds: ReplayBounds) -> Replay:
    """Make a trace of a log, which may be packed with gzip. Raises UsageError where there is nothing to replay."""
    digest = hashlib.sha256()
    reading = _Reading(bounds.files_max)
    try:
        with path.open("rb") as stream:
            packed = iter(lambda: stream.read(_CHUNK_BYTES), b"")
            reading.take(_lines(_unpacked(_hashed(packed, digest))))
    except OSError as error:
        raise UsageError(f"--trace: {path} cannot be read: {error.strerror or error}") from error
    except zlib.error as error:
        raise UsageError(f"--trace: {path} is not a whole gzip file: {error}") from error
    except UsageError as error:
        raise UsageError(f"--trace: {path}: {error}; give a part of it") from error
    return _made(path, reading, digest.hexdigest(), bounds)


def _hashed(chunks: Iterable[bytes], digest: hashlib._Hash) -> Iterator[bytes]:
    for chunk in chunks:
        digest.update(chunk)
        yield chunk


def _unpacked(chunks: Iterator[bytes]) -> Iterator[bytes]:
    """Unpack what begins as gzip does, in pieces of a bounded size; hand on everything else. Raises zlib.error."""
    first = next(chunks, b"")
    if not first.startswith(_GZIP):
        yield first
        yield from chunks
        return
    unpacker = zlib.decompressobj(zlib.MAX_WBITS | 16)
    for chunk in itertools.chain((first,), chunks):
        packed = chunk
        while packed:
            if unpacker.eof:  # a file may be several, one after the other
                unpacker = zlib.decompressobj(zlib.MAX_WBITS | 16)
            yield unpacker.decompress(packed, _CHUNK_BYTES)
            packed = unpacker.unused_data if unpacker.eof else unpacker.unconsumed_tail
        while not unpacker.eof and (more := unpacker.decompress(b"", _CHUNK_BYTES)):  # it may hold some back
            yield more
    if not unpacker.eof:
        raise zlib.error("it ends early")


def _lines(chunks: Iterable[bytes]) -> Iterator[bytes | None]:
    """Yield every line without its end, None for one that is too long."""
    rest, passing = b"", False
    for chunk in chunks:
        if passing:
            _, end, chunk = chunk.partition(b"\n")
            if not end:
                continue
            passing = False
        lines = (rest + chunk).split(b"\n")
        rest = lines.pop()
        for line in lines:
            yield line if len(line) <= LINE_BYTES_MAX else None
        if len(rest) > LINE_BYTES_MAX:
            yield None
            rest, passing = b"", True
    if rest:
        yield rest


def _made(path: Path, reading: _Reading, log_sha256: str, bounds: ReplayBounds) -> Replay:
    """Return the trace, without files whose length nobody knows; others by how often they are asked for."""
    asked = array("Q", bytes(8 * len(reading.lengths)))
    for number in reading.requests:
        asked[number] += 1
    for number, length in enumerate(reading.lengths):
        if length == 0:
            reading.leave_out(NO_LENGTH, reading.first_lines[number], asked[number])
    # of two that are asked for as often, the one that came first
    known = sorted((one for one in range(len(asked)) if reading.lengths[one]), key=lambda one: (-asked[one], one))
    left_out = tuple(
        Omission(reason=reason, lines=reading.left_out[reason][0], first_line=reading.left_out[reason][1])
        for reason in REASONS
        if reason in reading.left_out
    )
    if not known:
        raise UsageError(
            f"--trace: {path} is empty"
            if reading.lines == 0
            else f"--trace: no line of {path} can be replayed: {say_left_out(left_out)}"
        )
    places = array("q", [-1]) * len(asked)
    for place, number in enumerate(known):
        places[number] = place
    trace = Trace(
        lengths=array("I", (min(max(reading.lengths[one], bounds.min_bytes), bounds.max_bytes) for one in known)),
        requests=array("I", (places[one] for one in reading.requests if reading.lengths[one])),
    )
    long = [one for one in known if reading.lengths[one] > bounds.max_bytes]
    facts = TraceFacts(
        name=printable(path.name),
        log_sha256=log_sha256,
        sha256=trace.sha256,
        lines=reading.lines,
        requests=len(trace.requests),
        files=len(trace.lengths),
        files_bytes=sum(trace.lengths),
        requested_bytes=sum(asked[number] * trace.lengths[place] for place, number in enumerate(known)),
        lengthened_files=sum(reading.lengths[one] < bounds.min_bytes for one in known),
        shortened_files=len(long),
        shortened_requests=sum(asked[one] for one in long),
        left_out=left_out,
    )
    return Replay(trace=trace, facts=facts)
