# SPDX-License-Identifier: BSD-3-Clause
"""Damaged campaigns: every reader says which file and what to do, a repair and a resume make them whole again.

And launches that failed: made again when that is asked for, with the earlier records kept.
"""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from cadge_cli import output
from cadge_cli.commands import run as commands_run
from cadge_harness.paths import Checkout
from cadge_harness.run.runner import WORK
from cadge_harness.run.session import CampaignEnd
from cadge_results import Campaign, CampaignWriter, NodeFacts, Plan, Store

from .conftest import Answer, FakeRunner, without_checksums
from .test_ablate import ablating
from .test_resume import SLOW_RUN

__all__ = ["ablating"]  # a fixture
Cadge = Callable[..., Answer]
RUN = ("run", "--sweep", "tiny", "--layers", "a-one", "--no-report")
RESUME = ("resume", "--no-report")
READERS = (
    "report",
    "export",
    "export --format json",
    "status",
    "resume",
    "resume --failed",
    "study peregrine",
    "export --format ablation",
)
KILLED = SLOW_RUN.replace(
    "fake = ",
    """
import os, signal
from cadge_results.store import writer
real, put = writer.put, []
def deadly(path, content, **named):
    if path.parent.name == "launches" and path.suffix == ".json":
        put.append(path)
        if len(put) == 4:
            os.kill(os.getpid(), signal.SIGKILL)
    real(path, content, **named)
writer.put = deadly
fake = """,
)


@pytest.fixture
def campaign(checkout: Checkout, cadge: Cadge, runner: FakeRunner) -> Campaign:
    """A finished campaign."""
    assert cadge(*RUN).code == 0
    runner.made.clear()
    return last(checkout)


def last(checkout: Checkout) -> Campaign:
    return Store(checkout.campaigns).open("last")


def record_of(campaign: Campaign, number: int) -> Path:
    return campaign.layout.launch(campaign.plan.launches[number].launch_id)


def truncate(path: Path) -> None:
    path.chmod(0o644)
    path.write_bytes(path.read_bytes()[:-100])


def named(answer: Answer, path: Path, campaign: Campaign) -> None:
    """Hold that a reader names the file and what to run, and that this is all it says."""
    assert (answer.code, answer.out) == (7, "")
    first, command = answer.err.splitlines()
    assert first.startswith(f"cadge: {path} is damaged: it ends early, after ")
    assert command == f"  cadge verify {campaign.path}"


def test_every_reader_names_the_file_and_the_command(ablating: Checkout, cadge: Cadge) -> None:
    assert cadge("run", "--sweep", "ablate-a", "--no-report").code == 0
    campaign = last(ablating)
    path = record_of(campaign, 5)
    truncate(path)
    before = sorted(file.name for file in campaign.path.rglob("*"))
    for command in READERS:
        named(cadge(*command.split()), path, campaign)
        output = ["-o", "/dev/null"] if "export" in command and "ablation" not in command else []
        document = json.loads(cadge(*command.split(), "--json", *output).out)
        assert (document["ok"], document["code"]) == (False, 7)
        assert document["problems"][1] == f"cadge verify {campaign.path}"
    assert sorted(file.name for file in campaign.path.rglob("*")) == before


@pytest.mark.parametrize("kind", ["csv", "jsonl"])
@pytest.mark.parametrize("number", [0, -1])
def test_a_table_that_stops_at_a_damaged_record_fails(
    ablating: Checkout, cadge: Cadge, monkeypatch: pytest.MonkeyPatch, kind: str, number: int
) -> None:
    """Rows are printed while they are read: those before the damage are whole, and the exit code says the rest."""
    monkeypatch.setattr(output, "LINES_AT_ONCE", 4)
    assert cadge("run", "--sweep", "ablate-a", "--no-report").code == 0
    campaign = last(ablating)
    export = ("export", "--format", kind, "--table", "samples")
    whole = cadge(*export).out.splitlines()
    path = record_of(campaign, number)
    truncate(path)
    answer = cadge(*export)
    lines = answer.out.splitlines()
    assert answer.code == 7
    assert lines == whole[: len(lines)]
    assert bool(lines) == (number == -1)
    assert answer.err.splitlines()[1] == f"  cadge verify {campaign.path}"
    assert f"cadge: {path} is damaged: it ends early, after " in answer.err


