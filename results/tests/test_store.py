# SPDX-License-Identifier: BSD-3-Clause
"""The store: whole files or none, no duplicates, one writer, every outcome accounted for."""

from __future__ import annotations

import json
import os
import resource
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

import pytest

from cadge_results import (
    CampaignWriter,
    Check,
    DuplicateLaunchError,
    FormatError,
    LaunchRecord,
    NodeFacts,
    NotFoundError,
    Plan,
    ResultsError,
    Store,
    StoreBusyError,
    StoreFullError,
    StoreUnwritableError,
    outcomes,
)
from cadge_results.store.outcomes import failed_checks
from cadge_results.store.writer import is_held

LATER = datetime(2026, 11, 21, 1, 31, 0, tzinfo=UTC)
Recorder = Callable[..., LaunchRecord]
NewWriter = Callable[[], CampaignWriter]


def test_a_campaign_from_beginning_to_end(new_writer: NewWriter, record: Recorder, tmp_path: Path) -> None:
    with new_writer() as writer:
        writer.add_launch(record(0))
        writer.add_launch(record(1))
        writer.add_node(NodeFacts.from_object({"schema": "cadge.node/1", "host": "here"}, source="t"))
        writer.add_block_file("b1", "ansible.log", "ok\n")
        writer.finish("finished", at=LATER, problems=("a", "a"))
    campaign = Store(tmp_path).open("last")
    assert campaign.campaign_id.startswith("20261121T013042Z-")
    assert campaign.meta.status == "finished"
    assert campaign.meta.finished_utc == "2026-11-21T01:31:00Z"
    assert [item.launch_id for item in campaign.launches()] == sorted(campaign.launch_ids())
    assert next(iter(campaign.launches())) == record(0)
    assert [node.host for node in campaign.nodes()] == ["here"]
    assert campaign.sweep_text == "title: tiny\n"
    assert campaign.missing_launch_ids() == ()
    assert Store(tmp_path).open(campaign.campaign_id[:12]).path == campaign.path
    assert Store(tmp_path / "nowhere").open(str(campaign.path)).path == campaign.path


def test_stored_files_cannot_be_written(new_writer: NewWriter, record: Recorder) -> None:
    with new_writer() as writer:
        writer.add_launch(record(0))
    layout = writer.campaign.layout
    for path in (layout.plan, layout.sweep, layout.launch(record(0).launch_id)):
        assert stat.S_IMODE(path.stat().st_mode) == 0o444
    assert not list(writer.campaign.path.rglob(".*.part"))


def test_duplicates_and_strangers_are_refused(new_writer: NewWriter, record: Recorder) -> None:
    good = record(0)
    with new_writer() as writer:
        writer.add_launch(good)
        before = writer.campaign.layout.launch(good.launch_id).read_bytes()
        with pytest.raises(DuplicateLaunchError, match="stored already"):
            writer.add_launch(record(0, status="failed", reason="other"))
        assert writer.campaign.layout.launch(good.launch_id).read_bytes() == before
        raw = record(1).to_object()
        assert isinstance(raw["launch"], dict)
        raw["launch"]["launch_id"] = "b1-0009-00000000"
        with pytest.raises(FormatError, match="not in the plan"):
            writer.add_launch(LaunchRecord.from_object(raw, source="t"))
        raw = record(1).to_object()
        assert isinstance(raw["launch"], dict)
        raw["launch"]["campaign_id"] = "other"
        with pytest.raises(FormatError, match="belongs to campaign other"):
            writer.add_launch(LaunchRecord.from_object(raw, source="t"))
        raw = record(1).to_object()
        assert isinstance(raw["result"], dict)
        assert isinstance(raw["result"]["attempts"], list)
        raw["result"]["attempts"].append(raw["result"]["attempts"][0])
        with pytest.raises(FormatError, match="a second attempt"):
            writer.add_launch(LaunchRecord.from_object(raw, source="t"))


def test_two_writers_cannot_share_a_campaign(new_writer: NewWriter) -> None:
    writer = new_writer()
    path = writer.campaign.path
    assert is_held(path)
    with pytest.raises(StoreBusyError, match="another cadge writes"):
        CampaignWriter.resume(path)
    code = (
        "import sys; from pathlib import Path; from cadge_results import CampaignWriter, StoreBusyError\n"
        "try: CampaignWriter.resume(Path(sys.argv[1]))\n"
        "except StoreBusyError: sys.exit(9)"
    )
    other = subprocess.run([sys.executable, "-c", code, str(path)], check=False, timeout=60)
    assert other.returncode == 9
    writer.close()
    assert not is_held(path)
    CampaignWriter.resume(path).close()


