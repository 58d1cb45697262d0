#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Sets values in /proc/sys and /sys, and puts the old ones back.

    tune.py set STATE FILE=VALUE ...     saves the old values in STATE before it changes anything; FILE may be a pattern
    tune.py restore STATE                puts them back and removes STATE

Prints "changed FILE: OLD -> NEW" for each change. Exit 1 with a sentence where a value does not stay as written.
"""

from __future__ import annotations

import glob
import json
import os
import re
import sys
from pathlib import Path


def value_of(path: Path) -> str:
    """Read a setting; of a list of choices, the one in brackets."""
    text = path.read_text(encoding="ascii").strip()
    chosen = re.search(r"\[(\S+)\]", text)
    return chosen.group(1) if chosen else text


def write(path: Path, value: str) -> None:
    """Write one setting if it differs, and read it back."""
    old = value_of(path)
    if old == value:
        return
    path.write_text(value, encoding="ascii")
    now = value_of(path)
    if now != value:
        sys.exit(f"{path} was set to {value} and is {now}")
    sys.stdout.write(f"changed {path}: {old} -> {value}\n")


def save(state: Path, values: dict[str, str]) -> None:
    """Keep the old values so that they outlive a crash."""
    part = state.with_suffix(".part")
    with part.open("w", encoding="utf-8") as file:
        json.dump(values, file)
        file.flush()
        os.fsync(file.fileno())
    part.replace(state)


def set_all(state: Path, pairs: list[str]) -> None:
    """Save, then set."""
    wanted = {}
    for pair in pairs:
        pattern, _, value = pair.partition("=")
        wanted.update(dict.fromkeys(sorted(glob.glob(pattern)), value))  # noqa: PTH207 - absolute patterns
    saved = json.loads(state.read_text(encoding="utf-8")) if state.exists() else {}
    save(state, {**{name: value_of(Path(name)) for name in wanted}, **saved})
    for name, value in wanted.items():
        write(Path(name), value)


def restore(state: Path) -> None:
    """Put back, then forget."""
    if not state.exists():
        return
    for name, value in json.loads(state.read_text(encoding="utf-8")).items():
        if Path(name).exists():
            write(Path(name), value)
    state.unlink()


def main() -> None:
    """Command line, see the head of this file."""
    if len(sys.argv) >= 3 and sys.argv[1] == "set":
        set_all(Path(sys.argv[2]), sys.argv[3:])
    elif len(sys.argv) == 3 and sys.argv[1] == "restore":
        restore(Path(sys.argv[2]))
    else:
        sys.exit("usage: tune.py set STATE FILE=VALUE ... | restore STATE")


if __name__ == "__main__":
    try:
        main()
    except OSError as error:
        sys.exit(f"{error.filename}: {error.strerror}")
