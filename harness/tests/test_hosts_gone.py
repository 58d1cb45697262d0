# SPDX-License-Identifier: BSD-3-Clause
"""What a cluster's hosts lack for MPI is found before anybody measures; a host that is gone is not tried again."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from cadge_harness.plan.catalogue import Catalogue
from cadge_harness.plan.planner import make_plan
from cadge_harness.plan.site import site_of
from cadge_harness.run import ansible_io
from cadge_harness.run.host_findings import OwnBuild, read_survey
from cadge_harness.run.lease import Peer
from cadge_harness.run.survey import Survey, as_seen
from cadge_harness.testbed.logins import ssh_between
from cadge_harness.testbed.model import TestbedKind
from cadge_results.formats.event import HostReport, ReachReport, TaskFailed

from .conftest import WORKLOADS, make_testbed
from .test_plan import tiny

sys.path.insert(0, str(Path(__file__).parents[1] / "agent"))

from cadge_agent.host import ports  # type: ignore[import-not-found, unused-ignore]

WHY = "Host key verification failed"


@pytest.fixture
def cleaned(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[..., list[tuple[str, list[str]]]]:
    """Run a campaign whose site.yml ends like that; returns each playbook with the hosts that it was to reach."""

    def run(lose: Callable[[ansible_io._Run], None], gone: set[str]) -> list[tuple[str, list[str]]]:
        played: list[tuple[str, list[str]]] = []

        def play(run: ansible_io._Run, names: list[str], *rest: Any) -> int:  # noqa: ANN401 - of a private function
            played.append((names[0], rest[-1]))
            if names == ["site"]:
                lose(run)
                return 4
            return 0

        monkeypatch.setattr(ansible_io, "_playbook", play)
        monkeypatch.setattr(ansible_io, "_variables", lambda _testbed, _blocks, work, *_r, **_n: work / "variables")
        ends = [{"host": "h1"}, {"host": "h2"}]
        block = {"block_id": "b1", "campaign_id": "c", "launches": [{"launch_id": "l", "endpoints": ends}]}
        nothing: Any = lambda _: None  # noqa: E731
        done = ansible_io.run_campaign(
            make_testbed(), [block], tmp_path, nothing, nothing, threading.Event(), gone=gone
        )
        assert not done.clean
        return played

    return run


def unreachable(run: ansible_io._Run) -> None:
    run.event(Peer.__new__(Peer), TaskFailed(event="unreachable", host="h2", message="No route to host"))


def test_a_host_that_is_gone_is_not_cleaned(cleaned: Callable[..., list[tuple[str, list[str]]]]) -> None:
    gone: set[str] = set()
    assert cleaned(unreachable, gone) == [("site", ["h1", "h2"]), ("cleanup", ["h1"])]
    assert gone == {"h2"}, "later parts of the same command know it"


def frozen(run: ansible_io._Run) -> None:
    """h2 says nothing any more: so the controller ends all leases, and h1 says that."""
    run.state.frozen = True
    run.state.lost["h2"] = None
    message = "the controller ended its lease"
    run.event(Peer.__new__(Peer), TaskFailed(event="failed", host="h1", message=message, rc=ansible_io.LOST_ANOTHER))
    assert list(run.state.lost) == ["h2"]
    assert not run.state.problems


def test_hosts_whose_lease_ended_for_another_one_are_not_lost(
    cleaned: Callable[..., list[tuple[str, list[str]]]],
) -> None:
    assert cleaned(frozen, {"h2"})[-1] == ("cleanup", ["h1"])


def test_nobody_is_logged_in_to_where_all_are_gone(cleaned: Callable[..., list[tuple[str, list[str]]]]) -> None:
    assert cleaned(unreachable, {"h1"}) == [("site", ["h1", "h2"])]


def looked(name: str, shm_free_bytes: int) -> HostReport:
    return HostReport(
        host=name, node={}, build="/b", layers={}, taken_ports=[], greets={}, shm_free_bytes=shm_free_bytes, faults=[]
    )


def survey_of(shm_free_bytes: int = 1 << 30, **no_login: dict[str, str]) -> Survey:
    reached = {name: ReachReport(host=name, reached=[], no_login=own, faults=[]) for name, own in no_login.items()}
    return Survey(looked={name: looked(name, shm_free_bytes) for name in ("h1", "h2")}, reached=reached)


def refused(catalogue: Catalogue, found: Survey, **keys: object) -> dict[tuple[str, str], str]:
    testbed = as_seen(make_testbed(TestbedKind.CLUSTER), found)
    plan = make_plan(tiny(**keys), catalogue, WORKLOADS, site_of(testbed), only=["a-one", "b-two"])
    points = [point for point in plan.points if point.subject.kind == "layer" and point.state == "refused"]
    return {(point.subject.layer, point.subject.place): point.reason or "" for point in points}


def test_ranks_are_refused_where_the_first_host_cannot_log_in(catalogue: Catalogue) -> None:
    found = refused(catalogue, survey_of(h1={"h2": WHY}), places=["within", "between"])
    assert list(found) == [("b-two", "between")]
    assert f"cannot log in between these hosts by SSH: {WHY}" in found["b-two", "between"]
    assert not refused(catalogue, survey_of(h2={"h1": WHY}), places="between"), "nobody logs in that way round"


def test_ranks_within_a_host_are_refused_where_a_look_found_little_memory(catalogue: Catalogue) -> None:
    found = refused(catalogue, survey_of(4 << 20), places=["within", "between"])
    assert list(found) == [("b-two", "within")]
    assert "/dev/shm of h1 has 4 MB free" in found["b-two", "within"]


def test_doctor_says_it_once_for_all_pairs() -> None:
    testbed = make_testbed(TestbedKind.CLUSTER)
    seen = read_survey(
        survey_of(64 << 20, h1={"h2": WHY}, h2={"h1": WHY}), testbed, OwnBuild(driver={}, layers=frozenset())
    )
    said = [(host, one.code, one.level, one.text) for host, one in seen.findings if one.code in ("D72", "D73")]
    little = "has 67 MB free, and layers over MPI, UCX and libfabric may want more"
    assert said == [
        ("h1", "D72", "warn", f"/dev/shm of h1 {little}"),
        ("h2", "D72", "warn", f"/dev/shm of h2 {little}"),
        ("", "D73", "warn", f"mpirun on h1 cannot log in to h2 by SSH (and 1 other pair of hosts): {WHY}. "
                            "MPI layers between them are refused"),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("variables", "words"),
    [
        ({}, ()),
        ({"ansible_ssh_common_args": "-J gateway -F lab.conf -o ControlPath=none"}, ()),
        ({"ansible_ssh_common_args": "-o ProxyCommand='ssh -W %h:%p gw' -v"}, ()),
        (
            {"ansible_ssh_common_args": "-o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null"},
            ("ssh", "-o", "StrictHostKeyChecking=no", "-o", "UserKnownHostsFile=/dev/null"),
        ),
        ({"ansible_ssh_extra_args": "-oUserKnownHostsFile=/here"}, ()),
        ({"ansible_port": 2222}, ("ssh", "-p", "2222")),
        ({"ansible_ssh_private_key_file": "~/.ssh/lab"}, ("ssh", "-i", "~/.ssh/lab")),
        ({"ansible_host_key_checking": False}, ("ssh", "-o", "StrictHostKeyChecking=no")),
        ({"ansible_ssh_private_key_file": "{{ key }}"}, ()),
        ({"ansible_ssh_private_key_file": "my key"}, ()),
        ({"ansible_ssh_common_args": "-o 'unclosed"}, ()),
        ({"ansible_connection": "local", "ansible_port": 2222}, ()),
    ],
)
def test_mpirun_is_given_those_options_of_ssh_that_hold_between_hosts(
    variables: dict[str, object], words: tuple[str, ...]
) -> None:
    assert ssh_between([variables, {**variables}]) == words
    assert ssh_between([variables, {"ansible_port": 22022}]) == (), "which hosts disagree on"


def test_a_host_says_why_it_cannot_log_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ssh = tmp_path / "ssh"
    ssh.write_text(f'#!/bin/sh\ncase "$*" in *good*) exit 0;; esac\necho "{WHY}." >&2\nexit 255\n')
    ssh.chmod(0o755)
    monkeypatch.setattr(ports, "reached_as", lambda _ssh, name, _address: name)
    logins = [{"host": name, "address": "192.0.2.1"} for name in ("good", "bad")]
    assert ports.try_logins([str(ssh)], logins) == {"bad": WHY}
    assert "No such file" in ports.try_logins([str(tmp_path / "none")], logins)["bad"]

    def late(*_: object, **__: object) -> None:
        raise subprocess.TimeoutExpired("ssh", 20)

    monkeypatch.setattr(ports.subprocess, "run", late)
    assert ports.try_logins([str(ssh)], logins)["good"] == "no answer within 20 s"


def test_a_look_tells_what_a_plan_depends_on() -> None:
    testbed = make_testbed(TestbedKind.CLUSTER, hosts=3)
    seen = as_seen(testbed, survey_of(5, h1={"h2": WHY})).hosts
    assert seen == (
        replace(testbed.hosts[0], shm_free_bytes=5, no_login=(("h2", WHY),)),
        replace(testbed.hosts[1], shm_free_bytes=5),
        testbed.hosts[2],
    )
