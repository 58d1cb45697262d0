# SPDX-License-Identifier: BSD-3-Clause
"""The inventory that is printed to begin with: it is one, and it leaves no variable out."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import yaml

from cadge_harness.testbed import testbeds
from cadge_harness.testbed.inventory_rules import KNOWN, HostVariables

from .conftest import Answer


def test_it_is_an_inventory(cadge: Callable[..., Answer], tmp_path: Path) -> None:
    answer = cadge("testbed", "example")
    assert answer.code == 0
    path = tmp_path / "hosts.yml"
    path.write_text(answer.out)
    found = testbeds.resolve("auto", path)
    assert [(host.name, host.management_address, host.cpus) for host in found.hosts] == [
        ("n1", "10.0.0.1", (2, 3)),
        ("n2", "10.0.0.2", (2, 3)),
    ]


def test_every_variable_stands_in_it_and_may_be_given(cadge: Callable[..., Answer], tmp_path: Path) -> None:
    text = cadge("testbed", "example").out
    named = {key for key in KNOWN if key.startswith("cadge_")}
    assert set(re.findall(r"\b(cadge_\w+):", text)) == named
    whole = re.sub(r"^( +)# (\w+: )", r"\1\2", text, flags=re.MULTILINE)
    given = yaml.safe_load(whole)["cadge"]
    assert named <= given["hosts"]["n1"].keys() | given["vars"].keys()
    ports = ("cadge_port_first", "cadge_port_last")
    assert [given["vars"][name] for name in ports] == [HostVariables.model_fields[name].default for name in ports]
    path = tmp_path / "hosts.yml"
    path.write_text(whole)
    assert testbeds.resolve("auto", path).hosts[0].raw_device == "eth1"
