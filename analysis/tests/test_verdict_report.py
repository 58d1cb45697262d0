# SPDX-License-Identifier: BSD-3-Clause
"""Verdicts in the report and the export: the same ones, and those that another program makes of the raw records."""

from __future__ import annotations

import csv
import io
import json
from collections import defaultdict
from itertools import chain
from math import exp, log
from pathlib import Path
from typing import Any

import numpy as np
import pagereader
import pytest
import synthetic
from scipy.stats import false_discovery_control, wilcoxon
from test_campaign_verdicts import BASE, made, world
from wordcount import words_of

from cadge_analysis import export, report
from cadge_analysis.messages import say
from cadge_results import Campaign

LAUNCHES = 12
SIGNED = {"faster": "\u25b2 faster", "slower": "\u25bc slower", "same": "= same", "cannot tell": "? undecided"}
Key = tuple[str, int, str]  # pattern, size, layer


@pytest.fixture(scope="module")
def campaign(tmp_path_factory: pytest.TempPathFactory) -> Campaign:
    return made(tmp_path_factory.mktemp("verdict-report"))


@pytest.fixture(scope="module")
def root(campaign: Campaign, tmp_path_factory: pytest.TempPathFactory) -> pagereader.Node:
    path = tmp_path_factory.mktemp("verdict-report-page") / "r.html"
    report.build(campaign.path, path)
    return pagereader.read(path.read_text())


def raw(folder: Path) -> dict[Key, dict[int, float]]:
    """Return what each layer took by round, from the stored files alone: every launch of this world has one value."""
    plan = json.loads((folder / "plan.json").read_text())
    points = {one["point_id"]: one for one in plan["points"] if one["subject"]["kind"] == "layer"}
    rounds = {one["launch_id"]: one["round"] for one in plan["launches"]}
    found: dict[Key, dict[int, float]] = defaultdict(dict)
    for path in sorted((folder / "launches").rglob("*.json")):
        record = json.loads(path.read_text())
        for attempt in (record["result"] or {}).get("attempts", ()):
            point = points.get(attempt["point_id"])
            if point is None:
                continue
            known = synthetic.flat(point)
            key = (known["pattern"], known["size"], known["layer"])
            [one] = chain(*attempt["quantities"].values())
            took = one["min_ns"] if "min_ns" in one else one["elapsed_ns"] / one["amount"]
            found[key][rounds[record["launch"]["launch_id"]]] = took
    return found


def expected(values: dict[Key, dict[int, float]], pattern: str) -> dict[Key, tuple[str, float]]:
    """Return verdict and ratio of times, worked out by SciPy: signed ranks, chosen together over the family."""
    logs = {
        key: np.array([log(mine[r] / values[pattern, key[1], BASE][r]) for r in sorted(mine)])
        for key, mine in values.items()
        if key[0] == pattern and key[2] != BASE
    }
    margin = log(1.05)

    def p_same(one: np.ndarray) -> float:
        sides = wilcoxon(one - margin, alternative="less"), wilcoxon(one + margin, alternative="greater")
        return min(1.0, 2 * max(side.pvalue for side in sides))

    differ = {key: wilcoxon(one).pvalue for key, one in logs.items()}
    inside = {key: p_same(one) for key, one in logs.items()}
    chosen = false_discovery_control([min(differ[key], inside[key]) for key in logs], method="bh")
    most = max((min(differ[key], inside[key]) for key, p in zip(logs, chosen, strict=True) if p <= 0.05), default=0.0)
    said = {}
    for key, one in logs.items():
        middle = float(np.median([(a + b) / 2 for at, a in enumerate(one) for b in one[at:]]))
        word = "same" if inside[key] <= most else "cannot tell"
        if differ[key] <= most < inside[key]:
            word = "faster" if middle < 0 else "slower"
        said[key] = (word, exp(middle))
    return said


def test_verdicts_are_those_of_another_program(campaign: Campaign, root: pagereader.Node) -> None:
    """In the tables of the report: word and sign, ratio, and an interval around it."""
    values = raw(campaign.path)
    seen = set()
    for row in pagereader.full_rows(root):
        pattern, size = row.case.split("/")[0], int(row.case.split("/")[2])
        cell = row.fields["verdict"]
        if row.layer == BASE:
            assert (cell.text, cell.smalls) == ("\u2013", ["the baseline"])
            continue
        word, ratio = expected(values, pattern)[pattern, size, row.layer]
        seen.add(word)
        assert cell.text == SIGNED[word]
        shown, low, high = cell.numbers
        assert low < shown < high
        # what is stored of a histogram has three digits
        assert shown == pytest.approx(1 / ratio if pattern == "stream" else ratio, rel=2e-3)
    assert seen == {"faster", "slower", "same"}


def test_the_first_screen_names_the_group_and_all_verdicts(root: pagereader.Node) -> None:
    rpc, stream = root.all("figure", class_="ranking")[:2]
    for panel in (rpc, stream):
        assert panel.one("h3").text.startswith(("2-way tie: native-", "2-way tie within 5\u202f%: native-"))
        assert panel.one("h3").text.endswith(f"as fast as {BASE}")
        assert [row.one("bdi").text[:7] for row in panel.all("tr", class_="leads")] == ["native-"] * 2
    assert say("sections", "open") in root.text
    assert "are undecided. Each row" not in root.text, "all was decided"


