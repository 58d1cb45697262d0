# SPDX-License-Identifier: BSD-3-Clause
"""The parts of a self-test on campaigns whose truth is known: what is there is found, what is not is not passed."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from synthetic import Options, make, set_samples

from cadge_analysis.messages import say
from cadge_analysis.selftest.drift import _covered, together
from cadge_analysis.selftest.findings import of_delays, of_quiet, of_stall, plants, series_within
from cadge_analysis.selftest.pinned import sentence, standing, warning, withholds
from cadge_analysis.selftest.planted import planted, send_ns
from cadge_analysis.selftest.quiet import quiet
from cadge_analysis.stats.inference.serial import Serial
from cadge_analysis.stats.load import read
from cadge_results import Campaign, SelftestPin

USUAL, LONG = "100", "200"
ROUND_TRIP_NS = 700
LAUNCHES = 30


def spinning(
    point: dict[str, Any], attempt: dict[str, Any], _: int, *, counted: float = 1.0, real: float = 1.0
) -> None:
    """Let a round trip be longer by both spins, and let the shim count them; both may be made to lie."""
    spun_ns = 2 * int(point["subject"]["settings"]["delay.send_ns"])
    chance = random.Random(attempt["attempt_id"] + str(attempt["quantities"]))
    value = round(ROUND_TRIP_NS + real * spun_ns + chance.gauss(0, 30))
    attempt["operations"] = 1000
    set_samples(attempt, [(value, 1000)])
    attempt["counters"] = [{"delay.worked_ns": round(counted * spun_ns * 1000)}]


WITHIN = Options(places=["within"], waits=["poll"], floors=False)


def delays(root: Path, **lies: float) -> Campaign:
    return make(
        root,
        replace(
            WITHIN,
            layers=["peregrine-shm"],
            patterns=[("pingpong", 1)],
            sizes=[8],
            launches=LAUNCHES,
            settings=({"delay.send_ns": USUAL}, {"delay.send_ns": LONG}),
            attempt_hook=partial(spinning, **lies),
        ),
    )


@pytest.fixture(scope="module")
def honest(tmp_path_factory: pytest.TempPathFactory) -> Campaign:
    return delays(tmp_path_factory.mktemp("honest"))


def test_a_planted_delay_is_found_and_held(honest: Campaign) -> None:
    campaign = honest
    [found] = planted(read(campaign))
    assert (len(found.series), found.found, found.held) == (1, 1, 1)
    assert found.truth_ns == pytest.approx(200)
    assert found.predicted == pytest.approx(1, abs=0.01)
    said = of_delays(campaign)
    assert said.verdict == "not judged", "one series is not twenty"
    assert "200 ns in a round trip of 9" in said.says


def test_a_delay_that_is_another_than_counted_is_held_by_none(tmp_path: Path) -> None:
    [found] = planted(read(delays(tmp_path, counted=0.8)))
    assert (found.found, found.held) == (1, 0)


def test_a_delay_that_is_not_there_is_not_found(tmp_path: Path) -> None:
    [found] = planted(read(delays(tmp_path, real=0.0)))
    assert found.found == 0
    assert found.held == 0


def test_what_to_plant_follows_from_the_quickest_layer(honest: Campaign) -> None:
    [plant] = plants(honest)
    assert plant.layer == "peregrine-shm"
    assert [one["delay.send_ns"] for one in plant.settings] == [100, 200, 125]
    assert send_ns(1200) == 700


def test_no_more_series_than_fit(honest: Campaign) -> None:
    # its 60 launches begin within 29 minutes
    assert series_within(honest, 1e9, 6, 20) == 20
    assert series_within(honest, 30 * 60, 2, 20) == 1
    assert series_within(honest, 60 * 60, 2, 20) == 2


STALL = {"delay.delay_ns": "2000", "delay.stall_ns": "5000000", "delay.stall_every_ns": "100000000"}


def stalling(point: dict[str, Any], attempt: dict[str, Any], _: int, *, load_ns: int, own_ns: int, rpc_ns: int) -> None:
    """Let two calls of a hundred meet the stall where calls come at a rate of their own."""
    stalls = "delay.stall_ns" in point["subject"]["settings"]
    if point["workload"]["pattern"] == "load":
        set_samples(attempt, [(3000, 9800), (load_ns if stalls else own_ns, 200)], "response")
    else:
        set_samples(attempt, [(1000, 9800), (rpc_ns if stalls else 1500, 200)])


def stalls(root: Path, **what: int) -> Campaign:
    return make(
        root,
        replace(
            WITHIN,
            layers=["peregrine-shm"],
            patterns=[("load", 64), ("rpc", 1)],
            sizes=[10],
            given=({"request_bytes": 64},),
            launches=3,
            settings=({"delay.delay_ns": "2000"}, STALL),
            attempt_hook=partial(stalling, **what),
        ),
    )


@pytest.mark.parametrize(
    ("what", "verdict"),
    [
        ({"load_ns": 4_000_000, "own_ns": 9000, "rpc_ns": 1600}, "passed"),
        ({"load_ns": 2_000_000, "own_ns": 9000, "rpc_ns": 1600}, "failed"),
        ({"load_ns": 4_000_000, "own_ns": 9000, "rpc_ns": 1900}, "failed"),
        ({"load_ns": 9_000_000, "own_ns": 4_000_000, "rpc_ns": 1600}, "not judged"),
    ],
)
def test_a_stall_shows_where_it_has_to(tmp_path: Path, what: Mapping[str, int], verdict: str) -> None:
    assert of_stall(stalls(tmp_path, **what)).verdict == verdict


def steered(root: Path) -> Campaign:
    return make(
        root,
        replace(
            WITHIN,
            layers=["native-ucx"],
            patterns=[("rpc", 1)],
            sizes=[8],
            launches=2,
            troubles=False,
            settings=({}, {"env.UCX_TLS": "tcp"}),
        ),
    )


def test_what_steers_a_library_is_shown_or_found(tmp_path: Path) -> None:
    campaign = steered(tmp_path)
    assert of_quiet(campaign, campaign, ["UCX_TLS"], "refused").verdict == "passed"
    assert of_quiet(campaign, campaign, ["UCX_TLS"], "").verdict == "failed", "what steers no library was not refused"
    leaked = of_quiet(campaign, campaign, ["HOME"], "refused")
    assert leaked.verdict == "failed"
    assert leaked.says.startswith(say("selftest", "quiet.reached_endpoint", name="HOME", layer="native-ucx"))


def test_another_path_in_steered_surroundings_is_found(tmp_path: Path) -> None:
    data = read(steered(tmp_path))
    records = []
    for record in data.records:
        assert record.result is not None
        path = tuple(one.model_copy(update={"used": "tcp/lo"}) for one in record.result.path)
        records.append(record.model_copy(update={"result": record.result.model_copy(update={"path": path})}))
    found = quiet(data, replace(data, records=tuple(records)), ["UCX_TLS"])
    assert found.leaked[0].startswith("native-ucx used tcp/lo")
    [setting] = found.settings
    assert (setting.variable, setting.shown) == ("UCX_TLS=tcp", True)


def test_coverage_is_that_of_the_interval_and_falls_with_a_correlation_that_is_not_allowed_for() -> None:
    chance = random.Random(7)
    still, value = [], 0.0
    alone = [chance.gauss(0, 1) for _ in range(2000)]
    for one in alone:
        value = 0.7 * value + one
        still.append(value)
    alone, still = ([one - sorted(found)[1000] for one in found] for found in (alone, still))
    independent = _covered(("a", "b"), alone, 30, None, 200, 1)
    followed = _covered(("a", "b"), still, 30, None, 200, 1)
    allowed = _covered(("a", "b"), still, 30, Serial(correlation=0.7, error=0.05, cells=1), 200, 1)
    assert together([independent])[0].enough
    assert not together([followed])[0].enough
    assert allowed.share > followed.share + 0.05


def pin(build: str, machine: dict[str, list[Any]], **changes: Any) -> SelftestPin:  # noqa: ANN401 - of a model
    given = {
        "selftest_id": "20261121T001204Z-aaaaaaaa",
        "finished_utc": "2026-11-21T00:12:04Z",
        "version": "0.2.0",
        "build": build,
        "machine": machine,
        "verdict": "passed",
        "parts": {"delay": "passed"},
        "says": {"delay": "200 ns found"},
        **changes,
    }
    return SelftestPin.model_validate(given)


def test_a_report_names_the_self_test_its_age_and_what_follows(tmp_path: Path) -> None:
    from cadge_results.formats.selftest import machine_of

    data = read(steered(tmp_path))
    here = machine_of(data.nodes)
    assert say("selftest", "pinned.none") in sentence(data.meta, data.nodes)
    assert standing(data.meta, data.nodes) is None
    assert withholds(data.meta, data.nodes) == ""

    def with_pin(found: SelftestPin) -> tuple[str, str, str]:
        meta = data.meta.model_copy(update={"build": "a" * 64, "selftest": found})
        return sentence(meta, data.nodes), warning(meta, data.nodes)[0], withholds(meta, data.nodes)

    said, title, why = with_pin(pin("a" * 64, here, asked=True))
    assert "ended 3 h 0 min before the campaign and passed" in said
    assert (title, why) == ("", "")
    said, title, why = with_pin(pin("b" * 64, {**here, "kernel": ["5.0"]}))
    assert "of another build and another kernel" in said
    assert title == "The self-test is of another build and another kernel"
    assert why == "", "nobody asked that verdicts rest on it"
    failed = {"verdict": "failed", "parts": {"delay": "failed"}}
    assert with_pin(pin("a" * 64, here, **failed))[1:] == ("The self-test failed (delay)", "")
    assert "which failed (delay)" in with_pin(pin("a" * 64, here, asked=True, **failed))[2]
    assert "which was incomplete" in with_pin(pin("a" * 64, here, asked=True, verdict="incomplete"))[2]
