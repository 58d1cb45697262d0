# SPDX-License-Identifier: BSD-3-Clause
"""The emulated testbed: one process that holds hosts made of namespaces.

Run as root, as a program of its own (standard library alone, so that it also runs under sudo):

    supervisor.py probe          can such a testbed be made here? exit 0, or 1 with the reason on stdout
    supervisor.py start FILE     make the testbed that FILE (JSON, see Plan) describes and leave it running; prints
                                 {"pid": ..., "start_time": ...} once every host answers, else exits 1 with the reason

`start` leaves one process behind: pid 1 of new pid, network, mount, IPC and UTS namespaces. Every host is a child of it
in namespaces of its own. When that process ends, however it ends, the kernel takes all of it away: processes, devices,
mounts. Nothing is made in the machine's own network namespace, and nothing is written outside the plan's folder.

What a host sees of its own: /proc, /sys, /dev/shm, /tmp, /run and /etc (a copy with other names, and the same people,
but the one who may log in has an unlocked account and a plain shell). Everything else is the machine's, and so are the
folders of /tmp that the plan names. /var/tmp stays the machine's for it is on a disk, which some workloads read from.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import pwd
import shutil
import signal
import struct
import subprocess
import sys
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NoReturn

CLONE_NEWNS = 0x00020000
CLONE_NEWUTS = 0x04000000
CLONE_NEWIPC = 0x08000000
CLONE_NEWPID = 0x20000000
CLONE_NEWNET = 0x40000000
ALL_NAMESPACES = CLONE_NEWNS | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWPID | CLONE_NEWNET

MS_NOSUID, MS_NODEV, MS_NOEXEC, MS_BIND, MS_REC, MS_PRIVATE = 2, 4, 8, 4096, 16384, 1 << 18

# Where a host finds the throw-away keys and the ssh configuration.
HOST_FOLDER = Path("/run/cadge")
MACHINE_NETWORK = HOST_FOLDER / "machine-network"
"""Where root finds sysctls of networks that the machine's namespace alone has (cadge_agent/host/kernel.py)."""
RIGHTS_FOLDER = Path("/run/cadge-rights")
# NET_ADMIN, NET_RAW, IPC_LOCK, BPF, which floors need to be opened (FloorFile.rights); the agent's site.py lends them
RIGHTS = 1 << 12 | 1 << 13 | 1 << 14 | 1 << 39
VFS_CAP_REVISION_2 = 0x02000000
READY_TIMEOUT_S = 30.0
SSHD_RESTART_PAUSE_S = 0.2
TOOLS = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

_libc = ctypes.CDLL(None, use_errno=True)


class UnableError(Exception):
    """Something that a testbed needs cannot be had here; the message is the sentence shown to the user."""


@dataclass(frozen=True)
class SupervisorPlan:
    """What `start` is told. `folder` is the user's 0700 state folder and holds the keys made by testbed.py."""

    folder: Path
    uid: int
    gid: int
    umask: int  # of the user; on the hosts it is the same
    hosts: tuple[str, ...]
    management_prefix: str  # "198.18.0": .1 is the controller, .11 the first host
    data_prefix: str
    machine_network: int = -1  # a descriptor of the machine's network namespace, while `start` runs
    shared: tuple[str, ...] = ()  # folders below /tmp that hosts see as this machine does, those above others first

    @staticmethod
    def read(path: Path) -> SupervisorPlan:
        """Read the JSON file that testbed.py wrote."""
        raw = json.loads(path.read_text(encoding="utf-8"))
        lists = {name: tuple(raw[name]) for name in ("hosts", "shared")}
        return SupervisorPlan(**{**raw, **lists, "folder": Path(raw["folder"])})


def _check(result: int, what: str) -> None:
    if result != 0:
        number = ctypes.get_errno()
        raise UnableError(f"{what}: {os.strerror(number)}")


def unshare(flags: int) -> None:
    """Leave the namespaces named by `flags` (CLONE_NEW*) for new ones."""
    _check(_libc.unshare(flags), "new namespaces cannot be made")


def mount(source: str, target: Path | str, kind: str | None, flags: int = 0, options: str = "") -> None:
    """Make one mount; `kind` None for a bind mount or a change of flags. Raises UnableError."""
    form = kind.encode() if kind else None
    result = _libc.mount(source.encode(), str(target).encode(), form, ctypes.c_ulong(flags), options.encode() or None)
    _check(result, f"{target} cannot be mounted ({kind or 'bind'})")


