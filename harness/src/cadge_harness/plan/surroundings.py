# SPDX-License-Identifier: BSD-3-Clause
"""What the driver finds around it when it is asked something on this machine: what an endpoint of a launch would find.

Asked in the user's own surroundings it would answer for them: libraries read dozens of variables, and files in the
home and in the working folder, of which a launch has none.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_SYSTEM_FOLDERS = "/usr/local/sbin:/usr/sbin:/sbin"


def variables() -> dict[str, str]:
    """Return the agent's variables for a host of which the inventory states nothing (cadge_agent/environment.py)."""
    return {"PATH": f"{os.environ.get('PATH', '/usr/bin:/bin')}:{_SYSTEM_FOLDERS}", "LC_ALL": "C.UTF-8"}


@contextmanager
def surroundings() -> Iterator[tuple[dict[str, str], Path]]:
    """Yield an environment, and an empty folder that is home and working folder; what is left there goes."""
    with tempfile.TemporaryDirectory(prefix="cadge-") as folder:
        home = Path(folder, "home")
        home.mkdir(mode=0o700)
        yield {**variables(), "HOME": str(home), "TMPDIR": folder}, home
