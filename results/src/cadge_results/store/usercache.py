# SPDX-License-Identifier: BSD-3-Clause
"""The user's cache: files that may be lost at any time, and that nobody else may have written."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import BinaryIO

from cadge_results.store.files import scratch, settle


def cache_folder() -> Path | None:
    """Return Cadge's folder in the user's cache, made or not; None where there is no such folder to have."""
    given = os.environ.get("XDG_CACHE_HOME", "")
    home = os.environ.get("HOME", "")
    base = Path(given) if given.startswith("/") else Path(home) / ".cache" if home.startswith("/") else None
    return base and base / "cadge"


def opened_cache(path: Path, bytes_max: int) -> BinaryIO | None:
    """Return a file of the cache, open; None where it is not there, is too large, or is another user's."""
    try:
        stream = path.open("rb")
    except OSError:
        return None
    found = os.fstat(stream.fileno())
    if found.st_uid == os.geteuid() and found.st_size <= bytes_max:
        return stream
    stream.close()
    return None


def cached(path: Path, bytes_max: int) -> bytes | None:
    """Return what a file of the cache holds; None where it cannot be had."""
    stream = opened_cache(path, bytes_max)
    if stream is None:
        return None
    with contextlib.suppress(OSError), stream:
        return stream.read()
    return None


def keep(path: Path, content: bytes | bytearray, *, lasting: bool = True) -> None:
    """Put a file into the cache, as `growing` does."""
    with growing(path, lasting=lasting) as write:
        write(content)


@contextlib.contextmanager
def growing(path: Path, *, lasting: bool = True) -> Iterator[Callable[[bytes | bytearray], None]]:
    """Yield what writes a file of the cache, piece by piece. At the end it is there whole, or not at all.

    Where that cannot be, nothing is done. lasting: it is whole also where the machine goes down, for which the disk is
    waited for.
    """
    part = scratch(path)
    stream: BinaryIO | None = None

    def write(piece: bytes | bytearray) -> None:
        nonlocal stream
        try:
            if stream is not None:
                stream.write(piece)
        except OSError:
            close()

    def close() -> None:
        nonlocal stream
        with contextlib.suppress(OSError):  # of what is still to be written
            if stream is not None:
                stream.close()
        stream = None

    try:
        with contextlib.suppress(OSError):
            there = next(folder for folder in path.parents if folder.exists())
            if there.stat().st_uid == os.geteuid():  # under sudo the home may be another user's
                path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
                stream = part.open("xb")
        yield write
        if stream is not None:
            with contextlib.suppress(OSError):
                stream.flush()
                if lasting:
                    os.fsync(stream.fileno())
                part.rename(path)
                if lasting:
                    settle(path.parent)
    finally:
        close()
        with contextlib.suppress(OSError):
            part.unlink()
