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
from cadge_agent.host.kernel import restore_left
from cadge_agent.output import say_removed
from cadge_agent.segments import remove_segments


def clean(arguments: argparse.Namespace) -> int:
    """`agent.pyz clean`: end and remove what an agent that was killed itself could not."""
    killed, removed, restored = clean_up(arguments.work, arguments.campaign)
    changed = bool(killed or removed or restored)
    print(json.dumps({"changed": changed, "killed": killed, "removed": removed, "restored": restored}))
    return 0


def clean_up(work: Path, campaign: str) -> tuple[list[int], list[str], list[str]]:
    """Kill, remove and restore; returns process numbers, names of what is gone, settings of the kernel; tells names."""
    killed = kill_agents(work) + kill_marked(f"{campaign}:")
    restored, wrong = restore_left(work)
    for text in (*([f"set back what an earlier process set: {', '.join(restored)}"] if restored else ()), *wrong):
        sys.stderr.write(f"{text}\n")
    removed = []
    with contextlib.suppress(OSError, ValueError):
        removed = remove_segments(killed, (work / OWN_FOLDERS).stat().st_mtime)
        for name in json.loads((work / OWN_FOLDERS).read_text(encoding="utf-8")):
            removed += remove_own_folder(Path(name))
    if removed:
        sys.stderr.write(say_removed(removed) + "\n")
    return killed, removed, restored
