# SPDX-License-Identifier: BSD-3-Clause
"""A campaign that a stranger made: no link is followed, only regular files are read, none goes out unproven."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

import pytest

from cadge_results import Campaign, CampaignWriter, LaunchRecord, NodeFacts, Plan
from cadge_results.errors import DamagedError, FormatError, ResultsError
from cadge_results.formats.block import Block
from cadge_results.formats.launch import LaunchFile
from cadge_results.publish.published import Rules, UnpublishableError, copy
from cadge_results.store.verify import repair, verify

OURS = "fHk3-of-the-publisher"


@pytest.fixture
def campaign(new_writer: Callable[[], CampaignWriter], record: Callable[..., LaunchRecord]) -> Campaign:
    """A whole campaign with a log."""
    with new_writer() as writer:
        records = [record(place) for place, _ in enumerate(writer.campaign.plan.launches)]
        for one in records:
            writer.add_launch(one)
        writer.add_node(NodeFacts.from_object({"schema": "cadge.node/1", "host": "here"}, source="x"))
        writer.add_block_file("b1", "block.json", block_of(records[0].launch).to_json())
        writer.put_log(b"PLAY [measure]\n")
        writer.finish("finished", at=datetime(2026, 11, 25, tzinfo=UTC))
    return writer.campaign


def block_of(launch: LaunchFile) -> Block:
    """Return a block with one launch."""
    host = {"name": "here", "management_address": "127.0.0.1", "device": "lo", "address": "127.0.0.1"}
    raw = {"schema": "cadge.block/2", "block_id": "b1", "campaign_id": launch.campaign_id, "place": "within",
           "leader": "here", "hosts": [host], "ports": [18600, 18699], "deadline_s": 60,
           "launches": [launch.to_object()]}  # fmt: skip
    return Block.from_object(raw, source="x")


def made_of(kind: str, path: Path, outside: Path) -> None:
    """Put something else in the place of a file or folder; its content lies outside, and is the same."""
    shutil.move(path, outside)
    match kind:
        case "link":
            path.symlink_to(outside)
        case "relative link":
            path.symlink_to(os.path.relpath(outside, path.parent))
        case "FIFO":
            os.mkfifo(path)
        case "device":
            path.symlink_to("/dev/zero")
        case "folder":
            path.mkdir()


FILES = (
    "campaign.json",
    "plan.json",
    "plan.json.sha256",
    "sweep.yml",
    "nodes/here.json",
    "blocks/b1/block.json",
    "launches/b1-0000-0123abcd.json",
    "launches/b1-0001-0123abcd.json.sha256",
)
FOLDERS = ("launches", "nodes", "blocks", "blocks/b1")


@pytest.mark.parametrize("kind", ["link", "relative link", "FIFO", "device", "folder"])
@pytest.mark.parametrize("name", [*FILES, "ansible.log"])
def test_only_regular_files_are_read_and_published(kind: str, name: str, campaign: Campaign, tmp_path: Path) -> None:
    made_of(kind, campaign.path / name, tmp_path / "outside")
    found = verify(Campaign(campaign.path)).damages
    assert [str(one.path.relative_to(campaign.path)) for one in found] in ([name], [name, name.removesuffix(".sha256")])
    with pytest.raises(ResultsError):
        copy(Campaign(campaign.path), tmp_path / "copy", Rules(logs=True))
    assert not (tmp_path / "copy").exists()


@pytest.mark.parametrize("name", FOLDERS)
def test_no_linked_folder_is_entered(name: str, campaign: Campaign, tmp_path: Path) -> None:
    made_of("link", campaign.path / name, tmp_path / "outside")
    assert campaign.path / name in [one.path for one in verify(Campaign(campaign.path)).damages]
    with pytest.raises(DamagedError):
        copy(Campaign(campaign.path), tmp_path / "copy", Rules())
    if name == "launches":
        with pytest.raises(DamagedError, match="symbolic link"):
            list(Campaign(campaign.path).launches())
        with pytest.raises(DamagedError, match="symbolic link"):
            Campaign(campaign.path).launch("b1-0000-0123abcd")


def test_the_folder_of_a_campaign_itself_may_be_a_link(campaign: Campaign, tmp_path: Path) -> None:
    (tmp_path / "here").symlink_to(campaign.path)
    assert verify(Campaign(tmp_path / "here")).damages == []
    assert copy(Campaign(tmp_path / "here"), tmp_path / "copy", Rules()).campaign.launch_ids()


def test_what_lies_aside_goes_out_only_where_it_is_a_proven_launch(campaign: Campaign, tmp_path: Path) -> None:
    """Reports count launches aside; all else there is read by nobody."""
    (tmp_path / "secret.json").write_text(json.dumps({"auths": OURS}))
    aside = campaign.layout.aside / "1-failed"
    for name in ("launches/b1-0000-0123abcd.json", "launches/other.json", "nodes/here.json"):
        (aside / name).parent.mkdir(parents=True, exist_ok=True)
        (aside / name).symlink_to(tmp_path / "secret.json")
    (aside / "launches/b1-0001-0123abcd.json").hardlink_to(tmp_path / "secret.json")
    copy(campaign, tmp_path / "copy", Rules())
    every = [path for path in (tmp_path / "copy").rglob("*") if path.is_file()]
    assert not [path for path in every if OURS in path.read_text()]
    assert {path.name for path in every if "aside" in path.parts and path.suffix == ".json"} == {
        "b1-0000-0123abcd.json",
        "b1-0001-0123abcd.json",
    }


@pytest.mark.parametrize("name", ["sweep.yml", "plan.json", "launches/b1-0000-0123abcd.json", "ansible.log"])
def test_nothing_goes_out_whose_content_no_checksum_proves(name: str, campaign: Campaign, tmp_path: Path) -> None:
    """A hard link in a campaign that says it had no checksums would be read as any file."""
    meta = json.loads(campaign.layout.meta.read_bytes())
    campaign.layout.meta.write_text(json.dumps(meta | {"checksum": None}))
    (campaign.path / f"{name}.sha256").unlink()
    with pytest.raises(UnpublishableError, match="checksum"):
        copy(Campaign(campaign.path), tmp_path / "copy", Rules(logs=True))
    assert not (tmp_path / "copy").exists()


@pytest.mark.parametrize("name", ["../../../etc/x", "a/b", ".hidden", "", "a\nb", "a\0b", "x" * 300])
def test_no_name_of_a_launch_or_block_leaves_the_folder(name: str, plan: Plan) -> None:
    raw = plan.to_object()
    raw["launches"][0]["launch_id"] = name  # type: ignore[index,call-overload]
    with pytest.raises(FormatError, match="launch_id"):
        Plan.from_object(raw, source="x")
    raw = plan.to_object()
    raw["blocks"][0]["block_id"] = name  # type: ignore[index,call-overload]
    with pytest.raises(FormatError, match="block_id"):
        Plan.from_object(raw, source="x")


@pytest.mark.parametrize("name", [*FOLDERS, ".lock", "aside"])
def test_nothing_is_written_through_a_link(name: str, campaign: Campaign, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (campaign.path / "launches/b1-0000-0123abcd.json").write_text("damaged")
    path = campaign.path / name
    if path.is_dir():
        shutil.rmtree(path)
    path.unlink(missing_ok=True)
    path.symlink_to(outside if name != ".lock" else outside / "made")
    with pytest.raises(ResultsError, match="link"):
        CampaignWriter.resume(campaign.path)
    with suppress(ResultsError):
        repair(Campaign(campaign.path))
    assert list(outside.iterdir()) == []


def test_a_link_is_moved_aside_and_then_what_it_stood_for_is_made_again(campaign: Campaign, tmp_path: Path) -> None:
    made_of("link", campaign.path / "launches/b1-0000-0123abcd.json", tmp_path / "outside")
    repair(Campaign(campaign.path))
    assert (campaign.layout.aside / "1-damaged/launches/b1-0000-0123abcd.json").is_symlink()
    with CampaignWriter.resume(campaign.path) as writer:
        assert writer.campaign.missing_launch_ids() == ("b1-0000-0123abcd",)


def test_two_files_whose_names_differ_by_case_alone_do_not_go_out(campaign: Campaign, tmp_path: Path) -> None:
    """On a file system that knows no case one of them would overwrite the other."""
    (campaign.path / "nodes/HERE.json").write_text("")
    with CampaignWriter.resume(campaign.path) as writer:
        (campaign.path / "nodes/HERE.json").unlink()
        writer.add_node(NodeFacts.from_object({"schema": "cadge.node/1", "host": "HERE"}, source="x"))
        writer.finish("finished", at=datetime(2026, 11, 25, tzinfo=UTC))
    with pytest.raises(UnpublishableError, match=r"HERE\.json"):
        copy(Campaign(campaign.path), tmp_path / "copy", Rules(keep=("hosts",)))
