# SPDX-License-Identifier: BSD-3-Clause
"""Reading campaigns: the only code that knows where a campaign's files lie.

A campaign is one folder:

    <campaign_id>/campaign.json  plan.json  sweep.yml  nodes/<host>.json
                  decisions/look-<n>.json  looks/look-<n>.json  where its sweep names looks: see `decision`
                  blocks/<block_id>/block.json  launches/<launch_id>.json  report.html  study-<name>.html  ansible.log
                  imported/<imported_id>.json  what the user's own runs of other tools printed: see `imported`
                  aside/<number>-<why>/...  what was moved aside, as it lay in the campaign

Beside each file that never changes lies its checksum, NAME.sha256; campaign.json, which changes, has its own in itself.
Both are compared whenever a file is read. Names that begin with a dot are writers' scratch files and are never read.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import NoReturn, TypeVar

from cadge_results.command import command
from cadge_results.errors import (
    Damage,
    DamagedError,
    DamageKind,
    FormatError,
    NotFoundError,
    SchemaTooNewError,
    SchemaTooOldError,
)
from cadge_results.formats.base import Document, SharedParts
from cadge_results.formats.campaign import CampaignMeta
from cadge_results.formats.decision import Decision, LaterLook
from cadge_results.formats.imported import ImportedFile
from cadge_results.formats.native import NativeFile
from cadge_results.formats.node import NodeFacts
from cadge_results.formats.plan import Plan, PlanLaunch
from cadge_results.formats.record import LaunchRecord
from cadge_results.store import aside
from cadge_results.store.belongs import looks_of, plan_problem, record_problem
from cadge_results.store.damage import Content, look, misfit, read, unproven
from cadge_results.store.layout import Layout, stored
from cadge_results.store.outcomes import PointOutcome, PointSummary, outcomes_of, summaries_of

_Read = TypeVar("_Read", bound=Document)


@dataclass(frozen=True)
class Campaign:
    """A campaign, for reading. Files are read when asked for; those that cannot change are read once and kept."""

    path: Path
    layout: Layout = field(init=False, repr=False)
    _records: dict[str, LaunchRecord] = field(default_factory=dict, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Find the files' places."""
        object.__setattr__(self, "layout", Layout(self.path))

    @property
    def campaign_id(self) -> str:
        """The campaign's name."""
        return self.meta.campaign_id

    @property
    def meta(self) -> CampaignMeta:
        """The campaign file, read anew each time because a running campaign changes it."""
        path = self.layout.meta
        meta, content = self._document(CampaignMeta, path, changes=True)
        if not meta.holds(content.data):
            self._refuse(Damage(path, DamageKind.CHANGED, "it was changed after it was written"))
        return meta

    @cached_property
    def stored_plan(self) -> Plan:
        """The plan as it was made before anything ran."""
        return self._fitting(SharedParts().of(self._document(Plan, self.layout.plan)[0]), self.layout.plan)

    def _fitting(self, plan: Plan, path: Path) -> Plan:
        """Return a plan that fits itself, or refuse the file that brought what does not."""
        if why := plan_problem(plan):
            self._refuse(Damage(path, DamageKind.CHANGED, f"it does not fit itself: {why}"))
        return plan

    @cached_property
    def plan(self) -> Plan:
        """The plan with what was planned since, look by look."""
        first, later = self.stored_plan, self.later_looks()
        if not later:
            return first
        estimate = first.estimate.model_copy(
            update={
                "wall_s": round(first.estimate.wall_s + sum(part.wall_s for part in later), 1),
                "disk_bytes": first.estimate.disk_bytes + sum(part.disk_bytes for part in later),
            }
        )
        blocks = (*first.blocks, *(block for part in later for block in part.blocks))
        launches = (*first.launches, *(launch for part in later for launch in part.launches))
        whole = first.model_copy(update={"blocks": blocks, "launches": launches, "estimate": estimate})
        return self._fitting(whole, self.layout.later_look(later[-1].look))

    def decisions(self) -> tuple[Decision, ...]:
        """Return what was decided, look by look. Raises DamagedError."""
        return tuple(self.decision(look) for look in self._looks(self.layout.decision))

    def decision(self, look: int) -> Decision:
        """Return what was decided at a look, counted from 1. Raises DamagedError."""
        path = self.layout.decision(look)
        found = self._document(Decision, path)[0]
        if found.look != look or found.plan_hash != self.stored_plan.plan_hash:
            self._refuse(Damage(path, DamageKind.SWAPPED, f"it holds look {found.look} of plan {found.plan_hash[:8]}"))
        if found.looks != looks_of(self.stored_plan.sweep):
            self._refuse(Damage(path, DamageKind.SWAPPED, "its looks are not those of the plan"))
        return found

    def decision_sha256(self, look: int) -> str:
        """Return the digest of a stored decision. Raises DamagedError."""
        return self._content(self.layout.decision(look)).digest

    def later_looks(self) -> tuple[LaterLook, ...]:
        """Return what was planned for each look after the first one. Raises DamagedError."""
        return tuple(self.later_look(look) for look in self._looks(self.layout.later_look, first=2))

    def later_look(self, look: int) -> LaterLook:
        """Return what was planned for a look after the first one. Raises DamagedError."""
        path = self.layout.later_look(look)
        found = self._document(LaterLook, path)[0]
        if found.look != look or found.plan_hash != self.stored_plan.plan_hash:
            self._refuse(Damage(path, DamageKind.SWAPPED, f"it holds look {found.look} of plan {found.plan_hash[:8]}"))
        looks, rounds = looks_of(self.stored_plan.sweep), (found.launches_before, found.launches_after)
        if looks and found.decision_sha256 != self.decision_sha256(look - 1):
            self._refuse(Damage(path, DamageKind.SWAPPED, f"it was planned from another decision than {look - 1}"))
        if rounds != looks[look - 2 : look] if looks else not self._follows(found):
            self._refuse(Damage(path, DamageKind.SWAPPED, "the plan has no such look"))
        return found

    def _follows(self, part: LaterLook) -> bool:
        """Tell whether rounds that were added are those after all before them, and no more than the plan lets be added.

        Raises DamagedError.
        """
        first = self.stored_plan
        before = self.later_look(part.look - 1) if part.look > 2 else None
        begins = before.launches_after if before else first.rounds
        most = first.later[-1].launches if first.later else 0
        is_open = part.decision_sha256 is None and (before is None or before.ended is None)
        rounds = {launch.round for launch in part.launches}
        return (
            is_open
            and part.launches_before == begins < part.launches_after <= most
            and rounds == (set() if part.ended else set(range(begins, part.launches_after)))
        )

    def _looks(self, file: Callable[[int], Path], first: int = 1) -> Iterator[int]:
        """Yield the looks of which a file is stored; one of which only the checksum is left is not."""
        look = first
        while os.path.lexists(file(look)):
            yield look
            look += 1

    def records_digest(self, rounds: int) -> tuple[int, str]:
        """Return how many records of the first rounds are stored, and a digest of them. Raises DamagedError."""
        have = self.launch_ids()
        names = sorted(one.launch_id for one in self.plan.launches if one.round < rounds and one.launch_id in have)
        digests = (self._content(self.layout.launch(name)).digest for name in names)
        lines = "".join(f"{digest}  {name}\n" for name, digest in zip(names, digests, strict=True))
        return len(names), hashlib.sha256(lines.encode()).hexdigest()

    def grown(self) -> None:
        """Take it that a look may have been planned."""
        for name in ("plan", "_planned"):
            self.__dict__.pop(name, None)

    @property
    def sweep_text(self) -> str:
        """The sweep file as the user wrote it."""
        path = self.layout.sweep
        content = self._content(path)
        try:
            return content.data.decode()
        except UnicodeDecodeError as error:
            self._refuse(misfit(path, content.data, str(error)))

    @cached_property
    def checksummed(self) -> bool:
        """Whether every file had a checksum from the beginning; campaigns of older versions have none."""
        return self.meta.checksum is not None

    def nodes(self) -> tuple[NodeFacts, ...]:
        """Return the facts of every host, by name."""
        return tuple(self.node(path.stem) for path in self._stored(self.layout.nodes))

    def node(self, host: str) -> NodeFacts:
        """Return the facts of one host."""
        path = self.layout.node(host)
        facts = self._document(NodeFacts, path)[0]
        if facts.host != host:
            self._refuse(Damage(path, DamageKind.SWAPPED, f"it holds the facts of {facts.host}"))
        return facts

    def launch_ids(self) -> frozenset[str]:
        """Return the names of the launches that are stored."""
        return frozenset(path.stem for path in self._stored(self.layout.launches))

    def launch(self, launch_id: str) -> LaunchRecord:
        """Return one launch. Raises NotFoundError, FormatError, DamagedError."""
        record = self._records.get(launch_id)
        if record is None:
            record = self._records[launch_id] = self._launch(launch_id)
        return record

    def readings(self, *, afresh: bool = False, as_planned: bool = False) -> Iterator[LaunchRecord]:
        """Yield every stored launch, by name, as the analysis reads it: without its samples' texts, see `columns`.

        None is kept: a large campaign's would not fit. afresh: made of the raw files, not of a cache, and kept in none.
        as_planned: in the plan's order.
        """
        from cadge_results.store.reading import read_all  # numpy takes time to import, and most commands need none

        names = [path.stem for path in self._stored(self.layout.launches)]
        if as_planned:
            order = {launch.launch_id: place for place, launch in enumerate(self.plan.launches)}
            names.sort(key=lambda name: order.get(name, len(order)))
        read = read_all(self, [name for name in names if name not in self._records], afresh=afresh)
        for name in names:
            yield self._records.get(name) or self._as_planned(next(read))  # columns know of no plan
        next(read, None)  # at its end it keeps a cache

    def _launch(self, launch_id: str) -> LaunchRecord:
        return self.parse(launch_id, self.content(launch_id))

    def content(self, launch_id: str) -> Content:
        """Return what the file of one launch holds. Raises NotFoundError, DamagedError."""
        path = self.layout.launch(launch_id)
        if not os.path.lexists(path):
            raise NotFoundError(f"{path} does not exist")
        if launch_id not in self._planned:
            self.grown()  # by another process, that runs it
        if launch_id not in self._planned:
            self._refuse(Damage(path, DamageKind.UNKNOWN, "no launch of the plan has this name"))
        return self._content(path)

    def parse(self, launch_id: str, content: Content) -> LaunchRecord:
        """Return the launch that a file of the store holds. Raises FormatError, DamagedError."""
        path = self.layout.launch(launch_id)
        record = self._parsed(LaunchRecord, path, content)
        if record.launch_id != launch_id:
            self._refuse(Damage(path, DamageKind.SWAPPED, f"it holds launch {record.launch_id}"))
        return self._as_planned(record)

    def _as_planned(self, record: LaunchRecord) -> LaunchRecord:
        """Return a record of what was planned under its name, or refuse its file. Raises DamagedError."""
        if why := record_problem(record, self._planned[record.launch_id], self.plan):
            self._refuse(Damage(self.layout.launch(record.launch_id), DamageKind.SWAPPED, why))
        return record

    @cached_property
    def _planned(self) -> Mapping[str, PlanLaunch]:
        return {launch.launch_id: launch for launch in self.plan.launches}

    def keep(self, record: LaunchRecord) -> None:
        """Take a record that was just stored, so that it need not be read again."""
        self._records[record.launch_id] = record

    def forget(self, launch_id: str) -> None:
        """Take it that a record was moved aside."""
        self._records.pop(launch_id, None)

    def launches(self) -> Iterator[LaunchRecord]:
        """Yield every stored launch, by name."""
        for path in self._stored(self.layout.launches):
            yield self.launch(path.stem)

    def check(self) -> None:
        """Look at every file that a campaign is carried on with. Raises DamagedError for the first damaged one."""
        self.nodes()
        for launch_id in sorted(self.launch_ids()):
            self.look(launch_id)

    def look(self, launch_id: str) -> LaunchRecord:
        """Read a stored launch, and keep nothing of it. Raises DamagedError."""
        return self._launch(launch_id)

    def blame(self, launch_id: str, error: FormatError) -> NoReturn:
        """Refuse a record of which a part fits no format."""
        path = self.layout.launch(launch_id)
        self._refuse(misfit(path, self._content(path).data, str(error)))

    def made_again(self) -> Mapping[aside.Why, frozenset[str]]:
        """Return the stored launches that are there for another time, by why the earlier record was moved aside."""
        have = self.launch_ids()
        return {why: names & have for why, names in aside.launch_ids(self.layout).items() if names & have}

    def times_aside(self, why: aside.Why) -> int:
        """Return how often launches were set aside to be made again for a reason."""
        return aside.times(self.layout, why)

    def _stored(self, folder: Path) -> list[Path]:
        try:
            return stored(folder)
        except DamagedError as error:
            self._refuse(error.damage)

    def _document(self, kind: type[_Read], path: Path, *, changes: bool = False) -> tuple[_Read, Content]:
        """Read a stored document. What no checksum proves and does not fit its format counts as damaged."""
        content = self._content(path, changes=changes)
        return self._parsed(kind, path, content), content

    def _parsed(self, kind: type[_Read], path: Path, content: Content) -> _Read:
        try:
            return kind.parse(content.data, source=str(path))
        except (SchemaTooNewError, SchemaTooOldError):
            raise
        except FormatError as error:
            self._refuse(misfit(path, content.data, str(error).removeprefix(f"{path}: ")))

    def _content(self, path: Path, *, changes: bool = False) -> Content:
        """Read a stored file; one that never changes has a checksum wherever the campaign has any."""
        found = look(path, self.layout.root)
        if isinstance(found, Damage):
            self._refuse(found)
        if not (found.proven or changes) and self.checksummed:
            self._refuse(unproven(path))
        return found

    def _refuse(self, damage: Damage) -> NoReturn:
        raise DamagedError(damage, commands=(command("verify", str(self.path)),))

    def trace_file(self) -> Path | None:
        """Return the file of the trace that points replay, looked at; None where no point does. Raises DamagedError."""
        facts = self.plan.trace
        if facts is None:
            return None
        content = self._content(self.layout.trace)
        if content.digest != facts.sha256:
            self._refuse(Damage(self.layout.trace, DamageKind.SWAPPED, "it is not the trace of the campaign's plan"))
        return self.layout.trace

    def log(self) -> Content | None:
        """Return what Ansible said, None where it said nothing. One of an older version has no checksum."""
        return self._content(self.layout.log, changes=True) if os.path.lexists(self.layout.log) else None

    def native(self) -> NativeFile | None:
        """Return what native tools printed beside the launches, None where none ran. Read anew: it grows meanwhile."""
        path = self.layout.native
        return self._document(NativeFile, path, changes=True)[0] if os.path.lexists(path) else None

    def imported_ids(self) -> tuple[str, ...]:
        """Return the names of what was imported, in their order. Raises DamagedError."""
        return tuple(path.stem for path in self._stored(self.layout.imported))

    def imported_file(self, imported_id: str) -> ImportedFile:
        """Return one import. Raises FormatError, DamagedError."""
        path = self.layout.imported_file(imported_id)
        found = self._document(ImportedFile, path)[0]
        if found.imported_id != imported_id:
            self._refuse(Damage(path, DamageKind.SWAPPED, f"it holds import {found.imported_id}"))
        return found

    def imported(self) -> tuple[ImportedFile, ...]:
        """Return everything that was imported, oldest first. Raises FormatError, DamagedError."""
        every = map(self.imported_file, self.imported_ids())
        return tuple(sorted(every, key=lambda one: (one.imported_utc, one.imported_id)))

    def missing_launch_ids(self) -> tuple[str, ...]:
        """Return planned launches that are not stored, in the plan's order."""
        have = self.launch_ids()
        return tuple(launch.launch_id for launch in self.plan.launches if launch.launch_id not in have)

    def troubled_launch_ids(self) -> tuple[str, ...]:
        """Return stored launches of which an attempt failed or is unsound, in the plan's order."""
        bad = {item.launch_id for item in self.outcomes() if item.status in {"failed", "unsound"}}
        return tuple(launch.launch_id for launch in self.plan.launches if launch.launch_id in bad)

    def outcomes(self) -> list[PointOutcome]:
        """Return the outcome of every planned attempt; see cadge_results.store.outcomes."""
        return outcomes_of(self.plan, self.launches())

    def summaries(self) -> list[PointSummary]:
        """Return one summary for each planned point."""
        return summaries_of(self.plan, self.outcomes())


