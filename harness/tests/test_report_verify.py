# SPDX-License-Identifier: BSD-3-Clause
"""`cadge verify FILE` as users run it: where it finds the campaign, what it prints, and its exit codes."""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from cadge_harness.paths import Checkout
from cadge_results import Campaign, Store

from .conftest import Answer, FakeRunner
from .test_learn import carry_out

Cadge = Callable[..., Answer]


@pytest.fixture
def campaign(checkout: Checkout, cadge: Cadge, runner: FakeRunner) -> Campaign:
    assert runner
    carry_out(cadge, checkout)
    (one,) = Store(checkout.campaigns).campaigns()
    return one


@pytest.fixture
def elsewhere(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("elsewhere")


def test_a_report_agrees_and_an_altered_one_differs(campaign: Campaign, cadge: Cadge, elsewhere: Path) -> None:
    made = cadge("report", campaign.campaign_id, "--baseline", "b-two", "-o", str(elsewhere / "r.html"))
    assert made.code == 0, made.err
    answer = cadge("verify", str(elsewhere / "r.html"))
    assert answer.code == 0, answer.err + answer.out
    assert re.match(r"\d+ numbers recomputed, all agree \(", answer.out)
    text = (elsewhere / "r.html").read_text()
    (elsewhere / "r.html").write_text(re.sub(r'data-v="(\d)', r'data-v="9\1', text, count=1))
    answer = cadge("verify", str(elsewhere / "r.html"))
    assert answer.code == 1
    first, place = answer.out.splitlines()
    assert first.endswith("what differs: 1")
    assert "printed" in place
    assert "recomputed" in place
    data = json.loads(cadge("verify", str(elsewhere / "r.html"), "--json").out)["data"]
    assert not data["agrees"]
    assert [sorted(one) for one in data["differences"]] == [["place", "printed", "recomputed"]]


@pytest.mark.long
def test_one_beside_an_earlier_campaign(campaign: Campaign, cadge: Cadge, elsewhere: Path) -> None:
    path = str(elsewhere / "r.html")
    made = cadge("report", campaign.campaign_id, "--against", campaign.campaign_id, "--margin", "20%", "-o", path)
    assert made.code == 0, made.err
    answer = cadge("verify", path)
    assert answer.code == 0, answer.out


@pytest.mark.long
def test_where_the_campaign_is_found(campaign: Campaign, cadge: Cadge, elsewhere: Path, checkout: Checkout) -> None:
    assert cadge("report", campaign.campaign_id).code == 0
    inside = campaign.layout.report
    assert cadge("verify", str(inside)).code == 0
    bundle = elsewhere / "bundle"
    shutil.copytree(campaign.path, bundle / "raw" / "of-a-paper")
    inside.rename(bundle / "report.html")
    shutil.rmtree(checkout.campaigns)
    beside = cadge("verify", str(bundle / "report.html"), "--json")
    assert beside.code == 0
    assert json.loads(beside.out)["data"]["campaign"] == str(bundle / "raw" / "of-a-paper")
    alone = elsewhere / "alone" / "far" / "off"
    alone.mkdir(parents=True)
    shutil.copy(bundle / "report.html", alone)
    lost = cadge("verify", str(alone / "report.html"))
    assert (lost.code, "name it, or the folder of the bundle that holds it" in lost.err) == (5, True)
    assert cadge("verify", str(alone / "report.html"), str(bundle)).code == 0


def test_a_report_is_opened_again_without_its_campaign(campaign: Campaign, cadge: Cadge, elsewhere: Path) -> None:
    path, again = str(elsewhere / "r.html"), str(elsewhere / "again.html")
    assert cadge("report", campaign.campaign_id, "-o", path).code == 0
    shutil.rmtree(campaign.path)
    made = cadge("report", path, "--baseline", "b-two", "-o", again)
    assert made.code == 0, made.err
    assert "made without raw data" in made.out
    assert "beside b-two" in Path(again).read_text()
    for argv, said in (
        ((path,), "add -o FILE"),
        ((path, "-o", path), "is the report itself"),
        ((path, "--against", "last", "-o", again), "--against is for campaigns"),
        ((path, "--format", "text"), "--format is for campaigns"),
        ((f"{again}.html", "-o", again), "cannot be read"),
        ((path, "--baseline", "z-none", "-o", again), "has no layer 'z-none'"),
    ):
        answer = cadge("report", *argv)
        assert (answer.code, said in answer.err) == (2, True), answer.err
    answer = cadge("verify", again)
    assert (answer.code, "was opened again without raw data" in answer.err) == (2, True), answer.err


def test_what_is_refused(campaign: Campaign, cadge: Cadge, elsewhere: Path) -> None:
    path = elsewhere / "r.html"
    assert cadge("report", campaign.campaign_id, "-o", str(path)).code == 0
    text = path.read_text()
    other = elsewhere / "other.html"
    other.write_text(text.replace(f'"campaign_id":"{campaign.campaign_id}"', '"campaign_id":"\\u001b[2J7"'))
    for argv, said in (
        ((str(other), str(campaign.path)), "is of campaign '\\x1b[2J7'"),
        ((str(elsewhere / "none.html"),), "No such file"),
        ((str(path), "--repair"), "--repair is for campaigns"),
        ((campaign.campaign_id, campaign.campaign_id), "is no file"),
        ((str(campaign.layout.plan),), "is no report of cadge"),
    ):
        answer = cadge("verify", *argv)
        assert (answer.code, said in answer.err) == (2, True), answer.err
    (elsewhere / "bytes.html").write_bytes(b"\xff\xfe\x00")
    answer = cadge("verify", str(elsewhere / "bytes.html"))
    assert (answer.code, "is not UTF-8 text" in answer.err) == (2, True)
    unknown = cadge("report", campaign.campaign_id, "--baseline", "z-none", "-o", str(path))
    assert (unknown.code, "has no layer 'z-none' to be the baseline" in unknown.err) == (2, True)
    assert path.read_text() == text
    record = next(iter(sorted(campaign.layout.launches.glob("*.json"))))
    record.chmod(0o644)
    record.write_bytes(record.read_bytes()[:-9])
    assert cadge("verify", str(path)).code == 7


def test_a_report_of_several_files_is_verified_whole(
    campaign: Campaign, cadge: Cadge, elsewhere: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cadge_analysis.page.pages.ONE_FILE_MOST", 1000)
    made = cadge("report", campaign.campaign_id, "-o", str(elsewhere / "r.html"), "--json")
    assert made.code == 0, made.err
    pages = [Path(one) for one in json.loads(made.out)["data"]["pages"]]
    assert pages
    assert all(one.parent == elsewhere and one.name.startswith("r-") for one in pages)
    answer = cadge("verify", str(pages[0]))
    assert answer.code == 0, answer.err + answer.out
    (elsewhere / "r.html").rename(elsewhere / "renamed.html")
    answer = cadge("verify", str(elsewhere / "renamed.html"))
    assert answer.code == 0, "what the main file is called now says nothing of its numbers"
    answer = cadge("verify", str(pages[0]))
    assert answer.code == 2
    assert "is one page of r.html, which is not in its folder" in answer.err
    answer = cadge("report", str(pages[0]), "-o", str(elsewhere / "again.html"))
    assert answer.code == 2
    assert "is one page of a report: open r.html" in answer.err
    text = pages[0].read_text()
    pages[0].write_text(re.sub(r'data-v="(\d)', r'data-v="9\1', text, count=1))
    answer = cadge("verify", str(elsewhere / "renamed.html"))
    assert answer.code == 1
    assert f"  {pages[0].name}: " in answer.out
    pages[0].write_text(text.replace('"report":"r.html"', '"report":"../../etc/passwd"'))
    answer = cadge("verify", str(pages[0]))
    assert answer.code == 2
    assert "which is no file's name" in answer.err
    pages[0].write_text(f"<!doctype html><title>{pages[0].name} is in the archive</title>")
    answer = cadge("verify", str(elsewhere / "renamed.html"))
    assert answer.code == 0, "an excerpt has short pages in the place of those that it leaves in its archive"
    assert f"this is an excerpt that leaves them in its archive: {pages[0].name}\n" in answer.out
    pages[0].write_text("<!doctype html><title>another page</title>")
    answer = cadge("verify", str(elsewhere / "renamed.html"))
    assert answer.code == 2
    pages[0].unlink()
    answer = cadge("verify", str(elsewhere / "renamed.html"))
    assert answer.code == 1
    assert f"{pages[0].name}: printed 'nothing'" in answer.out
    again = cadge("report", campaign.campaign_id, "--one-file", "-o", str(elsewhere / "r.html"))
    assert again.code == 0
    assert "one file, opens offline" in again.out
    assert sorted(path.name for path in elsewhere.iterdir()) == ["r.html", "renamed.html"]


def test_a_pipe_beside_a_report_stops_no_search(campaign: Campaign, cadge: Cadge, elsewhere: Path) -> None:
    """Who looks for the campaign near its report opens nothing that is no regular file."""
    assert cadge("report", campaign.campaign_id, "-o", str(elsewhere / "r.html")).code == 0
    folder = elsewhere / "20261121T013042Z-b9803f21"
    folder.mkdir()
    os.mkfifo(folder / "campaign.json")
    assert cadge("verify", str(elsewhere / "r.html")).code == 0
