# SPDX-License-Identifier: BSD-3-Clause
"""`agent check`: gets a host ready, or says why it is not."""

from __future__ import annotations

import argparse
import errno
import json
import platform
import subprocess
import sys

from cadge_agent import AGENT_VERSION
from cadge_agent.clean import clean_up
from cadge_agent.environment import base_environment
from cadge_agent.facts import gather
from cadge_agent.folders import write_whole


def check(arguments: argparse.Namespace) -> int:
    """`agent.pyz check`, see the head of the package."""
    clean_up(arguments.work, arguments.campaign)
    driver = arguments.build / "bin" / "cadge-driver"
    host = arguments.host
    if not driver.exists():
        return _unfit(f"{host} has no build: there is no {driver}")
    try:
        done = subprocess.run(
            [str(driver), "version"],
            env=base_environment(arguments.ld_library_path),
            capture_output=True,
            text=True,
            timeout=20,
            check=False,
        )
    except OSError as error:
        if error.errno == errno.ENOEXEC:
            return _unfit(f"the build is for another kind of machine than {host}, which is {platform.machine()}")
        return _unfit(f"{driver} cannot be run on {host}: {error.strerror}")
    except subprocess.SubprocessError as error:
        return _unfit(f"{driver} does not answer on {host}: {error}")
    if done.returncode != 0:
        return _unfit(f"{driver} does not run on {host}: {(done.stderr or done.stdout).strip()[-300:]}")
    try:
        version = json.loads(done.stdout)
    except ValueError:
        return _unfit(f"{driver} on {host} is not a driver of this tool: it answered {done.stdout[:80]!r}")
    node = gather(host, arguments.build, arguments.ld_library_path, arguments.opal_prefix)
    write_whole(arguments.work / "node.json", node)
    same = {key: version.get(key) for key in ("version", "abi", "schema", "revision")}
    print(json.dumps({**same, "agent": AGENT_VERSION, "machine": platform.machine()}, sort_keys=True))
    return 0


def _unfit(sentence: str) -> int:
    sys.stderr.write(sentence + "\n")
    return 3
