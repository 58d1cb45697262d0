# SPDX-License-Identifier: BSD-3-Clause
"""Looking at every file of a campaign, and moving what is damaged aside so that it can be made again."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from fnmatch import fnmatch
from pathlib import Path

from cadge_results.errors import Damage, DamagedError, DamageKind, FormatError, StoreBusyError
from cadge_results.formats.base import digest_without
from cadge_results.formats.block import Block
from cadge_results.formats.campaign import CampaignMeta
from cadge_results.formats.plan import Plan
from cadge_results.formats.record import LaunchRecord
from cadge_results.store import aside
from cadge_results.store.campaigns import Campaign
from cadge_results.store.checksum import SUFFIX, beside
from cadge_results.store.damage import look, misfit
from cadge_results.store.layout import Layout, stored, visible
from cadge_results.store.writer import hold, interrupt, is_held

_MADE = ("*.html",)
"""What was made of a campaign and lies beside its documents."""


@dataclass(slots=True)
class CampaignCheck:
    """What was found. Paths are whole; a file is damaged once."""

    files: int = 0
    """How many stored files were looked at."""
    damages: list[Damage] = field(default_factory=list)
    unproven: int = 0
    """How many have no checksum, so that only format, names and histograms could be looked at."""
    strangers: list[Path] = field(default_factory=list)
    """What cadge did not write, in places where it reads nothing."""
    unmade: int = 0
    """How many planned launches were never stored."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Repair:
    """What a repair did: the verdict before it, which files it moved, and the folder that has them; None: none."""

    verdict: CampaignCheck
    moved: list[Path]
    folder: Path | None


def verify(campaign: Campaign) -> CampaignCheck:
    """Look at every file of a campaign. Raises StoreBusyError where it is being written, SchemaTooOldError and such."""
    if is_held(campaign.path):
        raise StoreBusyError(f"another cadge writes to {campaign.path}; verify it when that has ended")
    return _Look(campaign).all()


def repair(campaign: Campaign) -> Repair:
    """Move what is damaged and can be made again, or is not needed, aside. A launch is missing then.

    Raises StoreBusyError, StoreUnwritableError, StoreFullError.
    """
    with hold(campaign.path):
        verdict = _Look(campaign).all()
        mended = [damage.path for damage in verdict.damages if mendable(campaign, damage)]
        files = dict.fromkeys(path.with_name(path.name.removesuffix(SUFFIX)) for path in mended)
        moved = [path for path in files if os.path.lexists(path) or beside(path).exists()]
        folder = aside.move(campaign.layout, moved, "damaged") if moved else None
        if mended:
            interrupt(Campaign(campaign.path))
        return Repair(verdict=verdict, moved=moved, folder=folder)


def mendable(campaign: Campaign, damage: Damage) -> bool:
    """Tell launches, facts of hosts and blocks from the files without which there is no campaign.

    What was decided or planned at a look can be made again as long as nothing was made from it.
    """
    layout = campaign.layout
    look = damage.path.name.removeprefix("look-").partition(".")[0]
    if look.isdecimal() and damage.path.parent == layout.decisions:
        return not os.path.lexists(layout.later_look(int(look) + 1))
    if look.isdecimal() and damage.path.parent == layout.later:
        return not _made_for(campaign, int(look))
    again = (layout.launches, layout.nodes, layout.blocks, layout.imported)  # of the last, the user has the file
    return any(folder in damage.path.parents for folder in again)


def _made_for(campaign: Campaign, look: int) -> list[Path]:
    """Return what is stored of a look or a later one, as far as the plans before it say."""
    layout = campaign.layout
    try:
        planned = [*campaign.stored_plan.launches]
        for number in range(2, look):
            planned += campaign.later_look(number).launches
        known = {layout.launch(one.launch_id) for one in planned}
        return [path for path in stored(layout.launches) if path not in known]
    except DamagedError:
        return [layout.plan]  # nothing is known of it


