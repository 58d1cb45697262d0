# SPDX-License-Identifier: BSD-3-Clause
"""What each feature of a layer costs: without it \u00f7 with it, by round; or why that cannot be had.

A layer has a price where a campaign holds it with and without the feature in the same case. What has none is never
left out: the study\u2019s own reason stands there, or that of the harness, which refused it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from functools import partial

from cadge_analysis import messages, units, words
from cadge_analysis.blocks.make import line_of, number_columns, plain, row_name, words_column
from cadge_analysis.blocks.model import Block, Heading, Table, TableLine
from cadge_analysis.cells.shown import Value, estimate_value
from cadge_analysis.groups import by_key
from cadge_analysis.stats import intervals
from cadge_analysis.stats.ablation import ablations, reason
from cadge_analysis.stats.compare import Comparison
from cadge_analysis.stats.family_verdicts import told_apart
from cadge_analysis.stats.intervals import Estimate
from cadge_analysis.stats.load import Case, Cell, Series
from cadge_analysis.stats.numbers import Numbers
from cadge_analysis.stats.offered import unlike
from cadge_analysis.study.published import FeatureOf, PairOf, ParameterOf, Publication, ReasonOf, SeriesOf

say = partial(messages.say, "study")

NOT_SAID = say("features.no_reason_given")
NOT_SWITCHED = say("features.no_campaign_page_switches")
NOT_HERE = say("features.campaigns_do_not_layer")

Where = tuple[str, str]
"""Place and pattern: a column."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Price:
    """One case of one layer: the ratio and its two sides, or why there is none.

    `differs`: they are separated, beside all prices of the feature in its pattern, place and wait mode; where it is
    `withheld`, nothing is said of that.
    """

    label: str
    case: Case
    ratio: Estimate | None
    why: str
    sides: tuple[Numbers, Numbers] | None = None
    differs: bool = False
    withheld: bool = False

    @property
    def where(self) -> Where:
        return self.case.place, self.case.pattern


def _ratio(without: Cell, with_it: Cell, comparison: Comparison, label: str) -> _Price:
    numbers = {row.cell.point_id: row.numbers for row in comparison.rows}
    off, on = numbers.get(without.point_id), numbers.get(with_it.point_id)
    apart = unlike((without, with_it)) if off and on else ""
    if apart:
        return _Price(label=label, case=with_it.case, ratio=None, why=apart)
    ratio = intervals.ratio(off.by_round, on.by_round) if off and on else None
    bare = with_it if on is None else without
    why = "" if ratio is not None else reason(bare) if off is None or on is None else say("features.no_two_same_round")
    sides = (off, on) if off and on else None
    return _Price(label=label, case=with_it.case, ratio=ratio, why=why, sides=sides)


def _by_setting(comparison: Comparison, setting: str, value: str) -> Iterator[_Price]:
    for one in ablations(comparison):
        if one.setting != setting or one.base.settings or one.base.shims:
            continue
        for variant in one.variants:
            if variant.value == value:
                bare = variant.unlike or reason(variant.cell if one.numbers else one.cell)
                why = "" if variant.ratio is not None else bare
                sides = (variant.numbers, one.numbers) if variant.numbers and one.numbers and not why else None
                yield _Price(label=one.base.layer, case=one.case, ratio=variant.ratio, why=why, sides=sides)


def _is(series: Series, wanted: SeriesOf) -> bool:
    return (
        series.kind == "layer"
        and not series.shims
        and series.layer == wanted.layer
        and dict(series.settings) == wanted.settings
    )


def _by_pair(comparison: Comparison, pair: PairOf) -> Iterator[_Price]:
    cells = comparison.data.cells
    without = {cell.case: cell for cell in cells if _is(cell.series, pair.off)}
    for cell in cells:
        if _is(cell.series, pair.on) and cell.case in without:
            label = f"{cell.series.label}; without: {without[cell.case].series.label}"
            yield _ratio(without[cell.case], cell, comparison, label)


def by_parameter(comparison: Comparison, parameter: ParameterOf) -> Iterator[tuple[Cell, Cell]]:
    """Return cells of plain layers that differ in a parameter alone: that with its `off`, that with its `on`."""

    def rest(cell: Cell) -> tuple[object, ...]:
        kept = tuple((name, value) for name, value in cell.case.workload.items() if name != parameter.name)
        return cell.series, cell.case.place, cell.case.wait, cell.case.pattern, kept

    plain = [
        cell
        for cell in comparison.data.cells
        if cell.series.kind == "layer" and not cell.series.settings and not cell.series.shims
    ]
    without = {rest(cell): cell for cell in plain if cell.case.workload.values.get(parameter.name) == parameter.off}
    for cell in plain:
        if cell.case.workload.values.get(parameter.name) == parameter.on and rest(cell) in without:
            yield without[rest(cell)], cell


