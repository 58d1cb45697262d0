# SPDX-License-Identifier: BSD-3-Clause
"""Adding a provider: found or fetched, looked at, written down, and every layer that can use it built with it."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import get_args

from cadge_harness.errors import UnfitError, UsageError, shown
from cadge_harness.paths import Checkout
from cadge_harness.providers.elf import build_id
from cadge_harness.providers.folder import FILE, MAKE, OF_LAYER, PART, brought, make_text, providers_folder
from cadge_harness.providers.found import LibraryBuild, SearchScope, find
from cadge_harness.providers.library import LibraryFile, library_of
from cadge_harness.providers.wheel import install, version_of
from cadge_results.plugins.build import Build, Source, same_version

_BUILD_S = 900
_LOAD_S = 60
_BETWEEN = "cadge-module-is-loaded"
_OF_MODULES = ("LD_LIBRARY_PATH",)
"""What a module says of a library's parts that a launch needs as well."""
_DROPPED = ("MAKEFLAGS", "MAKELEVEL", "MFLAGS", "LAYERS", "PROFILE")


@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderRequest:
    """What a user asked for: a library, perhaps a version, and where it comes from.

    tag: follows the version in the provider's name, so that two builds of one version stand side by side.
    """

    library: str
    version: str
    tag: str
    source: Source
    argument: str
    """The folder, or the module's name."""


def read_asked(name: str, origin: str) -> ProviderRequest:
    """Read LIBRARY[@VERSION][+TAG] and wheel, system, prefix:FOLDER or module:NAME. Raises UsageError."""
    untagged, plus, tag = name.partition("+")
    if plus and not re.fullmatch(r"[0-9A-Za-z][0-9A-Za-z.-]{0,39}", tag):
        raise UsageError(f"{shown(name)}: what follows the + is letters, digits, . and -, as in ucx+head")
    library, _, version = untagged.partition("@")
    source, _, argument = origin.partition(":")
    known = get_args(Source)
    found: Source | None = next((one for one in known if one == source), None)
    if found is None:
        raise UsageError(f"--from {origin}: it is wheel, system, prefix:FOLDER or module:NAME")
    if bool(argument) != (found in {"prefix", "module"}):
        needs = f"{found}:{'FOLDER' if found == 'prefix' else 'NAME'}" if found in {"prefix", "module"} else found
        raise UsageError(f"--from {origin}: write --from {needs}")
    return ProviderRequest(library=library, version=version, tag=f"{plus}{tag}", source=found, argument=argument)


def add(checkout: Checkout, asked: ProviderRequest) -> Build:
    """Make a provider's folder. Raises UsageError, UnfitError; then nothing is left behind."""
    if checkout.is_release:
        raise UnfitError(
            f"{checkout.root} is a release without sources, which a provider needs to build layers: "
            "add it in a git checkout"
        )
    library = library_of(checkout, asked.library)
    work = providers_folder(checkout) / f"{asked.library}-{os.getpid()}{PART}"
    work.mkdir(parents=True)
    try:
        provider, found = _look(asked, library, work)
        target = work.with_name(provider.name)
        if target.exists():
            raise UsageError(
                f"there is a provider {provider.name} already; a +TAG behind the library names another build",
                commands=(f"cadge provider remove {provider.name}",),
            )
        inside = [flag.replace(str(work), str(target)) for flag in (*found.cflags, *found.libs)]
        text = make_text(
            provider, library.packages, inside[: len(found.cflags)], inside[len(found.cflags) :], _rpath(provider)
        )
        (work / MAKE).write_text(text, encoding="ascii")
        (work / FILE).write_text(provider.to_json(), encoding="utf-8")
        work.rename(target)
    finally:
        shutil.rmtree(work, ignore_errors=True)
    return provider


def _rpath(provider: Build) -> str:
    """Return where modules find it: a folder as seen from the provider's own, or an absolute one."""
    return "" if provider.source == "system" else str(Path(provider.file).parent)


