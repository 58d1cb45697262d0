# SPDX-License-Identifier: BSD-3-Clause
"""The sections of a study of an application: what its requests take, layer by layer and version by version."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence

from cadge_analysis import units, words
from cadge_analysis.blocks.make import line_of, row_name
from cadge_analysis.blocks.model import Region, Table, TableLine
from cadge_analysis.cells.shown import Value, estimate_value
from cadge_analysis.stats.compare import Comparison
from cadge_analysis.stats.intervals import Estimate
from cadge_analysis.study import hypotheses
from cadge_analysis.study.hypotheses import speaks
from cadge_analysis.study.plugin import layer_table
from cadge_analysis.study.published import Publication
from cadge_study_press import claims, flow, ground, model
from cadge_study_press.application import Application, AppPoint, ByRound, Setting, divided, estimate
from cadge_study_press.spec import ApplicationOf, say

US = 1 / units.NS_PER_US
MICRO, PER_CENT = " \u00b5s", f"{units.THIN}%"
Who = tuple[str, str, str]
"""Layer, whose servers, version."""
Block = tuple[str, str]


def sections(comparison: Comparison, published: Publication, spec: ApplicationOf) -> tuple[Region, ...]:
    """Return what a campaign says of the study's application; nothing where it has no point of several nodes."""
    app = Application(comparison, spec, published.layers)
    if not app.clustered:
        return ()
    models = model.Models(app)
    return (
        _answer(app, model.judgement(models)),
        ground.ground(app),
        _processors(app),
        _price(app),
        flow.hits(app),
        _counts(app),
        claims.versions(app),
        claims.factors(app),
        *model.sections(app, models),
        hypotheses.section(tuple(claims.claims(app))),
    )


# ---- rows of layers, columns of settings ----


def blocks(app: Application) -> dict[Block, dict[Who, dict[Setting, AppPoint]]]:
    """Return points by place and wait mode, by whose they are, by setting."""
    found: dict[Block, dict[Who, dict[Setting, AppPoint]]] = defaultdict(lambda: defaultdict(dict))
    for point in app.clustered:
        found[point.where][point.cell.series.label, point.server, point.version][point.setting] = point
    return {
        block: found[block]
        for block in sorted(found, key=lambda one: (words.PLACE_ORDER.index(one[0]), words.WAIT_ORDER.index(one[1])))
    }


def label(app: Application, who: Who) -> tuple[str, str]:
    """Return what a row is called, and what stands under it."""
    layer, server, version = who
    if server != app.spec.outside.own:
        return server, f"outside base; beside {layer}"
    several = len({one.version for one in app.clustered}) > 1
    return layer, version if several else ""


def where(block: Block) -> str:
    """Return place and wait mode in words."""
    return f"{words.PLACES[block[0]]}, {words.WAITS[block[1]]}"


def _table(
    app: Application,
    title: str,
    by_who: Mapping[Who, Mapping[Setting, AppPoint]],
    settings: Sequence[Setting],
    value: Callable[[AppPoint], Value],
    *,
    reasons: bool,
    wide: bool = False,
) -> Table:
    """Return a row for each layer and version with a number; `reasons`: those without any as well, by why not."""
    rows, bare = [], defaultdict[str, list[str]](list)
    for who in sorted(by_who):
        name, detail = label(app, who)
        points = [by_who[who].get(setting) for setting in settings]
        if not any(one for one in points):
            continue
        if not any(one and one.numbers for one in points):
            bare[next(one.why for one in points if one)].append(name)
            continue
        cells = tuple(_cell(one, value) for one in points)
        rows.append(line_of(row_name(name, detail), cells))
    for why, names in bare.items() if reasons else ():
        rows.append(line_of(row_name(", ".join(dict.fromkeys(names))), (), why))
    return layer_table(title, tuple(app.setting_text(one) for one in settings), tuple(rows), wide=wide)


def _cell(point: AppPoint | None, value: Callable[[AppPoint], Value]) -> Value:
    if point is None:
        return Value(text=units.MISSING, reason="not planned")
    return value(point) if point.numbers else Value(text=units.MISSING, reason=point.why)


def _both(
    app: Application, what: str, value: Callable[[AppPoint], Value], *, reasons: bool = False
) -> tuple[tuple[Table, ...], tuple[Table, ...]]:
    """Return a table of the main family for each place, and one of all other settings, which are folded."""
    first, more = [], []
    for block, by_who in blocks(app).items():
        main = [one for one in app.settings if app.is_main(one)]
        rest = [one for one in app.settings if not app.is_main(one)]
        first.append(_table(app, f"{what}, {where(block)}", by_who, main, value, reasons=reasons))
        if any(setting in by_setting for by_setting in by_who.values() for setting in rest):
            title = say("parts.one_factor", what=what, where=where(block))
            more.append(_table(app, title, by_who, rest, value, reasons=False, wide=True))
    return tuple(one for one in first if one.lines), tuple(one for one in more if one.lines)


