# SPDX-License-Identifier: BSD-3-Clause
"""What an application says of a study's claims: order of layers, versions, factors, gains beside microbenchmarks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from cadge_analysis import units, words
from cadge_analysis.blocks.make import line_of, row_name
from cadge_analysis.blocks.model import Region, TableLine
from cadge_analysis.cells.shown import Value, estimate_value
from cadge_analysis.stats.intervals import Estimate
from cadge_analysis.study.hypotheses import Claim, judged, speaks
from cadge_analysis.study.plugin import layer_table
from cadge_study_press.application import Application, AppPoint, ByRound, divided, estimate, less, rank_correlation
from cadge_study_press.spec import FactorOf, say

ALIKE = 0.8
"""From this rank correlation on two orders of layers are called nearly the same."""
HALF = 0.5
"""A gain below this part of another one is far below it."""
Case = tuple[str, str]


def claims(app: Application) -> Iterator[Claim]:
    """Yield the claims, each with what speaks for it, or why that is withheld."""
    held = f"withheld: {app.comparison.withheld}" if app.comparison.withheld else ""
    for one in _claims(app):
        nothing = Value(text=units.MISSING)
        is_tested = any(cell.raw not in ("", "0") for cell in one.counts)
        yield replace(one, counts=(nothing, nothing, nothing), verdict=held) if held and is_tested else one


def _claims(app: Application) -> Iterator[Claim]:
    said = app.spec.said
    yield judged(
        say("claims.ranking.claim"),
        said.ranking,
        say("claims.ranking.measure", least=ALIKE),
        list(_ranking(app)),
        none=say("claims.ranking.none"),
    )
    yield judged(
        say("claims.versions.claim"),
        said.versions,
        say("claims.versions.measure"),
        list(_steps(app)),
        none=say("claims.versions.none"),
    )
    yield judged(
        say("claims.far_below.claim"),
        said.far_below,
        say("claims.far_below.measure", base=app.spec.base),
        list(_far_below(app)),
        none=say("claims.far_below.none", base=app.spec.base),
    )


# ---- the order of layers ----


def correlations(app: Application) -> Iterator[tuple[str, Estimate]]:
    """Yield the rank correlation of communication and microbenchmark, place by place and setting by setting."""
    first = next(iter(app.spec.versions.values))
    for setting in app.settings:
        for place in words.PLACE_ORDER:
            points = [
                one
                for one in app.clustered
                if (one.setting, one.version, one.server, one.where[0]) == (setting, first, app.spec.outside.own, place)
                and one.numbers
            ]
            pairs: list[tuple[ByRound, ByRound]] = []
            for one in points:
                micro = app.micro(one)
                # the single node is the same for all layers, or there is none: then the whole has the same order
                whole = app.communication(one) or app.cpu(one)
                if not isinstance(micro, str):
                    pairs.append((whole, micro))
            rounds = set.intersection(*({*a} & {*b} for a, b in pairs)) if len(pairs) >= 4 else set()
            found = {
                key: value
                for key in sorted(rounds)
                if (value := rank_correlation([a[key] for a, _ in pairs], [b[key] for _, b in pairs])) is not None
            }
            one_of_all = estimate(found)
            if one_of_all is not None:
                where = f"{words.PLACES[place]}, {app.setting_text(setting)}"
                yield f"{where}: {one_of_all.value:.2g} of {len(pairs)} layers", one_of_all


def _ranking(app: Application) -> Iterator[Case]:
    for label, found in correlations(app):
        word = speaks(found, above=ALIKE)
        # it can be 1 at most, so that an end at the bound itself speaks for the claim as well
        yield label, "for" if found.low is not None and found.low >= ALIKE and word == "open" else word


# ---- versions ----


def _sibling(app: Application, point: AppPoint, version: str) -> AppPoint | None:
    return next(
        (
            one
            for one in app.points
            if (one.cell.series, one.where, one.setting, one.server, one.version)
            == (point.cell.series, point.where, point.setting, point.server, version)
            and (one.numbers or one.withheld)
        ),
        None,
    )


def _pairs(app: Application, on: str, off: str) -> Iterator[tuple[AppPoint, AppPoint]]:
    """Yield points that were measured with both versions; of some the numbers are withheld."""
    for point in app.clustered:
        if point.version == on and (point.numbers or point.withheld) and point.server == app.spec.outside.own:
            before = _sibling(app, point, off)
            if before is not None:
                yield point, before


def _withheld(*points: AppPoint) -> str:
    """Return why points are not compared; empty where they are."""
    return next((one.withheld for one in points if one.withheld), "")


def _before(app: Application) -> list[tuple[str, str]]:
    names = list(app.spec.versions.values)
    return list(zip(names[1:], names, strict=False))


def _steps(app: Application) -> Iterator[Case]:
    for version, earlier in _before(app):
        for point, before in _pairs(app, version, earlier):
            found = None if _withheld(point, before) else estimate(divided(app.cpu(before), app.cpu(point)))
            if found is not None:
                yield f"{version} {point.cell.series.label}", speaks(found, above=1.0)


def _nearest(app: Application, pairs: Iterator[tuple[AppPoint, AppPoint]]) -> list[tuple[AppPoint, AppPoint]]:
    """Return the pairs of that setting of the main family which is nearest to where layers are ranked."""
    axis = app.spec.parameters.working_percent
    found = [(point, before) for point, before in pairs if app.is_main(point.setting)]
    at = min((point.setting for point, _ in found), key=lambda one: abs(int(dict(one)[axis]) - app.spec.at), default=())
    return [(point, before) for point, before in found if point.setting == at]


def versions(app: Application) -> Region:
    """Return what each version gains over the one before, in processors' time, and by counts."""
    tables, missing = [], []
    for version, earlier in _before(app):
        rows = [_step_row(app, point, before) for point, before in _nearest(app, _pairs(app, version, earlier))]
        if not rows:
            missing.append(version)
            continue
        tables.append(
            layer_table(
                f"{version}: {app.spec.versions.values[version]}",
                (
                    "gain",
                    "p50, before \u00f7 after",
                    "messages",
                    "without notifications",
                    *(_heading(app, name) for name in app.spec.quantities.steps),
                ),
                tuple(rows),
            )
        )
    said = [say("claims.not_measured", versions=missing)] if missing else []
    return app.part("versions", tuple(said), tuple(tables))


