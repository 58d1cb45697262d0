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
from cadge_harness.paths import Checkout, find_checkout
from cadge_harness.providers.folder import ABSENT, FILE, OF_LAYER, brought
from cadge_harness.run.agent_file import NAME, write_agent
from cadge_harness.testbed.model import TestbedKind

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    from cadge_harness.testbed.model import Testbed


_SHIM = "shim-"
_FORKS_LEAST = 50
"""Agents of a block wait for each other, so none may wait for Ansible to have done with another."""


def playbooks() -> Path:
    """Return the folder of the playbooks, which is the checkout's."""
    root = os.environ.get("CADGE_ROOT")
    folder = (Path(root) if root else Path(__file__).resolve().parents[4]) / "playbooks"
    if not (folder / "site.yml").exists():
        raise UnfitError(f"there are no playbooks in {folder}", commands=(Checkout(folder.parent).to_install,))
    return folder


def _members(build: Path, layers: Collection[str] | None) -> Iterator[Path]:
    """Yield the files of a build tree that hosts are brought: of layers, these alone; every shim."""

    def found(pattern: str) -> list[Path]:
        paths = sorted((build / "layers").glob(pattern))
        return [path for path in paths if layers is None or _layer_of(path) in layers or path.name.startswith(_SHIM)]

    yield from sorted(path for path in (build / "bin").iterdir() if path.is_file())
    for pattern in ("*.so", f"*{ABSENT}", f"*{OF_LAYER}"):
        yield from found(pattern)
    used = {path.read_text(encoding="utf-8").strip() for path in found(f"*{OF_LAYER}")}
    for folder in sorted(path.parent for path in build.glob(f"providers/*/{FILE}") if path.parent.name in used):
        yield folder / FILE
        yield from sorted(path for path in brought(folder).rglob("*") if path.is_file() and _runs(path))


def _layer_of(path: Path) -> str:
    return path.name.removesuffix(path.suffix)


def build_bytes(build: Path, layers: Collection[str] | None = None) -> int:
    """Return how large what a host is brought of a build is, unpacked. layers: as of `pack`."""
    return sum(path.stat().st_size for path in _members(build, layers))


def _runs(path: Path) -> bool:
    """Tell whether a file of a library's build is of use to those who run programs: no header, no link."""
    return not path.is_symlink() and "include" not in path.parts


def pack(
    build: Path,
    others: list[Path],
    folder: Path,
    *,
    of_launches: Sequence[Path] = (),
    layers: Collection[str] | None = None,
) -> tuple[Path, str]:
    """Pack all that a host is brought into a tar file that only the user can read: build, agent, and files by name.

    What `of_launches` names goes where the agent writes launch files, to be found beside them. layers: those that are
    measured, which alone are brought; None: all.

    Returns (tar file, name of the member that is unpacked last). That name tells the contents, so a host that has it
    has everything. The build is in the folder `build`.
    """
    if not (build / "bin" / "cadge-driver").exists():
        raise UnfitError(f"there is no build in {build}", commands=(find_checkout().to_build,))
    members = [
        (path, f"build/{path.relative_to(build)}", 0o755 if os.access(path, os.X_OK) else 0o644)
        for path in _members(build, layers)
    ]
    members += [(write_agent(folder), NAME, 0o700), *((path, path.name, 0o600) for path in others)]
    members += [(path, f"launches/{path.name}", 0o600) for path in of_launches]
    digest = hashlib.sha256()
    for path, name, mode in members:
        digest.update(f"{name}\0{mode}\0".encode() + hashlib.sha256(path.read_bytes()).digest())
    marker = f"complete-{digest.hexdigest()[:16]}"
    archive = folder / "campaign.tar.gz"
    descriptor = os.open(archive, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with (
        os.fdopen(descriptor, "wb") as raw,
        gzip.GzipFile(fileobj=raw, mode="wb", compresslevel=1, mtime=0, filename="") as packed,
        tarfile.open(fileobj=packed, mode="w|", format=tarfile.PAX_FORMAT) as tar,
    ):
        for path, name, mode in members:
            info = tarfile.TarInfo(name)
            info.size, info.mode, info.mtime = path.stat().st_size, mode, int(path.stat().st_mtime)
            with path.open("rb") as source:
                tar.addfile(info, source)
        tar.addfile(tarfile.TarInfo(marker), io.BytesIO())
    return archive, marker


def complete_block(block: dict[str, Any], testbed: Testbed) -> dict[str, Any]:
    """Return the block with the hosts that its launches use, and no other, and with what launchers must be told."""
    used = {endpoint["host"] for launch in block["launches"] for endpoint in launch["endpoints"]}
    mpirun = {"options": [], **(block.get("mpirun") or {}), "path": testbed.mpirun, "ssh": list(testbed.host_ssh)}
    return {
        **block,
        "hosts": [host for host in block["hosts"] if host["name"] in used],
        "mpirun": mpirun,
    }


def write_secret(path: Path) -> None:
    """Make the token file, 0600, if it is not there."""
    if not path.exists():
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "w", encoding="ascii") as file:
            file.write(secrets.token_hex(32) + "\n")


def write_json(path: Path, document: object) -> Path:
    """Write JSON that only the user can read; returns its path."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8") as file:
        json.dump(document, file)
    return path


def environment(work: Path, sockets: Path, testbed: Testbed) -> dict[str, str]:
    """Return the environment of ansible-playbook: nothing of the user's Ansible, an English UTF-8 locale."""
    keep: tuple[str, ...] = ("HOME", "USER", "LOGNAME", "TERM", "TMPDIR")
    if testbed.kind is TestbedKind.CLUSTER:
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
        "ANSIBLE_FORKS": str(max(_FORKS_LEAST, len(testbed.hosts))),
        "ANSIBLE_HOME": str(work / "ansible"),
        "ANSIBLE_LOCAL_TEMP": str(work / "ansible" / "tmp"),
        "ANSIBLE_SSH_CONTROL_PATH_DIR": str(sockets / "cp"),
        "CADGE_EVENT_SOCKET": str(sockets / "lease"),
    }
