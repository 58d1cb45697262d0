# SPDX-License-Identifier: BSD-3-Clause
"""The words that a report uses in a sense of its own, a sentence each: a reader may have its file and nothing else."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path

from cadge_analysis import messages
from cadge_analysis.blocks.make import facts_of
from cadge_analysis.blocks.model import Fact
from cadge_analysis.stats.compare import Row
from cadge_results import PatternFile
from cadge_results.plugins.catalogue import read_yaml

say = partial(messages.say, "report")

_ALWAYS = {
    "Layer": "layer",
    "Point, attempt, launch": "point",
    say("glossary.places_title"): "places",
    "Polling, blocking": "waits",
    "p50, p99": "quantiles",
    "Floor": "floor",
    "Baseline, verdict": "baseline",
    say("glossary.interval_title"): "interval",
    "Disturbed, settled": "disturbed",
}
"""By what is explained: the sentence that does."""
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
    needed = {
        **({"Round trip": "round_trip"} if "round trip" in quantities else {}),
        **_ALWAYS,
        **({"Touch": "touch"} if "touch" in parameters else {}),
    }
    return (*facts_of({name: say(f"glossary.{key}") for name, key in needed.items()}), *_styles(rows))
