#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""The agent: runs one block's launches on a host, and says what that host is.

One file, standard library alone, Python 3.9 or later; copied to each host of a testbed.

    agent.py run --block FILE --host NAME --work DIR [--build DIR]
    agent.py facts [--host NAME] [--build DIR]
    agent.py check --work DIR --campaign ID --host NAME --build DIR
    agent.py clean --work DIR --campaign ID

check gets a host ready: ends and removes what a killed agent of the same campaign left, runs the build's driver once,
and writes DIR/node.json. It prints one line that must be the same on all hosts.

run holds a lease: standard input. A line {"stop": REASON} ends the block after the launch that is running; end of
file, a signal, or the block's deadline ends it now. However it ends, what it started is killed first. Standard output
carries JSON lines, only between launches:

    {"event": "ready", "host", "leader": bool, "todo": N, "agent_version", "node": {cadge.node/1} or null}
    {"event": "launch_started", "launch_id", "number", "of"}
    {"event": "launch_finished", "launch_id", "status", "reason", "reason_code", "wall_ns", "kept": bool}
    {"event": "launch_record", "launch_id", "record": {cadge.launch-record/1}}
    {"event": "problem", "host", "reason"}
    {"event": "note", "host", "text"}                what a user may want to know: what was removed
    {"event": "block_finished", "host", "made", "kept", "stopped": bool}

After a record the leader waits for {"ack": LAUNCH_ID} before the next launch, so that nobody works on the last one
while the next one measures. A finished launch is DIR/done/ID.json until it is acknowledged, then
DIR/collected/ID.json; a launch found in either is not made again ("kept"), its record is sent again.

The leader is the host of every launch's endpoint 0. The other hosts of the block, the followers, obey it over TCP on
their management addresses, after each has proved to the other that it has the token. While a launch runs, all agents
sleep in select(2).

Exit status of run: 0 finished or stopped, 2 bad arguments or block, 4 another host was lost, 5 the lease or the
deadline ended it, 70 bug. check: 0, or 3 with a sentence on standard error.
"""

from __future__ import annotations

import argparse
import contextlib
import ctypes
import errno
import fcntl
import hashlib
import hmac
import json
import os
import platform
import re
import resource
import secrets
import select
import shlex
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, Callable, Dict, List, NoReturn, Optional, Tuple

AGENT_VERSION = "1"
BLOCK_SCHEMA = "cadge.block/1"
RECORD_SCHEMA = "cadge.launch-record/1"
NODE_SCHEMA = "cadge.node/1"

CONNECT_S = 30.0  # leader and followers have to find each other within this
ANSWER_S = 10.0  # a follower has to answer an order within this
ACK_S = 30.0  # the controller has to take a record within this, else the block goes on
AFTER_PEER_S = 3.0  # one endpoint gone: the other gets this long to write what it knows
KILL_S = 1.0  # between TERM and KILL
RESERVED_PORTS = 8  # of the block's range, at its end: 4 for agents, 4 for drivers to find each other
TAIL_BYTES = 4000
MARK = "CADGE_MARK"
OWN_PREFIX = "cadge-"
OWN_FOLDERS = "folders.json"  # in the work folder: our folders elsewhere on this host
SHM = Path("/dev/shm")  # noqa: S108 - where libraries keep shared memory, whatever TMPDIR says

Json = Dict[str, Any]

_libc = ctypes.CDLL(None, use_errno=True)
PR_SET_PDEATHSIG, PR_SET_NAME = 1, 15


class EndedError(Exception):
    """The lease, the deadline or a signal ended the block now."""


class HostLostError(Exception):
    """Another host of the block does not answer any more."""


class BadBlockError(Exception):
    """The block or the arguments cannot be used; the message says why."""


# ------------------------------------------------------------------------------------------------------------ reactor


class Reactor:
    """Sleeps until a child ends, a descriptor can be read, or time is up; and notices that the lease ends.

    All waiting of the agent happens in `wait`. It raises EndedError when standard input ends or the deadline passes.
    """

    def __init__(self, deadline_s: float, lease: int = 0) -> None:
        self.deadline = time.monotonic() + deadline_s
        self.lease = lease
        self.stop_reason: Optional[str] = None
        self.acks: set[str] = set()
        self.readers: Dict[int, Callable[[], None]] = {}
        self._partial = b""
        self._signal: Optional[int] = None
        self._wake_read, self._wake_write = os.pipe()
        for descriptor in (self._wake_read, self._wake_write):
            os.set_blocking(descriptor, False)
        os.set_blocking(lease, False)
        signal.set_wakeup_fd(self._wake_write, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda _number, _frame: None)
        for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
            signal.signal(number, self._signalled)

    def _signalled(self, number: int, _frame: object) -> None:
        self._signal = number

    def _read_lease(self) -> None:
        try:
            data = os.read(self.lease, 65536)
        except BlockingIOError:
            return
        if not data:
            raise EndedError("the controller's lease ended")
        *lines, self._partial = (self._partial + data).split(b"\n")
        for line in lines:
            try:
                order = json.loads(line)
            except ValueError:
                continue
            if "stop" in order:
                self.stop_reason = str(order["stop"])
            elif "ack" in order:
                self.acks.add(str(order["ack"]))

    def wait(self, done: Callable[[], bool], timeout_s: float, writable: Optional[int] = None) -> bool:
        """Sleep until `done()` or `timeout_s`; True if done. `writable`: also return when it can be written."""
        until = time.monotonic() + timeout_s
        while True:
            if self._signal is not None:
                raise EndedError(f"signal {self._signal}")
            if done():
                return True
            now = time.monotonic()
            if now >= self.deadline:
                raise EndedError("the block's deadline passed")
            if now >= until:
                return False
            readers = [self.lease, self._wake_read, *self.readers]
            writers = [] if writable is None else [writable]
            ready, can_write, _ = select.select(readers, writers, [], min(until, self.deadline) - now)
            for descriptor in ready:
                if descriptor == self._wake_read:
                    with contextlib.suppress(BlockingIOError):
                        os.read(self._wake_read, 4096)
                elif descriptor == self.lease:
                    self._read_lease()
                elif descriptor in self.readers:
                    self.readers[descriptor]()
            if can_write:
                return True

    def check(self) -> None:
        """Notice the lease's end or a stop without sleeping."""
        self.wait(lambda: False, 0)
        ready, _, _ = select.select([self.lease], [], [], 0)
        if ready:
            self._read_lease()


class Output:
    """JSON lines to the controller. Never blocks without watching the lease."""

    def __init__(self, reactor: Reactor, descriptor: int = 1) -> None:
        self._reactor = reactor
        self._descriptor = descriptor
        os.set_blocking(descriptor, False)

    def emit(self, event: str, **fields: object) -> None:
        """Write one line; raises EndedError where nobody reads any more."""
        data = memoryview((json.dumps({"event": event, **fields}, separators=(",", ":")) + "\n").encode())
        while data:
            try:
                data = data[os.write(self._descriptor, data) :]
            except BlockingIOError:
                self._reactor.wait(lambda: False, 60.0, writable=self._descriptor)
            except BrokenPipeError as error:
                raise EndedError("nobody reads the agent's output") from error


# ---------------------------------------------------------------------------------------------------------- processes


def _die_with_parent() -> None:
    _libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


class Child:
    """A process of a launch: leader of its own session and group, dies with the agent, logs to a file."""

    def __init__(self, argv: List[str], log: Path, environment: Dict[str, str]) -> None:
        self.log = log
        with log.open("ab") as sink:
            self._process = subprocess.Popen(
                argv,
                stdin=subprocess.DEVNULL,
                stdout=sink,
                stderr=subprocess.STDOUT,
                env=environment,
                start_new_session=True,
                preexec_fn=_die_with_parent,  # one thread: safe
            )

    @property
    def pid(self) -> int:
        """Its process number."""
        return self._process.pid

    def code(self) -> Optional[int]:
        """Exit status, negative for a signal; None while it runs."""
        return self._process.poll()

    def _signal_group(self, number: int) -> None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, number)

    def kill(self, grace_s: float = KILL_S) -> None:
        """End the whole group: TERM, then KILL."""
        if self.code() is None and grace_s > 0:
            self._signal_group(signal.SIGTERM)
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(grace_s)
        self._signal_group(signal.SIGKILL)
        self._process.wait()


def tail(path: Path) -> str:
    """Return the last bytes of a log, as text; empty if there is none."""
    try:
        with path.open("rb") as log:
            log.seek(0, os.SEEK_END)
            log.seek(max(0, log.tell() - TAIL_BYTES))
            return log.read().decode("utf-8", errors="replace")
    except OSError:
        return ""


