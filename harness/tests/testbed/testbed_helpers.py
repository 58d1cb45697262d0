# SPDX-License-Identifier: BSD-3-Clause
"""Blocks of a driver that measures nothing, and looking for what is left of them."""

from __future__ import annotations

import atexit
import json
import os
import shutil
import tempfile
from pathlib import Path
from typing import Any

from cadge_harness.run.agent_file import write_agent
from cadge_harness.testbed.model import Testbed

FAKE_DRIVER = Path(__file__).with_name("fake_driver.py")
AGENT = write_agent(Path(tempfile.mkdtemp(prefix="ct-")))
atexit.register(shutil.rmtree, AGENT.parent, ignore_errors=True)

Json = dict[str, Any]


def own_ports(first: int) -> list[int]:
    """A range of a hundred ports that no other worker of this test run uses: on this machine they share addresses."""
    begin = first + 100 * int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))
    return [begin, begin + 99]


def make_launch(name: str, hosts: list[str], **settings: object) -> Json:
    """A launch of the fake driver; settings are those of its head comment, without `fake.`."""
    place = "self" if len(hosts) == 1 else "within" if hosts[0] == hosts[1] else "between"
    return {
        "schema": "cadge.launch/1",
        "launch_id": name,
        "campaign_id": "",
        "kind": "layer",
        "layer": settings.pop("layer", "null"),
        "shims": [],
        "launcher": "direct",
        "place": place,
        "wait": "poll",
        "settings": {f"fake.{key}": str(value) for key, value in settings.items() if key != "deadline_ms"},
        "seed": 1,
        "deadline_ms": settings.get("deadline_ms", 20000),
        "ports": own_ports(18600),
        "endpoints": [{"host": h, "cpu": -1, "device": "lo", "address": "127.0.0.1", "raw_device": ""} for h in hosts],
        "points": [],
    }


def make_block(testbed_used: Testbed, campaign: str, name: str, launches: list[Json], deadline_s: float = 300) -> Json:
    """A block as the planner makes it."""
    used = [host for host in testbed_used.hosts if any(host.name in _hosts(launch) for launch in launches)]
    return {
        "schema": "cadge.block/1",
        "block_id": name,
        "campaign_id": campaign,
        "place": launches[0]["place"],
        "hosts": [
            {
                "name": host.name,
                "management_address": host.management_address,
                "device": host.device,
                "address": host.address,
                "raw_device": host.raw_device,
                "cpus": list(host.cpus),
            }
            for host in used
        ],
        "leader": launches[0]["endpoints"][0]["host"],
        "ports": own_ports(testbed_used.ports[0]),
        "deadline_s": deadline_s,
        "launches": [{**launch, "campaign_id": campaign} for launch in launches],
    }


def _hosts(launch: Json) -> list[str]:
    return [endpoint["host"] for endpoint in launch["endpoints"]]


def node_folder(campaign: str, host: str) -> Path:
    """The folder of a campaign on a host that shares this machine's files."""
    return Path.home() / ".cache" / "cadge" / f"{campaign}-{host}"


def processes(*words: str) -> dict[int, str]:
    """Processes whose command line or environment holds one of the words: pid to command line. Not this one."""
    found = {}
    for folder in Path("/proc").iterdir():
        if not folder.name.isdigit() or int(folder.name) == os.getpid():
            continue
        try:
            line = (folder / "cmdline").read_bytes()
            environment = (folder / "environ").read_bytes()
        except OSError:
            continue
        text = line + b"\0" + b"\0".join(item for item in environment.split(b"\0") if item.startswith(b"CADGE_MARK="))
        if line and any(word.encode() in text for word in words):
            found[int(folder.name)] = line.replace(b"\0", b" ").decode(errors="replace")
    return found


def read_json(path: Path) -> Json:
    """A JSON file."""
    document: Json = json.loads(path.read_text())
    return document
