# SPDX-License-Identifier: BSD-3-Clause
"""`cadge report` of a campaign that has nothing yet, and its editions without figures."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from cadge_harness.paths import Checkout
from cadge_harness.testbed import testbeds
from cadge_results import Store

from .conftest import TINY, Answer, FakeRunner, make_testbed
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


def test_the_hosts_that_are_used_are_named(
    checkout: Checkout, cadge: Cadge, runner: FakeRunner, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a thousand hosts, two: in the plan, the report's head and the export."""
    assert runner
    many = make_testbed(hosts=1000)
    monkeypatch.setattr(testbeds, "resolve", lambda *_args, **_named: many)
    (checkout.sweeps / "tiny.yml").write_text(TINY + "places: between\nlayers: [a-one]\nfloors: false\n")
    assert "(2 of 1,000 hosts: h1, h2), seed" in cadge("plan", "--sweep", "tiny").out
    assert cadge("run", "--sweep", "tiny", "--no-report").code == 0
    text = cadge("report", "--format", "text").out
    assert re.search(r"2 of 1.000 hosts\b", text), text[:600]
    assert "h3" not in text
    (row,) = csv.DictReader(io.StringIO(cadge("export", "--table", "campaigns").out))
    assert (row["hosts"], row["hosts_used"]) == ("1000", "h1 h2")
