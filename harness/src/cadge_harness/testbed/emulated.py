# SPDX-License-Identifier: BSD-3-Clause
"""The emulated testbed, seen from the user who has it: keys, state file, sudo, up and down.

The state folder (0700, the user's own) is $CADGE_STATE, else $XDG_RUNTIME_DIR/cadge, else /run/cadge-UID, else
/tmp/cadge-UID. It holds the throw-away keys, the generated ssh and sshd files, the inventory, and testbed.json, which
says which process is the testbed. Everything that needs root is done by supervisor.py.

The user has one testbed in that folder itself, which sweeps share one after the other. A sweep that measures beside
another one has a testbed of its own in a folder below it (OWN*): its networks and byte counters are nobody else's.
A testbed that was started by hand stays until it is taken down by hand; any other one goes with its last user.
"""

from __future__ import annotations

import contextlib
import fcntl
import getpass
import grp
import json
import os
import pwd
import shutil
import stat
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cadge_harness.errors import UnfitError, UsageError
from cadge_harness.paths import find_checkout
from cadge_harness.testbed.host_files import DATA_PREFIX, HOST_FOLDER, MANAGEMENT_PREFIX, write_files
from cadge_harness.testbed.model import Host, Testbed, TestbedKind
from cadge_harness.testbed.users import FOLDER, Use, users
from cadge_harness.words import count_of
from cadge_results.command import command, typed_with

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

DEFAULT_HOSTS = 2
MAX_HOSTS = 64
OWN = "own-"
NEEDS_PASSWORD = "sudo needs your password"  # noqa: S105 - a sentence
RENEW_S = 45.0
"""So often sudo is asked to go on remembering a password: it forgets after some minutes (timestamp_timeout)."""
TMP = Path("/tmp")  # noqa: S108 - each host has one of its own
SUPERVISOR = Path(__file__).with_name("supervisor.py")

_FILES = ("testbed.json", "plan.json", "id_ed25519", "id_ed25519.pub", "known_hosts", "ssh_config")

# ------------------------------------------------------------------------------------------------------------- folder


def state_folder() -> Path:
    """Find or make the user's state folder. Refuses one that somebody else could have put there."""
    uid = os.geteuid()
    if given := os.environ.get("CADGE_STATE"):
        candidates = [Path(given)]
    else:
        candidates = [Path(f"/run/cadge-{uid}"), Path(f"/tmp/cadge-{uid}")]  # noqa: S108 - owner and mode are checked
        if runtime := os.environ.get("XDG_RUNTIME_DIR"):
            candidates.insert(0, Path(runtime) / "cadge")
    for folder in candidates:
        try:
            folder.mkdir(mode=0o700)
        except FileExistsError:
            pass
        except OSError:
            continue
        found = folder.lstat()
        if not stat.S_ISDIR(found.st_mode) or found.st_uid != uid:
            raise UnfitError(f"{folder} is not a folder of your own; remove it or set CADGE_STATE to another folder")
        if stat.S_IMODE(found.st_mode) & 0o077:
            folder.chmod(0o700)
        return folder
    raise UnfitError("no folder for keys and state can be made: set CADGE_STATE to a folder of your own")


@contextlib.contextmanager
def _locked(folder: Path) -> Iterator[None]:
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


# --------------------------------------------------------------------------------------------------------------- sudo


def may_be_root() -> tuple[bool, str]:
    """Whether commands can be run as root without asking anything, and if not, why not."""
    if os.geteuid() == 0:
        return True, ""
    if shutil.which("sudo") is None:
        return False, "you are not root and there is no sudo"
    done = subprocess.run(["sudo", "-n", "true"], stdin=subprocess.DEVNULL, capture_output=True, check=False)
    if done.returncode == 0:
        return True, ""
    groups = {grp.getgrgid(gid).gr_name for gid in os.getgroups() if _group_exists(gid)}
    if groups & {"sudo", "wheel", "admin"}:
        return False, NEEDS_PASSWORD
    return False, "you are not root and not a user of sudo"


def _group_exists(gid: int) -> bool:
    try:
        grp.getgrgid(gid)
    except KeyError:
        return False
    return True


