# SPDX-License-Identifier: BSD-3-Clause
"""What `cadge doctor` looks at. Every look only reads; none raises."""

from __future__ import annotations

import contextlib
import json
import os
import resource
import shutil
import sys
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from cadge_harness.errors import UsageError
from cadge_harness.paths import Checkout
from cadge_harness.plan.catalogue import Catalogue
from cadge_harness.plan.patterns import ask_driver, differences, read_patterns
from cadge_harness.run.request import writable_by_others
from cadge_harness.run.room import OF_HOSTS
from cadge_harness.surroundings import MORE_LOCKED, MORE_MEMORY, SHM, SYSTEM_PATH, shm_free_bytes
from cadge_harness.testbed.users import is_held
from cadge_harness.words import count_of
from cadge_results import Workloads
from cadge_results.command import command

Level = Literal["ok", "skip", "warn", "fail"]

SHM_BYTES_MIN = 256 * 1024**2
DISK_BYTES_MIN = 500 * 1024**2
BUSY_LOAD_PER_CORE = 0.25
LOOK_S = 0.3
PROC_STAT = Path("/proc/stat")
BOOT = Path("/proc/sys/kernel/random/boot_id")
AUTOGROUP = Path("/proc/sys/kernel/sched_autogroup_enabled")


@dataclass(frozen=True, slots=True, kw_only=True)
class HostFinding:
    """One thing looked at. `code` is stable; `fix` is what to do, empty where nothing has to be done."""

    code: str
    level: Level
    text: str
    fix: str = ""


def look(checkout: Checkout, catalogue: Catalogue, results: Path | None = None) -> list[HostFinding]:
    """Return everything that was found, in the order of a campaign's life. results: the user's folder of campaigns."""
    return [
        *_programs(checkout),
        *_checkout(checkout, results),
        *_outside_programs(needed_programs(checkout)),
        *_layers(checkout, catalogue),
        *_testbed(),
        *_machine(),
        *_kernel_left(Path.home() / OF_HOSTS),
        *_noise(),
    ]


def look_at_controller(checkout: Checkout, results: Path | None = None) -> list[HostFinding]:
    """Return what matters of a machine that measures on other hosts, and brings them its build."""
    return [*_programs(checkout), *_checkout(checkout, results)]


def _programs(checkout: Checkout) -> Iterator[HostFinding]:
    version = ".".join(str(part) for part in sys.version_info[:3])
    yield HostFinding(code="D01", level="ok", text=f"Python {version}")
    beside = Path(sys.executable).parent / "ansible-playbook"
    if beside.is_file() or shutil.which("ansible-playbook"):
        yield HostFinding(code="D02", level="ok", text="ansible-playbook is there")
    else:
        yield HostFinding(code="D02", level="fail", text="ansible-playbook is missing", fix=checkout.to_install)
    for program, purpose, package in (
        ("ssh", "reaching hosts", "openssh-client"),
        ("mpirun", "the MPI layers", "openmpi-bin"),
    ):
        path = shutil.which(program)
        level: Level = "ok" if path else "warn"
        text = f"{program}: {path}" if path else f"{program} is missing, and needed for {purpose}"
        yield HostFinding(code="D03", level=level, text=text, fix="" if path else f"apt install {package}")


def _checkout(checkout: Checkout, results: Path | None) -> Iterator[HostFinding]:
    yield HostFinding(code="D10", level="ok", text=f"{checkout.what} {checkout.root}")
    for folder in (checkout.root, checkout.build):
        if folder.is_dir() and writable_by_others(folder):
            text = f"{folder} is writable by every user: anyone could change what cadge runs"
            yield HostFinding(code="D11", level="warn", text=text, fix=f"chmod o-w {folder}")
    if checkout.driver.is_file() and os.access(checkout.driver, os.X_OK):
        yield HostFinding(code="D12", level="ok", text=f"{checkout.driver.name} is built")
        yield from _patterns(checkout)
    else:
        yield HostFinding(code="D12", level="fail", text=f"{checkout.driver} is not built", fix=checkout.to_build)
    folder = (results or checkout.campaigns).absolute()
    while not folder.is_dir():
        folder = folder.parent
    if not os.access(folder, os.W_OK):
        elsewhere = command("run", "--results", "FOLDER")
        yield HostFinding(code="D13", level="fail", text=f"{folder} cannot be written", fix=elsewhere)
        return
    free = shutil.disk_usage(folder).free
    if free < DISK_BYTES_MIN:
        yield HostFinding(
            code="D14", level="warn", text=f"{free / 1e6:.0f} MB free for campaigns", fix="free some space"
        )


