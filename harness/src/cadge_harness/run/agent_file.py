# SPDX-License-Identifier: BSD-3-Clause
"""The agent as one file: a zip archive that Python runs, made of harness/agent whenever it is needed.

The same sources give the same bytes, so that a host which has the file is not sent it again. It holds the sources, and
beside them what this Python makes of them, which Pythons of the same version take (PEP 552, unchecked): otherwise most
of an agent's start is spent on compiling.
"""

from __future__ import annotations

import io
import marshal
import zipfile
from importlib.util import MAGIC_NUMBER, source_hash
from pathlib import Path

SOURCES = Path(__file__).resolve().parents[3] / "agent"
NAME = "agent.pyz"
_SHEBANG = b"#!/usr/bin/env python3\n"
_LONG_AGO = (1980, 1, 1, 0, 0, 0)
_HASHED_UNCHECKED = (1).to_bytes(4, "little")
_MARSHAL = 2
"""Later forms refer back to what is held in common, and what is depends on more than the source."""


def _compiled(source: bytes, name: str) -> bytes:
    """Return what a .pyc file of a source holds."""
    code = compile(source, f"{NAME}/{name}", "exec", dont_inherit=True)
    return MAGIC_NUMBER + _HASHED_UNCHECKED + source_hash(source) + marshal.dumps(code, _MARSHAL)


def agent_bytes() -> bytes:
    """Return the file's contents."""
    packed = io.BytesIO()
    packed.write(_SHEBANG)
    with zipfile.ZipFile(packed, "a", zipfile.ZIP_STORED) as archive:  # stored: other zlibs would give other bytes
        for path in sorted(SOURCES.rglob("*.py")):
            name, source = path.relative_to(SOURCES).as_posix(), path.read_bytes()
            for stored, content in ((name, source), (f"{name}c", _compiled(source, name))):
                member = zipfile.ZipInfo(stored, _LONG_AGO)
                member.create_system, member.external_attr = 3, 0o644 << 16
                archive.writestr(member, content)
    return packed.getvalue()


def write_agent(folder: Path) -> Path:
    """Write the file into a folder, to be run by its user alone; returns its path."""
    path = folder / NAME
    path.write_bytes(agent_bytes())
    path.chmod(0o700)
    return path
