# SPDX-License-Identifier: BSD-3-Clause
"""Commands as steps of a Slurm job: `step --job ID --srun PROGRAM -- [ssh's options] HOST COMMAND...`.

A command runs on a host as a step of the job, so that the node needs no daemon, no key and no open port. Ansible calls
this in place of ssh (ansible_ssh_executable), and so do launchers of ranks. With --hosts, one step runs the command on
all of them.
"""

from __future__ import annotations

import argparse
import os
import pwd
import sys
from collections.abc import Sequence
from pathlib import Path

from cadge_agent.environment import SYSTEM_PATH

WITH_VALUE = "BbcDEeFIiJLlmOopQRSWw"
"""Letters of ssh's options that take a value, see ssh(1)."""
OPTIONS = ("--quiet", "--overlap", "--mem=0", "--cpu-bind=none", "--overcommit", "--export=ALL", "--chdir=/")
"""--overlap: beside the steps that run already. --cpu-bind=none: a step has all processors of the job on its node.
--overcommit: it may have more tasks than these."""

OWN = "agent"
"""First word of a block's ssh that means this agent's own file: `agent step ...`."""


def in_place_of_ssh(words: Sequence[str]) -> tuple[str, ...]:
    """Return the command by which launchers reach hosts; only here is known where the agent's file lies."""
    if words[:1] == [OWN]:
        return (sys.executable, str(Path(sys.argv[0]).resolve()), *words[1:])
    return tuple(words)


def step_options(job: str, hosts: Sequence[str], *, mpi: str = "none") -> list[str]:
    """Return srun's options for a step with a task for each host, in this order; a host may occur again."""
    argv = [*OPTIONS, f"--mpi={mpi}", f"--jobid={job}", f"--ntasks={len(hosts)}"]
    if len(set(hosts)) == 1:
        return [*argv, "--nodes=1", f"--nodelist={hosts[0]}"]
    # Slurm 24.11 refuses a number of nodes beside them
    return [*argv, "--distribution=arbitrary", f"--nodelist={','.join(hosts)}"]


def split_words(words: Sequence[str]) -> tuple[str, str]:
    """Return host and command of ssh's arguments; no host where they are an order to a control master (-O)."""
    at = 0
    while at < len(words) and words[at].startswith("-"):
        flag = words[at]
        if flag == "--":
            at += 1
            break
        if flag.startswith("-O"):
            return "", ""
        at += 2 if len(flag) == 2 and flag[1] in WITH_VALUE else 1
    rest = [word for word in words[at + 1 :] if word not in ("-tt", "-T")]
    return (words[at].rpartition("@")[2] if at < len(words) else ""), " ".join(rest[rest[:1] == ["--"] :])


def step(arguments: argparse.Namespace) -> int:
    """Become srun. Returns 0 where there is nothing to run, 255 as ssh does where srun cannot be started."""
    words = arguments.words[arguments.words[:1] == ["--"] :]
    host, command = split_words(words) if not arguments.hosts else (arguments.hosts, " ".join(words))
    if not host:
        return 0
    argv = [arguments.srun, *step_options(arguments.job, host.split(","), mpi=arguments.mpi)]
    if arguments.hosts:
        argv.append("--label")
    try:
        shell = ["/bin/sh", "-c", f"cd; {command}"]
        os.execve(arguments.srun, [*argv, *shell], _of_a_login(arguments.conf))  # noqa: S606 - srun asks for none
    except OSError as error:
        sys.stderr.write(f"{arguments.srun}: {error.strerror}\n")
    return 255


def _of_a_login(conf: str) -> dict[str, str]:
    """Return the variables that a login has: srun would take its own step from SLURM_*, and hand on everything."""
    user = pwd.getpwuid(os.getuid())
    own = {"HOME": user.pw_dir, "USER": user.pw_name, "LOGNAME": user.pw_name, "SHELL": user.pw_shell}
    language = {name: os.environ[name] for name in ("LANG", "LC_ALL") if name in os.environ}
    return {**own, **language, "PATH": SYSTEM_PATH, **({"SLURM_CONF": conf} if conf else {})}
