# SPDX-License-Identifier: BSD-3-Clause
"""Markers and outlines that a page draws many times stand in it once, and every reference leads to one."""

from __future__ import annotations

from itertools import product

from cadge_analysis.blocks.html import HERE, defined
from cadge_analysis.draw.palette import LIGHT, LOOKS, SHAPES, Identity

CHART = '<svg><defs><path id="{0}-m0" d="M0,1Z"/><path id="{0}-m1" d="M{1},2Z"/></defs>{2}</svg>'


def test_charts_refer_to_one_outline_of_the_page() -> None:
    uses = '<use href="#{0}-m0" x="1" y="2"/><use href="#{0}-m1" x="3" y="4"/>'
    charts = [CHART.format(name, number, uses.format(name)) for name, number in (("a", 5), ("a-b", 5), ("c", 7))]
    made = "".join(defined([HERE, *charts]))
    assert made == "".join(defined([f"{HERE}{''.join(charts)}"]))
    assert made.count("<defs>") == 1
    assert made.startswith(
        '<defs><path id="o0" d="M0,1Z"/><path id="o1" d="M5,2Z"/><path id="o2" d="M7,2Z"/></defs><svg><use href="#o0"'
    )
    assert [made.count(f'href="#o{n}"') for n in range(3)] == [3, 2, 1]
    assert "-m0" not in made


def test_what_is_no_outline_of_the_page_stays() -> None:
    text = f'{HERE}<use href="#back"/><use href="#x-m3"/>'
    assert list(defined([text, HERE])) == [text.replace(HERE, ""), HERE]
    assert list(defined(["no place for it"])) == ["no place for it"]


def test_every_look_has_its_number_and_its_marker() -> None:
    for parts in product(range(len(LIGHT)), range(len(SHAPES)), range(len(LOOKS.variants))):
        look = Identity(*parts)
        assert Identity.of_number(look.number) == look
    plain, dashed = Identity(3, 4), next(look for n in range(9) if (look := Identity(1, 2, n)).dash)
    uses = [f'<use href="#mk{look.number}"/>' for look in (plain, dashed, plain)]
    made = "".join(defined([HERE, *uses]))
    assert made.count("<symbol") == 2
    assert plain.light in made
    assert plain.shape in made
    assert 'stroke-dasharray="' in made
