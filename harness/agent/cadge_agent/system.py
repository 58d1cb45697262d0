# SPDX-License-Identifier: BSD-3-Clause
"""Calls of the kernel that Python has no function for."""

from __future__ import annotations

import ctypes
import os
import signal

LIBC = ctypes.CDLL(None, use_errno=True)
PR_SET_PDEATHSIG, PR_SET_NAME = 1, 15


def die_with_parent() -> None:
    """Have the kernel kill this process when its parent ends."""
    LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def system(name: str, *arguments: object) -> None:
    """Call the kernel by name. Raises OSError with the name as its file name."""
    if getattr(LIBC, name)(*arguments) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), name)
