# SPDX-License-Identifier: BSD-3-Clause
"""The user's cache: files that may be lost at any time, and that nobody else may have written."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

from cadge_results.store.files import put


def cache_folder() -> Path | None:
    """Return Cadge's folder in the user's cache, made or not; None where there is no such folder to have."""
    given = os.environ.get("XDG_CACHE_HOME", "")
    home = os.environ.get("HOME", "")
    base = Path(given) if given.startswith("/") else Path(home) / ".cache" if home.startswith("/") else None
    return base and base / "cadge"


def cached(path: Path, bytes_max: int) -> bytes | None:
    """Return what a file of the cache holds; None where it is not there, is too large, or is another user's."""
    try:
        with path.open("rb") as stream:
            found = os.fstat(stream.fileno())
            return stream.read() if found.st_uid == os.geteuid() and found.st_size <= bytes_max else None
    except OSError:
        return None


def keep(path: Path, content: bytes | bytearray, *, lasting: bool = True) -> None:
    """Put a file into the cache, whole or not at all; where that cannot be, do nothing.

    lasting: it is whole also where the machine goes down, for which the disk is waited for.
    """
    with contextlib.suppress(OSError):
        there = next(folder for folder in path.parents if folder.exists())
        if there.stat().st_uid == os.geteuid():  # under sudo the home may be another user's
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            put(path, content, lasting=lasting)
