# SPDX-License-Identifier: BSD-3-Clause
"""The table of the protocol's rules names what there is: files, functions, macros of the model, tests."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ENGINE = Path(__file__).parents[1] / "engine"
README = (ENGINE / "model/README.md").read_text(encoding="utf-8")
MODEL = "".join((ENGINE / f"model/{name}.pml").read_text(encoding="utf-8") for name in ("peregrine", "sizes"))
ROWS = [
    [cell.strip() for cell in line.strip("|").split("|")]
    for line in README.partition("## Where each rule is")[2].partition("\n## ")[0].splitlines()
    if line.startswith("|") and not line.startswith(("| rule", "|---"))
]


def test_there_is_a_table() -> None:
    assert len(ROWS) > 20
    assert {len(row) for row in ROWS} == {4}


@pytest.mark.parametrize("row", ROWS, ids=[row[0][:40] for row in ROWS])
def test_a_rule_is_where_the_table_says(row: list[str]) -> None:
    _, model, code, tests = row
    for word in re.findall(r"\w+", model.partition("(")[0]):
        assert re.search(rf"\b{word}\b", MODEL), f"{word} is not in the model"
    for name, functions in re.findall(r"`([\w.]+)`((?: \w+(?: \(\w+\))?,?)*)", code):
        [path] = [path for room in ("base", "core", "wires") for path in (ENGINE / room).glob(name)]
        text = path.read_text(encoding="utf-8")
        for function in re.findall(r"\w+", functions):
            assert re.search(rf"\b{function}\b", text), f"{function} is not in {name}"
    for name in re.findall(r"`([\w./]+)`", tests):
        if name.startswith("../"):
            assert (ENGINE / "model" / name).exists(), name
        else:
            assert (ENGINE / "tests/protocol" / f"{name}.c").exists(), name
