# SPDX-License-Identifier: BSD-3-Clause
"""Commands as steps of a Slurm job: `step --job ID --srun PROGRAM -- [ssh's options] HOST COMMAND...`.

A command runs on a host as a step of the job, so that the node needs no daemon, no key and no open port. Ansible calls
this in place of ssh (ansible_ssh_executable), and so do launchers of ranks. With --hosts, one step runs the command on
all of them. `slurm PROGRAM ARGUMENTS...` runs any of Slurm's programs. Both wait while Slurm's controller restarts.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import pwd
import re
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from cadge_agent.environment import SYSTEM_PATH
from cadge_agent.system import die_with_parent

WITH_VALUE = "BbcDEeFIiJLlmOopQRSWw"
"""Letters of ssh's options that take a value, see ssh(1)."""
OPTIONS = ("--quiet", "--overlap", "--mem=0", "--cpu-bind=none", "--overcommit", "--export=ALL", "--chdir=/")
"""--overlap: beside the steps that run already. --cpu-bind=none: a step has all processors of the job on its node.
--overcommit: it may have more tasks than these."""

OWN = "agent"
"""First word of a block's ssh that means this agent's own file: `agent step ...`."""

RETRY_S = 40.0
"""So long Slurm's programs are tried again: its controller refuses steps for about 5 s after it has started."""
PAUSE_S = 1.0
_SIGNALS = (signal.SIGHUP, signal.SIGINT, signal.SIGTERM)
_REFUSED = re.compile(
    rb"(?:Unable to (?:create step|confirm allocation) for job \d+|slurm_load_\w+ error): "
    rb"(?:Unable to contact slurm controller|Memory required by task is not available|Requested nodes are busy"
    rb"|Socket timed out|Zero Bytes were transmitted)"
)
"""What they say before anything has started, where the controller is away or does not know its nodes yet."""


def in_place_of_ssh(words: Sequence[str]) -> tuple[str, ...]:
    """Return the command by which launchers reach hosts; only here is known where the agent's file lies."""
    return own_command(*words[1:]) if words[:1] == [OWN] else tuple(words)


def own_command(*words: str) -> tuple[str, ...]:
    """Return the command that runs a verb of this agent."""
    return (sys.executable, str(Path(sys.argv[0]).resolve()), *words)


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
    """Run srun. Returns 0 where there is nothing to run, else as `patiently`."""
    words = arguments.words[arguments.words[:1] == ["--"] :]
    host, command = split_words(words) if not arguments.hosts else (arguments.hosts, " ".join(words))
    if not host:
        return 0
    argv = [arguments.srun, *step_options(arguments.job, host.split(","), mpi=arguments.mpi)]
    if arguments.hosts:
        argv.append("--label")
    return patiently([*argv, "/bin/sh", "-c", f"cd; {command}"], _of_a_login(arguments.conf))


def patiently(argv: Sequence[str], environment: Mapping[str, str]) -> int:
    """Run one of Slurm's programs, again while its controller is away or has just started.

    Returns its exit status, 255 as ssh does where it cannot be started.
    """
    until = time.monotonic() + RETRY_S
    while True:
        try:
            code, refused = _run(argv, environment)
        except OSError as error:
            sys.stderr.write(f"{argv[0]}: {error.strerror}\n")
            return 255
        if not refused or time.monotonic() > until:
            sys.stderr.write(refused)
            return code
        time.sleep(PAUSE_S)


def _run(argv: Sequence[str], environment: Mapping[str, str]) -> tuple[int, str]:
    """Run a program once, with its standard error through here; returns also the line that says "try again", if any."""
    refused = b""
    started: list[subprocess.Popen[bytes]] = []
    early: list[int] = []

    def hand_on(number: int, _frame: object) -> None:
        if not started:
            early.append(number)
        for process in started:
            with contextlib.suppress(ProcessLookupError):
                process.send_signal(number)

    # before it starts: a signal that came in between would end this process, and with it the program
    for number in _SIGNALS:
        signal.signal(number, hand_on)
    with subprocess.Popen(argv, env=environment, stderr=subprocess.PIPE, preexec_fn=die_with_parent) as process:
        started.append(process)
        for caught in early:
            process.send_signal(caught)
        for line in process.stderr or ():
            if _REFUSED.search(line):
                refused = line
            else:
                sys.stderr.buffer.write(line)
                sys.stderr.buffer.flush()
    for number in _SIGNALS:
        signal.signal(number, signal.SIG_DFL)
    code = process.returncode
    return (code if code >= 0 else 128 - code), (refused.decode(errors="replace") if code > 0 else "")


def _of_a_login(conf: str) -> dict[str, str]:
    """Return the variables that a login has: srun would take its own step from SLURM_*, and hand on everything."""
    user = pwd.getpwuid(os.getuid())
    own = {"HOME": user.pw_dir, "USER": user.pw_name, "LOGNAME": user.pw_name, "SHELL": user.pw_shell}
    language = {name: os.environ[name] for name in ("LANG", "LC_ALL") if name in os.environ}
    return {**own, **language, "PATH": SYSTEM_PATH, **({"SLURM_CONF": conf} if conf else {})}
