# SPDX-License-Identifier: BSD-3-Clause
"""A campaign that cannot be written where it goes is refused before anything is measured for it."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from cadge_harness.errors import UnfitError
from cadge_harness.paths import Checkout
from cadge_harness.run import room
from cadge_harness.run.ansible_files import build_bytes
from cadge_harness.run.room import check_room
from cadge_harness.testbed import testbeds
from cadge_harness.testbed.model import TestbedKind

from .conftest import Answer, FakeRunner, make_testbed

Cadge = Callable[..., Answer]


@pytest.mark.parametrize("home", ["/proc/nowhere", "/dev/null"])
def test_a_home_that_cannot_be_written_ends_a_sweep_before_it_begins(
    home: str, checkout: Checkout, cadge: Cadge, runner: FakeRunner, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(testbeds, "resolve", lambda *_args, **_named: make_testbed(TestbedKind.LOCAL, hosts=1))
    monkeypatch.setenv("HOME", home)
    answer = cadge("run", "--sweep", "tiny", "--no-report")
    assert (answer.code, answer.out) == (3, "")
    assert f"cannot write {home}/.cache/cadge: " in answer.err
    assert runner.made == []
    assert not list(checkout.campaigns.glob("2*"))


def test_a_cluster_says_itself_whether_its_homes_can_be_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", "/proc/nowhere")
    check_room(tmp_path / "new", make_testbed(TestbedKind.CLUSTER), stored_bytes=1, carried_bytes=1)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_results_that_cannot_be_written(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    with pytest.raises(UnfitError, match="Permission denied"):
        check_room(tmp_path / "results", make_testbed(), stored_bytes=1, carried_bytes=1)


@pytest.mark.parametrize(("free_bytes", "fits"), [(11 + 7 + 2 * 7, True), (11 + 7 + 2 * 7 - 1, False)])
def test_the_room_that_hosts_and_campaign_need_together(
    free_bytes: int, fits: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On one disk: what is stored, what is carried, and what each host unpacks of it."""

    class Usage:
        free = free_bytes

    monkeypatch.setattr(room.shutil, "disk_usage", lambda _path: Usage)
    monkeypatch.setattr(room, "_existing", lambda _path: tmp_path)
    if fits:
        check_room(tmp_path, make_testbed(), stored_bytes=11, carried_bytes=7)
        return
    with pytest.raises(UnfitError, match="MB free, and this campaign needs up to"):
        check_room(tmp_path, make_testbed(), stored_bytes=11, carried_bytes=7)


def test_what_hosts_are_brought_is_what_the_plan_says(
    checkout: Checkout, cadge: Cadge, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(testbeds, "resolve", lambda *_args, **_named: make_testbed())
    (checkout.build / "layers/a-one.so").write_bytes(bytes(5_000_000))
    expected = sum(path.stat().st_size for path in checkout.build.rglob("*") if path.is_file())
    assert build_bytes(checkout.build) == expected
    answer = cadge("plan", "--sweep", "tiny")
    assert answer.code == 0
    assert "up to 5.0 MB more beside the campaign" in answer.out
