# SPDX-License-Identifier: BSD-3-Clause
"""Bursts of a campaign become fits: exported in their form, shown in the report with reasons, held against the rest."""

from __future__ import annotations

import io
import re
from pathlib import Path
from typing import Any

import pagereader
import pytest
import synthetic

from cadge_analysis import export, report
from cadge_analysis.errors import NoDataError
from cadge_analysis.models.loggp import Fits, LayerFit, MissingNumber, ModelLine, ModelNumber, Parameters
from cadge_cli import cli
from cadge_harness.errors import EXIT_NOTHING, EXIT_USAGE
from cadge_results import Campaign

SIZES = tuple(16 << power for power in range(12))
SWITCH = 8192
O_S, O_R, LATENCY, GAP, HANDSHAKE, PER_BYTE = 400, 600, 3000, 2000, 30_000, 0.5


def one_way_ns(size: int) -> float:
    return O_S + O_R + LATENCY + PER_BYTE * (size - 1) + (HANDSHAKE if size >= SWITCH else 0)


def by_hand(point: dict[str, Any], attempt: dict[str, Any], number: int) -> None:
    """A layer that is what LogGP says; another whose bursts are zigzag; both a little slower with each launch."""
    given = point["workload"]["parameters"]
    slower = 1 + number / 200
    if point["workload"]["pattern"] == "pingpong":
        attempt["quantities"] = {}
        synthetic.set_samples(attempt, [(round(2 * one_way_ns(given["bytes"]) * slower * 1.1), 2000)], "latency")
        return
    size, messages, percent = given["bytes"], given["messages"], given["delay_percent"]
    single = 2 * one_way_ns(size) * slower
    gap = (GAP + PER_BYTE * (size - 1) + (HANDSHAKE if size >= SWITCH else 0)) * slower
    if point["subject"]["layer"] == "sockets-tcp" and size.bit_length() % 2:
        gap *= 2
    delay = percent * single / 100
    pause = max(gap, delay + O_S * slower) if percent else gap
    whole = single + (messages - 1) * pause
    attempt["quantities"] = {}
    synthetic.set_samples(attempt, [(round(single), 2000)], "single")
    synthetic.set_samples(attempt, [(round(whole), 2000)], "prtt")
    if percent:
        synthetic.set_samples(attempt, [(round(whole - (messages - 1) * delay), 2000)], "undelayed")
        synthetic.set_samples(attempt, [(round(O_R * slower), 2000)], "receive")
        attempt["quantities"]["receive"][0]["endpoint"] = 1


@pytest.fixture(scope="module")
def bursts(tmp_path_factory: pytest.TempPathFactory) -> Campaign:
    options = synthetic.Options(
        layers=("sockets-tcp", "native-ucx"),
        sizes=SIZES,
        places=("within",),
        waits=("poll",),
        patterns=(("loggp", 1), ("pingpong", 1)),
        given=({}, {"delay_percent": 100}, {"messages": 4}),
        floors=False,
        troubles=False,
        launches=5,
        attempt_hook=by_hand,
    )
    return synthetic.make(tmp_path_factory.mktemp("bursts"), options)


def fits_of(campaign: Campaign) -> dict[str, LayerFit]:
    stream = io.StringIO()
    export.write(campaign, "loggp", stream)
    return {one.layer: one for one in Fits.parse(stream.getvalue(), source="export").fits}


def value(found: ModelNumber | MissingNumber) -> float:
    assert isinstance(found, ModelNumber)
    return found.value


def start(found: ModelLine | MissingNumber) -> float:
    assert isinstance(found, ModelLine)
    return found.start_ns.value


def test_the_export_holds_what_the_layer_is(bursts: Campaign) -> None:
    found = fits_of(bursts)
    one = found["native-ucx"]
    assert (one.place, one.wait, one.choices) == ("within", "poll", {"touch": "write+read"})
    assert (one.launches, one.messages, one.sizes_bytes) == (5, 16, SIZES)
    assert isinstance(one.model, Parameters)
    assert [(piece.from_bytes, piece.to_bytes) for piece in one.model.pieces] == [(16, 4096), (8192, 32768)]
    before, after = one.model.pieces
    assert value(one.model.latency_ns) == pytest.approx(LATENCY, rel=0.02)
    assert start(before.send) == pytest.approx(O_S, rel=0.03)
    assert start(before.receive) == pytest.approx(O_R, rel=0.03)
    assert start(before.gap) == pytest.approx(GAP, rel=0.02)
    assert before.gap.per_byte_ns.value == pytest.approx(PER_BYTE, rel=0.03)
    assert start(after.gap) == pytest.approx(GAP + HANDSHAKE, rel=0.02)
    low, high = before.gap.start_ns.low, before.gap.start_ns.high
    assert low is not None
    assert high is not None
    assert 0.97 * GAP < low < GAP * 1.01 < high < 1.03 * GAP


