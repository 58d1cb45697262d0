# SPDX-License-Identifier: BSD-3-Clause
"""Published parameters of LogGP above those fitted to ours: how much of a message is processor, how much network.

Absolute times of machines decades apart say nothing of the software; the processors' share of the time one way does.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

from cadge_analysis import messages, units, words
from cadge_analysis.blocks.make import line_of, number_columns, plain, row_name, words_column
from cadge_analysis.blocks.model import PUBLISHED, Block, Heading, Span, Table, TableLine
from cadge_analysis.cells.shown import Value
from cadge_analysis.models.campaign import fits_of
from cadge_analysis.models.loggp import LayerFit, MissingNumber, ModelLine, ModelNumber, Parameters
from cadge_analysis.stats.compare import Comparison
from cadge_analysis.stats.load import Dataset
from cadge_analysis.study.published import ModelledOf, ModelsOf, Publication, PublishedFigure

say = partial(messages.say, "study")

NOT_SEEN = "not seen"
COLUMNS = (words_column("system"), *number_columns(("o_s", "o_r", "L", "g", "one way", "processors")))
MORE_PROCESSOR = 0.5
"""From this share on a message is more processor than network."""


def _figure(published: Publication, name: str | None) -> Value:
    if name is None:
        return Value(text=units.MISSING, reason=NOT_SEEN)
    figure: PublishedFigure = published.figures[name]
    text = f"{figure.value:g}".replace("-", units.MINUS)
    return Value(text=text, detail=figure.tag, raw=f"{figure.value * units.NS_PER_US:.12g}")


def _share_of(send: float, receive: float, one_way: float) -> Value:
    share = (send + receive) / one_way
    return Value(text=units.percent(share, 0), raw=f"{share:.12g}")


def _then(published: Publication, system: ModelledOf) -> TableLine:
    share = Value(text=units.MISSING, reason=NOT_SEEN)
    if system.send and system.receive and system.one_way:
        known = [published.figures[name].value for name in (system.send, system.receive, system.one_way)]
        share = _share_of(*known)
    names = (system.send, system.receive, system.latency, system.gap, system.one_way)
    cells = (*(_figure(published, name) for name in names), share)
    return line_of(row_name(system.label, "published"), cells, role=PUBLISHED)


def _number(found: ModelNumber) -> Value:
    detail = units.ends(found.low, found.high, say=units.us).lstrip()
    return Value(text=units.us(found.value), detail=detail, raw=f"{found.value:.12g}")


def _at(found: ModelLine | MissingNumber, size: int) -> Value:
    if isinstance(found, MissingNumber):
        return Value(text=units.MISSING, reason=found.refused)
    return Value(text=units.us(found.at(size)), raw=f"{found.at(size):.12g}")


def processors_share(model: Parameters) -> float | None:
    """Return which part of the time one way of the smallest message o_s and o_r are; None where one was refused."""
    first = model.pieces[0]
    if isinstance(first.send, MissingNumber) or isinstance(first.receive, MissingNumber):
        return None
    size = first.from_bytes
    return (first.send.at(size) + first.receive.at(size)) / first.one_way.at(size)


def _now(one: LayerFit) -> TableLine:
    choices = "".join(f", {name} {value}" for name, value in one.choices.items())
    detail = f"{words.PLACES[one.place]}, {words.WAITS[one.wait]}{choices}"
    if isinstance(one.model, MissingNumber):
        return line_of(row_name(one.label, detail), (), one.model.refused)
    model, first = one.model, one.model.pieces[0]
    size, share = first.from_bytes, processors_share(model)
    latency = model.latency_ns
    cells = (
        _at(first.send, size),
        _at(first.receive, size),
        Value(text=units.MISSING, reason=latency.refused) if isinstance(latency, MissingNumber) else _number(latency),
        _at(first.gap, size),
        _at(first.one_way, size),
        Value(text=units.MISSING, reason="o_s or o_r was refused")
        if share is None
        else Value(text=units.percent(share, 0), raw=f"{share:.12g}"),
    )
    return line_of(row_name(one.label, detail), cells)


def sentences(fits: Sequence[LayerFit], comparison: Comparison) -> Iterator[str]:
    """Yield, place by place, of how many layers a message is more processor than network, or why that is not said."""
    held = {why: None for one in fits if (why := comparison.why_not(one.pattern, one.place, one.wait))}
    if held:
        yield say("fits.how_many_small_message", held=list(held))
    for place in words.PLACE_ORDER:
        here = [
            one.model
            for one in fits
            if one.place == place
            and isinstance(one.model, Parameters)
            and not comparison.why_not(one.pattern, one.place, one.wait)
        ]
        shares = [share for share in map(processors_share, here) if share is not None]
        if shares:
            more = sum(share > MORE_PROCESSOR for share in shares)
            yield (
                say(
                    "fits.small_message_more_processor",
                    capitalize=words.PLACES[place].capitalize(),
                    more=more,
                    n=len(shares),
                )
            )


def _table(fits: Sequence[LayerFit], comparison: Comparison, published: Publication, spec: ModelsOf) -> Iterator[Block]:
    ranking = {place: number for number, place in enumerate(words.PLACE_ORDER)}
    ordered = sorted(fits, key=lambda one: (ranking[one.place], one.wait, one.layer, one.shims, *one.settings.items()))
    yield Heading(3, spec.title)
    yield plain(spec.note)
    if found := " ".join(sentences(fits, comparison)):
        yield plain(found)
    yield Table(
        label=spec.title,
        role="plain range",
        columns=COLUMNS,
        lines=(*(_then(published, system) for system in spec.published), *map(_now, ordered)),
        caption=(Span(say("models")),),
        caption_role="dim",
    )
    if not fits:
        yield plain(say("fits.ours_blank_campaign_no"), "dim")


def has_points(data: Dataset) -> bool:
    """Tell whether a campaign has points that a model is fitted to."""
    return any(file.fits is not None for file in data.patterns.values())


def models(comparison: Comparison, published: Publication) -> tuple[Block, ...]:
    """Return the tables of a study that asks for them; `comparison` is gated."""
    fits = fits_of(comparison.data, comparison.numbers).fits if published.models else ()
    return tuple(block for one in published.models for block in _table(fits, comparison, published, one))
