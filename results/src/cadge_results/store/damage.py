# SPDX-License-Identifier: BSD-3-Clause
"""What can be wrong with a stored file, and looking at one: the same look for every reader and for `cadge verify`."""

from __future__ import annotations

import json
import os
import stat
from dataclasses import dataclass
from pathlib import Path

from cadge_results.errors import Damage, DamageKind, FormatError
from cadge_results.store.checksum import SUFFIX, Checksum, beside


@dataclass(frozen=True, slots=True)
class Content:
    """What a file holds, and its SHA-256 in hexadecimal digits; proven: by its checksum."""

    data: bytes
    proven: bool
    digest: str


def look(path: Path, root: Path | None = None) -> Content | Damage:
    """Read a stored file as `read` does, and hold it against its checksum where it has one."""
    data = read(path, root)
    if isinstance(data, Damage):
        return data
    found = Checksum.of(data, path.name)
    line = read(beside(path), root)
    if isinstance(line, Damage):
        return Content(data, proven=False, digest=found.digest) if line.kind is DamageKind.MISSING else line
    try:
        stored = Checksum.parse(line)
    except FormatError as error:
        kind = DamageKind.CHANGED if line.endswith(b"\n") else DamageKind.TRUNCATED
        return Damage(beside(path), kind, str(error))
    if stored.name != path.name:
        return Damage(beside(path), DamageKind.SWAPPED, f"it is the checksum of {stored.name}")
    return Content(data, proven=True, digest=found.digest) if found == stored else _other(path, data, found.digest)


def unproven(path: Path) -> Damage:
    """Return the damage of a file that had a checksum when it was stored, and has none."""
    return Damage(beside(path), DamageKind.MISSING, f"nothing says what {path.name} held when it was stored")


def read(path: Path, root: Path | None = None) -> bytes | Damage:
    """Read a regular file below `root`, its folder where none is given. No link below that is followed.

    A campaign may come from a stranger, whose link would name a file of the reader's; a FIFO might never end.
    """
    part = path.parent if root is None else root
    names = path.relative_to(part).parts
    try:
        folder = os.open(part, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
        for name in names:
            part /= name
            try:
                if odd := oddity(os.stat(name, dir_fd=folder, follow_symlinks=False), folder=part != path):
                    return Damage(part, DamageKind.UNREADABLE, odd)
                how = os.O_RDONLY | os.O_NONBLOCK if part == path else os.O_PATH | os.O_DIRECTORY
                below = os.open(name, how | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder)
            finally:
                os.close(folder)
            folder = below
        with os.fdopen(folder, "rb") as stream:
            return stream.read()
    except FileNotFoundError:
        return Damage(path, DamageKind.MISSING, "no such file")
    except OSError as error:
        return Damage(part, DamageKind.UNREADABLE, f"it cannot be read: {error.strerror}")


def oddity(found: os.stat_result, *, folder: bool) -> str | None:
    """Say what something in a campaign is in place of a regular file, or of a folder; None where it is that."""
    if (stat.S_ISDIR if folder else stat.S_ISREG)(found.st_mode):
        return None
    if stat.S_ISLNK(found.st_mode):
        return "it is a symbolic link, and none is followed"
    return "it is no folder" if folder else "it is not a regular file"


def misfit(path: Path, data: bytes, why: str) -> Damage:
    """Return the damage of a file that no checksum proves and that does not fit its format."""
    return _cut(path, data) or Damage(path, DamageKind.CHANGED, f"it does not fit its format: {why}")


def _other(path: Path, data: bytes, digest: str) -> Damage:
    """Say in which way a file differs from what was stored."""
    for sibling in sorted(path.parent.glob(f"*{SUFFIX}")):
        line = read(sibling)
        if isinstance(line, bytes) and line.startswith(digest.encode()):
            return Damage(path, DamageKind.SWAPPED, f"it holds what belongs into {sibling.name.removesuffix(SUFFIX)}")
    return _cut(path, data) or Damage(path, DamageKind.CHANGED, "it was changed after it was written")


def _cut(path: Path, data: bytes) -> Damage | None:
    """Tell whether a document ends early: it is no JSON, and lacks the brace that ends a whole one."""
    if not data:
        return Damage(path, DamageKind.TRUNCATED, "it is empty")
    closed = data.endswith(b"\n}\n") or (data.endswith(b"}\n") and data.count(b"\n") == 1)
    if path.suffix != ".json" or closed or _is_json(data):
        return None
    return Damage(
        path, DamageKind.TRUNCATED, f"it ends early, after {len(data)} {'byte' if len(data) == 1 else 'bytes'}"
    )


def _is_json(data: bytes) -> bool:
    try:
        json.loads(data)
    except ValueError:
        return False
    except RecursionError:  # whatever else it is, it was not cut
        return True
    return True
