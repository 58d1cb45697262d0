# SPDX-License-Identifier: BSD-3-Clause
"""`cadge report` of a campaign that has nothing yet."""

from __future__ import annotations

import json
from collections.abc import Callable

from cadge_harness.paths import Checkout
from cadge_results import Store

from .conftest import Answer, FakeRunner

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
