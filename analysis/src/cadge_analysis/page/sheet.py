# SPDX-License-Identifier: BSD-3-Clause
"""What every page has, whatever it is about."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from markupsafe import Markup

from cadge_analysis.blocks.model import Fact, Sheet
from cadge_analysis.draw import palette
from cadge_analysis.draw.palette import Identity
from cadge_analysis.page.embed import ReportHead, embedded
from cadge_analysis.page.parts import provenance
from cadge_analysis.stats.compare import Comparison


def sheet(
    comparison: Comparison,
    *,
    generated: str,
    looks: Iterable[Identity] = (),
    making: Mapping[str, object] | None = None,
    said: ReportHead | None = None,
) -> Sheet:
    """Return it. `generated` is the page's time stamp, which the caller decides; `looks` are of its figures' series.

    making: what it was made with, see there; said: what the page says of its campaign as a whole.
    """
    facts = provenance.campaign_facts(comparison.data)
    data = embedded(comparison, facts, said, making)
    return dressed(facts, provenance.command(comparison.data), data, generated=generated, looks=looks)


def dressed(
    facts: tuple[Fact, ...],
    command: str,
    data: Mapping[str, object],
    *,
    generated: str,
    looks: Iterable[Identity] = (),
) -> Sheet:
    """Return it of what is known already: facts and command of the campaign, and the data that the page carries."""
    light = {name: colour for colour, name in palette.NEUTRALS.items()}
    return Sheet(
        facts=facts,
        command=command,
        looks=tuple((look.number, look.slot) for look in looks),
        palette_light=(*((f"s{n}", c) for n, c in enumerate(palette.LIGHT)), *light.items()),
        palette_dark=(*((f"s{n}", c) for n, c in enumerate(palette.DARK)), *palette.NEUTRALS_DARK.items()),
        data_json=Markup(provenance.as_json(data)),  # noqa: S704 - escaped by as_json
        generated=generated,
    )
