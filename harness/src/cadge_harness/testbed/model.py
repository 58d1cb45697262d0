# SPDX-License-Identifier: BSD-3-Clause
"""What a testbed is: its hosts, how Ansible reaches them, and what can be wrong with it."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from cadge_harness.testbed.users import Use

DEFAULT_PORTS = (18600, 18699)
BY_AGENT = "agent"
"""First word of a `host_ssh` that is the agent's own file on the host, see cadge_agent/step.py."""


class TestbedKind(StrEnum):
    """What sort of testbed it is."""

    __test__ = False
    LOCAL = "local"
    EMULATED = "emulated"
    CLUSTER = "cluster"


@dataclass(frozen=True, slots=True, kw_only=True)
class Host:
    """One host of a testbed.

    `device` and `address` are those of the data network, which every layer is given. `raw_device` is a link of its
    own for AF_XDP, "" where there is none. `cpus` are the processors for the endpoints, in the order of their use;
    empty means that nothing is pinned. `ld_library_path` and `opal_prefix` are variables of its endpoints; "" where
    the inventory states none. `shm_free_bytes`: free shared memory there, None where nobody looked. `no_login`: other
    hosts that this one cannot log in to by SSH, each with the reason, as far as it was tried.
    """

    name: str
    management_address: str
    device: str
    address: str
    raw_device: str
    cpus: tuple[int, ...]
    ld_library_path: str = ""
    opal_prefix: str = ""
    shm_free_bytes: int | None = None
    no_login: tuple[tuple[str, str], ...] = ()

    @property
    def stated_variables(self) -> dict[str, str]:
        """Variables of its endpoints that the inventory states."""
        stated = {"LD_LIBRARY_PATH": self.ld_library_path, "OPAL_PREFIX": self.opal_prefix}
        return {name: value for name, value in stated.items() if value}


@dataclass(frozen=True, slots=True, kw_only=True)
class Testbed:
    """A testbed ready for use.

    exec_prefix puts a command into the testbed's network namespace ([] where there is none). It may go through sudo,
    which clears the environment and closes descriptors above 2: see `command_with_environment`.
    ssh_config is the throw-away configuration on the controller; None for a cluster, whose user has his own. host_ssh:
    the command by which mpirun on a host reaches the others, empty for its own. mpirun: the program that starts ranks
    there, unless a layer's provider brings one. ports: inclusive range that layers and
    the agent may listen on.
    use: what says that this process uses an emulated testbed. time_left_s: when its hosts are taken away.
    """

    __test__ = False
    name: str
    kind: TestbedKind
    hosts: tuple[Host, ...]
    inventory_path: Path
    exec_prefix: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    ports: tuple[int, int] = DEFAULT_PORTS
    ssh_config: Path | None = None
    host_ssh: tuple[str, ...] = ()
    mpirun: str = "mpirun"
    use: Use | None = None
    time_left_s: float | None = None
    host_variables: Mapping[str, Mapping[str, object]] = field(default_factory=dict)

    def command_with_environment(self, argv: list[str], environment: dict[str, str]) -> list[str]:
        """`argv` with exec_prefix, with exactly `environment`, whatever the prefix does to its own."""
        return [*self.exec_prefix, "env", "-i", *(f"{k}={v}" for k, v in environment.items()), *argv]
