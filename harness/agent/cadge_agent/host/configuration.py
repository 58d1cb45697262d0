# SPDX-License-Identifier: BSD-3-Clause
"""The system's own settings of communication libraries, and of the loader.

They cannot be kept from a library as a user's are (endpoints have an empty home), and belong to the host as its
packages do. So their hashes are stored: hosts and campaigns with the same ones were steered alike. Beside them stands
whether a file is as its package brought it, and how many lines of it set anything.
"""

from __future__ import annotations

import contextlib
import hashlib
import re
import shutil
import subprocess
from pathlib import Path

from cadge_agent.formats import Json
from cadge_agent.host.libraries import owners
from cadge_agent.host.reading import unknown

PLACES = ("/etc/openmpi", "/etc/pmix", "/etc/prte", "/etc/ucx", "/etc/libfabric")
FILES = ("/etc/ld.so.preload", "/etc/libfabric.conf", "/etc/fi.conf", "/etc/libibverbs.conf", "/etc/nccl.conf")
SUFFIXES = (".conf", ".ini", ".txt")
"""What Open MPI, PMIx, PRRTE and UCX read; beside them lie host lists and scripts for debuggers."""
FILES_MOST = 100
DPKG_INFO = Path("/var/lib/dpkg/info")
_CONFFILE = re.compile(r"^ (?P<file>/\S+) (?P<md5>[0-9a-f]{32})\b", re.MULTILINE)


def configuration(opal_prefix: str) -> Json:
    """Hash each file of settings: {path: {bytes, sha256, lines, packaged}}. `opal_prefix` may be empty.

    lines: how many are neither empty nor comments. packaged: whether it is as its Debian package brought it; None where
    no dpkg can tell.
    """
    places = [Path(place) for place in PLACES] + ([Path(opal_prefix, "etc")] if opal_prefix else [])
    found: Json = {}
    contents: dict[str, bytes] = {}
    for path in map(Path, FILES):
        if path.is_file():
            found[str(path)] = _hashed(path, contents)
    for place in places:
        try:
            paths = sorted(path for path in place.rglob("*") if path.suffix in SUFFIXES and path.is_file())
        except OSError as error:
            found[str(place)] = unknown(f"{place}: {error.strerror}")
            continue
        for path in paths[:FILES_MOST]:
            found[str(path)] = _hashed(path, contents)
        if len(paths) > FILES_MOST:
            found[str(place)] = unknown(f"{place}: it has {len(paths)} files, of which {FILES_MOST} are listed")
    packaged = _packaged(contents)
    for name in contents:
        found[name]["packaged"] = packaged.get(name, False) if packaged is not None else None
    return found


def _hashed(path: Path, contents: dict[str, bytes]) -> Json:
    try:
        content = path.read_bytes()
    except OSError as error:
        return unknown(f"{path}: {error.strerror}")
    contents[str(path)] = content
    lines = sum(bool(line.strip()) and line.strip()[:1] not in (b"#", b";") for line in content.splitlines())
    return {"bytes": len(content), "sha256": hashlib.sha256(content).hexdigest(), "lines": lines}


def _packaged(contents: dict[str, bytes]) -> dict[str, bool] | None:
    """Say which files are as their packages brought them; None where no dpkg knows."""
    if shutil.which("dpkg-query") is None:
        return None
    stated: dict[str, set[str]] = {}
    try:
        package_of = owners(contents)
        if package_of:
            argv = ["dpkg-query", "-W", "-f", "${Conffiles}\n", *sorted(set(package_of.values()))]
            done = subprocess.run(argv, capture_output=True, text=True, timeout=30, check=False)
            for match in _CONFFILE.finditer(done.stdout):
                stated.setdefault(match["file"], set()).add(match["md5"])
    except (OSError, subprocess.SubprocessError):
        return None
    for package in set(package_of.values()):  # of what is no conffile
        for name in (package, package.partition(":")[0]):
            with contextlib.suppress(OSError):
                for line in (DPKG_INFO / f"{name}.md5sums").read_text(encoding="utf-8").splitlines():
                    md5, _, file = line.partition("  ")
                    if f"/{file}" in contents:
                        stated.setdefault(f"/{file}", set()).add(md5)
    own = {name: hashlib.md5(content).hexdigest() for name, content in contents.items()}  # noqa: S324 - dpkg's
    return {name: md5 in stated.get(name, ()) for name, md5 in own.items()}
