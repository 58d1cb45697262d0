# SPDX-License-Identifier: BSD-3-Clause
"""Writing a campaign: one writer at a time, nothing half written, nothing changed once stored."""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Self

from cadge_results.errors import (
    DamagedError,
    DuplicateLaunchError,
    FormatError,
    NotFoundError,
    ResultsError,
    StoreBusyError,
)
from cadge_results.formats.campaign import CampaignMeta, CampaignStatus
from cadge_results.formats.decision import Decision, LaterLook
from cadge_results.formats.imported import ImportedFile
from cadge_results.formats.native import NativeFile
from cadge_results.formats.node import NodeFacts
from cadge_results.formats.plan import Plan
from cadge_results.formats.record import LaunchRecord
from cadge_results.formats.trace import Trace
from cadge_results.store import aside
from cadge_results.store.belongs import looks_of, record_problem
from cadge_results.store.campaigns import Campaign
from cadge_results.store.checksum import Checksum, beside
from cadge_results.store.files import explained, put, settle
from cadge_results.store.layout import Layout, check_unlinked


def campaign_id(created: datetime, digits: str) -> str:
    """Return the name of a campaign: UTC second of its making and the first eight of some hexadecimal digits."""
    return f"{created.astimezone(UTC):%Y%m%dT%H%M%SZ}-{digits[:8]}"


