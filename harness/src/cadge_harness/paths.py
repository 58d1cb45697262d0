# SPDX-License-Identifier: BSD-3-Clause
"""Where things lie: the checkout, its build tree, its campaigns, its sweeps."""

from __future__ import annotations

import os
import shlex
import sys
from dataclasses import dataclass
from pathlib import Path

from cadge_harness import __version__
from cadge_harness.errors import UnfitError, UsageError


@dataclass(frozen=True, slots=True)
class Checkout:
    """A checkout of Cadge, or an unpacked release."""

    root: Path

    @property
    def is_release(self) -> bool:
        """Whether this is an unpacked release (ci/dist), which has no sources of C code."""
        return (self.root / "RELEASE").is_file()

    @property
    def what(self) -> str:
        """What people call it."""
        return "release" if self.is_release else "checkout"

    @property
    def to_build(self) -> str:
        """The command that rebuilds the build folder: a release brings its own."""
        if self.is_release:
            archive = f"cadge-{__version__}-linux-{os.uname().machine}.tar.gz"
            return f"tar -C {shlex.quote(str(self.root))} --strip-components=1 -xf {archive}"
        return "make build"

    @property
    def to_install(self) -> str:
        """The command that reinstalls the Python packages: a release does so when it finds none."""
        if self.is_release:
            return f"rm -r {shlex.quote(sys.prefix)} && {shlex.quote(str(self.root / 'bin/cadge'))} --version"
        return "make setup"

    @property
    def build(self) -> Path:
        """The build tree."""
        return Path(os.environ.get("CADGE_BUILD") or self.root / "build")

    @property
    def modules(self) -> Path:
        """Built layers."""
        return self.build / "layers"

    @property
    def programs(self) -> Path:
        """Built programs."""
        return self.build / "bin"

    @property
    def driver(self) -> Path:
        """The measuring program."""
        return self.programs / "cadge-driver"

    @property
    def layers(self) -> Path:
        """Sources of the layers, and their layer files."""
        return self.root / "layers"

    @property
    def harness(self) -> Path:
        """The harness, with the files of patterns and floors."""
        return self.root / "harness"

    @property
    def sweeps(self) -> Path:
        """The sweeps that come with Cadge."""
        return self.root / "harness" / "sweeps"

    @property
    def studies(self) -> Path:
        """Published figures to set beside ours: a folder a paper."""
        return self.root / "analysis" / "studies"

    @property
    def campaigns(self) -> Path:
        """Where campaigns go unless told otherwise."""
        return self.root / "results" / "campaigns"


def selftests_of(campaigns: Path) -> Path:
    """Return where self-tests lie: in a folder of the campaigns' own, so that both are moved and removed together."""
    return campaigns / "selftest"


def find_checkout() -> Checkout:
    """Return the checkout: $CADGE_ROOT, or the one that this package is installed from.

    Raises UsageError where $CADGE_ROOT is none, UnfitError where neither leads to one (a moved checkout).
    """
    stated = os.environ.get("CADGE_ROOT")
    if stated:
        root = Path(stated)
        if not _is_checkout(root):
            raise UsageError(f"CADGE_ROOT={stated} is no folder of Cadge: it has no layers/include/cadge/layer.h")
        return Checkout(root.resolve())
    root = Path(__file__).resolve().parents[3]
    if _is_checkout(root):
        return Checkout(root)
    raise UnfitError(
        f"this cadge was installed from {root}, and Cadge is not there any more; in a checkout run make setup again, "
        "in a release its bin/cadge, or set CADGE_ROOT"
    )


def _is_checkout(root: Path) -> bool:
    return (root / "layers" / "include" / "cadge" / "layer.h").is_file()
