# SPDX-License-Identifier: BSD-3-Clause
"""The method in words. What the report does to numbers is said here and in `stats`; both must agree."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path

from cadge_analysis import messages, words
from cadge_analysis.blocks.make import facts_of
from cadge_analysis.blocks.model import Fact
from cadge_analysis.models.fit import PIECES_MOST, TOLERANCE
from cadge_analysis.models.pieces import SIZES_LEAST
from cadge_analysis.stats.compare import Row
from cadge_analysis.stats.disturbance import DISTURBED_SHARE
from cadge_analysis.stats.inference.rounds import EPOCHS_LEAST
from cadge_analysis.stats.intervals import TAIL_SAMPLES, rank_of_interval
from cadge_results import PatternFile
from cadge_results.formats.point import Value
from cadge_results.plugins.catalogue import read_yaml

say = partial(messages.say, "report")

Chosen = Mapping[tuple[str, str], Collection[Value]]
"""By pattern and parameter: the values that were planned."""


def _ranked(patterns: Mapping[str, PatternFile], chosen: Chosen) -> str:
    """Return by which values layers are ranked, and which of those that were planned stand beside."""
    by: dict[tuple[str, str, str], list[str]] = {}
    for pattern, file in patterns.items():
        for name, one in file.parameters.items():
            planned = chosen.get((pattern, name), ())
            if one.ranks is None or all(value == one.ranks for value in planned):
                continue
            others = " or ".join(value for value in one.values if value != one.ranks and value in planned)
            by.setdefault((one.title, str(one.ranks), others or "any other"), []).append(file.title)
    return " ".join(
        say("method.ranked", titles=titles, title=title, value=value, others=others)
        for (title, value, others), titles in by.items()
    )


def _of_open_loops(patterns: Mapping[str, PatternFile]) -> str:
    """Return what service times leave open, and who says it."""
    titles = [file.title for file in patterns.values() if file.loop == "open"]
    if titles:
        return say("method.open_loops", titles=titles)
    return say("method.no_open_loops")


def _intervals(launches: int, coverage: float, epochs: int) -> str:
    """Return what intervals over launches are, with the number of them that most values of the campaign have."""
    if epochs >= EPOCHS_LEAST:
        return say("method.over_epochs", epochs=epochs)
    if not coverage:
        return say("method.one_launch")
    k = rank_of_interval(launches)
    ends = "smallest and largest" if k == 1 else f"k = {k}"
    text = say("method.intervals", launches=launches, ends=ends, coverage=coverage)
    return say("method.few_epochs", text=text, epochs=epochs) if epochs > 1 else text


def _by_whom(own: Sequence[str]) -> str:
    """Return whose work is compared. own: layers whose library is a part of this suite."""
    layers = [words.isolated(one) for one in own]
    return say("method.authors", libraries=say("method.own_library" if own else "method.no_library", layers=layers))


def method(
    patterns: Mapping[str, PatternFile],
    verdicts: tuple[Fact, ...],
    *,
    several_ends: bool,
    launches: tuple[int, float] = (1, 0.0),
    epochs: int = 1,
    has_floors: bool = True,
    own: Sequence[str] = (),
    chosen: Chosen | None = None,
) -> tuple[Fact, ...]:
    """Return the section on method; what is timed is said for the patterns that were planned.

    verdicts: how they are made.
    several_ends: somewhere several endpoints measured the same.
    launches: how many most numbers are of, and how often their interval holds the true median.
    epochs: how many were planned.
    own: layers whose library is a part of this suite.
    chosen: what was planned.
    """
    fits = {"pieces_most": PIECES_MOST, "sizes_least": SIZES_LEAST, "tolerance": TOLERANCE}
    are_fitted = any(file.fits is not None for file in patterns.values())
    measured = {
        "Loops": _of_open_loops(patterns),
        "Models": say("method.loggp", **fits) if are_fitted else "",
        "Ranked by": _ranked(patterns, chosen or {}),
        "Values": say("method.launches"),
        "Intervals": _intervals(*launches, epochs),
        "Tails": say("method.tails", tail_samples=TAIL_SAMPLES),
        "Several ends": say("method.endpoints") if several_ends else "",
        "Floor": say("method.floor") if has_floors else say("method.no_floor"),
    }
    beside = {
        "Disturbed": say("method.disturbed", disturbed_share=DISTURBED_SHARE),
        "By whom": _by_whom(own),
        "Defaults": say("method.defaults"),
        "Units": say("method.units"),
    }
    return (*facts_of(measured), *verdicts, *facts_of(beside))


# ---- the words that a report uses in a sense of its own: a reader may have its file and nothing else ----

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
