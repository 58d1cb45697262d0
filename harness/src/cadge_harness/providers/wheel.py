# SPDX-License-Identifier: BSD-3-Clause
"""A library's build out of a wheel: fetched by pip, held to the hash in the library's file, and made small."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import sys
from fnmatch import fnmatchcase
from pathlib import Path

from cadge_harness.errors import UnfitError, UsageError
from cadge_harness.providers.library import LibraryFile, Wheel
from cadge_results.formats.complaint import nearest

_FETCH_S = 600
_NOT_NEEDED = ("*.a", "*.la", "*.pyc")
"""Nobody links with these."""
_FOLDERS_NOT_NEEDED = ("share/doc", "share/man", "lib/cmake")


def version_of(library: LibraryFile, asked: str) -> tuple[Wheel, str]:
    """Return the wheel and the version that was asked for, else the newest. Raises UsageError."""
    if library.wheel is None:
        raise UsageError(f"no wheel of {library.title} is known; give --from prefix:FOLDER or module:NAME")
    known = library.wheel.versions
    version = asked or list(known)[-1]
    if version not in known:
        raise UsageError(
            f"no wheel of {library.title} {version} is known{nearest(version, known)}; there are: {', '.join(known)}"
        )
    return library.wheel, version


def install(wheel: Wheel, version: str, root: Path) -> str:
    """Fetch and unpack a wheel, so that its `lib` lies in `root`; returns its SHA-256. Raises UnfitError."""
    work = root.with_name(f"{root.name}.wheel")
    work.mkdir()
    required = f"{wheel.project}=={version}"
    wanted = work / "wanted.txt"
    hashes = " ".join(f"--hash=sha256:{sha256}" for sha256 in wheel.versions[version])
    wanted.write_text(f"{required} {hashes}\n", encoding="ascii")
    fetched = work / "fetched"
    _pip("download", "--no-deps", "--only-binary", ":all:", "--require-hashes", "-r", str(wanted), "-d", str(fetched))
    (file,) = fetched.iterdir()
    sha256 = hashlib.sha256(file.read_bytes()).hexdigest()
    unpacked = work / "unpacked"
    _pip("install", "--no-deps", "--no-index", "--no-compile", "--prefix", str(unpacked), str(file))
    (prefix,) = list(unpacked.glob(wheel.prefix)) if wheel.prefix != "." else [unpacked]
    prefix.rename(root)
    shutil.rmtree(work)
    _make_small(root, wheel)
    return sha256


def _pip(*arguments: str) -> None:
    argv = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet", *arguments]
    try:
        done = subprocess.run(argv, capture_output=True, text=True, timeout=_FETCH_S, check=False)
    except subprocess.TimeoutExpired as error:
        raise UnfitError(f"pip did not fetch the wheel within {_FETCH_S} s") from error
    if done.returncode:
        lines = [line for line in done.stderr.splitlines() if line.strip()]
        raise UnfitError(f"pip could not bring the wheel: {' '.join(lines[-3:])[-400:]}")


def _make_small(root: Path, wheel: Wheel) -> None:
    """Remove what nobody needs; of files that are the same (wheels hold no links) keep one, and links to it."""
    for folder in _FOLDERS_NOT_NEEDED:
        shutil.rmtree(root / folder, ignore_errors=True)
    for path in sorted(root.rglob("*")):
        if path.is_file() and any(fnmatchcase(path.name, name) for name in (*_NOT_NEEDED, *wheel.without)):
            path.unlink()
    seen: dict[tuple[Path, str], Path] = {}
    # the name that the loader asks for (libX.so.N) stays a file, and comes before libX.so.N.0.0
    for path in sorted(root.rglob("*.so.*"), key=lambda one: (len(one.suffixes), one.name)):
        if path.is_file() and not path.is_symlink():
            _once(path, seen)
    for path in sorted(root.rglob("*.so")):
        if path.is_file() and not path.is_symlink():
            _once(path, seen)


def _once(path: Path, seen: dict[tuple[Path, str], Path]) -> None:
    key = path.parent, hashlib.sha256(path.read_bytes()).hexdigest()
    first = seen.setdefault(key, path)
    if first != path:
        path.unlink()
        path.symlink_to(first.name)
