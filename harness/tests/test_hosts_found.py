# SPDX-License-Identifier: BSD-3-Clause
"""What a look at hosts means, and how `cadge doctor` and `cadge plan` show it."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from cadge_cli import hosts
from cadge_cli.words import say
from cadge_harness.paths import Checkout
from cadge_harness.run.findings import NeededProgram
from cadge_harness.run.host_findings import HostsSummary, OwnBuild, read_survey
from cadge_harness.run.survey import Offset, Survey
from cadge_harness.testbed.model import Testbed
from cadge_results.formats.event import Fault, HostReport, LayerReport, ReachReport

from .conftest import Answer, make_testbed

Json = dict[str, Any]
Cadge = Callable[..., Answer]
DRIVER: Json = {"version": "0.2.0", "abi": 1, "schema": "cadge.result/2", "revision": "abc", "machine": "x86_64"}
OWN = OwnBuild(driver=DRIVER, layers=frozenset({"a-one", "b-two"}))


def looked(host: str, **change: Any) -> HostReport:  # noqa: ANN401 - of any field
    """What a host says where all is well."""
    node: Json = {
        "schema": "cadge.node/1",
        "python": "3.11.2",
        "kernel": {"release": "6.1", "machine": "x86_64"},
        "clocksource": {"current": change.pop("clock", "tsc")},
        "cores": {"allowed": [0, 1, 2, 3]},
        "interfaces": {"data0": {"mtu": "1500", "state": "up", "driver": "mlx5_core"}},
        "libraries": {
            "libucp.so.0": {"version": f"libucx0:amd64 {change.pop('ucx', '1.13.1-1')}", "build_id": "ab"},
            "libown.so": {"version": {"unknown": "no package"}, "build_id": "0123456789abcdef"},
        },
        "programs": change.pop("programs", {}),
    }
    layers = {name: LayerReport(library="One", version="1") for name in change.pop("layers", ["a-one", "b-two"])}
    given = {"driver": DRIVER, "taken_ports": [], "greets": {}, "faults": [], **change}
    return HostReport(host=host, node=node, build="/opt/cadge", layers=layers, **given)


def found(
    *said: HostReport,
    testbed: Testbed | None = None,
    own: OwnBuild = OWN,
    **more: Any,  # noqa: ANN401
) -> HostsSummary:
    """What is found where hosts say this."""
    testbed = testbed or make_testbed(hosts=len(said))
    reached = {one.host: [host.name for host in testbed.hosts if host.name != one.host] for one in said}
    survey = Survey(
        looked={one.host: one for one in said},
        reached={host: ReachReport(host=host, reached=others, faults=[]) for host, others in reached.items()},
        **more,
    )
    return read_survey(survey, testbed, own)


def texts(what: HostsSummary) -> list[tuple[str, str, str]]:
    return [(host, finding.level, finding.text) for host, finding in what.findings]


def test_sound_hosts() -> None:
    what = found(looked("h1"), looked("h2"), offsets={"h1": Offset(offset_ns=150_000_000, error_ns=200_000)})
    assert texts(what) == []
    assert {row: cells["h1"] for row, cells in what.rows} == {
        "login": "yes",
        "python": "3.11.2",
        "system": "6.1, x86_64",
        "build": "0.2.0 abc",
        "layers": "2 of 2",
        "device": "data0, up, MTU 1500, mlx5_core",
        "address": "198.19.0.11",
        "processors": "0, 1 of 4 there",
        "clock": "tsc",
        "clock, from here": "+150.0 ms, +-0.2",
        "ports": "100 of 100 free",
        "other hosts": "1 of 1 reached",
        "libown.so": "build 0123456789ab",
        "libucx0": "1.13.1-1",
    }


def test_builds_that_differ() -> None:
    older, other = {**DRIVER, "revision": "old"}, {**DRIVER, "abi": 2}
    said = "the build on h2, /opt/cadge, differs from this machine's: "
    stale = [("h2", "fail", said + "revision old where ours has abc")]
    assert texts(found(looked("h1"), looked("h2", driver=older))) == stale
    same = texts(found(looked("h1", driver=older), looked("h2", driver=older)))
    assert [(host, level) for host, level, _ in same] == [("h1", "warn"), ("h2", "warn")], "they fit each other"
    formats = texts(found(looked("h1", driver=other), looked("h2", driver=other)))
    assert formats[1] == ("h2", "fail", said + "abi 2 where ours has 1")
    assert texts(found(looked("h1"), looked("h2", layers=["b-two", "c-own"]))) == [
        ("h2", "warn", "the build on h2, /opt/cadge, lacks 1 layer: a-one")
    ]


def test_clocks_that_differ() -> None:
    def offsets(**seconds: float) -> dict[str, Offset]:
        return {host: Offset(offset_ns=int(value * 1e9), error_ns=10**6) for host, value in seconds.items()}

    pair = looked("h1"), looked("h2")
    assert texts(found(*pair, offsets=offsets(h1=100.0, h2=100.9))) == [], "only this machine's is wrong"
    assert texts(found(*pair, offsets=offsets(h1=0.0, h2=-37.25))) == [
        ("h2", "warn", "the clock of h2 is 37.2 s behind that of h1: records of both mix times")
    ]
    assert texts(found(looked("h1"), looked("h2", clock="hpet"))) == [
        ("h2", "warn", "the clock source of h2 is hpet, and reading it takes microseconds"),
        ("", "warn", "the clock sources differ: tsc on h1, hpet on h2"),
    ]


def test_libraries_that_differ() -> None:
    what = found(looked("h1"), looked("h2", ucx="1.15.0-1"))
    said = "libucp.so.0 differs between hosts: libucx0:amd64 1.13.1-1 on h1, libucx0:amd64 1.15.0-1 on h2"
    assert texts(what) == [("", "warn", said)]
    assert dict(what.rows)["libucx0"] == {"h1": "1.13.1-1", "h2": "1.15.0-1"}


def test_programs_that_hosts_lack() -> None:
    points = "made-up with server: web"
    own = replace(OWN, programs=(NeededProgram(program="web", package="web-server", points=points),))

    def host(name: str, version: object) -> HostReport:
        return looked(
            name, programs={"web": {"version": version, "file": "/usr/sbin/web", "build_id": "0123456789abcdef"}}
        )

    lacks = looked("h2", programs={"web": {"unknown": "not found"}})
    what = found(host("h1", "web 1.2-3"), lacks, own=own)
    assert texts(what) == [("h2", "skip", f"web is missing on h2: {points} is refused there")]
    assert "web-server" in what.findings[0][1].fix
    assert dict(what.rows)["web"] == {"h1": "1.2-3", "h2": "NO"}
    what = found(host("h1", "web 1.2-3"), host("h2", "web 1.4-1"), own=own)
    assert texts(what) == [("", "warn", "web differs between hosts: web 1.2-3 on h1, web 1.4-1 on h2")]
    what = found(host("h1", {"unknown": "no package"}), own=own)
    assert dict(what.rows)["web"] == {"h1": "build 0123456789ab"}


def test_what_hosts_say_is_printable() -> None:
    fault = Fault(about="\x1b[2J", text="h1\x1b[2J\n", fix="\x07")
    what = found(looked("h1", ucx="\x1b[31m1", driver={**DRIVER, "version": "\x1b"}, faults=[fault]))
    assert all(cell.isprintable() and row.isprintable() for row, cells in what.rows for cell in cells.values())
    assert all((finding.text + finding.fix).isprintable() for _, finding in what.findings)


DEAD = {"h2": [Fault(about="login", text="h2 cannot be reached: no route", fix="Check once by hand: ssh h2 true")]}


def test_a_column_a_host_where_they_fit() -> None:
    what = found(looked("h1"), testbed=make_testbed(hosts=2), faults=DEAD)
    wide = hosts.side_by_side(what, 120)
    assert wide[0].split() == ["h1", "h2"]
    assert ["login", "yes", "NO"] in [line.split() for line in wide]
    narrow = hosts.side_by_side(what, 40)
    assert max(map(len, narrow)) < max(map(len, wide))
    assert narrow[narrow.index("not equal:") + 1].split() == ["login", "h1", "yes"]
    assert narrow[narrow.index("not equal:") + 2].split() == ["h2", "NO"]


def test_equal_hosts_are_one_line() -> None:
    names = [f"n{number}" for number in range(1, 101)]
    cells = dict.fromkeys(names, "3.11.2")
    address = {name: f"10.0.0.{number}" for number, name in enumerate(names)}
    rows = (("python", cells), ("libc", {**cells, "n8": "2.31"}), ("address", address))
    said = hosts.side_by_side(HostsSummary(hosts=tuple(names), rows=rows, findings=()), 120)
    assert said[0] == "equal on all 100 hosts, n[1-100]:"
    assert said[1].split() == ["python", "3.11.2"]
    assert said[4].split() == ["libc", "n[1-7,9-100]", "3.11.2"]
    assert said[5].split() == ["n8", "2.31"]
    assert said[6].split() == ["address", "n[1-100]", "10.0.0.[0-99]"]
    assert len(said) == 7
    rows = (("address", {**address, "n8": "10.0.1.8: NO"}), ("libucx0", cells))
    found = HostsSummary(hosts=tuple(names), rows=rows, findings=(), packages=frozenset({"libucx0"}))
    said = hosts.side_by_side(found, 120)
    assert said[1].split()[:4] == ["libraries", "1", "of", "equal"]
    assert said[4].split() == ["address", "n1", "10.0.0.0"]
    assert said[-1].strip() == "and 96 other values"


@pytest.mark.parametrize(
    ("names", "folded"),
    [
        (["n1", "n2", "n3"], "n[1-3]"),
        (["n1", "n3", "n4", "login"], "n[1,3-4],login"),
        (["n07", "n08", "n10"], "n0[7-8],n10"),
        (["a1", "b1"], "a1,b1"),
        (["10.0.0.1"], "10.0.0.1"),
        ([], ""),
    ],
)
def test_names_in_short(names: list[str], folded: str) -> None:
    assert hosts.fold(names) == folded


@pytest.fixture
def inventory(checkout: Checkout, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """An inventory of h1, which is sound, and h2, which is dead."""
    assert checkout
    own = {"cadge_device": "data0"}
    path = tmp_path / "my hosts.json"
    names = {f"h{n}": {**own, "ansible_host": f"10.0.0.{n}", "cadge_address": f"10.1.0.{n}"} for n in (1, 2)}
    path.write_text(json.dumps({"cadge": {"hosts": names}}))
    monkeypatch.setattr(hosts, "survey", lambda *_, **__: Survey(looked={"h1": looked("h1")}, faults=DEAD))
    monkeypatch.setattr(hosts, "ask_version", lambda _: DRIVER)
    return path


@pytest.mark.long
def test_doctor_shows_all_hosts(inventory: Path, cadge: Cadge, checkout: Checkout) -> None:
    answer = cadge("doctor", "--inventory", str(inventory))
    assert answer.code == 3
    lines = answer.out.splitlines()
    assert lines[0].split() == ["h1", "h2"]
    assert "fail  D60  h2 cannot be reached: no route   fix: Check once by hand: ssh h2 true" in lines
    assert "namespaces" not in answer.out, "it is not about emulating hosts"
    data = json.loads(cadge("doctor", "--inventory", str(inventory), "--json").out)
    assert (data["ok"], data["code"], data["problems"]) == (False, 3, ["D60 h2 cannot be reached: no route"])
    assert data["data"]["hosts"]["h2"]["login"] == "NO"
    checkout.driver.unlink()
    answer = cadge("doctor", "--inventory", str(inventory))
    assert (answer.code, "fix: make build" in answer.out, "D60" in answer.out) == (3, True, False)


def test_doctor_says_what_follows(inventory: Path, cadge: Cadge, monkeypatch: pytest.MonkeyPatch) -> None:
    both = {name: looked(name) for name in ("h1", "h2")}
    monkeypatch.setattr(hosts, "survey", lambda *_, **__: Survey(looked=both))
    monkeypatch.setenv("INVENTORY", str(inventory))
    answer = cadge("doctor")
    assert answer.code == 0, answer.out
    assert answer.out.endswith(f"Next:  cadge run --sweep smoke --inventory '{inventory}'\n")


@pytest.mark.long
def test_plan_shows_the_hosts(inventory: Path, cadge: Cadge, checkout: Checkout) -> None:
    command = ("plan", "--sweep", "tiny", "--layers", "a-one", "--inventory", str(inventory))
    answer = cadge(*command)
    assert answer.code == 3
    assert answer.out.index("who runs where") < answer.out.index("login") < answer.out.index("fail  D60  h2 cannot be")
    data = json.loads(cadge(*command, "--json").out)["data"]
    assert [finding["level"] for finding in data["findings"]] == ["fail"]
    assert data["points"]["planned"] > 0
    answer = cadge(*command, "--no-look")
    assert (answer.code, "login" in answer.out) == (0, False)
    driver = checkout.driver.read_bytes()
    checkout.driver.unlink()
    answer = cadge(*command)
    assert (answer.code, "login" in answer.out) == (0, False)
    assert say("plan.no_build", fix=checkout.to_build) in answer.err
    checkout.driver.write_bytes(driver)
    sweep = checkout.sweeps / "tiny.yml"
    sweep.write_text(sweep.read_text() + "places: [within]\n")
    answer = cadge(*command)
    assert answer.code == 0, "no launch uses h2"
    assert "warn  D60  h2 cannot be reached" in answer.out
