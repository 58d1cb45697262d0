# SPDX-License-Identifier: BSD-3-Clause
"""What every page has, whatever it is about."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from markupsafe import Markup

from cadge_analysis.draw import palette
from cadge_analysis.draw.palette import Identity
from cadge_analysis.page import provenance
from cadge_analysis.page.viewmodel import Sheet
from cadge_analysis.stats.compare import Comparison


def sheet(
    comparison: Comparison,
    *,
    generated: str,
    looks: Iterable[Identity] = (),
    made: Mapping[str, object] | None = None,
) -> Sheet:
    """Return it. `generated` is the page's time stamp, which the caller decides; `looks` are of its figures' series.

    made: what it was made with, see `making`.
    """
    light = {name: colour for colour, name in palette.NEUTRALS.items()}
    return Sheet(
        facts=provenance.campaign_facts(comparison.data),
        command=provenance.command(comparison.data),
        shapes=palette.SHAPES,
        looks=tuple((look.number, look.slot) for look in looks),
        palette_light=(*((f"s{n}", c) for n, c in enumerate(palette.LIGHT)), *light.items()),
        palette_dark=(*((f"s{n}", c) for n, c in enumerate(palette.DARK)), *palette.NEUTRALS_DARK.items()),
        data_json=Markup(provenance.as_json(provenance.embedded(comparison, made))),  # noqa: S704 - escaped by as_json
        generated=generated,
    )
