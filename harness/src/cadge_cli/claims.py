# SPDX-License-Identifier: BSD-3-Clause
"""`cadge study --claims`: what papers claimed, and where each claim is tested, or why it cannot be."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from pydantic import JsonValue

from cadge_cli.output import wrapped
from cadge_harness.paths import Checkout
from cadge_results.command import command

if TYPE_CHECKING:
    from cadge_analysis.study.claims import Hypothesis, TestedBy


def claims_answer(checkout: Checkout) -> tuple[JsonValue, list[str]]:
    """Return the claims for programs and for people."""
    from cadge_analysis.study.claims import read
    from cadge_harness.plan.patterns import read_patterns

    sweeps = {path.stem for path in checkout.sweeps.glob("*.yml")}
    found = read(checkout.studies, sweeps, set(read_patterns(checkout).patterns))
    data: list[JsonValue] = []
    lines: list[str] = []
    for number, one in enumerate(found.hypotheses, 1):
        figures = list(_figures(one, checkout.studies))
        data.append({"number": number, **one.model_dump(mode="json"), "figures": [*figures]})
        lines += [*wrapped(one.claim, f"{number:2}  "), *_lines(one, figures), ""]
    tested = sum(bool(one.tested) for one in found.hypotheses)
    lines.append(f"{len(found.hypotheses)} hypotheses, {tested} tested here")
    return {"hypotheses": data}, lines


def _lines(one: Hypothesis, figures: list[str]) -> Iterator[str]:
    for figure in figures:
        yield from wrapped(figure, "    published: ")
    for test in one.tested:
        yield from wrapped(_where(test), "    tested: ")
    if one.limits:
        yield from wrapped(one.limits, "    but: ")
    if one.cannot:
        yield from wrapped(one.cannot, "    not tested: ")


def _figures(one: Hypothesis, studies: Path) -> Iterator[str]:
    from cadge_analysis.study.claims import figure_of

    for named in one.published:
        figure = figure_of(studies, named)
        value = f"{figure.value * 100:g} %" if figure.unit == "share" else f"{figure.value:,.9g} {figure.unit}"
        yield f"{value}: {named.said or figure.name} (study {named.study})"


def _where(test: TestedBy) -> str:
    """Return the commands that show a test."""
    parts = []
    if test.sweep:
        parts.append(command("run", "--sweep", test.sweep))
    if test.study:
        section = f' (section "{test.section}")' if test.section else ""
        parts.append(f"{command('study', test.study)}{section}")
    if test.pattern:
        parts.append(command("patterns", test.pattern))
    return ", ".join(parts)
