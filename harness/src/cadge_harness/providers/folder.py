# SPDX-License-Identifier: BSD-3-Clause
"""The folder of providers, beside what is built with them: each has one of its own, and so travels with the build."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterable, Sequence
from pathlib import Path

from cadge_harness.errors import UnfitError, UsageError
from cadge_harness.paths import Checkout
from cadge_results.errors import ResultsError
from cadge_results.formats.complaint import nearest
from cadge_results.plugins.build import MADE_FOR_PROVIDER, Build

FILE = "provider.json"
MAKE = "provider.mk"
OF_LAYER = ".provider"
"""The ending of the file beside a built layer that names its provider."""
ABSENT = ".absent"
"""The ending of the file that says why a layer was not built."""
PART = ".part"
"""The ending of a folder that is being made."""
_RAW = re.compile(r"[^A-Za-z0-9_./+=:,@~ -]")


def providers_folder(checkout: Checkout) -> Path:
    """Return where providers lie: in the build tree, for they are made, and can be made again."""
    return checkout.build / "providers"


def read_providers(checkout: Checkout) -> dict[str, Build]:
    """Return every provider by its name. Raises UnfitError for one whose file cannot be read."""
    found = {}
    for path in sorted(providers_folder(checkout).glob(f"*/{FILE}")):
        if path.parent.suffix != PART:
            found[path.parent.name] = read_provider(path)
    return found


def read_provider(path: Path) -> Build:
    """Return the provider of a file. Raises UnfitError."""
    try:
        return Build.parse(path.read_bytes(), source=str(path))
    except (OSError, ResultsError) as error:
        name = path.parent.name
        raise UnfitError(
            f"provider {name} cannot be read: {error}", commands=(f"cadge provider remove {name}",)
        ) from error


def driver_of(checkout: Checkout, build: Build | None) -> Path:
    """Return the driver that measures a layer: that of its build, where it has one of its own."""
    if build is None or build.driver is None:
        return checkout.driver
    return providers_folder(checkout) / build.name / build.driver


def make_text(provider: Build, packages: Iterable[str], cflags: Sequence[str], libs: Sequence[str], rpath: str) -> str:
    """Return what the build of layers is told of a provider."""
    values = {
        "LIBRARY": provider.library,
        "VERSION": provider.version,
        "PKGS": " ".join(packages),
        "CFLAGS": " ".join(cflags),
        "LIBS": " ".join(libs),
        "RPATH": rpath,
    }
    for name, value in values.items():
        if _RAW.search(value):
            raise UnfitError(f"{name} of {provider.name} is {value!r}, which make cannot take")
    lines = [f"PROVIDER_{name} := {value}".rstrip() for name, value in values.items()]
    return "\n".join(["# Made by cadge provider add.", *lines, ""])


def remove(checkout: Checkout, name: str) -> list[Path]:
    """Remove a provider and the layers that were built with it; returns these. Raises UsageError."""
    folder = providers_folder(checkout) / name
    known = [path.parent.name for path in providers_folder(checkout).glob(f"*/{FILE}")]
    if name not in known:
        there = f"; there are: {', '.join(sorted(known))}" if known else "; there is none"
        raise UsageError(f"no provider is called {name!r}{nearest(name, known)}{there}")
    modules = [path for path in sorted(checkout.modules.glob(f"*{OF_LAYER}")) if path.read_text().strip() == name]
    for path in modules:
        for ending in (".so", ABSENT, OF_LAYER):
            path.with_name(path.name.removesuffix(OF_LAYER) + ending).unlink(missing_ok=True)
    shutil.rmtree(folder)
    return modules


def brought(folder: Path) -> Path:
    """Return where what is brought for a provider lies."""
    return folder / MADE_FOR_PROVIDER
