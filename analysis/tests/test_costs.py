# SPDX-License-Identifier: BSD-3-Clause
"""What an operation costs each side: summed over launches, divided by the right operations, else with the reason."""

from __future__ import annotations

import csv
import io
from collections import Counter
from itertools import product
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pagereader
import pytest
import synthetic

from cadge_analysis import export, report
from cadge_analysis.messages import say
from cadge_analysis.stats.attempt_columns import PackedCounts, PackedUses, attempt_columns
from cadge_analysis.stats.costs import costs_of
from cadge_analysis.stats.inference.rounds import RoundKey
from cadge_analysis.stats.load import Measurement, PackedMeasures, Sample, _counted, _usable
from cadge_results import Campaign, LaunchRecord, PatternFile
from cadge_results.formats.histogram import NOTHING, Histogram, Resolution, merge
from cadge_results.formats.result import Attempt, CpuUse, PayloadCheck, Witness


def counting(point: dict[str, Any], attempt: dict[str, Any], number: int) -> None:
    """Two calls of the client and one and a half of the server, counted in the first launch alone; a fault in ten."""
    if point["subject"]["kind"] != "layer":
        return
    operations = attempt["operations"]
    client, server = attempt["cpu"]
    client |= {"minor_faults": operations // 10, "major_faults": 0, "cycles": None, "run_wait_ns": 3 * operations}
    server |= {"minor_faults": 0, "major_faults": 0, "run_wait_ns": operations, "stolen_ns": 0 if number else None}
    if number == 0:
        attempt["counted_operations"] = 2000
        client["system_calls"], server["system_calls"] = 4000, 3000


def sample(counted: dict[str, str], **use: int) -> Sample:
    """Return a launch with one endpoint."""
    nothing = dict.fromkeys(
        ("user_ns", "system_ns", "voluntary_switches", "involuntary_switches", "minor_faults", "major_faults"), 0
    )
    return Sample(
        launch_id="l1", round=RoundKey(0), quantities={}, elapsed_ns=1, operations=10, lost=0, late=0,
        cpu=(("client", CpuUse(**{**nothing, **use})),), steady=True, disturbed=False, counted=counted,
    )  # fmt: skip


def test_why_nothing_was_counted_is_what_the_launch_says_that_was_to_count() -> None:
    asked = {"system_calls": "not to be had: Operation not permitted", "cycles": "not to be had: no such counter"}
    other = {"system_calls": "not in this launch", "cycles": "not to be had: no such counter"}
    costs = costs_of([sample(other), sample(asked)], ["client"])
    assert costs.why == {
        "system_calls": "not to be had: Operation not permitted",
        "cycles": "not to be had: no such counter",
        "instructions": "not to be had: no such counter",
    }
    assert costs_of([sample(other)], ["client"]).why["system_calls"] == "not in this launch"
    costs = costs_of([sample({}, cycles=50, instructions=20), sample({})], ["client"])
    assert costs.of["cycles"].all_roles == 5.0
    assert set(costs.why) == {"system_calls"}


def row_of(campaign: Campaign) -> dict[str, str]:
    stream = io.StringIO()
    export.write(campaign, "csv", stream)
    rows = list(csv.DictReader(io.StringIO(stream.getvalue())))
    (row,) = (row for row in rows if row["kind"] == "layer" and row["state"] == "valid")
    return row


@pytest.fixture(scope="module")
def campaign(tmp_path_factory: pytest.TempPathFactory) -> Campaign:
    options = synthetic.Options(
        layers=("sockets-tcp",), sizes=(8,), places=("within",), waits=("poll",), patterns=(("rpc", 1),),
        troubles=False, attempt_hook=counting,
    )  # fmt: skip
    return synthetic.make(tmp_path_factory.mktemp("costs"), options)


@pytest.mark.parametrize("order", [1, -1])
def test_of_two_endpoints_the_one_that_could_not_count_is_heard(order: int) -> None:
    """Whichever of them comes first; of what both counted, either."""
    could, could_not = {"cycles": "by perf_event_open", "x": "here"}, {"cycles": "not to be had", "x": "here"}
    endpoints = [SimpleNamespace(counted=one) for one in (could, could_not)][::order]
    record = SimpleNamespace(result=SimpleNamespace(endpoints=endpoints))
    assert _counted(cast("LaunchRecord", record)) == could_not
    assert _counted(cast("LaunchRecord", SimpleNamespace(result=None))) == {}


def test_what_one_launch_counted_is_divided_by_what_it_counted(campaign: Campaign) -> None:
    row = row_of(campaign)
    assert (row["system_calls_client"], row["system_calls_server"], row["system_calls_all"]) == ("2.0", "1.5", "3.5")
    assert float(row["page_faults_client"]) == pytest.approx(0.1, rel=0.01)
    assert float(row["page_faults_all"]) == float(row["page_faults_client"])
    assert row["cycles_all"] == row["instructions_client"] == ""
    assert float(row["switches_all"]) == float(row["switches_client"]) + float(row["switches_server"])
    assert (row["run_wait_client_ns"], row["run_wait_server_ns"], row["run_wait_all_ns"]) == ("3.0", "1.0", "4.0")
    assert row["steal_all_ns"] == ""  # one launch does not tell


def test_the_report_shows_what_was_counted_and_says_what_was_not(campaign: Campaign, tmp_path: Path) -> None:
    report.build(campaign.path, tmp_path / "report.html")
    page = pagereader.read((tmp_path / "report.html").read_text())
    rows = [shown for shown in pagereader.full_rows(page) if shown.fields["system_calls"].numbers]
    assert rows
    assert {shown.fields["system_calls"].numbers[0] for shown in rows} == {3.5}
    for shown in rows:
        both = shown.fields["switches_client"].numbers[0] + shown.fields["switches_server"].numbers[0]
        assert shown.fields["switches_all"].numbers[0] == pytest.approx(both)
    assert all("cycles" not in shown.fields for shown in rows)
    assert say("report", "tables.not_counted", heads=["cycles and instructions"], why="not recorded") in page.text
    assert "How many system calls an operation takes" not in page.text


def use(**given: int | None) -> CpuUse:
    needed = ("user_ns", "system_ns", "voluntary_switches", "involuntary_switches", "minor_faults", "major_faults")
    return CpuUse.model_validate(dict.fromkeys(needed, 3) | given)


@pytest.mark.parametrize("large", [0, 1 << 31, 1 << 63, 1 << 90])
def test_uses_come_back_equal_each_with_its_role(large: int) -> None:
    uses = (use(user_ns=large, cycles=None, stolen_ns=0), use(wall_ns=large + 1))
    packed = PackedUses(("client", "server"), uses)
    assert list(packed) == [("client", uses[0]), ("server", uses[1])]
    assert len(packed) == 2
    assert packed[-1] == ("server", uses[1])
    assert packed[:1] == (("client", uses[0]),)
    [(_, again), _] = packed
    assert again.model_dump_json() == uses[0].model_dump_json()


@pytest.mark.parametrize(("roles", "uses", "kept"), [(2, 1, 1), (1, 2, 1), (0, 1, 0), (1, 0, 0)])
def test_a_use_without_a_role_and_a_role_without_a_use_are_left_out(roles: int, uses: int, kept: int) -> None:
    packed = PackedUses(("client", "server")[:roles], [use()] * uses)
    assert len(packed) == len(list(packed)) == kept
    assert bool(packed) is (kept > 0)


@pytest.mark.parametrize("counts", [{}, {"polls": 1 << 70, "copied_bytes": 0}])
def test_counts_come_back_in_their_order(counts: dict[str, int]) -> None:
    packed = PackedCounts(Counter(counts))
    assert packed == counts
    assert list(packed) == list(packed.keys()) == list(counts)
    assert len(packed) == len(counts)
    assert packed.get("nothing", 7) == 7
    assert Counter(packed) == counts


def test_measures_come_back_in_their_order() -> None:
    fine, far = Resolution(1, 100_000_000_000, 3), np.array([1 << 33])
    ends = Histogram(fine, np.array([3, 70_000]), np.array([1, 1 << 40])), Histogram(fine, np.array([4]), far)
    measures = {
        "latency": Measurement(counts=merge(ends), by_end=ends),
        "rate": Measurement(amounts=((1 << 70, 5), (0, 5))),
        "own": Measurement(counts=ends[1]),
        "share": Measurement(numbers=(0.25, -1.0)),
    }
    packed = PackedMeasures(measures)
    assert packed == measures
    assert list(packed) == list(measures)
    assert packed["rate"].counts == NOTHING
    assert packed["own"].counts.total == 1 << 33
    assert packed.get("nothing") is None
    assert len(packed) == 4


def test_what_a_launch_tells_of_its_endpoints(campaign: Campaign) -> None:
    """Medians of what was measured without the layer, and of the shares of waits; of what nobody measured, nothing."""
    record = next(one for one in campaign.readings() if one.result is not None)
    assert record.result is not None
    looks = [(0, 30.0, 8.0), (0, 10.0, None), (0, 14.0, None), (1, None, None)]
    probes = tuple(Witness(at=0, endpoint=end, line_ns=1.0, copy_ns=copy, clock_ns=clock) for end, copy, clock in looks)
    first = record.result.attempts[0]
    assert first.cpu
    waits = [(1000, 100), (1000, 300), (1000, 1000), (None, None)]
    uses = [first.cpu[0].model_copy(update={"wall_ns": wall, "run_wait_ns": wait}) for wall, wait in waits]
    cpus = [(uses[0], uses[3]), (uses[1],), (uses[2], uses[3]), None]
    attempts = tuple(
        first.model_copy(update={"point_id": f"{order:016x}", "order": order, "cpu": cpu})
        for order, cpu in enumerate(cpus)
    )
    result = record.result.model_copy(update={"witness": probes, "attempts": attempts})
    launch = record.launch.model_copy(update={"wait": "poll"})
    found = attempt_columns(record.model_copy(update={"result": result, "launch": launch}))
    assert found.speeds == [{"copy_ns": 14.0, "clock_ns": 8.0}, {}]
    assert found.waits == [0.3, None]
    assert found.around(f"{0:016x}") == {"line_ns": 1.0, "copy_ns": 18.0, "clock_ns": 8.0}
    assert found.around(f"{1:016x}") == found.around("no such point") == {}
    assert found.patterns == {first.workload.pattern}


def test_when_messages_were_compared(campaign: Campaign) -> None:
    """Before, in and after the loop."""
    record = next(one for one in campaign.readings() if one.result is not None)
    assert record.result is not None
    wanted, attempts = {}, []
    for before, within, after in product((0, 5), repeat=3):
        said = PayloadCheck(full_before=before, in_loop=within, full_after=after, mismatches=0)
        point_id = f"{len(wanted):016x}"
        attempts.append(record.result.attempts[0].model_copy(update={"point_id": point_id, "verified": said}))
        wanted[point_id] = (before > 0, within > 0, after > 0)
    result = record.result.model_copy(update={"attempts": tuple(attempts)})
    found = attempt_columns(record.model_copy(update={"result": result}))
    assert found.compared == wanted


@pytest.mark.parametrize(
    ("kind", "elapsed_ns", "amount", "usable"),
    [
        ("histogram", 5, 2, True),
        ("histogram", 5, 0, False),
        ("histogram", 0, 2, False),
        ("rate", 5, 2, True),
        ("rate", 5, 0, False),
        ("rate", None, 2, False),
    ],
)
def test_an_attempt_has_a_time_and_something_counted(
    kind: str, elapsed_ns: int | None, amount: int, usable: bool
) -> None:
    file = SimpleNamespace(main="x", main_quantity=SimpleNamespace(kind=kind))
    read = SimpleNamespace(count=amount, amount=amount, elapsed_ns=7)
    samples, rates = ([read], []) if kind == "histogram" else ([], [read])
    attempt = SimpleNamespace(elapsed_ns=elapsed_ns, samples=lambda _: samples, rates=lambda _: rates)
    assert _usable(cast("Attempt", attempt), cast("PatternFile", file)) is usable
    assert not _usable(None, cast("PatternFile", file))
