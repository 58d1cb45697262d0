# SPDX-License-Identifier: BSD-3-Clause
"""Values of the kernel that a launch sets: settings kernel.NAME (a sysctl), sys.NAME (a file of /sys), device.NAME.

Old values go to a journal before anything is written. Its owner holds a lock on it, which the kernel releases however
the agent ends. The next agent restores from journals that nobody holds. A reboot gives the kernel its own values back,
so journals of an earlier boot are dropped.

A value belongs to a network namespace or to the whole machine, and there is one journal for each of these. Agents of
hosts that share a machine see the same journals, so one of them at a time sets values of the machine.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import json
import os
import re
import socket
from collections.abc import Iterator, Mapping
from pathlib import Path

from cadge_agent.errors import LaunchFailedError
from cadge_agent.formats import HostKernel
from cadge_agent.system import system

PREFIXES = ("kernel.", "sys.", "device.")
PROC_SYS, SYS = Path("/proc/sys"), Path("/sys")
OF_A_NAMESPACE = (str(PROC_SYS / "net"), str(SYS / "class/net"))
MACHINE_NETWORK = Path("/run/cadge/machine-network")
"""On emulated hosts: the machine's network namespace, for what exists there alone (supervisor.py)."""
JOURNALS = "kernel"
"""The folder of journals, beside the campaigns' folders."""
CLONE_NEWNET = 0x40000000
SO_NETNS_COOKIE = 71
_FORBIDDEN = (errno.EACCES, errno.EPERM, errno.EROFS)


def boot_id() -> str:
    """Return a word for this start of the kernel; containers of one machine have the same."""
    return (PROC_SYS / "kernel/random/boot_id").read_text(encoding="ascii").strip()


def file_of(name: str, device: str) -> Path:
    """Return the file of a setting; the same as in cadge_harness/plan/kernel.py."""
    prefix, _, rest = name.partition(".")
    if prefix == "device":
        return SYS / "class/net" / device / rest
    if prefix == "sys":
        return SYS / rest.replace(".", "/")
    return PROC_SYS / (rest if rest.startswith(("net.", "vm.")) else name).replace(".", "/")


def value_of(path: Path) -> str:
    """Read a value, with single spaces; of a list of choices, the one in brackets. Raises OSError."""
    text = " ".join(path.read_text(encoding="ascii", errors="replace").split())
    chosen = re.search(r"\[(\S+)\]", text)
    return chosen.group(1) if chosen else text


class _Value:
    """A file of the kernel, and the namespace that it is of."""

    def __init__(self, path: Path, *, entered: bool) -> None:
        self.path = path
        self.entered = entered  # whether it is found in the machine's network namespace alone
        self.of_machine = entered or not str(path).startswith(OF_A_NAMESPACE)

    def read(self) -> str:
        with _machine_network(self.entered):
            return value_of(self.path)

    def write(self, value: str) -> str:
        """Write it, and return what is read back."""
        with _machine_network(self.entered):
            if value_of(self.path) != value:
                self.path.write_text(value, encoding="ascii")
            return value_of(self.path)


@contextlib.contextmanager
def _machine_network(enter: bool) -> Iterator[None]:
    """Be in the machine's network namespace, where that is another one."""
    if not enter or not MACHINE_NETWORK.exists():
        yield
        return
    own, other = (os.open(path, os.O_RDONLY) for path in ("/proc/self/ns/net", MACHINE_NETWORK))
    try:
        system("setns", other, CLONE_NEWNET)
        yield
    finally:
        system("setns", own, CLONE_NEWNET)
        os.close(own)
        os.close(other)


class _Journal:
    """Old values of one namespace or of the machine, as [setting, file, entered, value], under a lock."""

    def __init__(self, path: Path, descriptor: int) -> None:
        self.path = path
        self._descriptor = descriptor

    @classmethod
    def open(cls, path: Path) -> _Journal | None:
        """Take it; None where an agent holds it."""
        while True:
            path.parent.mkdir(mode=0o700, exist_ok=True)
            try:
                descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
            except FileNotFoundError:  # the last holder removed the folder
                continue
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                os.close(descriptor)
                return None
            with contextlib.suppress(FileNotFoundError):
                if path.stat().st_ino == os.fstat(descriptor).st_ino:
                    return cls(path, descriptor)
            os.close(descriptor)  # its last holder removed it meanwhile

    @property
    def is_empty(self) -> bool:
        """Whether nothing is to be restored."""
        return os.fstat(self._descriptor).st_size == 0

    def note(self, campaign: str, values: Mapping[str, tuple[_Value, str]]) -> None:
        """Write old values down so that they outlive this process."""
        entries = [[name, str(one.path), one.entered, old] for name, (one, old) in values.items()]
        os.pwrite(self._descriptor, json.dumps({"campaign": campaign, "values": entries}).encode(), 0)
        os.fsync(self._descriptor)

    def entries(self) -> list[tuple[str, str, bool, str]]:
        """Return what is noted; nothing where it was cut short, for then nothing was set."""
        with contextlib.suppress(ValueError):
            found: list[tuple[str, str, bool, str]] = json.loads(self.path.read_bytes())["values"]
            return found
        return []

    def release(self) -> None:
        """Let others have it."""
        os.close(self._descriptor)

    def restore(self) -> tuple[list[str], list[str]]:
        """Put all back and release it; returns the settings, and what went wrong. It stays where something did."""
        done, wrong = list[str](), list[str]()
        for name, path, entered, old in reversed(self.entries()):
            try:
                now = _Value(Path(path), entered=entered).write(old)
                if now != old:
                    raise OSError(errno.EINVAL, f"it is {now}")
                done.append(name)
            except FileNotFoundError:  # its device is gone
                done.append(name)
            except OSError as error:
                wrong.append(f"{name} ({path}) cannot be set back to {old}: {error.strerror}")
        if not wrong:
            self.path.unlink()
        self.release()
        return done, wrong


