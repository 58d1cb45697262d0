# SPDX-License-Identifier: BSD-3-Clause
"""Builds of Cadge itself, out of a git revision or a folder of sources.

All are made in one place, without debugging information and without their path in it: equal code gives equal bytes.
"""

from __future__ import annotations

import fcntl
import filecmp
import hashlib
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from cadge_harness import __version__
from cadge_harness.errors import UnfitError, UsageError, shown
from cadge_harness.paths import Checkout
from cadge_harness.providers.add import for_make
from cadge_harness.providers.elf import build_id
from cadge_harness.providers.folder import (
    ABSENT,
    FILE,
    MAKE,
    OF_LAYER,
    PART,
    brought,
    make_text,
    providers_folder,
    remove,
)
from cadge_results.formats.complaint import nearest
from cadge_results.plugins.build import AT, CADGE, Build, Source

PARTS = ("layers", "harness", "results/src", "pyproject.toml")
"""What the driver and the layers are made of."""
HELD = "held"
"""The file that names the sources that were compiled last."""
_MARK = "layers/include/cadge/layer.h"
_DRIVER = "bin/cadge-driver"
_BUILD_S = 1800
_DIGITS = 10
_FLAGS_DIGITS = 6
_FLAGS_ALLOWED = re.compile(r"[A-Za-z0-9_./+=:,@~ -]*")
_ERROR = re.compile(r"\berror\b|undefined reference|\*\*\*")
_ERROR_LINES = 12
_GIT_S = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceTree:
    """Sources of Cadge as a user named them: a commit of a checkout, or a folder."""

    given: str
    source: Source
    root: Path
    """The git checkout that has the commit, or the folder."""
    commit: str = ""

    @property
    def title(self) -> str:
        """What messages call it."""
        return f"{self.given} ({self.commit[:_DIGITS]})" if self.commit else self.given


@dataclass(frozen=True, slots=True, kw_only=True)
class Flags:
    """How a build of Cadge is compiled, where that was asked for."""

    cc: str = ""
    cflags: str = ""

    def __post_init__(self) -> None:
        """Raise UsageError for what make and a shell would take apart."""
        for option, text in (("--cc", self.cc), ("--cflags", self.cflags)):
            if not _FLAGS_ALLOWED.fullmatch(text):
                raise UsageError(f"{option} {shown(text)}: it may hold letters, digits, spaces and _./+=:,@~- only")


@dataclass(frozen=True, slots=True, kw_only=True)
class MadeBuild:
    """A build of Cadge with its modules in the build tree. lacks: why a layer was not made, by its name."""

    build: Build
    driver: Path
    modules: Mapping[str, Path]
    lacks: Mapping[str, str]


