# SPDX-License-Identifier: BSD-3-Clause
"""The fits of a campaign: one for each layer as it was opened, place, wait mode and choice of the pattern's values."""

from __future__ import annotations

from collections.abc import Sequence

from cadge_analysis.models.bursts import FitKey, bursts, fitted_messages, groups, readings
from cadge_analysis.models.fit import fit
from cadge_analysis.models.held_out import held_out
from cadge_analysis.models.loggp import Fits, Fitted, Parameters, Refused
from cadge_analysis.stats.load import Cell, Dataset
from cadge_results.pattern import FitsOf


def fits_of(data: Dataset) -> Fits:
    """Return every fit that the campaign's points were measured for, in the order of their keys."""
    fitted = tuple(_fitted(key, cells, data) for key, cells in groups(data).items())
    return Fits(schema_=Fits.schema_id(), campaign_id=data.campaign_id, fits=fitted)


def _fitted(key: FitKey, cells: Sequence[tuple[FitsOf, Cell]], data: Dataset) -> Fitted:
    points = bursts(cells)
    found = list(readings(points))
    model: Parameters | Refused = fit(found) if found else Refused(refused="no burst without a delay gave a number")
    return Fitted(
        pattern=key.pattern,
        layer=key.series.layer,
        shims=key.series.shims,
        settings=dict(key.series.settings),
        place=key.place,  # type: ignore[arg-type] # as the plan has it
        wait=key.wait,  # type: ignore[arg-type]
        choices=dict(key.choices),
        launches=len({one.launch for one in found}),
        messages=fitted_messages(points),
        sizes_bytes=tuple(sorted({one.size for one in found})),
        model=model,
        held_out=held_out(model, key, points, data) if isinstance(model, Parameters) else (),
    )
