# SPDX-License-Identifier: BSD-3-Clause
"""A pattern that measures much shows little at first: what it calls a detail stands in a second table."""

from __future__ import annotations

from pathlib import Path

import pytest

from cadge_analysis import units
from cadge_analysis.blocks import layout
from cadge_analysis.cells.shown import EMULATED_CALL_BYTES, whose_calls
from cadge_analysis.page.parts.tables import columns_of, parted
from cadge_results import PatternFile, ResultsError, read_workloads

ROOT = Path(__file__).parents[2]
WORKLOADS = read_workloads(ROOT / "harness")


def keys(name: str) -> tuple[list[str], list[str]]:
    file = WORKLOADS.file(name)
    first, rest = parted(file, columns_of(file, (), "sockets-tcp"))
    return [one.key for one in first], [one.key for one in rest]


def test_what_is_a_detail_stands_in_the_second_table() -> None:
    first, rest = keys("press")
    cpu = ["cpu_client", "cpu_node", "cpu_all"]
    assert first == ["wait", "p50", "verdict", "hit", "forwarded", "p99", "p99_verdict", *cpu, "launches"]
    assert {"file_messages", "copied_bytes", "wakeups", "offered", "p999", "lost", "samples"} <= set(rest)
    every = [one.key for one in columns_of(WORKLOADS.file("press"), (), "sockets-tcp")]
    floors = ["ratio", "above", "floor", "references"]
    assert sorted(first + rest + floors) == sorted(every), "the others stand in one of the two: it has no floor"


def test_a_pattern_without_details_shows_what_is_compared() -> None:
    first, rest = keys("rpc")
    assert first == ["wait", "p50", "verdict", "p99", "p99_verdict", "ratio", "launches"]
    assert {"p999", "floor", "above", "rate", "cpu_client", "samples"} <= set(rest)
    assert sorted(first + rest) == sorted(one.key for one in columns_of(WORKLOADS.file("rpc"), (), "sockets-tcp"))
    assert len(first) < layout.FEW, "they fit beside each other"


def test_an_emulated_call_says_how_long_its_message_is() -> None:
    header = (ROOT / "harness/driver/traffic/payload.h").read_text(encoding="utf-8")
    assert f"#define DRV_RPC_TRAILER_BYTES {EMULATED_CALL_BYTES}u" in header
    rpc, stream = WORKLOADS.file("rpc"), WORKLOADS.file("stream")
    assert whose_calls(("RELIABLE",), rpc) == f"emulated, {units.size(16)} more a message"
    assert whose_calls(("RPC", "RELIABLE"), rpc) == "native"
    assert whose_calls(("RELIABLE",), stream) == ""


def test_the_main_quantity_is_no_detail() -> None:
    document = WORKLOADS.file("press").to_object()
    document["quantities"]["response"]["detail"] = True
    with pytest.raises(ResultsError, match="cannot be a caveat or a detail"):
        PatternFile.from_object(document, source="press")
