# SPDX-License-Identifier: BSD-3-Clause
"""What modules said when they were last asked, kept in the user's cache: loading a module takes a library's start.

It holds as long as the module, the driver, the linker's cache (which every installed library renews), the kernel and
the variables that modules are given are as they were. What cannot be read, or is not whole, counts as nothing; what
cannot be written is asked again next time.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from pathlib import Path

from cadge_harness.paths import Checkout
from cadge_harness.plan.surroundings import NOTHING_STATED, variables
from cadge_results.store.usercache import cache_folder, cached, keep

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


def recall(checkout: Checkout, around: Mapping[str, Mapping[str, str]]) -> dict[str, Mapping[str, object]]:
    """Return the answers of those modules that are as they were when they gave them; `around`: their variables."""
    kept = _read(checkout)
    keys = {name: key_of(checkout, name, stated) for name, stated in around.items()} if kept else {}
    return {name: kept[key] for name, key in keys.items() if key in kept}


def remember(checkout: Checkout, answers: Mapping[str, Mapping[str, object]]) -> None:
    """Keep answers by their keys, in the place of earlier ones of the same modules."""
    path = _path(checkout)
    if path is None or not answers:
        return
    new = {key.split()[0] for key in answers}
    kept = {key: answer for key, answer in _read(checkout).items() if key.split()[0] not in new}
    document = {"schema": _SCHEMA, "modules": str(checkout.modules), "said": kept | dict(answers)}
    keep(path, (json.dumps(document) + "\n").encode())


def _path(checkout: Checkout) -> Path | None:
    """Return the file of a build tree in the user's cache; None where there is no such folder to have."""
    folder = cache_folder()
    name = hashlib.sha256(os.fsencode(checkout.modules)).hexdigest()[:16]
    return folder and folder / f"layers-{name}.json"


def _read(checkout: Checkout) -> dict[str, Mapping[str, object]]:
    path = _path(checkout)
    if path is None:
        return {}
    try:
        raw = json.loads(cached(path, _BYTES_MAX) or b"")
    except (ValueError, RecursionError):
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
