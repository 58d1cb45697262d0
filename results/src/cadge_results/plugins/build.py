# SPDX-License-Identifier: BSD-3-Clause
"""Builds: which making of a library, or of Cadge itself, serves a layer where several stand side by side.

`native-ucx@1.22.0` is the adapter native-ucx, compiled against that UCX and loaded with it, and
`native-ucx@cadge-1a2b3c4d5e` the adapter of another revision, measured by that revision's driver: each a layer of its
own in plan, store and report. A name without `@` is the adapter of the build tree, with the library that it found by
itself. The record is stored as `cadge.provider/1`.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from fnmatch import fnmatchcase
from typing import ClassVar, Literal

from pydantic import Field

from cadge_results.formats.base import Document

AT = "@"
"""What stands between an adapter's name and the build's in a layer's."""
NO_SETTINGS = "()"
"""The variant of a layer that has no settings."""
MADE_FOR_PROVIDER = "root"
"""The folder, in a build's own, that holds what was brought for it; hosts are brought it with the build tree."""
CADGE = "cadge"
"""What a build of Cadge itself is of, in the place of a library."""

Source = Literal["system", "prefix", "module", "wheel", "revision", "folder"]


class Build(Document):
    """One way in which a library, or Cadge, was made: what it is, where it lies, and what it needs around it.

    Paths are absolute, or relative to the build's own folder, which travels with the build tree.
    """

    NAME: ClassVar[str] = "cadge.provider"

    library: str = Field(pattern=r"^[a-z][a-z0-9]*$")
    """What was made: a library, or `cadge`."""
    title: str
    version: str = Field(pattern=r"^[0-9A-Za-z][0-9A-Za-z.+~-]*$")
    """Of a build of Cadge the commit, or a hash of the sources, and of the flags where there are any."""
    source: Source
    origin: str
    """The wheel, the folder, the module or the commit."""
    sha256: str | None = Field(default=None, pattern=r"^[0-9a-f]{64}$")
    """Of the wheel."""
    file: str
    """What is loaded: the library itself, or the driver."""
    build_id: str | None = None
    launcher: str | None = None
    """The program that starts ranks, where the library needs one."""
    environment: dict[str, str] = Field(default_factory=dict)
    """Variables without which it does not find its own parts."""
    lacks: dict[str, str] = Field(default_factory=dict)
    """What this build can not do that others of the same library can, with what that means."""
    made_with: str = Field(default="", exclude_if=lambda value: not value)
    """The compiler and the flags, of a build of Cadge."""
    adapters: dict[str, str] = Field(default_factory=dict, exclude_if=lambda value: not value)
    """Build ids of the adapters that were made with it, by name, of a build of Cadge."""

    @property
    def name(self) -> str:
        """The name of its folder: the library's and the version."""
        return f"{self.library}-{self.version}"

    @property
    def of_cadge(self) -> bool:
        """Tell whether adapters and the driver were made anew, and not a library."""
        return self.library == CADGE

    @property
    def driver(self) -> str | None:
        """The driver that measures with it, where it has one of its own."""
        return self.file if self.of_cadge else None

    def label(self, substrate: str) -> str:
        """Return what follows the `@`: the version alone where the layer's substrate names the library."""
        return self.version if substrate == self.library else self.name


def adapter_of(layer: str) -> str:
    """Return the adapter's name of a layer: what stands before the `@`."""
    return layer.partition(AT)[0]


def is_variant(text: str) -> bool:
    """Tell whether a text is a variant: a build, `@1.22.0`, or settings as reports show them, `(off=gather)`.

    A variant stands for each layer of a campaign that is measured so. `()` is a layer without settings.
    """
    return text[:1] in {AT, "("}


def on_variant(label: str, variant: str) -> str:
    """Return the label of the same layer in another variant."""
    if variant.startswith(AT):
        layer, space, more = label.partition(" ")
        return f"{adapter_of(layer)}{variant}{space}{more}"
    plain = label.partition(" (")[0]
    return plain if variant == NO_SETTINGS else f"{plain} {variant}"


def variant_of(label: str, like: str) -> str:
    """Return the variant that a label shows, of the kind that `like` is of; "" where it names no build."""
    if like.startswith(AT):
        _, at, build = label.partition(" ")[0].partition(AT)
        return f"{at}{build}"
    _, bracket, settings = label.partition(" (")
    return f"({settings}" if bracket else NO_SETTINGS


def without_variant(label: str, variant: str) -> str:
    """Return what a layer is called in all variants of one kind."""
    if variant.startswith(AT):
        layer, space, more = label.partition(" ")
        return f"{adapter_of(layer)}{space}{more}"
    return on_variant(label, NO_SETTINGS)


def matches(layer: str, glob: str) -> bool:
    """Tell whether a pattern with `*` stands for a layer. One without `@` means the build tree's own."""
    return fnmatchcase(layer, glob) and (AT in glob) == (AT in layer)


def same_version(stated: str, declared: str) -> bool:
    """Tell whether a library says of itself what was declared: as many numbers as the shorter has, at least two.

    A library may know less of its version (an interface 2.5 of release 2.5.0), or more (5.0.11rc1).
    """
    one, other = (re.findall(r"\d+", text.partition("-")[0])[:3] for text in (stated, declared))
    least = min(len(one), len(other))
    return least >= 2 and one[:least] == other[:least]


def loaded_otherwise(build: Build, stated_version: str, file: str | None, build_id: str | None) -> str:
    """Return in what a library that was loaded differs from its build; "" where it is that one.

    The build id is what tells; where a file has none, its folder does.
    """
    if not same_version(stated_version, build.version):
        return f"it says that it is version {stated_version}"
    if build_id and build.build_id:
        return _other_id(build_id, build.build_id)
    if file is None:
        return "where it was loaded from is not known"
    folder, own = file.rpartition("/")[0], build.file.rpartition("/")[0]
    there = folder == own if own.startswith("/") else folder.endswith(f"/providers/{build.name}/{own}")
    return "" if there else f"it was loaded from {folder}"


def run_otherwise(build: Build, layer: str, adapter: str | None, drivers: Collection[str | None]) -> str:
    """Return in what a launch differs from a build of Cadge, by the build ids of what it loaded; "" where it does not.

    drivers: of the programs that its endpoints ran.
    """
    ran = (
        ("adapter", adapter, build.adapters.get(adapter_of(layer))),
        *(("driver", one, build.build_id) for one in drivers),
    )
    for what, found, own in ran:
        if not found or not own:
            return f"the build id of its {what} is not known"
        if wrong := _other_id(found, own):
            return f"of its {what}, {wrong}"
    return "" if drivers else "the build id of its driver is not known"


def _other_id(found: str, own: str) -> str:
    return "" if found == own else f"its build id is {found[:12]}, not {own[:12]}"