def test_one_that_leads_alone_is_called_what_its_pattern_says(tmp_path: Path) -> None:
    layers = (BASE, "native-ucx", "mpi-p2p")
    path = tmp_path / "r.html"
    report.build(made(tmp_path / "store", layers=layers, sizes=(8,), patterns=(("rpc", 1),)).path, path)
    said = pagereader.read(path.read_text()).all("figure", class_="ranking")[0].one("h3").text
    assert said.startswith("native-ucx leads: ")
    ratio, _, rest = said.partition(", ")[2].partition(" [")
    assert (ratio, rest.partition("] ")[2]) == ("1.25\u00d7", f"as fast as {BASE}")


def test_the_method_says_what_was_done(root: pagereader.Node) -> None:
    method = root.one("section", id="method")
    for said in (
        f"Each layer against {BASE}",
        "Hodges and Lehmann",
        "Benjamini and Hochberg",
        "within 5\u202f% of 1",
        "Hsu",
    ):
        assert said in method.text
    assert words_of(method.text) - sum(words_of(cell.text) for cell in method.all("td")) <= 300, (
        "METHOD.md has the rest"
    )
    rows = [[cell.text for cell in row.all("td")] for row in method.one("table").one("tbody").all("tr")]
    assert [row[:10] for row in rows] == [
        ["RPC", "within one host", "polling", "p50", "12", "6", "3", "3", "0", "100\u202f%"],
        ["Stream", "within one host", "polling", "rate", "12", "6", "3", "3", "0", "100\u202f%"],
        ["RPC", "within one host", "polling", "p99", "12", "6", "3", "3", "0", "100\u202f%"],
    ]
    assert [row[10] for row in rows] == ["3", "3", "3"], "up in one round and down in the next: two levels"
    assert all("allowed for" not in row[11] for row in rows), "what a family shows is not what its tests allow for"
    assert [row[12] for row in rows] == ["0", "0", "0"]


def test_a_campaign_whose_baseline_was_not_measured_says_so(tmp_path: Path) -> None:
    path = tmp_path / "r.html"
    report.build(made(tmp_path / "store", layers=("native-ucx", "mpi-p2p"), sizes=(8,)).path, path)
    root = pagereader.read(path.read_text())
    assert f"Verdicts: {BASE} was not measured" in root.one("ul", class_="cannot").text
    assert "verdict" not in pagereader.full_rows(root)[0].fields


def test_a_case_whose_baseline_failed_cannot_be_told(tmp_path: Path) -> None:
    def broken(point: dict[str, Any], attempt: dict[str, Any], number: int) -> None:
        world(point, attempt, number)
        if point["subject"]["layer"] == BASE and synthetic.flat(point)["size"] == 8:
            attempt |= {"status": "failed", "reason_code": "DEADLINE", "reason": "no progress", "checks": []}
            attempt |= dict.fromkeys(("elapsed_ns", "operations", "bytes", "cpu", "executions", "verified"))
            attempt |= {"quantities": {}, "warmup": None}

    path = tmp_path / "r.html"
    layers = (BASE, "native-ucx", "mpi-p2p")
    report.build(made(tmp_path / "store", layers=layers, patterns=(("rpc", 1),), attempt_hook=broken).path, path)
    root = pagereader.read(path.read_text())
    cells = {(row.layer, row.case.split("/")[2]): row.fields["verdict"] for row in pagereader.full_rows(root)}
    assert (cells["native-ucx", "8"].text, cells["native-ucx", "4096"].text) == ("? undecided", "\u25b2 faster")
    assert cells["native-ucx", "8"].smalls == [say("cells", "shown.no_launch_both_gave")]
    assert f"2 of 6 comparisons with {BASE} are undecided" in root.one("ul", class_="cannot").text


def test_the_export_carries_them(campaign: Campaign, root: pagereader.Node) -> None:
    stream = io.StringIO()
    export.write(campaign, "csv", stream)
    rows = {row["point_id"]: row for row in csv.DictReader(io.StringIO(stream.getvalue()))}
    signed = {sign: word for word, sign in SIGNED.items()}
    for shown in pagereader.full_rows(root):
        row, cell = rows[shown.point_id], shown.fields["verdict"]
        assert row["verdict"] == signed.get(cell.text, "")
        assert row["leads"] == str(shown.layer in ("native-ucx", "native-ofi"))
        if row["verdict"]:
            assert row["verdict_against"] == BASE
            assert [float(row[f"verdict_ratio{end}"]) for end in ("", "_low", "_high")] == pytest.approx(cell.numbers)
            assert (row["verdict_early"], row["verdict_withheld"], row["verdict_more"]) == ("False", "False", "")
            assert int(row["verdict_launches"]) == LAUNCHES
    stream = io.StringIO()
    export.write(campaign, "json", stream)
    judged = json.loads(stream.getvalue())["verdicts"]
    assert (judged["baseline"], judged["same_within"], judged["comparisons"], judged["decided"]) == (BASE, 0.05, 24, 24)
    assert [one["pattern"] for one in judged["families"]] == ["rpc", "stream"]
    assert judged["families"][0]["faster"] == 6
    assert {tuple(sorted(one["leading"])) for one in judged["groups"]} == {("native-ofi", "native-ucx")}
