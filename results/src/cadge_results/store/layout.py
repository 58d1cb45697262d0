# SPDX-License-Identifier: BSD-3-Clause
"""Where a campaign's files lie: one folder, as `store` says."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from cadge_results.errors import Damage, DamagedError, DamageKind
from cadge_results.formats.trace import TRACE_FILE
from cadge_results.store.damage import oddity


@dataclass(frozen=True, slots=True)
class Layout:
    """Paths of one campaign."""

    root: Path

    @property
    def meta(self) -> Path:
        """The campaign file."""
        return self.root / "campaign.json"

    @property
    def plan(self) -> Path:
        """The plan."""
        return self.root / "plan.json"

    @property
    def sweep(self) -> Path:
        """The sweep file as the user wrote it."""
        return self.root / "sweep.yml"

    @property
    def trace(self) -> Path:
        """The trace that its points replay, where some do."""
        return self.root / TRACE_FILE

    @property
    def native(self) -> Path:
        """What native tools printed beside its launches, where some ran."""
        return self.root / "native.json"

    @property
    def log(self) -> Path:
        """What the runs of Ansible said."""
        return self.root / "ansible.log"

    @property
    def report(self) -> Path:
        """Where a report of the campaign goes unless told otherwise."""
        return self.root / "report.html"

    def study(self, name: str) -> Path:
        """Return where a study's page of the campaign goes unless told otherwise."""
        return self.root / f"study-{name}.html"

    @property
    def lock(self) -> Path:
        """Held by the process that writes."""
        return self.root / ".lock"

    @property
    def nodes(self) -> Path:
        """Folder of node files."""
        return self.root / "nodes"

    @property
    def launches(self) -> Path:
        """Folder of launch records."""
        return self.root / "launches"

    @property
    def blocks(self) -> Path:
        """Folder of what each block was given and what its play said."""
        return self.root / "blocks"

    @property
    def decisions(self) -> Path:
        """Folder of what was decided at each look; only where the sweep names looks."""
        return self.root / "decisions"

    @property
    def later(self) -> Path:
        """Folder of what was planned for each look after the first one."""
        return self.root / "looks"

    @property
    def imported(self) -> Path:
        """Folder of what the user's own runs of other tools printed; only where some of it was imported."""
        return self.root / "imported"

    @property
    def aside(self) -> Path:
        """Folder of what was moved aside: damaged files, and records of launches that are made again."""
        return self.root / "aside"

    def launch(self, launch_id: str) -> Path:
        """Return the file of one launch."""
        return self.launches / f"{launch_id}.json"

    def imported_file(self, imported_id: str) -> Path:
        """Return the file of one import."""
        return self.imported / f"{imported_id}.json"

    def decision(self, look: int) -> Path:
        """Return the file of what was decided at a look, counted from 1."""
        return self.decisions / f"look-{look}.json"

    def later_look(self, look: int) -> Path:
        """Return the file of what was planned for a look after the first one."""
        return self.later / f"look-{look}.json"

    def node(self, host: str) -> Path:
        """Return the file of one host."""
        return self.nodes / f"{host}.json"

    def block(self, block_id: str) -> Path:
        """Return the file of one block."""
        return self.blocks / block_id / "block.json"

    def named(self, path: Path) -> str:
        """Return a file's name as messages have it: from the campaign's folder on."""
        return str(path.relative_to(self.root))


def visible(folder: Path, *, linked: bool = False) -> list[Path]:
    """Return what a folder holds, by name, but for writers' scratch files, whose names begin with a dot.

    A folder that is not there holds nothing. Raises DamagedError for one that cannot be read, and for a link to one
    unless it may be `linked`.
    """
    try:
        if odd := oddity(folder.stat(follow_symlinks=linked), folder=True):
            raise DamagedError(Damage(folder, DamageKind.UNREADABLE, odd))
        return sorted(path for path in folder.iterdir() if not path.name.startswith("."))
    except FileNotFoundError:
        return []
    except OSError as error:
        raise DamagedError(Damage(folder, DamageKind.UNREADABLE, f"it cannot be read: {error.strerror}")) from error


def stored(folder: Path, *, linked: bool = False) -> list[Path]:
    """Return the documents of a folder, by name. Raises as `visible` does."""
    return [path for path in visible(folder, linked=linked) if path.suffix == ".json"]


def check_unlinked(layout: Layout) -> None:
    """Look for links before a campaign is written to. Raises DamagedError for the first one.

    Below `aside`, where damaged files lie, folders are only ever added.
    """
    for folder, folders, files in os.walk(layout.root):
        for name in (*folders, *files):
            check_no_link(Path(folder, name))
        if layout.root == Path(folder):
            folders[:] = [name for name in folders if name != layout.aside.name]


def check_no_link(path: Path) -> Path:
    """Return a path of a campaign to be written to. Raises DamagedError where a link lies there."""
    if path.is_symlink():
        raise DamagedError(
            Damage(path, DamageKind.UNREADABLE, "it is a symbolic link, and nothing is written through one")
        )
    return path
