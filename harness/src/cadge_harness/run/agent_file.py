# SPDX-License-Identifier: BSD-3-Clause
"""The agent as one file: a zip archive that Python runs, made of harness/agent whenever it is needed.

The same sources give the same bytes, so that a host which has the file is not sent it again.
"""

from __future__ import annotations

import io
import zipfile
from pathlib import Path

SOURCES = Path(__file__).resolve().parents[3] / "agent"
NAME = "agent.pyz"
_SHEBANG = b"#!/usr/bin/env python3\n"
_LONG_AGO = (1980, 1, 1, 0, 0, 0)


def agent_bytes() -> bytes:
    """Return the file's contents."""
    packed = io.BytesIO()
    packed.write(_SHEBANG)
    with zipfile.ZipFile(packed, "a", zipfile.ZIP_STORED) as archive:  # stored: other zlibs would give other bytes
        for path in sorted(SOURCES.rglob("*.py")):
            member = zipfile.ZipInfo(path.relative_to(SOURCES).as_posix(), _LONG_AGO)
            member.create_system, member.external_attr = 3, 0o644 << 16
            archive.writestr(member, path.read_bytes())
    return packed.getvalue()


def write_agent(folder: Path) -> Path:
    """Write the file into a folder, to be run by its user alone; returns its path."""
    path = folder / NAME
    path.write_bytes(agent_bytes())
    path.chmod(0o700)
    return path
