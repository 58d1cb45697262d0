# SPDX-License-Identifier: BSD-3-Clause
"""`cadge export --format svg`: what it lists and writes, and that it replaces nothing of the user's."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from cadge_harness.paths import Checkout
from cadge_results import Campaign, Store

from .conftest import Answer
from .test_ablate import ablating

pytestmark = pytest.mark.spare

__all__ = ["ablating"]  # a fixture
Cadge = Callable[..., Answer]
FIGURES = ("export", "--format", "svg")


@pytest.fixture
def campaign(ablating: Checkout, cadge: Cadge) -> Campaign:
    """A checkout's only campaign."""
    assert cadge("run", "--sweep", "ablate-a", "--no-report").code == 0
    return Store(ablating.campaigns).open("last")


def test_figures_are_listed_and_written(campaign: Campaign, cadge: Cadge, tmp_path: Path) -> None:
    listed = cadge(*FIGURES)
    names = [line.split()[0] for line in listed.out.splitlines()[1:]]
    assert listed.code == 0
    assert names
    told = json.loads(cadge(*FIGURES, "--json").out)["data"]
    assert [one["name"] for one in told["figures"]] == names
    assert told["campaign_id"] == campaign.campaign_id

    folder = tmp_path / "figures"
    assert cadge(*FIGURES, "-o", str(folder)).out.startswith(f"{folder}  {2 * len(names) + 1} files, ")
    wanted = {f"{name}.{end}" for name in names for end in ("svg", "csv")} | {"FIGURES.md"}
    assert {path.name for path in folder.iterdir()} == wanted
    (folder / "notes.txt").write_text("mine")
    first = (folder / f"{names[0]}.svg").read_bytes()
    assert cadge(*FIGURES, "--only", names[0][:-1] + "*", "-o", str(folder)).code == 0, "its own are made again"
    assert (folder / f"{names[0]}.svg").read_bytes() == first
    assert (folder / "notes.txt").read_text() == "mine"


def test_mistakes_have_a_sentence_and_a_code(campaign: Campaign, cadge: Cadge, tmp_path: Path) -> None:
    assert campaign
    name = cadge(*FIGURES).out.splitlines()[1].split()[0]
    theirs = tmp_path / "theirs"
    theirs.mkdir()
    (theirs / f"{name}.svg").write_text("mine")
    file = tmp_path / "file"
    file.write_text("mine")
    for argv, code, said in (
        (("--only", "nothing*"), 2, "no figure is called nothing*"),
        (("--table", "cells"), 2, "--table is for --format csv and jsonl and parquet"),
        (("-o", str(file)), 3, "it is no folder"),
        (("-o", str(theirs)), 2, f"holds {name}.svg, and no list of ours: nothing was written"),
        (("-o", str(tmp_path / "no" / "folder")), 3, "No such file"),
        (("nothing",), 5, "no campaign 'nothing'"),
    ):
        answer = cadge(*FIGURES, *argv)
        assert (answer.code, answer.out) == (code, ""), argv
        assert said in answer.err
    assert [path.name for path in theirs.iterdir()] == [f"{name}.svg"]
    assert (theirs / f"{name}.svg").read_text() == file.read_text() == "mine"
