# SPDX-License-Identifier: BSD-3-Clause
"""What modules said when they were last asked, kept in the user's cache: loading a module takes a library's start.

It holds as long as the module, the driver, the linker's cache (which every installed library renews), the kernel and
the variables that modules are given are as they were. What cannot be read, or is not whole, counts as nothing; what
cannot be written is asked again next time.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
from collections.abc import Iterable, Mapping
from pathlib import Path

from cadge_harness.paths import Checkout
from cadge_harness.plan.surroundings import NOTHING_STATED, variables
from cadge_results.files import put

_SCHEMA = "cadge.said/1"
_BYTES_MAX = 4 * 2**20
_LINKER = Path("/etc/ld.so.cache")


def key_of(checkout: Checkout, name: str, stated: Mapping[str, str] = NOTHING_STATED) -> str:
    """Return what an answer of a module depends on, as one word; the answer holds for this key alone.

    `stated` are the variables that an inventory states for endpoints.
    """
    files = [_state(path) for path in (checkout.modules / f"{name}.so", checkout.driver, _LINKER)]
    text = json.dumps([name, files, sorted(variables(stated).items()), os.uname().release, os.geteuid()])
    return f"{name} {hashlib.sha256(text.encode(errors='surrogateescape')).hexdigest()}"


def recall(
    checkout: Checkout, names: Iterable[str], stated: Mapping[str, str] = NOTHING_STATED
) -> dict[str, Mapping[str, object]]:
    """Return the answers of those modules that are as they were when they gave them."""
    kept = _read(checkout)
    keys = {name: key_of(checkout, name, stated) for name in names} if kept else {}
    return {name: kept[key] for name, key in keys.items() if key in kept}


def remember(checkout: Checkout, answers: Mapping[str, Mapping[str, object]]) -> None:
    """Keep answers by their keys, in the place of earlier ones of the same modules."""
    path = _path(checkout)
    if path is None or not answers:
        return
    new = {key.split()[0] for key in answers}
    kept = {key: answer for key, answer in _read(checkout).items() if key.split()[0] not in new}
    document = {"schema": _SCHEMA, "modules": str(checkout.modules), "said": kept | dict(answers)}
    with contextlib.suppress(OSError):
        there = next(folder for folder in path.parents if folder.exists())
        if there.stat().st_uid == os.geteuid():  # under sudo the home may be another user's
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)  # as hosts make it
            put(path, (json.dumps(document) + "\n").encode())


def _path(checkout: Checkout) -> Path | None:
    """Return the file of a build tree in the user's cache; None where there is no such folder to have."""
    given = os.environ.get("XDG_CACHE_HOME", "")
    home = os.environ.get("HOME", "")
    base = Path(given) if given.startswith("/") else Path(home) / ".cache" if home.startswith("/") else None
    name = hashlib.sha256(os.fsencode(checkout.modules)).hexdigest()[:16]
    return base and base / "cadge" / f"layers-{name}.json"


def _read(checkout: Checkout) -> dict[str, Mapping[str, object]]:
    path = _path(checkout)
    if path is None:
        return {}
    try:
        with path.open("rb") as stream:
            if os.fstat(stream.fileno()).st_uid != os.geteuid():
                return {}
            raw = json.loads(stream.read(_BYTES_MAX))
    except (OSError, ValueError, RecursionError):
        return {}
    said = raw.get("said") if isinstance(raw, dict) and raw.get("schema") == _SCHEMA else None
    if not isinstance(said, dict):
        return {}
    return {key: answer for key, answer in said.items() if isinstance(answer, dict) and key.strip()}


def _state(path: Path) -> list[object]:
    """Return what changes when a file is written or replaced."""
    try:
        found = path.stat()
    except OSError:
        return [str(path)]
    return [str(path), found.st_ino, found.st_size, found.st_mtime_ns]