def _us(by_round: ByRound, why: str, detail: str = "") -> Value:
    value = estimate_value(estimate(by_round), scale=US, reason=why)
    return Value(
        text=value.text, detail=" ".join(filter(None, (value.detail, detail))), raw=value.raw, reason=value.reason
    )


# ---- the answer ----


def _answer(app: Application, judgement: str) -> Region:
    """Return what a reader takes away, place by place."""
    if held := app.comparison.withheld:
        return app.part("answer", (say("parts.withheld", held=held),))
    said = [*ground.unlike(app)]
    for block, by_who in blocks(app).items():
        if why := app.comparison.why_not(app.spec.pattern, *block):
            said.append(f"{where(block).capitalize()}: withheld, {why}.")
            continue
        setting = app.at_main()
        first = next(iter(app.spec.versions.values))
        points = [
            found[setting]
            for (_, server, version), found in by_who.items()
            if setting in found and (server, version) == (app.spec.outside.own, first) and found[setting].numbers
        ]
        if points:
            said += [" ".join(_taken(app, block, points)), *_priced(app, points), *_beside(app, points)]
    said.append(f"{judgement[0].upper()}{judgement[1:]}")
    return app.part("answer", tuple(said))


def _spread(found: Mapping[str, Estimate], scale: float, unit: str) -> str:
    """Return the lowest and the highest, and whose they are."""
    ordered = sorted(found.items(), key=lambda one: one[1].value)
    (low, least), (high, most) = ordered[0], ordered[-1]
    if low == high:
        return f"{units.sig3(least.value * scale)}{unit} ({low})"
    return f"from {units.sig3(least.value * scale)} ({low}) to {units.sig3(most.value * scale)}{unit} ({high})"


def _of_each(points: Sequence[AppPoint], read: Callable[[AppPoint], ByRound]) -> dict[str, Estimate]:
    every = {point.cell.series.label: estimate(read(point)) for point in points}
    return {name: one for name, one in every.items() if one is not None}


def _taken(app: Application, block: Block, points: Sequence[AppPoint]) -> Iterator[str]:
    setting = app.at_main()
    size = app.setting_text(setting) if setting else ""
    taken = _spread(_of_each(points, app.cpu), US, MICRO)
    yield say("parts.taken", where=where(block).capitalize(), main=app.main_text(), size=size, taken=taken)
    parts = _of_each(points, lambda one: divided(app.communication(one), app.cpu(one)))
    if parts:
        yield say("parts.communication", share=_spread(parts, 100.0, PER_CENT))


def _priced(app: Application, points: Sequence[AppPoint]) -> Iterator[str]:
    prices = _of_each(points, app.price)
    ratios = _of_each(
        points, lambda one: {} if isinstance(micro := app.micro(one), str) else divided(app.price(one), micro)
    )
    if prices:
        calls = say("parts.price_in_calls", ratios=_spread(ratios, 1.0, " times")) if ratios else ""
        yield say("parts.price", price=_spread(prices, US, MICRO), calls=calls)


def _beside(app: Application, points: Sequence[AppPoint]) -> Iterator[str]:
    """Say how many layers take less than the base, more, or cannot be told from it."""
    base = next((one for one in points if one.cell.series.layer == app.spec.base), None)
    if base is None or len(points) < 2:
        return
    ratios = _of_each([one for one in points if one is not base], lambda one: divided(app.cpu(one), app.cpu(base)))
    less = [name for name, one in ratios.items() if speaks(one, most=1.0) == "for"]
    more = [name for name, one in ratios.items() if speaks(one, above=1.0) == "for"]
    open_ = [name for name in ratios if name not in (*less, *more)]
    said = [
        say(f"parts.beside.{key}", layers=names)
        for key, names in (("less", less), ("more", more), ("undecided", open_))
        if names
    ]
    yield f"Beside {app.spec.base}: {'; '.join(said)}."


# ---- processors' time, and what of it is communication ----


def _total(app: Application) -> Callable[[AppPoint], Value]:
    return lambda point: _us(app.cpu(point), "not recorded")


def _communication(app: Application) -> Callable[[AppPoint], Value]:
    def value(point: AppPoint) -> Value:
        alone = app.alone(point)
        if isinstance(alone, str):
            return Value(text=units.MISSING, reason=alone)
        part = app.communication(point)
        share = estimate(divided(part, app.cpu(point)))
        said = f"{units.percent(share.value, 0)} of it" if share else ""
        return _us(part, say("no_launch"), said)

    return value


def _processors(app: Application) -> Region:
    total, total_more = _both(app, say("parts.all_nodes"), _total(app), reasons=True)
    part, part_more = _both(app, say("parts.of_it"), _communication(app))
    said = [
        say("parts.columns", main=app.main_text()),
        *_stand_ins(app),
    ]
    return app.part("processors", tuple(said), (*total, *part), more=(*total_more, *part_more))


