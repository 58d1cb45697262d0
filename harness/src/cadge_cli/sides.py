# SPDX-License-Identifier: BSD-3-Clause
"""The two sides that `cadge compare` is given: CAMPAIGN[:LAYER|:@BUILD|:(SETTINGS)|:CELL]."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from cadge_cli.options import with_launches
from cadge_cli.words import say
from cadge_harness.errors import NothingSelectedError, UsageError
from cadge_harness.paths import find_checkout
from cadge_results.formats.point import AGAIN
from cadge_results.plugins.build import is_variant, variant_of

if TYPE_CHECKING:
    from cadge_analysis.stats.load import Cell, Dataset
    from cadge_analysis.versus.sides import Side

SHARE = re.compile(r"([0-9]+(?:\.[0-9]+)?)%")
MARGIN_MOST = 1.0
NAMED_MOST = 8


class Campaigns:
    """Campaigns of a store, each read once."""

    def __init__(self, results: Path | None) -> None:
        from cadge_results import Store

        self._store = Store(results or find_checkout().campaigns)
        self._read: dict[str, Side] = {}

    def side(self, campaign: str, *, lean: bool = False) -> Side:
        """Return a campaign by what a user calls it; the last one where that is nothing. lean: as of `Side.lean`."""
        from cadge_analysis.stats.load import read
        from cadge_analysis.versus.sides import Side

        found = with_launches(self._store.open(campaign or "last"))
        if found.campaign_id not in self._read:
            self._read[found.campaign_id] = Side.lean(found) if lean else Side(found.campaign_id, read(found))
        return self._read[found.campaign_id]


def two_sides(results: Path | None, first: str, second: str, *, lean: bool) -> tuple[Side, Side]:
    """Return two campaigns, two layers or two variants. Raises UsageError for two of different kinds."""
    campaigns = Campaigns(results)
    sides = _side(campaigns, first, lean=lean), _side(campaigns, second, lean=lean)
    if sides[0].is_whole != sides[1].is_whole or bool(sides[0].variant) != bool(sides[1].variant):
        raise UsageError(say("compare.one_layer"))
    return sides


def _side(campaigns: Campaigns, text: str, *, lean: bool) -> Side:
    from cadge_analysis.versus.sides import variant_title
    from cadge_harness.plan.catalogue import no_layer

    campaign, colon, layer = text.partition(":")
    whole = campaigns.side(campaign, lean=lean)
    if not colon:
        return whole
    again = layer.endswith(f" {AGAIN}")
    whole = replace(whole, again=again)
    layer = layer.removesuffix(f" {AGAIN}")
    known = {series.label: series for series in whole.data.layers}
    if is_variant(layer):
        there = sorted({one for label in known if (one := variant_of(label, layer))})
        if layer not in there:
            titles = [*map(variant_title, there)]
            raise UsageError(
                say("compare.no_variant", campaign_id=whole.name, variant=variant_title(layer), there=titles)
            )
        return replace(whole, name=f"{whole.name}:{layer}{f' {AGAIN}' * again}", variant=layer)
    if layer not in known:
        raise UsageError(f"campaign {whole.name}: {no_layer(layer, known)}")
    return replace(whole, name=f"{whole.name}:{layer}{f' {AGAIN}' * again}", series=known[layer])


def two_cells(results: Path | None, first: str, second: str, cell: str) -> tuple[tuple[Side, Cell], tuple[Side, Cell]]:
    """Return two cells with their campaigns. `cell` is what both are called, where they are called something."""
    from cadge_analysis.versus.names import bare, split

    campaigns = Campaigns(results)
    shared = split(cell)
    both = bare(shared[0]).partition("->") if shared else ("", "", "")
    found = []
    for text, layer in ((first, both[0]), (second, both[2])):
        campaign, _, own = text.partition(":")
        data = campaigns.side(campaign).data
        # as compare calls a cell of two layers: the first word names both
        of_layers = both[1] and layer in {bare(series.label) for series in data.layers}
        found.append(_cell(data, (*split(own), *((layer, *shared[1:]) if of_layers else shared))))
    return found[0], found[1]


def _cell(data: Dataset, wanted: tuple[str, ...]) -> tuple[Side, Cell]:
    """Return the one cell that is called so. Raises UsageError where there are several, or none."""
    from cadge_analysis.versus.names import chosen, name_of, nearest, unknown, workloads
    from cadge_analysis.versus.sides import Side

    cells = [cell for cell in data.cells if cell.series.kind == "layer"]
    found = chosen(cells, wanted)
    if len(found) == 1:
        return Side(data.campaign_id, data, found[0].series), found[0]
    called = ", ".join(wanted) or "nothing"
    said = workloads(cells)
    names = tuple(name_of(cell, said[cell.point_id]) for cell in (found or nearest(cells, wanted))[:NAMED_MOST])
    if not found:
        strange = unknown(cells, wanted)
        why = say("compare.nothing_called", names=map(repr, strange)) if strange else ""
        there = say("compare.nearest") if len(cells) > NAMED_MOST else "; there are:"
        raise NothingSelectedError(
            say("compare.no_cell", campaign_id=data.campaign_id, called=called, why=why, there=there), commands=names
        )
    more = f"; {NAMED_MOST} of them:" if len(found) > NAMED_MOST else ":"
    raise UsageError(
        say("compare.several_cells", campaign_id=data.campaign_id, n=len(found), called=called, more=more),
        commands=names,
    )


def share_of(text: str, option: str) -> float:
    """Return a share that a user wrote as a percentage."""
    said = SHARE.fullmatch(text)
    if said is None:
        raise UsageError(say("compare.share", option=option, text=text))
    return float(said[1]) / 100


def margin_of(text: str) -> float:
    """Return what --margin says."""
    share = share_of(text, "--margin")
    if not 0 < share <= MARGIN_MOST:
        raise UsageError(say("compare.margin", text=text))
    return share
