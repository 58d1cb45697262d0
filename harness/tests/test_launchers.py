# SPDX-License-Identifier: BSD-3-Clause
"""What starts ranks on other hosts: which names it calls them by, and what is said where it dies before the driver."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "agent"))

from cadge_agent import launchers, outcome  # type: ignore[import-not-found, unused-ignore]
from cadge_agent.errors import LaunchFailedError  # type: ignore[import-not-found, unused-ignore]
from cadge_agent.host import build  # type: ignore[import-not-found, unused-ignore]

NAMES = ("node-5.example.org", "10.9.8.7")
AS_ROOT = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}


def wanted(ssh: Path, *hosts: str) -> launchers.RankPlan:
    return launchers.RankPlan(
        count=1 + len(hosts),
        hosts={"localhost": 1, **dict.fromkeys(hosts, 1)},
        network=None,
        address="127.0.0.1",
        ssh=(str(ssh),),
        mark="CADGE_MARK",
    )


@pytest.fixture
def ssh(tmp_path: Path) -> Path:
    """An ssh that writes down whom it is to reach, and reaches nobody."""
    made = tmp_path / "ssh"
    made.write_text(
        "#!/bin/sh\nfor word; do case $word in -*) ;; *) break ;; esac; done\n"
        f'echo "$word" >> {tmp_path}/called\necho "ssh: connect to host $word: No route" >&2\nexit 255\n'
    )
    made.chmod(0o755)
    return made


@pytest.mark.parametrize("name", NAMES)
def test_the_launcher_of_this_machine_calls_a_host_by_its_whole_name(name: str, ssh: Path) -> None:
    program = shutil.which("mpirun")
    if program is None:
        pytest.skip("mpirun is not installed")
    asked = wanted(ssh, name)
    launcher = launchers.launcher_at(program, os.environ)
    environment = {**os.environ, **AS_ROOT, **launcher.variables(asked), "CADGE_MARK": "x"}
    argv = [program, *launcher.options(asked), "true"]
    done = subprocess.run(argv, env=environment, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode != 0
    assert (ssh.parent / "called").read_text().split() == [name]


def test_srun_starts_ranks_in_the_order_of_their_hosts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "srun"
    program.write_text("#!/bin/sh\necho slurm-wlm 22.05.8\n")
    program.chmod(0o755)
    for name, value in {"SLURM_JOB_ID": "7", "SLURMD_NODENAME": "n1", "SLURM_CONF": "/c"}.items():
        monkeypatch.setenv(name, value)
    launcher = launchers.launcher_at(str(program), os.environ)
    assert (launcher.version, launcher.rank, launcher.keeps) == ("22.05.8", "SLURM_PROCID", "SLURM_*")
    asked = replace(wanted(tmp_path, "n2"), hosts={"n2": 2, "n1": 1})
    options = launcher.options(asked)
    assert {"--jobid=7", "--mpi=pmix", "--ntasks=3", "--nodelist=n2,n2,n1"} <= set(options)
    assert "--distribution=arbitrary" in options
    assert not [option for option in options if option.startswith("--nodes=")], "Slurm 24.11 refuses it"
    alone = launcher.options(replace(asked, hosts={}))
    assert {"--nodes=1", "--ntasks=2", "--nodelist=n1"} <= set(alone)
    assert launcher.variables(asked) == {"SLURM_CONF": "/c"}
    assert launcher.before()[-1] == "slurm", "the agent, which tries again while Slurm's controller restarts"
    assert launcher.patience_s > 0


def test_a_name_that_nothing_here_knows_becomes_an_address(monkeypatch: pytest.MonkeyPatch) -> None:
    def found(name: str, _port: None) -> list[object]:
        if name == "alias":
            raise socket.gaierror(socket.EAI_NONAME, "unknown")
        return []

    monkeypatch.setattr(launchers.socket, "getaddrinfo", found)
    calls = launchers.reached_as
    assert [calls((), name, "192.0.2.2") for name in ("known", "alias")] == ["known", "192.0.2.2"]
    assert calls(("ssh", "-o", "StrictHostKeyChecking=no"), "alias", "192.0.2.2") == "192.0.2.2"
    assert calls(("ssh", "-F", "x"), "alias", "192.0.2.2") == "alias", "that ssh has a file that knows it"
    assert calls(("agent", "step"), "alias", "192.0.2.2") == "alias", "srun knows it"


OF_ORTE = """\
--------------------------------------------------------------------------
ssh: Could not resolve hostname node-5: Name or service not known
--------------------------------------------------------------------------
ORTE was unable to reliably start one or more daemons.
"""


@pytest.mark.parametrize(
    ("code", "log", "reason"),
    [
        (255, OF_ORTE, "endpoint 0 ended with exit status 255 and left no result: "
                       "ssh: Could not resolve hostname node-5: Name or service not known"),
        (-11, "", "endpoint 0 ended by signal 11 (SIGSEGV) and left no result"),
        (127, "all is well\n\n***\nsh: 1: exec: /x: not found\n", "endpoint 0 ended with exit status 127 and left no "
                                                                    "result: sh: 1: exec: /x: not found"),
        (1, "nothing that tells\n", "endpoint 0 ended with exit status 1 and left no result"),
        (1, f"error: {'x' * 500}", f"endpoint 0 ended with exit status 1 and left no result: error: {'x' * 193}"),
    ],
)  # fmt: skip
def test_a_launcher_that_dies_says_why(code: int, log: str, reason: str) -> None:
    assert outcome.outcome(None, None, {"0": code}, {"0": log})[:2] == ("failed", reason)


def test_an_endpoint_that_ends_early_says_why() -> None:
    failure = LaunchFailedError("PEER_LOST", "endpoint 1 ended early by signal 6 (SIGABRT)")
    logs = {"0": "", "1": "terminate called after throwing an instance of 'std::bad_alloc'\n"}
    status, reason, code = outcome.outcome(None, failure, {"0": None, "1": -6}, logs)
    assert (status, code) == ("failed", "PEER_LOST")
    assert reason == f"{failure}: {logs['1'].strip()}"


@pytest.mark.parametrize(
    ("reason", "log", "has"),
    [
        ("UCX: No resources are available to initiate the operation", "", True),
        ("MPI_Win_allocate: MPI_ERR_WIN: invalid window (osc as Open MPI chooses)", "", True),
        ("libfabric has the provider shm but cannot use it here; it needs some free MiB in /dev/shm", "", True),
        ("ucp_worker_create: Out of memory", "", True),
        ("endpoint 1 ended early by signal 7 (SIGBUS)", "uct mm: Not enough memory to write 4096 bytes", True),
        ("the launch did not end within 3 ms", "all is well", False),
        (None, "Not enough memory", False),
    ],
)
def test_where_room_lacks_it_is_said_how_much_there_is(reason: str | None, log: str, has: bool) -> None:
    found = outcome.with_room(reason, [log], "/dev/shm of n0 has 67 MB, of which 1 MB are free")
    assert found == (f"{reason} (/dev/shm of n0 has 67 MB, of which 1 MB are free)" if has else reason)


def test_a_newer_libc_is_no_missing_library() -> None:
    newer = (
        "./cadge-driver: /lib/x86_64-linux-gnu/libc.so.6: version `GLIBC_2.38' not found (required by ./cadge-driver)"
    )
    lacks = "libucp.so.0: cannot open shared object file: No such file or directory"
    assert build._fix_of(newer) == build.OLDEST
    assert "ld_library_path" not in build.OLDEST
    assert "cadge_ld_library_path" in build._fix_of(lacks)
    layer = {"trouble": f"layer 'a' cannot be loaded: {newer}", "library": None, "version": None}
    (fault,) = build.layer_faults("n1", {"a": layer, "b": {**layer}})
    assert fault["fix"].startswith(build.OLDEST)
