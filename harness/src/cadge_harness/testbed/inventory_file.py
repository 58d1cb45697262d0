# SPDX-License-Identifier: BSD-3-Clause
"""A cluster, read from the user's own Ansible inventory: the hosts of group `cadge` and nothing else."""

from __future__ import annotations

import contextlib
import difflib
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from cadge_harness.errors import UnfitError, UsageError, named, printable, shown
from cadge_harness.paths import find_checkout
from cadge_harness.testbed.inventory_rules import HostVariables, canonical, for_example, loops_back, read_host
from cadge_harness.testbed.logins import ssh_between
from cadge_harness.testbed.model import Host, Testbed, TestbedKind
from cadge_harness.yamlbounds import INVENTORY, check_bounds, check_bytes
from cadge_results.command import command
from cadge_results.plugins.catalogue import SafeLoader

if TYPE_CHECKING:
    from collections.abc import Iterator

GROUP = "cadge"
VARIABLE_FOLDERS = ("group_vars", "host_vars")
YAML_SUFFIXES = (".yml", ".yaml", ".json", "")
"""Of files that Ansible reads as YAML, whatever they are."""
FILES_MOST = 10_000
_SENTENCES_MOST = 5


def tool(name: str) -> str:
    """Path of an Ansible program: the one beside this Python first, so that versions are ours."""
    beside = Path(sys.executable).with_name(name)
    found = str(beside) if beside.exists() else shutil.which(name)
    if found is None:
        raise UnfitError(f"the program {name} is missing", commands=(find_checkout().to_install,))
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
        raise UsageError(f"{path} cannot be read as an inventory: {printable(' '.join(lines))[-600:]}")
    listing: dict[str, Any] = json.loads(done.stdout)
    return listing


def _members(listing: dict[str, Any], group: str) -> list[str]:
    entry = listing.get(group, {})
    names = list(entry.get("hosts", []))
    for child in entry.get("children", []):
        names += [name for name in _members(listing, child) if name not in names]
    return names


def _refuse(sentences: list[str]) -> None:
    """Refuse the inventory for what is wrong with it, if anything."""
    if sentences:
        more = [f"and {len(sentences) - _SENTENCES_MOST} more"] if len(sentences) > _SENTENCES_MOST else []
        raise UsageError("\n".join([*sentences[:_SENTENCES_MOST], *more]))


def _read_hosts(variables: dict[str, dict[str, Any]]) -> tuple[HostVariables, ...]:
    """Check every host by itself, then all of them together."""
    read = [read_host(name, own) for name, own in variables.items()]
    _refuse([sentence for wrong in read if isinstance(wrong, list) for sentence in wrong])
    hosts = tuple(host for host in read if not isinstance(host, list))
    _refuse([*_shared(hosts), *_lonely(hosts)])
    return hosts


def _shared(hosts: tuple[HostVariables, ...]) -> Iterator[str]:
    """Say what two hosts have in common and must not."""
    for what, values in (
        ("name, but for capital letters", [host.inventory_hostname for host in hosts]),
        ("cadge_address", [host.cadge_address for host in hosts]),
        ("cadge_management_address", [host.management_address for host in hosts]),
    ):
        seen: dict[str, str] = {}
        for host, value in zip(hosts, values, strict=True):
            other = seen.setdefault(canonical(value), host.inventory_hostname)
            if other != host.inventory_hostname:
                yield f"hosts {other} and {host.inventory_hostname} have the same {what}: {value}"
    if len({(host.cadge_port_first, host.cadge_port_last) for host in hosts}) > 1:
        text = f"the hosts of group {GROUP} must agree on cadge_port_first and cadge_port_last"
        yield for_example(text, "cadge_port_first", "cadge_port_last")
    if len({":" in host.cadge_address for host in hosts}) > 1:
        yield f"the hosts of group {GROUP} must have cadge_address all of IPv4 or all of IPv6"


def _lonely(hosts: tuple[HostVariables, ...]) -> Iterator[str]:
    """Say which addresses of several hosts lead each host to itself."""
    if len(hosts) == 1:
        return
    for host in hosts:
        for variable, what, value in (
            ("inventory_hostname", "its name", host.inventory_hostname),
            ("cadge_address", "cadge_address", host.cadge_address),
            (
                "cadge_management_address",
                "cadge_management_address (else ansible_host, else its name)",
                host.management_address,
            ),
        ):
            if loops_back(value):
                text = f"host {host.inventory_hostname}: {what} must be one that the other hosts reach, not {value}"
                yield for_example(text, variable)


