#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Gives what a device sends a rate, as a slower link would, and takes it back.

    link.py set STATE DEVICE BITS     BITS a second; notes the device in STATE before it changes anything
    link.py restore STATE             takes the rate from the device in STATE and removes STATE

A token bucket (tbf) with a handle of our own. After a pause as much passes at once as the rate has in 0.8 ms, but two
full packets at least: at 1 Gbit/s that is one of the pieces of 64 KiB that TCP hands over whole on a veth pair, and as
much again as the timer of the bucket may be late. What is larger than the bucket the kernel cuts into packets first. Up
to 50 ms of the rate, or 256 KiB, wait; more is lost.

Prints "changed ..." where it changed something. Exit 1 with a sentence where the device has a queue of another's.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

HANDLE = "cad6:"
PACKET_BYTES = 1514
WAITING_BYTES_MIN = 256 * 1024
SYSTEM_FOLDERS = "/usr/sbin:/sbin"


def tc(*words: str) -> str:
    """Run tc; ends with what it says where it cannot."""
    program = shutil.which("tc", path=f"{os.environ.get('PATH', '/usr/bin:/bin')}:{SYSTEM_FOLDERS}")
    if program is None:
        sys.exit("the program tc is missing (package iproute2)")
    done = subprocess.run([program, *words], stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"tc {' '.join(words)}: {done.stderr.strip() or done.returncode}")
    return done.stdout


def is_ours(device: str) -> bool:
    """Say whether the device has our queue; ends where it has one that is not the kernel's own choice."""
    for line in tc("qdisc", "show", "dev", device).splitlines():
        words = line.split()
        if words[:3] == ["qdisc", "tbf", HANDLE]:
            return True
        if "root" in words and words[2] != "0:":
            sys.exit(f"{device} has a queue of its own already ({' '.join(words[1:3])}), which is not ours to replace")
    return False


def give(state: Path, device: str, bits: int) -> None:
    """Note, then set."""
    wanted = {"device": device, "bits": bits}
    if is_ours(device) and state.exists() and json.loads(state.read_text(encoding="utf-8")) == wanted:
        return
    state.write_text(json.dumps(wanted), encoding="utf-8")
    burst = max(bits // 10_000, 2 * PACKET_BYTES)
    limit = max(bits // 160, WAITING_BYTES_MIN) + burst
    words = ["rate", f"{bits}bit", "burst", str(burst), "limit", str(limit)]
    tc("qdisc", "replace", "dev", device, "root", "handle", HANDLE, "tbf", *words)
    sys.stdout.write(f"changed {device}: {bits} bit/s\n")


def restore(state: Path) -> None:
    """Take it back, then forget."""
    if not state.exists():
        return
    device = json.loads(state.read_text(encoding="utf-8"))["device"]
    if is_ours(device):
        tc("qdisc", "del", "dev", device, "root")
        sys.stdout.write(f"changed {device}: no rate\n")
    state.unlink()


def main() -> None:
    """Command line, see the head of this file."""
    if len(sys.argv) == 5 and sys.argv[1] == "set":
        give(Path(sys.argv[2]), sys.argv[3], int(sys.argv[4]))
    elif len(sys.argv) == 3 and sys.argv[1] == "restore":
        restore(Path(sys.argv[2]))
    else:
        sys.exit("usage: link.py set STATE DEVICE BITS | restore STATE")


if __name__ == "__main__":
    main()
