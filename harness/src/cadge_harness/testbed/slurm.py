# SPDX-License-Identifier: BSD-3-Clause
"""A testbed out of a Slurm allocation: its nodes as an inventory, and srun in place of ssh.

Which hosts there are scontrol says. One step on all of them tells their addresses and processors: a step's own affinity
is what a launch will have. What an inventory may say besides comes from a file with variables of the group `cadge`
and no hosts. Nothing on the nodes is needed but Slurm and Python.
"""

from __future__ import annotations

import getpass
import json
import os
import re
import shlex
import shutil
import socket
import subprocess
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from cadge_harness.errors import UnfitError, UsageError
from cadge_harness.paths import find_checkout
from cadge_harness.testbed import inventory_file
from cadge_harness.testbed.emulated import state_folder
from cadge_harness.testbed.inventory_rules import CPUS_MOST
from cadge_harness.testbed.model import BY_AGENT
from cadge_harness.words import count_of
from cadge_harness.yamlbounds import INVENTORY, check_bounds, check_bytes
from cadge_results.command import command, typed
from cadge_results.plugins.catalogue import SafeLoader

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cadge_harness.testbed.model import Testbed

NAME = "slurm"
JOB = "SLURM_JOB_ID"
ANSWER_S = 60
_LOOK = (
    "echo name $SLURMD_NODENAME; ip -4 -o address show; "
    "grep ^Cpus_allowed_list /proc/self/status; echo python $(command -v python3)"
)
_ADDRESS = re.compile(r"\d+: (\S+)\s+inet ([0-9.]+)/")
_MPI = re.compile(rb"\0(libmpi(?:ch)?\.so[.\d]*)\0")
"""In a layer's file: the MPI library that it needs."""
_RANKS = """
import ctypes, sys
mpi, size = ctypes.CDLL(sys.argv[1], ctypes.RTLD_GLOBAL), ctypes.c_int()
mpi.MPI_Init(None, None)
open_mpi = hasattr(mpi, "ompi_mpi_comm_world")
world = ctypes.byref(ctypes.c_char.in_dll(mpi, "ompi_mpi_comm_world")) if open_mpi else 0x44000000
mpi.MPI_Comm_size(world, ctypes.byref(size))
mpi.MPI_Finalize()
print("ranks", size.value)
"""
"""How many ranks find each other: the communicator of all has one of two names."""
_OF_MPI = ("LD_LIBRARY_PATH", "OPAL_PREFIX")


@dataclass(frozen=True, slots=True, kw_only=True)
class SlurmNode:
    """What a node of the allocation said of itself.

    addresses: by device, IPv4, without the loopback. unused: processors that Slurm did not give to the job, though it
    does not keep its steps from them.
    """

    name: str
    addresses: dict[str, str]
    cpus: tuple[int, ...]
    unused: int
    python: str


_tried: dict[str, tuple[bool, list[str]]] = {}
"""What `_starts_ranks` found, by job: a run asks for its testbed several times."""


def is_allocated() -> bool:
    """Say whether this process runs inside a Slurm allocation."""
    return bool(os.environ.get(JOB)) and bool(os.environ.get("SLURM_JOB_NODELIST"))


def allocation(inventory: Path | None = None, device: str = "") -> Testbed:
    """Return the testbed of the allocation in which this process runs.

    inventory: a file with variables for all nodes, `cadge: {vars: {...}}`. device: the data network's, in place of the
    file's. Raises UsageError where something is wrong with either, UnfitError where Slurm does not answer.
    """
    if not is_allocated():
        verb, *rest = (*typed(), "", "")[:2]
        given = [word for word in rest if word and not word.startswith("-")]
        how = ("--resume", *(given or ["last"]), "--time", "1:00:00") if verb == "resume" else ("--nodes", "2")
        raise UnfitError(
            f"this is no Slurm allocation: {JOB} is not set",
            commands=("salloc --nodes=2 --exclusive", command("submit", *how)),
        )
    job, srun = os.environ[JOB], _program("srun")
    names = _ask_slurm("scontrol", "show", "hostnames", os.environ["SLURM_JOB_NODELIST"]).split()
    stated = _variables(inventory) if inventory is not None else {}
    step = ["step", "--job", job, "--srun", srun]
    if conf := os.environ.get("SLURM_CONF"):
        step += ["--conf", conf]
    agent = [*_agent(), *step]
    nodes = _ask(agent, names, _given_cpus(len(names)))
    wanted = device or stated.get("cadge_device") or _only_device(nodes)
    known_as = _addresses([node.name for node in nodes])
    if job not in _tried:
        _tried[job] = _starts_ranks(srun, agent, nodes, stated)
    pmix, why_not = _tried[job]
    folder = state_folder()
    program = folder / f"slurm-{job}"
    program.write_text(f'#!/bin/sh\nexec {shlex.join(agent)} -- "$@"\n', encoding="utf-8")
    program.chmod(0o700)
    path = folder / f"slurm-{job}.json"
    hosts = {node.name: _host(node, str(wanted), known_as.get(node.name, {}) | stated, program) for node in nodes}
    path.write_text(json.dumps({inventory_file.GROUP: {"hosts": hosts}}, indent=1), encoding="utf-8")
    return replace(
        inventory_file.load(path),
        name=NAME,
        host_ssh=(BY_AGENT, *step, "--"),
        mpirun=srun if pmix else "mpirun",
        time_left_s=_time_left_s(job),
        notes=(*_alone(nodes), *_fewer(nodes), *why_not),
    )


