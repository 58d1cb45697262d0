# SPDX-License-Identifier: BSD-3-Clause
"""Reading a fact, or the reason why it is not known."""

from __future__ import annotations

from pathlib import Path

from cadge_agent.formats import Json


def unknown(error: object) -> Json:
    """Say that a fact is not known, and why."""
    return {"unknown": str(error) or "not stated"}


def read(path: str) -> object:
    """Read a file of the kernel as text; where that fails, the reason."""
    try:
        return Path(path).read_text(encoding="utf-8", errors="replace").strip()
    except OSError as error:
        return unknown(f"{path}: {error.strerror}")