class CampaignWriter:
    """Holds a campaign for writing from `create` or `resume` until `close`."""

    def __init__(self, path: Path, lock_fd: int) -> None:
        """Take over a folder whose lock is held; use `create` or `resume`."""
        self.campaign = Campaign(path)
        self._layout = Layout(path)
        self._lock_fd = lock_fd
        self._stored: set[str] = set(self.campaign.launch_ids())

    @classmethod
    def create(
        cls,
        root: Path,
        *,
        meta: CampaignMeta,
        plan: Plan,
        sweep_text: str,
        trace: Trace | None = None,
        native: NativeFile | None = None,
    ) -> Self:
        """Make the folder of a new campaign under `root` and hold it.

        `native`: which native tools are to run between its launches.

        Raises StoreUnwritableError, StoreFullError, StoreBusyError; ResultsError where the campaign exists already.
        """
        if plan.plan_hash != plan.expected_hash() or meta.plan_hash != plan.plan_hash:
            raise FormatError("the plan's hash does not fit its content")
        if (trace.sha256 if trace else None) != (plan.trace.sha256 if plan.trace else None):
            raise FormatError("the trace is not the one of the plan")
        path = root / meta.campaign_id
        layout = Layout(path)
        with explained(path):
            root.mkdir(parents=True, exist_ok=True)
            try:
                path.mkdir()
            except FileExistsError as error:
                raise ResultsError(f"{path} exists already") from error
        lock_fd = _lock(layout.lock)
        try:
            _make_folders(layout)
            put_for_ever(layout.sweep, sweep_text.encode())
            if trace is not None:
                put_for_ever(layout.trace, trace.content)
            put_for_ever(layout.plan, plan.to_json().encode())
            if native is not None:
                _replace(layout.native, native.to_json().encode())
            _put(layout.meta, meta.sealed().to_json().encode())
        except BaseException:
            os.close(lock_fd)
            raise
        return cls(path, lock_fd)

    @classmethod
    def resume(cls, path: Path) -> Self:
        """Hold an existing campaign in order to add what is missing, and mark it running again.

        Raises FormatError, DamagedError, StoreBusyError, StoreUnwritableError, StoreFullError.
        """
        campaign = Campaign(path)
        if campaign.stored_plan.plan_hash != campaign.stored_plan.expected_hash():
            raise FormatError(f"{campaign.layout.plan} was changed after it was written")
        check_unlinked(campaign.layout)
        lock_fd = _lock(campaign.layout.lock)
        try:
            for scratch in path.rglob(".*.part"):
                scratch.unlink(missing_ok=True)
            _make_folders(campaign.layout)
            _change(campaign, {"status": "running", "finished_utc": None})
        except BaseException:
            os.close(lock_fd)
            raise
        return cls(path, lock_fd)

    def add_launch(self, record: LaunchRecord) -> None:
        """Store a finished launch for ever.

        Raises DuplicateLaunchError, FormatError (not of this campaign's plan), StoreFullError, StoreUnwritableError.
        """
        launch_id = record.launch_id
        path = self._layout.launch(launch_id)
        if launch_id in self._stored or path.exists():
            raise DuplicateLaunchError(f"launch {launch_id} is stored already")
        planned = next((item for item in self.campaign.plan.launches if item.launch_id == launch_id), None)
        if planned is None:
            raise FormatError(f"launch {launch_id} is not in the plan of {self.campaign.path.name}")
        if record.launch.campaign_id != self.campaign.path.name:
            raise FormatError(f"launch {launch_id} belongs to campaign {record.launch.campaign_id}")
        if why := record_problem(record, planned, self.campaign.plan):
            raise FormatError(f"launch {launch_id}: {why}")
        put_for_ever(path, record.to_json().encode())
        self._stored.add(launch_id)
        self.campaign.keep(record)

    def set_aside(self, launch_ids: Iterable[str], why: aside.Why) -> Path:
        """Move the records of launches aside that are to be made again, and return the folder they are in now."""
        names = sorted(launch_ids)
        _change(self.campaign, {"status": "running", "finished_utc": None})  # finished, it would have lost them
        folder = aside.move(self._layout, map(self._layout.launch, names), why)
        for name in names:
            self._stored.discard(name)
            self.campaign.forget(name)
        return folder

    def add_decision(self, decision: Decision) -> None:
        """Store for ever what was decided at a look. Raises FormatError, StoreFullError, StoreUnwritableError."""
        campaign, look = self.campaign, decision.look
        if decision.plan_hash != campaign.stored_plan.plan_hash or look != len(campaign.decisions()) + 1:
            raise FormatError(f"the decision of look {look} does not follow on what {campaign.path.name} has decided")
        with explained(self._layout.decisions):
            self._layout.decisions.mkdir(exist_ok=True)
        put_for_ever(self._layout.decision(look), decision.to_json().encode())

    def add_look(self, part: LaterLook) -> None:
        """Store for ever what is planned for a look, which the campaign's plan has from now on.

        Raises FormatError, StoreFullError, StoreUnwritableError.
        """
        campaign, look = self.campaign, part.look
        fits = part.plan_hash == campaign.stored_plan.plan_hash and look == len(campaign.later_looks()) + 2
        from_decision = campaign.decision_sha256(look - 1) if looks_of(campaign.stored_plan.sweep) else None
        if not fits or part.decision_sha256 != from_decision:
            raise FormatError(f"look {look} was not planned from what {campaign.path.name} has decided")
        known = {launch.launch_id for launch in campaign.plan.launches}
        known |= {block.block_id for block in campaign.plan.blocks}
        new = [*(one.launch_id for one in part.launches), *(one.block_id for one in part.blocks)]
        if len(set(new)) < len(new) or known & set(new):
            raise FormatError(f"look {look} has launches or blocks of names that there are already")
        with explained(self._layout.later):
            self._layout.later.mkdir(exist_ok=True)
        put_for_ever(self._layout.later_look(look), part.to_json().encode())
        campaign.grown()

    def add_node(self, node: NodeFacts) -> None:
        """Store the facts of a host; the first ones stay (a resumed campaign keeps what it began with)."""
        path = self._layout.node(node.host)
        if not path.exists():
            put_for_ever(path, node.to_json().encode())

    def add_block_file(self, block_id: str, name: str, text: str) -> None:
        """Keep what a block was given or what its play said; a later one replaces it."""
        _replace(self._layout.blocks / block_id / name, text.encode())

    def put_log(self, said: bytes) -> None:
        """Store what Ansible said so far; a later one replaces it."""
        _replace(self._layout.log, said)

    def put_native(self, found: NativeFile) -> None:
        """Store what native tools have printed so far; a later one replaces it."""
        _replace(self._layout.native, found.to_json().encode())

    def finish(self, status: CampaignStatus, *, at: datetime, problems: tuple[str, ...] = ()) -> None:
        """Say how the campaign ended. Raises StoreFullError, StoreUnwritableError."""
        meta = self.campaign.meta
        known = (*meta.problems, *(item for item in problems if item not in meta.problems))
        finished = f"{at.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}" if status != "running" else None
        _change(self.campaign, {"status": status, "finished_utc": finished, "problems": known})

    def close(self) -> None:
        """Let go of the campaign. May be called twice."""
        if self._lock_fd >= 0:
            os.close(self._lock_fd)
            self._lock_fd = -1

    def __enter__(self) -> Self:
        """Return itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Let go of the campaign."""
        self.close()