def kill_marked(prefix: str) -> List[int]:
    """Kill every process here whose environment carries our mark: what a launcher started and then left alone.

    Returns the numbers of those that were seen to end.
    """
    wanted = f"{MARK}={prefix}".encode()
    killed = []
    for folder in Path("/proc").iterdir():
        if not folder.name.isdigit() or int(folder.name) == os.getpid():
            continue
        try:
            environment = (folder / "environ").read_bytes().split(b"\0")
        except OSError:
            continue
        if any(item.startswith(wanted) for item in environment):
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(int(folder.name), signal.SIGKILL)
                killed.append(int(folder.name))
    until = time.monotonic() + KILL_S
    while time.monotonic() < until and any(map(_runs, killed)):
        time.sleep(0.01)
    return [pid for pid in killed if not _runs(pid)]


def _runs(pid: int) -> bool:
    """Whether a process is there and has not ended; one that nobody has waited for has."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return False
    return stat.rpartition(")")[2].split()[0] not in "ZX"


def own_folder(parent: Path, work: Path) -> Path:
    """Make a folder in a place that others use as well, for what we start to put files into. Raises OSError.

    Its name is short, for libraries put sockets there, and the same for each agent of a work folder, so that the next
    one finds what one that was killed left.
    """
    folder = parent / f"{OWN_PREFIX}{hashlib.sha256(str(work).encode()).hexdigest()[:10]}"
    shutil.rmtree(folder, ignore_errors=True)  # refuses a symbolic link, and cannot remove what is another user's
    try:
        folder.mkdir(mode=0o700)
    except FileExistsError:
        return Path(tempfile.mkdtemp(prefix=OWN_PREFIX, dir=parent))
    return folder


def remove_own_folder(folder: Path) -> List[str]:
    """Remove a folder that own_folder made, with what is in it; returns its name, or nothing where it was not there."""
    with contextlib.suppress(OSError):
        if folder.name.startswith(OWN_PREFIX) and folder.lstat().st_uid == os.geteuid():
            shutil.rmtree(folder)
            return [str(folder)]
    return []


# ------------------------------------------------------------------------------------------------------ shared memory


CLONE_NEWNS, CLONE_NEWIPC, CLONE_NEWUSER = 0x00020000, 0x08000000, 0x10000000
MS_NOSUID, MS_NODEV, MS_NOEXEC, MS_REC, MS_SLAVE = 2, 4, 8, 0x4000, 0x80000
IPC_RMID = 0
CAP_SYS_ADMIN = 21
ENTER = "nsenter"
FOLDER_VARIABLES = ("UCX_POSIX_DIR", "OMPI_MCA_btl_vader_backing_directory", "OMPI_MCA_btl_sm_backing_directory")


class SharedMemory:
    """Where the endpoints of this host keep shared memory: a place that is ours alone.

    UCX and Open MPI name their segments after no process, so in a place that others use as well nobody can tell what
    a killed endpoint left from what somebody keeps there.

    private: a process that sleeps (the keeper) holds a mount of /dev/shm and an IPC namespace; endpoints enter them,
    and with the last process all that was in them is gone. folder: where namespaces cannot be had (`why`), the
    libraries are told to use a folder of ours; libfabric's files and SysV segments cannot be moved, but say which
    process made them. shared: neither can be had; only those are removed.

    `before` is put before the command of each endpoint.
    """

    def __init__(self, work: Path, scratch: Path, driver: Path) -> None:
        """Make it for a work folder. `scratch`: where endpoints begin; `driver`: what they run."""
        self._scratch = scratch
        self.since_s = time.time()
        self.folder: Optional[Path] = None
        self.variables: Dict[str, str] = {}
        self.why: Optional[str] = None
        self._keeper: Optional[int] = None
        try:
            self._as_user = _needs_user_namespace(driver)
            self._keep()
            self._try_to_enter(driver)
        except OSError as error:
            self._end_keeper()
            self.kind, self.why = "folder", error.strerror
            self._use_folder(work)

    def _keep(self) -> None:
        self._keeper = _keep_namespaces(self._scratch, as_user=self._as_user)
        self.kind = "private"
        # Root and working folder are the keeper's: a mount namespace begins at its own root, also for us in a chroot.
        self.before = [str(shutil.which(ENTER)), "--target", str(self._keeper), "--mount", "--ipc", "--root", "--wd"]
        if self._as_user:
            self.before += ["--user", "--preserve-credentials"]
        self.before += ["--"]

    def _try_to_enter(self, driver: Path) -> None:
        """Do what each endpoint will do, once. Raises OSError."""
        argv = [*self.before, "test", "-e", str(driver)]
        done = subprocess.run(argv, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
        if done.returncode != 0 and driver.exists():
            said = done.stderr.strip() or f"{driver} is not there"
            raise PermissionError(errno.EPERM, f"the namespaces cannot be entered: {said}")

    def _end_keeper(self) -> None:
        if self._keeper is not None:
            with contextlib.suppress(OSError):
                os.kill(self._keeper, signal.SIGKILL)
                os.waitpid(self._keeper, 0)
            self._keeper = None

    def _use_folder(self, work: Path) -> None:
        try:
            self.folder = own_folder(SHM, work)
        except OSError as error:
            self.kind, self.why, self.before = "shared", f"{self.why}; {SHM}: {error.strerror}", []
            return
        self.variables = {name: str(self.folder) for name in FOLDER_VARIABLES}
        self.before = ["env", *(f"{name}={value}" for name, value in self.variables.items())]

    def renew(self) -> None:
        """Have a living keeper for the launch to come. Raises OSError."""
        if self._keeper is not None and os.waitpid(self._keeper, os.WNOHANG) != (0, 0):
            self._keeper = None
            self._keep()

    def describe(self) -> Json:
        """Say it for the record of a launch."""
        return {"kind": self.kind, "why": self.why, "variables": self.variables}

    def tidy(self, ended: List[int]) -> List[str]:
        """Remove what endpoints left; `ended`: processes that we started and saw end. Returns the names."""
        left = []
        if self.folder is not None:
            with contextlib.suppress(OSError):
                left = list(self.folder.iterdir())
        removed = []
        for path in left:
            with contextlib.suppress(OSError):
                path.unlink()
                removed.append(str(path))
        return removed + ([] if self.kind == "private" else remove_segments(ended, self.since_s))

    def close(self) -> None:
        """End the keeper and remove the folder."""
        if self.folder is not None:
            remove_own_folder(self.folder)
        self._end_keeper()


def _needs_user_namespace(driver: Path) -> bool:
    """Whether the others need it. Raises OSError where they cannot be entered, or it would take rights of ours."""
    if shutil.which(ENTER) is None:
        raise FileNotFoundError(errno.ENOENT, f"there is no program {ENTER}")
    status = Path("/proc/self/status").read_text(encoding="utf-8")
    sets = {name: int(value, 16) for name, value in re.findall(r"^(Cap\w+):\s*([0-9a-f]+)$", status, re.MULTILINE)}
    if sets["CapEff"] >> CAP_SYS_ADMIN & 1:
        return False
    with contextlib.suppress(OSError):
        os.getxattr(driver, "security.capability")
        raise PermissionError(errno.EPERM, "the driver has file capabilities, which end in a user namespace")
    if sets["CapPrm"] or sets["CapAmb"]:
        raise PermissionError(errno.EPERM, "this user has capabilities, which end in a user namespace")
    return True


def _keep_namespaces(scratch: Path, *, as_user: bool) -> int:
    """Start the keeper, in `scratch`; returns its number when its namespaces are ready. Raises OSError, in words."""
    flags, options = _shm_mount()
    read, write = os.pipe()
    parent = os.getpid()
    child = os.fork()
    if child == 0:
        try:
            signal.set_wakeup_fd(-1)
            for number in (signal.SIGCHLD, signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
                signal.signal(number, signal.SIG_DFL)
            os.setsid()
            _libc.prctl(PR_SET_NAME, b"cadge-keeper")
            _enter_own_namespaces(flags, options, as_user=as_user)
            os.chdir(scratch)
            _die_with_parent()
            null = os.open(os.devnull, os.O_RDWR)
            for stream in range(3):
                os.dup2(null, stream)
            os.write(write, b"ready")
            os.closerange(3, 1 << 16)
            while os.getppid() == parent:
                signal.pause()
        except OSError as error:
            os.write(write, f"{error.filename or ''} {error.strerror}".strip().encode())
        finally:
            os._exit(0)
    os.close(write)
    with os.fdopen(read, "rb") as pipe:
        said = pipe.read().decode()
    if said != "ready":
        os.waitpid(child, 0)
        raise PermissionError(errno.EPERM, f"no namespaces: {said or 'the attempt crashed'}")
    return child


def _enter_own_namespaces(flags: int, options: str, *, as_user: bool) -> None:
    """Give this process a mount of /dev/shm and an IPC namespace of its own. Raises OSError with what was tried."""
    user, group = os.geteuid(), os.getegid()
    _system("unshare", CLONE_NEWNS | CLONE_NEWIPC | (CLONE_NEWUSER if as_user else 0))
    if as_user:  # it stays who it is
        Path("/proc/self/setgroups").write_text("deny", encoding="ascii")
        Path("/proc/self/uid_map").write_text(f"{user} {user} 1", encoding="ascii")
        Path("/proc/self/gid_map").write_text(f"{group} {group} 1", encoding="ascii")
    _system("mount", b"none", b"/", None, MS_REC | MS_SLAVE, None)  # from here, nothing is mounted for others
    _system("mount", b"tmpfs", str(SHM).encode(), b"tmpfs", flags, options.encode())


def _system(name: str, *arguments: object) -> None:
    if getattr(_libc, name)(*arguments) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), name)


def _shm_mount() -> Tuple[int, str]:
    """Find flags and options for a mount that is like the host's own /dev/shm, so that it is as fast and as large."""
    flags, options = MS_NOSUID | MS_NODEV, ["mode=1777"]
    place = str(SHM.resolve())
    for line in Path("/proc/self/mountinfo").read_text(encoding="utf-8", errors="replace").splitlines():
        own, _, system = line.partition(" - ")
        words, (kind, _, super_options) = own.split(), system.split(" ", 2)
        if words[4] == place and kind == "tmpfs":  # the last one counts: it lies on top
            flags = MS_NOSUID | MS_NODEV | (MS_NOEXEC if "noexec" in words[5].split(",") else 0)
            kept = [o for o in super_options.split(",") if o.split("=")[0] in ("size", "nr_inodes", "huge", "mpol")]
            options = ["mode=1777", *kept]
    return flags, ",".join(options)


