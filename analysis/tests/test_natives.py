# SPDX-License-Identifier: BSD-3-Clause
"""Cadge beside native tools: differences of rounds, their parts, what is left out, and what is said of them."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest
import synthetic

from cadge_analysis import report
from cadge_analysis.blocks.model import Region, Table
from cadge_analysis.messages import say
from cadge_analysis.stats import load
from cadge_analysis.stats.natives import NativePair, rows_of
from cadge_cli.cli import invoke
from cadge_cli.commands.crosscheck import Limits, over
from cadge_results import (
    Campaign,
    CampaignWriter,
    NativeAbsent,
    NativeCell,
    NativeFile,
    NativeReading,
    PlanPoint,
)
from cadge_results.store.verify import verify

ROUNDS, BATCH = 9, 64
TOOL_NS, ADAPTER_NS, LOOK_NS, DRIVER_NS = 500, 40, 15, 60
LATE = 7
"""The round in which everything takes half as long again."""


def drift(number: int) -> float:
    """The machine wanders, and both sides with it."""
    return 1.5 if number == LATE else 1 + number / 40


def exact(point: dict[str, Any], attempt: dict[str, Any], number: int) -> None:
    """Let Cadge take so much more than the tool, in each round of its own pace."""
    flat = synthetic.flat(point)
    extra = {"pingpong": ADAPTER_NS + LOOK_NS + DRIVER_NS, "postpoll": ADAPTER_NS}.get(flat["pattern"], 0)
    if flat.get("stamp") == "write+read":
        extra += LOOK_NS
    each_ns = TOOL_NS * drift(number) * (1 if flat["size"] == 8 else 4) + extra
    if flat["pattern"] == "msgrate":
        synthetic.set_rate(attempt, round(6e6 / drift(number)), 10**9, "rate")
    elif flat["pattern"] == "stream":
        synthetic.set_rate(attempt, round(9.5e9 / drift(number)), 10**9)
    elif flat["pattern"] == "postpoll":
        synthetic.set_samples(attempt, [(round(each_ns * BATCH), 400)], "batch")
    else:
        synthetic.set_samples(attempt, [(round(each_ns), 400)])


def made(folder: Path) -> Campaign:
    return synthetic.make(
        folder,
        synthetic.Options(
            layers=("native-ucx",),
            sizes=(8, 65536),
            places=("within",),
            waits=("poll",),
            patterns=(("pingpong", 1), ("postpoll", 1), ("stream", 16), ("msgrate", 64)),
            touches=("none",),
            given=({}, {"stamp": "write+read"}),
            launches=ROUNDS,
            samples=400,
            troubles=False,
            floors=False,
            attempt_hook=exact,
        ),
    )


def cell(campaign: Campaign, pattern: str, size: int, statistic: str = "p50") -> NativeCell:
    def size_is(point: PlanPoint) -> bool:
        return point.workload.integer("bytes") == size

    points = [point for point in campaign.plan.points if size_is(point)]
    own = next(point for point in points if point.workload.pattern == pattern)
    loops = {str(one.workload["stamp"]): one.point_id for one in points if one.workload.pattern == "postpoll"}
    beside = {"bare": loops["none"], "looking": loops["write+read"]} if pattern == "pingpong" and size == 8 else {}
    return NativeCell.model_validate(
        {
            "cell_id": f"{pattern} {size} {statistic}",
            "point_id": own.point_id,
            "tool": "a tool",
            "bytes": size,
            "statistic": statistic,
            "clocked": True,
            "beside": beside,
            "batch": BATCH,
        }
    )


def readings(of: NativeCell, waited: tuple[int, ...] = ()) -> list[NativeReading]:
    def value(number: int) -> float:
        if of.statistic == "rate":
            return 10e9 / drift(number)
        return TOOL_NS * drift(number) * (1 if of.bytes == 8 else 4)

    return [
        NativeReading(
            cell_id=of.cell_id,
            round=number,
            after="x",
            value=value(number),
            command="tool",
            wall_ns=(10**9, 10**9),
            run_wait_ns=(0, 10**8 if number in waited else 0),
        )
        for number in range(ROUNDS)
    ]


def rows(campaign: Campaign, cells: list[NativeCell], found: list[NativeReading]) -> list[NativePair]:
    file = NativeFile(schema_=NativeFile.schema_id(), rounds=ROUNDS, cells=tuple(cells), readings=tuple(found))
    return rows_of(campaign, file)


@pytest.fixture(scope="module")
def campaign(tmp_path_factory: pytest.TempPathFactory) -> Campaign:
    return made(tmp_path_factory.mktemp("natives"))


def test_the_tax_is_that_of_rounds_and_has_parts(campaign: Campaign) -> None:
    one = cell(campaign, "pingpong", 8)
    (row,) = rows(campaign, [one], readings(one))
    assert row.tax_ns is not None
    # histograms have three digits, and rounds differ by half of all: pairs do not
    assert row.tax_ns.value == pytest.approx(ADAPTER_NS + LOOK_NS + DRIVER_NS, abs=2)
    assert row.tax_ns.low is not None
    assert row.tax_ns.low > 100
    parts = {name: found.value for name, found in row.parts.items()}
    assert parts == pytest.approx({"driver": DRIVER_NS, "look": LOOK_NS, "adapter": ADAPTER_NS}, abs=2)
    assert row.says == "more"
    assert row.rounds == ROUNDS
    assert row.waited == 0


def test_larger_messages_and_rates_are_told_as_ratios(campaign: Campaign) -> None:
    large, stream = cell(campaign, "pingpong", 65536), cell(campaign, "stream", 65536, "rate")
    first, second = rows(campaign, [large, stream], readings(large) + readings(stream))
    assert first.slower is not None
    assert first.slower[0] == pytest.approx(1 + 115 / (4 * TOOL_NS * 1.1), abs=0.01)
    assert first.says == "more"  # 1.05 times, and 1.03 is the goal
    assert not first.parts
    assert second.ratio is not None
    assert math.exp(second.ratio.log_ratio) == pytest.approx(0.95, abs=1e-6)
    assert second.slower is not None
    assert second.slower[0] == pytest.approx(1 / 0.95, abs=1e-6)
    assert second.says == "more"  # 0.95, and 0.97 is the goal
    assert second.tax_ns is None


def test_messages_a_second_are_told_with_their_window(campaign: Campaign) -> None:
    rate, stream = cell(campaign, "msgrate", 8, "rate"), cell(campaign, "stream", 8, "rate")
    messages = [one.model_copy(update={"value": 8e6 / drift(one.round)}) for one in readings(rate)]
    of_messages, of_bytes = rows(campaign, [rate, stream], [*messages, *readings(stream)])
    assert (of_messages.does, of_messages.unit) == ("msgrate window 64", "messages/s")
    assert (of_bytes.does, of_bytes.unit) == ("stream window 16", "bytes/s")
    assert of_messages.slower is not None
    assert of_messages.slower[0] == pytest.approx(8 / 6, rel=1e-3)
    assert of_messages.says == "more"


def test_a_mean_is_left_out_where_a_process_waited_and_a_median_is_not(campaign: Campaign) -> None:
    means, medians = cell(campaign, "pingpong", 8, "mean"), cell(campaign, "pingpong", 8)
    found = rows(campaign, [means, medians], readings(means, (0, 4)) + readings(medians, (0, 4)))
    assert [(row.rounds, row.waited) for row in found] == [(ROUNDS - 2, 2), (ROUNDS, 2)]
    every = tuple(range(ROUNDS))
    (none,) = rows(campaign, [means], readings(means, every))
    assert none.says == "no figure"
    assert say("stats", "natives.all_disturbed") in none.reason


@pytest.mark.parametrize(
    ("statistic", "waited", "says"), [("p50", 3, "more"), ("p50", 4, "withheld"), ("mean", 3, "more")]
)
def test_nothing_is_concluded_where_more_than_a_fifth_of_what_counts_was_disturbed(
    campaign: Campaign, statistic: str, waited: int, says: str
) -> None:
    one = cell(campaign, "pingpong", 8, statistic)
    (row,) = rows(campaign, [one], readings(one, tuple(range(waited))))
    assert row.says == says
    limits = Limits(ns=90.0, share=0.03)
    assert bool(over(row, limits)) == (says == "more")
    large = cell(campaign, "pingpong", 65536, statistic)
    (row,) = rows(campaign, [large], readings(large, tuple(range(waited))))
    assert (row.says == "withheld") == (says == "withheld")
    assert bool(over(row, limits)) == (says == "more")


def test_too_few_rounds_say_nothing(campaign: Campaign) -> None:
    one = cell(campaign, "pingpong", 8)
    (row,) = rows(campaign, [one], readings(one)[:5])  # five cover 93.75 % at most
    assert row.says == "cannot tell"
    assert row.tax_ns is not None
    broken = [reading.model_copy(update={"value": None, "reason": "it broke"}) for reading in readings(one)]
    (row,) = rows(campaign, [one], broken)
    assert (row.says, row.reason) == ("no figure", "the tool: it broke")


def test_the_exit_code_has_a_threshold(campaign: Campaign, capsys: pytest.CaptureFixture[str]) -> None:
    cells = [cell(campaign, "pingpong", 8), cell(campaign, "stream", 65536, "rate")]
    found = NativeFile(
        schema_=NativeFile.schema_id(),
        rounds=ROUNDS,
        cells=tuple(cells),
        absent=(NativeAbsent(tool="other", layers=("native-ucx",), reason="not here: apt install other"),),
        readings=tuple(reading for one in cells for reading in readings(one)),
    )
    with CampaignWriter.resume(campaign.path) as writer:
        writer.put_native(found)

    def call(*options: str) -> tuple[int, str]:
        where = ["--results", str(campaign.path.parent), *options]
        code = invoke(["crosscheck", campaign.path.name, *where])
        return code, capsys.readouterr().out

    code, text = call()
    assert code == 0
    assert "apt install other" in text
    assert "+115" in text
    assert call("--threshold", "200ns", "--threshold", "8%")[0] == 0
    assert call("--threshold", "90ns")[0] == 8
    assert call("--threshold", "3%")[0] == 8
    assert call("--threshold", "three")[0] == 2
    assert call("--rounds", "3")[0] == 2  # nothing is measured with a campaign
    code, text = call("--json", "--threshold", "3%")
    answer = json.loads(text)
    assert (code, answer["code"]) == (8, 8)
    assert "at least 1.05" in answer["problems"][0]
    assert [row["says"] for row in answer["data"]["crosscheck"]["rows"]] == ["more", "more"]
    assert call("--format", "markdown")[1].startswith("**Cadge and native tools**\n\n| layer | measured |")
    assert verify(campaign).strangers == []


def test_a_report_has_a_row_for_each_pair(campaign: Campaign) -> None:
    of = cell(campaign, "pingpong", 8)
    found = NativeFile(
        schema_=NativeFile.schema_id(), rounds=ROUNDS, cells=(of,), absent=(), readings=tuple(readings(of))
    )
    with CampaignWriter.resume(campaign.path) as writer:
        writer.put_native(found)
    page = report.page_of(load.read(campaign))
    (section,) = (one for one in page.blocks if isinstance(one, Region) and one.id == "natives")
    tables = [one for one in section.blocks if isinstance(one, Table)]
    assert [len(one.lines) for one in tables] == [1, 1], "the pair, and the parts of its difference"
    assert tables[0].lines[0].cells[0].spans[0].text == "native-ucx"
