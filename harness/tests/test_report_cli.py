# SPDX-License-Identifier: BSD-3-Clause
"""`cadge report` of a campaign that has nothing yet, and its editions without figures."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

from cadge_harness.paths import Checkout
from cadge_results import Store

from .conftest import Answer, FakeRunner
from .test_learn import carry_out

Cadge = Callable[..., Answer]


def test_a_campaign_without_launches_has_a_report_that_says_so(
    checkout: Checkout, cadge: Cadge, runner: FakeRunner
) -> None:
    runner.stop_after = 0
    assert cadge("run", "--sweep", "tiny", "--layers", "a-one", "--no-report").code == 6
    campaign = Store(checkout.campaigns).open("last")
    assert not campaign.launch_ids()
    answer = cadge("report", "--json")
    assert answer.code == 0, answer.err
    page = campaign.layout.report.read_text(encoding="utf-8")
    assert json.loads(answer.out)["data"]["report"] == str(campaign.layout.report)
    assert "Nothing was measured: no launch of " in page
    assert f"`cadge resume {campaign.campaign_id}` makes them." in page


def test_editions_without_figures_go_to_stdout_or_into_a_file(
    checkout: Checkout, cadge: Cadge, runner: FakeRunner, tmp_path: Path
) -> None:
    assert runner
    carry_out(cadge, checkout)
    campaign = Store(checkout.campaigns).open("last")
    made = campaign.layout.report.exists()
    answer = cadge("report", "--format", "text")
    assert answer.code == 0, answer.err
    assert answer.out.splitlines()[1].startswith("====")
    paths = [line for line in answer.out.splitlines() if str(checkout.root) in line]  # one word of the command each
    assert max(len(line) for line in answer.out.splitlines() if line not in paths) <= 100
    assert campaign.layout.report.exists() == made, "only the HTML edition has a place in the campaign"
    answer = cadge("report", "--format", "markdown", "-o", str(tmp_path / "r.md"))
    assert answer.code == 0, answer.err
    assert answer.out.startswith(f"{tmp_path / 'r.md'}\n")
    assert (tmp_path / "r.md").read_text(encoding="utf-8").startswith("# ")
    answer = cadge("report", "--format", "markdown", "--json")
    assert answer.code == 2
    assert "so the markdown edition needs a file: add -o FILE" in answer.err + answer.out
    answer = cadge("report", "--verify", str(tmp_path / "r.md"), "--format", "text")
    assert answer.code == 2
    assert "--format is not for --verify" in answer.err