def _stand_ins(app: Application) -> Iterator[str]:
    """Say where the single node was measured, if not over each layer, and with how many connections."""
    found = [
        (point, alone) for point in app.clustered if point.numbers and not isinstance(alone := app.alone(point), str)
    ]
    others = dict.fromkeys(alone.from_ for _, alone in found if alone.from_)
    if others:
        yield say("parts.stand_ins", others=list(others))
    name = app.spec.parameters.connections
    if any(alone.connections < app.nodes(point) * int(point.values[name]) for point, alone in found):
        yield say("parts.fewer_connections")


def _price(app: Application) -> Region:
    tables = []
    for block, by_who in blocks(app).items():
        rows = tuple(_price_rows(app, by_who))
        if rows:
            tables.append(
                layer_table(
                    f"\u00b5s a forwarded request, {where(block)}",
                    (
                        "measured",
                        "its microbenchmark",
                        "measured \u00f7 microbenchmark",
                        say("parts.file_bytes"),
                    ),
                    rows,
                )
            )
    setting = app.at_main()
    all_prices, more = _both(
        app,
        "\u00b5s a forwarded request",
        lambda point: _us(app.price(point), _no_price(app, point)),
    )
    return app.part(
        "price",
        (say("parts.at", setting=app.setting_text(setting)),) if setting else (),
        tuple(tables),
        more=(*all_prices, *more),
    )


def _no_price(app: Application, point: AppPoint) -> str:
    """Return why a point has no price."""
    alone = app.alone(point)
    return alone if isinstance(alone, str) else say("no_launch")


def _price_rows(app: Application, by_who: Mapping[Who, Mapping[Setting, AppPoint]]) -> Iterator[TableLine]:
    setting = app.at_main()
    for who in sorted(by_who):
        point = by_who[who].get(setting) if setting else None
        if point is None or not (point.numbers or point.withheld):
            continue
        name, detail = label(app, who)
        if point.withheld:
            yield line_of(row_name(name, detail), (), point.withheld)
            continue
        price, micro = app.price(point), app.micro(point)
        size = app.file_bytes(point)
        cells = (
            _us(price, _no_price(app, point)),
            Value(text=units.MISSING, reason=micro) if isinstance(micro, str) else _us(micro, "no launch"),
            Value(text=units.MISSING, reason=say("parts.one_missing"))
            if isinstance(micro, str) or not price
            else estimate_value(estimate(divided(price, micro)), scale=1.0, reason=say("no_launch"), sign=units.TIMES),
            Value(text=units.MISSING, reason="nothing was forwarded")
            if size is None
            else Value(text=units.grouped(round(size)), raw=f"{size:.12g}"),
        )
        yield line_of(row_name(name, detail), cells)


# ---- what a request takes ----


def _counts(app: Application) -> Region:
    setting = app.at_main()
    tables = []
    file = app.comparison.data.patterns[app.spec.pattern]
    names = [name for name in app.spec.quantities.counts if name in file.quantities]
    for block, by_who in blocks(app).items():
        points = {who: one[setting] for who, one in by_who.items() if setting in one}
        measured = {who: one for who, one in points.items() if one.numbers or one.withheld}
        if not measured:
            continue
        tables.append(
            layer_table(
                say("parts.response", where=where(block)),
                ("p50", "p99", "requests/s", "context switches", "system calls"),
                tuple(_row(app, who, measured[who], _times(measured[who])) for who in sorted(measured)),
            )
        )
        tables.append(
            layer_table(
                f"Counts a request, {where(block)}",
                tuple(file.quantities[name].heading.removesuffix(" a request") for name in names),
                tuple(_row(app, who, measured[who], _quantities(measured[who], names)) for who in sorted(measured)),
                wide=True,
            )
        )
    said = [say("parts.at_with_intervals", setting=app.setting_text(setting))] if setting else []
    return app.part("counts", tuple(said), tuple(tables))


def _row(app: Application, who: Who, point: AppPoint, cells: tuple[Value, ...]) -> TableLine:
    name, detail = label(app, who)
    return line_of(row_name(name, detail), cells, point.withheld)


def _times(point: AppPoint) -> tuple[Value, ...]:
    numbers = point.numbers
    if numbers is None:
        return ()
    tail, costs = numbers.p99, numbers.costs
    p99 = Value(text=units.MISSING, reason=(tail.reason if tail else None) or "no samples")
    if tail is not None and tail.value is not None:
        p99 = Value(text=units.us(tail.value), raw=f"{tail.value:.12g}")
    return (
        estimate_value(numbers.central, scale=US, reason=""),
        p99,
        Value(text=units.sig3(numbers.operations_s), raw=f"{numbers.operations_s:.12g}"),
        *(
            Value(text=units.sig3(one.all_roles), raw=f"{one.all_roles:.12g}")
            if one
            else Value(text=units.MISSING, reason="not counted")
            for one in (costs.of.get("switches"), costs.of.get("system_calls"))
        ),
    )


def _quantities(point: AppPoint, names: Sequence[str]) -> tuple[Value, ...]:
    numbers = point.numbers
    if numbers is None:
        return ()
    return tuple(estimate_value(numbers.others.get(name), scale=1.0, reason="not counted") for name in names)
