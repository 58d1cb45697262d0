# SPDX-License-Identifier: BSD-3-Clause
"""Launches in the order in which they ran: effects, drift and tags, computed by hand."""

from __future__ import annotations

import math
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pagereader
import pytest
import synthetic
from test_machine_probe import probed

from cadge_analysis import messages, report
from cadge_analysis.draw.scales import Axis
from cadge_analysis.draw.strips import ticked
from cadge_analysis.page.figures import strips
from cadge_analysis.page.figures.main_figure import figure_source
from cadge_analysis.page.figures.strips import strips_figure
from cadge_analysis.stats import load
from cadge_analysis.stats.load import Series
from cadge_analysis.stats.strips import LaunchEffect, drift, launches

NS = (1000, 1000, 1100, 1000, 2000)
"""What the launches of the rounds take; the median is 1,000."""


def _set(point: dict[str, Any], attempt: dict[str, Any], number: int) -> None:
    one = synthetic.flat(point)
    if one["kind"] != "layer":
        return
    if one["pattern"] == "stream":
        synthetic.set_rate(attempt, 1_000_000, NS[number] * 1000)
    else:
        synthetic.set_samples(attempt, [(NS[number] * (4 if one["size"] == 64 else 1), 5000)])
    attempt["warmup"]["steady"] = number != 1
    if number == 3 and one["size"] == 64:
        attempt |= {"status": "failed", "reason_code": "DEADLINE", "reason": "slow", "quantities": {}, "checks": []}
        for key in ("elapsed_ns", "operations", "bytes", "cpu", "executions", "verified", "warmup"):
            attempt[key] = None


OPTIONS = synthetic.Options(
    layers=("sockets-tcp", "native-ucx"),
    sizes=(8, 64, 512),
    places=("within",),
    waits=("poll",),
    patterns=(("rpc", 1), ("stream", 16)),
    launches=5,
    samples=200,
    troubles=False,
    attempt_hook=_set,
)


def test_an_effect_is_what_moved_all_points_of_a_launch(tmp_path: Path) -> None:
    ran = launches(load.read(synthetic.make(tmp_path, OPTIONS)))
    assert len(ran) == 10, "floors are no launches of layers"
    assert [one.started for one in ran] == sorted(one.started for one in ran)
    by_round = [ran[2 * n].effect for n in range(5)]
    assert by_round == pytest.approx([1.0, 1.0, 1.1, 1.0, 2.0], rel=0.01), "a rate of half is twice as slow"
    assert [(one.used, one.unsteady, one.rejected) for one in ran[2:8:2]] == [(6, 6, 0), (6, 0, 0), (4, 0, 2)]


def test_a_point_that_is_refused_in_every_launch_was_not_expected_to_give_a_number(tmp_path: Path) -> None:
    def refuse(point: dict[str, Any], attempt: dict[str, Any], number: int) -> None:
        one = synthetic.flat(point)
        _set(point, attempt, 0)
        if one["kind"] == "layer" and one["size"] == 512 and (one["pattern"] == "stream" or number == 2):
            attempt |= {
                "status": "refused",
                "reason_code": "NO_CAP",
                "reason": "cannot",
                "quantities": {},
                "checks": [],
            }
            for key in ("elapsed_ns", "operations", "bytes", "cpu", "executions", "verified", "warmup"):
                attempt[key] = None

    ran = launches(load.read(synthetic.make(tmp_path, replace(OPTIONS, attempt_hook=refuse))))
    assert [one.rejected for one in ran] == [0, 0, 0, 0, 1, 1, 0, 0, 0, 0], (
        "refused in one launch alone: a number was due"
    )


def _ran(effects: list[float | None]) -> list[LaunchEffect]:
    begin = datetime(2026, 11, 21, tzinfo=UTC)
    return [
        LaunchEffect(
            launch_id=str(n),
            series=Series("layer", "x", (), ()),
            place="within",
            wait="poll",
            started=begin + timedelta(minutes=n),
            effect=effect,
            used=1,
            disturbed=0,
            unsteady=0,
            rejected=0,
            probed={},
        )
        for n, effect in enumerate(effects)
    ]


def test_the_drift_is_the_median_slope_whatever_one_launch_does() -> None:
    effects: list[float | None] = [1.01**n for n in range(11)]
    found = drift(_ran(effects))
    assert found is not None
    assert (found.factor, found.low, found.high) == pytest.approx((1.01**10, 1.01**10, 1.01**10))
    effects[5] = 50.0
    spoiled = drift(_ran(effects))
    assert spoiled is not None
    assert spoiled.factor == pytest.approx(1.01**10)
    assert drift(_ran([1.0, None, 1.0, 1.0, 1.0, 1.0])) is None, "five launches are too few"


