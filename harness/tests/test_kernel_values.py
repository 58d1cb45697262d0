# SPDX-License-Identifier: BSD-3-Clause
"""Values of the kernel as settings: which there are, what is refused before anything runs, and what is judged after."""

from __future__ import annotations

import fcntl
import json
import os
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from cadge_cli.ab_answer import SWEEP, check_sides
from cadge_harness.errors import NothingSelectedError, UsageError
from cadge_harness.plan import kernel
from cadge_harness.plan.catalogue import Catalogue, Refusal
from cadge_harness.plan.kernel import check_values, file_of, set_here_of
from cadge_harness.plan.planner import make_plan
from cadge_harness.plan.site import PlanSite
from cadge_harness.providers.pair import chosen_pair, paired_sweep
from cadge_harness.run.crosscheck import crosschecks
from cadge_harness.run.findings import BOOT, _kernel_left
from cadge_harness.testbed.model import TestbedKind
from cadge_results import Reason
from cadge_results.formats.record import HostKernel

from .conftest import WORKLOADS, make_testbed
from .test_crosscheck import record
from .test_plan import tiny

sys.path.insert(0, str(Path(__file__).parents[1] / "agent"))

from cadge_agent.host import kernel as of_agent  # type: ignore[import-not-found, unused-ignore]

RMEM = "kernel.net.ipv4.tcp_rmem"


@pytest.mark.parametrize(
    ("name", "file"),
    [
        (RMEM, "/proc/sys/net/ipv4/tcp_rmem"),
        ("kernel.vm.stat_interval", "/proc/sys/vm/stat_interval"),
        ("kernel.numa_balancing", "/proc/sys/kernel/numa_balancing"),
        ("sys.kernel.mm.transparent_hugepage.enabled", "/sys/kernel/mm/transparent_hugepage/enabled"),
        ("device.gro_flush_timeout", "/sys/class/net/data0/gro_flush_timeout"),
    ],
)
def test_agent_and_planner_know_the_same_files(name: str, file: str) -> None:
    check_values({name: "1"})
    assert file_of(name, "data0") == of_agent.file_of(name, "data0") == Path(file)
    assert kernel.PREFIXES == of_agent.PREFIXES


@pytest.mark.parametrize(
    ("name", "value", "says"),
    [
        ("kernel.core_pattern", "x", "'kernel.core_pattern' is not among the values of the kernel that may be set"),
        ("kernel.net.ipv4.conf.all.forwarding", "1", "is not among"),
        ("kernel.net.ipv4.tcp_fastopen_key", "0", "is not among"),
        ("kernel.vm.drop_caches", "3", "is not among"),
        ("kernel.net.core.../../kernel/core_pattern", "x", "is not among"),
        ("sys.kernel.debug.x", "1", "is not among"),
        ("device.address", "1", "is not among"),
        (RMEM, "1, 2", "kernel.net.ipv4.tcp_rmem: '1, 2' is not words"),
        (RMEM, "1\n2", "is not words"),
        (RMEM, "", "is not words"),
    ],
)
def test_what_may_not_be_set(name: str, value: str, says: str) -> None:
    with pytest.raises(UsageError, match=r"kernel\.|sys\.|device\.") as caught:
        check_values({name: value})
    assert says in str(caught.value)