def test_resume_adds_exactly_what_is_missing(new_writer: NewWriter, record: Recorder) -> None:
    with new_writer() as writer:
        writer.add_launch(record(1))
        writer.finish("interrupted", at=LATER)
    path = writer.campaign.path
    (path / "launches" / ".left.json.part").write_text("half")
    with CampaignWriter.resume(path) as again:
        assert again.campaign.meta.status == "running"
        assert again.campaign.missing_launch_ids() == (record(0).launch_id,)
        with pytest.raises(DuplicateLaunchError):
            again.add_launch(record(1))
        again.add_launch(record(0))
        assert again.campaign.missing_launch_ids() == ()
    assert not list(path.rglob(".*.part"))


def test_a_changed_plan_is_noticed(new_writer: NewWriter) -> None:
    with new_writer() as writer:
        path = writer.campaign.path
    raw = json.loads((path / "plan.json").read_text())
    raw["seed"] = 99
    (path / "plan.json").chmod(0o644)
    (path / "plan.json").write_text(json.dumps(raw))
    with pytest.raises(FormatError, match="changed after it was written"):
        CampaignWriter.resume(path)


@contextmanager
def small_files() -> Iterator[None]:
    """Let no file grow past 600 bytes, as a full disk would; briefly, for the log of the tests is a file too."""
    old = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (600, old[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, old)


def test_full_disk_leaves_nothing_half_written(new_writer: NewWriter, record: Recorder) -> None:
    with new_writer() as writer:
        writer.add_launch(record(0))
        with small_files(), pytest.raises(StoreFullError, match=r"no space to write .*cadge resume"):
            writer.add_launch(record(1))
        folder = writer.campaign.layout.launches
        whole = f"{record(0).launch_id}.json"
        assert {path.name for path in folder.iterdir()} == {whole, f"{whole}.sha256"}
        assert writer.campaign.missing_launch_ids() == (record(1).launch_id,)


def test_unwritable_folder(new_writer: NewWriter, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreUnwritableError, match="cannot write"):
        CampaignWriter.create(tmp_path / "file", meta=new_writer().campaign.meta, plan=_plan(tmp_path), sweep_text="")


def _plan(root: Path) -> Plan:
    return Store(root).open("last").plan


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_read_only_folder(new_writer: NewWriter, tmp_path: Path) -> None:
    tmp_path.chmod(0o555)
    try:
        with pytest.raises(StoreUnwritableError, match="Permission denied"):
            new_writer()
    finally:
        tmp_path.chmod(0o755)


def test_the_same_campaign_is_not_made_twice(new_writer: NewWriter) -> None:
    new_writer().close()
    with pytest.raises(ResultsError, match="exists already"):
        new_writer()


def test_nothing_to_open(tmp_path: Path) -> None:
    with pytest.raises(NotFoundError, match="there is no campaign"):
        Store(tmp_path).open("last")
    with pytest.raises(NotFoundError, match="no campaign '2026'"):
        Store(tmp_path).open("2026")


def test_outcomes_add_up(new_writer: NewWriter, record: Recorder) -> None:
    with new_writer() as writer:
        raw = record(0).to_object()
        assert isinstance(raw["result"], dict)
        checks = [{"name": "payload", "ok": False, "detail": "1 differs"}]
        assert isinstance(raw["result"]["attempts"], list)
        raw["result"]["attempts"] = raw["result"]["attempts"][1:]
        assert isinstance(raw["result"]["attempts"][0], dict)
        raw["result"]["attempts"][0] |= {"status": "unsound", "checks": checks}  # type: ignore[dict-item]
        writer.add_launch(LaunchRecord.from_object(raw, source="t"))
        found = outcomes(writer.campaign)
        assert len(found) == 5
        by_key = {(item.point.point_id[0], item.round): item for item in found}
        assert by_key["a", 0].status == "unsound"
        assert by_key["a", 0].reason == "payload: 1 differs"
        assert by_key["b", 0].status == "failed"
        assert by_key["b", 0].reason == "the driver wrote no attempt for this point"
        assert by_key["a", 1].status == by_key["b", 1].status == "missing"
        assert by_key["c", None].status == "refused"
        assert by_key["c", None].reason_code == "NO_WAIT"
        writer.add_launch(record(1))
        summaries = {item.point.point_id[0]: item for item in writer.campaign.summaries()}
        assert {key: item.status for key, item in summaries.items()} == {"a": "valid", "b": "valid", "c": "refused"}
        assert summaries["a"].counts == {"unsound": 1, "valid": 1}


def test_a_failed_crosscheck_makes_every_attempt_unsound(new_writer: NewWriter, record: Recorder) -> None:
    bad = Check(name="counters", ok=False, detail="payload went through mgmt0")
    with new_writer() as writer:
        writer.add_launch(record(0).model_copy(update={"crosschecks": (bad,)}))
        first = [item for item in outcomes(writer.campaign) if item.round == 0]
        assert {item.status for item in first} == {"unsound"}
        assert first[0].failed_checks == (bad,)


def test_a_check_that_attempts_carry_themselves_is_judged_by_attempt(new_writer: NewWriter, record: Recorder) -> None:
    raw = record(0).to_object()
    assert isinstance(raw["result"], dict)
    assert isinstance(raw["result"]["attempts"], list)
    slept = {"name": "wait_mode", "ok": True, "detail": ""}
    awake = {"name": "wait_mode", "ok": False, "detail": "never slept"}
    raw["result"]["checks"] = [awake]  # type: ignore[list-item]
    for attempt, check in zip(raw["result"]["attempts"], (slept, awake), strict=True):
        assert isinstance(attempt, dict)
        attempt["checks"] = [check]  # type: ignore[list-item]
    with new_writer() as writer:
        writer.add_launch(LaunchRecord.from_object(raw, source="t"))
        found = {item.point.point_id[0]: item.status for item in outcomes(writer.campaign) if item.round == 0}
        assert found == {"b": "valid", "a": "unsound"}
    raw["result"]["checks"] = [{"name": "clock", "ok": False, "detail": "drift"}]
    with_clock = LaunchRecord.from_object(raw, source="t")
    assert with_clock.result is not None
    assert [check.name for check in failed_checks(with_clock, with_clock.result.attempts[0])] == ["clock"]


@pytest.mark.parametrize(("status", "expected"), [("refused", "refused"), ("failed", "failed")])
def test_launches_that_never_measured(new_writer: NewWriter, record: Recorder, status: str, expected: str) -> None:
    with new_writer() as writer:
        writer.add_launch(record(0, result=None, status=status, reason="because", reason_code="DEADLINE"))
        first = [item for item in outcomes(writer.campaign) if item.round == 0]
        assert {(item.status, item.reason, item.reason_code) for item in first} == {(expected, "because", "DEADLINE")}


def test_the_last_campaign_is_the_last_that_was_created(tmp_path: Path) -> None:
    for name, created in (("z-renamed", "2026-01-01T00:00:00Z"), ("a-renamed", "2026-01-02T00:00:00Z")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "campaign.json").write_text(json.dumps({"created_utc": created}))
    assert Store(tmp_path).open("last").path.name == "a-renamed"
    for number, name in enumerate(("m-second", "b-third")):  # created within one second
        (tmp_path / name).mkdir()
        (tmp_path / name / "campaign.json").write_text(json.dumps({"created_utc": "2026-01-03T00:00:00Z"}))
        (tmp_path / name / "plan.json").touch()
        os.utime(tmp_path / name / "plan.json", ns=(0, 10**18 + number))
    assert [campaign.path.name for campaign in Store(tmp_path).campaigns()][-2:] == ["m-second", "b-third"]
    (tmp_path / "damaged").mkdir()
    (tmp_path / "damaged/campaign.json").write_text('{"created')
    assert Store(tmp_path).open("last").path.name == "damaged"  # whoever reads it says what is wrong


def test_a_pipe_in_a_campaigns_place_stops_no_search(tmp_path: Path) -> None:
    """Reading a FIFO that nobody writes to never ends."""
    folder = tmp_path / "20261121T013042Z-b9803f21"
    folder.mkdir()
    os.mkfifo(folder / "campaign.json")
    assert Store(tmp_path).campaigns() == ()
