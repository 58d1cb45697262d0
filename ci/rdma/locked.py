# SPDX-License-Identifier: BSD-3-Clause
"""Run a command while no sweep measures on this machine: an emulated machine keeps both processors busy.

Usage: locked.py COMMAND [ARG ...]. The exit status is the command's own; 3 where the machine cannot be had.
"""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import sys

from cadge_harness.errors import UnfitError
from cadge_harness.run.machine_lock import machine_lock


def main(arguments: list[str]) -> int:
    """Take the lock of this machine, run the command, give the lock back."""
    try:
        with machine_lock(shlex.join(arguments), lambda text: print(text, file=sys.stderr, flush=True)):
            child = subprocess.Popen(arguments, env={**os.environ, "CADGE_MACHINE_HELD": "1"})
            try:
                return child.wait()
            finally:
                child.terminate()  # nothing where it has ended; else it ends its machine
                child.wait()
    except UnfitError as error:
        print(f"rdma-machine: {error}", file=sys.stderr)
        return 3


def _ended(number: int, _frame: object) -> None:
    sys.exit(128 + number)


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, _ended)
    try:
        sys.exit(main(sys.argv[1:]))
    except KeyboardInterrupt:
        sys.exit(130)
