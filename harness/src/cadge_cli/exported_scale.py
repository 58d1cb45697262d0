# SPDX-License-Identifier: BSD-3-Clause
"""`cadge export --format scale`: what measured LogGP parameters predict for more endpoints than there are."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click
from pydantic import JsonValue

from cadge_cli.fit_choice import ENDPOINTS, FitChoice, size_of
from cadge_cli.options import count_of_endpoints, gathered, listed, names_of
from cadge_cli.output import Output, table
from cadge_harness.errors import EXIT_OK, UsageError

if TYPE_CHECKING:
    from cadge_analysis.models.choose import ChosenFit
    from cadge_analysis.models.loggp import HeldOut
    from cadge_analysis.models.scale import Prediction


@dataclass(frozen=True, slots=True, kw_only=True)
class PredictionOptions:
    """What only a prediction is asked."""

    traffics: tuple[str, ...]
    file: Path | None
    simulation: bool
    deadline: str
    memory: str


scale_options = gathered(
    "predicting",
    PredictionOptions,
    click.option("--traffic", "traffics", multiple=True, metavar="NAMES", help="scale: incast, shift, alltoall; all."),
    click.option(
        "--parameters",
        "file",
        type=click.Path(path_type=Path, dir_okay=False),
        help="scale: a file of LogGP fits (cadge.loggp/1) instead of a campaign.",
    ),
    click.option(
        "--simulation/--no-simulation", default=True, help="scale: simulate with SimGrid, or use the closed form only."
    ),
    click.option(
        "--deadline", default="2min", show_default=True, metavar="TIME", help="scale: longest time of each simulation."
    ),
    click.option(
        "--memory", default="4GiB", show_default=True, metavar="SIZE", help="scale: most memory of each simulation."
    ),
)


def predict(output: Output, fits: Callable[[], ChosenFit], fit: FitChoice, predicting: PredictionOptions) -> int:
    """Predict traffic among more endpoints than there are, from measured LogGP parameters: `fits` of a campaign.

    The closed form knows of endpoints alone; a simulation by SimGrid also of the network between them.
    """
    from cadge_analysis.models import choose
    from cadge_analysis.models import scale as model
    from cadge_analysis.models.simulate import Simulator
    from cadge_analysis.models.topology import Kind
    from cadge_analysis.models.traffic import Traffic
    from cadge_results.units import parse_ms

    try:
        simulator = Simulator(deadline_s=parse_ms(predicting.deadline) / 1000, memory_bytes=size_of(predicting.memory))
    except ValueError as error:
        raise UsageError(str(error)) from error
    kinds = [Kind(name) for name in names_of(fit.topologies, tuple(Kind), "topology")]
    wanted = [Traffic(name) for name in names_of(predicting.traffics, tuple(Traffic), "traffic")]
    counts = [
        count_of_endpoints(text, model.ENDPOINTS_MOST)
        for text in listed("--endpoints", fit.endpoints, "16 64") or ENDPOINTS
    ]
    chosen = fits() if predicting.file is None else choose.choose(choose.read(predicting.file), **fit.asked)
    message = fit.message(chosen)
    rows = []
    for row in model.scale(message, kinds, wanted, counts, simulator if predicting.simulation else None):
        rows.append(row)
        if row.simulated_ns is not None:
            output.say(f"simulated: {row.topology.kind}, {row.traffic}, {row.topology.endpoints} endpoints")
    notes: list[JsonValue] = [*chosen.notes, *message.notes]
    data: dict[str, JsonValue] = {
        "about": chosen.about,
        "bytes": message.size,
        "notes": notes,
        "held_out": [one.model_dump(mode="json") for one in chosen.held_out],
        "predictions": [_data(row) for row in rows],
    }
    heads = [f"{chosen.about}, messages of {message.size} B", *map(str, notes), ""]
    return output.finish(EXIT_OK, data, [*heads, *_lines(rows), *_beside(chosen.held_out)])


def _data(row: Prediction) -> JsonValue:
    return {
        "topology": row.topology.kind,
        "traffic": row.traffic,
        "endpoints": row.topology.endpoints,
        "closed_form_ns": row.closed_ns,
        "simulated_ns": row.simulated_ns,
        "error": row.error,
        "reason": row.reason,
    }


def _beside(held_out: Sequence[HeldOut]) -> list[str]:
    """Return how far the same parameters were from what was measured."""
    if not held_out:
        return []
    cells = [("", "points", "off by, median", "at worst", "at")]
    for one in held_out:
        worst = f"{one.worst_error * 100:+.0f} %"
        cells.append((one.what, str(one.points), f"{one.median_error * 100:.0f} %", worst, one.worst_at))
    return ["", "The same parameters beside what was measured", *table(cells)]


def _lines(rows: Sequence[Prediction]) -> list[str]:
    from cadge_analysis.units import us

    cells = [("topology", "traffic", "endpoints", "closed form, us", "simulated, us", "closed form is off by")]
    for row in rows:
        simulated = us(row.simulated_ns) if row.simulated_ns is not None else "-"
        off = row.reason if row.error is None else f"{round(row.error * 100, 1) + 0.0:+.1f} %"
        cells.append((row.topology.kind, row.traffic, str(row.topology.endpoints), us(row.closed_ns), simulated, off))
    return table(cells)
