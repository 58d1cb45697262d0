# SPDX-License-Identifier: BSD-3-Clause
"""Providers: which build of a library serves a layer, where several stand side by side (`cadge.provider/1`).

`native-ucx@1.22.0` is the adapter native-ucx, compiled against that UCX and loaded with it: a layer of its own in plan,
store and report. A name without `@` is the adapter with the library that the build found by itself.
"""

from __future__ import annotations

import re
from fnmatch import fnmatchcase
from typing import ClassVar, Literal

from pydantic import Field

from cadge_results.formats.base import Document

AT = "@"
"""What stands between an adapter's name and the provider's in a layer's."""
MADE_FOR_PROVIDER = "root"
"""The folder, in a provider's own, that holds what was brought for it; hosts are brought it with the build."""

Source = Literal["system", "prefix", "module", "wheel"]


class Provider(Document):
    """One build of one library: what it is, where it lies, and what it needs around it.

    Paths are absolute, or relative to the provider's own folder, which travels with the build.
    """

    NAME: ClassVar[str] = "cadge.provider"

    library: str = Field(pattern=r"^[a-z][a-z0-9]*$")
    title: str
    version: str = Field(pattern=r"^[0-9][0-9A-Za-z.+~-]*$")
    source: Source
    origin: str
    """The wheel, the folder, or the module."""
    sha256: str | None = Field(default=None, pattern=r"^[0-9a-f]{64}$")
    """Of the wheel."""
    file: str
    """The library itself."""
    build_id: str | None = None
    launcher: str | None = None
    """The program that starts ranks, where the library needs one."""
    environment: dict[str, str] = Field(default_factory=dict)
    """Variables without which it does not find its own parts."""
    lacks: dict[str, str] = Field(default_factory=dict)
    """What this build can not do that others of the same library can, with what that means."""

    @property
    def name(self) -> str:
        """The name of its folder: the library's and the version."""
        return f"{self.library}-{self.version}"

    def label(self, substrate: str) -> str:
        """Return what follows the `@`: the version alone where the layer's substrate names the library."""
        return self.version if substrate == self.library else self.name


def adapter_of(layer: str) -> str:
    """Return the adapter's name of a layer: what stands before the `@`."""
    return layer.partition(AT)[0]


def matches(layer: str, glob: str) -> bool:
    """Tell whether a pattern with `*` stands for a layer. One without `@` means the libraries that the build finds."""
    return fnmatchcase(layer, glob) and (AT in glob) == (AT in layer)


def same_version(stated: str, declared: str) -> bool:
    """Tell whether a library says of itself what was declared: as many numbers as the shorter has, at least two.

    A library may know less of its version (an interface 2.5 of release 2.5.0), or more (5.0.11rc1).
    """
    one, other = (re.findall(r"\d+", text.partition("-")[0])[:3] for text in (stated, declared))
    least = min(len(one), len(other))
    return least >= 2 and one[:least] == other[:least]


def loaded_otherwise(provider: Provider, stated_version: str, file: str | None, build_id: str | None) -> str:
    """Return in what a library that was loaded differs from its provider's; "" where it is that one.

    The build id is what tells; where a file has none, its folder does.
    """
    if not same_version(stated_version, provider.version):
        return f"it says that it is version {stated_version}"
    if build_id and provider.build_id:
        return "" if build_id == provider.build_id else f"its build id is {build_id[:12]}, not {provider.build_id[:12]}"
    if file is None:
        return "where it was loaded from is not known"
    folder, own = file.rpartition("/")[0], provider.file.rpartition("/")[0]
    there = folder == own if own.startswith("/") else folder.endswith(f"/providers/{provider.name}/{own}")
    return "" if there else f"it was loaded from {folder}"