def as_root(argv: list[str]) -> list[str]:
    """`argv` so that it runs as root; asks for sudo's password once, on the terminal, and never later.

    Raises UnfitError where root cannot be had.
    """
    if os.geteuid() == 0:
        return argv
    able, why = may_be_root()
    if not able:
        wanted = why == NEEDS_PASSWORD
        commands = ("sudo -v", typed_with(), f"# or, without root: {command('run', '--testbed', 'local')}")
        if not wanted or not (sys.stdin.isatty() and sys.stderr.isatty()):
            raise UnfitError(f"an emulated testbed needs root: {why}", commands=commands if wanted else commands[2:])
        sys.stderr.write("cadge: the emulated testbed is made of namespaces, which takes root; asking sudo once\n")
        if subprocess.run(["sudo", "-v"], check=False).returncode != 0:
            raise UnfitError("an emulated testbed needs root, and sudo refused it", commands=commands[2:])
        if not may_be_root()[0]:
            raise UnfitError(
                "an emulated testbed needs root more than once, and sudo asks for your password each time "
                "(timestamp_timeout in sudoers)",
                commands=(f"sudo {commands[1]}", commands[2]),
            )
    _keep_root()
    return ["sudo", "-n", "--", *argv]


@cache
def _keep_root() -> None:
    """Let sudo remember for as long as this process lives: what is up has to be taken down without a question."""

    def renew() -> None:
        argv = ["sudo", "-n", "-v"]
        while subprocess.run(argv, stdin=subprocess.DEVNULL, capture_output=True, check=False).returncode == 0:
            time.sleep(RENEW_S)

    threading.Thread(target=renew, daemon=True).start()


def probe() -> str | None:
    """None where an emulated testbed can be made here (it is really tried), else the reason."""
    argv = as_root([sys.executable, "-I", str(SUPERVISOR), "probe"])
    done = subprocess.run(argv, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, timeout=60)
    if done.returncode == 0:
        return None
    return (done.stdout.strip() or done.stderr.strip() or "the attempt failed and gave no reason").splitlines()[-1]


# -------------------------------------------------------------------------------------------------------------- state


def _start_time(pid: int) -> int | None:
    try:
        text = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    fields = text.rpartition(")")[2].split()
    return None if fields[0] == "Z" else int(fields[19])


def _boot_id() -> str:
    return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()


