# SPDX-License-Identifier: BSD-3-Clause
"""A disk of the controller that is full is not blamed on a node, though Ansible speaks of both alike."""

from __future__ import annotations

import contextlib
import errno
import os
import subprocess
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from cadge_cli.commands import run as commands_run
from cadge_harness import errors
from cadge_harness.run import ansible_io
from cadge_harness.run.ansible_io import RunOutcome
from cadge_harness.run.runner import AnsibleRunner
from cadge_results import Store
from cadge_results.formats.event import TaskFailed

from .conftest import Answer, FakeRunner, make_testbed

if TYPE_CHECKING:
    from cadge_harness.paths import Checkout

Cadge = Callable[..., Answer]


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 128 KiB."""
    folder = tmp_path / "disk"
    folder.mkdir()
    argv = ["mount", "-t", "tmpfs", "-o", "size=128k", "cadge-test", str(folder)]
    if os.geteuid() != 0 or subprocess.run(argv, check=False, capture_output=True).returncode != 0:
        pytest.skip("tmpfs cannot be mounted here")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


def failing(event: str, message: str, monkeypatch: pytest.MonkeyPatch, *, fill: bool) -> Callable[[Path], RunOutcome]:
    """Return what runs a campaign whose ansible-playbook says this of host h1, and fails."""

    def play(run: ansible_io._Run, *_rest: object) -> int:
        with contextlib.suppress(OSError), (run.work / "filling").open("wb", buffering=0) as stream:
            while fill:
                stream.write(bytes(4096))
        if message:
            run.problem(event, ansible_io.sentence(TaskFailed(event=event, host="h1", message=message)))
        return 4 if event == "unreachable" else 2

    def run(work: Path) -> RunOutcome:
        block = {"block_id": "b1", "campaign_id": "c", "launches": [{"launch_id": "l", "endpoints": [{"host": "h1"}]}]}
        nothing = threading.Event()
        return ansible_io.run_campaign(make_testbed(), [block], work, lambda _: None, lambda _: None, nothing)

    monkeypatch.setattr(ansible_io, "_playbook", play)
    monkeypatch.setattr(ansible_io, "_variables", lambda _testbed, _blocks, work, *_rest, **_named: work / "variables")
    return run


@pytest.mark.parametrize(
    ("event", "message"),
    [
        ("unreachable", "Failed to create temporary directory: [Errno 28] No space left on device"),
        ("failed", "Unexpected failure in module execution"),
        ("failed", ""),
    ],
)
def test_a_full_disk_here_is_not_blamed_on_a_host(
    event: str, message: str, disk: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    work = disk / ".work"
    ended = failing(event, message, monkeypatch, fill=True)(work)
    said = f"no space to write {work} on this machine: No space left on device. Launches stored so far are whole; "
    assert ended.problems == (said + "make room and continue with: cadge resume",)
    assert (ended.ok, ended.exit_code) == (False, errors.EXIT_STOPPED)


def test_a_full_disk_there_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ended = failing("failed", "No space left on device", monkeypatch, fill=False)(tmp_path / "work")
    assert ended.problems == ("the disk of h1 is full: No space left on device",)
    assert ended.exit_code == errors.EXIT_UNFIT
    assert not list((tmp_path / "work").glob(".*"))


def test_no_room_for_what_ansible_is_given(
    checkout: Checkout, cadge: Cadge, runner: FakeRunner, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The campaign is there and can be resumed: that is no machine on which nothing was measured."""

    def full(*_arguments: object, **_named: object) -> RunOutcome:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "/there/campaign.tar.gz")

    assert runner
    monkeypatch.setattr(commands_run, "AnsibleRunner", AnsibleRunner)
    monkeypatch.setattr(ansible_io, "run_campaign", full)
    answer = cadge("run", "--sweep", "tiny", "--no-report")
    assert answer.code == errors.EXIT_STOPPED, answer.err
    assert answer.err.count("no space to write /there/campaign.tar.gz on this machine: No space left on device") == 1
    (campaign,) = Store(checkout.campaigns).campaigns()
    assert campaign.meta.status == "interrupted"