def test_what_the_fit_did_not_see_is_predicted(bursts: Campaign) -> None:
    """Bursts of another length as they are; bare messages, made a tenth slower than the model, with that error."""
    by_what = {one.what: one for one in fits_of(bursts)["native-ucx"].held_out}
    assert list(by_what) == ["bursts of 4", "Bare messages"]
    assert by_what["bursts of 4"].points == by_what["Bare messages"].points == len(SIZES)
    assert by_what["bursts of 4"].median_error < 0.01
    assert abs(by_what["bursts of 4"].worst_error) < 0.02
    assert by_what["Bare messages"].worst_error == pytest.approx(1 / 1.1 - 1, abs=0.01)


def test_the_report_shows_fits_and_reasons(bursts: Campaign, tmp_path: Path) -> None:
    report.build(bursts.path, tmp_path / "r.html")
    root = pagereader.read((tmp_path / "r.html").read_text())
    section = root.one("section", id="loggp-within")
    fitted, refused, held = [one for one in section.all("table", class_="plain") if one.attrs["class"] == "plain"][-3:]
    rows = [[cell.text for cell in row.all("td")] for row in fitted.one("tbody").all("tr")]
    assert [row[0] for row in rows] == ["native-ucx", "native-ucx"], "no number is printed of a fit that was refused"
    assert [row[3] for row in rows] == ["16 B \u2026 4 KiB", "8 KiB \u2026 32 KiB"]
    assert rows[0][4].startswith("2.0")
    [row] = [[cell.text for cell in row.all("td")] for row in refused.one("tbody").all("tr")]
    assert (row[0], row[4]) == ("sockets-tcp", "the fit")
    assert row[5].startswith("no 4 straight pieces of 3 sizes or more come within 20")
    assert [row.all("td")[-1].text for row in held.one("tbody").all("tr")] == ["holds", "holds"]
    assert "Bare messages" in held.text
    figure = root.one("figure", id="fig-loggp-within-poll-residuals")
    heads = [head.text for head in figure.one("thead").all("th")]
    assert heads == ["size", "native-ucx, \u00d7", "fitted, \u00d7"], "what was refused has no line"
    left = [float(row.all("td")[0].text) for row in figure.one("tbody").all("tr")]
    assert left == pytest.approx([1.0] * len(SIZES), abs=0.01), "the layer is what the model says"
    assert "PRTT(n, d, s)" in root.one("section", id="method").text


def test_a_campaign_without_bursts_has_no_fits(tmp_path: Path) -> None:
    campaign = synthetic.make(
        tmp_path, synthetic.Options(layers=("sockets-tcp",), sizes=(8,), launches=1, floors=False)
    )
    with pytest.raises(NoDataError, match="no points that a model is fitted to"):
        export.write(campaign, "loggp", io.StringIO())


def test_a_platform_holds_what_was_fitted(bursts: Campaign, capsys: pytest.CaptureFixture[str]) -> None:
    argv = [
        "export",
        bursts.campaign_id,
        "--results",
        str(bursts.path.parent),
        "--layer",
        "native-ucx",
        "--bytes",
        "1KiB",
    ]
    assert cli.invoke([*argv, "--format", "simgrid", "--topology", "fat-tree", "--endpoints", "16"]) == 0
    platform = capsys.readouterr().out
    cluster = re.search(r'bw="(\S+)Bps" lat="(\S+)s"', platform)
    assert cluster is not None
    rate, latency_s = map(float, cluster.groups())
    assert rate == pytest.approx(1e9 / PER_BYTE, rel=0.1)
    assert latency_s == pytest.approx(LATENCY / 2 * 1e-9, rel=0.1)  # through two links
    assert 'topo_parameters="2;4,4;1,4;1,1"' in platform
    assert f"native-ucx within poll (touch=write+read), campaign {bursts.campaign_id}, messages of 1024 B" in platform

    assert cli.invoke([*argv, "--format", "csv"]) == EXIT_USAGE
    assert "is for --format simgrid" in capsys.readouterr().err


def test_a_fit_that_was_refused_has_no_platform(bursts: Campaign, capsys: pytest.CaptureFixture[str]) -> None:
    argv = ["export", bursts.campaign_id, "--results", str(bursts.path.parent), "--format", "simgrid"]
    assert cli.invoke([*argv, "--layer", "sockets-tcp"]) == EXIT_NOTHING
    assert "the LogGP fit was refused" in capsys.readouterr().err