def _read_state(folder: Path) -> dict[str, Any] | None:
    try:
        state: dict[str, Any] = json.loads((folder / "testbed.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return state


def _alive(state: dict[str, Any]) -> bool:
    return bool(state.get("boot_id") == _boot_id() and _start_time(state["pid"]) == state["start_time"])


def status(folder: Path | None = None) -> dict[str, Any]:
    """{"state": "up" | "down" | "stale", "folder", and where up: "pid", "hosts", "started_utc", "owner", "users"}.

    folder: that of the testbed, the user's where none is given. owner: "user" (it stays until he takes it down),
    "campaign" (it goes with its last user), "nobody" (its last user was killed). users: who uses it now, one line each.
    """
    folder = folder or state_folder()
    state = _read_state(folder)
    if state is None:
        return {"state": "down", "folder": str(folder)}
    if not _alive(state):
        return {"state": "stale", "folder": str(folder)}
    keep = ("pid", "hosts", "started_utc")
    now = [str(user) for user in users(folder)]
    owner = "user" if state.get("by_hand", True) else "campaign" if now else "nobody"
    return {"state": "up", "folder": str(folder), "owner": owner, "users": now, **{key: state[key] for key in keep}}


def _write_state(folder: Path, state: dict[str, Any]) -> None:
    part = folder / "testbed.json.part"
    part.write_text(json.dumps(state), encoding="utf-8")
    part.replace(folder / "testbed.json")


# ---------------------------------------------------------------------------------------------------------- up and down


def _umask() -> int:
    """Return the user's umask, which can only be had by setting one."""
    own = os.umask(0o077)
    os.umask(own)
    return own


@dataclass(frozen=True, slots=True, kw_only=True)
class JoinedTestbed:
    """A testbed that this process uses: its status, and what is to be said of it."""

    status: dict[str, Any]
    use: Use
    notes: tuple[str, ...] = ()


def up(hosts: int = DEFAULT_HOSTS, *, shared: Sequence[Path] = ()) -> tuple[dict[str, Any], bool]:
    """Make the user's testbed, or take one that is up for his own. Returns (status, whether it was made now).

    shared: folders of the machine's /tmp that the hosts see as well, besides those that campaigns use.
    Safe to call from several processes at once. Raises UnfitError, UsageError.
    """
    folder = state_folder()
    with _locked(folder):
        _sweep(folder)
        now = status(folder)
        if now["state"] == "up":
            if len(now["hosts"]) != hosts:
                had = count_of(len(now["hosts"]), "host")
                raise UsageError(f"a testbed of {had} is up, not {hosts}", commands=("cadge testbed down",))
            _write_state(folder, {**(_read_state(folder) or {}), "by_hand": True})
            return status(folder), False
        return _make(folder, hosts, by_hand=True, shared=shared), True


def join(hosts: int, *, own: str = "") -> JoinedTestbed:
    """Use a testbed of so many hosts or more, which is made where there is none, until `leave`.

    own: why it is to be one that nobody else uses, besides the user's own testbed. Raises UnfitError, UsageError.
    """
    folder = state_folder()
    notes: tuple[str, ...] = ()
    with _locked(folder):
        _sweep(folder)
        now = status(folder)
        has = len(now["hosts"]) if now["state"] == "up" else 0
        if has and now["owner"] == "nobody":
            if has < hosts:
                _end(folder)
                has = 0
            else:
                notes = ("a campaign that was killed left its emulated testbed; this one uses it, and takes it down",)
        unseen = _unseen(folder) if has else []
        if not own and 0 < has < hosts:
            own = f"the testbed that is up has {count_of(has, 'host')}"
        elif not own and unseen:
            own = f"hosts of the testbed that is up do not see {unseen[0]}"
        if own:
            notes = (f"{own}: {count_of(hosts, 'host')} are made for this campaign alone",)
            folder, has = Path(tempfile.mkdtemp(prefix=OWN, dir=folder)), 0
        try:
            now = status(folder) if has else _make(folder, hosts, by_hand=False)
            return JoinedTestbed(status=now, use=Use(folder), notes=notes)
        except BaseException:
            if own:
                _end(folder)
            raise


def leave(use: Use) -> None:
    """End a use; the last user of a testbed that was not started by hand takes it down."""
    with _locked(state_folder()):
        use.end()
        state = _read_state(use.folder)
        if state is not None and not state.get("by_hand", True) and not users(use.folder):
            _end(use.folder)


def down() -> bool:
    """End the user's testbed and everything in it. Returns whether there was one.

    Raises UnfitError while somebody uses it.
    """
    folder = state_folder()
    with _locked(folder):
        _sweep(folder)
        there = bool(status(folder)["state"] == "up")
        if there and (found := users(folder)):
            who = "; ".join(map(str, found))
            raise UnfitError(
                f"the emulated testbed is in use ({who}); wait for that to end, or end it:",
                commands=tuple(f"kill {user.pid}" for user in found),
            )
        _end(folder)
        return there


def others() -> list[dict[str, Any]]:
    """Return the status of each testbed that a campaign made for itself, besides the user's."""
    found = (status(folder) for folder in sorted(state_folder().glob(f"{OWN}*")))
    return [one for one in found if one["state"] == "up"]


def _sweep(state: Path) -> None:
    """End the testbeds of campaigns that were killed, all but the user's own one."""
    for folder in state.glob(f"{OWN}*"):
        if not users(folder):
            _end(folder)


def _used_of_tmp() -> list[str]:
    """Return the folders of /tmp, which hosts have one of their own of, that campaigns of this checkout use on hosts.

    That is the user's home, where a host keeps what it is brought, and where programs and Python may lie.
    """
    checkout = find_checkout()
    home = Path(pwd.getpwuid(os.geteuid()).pw_dir)
    used = [home, checkout.root, checkout.build, Path(sys.prefix), Path(sys.base_prefix)]
    return _of_tmp(used)


def _of_tmp(folders: Sequence[Path]) -> list[str]:
    """Return those that are /tmp or lie below it, by both names where one is a link; each after those above it."""
    names = {path for folder in folders for path in (folder.absolute(), folder.resolve())}
    return sorted(str(path) for path in names if TMP in (path, *path.parents) and path.is_dir())


def _unseen(folder: Path) -> list[str]:
    """Return what campaigns of this checkout use of /tmp and the hosts of the testbed in a folder do not see."""
    shared = (_read_state(folder) or {}).get("shared", [str(TMP)])  # of an older version: all
    return [path for path in _used_of_tmp() if not {path, *map(str, Path(path).parents)} & set(shared)]


def _make(folder: Path, hosts: int, *, by_hand: bool, shared: Sequence[Path] = ()) -> dict[str, Any]:
    """Make a testbed in a folder, and return its status."""
    if not 1 <= hosts <= MAX_HOSTS:
        raise UsageError(f"an emulated testbed has 1 to {MAX_HOSTS} hosts, not {hosts}")
    names = host_names(hosts)
    write_files(folder, names)
    plan = {
        "folder": str(folder),
        "uid": os.geteuid(),
        "gid": os.getegid(),
        "umask": _umask(),
        "hosts": names,
        "management_prefix": MANAGEMENT_PREFIX,
        "data_prefix": DATA_PREFIX,
        "shared": sorted({*_used_of_tmp(), *_of_tmp(shared)}),
    }
    (folder / "plan.json").write_text(json.dumps(plan), encoding="utf-8")
    argv = as_root([sys.executable, "-I", str(SUPERVISOR), "start", str(folder / "plan.json")])
    done = subprocess.run(argv, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, timeout=120)
    if done.returncode != 0:
        reason = (done.stdout.strip() or done.stderr.strip() or "no reason was given").splitlines()[-1]
        raise UnfitError(f"the emulated testbed cannot be made: {reason}", commands=("cadge run --testbed local",))
    state = {
        **json.loads(done.stdout),
        "boot_id": _boot_id(),
        "hosts": names,
        "started_utc": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "by_hand": by_hand,
        "shared": plan["shared"],
    }
    _write_state(folder, state)
    return status(folder)


def host_names(hosts: int) -> list[str]:
    """Return the names of so many emulated hosts."""
    return [f"h{number + 1}" for number in range(hosts)]


def _end(folder: Path) -> None:
    """End the testbed of a folder, where there is one, and remove what was made for it."""
    state = _read_state(folder)
    if state is not None and _alive(state):
        subprocess.run(as_root(["kill", "-KILL", str(state["pid"])]), check=False, capture_output=True)
        deadline = time.monotonic() + 20
        while _alive(state):
            if time.monotonic() > deadline:
                raise UnfitError(
                    f"process {state['pid']}, the testbed, does not end", commands=(f"sudo kill {state['pid']}",)
                )
            time.sleep(0.02)
    if folder != state_folder():
        shutil.rmtree(folder, ignore_errors=True)
        return
    for name in (*_FILES, "inventory.json", "supervisor.log"):
        (folder / name).unlink(missing_ok=True)
    for name in ("hosts", FOLDER):
        shutil.rmtree(folder / name, ignore_errors=True)


def exec_prefix(pid: int) -> tuple[str, ...]:
    """Return what puts a command into the testbed's network namespace, as the user who called."""
    inside = ["nsenter", f"--net=/proc/{pid}/ns/net", "--"]
    if os.geteuid() == 0:
        return tuple(inside)
    back = ["setpriv", f"--reuid={os.geteuid()}", f"--regid={os.getegid()}", "--init-groups", "--"]
    return tuple(as_root([*inside, *back]))


def interpreter() -> str:
    """Choose the Python that Ansible is told to use on hosts that share this machine's files."""
    system = Path("/usr/bin/python3")
    return str(system) if system.exists() else sys.executable


def describe(now: dict[str, Any], *, use: Use | None = None, notes: tuple[str, ...] = ()) -> Testbed:
    """Make the Testbed of a status that says up; writes its inventory."""
    folder = Path(now["folder"])
    cpus = tuple(sorted(os.sched_getaffinity(0)))
    hosts = tuple(
        Host(
            name=name,
            management_address=f"{MANAGEMENT_PREFIX}.{11 + index}",
            device="data0",
            address=f"{DATA_PREFIX}.{11 + index}",
            raw_device="raw0",
            cpus=cpus,
        )
        for index, name in enumerate(now["hosts"])
    )
    variables: dict[str, dict[str, object]] = {
        host.name: {
            "ansible_host": host.management_address,
            "ansible_user": getpass.getuser() if os.geteuid() else "root",
            "ansible_python_interpreter": interpreter(),
            "ansible_ssh_common_args": f"-F {folder}/ssh_config",
            "cadge_device": host.device,
            "cadge_address": host.address,
            "cadge_management_address": host.management_address,
            "cadge_raw_device": host.raw_device,
            "cadge_cpus": list(host.cpus),
            "cadge_link_own": True,
            "cadge_tunable": host is hosts[0],  # the kernel's settings are one for all
        }
        for host in hosts
    }
    inventory = folder / "inventory.json"
    part = folder / f"inventory.{os.getpid()}.part"
    part.write_text(json.dumps({"cadge": {"hosts": variables}}, indent=1), encoding="utf-8")
    part.replace(inventory)
    return Testbed(
        name="emulated",
        kind=TestbedKind.EMULATED,
        hosts=hosts,
        inventory_path=inventory,
        exec_prefix=exec_prefix(now["pid"]) if "pid" in now else (),
        ssh_config=folder / "ssh_config",
        host_ssh=("ssh", "-F", f"{HOST_FOLDER}/ssh_config"),
        use=use,
        notes=notes,
        host_variables=variables,
    )
