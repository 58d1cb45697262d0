# SPDX-License-Identifier: BSD-3-Clause
"""The emulated testbed, seen from the user who has it: keys, state file, sudo, up and down.

The state folder (0700, the user's own) is $CADGE_STATE, else $XDG_RUNTIME_DIR/cadge, else /run/cadge-UID, else
/tmp/cadge-UID. It holds the throw-away keys, the generated ssh and sshd files, the inventory, and testbed.json, which
says which process is the testbed. Everything that needs root is done by supervisor.py.
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
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cadge_harness.errors import UnfitError, UsageError
from cadge_harness.testbed.model import Host, Kind, Testbed
from cadge_harness.words import count_of

if TYPE_CHECKING:
    from collections.abc import Iterator

MANAGEMENT_PREFIX = "198.18.0"
DATA_PREFIX = "198.19.0"
HOST_FOLDER = "/run/cadge"
DEFAULT_HOSTS = 2
MAX_HOSTS = 64
SUPERVISOR = Path(__file__).with_name("supervisor.py")

SSH_CONFIG = """\
# Generated for one emulated testbed; made anew by each `cadge testbed up`.
Host {names}
  User {user}
  IdentityFile {folder}/id_ed25519
  IdentitiesOnly yes
  IdentityAgent none
  UserKnownHostsFile {folder}/known_hosts
  GlobalKnownHostsFile /dev/null
  StrictHostKeyChecking yes
  UpdateHostKeys no
  PreferredAuthentications publickey
  BatchMode yes
  ForwardAgent no
  ForwardX11 no
  ConnectTimeout 10
  LogLevel ERROR
"""

SSHD_CONFIG = """\
Port 22
AddressFamily inet
ListenAddress {address}
HostKey {folder}/host_key
AuthorizedKeysFile {folder}/authorized_keys
AllowUsers {user}
PermitRootLogin prohibit-password
PubkeyAuthentication yes
PasswordAuthentication no
KbdInteractiveAuthentication no
UsePAM no
PermitUserRC no
AllowTcpForwarding no
AllowAgentForwarding no
X11Forwarding no
PrintMotd no
PrintLastLog no
UseDNS no
PidFile none
MaxStartups 64
MaxSessions 64
Subsystem sftp internal-sftp
"""


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
        return False, "sudo needs your password"
    return False, "you are not root and not a user of sudo"


def _group_exists(gid: int) -> bool:
    try:
        grp.getgrgid(gid)
    except KeyError:
        return False
    return True


def as_root(argv: list[str]) -> list[str]:
    """`argv` so that it runs as root; asks for sudo's password once, on the terminal.

    Raises UnfitError where root cannot be had.
    """
    able, why = may_be_root()
    if os.geteuid() == 0:
        return argv
    if not able:
        wanted = "sudo needs your password" in why
        if wanted and sys.stdin.isatty() and sys.stderr.isatty():
            sys.stderr.write("cadge: the emulated testbed is made of namespaces, which takes root; asking sudo once\n")
            if subprocess.run(["sudo", "-v"], check=False).returncode == 0:
                return ["sudo", "-n", "--", *argv]
            raise UnfitError("sudo refused")
        commands = ("sudo -v", "make sweep", "# or, without root: make sweep TESTBED=local")
        raise UnfitError(f"an emulated testbed needs root: {why}", commands=commands if wanted else commands[2:])
    return ["sudo", "-n", "--", *argv]


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


def status() -> dict[str, Any]:
    """{"state": "up" | "down" | "stale", "folder", and where up: "pid", "hosts", "started_utc", "owner"}.

    owner: "user" (it stays until he takes it down), "campaign" (one that runs), "nobody" (one that was killed).
    """
    folder = state_folder()
    state = _read_state(folder)
    if state is None:
        return {"state": "down", "folder": str(folder)}
    if not _alive(state):
        return {"state": "stale", "folder": str(folder)}
    keep = ("pid", "hosts", "started_utc")
    return {"state": "up", "folder": str(folder), "owner": _owner(state), **{key: state[key] for key in keep}}


def _owner(state: dict[str, Any]) -> str:
    owner = state.get("owner")
    if owner is None:
        return "user"
    return "campaign" if _start_time(owner["pid"]) == owner["start_time"] else "nobody"


def _me() -> dict[str, Any]:
    return {"pid": os.getpid(), "start_time": _start_time(os.getpid())}


def _write_state(folder: Path, state: dict[str, Any]) -> None:
    part = folder / "testbed.json.part"
    part.write_text(json.dumps(state), encoding="utf-8")
    part.replace(folder / "testbed.json")


def adopt(*, for_campaign: bool) -> bool:
    """Take over a testbed that nobody owns, for this process's campaign or for the user. Returns whether there was."""
    folder = state_folder()
    with _locked(folder):
        state = _read_state(folder)
        if state is None or not _alive(state) or _owner(state) != "nobody":
            return False
        _write_state(folder, {**state, "owner": _me() if for_campaign else None})
        return True


# ---------------------------------------------------------------------------------------------------------- up and down


def _keygen(path: Path, comment: str) -> str:
    """Make a key pair without passphrase; returns the public key's line without its comment."""
    argv = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", comment, "-f", str(path)]
    subprocess.run(argv, check=True, stdin=subprocess.DEVNULL, capture_output=True)
    words = path.with_suffix(".pub").read_text(encoding="ascii").split()
    return " ".join(words[:2])


