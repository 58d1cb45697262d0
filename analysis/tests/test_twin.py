# SPDX-License-Identifier: BSD-3-Clause
"""A against A: counted and judged as all others are, and never a competitor."""

from __future__ import annotations

import io
import json
import random
from collections.abc import Callable, Collection
from dataclasses import replace
from itertools import product
from math import comb
from pathlib import Path
from typing import Any

import pytest
from pageparts import limits
from scipy.stats import binom
from synthetic import Options, make, set_samples

from cadge_analysis import export, messages, report
from cadge_analysis.judged import judged
from cadge_analysis.messages import say
from cadge_analysis.page.parts.coverage import outcomes
from cadge_analysis.page.parts.itself import itself
from cadge_analysis.page.parts.remarks import remarks
from cadge_analysis.page.views import of_campaign, page
from cadge_analysis.selftest.pooled import alike
from cadge_analysis.stats.compare import compare
from cadge_analysis.stats.inference.plan_power import families_of
from cadge_analysis.stats.inference.sequential import FOUR_LOOKS, fixed
from cadge_analysis.stats.inference.verdict import Verdict
from cadge_analysis.stats.knee import loads
from cadge_analysis.stats.load import read
from cadge_analysis.stats.twin import TwinRate, called_at_most, caught_from, twin_cells, twin_rate
from cadge_results import Campaign

SIZES = (8, 64, 4096, 65536)
LAUNCHES = 9
NINE = 2 * (1 + 9) / 512  # at most one of nine on the smaller side


def steady(differ: Collection[tuple[str, int]]) -> Callable[[dict[str, Any], dict[str, Any], int], None]:
    """Return what lets twins be slower in every round in these cells, and to and fro in all others."""

    def hook(point: dict[str, Any], attempt: dict[str, Any], number: int) -> None:
        subject, size = point["subject"], point["workload"]["parameters"]["request_bytes"]
        value = (2000 if subject["layer"] == "am-ucx" else 3000) + [0, 40, 10, 30, 20][number % 5]
        if subject.get("twin"):
            slower = (subject["place"], size) in differ or number % 2
            value += 100 if slower else -100
        set_samples(attempt, [(value, 100)])

    return hook


OPTIONS = Options(
    layers=("am-ucx", "sockets-tcp"),
    twins=("sockets-tcp",),
    launches=LAUNCHES,
    sizes=SIZES,
    waits=("poll",),
    patterns=(("rpc", 1),),
    samples=100,
    floors=False,
    troubles=False,
)


def made(root: Path, differ: Collection[tuple[str, int]] = (), options: Options = OPTIONS) -> Campaign:
    return make(root, replace(options, attempt_hook=steady(differ)))


@pytest.fixture(scope="module")
def calm(tmp_path_factory: pytest.TempPathFactory) -> Campaign:
    """A campaign in which two of eight cells differ from themselves."""
    return made(tmp_path_factory.mktemp("calm"), [("within", 8), ("between", 64)])


def test_how_many_were_called(calm: Campaign) -> None:
    comparison = compare(read(calm))
    verdicts = judged(comparison)
    rate = twin_rate(comparison, verdicts)
    assert rate == TwinRate(
        series=comparison.data.layers[1:],
        cells=2 * len(SIZES),
        called=2,
        nominal=NINE,
        quantile_999=3,
        after_correction=2,
        error=0.05,
        launches=(LAUNCHES,),
    )
    assert not rate.withhold
    assert not verdicts.withheld
    cells = {(one.cell.case.place, one.cell.case.size): one for one in twin_cells(comparison, verdicts)}
    assert cells.keys() == set(product(("within", "between"), SIZES))
    assert cells["within", 8].p <= 2 / 512
    assert cells["within", 8].log_ratio > 0 > cells["within", 64].log_ratio  # five of nine rounds are even
    assert cells["within", 64].p == 1
    assert {one.level for one in cells.values()} == {NINE}


def test_verdicts_are_withheld_where_a_layer_differs_from_itself(tmp_path: Path) -> None:
    differ = [(place, size) for place in ("within", "between") for size in SIZES[:2]]
    campaign = made(tmp_path, differ)
    comparison = compare(read(campaign))
    verdicts = judged(comparison)
    rate = twin_rate(comparison, verdicts)
    assert rate is not None
    assert (rate.called, rate.quantile_999, rate.withhold) == (4, 3, True)
    assert rate.after_correction == 4, "two of four with a p of 0.0039 each, where 2 x 0.05 / (4 x 2.08) would do"
    why = messages.say("stats", "twin.differs_from_itself", names="sockets-tcp", of_what="", called=4, cells=8, limit=3)
    assert verdicts.withheld.startswith(why)
    assert {one.says for one in verdicts.by_point.values()} <= {Verdict.UNKNOWN}
    assert all(group.best is None for group in verdicts.groups.values())
    found = [
        one for one in remarks(comparison, loads(comparison), rate) if one.serious and one.key == "differs_from_itself"
    ]
    assert [one.text.startswith(f"Verdicts are withheld: {why}") for one in found] == [True]
    stops = [one for one in limits(page(comparison, of_campaign(generated="now"))) if one.stops]
    assert [(one.title, one.size) for one in stops] == [(found[0].title, say("remarks", "differs_from_itself.size"))]


