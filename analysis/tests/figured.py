# SPDX-License-Identifier: BSD-3-Clause
"""Reports that have, between them, the figures that few campaigns have: pairs, time to connect, memory, imports, the
contrast of a pattern's choices, residuals of a model, and the p99.9 above a knee. What looks at a page looks at these
as well.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import synthetic
import test_baseline_report
import test_imported
import test_knee_report
import test_loggp_report
from test_scale_figures import connected, ends, weighed

from cadge_analysis import report
from cadge_analysis.stats import load
from cadge_results import Campaign, LaunchRecord

HAVE = {
    "bursts": ("loggp-within-poll", "loggp-within-poll-residuals"),
    "load": ("load-within-poll-p99", "load-within-poll-p999"),
    "mixed": ("mixed-within-poll", "mixed-within-poll-contrast"),
    "pairs": ("connect-within-poll", "memory-within-poll", "rpc-within-poll", "stream-within-poll-pairs"),
}
"""Which figures each report has, among others."""


def pages(folder: Path) -> dict[str, Path]:
    """Return the reports by what they are of."""
    made = {
        "bursts": load.read(_bursts(folder)),
        "load": load.read(test_knee_report.campaign(folder / "load", hooked=_many)),
        "mixed": load.read(test_baseline_report.campaign(folder / "mixed")),
        "pairs": _pairs(folder / "pairs"),
    }
    for name, data in made.items():
        (folder / f"{name}.html").write_text(report.html(report.page_of(data)), encoding="utf-8")
    return {name: folder / f"{name}.html" for name in made}


def _bursts(folder: Path) -> Campaign:
    options = synthetic.Options(
        layers=("sockets-tcp", "native-ucx"),
        sizes=test_loggp_report.SIZES,
        places=("within",),
        waits=("poll",),
        patterns=(("loggp", 1), ("pingpong", 1)),
        given=({}, {"delay_percent": 100}),
        floors=False,
        troubles=False,
        launches=5,
        attempt_hook=test_loggp_report.by_hand,
    )
    return synthetic.make(folder / "bursts", options)


def _many(point: dict[str, Any], attempt: dict[str, Any], number: int) -> None:
    """120,000 samples a point, which are enough for the p99.9."""
    test_knee_report.hook(test_knee_report.usual)(point, attempt, number)
    if point["subject"]["layer"] != "null-self":
        synthetic.set_samples(attempt, [(1000, 19_700), (3000, 260), (50_000, 40)], "response")


def _pairs(folder: Path) -> load.Dataset:
    """Two patterns, one with two numbers of pairs; launches with one channel and with two; and what was imported."""
    options = synthetic.Options(
        layers=("sockets-tcp", "native-ucx"),
        sizes=(8, 64, 4096),
        places=("within",),
        waits=("poll",),
        patterns=(("rpc", 1), ("stream", 16)),
        launches=6,
        samples=300,
        troubles=False,
        given=({}, {"pairs": 2}),
    )
    data = load.read(synthetic.make(folder, options))
    records = tuple(_channelled(record, number) for number, record in enumerate(data.records))
    imported = test_imported.file("rpc")
    return replace(data, records=records, imported=(imported,))


def _channelled(record: LaunchRecord, number: int) -> LaunchRecord:
    if record.launch.subject.kind != "layer" or record.result is None:
        return record
    peers: list[tuple[int, ...]] = [(1,), (0,)] if number % 4 < 2 else [(1, 2), (0,), (0,)]
    made = connected(ends(record, peers), 1_000_000 + 10_000 * number)
    shared = 4_218_880 if record.launch.layer == "native-ucx" else 0
    return weighed(made, 30_000 + 1000 * number, shared, heavy=-1 if len(peers) < 3 else 0)