def _write_files(folder: Path, names: list[str]) -> None:
    """Make keys and every generated file anew."""
    for tool in ("ssh-keygen", "ssh", "ip"):
        if shutil.which(tool) is None and not Path("/usr/sbin", tool).exists():
            raise UnfitError(f"the program {tool} is missing", commands=("make setup",))
    hosts = folder / "hosts"
    shutil.rmtree(hosts, ignore_errors=True)
    hosts.mkdir(mode=0o700)
    user = pwd.getpwuid(os.geteuid()).pw_name
    for old in ("id_ed25519", "id_ed25519.pub"):
        (folder / old).unlink(missing_ok=True)
    public = _keygen(folder / "id_ed25519", "cadge-testbed")
    known = []
    table = ["127.0.0.1 localhost", "::1 localhost", f"{MANAGEMENT_PREFIX}.1 controller"]
    for index, name in enumerate(names):
        (hosts / name).mkdir(mode=0o700)
        address = f"{MANAGEMENT_PREFIX}.{11 + index}"
        known.append(f"{name},{address} {_keygen(hosts / name / 'host_key', name)}")
        table += [f"{address} {name}", f"{DATA_PREFIX}.{11 + index} {name}-data"]
    known_text = "\n".join(known) + "\n"
    patterns = " ".join([*names, f"{MANAGEMENT_PREFIX}.*"])
    config = SSH_CONFIG.format(names=patterns, user=user, folder=folder)
    aliases = "".join(f"Host {n}\n  HostName {MANAGEMENT_PREFIX}.{11 + i}\n" for i, n in enumerate(names))
    (folder / "known_hosts").write_text(known_text, encoding="ascii")
    (folder / "ssh_config").write_text(aliases + config, encoding="utf-8")
    for index, name in enumerate(names):
        address = f"{MANAGEMENT_PREFIX}.{11 + index}"
        files = {
            "hosts": "\n".join(table) + "\n",
            "hostname": f"{name}\n",
            "authorized_keys": f"{public} cadge-testbed\n",
            "known_hosts": known_text,
            "ssh_config": SSH_CONFIG.format(names=patterns, user=user, folder=HOST_FOLDER),
            "sshd_config": SSHD_CONFIG.format(address=address, folder=HOST_FOLDER, user=user),
        }
        for file_name, text in files.items():
            (hosts / name / file_name).write_text(text, encoding="utf-8")
        shutil.copy2(folder / "id_ed25519", hosts / name / "id_ed25519")


def _umask() -> int:
    """Return the user's umask, which can only be had by setting one."""
    own = os.umask(0o077)
    os.umask(own)
    return own


def up(hosts: int = DEFAULT_HOSTS, *, for_campaign: bool = False) -> tuple[dict[str, Any], bool]:
    """Make the testbed, or do nothing if it is up. Returns (status, whether it was made now).

    for_campaign: it is this process's, which takes it down; else the user's. Safe to call from several processes at
    once. Raises UnfitError, UsageError.
    """
    if not 1 <= hosts <= MAX_HOSTS:
        raise UsageError(f"an emulated testbed has 1 to {MAX_HOSTS} hosts, not {hosts}")
    folder = state_folder()
    with _locked(folder):
        now = status()
        if now["state"] == "up":
            if len(now["hosts"]) != hosts:
                had = count_of(len(now["hosts"]), "host")
                raise UsageError(f"a testbed of {had} is up, not {hosts}", commands=("cadge testbed down",))
            return now, False
        names = [f"h{number + 1}" for number in range(hosts)]
        _write_files(folder, names)
        plan = {
            "folder": str(folder),
            "uid": os.geteuid(),
            "gid": os.getegid(),
            "umask": _umask(),
            "hosts": names,
            "management_prefix": MANAGEMENT_PREFIX,
            "data_prefix": DATA_PREFIX,
        }
        (folder / "plan.json").write_text(json.dumps(plan), encoding="utf-8")
        argv = as_root([sys.executable, "-I", str(SUPERVISOR), "start", str(folder / "plan.json")])
        done = subprocess.run(argv, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, timeout=120)
        if done.returncode != 0:
            reason = (done.stdout.strip() or done.stderr.strip() or "no reason was given").splitlines()[-1]
            raise UnfitError(f"the emulated testbed cannot be made: {reason}", commands=("make sweep TESTBED=local",))
        state = {
            **json.loads(done.stdout),
            "boot_id": _boot_id(),
            "hosts": names,
            "started_utc": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
            "owner": _me() if for_campaign else None,
        }
        _write_state(folder, state)
        return status(), True


def down() -> bool:
    """End the testbed and everything in it. Returns whether there was one."""
    folder = state_folder()
    with _locked(folder):
        state = _read_state(folder)
        there = state is not None and _alive(state)
        if state is not None and there:
            subprocess.run(as_root(["kill", "-KILL", str(state["pid"])]), check=False, capture_output=True)
            deadline = time.monotonic() + 20
            while _alive(state):
                if time.monotonic() > deadline:
                    raise UnfitError(
                        f"process {state['pid']}, the testbed, does not end", commands=(f"sudo kill {state['pid']}",)
                    )
                time.sleep(0.02)
        for name in ("testbed.json", "plan.json", "id_ed25519", "id_ed25519.pub", "known_hosts", "ssh_config"):
            (folder / name).unlink(missing_ok=True)
        for name in ("inventory.json", "supervisor.log"):
            (folder / name).unlink(missing_ok=True)
        shutil.rmtree(folder / "hosts", ignore_errors=True)
        return there


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


def describe(now: dict[str, Any], *, started_here: bool) -> Testbed:
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
        kind=Kind.EMULATED,
        hosts=hosts,
        inventory_path=inventory,
        exec_prefix=exec_prefix(now["pid"]) if "pid" in now else (),
        ssh_config=folder / "ssh_config",
        host_ssh_config=f"{HOST_FOLDER}/ssh_config",
        started_here=started_here,
        host_variables=variables,
    )
