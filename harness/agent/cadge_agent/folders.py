# SPDX-License-Identifier: BSD-3-Clause
"""Folders and files of ours, in places that others use as well."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

OWN_PREFIX = "cadge-"
OWN_FOLDERS = "folders.json"  # in the work folder: our folders elsewhere on this host


def own_folder(parent: Path, work: Path) -> Path:
    """Make a folder in a place that others use as well, for what we start to put files into. Raises OSError.

    Its name is short, for libraries put sockets there, and the same for each agent of a work folder, so that the next
    one finds what one that was killed left.
    """
    folder = parent / f"{OWN_PREFIX}{hashlib.sha256(str(work).encode()).hexdigest()[:10]}"
    shutil.rmtree(folder, ignore_errors=True)  # refuses a symbolic link, and cannot remove what is another user's
    try:
        folder.mkdir(mode=0o700)
    except FileExistsError:
        return Path(tempfile.mkdtemp(prefix=OWN_PREFIX, dir=parent))
    return folder


def remove_own_folder(folder: Path) -> list[str]:
    """Remove a folder that own_folder made, with what is in it; returns its name, or nothing where it was not there."""
    with contextlib.suppress(OSError):
        if folder.name.startswith(OWN_PREFIX) and folder.lstat().st_uid == os.geteuid():
            shutil.rmtree(folder)
            return [str(folder)]
    return []


def write_whole(path: Path, document: Mapping[str, Any]) -> None:
    """Write JSON so that the file is there whole or not at all, also after a crash."""
    part = path.with_suffix(".part")
    with part.open("w", encoding="utf-8") as file:
        json.dump(document, file, separators=(",", ":"))
        file.flush()
        os.fsync(file.fileno())
    part.replace(path)
    folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
