# SPDX-License-Identifier: BSD-3-Clause
"""Which layers there are: layer files found by wildcard, and what the build made of them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from cadge_harness.errors import UsageError
from cadge_harness.paths import Checkout
from cadge_harness.providers.folder import ABSENT, OF_LAYER, read_providers
from cadge_harness.surroundings import newer_libc
from cadge_harness.yamlfile import load_document
from cadge_results import LayerFile, Reason
from cadge_results.formats.base import Place, Wait
from cadge_results.formats.complaint import nearest
from cadge_results.plugins.build import AT, Build, matches
from cadge_results.plugins.floor import PREFIX

AS_IT_IS = {"native": 0, "mpi": 0, "rdma": 1}
"""Styles that use a library as it is: its messages before its one-sided operations."""
SHIM_STYLE = "shim"
"""Shims have layer files as well, but are measured only around a layer."""
_NO_LIBRARY = re.compile(r"cannot be loaded: (\S+): cannot open shared object file")


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """Why something cannot be: a code for programs and a sentence for people."""

    code: Reason
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """What a layer grants at one place in one wait mode, as the driver found it on this machine."""

    caps: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class Description:
    """What the driver says of a built layer: its library, and what it grants where."""

    library: str | None = None
    version: str | None = None
    options: tuple[str, ...] = ()
    contexts: Mapping[tuple[Place, Wait], Context | Refusal] = field(default_factory=dict)
    claims: frozenset[str] | None = None
    """Capabilities that its table claims, of which a context grants some; None where it did not say."""
    trouble: str | None = None
    """Why the layer cannot even be loaded; None where it can."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerInfo:
    """One layer. `absent` is None where it was built; `description` is None where nobody asked the driver.

    build: which build of its library, or of Cadge, serves it; None for the build tree's own.
    """

    file: LayerFile
    absent: Refusal | None = None
    description: Description | None = None
    build: Build | None = None

    @property
    def name(self) -> str:
        """The layer's name: its adapter's, and which build serves it where that was chosen."""
        return f"{self.file.name}{AT}{self.build.label(self.file.substrate)}" if self.build else self.file.name

    @property
    def unloadable(self) -> str:
        """Why this machine cannot load it, and what to install; "" where it can, or where nobody asked."""
        trouble = (self.description and self.description.trouble) or ""
        if missing := _NO_LIBRARY.search(trouble):
            packages = " ".join(self.file.packages.run)
            return f"{missing[1]} is not on this machine" + (f"; Debian: apt install {packages}" if packages else "")
        newer = newer_libc(trouble)
        return f"{newer}; build Cadge on this machine" if newer else trouble

    @property
    def library(self) -> str:
        """The name of the library that serves it."""
        return self.build.title if self.build and not self.build.of_cadge else self.file.library


def no_layer(name: str, likely: Iterable[str]) -> str:
    """Return the sentence for a name that no layer has; `likely`: those that have one, the likeliest first."""
    if name.startswith(PREFIX):
        return f"{name} is a floor, no layer: floors are measured beside the layers, and are not chosen"
    return f"unknown layer {name!r}{nearest(name, likely)}"


@dataclass(frozen=True, slots=True)
class Catalogue:
    """Every layer of a checkout, by name, and the names of the built shims."""

    layers: tuple[LayerInfo, ...]
    shims: tuple[str, ...] = ()

    def get(self, name: str) -> LayerInfo:
        """Return a layer. Raises UsageError with the nearest name."""
        for info in self.layers:
            if info.name == name:
                return info
        adapter, at, _ = name.partition(AT)
        if at and any(info.name == adapter for info in self.layers):
            there = self.matching(f"{adapter}{AT}*")
            raise UsageError(
                f"{adapter} is not built with a provider that makes it {name!r}; "
                + (f"there are: {', '.join(there)}" if there else "no provider of its library was added"),
                commands=("cadge provider list",),
            )
        raise UsageError(no_layer(name, self.likely))

    def names(self) -> tuple[str, ...]:
        """Return all names in order."""
        return tuple(info.name for info in self.layers)

    @property
    def likely(self) -> tuple[str, ...]:
        """All names, first those that a library's name alone means: its own messages, then its own writes."""
        return tuple(info.name for info in sorted(self.layers, key=lambda info: AS_IT_IS.get(info.file.style, 2)))

    @property
    def usual(self) -> tuple[LayerInfo, ...]:
        """The layers that `all` stands for: each once, with the library that the build found by itself."""
        return tuple(info for info in self.layers if info.build is None)

    def matching(self, wanted: str) -> tuple[str, ...]:
        """Return what a name stands for: its layer, or with `*` every layer that matches; nothing for unknown ones."""
        if "*" not in wanted:
            return tuple(name for name in self.names() if name == wanted)
        return tuple(name for name in self.names() if matches(name, wanted))

    def check_shim(self, name: str) -> None:
        """Raise UsageError with the nearest name for a shim that is not there."""
        if name not in self.shims:
            raise UsageError(f"unknown shim {name!r}{nearest(name, self.shims)}")


def read_catalogue(checkout: Checkout) -> Catalogue:
    """Read every layer file and look into the build tree. Raises UsageError for a wrong layer file."""
    layers = []
    builds = read_providers(checkout)
    for path in sorted(checkout.layers.glob("*/*.layer.yml")):
        file = load_document(path.read_text(encoding="utf-8"), LayerFile, source=str(path))
        if file.style == SHIM_STYLE:
            continue
        expected = f"{path.parent.name}-{path.name.removesuffix('.layer.yml')}"
        if file.name != expected:
            raise UsageError(f"{path}: style and substrate make {file.name}, but the file's place says {expected}")
        layers.append(LayerInfo(file=file, absent=_absent(checkout, file.name)))
        layers += _with_builds(checkout, file, builds)
    shims = sorted(path.stem.removeprefix("shim-") for path in checkout.modules.glob("shim-*.so"))
    return Catalogue(tuple(layers), tuple(shims))


def _with_builds(checkout: Checkout, file: LayerFile, builds: Mapping[str, Build]) -> Iterator[LayerInfo]:
    """Yield a layer for each build that an adapter was made with."""
    for path in sorted(checkout.modules.glob(f"{file.name}{AT}*{OF_LAYER}")):
        build = builds.get(path.read_text(encoding="utf-8").strip())
        name = path.name.removesuffix(OF_LAYER)
        if build is not None and name == f"{file.name}{AT}{build.label(file.substrate)}":
            yield LayerInfo(file=file, absent=_absent(checkout, name), build=build)


def _absent(checkout: Checkout, name: str) -> Refusal | None:
    if (checkout.modules / f"{name}.so").is_file():
        return None
    note = checkout.modules / f"{name}{ABSENT}"
    if note.is_file():
        reason = note.read_text(encoding="utf-8", errors="replace").strip() or "its library is missing"
        return Refusal(code=Reason.BUILD_ABSENT, reason=f"not built: {reason}")
    reason = "not in this release" if checkout.is_release else f"not built; run: {checkout.to_build}"
    return Refusal(code=Reason.BUILD_ABSENT, reason=reason)


def select(catalogue: Catalogue, names: Iterable[str]) -> tuple[str, ...]:
    """Return the named layers in the order of the catalogue. Raises UsageError for unknown ones."""
    chosen = {catalogue.get(name).name for name in names}
    return tuple(name for name in catalogue.names() if name in chosen)
