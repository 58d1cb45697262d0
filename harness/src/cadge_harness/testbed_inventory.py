# SPDX-License-Identifier: BSD-3-Clause
"""A cluster, read from the user's own Ansible inventory: the hosts of group `cadge` and nothing else."""

from __future__ import annotations

import difflib
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from cadge_harness.errors import UnfitError, UsageError
from cadge_harness.testbed_model import DEFAULT_PORTS, Host, Kind, Testbed, is_ipv4

GROUP = "cadge"


def tool(name: str) -> str:
    """Path of an Ansible program: the one beside this Python first, so that versions are ours."""
    beside = Path(sys.executable).with_name(name)
    found = str(beside) if beside.exists() else shutil.which(name)
    if found is None:
        raise UnfitError(f"the program {name} is missing", commands=("make setup",))
    return found


def _list(path: Path) -> dict[str, Any]:
    argv = [tool("ansible-inventory"), "-i", str(path), "--list"]
    with tempfile.TemporaryDirectory(prefix="cadge-inventory-") as home:
        own = Path(home, "ansible.cfg")
        own.touch()
        # As the playbooks will see it: nothing of the user's own Ansible is read, and nothing is left in it.
        environment = {
            **{name: value for name, value in os.environ.items() if not name.startswith("ANSIBLE_")},
            "LC_ALL": "C.UTF-8",
            "ANSIBLE_CONFIG": str(own),
            "ANSIBLE_HOME": home,
            "ANSIBLE_INVENTORY_ANY_UNPARSED_IS_FAILED": "true",
            "ANSIBLE_DEPRECATION_WARNINGS": "false",
            "ANSIBLE_INVENTORY_ENABLED": "host_list,script,auto,yaml,ini,toml",
        }
        done = subprocess.run(
            argv, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, timeout=120
        )
    if done.returncode != 0:
        lines = [line for line in done.stderr.splitlines() if line.strip()]
        raise UsageError(f"{path} cannot be read as an inventory: {' '.join(lines)[-600:]}")
    listing: dict[str, Any] = json.loads(done.stdout)
    return listing


def _members(listing: dict[str, Any], group: str) -> list[str]:
    entry = listing.get(group, {})
    names = list(entry.get("hosts", []))
    for child in entry.get("children", []):
        names += [name for name in _members(listing, child) if name not in names]
    return names


def _text(variables: dict[str, Any], host: str, name: str, default: str | None = None) -> str:
    value = variables.get(name, default)
    if value is None:
        raise UsageError(f"host {host} lacks the variable {name} in the inventory")
    if not isinstance(value, str):
        raise UsageError(f"host {host}: {name} must be a text, not {value!r}")
    return value


def _host(name: str, variables: dict[str, Any]) -> Host:
    known = [key for key in variables if key.startswith("cadge_")]
    for key in known:
        if key not in _VARIABLES:
            near = difflib.get_close_matches(key, _VARIABLES, n=1)
            hint = f"; did you mean {near[0]}?" if near else ""
            raise UsageError(f"host {name}: there is no variable {key}{hint}")
    address = _text(variables, name, "cadge_address")
    if not is_ipv4(address):
        raise UsageError(f"host {name}: cadge_address must be an IPv4 address, not {address!r}")
    cpus = variables.get("cadge_cpus", [])
    if not isinstance(cpus, list) or not all(isinstance(cpu, int) and cpu >= 0 for cpu in cpus):
        raise UsageError(f"host {name}: cadge_cpus must be a list of processor numbers, not {cpus!r}")
    return Host(
        name=name,
        management_address=_text(variables, name, "cadge_management_address", variables.get("ansible_host", name)),
        device=_text(variables, name, "cadge_device"),
        address=address,
        raw_device=_text(variables, name, "cadge_raw_device", ""),
        cpus=tuple(cpus),
    )


_VARIABLES = (
    "cadge_device",
    "cadge_address",
    "cadge_management_address",
    "cadge_raw_device",
    "cadge_cpus",
    "cadge_port_first",
    "cadge_port_last",
    "cadge_build_path",
    "cadge_tunable",
)


def _ports(variables: dict[str, dict[str, Any]]) -> tuple[int, int]:
    found = set()
    for name, own in variables.items():
        first, last = own.get("cadge_port_first", DEFAULT_PORTS[0]), own.get("cadge_port_last", DEFAULT_PORTS[1])
        whole = isinstance(first, int) and isinstance(last, int)
        if not whole or not 1024 <= first <= last <= 65535 or last - first < 31:
            raise UsageError(
                f"host {name}: cadge_port_first and cadge_port_last must span at least 32 ports within 1024-65535, "
                f"not {first!r}-{last!r}"
            )
        found.add((first, last))
    if len(found) > 1:
        raise UsageError(f"the hosts of group {GROUP} must agree on cadge_port_first and cadge_port_last")
    return found.pop()


def load(path: Path) -> Testbed:
    """Read the testbed that an inventory describes. Raises UsageError for whatever is wrong in it."""
    if not path.exists():
        raise UsageError(f"there is no inventory at {path}")
    listing = _list(path)
    names = _members(listing, GROUP)
    if not names:
        groups = sorted(key for key in listing if key not in ("_meta", "all", "ungrouped"))
        near = difflib.get_close_matches(GROUP, groups, n=1)
        hint = f" Did you mean {near[0]!r} to be it?" if near else ""
        have = ", ".join(groups) if groups else "none"
        raise UsageError(f"no host matches: {path} has no host in group {GROUP!r}. Groups there: {have}.{hint}")
    everything = listing.get("_meta", {}).get("hostvars", {})
    variables = {name: dict(everything.get(name, {})) for name in names}
    hosts = tuple(_host(name, variables[name]) for name in names)
    addresses = [host.address for host in hosts]
    if len(set(addresses)) != len(addresses):
        raise UsageError("two hosts of the inventory have the same cadge_address")
    return Testbed(
        name=path.stem,
        kind=Kind.CLUSTER,
        hosts=hosts,
        inventory_path=path.resolve(),
        ports=_ports(variables),
        host_variables=variables,
    )