def test_the_status_of_a_sweep_without_a_title_is_told(campaign: Campaign, cadge: Cadge) -> None:
    """A plan keeps its sweep as it was written: of another version, or by another program, it may lack a title."""
    without_checksums(campaign)
    plan = json.loads(campaign.layout.plan.read_text())
    del plan["sweep"]["title"]
    plan["plan_hash"] = Plan.from_object(plan, source="t").expected_hash()
    campaign.layout.plan.write_text(json.dumps(plan))
    meta = json.loads(campaign.layout.meta.read_text())
    campaign.layout.meta.write_text(json.dumps(meta | {"plan_hash": plan["plan_hash"]}))
    document = json.loads(cadge("status", "--json").out)["data"]
    assert (document["sweep"], document["title"], document["state"]) == ("tiny", "", "finished")
    assert "sweep tiny\n" in cadge("status").out


def test_damaged_facts_of_a_host_stop_a_resume_before_it_measures(
    checkout: Checkout, cadge: Cadge, runner: FakeRunner
) -> None:
    runner.stop_after = 5
    assert cadge(*RUN).code == 6
    runner.stop_after = None
    campaign = last(checkout)
    node = campaign.layout.node("h1")
    with CampaignWriter.resume(campaign.path) as writer:
        writer.add_node(NodeFacts.from_object({"schema": "cadge.node/1", "host": "h1"}, source="t"))
    truncate(node)
    named(cadge(*RESUME), node, campaign)
    assert len(runner.made) == 5
    assert "facts of h1 come with the next launch there" in cadge("verify", "--repair").out
    assert cadge(*RESUME).code == 0


def test_verify_names_what_is_wrong(campaign: Campaign, cadge: Cadge) -> None:
    name = campaign.path.name
    answer = cadge("verify")
    assert (answer.code, answer.err) == (0, "")
    files = 3 + len(campaign.plan.launches) + len(campaign.plan.blocks)
    assert answer.out == f"campaign {name}: {files} files checked, none damaged\n"
    cut, flipped, gone, one, other = (record_of(campaign, number) for number in (1, 2, 3, 6, 7))
    truncate(cut)
    flipped.chmod(0o644)
    flipped.write_text(flipped.read_text().replace('"elapsed_ns":20000000', '"elapsed_ns":20000001', 1))
    gone.unlink()
    one.rename(one.with_name("held"))
    other.rename(one)
    one.with_name("held").rename(other)
    (campaign.path / "my notes").write_text("")
    for which in ("last", name, name[:16], str(campaign.path)):
        answer = cadge("verify", which)
        assert (answer.code, answer.err) == (7, "")
    lines = answer.out.splitlines()
    kinds = {line.split()[1]: line.split()[0] for line in lines if line.split()[1].startswith("launches/")}
    assert kinds == {
        f"launches/{path.name}": kind
        for path, kind in (
            (cut, "truncated"),
            (flipped, "changed"),
            (gone, "missing"),
            (one, "swapped"),
            (other, "swapped"),
        )
    }
    assert lines[5:] == [
        "note: my notes is not a file of Cadge, and is never read",
        f"campaign {name}: {files - 1} files checked, 5 damaged or missing",
        "move them aside, and repeat their launches:",
        f"  cadge verify --repair {campaign.path}",
        f"  cadge resume {campaign.path}",
    ]
    document = json.loads(cadge("verify", "--json").out)
    assert (document["ok"], document["code"], len(document["problems"])) == (False, 7, 5)
    assert {item["file"]: item["kind"] for item in document["data"]["damaged"]} == kinds


def test_repair_then_resume_gives_a_whole_campaign(
    campaign: Campaign, checkout: Checkout, cadge: Cadge, runner: FakeRunner
) -> None:
    paths = [record_of(campaign, number) for number in (0, 4, 11)]
    whole = {path.name: path.read_bytes() for path in campaign.layout.launches.iterdir()}
    for path in paths:
        truncate(path)
    damaged = [path.read_bytes() for path in paths]
    answer = cadge("verify", "--repair")
    assert (answer.code, answer.err) == (0, "")
    folder = campaign.layout.aside / "1-damaged"
    assert f"what is damaged is in {folder} now; nothing was removed\n" in answer.out
    assert answer.out.endswith(f"3 launches are missing; continue with: cadge resume {campaign.path}\n")
    assert [(folder / "launches" / path.name).read_bytes() for path in paths] == damaged
    assert cadge("verify").code == 0
    assert json.loads(cadge("status", "--json").out)["data"]["state"] == "interrupted"
    assert cadge(*RESUME).code == 0
    assert [campaign.layout.launch(name) for name in runner.made] == paths
    assert {path.name: path.read_bytes() for path in campaign.layout.launches.iterdir()} == whole
    assert last(checkout).meta.status == "finished"
    assert cadge("verify").out.endswith(" files checked, none damaged\n")
    assert cadge("report").code == 0
    page = campaign.layout.report.read_text()
    assert "3 launches were repeated" in page
    assert "3 launches because the stored record was damaged" in page
    assert cadge("verify", "--repair").code == 0, "a second time there is nothing to do"
    assert not (campaign.layout.aside / "2-damaged").exists()


