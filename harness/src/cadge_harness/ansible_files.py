# SPDX-License-Identifier: BSD-3-Clause
"""What ansible-playbook is given: the build as a tar file, block files, variables, an environment."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import os
import secrets
import sys
import tarfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cadge_harness.errors import UnfitError
from cadge_harness.testbed_model import Kind

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cadge_harness.testbed_model import Testbed

AGENT = Path(__file__).with_name("agent.py")


def playbooks() -> Path:
    """Return the folder of the playbooks, which is the checkout's."""
    root = os.environ.get("CADGE_ROOT")
    folder = (Path(root) if root else Path(__file__).resolve().parents[3]) / "playbooks"
    if not (folder / "site.yml").exists():
        raise UnfitError(
            f"there are no playbooks in {folder}; run `make setup` in the checkout", commands=("make setup",)
        )
    return folder


def _members(build: Path) -> Iterator[Path]:
    for pattern in ("bin/*", "layers/*.so", "layers/*.absent"):
        yield from sorted(path for path in build.glob(pattern) if path.is_file())


def pack_build(build: Path, folder: Path) -> tuple[Path, str]:
    """Pack a build's programs and layers into `folder`; returns (tar file, its top folder: build-HASH).

    The same contents give the same bytes and name. The last member, `complete`, says that it was unpacked whole.
    """
    if not (build / "bin" / "cadge-driver").exists():
        raise UnfitError(f"there is no build in {build}", commands=("make build",))
    digest = hashlib.sha256()
    members = list(_members(build))
    for path in members:
        digest.update(f"{path.relative_to(build)}\0{path.stat().st_mode & 0o111}\0".encode())
        digest.update(hashlib.sha256(path.read_bytes()).digest())
    name = f"build-{digest.hexdigest()[:16]}"
    archive = folder / f"{name}.tar.gz"
    if archive.exists():
        return archive, name
    part = archive.with_suffix(".part")
    with (
        part.open("wb") as raw,
        gzip.GzipFile(fileobj=raw, mode="wb", compresslevel=1, mtime=0, filename="") as packed,
        tarfile.open(fileobj=packed, mode="w|", format=tarfile.PAX_FORMAT) as tar,
    ):
        for path in members:
            info = tar.gettarinfo(str(path), f"{name}/{path.relative_to(build)}")
            info.uid = info.gid = info.mtime = 0
            info.uname = info.gname = ""
            info.mode = 0o755 if path.stat().st_mode & 0o100 else 0o644
            info.type, info.linkname = tarfile.REGTYPE, ""
            info.size = path.stat().st_size
            with path.open("rb") as source:
                tar.addfile(info, source)
        tar.addfile(tarfile.TarInfo(f"{name}/complete"), io.BytesIO())
    part.replace(archive)
    return archive, name


def mpirun_options(testbed: Testbed) -> list[str]:
    """Return what mpirun must be told to reach the testbed's hosts: the throw-away ssh configuration, if any."""
    if testbed.host_ssh_config is None:
        return []
    # Open MPI 4 reads plm_rsh_agent; Open MPI 5 takes it too and hands it to PRRTE as plm_ssh_agent
    return ["--mca", "plm_rsh_agent", f"ssh -F {testbed.host_ssh_config}"]


def complete_block(block: dict[str, Any], testbed: Testbed) -> dict[str, Any]:
    """Return the block with what only we know: control port, the token's place on a host, how mpirun reaches hosts."""
    mpirun = dict(block.get("mpirun") or {})
    options = [*mpirun_options(testbed), *mpirun.get("options", [])]
    return {
        "control_port": block["ports"][1],
        "token_file": "token",
        "modules": "build/layers",
        "bin": "build/bin",
        **block,
        "mpirun": {"path": "mpirun", **mpirun, "options": options, "hosts": [host["name"] for host in block["hosts"]]},
    }


def pack_campaign(folder: Path, token: Path, blocks: list[Path]) -> Path:
    """Pack what changes with each run (agent, token, block files) into a tar file that only the user can read."""
    archive = folder / "campaign.tar"
    descriptor = os.open(archive, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "wb") as raw, tarfile.open(fileobj=raw, mode="w", format=tarfile.PAX_FORMAT) as tar:
        for path, name, mode in (
            (AGENT, "agent.py", 0o700),
            (token, "token", 0o600),
            *((block, block.name, 0o600) for block in blocks),
        ):
            info = tarfile.TarInfo(name)
            info.size, info.mode, info.mtime = path.stat().st_size, mode, int(path.stat().st_mtime)
            with path.open("rb") as source:
                tar.addfile(info, source)
    return archive


def write_secret(path: Path) -> None:
    """Make the token file, 0600, if it is not there."""
    if not path.exists():
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "w", encoding="ascii") as file:
            file.write(secrets.token_hex(32) + "\n")


def write_json(path: Path, document: object) -> Path:
    """Write JSON that only the user can read; returns its path."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(document), encoding="utf-8")
    path.chmod(0o600)
    return path


def environment(work: Path, sockets: Path, testbed: Testbed) -> dict[str, str]:
    """Return the environment of ansible-playbook: nothing of the user's Ansible, an English UTF-8 locale."""
    keep: tuple[str, ...] = ("HOME", "USER", "LOGNAME", "TERM", "TMPDIR")
    if testbed.kind is Kind.CLUSTER:
        keep += ("SSH_AUTH_SOCK", "SSH_AGENT_PID", "KRB5CCNAME")
    own = {name: os.environ[name] for name in keep if name in os.environ}
    own.setdefault("HOME", str(Path.home()))
    beside = str(Path(sys.executable).parent)
    return {
        **own,
        "PATH": f"{beside}:{os.environ.get('PATH', '')}:/usr/local/sbin:/usr/sbin:/sbin:/usr/bin:/bin",
        "LC_ALL": "C.UTF-8",
        "PYTHONDONTWRITEBYTECODE": "1",
        "ANSIBLE_CONFIG": str(playbooks() / "ansible.cfg"),
        "ANSIBLE_HOME": str(work / "ansible"),
        "ANSIBLE_LOCAL_TEMP": str(work / "ansible" / "tmp"),
        "ANSIBLE_SSH_CONTROL_PATH_DIR": str(sockets / "cp"),
        "CADGE_EVENT_SOCKET": str(sockets / "lease"),
    }
