# SPDX-License-Identifier: BSD-3-Clause
"""Damage: each kind is named, by readers and by verify alike; a repair moves it aside and removes nothing."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cadge_results import (
    Campaign,
    CampaignWriter,
    DamagedError,
    LaunchRecord,
    NodeFacts,
    StoreBusyError,
    StoreUnwritableError,
)
from cadge_results.errors import DamageKind
from cadge_results.store import writer as writer_module
from cadge_results.store.checksum import beside
from cadge_results.store.verify import CampaignCheck, repair, verify

LATER = datetime(2026, 11, 21, 1, 31, 0, tzinfo=UTC)
Recorder = Callable[..., LaunchRecord]
NewWriter = Callable[[], CampaignWriter]


@pytest.fixture
def campaign(new_writer: NewWriter, record: Recorder) -> Campaign:
    """A finished campaign of two launches, with facts of a host and a block."""
    with new_writer() as writer:
        for number in range(2):
            writer.add_launch(record(number))
        for host in ("here", "there"):
            writer.add_node(NodeFacts.from_object({"schema": "cadge.node/1", "host": host}, source="t"))
        writer.add_block_file("b1", "block.json", make_block(record(0)))
        writer.finish("finished", at=LATER)
    return Campaign(writer.campaign.path)


def make_block(record: LaunchRecord) -> str:
    host = {"name": "here", "management_address": "127.0.0.1", "device": "lo", "address": "127.0.0.1"}
    block: dict[str, object] = {
        "schema": "cadge.block/2",
        "block_id": "b1",
        "campaign_id": record.launch.campaign_id,
        "place": "within",
    }
    block |= {"hosts": [host], "leader": "here", "ports": [18600, 18699], "deadline_s": 9}
    return json.dumps(block | {"launches": [record.launch.to_object()]}, indent=1) + "\n"


@contextmanager
def changing(path: Path) -> Iterator[Path]:
    """Let a stored file be written, for a moment."""
    mode = path.stat().st_mode
    path.chmod(0o644)
    yield path
    if path.is_file():
        path.chmod(mode)


def paths(campaign: Campaign) -> tuple[Path, Path]:
    first, second = (campaign.layout.launch(launch.launch_id) for launch in campaign.plan.launches)
    return first, second


def again(campaign: Campaign) -> Campaign:
    """Open it as another process would."""
    return Campaign(campaign.path)


def found(campaign: Campaign) -> list[tuple[str, DamageKind, str]]:
    verdict = verify(again(campaign))
    return [(campaign.layout.named(one.path), one.kind, one.detail) for one in verdict.damages]


def refused(campaign: Campaign) -> str:
    """Return what a reader says of the first damaged record."""
    with pytest.raises(DamagedError) as caught:
        list(again(campaign).launches())
    assert caught.value.commands == (f"cadge verify {campaign.path}",)
    with pytest.raises(DamagedError) as other:
        again(campaign).check()
    assert str(other.value) == str(caught.value)
    return str(caught.value)


def without_checksums(campaign: Campaign) -> None:
    """Make it a campaign of a cadge that stored none."""
    for path in campaign.path.rglob("*.sha256"):
        path.unlink()
    meta = json.loads(campaign.layout.meta.read_text())
    del meta["checksum"]
    campaign.layout.meta.write_text(json.dumps(meta))


def test_a_whole_campaign(campaign: Campaign) -> None:
    verdict = verify(campaign)
    assert (verdict.damages, verdict.unproven, verdict.strangers, verdict.unmade) == ([], 0, [], 0)
    assert verdict.files == 3 + 2 + 2 + 1
    before = {path: path.read_bytes() for path in campaign.path.rglob("*") if path.is_file()}
    assert repair(again(campaign)).folder is None
    assert {path: path.read_bytes() for path in campaign.path.rglob("*") if path.is_file()} == before


@pytest.mark.skipif(shutil.which("sha256sum") is None, reason="sha256sum is missing")
def test_sha256sum_checks_it_without_cadge(campaign: Campaign) -> None:
    for folder in (campaign.path, campaign.layout.launches, campaign.layout.nodes, campaign.layout.blocks / "b1"):
        names = sorted(path.name for path in folder.glob("*.sha256"))
        argv = ["sha256sum", "--check", "--strict", "--quiet", *names]
        done = subprocess.run(argv, cwd=folder, capture_output=True, text=True, check=False, timeout=60)
        assert (done.returncode, done.stdout) == (0, ""), done.stderr


def test_a_truncated_record(campaign: Campaign) -> None:
    first, _ = paths(campaign)
    with changing(first):
        first.write_bytes(first.read_bytes()[:812])
    assert found(campaign) == [(f"launches/{first.name}", DamageKind.TRUNCATED, "it ends early, after 812 bytes")]
    assert refused(campaign) == f"{first} is damaged: it ends early, after 812 bytes"
    with changing(first):
        first.write_bytes(b"")
    assert found(campaign) == [(f"launches/{first.name}", DamageKind.TRUNCATED, "it is empty")]


def test_a_flipped_digit(campaign: Campaign) -> None:
    """It fits the format as before: nothing but the checksum tells."""
    first, _ = paths(campaign)
    with changing(first):
        first.write_text(first.read_text().replace('"wall_ns":400000000', '"wall_ns":400000001'))
    assert LaunchRecord.parse(first.read_bytes(), source="t").result
    assert found(campaign) == [(f"launches/{first.name}", DamageKind.CHANGED, "it was changed after it was written")]
    assert "was changed after it was written" in refused(campaign)


def test_swapped_records(campaign: Campaign) -> None:
    first, second = paths(campaign)
    first.rename(first.with_name("held"))
    second.rename(first)
    first.with_name("held").rename(second)
    assert found(campaign) == [
        (f"launches/{one.name}", DamageKind.SWAPPED, f"it holds what belongs into {other.name}")
        for one, other in ((first, second), (second, first))
    ]
    assert f"holds what belongs into {second.name}" in refused(campaign)


def test_records_swapped_with_their_checksums(campaign: Campaign) -> None:
    first, second = paths(campaign)
    for one, other in ((first, second), (beside(first), beside(second))):
        one.rename(one.with_name("held"))
        other.rename(one)
        one.with_name("held").rename(other)
    assert [item[1] for item in found(campaign)] == [DamageKind.SWAPPED] * 2
    assert f"is the checksum of {second.name}" in refused(campaign)


def test_missing_records(campaign: Campaign) -> None:
    first, second = paths(campaign)
    first.unlink()
    second.unlink()
    beside(second).unlink()
    assert found(campaign) == [
        (f"launches/{first.name}", DamageKind.MISSING, "its checksum is there, it is not"),
        (f"launches/{second.name}", DamageKind.MISSING, "the campaign was finished with it"),
    ]
    done = repair(again(campaign))
    assert (again(campaign).meta.status, found(campaign)) == ("interrupted", [])
    assert verify(campaign).unmade == 2
    assert done.moved == [first]  # of it the checksum


def test_a_lost_or_damaged_checksum(campaign: Campaign) -> None:
    first, second = paths(campaign)
    beside(first).unlink()
    with changing(beside(second)) as path:
        path.write_bytes(path.read_bytes()[:40])
    assert [item[:2] for item in found(campaign)] == [
        (f"launches/{first.name}.sha256", DamageKind.MISSING),
        (f"launches/{second.name}.sha256", DamageKind.TRUNCATED),
    ]
    assert f"nothing says what {first.name} held" in refused(campaign)
    repair(again(campaign))
    assert found(campaign) == []
    assert again(campaign).launch_ids() == frozenset()


def test_files_of_others(campaign: Campaign) -> None:
    first, _ = paths(campaign)
    shutil.copy(first, first.with_name("copy.json"))
    (campaign.layout.launches / "notes.txt").write_text("a user's")
    (campaign.path / "notes.txt").write_text("a user's, where nobody looks")
    (campaign.path / "report.html").write_text("")
    (campaign.layout.launches / ".b.part").write_text("a writer's")
    assert found(campaign) == [
        ("launches/copy.json", DamageKind.UNKNOWN, "no launch of the plan has this name"),
        ("launches/notes.txt", DamageKind.UNKNOWN, "cadge stores nothing of this name"),
    ]
    assert "copy.json is damaged: no launch of the plan has this name" in refused(campaign)
    assert verify(campaign).strangers == [campaign.path / "notes.txt"]
    repair(again(campaign))
    assert (campaign.layout.aside / "1-damaged/launches/notes.txt").read_text() == "a user's"
    assert (campaign.path / "notes.txt").exists()
    assert found(campaign) == []
    assert again(campaign).meta.status == "finished", "no launch is missing"


@pytest.mark.parametrize("how", ["folder", "pipe", "loop of links", "link to nothing"])
def test_what_cannot_be_read(how: str, campaign: Campaign) -> None:
    first, _ = paths(campaign)
    first.unlink()
    if how == "folder":
        first.mkdir()
    elif how == "pipe":
        os.mkfifo(first)
    else:
        first.symlink_to(first.name if how == "loop of links" else "nothing")
    assert [item[:2] for item in found(campaign)] == [(f"launches/{first.name}", DamageKind.UNREADABLE)]
    refused(campaign)
    repair(again(campaign))
    assert os.path.lexists(campaign.layout.aside / "1-damaged/launches" / first.name)
    assert found(campaign) == []


def test_a_folder_that_is_none(campaign: Campaign) -> None:
    folder = campaign.layout.launches
    folder.rename(campaign.path / "held")
    folder.write_text("")
    assert found(campaign)[0] == ("launches", DamageKind.UNREADABLE, "it is no folder")
    assert f"{folder} is damaged: it is no folder" in refused(campaign)
    assert repair(again(campaign)).folder is None
    folder.unlink()
    assert [item[1] for item in found(campaign)] == [DamageKind.MISSING] * 2
    repair(again(campaign))
    CampaignWriter.resume(campaign.path).close()
    assert folder.is_dir()


def test_other_files(campaign: Campaign) -> None:
    layout = campaign.layout
    here, there = layout.node("here"), layout.node("there")
    for path in (here, layout.block("b1"), layout.sweep):
        with changing(path):
            path.write_bytes(path.read_bytes().replace(b"here", b"hEre").replace(b"tiny", b"tIny"))
    there.rename(layout.node("elsewhere"))
    assert {item[:2] for item in found(campaign)} == {
        ("sweep.yml", DamageKind.CHANGED),
        ("nodes/here.json", DamageKind.CHANGED),
        ("nodes/elsewhere.json.sha256", DamageKind.MISSING),
        ("nodes/there.json", DamageKind.MISSING),
        ("blocks/b1/block.json", DamageKind.CHANGED),
    }
    with pytest.raises(DamagedError, match=r"elsewhere.json.sha256 is missing"):
        again(campaign).nodes()
    done = repair(again(campaign))
    assert done.folder == layout.aside / "1-damaged"
    assert {path.name for path in done.folder.rglob("*.json")} == {"here.json", "elsewhere.json", "block.json"}
    assert [item[0] for item in found(campaign)] == ["sweep.yml"], "it cannot be made again"


@pytest.mark.parametrize("name", ["campaign.json", "plan.json"])
@pytest.mark.parametrize("how", ["flipped", "truncated", "missing"])
def test_what_a_campaign_cannot_do_without(name: str, how: str, campaign: Campaign) -> None:
    path = campaign.path / name
    with changing(path):
        if how == "flipped":
            path.write_text(path.read_text().replace('"seed": 1,', '"seed": 2,'))
        elif how == "truncated":
            path.write_bytes(path.read_bytes()[:-30])
        else:
            path.unlink()
    kinds = {"flipped": DamageKind.CHANGED, "truncated": DamageKind.TRUNCATED, "missing": DamageKind.MISSING}
    assert [item[:2] for item in found(campaign)] == [(name, kinds[how])]
    with pytest.raises(DamagedError, match=name):
        again(campaign).outcomes() if name == "plan.json" else again(campaign).meta
    with pytest.raises(DamagedError, match=name):
        CampaignWriter.resume(campaign.path)
    done = repair(again(campaign))
    assert (done.moved, done.folder) == ([], None)
    first, _ = paths(campaign) if how != "missing" and name != "plan.json" else (None, None)
    if first is not None:  # without one of them, records are looked at all the same
        with changing(first):
            first.write_text("{")
        assert [item[0] for item in found(campaign)] == [name, f"launches/{first.name}"]


def test_a_campaign_from_before_checksums(campaign: Campaign, record: Recorder) -> None:
    without_checksums(campaign)
    verdict = verify(again(campaign))
    assert (verdict.damages, verdict.unproven, verdict.files) == ([], 8, 8)
    assert len(list(again(campaign).launches())) == 2
    first, second = paths(campaign)
    for path in (first, second):
        path.chmod(0o644)
    whole = first.read_text()
    for content, kind, said in (
        (whole[:-2], DamageKind.TRUNCATED, "it ends early"),
        (whole.replace('"status":"done"', '"status":"dine"', 1), DamageKind.CHANGED, "it does not fit its format: "),
        (second.read_text(), DamageKind.SWAPPED, f"it holds launch {second.stem}"),
    ):
        first.write_text(content)
        (item,) = found(campaign)
        assert (item[0], item[1]) == (f"launches/{first.name}", kind)
        assert item[2].startswith(said)
        assert said in refused(campaign)
    histogram = record(0).to_object()["result"]["attempts"][0]["quantities"]["latency"][0]["histogram"]  # type: ignore[index,call-overload]
    for content, said in (
        (whole.replace(str(histogram)[:60], str(histogram)[:59] + "x"), "does not fit its format: "),
        (whole.replace('"count":3,', '"count":4,', 1), "holds 3 samples, not 4"),
        (whole.replace(record(0).launch.campaign_id, "20261121T013042Z-00000000"), "it belongs to campaign"),
    ):
        first.write_text(content)
        (item,) = found(campaign)
        assert item[:2] == (f"launches/{first.name}", DamageKind.CHANGED)
        assert said in item[2]
    repair(again(campaign))
    with CampaignWriter.resume(campaign.path) as writer:
        writer.add_launch(record(0))
    verdict = verify(again(campaign))
    assert (verdict.damages, verdict.unproven, verdict.files) == ([], 7, 8), "what is added has a checksum"


def test_repair_and_resume_give_a_whole_campaign(campaign: Campaign, record: Recorder) -> None:
    first, second = paths(campaign)
    contents = []
    for number in (1, 2):
        with changing(first):
            first.write_bytes(first.read_bytes()[: 100 * number])
        contents.append(first.read_bytes())
        done = repair(again(campaign))
        assert (done.moved, done.folder) == ([first], campaign.layout.aside / f"{number}-damaged")
        assert again(campaign).meta.status == "interrupted"
        with CampaignWriter.resume(campaign.path) as writer:
            assert writer.campaign.missing_launch_ids() == (first.stem,)
            writer.add_launch(record(0))
            writer.finish("finished", at=LATER)
    assert found(campaign) == []
    assert [item.launch_id for item in again(campaign).launches()] == [first.stem, second.stem]
    aside = [campaign.layout.aside / f"{number}-damaged/launches/{first.name}" for number in (1, 2)]
    assert [path.read_bytes() for path in aside] == contents
    assert all(beside(path).exists() for path in aside)
    assert again(campaign).made_again() == {"damaged": {first.stem}}


def test_records_that_are_made_again_stay(campaign: Campaign, record: Recorder) -> None:
    first, _ = paths(campaign)
    before = first.read_bytes()
    with CampaignWriter.resume(campaign.path) as writer:
        assert writer.campaign.launch(first.stem)
        folder = writer.set_aside([first.stem], "failed")
        assert writer.campaign.missing_launch_ids() == (first.stem,)
        assert writer.campaign.made_again() == {}
        writer.add_launch(record(0, log_tail=["another", "time"]))
        assert writer.campaign.launch(first.stem).log_tail == ("another", "time")
        writer.finish("finished", at=LATER)
    assert folder == campaign.layout.aside / "1-failed"
    assert (folder / "launches" / first.name).read_bytes() == before
    assert again(campaign).made_again() == {"failed": {first.stem}}
    assert len(list(again(campaign).launches())) == 2
    assert found(campaign) == []


def test_a_campaign_that_is_written_is_left_alone(campaign: Campaign) -> None:
    with CampaignWriter.resume(campaign.path):
        for work in (verify, repair):
            with pytest.raises(StoreBusyError, match="another cadge writes"):
                work(again(campaign))


def test_a_full_disk_leaves_no_checksum_alone(
    campaign: Campaign, record: Recorder, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, _ = paths(campaign)
    first.unlink()
    real = writer_module.put

    def full(path: Path, content: bytes, *, mode: int) -> None:
        if path == first:
            raise OSError(28, "No space left on device")
        real(path, content, mode=mode)

    with CampaignWriter.resume(campaign.path) as writer:
        monkeypatch.setattr(writer_module, "put", full)
        with pytest.raises(StoreUnwritableError):
            writer.add_launch(record(0))
        assert not beside(first).exists()
        monkeypatch.undo()
        writer.add_launch(record(0))
    assert found(campaign) == []


def looked(campaign: Campaign) -> tuple[CampaignCheck, DamagedError | None]:
    """Return what verify finds, and what a reader of the records says."""
    verdict = verify(again(campaign))
    try:
        list(again(campaign).launches())
    except DamagedError as error:
        return verdict, error
    return verdict, None


DAMAGES = st.one_of(
    st.floats(0, 1, exclude_max=True).map(lambda part: lambda whole: whole[: int(part * len(whole))]),
    st.tuples(st.floats(0, 1, exclude_max=True), st.integers(1, 255)).map(
        lambda at: lambda whole: flipped(whole, int(at[0] * len(whole)), at[1])
    ),
    st.binary(min_size=1).map(lambda more: lambda whole: whole + more),
    st.binary().map(lambda other: lambda _whole: other),
)


def flipped(whole: bytes, place: int, bits: int) -> bytes:
    return whole[:place] + bytes([whole[place] ^ bits]) + whole[place + 1 :]


@settings(max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(number=st.integers(0, 1), of_checksum=st.booleans(), damage=DAMAGES)
def test_any_damage_to_a_record_is_seen_and_healed(
    number: int, of_checksum: bool, damage: Callable[[bytes], bytes], campaign: Campaign, record: Recorder
) -> None:
    """Whatever is cut off, flipped or put in its place: verify and readers agree, and a repair makes it whole."""
    copy = Campaign(campaign.path.parent / "copies" / campaign.path.name)
    shutil.rmtree(copy.path, ignore_errors=True)
    shutil.copytree(campaign.path, copy.path)
    target = paths(copy)[number]
    path = beside(target) if of_checksum else target
    content = damage(path.read_bytes())
    with changing(path):
        path.write_bytes(content)
    verdict, error = looked(copy)
    assert error is not None
    assert verdict.damages == [error.damage]
    assert error.damage.path in ({target, path} if of_checksum else {target})
    folder = repair(again(copy)).folder
    assert folder is not None
    assert (folder / "launches" / path.name).read_bytes() == content
    with CampaignWriter.resume(copy.path) as writer:
        writer.add_launch(record(number))
        writer.finish("finished", at=LATER)
    verdict, error = looked(copy)
    assert (verdict.damages, error) == ([], None)