@pytest.mark.parametrize(("cells", "limit"), [(8, 3), (60, 8), (200, 19)])
def test_which_rate_would_have_been_caught(cells: int, limit: int) -> None:
    rate = caught_from(cells, limit)
    assert rate is not None
    over, under = (binom.sf(limit, cells, one) for one in (rate, rate - 0.01))
    assert over >= 0.8 > under
    chance = random.Random(2)
    campaigns = [sum(chance.random() < rate for _ in range(cells)) > limit for _ in range(2000)]
    assert sum(campaigns) / 2000 == pytest.approx(over, abs=0.03)
    assert caught_from(cells, cells) is None


def test_a_twin_competes_nowhere(calm: Campaign, tmp_path: Path) -> None:
    without = made(tmp_path, options=replace(OPTIONS, twins=()))
    both = [compare(read(one)) for one in (calm, without)]
    assert len(both[0].data.twins) == 2 * len(SIZES)
    assert not both[1].data.twins
    rows = [{(row.cell.point_id, row.numbers.central) for row in one.rows} for one in both]
    assert rows[0] == rows[1]
    verdicts = [judged(one) for one in both]
    assert verdicts[0].groups == verdicts[1].groups
    assert verdicts[0].by_point.keys() == verdicts[1].by_point.keys()
    assert families_of(calm.plan) == families_of(without.plan)
    assert twin_rate(both[1], verdicts[1]) is None
    out = tmp_path / "report.html"
    report.build(calm.path, out)
    assert "(again)" not in out.read_text()
    fact = itself(both[1].data, None)[0]
    assert fact.text.startswith(say("remarks", "itself.no_twin"))


def test_nothing_that_was_planned_of_a_twin_is_out_of_sight(tmp_path: Path) -> None:
    campaign = made(tmp_path, options=replace(OPTIONS, drop_launches=4, status="interrupted"))
    comparison = compare(read(campaign))
    lines = outcomes(comparison.data).lines
    assert sum(int(line.cells[1].raw) for line in lines) == len(campaign.plan.points)
    attempts = sum(len(launch.point_ids) for launch in campaign.plan.launches)
    assert sum(int(line.cells[2].raw) for line in lines) == attempts
    missing = [one.text for one in remarks(comparison, loads(comparison)) if "missing" in one.text]
    assert f"{4 * len(SIZES)} planned attempts are missing" in missing[0]


def test_too_few_launches_say_nothing(tmp_path: Path) -> None:
    comparison = compare(read(made(tmp_path, [("within", 8)], replace(OPTIONS, launches=5))))
    rate = twin_rate(comparison, judged(comparison))
    assert rate is not None
    assert (rate.called, rate.nominal, rate.quantile_999, rate.withhold) == (0, 0.0, 0, False)


def test_export_has_them_apart(calm: Campaign) -> None:
    stream = io.StringIO()
    export.write(calm, "json", stream)
    said = json.loads(stream.getvalue())
    assert len(said["rows"]) == 2 * 2 * len(SIZES)
    assert len(said["twins"]) == 2 * len(SIZES)
    assert {row["layer"] for row in said["twins"]} == {"sockets-tcp"}
    assert said["a_against_a"]["series"] == ["sockets-tcp"]
    assert (said["a_against_a"]["called"], said["a_against_a"]["withhold"]) == (2, False)


def test_a_campaign_in_which_all_are_measured_twice(tmp_path: Path) -> None:
    campaign = made(tmp_path, [("within", 8)], replace(OPTIONS, twins=("am-ucx", "sockets-tcp")))
    found = alike(campaign, disturbed=True)
    assert (len(found.cells), found.called, found.disturbed) == (4 * len(SIZES), 2, True)
    assert {(level, launches) for _, _, level, launches in found.cells} == {(NINE, LAUNCHES)}
    assert len({family for family, _, _, _ in found.cells}) == 2
    comparison = compare(read(campaign))
    told = itself(comparison.data, twin_rate(comparison, judged(comparison)))[0].text
    assert told.startswith("am-ucx and sockets-tcp ran twice")


@pytest.mark.parametrize(("cells", "level"), [(1, NINE), (12, NINE), (200, NINE), (1000, NINE), (40, 0.0309)])
def test_the_limit_is_the_binomial_quantile(cells: int, level: float) -> None:
    limit = called_at_most([level] * cells, 0.999)

    def at_most(called: int) -> float:
        return sum(comb(cells, k) * level**k * (1 - level) ** (cells - k) for k in range(called + 1))

    assert at_most(limit) >= 0.999 > at_most(limit - 1)


def test_levels_may_differ() -> None:
    """By all ways in which each cell is called or not."""
    levels = [NINE, NINE, 0.3, 0.5, 0.0]
    chances = [0.0] * (len(levels) + 1)
    for ways in product((0, 1), repeat=len(levels)):
        chance = 1.0
        for one, level in zip(ways, levels, strict=True):
            chance *= level if one else 1 - level
        chances[sum(ways)] += chance
    for share in (0.5, 0.9, 0.99, 0.999):
        limit = called_at_most(levels, share)
        assert sum(chances[: limit + 1]) >= share > sum(chances[:limit])
    assert called_at_most([0.0] * 3, 0.999) == 0


def test_what_a_test_attains() -> None:
    assert fixed(9).attained(0, 0.05) == NINE
    assert fixed(5).attained(0, 0.05) == 0


def test_a_look_spends_its_share() -> None:
    """Nine launches of four looks are wrong in 0.4 %, not in the 5 % that all four may spend."""
    assert FOUR_LOOKS.attained(0, 0.05) == 2 / 512
    every = [FOUR_LOOKS.attained(look, 0.05) for look in range(4)]
    assert every == sorted(every)
    assert sum(every) < 0.05
