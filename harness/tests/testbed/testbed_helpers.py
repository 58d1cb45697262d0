# SPDX-License-Identifier: BSD-3-Clause
"""Blocks of a driver that measures nothing, and looking for what is left of them."""

from __future__ import annotations

import atexit
import contextlib
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

BUILT = Path(__file__).parents[3] / "build"

Json = dict[str, Any]


def own_ports(first: int) -> list[int]:
    """A range of a hundred ports that no other worker of this test run uses: on this machine they share addresses."""
    begin = first + 100 * int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))
    return [begin, begin + 99]


def make_launch(name: str, hosts: list[str], **settings: object) -> Json:
    """A launch of the fake driver; settings are those of its head comment, without `fake.`."""
    place = "self" if len(hosts) == 1 else "within" if set(hosts) == {hosts[0]} else "between"
    return {
        "schema": "cadge.launch/2",
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
        "endpoints": [_endpoint(number, host, len(hosts)) for number, host in enumerate(hosts)],
        "patterns": {},
        "points": [],
    }


def _endpoint(number: int, host: str, count: int) -> Json:
    """One client, which has a channel to each server; at place self one endpoint that is both."""
    peers = [0] if number else list(range(1, count)) or [0]
    return {
        "role": "server" if number else "client",
        "host": host,
        "cpus": [],
        "device": "lo",
        "address": "127.0.0.1",
        "raw_device": "",
        "peers": peers,
    }


def real_launch(name: str, layer: str) -> Json:
    """A launch of the real driver: one small rpc point between two endpoints of this host."""
    values = {"request_bytes": 8, "reply_bytes": 8, "depth": 1}
    words = {"touch": "none", "payload": "usual", "reply": "cont"}
    point = {"attempt_id": "0", "point_id": "0" * 16, "duration_ms": 20, "deadline_ms": 5000}
    launch = make_launch(name, ["localhost", "localhost"], layer=layer)
    return {
        **launch,
        "patterns": {"rpc": {}},
        "points": [{**point, "workload": {"pattern": "rpc", "parameters": {**values, **words}}}],
    }


def ring_launch(name: str, used: Testbed, hosts: list[str]) -> Json:
    """A ring of endpoints on these hosts, in turn: the tests' driver, sockets-tcp, block mode."""
    of_host = {host.name: host for host in used.hosts}
    count = len(hosts)
    between = len(set(hosts)) > 1
    launch = make_launch(name, hosts, layer="sockets-tcp", deadline_ms=60000)
    for number, end in enumerate(launch["endpoints"]):
        host = of_host[end["host"]]
        end.update(role="node", peers=[(number - 1) % count, (number + 1) % count])
        if between:
            end.update(device=host.device, address=host.address)
    point = {"attempt_id": "0", "point_id": "0" * 16, "duration_ms": 50, "deadline_ms": 20000}
    return {
        **launch,
        "wait": "block",
        "patterns": {"ring": {}},
        "points": [{**point, "workload": {"pattern": "ring", "parameters": {"bytes": 64, "way": "forward"}}}],
    }


def make_block(testbed_used: Testbed, campaign: str, name: str, launches: list[Json], deadline_s: float = 300) -> Json:
    """A block as the planner makes it."""
    used = [host for host in testbed_used.hosts if any(host.name in _hosts(launch) for launch in launches)]
    return {
        "schema": "cadge.block/2",
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
        "mpirun": {"path": "mpirun", "options": []},
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


def signal_processes(number: int, marks: tuple[str, ...], *words: str, but: str = "") -> None:
    """Sends a signal to those processes of `marks` whose command line holds every word, and `but` nowhere.

    Where the first that is killed takes another with it, that one is gone before its turn.
    """
    for pid, line in processes(*marks).items():
        if all(word in line for word in words) and not (but and but in line):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, number)


def read_json(path: Path) -> Json:
    """A JSON file."""
    document: Json = json.loads(path.read_text())
    return document