def ip(*lines: str) -> None:
    """Run lines of `ip -batch` in this process's network namespace."""
    batch = "\n".join(lines) + "\n"
    done = subprocess.run(["ip", "-batch", "-"], input=batch, capture_output=True, text=True, timeout=20, check=False)
    if done.returncode != 0:
        raise UnableError(f"network devices cannot be made: {done.stderr.strip().splitlines()[0]}")


def start_time(pid: int | str) -> int:
    """Start time of a process in clock ticks since boot: with the pid, it names a process for good."""
    text = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    return int(text.rpartition(")")[2].split()[19])


def _private_mounts() -> None:
    mount("none", "/", None, MS_REC | MS_PRIVATE)
    mount("proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC)


def _no_ipv6(*devices: str) -> None:
    # neighbour discovery and multicast listener reports would be traffic of nobody's during a measurement
    for device in devices:
        switch = Path(f"/proc/sys/net/ipv6/conf/{device}/disable_ipv6")
        if switch.exists():
            switch.write_text("1", encoding="ascii")


# ---------------------------------------------------------------------------------------------------------- one host


class HostNamespace:
    """One host, from the point of view of its own pid 1."""

    def __init__(self, plan: SupervisorPlan, index: int) -> None:
        self.plan = plan
        self.index = index
        self.name = plan.hosts[index]
        self.folder = plan.folder / "hosts" / self.name
        self.sshd: subprocess.Popen[bytes] | None = None

    def _addresses(self, prefix: str) -> str:
        return f"{prefix}.{11 + self.index}"

    def network(self) -> None:
        """Give addresses to the devices that the supervisor moved here."""
        _no_ipv6("default", "mgmt0", "data0", "raw0")
        ip(
            "link set lo up",
            f"address add {self._addresses(self.plan.management_prefix)}/24 dev mgmt0",
            f"address add {self._addresses(self.plan.data_prefix)}/24 dev data0",
            "link set mgmt0 up",
            "link set data0 up",
            "link set raw0 up",
        )

    def mounts(self) -> None:
        """Give the host its own view of /proc, /sys, /dev/shm, /tmp, /run and /etc."""
        plan = self.plan
        _private_mounts()
        mount("sysfs", "/sys", "sysfs", MS_NOSUID | MS_NODEV | MS_NOEXEC)
        with contextlib.suppress(UnableError):  # libxdp pins its programs here; without it, it does without
            mount("bpf", "/sys/fs/bpf", "bpf", MS_NOSUID | MS_NODEV | MS_NOEXEC, "mode=700")
        mount("tmpfs", "/dev/shm", "tmpfs", MS_NOSUID | MS_NODEV, "mode=1777")  # noqa: S108 - the mount point itself
        # the files to be shown lie in the plan's folder, which is about to be hidden if it is under /run or /tmp
        contents = {name: (self.folder / name).read_bytes() for name in _HOST_FILES}
        own_tmp(plan.shared)
        mount("tmpfs", "/run", "tmpfs", MS_NOSUID | MS_NODEV, "mode=755")
        for path, mode in (("/run/sshd", 0o755), ("/run/lock", 0o1777), ("/run/user", 0o755)):
            Path(path).mkdir()
            Path(path).chmod(mode)
        own = Path(f"/run/user/{plan.uid}")
        own.mkdir(mode=0o700)
        os.chown(own, plan.uid, plan.gid)
        HOST_FOLDER.mkdir(mode=0o755)
        for name, data in contents.items():
            copy = HOST_FOLDER / name
            copy.touch(mode=_HOST_FILES[name])
            copy.write_bytes(data)
        os.chown(HOST_FOLDER / "id_ed25519", plan.uid, plan.gid)
        MACHINE_NETWORK.touch()
        try:
            mount(f"/proc/self/fd/{plan.machine_network}", MACHINE_NETWORK, None, MS_BIND)
        except UnableError:  # without it these sysctls are refused
            MACHINE_NETWORK.unlink()
        with contextlib.suppress(UnableError, OSError):
            lend_rights(plan)
        own_etc(plan.uid)

    def start_sshd(self) -> None:
        """Start this host's sshd, which logs to the plan's folder through our stderr."""
        self.sshd = subprocess.Popen(
            ["/usr/sbin/sshd", "-D", "-e", "-f", str(HOST_FOLDER / "sshd_config")],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            umask=self.plan.umask,  # sessions begin with it
        )

    def check_sshd(self) -> None:
        """Refuse to call the host ready when sshd does not like its configuration."""
        config = HOST_FOLDER / "sshd_config"
        with_penalties = config.read_text(encoding="utf-8") + "PerSourcePenalties no\n"
        trial = HOST_FOLDER / "sshd_config.new"
        trial.write_text(with_penalties, encoding="utf-8")  # OpenSSH 9.8 and later know it and would lock us out
        if subprocess.run(["/usr/sbin/sshd", "-t", "-f", str(trial)], capture_output=True, check=False).returncode == 0:
            trial.replace(config)
        else:
            trial.unlink()
        done = subprocess.run(["/usr/sbin/sshd", "-t", "-f", str(config)], capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise UnableError(f"sshd refuses its configuration: {done.stderr.strip()}")

    def run(self, ready: int) -> NoReturn:
        """Be pid 1: write "ok" or a reason to descriptor `ready`, then reap, and keep sshd running."""
        try:
            os.environ["PATH"] = TOOLS
            _check(_libc.sethostname(self.name.encode(), len(self.name)), "the host name cannot be set")
            self.mounts()
            self.network()
            self.check_sshd()
            self.start_sshd()
            _await_port(self._addresses(self.plan.management_prefix), 22)
            os.write(ready, b"ok")
        except (UnableError, OSError, subprocess.SubprocessError) as error:
            os.write(ready, f"host {self.name}: {error}".encode())
            sys.exit(1)
        os.close(ready)
        while True:
            pid, _ = os.wait()  # sshd is always a child, so there is always one to wait for
            if self.sshd is not None and pid == self.sshd.pid:
                time.sleep(SSHD_RESTART_PAUSE_S)
                self.start_sshd()


# what of HOST_FOLDER is copied from the plan's folder, with its mode
_SECRET = ("host_key", "id_ed25519")
_PLAIN = ("hosts", "hostname", "authorized_keys", "known_hosts", "ssh_config", "sshd_config")
_HOST_FILES = {**dict.fromkeys(_PLAIN, 0o644), **dict.fromkeys(_SECRET, 0o600)}


def lend_rights(plan: SupervisorPlan) -> None:
    """Give the one who logs in, and nobody else, a copy of setpriv that may lend RIGHTS to what it starts here."""
    if plan.uid == 0:
        return
    RIGHTS_FOLDER.mkdir(mode=0o755)
    mount("tmpfs", RIGHTS_FOLDER, "tmpfs", MS_NODEV, "mode=755")
    copy = RIGHTS_FOLDER / "setpriv"
    shutil.copyfile(shutil.which("setpriv", path=TOOLS) or "", copy)
    os.chown(copy, plan.uid, 0)
    copy.chmod(0o500)
    permitted = struct.pack("<IIIII", VFS_CAP_REVISION_2, RIGHTS & 0xFFFFFFFF, 0, RIGHTS >> 32, 0)
    os.setxattr(copy, "security.capability", permitted)


def own_tmp(shared: tuple[str, ...]) -> None:
    """Give the host an empty /tmp, in which there are only these folders of the machine's."""
    opened = [(path, os.open(path, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)) for path in shared]
    mount("tmpfs", "/tmp", "tmpfs", MS_NOSUID | MS_NODEV, "mode=1777")  # noqa: S108 - the mount point itself
    for path, descriptor in opened:
        Path(path).mkdir(parents=True, exist_ok=True)
        mount(f"/proc/self/fd/{descriptor}", path, None, MS_BIND | MS_REC)
        os.close(descriptor)


def own_etc(uid: int) -> None:
    """Give the host a copy of /etc with its own names, and with accounts of which the user's has /bin/sh and no lock.

    A copy, for a mount over a single file goes where a program beside replaces that file, as apt does. Without PAM
    sshd refuses an account whose password starts with "!", as `useradd` leaves it; sshd takes keys alone either way.
    """
    etc = HOST_FOLDER / "etc"
    subprocess.run(["cp", "-a", "/etc", str(etc)], check=False, capture_output=True, timeout=READY_TIMEOUT_S)
    user = pwd.getpwuid(uid)
    lines = (etc / "passwd").read_text(encoding="utf-8", errors="surrogateescape").splitlines(keepends=True)
    others = [line for line in lines if line.partition(":")[0] != user.pw_name]
    own = f"{user.pw_name}:x:{user.pw_uid}:{user.pw_gid}::{user.pw_dir}:/bin/sh\n"
    names = [user.pw_name, *(line.partition(":")[0] for line in others)]
    contents = {
        "passwd": own + "".join(others),
        "shadow": "".join(f"{name}:*:19000:0:99999:7:::\n" for name in names),
        "hosts": (HOST_FOLDER / "hosts").read_text(encoding="utf-8"),
        "hostname": (HOST_FOLDER / "hostname").read_text(encoding="utf-8"),
    }
    for name, text in contents.items():
        (etc / name).unlink(missing_ok=True)
        (etc / name).touch(mode=0o600 if name == "shadow" else 0o644)
        (etc / name).write_text(text, encoding="utf-8", errors="surrogateescape")
    mount(str(etc), "/etc", None, MS_BIND)


def _await_port(address: str, port: int) -> None:
    """Wait until something listens on address:port, read from the kernel's table rather than by connecting."""
    wanted = "".join(f"{int(part):02X}" for part in reversed(address.split("."))) + f":{port:04X}"
    deadline = time.monotonic() + READY_TIMEOUT_S
    while time.monotonic() < deadline:
        rows = Path("/proc/net/tcp").read_text(encoding="ascii").splitlines()[1:]
        if any(row.split()[1] == wanted and row.split()[3] == "0A" for row in rows):
            return
        time.sleep(0.01)
    raise UnableError(f"sshd did not listen on {address}:{port} within {READY_TIMEOUT_S:.0f} s")


# -------------------------------------------------------------------------------------------------------- supervisor


def _fork_host(plan: SupervisorPlan, index: int) -> tuple[int, int, int]:
    """Fork a host into namespaces of its own; returns (its pid here, its go descriptor, its ready descriptor)."""
    go_read, go_write = os.pipe()
    ready_read, ready_write = os.pipe()
    pid_read, pid_write = os.pipe()
    middle = os.fork()
    if middle == 0:
        try:
            unshare(ALL_NAMESPACES)
            init = os.fork()
            if init:
                os.write(pid_write, str(init).encode())
                os._exit(0)
            for descriptor in (go_write, ready_read, pid_read, pid_write):
                os.close(descriptor)
            if not os.read(go_read, 1):
                os._exit(1)
            os.close(go_read)
            HostNamespace(plan, index).run(ready_write)
        except UnableError as error:
            os.write(ready_write, str(error).encode())
        finally:
            os._exit(1)
    for descriptor in (go_read, ready_write, pid_write):
        os.close(descriptor)
    os.waitpid(middle, 0)
    text = os.read(pid_read, 32)
    os.close(pid_read)
    if not text:
        raise UnableError(os.read(ready_read, 4096).decode() or "a host's namespaces cannot be made")
    return int(text), go_write, ready_read


def _link_hosts(plan: SupervisorPlan, pids: list[int]) -> None:
    """Make the bridge for management, and the data and raw links, and move their ends to the hosts."""
    lines = ["link set lo up", "link add mgmt0 type bridge", f"address add {plan.management_prefix}.1/24 dev mgmt0"]
    _no_ipv6("default")
    for number, pid in enumerate(pids):
        lines += [
            f"link add mgmt-{number} type veth peer name mgmt0 netns {pid}",
            f"link set mgmt-{number} master mgmt0 up",
        ]
    lines.append("link set mgmt0 up")
    for kind in ("data", "raw"):
        if len(pids) == 2:  # a plain cable
            lines += [
                f"link add {kind}-a type veth peer name {kind}-b",
                f"link set {kind}-a netns {pids[0]} name {kind}0",
                f"link set {kind}-b netns {pids[1]} name {kind}0",
            ]
            continue
        lines.append(f"link add {kind}0 type bridge")
        for number, pid in enumerate(pids):
            lines += [
                f"link add {kind}-{number} type veth peer name {kind}0 netns {pid}",
                f"link set {kind}-{number} master {kind}0 up",
            ]
        lines.append(f"link set {kind}0 up")
    ip(*lines)


def supervise(plan: SupervisorPlan, report: int) -> NoReturn:
    """Be pid 1 of the testbed: make it, write "ok" or a reason to descriptor `report`, then wait until it ends."""
    try:
        os.environ["PATH"] = TOOLS
        _private_mounts()
        name = b"cadge-testbed"
        _check(_libc.sethostname(name, len(name)), "the host name cannot be set")
        hosts = [_fork_host(plan, index) for index in range(len(plan.hosts))]
        _link_hosts(plan, [pid for pid, _, _ in hosts])
        for _, go, _ in hosts:
            os.write(go, b"g")
            os.close(go)
        for _, _, ready in hosts:
            answer = os.read(ready, 4096).decode()
            os.close(ready)
            if answer != "ok":
                raise UnableError(answer or "a host ended before it was ready")
        os.write(report, b"ok")
    except (UnableError, OSError, subprocess.SubprocessError) as error:
        os.write(report, str(error).encode())
        sys.exit(1)
    os.close(report)
    signal.signal(signal.SIGTERM, lambda _number, _frame: os._exit(0))
    inits = {pid for pid, _, _ in hosts}
    while True:
        pid, _ = os.wait()
        if pid in inits:  # a testbed that lacks a host is no testbed: end it, so that the next `up` makes a whole one
            sys.exit(1)


def _daemon(plan: SupervisorPlan, report: int, pid_out: int) -> NoReturn:
    """Leave the terminal and the caller's session, make the namespaces, and become their supervisor."""
    os.setsid()
    log = os.open(
        plan.folder / "supervisor.log", os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600
    )
    null = os.open(os.devnull, os.O_RDWR)
    for descriptor, source in ((0, null), (1, log), (2, log)):
        os.dup2(source, descriptor)
    os.chdir("/")
    os.umask(0o022)  # what every program of a host reads, /etc/passwd for one; secrets are made with modes of their own
    try:
        unshare(ALL_NAMESPACES)
    except UnableError as error:
        os.write(report, str(error).encode())
        os._exit(1)
    first = os.fork()
    if first:
        os.write(pid_out, str(first).encode())
        os._exit(0)
    os.close(pid_out)
    os.closerange(report + 1, 1024)
    supervise(plan, report)


def _check_tools() -> None:
    for tool in ("ip", "sshd"):
        if shutil.which(tool, path=TOOLS) is None:
            raise UnableError(f"the program {tool} is missing")


def start(plan: SupervisorPlan) -> dict[str, int]:
    """Make the testbed and return how to know its process again: {"pid", "start_time"}."""
    _check_tools()
    plan = replace(plan, machine_network=os.open("/proc/self/ns/net", os.O_RDONLY))  # below `report`, so it stays open
    pid_read, pid_write = os.pipe()
    report_read, report_write = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(pid_read)
        os.close(report_read)
        try:
            _daemon(plan, report_write, pid_write)
        finally:
            os._exit(1)
    os.close(pid_write)
    os.close(report_write)
    os.waitpid(child, 0)
    pid = os.read(pid_read, 32)
    identity = {"pid": int(pid), "start_time": start_time(int(pid))} if pid else {}
    answer = os.read(report_read, 4096).decode()
    if answer != "ok" or not identity:
        raise UnableError(answer or "the testbed's first process ended before it was ready")
    return identity


def probe() -> None:
    """Try all that a testbed is made of, in a process that then ends and takes it away. Raises UnableError."""
    if os.geteuid() != 0:
        raise UnableError("this needs root")
    _check_tools()
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            unshare(ALL_NAMESPACES)
            inner = os.fork()
            if inner == 0:
                os.environ["PATH"] = TOOLS
                _private_mounts()
                mount("sysfs", "/sys", "sysfs", MS_NOSUID | MS_NODEV | MS_NOEXEC)
                mount("tmpfs", "/dev/shm", "tmpfs", MS_NOSUID | MS_NODEV, "mode=1777")  # noqa: S108 - the mount point
                _check(_libc.sethostname(b"probe", 5), "the host name cannot be set")
                ip("link add cadge0 type bridge", "link add cadge1 type veth peer name cadge2")
                os.write(write, b"ok")
                os._exit(0)
            os.waitpid(inner, 0)
        except (UnableError, OSError, subprocess.SubprocessError) as error:
            os.write(write, str(error).encode())
        finally:
            os._exit(0)
    os.close(write)
    answer = os.read(read, 4096).decode()
    os.waitpid(child, 0)
    if answer != "ok":
        raise UnableError(answer or "a process in new namespaces ended at once")


def main(arguments: list[str]) -> int:
    """Command line, see the head of this file."""
    os.environ["PATH"] = TOOLS
    try:
        if arguments == ["probe"]:
            probe()
        elif len(arguments) == 2 and arguments[0] == "start":
            sys.stdout.write(json.dumps(start(SupervisorPlan.read(Path(arguments[1])))) + "\n")
        else:
            sys.stderr.write("usage: supervisor.py probe | start FILE\n")
            return 2
    except UnableError as error:
        sys.stdout.write(f"{error}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
