# SPDX-License-Identifier: BSD-3-Clause
"""What the emulated hosts find in their folders: throw-away keys, who is who, settings of ssh and sshd."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
from pathlib import Path

from cadge_harness.errors import UnfitError

MANAGEMENT_PREFIX = "198.18.0"
DATA_PREFIX = "198.19.0"
HOST_FOLDER = "/run/cadge"

SSH_CONFIG = """\
# Generated for one emulated testbed; written again by each `cadge testbed up`.
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


def _keygen(path: Path, comment: str) -> str:
    """Make a key pair without passphrase; returns the public key's line without its comment."""
    argv = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", comment, "-f", str(path)]
    subprocess.run(argv, check=True, stdin=subprocess.DEVNULL, capture_output=True)
    words = path.with_suffix(".pub").read_text(encoding="ascii").split()
    return " ".join(words[:2])


def write_files(folder: Path, names: list[str]) -> None:
    """Make keys and every generated file of a testbed with these hosts anew. Raises UnfitError."""
    for tool, package in (("ssh-keygen", "openssh-client"), ("ssh", "openssh-client"), ("ip", "iproute2")):
        if shutil.which(tool) is None and not Path("/usr/sbin", tool).exists():
            raise UnfitError(f"the program {tool} is missing", commands=(f"apt install {package}",))
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