def is_held(path: Path) -> bool:
    """Say whether some process writes to a campaign now."""
    try:
        os.close(_lock(Layout(path).lock))
    except StoreBusyError:
        return True
    except ResultsError:
        return False
    return False


def interrupt(campaign: Campaign) -> None:
    """Let a campaign that has lost launches no longer be a finished one, as far as its campaign file is whole."""
    with contextlib.suppress(DamagedError):
        if campaign.meta.status == "finished" and campaign.missing_launch_ids():
            _change(campaign, {"status": "interrupted"})


@contextlib.contextmanager
def hold(path: Path) -> Iterator[None]:
    """Hold a campaign for writing. Raises StoreBusyError, StoreUnwritableError."""
    lock_fd = _lock(Layout(path).lock)
    try:
        yield
    finally:
        os.close(lock_fd)


def _lock(path: Path) -> int:
    with explained(path):
        # whoever may open it may hold it, for ever: its owner alone may
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        os.close(fd)
        raise StoreBusyError(f"another cadge writes to {path.parent}") from error
    except BaseException:
        os.close(fd)
        raise
    return fd


def _make_folders(layout: Layout) -> None:
    for folder in (layout.nodes, layout.launches, layout.blocks):
        with explained(folder):
            folder.mkdir(exist_ok=True)


def _change(campaign: Campaign, update: dict[str, object]) -> None:
    """Change the campaign file; its checksum goes on being in it, or not being in it."""
    meta = campaign.meta.model_copy(update=update)
    _put(campaign.layout.meta, (meta if meta.checksum is None else meta.sealed()).to_json().encode())


def _replace(path: Path, content: bytes) -> None:
    """Write a file that a later one may replace, and its checksum. Raises StoreUnwritableError, StoreFullError."""
    with explained(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        beside(path).unlink(missing_ok=True)  # a kill leaves a file without a checksum, never with a wrong one
    _put(path, content)
    _put(beside(path), Checksum.of(content, path.name).line().encode())


def put_for_ever(path: Path, content: bytes) -> None:
    """Write a file that never changes, and before it its checksum: so no file is ever without one.

    A kill in between leaves a checksum alone: the file is missing, as it was, and comes when it is made again. Raises
    StoreFullError, StoreUnwritableError.
    """
    checksum = Checksum.of(content, path.name)
    _put(beside(path), checksum.line().encode(), mode=0o444)
    try:
        _put(path, content, mode=0o444)
    except BaseException:
        if not path.exists():
            with contextlib.suppress(OSError):
                beside(path).unlink()
        raise


def _put(path: Path, content: bytes, *, mode: int = 0o666) -> None:
    """Write a whole file or nothing. Raises StoreFullError, StoreUnwritableError."""
    with explained(path):
        put(path, content, mode=mode)


def add_import(campaign: Campaign, found: ImportedFile) -> bool:
    """Store an import; False where it is there already, and nothing was changed.

    Raises StoreBusyError where the campaign is being written, StoreUnwritableError, StoreFullError, DamagedError.
    """
    with hold(campaign.path):
        if found.imported_id in campaign.imported_ids():
            campaign.imported_file(found.imported_id)
            return False
        folder = campaign.layout.imported
        with explained(folder):
            folder.mkdir(exist_ok=True)
        put_for_ever(campaign.layout.imported_file(found.imported_id), found.to_json().encode())
    return True


def remove_import(campaign: Campaign, name: str) -> str:
    """Take an import back by its name or by the beginning of it; return the name. Nothing else is touched.

    Raises NotFoundError, FormatError where several begin so, StoreBusyError, StoreUnwritableError.
    """
    with hold(campaign.path):
        every = campaign.imported_ids()
        chosen = [one for one in every if name and one.startswith(name)]
        if not chosen:
            raise NotFoundError(f"no import {name!r} in {campaign.path.name}; there: {', '.join(every) or 'none'}")
        if len(chosen) > 1:
            raise FormatError(f"several imports begin with {name!r}: {', '.join(chosen)}")
        path = campaign.layout.imported_file(chosen[0])
        with explained(path):
            path.unlink()  # first: a kill in between leaves a checksum, which verify names
            beside(path).unlink(missing_ok=True)
            if not any(path.parent.iterdir()):
                path.parent.rmdir()
                settle(campaign.path)
            else:
                settle(path.parent)
    return chosen[0]
