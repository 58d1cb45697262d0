# SPDX-License-Identifier: BSD-3-Clause
"""Two hosts on this machine for benches that start drivers themselves: network namespaces, which take root.

They are made for a run and are gone after it.
"""

import contextlib
import os
import subprocess
from collections.abc import Iterator, Sequence
from typing import Any


@contextlib.contextmanager
def two() -> Iterator[list[str]]:
    """Make two network namespaces, with links data0 and raw0 between them; return their names."""
    names = [f"cadge-bench-{os.getpid()}-{number}" for number in range(2)]

    def ip(*argv: str) -> None:
        subprocess.run(["ip", *argv], check=True, timeout=20)

    try:
        for name in names:
            ip("netns", "add", name)
            ip("-n", name, "link", "set", "lo", "up")
        for device in ("data0", "raw0"):
            ip("link", "add", device, "netns", names[0], "type", "veth", "peer", "name", device, "netns", names[1])
        for number, name in enumerate(names):
            ip("-n", name, "address", "add", f"{address(number)}/24", "dev", "data0")
            for device in ("data0", "raw0"):
                ip("-n", name, "link", "set", device, "up")
        yield names
    finally:
        for name in names:
            subprocess.run(["ip", "netns", "del", name], check=False, capture_output=True, timeout=20)


def address(number: int) -> str:
    """Return a host's address on the data link."""
    return f"10.213.0.{number + 1}"


def end(number: int) -> dict[str, Any]:
    """Return what a launch file says of a host."""
    return {"host": f"h{number}", "device": "data0", "address": address(number), "raw_device": "raw0"}


def on(names: Sequence[str], number: int) -> list[str]:
    """Return what to put before a command that runs on a host; nothing where there are none."""
    return ["ip", "netns", "exec", names[number]] if names else []
