# SPDX-License-Identifier: BSD-3-Clause
"""The runner of real campaigns: Ansible, seen as a session sees it."""

from __future__ import annotations

import contextlib
import shutil
import threading
from pathlib import Path
from typing import TYPE_CHECKING

from pydantic import JsonValue

from cadge_harness.errors import UnfitError
from cadge_harness.run import ansible_io
from cadge_harness.run.session import CampaignEnd, OnEvent, OnLaunch
from cadge_harness.testbed.model import TestbedKind
from cadge_results import NO_ROOM, Campaign, CampaignWriter, ResultsError, StoreFullError

if TYPE_CHECKING:
    from cadge_harness.testbed.model import Testbed

WORK = ".work"
"""Folder inside a campaign for what Ansible needs while it runs; gone once all is measured and the nodes are clean."""


class AnsibleRunner:
    """Carries blocks to their nodes in one ansible-playbook process; to this machine alone, untuned, without it."""

    def __init__(self, build: Path, *, tune: bool) -> None:
        self._build = build
        self._tune = tune
        self._gone: set[str] = set()
        """Hosts that could not be logged in to: until another command, nobody tries again."""

    def __call__(
        self,
        testbed: Testbed,
        blocks: list[dict[str, JsonValue]],
        campaign: Path,
        on_event: OnEvent,
        on_launch: OnLaunch,
        stop: threading.Event,
    ) -> CampaignEnd:
        """Carry the blocks out."""
        work = campaign / WORK
        stored = Campaign(campaign)
        trace = stored.trace_file()
        try:
            return ansible_io.run_campaign(
                testbed,
                blocks,
                work,
                on_event,
                on_launch,
                stop,
                build=self._build,
                tune=self._tune,
                of_launches=[trace] if trace is not None else [],
                programs=stored.plan.programs,
                without_ansible=testbed.kind is TestbedKind.LOCAL and not self._tune,
                gone=self._gone,
            )
        except OSError as error:
            if error.errno in NO_ROOM:
                raise StoreFullError(ansible_io.no_room_sentence(error.filename or work, error)) from error
            raise UnfitError(f"cannot prepare the campaign in {work}: {error.strerror or error}") from error


def tidy(writer: CampaignWriter, *, whole: bool) -> None:
    """Keep Ansible's log beside the campaign; where nothing is missing, remove what it needed while it ran."""
    work = writer.campaign.path / WORK
    with contextlib.suppress(OSError, ResultsError):
        writer.put_log((work / "ansible.log").read_bytes())
    if whole:
        shutil.rmtree(work, ignore_errors=True)
