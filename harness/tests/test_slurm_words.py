# SPDX-License-Identifier: BSD-3-Clause
"""What Slurm prints, and what ssh is called with, read: without a Slurm."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from cadge_cli.commands.submit import _seconds
from cadge_harness.errors import UnfitError, UsageError
from cadge_harness.paths import find_checkout
from cadge_harness.run import ansible_io
from cadge_harness.testbed import slurm
from cadge_results.formats.event import TaskFailed

sys.path.insert(0, str(find_checkout().root / "harness/agent"))

from cadge_agent.step import split_words


@pytest.mark.parametrize(
    ("words", "host", "command"),
    [
        ("-C -o ControlMaster=auto -o User=me -o Port=22 n1 /bin/sh -c 'echo x'", "n1", "/bin/sh -c 'echo x'"),
        ("-x n2 orted --daemonize", "n2", "orted --daemonize"),
        ("-tt me@n3.example.org true", "n3.example.org", "true"),
        ("-oBatchMode=yes -p22 -l me n4 -- ls -l", "n4", "ls -l"),
        ("-o ControlPath=/x -O exit -- n5", "", ""),
        ("-Oexit n5", "", ""),
        ("", "", ""),
    ],
)
def test_words_of_ssh(words: str, host: str, command: str) -> None:
    split = [word.strip("'") if "'" not in word else word for word in words.split()]
    assert split_words(split) == (host, command)


def step(tmp_path: Path, *words: str, env: dict[str, str] | None = None) -> list[str]:
    """Return the lines that the agent's step prints where srun prints its arguments and its environment."""
    srun = tmp_path / "srun"
    srun.write_text('#!/bin/sh\nprintf "%s\\n" "$@"; echo; env\n')
    srun.chmod(0o755)
    agent = find_checkout().root / "harness/agent"
    argv = [sys.executable, str(agent), "step", "--job", "7", "--srun", str(srun), *words]
    return subprocess.run(argv, env=env, capture_output=True, text=True, check=True).stdout.splitlines()


def test_a_step_is_srun_on_that_host_with_a_logins_environment(tmp_path: Path) -> None:
    own = {"PATH": "/usr/bin:/bin", "SLURM_STEP_ID": "0", "PMI_RANK": "3", "SECRET": "x"}
    lines = step(tmp_path, "--conf", "/c", "--", "-C", "n1", "a b", env=own)
    assert {"--jobid=7", "--nodelist=n1", "--overlap", "--cpu-bind=none", "cd; a b", "SLURM_CONF=/c"} <= set(lines)
    assert not [line for line in lines if line.startswith(("SLURM_STEP", "PMI_", "SECRET"))]


def test_a_step_on_several_hosts_numbers_its_lines(tmp_path: Path) -> None:
    lines = step(tmp_path, "--hosts", "n1,n1,n2", "--mpi", "pmix", "--", "echo 'a  b'")
    asked = lines[: lines.index("")]
    assert {"--ntasks=3", "--nodelist=n1,n1,n2", "--mpi=pmix", "--label"} <= set(asked)
    assert asked[-3:] == ["/bin/sh", "-c", "cd; echo 'a  b'"]