def _step_row(app: Application, point: AppPoint, before: AppPoint) -> TableLine:
    label, detail = point.cell.series.label, f"{words.PLACES[point.where[0]]}, {words.WAITS[point.where[1]]}"
    if point.setting != app.at_main():
        detail += f", working set {app.setting_text(point.setting)}"
    if why := _withheld(point, before):
        return line_of(row_name(label, detail), (), why)
    ratio = estimate(divided(app.cpu(before), app.cpu(point)))
    flag = _flag(app, point, ratio)
    names = app.spec.quantities
    silent = [name for name in names.messages if name != names.notified]
    return line_of(
        row_name(label, detail),
        (
            estimate_value(ratio, scale=1.0, reason=say("no_launch"), sign=units.TIMES, flag=flag),
            estimate_value(
                estimate(divided(before.numbers.by_round, point.numbers.by_round))
                if before.numbers and point.numbers
                else None,
                scale=1.0,
                reason=say("no_launch"),
                sign=units.TIMES,
            ),
            *(_before_after(before, point, counted) for counted in (names.messages, silent)),
            *(_before_after(before, point, [name]) for name in names.steps),
        ),
    )


def _flag(app: Application, point: AppPoint, ratio: Estimate | None) -> str:
    """Return how a ratio is marked: by nothing where the campaign withholds what differs."""
    if app.comparison.why_not(app.spec.pattern, *point.where):
        return ""
    return "differs" if ratio is not None and speaks(ratio, above=1.0) == "for" else "same"


def _heading(app: Application, quantity: str) -> str:
    found = app.comparison.data.patterns[app.spec.pattern].quantities.get(quantity)
    return found.heading.removesuffix(" a request") if found else quantity.replace("_", " ")


def _before_after(before: AppPoint, after: AppPoint, quantities: Sequence[str]) -> Value:
    """Return what was counted of some quantities together; those that were not counted at all count nothing."""
    found = []
    for one in (before, after):
        others = one.numbers.others if one.numbers else {}
        known = [others[name].value for name in quantities if name in others]
        if not known:
            return Value(text=units.MISSING, reason="not counted")
        found.append(sum(known))
    return Value(text=f"{units.sig3(found[0])} \u2192 {units.sig3(found[1])}", raw=f"{found[1]:.12g}")


