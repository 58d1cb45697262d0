# SPDX-License-Identifier: BSD-3-Clause
"""Which floor a cell is divided by, when two layers are told apart, and what counts as one layer."""

from __future__ import annotations

from dataclasses import fields, replace
from pathlib import Path
from typing import Any, cast

import pytest
import synthetic

from cadge_analysis.messages import say
from cadge_analysis.page.parts import remarks
from cadge_analysis.stats import compare, launch_facts, load
from cadge_analysis.stats.knee import loads
from cadge_results import Campaign, LaunchRecord

TOUCHED = (("touch", "write+read"),)


def test_floors_are_of_the_same_place_wait_and_kind(campaign: Campaign) -> None:
    found = compare.compare(load.read(campaign))
    assert found.rows
    for row in found.rows:
        if row.floor is None:
            assert row.reason
            continue
        ours, floor = row.cell.case, row.floor.case
        assert (floor.place, floor.wait, row.floor.size) == (ours.place, ours.wait, ours.size)
        assert (floor.pattern == "flow") is (ours.pattern == "stream")
        assert all(not found.data.plan.floors[one.cell.series.layer].reference for one in row.floor.programs)


def test_references_stand_beside_and_divide_nothing(campaign: Campaign) -> None:
    rows = compare.compare(load.read(campaign)).rows
    beside = {(row.cell.case.pattern, row.cell.case.place, row.floor is None) for row in rows if row.references}
    assert ("rpc", "between", False) in beside
    assert ("stream", "between", True) in beside  # nothing but bare TCP streams between hosts
    for row in rows:
        assert all(one.size == one.program.cell.case.size == row.cell.case.size for one in row.references)


def test_raw_frames_are_the_floor_between_hosts(campaign: Campaign) -> None:
    found = compare.compare(load.read(campaign)).rows
    between = [row for row in found if (row.cell.case.place, row.cell.case.pattern) == ("between", "rpc")]
    assert {row.cell.case.size for row in between if row.floor} >= {8, 4096, 1 << 20}
    assert {row.floor.program.cell.series.layer for row in between if row.floor} == {"floor-xdp"}


def test_settings_and_shims_make_an_entry_of_their_own() -> None:
    tuned = load.Series("layer", "sockets-tcp", ("delay",), (("delay.delay_ns", "20000"),))
    assert tuned.label == "sockets-tcp + delay (delay.delay_ns=20000)"
    assert load.Series("layer", "sockets-tcp", (), ()).label == "sockets-tcp"


def test_a_path_may_change_in_its_numbers_alone(tmp_path: Path) -> None:
    options = synthetic.Options(layers=("sockets-tcp",), sizes=(8,), places=("within",), waits=("poll",), samples=100)
    data = load.read(synthetic.make(tmp_path, options))
    comparison = compare.compare(data)
    first, second = [one for one in data.records if one.launch.subject.kind == "layer"][:2]

    def took(record: LaunchRecord, path: str, host: str) -> LaunchRecord:
        assert record.result is not None
        paths = tuple(one.model_copy(update={"used": path}) for one in record.result.path)
        ends = tuple(one.model_copy(update={"host": host}) for one in record.launch.endpoints)
        return record.model_copy(
            update={
                "result": record.result.model_copy(update={"path": paths}),
                "launch": record.launch.model_copy(update={"endpoints": ends}),
            }
        )

    def found(one: str, other: str, *, hosts: tuple[str, str] = ("h1", "h1")) -> bool:
        records = (took(first, one, hosts[0]), took(second, other, hosts[1]))
        changed = replace(data, records=records)
        told = replace(comparison, data=changed)
        every = remarks.remarks(told, loads(told))
        assert not any("changed" in remark.title for remark in every), "the findings tell it, with both paths"
        return bool(launch_facts.changed(changed))

    assert not found("tcp; send buffer 69120 B", "tcp; send buffer 87040 B")
    assert found("posix/memory", "tcp/lo")
    # endpoints of other hosts have channels of another kind
    assert not found("posix/memory", "tcp/lo", hosts=("h1", "h2"))
    # two ends that differ in numbers alone are one path, as if they had agreed
    assert launch_facts.distinct_paths(["tcp; buffer 1 B", "tcp; buffer 2 B"]) == "tcp; buffer 1 B"
    assert launch_facts.distinct_paths(["posix/memory", "tcp/lo"]) == "posix/memory | tcp/lo"


@pytest.mark.parametrize(
    ("used", "transport"),
    [
        ("am am_bw#0: sysv/memory; ?: posix/memory; rma_bw#0: cma/memory; am_send: 0..<egr/short>..93", "shm"),
        ("amo#0 am am_bw#0: sysv/memory; amo#1: posix/memory; ", "shm"),
        ("rma_bw#0 am am_bw#0 wireup: tcp/data0; am_send: 0..<egr/short>..8185", "tcp"),
        ("am: rc_mlx5/mlx5_0:1; rma_bw#0: rc_mlx5/mlx5_0:1", "rc_mlx5"),
        ("provider tcp;ofi_rxm, domain data0, source 198.19.0.11; buffer_size 16384", "tcp"),
        ("provider shm, domain shm; disable_cma no", "shm"),
        ("pml ob1; btl vader; mtl none; osc none (no window); single copy cma", "shm"),
        ("pml cm; btl none; mtl ofi; osc none (no window)", "ofi"),
        ("PAIR over ipc", "ipc"),
        ("udp 198.19.0.11:18600, packets of 1472 bytes", "udp"),
        ("shared memory, rings of 2048 KiB, packets of 131064 bytes", "shm"),
        ("as the driver decides", ""),
        ("", ""),
    ],
)
def test_the_transport_is_a_word_of_the_path(used: str, transport: str) -> None:
    given = {one.name: "" for one in fields(launch_facts.LaunchFacts)} | {"used": used}
    assert launch_facts.LaunchFacts(**cast("Any", given)).transport == transport


@pytest.mark.parametrize(
    ("setting", "reason"),
    [(("link.rate", "1Gbit"), "link_without_rate"), (("kernel.net.core.busy_read", "50"), "kernel_as_it_is")],
)
def test_what_is_measured_otherwise_than_floors_has_none(
    campaign: Campaign, setting: tuple[str, str], reason: str
) -> None:
    """Floors are measured over the link and with the kernel as they are."""
    data = load.read(campaign)
    [cell, *_] = [row.cell for row in compare.compare(data).rows if row.floor is not None]
    slow = replace(cell, point_id="slow", series=replace(cell.series, settings=(setting,)))
    rows = compare.compare(replace(data, cells=(*data.cells, slow))).rows
    [row] = [row for row in rows if row.cell.series.settings == slow.series.settings]
    assert (row.floor, row.ratio, row.reason) == (
        None,
        None,
        say("stats", f"compare.{reason}"),
    )
    assert any(row.cell == cell and row.floor is not None for row in rows)
