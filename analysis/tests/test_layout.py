# SPDX-License-Identifier: BSD-3-Clause
"""Heads of tables in a style sheet: whatever is in them stays a string."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cadge_analysis.blocks import layout
from cadge_analysis.blocks.model import Column, Fold, Region, Table


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("p50, \u00b5s", '"p50, \u00b5s"'),
        ('"};*{', '"\\22 \\7d \\3b \\2a \\7b "'),
        ("a\nb", '"a\\a b"'),
        ("\\", '"\\5c "'),
    ],
)
def test_strings_of_a_style_sheet(text: str, written: str) -> None:
    assert layout.css_string(text) == written.replace("\\3b ", ";")


@given(st.text())
def test_no_text_ends_its_string(text: str) -> None:
    inside = layout.css_string(text)[1:-1]
    assert not set('"\n\r\f<') & set(inside)
    read = re.sub(r"\\([0-9a-f]+) ", lambda match: chr(int(match[1], 16)), inside)
    assert read == text


def test_a_table_says_how_many_heads_it_has() -> None:
    assert layout.heads(["layer", 'a "b"']) == (
        'data-heads="few" style="--h1:&#34;layer&#34;;--h2:&#34;a \\22 b\\22 &#34;"'
    )
    assert 'data-heads="many"' in layout.heads(["layer"] * (layout.FEW + 1))


def test_tables_of_the_same_columns_share_a_rule_wherever_they_are() -> None:
    def table(name: str, *heads: str) -> Table:
        columns = tuple(Column(head=head, unit="ns") for head in heads)
        return Table(label="t", role="full", columns=columns, lines=(), heads=name)

    folded = Fold(summary=(), blocks=(table("a", "p50"), table("b", "p50", "p99")))
    rules = layout.heads_rules((Region(blocks=(table("a", "p50"), folded)), table("", "alone")))
    assert rules.splitlines() == ['.h-a{--h1:"p50, ns"}', '.h-b{--h1:"p50, ns";--h2:"p99, ns"}']
