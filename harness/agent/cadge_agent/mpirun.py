# SPDX-License-Identifier: BSD-3-Clause
"""The command that starts a launch's endpoints as ranks, on all of its hosts."""

from __future__ import annotations

import os
import shlex
import shutil
from collections.abc import Mapping
from pathlib import Path

from cadge_agent.block import hosts_of
from cadge_agent.child import MARK
from cadge_agent.environment import OF_SSH, SYSTEM_PATH, shell_environment
from cadge_agent.errors import LaunchFailedError
from cadge_agent.formats import Launch
from cadge_agent.launchers import Launcher, RankPlan, launcher_at, reached_as
from cadge_agent.orders import Programs
from cadge_agent.site import HostSite, endpoint_command
from cadge_agent.step import in_place_of_ssh


def mpi_environment(site: HostSite, launch: Launch) -> dict[str, str]:
    """Return the environment of the launcher. Raises LaunchFailedError as `mpi_command`."""
    program, launcher = _launcher(site)
    own = _with_launcher(site, program)
    own.update(launcher.variables(_wanted(site, launch)))
    if len(hosts_of([launch])) > 1:
        own.update({name: os.environ[name] for name in OF_SSH if name in os.environ})
    if os.geteuid() == 0:  # only there: a user's mpirun is not told to allow what he is not
        for prefix in ("OMPI", "PRTE"):
            own[f"{prefix}_ALLOW_RUN_AS_ROOT"] = "1"
            own[f"{prefix}_ALLOW_RUN_AS_ROOT_CONFIRM"] = "1"
    return own


def mpi_command(site: HostSite, launch: Launch, programs: Mapping[str, Programs], oob: str) -> list[str]:
    """Return the command. Raises LaunchFailedError where there is no launcher, or none that is known."""
    wanted = _wanted(site, launch)
    program, launcher = _launcher(site)
    argv = [*launcher.before(), program, *site.block["mpirun"]["options"], *launcher.options(wanted)]
    return [*argv, "sh", "-c", _script(site, launch, programs, oob, launcher)]


def started_by(site: HostSite) -> str:
    """Say which launcher starts ranks here: its name, its version, its program."""
    program, launcher = _launcher(site)
    return f"{launcher.says} {launcher.version}, {Path(program).name}"


def patience_of(site: HostSite) -> float:
    """Return how long the launcher may wait before it starts ranks, in seconds."""
    return _launcher(site)[1].patience_s


def _launcher(site: HostSite) -> tuple[str, Launcher]:
    """Return the program that starts the ranks of a launch, and which launcher it is."""
    name = (site.provider and site.provider["launcher"]) or site.block["mpirun"]["path"]
    program = shutil.which(name, path=f"{os.environ.get('PATH', '')}:{SYSTEM_PATH}")  # as the user finds it
    if program is None:
        raise LaunchFailedError("NODE_LACKS", f"{site.name} has no program {name}")
    return program, launcher_at(program, _with_launcher(site, program))


def _with_launcher(site: HostSite, program: str) -> dict[str, str]:
    """Return the variables of the launcher, which finds what it starts beside itself."""
    own = site.environment()
    folder = str(Path(program).parent)
    if folder not in own["PATH"].split(":"):
        own["PATH"] = f"{folder}:{own['PATH']}"
    return own


def _wanted(site: HostSite, launch: Launch) -> RankPlan:
    hosts = hosts_of([launch])
    counts = {} if hosts == [site.name] else {host: len(_endpoints_of(launch, host)) for host in hosts}
    return RankPlan(
        count=len(launch["endpoints"]),
        hosts={_called(site, host): count for host, count in counts.items()},
        network=site.management_network,
        address=site.host["management_address"],
        ssh=in_place_of_ssh(site.block["mpirun"].get("ssh", ())),
        mark=MARK,
    )


def _called(site: HostSite, name: str) -> str:
    address = next(host["management_address"] for host in site.block["hosts"] if host["name"] == name)
    return reached_as(site.block["mpirun"].get("ssh", ()), name, address)


def _endpoints_of(launch: Launch, host: str) -> list[int]:
    return [number for number, endpoint in enumerate(launch["endpoints"]) if endpoint["host"] == host]


def _script(site: HostSite, launch: Launch, programs: Mapping[str, Programs], oob: str, launcher: Launcher) -> str:
    """Return one command for all ranks, which looks at its own: PMIx 5.0.7 crashes over several joined by ':'.

    Launchers fill one host after the other with ranks, so the endpoints are counted in that order.
    """
    hosts = hosts_of([launch])
    order = [number for host in hosts for number in _endpoints_of(launch, host)]
    keep = "|".join(filter(None, (launcher.keeps, MARK)))
    cases = []
    for host in hosts:
        numbers = "|".join(map(str, _endpoints_of(launch, host)))
        own = programs[host]
        variables = {name: value for name, value in own["environment"].items() if name != MARK}
        around = shell_environment(variables, own["folder"], keep, started_by_login=host != site.name)
        words = " ".join(map(shlex.quote, endpoint_command(own, oob)))
        cases.append(f'{numbers}) {around}; exec {words} --endpoint "$@";;')
    result = shlex.quote(str(site.result_file(launch)))
    return (
        f"set -- {' '.join(map(str, order))}; shift ${launcher.rank}; "
        f"case $1 in 0) set -- 0 --out {result};; *) set -- $1;; esac; "
        f"case $1 in {' '.join(cases)} esac; exit 70"
    )
