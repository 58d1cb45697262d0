# SPDX-License-Identifier: BSD-3-Clause
"""What `golden.editions` says of a real document: no edition lacks a text, and one that is left out is found.

Every page of the golden set is checked so: see `golden.outputs`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields

import pytest
import synthetic
from golden import editions

from cadge_analysis import report
from cadge_analysis.blocks import model, ranked
from cadge_analysis.blocks.model import PageDocument
from cadge_analysis.cells.shown import Value
from cadge_analysis.stats.load import read


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> tuple[PageDocument, Mapping[str, str]]:
    options = synthetic.Options(layers=("sockets-tcp", "am-ucx"), sizes=(8, 4096), places=("within",), launches=3)
    page = report.page_of(read(synthetic.make(tmp_path_factory.mktemp("whole"), options)))
    made = {"html": report.html(page), **{kind: report.edition(page, kind) for kind in ("markdown", "text")}}
    return page, made


def test_no_edition_lacks_a_text(whole: tuple[PageDocument, Mapping[str, str]]) -> None:
    page, made = whole
    assert editions.lacking(page, made) == []


@pytest.mark.parametrize("kind", ["html", "markdown", "text"])
@pytest.mark.parametrize(
    ("said", "field"),
    [
        ("Glossary", "Region.title"),
        ("0.672\u00d7", "Value.detail"),
        ("5.06", "Value.text"),
        ("The best that this machine did", "Span.text"),
        ("Polling, blocking", "Fact.name"),
    ],
)
def test_a_text_that_is_left_out_is_found(
    kind: str, said: str, field: str, whole: tuple[PageDocument, Mapping[str, str]]
) -> None:
    page, made = whole
    spoiled = {kind: made[kind].replace(said, "")}
    assert spoiled[kind] != made[kind]
    found = editions.lacking(page, spoiled)
    assert any(one.startswith(f"{kind}: {field}: ") and said in one for one in found)
    assert {one.partition(":")[0] for one in found} == {kind}


def test_every_field_that_is_left_out_is_one() -> None:
    every = {
        f"{name}.{one.name}"
        for name, kind in {**vars(model), **vars(ranked), "Value": Value}.items()
        if isinstance(kind, type) and hasattr(kind, "__dataclass_fields__")
        for one in fields(kind)
    }
    named = editions.NEVER.keys() | editions.IN_HTML_ALONE.keys() | editions.IN_EDITIONS_ALONE.keys()
    assert named - every == set()
