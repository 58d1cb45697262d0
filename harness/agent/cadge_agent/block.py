# SPDX-License-Identifier: BSD-3-Clause
"""Reading the block, and refusing what would do harm or cannot be understood."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import cast

from cadge_agent.errors import BadBlockError
from cadge_agent.formats import BLOCK_SCHEMA, Block, Launch


def read_block(path: Path) -> Block:
    """Return the block of a file. Raises BadBlockError, OSError, and ValueError or KeyError where it is none."""
    raw = json.loads(path.read_text(encoding="utf-8"))
    if raw.get("schema") != BLOCK_SCHEMA:
        raise BadBlockError(f"{path} is {str(raw.get('schema'))[:60]}, and this agent reads {BLOCK_SCHEMA}")
    block = cast("Block", raw)
    check_names(block["block_id"], *(host["name"] for host in block["hosts"]), *hosts_of(block["launches"]))
    check_names(*(launch["launch_id"] for launch in block["launches"]))
    for launch in block["launches"]:
        if launch["endpoints"][0]["host"] != block["leader"]:
            raise BadBlockError(f"endpoint 0 of launch {launch['launch_id']} is not on the block's leader")
    return block


def check_names(*names: str) -> None:
    """Refuse a name that could lead out of a folder, or be more than one word or one member of a list."""
    for name in names:
        if not re.fullmatch("[A-Za-z0-9][A-Za-z0-9_.-]*", name):
            raise BadBlockError(f"{name[:60]!r} cannot be the name of a block, a launch or a host")


def hosts_of(launches: Sequence[Launch]) -> list[str]:
    """Return the names of all hosts that some launch needs, in the order of their endpoints."""
    return list(dict.fromkeys(endpoint["host"] for launch in launches for endpoint in launch["endpoints"]))
