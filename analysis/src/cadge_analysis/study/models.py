# SPDX-License-Identifier: BSD-3-Clause
"""Published parameters of LogGP above those fitted to ours: how much of a message is processor, how much network.

Absolute times of machines decades apart say nothing of the software; the processors' share of the time one way does.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from cadge_analysis import units, words
from cadge_analysis.cells.shown import Value
from cadge_analysis.models.campaign import fits_of
from cadge_analysis.models.loggp import Fitted, ModelLine, ModelNumber, Parameters, Refused
from cadge_analysis.stats.compare import Comparison
from cadge_analysis.stats.load import Dataset
from cadge_analysis.study.model import ModelRow, Models
from cadge_analysis.study.published import Figure, ModelledOf, ModelsOf, Published

NOT_SEEN = "not seen"
MORE_PROCESSOR = 0.5
"""From this share on a message is more processor than network."""


def _figure(published: Published, name: str | None) -> Value:
    if name is None:
        return Value(text=units.MISSING, reason=NOT_SEEN)
    figure: Figure = published.figures[name]
    text = f"{figure.value:g}".replace("-", units.MINUS)
    return Value(text=text, detail=figure.tag, raw=f"{figure.value * units.NS_PER_US:.12g}")


def _share_of(send: float, receive: float, one_way: float) -> Value:
    share = (send + receive) / one_way
    return Value(text=units.percent(share, 0), raw=f"{share:.12g}")


def _then(published: Published, system: ModelledOf) -> ModelRow:
    share = Value(text=units.MISSING, reason=NOT_SEEN)
    if system.send and system.receive and system.one_way:
        known = [published.figures[name].value for name in (system.send, system.receive, system.one_way)]
        share = _share_of(*known)
    names = (system.send, system.receive, system.latency, system.gap, system.one_way)
    cells = (*(_figure(published, name) for name in names), share)
    return ModelRow(label=system.label, detail="published", published=True, cells=cells, reason="")


def _number(found: ModelNumber) -> Value:
    detail = ""
    if found.low is not None and found.high is not None:
        detail = units.interval(units.us(found.low), units.us(found.high))
    return Value(text=units.us(found.value), detail=detail, raw=f"{found.value:.12g}")


def _at(found: ModelLine | Refused, size: int) -> Value:
    if isinstance(found, Refused):
        return Value(text=units.MISSING, reason=found.refused)
    return Value(text=units.us(found.at(size)), raw=f"{found.at(size):.12g}")


def processors_share(model: Parameters) -> float | None:
    """Return which part of the time one way of the smallest message o_s and o_r are; None where one was refused."""
    first = model.pieces[0]
    if isinstance(first.send, Refused) or isinstance(first.receive, Refused):
        return None
    size = first.from_bytes
    return (first.send.at(size) + first.receive.at(size)) / first.one_way.at(size)


def _now(one: Fitted) -> ModelRow:
    settings = ", ".join(f"{key}={value}" for key, value in one.settings.items())
    label = " + ".join((one.layer, *one.shims)) + (f" ({settings})" if settings else "")
    choices = "".join(f", {name} {value}" for name, value in one.choices.items())
    detail = f"{words.PLACES[one.place]}, {words.WAITS[one.wait]}{choices}"
    if isinstance(one.model, Refused):
        return ModelRow(label=label, detail=detail, published=False, cells=(), reason=one.model.refused)
    model, first = one.model, one.model.pieces[0]
    size, share = first.from_bytes, processors_share(model)
    latency = model.latency_ns
    cells = (
        _at(first.send, size),
        _at(first.receive, size),
        Value(text=units.MISSING, reason=latency.refused) if isinstance(latency, Refused) else _number(latency),
        _at(first.gap, size),
        _at(first.one_way, size),
        Value(text=units.MISSING, reason="o_s or o_r was refused")
        if share is None
        else Value(text=units.percent(share, 0), raw=f"{share:.12g}"),
    )
    return ModelRow(label=label, detail=detail, published=False, cells=cells, reason="")


def _said(fits: Sequence[Fitted], comparison: Comparison) -> Iterator[str]:
    """Yield, place by place, of how many layers a message is more processor than network, or why that is not said."""
    held = {why: None for one in fits if (why := comparison.why_not(one.pattern, one.place, one.wait))}
    if held:
        yield f"Of how many a small message is more processor than network is withheld: {words.listing(list(held))}."
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
                f"{words.PLACES[place].capitalize()} a small message is more processor than network in {more} of "
                f"{units.count_of(len(shares), 'fit')}."
            )


def _table(fits: Sequence[Fitted], comparison: Comparison, published: Published, spec: ModelsOf) -> Models:
    ranking = {place: number for number, place in enumerate(words.PLACE_ORDER)}
    ordered = sorted(fits, key=lambda one: (ranking[one.place], one.wait, one.layer, one.shims, *one.settings.items()))
    return Models(
        title=spec.title,
        note=spec.note,
        said=" ".join(_said(fits, comparison)),
        rows=(*(_then(published, system) for system in spec.published), *map(_now, ordered)),
        missing="" if fits else "Ours is blank: this campaign has no points that a model is fitted to.",
    )


def has_points(data: Dataset) -> bool:
    """Tell whether a campaign has points that a model is fitted to."""
    return any(file.fits is not None for file in data.patterns.values())


def models(comparison: Comparison, published: Published) -> tuple[Models, ...]:
    """Return the tables of a study that asks for them; `comparison` is gated."""
    fits = fits_of(comparison.data).fits if published.models else ()
    return tuple(_table(fits, comparison, published, one) for one in published.models)
