# SPDX-License-Identifier: BSD-3-Clause
"""Drawings that were made before, in the user's cache: a report that is made again draws only what changed.

An entry goes by the digest of all that decides it: the specification, which holds the data, the drawing's name, the
code of this package, and the versions of the renderer. It begins with a digest over that and its content. One that is
damaged, of another user, or lies under another's name is as if it were not there; none is ever needed, and the checker
(`cadge verify FILE`) uses none.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from functools import cache
from importlib import metadata
from pathlib import Path

from cadge_results.store.usercache import cache_folder, cached, keep

ENTRY_BYTES_MAX = 4 << 20
CACHE_BYTES_MAX = 64 << 20
"""Of all drawings together: the ones that were used longest ago go first."""
_DIGEST_BYTES = 32
_off: ContextVar[bool] = ContextVar("drawn afresh", default=False)


@contextlib.contextmanager
def drawn_afresh() -> Iterator[None]:
    """Use no drawing of the cache, and keep none."""
    token = _off.set(True)
    try:
        yield
    finally:
        _off.reset(token)


def drawn(parts: tuple[str, ...], make: Callable[[], str]) -> str:
    """Return a drawing from the cache, or what `make` makes, which is then kept. `parts` decide it, with the code."""
    folder = None if _off.get() else cache_folder()
    if folder is None:
        return make()
    name = _digest(_made_by(), *(part.encode() for part in parts))
    path = folder / "figures" / name.hex()
    found = _entry(path, name)
    if found is None:
        found = make()
        content = found.encode()
        _room(path.parent)
        keep(path, _digest(name, content) + content, lasting=False)
    return found


def _entry(path: Path, name: bytes) -> str | None:
    packed = cached(path, ENTRY_BYTES_MAX)
    if packed is None or packed[:_DIGEST_BYTES] != _digest(name, packed[_DIGEST_BYTES:]):
        return None
    with contextlib.suppress(OSError):
        os.utime(path)  # it was used now
    return packed[_DIGEST_BYTES:].decode()


def _digest(*parts: bytes) -> bytes:
    made = hashlib.sha256()
    for part in parts:
        made.update(len(part).to_bytes(8, "little") + part)
    return made.digest()


@cache
def _made_by() -> bytes:
    """Return a digest of what draws: our code and tables, the renderer, and what it stands on."""
    files = (path for path in sorted(Path(__file__).parent.iterdir()) if path.suffix in (".py", ".yml"))
    return _digest(metadata.version("vl-convert-python").encode(), *(path.read_bytes() for path in files))


@cache
def _room(folder: Path) -> None:
    """Make room, once in a process: what was used longest ago goes."""
    with contextlib.suppress(OSError):
        left = CACHE_BYTES_MAX
        for path in sorted(folder.iterdir(), key=lambda one: one.stat().st_mtime_ns, reverse=True):
            left -= path.stat().st_size
            if left < 0:
                path.unlink()
