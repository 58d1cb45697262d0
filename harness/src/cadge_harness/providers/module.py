# SPDX-License-Identifier: BSD-3-Clause
"""The variables of an environment module (Lmod, or Environment Modules), as a login shell of this user loads it."""

from __future__ import annotations

import re
import subprocess

from cadge_harness.errors import UnfitError, UsageError, shown

_LOAD_S = 60
_BETWEEN = "cadge-module-is-loaded"


def module_environment(name: str) -> dict[str, str]:
    """Return the variables of a login shell that has loaded a module. Raises UsageError, UnfitError."""
    if not re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9_.+/@-]*", name):
        raise UsageError(f"{shown(name)} is no name of a module")
    script = (
        f"type module >/dev/null 2>&1 || exit 127; module load {name} >&2 || exit 1; printf '{_BETWEEN}\\0'; env -0"
    )
    try:
        done = subprocess.run(
            ["bash", "-lc", script], capture_output=True, stdin=subprocess.DEVNULL, timeout=_LOAD_S, check=False
        )
    except (OSError, subprocess.SubprocessError) as error:
        raise UnfitError(f"module {name} cannot be loaded: {error}") from error
    if done.returncode == 127:
        raise UnfitError("a login shell here knows no `module`; give --from prefix:FOLDER")
    said = done.stderr.decode(errors="replace")
    _, begun, listed = done.stdout.decode(errors="replace").partition(f"{_BETWEEN}\0")
    # Environment Modules say what went wrong, and end well all the same
    if done.returncode or not begun or re.search(r"(?i)\berror\b", said):
        raise UnfitError(f"module {name} cannot be loaded: {' '.join(said.split())[-300:]}")
    return dict(pair.split("=", 1) for pair in listed.split("\0") if "=" in pair)
