# SPDX-License-Identifier: BSD-3-Clause
"""Reading campaigns: the only code that knows where a campaign's files lie.

A campaign is one folder:

    <campaign_id>/campaign.json  plan.json  sweep.yml  nodes/<host>.json
                  blocks/<block_id>/{block.json,ansible.log}  launches/<launch_id>.json  report.html  study-<name>.html

Names that begin with a dot are writers' scratch files and are never read.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path

from cadge_results.campaign import CampaignMeta
from cadge_results.errors import NotFoundError, ResultsError
from cadge_results.node import NodeFacts
from cadge_results.outcomes import PointOutcome, PointSummary, outcomes_of, summaries_of
from cadge_results.plan import Plan
from cadge_results.record import LaunchRecord


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

    def launch(self, launch_id: str) -> Path:
        """Return the file of one launch."""
        return self.launches / f"{launch_id}.json"

    def node(self, host: str) -> Path:
        """Return the file of one host."""
        return self.nodes / f"{host}.json"


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
        return CampaignMeta.parse(_read(self.layout.meta), source=str(self.layout.meta))

    @cached_property
    def plan(self) -> Plan:
        """The plan."""
        return Plan.parse(_read(self.layout.plan), source=str(self.layout.plan))

    @property
    def sweep_text(self) -> str:
        """The sweep file as the user wrote it."""
        return _read(self.layout.sweep).decode()

    def nodes(self) -> tuple[NodeFacts, ...]:
        """Return the facts of every host, by name."""
        return tuple(NodeFacts.parse(_read(path), source=str(path)) for path in _files(self.layout.nodes))

    def launch_ids(self) -> frozenset[str]:
        """Return the names of the launches that are stored."""
        return frozenset(path.stem for path in _files(self.layout.launches))

    def launch(self, launch_id: str) -> LaunchRecord:
        """Return one launch. Raises NotFoundError, FormatError."""
        record = self._records.get(launch_id)
        if record is None:
            path = self.layout.launch(launch_id)
            record = self._records[launch_id] = LaunchRecord.parse(_read(path), source=str(path))
        return record

    def keep(self, record: LaunchRecord) -> None:
        """Take a record that was just stored, so that it need not be read again."""
        self._records[record.launch_id] = record

    def launches(self) -> Iterator[LaunchRecord]:
        """Yield every stored launch, by name."""
        for path in _files(self.layout.launches):
            yield self.launch(path.stem)

    def missing_launch_ids(self) -> tuple[str, ...]:
        """Return planned launches that are not stored, in the plan's order."""
        have = self.launch_ids()
        return tuple(launch.launch_id for launch in self.plan.launches if launch.launch_id not in have)

    def outcomes(self) -> list[PointOutcome]:
        """Return the outcome of every planned attempt; see cadge_results.outcomes."""
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

    def open(self, which: str) -> Campaign:
        """Return a campaign by id, by the beginning of its id, by path, or the newest one ("last").

        Raises NotFoundError, with the names that are there.
        """
        every = self.campaigns()
        if which == "last":
            if not every:
                raise NotFoundError(f"there is no campaign in {self.root}; make one with: cadge run")
            return every[-1]
        for candidate in (self.root / which, Path(which)):
            if (candidate / "campaign.json").is_file():
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
        created = str(json.loads((path / "campaign.json").read_bytes())["created_utc"])
    except (OSError, ValueError, KeyError, TypeError):  # damaged: whoever opens it says so
        created = f"{datetime.fromtimestamp(written_ns / 1e9, UTC):%Y-%m-%dT%H:%M:%SZ}"
    return created, written_ns, path.name


def outcomes(campaign: Campaign) -> list[PointOutcome]:
    """Return the outcome of every planned attempt of a campaign."""
    return campaign.outcomes()


def _files(folder: Path) -> list[Path]:
    if not folder.is_dir():
        return []
    return sorted(path for path in folder.glob("*.json") if not path.name.startswith("."))


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except FileNotFoundError as error:
        raise NotFoundError(f"{path} does not exist") from error
    except OSError as error:
        raise ResultsError(f"{path} cannot be read: {error.strerror}") from error
