# SPDX-License-Identifier: BSD-3-Clause
"""Carrying out a plan on a testbed: blocks go to Ansible, launches that come back go to the store."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from pydantic import JsonValue

from cadge_harness.errors import EXIT_BAD_ANSWER, EXIT_OK, EXIT_STOPPED, UsageError
from cadge_harness.plan.blocks import make_blocks
from cadge_harness.run.crosscheck import node_problems, version_problems, with_crosschecks
from cadge_results import (
    Campaign,
    CampaignWriter,
    DamagedError,
    DuplicateLaunchError,
    FormatError,
    LaunchRecord,
    NodeFacts,
    Plan,
    StoreUnwritableError,
)
from cadge_results.command import command
from cadge_results.formats.campaign import CampaignMeta, CampaignStatus
from cadge_results.formats.event import Event, LaunchStarted, Note, Problem, Ready, Stage
from cadge_results.store.looks import due_epoch, next_step

if TYPE_CHECKING:
    from cadge_harness.testbed.model import Testbed

OnEvent = Callable[[Event], None]
OnLaunch = Callable[[Mapping[str, object]], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class CampaignEnd:
    """How the part of a campaign that runs on nodes ended. `exit_code` is one of the table in errors.py.

    clean: every node is known to be as it was found. lost: hosts that do not answer, or cannot take part.
    """

    ok: bool
    exit_code: int
    clean: bool = True
    problems: tuple[str, ...] = ()
    lost: tuple[str, ...] = ()


class Runner(Protocol):
    """Whoever takes blocks to their nodes: Ansible, or a fake in tests."""

    def __call__(
        self,
        testbed: Testbed,
        blocks: list[dict[str, JsonValue]],
        campaign: Path,
        on_event: OnEvent,
        on_launch: OnLaunch,
        stop: threading.Event,
    ) -> CampaignEnd:
        """Carry the blocks out; returns when every node is left as it was found."""


class Progress(Protocol):
    """What a running campaign tells whoever watches."""

    def stage(self, name: str) -> None:
        """Say that another stage began."""

    def begin_launch(self, launch_id: str) -> None:
        """Say that a launch began."""

    def add(self, record: LaunchRecord) -> None:
        """Say that a launch was stored."""

    def note(self, text: str) -> None:
        """Say something that the user should read."""

    def close(self) -> None:
        """End the display."""


@dataclass(slots=True)
class Session:
    """One run over the launches that a campaign lacks, of the first epoch that lacks any.

    without: hosts that were lost; their launches stay missing.
    """

    writer: CampaignWriter
    testbed: Testbed
    progress: Progress
    stop: threading.Event
    problems: list[str] = field(default_factory=list)
    beside: Callable[[], Iterable[str]] = tuple
    """What the campaign has to say of who measured beside it: asked before it ends."""
    without: frozenset[str] = frozenset()
    store_error: StoreUnwritableError | None = None

    def carry_out(self, runner: Runner) -> CampaignEnd:
        """Run what is missing and mark how the campaign ended. Store errors stop it and are kept."""
        campaign = self.writer.campaign
        epoch = due_epoch(campaign)
        later = frozenset(launch.launch_id for launch in campaign.plan.launches if launch.epoch != epoch)
        put_off = later | lost_launch_ids(campaign.plan, self.without)
        blocks = make_blocks(campaign.plan, self.testbed, campaign.campaign_id, done=campaign.launch_ids() | put_off)
        ended = CampaignEnd(ok=True, exit_code=EXIT_OK)
        try:
            for block in blocks:
                self.writer.add_block_file(block.block_id, "block.json", block.to_json())
            documents = [block.to_object() for block in blocks]
            ended = runner(self.testbed, documents, campaign.path, self._on_event, self._on_launch, self.stop)
        except StoreUnwritableError as error:
            self.store_error = self.store_error or error
        except BaseException:
            self._finish("interrupted")
            raise
        self.problems.extend(ended.problems)
        try:
            self.problems.extend(node_problems(campaign.nodes()))
            self.problems.extend(version_problems(campaign.launches()))
        except DamagedError:  # in the time that this ran
            self._finish("interrupted")
            raise
        missing = [name for name in campaign.missing_launch_ids() if name not in later]
        if self.store_error is not None:
            self.problems.append(str(self.store_error))
        if not missing and not ended.clean:  # where launches are missing, the same advice is given for them
            again = command("resume", campaign.campaign_id)
            self.problems.append(f"not every host could be cleaned; once all of them answer: {again}")
        # until it is decided what follows, the campaign goes on
        whole: CampaignStatus = "finished" if next_step(campaign) == "done" else "running"
        self._finish("interrupted" if missing or not ended.clean else whole)
        return CampaignEnd(
            ok=not missing and ended.clean,
            exit_code=self._code(ended, len(missing)),
            clean=ended.clean,
            problems=tuple(self.problems),
            lost=ended.lost,
        )

    def _code(self, ended: CampaignEnd, missing: int) -> int:
        if missing or not ended.clean:
            return ended.exit_code if ended.exit_code not in (EXIT_OK, EXIT_BAD_ANSWER) else EXIT_STOPPED
        return exit_code_of(self.writer.campaign)

    def _finish(self, status: CampaignStatus) -> None:
        self.problems.extend(self.beside())
        try:
            self.writer.finish(
                status,
                at=datetime.now(UTC),
                problems=tuple(dict.fromkeys(self.problems)),
            )
        except StoreUnwritableError as error:
            self.store_error = self.store_error or error

    def _on_event(self, event: Event) -> None:
        """React to what happens on the nodes; what has no meaning here is nobody's business."""
        match event:
            case LaunchStarted():
                self.progress.begin_launch(event.launch_id)
            case Stage():
                self.progress.stage(event.name)
            case Problem():
                self._problem(event.reason)
            case Note():
                self.progress.note(event.text)
            case Ready(node=dict() as node):
                self._node(node)
            case _:
                pass

    def _problem(self, text: str) -> None:
        if text not in self.problems:
            self.problems.append(text)
            self.progress.note(text)

    def _node(self, raw: object) -> None:
        try:
            self.writer.add_node(NodeFacts.from_object(raw, source="facts of a node"))
        except FormatError as error:
            self._problem(str(error))
        except StoreUnwritableError as error:
            self._give_up(error)

    def _on_launch(self, raw: Mapping[str, object]) -> None:
        """Judge and store a launch. One that is stored already (collected twice) changes nothing."""
        try:
            record = LaunchRecord.from_object(dict(raw), source="launch record")
            plan = self.writer.campaign.plan
            files = plan.patterns
            used = {point.workload.pattern for point in record.launch.points}
            own_traffic = any(files[name].own_traffic for name in used & files.keys())
            build = plan.providers.get(record.launch.layer)
            self.writer.add_launch(with_crosschecks(record, own_traffic=own_traffic, build=build))
        except DuplicateLaunchError:
            return
        except FormatError as error:
            self._problem(f"a launch was not stored: {error}")
            return
        except StoreUnwritableError as error:
            self._give_up(error)
            return
        self.progress.add(record)

    def _give_up(self, error: StoreUnwritableError) -> None:
        """Stop the campaign: what cannot be stored need not be measured."""
        if self.store_error is None:
            self.store_error = error
            self.progress.note(str(error))
            self.stop.set()