def _look(asked: ProviderRequest, library: LibraryFile, work: Path) -> tuple[Build, LibraryBuild]:
    sha256, origin, extra = None, asked.argument, dict[str, str]()
    environment = dict(os.environ)
    match asked.source:
        case "wheel":
            wheel, version = version_of(library, asked.version)
            sha256 = install(wheel, version, brought(work))
            origin = f"{wheel.project} {version}"
            where = SearchScope(folder=brought(work), environment=environment, moved=True)
        case "prefix":
            folder = Path(asked.argument)
            if not folder.is_dir():
                raise UsageError(f"--from prefix:{folder}: there is no such folder")
            where = SearchScope(folder=folder.resolve(), environment=environment)
        case "module":
            environment = module_environment(asked.argument)
            extra = {
                name: environment[name] for name in _OF_MODULES if environment.get(name, "") != os.environ.get(name, "")
            }
            where = SearchScope(environment=environment)
        case "system":
            where, origin = SearchScope(environment=environment), "as this machine finds it"
    found = find(library, where)
    if asked.version and not same_version(found.version, asked.version):
        raise UsageError(f"{library.title} {asked.version} was asked for, and {asked.source} has {found.version}")
    provider = Build(
        schema_=Build.schema_id(),
        library=asked.library,
        title=library.title,
        version=f"{found.version}{asked.tag}",
        source=asked.source,
        origin=origin,
        sha256=sha256,
        file=_inside(found.file, work),
        build_id=build_id(found.file),
        launcher=_inside(found.launcher, work) if found.launcher else None,
        environment=extra,
        lacks=dict(found.lacks),
    )
    return provider, found


def _inside(path: Path, work: Path) -> str:
    """Return a path as seen from the provider's folder where it lies in it, else as it is."""
    whole = path.absolute()
    return str(whole.relative_to(work)) if whole.is_relative_to(work) else str(whole)


def build(checkout: Checkout, provider: Build) -> tuple[str, ...]:
    """Build every layer that can use it; returns their names. Raises UnfitError with the compiler's last words."""
    argv = [
        "make",
        "--no-print-directory",
        f"-j{len(os.sched_getaffinity(0))}",
        "-f",
        str(checkout.layers / "build.mk"),
    ]
    argv += [f"BUILD={checkout.build}", f"PROVIDERS={providers_folder(checkout)}"]
    try:
        done = subprocess.run(
            argv,
            cwd=checkout.root,
            env=for_make(os.environ),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=_BUILD_S,
            check=False,
        )
    except (OSError, subprocess.SubprocessError) as error:
        raise UnfitError(f"layers cannot be built with {provider.name}: {error}") from error
    if done.returncode:
        raise UnfitError(f"layers cannot be built with {provider.name}:\n" + "\n".join(done.stdout.splitlines()[-12:]))
    return built_with(checkout, provider.name)


def built_with(checkout: Checkout, name: str) -> tuple[str, ...]:
    """Return the layers that are built with a provider."""
    beside = sorted(checkout.modules.glob(f"*{OF_LAYER}"))
    return tuple(path.name.removesuffix(OF_LAYER) for path in beside if path.read_text().strip() == name)


def for_make(environment: Mapping[str, str]) -> dict[str, str]:
    """Return an environment without what another make, or a user for it, has said."""
    return {name: value for name, value in environment.items() if name not in _DROPPED}


def module_environment(name: str) -> dict[str, str]:
    """Return the variables of a login shell that has loaded an environment module. Raises UsageError, UnfitError."""
    if not re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9_.+/@-]*", name):
        raise UsageError(f"{shown(name)} is no name of a module")
    script = (
        f"type module >/dev/null 2>&1 || exit 127; module load {name} >&2 || exit 1; printf '{_BETWEEN}\\0'; env -0"
    )
    try:
        done = subprocess.run(
            ["bash", "-lc", script], capture_output=True, stdin=subprocess.DEVNULL, timeout=_LOAD_S, check=False
        )
    except (OSError, subprocess.SubprocessError) as error:
        raise UnfitError(f"module {name} cannot be loaded: {error}") from error
    if done.returncode == 127:
        raise UnfitError("a login shell here knows no `module`; give --from prefix:FOLDER")
    said = done.stderr.decode(errors="replace")
    _, begun, listed = done.stdout.decode(errors="replace").partition(f"{_BETWEEN}\0")
    # Environment Modules say what went wrong, and end well all the same
    if done.returncode or not begun or re.search(r"(?i)\berror\b", said):
        raise UnfitError(f"module {name} cannot be loaded: {' '.join(said.split())[-300:]}")
    return dict(pair.split("=", 1) for pair in listed.split("\0") if "=" in pair)
