# SPDX-License-Identifier: BSD-3-Clause
"""The ablation of a campaign as a table for people and as records for programs, units in their names."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import groupby

from cadge_analysis import messages, units, words
from cadge_analysis.errors import NoDataError
from cadge_analysis.judged import gated
from cadge_analysis.stats.ablation import LAUNCHES_LEAST, Ablation, Variant, ablations, reason, sizes
from cadge_analysis.stats.compare import compare
from cadge_analysis.stats.inference.sequential import ERROR
from cadge_analysis.stats.intervals import Estimate
from cadge_analysis.stats.load import read
from cadge_analysis.stats.numbers import Numbers
from cadge_results import Campaign

say = partial(messages.say, "report")

DEFAULT = "(default)"
COLUMNS = 5
Record = dict[str, str | int | float | bool | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class AblationGrid:
    """One layer at one place: the first row is the heading, the second the layer as it is. No rows: no numbers."""

    title: str
    rows: tuple[tuple[str, ...], ...]
    remarks: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class AblationAnswer:
    """The whole ablation: `data` is JSON."""

    data: dict[str, object]
    tables: tuple[AblationGrid, ...]
    note: str


def with_interval(estimate: Estimate, scale: float = 1.0, sign: str = "") -> str:
    """Return a median with its interval, as 1.18x [1.10, 1.25]."""
    text = f"{units.sig3(estimate.value * scale)}{sign}"
    if estimate.low is None or estimate.high is None:
        return text
    text += f" [{units.sig3(estimate.low * scale)}, {units.sig3(estimate.high * scale)}]"
    return f"{text}, {units.PAIRS_DISAGREE}" if estimate.pairs_disagree else text


def same_block(one: Ablation) -> tuple[object, ...]:
    """Return what the cases of one table share."""
    case = one.case
    return one.base, one.setting, case.place, case.wait, case.pattern


def unit_of(one: Ablation) -> tuple[str, float]:
    """Return what the medians of a table are, and what stored values are multiplied with."""
    quantity = one.case.file.main_quantity
    shown = words.shown(quantity)
    return f"{quantity.heading if quantity.kind != 'histogram' else 'p50'}, {shown.unit}", shown.scale


def note(found: Iterable[Ablation], withheld: str = "") -> str:
    """Return how to read the marks, and how often they are wrong; or why there are none."""
    if withheld:
        return say("ablation_table.withheld", withheld=withheld)
    told = sizes(found)
    if not told:
        return say("ablation_table.few_launches", least=LAUNCHES_LEAST)
    ratios = units.count_of(sum(told.values()), "ratio")
    families = "" if len(told) == 1 else f", in {units.grouped(len(told))} families"
    return say("ablation_table.marks", ratios=ratios, families=families, error=ERROR)


def _variant(variant: Variant) -> str:
    if variant.ratio is None:
        return units.MISSING
    return with_interval(variant.ratio, sign=units.TIMES) + (" *" if variant.differs else "")


def _table(members: Sequence[Ablation], setting: str, title: str) -> AblationGrid:
    _, scale = unit_of(members[0])
    rows = [(setting, *(words.workload(one.case) for one in members))]
    rows.append(
        (DEFAULT, *(with_interval(one.numbers.central, scale) if one.numbers else units.MISSING for one in members))
    )
    values = dict.fromkeys(variant.value for one in members for variant in one.variants)
    for value in values:
        found = [next((v for v in one.variants if v.value == value), None) for one in members]
        rows.append((value, *(_variant(variant) if variant else units.MISSING for variant in found)))
    troubled = [one.cell for one in members if one.numbers is None]
    troubled += [v.cell for one in members for v in one.variants if v.numbers is None]
    unlike = [v.unlike for one in members for v in one.variants if v.unlike]
    remarks = tuple(dict.fromkeys((*map(reason, troubled), *unlike)))
    if all(one.numbers is None and not any(v.numbers for v in one.variants) for one in members):
        rows = []
    return AblationGrid(title=title, rows=tuple(rows), remarks=remarks)


def tables(found: Sequence[Ablation]) -> Iterator[AblationGrid]:
    """Yield a table for each layer, setting, place, wait mode and pattern; wide ones in several pieces."""
    for _, group in groupby(found, key=same_block):
        members = list(group)
        first = members[0]
        unit, _ = unit_of(first)
        where = f"{words.PLACES[first.case.place]}, {words.WAITS[first.case.wait]}"
        who = words.isolated(first.base.label)
        title = say("ablation_table.title", who=who, where=where, pattern=words.pattern(first.case), unit=unit)
        for at in range(0, len(members), COLUMNS):
            yield _table(members[at : at + COLUMNS], first.setting, title)


def _central(name: str, unit: str, numbers: Numbers | None) -> Record:
    central = numbers.central if numbers else None
    return {
        f"{name}_{unit}": central.value if central else None,
        f"{name}_low_{unit}": central.low if central else None,
        f"{name}_high_{unit}": central.high if central else None,
    }


def records(found: Iterable[Ablation]) -> Iterator[Record]:
    """Yield one record for each variant in each case."""
    for one in found:
        case, quantity = one.case, one.case.file.main_quantity
        what = f"{case.file.main}_p50" if quantity.kind == "histogram" else case.file.main
        unit = words.slug(quantity)
        for variant in one.variants:
            ratio = variant.ratio
            missing = next(
                (cell for n, cell in ((one.numbers, one.cell), (variant.numbers, variant.cell)) if not n), None
            )
            yield {
                "layer": one.base.label,
                "setting": one.setting,
                "value": variant.value,
                "place": case.place,
                "wait": case.wait,
                "pattern": case.pattern,
                **case.workload.values,
                **_central(f"default_{what}", unit, one.numbers),
                **_central(what, unit, variant.numbers),
                "ratio": ratio.value if ratio else None,
                "ratio_low": ratio.low if ratio else None,
                "ratio_high": ratio.high if ratio else None,
                "coverage": ratio.coverage if ratio else None,
                "launches": ratio.launches if ratio else 0,
                "paired": ratio.paired if ratio else None,
                "pairs_disagree": ratio.pairs_disagree if ratio else None,
                "differs": None if variant.withheld or not ratio else variant.differs,
                "p": variant.verdict.p if variant.verdict else None,
                "level": variant.verdict.level if variant.verdict else None,
                "reason": reason(missing) if missing else variant.unlike or None,
            }


def answer(campaign: Campaign) -> AblationAnswer:
    """Return the ablation of a campaign. Raises NoDataError where no layer has variants of one setting."""
    comparison = gated(compare(read(campaign)))
    found = ablations(comparison)
    meta = campaign.meta
    if not found:
        raise NoDataError(say("ablation_table.no_pair", campaign_id=meta.campaign_id, sweep=meta.sweep))
    data: dict[str, object] = {
        "campaign_id": meta.campaign_id,
        "sweep": meta.sweep,
        "ratio": "variant / default",
        "rows": list(records(found)),
        "ratios": sum(variant.verdict is not None for one in found for variant in one.variants),
        "differ": sum(variant.differs for one in found for variant in one.variants),
        "error": ERROR,
        "withheld": comparison.withheld or None,
    }
    return AblationAnswer(data=data, tables=tuple(tables(found)), note=note(found, comparison.withheld))
