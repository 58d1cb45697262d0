# SPDX-License-Identifier: BSD-3-Clause
"""Where requests go: hits and forwarded requests as they were measured, beside what the relations say."""

from __future__ import annotations

from collections.abc import Sequence

from cadge_analysis import units, words
from cadge_analysis.blocks.make import line_of, row_name
from cadge_analysis.blocks.model import Region, TableLine
from cadge_analysis.cells.shown import Value
from cadge_analysis.stats import intervals
from cadge_analysis.study.plugin import ParameterValue as Given
from cadge_analysis.study.plugin import layer_table
from cadge_study_press.application import PERCENT, Application, AppPoint, Setting
from cadge_study_press.cluster import Cluster
from cadge_study_press.popularity import FileSet
from cadge_study_press.spec import say

KIB = 1024
COLUMNS = (
    "hits, measured",
    say("flow.che"),
    say("flow.zipf"),
    "forwarded, measured",
    "rule with h = 0",
    say("flow.rule"),
    say("flow.implied"),
)


def cluster_of(app: Application, values: dict[str, Given]) -> Cluster | str:
    """Return what a setting asks for, as the model has it; or why that is not known."""
    names = app.spec.parameters
    means = app.spec.files.get(str(values[names.files]))
    if means is None:
        return say("flow.unknown_files", files=values[names.files])
    nodes = int(values[names.nodes])
    cache = int(values[names.cache_kib]) * KIB
    total = nodes * cache * int(values[names.working_percent]) / PERCENT
    alpha = int(values[names.alpha_percent]) / PERCENT
    return Cluster(
        nodes=nodes,
        cache_bytes=cache,
        site=FileSet(total, means.file_bytes, means.reply_bytes, alpha),
        disk_ns=int(values[names.disk_ns]),
        disks=app.spec.disks,
    )


def _of_layers(points: Sequence[AppPoint], quantity: str) -> tuple[float, float, float] | None:
    found = [one.numbers.others[quantity].value for one in points if one.numbers and quantity in one.numbers.others]
    return (intervals.median(found), min(found), max(found)) if found else None


def _share(value: float) -> Value:
    return Value(text=f"{value:.1f}{units.THIN}%", raw=f"{value:.12g}")


def _measured(found: tuple[float, float, float] | None) -> Value:
    if found is None:
        return Value(text=units.MISSING, reason="not counted")
    value = _share(found[0])
    return Value(text=value.text, detail=f"{found[1]:.1f}\u2026{found[2]:.1f}", raw=value.raw)


def _row(app: Application, place: str, setting: Setting) -> TableLine | None:
    names = app.spec.quantities
    points = [
        one
        for one in app.clustered
        if one.setting == setting and one.where[0] == place and one.server == app.spec.outside.own and one.numbers
    ]
    if not points:
        return None
    hits, forwarded = _of_layers(points, names.hits), _of_layers(points, names.forwarded)
    label, detail = app.setting_text(setting), units.count_of(len(points), "layer")
    cluster = cluster_of(app, dict(setting))
    if isinstance(cluster, str):
        blank = Value(text=units.MISSING, reason=cluster)
        cells = (_measured(hits), blank, blank, _measured(forwarded), blank, blank, blank)
        return line_of(row_name(label, detail), cells)
    nodes = cluster.nodes
    rule = PERCENT * (nodes - 1) / nodes
    whole = nodes * cluster.cache_bytes
    cells = (
        _measured(hits),
        _share(PERCENT * cluster.site.kept(whole)),
        _share(PERCENT * cluster.site.mass(whole)),
        _measured(forwarded),
        _share(rule),
        _share(rule * hits[0] / PERCENT) if hits else Value(text=units.MISSING, reason="not counted"),
        # Q = (N - 1) / N (H - h), solved for h
        _share(hits[0] - forwarded[0] * nodes / (nodes - 1))
        if hits and forwarded
        else Value(text=units.MISSING, reason="not counted"),
    )
    return line_of(row_name(label, detail), cells)


def hits(app: Application) -> Region:
    """Return hits and forwarded requests, setting by setting: they are nearly the same over all layers."""
    tables = []
    for place in words.PLACE_ORDER:
        rows = tuple(row for setting in app.settings if (row := _row(app, place, setting)))
        if rows:
            title = f"Shares of requests, {words.PLACES[place]}"
            tables.append(layer_table(title, COLUMNS, rows, head="working set", wide=True))
    return app.part(
        "hits",
        (say("flow.measured"),),
        tuple(tables),
    )