def _namespace() -> str:
    """Return a word for this process's network namespace, which no later one of this boot has (Linux 5.14)."""
    try:
        with socket.socket() as one:
            return str(int.from_bytes(one.getsockopt(socket.SOL_SOCKET, SO_NETNS_COOKIE, 8), "little"))
    except OSError:
        return f"i{Path('/proc/self/ns/net').stat().st_ino}"


def _machine() -> str:
    """Return a word for this machine's system, which stays after a reboot."""
    try:
        return Path("/etc/machine-id").read_text(encoding="ascii").strip()[:12] or "none"
    except OSError:
        return "none"


def _folder(work: Path) -> Path:
    return work.absolute().parent / JOURNALS


def _journal_path(folder: Path, *, of_machine: bool) -> Path:
    """Return the journal; its name says whose it is, for a home may be that of another host as well."""
    of = "machine" if of_machine else f"{'emulated' if MACHINE_NETWORK.exists() else 'net'}-{_namespace()}"
    return folder / f"{_machine()}.{boot_id()}.{of}.json"


def _left(folder: Path) -> Iterator[_Journal]:
    """Yield the journals of this host that nobody holds, taken."""
    for of_machine in (False, True):
        path = _journal_path(folder, of_machine=of_machine)
        journal = _Journal.open(path) if path.exists() else None
        if journal is not None:
            yield journal


def left(work: Path) -> Iterator[str]:
    """Yield each setting whose value a killed agent left here, with the old one."""
    for journal in _left(_folder(work)):
        yield from (f"{name} (was {old})" for name, _, _, old in journal.entries())
        journal.release()


def restore_left(work: Path) -> tuple[list[str], list[str]]:
    """Restore what agents that were killed had set here; returns the settings, and what went wrong."""
    folder, done, wrong = _folder(work), [], []
    for path in folder.glob(f"{_machine()}.*.json"):
        if path.name.split(".")[1] != boot_id():
            path.unlink()
    for journal in _left(folder):
        restored, failed = journal.restore()
        done += restored
        wrong += failed
    with contextlib.suppress(OSError):
        folder.rmdir()
    return done, wrong


class KernelValues:
    """What launches of this host set, one launch after the other."""

    def __init__(self, work: Path, host: str, device: str, campaign: str) -> None:
        self._work = work
        self._folder = _folder(work)
        self._host, self._device, self._campaign = host, device, campaign
        self._held: dict[str, tuple[_Value, str]] = {}
        self._during: dict[str, str] = {}
        self._journals: list[_Journal] = []

    def set(self, settings: Mapping[str, str], *, of_machine: bool) -> None:
        """Set what a launch's settings state and read it back. of_machine: also what is the whole machine's.

        Raises LaunchFailedError; `restore` has to follow in any case.
        """
        wanted = {name: value for name, value in settings.items() if name.startswith(PREFIXES)}
        if wanted:
            restore_left(self._work)
        found = {name: self._find(name) for name in wanted}
        self._held = {name: one for name, one in found.items() if of_machine or not one[0].of_machine}
        self._during = {}
        for whole in (False, True):
            if held := {name: one for name, one in self._held.items() if one[0].of_machine == whole}:
                self._journals.append(self._taken(held, of_machine=whole))
        for name, (one, old) in self._held.items():
            try:
                now = self._during[name] = one.write(wanted[name])
            except OSError as error:
                raise self._failed(name, f"cannot be set to {wanted[name]}", error) from error
            if now == old != wanted[name]:
                raise LaunchFailedError("NODE_LACKS", f"{self._host}: {name} stays {old}, not {wanted[name]}")

    def _find(self, name: str) -> tuple[_Value, str]:
        path = file_of(name, self._device)
        elsewhere = str(path).startswith(OF_A_NAMESPACE[0]) and not os.access(path, os.W_OK)
        one = _Value(path, entered=elsewhere and MACHINE_NETWORK.exists())
        try:
            return one, one.read()
        except OSError as error:
            raise self._failed(name, "cannot be read", error) from error

    def _taken(self, held: Mapping[str, tuple[_Value, str]], *, of_machine: bool) -> _Journal:
        path = _journal_path(self._folder, of_machine=of_machine)
        journal = _Journal.open(path)
        if journal is None:
            text = f"{self._host}: another campaign on this machine has set values of the kernel now"
            raise LaunchFailedError("SYSTEM", text)
        if not journal.is_empty:
            journal.restore()
            text = f"{self._host}: what an earlier campaign set could not be set back; see {path}"
            raise LaunchFailedError("SYSTEM", text)
        journal.note(self._campaign, held)
        return journal

    def _failed(self, name: str, what: str, error: OSError) -> LaunchFailedError:
        code = "PERMISSION" if error.errno in _FORBIDDEN else "NODE_LACKS"
        return LaunchFailedError(code, f"{self._host}: {name} {what}: {error.strerror}")

    def report(self) -> HostKernel:
        """Say what the values were before, in the launch, and at its end. Call it before `restore`."""
        after = {}
        for name, (one, _) in self._held.items():
            with contextlib.suppress(OSError):
                after[name] = one.read()
        before = {name: old for name, (_, old) in self._held.items()}
        return {"host": self._host, "before": before, "during": self._during, "after": after}

    def restore(self) -> list[str]:
        """Put back what the last launch set; returns what went wrong."""
        wrong = [text for journal in self._journals for text in journal.restore()[1]]
        self._journals, self._held, self._during = [], {}, {}
        with contextlib.suppress(OSError):
            self._folder.rmdir()
        return [f"{self._host}: {text}" for text in wrong]
