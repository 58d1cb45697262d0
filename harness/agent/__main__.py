#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Where Python begins in the agent's one file: a zip archive of this folder."""

from __future__ import annotations

import contextlib
import sys

from cadge_agent.main import main

if __name__ == "__main__":
    status = main()
    with contextlib.suppress(OSError):
        sys.stdout.flush()
    sys.exit(status)