# ---- factors ----


def factors(app: Application) -> Region:
    """Return the factors of the study one by one; one that no point has is a row that says so."""
    rows: list[TableLine] = []
    for factor in app.spec.factors:
        found = list(_factor_rows(app, factor))
        rows += found or [line_of(row_name(factor.name, factor.note), (), factor.absent)]
    return app.part(
        "factors",
        (),
        (
            layer_table(
                say("claims.factors"),
                ("processors\u2019 time a request", "difference, \u00b5s", "response time, p50"),
                tuple(rows),
                head="factor",
            ),
        ),
    )


def _factor_rows(app: Application, factor: FactorOf) -> Iterator[TableLine]:
    if factor.version_on:
        for point, before in _pairs(app, factor.version_on, factor.version_off):
            if app.is_main(point.setting):
                yield _factor_row(app, factor.name, before, point)
    elif factor.setting:
        wrapped = (factor.shim,) if factor.shim else ()
        for point in app.every:
            settings = dict(point.cell.series.settings)
            measured = point.numbers or point.withheld
            if point.cell.series.shims == wrapped and factor.setting in settings and measured:
                bare = _bare(app, point)
                if bare is not None:
                    yield _factor_row(app, f"{factor.name} {_shown(settings[factor.setting])}", point, bare)


def _shown(value: str) -> str:
    return f"+{units.us(float(value))} \u00b5s" if value.isdigit() else value


def _bare(app: Application, point: AppPoint) -> AppPoint | None:
    """Return the same point without shims."""
    return next(
        (
            one
            for one in app.points
            if (one.cell.series.layer, one.where, one.setting, one.server, one.version)
            == (point.cell.series.layer, point.where, point.setting, point.server, point.version)
            and (one.numbers or one.withheld)
        ),
        None,
    )


def _factor_row(app: Application, name: str, without: AppPoint, having: AppPoint) -> TableLine:
    who = having.version if having.server == app.spec.outside.own else having.server
    detail = f"{having.cell.series.layer} {who}, {words.PLACES[having.where[0]]}, {app.setting_text(having.setting)}"
    if why := _withheld(without, having):
        return line_of(row_name(name, detail), (), why)
    ratio = estimate(divided(app.cpu(without), app.cpu(having)))
    extra = estimate(less(app.cpu(without), app.cpu(having)))
    times = (
        estimate(divided(without.numbers.by_round, having.numbers.by_round))
        if without.numbers and having.numbers
        else None
    )
    flag = _flag(app, having, ratio)
    none = say("no_launch")
    return line_of(
        row_name(name, detail),
        (
            estimate_value(ratio, scale=1.0, reason=none, sign=units.TIMES, flag=flag),
            estimate_value(extra, scale=1 / units.NS_PER_US, reason=none),
            estimate_value(times, scale=1.0, reason=none, sign=units.TIMES),
        ),
    )


# ---- gains ----


def _far_below(app: Application) -> Iterator[Case]:
    """Judge layers whose calls are cheaper than the base's, wholly: others have no gain that could be compared."""
    for point in app.clustered:
        base = _of_base(app, point)
        if base is None or not point.numbers or not app.is_main(point.setting) or point.server != app.spec.outside.own:
            continue
        ours, theirs = app.micro(point), app.micro(base)
        if isinstance(ours, str) or isinstance(theirs, str):
            continue
        call = estimate(divided(theirs, ours))
        whole = estimate(divided(app.cpu(base), app.cpu(point)))
        if call is None or whole is None or speaks(call, above=1.0) != "for" or call.low is None:
            continue
        label = f"{point.cell.series.label} {point.version} {words.PLACES[point.where[0]]}"
        yield f"{label}, {app.setting_text(point.setting)}", speaks(whole, most=1 + HALF * (call.low - 1))


def _of_base(app: Application, point: AppPoint) -> AppPoint | None:
    first = next(iter(app.spec.versions.values))
    if point.cell.series.layer == app.spec.base:
        return None
    return next(
        (
            one
            for one in app.points
            if (one.cell.series.layer, one.where, one.setting, one.version, one.server)
            == (app.spec.base, point.where, point.setting, first, app.spec.outside.own)
            and one.numbers
        ),
        None,
    )
