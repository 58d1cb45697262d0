# SPDX-License-Identifier: BSD-3-Clause
"""The ablation: which series belong together, ratios paired by round, and what can be told apart from 1."""

from __future__ import annotations

import json
from pathlib import Path

import ablated
import pytest
import synthetic
from arithmetic import ratio_spread

from cadge_analysis import messages
from cadge_analysis.errors import NoDataError
from cadge_analysis.page.parts.ablation_table import answer
from cadge_analysis.stats import compare, load
from cadge_analysis.stats.ablation import Ablation, ablations, sizes
from cadge_results import Campaign
from cadge_results.formats.histogram import decode


@pytest.fixture(scope="module")
def campaign(tmp_path_factory: pytest.TempPathFactory) -> Campaign:
    return ablated.make(tmp_path_factory.mktemp("ablated"))


@pytest.fixture(scope="module")
def found(campaign: Campaign) -> tuple[Ablation, ...]:
    return ablations(compare.compare(load.read(campaign)))


def test_every_layer_place_and_size_has_its_variants_in_the_order_of_the_sweep(found: tuple[Ablation, ...]) -> None:
    assert [(one.base.layer, one.case.place, one.case.size) for one in found] == [
        (layer, place, size) for layer in ablated.LAYERS for place in ("within", "between") for size in (8, 1024)
    ]
    for one in found:
        assert one.setting == "off"
        assert one.base.settings == ()
        assert tuple(variant.value for variant in one.variants) == ablated.OFF


def test_one_ratio_worked_out_from_the_raw_records(campaign: Campaign, found: tuple[Ablation, ...]) -> None:
    by_round: dict[str, dict[int, float]] = {"": {}, "templates": {}}
    rounds = {launch.launch_id: launch.round for launch in campaign.plan.launches}
    for record in campaign.launches():
        off = record.launch.subject.setting("off") or ""
        if (record.launch.layer, record.launch.place) != ("peregrine-udp", "between") or off not in by_round:
            continue
        assert record.result is not None
        (attempt,) = (a for a in record.result.attempts if a.workload["request_bytes"] == 1024)
        (samples,) = attempt.samples("latency")
        (value,) = decode(samples.histogram).highs  # one value alone: it is the p50
        by_round[off][rounds[record.launch.launch_id]] = value
    ratios = [by_round["templates"][n] / by_round[""][n] for n in range(12)]
    one = next(o for o in found if (o.base.layer, o.case.place, o.case.size) == ("peregrine-udp", "between", 1024))
    ratio = next(v for v in one.variants if v.value == "templates").ratio
    assert ratio is not None
    assert ratio.paired
    numbers, covered = ratio_spread(ratios)
    assert [ratio.value, ratio.low, ratio.high] == pytest.approx(numbers)
    assert ratio.value == pytest.approx(1.2, rel=0.002)
    assert ratio.coverage == pytest.approx(covered)


def test_only_what_stands_up_to_its_family_differs(found: tuple[Ablation, ...]) -> None:
    for one in found:
        differs = {v.value: v.differs for v in one.variants if v.ratio is not None}
        if differs:
            assert differs == {"gather": False, "templates": True, "all": True}


def test_what_was_refused_is_there_without_numbers(found: tuple[Ablation, ...]) -> None:
    refused = [one for one in found if (one.base.layer, one.case.place) == ("peregrine-shm", "between")]
    assert len(refused) == 2
    for one in refused:
        assert one.numbers is None
        assert all(variant.ratio is None and not variant.differs for variant in one.variants)


def test_a_family_is_a_setting_with_a_pattern_at_a_place(found: tuple[Ablation, ...]) -> None:
    """Of both layers within a host, of one between two: three values at two sizes each."""
    assert sizes(found) == {("off", "rpc", "within", "poll"): 12, ("off", "rpc", "between", "poll"): 6}


def test_few_launches_tell_nothing_apart(tmp_path: Path) -> None:
    found = answer(ablated.make(tmp_path, launches=4))
    assert found.note == messages.say("report", "ablation_table.few_launches", least=6)
    assert not any("*" in cell for table in found.tables for row in table.rows for cell in row)
    assert found.data["differ"] == 0


def test_the_table(campaign: Campaign) -> None:
    found = answer(campaign)
    assert len(found.tables) == 4
    assert found.note.startswith("* ")
    assert "18 ratios, in 2 families" in found.note
    within = found.tables[0]
    assert within.title.startswith("peregrine-shm, within one host, polling, RPC: p50, \u00b5s")
    assert within.rows[0] == ("off", "8 B", "1 KiB")
    assert [row[0] for row in within.rows[1:]] == ["(default)", *ablated.OFF]
    assert within.rows[3][1] == "1.20\u00d7 [1.20, 1.20] *"
    assert within.rows[2][1].endswith("[0.900, 1.10]")
    assert found.tables[1].rows == ()
    assert found.tables[1].remarks == ("peregrine-shm runs only within one host",)


def test_records_are_json_with_a_reason_where_there_is_no_ratio(campaign: Campaign) -> None:
    data = json.loads(json.dumps(answer(campaign).data, allow_nan=False))
    assert len(data["rows"]) == 2 * 2 * 2 * 3
    for row in data["rows"]:
        assert (row["ratio"] is None) == (row["reason"] is not None) == (row["differs"] is None)
        assert (row["p"] is None) == (row["level"] is None) == (row["ratio"] is None)
        if row["ratio"] is not None:
            assert row["differs"] == (row["p"] <= row["level"])
            assert row["ratio_low"] <= row["ratio"] <= row["ratio_high"]
            assert (
                row["default_latency_p50_low_ns"] <= row["default_latency_p50_ns"] <= row["default_latency_p50_high_ns"]
            )


def test_a_second_setting_beside_the_first_is_compared_with_that_one_alone(tmp_path: Path) -> None:
    settings = ({}, {"off": "all"}, {"rto_min_us": "500"}, {"off": "all", "rto_min_us": "500"})
    made = ablated.make(tmp_path, settings=settings, layers=("peregrine-udp",), places=("within",), sizes=(8,))
    pairs = {
        (one.base.settings, one.setting, tuple(v.value for v in one.variants))
        for one in ablations(compare.compare(load.read(made)))
    }
    assert pairs == {
        ((), "off", ("all",)),
        ((), "rto_min_us", ("500",)),
        ((("off", "all"),), "rto_min_us", ("500",)),
        ((("rto_min_us", "500"),), "off", ("all",)),
    }


def test_a_campaign_without_variants_says_so(tmp_path: Path) -> None:
    plain = synthetic.Options(
        layers=("sockets-tcp",), sizes=(8,), places=("within",), waits=("poll",), patterns=(("rpc", 1),), samples=100
    )
    with pytest.raises(NoDataError, match="has no layer both with and without a setting"):
        answer(synthetic.make(tmp_path, plain))
