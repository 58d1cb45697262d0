# SPDX-License-Identifier: BSD-3-Clause
"""What a build of a library says of itself: how to compile and link with it, its version, its parts."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from cadge_harness.errors import UnfitError
from cadge_harness.providers.elf import soname
from cadge_harness.providers.library import LibraryFile

_ANSWER_S = 60
_PKG_CONFIG = "pkg-config"
_PKG_CONFIG_FOLDERS = ("lib/pkgconfig", "lib64/pkgconfig", "share/pkgconfig")
_OWN_PATHS = re.compile(r"-Wl,(-rpath|--enable-new-dtags|--disable-new-dtags)")
_PLAIN = re.compile(r"[A-Za-z0-9_./+=:,@~-]+")
_FOLDER = re.compile(r"(?:-isystem|-L)(/.*)")
_RPATH_FOLLOWS = re.compile(r"-Wl,-rpath")


@dataclass(frozen=True, slots=True, kw_only=True)
class LibraryBuild:
    """How to build with it. `file` is the library itself, as it will be loaded."""

    version: str
    cflags: tuple[str, ...]
    libs: tuple[str, ...]
    file: Path
    launcher: Path | None
    lacks: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchScope:
    """Where to look: below a folder (None: wherever the environment leads), with which variables.

    moved: the folder is not the one that its own files name, as with wheels.
    """

    folder: Path | None = None
    environment: Mapping[str, str]
    moved: bool = False


def find(library: LibraryFile, where: SearchScope) -> LibraryBuild:
    """Look for a build. Raises UnfitError with what is missing there."""
    version, flags = _by_pkg_config(library, where) if library.find.pkg_config else _by_compiler(library, where)
    cflags, libs = _sorted(flags)
    for flag in (*cflags, *libs):
        if not _PLAIN.fullmatch(flag):
            raise UnfitError(f"{library.title} wants the flag {flag!r}, which make cannot take: move it")
        folder = _FOLDER.match(flag)
        if folder and not Path(folder[1]).is_dir():
            raise UnfitError(
                f"{library.title} says that it lies in {folder[1]}, and there is no such folder: it was moved"
            )
    file = _library(library, libs, where)
    launcher = _program(library.find.launcher, where) if library.find.launcher else None
    if library.find.launcher and launcher is None:
        raise UnfitError(f"{library.title} {version}: there is no {' or '.join(library.find.launcher)} {_there(where)}")
    lacks = {
        part.lacks: part.means
        for part in library.parts
        if not any((file.resolve().parent / part.beside).glob(part.part))
    }
    return LibraryBuild(version=version, cflags=cflags, libs=libs, file=file, launcher=launcher, lacks=lacks)


def _there(where: SearchScope) -> str:
    return f"below {where.folder}" if where.folder else "on the search path"


def _run(argv: Sequence[str], where: SearchScope, more: Mapping[str, str] | None = None, text: str = "") -> str:
    """Return what a command prints. Raises UnfitError with what it says."""
    try:
        done = subprocess.run(
            argv,
            env={**where.environment, "LC_ALL": "C.UTF-8", **(more or {})},
            input=text,
            capture_output=True,
            text=True,
            timeout=_ANSWER_S,
            check=False,
        )
    except FileNotFoundError as error:
        install = (f"apt install {argv[0]}",) if argv[0] == _PKG_CONFIG else ()
        raise UnfitError(f"the program {argv[0]} is missing", commands=install) from error
    except (OSError, subprocess.SubprocessError) as error:
        raise UnfitError(f"{argv[0]} cannot be run: {error}") from error
    if done.returncode:
        said = " ".join((done.stderr or done.stdout).split())[-300:]
        raise UnfitError(f"{shlex.join(argv)} failed: {said or f'exit status {done.returncode}'}")
    return done.stdout


def _by_pkg_config(library: LibraryFile, where: SearchScope) -> tuple[str, list[str]]:
    package, more = library.find.pkg_config or "", {}
    if where.folder:
        folders = [str(where.folder / folder) for folder in _PKG_CONFIG_FOLDERS]
        before = where.environment.get("PKG_CONFIG_PATH")
        more = {"PKG_CONFIG_PATH": ":".join([*folders, *([before] if before else [])])}
    command = [where.environment.get("PKG_CONFIG", _PKG_CONFIG), *(["--define-prefix"] if where.moved else [])]
    if where.folder:
        lies = _run([*command, "--variable=pcfiledir", package], where, more).strip()
        if not Path(lies).resolve().is_relative_to(where.folder.resolve()):
            raise UnfitError(f"there is no {library.title} below {where.folder}: no {package}.pc in its lib/pkgconfig")
    version = _run([*command, "--modversion", package], where, more).strip()
    return version, shlex.split(_run([*command, "--cflags", "--libs", package], where, more))


def _by_compiler(library: LibraryFile, where: SearchScope) -> tuple[str, list[str]]:
    compiler = _program(library.find.compiler, where)
    if compiler is None:
        raise UnfitError(f"there is no {' or '.join(library.find.compiler)} {_there(where)}")
    flags = shlex.split(_run([str(compiler), "-show"], where))[1:]
    includes = [flag for flag in flags if flag.startswith("-I")]
    cc = os.environ.get("CC", "cc")
    marker = "cadge_version_is"
    source = f"#include <mpi.h>\n{marker} {library.find.version}\n"
    printed = _run([*shlex.split(cc), "-E", "-P", "-x", "c", *includes, "-"], where, text=source)
    version = re.sub(r"[\s\"]", "", printed.rpartition(marker)[2])
    if not re.fullmatch(r"\d[0-9a-z.]*", version):
        raise UnfitError(f"{compiler} is not {library.title}'s: its mpi.h knows no {library.find.version}")
    return version, flags


def _program(names: Iterable[str], where: SearchScope) -> Path | None:
    path = str(where.folder / "bin") if where.folder else where.environment.get("PATH", os.defpath)
    found = next((one for name in names if (one := shutil.which(name, path=path))), None)
    return Path(found).absolute() if found else None


def _sorted(flags: Sequence[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return what is for compiling and what for linking; where libraries are found later is for us to say."""
    cflags: dict[str, None] = {}
    libs: dict[str, None] = {}
    skip = False
    for flag in flags:
        if skip:
            skip = False
        elif _OWN_PATHS.match(flag):
            skip = bool(_RPATH_FOLLOWS.fullmatch(flag))  # the folder follows, as -Wl,FOLDER
        elif flag.startswith("-I"):
            cflags[f"-isystem{flag[2:]}"] = None
        elif flag.startswith("-D"):
            cflags[flag] = None
        elif flag.startswith(("-L", "-l", "-Wl,", "-pthread")):
            libs[flag] = None
    return tuple(cflags), tuple(libs)


def _library(library: LibraryFile, libs: Sequence[str], where: SearchScope) -> Path:
    folders = [flag[2:] for flag in libs if flag.startswith("-L")]
    named = {f"lib{flag[2:]}.so" for flag in libs if flag.startswith("-l")}
    for name in library.file:
        if name not in named:
            continue
        said = _run([*shlex.split(os.environ.get("CC", "cc")), f"-print-file-name={name}"], where).strip()
        for path in [*(Path(folder, name) for folder in folders), Path(said)]:
            if path.is_absolute() and path.exists():
                return path.parent.resolve() / (soname(path) or path.name)
    raise UnfitError(f"{library.title}: none of {', '.join(library.file)} is found with {' '.join(libs)}")