def _host(node: SlurmNode, device: str, stated: dict[str, Any], program: Path) -> dict[str, object]:
    """Return a node's variables: those of the file first, where both say something."""
    if device not in node.addresses:
        has = ", ".join(f"{name} ({address})" for name, address in node.addresses.items()) or "none"
        raise UsageError(f"node {node.name} has no device {device} with an IPv4 address; it has {has}")
    return {
        "ansible_user": getpass.getuser(),
        "ansible_python_interpreter": node.python,
        "cadge_cpus": list(node.cpus),
        "cadge_tunable": False,
        **stated,
        "ansible_ssh_executable": str(program),
        "ansible_ssh_transfer_method": "piped",
        "cadge_device": device,
        "cadge_address": node.addresses[device],
    }


def _addresses(names: list[str]) -> dict[str, dict[str, str]]:
    """Return by name, as variables, where Slurm finds the nodes whose names nothing here knows. Raises UsageError."""
    unknown = [name for name in names if not _is_known(name)]
    shown = _ask_slurm("scontrol", "--oneliner", "show", "node", ",".join(unknown)) if unknown else ""
    found = dict(re.findall(r"^NodeName=(\S+).* NodeAddr=(\S+)", shown, re.MULTILINE))
    for name in unknown:
        if not _is_known(found.get(name, name)):
            raise UsageError(
                f"node {name}: this machine cannot look up its name, and Slurm knows no other address of it; "
                f"have it in DNS or /etc/hosts, or leave it out: --exclude={name}"
            )
    return {name: {"cadge_management_address": found[name]} for name in unknown}


def _is_known(name: str) -> bool:
    """Say whether a name, or an address, leads anywhere."""
    try:
        socket.getaddrinfo(name, None)
    except OSError:
        return False
    return True


def _program(name: str) -> str:
    found = shutil.which(name)
    if found is None:
        raise UnfitError(f"{JOB} is set, but there is no program {name} here")
    return found


def _agent() -> tuple[str, str]:
    return sys.executable, str(find_checkout().root / "harness" / "agent")


def _ask_slurm(name: str, *words: str) -> str:
    """Return what one of Slurm's programs prints, also where its controller is just restarting."""
    return _run([*_agent(), "slurm", _program(name), *words])


