# SPDX-License-Identifier: BSD-3-Clause
"""The words that a report uses in a sense of its own, a sentence each: a reader may have its file and nothing else."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from cadge_analysis.blocks.model import Fact
from cadge_analysis.stats.compare import Row
from cadge_results import PatternFile
from cadge_results.catalogue import read_yaml

_ALWAYS = (
    Fact(
        name="Layer",
        text="A communication library, used in one style and over one transport; its name says both, the style first.",
    ),
    Fact(
        name="Point, attempt, launch",
        text="A point is one measurement that was planned: a layer, a pattern of traffic with its sizes, a place, "
        "a way of waiting. A launch starts fresh processes and makes one attempt at each of its points. One "
        "attempt gives one number; a value in this report is the median of those numbers over launches.",
    ),
    Fact(
        name="Within one host, between hosts",
        text="Where the processes of a point run. An emulated testbed has its hosts in namespaces of one kernel.",
    ),
    Fact(
        name="Polling, blocking",
        text="How whoever waits for a message does it: looking again and again on its own processor, or asleep "
        "until it is woken.",
    ),
    Fact(
        name="p50, p99",
        text="Half of the operations take no longer than the p50, 99 of 100 no longer than the p99. A p50 is the "
        "median of the launches' own; a p99 is of the operations of all launches together, and below it stand the "
        "lowest and the highest of single launches (a\u2026b), which are no interval.",
    ),
    Fact(
        name="Floor",
        text="What this machine did with the same bytes without any layer, in the same campaign. 2\u00d7 the "
        "floor: twice the time; of a rate, 0.5\u00d7 is half of it. Below 1\u00d7 a time, or above it a rate,"
        " is better than the floor; where that is no chance, a warning says so. Each launch is divided by the floor of "
        "its own round, so the ratio is not one median divided by the other.",
    ),
    Fact(
        name="Baseline, verdict",
        text="The baseline is the layer to which all others are compared. A verdict is faster, slower, the same, "
        "or cannot tell, which is not the same: the launches do not decide it. A leading group holds the best layer, "
        "with a probability of 95\u202f% in each case; which of its members that is, it does not say.",
    ),
    Fact(
        name="Interval of a verdict, rank",
        text="The interval beside a verdict stands up to all comparisons of its family. Where so few rounds cannot be "
        "as sure as that, it is widened by a part of their range, and reaches beyond every round that was seen. So a "
        "layer may have the lowest median, or rank 1, and its verdict still be that it cannot be told: a rank is "
        "shared until launches tell layers apart.",
    ),
    Fact(
        name="Hindered, settled",
        text="An attempt is disturbed where other work had its processors for part of the time; it has settled "
        "where its times had become steady before measuring began.",
    ),
)
_ROUND_TRIP = Fact(
    name="Round trip",
    text="Whole, from request to reply. osu_latency and ucx_perftest print half of one: halve the figures here"
    " before you set them beside theirs.",
)
_TOUCH = Fact(
    name="Touch",
    text="With write+read every byte is written before it is sent and read where it arrives, inside the time; "
    "with none only headers are, as by most native tools.",
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