def test_a_kill_between_checksum_and_record(checkout: Checkout, cadge: Cadge, runner: FakeRunner) -> None:
    """What is left is the checksum of a launch that is missing: resume makes it, and all is whole."""
    argv = [sys.executable, "-c", KILLED, str(Path(__file__).with_name("conftest.py")), *RUN]
    done = subprocess.run(argv, capture_output=True, check=False, timeout=100)
    assert done.returncode == -signal.SIGKILL, done.stderr
    campaign = last(checkout)
    have = {path.name for path in campaign.layout.launches.glob("[!.]*")}
    *stored, gone = (record_of(campaign, number) for number in range(4))
    records = {path.name for path in stored}
    assert have == records | {f"{name}.sha256" for name in {*records, gone.name}}
    answer = cadge("verify")
    assert answer.code == 7
    assert answer.out.splitlines()[0].split()[:2] == ["missing", f"launches/{gone.name}"]
    assert cadge(*RESUME).code == 0
    assert campaign.layout.launch(runner.made[0]) == gone
    assert cadge("verify").code == 0


def test_a_record_that_is_damaged_meanwhile_ends_the_campaign_in_order(
    checkout: Checkout, cadge: Cadge, runner: FakeRunner
) -> None:
    runner.stop_after = 3
    assert cadge(*RUN).code == 6
    campaign = last(checkout)
    runner.stop_after = None
    runner.before_launch = lambda number: truncate(record_of(campaign, 1)) if number == 5 else None
    answer = cadge(*RESUME)
    named(Answer(answer.code, answer.out, "\n".join(answer.err.splitlines()[-2:])), record_of(campaign, 1), campaign)
    assert last(checkout).meta.status == "interrupted"
    assert last(checkout).missing_launch_ids() == ()


def test_a_campaign_of_before_checksums(campaign: Campaign, cadge: Cadge) -> None:
    without_checksums(campaign)
    answer = cadge("verify")
    assert answer.code == 0
    files = 3 + len(campaign.plan.launches) + len(campaign.plan.blocks)
    assert f"note: {files} files have no checksum, as campaigns of earlier versions" in answer.out
    truncate(record_of(campaign, 5))
    named(cadge("report"), record_of(campaign, 5), campaign)
    assert cadge("verify").code == 7


def test_a_histogram_that_is_none_is_named(campaign: Campaign, cadge: Cadge) -> None:
    without_checksums(campaign)
    path = record_of(campaign, 5)
    path.write_text(path.read_text().replace('"histogram":"HISTFAAAACV4', '"histogram":"HISTFAAAACV5', 1))
    answer = cadge("report")
    assert answer.code == 7
    assert f"{path} is damaged: it does not fit its format: histogram" in answer.err
    assert cadge("verify").code == 7


def test_what_cannot_be_made_again_is_said(campaign: Campaign, cadge: Cadge) -> None:
    plan = campaign.layout.plan
    truncate(plan)
    for command in (("report",), RESUME, ("status",)):
        named(cadge(*command), plan, campaign)
    for command in (("verify",), ("verify", "--repair")):
        answer = cadge(*command)
        assert answer.code == 7
        assert answer.out.endswith("cannot be measured again; restore from a copy: plan.json\n")
    assert plan.exists()
    campaign.layout.meta.unlink()
    answer = cadge("verify", str(campaign.path))
    assert (answer.code, answer.out.splitlines()[0].split()[:2]) == (7, ["missing", "campaign.json"])
    answer = cadge("testbed", "restore", campaign.path.name)
    assert (answer.code, answer.err.splitlines()[0]) == (7, f"cadge: {campaign.layout.meta} is missing: no such file")


# -- resume --failed


def spoil(runner: FakeRunner, campaign_numbers: dict[str, str]) -> None:
    """Let some launches fail, or be unsound, by their places in the order."""

    def change(record: dict[str, object]) -> dict[str, object]:
        what = campaign_numbers.get(str(len(runner.made)))
        if what == "failed":
            return record | {"status": "failed", "reason": "peer lost", "reason_code": "DEADLINE", "result": None}
        if what == "unsound":
            return record | {"exit_codes": [139, 0]}
        return record

    runner.change = change


@pytest.fixture
def troubled(checkout: Checkout, cadge: Cadge, runner: FakeRunner) -> Campaign:
    """A finished campaign with a failed launch and an unsound one."""
    spoil(runner, {"2": "failed", "7": "unsound"})
    answer = cadge(*RUN)
    assert answer.code == 1
    campaign = last(checkout)
    assert f"repeat them with: cadge resume --failed {campaign.campaign_id}" in answer.out
    assert campaign.troubled_launch_ids() == tuple(campaign.plan.launches[number].launch_id for number in (2, 7))
    runner.made.clear()
    runner.change = lambda record: record
    return campaign


