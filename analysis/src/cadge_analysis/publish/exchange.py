# SPDX-License-Identifier: BSD-3-Clause
"""Putting a folder in another's place at once: who reads sees the old one or the new one, whole."""

from __future__ import annotations

import ctypes
import os
import shutil
from pathlib import Path

_AT_FDCWD = -100
_RENAME_EXCHANGE = 2


def put_in_place(new: Path, old: Path) -> None:
    """Put folder `new` in the place of `old`, which is removed where it was there. Raises OSError."""
    if not old.exists():
        new.rename(old)
        return
    if not _exchanged(new, old):
        away = new.with_name(f"{new.name}.old")
        old.rename(away)
        try:
            new.rename(old)
        except OSError:
            away.rename(old)
            raise
        new = away
    shutil.rmtree(new)


def _exchanged(one: Path, other: Path) -> bool:
    """Let two folders change names in one step; say whether kernel and file system can."""
    rename = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None)
    return (
        rename is not None and rename(_AT_FDCWD, os.fsencode(one), _AT_FDCWD, os.fsencode(other), _RENAME_EXCHANGE) == 0
    )


def linked(source: Path, target: Path) -> None:
    """Copy a folder by hard links: no file of it is written into afterwards, only replaced. Raises OSError."""

    def link(one: str, other: str) -> None:
        try:
            os.link(one, other, follow_symlinks=False)
        except OSError:
            shutil.copy2(one, other, follow_symlinks=False)

    shutil.copytree(source, target, symlinks=True, copy_function=link)
