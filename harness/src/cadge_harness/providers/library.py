# SPDX-License-Identifier: BSD-3-Clause
"""Which libraries can have several builds side by side: files found by wildcard, never listed (`cadge.library/1`).

A library file says how a build of it is found below a folder, and which wheels of it are known, with their hashes.
"""

from __future__ import annotations

from typing import Annotated, ClassVar, Self

from pydantic import Field, model_validator

from cadge_harness.errors import UsageError
from cadge_harness.paths import Checkout
from cadge_harness.yamlfile import load_document
from cadge_results.formats.base import Document, Frozen
from cadge_results.formats.complaint import nearest

ENDING = ".library.yml"
Sha256 = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]


class Find(Frozen):
    """How a build says what to compile and link with: by pkg-config, or by the compiler that it brings."""

    pkg_config: str | None = None
    """Its package there, which also says the version."""
    compiler: tuple[str, ...] = ()
    """Its compiler's names, the first one that is there counting; it is asked with `-show`."""
    launcher: tuple[str, ...] = ()
    """The names of what starts its ranks."""
    version: str = ""
    """Macros of mpi.h that make the version; where they stand for nothing, it is another library."""

    @model_validator(mode="after")
    def _one_way(self) -> Self:
        if bool(self.pkg_config) == bool(self.compiler) or bool(self.compiler) != bool(self.version):
            raise ValueError("either pkg_config, or compiler with version")
        return self


class LibraryPart(Frozen):
    """A file that not every build has, and what is missing without it."""

    part: str
    """Its name, with `*`."""
    beside: str
    """The folder that it would lie in, as seen from the library's."""
    lacks: str
    means: str


class Wheel(Frozen):
    """Wheels of it: builds that need neither root nor a compiler."""

    project: str
    prefix: str = "."
    """Where in what the wheel installs its `lib` lies; may hold `*`."""
    without: tuple[str, ...] = ()
    """Files that nothing here needs."""
    versions: dict[str, tuple[Sha256, ...]]
    """Hashes by version, one a kind of machine."""


class LibraryFile(Document):
    """One library: `harness/libraries/<name>.library.yml`."""

    NAME: ClassVar[str] = "cadge.library"

    title: str
    packages: tuple[str, ...] = Field(min_length=1)
    """Of pkg-config: a layer that names one of these can be built with a provider in its place."""
    file: tuple[str, ...] = Field(min_length=1)
    """The library itself, by the names that it goes by."""
    find: Find
    parts: tuple[LibraryPart, ...] = ()
    wheel: Wheel | None = None


def read_libraries(checkout: Checkout) -> dict[str, LibraryFile]:
    """Return every library by its name. Raises UsageError for a wrong file."""
    found = {}
    for path in sorted((checkout.harness / "libraries").glob(f"*{ENDING}")):
        text = path.read_text(encoding="utf-8")
        found[path.name.removesuffix(ENDING)] = load_document(text, LibraryFile, source=str(path))
    return found


def library_of(checkout: Checkout, name: str) -> LibraryFile:
    """Return one library. Raises UsageError with the nearest name."""
    found = read_libraries(checkout)
    if name not in found:
        raise UsageError(f"no library is called {name!r}{nearest(name, found)}")
    return found[name]