def test_failed_and_unsound_launches_are_made_again(troubled: Campaign, cadge: Cadge, runner: FakeRunner) -> None:
    names = troubled.troubled_launch_ids()
    before = {path: path.read_bytes() for path in troubled.layout.launches.iterdir()}
    assert "is complete" in cadge("resume").out, "without --failed they stay"
    answer = cadge(*RESUME, "--failed")
    assert answer.code == 0, answer.err
    folder = troubled.layout.aside / "1-failed"
    assert "2 launches have attempts that failed or are unsound; they are repeated" in answer.err
    assert f"the earlier records are in {folder}" in answer.err
    assert tuple(runner.made) == names
    again = {troubled.layout.launch(name) for name in names}
    for path, content in before.items():
        if path.with_suffix("" if path.suffix == ".sha256" else path.suffix) in again:
            assert (folder / "launches" / path.name).read_bytes() == content
        else:
            assert path.read_bytes() == content
    campaign = Campaign(troubled.path)
    outcomes = campaign.outcomes()
    refused = sum(1 for point in campaign.plan.points if point.state == "refused")
    assert len(outcomes) == refused + sum(len(launch.point_ids) for launch in campaign.plan.launches)
    assert {item.status for item in outcomes} == {"valid", "refused"}
    assert campaign.meta.status == "finished"
    assert cadge("verify").code == 0
    assert cadge("report").code == 0
    page = campaign.layout.report.read_text()
    assert "2 launches were repeated" in page
    assert "2 launches because attempts had failed or were unsound" in page
    valid = sum(item.status == "valid" for item in outcomes)
    assert f'<td data-v="{valid}" class="num">' in page.partition('data-outcome="valid"')[2].partition("</tr>")[0]
    runner.made.clear()
    assert "no launch is missing, has failed or is unsound" in cadge("resume", "--failed").out
    assert runner.made == []


def test_what_fails_again_is_kept_each_time(troubled: Campaign, cadge: Cadge, runner: FakeRunner) -> None:
    spoil(runner, {"0": "failed"})
    assert cadge(*RESUME, "--failed").code == 1
    runner.made.clear()
    runner.change = lambda record: record
    assert cadge(*RESUME, "--failed").code == 0
    assert len(runner.made) == 1
    assert sorted(path.name for path in troubled.layout.aside.iterdir()) == ["1-failed", "2-failed"]
    assert Campaign(troubled.path).made_again() == {
        "failed": {troubled.plan.launches[number].launch_id for number in (2, 7)}
    }


def test_a_stop_while_launches_are_made_again_can_be_resumed(
    troubled: Campaign, cadge: Cadge, runner: FakeRunner
) -> None:
    runner.stop_after = 1
    assert cadge(*RESUME, "--failed").code == 6
    assert "missing; continue with" in cadge("verify").out
    runner.stop_after = None
    assert cadge(*RESUME).code == 0
    assert len(runner.made) == 2
    assert Campaign(troubled.path).troubled_launch_ids() == ()
    assert cadge("verify").code == 0


def test_records_that_nodes_still_have_are_not_taken_for_new_ones(
    troubled: Campaign, cadge: Cadge, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A node that was not cleaned sends what it made before: it is cleaned first, with the records in their place."""
    (troubled.path / WORK).mkdir()
    seen: list[tuple[int, bool]] = []

    class Cleaning(FakeRunner):
        def __call__(self, testbed, blocks, campaign, *others):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN002, ANN204
            seen.append((sum(len(block["launches"]) for block in blocks), troubled.layout.aside.exists()))
            return super().__call__(testbed, blocks, campaign, *others)

    cleaning = Cleaning()
    monkeypatch.setattr(commands_run, "AnsibleRunner", lambda *_args, **_named: cleaning)
    assert cadge(*RESUME, "--failed").code == 0
    assert seen == [(0, False), (2, True)]
    assert Campaign(troubled.path).meta.status == "finished"
    (troubled.path / WORK).mkdir()
    seen.clear()
    cleaning.ended = CampaignEnd(ok=False, exit_code=4, clean=False, problems=("h2 cannot be reached",))
    assert cadge(*RESUME, "--failed").code == 4
    assert seen == [(0, True)]


def test_a_resume_with_nothing_to_make_ends_as_the_run_did(troubled: Campaign, cadge: Cadge) -> None:
    answer = cadge("resume")
    assert answer.code == 1
    assert f"repeat them with: cadge resume --failed {troubled.campaign_id}" in answer.out
    assert cadge(*RESUME, "--failed").code == 0
    assert cadge("resume").code == 0