def remove_segments(pids: List[int], since_s: float) -> List[str]:
    """Remove what these processes, which have ended, made and left; returns the names.

    That is libfabric's files, PID:UID:NUMBER, and SysV segments; none that is older than `since_s` (a process number
    comes again) or that some process uses.
    """
    removed = []
    user = os.geteuid()
    ours = re.compile(rf"({'|'.join(map(str, pids))}):{user}:\d+")
    found = []
    with contextlib.suppress(OSError):
        found = [path for path in SHM.iterdir() if pids and ours.fullmatch(path.name)]
    used = mapped_in(SHM) if found else set()
    for path in found:
        with contextlib.suppress(OSError):
            facts = path.lstat()
            if facts.st_uid == user and facts.st_ctime >= since_s - 1 and path.name not in used:
                path.unlink()
                removed.append(str(path))
    with contextlib.suppress(OSError):
        heading, *lines = Path("/proc/sysvipc/shm").read_text(encoding="ascii").splitlines()
        for line in lines:
            segment = dict(zip(heading.split(), map(int, line.split())))  # noqa: B905 - Python 3.9
            fresh = segment["ctime"] >= since_s - 1
            if fresh and segment["cpid"] in pids and segment["uid"] == user and segment["nattch"] == 0:
                _system("shmctl", segment["shmid"], IPC_RMID, None)
                removed.append(f"SysV segment {segment['shmid']}")
    return removed


def mapped_in(folder: Path) -> set[str]:
    """Names of the files below `folder` that some process has mapped, as far as we may look."""
    names: set[str] = set()
    for maps in Path("/proc").glob("[0-9]*/maps"):
        with contextlib.suppress(OSError):
            names.update(re.findall(rf"{folder}/(\S+)", maps.read_text(errors="replace")))
    return names


# ----------------------------------------------------------------------------------------------------------- network


SIOCETHTOOL = 0x8946
ETHTOOL_GET = {"rx_checksum": 0x14, "tx_checksum": 0x16, "scatter_gather": 0x18, "tso": 0x1E, "gso": 0x23, "gro": 0x2B}
ETHTOOL_GDRVINFO = 0x3


def _ethtool(device: str, data: bytearray) -> bytearray:
    pointer = ctypes.addressof((ctypes.c_char * len(data)).from_buffer(data))
    request = struct.pack("16sP16x", device.encode(), pointer)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as handle:
        fcntl.ioctl(handle, SIOCETHTOOL, request)
    return data


def offloads(device: str) -> Json:
    """Read the device's offloads as booleans; {"unknown": reason} for one that cannot be read."""
    found: Json = {}
    for name, command in ETHTOOL_GET.items():
        try:
            answer = _ethtool(device, bytearray(struct.pack("II", command, 0)))
            found[name] = bool(struct.unpack("II", answer)[1])
        except OSError as error:
            found[name] = {"unknown": os.strerror(error.errno or 0)}
    return found


def driver_of(device: str) -> object:
    """Kernel driver of a device."""
    try:
        answer = _ethtool(device, bytearray(struct.pack("I", ETHTOOL_GDRVINFO) + bytes(192)))
        return bytes(answer[4:36]).split(b"\0")[0].decode()
    except OSError as error:
        return {"unknown": os.strerror(error.errno or 0)}


def _netlink(kind: int, body: bytes, dump: bool) -> List[bytes]:
    """Ask rtnetlink; returns the bodies of the answers."""
    flags = 0x1 | (0x300 if dump else 0)
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0) as handle:
        handle.settimeout(2)
        handle.send(struct.pack("IHHII", 16 + len(body), kind, flags, 1, 0) + body)
        found: list[bytes] = []
        while True:
            data = handle.recv(1 << 20)
            while len(data) >= 16:
                length, what = struct.unpack_from("IH", data)
                if what == 3:
                    return found
                if what == 2:
                    number = -struct.unpack_from("i", data, 16)[0]
                    raise OSError(number, os.strerror(number))
                found.append(data[16:length])
                data = data[(length + 3) & ~3 :]
            if not dump:
                return found


def _attributes(data: bytes) -> Dict[int, bytes]:
    found = {}
    while len(data) >= 4:
        length, kind = struct.unpack_from("HH", data)
        if length < 4:
            break
        found[kind & 0x3FFF] = data[4:length]
        data = data[(length + 3) & ~3 :]
    return found


def xdp_attached(device: str) -> Optional[bool]:
    """Whether an XDP program is attached; None where the kernel does not say."""
    try:
        index = socket.if_nametoindex(device)
        answer = _netlink(18, struct.pack("BxHiII", 0, 0, index, 0, 0), dump=False)[0]
        xdp = _attributes(answer[16:]).get(43, b"")
        attached = _attributes(xdp).get(2, b"\0")
    except (OSError, IndexError, struct.error):
        return None
    return attached[0] != 0


def device_of(address: str) -> Optional[Tuple[str, int]]:
    """(device, prefix length) of one of this host's IPv4 addresses; None if it is not ours."""
    for answer in _netlink(22, struct.pack("BBBBi", socket.AF_INET, 0, 0, 0, 0), dump=True):
        _, length, _, _, index = struct.unpack_from("BBBBi", answer)
        own = _attributes(answer[8:])
        raw = own.get(2, own.get(1, b""))
        if len(raw) == 4 and socket.inet_ntoa(raw) == address:
            return socket.if_indextoname(index), length
    return None


def interface_counters(devices: List[str]) -> Json:
    """Bytes and packets of `devices`, from /proc/net/dev."""
    found: Json = {}
    for line in Path("/proc/net/dev").read_text(encoding="utf-8").splitlines()[2:]:
        name, _, numbers = line.partition(":")
        if name.strip() in devices:
            n = [int(word) for word in numbers.split()]
            found[name.strip()] = {"rx_bytes": n[0], "tx_bytes": n[8], "rx_packets": n[1], "tx_packets": n[9]}
    return found