def _judged(comparison: Comparison, prices: Iterable[_Price]) -> Iterator[_Price]:
    """Yield the prices of one feature with what is separated."""
    listed = list(prices)
    families: dict[tuple[Where, str], list[tuple[Numbers, Numbers]]] = defaultdict(list)
    for price in listed:
        if price.sides:
            families[price.where, price.case.wait].append(price.sides)
    told = told_apart(comparison.data, families, withheld=bool(comparison.withheld))
    for price in listed:
        found = told[price.where, price.case.wait][price.sides[0].cell.point_id] if price.sides else None
        yield replace(price, differs=found is not None and found.differs, withheld=bool(found and found.withheld))


def _prices(comparison: Comparison, feature: FeatureOf, setting: str) -> Iterator[_Price]:
    if feature.switched:
        yield from _by_setting(comparison, setting, feature.switched)
    for pair in feature.pairs:
        yield from _by_pair(comparison, pair)
    if feature.parameter:
        for without, with_it in by_parameter(comparison, feature.parameter):
            yield _ratio(without, with_it, comparison, with_it.series.layer)


def _value(prices: Sequence[_Price]) -> Value:
    """Return one ratio with its interval, or the range of several medians and how many differ from 1."""
    priced = [price for price in prices if price.ratio is not None]
    ratios = [price.ratio for price in priced if price.ratio is not None]
    if not ratios:
        return Value(text=units.MISSING, reason=prices[0].why if prices else "not planned")
    differing = sum(price.differs for price in priced)
    withheld = any(price.withheld for price in priced)
    flag = "" if withheld else "differs" if differing else "same"
    held = " is withheld" if withheld else ""
    if len(ratios) == 1:
        return estimate_value(ratios[0], scale=1.0, reason="", sign=units.TIMES, flag=flag)
    low, high = min(ratio.value for ratio in ratios), max(ratio.value for ratio in ratios)
    return Value(
        text=f"{units.sig3(low)} to {units.times(high)}",
        detail=say(
            "features.sizes_differ_from", differing="how many" if withheld else differing, n=len(ratios), held=held
        ),
        raw=f"{low:.12g} {high:.12g}",
        flag=flag,
    )


def _why(layer: str, reasons: Sequence[ReasonOf]) -> str:
    return next((one.why for one in reasons if any(fnmatchcase(layer, glob) for glob in one.layers)), "")


def _lines(
    by_layer: Mapping[str, Sequence[_Price]], columns: Sequence[Where], layers: Sequence[str], feature: FeatureOf
) -> Iterator[TableLine]:
    priced = {label: found for label, found in by_layer.items() if any(price.ratio for price in found)}
    for label, found in priced.items():
        by_column = [[price for price in found if price.where == column] for column in columns]
        name, _, other = label.partition("; without: ")
        detail = f"without it: {other}" if other else ""
        yield line_of(row_name(name, detail), map(_value, by_column))
    bare: dict[str, list[str]] = defaultdict(list)
    for layer in layers:
        if layer not in priced:
            refused = next((price.why for price in by_layer.get(layer, ())), "")
            if feature.parameter and not by_layer:
                refused = NOT_SWITCHED
            can = NOT_HERE if feature.switched or feature.parameter else NOT_SAID
            bare[refused or _why(layer, feature.reasons) or can].append(layer)
    for why, members in bare.items():
        yield line_of(row_name(", ".join(members)), (), why)


def features(comparisons: Sequence[Comparison], published: Publication) -> tuple[Block, ...]:
    """Return each feature with the prices of all campaigns, the first campaign that has one counting."""
    setting = published.ablation.setting if published.ablation else ""
    seen = {
        cell.series.layer
        for comparison in comparisons
        for cell in comparison.data.cells
        if cell.series.kind == "layer" and fnmatchcase(cell.series.layer, published.layers)
    }
    found: list[Block] = []
    for feature in published.features:
        by_layer: dict[str, list[_Price]] = {}
        for comparison in comparisons:
            own = by_key(_judged(comparison, _prices(comparison, feature, setting)), lambda price: price.label)
            for label, prices in own.items():
                by_layer.setdefault(label, prices)
        measured = {price.where for prices in by_layer.values() for price in prices if price.ratio}
        columns = sorted(measured, key=lambda column: (column[1], words.PLACE_ORDER.index(column[0])))
        patterns = {price.where: price.case.file.title for prices in by_layer.values() for price in prices}
        heads = number_columns(f"{patterns[column]}, {words.PLACES[column[0]]}" for column in columns)
        found.append(Heading(3, feature.name))
        if feature.note:
            found.append(plain(feature.note))
        found.append(
            Table(
                label=feature.name,
                role="plain features",
                columns=(words_column("layer"), *(heads or (words_column("price"),))),
                lines=tuple(_lines(by_layer, columns, sorted(seen), feature)),
            )
        )
    return tuple(found)
