# SPDX-License-Identifier: BSD-3-Clause
"""What a machine probe explains: found where it is there, and not where it is not."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np
import pytest

from cadge_analysis.stats.attempt_columns import MACHINE_PROBES, SPEED, attempt_columns
from cadge_analysis.stats.load import Dataset, read
from cadge_analysis.stats.numbers import per_launch
from cadge_analysis.stats.strips import explained
from cadge_results import Campaign, LaunchRecord
from cadge_results.formats.result import Witness


def with_probes(record: LaunchRecord, values: dict[int, dict[str, float | None]]) -> LaunchRecord:
    """Return the record as if its machine probe had said so, by what stands in `at`."""
    assert record.result is not None
    said = tuple(
        Witness(at=at, endpoint=endpoint, **{name: each.get(name) for name in MACHINE_PROBES})
        for at, each in values.items()
        for endpoint in (0, 1)
    )
    return record.model_copy(update={"result": record.result.model_copy(update={"witness": said})})


def probed(data: Dataset, said: Callable[[LaunchRecord], Mapping[str, float]]) -> Dataset:
    """Return the campaign as if each launch's probes had said so at all times, by name."""
    attempts = {}
    for record in data.records:
        of_launch, known = data.attempts[record.launch_id], said(record)
        row = [known.get(name, math.nan) for name in MACHINE_PROBES]
        speeds = [{name: known[name] for name in SPEED if name in known}] * len(record.launch.endpoints)
        attempts[record.launch_id] = replace(of_launch, probed=np.array([row] * len(of_launch.rows)), speeds=speeds)
    return replace(data, attempts=attempts)


def told(data: Dataset, *, line: Callable[[LaunchRecord], float]) -> Dataset:
    """Return the campaign as if each launch's bounced line had been `line(launch)`, and its copies left to chance."""
    chance = random.Random(3)
    return probed(data, lambda record: {"line_ns": line(record), "copy_ns": 2000 * 2 ** chance.uniform(-1, 1)})


def test_values_around_an_attempt(campaign: Campaign) -> None:
    record = next(one for one in campaign.readings() if one.result is not None and len(one.result.attempts) > 1)
    assert record.result is not None
    moments = {at: {"line_ns": 100.0 * (at + 1), "copy_ns": None} for at in range(len(record.result.attempts) + 1)}
    near = attempt_columns(with_probes(record, moments))
    for attempt in record.result.attempts:
        assert near.around(attempt.point_id) == {"line_ns": pytest.approx(100.0 * (attempt.order + 1.5))}
    assert near.around("no such point") == {}
    assert len(list(near.every_around())) == len(record.result.attempts)
    assert not any(attempt_columns(record).every_around())


def test_only_what_goes_with_the_values_explains_them(campaign: Campaign) -> None:
    data = read(campaign)
    cell = max(
        (cell for cell in data.cells if cell.case.file.main_quantity.kind == "histogram"),
        key=lambda cell: len({sample.launch_id for sample in cell.samples}),
    )
    assert len(cell.samples) >= 5
    values = {
        one.launch_id: per_launch(one.quantities[cell.case.file.main], cell.case.file.main_quantity)
        for one in cell.samples
    }
    found = {
        one.probe: one
        for one in explained(told(data, line=lambda record: values.get(record.launch_id, 1.0) ** 2), [cell])
    }
    assert set(found) == {"line_ns", "copy_ns"}
    assert found["line_ns"].share == pytest.approx(1)
    assert found["line_ns"].slope == pytest.approx(0.5)
    assert found["line_ns"].attempts == len(cell.samples)
    assert found["copy_ns"].share < 0.9
    assert explained(data, [cell]) == ()
