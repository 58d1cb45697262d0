# SPDX-License-Identifier: BSD-3-Clause
"""Programs beside the build that some points start on this host."""

from __future__ import annotations

import shutil
from collections.abc import Iterable
from pathlib import Path

from cadge_agent.environment import SYSTEM_PATH
from cadge_agent.formats import Json
from cadge_agent.libraries import build_id, package_versions
from cadge_agent.reading import unknown


def programs(names: Iterable[str]) -> Json:
    """Find programs as a launch finds them: {name: {version, file, build_id}}, the version that of their package."""
    found: Json = {}
    for name in sorted(names):
        path = shutil.which(name, path=SYSTEM_PATH)
        if path is None:
            found[name] = unknown("not found")
            continue
        file = Path(path).resolve()
        found[name] = {"version": unknown("no package"), "file": str(file), "build_id": build_id(file)}
    package_versions(found)
    return found