class _Look:
    """One look at all files."""

    def __init__(self, campaign: Campaign) -> None:
        self.campaign = campaign
        self.layout = campaign.layout
        self.found = CampaignCheck()
        self.meta: CampaignMeta | None = None
        self.plan: Plan | None = None

    def all(self) -> CampaignCheck:
        """Look at everything; what the rest depends on comes first."""
        layout = self.layout
        with self._looking(layout.meta):
            self.meta = self.campaign.meta
        with self._looking(layout.plan):
            self.plan = self._whole_plan()
        with self._looking(layout.sweep):
            _ = self.campaign.sweep_text
        if self.plan is not None and self.plan.trace is not None:
            with self._looking(layout.trace):
                self.campaign.trace_file()
        if self.plan is not None:
            self._looks()
        for path, part in ((layout.native, self.campaign.native), (layout.log, self.campaign.log)):
            if os.path.lexists(path):
                with self._looking(path):
                    part()
        for path in self._documents(layout.imported):
            with self._looking(path):
                self.campaign.imported_file(path.stem)
        for path in self._documents(layout.nodes):
            with self._looking(path):
                self.campaign.node(path.stem)
        for path in self._documents(layout.launches):
            with self._looking(path):
                self._launch(path)
        blocks = (layout.block(folder.name) for folder in self._visible(layout.blocks))
        for path in (one for one in blocks if one.parent.is_symlink() or os.path.lexists(one)):
            with self._looking(path):
                self._block(path)
        self._missing()
        self._others()
        return self.found

    @contextmanager
    def _looking(self, path: Path) -> Iterator[None]:
        """Count a file, and what is wrong with it, or with what it depends on."""
        self.found.files += 1
        try:
            yield
        except DamagedError as error:
            self._damaged(error.damage)
        else:
            self.found.unproven += not self._proven(path)

    def _documents(self, folder: Path) -> list[Path]:
        return [path for path in self._visible(folder) if path.suffix == ".json"]

    def _visible(self, folder: Path, *, linked: bool = False) -> list[Path]:
        try:
            return visible(folder, linked=linked)
        except DamagedError as error:
            self._damaged(error.damage)
            return []

    def _proven(self, path: Path) -> bool:
        if path == self.layout.meta:
            return self.meta is not None and self.meta.checksum is not None
        return beside(path).exists()

    def _damaged(self, damage: Damage) -> None:
        if damage.path not in (one.path for one in self.found.damages):
            self.found.damages.append(damage)

    def _whole_plan(self) -> Plan:
        """Read the plan, which has to have the content that its own hash and the campaign file speak of."""
        path, plan = self.layout.plan, self.campaign.stored_plan
        if plan.plan_hash != digest_without("plan_hash", path.read_bytes()):
            raise DamagedError(Damage(path, DamageKind.CHANGED, "it was changed after it was written"))
        if self.meta is not None and plan.plan_hash != self.meta.plan_hash:
            raise DamagedError(Damage(path, DamageKind.SWAPPED, "it is the plan of another campaign"))
        return plan

    def _looks(self) -> None:
        """Look at decisions and what was planned from them, which the plan has from then on."""
        layout, campaign = self.layout, self.campaign
        for folder, read in ((layout.decisions, campaign.decision), (layout.later, campaign.later_look)):
            for path in self._documents(folder):
                with self._looking(path):
                    number = path.stem.removeprefix("look-")
                    if not number.isdecimal():
                        raise DamagedError(Damage(path, DamageKind.UNKNOWN, "cadge stores nothing of this name"))
                    read(int(number))
        try:
            self.plan = campaign.plan
        except DamagedError as error:  # each file may be right, and the plan that they make together not fit itself
            self._damaged(error.damage)
            self.plan = None

    def _launch(self, path: Path) -> None:
        """Read a record as every reader does, and decode it; without a plan, look at what its checksum says."""
        if self.plan is None:
            found = look(path, self.layout.root)
            if isinstance(found, Damage):
                raise DamagedError(found)
            return
        record = self.campaign.look(path.stem)
        if self.meta is not None and record.launch.campaign_id != self.meta.campaign_id:
            raise DamagedError(Damage(path, DamageKind.CHANGED, f"it belongs to campaign {record.launch.campaign_id}"))
        try:
            _check_histograms(record)
        except FormatError as error:
            raise DamagedError(misfit(path, path.read_bytes(), str(error))) from error

    def _block(self, path: Path) -> None:
        found = look(path, self.layout.root)
        if isinstance(found, Damage):
            raise DamagedError(found)
        try:
            block = Block.parse(found.data, source=path.name)
        except FormatError as error:
            raise DamagedError(misfit(path, found.data, str(error).removeprefix(f"{path.name}: "))) from error
        if block.block_id != path.parent.name:
            raise DamagedError(Damage(path, DamageKind.SWAPPED, f"it holds block {block.block_id}"))

    def _missing(self) -> None:
        """Find files of which only the checksum is left, and launches that a finished campaign has not."""
        layout = self.layout
        blocks = layout.blocks.glob("*/")
        for folder in (*_folders(layout), *blocks):
            for checksum in sorted(folder.glob(f"*{SUFFIX}")):
                path = checksum.with_name(checksum.name.removesuffix(SUFFIX))
                if not os.path.lexists(path):
                    self._damaged(Damage(path, DamageKind.MISSING, "its checksum is there, it is not"))
        damaged = {damage.path for damage in self.found.damages}
        if self.plan is None or self.meta is None or self.layout.launches in damaged:
            return
        for launch_id in self.campaign.missing_launch_ids():
            path = self.layout.launch(launch_id)
            if path in damaged:
                continue
            if self.meta.status == "finished":
                self._damaged(Damage(path, DamageKind.MISSING, "the campaign was finished with it"))
            else:
                self.found.unmade += 1

    def _others(self) -> None:
        """Find what cadge did not write: where it reads every file, that is damage."""
        layout = self.layout
        for folder in _folders(layout):
            for path in self._visible(folder):
                if not path.name.endswith((".json", f".json{SUFFIX}")):
                    self._damaged(Damage(path, DamageKind.UNKNOWN, "cadge stores nothing of this name"))
        traces = [layout.trace] if self.plan is None or self.plan.trace is not None else []
        ours = {layout.meta, layout.nodes, layout.launches, layout.blocks, layout.aside, layout.decisions, layout.later}
        ours.add(layout.imported)
        ours |= {
            file
            for path in (layout.plan, layout.sweep, layout.native, layout.log, *traces)
            for file in (path, beside(path))
        }
        made = (path for path in self._visible(layout.root, linked=True) if path not in ours)
        self.found.strangers += [path for path in made if not any(fnmatch(path.name, name) for name in _MADE)]
        for path in self._visible(layout.blocks):
            block = layout.block(path.name)
            inside = self._visible(path) if path.is_dir() and not path.is_symlink() else [path]
            self.found.strangers += [one for one in inside if one not in (block, beside(block))]


def _folders(layout: Layout) -> tuple[Path, ...]:
    """Return the folders in which every file is a document of its own."""
    return layout.launches, layout.nodes, layout.imported, layout.decisions, layout.later


def _check_histograms(record: LaunchRecord) -> None:
    """Decode every histogram. Raises FormatError for one that is none, or holds another number of samples."""
    for attempt in record.result.attempts if record.result is not None else ():
        for name in attempt.quantities:
            for samples in attempt.samples(name):
                if (total := samples.buckets.total) != samples.count:
                    raise FormatError(f"a histogram of {name} holds {total} samples, not {samples.count}")