def _run(argv: list[str], *, errors: bool = False) -> str:
    """Return what a command prints, with `errors` also on standard error. Raises UnfitError with its last words."""
    try:
        done = subprocess.run(
            argv,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=ANSWER_S,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise UnfitError(f"{argv[0]} did not answer within {ANSWER_S} s") from error
    if done.returncode != 0:
        said = [line for line in done.stderr.splitlines() if line.strip()]
        raise UnfitError(f"Slurm refuses: {said[-1] if said else f'{argv[0]} ended with {done.returncode}'}")
    return done.stdout + (done.stderr if errors else "")


def _ask(agent: list[str], names: list[str], given: list[int]) -> list[SlurmNode]:
    """Have each node say what it is, in one step. given: how many processors the job has on each."""
    path = shlex.quote(f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin")
    said: dict[str, list[str]] = {}
    for line in _run([*agent, "--hosts", ",".join(names), "--", f"PATH={path}; {_LOOK}"]).splitlines():
        task, _, text = line.partition(": ")
        said.setdefault(task.strip(), []).append(text)
    counts = dict(zip(names, given, strict=True))
    nodes = [_read_node(lines, counts) for lines in said.values()]
    if missing := sorted(set(names) - {node.name for node in nodes}):
        raise UnfitError(f"of the allocation's nodes {', '.join(missing)} gave no answer")
    return sorted(nodes, key=lambda node: names.index(node.name))


def _starts_ranks(
    srun: str, agent: list[str], nodes: list[SlurmNode], stated: dict[str, Any]
) -> tuple[bool, list[str]]:
    """Try whether srun starts ranks of the build's MPI on these nodes; returns also what to say where it should."""
    library = _mpi_library(stated)
    if not library or "pmix" not in _run([srun, "--mpi=list"], errors=True).split():
        return False, []
    given = [f"{name}={stated[f'cadge_{name.lower()}']}" for name in _OF_MPI if stated.get(f"cadge_{name.lower()}")]
    names = [nodes[0].name, *(node.name for node in nodes)]
    script = shlex.join(["env", *given, nodes[0].python, "-c", _RANKS, library])
    try:
        said = _run([*agent, "--hosts", ",".join(names), "--mpi", "pmix", "--", script])
    except UnfitError as error:
        why = str(error)
    else:
        sizes = {line.rpartition(" ")[2] for line in said.splitlines() if " ranks " in line}
        if sizes == {str(len(names))}:
            return True, []
        why = f"{len(names)} ranks of {library} do not find each other"
    return False, [f"srun --mpi=pmix is here, but does not start MPI's ranks ({why}); mpirun starts them"]


def _mpi_library(stated: dict[str, Any]) -> str:
    """Return the name of the MPI library of the build, as the loader knows it; empty where no layer needs one."""
    build = Path(stated.get("cadge_build_path") or find_checkout().build)
    try:
        found = _MPI.search((build / "layers" / "mpi-p2p.so").read_bytes())
    except OSError:
        return ""
    return found[1].decode() if found else ""


def _read_node(lines: list[str], given: dict[str, int]) -> SlurmNode:
    words = {key: value for line in lines for key, _, value in [line.partition(" ")] if key in ("name", "python")}
    addresses: dict[str, str] = {}
    for match in filter(None, map(_ADDRESS.match, lines)):
        if match[1] != "lo":
            addresses.setdefault(match[1], match[2])  # further ones of a device are secondary
    allowed = next((line.split(":", 1)[1] for line in lines if line.startswith("Cpus_allowed_list")), "")
    name, cpus = words.get("name", ""), tuple(_numbers(allowed.strip()))
    return SlurmNode(
        name=name,
        addresses=addresses,
        cpus=cpus[: given.get(name, len(cpus))],
        unused=max(0, len(cpus) - given.get(name, len(cpus))),
        python=words.get("python") or "/usr/bin/python3",
    )


def _given_cpus(count: int) -> list[int]:
    """Return how many processors the job has on each node: SLURM_JOB_CPUS_PER_NODE is like 2(x3),1."""
    found: list[int] = []
    for part in os.environ.get("SLURM_JOB_CPUS_PER_NODE", "").split(","):
        if match := re.fullmatch(r"(\d+)(?:\(x(\d+)\))?", part.strip()):
            found += [int(match[1])] * int(match[2] or 1)
    return found if len(found) == count else [CPUS_MOST] * count


def _alone(nodes: list[SlurmNode]) -> Iterator[str]:
    """Say what one node is not enough for."""
    if len(nodes) == 1:
        yield f"the job has one node, {nodes[0].name}: nothing is measured between hosts; --nodes=2 gives it another"


def _fewer(nodes: list[SlurmNode]) -> Iterator[str]:
    """Say which nodes have processors that the job was not given."""
    if names := [node.name for node in nodes if node.unused]:
        least = min(len(node.cpus) for node in nodes)
        yield (
            f"the job has {count_of(least, 'processor')} of {', '.join(names)}, and uses no others; "
            "--exclusive or --cpus-per-task gives it more"
        )


def _time_left_s(job: str) -> float | None:
    """Return how long the allocation lasts; None where Slurm names no limit. squeue prints like 1-02:03:04."""
    left = _ask_slurm("squeue", "--noheader", "--jobs", job, "--format", "%L").strip()
    match = re.fullmatch(r"(?:(\d+)-)?(?:(\d+):)?(\d+):(\d+)", left)
    if match is None:
        return None
    days, hours, minutes, seconds = (int(part or 0) for part in match.groups())
    return float(((days * 24 + hours) * 60 + minutes) * 60 + seconds)


def _numbers(text: str) -> list[int]:
    """Return the numbers of a list as the kernel prints it: 0-3,8."""
    numbers: list[int] = []
    for part in filter(None, text.split(",")):
        low, _, high = part.partition("-")
        numbers += range(int(low), int(high or low) + 1)
    return numbers


def _only_device(nodes: list[SlurmNode]) -> str:
    """Return the device that all nodes have, where there is one alone. Raises UsageError."""
    everywhere = [name for name in nodes[0].addresses if all(name in node.addresses for node in nodes)]
    if len(everywhere) == 1:
        return everywhere[0]
    if not everywhere:
        raise UsageError("the nodes have no network device in common that has an IPv4 address")
    has = ", ".join(f"{name} ({nodes[0].addresses[name]})" for name in everywhere)
    raise UsageError(
        f"the nodes have several networks: {has}. Name the one to measure",
        commands=tuple(command("run", "--testbed", f"{NAME}:{name}") for name in everywhere),
    )


def _variables(path: Path) -> dict[str, Any]:
    """Read the variables of group `cadge` out of a file without hosts."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{path} cannot be read: {getattr(error, 'strerror', None) or 'it is no UTF-8'}") from error
    check_bytes(len(text), source=str(path), bounds=INVENTORY)
    try:
        check_bounds(text, source=str(path), loader=SafeLoader, bounds=INVENTORY)
        read = yaml.load(text, SafeLoader)  # noqa: S506 - a safe one
    except yaml.YAMLError as error:
        raise UsageError(f"{path} is no YAML: {' '.join(str(error).split())}") from error
    group = read.get(inventory_file.GROUP) if isinstance(read, dict) else None
    stated = group.get("vars") if isinstance(group, dict) else None
    if not isinstance(stated, dict) or (isinstance(group, dict) and group.get("hosts")):
        raise UsageError(
            f"{path}: beside an allocation a file states variables alone, for example "
            f"{inventory_file.GROUP}: {{vars: {{cadge_device: ib0}}}}; the hosts are the allocation's"
        )
    return stated