@pytest.mark.parametrize(
    ("plugins", "library", "said", "starts", "note"),
    [
        ("none pmi2", "libmpi.so.40", "", False, None),
        ("pmix none", "", "", False, None),
        ("pmix none", "libmpi.so.40", "0: ranks 3\n1: ranks 3\n2: ranks 3\n", True, None),
        ("pmix none", "libmpi.so.40", "0: ranks 1\n1: ranks 1\n", False, "3 ranks of libmpi.so.40 do not find each"),
        ("pmix none", "libmpi.so.40", None, False, "Slurm refuses: no such library"),
    ],
)  # fmt: skip
def test_srun_that_does_not_start_ranks_is_said(
    plugins: str, library: str, said: str | None, starts: bool, note: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    def run(argv: list[str], *, errors: bool = False) -> str:
        if errors:
            return f"MPI plugin types are...\n\t{plugins}\n"
        assert argv[argv.index("--hosts") + 1] == "n1,n1,n2"
        if said is None:
            raise UnfitError("Slurm refuses: no such library")
        return said

    monkeypatch.setattr(slurm, "_run", run)
    monkeypatch.setattr(slurm, "_mpi_library", lambda _: library)
    nodes = [slurm._read_node([f"name {name}"], {}) for name in ("n1", "n2")]
    found, notes = slurm._starts_ranks("srun", ["agent"], nodes, {"cadge_ld_library_path": "/opt/mpi"})
    assert found == starts
    assert [note in text for text in notes] == ([] if note is None else [True])


def test_a_step_without_srun_ends_as_ssh_does() -> None:
    agent = find_checkout().root / "harness/agent"
    argv = [sys.executable, str(agent), "step", "--job", "7", "--srun", "/no/srun", "--", "n1", "true"]
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (255, "/no/srun: No such file or directory\n")


@pytest.mark.parametrize(
    ("text", "count", "given"),
    [
        ("2(x3)", 3, [2, 2, 2]),
        ("4,1(x2)", 3, [4, 1, 1]),
        ("16", 1, [16]),
        ("16", 2, [slurm.CPUS_MOST] * 2),
        ("", 1, [8192]),
    ],
)
def test_processors_of_a_job(text: str, count: int, given: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SLURM_JOB_CPUS_PER_NODE", text)
    assert slurm._given_cpus(count) == given


@pytest.mark.parametrize(
    ("printed", "seconds"),
    [("1-02:03:04", 93784), ("1:00:00", 3600), ("1:59", 119), ("UNLIMITED", None), ("INVALID", None), ("", None)],
)
def test_time_that_is_left(printed: str, seconds: float | None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(slurm, "_run", lambda _: f"{printed}\n")
    monkeypatch.setattr(slurm, "_program", lambda name: name)
    assert slurm._time_left_s("7") == seconds


@pytest.mark.parametrize(
    ("limit", "seconds"),
    [("2", 120), ("2:30", 150), ("1:00:00", 3600), ("1-0", 86400), ("1-2:30", 95400), ("UNLIMITED", None), ("x", None)],
)
def test_time_of_a_job(limit: str, seconds: int | None) -> None:
    assert _seconds(limit) == seconds


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ((), "submit --nodes 2"),
        (("run", "--sweep", "smoke"), "submit --nodes 2"),
        (("resume", "--failed"), "submit --resume last --time 1:00:00"),
        (("resume", "20261130T100000Z-00000000"), "submit --resume 20261130T100000Z-00000000 --time 1:00:00"),
    ],
)
def test_outside_an_allocation_a_job_for_the_same_is_advised(
    words: tuple[str, ...], says: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(slurm.JOB, raising=False)
    monkeypatch.setattr(slurm, "typed", lambda: words)
    with pytest.raises(UnfitError) as raised:
        slurm.allocation()
    assert says in raised.value.commands[1]


def test_what_a_node_says() -> None:
    lines = [
        "name n1",
        "1: lo    inet 127.0.0.1/8 scope host lo",
        "2: eth0    inet 10.0.0.1/24 brd 10.0.0.255 scope global eth0",
        "4: ib0    inet 10.1.0.1/24 scope global ib0",
        "4: ib0    inet 10.1.0.99/24 scope global secondary ib0",
        "Cpus_allowed_list:\t0-3,8",
        "python /usr/bin/python3",
    ]
    node = slurm._read_node(lines, {"n1": 3})
    assert node.addresses == {"eth0": "10.0.0.1", "ib0": "10.1.0.1"}
    assert (node.name, node.cpus, node.unused, node.python) == ("n1", (0, 1, 2), 2, "/usr/bin/python3")
    assert slurm._read_node(lines, {}).cpus == (0, 1, 2, 3, 8)


@pytest.mark.parametrize("cpu", sorted(os.sched_getaffinity(0))[:2])
def test_processors_come_from_the_steps_affinity_whatever_keeps_it_there(cpu: int) -> None:
    """Control groups of version 1, of version 2 or a plain mask: the kernel shows each as the affinity of a process."""
    argv = ["taskset", "--cpu-list", str(cpu), "sh", "-c", slurm._LOOK]
    env = {**os.environ, "SLURMD_NODENAME": "n1"}
    said = subprocess.run(argv, env=env, capture_output=True, text=True, check=True).stdout
    node = slurm._read_node(said.splitlines(), {})
    assert (node.name, node.cpus) == ("n1", (cpu,))
    assert "cgroup" not in slurm._LOOK


def test_the_only_device_is_taken() -> None:
    one = slurm._read_node(["name a", "2: eth0 inet 10.0.0.1/24"], {})
    two = slurm._read_node(["name b", "2: eth0 inet 10.0.0.2/24", "3: eth1 inet 10.2.0.2/24"], {})
    none = slurm._read_node(["name c"], {})
    assert slurm._only_device([one, two]) == "eth0"
    with pytest.raises(UsageError, match=r"several networks: eth0 \(10.0.0.2\), eth1"):
        slurm._only_device([two])
    with pytest.raises(UsageError, match="no network device in common"):
        slurm._only_device([one, none])


NODES = """\
NodeName=zz1 Arch=x86_64 CoresPerSocket=1 NodeAddr=192.0.2.1 NodeHostName=h1 Version=22.05.8 OS=Linux
NodeName=zz2 Arch=x86_64 CoresPerSocket=1 NodeAddr=zz2 NodeHostName=zz2 Version=22.05.8 OS=Linux
"""


def test_a_node_whose_name_leads_nowhere_is_found_where_slurm_finds_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(slurm, "_is_known", lambda name: name in {"n1", "192.0.2.1"})
    monkeypatch.setattr(slurm, "_program", lambda name: name)
    monkeypatch.setattr(slurm, "_run", lambda argv: "\n".join(NODES.splitlines()[: len(argv[-1].split(","))]))
    assert slurm._addresses(["n1"]) == {}
    assert slurm._addresses(["n1", "zz1"]) == {"zz1": {"cadge_management_address": "192.0.2.1"}}
    with pytest.raises(UsageError, match=r"node zz2: this machine cannot look up its name, .* --exclude=zz2"):
        slurm._addresses(["n1", "zz1", "zz2"])


@pytest.mark.parametrize("said", ["srun: error: Slurm job 3 has expired", "srun: error: Invalid job id specified"])
def test_a_job_that_ended_is_said_once(said: str) -> None:
    failed = [
        TaskFailed(event="failed", host=host, task="Remove the folder", message=f"No start of json char: {said}")
        for host in ("h1", "h2")
    ]
    (one,) = {ansible_io.sentence(failure) for failure in failed}
    assert one.startswith("Slurm has ended the job, and its hosts are gone; continue in another one: ")


AWAY = "srun: error: Unable to confirm allocation for job 7: Unable to contact slurm controller (connect failure)"
ANEW = "srun: error: Unable to create step for job 7: Memory required by task is not available"
JOBS = "slurm_load_jobs error: Unable to contact slurm controller (connect failure)"
WRONG = "srun: error: Unable to create step for job 7: Requested node configuration is not available"


@pytest.mark.parametrize(
    ("said", "code", "tries"), [([AWAY, ANEW], 0, 3), ([JOBS], 0, 2), ([WRONG], 1, 1), (["sh: not found"], 1, 1)]
)
def test_slurms_programs_are_tried_again_while_its_controller_restarts(
    said: list[str], code: int, tries: int, tmp_path: Path
) -> None:
    """A program that fails once with each of these sentences, and counts how often it ran."""
    (tmp_path / "said").write_text("".join(f"{line}\n" for line in said))
    program = tmp_path / "srun"
    program.write_text(f"""#!/bin/sh
        cd {tmp_path}; echo >>tries; line=$(sed -n "$(wc -l <tries)p" said)
        test -z "$line" || {{ echo "$line" >&2; exit 1; }}
        echo note >&2; cat
        """)
    program.chmod(0o755)
    argv = [sys.executable, str(find_checkout().root / "harness/agent"), "slurm", str(program), "--quiet"]
    done = subprocess.run(argv, input="for the task\n", capture_output=True, text=True, check=False)
    assert (done.returncode, len((tmp_path / "tries").read_text())) == (code, tries)
    assert (done.stdout, done.stderr) == (("for the task\n", "note\n") if code == 0 else ("", f"{said[0]}\n"))


def test_a_step_that_is_told_to_end_ends_its_srun(tmp_path: Path) -> None:
    program = tmp_path / "srun"
    program.write_text("#!/bin/sh\ntrap 'echo ended; exit 5' TERM\necho ready; while :; do sleep 0.05; done\n")
    program.chmod(0o755)
    argv = [sys.executable, str(find_checkout().root / "harness/agent"), "slurm", str(program)]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as run:
        assert run.stdout is not None
        assert run.stdout.readline() == "ready\n"
        run.terminate()
        assert run.stdout.read() == "ended\n"
    assert run.returncode == 5
