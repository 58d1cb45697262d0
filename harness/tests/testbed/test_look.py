# SPDX-License-Identifier: BSD-3-Clause
"""`cadge doctor --inventory`: every host of an inventory is looked at, whatever is wrong with the others."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from agent_helpers import host_process

from cadge_harness.testbed import testbeds
from cadge_harness.testbed.model import Testbed

Json = dict[str, Any]
Inside = Callable[..., subprocess.CompletedProcess[str]]

AGED = 'import sys; sys.version_info = (3, 7, 3); sys.version = "3.7.3 (old)"; exec(sys.argv[1])'
OLD_PYTHON = f"#!/bin/sh\nexec /usr/bin/python3 -c '{AGED}' \"$2\"\n"
LATE_CLOCK = "import time\nnow_ns = time.time_ns\ntime.time_ns = lambda: now_ns() - 37_200_000_000\n"
"""The clock is the kernel's, and the same for all emulated hosts: one host's Python reads it so much late."""
# TCP by its number: its name stands in a file that a small machine lacks.
DROPPED = "iif data0 ipproto 6 dport 18600-18699 blackhole"


def stale_build(build: Path, folder: Path) -> Path:
    """A build whose driver is of another revision, with a layer that lacks its library, and without one of ours."""
    shutil.copytree(build, folder)
    driver = folder / "bin/cadge-driver"
    driver.write_text(driver.read_text().replace('"revision": "fake"', '"revision": "older"'))
    (folder / "layers/null.so").unlink()
    for name in ("a-one", "b-one"):
        reason = f"layer '{name}' cannot be loaded: libone.so.1: cannot open shared object file"
        (folder / f"layers/{name}.so").write_text(json.dumps({"table": None, "reason": reason}))
    (folder / "layers/c-two.so").touch()
    return folder


@pytest.mark.long
def test_hosts_of_which_most_are_unfit(emulated: Testbed, inside: Inside, fake_build: Path, tmp_path: Path) -> None:
    """One run for all: a sound host, a dead one, two without a Python of use, one with much that is wrong."""
    hosts = json.loads(emulated.inventory_path.read_text())["cadge"]["hosts"]
    old = tmp_path / "python3"
    old.write_text(OLD_PYTHON)
    old.chmod(0o755)
    for number, (name, change) in enumerate(
        {
            "dead": {"ansible_host": "198.18.0.99"},
            "bare": {"ansible_python_interpreter": "/opt/no such/python3"},
            "old": {"ansible_python_interpreter": str(old)},
        }.items(),
        21,
    ):
        own = {"cadge_management_address": f"198.18.0.{number}", "cadge_address": f"198.19.0.{number}"}
        hosts[name] = {**hosts["h1"], **own, **change}
    stale = stale_build(fake_build, tmp_path / "stale")
    hosts["h2"].update(cadge_device="nosuch0", cadge_cpus=[0, 8000], cadge_build_path=str(stale))
    inventory = tmp_path / "lab.json"
    inventory.write_text(json.dumps({"cadge": {"hosts": hosts}}))
    environment = [f"CADGE_BUILD={fake_build}", f"CADGE_STATE={os.environ['CADGE_STATE']}"]
    command = [sys.executable, "-m", "cadge_cli.cli", "doctor", "--inventory", str(inventory), "--json"]
    done = inside("env", *environment, *command, check=False)
    assert done.returncode == 3, done.stderr
    data: Json = json.loads(done.stdout)["data"]
    assert (
        data["hosts"]["h1"].items()
        >= {
            "login": "yes",
            "build": "0.1.0 fake",
            "layers": "1 of 1",
            "address": "198.19.0.11",
            "ports": "100 of 100 free",
            "other hosts": "1 of 4 reached",
        }.items()
    )
    assert data["hosts"]["h1"]["device"].startswith("data0, up, MTU ")
    assert data["hosts"]["h1"]["clock, from here"].startswith("within "), "it is the same clock"
    assert data["hosts"]["h2"].items() >= {"build": "0.1.0 older", "device": "nosuch0: NO", "layers": "1 of 3"}.items()
    assert [(data["hosts"][name]["login"], data["hosts"][name]["python"]) for name in ("dead", "bare", "old")] == [
        ("NO", "-"),
        ("yes", "NO"),
        ("yes", "NO"),
    ]
    found = {finding["text"]: finding for finding in data["findings"] if finding["code"] >= "D60"}
    for level, text, fix in (
        ("fail", r"h2 has no device nosuch0; it has (.+, )?data0, .+", "Set its cadge_device in the inventory"),
        ("fail", r"h2 has no processor 8000 for this user; it has 0.*", "Set its cadge_cpus in the inventory"),
        (
            "fail",
            rf"the build on h2, {stale}, differs from this machine's: revision older where ours has fake",
            "Bui",
        ),
        ("warn", r"h2 cannot use a-one, b-one: libone.so.1: cannot open shared object file", "Where a library is"),
        ("fail", r"dead cannot be reached: .*198\.18\.0\.99.*", "Check once by hand: ssh dead true"),
        ("fail", r"bare: there is no /opt/no such/python3", "Install Python there, or set ansible_python_interpreter"),
        ("fail", r"old: .+ is Python 3\.7\.3, and 3\.9 or later is needed", "Install Python there, or set ansible_"),
    ):
        (one,) = [found.pop(key) for key in list(found) if re.fullmatch(text, key)] or [{}]
        assert one.get("level") == level, (text, data["findings"])
        assert one["fix"].startswith(fix)
    assert not found, "nothing is wrong with the sound host"
    # Another test may look at its hosts meanwhile.
    deadline = time.monotonic() + 60
    while left := [*(Path.home() / ".cache/cadge").glob("look-*")]:
        assert time.monotonic() < deadline, left
        time.sleep(0.5)


@pytest.mark.long
def test_a_firewall_that_drops_and_a_clock_that_is_late(
    emulated: Testbed, inside: Inside, fake_build: Path, tmp_path: Path
) -> None:
    """h2 answers nobody who comes by the data network to the inventory's ports, and lives in the past."""
    if os.geteuid() != 0:
        pytest.skip("enters a host's network namespace directly, as root")
    late = tmp_path / "python3"
    late.write_text(f'#!/bin/sh\nPYTHONPATH={tmp_path} exec /usr/bin/python3 "$@"\n')
    late.chmod(0o755)
    (tmp_path / "sitecustomize.py").write_text(LATE_CLOCK)
    hosts = json.loads(emulated.inventory_path.read_text())["cadge"]["hosts"]
    hosts = {name: hosts[name] for name in ("h1", "h2")}
    hosts["h2"]["ansible_python_interpreter"] = str(late)
    inventory = tmp_path / "lab.json"
    inventory.write_text(json.dumps({"cadge": {"hosts": hosts}}))
    command = [sys.executable, "-m", "cadge_cli.cli", "doctor", "--inventory", str(inventory), "--json"]
    environment = [f"CADGE_BUILD={fake_build}", f"CADGE_STATE={os.environ['CADGE_STATE']}"]
    h2 = ["nsenter", "-t", str(host_process(testbeds.status()["pid"], "h2")), "--net", "--", "ip", "rule"]
    # Rules go by their numbers, and that of the host's own addresses has the first.
    wall = ("add pref 2 lookup local", "del pref 0", f"add pref 1 {DROPPED}")
    gone = ("del pref 2", "add pref 0 lookup local", f"del pref 1 {DROPPED}")
    to_undo: list[str] = []
    try:
        for rule, undo in zip(wall, gone, strict=True):
            subprocess.run([*h2, *rule.split()], check=True)
            to_undo.insert(0, undo)
        done = inside("env", *environment, *command, check=False)
    finally:
        for undo in to_undo:
            subprocess.run([*h2, *undo.split()], check=True)
    assert done.returncode == 3, done.stderr
    data: Json = json.loads(done.stdout)["data"]
    assert [data["hosts"][name]["other hosts"] for name in ("h1", "h2")] == ["0 of 1 reached", "1 of 1 reached"]
    found = {finding["text"]: finding for finding in data["findings"] if finding["code"] >= "D60"}
    for level, text, fix in (
        ("fail", r"h1 does not reach h2 at 198\.19\.0\.12, port 186\d\d: no answer within 5 s", "Open the ports"),
        ("warn", r"the clock of h2 is 37\.[12] s behind that of h1: records of both mix times", "Let both take"),
    ):
        (one,) = [found.pop(key) for key in list(found) if re.fullmatch(text, key)] or [{}]
        assert one.get("level") == level, (text, data["findings"])
        assert one["fix"].startswith(fix)
    assert not found, "nothing else is wrong"
