# SPDX-License-Identifier: BSD-3-Clause
"""The programs that start ranks, and how each is spoken to: which one it is, it says itself."""

from __future__ import annotations

import contextlib
import os
import re
import shlex
import socket
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Callable

from cadge_agent.errors import LaunchFailedError
from cadge_agent.step import OWN, RETRY_S, own_command, step_options

ANSWER_S = 20


@dataclass(frozen=True)
class RankPlan:
    """Ranks to start: how many on each host, in this order; no hosts: all of them here.

    network, address: of this host, where the launcher's own processes find each other. ssh: the command that reaches
    hosts, empty for the launcher's own. mark: the variable by which what was started is found.
    """

    count: int
    hosts: Mapping[str, int]
    network: str | None
    address: str
    ssh: Sequence[str]
    mark: str


@dataclass(frozen=True)
class Launcher:
    """One kind of launcher. says: what its `--version` holds. rank: the variable that tells a rank its number.

    keeps: variables that ranks need beside those of OF_LAUNCHERS, as a pattern of sh. version: as it says. before: what
    starts the launcher. patience_s: how long that may wait before a rank starts; drivers have deadlines of their own.
    """

    says: str
    rank: str
    options: Callable[[RankPlan], list[str]]
    variables: Callable[[RankPlan], dict[str, str]]
    keeps: str = ""
    version: str = ""
    before: Callable[[], Sequence[str]] = tuple
    patience_s: float = 0.0


def _open_mpi(wanted: RankPlan) -> list[str]:
    # The driver pins. Bound to a core, a library's own threads have no other; Open MPI 5 refuses more ranks than cores.
    argv = ["--bind-to", "none"]
    if wanted.ssh:
        # Open MPI 4 reads plm_rsh_agent; Open MPI 5 takes it too and hands it to PRRTE as plm_ssh_agent
        argv += ["--mca", "plm_rsh_agent", " ".join(wanted.ssh)]
    if wanted.hosts and wanted.network:
        argv += ["--mca", "oob_tcp_if_include", wanted.network]
    hosts = wanted.hosts or {"localhost": wanted.count}
    where = ",".join(f"{host}:{count}" for host, count in hosts.items())
    return [*argv, "-n", str(wanted.count), "--host", where, "-x", wanted.mark]


def _of_open_mpi(wanted: RankPlan) -> dict[str, str]:
    """Return what keeps host names whole: else Open MPI 4 calls `ssh node-5` for node-5.example.org.

    Open MPI 5 and hydra keep them anyway.
    """
    return {"OMPI_MCA_orte_keep_fqdn_hostnames": "1"} if wanted.hosts else {}


def _hydra(wanted: RankPlan) -> list[str]:
    # It hands on its whole environment, and tells a host's ranks from the order of -hosts.
    argv = ["-bind-to", "none"]
    if not wanted.hosts:
        return [*argv, "-launcher", "fork", "-n", str(wanted.count)]
    where = ",".join(f"{host}:{count}" for host, count in wanted.hosts.items())
    argv += ["-launcher", "ssh", *(["-launcher-exec", wanted.ssh[0]] if wanted.ssh else [])]
    return [*argv, "-localhost", wanted.address, "-hosts", where, "-n", str(wanted.count)]


def _of_hydra(wanted: RankPlan) -> dict[str, str]:
    return {"HYDRA_LAUNCHER_EXTRA_ARGS": shlex.join(wanted.ssh[1:])} if len(wanted.ssh) > 1 else {}


def _srun(wanted: RankPlan) -> list[str]:
    # This agent is a task of the same job, whose number and node srun has told it.
    hosts = wanted.hosts or {os.environ.get("SLURMD_NODENAME", ""): wanted.count}
    each = [host for host, count in hosts.items() for _ in range(count)]
    return [*step_options(os.environ.get("SLURM_JOB_ID", ""), each, mpi="pmix"), "--kill-on-bad-exit=1"]


def _of_slurm(_wanted: RankPlan | None = None) -> dict[str, str]:
    return {"SLURM_CONF": os.environ["SLURM_CONF"]} if "SLURM_CONF" in os.environ else {}


LAUNCHERS = (
    Launcher("Open MPI", "OMPI_COMM_WORLD_RANK", _open_mpi, _of_open_mpi),
    Launcher("HYDRA", "PMI_RANK", _hydra, _of_hydra),
    Launcher(
        "slurm",
        "SLURM_PROCID",
        _srun,
        _of_slurm,
        "SLURM_*",
        before=lambda: own_command("slurm"),
        patience_s=RETRY_S,
    ),
)


def reached_as(ssh: Sequence[str], name: str, address: str) -> str:
    """Return what a launcher calls a host: its name in the inventory, or its address where nothing here knows that.

    An inventory may call a host as only the controller's ssh understands, behind a jump host. ssh: as a block has it.
    """
    if {OWN, "-F"} & {*ssh}:  # that command knows the inventory's names
        return name
    with contextlib.suppress(OSError):
        socket.getaddrinfo(name, None)
        return name
    return address


_known: dict[str, Launcher] = {}


def launcher_at(program: str, environment: Mapping[str, str]) -> Launcher:
    """Ask a program which launcher it is, once. Raises LaunchFailedError."""
    if program not in _known:
        _known[program] = _asked(program, environment)
    return _known[program]


def _asked(program: str, environment: Mapping[str, str]) -> Launcher:
    try:
        done = subprocess.run(
            [program, "--version"],
            env={**environment, **_of_slurm()},  # srun 24.11 reads its configuration even then
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=ANSWER_S,
            check=False,
        )
    except (OSError, subprocess.SubprocessError) as error:
        raise LaunchFailedError("NODE_LACKS", f"{program} does not say which launcher it is: {error}") from error
    said = done.stdout.decode(errors="replace")
    for launcher in LAUNCHERS:
        if launcher.says in said:
            version = re.search(r"\d+\.\d[\w.]*", said)
            return replace(launcher, version=version[0] if version else "")
    known = " nor ".join(launcher.says for launcher in LAUNCHERS)
    raise LaunchFailedError("NODE_LACKS", f"{program} is neither {known}; it says: {' '.join(said.split())[:80]}")