def test_what_this_user_cannot_set_is_refused_here(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    here = set_here_of(make_testbed())
    (tmp_path / "net/ipv4").mkdir(parents=True)
    (tmp_path / "net/ipv4/tcp_rmem").touch()
    monkeypatch.setattr(kernel, "_PROC_SYS", tmp_path)
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert here("h1", RMEM) == Refusal(code=Reason.PERMISSION, reason=f"only root may set {RMEM} (run cadge with sudo)")
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    assert here("h1", RMEM) is None

    def read_only(path: Path, _flags: int) -> int:
        raise OSError(30, os.strerror(30), path)

    monkeypatch.setattr(os, "open", read_only)
    found = here("h1", RMEM)
    assert found is not None
    assert (found.code, found.reason.partition(" (")[0]) == (Reason.PERMISSION, f"{RMEM} cannot be set on this machine")
    assert "Read-only file system" in found.reason
    lacking = here("h1", "kernel.net.core.busy_poll")
    assert lacking is not None
    assert (lacking.code, lacking.reason.partition(" (")[0]) == (
        Reason.NODE_LACKS,
        "this kernel has no kernel.net.core.busy_poll",
    )


def test_what_an_inventory_says_of_hosts() -> None:
    variables: dict[str, dict[str, object]] = {
        "h1": {"ansible_user": "root"},
        "h2": {"ansible_user": "alice"},
        "h3": {"ansible_user": "root", "cadge_tunable": "no"},  # as an INI file says it
        "h4": {"ansible_user": "alice", "ansible_become": True},
    }
    where = set_here_of(replace(make_testbed(TestbedKind.CLUSTER), host_variables=variables))
    said = [one and one.reason for one in (where(host, RMEM) for host in variables)]
    assert said == [
        None,
        f"only root may set {RMEM}, and alice logs in to h2: set ansible_user there",
        f"the inventory forbids {RMEM} on h3 (cadge_tunable: false)",
        None,
    ]


def test_refused_points_say_why_and_two_sides_need_both(catalogue: Catalogue, site: PlanSite) -> None:
    why = Refusal(code=Reason.PERMISSION, reason="nobody may")
    closed = replace(site, set_here=lambda host, name: why if (host, name) == ("h1", RMEM) else None)
    pair = chosen_pair(catalogue, {}, ("default", f"{RMEM}=1 2 3"), ["a-one"])
    assert pair is not None
    assert pair.variants == ("()", f"({RMEM}=1 2 3)")
    sweep = paired_sweep(tiny(floors=False, launches=9), pair, 0.05)
    plan = make_plan(sweep, catalogue, WORKLOADS, closed)
    refused = {(point.subject.label, point.reason, point.reason_code) for point in plan.points if point.reason}
    assert refused == {(f"a-one ({RMEM}=1 2 3)", "nobody may", Reason.PERMISSION)}
    with pytest.raises(NothingSelectedError, match=r"on both sides: a-one \(.*\): nobody may"):
        check_sides(SWEEP, plan)
    check_sides("tiny", plan)
    check_sides(SWEEP, make_plan(sweep, catalogue, WORKLOADS, site))


def test_a_value_of_the_data_device_is_for_place_between(catalogue: Catalogue, site: PlanSite) -> None:
    layers = ["a-one", {"layer": "a-one", "settings": {"device.gro_flush_timeout": "20000"}}]
    plan = make_plan(tiny(layers=layers, floors=False), catalogue, WORKLOADS, site)
    given = [point for point in plan.points if point.subject.settings]
    assert {(point.subject.place, point.state) for point in given} == {("within", "refused"), ("between", "planned")}


def judged(*hosts: HostKernel) -> str | None:
    """Return what is wrong with the values of a launch that asks for one."""
    made = record()
    launch = made.launch.model_copy(update={"settings": ((RMEM, "1 2 3"),)})
    made = made.model_copy(update={"launch": launch, "kernel": hosts})
    return next(one.detail for one in crosschecks(made) if one.name == "kernel_values")


def test_a_value_that_changed_or_was_not_set_makes_a_launch_unsound() -> None:
    one = HostKernel(host="h1", before={RMEM: "9 9 9"}, during={RMEM: "1 2 3"}, after={RMEM: "1 2 3"})
    assert judged(one) == ""
    assert judged(one.model_copy(update={"after": {RMEM: "9 9 9"}})) == (
        f"h1: {RMEM} was 1 2 3, and 9 9 9 at the end of the launch"
    )
    assert judged() == f"nobody set {RMEM}"
    assert not [one for one in crosschecks(record()) if one.name == "kernel_values"]


def test_doctor_finds_what_a_killed_campaign_left(tmp_path: Path) -> None:
    folder = tmp_path / "kernel"
    folder.mkdir()
    boot = BOOT.read_text().strip()
    text = json.dumps({"campaign": "c1", "values": [[RMEM, "/x", False, "1 2 3"]]})
    for name in (f"m.{boot}.machine.json", f"m.{boot}.emulated-7.json", "m.another.machine.json"):
        (folder / name).write_text(text)
    [found] = _kernel_left(tmp_path)
    assert found.text == (f"campaign c1 was killed, and its values of the kernel are still set: {RMEM} (was 1 2 3)")
    assert found.fix.endswith("testbed restore c1")
    with (folder / f"m.{boot}.machine.json").open() as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        assert not list(_kernel_left(tmp_path))


def test_a_value_that_cannot_be_set_back_stays_in_its_journal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "value"
    file.write_text("always [madvise] never")
    monkeypatch.setattr(of_agent, "file_of", lambda _name, _device: file)
    values = of_agent.KernelValues(tmp_path / "work", "h1", "data0", "c1")
    values.set({RMEM: "2  3", "nodelay": "1"}, of_machine=False)
    assert values.report()["during"] == {}
    values.set({RMEM: "2"}, of_machine=True)
    found = values.report()
    assert (found["before"], found["during"], found["after"]) == ({RMEM: "madvise"}, {RMEM: "2"}, {RMEM: "2"})
    file.unlink()
    file.mkdir()
    assert values.restore() == [f"h1: {RMEM} ({file}) cannot be set back to madvise: Is a directory"]
    assert list(of_agent.left(tmp_path / "work")) == [f"{RMEM} (was madvise)"]
    file.rmdir()
    file.write_text("2")
    assert of_agent.restore_left(tmp_path / "work") == ([RMEM], [])
    assert file.read_text() == "madvise"
    assert not (tmp_path / "kernel").exists()


def test_a_value_that_does_not_stick_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "value"
    file.write_text("1")
    monkeypatch.setattr(of_agent, "file_of", lambda _name, _device: file)
    values = of_agent.KernelValues(tmp_path / "work", "h1", "data0", "c1")
    answers = iter(["1", "1", "1024"])  # to 2, back to 1, to 1000
    monkeypatch.setattr(of_agent._Value, "write", lambda _self, _value: next(answers))
    with pytest.raises(of_agent.LaunchFailedError, match=f"h1: {RMEM} stays 1, not 2") as caught:
        values.set({RMEM: "2"}, of_machine=True)
    assert caught.value.code == "NODE_LACKS"
    assert values.restore() == []
    values.set({RMEM: "1000"}, of_machine=True)
    assert values.report()["during"] == {RMEM: "1024"}  # rounded, as the record says