def find_sources(checkout: Checkout, text: str) -> SourceTree:
    """Return the sources that a revision of the checkout, or else a folder, stands for. Raises UsageError."""
    commit = _git(checkout.root, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{text}^{{commit}}")
    looks_like_path = "/" in text or text in {".", ".."}
    if commit and not (looks_like_path and Path(text).is_dir()):
        return SourceTree(given=text, source="revision", root=checkout.root, commit=commit.strip())
    folder = Path(text)
    if folder.is_dir():
        if not (folder / _MARK).is_file():
            raise UsageError(f"{text} holds no sources of Cadge: it has no {_MARK}")
        return SourceTree(given=text, source="folder", root=folder.resolve())
    if not _git(checkout.root, "rev-parse", "--git-dir"):
        raise UsageError(
            f"{shown(text)} is no folder, and {checkout.root} is no git checkout with revisions: name folders"
        )
    known = _git(checkout.root, "for-each-ref", "--format=%(refname:short)", "refs/heads", "refs/tags").split()
    raise UsageError(f"{shown(text)} is no revision of {checkout.root} and no folder{nearest(text, known)}")


def uncommitted(tree: SourceTree) -> int:
    """Return how many changed files a checkout has beside the commit that it is on; 0 for other commits and folders."""
    if not tree.commit or _git(tree.root, "rev-parse", "HEAD").strip() != tree.commit:
        return 0
    return len(_git(tree.root, "status", "--porcelain", "--untracked-files=no", "--", *PARTS).splitlines())


def make_builds(
    checkout: Checkout, sides: Sequence[tuple[SourceTree, Flags]], layers: Sequence[str]
) -> tuple[MadeBuild, ...]:
    """Make the driver and some layers of each side. Raises UnfitError with what the compiler says.

    The side whose sources lie there already is made first: then they are compiled over once, and not twice.
    """
    folder = checkout.build / "compared"
    folder.mkdir(parents=True, exist_ok=True)
    found: dict[int, MadeBuild] = {}
    with _alone(folder):
        held = (folder / HELD).read_text() if (folder / HELD).is_file() else ""
        for number, (tree, flags) in sorted(enumerate(sides), key=lambda one: _names(*one[1]) != held):
            (folder / HELD).write_text(_names(tree, flags))
            found[number] = _made(checkout, folder, tree, flags, layers)
    return tuple(found[number] for number in range(len(sides)))


def _names(tree: SourceTree, flags: Flags) -> str:
    return f"{tree.commit or tree.root} {flags.cc} {flags.cflags}"


def equal_files(one: Path, other: Path) -> bool:
    """Tell whether two files hold the same bytes."""
    return one == other or filecmp.cmp(one, other, shallow=False)


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _made(checkout: Checkout, folder: Path, tree: SourceTree, flags: Flags, layers: Sequence[str]) -> MadeBuild:
    source = folder / "source"
    digest = _lay_out(tree, folder, source)
    version = tree.commit[:_DIGITS] or digest[:_DIGITS]
    if flags != Flags():
        version += f"-{hashlib.sha256(repr((flags.cc, flags.cflags)).encode()).hexdigest()[:_FLAGS_DIGITS]}"
    lacks = {name: f"{tree.title} has no such layer" for name in layers if not _layer_file(source, name).is_file()}
    _make(source, tree, flags, [name for name in layers if name not in lacks])
    for name in layers:
        if (note := source / "build" / "layers" / f"{name}{ABSENT}").is_file() and name not in lacks:
            lacks[name] = note.read_text(encoding="utf-8", errors="replace").strip()
    return _kept(
        checkout, source / "build", tree, flags, version, [name for name in layers if name not in lacks], lacks
    )


def _layer_file(source: Path, name: str) -> Path:
    style, _, substrate = name.partition("-")
    return source / "layers" / style / f"{substrate}.layer.yml"


def _lay_out(tree: SourceTree, folder: Path, source: Path) -> str:
    """Bring `source` to hold these sources, and leave files that are the same as they are; return a digest of all.

    So make compiles what differs from the sources that were there before, and nothing else.
    """
    new = folder / "new"
    shutil.rmtree(new, ignore_errors=True)
    new.mkdir()
    _extract(tree, new)
    wanted = sorted(str(path.relative_to(new)) for path in new.rglob("*") if path.is_file() and not path.is_symlink())
    digest = hashlib.sha256()
    for name in wanted:
        digest.update(f"{name}\0{hashlib.sha256((new / name).read_bytes()).hexdigest()}\n".encode())
        here = source / name
        if here.is_file() and equal_files(new / name, here):
            continue
        here.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(new / name, here)
        shutil.copymode(new / name, here)
    kept = set(wanted)
    for path in [one for part in PARTS for one in (source / part).rglob("*") if one.is_file()]:
        if str(path.relative_to(source)) not in kept:
            path.unlink()
    shutil.rmtree(new)
    return digest.hexdigest()


def _extract(tree: SourceTree, new: Path) -> None:
    if tree.commit:
        there = _git(tree.root, "ls-tree", "--name-only", tree.commit, "--", *PARTS).split()
        if not {"layers", "harness"} <= set(there):
            raise UsageError(f"{tree.title} holds no sources of Cadge: it has no layers/ and harness/")
        archive = new.with_name("new.tar")
        _git(tree.root, "archive", f"--output={archive}", tree.commit, "--", *there, must=tree.title)
        try:
            subprocess.run(["tar", "-xf", str(archive), "-C", str(new)], check=True, capture_output=True)
        except (OSError, subprocess.SubprocessError) as error:
            raise UnfitError(f"the sources of {tree.title} cannot be unpacked: {error}") from error
        archive.unlink()
        return
    listed = _git(tree.root, "ls-files", "-z", "--cached", "--others", "--exclude-standard", "--", *PARTS).split("\0")
    names = [name for name in listed if name] or [
        str(path.relative_to(tree.root))
        for part in PARTS
        for path in [tree.root / part, *(tree.root / part).rglob("*")]
        if path.is_file() and "__pycache__" not in path.parts
    ]
    for name in names:
        path = tree.root / name
        if path.is_file() and not path.is_symlink():
            (new / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(path, new / name)


def _make(source: Path, tree: SourceTree, flags: Flags, layers: Sequence[str]) -> None:
    common = ["make", "--no-print-directory", f"-j{len(os.sched_getaffinity(0))}", "BUILD=build"]
    common += [f"EXTRA_CFLAGS=-g0 -ffile-prefix-map={source}={CADGE} {flags.cflags}".rstrip()]
    common += ["EXTRA_LDFLAGS=-Wl,--build-id=sha1", *([f"CC={flags.cc}"] if flags.cc else [])]
    # neither the revision nor the version is code: builds that differ in them alone are equal
    of_driver = ["driver", "REVISION=compared", f"H_VERSION={__version__}", f"TABLES_PYTHON={sys.executable}"]
    runs = [["-f", "harness/build.mk", *of_driver]]
    if layers:
        runs.append(["-f", "layers/build.mk", f"LAYERS={' '.join(layers)}"])
    for arguments in runs:
        try:
            done = subprocess.run(
                [*common, *arguments],
                cwd=source,
                env=for_make(os.environ),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                errors="replace",
                timeout=_BUILD_S,
                check=False,
            )
        except (OSError, subprocess.SubprocessError) as error:
            raise UnfitError(f"{tree.title} cannot be built: {error}") from error
        if done.returncode:
            raise UnfitError(f"{tree.title} cannot be built:\n" + "\n".join(_of_the_error(done.stdout.splitlines())))


def _of_the_error(lines: Sequence[str]) -> Sequence[str]:
    """Return the lines from the first error on, as compilers beside it may have said more after it."""
    first = next((at for at, line in enumerate(lines) if _ERROR.search(line)), max(0, len(lines) - _ERROR_LINES))
    return lines[first : first + _ERROR_LINES]


def _kept(
    checkout: Checkout,
    made: Path,
    tree: SourceTree,
    flags: Flags,
    version: str,
    layers: Sequence[str],
    lacks: Mapping[str, str],
) -> MadeBuild:
    """Put what was made into the build tree, beside what another campaign needs of the same build.

    Of layers that were not made the reason lies there, as the build of layers leaves it: they are planned as refused.
    """
    driver = made / _DRIVER
    build = Build(
        schema_=Build.schema_id(),
        library=CADGE,
        title="Cadge",
        version=version,
        source=tree.source,
        origin=tree.commit or str(tree.root),
        file=f"{brought(Path()).name}/{_DRIVER}",
        build_id=build_id(driver),
        made_with=f"{_compiler(flags)} {flags.cflags}".strip(),
        adapters={name: build_id(made / "layers" / f"{name}.so") or "" for name in layers},
    )
    target = providers_folder(checkout) / build.name
    known = _known(target)
    if known is not None and known.build_id == build.build_id and known.made_with == build.made_with:
        build = build.model_copy(update={"adapters": {**known.adapters, **build.adapters}})
    elif known is not None:
        remove(checkout, build.name)
    _write(target, build, driver)
    checkout.modules.mkdir(parents=True, exist_ok=True)
    modules = {}
    for name in (*layers, *lacks):
        module = checkout.modules / f"{name}{AT}{build.label('')}.so"
        absent = module.with_suffix(ABSENT)
        if name in lacks:
            absent.write_text(f"{lacks[name]}\n", encoding="utf-8")
            module.unlink(missing_ok=True)
        else:
            _replace(made / "layers" / f"{name}.so", module)
            absent.unlink(missing_ok=True)
            modules[name] = module
        module.with_suffix(OF_LAYER).write_text(f"{build.name}\n", encoding="utf-8")
    return MadeBuild(build=build, driver=target / build.file, modules=modules, lacks=lacks)


def _known(target: Path) -> Build | None:
    try:
        return Build.parse((target / FILE).read_bytes(), source=str(target))
    except Exception:  # noqa: BLE001 - what cannot be read is made anew
        return None


def _write(target: Path, build: Build, driver: Path) -> None:
    """Make the folder of a build, whole or not at all."""
    work = target.with_name(f"{target.name}-{os.getpid()}{PART}")
    shutil.rmtree(work, ignore_errors=True)
    try:
        (work / build.file).parent.mkdir(parents=True)
        shutil.copy(driver, work / build.file)
        (work / MAKE).write_text(make_text(build, (), (), (), ""), encoding="ascii")
        (work / FILE).write_text(build.to_json(), encoding="utf-8")
        shutil.rmtree(target, ignore_errors=True)
        work.rename(target)
    finally:
        shutil.rmtree(work, ignore_errors=True)


def _replace(path: Path, target: Path) -> None:
    """Copy a module in one step: a launch may have it open. One that is the same stays."""
    if target.is_file() and equal_files(path, target):
        return
    part = target.with_name(f"{target.name}{PART}")
    shutil.copy(path, part)
    part.rename(target)


def _compiler(flags: Flags) -> str:
    command = [*shlex.split(flags.cc or os.environ.get("CC") or "cc"), "--version"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=_GIT_S, check=False)
    except (OSError, subprocess.SubprocessError):
        return command[0]
    return next(iter(done.stdout.splitlines()), command[0])


def _git(root: Path, *arguments: str, must: str = "") -> str:
    """Return what git says; "" where it fails, or UnfitError where it `must` not, of that."""
    argv = ["git", "-c", f"safe.directory={root}", "-C", str(root), *arguments]
    try:
        done = subprocess.run(argv, capture_output=True, text=True, timeout=_GIT_S, check=False, errors="replace")
    except (OSError, subprocess.SubprocessError) as error:
        if must:
            raise UnfitError(f"{must}: {error}") from error
        return ""
    if done.returncode and must:
        raise UnfitError(f"{must}: {' '.join(done.stderr.split())[-300:]}")
    return done.stdout if done.returncode == 0 else ""
