# SPDX-License-Identifier: BSD-3-Clause
"""The rate of the data link: what goes over it is held to it, and it is taken back, whatever happens."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from test_ansible import Campaign, between, gone
from testbed_helpers import BUILT, make_block, make_launch, node_folder

from cadge_harness.run import ansible_io
from cadge_harness.run.crosscheck import crosschecks
from cadge_harness.testbed.model import Testbed
from cadge_results import LaunchRecord
from cadge_results.plugins.pattern import PatternFile, declared

Json = dict[str, Any]
Inside = Callable[..., subprocess.CompletedProcess[str]]

ROOT = Path(__file__).parents[3]
SCRIPT = ROOT / "playbooks/roles/cadge_link/files/link.py"
STREAM = ROOT / "harness/patterns/stream/stream.pattern.yml"
HEADERS = 1448 / 1514
"""Of a full packet over TCP so much is payload."""


@pytest.fixture
def campaign(emulated: Testbed, tmp_path: Path, fake_build: Path) -> Campaign:
    return Campaign(emulated, tmp_path / "work", fake_build)


@pytest.fixture
def link(inside: Inside, tmp_path: Path) -> Iterator[Callable[..., str]]:
    """Give the link of both hosts a rate and take it back, as the role does; it is taken back in any case."""

    def change(bits: int = 0) -> str:
        said = ""
        for host in ("h1", "h2"):
            state = str(tmp_path / f"{host}.json")
            words = ["set", state, "data0", str(bits)] if bits else ["restore", state]
            said += inside(sys.executable, str(SCRIPT), *words, host=host).stdout
        return said

    yield change
    change()


def queues(inside: Inside) -> list[str]:
    """Return the kind of queue that each host's data link has."""
    shown = [inside("tc", "qdisc", "show", "dev", "data0", host=host).stdout for host in ("h1", "h2")]
    return [text.split()[1] for text in shown]


def stream(name: str, testbed: Testbed, rate: str) -> Json:
    """Return a launch of one stream of 64 KiB between the hosts."""
    file = PatternFile.from_object(yaml.safe_load(STREAM.read_text()), source=STREAM.name)
    workload = file.workload("stream", {"bytes": 65536, "depth": 8})
    point = {"attempt_id": "0", "point_id": "0" * 16, "duration_ms": 300, "deadline_ms": 20000}
    launch = make_launch(name, ["h1", "h2"], layer="sockets-tcp")
    for end, host in zip(launch["endpoints"], testbed.hosts, strict=True):
        end.update(device=host.device, address=host.address)
    limits = {name: one.model_dump() for name, one in declared({"stream": file})["stream"].items()}
    return {
        **launch,
        "wait": "block",
        "settings": {"link.rate": rate},
        "patterns": {"stream": limits},
        "points": [{**point, "workload": workload.model_dump(mode="json")}],
    }


@pytest.mark.alone
@pytest.mark.skipif(not (BUILT / "layers/sockets-tcp.so").exists(), reason="nothing is built")
@pytest.mark.parametrize(
    ("rate", "bits"), [("1Gbit", 1_000_000_000), pytest.param("100Mbit", 100_000_000, marks=pytest.mark.long)]
)
@pytest.mark.long
def test_a_stream_goes_at_the_rate_of_the_link(
    emulated: Testbed, pair: Callable[..., tuple[Any, Any]], link: Callable[..., str], rate: str, bits: int
) -> None:
    assert link(bits).count("changed data0") == 2
    assert not link(bits)  # it is that already
    seen = []
    for name in ("l1", "l2", "l3", "l4"):  # other work on this machine delays the timer of the bucket
        leader, _ = pair(stream(name, emulated, rate), build=BUILT)
        record = LaunchRecord.from_object(leader.records()[name], source="the agent")
        assert record.result is not None, record.reason
        [attempt] = record.result.attempts
        assert attempt.status == "done", attempt.reason
        assert [host.before.rate_bits for host in record.link] == [bits, bits]
        [judged] = [check for check in crosschecks(record) if check.name == "data_link"]
        assert judged.ok, judged
        seen.append(8e9 * (attempt.bytes or 0) / (attempt.elapsed_ns or 1) / (bits * HEADERS))
        assert seen[-1] < 1.03
        if seen[-1] > 0.92:
            break
    else:
        pytest.fail(f"the stream went at {seen} of the link's {rate}")
    assert link().count("changed data0") == 2
    assert not link()


@pytest.mark.long
def test_a_queue_of_another_s_is_left_alone(inside: Inside, tmp_path: Path) -> None:
    inside("tc", "qdisc", "add", "dev", "data0", "root", "pfifo", host="h1")
    try:
        words = ["set", str(tmp_path / "link.json"), "data0", "100000000"]
        done = inside(sys.executable, str(SCRIPT), *words, host="h1", check=False)
        assert (done.returncode, "data0 has a queue of its own already (pfifo" in done.stderr) == (1, True)
        assert not (tmp_path / "link.json").exists()
    finally:
        inside("tc", "qdisc", "del", "dev", "data0", "root", host="h1")


@pytest.mark.long  # that a block has its rate, and the next one none: test_ansible.py
def test_the_rate_is_taken_back_after_a_failure_and_after_a_kill(campaign: Campaign, inside: Inside) -> None:
    slow = between("l1")
    slow["settings"] |= {"link.rate": "100Mbit"}
    campaign.work.mkdir()
    blocks = [make_block(campaign.testbed, campaign.name, "b0", [slow])]
    ansible_io._variables(campaign.testbed, blocks, campaign.work, campaign.build, tune=False)
    failed = campaign.playbook("prepare", "deploy", "measure")  # there is no lease
    assert failed.returncode != 0
    assert "Give the link its rate" in failed.stdout, failed.stdout
    assert queues(inside) == ["noqueue", "noqueue"]
    for host in ("h1", "h2"):  # as after a kill in the middle of a block
        state = node_folder(campaign.name, host) / "link.json"
        inside(sys.executable, str(SCRIPT), "set", str(state), "data0", "100000000", host=host)
        assert json.loads(state.read_text())["device"] == "data0"
    assert queues(inside) == ["tbf", "tbf"]
    assert campaign.playbook("cleanup").returncode == 0
    assert queues(inside) == ["noqueue", "noqueue"]
    gone(campaign)
