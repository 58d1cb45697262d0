# SPDX-License-Identifier: BSD-3-Clause
"""What an application's points have in common and what not: at which load each stands, and over which way it went.

Whether a way goes through the kernel follows from what libraries said of their open channels: the medium, and the
transports by their libraries' names. No layer's name decides.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator

from cadge_analysis import units, words
from cadge_analysis.blocks.make import line_of, row_name
from cadge_analysis.blocks.model import Region, TableLine
from cadge_analysis.cells.shown import Value
from cadge_analysis.groups import by_key
from cadge_analysis.page.parts.findings import MEDIA, clipped
from cadge_analysis.stats.costs import costs_of
from cadge_analysis.stats.load import Series, series_of
from cadge_analysis.study.plugin import NOT_READ_BACK, PathFacts, layer_table
from cadge_study_press.application import Application, AppPoint
from cadge_study_press.load import given_rate
from cadge_study_press.spec import say

USED_MOST = 80
_PROTOCOLS = re.compile(r"\b(?:tcp|udp|ip|sockets|unix)\b", re.IGNORECASE)
"""The kernel's protocols, as libraries name what they use: "tcp/data0", "provider tcp;ofi_rxm", "btl tcp"."""
_FRAMES = re.compile(r"\b(?:AF_PACKET|AF_XDP|xdp)\b", re.IGNORECASE)
_DEVICE = re.compile(r"\b(?:RC queue pair|verbs|(?:rc|ud|dc)_\w+|mlx5|efa|psm[23]?|opx|cxi)\b", re.IGNORECASE)
"""Queues of a network device that a process writes itself."""
_COPIES = re.compile(r"\b(?:cma|knem|disable_cma no)\b", re.IGNORECASE)
"""The kernel copies long messages from one process to another."""
_NO_COPIES = re.compile(r"\bdisable_cma yes\b", re.IGNORECASE)


def through_kernel(path: PathFacts) -> str:
    """Return whether a way goes through the kernel, in words, from what was read back."""
    if not path.read_back:
        return f"not known: {path.used.removeprefix(NOT_READ_BACK)}"
    if path.medium == "loopback":
        return "yes, its sockets"
    if path.medium == "process":
        return "no"
    if path.medium == "memory":
        copies = _COPIES.search(path.used) and not _NO_COPIES.search(path.used)
        return say("ground.copies") if copies else "no"
    if path.medium == "network":
        if _DEVICE.search(path.used):
            return say("ground.device")
        if _FRAMES.search(path.used):
            return say("ground.driver")
        if _PROTOCOLS.search(path.used):
            return "yes, its protocols"
    return say("ground.unknown")


def ground(app: Application) -> Region:
    """Return the section."""
    blocks = dict.fromkeys(one.where for one in app.clustered)
    tables = []
    for place, wait in sorted(
        blocks, key=lambda one: (words.PLACE_ORDER.index(one[0]), words.WAIT_ORDER.index(one[1]))
    ):
        rows = tuple(_rows(app, place, wait))
        if rows:
            tables.append(
                layer_table(
                    say("ground.way", place=words.PLACES[place], wait=words.WAITS[wait]),
                    (
                        "through the kernel",
                        "carried by",
                        "the library says",
                        "system calls a call",
                        "requests/s",
                    ),
                    rows,
                    wide=True,
                )
            )
    return app.part("ground", (*_loads(app), *unlike(app)), tuple(tables))


# ---- loads ----


def _loads(app: Application) -> Iterator[str]:
    """Say how the load of points was set."""
    given = sorted({rate for one in app.clustered if (rate := given_rate(one.values, app.spec))})
    shared = [one for one in app.clustered if not given_rate(one.values, app.spec)]
    if given:
        yield say("ground.same_rate", rates=[units.grouped(round(rate)) for rate in given])
    if shared:
        yield say("ground.no_rate", points=len(shared), within=app.spec.one_load, base=app.spec.base)


def unlike(app: Application) -> Iterator[str]:
    """Say how many points are withheld as they do not stand at the load of their setting; nothing where all do."""
    held = [one for one in app.every if one.withheld]
    if not held:
        return
    known = [one.offered for one in held if one.offered]
    low, high = (min(one.low for one in known), max(one.high for one in known)) if known else (0.0, 0.0)
    offered = say("ground.offered", low=round(low), high=round(high)) if high else ""
    measured = sum(bool(one.numbers) for one in app.every) + len(held)
    text = say("ground.withheld", held=len(held), measured=measured, offered=offered)
    if any(one.offered and not one.offered.given for one in held):
        text = f"{text} {say('ground.give_rate', parameter=app.spec.parameters.rate)}"
    yield text


# ---- ways ----


def _rows(app: Application, place: str, wait: str) -> Iterator[TableLine]:
    here = (one for one in app.clustered if one.where == (place, wait) and one.server == app.spec.outside.own)
    for series, points in sorted(by_key(here, lambda one: one.cell.series).items()):
        paths = _paths(app, series, place, wait)
        if not paths:
            continue
        offered = dict.fromkeys(one.offered.text for one in points if one.offered)
        yield line_of(
            row_name(series.label),
            (
                _commonest(Counter(map(through_kernel, paths))),
                _commonest(Counter(_carried(path) for path in paths)),
                _commonest(Counter(clipped(path.used, USED_MOST) for path in paths), most=1),
                _system_calls(app, points[0]),
                Value(text=units.listing(list(offered)) or units.MISSING),
            ),
        )


def _paths(app: Application, series: Series, place: str, wait: str) -> list[PathFacts]:
    """Return the paths of all launches of a layer, between nodes or not: all of them are the layer's."""
    return [
        path
        for record in app.comparison.data.records
        if record.result is not None
        and (series_of(record.launch.subject), record.launch.place, record.launch.wait) == (series, place, wait)
        and app.spec.pattern in app.comparison.data.attempts[record.launch_id].patterns
        for path in record.result.path
    ]


def _carried(path: PathFacts) -> str:
    said = MEDIA.get(path.medium, path.medium)
    return f"{said} ({path.device})" if path.device and path.medium == "network" else said


def _commonest(found: Counter[str], most: int = 3) -> Value:
    """Return what most paths have in common first."""
    several = sum(1 for text in found if text) > 1
    common = [
        f"{text} ({often} of {units.count_of(found.total(), 'channel end')})" if several and most > 1 else text
        for text, often in found.most_common()
        if text
    ]
    rest = f" and {len(common) - most} more" if len(common) > most else ""
    return Value(text="; ".join(common[:most]) + rest if common else units.MISSING)


def _system_calls(app: Application, point: AppPoint) -> Value:
    """Return how many system calls both ends of a call took, of the shortest reply of the microbenchmark."""
    cells = sorted(app.calls(point), key=lambda cell: cell.case.workload.integer(app.spec.micro.reply))
    if not cells:
        return Value(text=units.MISSING, reason=say("ground.no_calls"))
    found = costs_of(cells[0].samples, cells[0].case.file.roles_of(cells[0].case.workload)).of.get("system_calls")
    if found is None:
        return Value(text=units.MISSING, reason="not counted")
    return Value(text=units.sig3(found.all_roles), raw=f"{found.all_roles:.12g}")
