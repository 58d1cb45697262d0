# SPDX-License-Identifier: BSD-3-Clause
"""The fits of a campaign: one for each layer as it was opened, place, wait mode and choice of the pattern's values."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import NamedTuple

from cadge_analysis import messages
from cadge_analysis.cells.entry import Field, assignments, bounded
from cadge_analysis.models.bursts import FitKey, bursts, fitted_messages, groups, readings
from cadge_analysis.models.fit import fit
from cadge_analysis.models.held_out import held_out
from cadge_analysis.models.loggp import Fits, LayerFit, MissingNumber, ModelLine, ModelNumber, Parameters, Piece
from cadge_analysis.stats.load import Cell, Dataset
from cadge_analysis.stats.numbers import CellNumbers, Numbers
from cadge_results.plugins.rules import FitsOf

say = partial(messages.say, "models")


def fits_of(data: Dataset, numbers: Mapping[str, Numbers] | None = None) -> Fits:
    """Return every fit that the campaign's points were measured for, in the order of their keys.

    numbers: what its points measured, where that is at hand.
    """
    known = CellNumbers(data) if numbers is None else numbers
    fitted = tuple(_fitted(key, cells, data, known) for key, cells in groups(data).items())
    return Fits(schema_=Fits.schema_id(), campaign_id=data.campaign_id, fits=fitted)


def _fitted(
    key: FitKey, cells: Sequence[tuple[FitsOf, Cell]], data: Dataset, numbers: Mapping[str, Numbers]
) -> LayerFit:
    points = bursts(cells)
    found = list(readings(points))
    model: Parameters | MissingNumber = fit(found) if found else MissingNumber(refused=say("campaign.no_burst"))
    return LayerFit(
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
        held_out=held_out(model, key, points, data, numbers) if isinstance(model, Parameters) else (),
    )


class FittedPiece(NamedTuple):
    """The sizes of a fit that one protocol serves; None where there is no fit."""

    fitted: LayerFit
    piece: Piece | None


def pieces(fitted: LayerFit) -> list[FittedPiece]:
    """Return the pieces of a fit, one without sizes where it was refused."""
    found = fitted.model.pieces if isinstance(fitted.model, Parameters) else (None,)
    return [FittedPiece(fitted, one) for one in found]


def _latency(one: FittedPiece) -> ModelNumber | None:
    model = one.fitted.model
    return model.latency_ns if isinstance(model, Parameters) and isinstance(model.latency_ns, ModelNumber) else None


def _line(of: str, part: str) -> Callable[[FittedPiece], ModelNumber | None]:
    def number(one: FittedPiece) -> ModelNumber | None:
        line = getattr(one.piece, of, None)
        return getattr(line, part) if isinstance(line, ModelLine) else None

    return number


FITS: tuple[Field[FittedPiece], ...] = (
    Field("pattern", lambda one: one.fitted.pattern),
    Field("layer", lambda one: one.fitted.layer),
    Field("shims", lambda one: "+".join(one.fitted.shims)),
    Field("settings", lambda one: assignments(one.fitted.settings.items())),
    Field("place", lambda one: one.fitted.place),
    Field("wait", lambda one: one.fitted.wait),
    Field("choices", lambda one: assignments(one.fitted.choices.items())),
    Field("launches", lambda one: one.fitted.launches),
    Field("refused", lambda one: getattr(one.fitted.model, "refused", None)),
    *bounded("latency", "ns", _latency),
    Field("from_bytes", lambda one: one.piece.from_bytes if one.piece else None),
    Field("to_bytes", lambda one: one.piece.to_bytes if one.piece else None),
    *(
        field
        for of in ("gap", "one_way", "send", "receive")
        for part in ("start", "per_byte")
        for field in bounded(f"{of}_{part}", "ns", _line(of, f"{part}_ns"))
    ),
)
