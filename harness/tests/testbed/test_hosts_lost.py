# SPDX-License-Identifier: BSD-3-Clause
"""Pairs of hosts on real emulated hosts: one of them is not there, and management goes by IPv6."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from agent_helpers import host_process
from testbed_helpers import BUILT

from cadge_harness.testbed import testbeds
from cadge_results import Campaign, Store

SWEEP = """\
schema: cadge.sweep/2
title: pairs
layers: [sockets-tcp]
patterns:
  - {pattern: rpc, request_bytes: 8B}
places: between
pairs: all
waits: block
launches: 1
duration: 40ms
floors: false
twin: none
"""
HOSTS = {"h1": "fd00:6:7::11", "h2": "fd00:6:7::12", "h3": "fd00:6:7::13"}


def give_ipv6(supervisor: int) -> None:
    """Give each host an address of its own on the management network, where they have none."""
    for name, address in HOSTS.items():
        script = "for of in default mgmt0; do echo 0 >/proc/sys/net/ipv6/conf/$of/disable_ipv6; done; "
        script += f"ip address add {address}/64 dev mgmt0 nodad"
        subprocess.run(["nsenter", "-t", str(host_process(supervisor, name)), "-a", "sh", "-c", script], check=True)


def inventory(folder: Path, **changed: str) -> Path:
    """Write the hosts as a cluster's, each with its address of IPv6; some are reached elsewhere."""
    hosts = json.loads(testbeds.resolve("emulated", start=False).inventory_path.read_text())["cadge"]["hosts"]
    for name, address in HOSTS.items():
        hosts[name] |= {
            "cadge_management_address": address,
            "ansible_host": changed.get(name, hosts[name]["ansible_host"]),
        }
    path = folder / "lab.json"
    path.write_text(json.dumps({"cadge": {"hosts": hosts}}))
    return path


@pytest.mark.long
@pytest.mark.usefixtures("own_state")
def test_pairs_of_other_hosts_are_measured_where_one_is_not_there(tmp_path: Path) -> None:
    """Both ways between h1 and h2; once h3 is back, a resume makes its four pairs and nothing twice."""
    if os.geteuid() != 0:
        pytest.skip("enters a host's network namespace directly, as root")
    now = testbeds.up(3, shared=(tmp_path,))
    give_ipv6(now["pid"])
    (tmp_path / "pairs.yml").write_text(SWEEP)
    into = ["nsenter", f"--net=/proc/{now['pid']}/ns/net", "--", sys.executable, "-m", "cadge_cli.cli"]
    own = ["--results", str(tmp_path / "results"), "--no-report", "--no-queue"]

    def cadge(*words: str, lab: Path) -> subprocess.CompletedProcess[str]:
        environment = {**os.environ, "CADGE_BUILD": str(BUILT)}
        argv = [*into, *words, "--inventory", str(lab), *own]
        return subprocess.run(argv, env=environment, capture_output=True, text=True, check=False, timeout=300)

    done = cadge("run", "--sweep", str(tmp_path / "pairs.yml"), lab=inventory(tmp_path, h3="198.18.0.99"))
    assert done.returncode == 4, done.stderr
    assert "h3 cannot be reached: " in done.stderr
    assert "h3 cannot take part; go on with the launches of the others: h1, h2" in done.stderr
    campaign = Store(tmp_path / "results").open("last")
    first = measured(campaign)
    assert set(first) == {"h1,h2", "h2,h1"}
    done = cadge("resume", "last", lab=inventory(tmp_path))
    assert done.returncode == 0, done.stderr
    every = measured(campaign)
    assert len(every) == 6
    assert {pair: every[pair] for pair in first} == first


def measured(campaign: Campaign) -> dict[str, str]:
    """Return when the launch of each pair began."""
    return {
        str(record.launch.subject.setting("hosts.pair")): record.result.started_utc
        for record in campaign.launches()
        if record.result is not None
    }
