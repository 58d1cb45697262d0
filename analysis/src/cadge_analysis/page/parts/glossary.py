# SPDX-License-Identifier: BSD-3-Clause
"""The words that a report uses in a sense of its own, a sentence each: a reader may have its file and nothing else."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path

from cadge_analysis import messages
from cadge_analysis.blocks.model import Fact
from cadge_analysis.stats.compare import Row
from cadge_results import PatternFile
from cadge_results.plugins.catalogue import read_yaml

say = partial(messages.say, "report")

_ALWAYS = (
    Fact(
        name="Layer",
        text=say("glossary.layer"),
    ),
    Fact(
        name="Point, attempt, launch",
        text=say("glossary.point"),
    ),
    Fact(
        name=say("glossary.places_title"),
        text=say("glossary.places"),
    ),
    Fact(
        name="Polling, blocking",
        text=say("glossary.waits"),
    ),
    Fact(
        name="p50, p99",
        text=say("glossary.quantiles"),
    ),
    Fact(
        name="Floor",
        text=say("glossary.floor"),
    ),
    Fact(
        name="Baseline, verdict",
        text=say("glossary.baseline"),
    ),
    Fact(
        name=say("glossary.interval_title"),
        text=say("glossary.interval"),
    ),
    Fact(
        name="Disturbed, settled",
        text=say("glossary.disturbed"),
    ),
)
_ROUND_TRIP = Fact(
    name="Round trip",
    text=say("glossary.round_trip"),
)
_TOUCH = Fact(
    name="Touch",
    text=say("glossary.touch"),
)


_STYLES: Mapping[str, str] = read_yaml(Path(__file__).with_name("styles.yml").read_text(encoding="utf-8"))
"""By the first part of layers' names."""


def _styles(rows: Iterable[Row]) -> Iterator[Fact]:
    """Yield what the styles are whose layers have numbers, in the order of the file."""
    here = {row.cell.series.layer.partition("-")[0] for row in rows}
    yield from (Fact(name=f"{style}-\u2026", text=text) for style, text in _STYLES.items() if style in here)


def glossary(rows: Sequence[Row], patterns: Mapping[str, PatternFile]) -> tuple[Fact, ...]:
    """Return the words that this campaign's report needs."""
    quantities = {row.numbers.quantity.title for row in rows}
    parameters = {one.title for file in patterns.values() for one in file.parameters.values()}
    found = list(_ALWAYS)
    if "round trip" in quantities:
        found.insert(0, _ROUND_TRIP)
    if "touch" in parameters:
        found.append(_TOUCH)
    return (*found, *_styles(rows))
