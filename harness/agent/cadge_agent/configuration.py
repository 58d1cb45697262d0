# SPDX-License-Identifier: BSD-3-Clause
"""The system's own settings of communication libraries.

They cannot be kept from a library as a user's are, and belong to the host as its packages do. So they are told by
their hashes: hosts and campaigns with the same ones were steered alike.
"""

from __future__ import annotations

import hashlib
from pathlib import Path

from cadge_agent.formats import Json
from cadge_agent.reading import unknown

PLACES = ("/etc/openmpi", "/etc/pmix", "/etc/prte", "/etc/ucx")
SUFFIXES = (".conf", ".ini", ".txt")
"""What Open MPI, PMIx, PRRTE and UCX read; beside them lie host lists and scripts for debuggers."""
FILES_MOST = 100


def configuration(opal_prefix: str) -> Json:
    """Hash each file of settings: {path: {bytes, sha256}}. `opal_prefix` may be empty."""
    places = [Path(place) for place in PLACES] + ([Path(opal_prefix, "etc")] if opal_prefix else [])
    found: Json = {}
    for place in places:
        try:
            paths = sorted(path for path in place.rglob("*") if path.suffix in SUFFIXES and path.is_file())
        except OSError as error:
            found[str(place)] = unknown(f"{place}: {error.strerror}")
            continue
        for path in paths[:FILES_MOST]:
            found[str(path)] = _hashed(path)
        if len(paths) > FILES_MOST:
            found[str(place)] = unknown(f"{place}: it has {len(paths)} files, of which {FILES_MOST} are told")
    return found


def _hashed(path: Path) -> Json:
    try:
        content = path.read_bytes()
    except OSError as error:
        return unknown(f"{path}: {error.strerror}")
    return {"bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}