def test_the_drift_ends_where_launches_do_that_are_not_alone() -> None:
    effects: list[float | None] = [1.01**n for n in range(40)]
    ran = _ran([*effects, 1.0])
    late = [*ran[:40], replace(ran[40], started=ran[0].started + timedelta(minutes=100))]
    early = [replace(ran[40], started=ran[0].started - timedelta(minutes=60)), *ran[:40]]
    for launches_, apart in ((late, 1), (early, 1), (ran[:40], 0)):
        found = drift(launches_)
        assert found is not None
        assert found.factor == pytest.approx(1.01**39)
        assert (found.begin, found.end, found.apart) == (ran[0].started, ran[39].started, apart)


def test_of_very_many_launches_the_table_has_the_farthest_the_farthest_first() -> None:
    effects: list[float | None] = [1.0 + 0.2 * (n % 50) for n in range(200)]
    ran = [replace(one, rejected=n % 2) for n, one in enumerate(_ran(effects))]
    table = strips._table(ran, {one.launch_id: 0.0 for one in ran})
    shown = [float(row[4].removesuffix("\u00d7")) for row in table.rows]
    assert len(shown) == strips.TABLE_MAX
    assert shown[:5] == [10.8, 10.8, 10.8, 10.8, 10.6]
    assert shown == sorted(shown, reverse=True)


def test_the_interval_of_the_drift_is_that_of_ranks() -> None:
    """Six launches have 15 slopes; 1.96 sqrt(6 5 17 / 18) is 10.43, so that the 2nd lowest and highest are its ends."""
    logs = [0.0, 0.3, 0.1, 0.6, 0.2, 0.5]
    slopes = sorted((logs[j] - logs[i]) / (j - i) for i in range(6) for j in range(i + 1, 6))
    found = drift(_ran([math.exp(value) for value in logs]))
    assert found is not None
    assert math.log(found.factor) == pytest.approx(5 * slopes[7])
    assert (math.log(found.low), math.log(found.high)) == pytest.approx((5 * slopes[1], 5 * slopes[13]))


def test_the_figure_marks_and_tells_them(tmp_path: Path) -> None:
    path = tmp_path / "r.html"
    report.build(synthetic.make(tmp_path / "store", OPTIONS).path, path)
    figure = pagereader.read(path.read_text()).one("figure", id="fig-strips")
    rows = [[cell.text for cell in row.all("td")] for row in figure.one("tbody").all("tr")]
    assert [row[3] for row in rows[::2]] == ["1.00\u00d7", "1.00\u00d7", "1.10\u00d7", "1.00\u00d7", "2.00\u00d7"]
    assert [row[0] for row in rows[::2]] == ["0.00", "1.00", "2.00", "3.00", "4.00"], "minutes since the first"
    assert [row[6:8] for row in rows[2:8:2]] == [["6", "0"], ["0", "0"], ["0", "2"]]
    caption = figure.one("figcaption").text
    assert "more than half" in caption


@pytest.mark.parametrize(
    ("low", "high", "ticks"),
    [
        (0.7, 2.0, (0.8, 1.0, 1.25, 1.56, 1.95)),
        (0.3, 5.0, (0.5, 1.0, 2.0, 4.0)),
        (0.9, 1e5, (1.0, 16.0, 256.0, 4096.0, 65536.0)),
    ],
)
def test_ticks_of_a_ratio_are_as_far_above_one_as_below(low: float, high: float, ticks: tuple[float, ...]) -> None:
    assert ticked(Axis(low, high, (), log=True)).ticks == pytest.approx(ticks)


def test_two_launches_have_no_effects_but_a_machine_probe(tmp_path: Path) -> None:
    data = load.read(synthetic.make(tmp_path / "store", replace(OPTIONS, launches=2)))
    assert strips_figure(figure_source(data)) is None
    figure = strips_figure(figure_source(probed(data, lambda _: {"line_ns": 104.0})))
    assert figure is not None
    assert figure.caption == messages.say("figures", "strips.no_effects", samples_min=3, few="")
    assert figure.drawn == messages.say("figures", "strips.grey_marks", seen=["a bounced cache line"])
    assert ">within: machine probe<" in figure.svg
    assert ": effect<" not in figure.svg
    assert figure.keys == (), "nothing is drawn in the look of a layer"
