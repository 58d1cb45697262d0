# SPDX-License-Identifier: BSD-3-Clause
"""What the systems of a paper could do, beside what our layers of their styles were tested to do.

Ours is what each opened context stated, which the conformance suite holds it to; it may differ by substrate and place.
"""

from __future__ import annotations

from collections.abc import Iterable

from cadge_analysis.blocks.make import line_of, row_name, words_column
from cadge_analysis.blocks.model import Span, Table, TableCell
from cadge_analysis.stats.launch_facts import LaunchFacts, launch_facts
from cadge_analysis.stats.load import Dataset
from cadge_analysis.study.published import PropertyOf, SemanticsOf

NOT_SEEN = "not seen"
NOT_HERE = "not measured here"


def _said(facts: LaunchFacts, row: PropertyOf) -> str:
    if row.cap:
        return "yes" if row.cap in facts.caps else "no"
    value = facts.traits.get(row.trait)
    if isinstance(value, bool):
        return "yes" if value else "no"
    return NOT_HERE if value is None else str(value).replace("_", " ")


def _ours(found: Iterable[tuple[str, LaunchFacts]], row: PropertyOf) -> str:
    """Return one word where all contexts say the same, else each word with those that say it."""
    by_word: dict[str, list[str]] = {}
    for where, facts in found:
        by_word.setdefault(_said(facts, row), []).append(where)
    if len(by_word) < 2:
        return next(iter(by_word), NOT_HERE)
    return "; ".join(f"{word} ({', '.join(dict.fromkeys(places))})" for word, places in by_word.items())


def matrix(data: Dataset, spec: SemanticsOf) -> Table:
    """Return the matrix: systems across, properties down."""
    contexts: dict[str, list[tuple[str, LaunchFacts]]] = {style: [] for style in spec.systems}
    for (series, place, _), facts in sorted(launch_facts(data).items(), key=lambda item: item[0]):
        style, _, substrate = series.layer.partition("-")
        if style in contexts and not series.settings and not series.shims:
            contexts[style].extend((f"{substrate} {place}", one) for one in facts)

    def cell(row: PropertyOf, style: str) -> TableCell:
        then, now = row.published.get(style, NOT_SEEN), _ours(contexts[style], row)
        return TableCell(spans=(Span(then, role="then"), Span(now, role="now")))

    return Table(
        label="Semantics",
        role="plain semantics",
        columns=(words_column("property"), *map(words_column, spec.systems.values())),
        lines=tuple(
            line_of(row_name(row.name), (cell(row, style) for style in spec.systems)) for row in spec.properties
        ),
    )