def steal_ns() -> int:
    """Time that a hypervisor took from all processors together, since boot."""
    words = Path("/proc/stat").read_text(encoding="ascii").split("\n", 1)[0].split()
    return int(words[8]) * (1_000_000_000 // os.sysconf("SC_CLK_TCK")) if len(words) > 8 else 0


# ----------------------------------------------------------------------------------------------- one host of a block


class Site:
    """What one host does for a launch: keep files, look at its devices, run endpoints. Used on leader and followers."""

    def __init__(self, block: Json, name: str, work: Path, build: Path) -> None:
        self.block = block
        self.name = name
        self.work = work
        self.build = build
        self.host: Json = next((host for host in block["hosts"] if host["name"] == name), {})
        if not self.host:
            raise BadBlockError(f"block {block['block_id']} has no host {name}")
        token = Path(block["token_file"])
        self.token_file = token if token.is_absolute() else work / token
        self.mark = f"{block['campaign_id']}:{block['block_id']}"
        for folder in ("done", "collected", "launches", "logs"):
            (work / folder).mkdir(exist_ok=True)
        self.scratch = own_folder(Path(tempfile.gettempdir()), work)
        self.memory = SharedMemory(work, self.scratch, build / "bin" / "cadge-driver")
        folders = [str(folder) for folder in (self.scratch, self.memory.folder) if folder]
        (work / OWN_FOLDERS).write_text(json.dumps(folders), encoding="utf-8")
        self.children: Dict[int, Child] = {}
        self._before: Json = {}
        try:
            management = device_of(self.host["management_address"])
        except OSError:
            management = None
        self.node: Json | None = None
        with contextlib.suppress(OSError, ValueError):
            self.node = json.loads((work / "node.json").read_text(encoding="utf-8"))
        self.management_device = management[0] if management else None
        self.management_network = f"{self.host['management_address']}/{management[1]}" if management else None
        devices = [self.host["device"], self.management_device, self.host.get("raw_device"), "lo"]
        self.devices = [device for device in devices if device]

    # -- ports

    def _port_free(self, port: int) -> bool:
        with socket.socket() as trial:
            trial.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                trial.bind((self.host["management_address"], port))
                trial.listen(1)
            except OSError:
                return False
        return True

    def pairing_port(self, number: int) -> int:
        """Find a free port for the drivers to find each other; `number` is the attempt."""
        last = int(self.block["ports"][1])
        candidates = [last - RESERVED_PORTS + 1 + (number + step) % 4 for step in range(4)]
        for port in candidates:
            if port != self.block["control_port"] and self._port_free(port):
                return port
        raise OSError(errno.EADDRINUSE, f"ports {candidates[0]}-{candidates[-1]} of {self.name} are all taken")

    # -- looking at the host

    def _snapshot(self) -> Json:
        device = self.host["device"]
        return {
            "counters": interface_counters(self.devices),
            "link": {"xdp": xdp_attached(device), "offloads": offloads(device)},
            "loadavg": os.getloadavg()[0],
            "steal_ns": steal_ns(),
        }

    # -- a launch

    def prepare(self, launch: Json, attempt: int) -> Json:
        """Write the launch file, take the snapshot before; returns what the leader needs to know of this host."""
        self.children = {}
        self.memory.renew()
        path = self.launch_file(launch)
        path.write_text(json.dumps(launch), encoding="utf-8")
        needs_port = launch["endpoints"][-1]["host"] == self.name
        port = self.pairing_port(attempt) if needs_port else 0
        self._before = self._snapshot()
        return {"port": port, **self.describe(launch)}

    def program(self, launch: Json) -> Path:
        """Choose the driver or the floors' program, for this launch."""
        return self.build / "bin" / ("cadge-floor" if launch["kind"] == "floor" else "cadge-driver")

    def launch_file(self, launch: Json) -> Path:
        """Where this host keeps the launch file."""
        return self.work / "launches" / f"{launch['launch_id']}.json"

    def result_file(self, launch: Json) -> Path:
        """Where endpoint 0 writes."""
        return self.work / "launches" / f"{launch['launch_id']}.result.json"

    def log_file(self, launch: Json, endpoint: int) -> Path:
        """Where an endpoint's output goes."""
        return self.work / "logs" / f"{launch['launch_id']}.{endpoint}.log"

    def environment(self) -> Dict[str, str]:
        """Environment of every process of a launch."""
        own = dict(os.environ)
        own.update({MARK: self.mark, "TMPDIR": str(self.scratch), "LC_ALL": "C.UTF-8"})
        own["PATH"] = own.get("PATH", "/usr/bin:/bin") + ":/usr/local/sbin:/usr/sbin:/sbin"
        return own

    def start(self, launch: Json, endpoint: int, oob: str) -> None:
        """Start one endpoint of a launch with launcher direct."""
        argv = endpoint_command(self.describe(launch), endpoint, oob)
        if endpoint == 0:
            argv += ["--out", str(self.result_file(launch))]
        self.children[endpoint] = Child(argv, self.log_file(launch, endpoint), self.environment())

    def describe(self, launch: Json) -> Json:
        """Paths that make an endpoint's command on this host."""
        return {
            "before": self.memory.before,
            "program": str(self.program(launch)),
            "launch_file": str(self.launch_file(launch)),
            "modules": str(self.build / "layers"),
            "token_file": str(self.token_file),
        }

    def end(self, launch: Json) -> List[str]:
        """Kill what is left of the launch; returns the names of what it had left in shared memory and is removed."""
        for child in self.children.values():
            child.kill()
        ended = [child.pid for child in self.children.values()]
        if launch["launcher"] == "mpirun":
            ended += kill_marked(self.mark)
        return self.memory.tidy(ended)

    def finish(self, launch: Json) -> Json:
        """End the launch and report: snapshots, exit codes and logs of the endpoints that ran here."""
        removed = self.end(launch)
        after = self._snapshot()
        before = self._before or after
        report = {
            "counters": {"host": self.name, "before": before["counters"], "after": after["counters"]},
            "link": {"host": self.name, "before": before["link"], "after": after["link"]},
            "load": {
                "host": self.name,
                "loadavg": before["loadavg"],
                "steal_ns": max(0, after["steal_ns"] - before["steal_ns"]),
            },
            "shared_memory": {"host": self.name, **self.memory.describe()},
            "removed": removed,
            "exit_codes": {str(number): child.code() for number, child in self.children.items()},
            "logs": {str(number): tail(self.log_file(launch, number)) for number in self.children},
        }
        for number in self.children:
            with contextlib.suppress(OSError):
                self.log_file(launch, number).unlink()
        with contextlib.suppress(OSError):
            self.launch_file(launch).unlink()
        return report

    def close(self) -> List[str]:
        """Leave nothing: processes, shared memory, scratch files; returns the names of what was in shared memory."""
        for child in self.children.values():
            child.kill(0)
        ended = [child.pid for child in self.children.values()] + kill_marked(self.mark)
        removed = self.memory.tidy(ended)
        self.memory.close()
        remove_own_folder(self.scratch)
        return removed


def endpoint_command(site: Json, endpoint: int, oob: str) -> List[str]:
    """Command line of one endpoint on the host that `site` describes (see Site.describe)."""
    return [
        *site["before"],
        site["program"],
        "run",
        "--launch",
        site["launch_file"],
        "--endpoint",
        str(endpoint),
        "--modules",
        site["modules"],
        "--oob",
        oob,
        "--token-file",
        site["token_file"],
    ]


# ------------------------------------------------------------------------------------------- leader and followers, TCP


class Line:
    """JSON lines over one TCP connection between agents."""

    def __init__(self, handle: socket.socket, reactor: Reactor) -> None:
        self.handle = handle
        self.reactor = reactor
        self.lines: List[Json] = []
        self.lost = False
        self._partial = b""
        handle.setblocking(False)
        handle.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        reactor.readers[handle.fileno()] = self._read

    def _read(self) -> None:
        try:
            data = self.handle.recv(1 << 20)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            self.lost = True
            self.reactor.readers.pop(self.handle.fileno(), None)
            return
        *lines, self._partial = (self._partial + data).split(b"\n")
        for line in lines:
            try:
                message = json.loads(line)
            except ValueError:
                message = None
            if not isinstance(message, dict):
                self.lost = True  # not one of ours
                return
            self.lines.append(message)

    def send(self, message: Json) -> None:
        """Send one message; raises HostLostError."""
        data = memoryview((json.dumps(message) + "\n").encode())
        until = time.monotonic() + ANSWER_S
        while data:
            try:
                data = data[self.handle.send(data) :]
            except BlockingIOError:
                left = until - time.monotonic()
                if left <= 0 or not self.reactor.wait(lambda: False, left, writable=self.handle.fileno()):
                    raise HostLostError("it does not take what is sent to it") from None
            except OSError as error:
                raise HostLostError(os.strerror(error.errno or 0)) from error

    def receive(self, timeout_s: float) -> Json:
        """Return the next message; raises HostLostError."""
        if not self.reactor.wait(lambda: bool(self.lines) or self.lost, timeout_s):
            raise HostLostError(f"no answer within {timeout_s:.0f} s")
        if not self.lines:
            raise HostLostError("the connection ended")
        return self.lines.pop(0)

    def close(self) -> None:
        """Close the connection."""
        self.reactor.readers.pop(self.handle.fileno(), None)
        self.handle.close()


def _proof(token: bytes, role: str, nonces: str) -> str:
    return hmac.new(token, f"cadge-agent {role} {nonces}".encode(), hashlib.sha256).hexdigest()


def control_ports(block: Json) -> List[int]:
    """Ports that a follower may listen on, in the order of trying."""
    last = int(block["ports"][1])
    ports = [int(block["control_port"]), *range(last, last - 4, -1)]
    return list(dict.fromkeys(ports))


def connect_follower(host: Json, block: Json, token: bytes, reactor: Reactor) -> Line:
    """Find a follower on one of its ports and prove to each other who we are. Raises HostLostError."""
    until = time.monotonic() + CONNECT_S
    why: dict[int, str] = {}
    while time.monotonic() < until:
        for port in control_ports(block):
            try:
                handle = socket.create_connection((host["management_address"], port), timeout=2)
            except OSError as error:
                why.setdefault(port, str(error.strerror or error))
                continue
            line = Line(handle, reactor)
            try:
                mine = secrets.token_hex(16)
                line.send({"hello": AGENT_VERSION, "block": block["block_id"], "nonce": mine})
                answer = line.receive(3)
                nonces = f"{mine} {answer.get('nonce')} {host['name']}"
                if not hmac.compare_digest(str(answer.get("proof")), _proof(token, "follower", nonces)):
                    raise HostLostError("it does not know the token")
                line.send({"proof": _proof(token, "leader", nonces)})
                answer = line.receive(3)
                if answer.get("ok") is not True:
                    raise HostLostError(str(answer.get("reason", "it refused")))
            except HostLostError as error:
                line.close()
                why[port] = str(error)
                continue
            return line
        reactor.wait(lambda: False, 0.05)
    said = "; ".join(f"port {port}: {reason}" for port, reason in why.items())
    raise HostLostError(f"{host['name']} does not answer on {host['management_address']}: {said}")


def check_names(*names: str) -> None:
    """Refuse a name that could lead out of a folder, or be more than one word or one member of a list."""
    for name in names:
        if not re.fullmatch("[A-Za-z0-9][A-Za-z0-9_.-]*", name):
            raise BadBlockError(f"{name[:60]!r} cannot be the name of a block, a launch or a host")


def hosts_of(launches: List[Json]) -> set[str]:
    """Return the names of all hosts that some launch needs."""
    return {endpoint["host"] for launch in launches for endpoint in launch["endpoints"]}


class Follower:
    """A host of the block that is not its leader: starts and ends its endpoints as told."""

    def __init__(self, site: Site, reactor: Reactor, output: Output) -> None:
        self.site = site
        self.reactor = reactor
        self.output = output
        self.token = site.token_file.read_bytes().strip()

    def _listen(self) -> socket.socket:
        address = self.site.host["management_address"]
        for port in control_ports(self.site.block):
            listener = socket.socket()
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                listener.bind((address, port))
                listener.listen(4)
            except OSError as error:
                listener.close()
                if error.errno != errno.EADDRINUSE:
                    raise BadBlockError(
                        f"{self.site.name} cannot listen on {address}:{port}: {error.strerror}"
                    ) from error
                continue
            listener.setblocking(False)
            return listener
        raise BadBlockError(f"ports {control_ports(self.site.block)} of {self.site.name} are all taken")

    def _authenticate(self, line: Line) -> bool:
        try:
            hello = line.receive(3)
            if hello.get("hello") != AGENT_VERSION or hello.get("block") != self.site.block["block_id"]:
                return False
            own = secrets.token_hex(16)
            nonces = f"{hello.get('nonce')} {own} {self.site.name}"
            line.send({"nonce": own, "proof": _proof(self.token, "follower", nonces)})
            answer = line.receive(3)
            if not hmac.compare_digest(str(answer.get("proof")), _proof(self.token, "leader", nonces)):
                return False
            line.send({"ok": True})
        except HostLostError:
            return False
        return True

    def _leader(self) -> Line:
        listener = self._listen()
        arrived: List[bool] = []
        self.reactor.readers[listener.fileno()] = lambda: arrived.append(True)
        try:
            node, name = self.site.node, self.site.name
            self.output.emit("ready", host=name, leader=False, todo=0, agent_version=AGENT_VERSION, node=node)
            until = time.monotonic() + 2 * CONNECT_S
            while True:
                arrived.clear()
                self.reactor.wait(lambda: bool(arrived), until - time.monotonic())
                try:
                    handle, _ = listener.accept()
                except BlockingIOError:
                    if time.monotonic() >= until:
                        raise HostLostError("the leader of the block did not come") from None
                    continue
                line = Line(handle, self.reactor)
                if self._authenticate(line):
                    return line
                line.close()
        finally:
            self.reactor.readers.pop(listener.fileno(), None)
            listener.close()

    def run(self) -> int:
        """Obey the leader until it says goodbye; where no launch needs this host, no leader comes."""
        if self.site.name not in hosts_of(self.site.block["launches"]):
            self.output.emit(
                "ready", host=self.site.name, leader=False, todo=0, agent_version=AGENT_VERSION, node=self.site.node
            )
            return 0
        line = self._leader()
        reported: set[int] = set()

        def something() -> bool:
            for number, child in self.site.children.items():
                if number not in reported and child.code() not in (None, 0):
                    return True
            return bool(line.lines) or line.lost

        while True:
            self.reactor.wait(something, float("inf"))
            for number, child in self.site.children.items():
                if number not in reported and child.code() not in (None, 0):
                    reported.add(number)
                    line.send({"exited": number, "code": child.code()})
            if line.lines:
                order = line.lines.pop(0)
                if order["do"] == "bye":
                    return 0
                if order["do"] == "prepare":
                    reported.clear()
                line.send(self._obey(order))
            elif line.lost:
                raise HostLostError("the leader of the block is gone")

    def _obey(self, order: Json) -> Json:
        launch = order["launch"]
        check_names(launch["launch_id"])
        try:
            if order["do"] == "prepare":
                return {"answer": "prepare", **self.site.prepare(launch, order["attempt"])}
            if order["do"] == "start":
                self.site.start(launch, order["endpoint"], order["oob"])
                return {"answer": "start"}
            if order["do"] == "finish":
                child = self.site.children.get(1)
                if child is not None and order["grace_s"] > 0:
                    self.reactor.wait(lambda: child.code() is not None, order["grace_s"])
                return {"answer": "finish", **self.site.finish(launch)}
        except OSError as error:
            return {"answer": order["do"], "error": f"{self.site.name}: {error.strerror or error}"}
        return {"answer": "?", "error": f"unknown order {order['do']}"}


# ------------------------------------------------------------------------------------------------------------- leader


class LaunchFailedError(Exception):
    """A launch that could not be started or ended badly, with a code for the store."""

    def __init__(self, code: str, reason: str) -> None:
        super().__init__(reason)
        self.code = code


class Leader:
    """The host of endpoint 0: makes the block's launches one after the other."""

    def __init__(self, site: Site, reactor: Reactor, output: Output) -> None:
        self.site = site
        self.block = site.block
        self.reactor = reactor
        self.output = output
        self.followers: Dict[str, Line] = {}

    # -- talking to followers

    def _ask(self, host: str, order: Json, timeout_s: float = ANSWER_S) -> Json:
        line = self.followers[host]
        try:
            line.send(order)
            while True:
                answer = line.receive(timeout_s)
                if answer.get("answer") == order["do"]:
                    break
        except HostLostError as error:
            raise HostLostError(f"{host}: {error}") from error
        if "error" in answer:
            raise OSError(errno.EIO, answer["error"])
        return answer

    # -- one launch

    def _hosts_of(self, launch: Json) -> List[str]:
        return list(dict.fromkeys(endpoint["host"] for endpoint in launch["endpoints"]))

    def _prepare(self, launch: Json, attempt: int) -> Dict[str, Json]:
        found = {}
        for host in self._hosts_of(launch):
            if host == self.site.name:
                found[host] = self.site.prepare(launch, attempt)
            else:
                found[host] = self._ask(host, {"do": "prepare", "launch": launch, "attempt": attempt})
        return found

    def _start(self, launch: Json, sites: Dict[str, Json]) -> None:
        last = launch["endpoints"][-1]
        port = sites[last["host"]]["port"]
        address = next(host for host in self.block["hosts"] if host["name"] == last["host"])["management_address"]
        oob = f"{address}:{port}"
        if launch["launcher"] == "mpirun":
            argv = self._mpirun(launch, sites, oob)
            self.site.children[0] = Child(argv, self.site.log_file(launch, 0), self._mpi_environment())
            return
        if len(launch["endpoints"]) > 1:
            if last["host"] == self.site.name:
                self.site.start(launch, 1, oob)
            else:
                order = {"do": "start", "launch": launch, "endpoint": 1, "oob": oob}
                self._ask(last["host"], order)
        self.site.start(launch, 0, oob)

    def _mpi_environment(self) -> Dict[str, str]:
        own = self.site.environment()
        if os.geteuid() == 0:  # only there: a user's mpirun is not told to allow what he is not
            for prefix in ("OMPI", "PRTE"):
                own[f"{prefix}_ALLOW_RUN_AS_ROOT"] = "1"
                own[f"{prefix}_ALLOW_RUN_AS_ROOT_CONFIRM"] = "1"
        return own

    def _mpirun(self, launch: Json, sites: Dict[str, Json], oob: str) -> List[str]:
        mpirun = self.block.get("mpirun") or {}
        program = shutil.which(mpirun.get("path", "mpirun"), path=self.site.environment()["PATH"])
        if program is None:
            raise LaunchFailedError("NODE_LACKS", f"{self.site.name} has no program {mpirun.get('path', 'mpirun')}")
        argv = [program, *mpirun.get("options", [])]
        if launch["place"] == "between" and self.site.management_network:
            argv += ["--mca", "oob_tcp_if_include", self.site.management_network]
        # One command for both, which looks at its rank: PMIx 5.0.7 crashes over two commands joined by ':'.
        cases = []
        for number, endpoint in enumerate(launch["endpoints"]):
            command = endpoint_command(sites[endpoint["host"]], number, oob)
            if number == 0:
                command += ["--out", str(self.site.result_file(launch))]
            cases.append(f"{number}) exec {' '.join(map(shlex.quote, command))};;")
        hosts = [f"{endpoint['host']}:1" for endpoint in launch["endpoints"]]
        where = ",".join(hosts) if launch["place"] == "between" else f"localhost:{len(hosts)}"
        script = f"case $OMPI_COMM_WORLD_RANK in {' '.join(cases)} esac; exit 70"
        return [*argv, "-n", str(len(hosts)), "--host", where, "-x", MARK, "sh", "-c", script]

    def _await(self, launch: Json) -> Optional[LaunchFailedError]:
        """Sleep until the launch is over; returns what went wrong outside the driver, if anything."""
        first, own_server = self.site.children[0], self.site.children.get(1)
        remote = [self.followers[host] for host in self._hosts_of(launch) if host != self.site.name]
        exited: List[Json] = []

        def over() -> bool:
            for line in remote:
                exited.extend(message for message in line.lines if "exited" in message)
                line.lines = [message for message in line.lines if "exited" not in message]
                if line.lost:
                    return True
            server_gone = bool(exited) or (own_server is not None and own_server.code() not in (None, 0))
            return first.code() is not None or server_gone

        deadline_s = launch["deadline_ms"] / 1000 + 1.0
        if not self.reactor.wait(over, deadline_s):
            return LaunchFailedError("DEADLINE", f"the launch did not end within {launch['deadline_ms']} ms")
        if any(line.lost for line in remote):
            raise HostLostError("a host of the launch is gone")
        if first.code() is None:  # the server went first: the client is given time to say so itself
            self.reactor.wait(lambda: first.code() is not None, AFTER_PEER_S)
            code = exited[0]["code"] if exited else (own_server.code() if own_server else None)
            return LaunchFailedError("PEER_LOST", f"endpoint 1 ended early {say_code(code)}")
        if own_server is not None and first.code() == 0:
            self.reactor.wait(lambda: own_server.code() is not None, AFTER_PEER_S)
        return None

    def _finish(self, launch: Json, good: bool) -> List[Json]:
        reports = []
        for host in self._hosts_of(launch):
            if host == self.site.name:
                reports.append(self.site.finish(launch))
            else:
                grace_s = AFTER_PEER_S if good and launch["launcher"] == "direct" else 0
                order = {"do": "finish", "launch": launch, "grace_s": grace_s}
                reports.append(self._ask(host, order, ANSWER_S + AFTER_PEER_S))
        return reports

    def _one(self, launch: Json, attempt: int) -> Json:
        """Make one launch; returns its record."""
        failure: Optional[LaunchFailedError] = None
        result: Optional[Json] = None
        result_file = self.site.result_file(launch)
        with contextlib.suppress(OSError):
            result_file.unlink()
        try:
            lacking = self._lacking(launch)
            sites = self._prepare(launch, attempt)
            if lacking:
                raise lacking
            self._start(launch, sites)
            failure = self._await(launch)
        except LaunchFailedError as error:
            failure = error
        except OSError as error:
            failure = LaunchFailedError("TRANSPORT", f"the launch could not be started: {error.strerror or error}")
        first = self.site.children.get(0)
        good = failure is None and first is not None and first.code() == 0
        reports = self._finish(launch, good)
        with contextlib.suppress(OSError, ValueError):
            result = json.loads(result_file.read_text(encoding="utf-8"))
        with contextlib.suppress(OSError):
            result_file.unlink()
        codes: Json = {}
        logs: Json = {}
        for report in reports:
            codes.update(report.pop("exit_codes"))
            logs.update(report.pop("logs"))
            tell_removed(self.output, report["counters"]["host"], report.pop("removed"))
        numbers = [str(number) for number in range(len(launch["endpoints"]))]
        status, reason, reason_code = outcome(result, failure, codes.get("0"))
        return {
            "schema": RECORD_SCHEMA,
            "launch": launch,
            "result": result,
            "status": status,
            "reason": reason,
            "reason_code": reason_code,
            "counters": [report["counters"] for report in reports],
            "link": [report["link"] for report in reports],
            "load": [report["load"] for report in reports],
            "shared_memory": [report["shared_memory"] for report in reports],
            "exit_codes": [codes.get(number) for number in numbers],
            "log_tail": [logs.get(number, "") for number in numbers],
            "agent_version": AGENT_VERSION,
        }

    def _lacking(self, launch: Json) -> Optional[LaunchFailedError]:
        """Give a reason not to start at all: the program or the layer is not on this host."""
        program = self.site.program(launch)
        if not os.access(program, os.X_OK):
            return LaunchFailedError("BUILD_ABSENT", f"{self.site.name} has no program {program.name} in its build")
        layers = self.site.build / "layers"
        if launch["kind"] == "layer" and not (layers / f"{launch['layer']}.so").exists():
            absent = layers / f"{launch['layer']}.absent"
            why = absent.read_text(encoding="utf-8").strip() if absent.exists() else "it was not built"
            return LaunchFailedError("BUILD_ABSENT", f"layer {launch['layer']} is not in the build: {why}")
        return None

    def make(self, given: Json) -> Json:
        """Make a launch, once more with other ports if one was taken; returns its record."""
        first, last = self.block["ports"]
        record: Json = {}
        for attempt in range(2):
            span = (last - RESERVED_PORTS - first) // 2
            shift = attempt * span
            launch = {**given, "ports": [first + shift, first + shift + span]}
            record = self._one(launch, attempt)
            if not port_taken(record):
                break
        return record

    # -- the block

    def _send(self, record: Json) -> None:
        name = record["launch"]["launch_id"]
        self.output.emit("launch_record", launch_id=name, record=record)
        if self.reactor.wait(lambda: name in self.reactor.acks, ACK_S):
            with contextlib.suppress(OSError):
                (self.site.work / "done" / f"{name}.json").replace(self.site.work / "collected" / f"{name}.json")

    def _known(self, launch_id: str) -> Optional[Json]:
        for folder in ("done", "collected"):
            path = self.site.work / folder / f"{launch_id}.json"
            with contextlib.suppress(OSError, ValueError):
                found: Json = json.loads(path.read_text(encoding="utf-8"))
                return found
        return None

    def run(self) -> int:
        """Make every launch of the block that is not done yet."""
        launches = self.block["launches"]
        token = self.site.token_file.read_bytes().strip()
        todo = sum(1 for launch in launches if self._known(launch["launch_id"]) is None)
        node, name = self.site.node, self.site.name
        self.output.emit("ready", host=name, leader=True, todo=todo, agent_version=AGENT_VERSION, node=node)
        needed = hosts_of(launches) - {self.site.name}
        for host in self.block["hosts"]:
            if host["name"] in needed:
                self.followers[host["name"]] = connect_follower(host, self.block, token, self.reactor)
        made = kept = 0
        for number, launch in enumerate(launches):
            self.reactor.check()
            if self.reactor.stop_reason is not None:
                break
            name = launch["launch_id"]
            record = self._known(name)
            known = record is not None
            started = time.monotonic_ns()
            if record is None:
                self.output.emit("launch_started", launch_id=name, number=number + 1, of=len(launches))
                record = self.make(launch)
                self._keep(record)
                made += 1
            else:
                kept += 1
            self.output.emit(
                "launch_finished",
                launch_id=name,
                status=record["status"],
                reason=record["reason"],
                reason_code=record["reason_code"],
                wall_ns=time.monotonic_ns() - started,
                kept=known,
            )
            self._send(record)
        for line in self.followers.values():
            line.send({"do": "bye"})
        stopped = self.reactor.stop_reason is not None
        self.output.emit("block_finished", host=self.site.name, made=made, kept=kept, stopped=stopped)
        return 0

    def _keep(self, record: Json) -> None:
        try:
            write_whole(self.site.work / "done" / f"{record['launch']['launch_id']}.json", record)
        except OSError as error:
            reason = f"a finished launch could not be kept on {self.site.name}: {error.strerror}"
            self.output.emit("problem", host=self.site.name, reason=reason)


def tell_removed(output: Output, host: str, names: List[str]) -> None:
    """Tell the user what was removed, if anything."""
    if names:
        output.emit("note", host=host, text=say_removed(names))


def say_removed(names: List[str]) -> str:
    """Put it in words."""
    return f"removed what a process of ours had left: {', '.join(names)}"


def say_code(code: Optional[int]) -> str:
    """Put an exit status in words."""
    if code is None:
        return "without an exit status"
    if code < 0:
        return f"by signal {-code} ({signal.Signals(-code).name})"
    return f"with exit status {code}"


def outcome(
    result: Optional[Json], failure: Optional[LaunchFailedError], code: Optional[int]
) -> Tuple[str, Optional[str], Optional[str]]:
    """(status, reason, reason code) of a launch. What the driver says goes before what was seen from outside."""
    if isinstance(result, dict) and result.get("status") in ("done", "refused", "failed"):
        return result["status"], result.get("reason"), result.get("reason_code")
    if failure is not None:
        refused = failure.code in ("NODE_LACKS", "BUILD_ABSENT")
        return ("refused" if refused else "failed"), str(failure), failure.code
    known = {2: "LIBRARY", 3: "LIBRARY", 4: "PEER_LOST"}
    return "failed", f"endpoint 0 ended {say_code(code)} and left no result", known.get(code or 0, "LIBRARY")


def port_taken(record: Json) -> bool:
    """Whether a launch failed because somebody else has a port it wanted."""
    if record["status"] == "done":
        return False
    if record["reason_code"] == "PORT_TAKEN":
        return True
    words = [record["reason"] or "", *(text[-500:] for text in record["log_tail"])]
    return any("address already in use" in text.lower() or "are all taken" in text for text in words)


def write_whole(path: Path, document: Json) -> None:
    """Write JSON so that the file is there whole or not at all, also after a crash."""
    part = path.with_suffix(".part")
    with part.open("w", encoding="utf-8") as file:
        json.dump(document, file, separators=(",", ":"))
        file.flush()
        os.fsync(file.fileno())
    part.replace(path)
    folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def run(arguments: argparse.Namespace) -> int:
    """`agent.py run`."""
    try:
        block = json.loads(arguments.block.read_text(encoding="utf-8"))
        if block.get("schema") != BLOCK_SCHEMA:
            raise BadBlockError(f"{arguments.block} is not a {BLOCK_SCHEMA} file")
        hosts = [host["name"] for host in block["hosts"]]
        check_names(block["block_id"], *hosts, *hosts_of(block["launches"]))
        check_names(*(launch["launch_id"] for launch in block["launches"]))
        reactor = Reactor(float(block["deadline_s"]))
        output = Output(reactor)
        site = Site(block, arguments.host, arguments.work, arguments.build or arguments.work / "build")
    except (OSError, ValueError, KeyError, BadBlockError) as error:
        sys.stderr.write(f"agent: {error}\n")
        return 2
    status = 70
    try:
        role = Leader if block["leader"] == arguments.host else Follower
        status = role(site, reactor, output).run()
    except EndedError as error:
        sys.stderr.write(f"agent: {error}\n")
        status = 5
    except HostLostError as error:
        _complain(output, site.name, f"another host was lost: {error}")
        status = 4
    except (OSError, BadBlockError) as error:
        _complain(output, site.name, str(error))
        status = 2
    finally:
        removed = site.close()
        with contextlib.suppress(EndedError):
            tell_removed(output, site.name, removed)
    return status


def _complain(output: Output, host: str, reason: str) -> None:
    with contextlib.suppress(EndedError):
        output.emit("problem", host=host, reason=reason)
    sys.stderr.write(f"agent: {reason}\n")


def clean(arguments: argparse.Namespace) -> int:
    """`agent.py clean`: end and remove what an agent that was killed itself could not."""
    killed, removed = _clean(arguments.work, arguments.campaign)
    print(json.dumps({"changed": bool(killed or removed), "killed": killed, "removed": removed}))
    return 0


def _clean(work: Path, campaign: str) -> Tuple[List[int], List[str]]:
    """Kill and remove; returns the numbers of the processes and the names of the rest, and tells the names."""
    killed = kill_marked(f"{campaign}:")
    removed = []
    with contextlib.suppress(OSError, ValueError):
        removed = remove_segments(killed, (work / OWN_FOLDERS).stat().st_mtime)
        for name in json.loads((work / OWN_FOLDERS).read_text(encoding="utf-8")):
            removed += remove_own_folder(Path(name))
    if removed:
        sys.stderr.write(say_removed(removed) + "\n")
    return killed, removed


# -------------------------------------------------------------------------------------------------------------- facts


def _unknown(error: object) -> Json:
    return {"unknown": str(error) or "not stated"}


def _read(path: str) -> object:
    try:
        return Path(path).read_text(encoding="utf-8", errors="replace").strip()
    except OSError as error:
        return _unknown(f"{path}: {error.strerror}")


def build_id(path: Path) -> Optional[str]:
    """GNU build id of a 64-bit little-endian ELF file; None where it has none."""
    try:
        with path.open("rb") as file:
            head = file.read(64)
            if head[:6] != b"\x7fELF\x02\x01":
                return None
            offset, size, count = struct.unpack_from("<Q", head, 32)[0], *struct.unpack_from("<HH", head, 54)
            file.seek(offset)
            table = file.read(size * count)
            for number in range(count):
                kind, _, start, _, _, length = struct.unpack_from("<IIQQQQ", table, number * size)
                if kind != 4:
                    continue
                file.seek(start)
                notes = file.read(length)
                while len(notes) >= 12:
                    name_bytes, data_bytes, note = struct.unpack_from("<III", notes)
                    data_at = 12 + ((name_bytes + 3) & ~3)
                    if note == 3 and notes[12 : 12 + name_bytes] == b"GNU\0":
                        return notes[data_at : data_at + data_bytes].hex()
                    notes = notes[data_at + ((data_bytes + 3) & ~3) :]
    except (OSError, struct.error):
        return None
    return None


_SYSTEM_LIBRARIES = re.compile(r"^(linux-vdso|ld-linux|libc\.|libm\.|libdl\.|libpthread\.|librt\.|libgcc_s|libstdc)")


def libraries(build: Path) -> Json:
    """Find what the layers in a build are linked with here: {soname: {version, file, build_id}}."""
    found: Json = {}
    for module in sorted((build / "layers").glob("*.so")):
        try:
            done = subprocess.run(["ldd", str(module)], capture_output=True, text=True, timeout=10, check=False)
        except (OSError, subprocess.SubprocessError) as error:
            return {"unknown": _unknown(error)["unknown"]}
        for line in done.stdout.splitlines():
            words = line.split()
            if len(words) < 3 or words[1] != "=>" or _SYSTEM_LIBRARIES.match(words[0]) or words[0] in found:
                continue
            if words[2] == "not":
                found[words[0]] = _unknown(f"not found; {module.name} needs it")
                continue
            path = Path(words[2]).resolve()
            found[words[0]] = {"version": _unknown("no package"), "file": str(path), "build_id": build_id(path)}
    _package_versions(found)
    return found


def _package_versions(found: Json) -> None:
    """Fill in the Debian package and version that own each file, where there is dpkg."""
    files = {entry["file"]: entry for entry in found.values() if "file" in entry}
    if not files or shutil.which("dpkg-query") is None:
        return
    with contextlib.suppress(OSError, subprocess.SubprocessError):
        names = [f"*/{Path(path).name}" for path in files]
        owners = subprocess.run(["dpkg-query", "-S", *names], capture_output=True, text=True, timeout=30, check=False)
        package_of = {}
        for line in owners.stdout.splitlines():
            package, _, path = line.partition(": ")
            with contextlib.suppress(OSError):
                package_of[str(Path(path).resolve())] = package.split(",")[0]
        wanted = sorted(set(package_of.values()))
        if not wanted:
            return
        form = "${binary:Package} ${Package}:${Architecture} ${Version}\n"
        answer = subprocess.run(
            ["dpkg-query", "-W", "-f", form, *wanted], capture_output=True, text=True, timeout=30, check=False
        )
        versions: Dict[str, str] = {}
        for line in answer.stdout.splitlines():
            short, long, version = line.split()
            versions[short] = versions[long] = version
        for path, entry in files.items():
            if path in package_of and package_of[path] in versions:
                entry["version"] = f"{package_of[path]} {versions[package_of[path]]}"


def _cpu() -> Json:
    text = str(_read("/proc/cpuinfo"))
    fields = dict(
        re.findall(r"^(model name|vendor_id|cpu family|model|stepping|microcode|flags)\s*:\s*(.*)$", text, re.MULTILINE)
    )
    flags = str(fields.pop("flags", "")).split()
    tsc = {name: name in flags for name in ("constant_tsc", "nonstop_tsc", "tsc_reliable", "rdtscp", "tsc_known_freq")}
    topology = {"logical": os.cpu_count(), "allowed": sorted(os.sched_getaffinity(0))}
    cores = set()
    for path in Path("/sys/devices/system/cpu").glob("cpu[0-9]*/topology"):
        cores.add((_read(f"{path}/physical_package_id"), _read(f"{path}/core_id")))
    topology["physical"] = len({str(core) for core in cores}) or None
    topology["sockets"] = len({str(core[0]) for core in cores}) or None
    return {"cpu": fields or _unknown("/proc/cpuinfo does not say"), "tsc": tsc, "cores": topology, "flags": flags}


def _governor() -> object:
    found = {str(_read(str(path))) for path in Path("/sys/devices/system/cpu").glob("cpu*/cpufreq/scaling_governor")}
    return sorted(found) if found else _unknown("no frequency scaling is visible")


def _virtualisation(flags: List[str]) -> object:
    if shutil.which("systemd-detect-virt"):
        with contextlib.suppress(OSError, subprocess.SubprocessError):
            done = subprocess.run(["systemd-detect-virt"], capture_output=True, text=True, timeout=5, check=False)
            return done.stdout.strip() or "none"
    product = _read("/sys/class/dmi/id/product_name")
    return {"hypervisor": "hypervisor" in flags, "product": product}


def _memory() -> Json:
    found = dict(
        re.findall(r"^(MemTotal|MemAvailable|SwapTotal):\s+(\d+) kB", str(_read("/proc/meminfo")), re.MULTILINE)
    )
    return {name: int(value) * 1024 for name, value in found.items()}


def _hugepages() -> Json:
    found: Json = {}
    for path in sorted(Path("/sys/kernel/mm/hugepages").glob("hugepages-*")):
        found[path.name] = {"reserved": _read(f"{path}/nr_hugepages"), "free": _read(f"{path}/free_hugepages")}
    return found


def _in_child(action: Callable[[], None]) -> object:
    """Try something in a child process; True, or {"unknown"...}-like {"no": reason}."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            action()
            os.write(write, b"ok")
        except OSError as error:
            os.write(write, os.strerror(error.errno or 0).encode())
        finally:
            os._exit(0)
    os.close(write)
    with os.fdopen(read, "rb") as pipe:
        answer = pipe.read().decode()
    os.waitpid(child, 0)
    return True if answer == "ok" else {"no": answer or "the attempt crashed"}


def _try_process_vm_readv() -> None:
    """Read a sibling's memory, as shared-memory transports do."""

    class IoVec(ctypes.Structure):
        _fields_ = (("base", ctypes.c_void_p), ("length", ctypes.c_size_t))

    source, target = ctypes.create_string_buffer(b"cadge", 8), ctypes.create_string_buffer(8)
    hold_read, hold_write = os.pipe()
    peer = os.fork()
    if peer == 0:
        os.close(hold_write)
        os.read(hold_read, 1)
        os._exit(0)
    middle_read, middle_write = os.pipe()
    reader = os.fork()  # a sibling, not the parent: Yama lets a parent through
    if reader == 0:
        local = IoVec(ctypes.addressof(target), 8)
        remote = IoVec(ctypes.addressof(source), 8)
        _libc.process_vm_readv.restype = ctypes.c_ssize_t
        count = _libc.process_vm_readv(peer, ctypes.byref(local), 1, ctypes.byref(remote), 1, 0)
        os.write(middle_write, struct.pack("i", 0 if count == 8 else ctypes.get_errno()))
        os._exit(0)
    number = struct.unpack("i", os.read(middle_read, 4))[0]
    os.close(hold_write)
    os.waitpid(reader, 0)
    os.waitpid(peer, 0)
    if number:
        raise OSError(number, os.strerror(number))


def _try_af_xdp() -> None:
    socket.socket(44, socket.SOCK_RAW, 0).close()


def _try_namespaces() -> None:
    if _libc.unshare(0x40000000 | 0x00020000) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


def _interfaces() -> Json:
    found: Json = {}
    for index, name in socket.if_nameindex():
        folder = f"/sys/class/net/{name}"
        found[name] = {
            "index": index,
            "mtu": _read(f"{folder}/mtu"),
            "speed": _read(f"{folder}/speed"),
            "state": _read(f"{folder}/operstate"),
            "driver": driver_of(name),
            "offloads": offloads(name),
            "xdp": xdp_attached(name),
        }
    return found


def _limit(kind: int) -> Json:
    names = ["unlimited" if value == resource.RLIM_INFINITY else value for value in resource.getrlimit(kind)]
    return {"soft": names[0], "hard": names[1]}


def gather(host: str, build: Optional[Path]) -> Json:
    """Everything we want to know of this host (cadge.node/1). Reads only."""
    cpu = _cpu()
    system = os.uname()
    mitigations: Json = {}
    for path in sorted(Path("/sys/devices/system/cpu/vulnerabilities").glob("*")):
        mitigations[path.name] = _read(str(path))
    clock = "/sys/devices/system/clocksource/clocksource0"
    namespaces: Json = {}
    for kind in ("net", "pid", "mnt", "ipc", "uts"):
        try:
            namespaces[kind] = os.readlink(f"/proc/self/ns/{kind}")  # noqa: PTH115 - not a path
        except OSError as error:
            namespaces[kind] = _unknown(error.strerror)
    return {
        "schema": NODE_SCHEMA,
        "host": host,
        "kernel": {"release": system.release, "version": system.version, "machine": system.machine},
        "cmdline": _read("/proc/cmdline"),
        "cpu": cpu["cpu"],
        "cores": cpu["cores"],
        "mitigations": mitigations or _unknown("the kernel does not say"),
        "governor": _governor(),
        "virtualisation": _virtualisation(cpu["flags"]),
        "clocksource": {
            "current": _read(f"{clock}/current_clocksource"),
            "available": _read(f"{clock}/available_clocksource"),
        },
        "tsc": cpu["tsc"],
        "memory": _memory(),
        "hugepages": _hugepages(),
        "thp": _read("/sys/kernel/mm/transparent_hugepage/enabled"),
        "libc": " ".join(platform.libc_ver()),
        "python": platform.python_version(),
        "libraries": libraries(build) if build else {},
        "namespaces": namespaces,
        "limits": {"memlock": _limit(resource.RLIMIT_MEMLOCK), "nofile": _limit(resource.RLIMIT_NOFILE)},
        "interfaces": _interfaces(),
        "yama": {"ptrace_scope": _read("/proc/sys/kernel/yama/ptrace_scope")},
        "can": {
            "process_vm_readv": _in_child(_try_process_vm_readv),
            "af_xdp": _in_child(_try_af_xdp),
            "namespaces": _in_child(_try_namespaces),
        },
    }


def facts(arguments: argparse.Namespace) -> int:
    """`agent.py facts`."""
    print(json.dumps(gather(arguments.host or socket.gethostname(), arguments.build), indent=1))
    return 0


def check(arguments: argparse.Namespace) -> int:
    """`agent.py check`, see the head of this file."""
    _clean(arguments.work, arguments.campaign)
    driver = arguments.build / "bin" / "cadge-driver"
    host = arguments.host
    if not driver.exists():
        return _unfit(f"{host} has no build: there is no {driver}")
    try:
        done = subprocess.run([str(driver), "version"], capture_output=True, text=True, timeout=20, check=False)
    except OSError as error:
        if error.errno == errno.ENOEXEC:
            return _unfit(f"the build is for another kind of machine than {host}, which is {platform.machine()}")
        return _unfit(f"{driver} cannot be run on {host}: {error.strerror}")
    except subprocess.SubprocessError as error:
        return _unfit(f"{driver} does not answer on {host}: {error}")
    if done.returncode != 0:
        return _unfit(f"{driver} does not run on {host}: {(done.stderr or done.stdout).strip()[-300:]}")
    try:
        version = json.loads(done.stdout)
    except ValueError:
        return _unfit(f"{driver} on {host} is not a driver of this tool: it answered {done.stdout[:80]!r}")
    write_whole(arguments.work / "node.json", gather(host, arguments.build))
    same = {key: version.get(key) for key in ("version", "abi", "schema", "revision")}
    print(json.dumps({**same, "agent": AGENT_VERSION, "machine": platform.machine()}, sort_keys=True))
    return 0


def _unfit(sentence: str) -> int:
    sys.stderr.write(sentence + "\n")
    return 3


def _path(text: str) -> Path:
    return Path(text).expanduser()


def main() -> int:
    """Command line, see the head of this file."""
    parser = argparse.ArgumentParser(description="Runs one block's launches on a host, and says what that host is.")
    verbs = parser.add_subparsers(dest="verb", required=True)
    one = verbs.add_parser("run", help="run a block under the lease of standard input")
    one.add_argument("--block", type=_path, required=True)
    one.add_argument("--host", required=True)
    one.add_argument("--work", type=_path, required=True)
    one.add_argument("--build", type=_path)
    one.set_defaults(action=run)
    two = verbs.add_parser("facts", help="say what this host is")
    two.add_argument("--host")
    two.add_argument("--build", type=_path)
    two.set_defaults(action=facts)
    three = verbs.add_parser("check", help="get this host ready, or say why it is not")
    three.add_argument("--work", type=_path, required=True)
    three.add_argument("--campaign", required=True)
    three.add_argument("--host", required=True)
    three.add_argument("--build", type=_path, required=True)
    three.set_defaults(action=check)
    four = verbs.add_parser("clean", help="remove what a killed agent left")
    four.add_argument("--work", type=_path, required=True)
    four.add_argument("--campaign", required=True)
    four.set_defaults(action=clean)
    arguments = parser.parse_args()
    os.umask(0o077)  # what we make on a node, and what we start makes there, is nobody else's business
    return int(arguments.action(arguments))


def _end(status: int) -> NoReturn:
    with contextlib.suppress(OSError):
        sys.stdout.flush()
    sys.exit(status)


if __name__ == "__main__":
    _end(main())
