# SPDX-License-Identifier: BSD-3-Clause
"""Launches that other work on the machine disturbed: made again where a sweep or the user asks for it, and said."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection

import pytest

from cadge_harness.paths import Checkout
from cadge_results import Campaign, Store

from .conftest import Answer, FakeRunner

Cadge = Callable[..., Answer]
RUN = ("run", "--sweep", "tiny", "--no-report")
pytestmark = pytest.mark.spare


def use(run_wait_ns: int) -> dict[str, int]:
    counters = ("user_ns", "system_ns", "voluntary_switches", "involuntary_switches", "minor_faults", "major_faults")
    return dict.fromkeys(counters, 0) | {"wall_ns": 20_000_000, "run_wait_ns": run_wait_ns, "stolen_ns": 0}


def hinder(runner: FakeRunner, which: Callable[[int], bool], *, failed: Collection[int] = ()) -> None:
    """Let the first attempt of some launches wait for a processor for a tenth of its time, by their numbers."""

    def change(record: dict[str, object]) -> dict[str, object]:
        number = len(runner.made)
        document = json.loads(json.dumps(record))
        for order, attempt in enumerate(document["result"]["attempts"]):
            attempt["cpu"] = [use(2_000_000 if order == 0 and which(number) else 0), use(0)]
        if number in failed:
            document["exit_codes"] = [139, 0]
        return dict(document)

    runner.change = change


def last(checkout: Checkout) -> Campaign:
    return Store(checkout.campaigns).open("last")


@pytest.fixture
def checkout(checkout: Checkout) -> Checkout:
    """The same with a sweep of twelve launches."""
    sweep = checkout.harness / "sweeps/tiny.yml"
    sweep.write_text(sweep.read_text() + "floors: false\n")
    return checkout


@pytest.fixture
def repeating(checkout: Checkout) -> Checkout:
    """One whose sweep lets disturbed launches be repeated twice."""
    sweep = checkout.harness / "sweeps/tiny.yml"
    sweep.write_text(sweep.read_text() + "repeat_disturbed: 2\n")
    return checkout


def test_a_sweep_asks_for_it(repeating: Checkout, cadge: Cadge, runner: FakeRunner) -> None:
    hinder(runner, lambda number: number in {1, 3})
    answer = cadge(*RUN)
    assert answer.code == 0, answer.err
    campaign = last(repeating)
    planned = [launch.launch_id for launch in campaign.plan.launches]
    assert runner.made == [*planned, planned[1], planned[3]], "once was enough, and the others stay"
    folder = campaign.layout.aside / "1-disturbed"
    assert {path.stem for path in (folder / "launches").glob("*.json")} == {planned[1], planned[3]}
    assert "2 launches have attempts that other work on the machine disturbed; they are repeated" in answer.err
    assert "--disturbed" not in answer.out
    assert campaign.meta.status == "finished"
    assert cadge("verify").code == 0
    assert cadge("report").code == 0
    page = campaign.layout.report.read_text()
    assert "2 launches were repeated" in page
    assert "2 launches because other work on the machine disturbed attempts" in page


def test_it_ends_where_the_machine_stays_busy(repeating: Checkout, cadge: Cadge, runner: FakeRunner) -> None:
    hinder(runner, lambda _number: True)
    answer = cadge(*RUN, "--json")
    campaign = last(repeating)
    count = len(campaign.plan.launches)
    assert (answer.code, len(runner.made)) == (0, 3 * count)
    assert json.loads(answer.out)["data"]["disturbed_launches"] == count
    assert {path.name for path in campaign.layout.aside.iterdir()} == {"1-disturbed", "2-disturbed"}
    assert {item.status for item in campaign.outcomes()} == {"valid", "refused"}, "nothing is dropped"


def test_what_was_stopped_goes_on_where_it_was(repeating: Checkout, cadge: Cadge, runner: FakeRunner) -> None:
    hinder(runner, lambda _number: True)
    count = 12
    runner.stop_after = count + 2
    assert cadge(*RUN).code == 6
    campaign = last(repeating)
    assert len(campaign.plan.launches) == count
    assert len(campaign.missing_launch_ids()) == count - 2
    runner.stop_after = None
    runner.made.clear()
    assert cadge("resume", "--no-report").code == 0
    assert len(runner.made) == count - 2 + count


def test_a_sweep_that_does_not_ask_keeps_them(checkout: Checkout, cadge: Cadge, runner: FakeRunner) -> None:
    hinder(runner, lambda number: number in {1, 3}, failed={3})
    answer = cadge(*RUN)
    campaign = last(checkout)
    planned = [launch.launch_id for launch in campaign.plan.launches]
    assert (answer.code, runner.made) == (1, planned)
    for why, what in (("failed", "failed or are unsound"), ("disturbed", "other work on the machine disturbed")):
        advice = f"1 launch has attempts that {what}; repeat it with: cadge resume --{why} {campaign.campaign_id}"
        assert advice in answer.out
    runner.made.clear()
    runner.change = lambda record: record
    assert cadge("resume", "--disturbed", "--failed", "--no-report").code == 0
    assert runner.made == [planned[1], planned[3]]
    assert {path.name for path in campaign.layout.aside.iterdir()} == {"1-failed", "2-disturbed"}
    said = cadge("resume", "--disturbed", "--failed").out
    assert "is complete: no launch is missing, has failed, is unsound or was disturbed" in said
    assert "is complete: no launch is missing or was disturbed" in cadge("resume", "--disturbed").out


def test_more_repeats_than_are_good(checkout: Checkout, cadge: Cadge) -> None:
    sweep = checkout.harness / "sweeps/tiny.yml"
    sweep.write_text(sweep.read_text() + "repeat_disturbed: 10\n")
    answer = cadge(*RUN)
    assert answer.code == 2
    assert "repeat_disturbed" in answer.err
