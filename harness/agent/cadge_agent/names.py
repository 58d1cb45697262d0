# SPDX-License-Identifier: BSD-3-Clause
"""Names that come from outside and become words of commands and parts of paths."""

from __future__ import annotations

import re

from cadge_agent.errors import BadBlockError
from cadge_agent.formats import Json


def check_names(*names: str) -> None:
    """Refuse a name that could lead out of a folder, or be more than one word or one member of a list."""
    for name in names:
        if not re.fullmatch("[A-Za-z0-9][A-Za-z0-9_.-]*", name):
            raise BadBlockError(f"{name[:60]!r} cannot be the name of a block, a launch or a host")


def hosts_of(launches: list[Json]) -> set[str]:
    """Return the names of all hosts that some launch needs."""
    return {endpoint["host"] for launch in launches for endpoint in launch["endpoints"]}