def _patterns(checkout: Checkout) -> Iterator[HostFinding]:
    """Compare the built driver with the files of patterns and floors."""
    try:
        workloads = read_patterns(checkout)
    except UsageError as error:
        yield HostFinding(code="D15", level="fail", text=str(error))
        return
    said = ask_driver(checkout.driver)
    if isinstance(said, str):
        yield HostFinding(code="D15", level="fail", text=f"the build cannot be used: {said}", fix=checkout.to_build)
        return
    wrong = list(differences(said, workloads))
    for text in wrong:
        yield HostFinding(code="D15", level="fail", text=f"the build is stale: {text}", fix=checkout.to_build)
    if not wrong:
        yield HostFinding(
            code="D15",
            level="ok",
            text=f"{count_of(len(workloads.patterns), 'pattern')}, {count_of(len(workloads.floors), 'floor')}",
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class NeededProgram:
    """A program that hosts need for some points of a pattern, and that belongs to no build."""

    program: str
    package: str
    points: str

    def missing(self, where: str = "") -> HostFinding:
        """Say that a host does not have it; `where` names the host, with a space before."""
        text = f"{self.program} is missing{where}: {self.points} is refused{' there' * bool(where)}"
        fix = f"apt install --no-install-recommends {self.package} (if it starts a service, that can be off)"
        return HostFinding(code="D16", level="skip", text=text, fix=fix)


def needed_programs(checkout: Checkout) -> list[NeededProgram]:
    """Return what patterns need beside the build; nothing where their files cannot be read, which is said elsewhere."""
    try:
        return programs_of(read_patterns(checkout))
    except UsageError:
        return []


def programs_of(workloads: Workloads) -> list[NeededProgram]:
    """Return what patterns need beside the build."""
    return [
        NeededProgram(
            program=one.program,
            package=one.package,
            points=f"{name} with {', '.join(f'{key}: {value}' for key, value in one.when.items())}",
        )
        for name, pattern in workloads.patterns.items()
        for one in pattern.programs
    ]


def _outside_programs(needed: Iterable[NeededProgram]) -> Iterator[HostFinding]:
    """Look for them on this machine."""
    for one in needed:
        if path := shutil.which(one.program, path=SYSTEM_PATH):  # as the agent looks for them
            yield HostFinding(code="D16", level="ok", text=f"{one.program}: {path}, for {one.points}")
        else:
            yield one.missing()


def _layers(checkout: Checkout, catalogue: Catalogue) -> Iterator[HostFinding]:
    unloadable: dict[str, list[str]] = {}
    for info in catalogue.layers:
        if info.absent is not None:
            yield HostFinding(code="D21", level="skip", text=f"{info.name}: {info.absent.reason}")
            continue
        version = info.description.version if info.description else None
        if info.unloadable:
            unloadable.setdefault(info.unloadable, []).append(info.name)
            continue
        yield HostFinding(code="D20", level="ok", text=f"{info.name}  {info.library} {version or ''}".rstrip())
    for reason, names in unloadable.items():
        yield HostFinding(code="D23", level="warn", text=f"{', '.join(names)} cannot run here: {reason}")
    if not any(info.absent is None for info in catalogue.layers):
        text = f"no layer is built in {checkout.modules}"
        yield HostFinding(code="D22", level="fail", text=text, fix=checkout.to_build)


def _testbed() -> Iterator[HostFinding]:
    from cadge_harness.testbed import emulated  # the probe starts processes: only here

    able, why = emulated.may_be_root()
    reason = emulated.probe() if able else why
    if reason:
        text = f"the emulated testbed cannot be made: {reason}"
        yield HostFinding(code="D30", level="warn", text=text, fix=command("run", "--testbed", "local"))
    else:
        yield HostFinding(code="D30", level="ok", text="hosts can be emulated in namespaces")


def _machine() -> Iterator[HostFinding]:
    cores = len(os.sched_getaffinity(0))
    if cores < 2:
        text = f"{cores} core: busy-polling points will be refused, because both ends would share it"
        yield HostFinding(code="D40", level="warn", text=text)
    else:
        yield HostFinding(code="D40", level="ok", text=f"{cores} cores")
    soft, _hard = resource.getrlimit(resource.RLIMIT_MEMLOCK)
    if soft != resource.RLIM_INFINITY and soft < 64 * 1024**2:
        text = f"locked memory is limited to {soft // 1024} KiB; RDMA devices need more"
        yield HostFinding(code="D41", level="warn", text=text, fix=MORE_LOCKED)
    if text := little_memory(shm_free_bytes()):
        yield HostFinding(code="D42", level="warn", text=text, fix=MORE_MEMORY)


def _kernel_left(folder: Path) -> Iterator[HostFinding]:
    """Find values of the kernel that a killed campaign set here, by the journals of cadge_agent/host/kernel.py.

    Those of emulated hosts' networks are gone with them, or restored by the next agent there.
    """
    boot = BOOT.read_text(encoding="ascii").strip() if BOOT.is_file() else ""
    for path in sorted(folder.glob(f"kernel/*.{boot}.*.json")):
        if ".emulated-" in path.name or is_held(path):
            continue
        with contextlib.suppress(OSError, ValueError, LookupError, TypeError):
            found = json.loads(path.read_text(encoding="utf-8"))
            old = ", ".join(f"{name} (was {value})" for name, _, _, value in found["values"])
            text = f"campaign {found['campaign']} was killed, and its values of the kernel are still set: {old}"
            yield HostFinding(code="D43", level="warn", text=text, fix=command("testbed", "restore", found["campaign"]))


def little_memory(free_bytes: int, where: str = "") -> str:
    """Return why layers may not get the shared memory that they want; "" where so much is enough."""
    if free_bytes >= SHM_BYTES_MIN:
        return ""
    return f"{SHM}{where} has {free_bytes / 1e6:.0f} MB free, and layers over MPI, UCX and libfabric may want more"


def busy() -> str:
    """Return why this machine is too busy to measure on; "" where it is quiet.

    The load average covers a minute, so that a build that has just ended is in it. Where it is high, a short look at
    the processors decides.
    """
    cores = len(os.sched_getaffinity(0))
    if os.getloadavg()[0] <= BUSY_LOAD_PER_CORE * cores + 0.5:
        return ""
    used = cores_used()
    if used <= BUSY_LOAD_PER_CORE * cores:
        return ""
    return f"other work uses {used:.1f} of {cores} cores: it will disturb what is measured"


def cores_used() -> float:
    """Return how many of this process's processors are busy or stolen, on average over a short while; proc_stat(5).

    Where a container hides that, it is the load average.
    """
    busy_before, all_before = _ticks()
    time.sleep(LOOK_S)
    busy_after, all_after = _ticks()
    cores = len(os.sched_getaffinity(0))
    if all_after == all_before:
        return os.getloadavg()[0]
    return cores * (busy_after - busy_before) / (all_after - all_before)


def _ticks() -> tuple[int, int]:
    """Return the ticks of this process's processors since the machine's start: those not idle, and all."""
    mine = {f"cpu{number}" for number in os.sched_getaffinity(0)}
    text = PROC_STAT.read_text(encoding="ascii") if PROC_STAT.is_file() else ""
    lines = [line.split() for line in text.splitlines()]
    ticks = [[int(word) for word in words[1:9]] for words in lines if words and words[0] in mine]  # guests are in user
    total = sum(map(sum, ticks))
    return total - sum(one[3] + one[4] for one in ticks), total


def _noise() -> Iterator[HostFinding]:
    if text := busy():
        yield HostFinding(code="D50", level="warn", text=text, fix="wait until the machine is quiet")
    else:
        yield HostFinding(code="D50", level="ok", text=f"load {os.getloadavg()[0]:.1f}")
    if AUTOGROUP.is_file() and AUTOGROUP.read_text().strip() == "1":
        text = (
            "the kernel shares processors out by session first (sched_autogroup_enabled): where threads are more than "
            "processors, those of one host can starve those of another for seconds"
        )
        fix = f"{command('run', '--tune')}, which switches it off meanwhile"
        yield HostFinding(code="D51", level="warn", text=text, fix=fix)
