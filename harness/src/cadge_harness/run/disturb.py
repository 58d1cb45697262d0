# SPDX-License-Identifier: BSD-3-Clause
"""A load beside a campaign, for the self-test: one process that copies memory for a fifth of the time.

It is what a machine has that is not quite idle: other work comes and goes, and takes caches and a processor with it.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

BURST_S, REST_S = 0.02, 0.08
BYTES = 8 << 20

_PROGRAM = f"""
import os, time
source, parent = bytes({BYTES}), os.getppid()
while os.getppid() == parent:
    end = time.monotonic() + {BURST_S}
    while time.monotonic() < end:
        bytearray(source)
    time.sleep({REST_S})
"""


@contextmanager
def disturbing() -> Iterator[None]:
    """Keep the load up meanwhile. It ends with this process as well, however that ends."""
    with subprocess.Popen([sys.executable, "-I", "-c", _PROGRAM], stdin=subprocess.DEVNULL) as load:
        try:
            yield
        finally:
            load.kill()