def lost_launch_ids(plan: Plan, hosts: Collection[str]) -> frozenset[str]:
    """Return the launches that have an endpoint on one of these hosts."""
    return frozenset(launch.launch_id for launch in plan.launches if any(end.host in hosts for end in launch.endpoints))


def hosts_left(campaign: Campaign, hosts: Collection[str]) -> tuple[str, ...]:
    """Return the hosts of the launches that can still be made without these hosts."""
    missing = {*campaign.missing_launch_ids()} - lost_launch_ids(campaign.plan, hosts)
    left = {end.host for launch in campaign.plan.launches if launch.launch_id in missing for end in launch.endpoints}
    return tuple(host for host in campaign.meta.testbed.hosts if host in left)


def exit_code_of(campaign: Campaign) -> int:
    """Return the exit code of a campaign of which no launch is missing: whether some attempt is of no use."""
    return EXIT_BAD_ANSWER if campaign.troubled_launch_ids() else EXIT_OK


def on_same_hosts(began: CampaignMeta, testbed: Testbed) -> Testbed:
    """Return the testbed with those hosts alone that a campaign began on. Raises UsageError where it lacks one.

    Equal hosts do not stand in for them: layers are compared within rounds, and a round cut in two would put the
    difference of two hosts into a ratio of layers.
    """
    planned, here = began.testbed.hosts, {host.name: host for host in testbed.hosts}
    if not here.keys() >= set(planned):
        raise UsageError(
            f"this campaign began on {', '.join(planned)}, and the testbed has {', '.join(here)}: in one campaign a "
            "difference between hosts, even equal ones, would pass for one between layers; "
            f"resume on {', '.join(planned)}, or start a new campaign",
            commands=(command(*began.command[1:]),),
        )
    return replace(testbed, hosts=tuple(here[name] for name in planned))
