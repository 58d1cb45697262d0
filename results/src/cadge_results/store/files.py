# SPDX-License-Identifier: BSD-3-Clause
"""Files, written whole or not at all; and outputs, which a user may send into what is no regular file."""

from __future__ import annotations

import contextlib
import errno
import os
import re
import secrets
import shutil
import stat
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from cadge_results.command import command
from cadge_results.errors import OutputError, OutputLostError, StoreFullError, StoreUnwritableError

NO_ROOM = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
_LOST = NO_ROOM | {errno.EPIPE, errno.EIO, errno.EBADF}


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenOutput:
    """What became of an output. streamed: it went into a device, a pipe or a descriptor, and no file lies there."""

    size_bytes: int
    streamed: bool


def put(
    path: Path,
    content: bytes | bytearray,
    *,
    mode: int = 0o666,
    old: os.stat_result | None = None,
    lasting: bool = True,
) -> None:
    """Put a whole file in its place, or leave what was there: scratch file, fsync, rename, fsync of the folder.

    The new file has `mode` less the user's umask; in the place of `old` it has the mode of that one, and its owner
    where that can be. Not `lasting`: the disk is not waited for. Raises OSError.
    """
    part = scratch(path)
    try:
        _fill(part, content, mode, old, lasting=lasting)
        part.rename(path)
    except BaseException:
        with contextlib.suppress(OSError):
            part.unlink()
        raise
    if lasting:
        settle(path.parent)


def scratch(path: Path) -> Path:
    """Return a name that no file has, beside one, for what is to take its place."""
    return path.with_name(f".{secrets.token_hex(8)}.part")


def _fill(
    scratch: Path,
    content: bytes | bytearray,
    mode: int = 0o666,
    old: os.stat_result | None = None,
    *,
    lasting: bool = True,
) -> None:
    """Write a scratch file, where it is `lasting` down to the disk."""
    descriptor = os.open(scratch, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600 if old else mode)
    with os.fdopen(descriptor, "wb") as stream:
        stream.write(content)
        stream.flush()
        if old is not None:
            with contextlib.suppress(PermissionError):
                os.fchown(descriptor, old.st_uid, old.st_gid)
            os.fchmod(descriptor, old.st_mode & 0o777)
        if lasting:
            os.fsync(descriptor)


def settle(folder: Path) -> None:
    """Let what a folder names last, also where the machine goes down. Raises OSError."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextlib.contextmanager
def explained(path: Path) -> Iterator[None]:
    """Turn the operating system's refusals to write into a campaign into sentences."""
    try:
        yield
    except OSError as error:
        if error.errno in NO_ROOM:
            raise StoreFullError(
                f"no space to write {path}: {error.strerror}. Launches stored so far are whole; "
                f"make room and continue with: {command('resume')}"
            ) from error
        raise StoreUnwritableError(f"cannot write {path}: {error.strerror}") from error


def write_output(path: Path, content: bytes) -> WrittenOutput:
    """Write what a user wanted at `path`.

    A device, a pipe, /dev/stdout and /dev/fd/N are written into as they are; a link is followed and stays; a regular
    file, or a new one, is there whole or is as it was. Raises OutputError, OutputLostError.
    """
    number = own_descriptor(path)
    try:
        descriptor = _open(path) if number is None else os.dup(number)
        if descriptor is None:
            put(Path(os.path.realpath(path)), content)
            return WrittenOutput(size_bytes=len(content), streamed=False)
        with os.fdopen(descriptor, "wb") as stream:
            found = os.fstat(descriptor)
            streamed = number is not None or not stat.S_ISREG(found.st_mode)
            if streamed:
                stream.write(content)
        if not streamed:
            put(Path(os.path.realpath(path)), content, old=found)
    except OSError as error:
        kind = OutputLostError if error.errno in _LOST else OutputError
        raise kind(f"cannot write {path}: {error.strerror}") from error
    return WrittenOutput(size_bytes=len(content), streamed=streamed)


def write_together(files: Iterable[tuple[Path, bytes]]) -> None:
    """Write several outputs of one folder that belong together: all lie there whole before the first takes its place.

    They take their places in order, so the one that leads to the others comes last. Links are followed, as
    `write_output` does; none of them is a device. Raises OutputError, OutputLostError; then all is as it was, as it is
    where the user interrupts this. A machine that goes down between two of them leaves new ones beside old ones.
    """
    staged: dict[Path, Path] = {}
    kept: dict[Path, Path] = {}
    placed: list[Path] = []
    path = Path()
    try:
        for path, content in files:
            real = Path(os.path.realpath(path))
            staged[real] = scratch(real)
            _fill(staged[real], content, old=real.stat() if real.exists() else None)
        for path in staged:
            if path.exists():
                kept[path] = scratch(path)
                _same_file(path, kept[path])
        for path, part in staged.items():
            placed.append(path)
            part.rename(path)
        settle(path.parent)
    except BaseException as error:
        for one in placed:
            with contextlib.suppress(OSError):
                if one in kept:
                    kept[one].rename(one)
                elif not staged[one].exists():
                    one.unlink()
        if not isinstance(error, OSError):
            raise
        kind = OutputLostError if error.errno in _LOST else OutputError
        raise kind(f"cannot write {path}: {error.strerror}") from error
    finally:
        for part in (*staged.values(), *kept.values()):
            with contextlib.suppress(OSError):
                part.unlink()


def _same_file(path: Path, other: Path) -> None:
    """Give a file another name as well, or a copy where its file system knows one name a file."""
    try:
        os.link(path, other)
    except OSError:
        shutil.copy2(path, other)


def is_stream(path: Path) -> bool:
    """Say whether an output at a path is no file of its own: a device, a pipe, a descriptor of this process."""
    return own_descriptor(path) is not None or (path.exists() and not path.is_file())


def own_descriptor(path: Path) -> int | None:
    """Return N where a path stands for descriptor N of this process (/dev/stdout, /dev/fd/N, a link to one)."""
    for _ in range(40):  # as many links as the kernel follows
        folder = os.path.realpath(path.parent)
        if re.fullmatch(rf"/proc/{os.getpid()}(/task/\d+)?/fd", folder) and path.name.isdecimal():
            return int(path.name)
        try:
            path = Path(folder) / path.readlink()
        except OSError:
            return None
    return None


def _open(path: Path) -> int | None:
    """Open what is there for writing, without changing it; None where nothing is."""
    try:
        return os.open(path, os.O_WRONLY | os.O_CLOEXEC | os.O_NOCTTY)
    except FileNotFoundError:
        return None
