# SPDX-License-Identifier: BSD-3-Clause
"""Real emulated hosts of which one is not there, and networks of IPv6."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
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
BY_IPV6 = """\
schema: cadge.sweep/2
title: IPv6 alone on the data network
layers: [sockets-tcp, sockets-udp, native-ucx, native-ofi, native-zmq, peregrine-udp, peregrine-ip, peregrine-xdp]
patterns:
  - {pattern: rpc, request_bytes: 8B}
places: between
waits: poll
launches: 1
duration: 40ms
twin: none
"""
HOSTS = {"h1": "fd00:6:7::11", "h2": "fd00:6:7::12", "h3": "fd00:6:7::13"}


def give_ipv6(supervisor: int) -> None:
    """Give each host an address of its own on the management network, where they have none."""
    for name, address in HOSTS.items():
        add_ipv6(supervisor, name, "mgmt0", address)


def add_ipv6(supervisor: int, name: str, device: str, address: str, more: str = "true") -> None:
    """Give a device of a host an address, and run `more` there."""
    script = f"for of in default {device}; do echo 0 >/proc/sys/net/ipv6/conf/$of/disable_ipv6; done; "
    script += f"ip address add {address}/64 dev {device} nodad && {more}"
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


def cadge(supervisor: int, folder: Path, *words: str, lab: Path) -> subprocess.Popen[str]:
    """Start Cadge where the hosts' management network is."""
    into = ["nsenter", f"--net=/proc/{supervisor}/ns/net", "--", sys.executable, "-m", "cadge_cli.cli"]
    own = ["--inventory", str(lab), "--results", str(folder / "results"), "--no-report", "--no-queue"]
    environment = {**os.environ, "CADGE_BUILD": str(BUILT)}
    return subprocess.Popen([*into, *words, *own], env=environment, stderr=subprocess.PIPE, text=True)


@pytest.mark.long
@pytest.mark.usefixtures("own_state")
def test_pairs_of_other_hosts_are_measured_where_one_is_not_there(tmp_path: Path) -> None:
    """Both ways between h1 and h2; once h3 is back, a resume makes its four pairs and nothing twice."""
    if os.geteuid() != 0:
        pytest.skip("enters a host's network namespace directly, as root")
    now = testbeds.up(3, shared=(tmp_path,))
    give_ipv6(now["pid"])
    (tmp_path / "pairs.yml").write_text(SWEEP)
    lab = inventory(tmp_path, h3="198.18.0.99")
    run = cadge(now["pid"], tmp_path, "run", "--sweep", str(tmp_path / "pairs.yml"), lab=lab)
    said = run.communicate(timeout=300)[1]
    assert run.returncode == 4, said
    assert "h3 cannot be reached: " in said
    assert "h3 cannot take part; Cadge continues with h1, h2" in said
    campaign = Store(tmp_path / "results").open("last")
    first = measured(campaign)
    assert set(first) == {"h1,h2", "h2,h1"}
    run = cadge(now["pid"], tmp_path, "resume", "last", lab=inventory(tmp_path))
    said = run.communicate(timeout=300)[1]
    assert run.returncode == 0, said
    every = measured(campaign)
    assert len(every) == 6
    assert {pair: every[pair] for pair in first} == first


@pytest.mark.long
@pytest.mark.usefixtures("own_state")
def test_a_host_whose_network_goes_away_is_given_up_soon(tmp_path: Path) -> None:
    """Its processes live on; the others' launches are made, and nobody waits for a connection's own timeouts."""
    if os.geteuid() != 0:
        pytest.skip("enters a host's network namespace directly, as root")
    now = testbeds.up(3, shared=(tmp_path,))
    give_ipv6(now["pid"])
    (tmp_path / "pairs.yml").write_text(SWEEP.replace("launches: 1", "launches: 3").replace("40ms", "700ms"))
    run = cadge(now["pid"], tmp_path, "run", "--sweep", str(tmp_path / "pairs.yml"), lab=inventory(tmp_path))
    store = Store(tmp_path / "results")
    until = time.monotonic() + 120
    while not any(tmp_path.glob("results/*/launches/*.json")):
        assert time.monotonic() < until
        assert run.poll() is None
        time.sleep(0.1)
    link = "ip link set mgmt0 down"
    subprocess.run(["nsenter", "-t", str(host_process(now["pid"], "h3")), "-a", "sh", "-c", link], check=True)
    begun = time.monotonic()
    assert run.stderr is not None
    with run.stderr:
        said = [(time.monotonic() - begun, line) for line in run.stderr]
    assert run.wait(60) == 4, said
    (noticed_s,) = [after_s for after_s, line in said if "no sign of life from h3" in line]
    assert noticed_s < 30
    assert {pair for pair in measured(store.open("last")) if "h3" not in pair} == {"h1,h2", "h2,h1"}


@pytest.mark.long
@pytest.mark.usefixtures("own_state")
def test_layers_measure_over_a_data_network_that_has_ipv6_alone(tmp_path: Path) -> None:
    """Peregrine's wires ip and xdp are refused in the plan; nothing fails, and no device has an IPv4 address."""
    if os.geteuid() != 0:
        pytest.skip("enters a host's network namespace directly, as root")
    now = testbeds.up(2, shared=(tmp_path,))
    hosts = json.loads(testbeds.resolve("emulated", start=False).inventory_path.read_text())["cadge"]["hosts"]
    for name in ("h1", "h2"):
        hosts[name]["cadge_address"] = HOSTS[name]
        add_ipv6(now["pid"], name, "data0", HOSTS[name], "ip -4 address flush dev data0")
    lab = tmp_path / "lab.json"
    lab.write_text(json.dumps({"cadge": {"hosts": hosts}}))
    (tmp_path / "by_ipv6.yml").write_text(BY_IPV6)
    run = cadge(now["pid"], tmp_path, "run", "--sweep", str(tmp_path / "by_ipv6.yml"), lab=lab)
    said = run.communicate(timeout=300)[1]
    assert run.returncode == 0, said
    campaign = Store(tmp_path / "results").open("last")
    refused = {point.subject.layer for point in campaign.plan.points if "by IPv6" in (point.reason or "")}
    assert refused == {"peregrine-ip", "peregrine-xdp"}
    outcomes = [outcome for outcome in campaign.outcomes() if outcome.status != "refused"]
    assert {outcome.status for outcome in outcomes} == {"valid"}, outcomes
    layers = {outcome.point.subject.layer for outcome in outcomes}
    assert {"sockets-tcp", "sockets-udp", "peregrine-udp", "floor-tcp", "floor-udp"} <= layers


def measured(campaign: Campaign) -> dict[str, str]:
    """Return when the launch of each pair began."""
    return {
        str(record.launch.subject.setting("hosts.pair")): record.result.started_utc
        for record in campaign.launches()
        if record.result is not None
    }
