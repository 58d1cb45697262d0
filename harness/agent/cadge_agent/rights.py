# SPDX-License-Identifier: BSD-3-Clause
"""Rights that a host lends the processes of a launch: capabilities, to open what any user may not."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

LENDER = Path("/run/cadge-rights/setpriv")
"""Made on emulated hosts, by whoever made the host (cadge_harness/testbed/supervisor.py). No other host has one."""


def lending(rights: Sequence[str]) -> list[str]:
    """Return what is put before a command that needs rights; nothing where root has them, or nobody lends any.

    The command has them in its ambient set, and gives them up once it is open (harness/driver/session/rights.h).
    """
    if not rights or os.geteuid() == 0 or not os.access(LENDER, os.X_OK):
        return []
    names = ",".join(f"+{name}" for name in rights)
    return [str(LENDER), "--inh-caps", names, "--ambient-caps", names, "--"]