def _checked_path(path: Path) -> Path:
    """Return where the inventory is, the same for whoever reads it: its neighbours group_vars count as well."""
    try:
        found = path.resolve(strict=True)
    except (OSError, RuntimeError) as error:  # RuntimeError: a link to itself
        why = getattr(error, "strerror", None) or "too many links"
        raise UsageError(f"there is no inventory at {printable(str(path))}: {why}") from error
    for text in (str(found), path.stem):
        if not text.isprintable() or "$" in text:  # Ansible puts variables of the environment into a path
            raise UsageError(f"the path of an inventory must be printable and without '$', not {shown(text)}")
    return found


def _read_by_ansible(inventory: Path) -> Iterator[Path]:
    """Yield what Ansible may read: the inventory, and the variables of groups and hosts beside it, with folders."""
    if inventory.is_file():
        if not _is_program(inventory):
            yield inventory
        folders = [inventory.parent / name for name in VARIABLE_FOLDERS]
    else:
        folders = [inventory]  # all of its files are inventories, and the two folders lie in it
    for folder in folders:
        for parent, _, names in os.walk(folder, followlinks=True):  # folders as well: links can make them endless
            yield from (Path(parent, name) for name in (".", *sorted(names)))


def _is_program(inventory: Path) -> bool:
    """Whether Ansible runs an inventory rather than reads it."""
    try:
        with inventory.open("rb") as stream:
            return os.access(inventory, os.X_OK) and stream.read(2) == b"#!"
    except OSError:  # whoever reads it says why
        return False


def _check_bounds(inventory: Path) -> None:
    """Refuse what Ansible would not get to the end of. What is no YAML, Ansible says."""
    size_bytes = 0
    for number, path in enumerate(_read_by_ansible(inventory)):
        if number == FILES_MOST:
            raise UsageError(f"{inventory}: beside it lie more than {FILES_MOST} files in folders that Ansible reads")
        if path.suffix not in YAML_SUFFIXES or not path.is_file():
            continue
        try:
            with path.open("rb") as stream:
                content = stream.read(INVENTORY.text_bytes - size_bytes + 1)
        except OSError as error:
            raise UsageError(f"{path} cannot be read: {error.strerror}") from error
        size_bytes += len(content)
        what = str(path) if size_bytes == len(content) else f"{path}, with what lies beside it,"
        check_bytes(size_bytes, source=what, bounds=INVENTORY)
        with contextlib.suppress(yaml.YAMLError, UnicodeDecodeError):
            check_bounds(content.decode(), source=str(path), loader=SafeLoader, bounds=INVENTORY)


def load(path: Path) -> Testbed:
    """Read the testbed that an inventory describes. Raises UsageError for whatever is wrong in it."""
    found = _checked_path(path)
    _check_bounds(found)
    listing = _list(found)
    names = _members(listing, GROUP)
    if not names:
        groups = sorted(key for key in listing if key not in ("_meta", "all", "ungrouped"))
        near = difflib.get_close_matches(GROUP, groups, n=1)
        hint = f" Did you mean {shown(near[0])} to be it?" if near else ""
        have = ", ".join(map(named, groups)) if groups else "none"
        raise UsageError(
            f"no host matches: {path} has no host in group {GROUP!r}. Groups there: {have}.{hint}",
            commands=(command("testbed", "example"),),
        )
    everything = listing.get("_meta", {}).get("hostvars", {})
    variables = {name: dict(everything.get(name, {})) for name in names}
    hosts = _read_hosts(variables)
    return Testbed(
        name=path.stem or found.stem,
        kind=TestbedKind.CLUSTER,
        hosts=tuple(
            Host(
                name=host.inventory_hostname,
                management_address=host.management_address,
                device=host.cadge_device,
                address=host.cadge_address,
                raw_device=host.cadge_raw_device,
                cpus=tuple(host.cadge_cpus),
                ld_library_path=host.cadge_ld_library_path,
                opal_prefix=host.cadge_opal_prefix,
            )
            for host in hosts
        ),
        inventory_path=found,
        ports=(hosts[0].cadge_port_first, hosts[0].cadge_port_last),
        host_ssh=ssh_between(variables.values()),
        host_variables=variables,
    )
