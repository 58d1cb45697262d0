# SPDX-License-Identifier: BSD-3-Clause
"""`agent clean`: ending and removing what an agent that was killed itself could not."""

from __future__ import annotations

import argparse
import contextlib
import json
import sys
from pathlib import Path

from cadge_agent.child import kill_agents, kill_marked
from cadge_agent.folders import OWN_FOLDERS, remove_own_folder
from cadge_agent.output import say_removed
from cadge_agent.segments import remove_segments


def clean(arguments: argparse.Namespace) -> int:
    """`agent.pyz clean`: end and remove what an agent that was killed itself could not."""
    killed, removed = clean_up(arguments.work, arguments.campaign)
    print(json.dumps({"changed": bool(killed or removed), "killed": killed, "removed": removed}))
    return 0


def clean_up(work: Path, campaign: str) -> tuple[list[int], list[str]]:
    """Kill and remove; returns the numbers of the processes and the names of the rest, and tells the names."""
    killed = kill_agents(work) + kill_marked(f"{campaign}:")
    removed = []
    with contextlib.suppress(OSError, ValueError):
        removed = remove_segments(killed, (work / OWN_FOLDERS).stat().st_mtime)
        for name in json.loads((work / OWN_FOLDERS).read_text(encoding="utf-8")):
            removed += remove_own_folder(Path(name))
    if removed:
        sys.stderr.write(say_removed(removed) + "\n")
    return killed, removed
