# SPDX-License-Identifier: BSD-3-Clause
"""Sweeps ablate-NAME and `cadge study`: from the command line to a table and a page, and every mistake on the way."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from cadge_harness.paths import Checkout
from cadge_harness.run.request import read_request
from cadge_results import Store

from .conftest import Answer, FakeRunner

Cadge = Callable[..., Answer]
STUDIES = Path(__file__).parents[2] / "analysis" / "studies"
SWEEP = """\
schema: cadge.sweep/2
title: one with and without
layers: ["a-*", {layer: "a-*", settings: {off: x}}, {layer: "a-*", settings: {off: all}}]
places: within
patterns: [{pattern: rpc, request_bytes: [8B, 1KiB]}]
floors: false
launches: 6
duration: {default: 20ms}
"""


@pytest.fixture
def ablating(checkout: Checkout, runner: FakeRunner) -> Checkout:
    """The checkout with an ablation and a study in it, and a runner that answers at once."""
    assert runner
    (checkout.sweeps / "ablate-a.yml").write_text(SWEEP)
    shutil.copytree(STUDIES / "peregrine", checkout.studies / "peregrine")
    return checkout


def test_it_measures_and_prints_the_table(ablating: Checkout, cadge: Cadge) -> None:
    answer = cadge("run", "--sweep", "ablate-a", "--no-report")
    assert answer.code == 0, answer.err
    lines = answer.out.splitlines()
    assert lines[0] == "a-one, within one host, polling, RPC: p50, \u00b5s; below it the ratio to it"
    assert lines[1].split() == ["off", "8", "B", "1", "KiB"]
    assert [line.split()[0] for line in lines[2:5]] == ["(default)", "x", "all"]
    assert any(line.startswith("campaign  ") for line in lines)
    (campaign,) = Store(ablating.campaigns).campaigns()
    assert campaign.meta.sweep == "ablate-a"


def test_json_holds_the_run_and_the_table(ablating: Checkout, cadge: Cadge) -> None:
    assert ablating
    document = json.loads(cadge("run", "--sweep", "ablate-a", "--no-report", "--json").out)
    assert (document["ok"], document["code"]) == (True, 0)
    assert document["data"]["outcomes"] == {"valid": 48}  # a-one twice: see plan.twin
    rows = document["data"]["ablation"]["rows"]
    assert {(row["value"], row["request_bytes"]) for row in rows} == {(v, s) for v in ("x", "all") for s in (8, 1024)}
    assert all(row["ratio"] == 1 and row["differs"] is False and row["paired"] for row in rows)
    stored = json.loads(cadge("export", "--format", "ablation", "--json").out)
    assert stored["data"] == document["data"]["ablation"]


def test_of_a_stored_campaign_only_the_table_is_printed(ablating: Checkout, cadge: Cadge) -> None:
    cadge("run", "--sweep", "ablate-a", "--no-report")
    before = sorted(ablating.campaigns.rglob("*"))
    answer = cadge("export", "--format", "ablation")
    assert (answer.code, answer.err) == (0, "")
    assert "campaign  " not in answer.out
    assert sorted(ablating.campaigns.rglob("*")) == before


@pytest.mark.parametrize(
    ("argv", "code", "said"),
    [
        (["export", "--format", "ablation"], 5, "there is no campaign"),
        (["export", "--format", "ablation", "-o", "table"], 2, "is printed"),
        (["export", "nothing", "--format", "ablation"], 5, "no campaign 'nothing'"),
        (["run", "--sweep", "ablate-a", "--layers", "b-two"], 5, "none of the layers b-two is in this sweep"),
        (["study"], 2, "name a study"),
        (["study", "peregrine", "--claims"], 2, "is not for --claims"),
        (["study", "peregrin"], 2, "unknown study 'peregrin'; did you mean peregrine?"),
        (["study", "peregrine"], 5, "there is no campaign"),
    ],
)
def test_mistakes_have_a_sentence_and_a_code(
    argv: list[str], code: int, said: str, ablating: Checkout, cadge: Cadge
) -> None:
    assert ablating
    answer = cadge(*argv)
    assert (answer.code, answer.out) == (code, "")
    assert said in answer.err
    document = json.loads(cadge(*argv, "--json").out)
    assert (document["ok"], document["code"]) == (False, code)
    assert said in document["problems"][0]


@pytest.mark.long
def test_a_campaign_without_variants(ablating: Checkout, cadge: Cadge) -> None:
    assert ablating
    cadge("run", "--sweep", "tiny", "--no-report")
    answer = cadge("export", "--format", "ablation")
    assert (answer.code, answer.out) == (5, "")
    assert "(sweep tiny) has no layer both with and without a setting" in answer.err
    answer = cadge("study", "peregrine", "last")
    assert (answer.code, "no point of the study peregrine has a number" in answer.err) == (0, True)


def test_a_study_goes_beside_the_campaign_or_where_it_is_told(ablating: Checkout, cadge: Cadge, tmp_path: Path) -> None:
    cadge("run", "--sweep", "ablate-a", "--no-report")
    document = json.loads(cadge("study", "peregrine", "--json").out)
    (campaign,) = Store(ablating.campaigns).campaigns()
    assert document["data"]["study"] == str(campaign.path / "study-peregrine.html")
    assert document["data"]["bytes"] == (campaign.path / "study-peregrine.html").stat().st_size
    out = tmp_path / "page.html"
    assert cadge("study", "peregrine", "last", "-o", str(out)).code == 0
    assert out.read_bytes() == (campaign.path / "study-peregrine.html").read_bytes()
    answer = cadge("study", "peregrine", "-o", str(tmp_path / "no" / "page.html"))
    assert (answer.code, "does not exist" in answer.err) == (3, True)
    answer = cadge("study", "peregrine", "--engine-bench", str(tmp_path / "none.json"))
    assert (answer.code, "none.json cannot be read" in answer.err) == (2, True)


def test_the_sweep_that_comes_with_cadge_knows_every_optimisation_of_the_engine(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("CADGE_ROOT", raising=False)
    sweep = read_request("ablate-peregrine").sweep
    off = [entry.settings.get("off") for entry in sweep.layers]
    assert off[0] is None
    assert off[-1] == "all"
    source = (Path(__file__).parents[2] / "layers/peregrine/adapter.c").read_text()
    (names,) = re.findall(r"names\[\] = \{([^}]*)\}", source)
    assert off[1:-1] == re.findall(r'"(\w+)"', names)
    assert sweep.launches >= 6