@dataclass(frozen=True, slots=True)
class Store:
    """A folder of campaigns."""

    root: Path

    def campaigns(self) -> tuple[Campaign, ...]:
        """Return every campaign, oldest first: by when they were created, whatever their folders are called by now."""
        if not self.root.is_dir():
            return ()
        found = [path for path in self.root.iterdir() if (path / "campaign.json").is_file()]
        return tuple(Campaign(path) for path in sorted(found, key=_age_key))

    def open(self, which: str, *, measured: bool = True) -> Campaign:
        """Return a campaign by id, by the beginning of its id, by path, or the newest one ("last").

        measured: of those with a launch, if any has one: what was begun and measured nothing has nothing to show.
        Raises NotFoundError, with the names that are there.
        """
        every = self.campaigns()
        if which == "last":
            if not every:
                raise NotFoundError(f"there is no campaign in {self.root}; make one with: {command('run')}")
            some = (one for one in reversed(every) if any(one.layout.launches.glob("*.json")))
            return next(some, every[-1]) if measured else every[-1]
        for candidate in (self.root / which, Path(which)):
            if any((candidate / name).is_file() for name in ("campaign.json", "plan.json")):  # one may be lost
                return Campaign(candidate)
        found = [campaign for campaign in every if campaign.path.name.startswith(which)]
        if len(found) == 1:
            return found[0]
        names = ", ".join(campaign.path.name for campaign in (found or every)[-5:]) or "none"
        what = "several campaigns begin with" if found else "no campaign"
        raise NotFoundError(f"{what} {which!r} in {self.root}; there: {names}")


def _age_key(path: Path) -> tuple[str, int, str]:
    """Return what sorts campaigns by age. The plan is written once, when a campaign is created."""
    written = next((file for file in (path / "plan.json", path / "campaign.json") if file.is_file()), path)
    written_ns = written.stat().st_mtime_ns
    try:
        said = read(path / "campaign.json")
        created = str(json.loads(said if isinstance(said, bytes) else b"")["created_utc"])
    except (ValueError, KeyError, TypeError, RecursionError):  # damaged: whoever opens it says so
        created = f"{datetime.fromtimestamp(written_ns / 1e9, UTC):%Y-%m-%dT%H:%M:%SZ}"
    return created, written_ns, path.name


def outcomes(campaign: Campaign) -> list[PointOutcome]:
    """Return the outcome of every planned attempt of a campaign."""
    return campaign.outcomes()
