# SPDX-License-Identifier: BSD-3-Clause
"""The command that starts a launch's endpoints as ranks, on all of its hosts."""

from __future__ import annotations

import os
import shlex
import shutil
from collections.abc import Mapping

from cadge_agent.block import hosts_of
from cadge_agent.child import MARK
from cadge_agent.environment import OF_SSH, shell_environment
from cadge_agent.errors import LaunchFailedError
from cadge_agent.formats import Launch, Programs
from cadge_agent.site import Site, endpoint_command


def mpi_environment(site: Site, launch: Launch) -> dict[str, str]:
    """Return the environment of mpirun."""
    own = site.environment()
    if len(hosts_of([launch])) > 1:
        own.update({name: os.environ[name] for name in OF_SSH if name in os.environ})
    if os.geteuid() == 0:  # only there: a user's mpirun is not told to allow what he is not
        for prefix in ("OMPI", "PRTE"):
            own[f"{prefix}_ALLOW_RUN_AS_ROOT"] = "1"
            own[f"{prefix}_ALLOW_RUN_AS_ROOT_CONFIRM"] = "1"
    return own


def mpi_command(site: Site, launch: Launch, programs: Mapping[str, Programs], oob: str) -> list[str]:
    """Return the command. Raises LaunchFailedError where there is no mpirun."""
    mpirun = site.block["mpirun"]
    program = shutil.which(mpirun["path"], path=site.environment()["PATH"])
    if program is None:
        raise LaunchFailedError("NODE_LACKS", f"{site.name} has no program {mpirun['path']}")
    # The driver pins. Bound to a core, a library's own threads have no other; Open MPI 5 refuses more ranks than cores.
    argv = [program, "--bind-to", "none", *mpirun["options"]]
    hosts = hosts_of([launch])
    of_host = {host: _endpoints_of(launch, host) for host in hosts}
    count = len(launch["endpoints"])
    if hosts == [site.name]:
        where = f"localhost:{count}"
    else:
        where = ",".join(f"{host}:{len(numbers)}" for host, numbers in of_host.items())
        if site.management_network:
            argv += ["--mca", "oob_tcp_if_include", site.management_network]
    return [*argv, "-n", str(count), "--host", where, "-x", MARK, "sh", "-c", _script(site, launch, programs, oob)]


def _endpoints_of(launch: Launch, host: str) -> list[int]:
    return [number for number, endpoint in enumerate(launch["endpoints"]) if endpoint["host"] == host]


def _script(site: Site, launch: Launch, programs: Mapping[str, Programs], oob: str) -> str:
    """Return one command for all ranks, which looks at its own: PMIx 5.0.7 crashes over several joined by ':'.

    mpirun fills one host after the other with ranks, so the endpoints are counted in that order.
    """
    hosts = hosts_of([launch])
    order = [number for host in hosts for number in _endpoints_of(launch, host)]
    cases = []
    for host in hosts:
        numbers = "|".join(map(str, _endpoints_of(launch, host)))
        own = programs[host]
        variables = {name: value for name, value in own["environment"].items() if name != MARK}
        around = shell_environment(variables, own["folder"], MARK, started_by_login=host != site.name)
        words = " ".join(map(shlex.quote, endpoint_command(own, oob)))
        cases.append(f'{numbers}) {around}; exec {words} --endpoint "$@";;')
    result = shlex.quote(str(site.result_file(launch)))
    return (
        f"set -- {' '.join(map(str, order))}; shift $OMPI_COMM_WORLD_RANK; "
        f"case $1 in 0) set -- 0 --out {result};; *) set -- $1;; esac; "
        f"case $1 in {' '.join(cases)} esac; exit 70"
    )
