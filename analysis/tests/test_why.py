# SPDX-License-Identifier: BSD-3-Clause
"""Two cells side by side: what is told of them, what counts as a difference, and by which names they are found."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import synthetic

from cadge_analysis.messages import say
from cadge_analysis.stats import load
from cadge_analysis.stats.load import Cell
from cadge_analysis.versus.names import bare, chosen, name_of, nearest, split, unknown, workloads
from cadge_analysis.versus.sides import Side
from cadge_analysis.versus.why import Aspect, Reasons, why

UCX = "native-ucx"
TCP = "sockets-tcp"


def made(folder: Path, **options: Any) -> Side:  # noqa: ANN401
    usual = {
        "layers": (UCX, TCP),
        "sizes": (8, 16384),
        "places": ("within",),
        "waits": ("poll",),
        "launches": 4,
        "samples": 400,
        "troubles": False,
        "floors": False,
    }
    data = load.read(synthetic.make(folder, synthetic.Options(**(usual | options))))
    return Side(data.campaign_id, data)


def cell(side: Side, text: str) -> Cell:
    [found] = chosen(side.data.cells, split(text))
    return found


def between(first: Side, one: str, second: Side, other: str, margin: float = 0.05) -> Reasons:
    return why(first, cell(first, one), second, cell(second, other), margin)


def told(found: Reasons) -> dict[tuple[str, str], Aspect]:
    return {(one.group, one.what): one for one in found.aspects}


@pytest.fixture(scope="module")
def usual(tmp_path_factory: pytest.TempPathFactory) -> Side:
    return made(tmp_path_factory.mktemp("usual"))


def test_two_layers(usual: Side) -> None:
    found = between(usual, f"{UCX}, rpc, 8 B", usual, f"{TCP}, rpc, 8 B")
    assert found.paired
    assert found.forbidden == ""
    assert found.shift is not None
    assert found.shift.log_ratio > 1
    assert found.first.endswith(f"{UCX}, within, poll, rpc, 8 B, round trip")
    said = {(one.group, one.what): (one.first, one.second) for one in found.differing}
    assert said["what", "layer"] == (UCX, TCP)
    assert said["path", "used"] == ("posix/memory, cma", "TCP over loopback")
    assert said["protocol", say("versus", "aspects.short_up_to")] == ("8 KiB", "not stated")
    assert said["versions", "library"] == ("UCX 1.13.1", "Linux sockets 6.18.5")
    assert ("costs an operation", "processors' time, all") in said
    assert {("campaign", "id"), ("host", "kernel"), ("what", "place")} <= {(one.group, one.what) for one in found.alike}


def test_on_which_side_of_a_threshold_a_message_is(usual: Side) -> None:
    found = told(between(usual, f"{UCX}, rpc, 8 B", usual, f"{UCX}, rpc, 16KiB"))
    one = found["protocol", "messages of this point"]
    assert (one.first, one.second, one.differs) == ("8 B: short", "16 KiB: longer", True)
    assert not found["protocol", say("versus", "aspects.short_up_to")].differs


def test_a_cell_beside_itself_differs_in_nothing(usual: Side) -> None:
    found = between(usual, f"{UCX}, rpc, 8 B", usual, f"{UCX}, rpc, 8 B")
    assert found.differing == ()
    assert found.shift is not None
    assert found.shift.log_ratio == 0


def test_exchanged_sides(usual: Side) -> None:
    there = between(usual, f"{UCX}, rpc, 8 B", usual, f"{TCP}, rpc, 8 B")
    back = told(between(usual, f"{TCP}, rpc, 8 B", usual, f"{UCX}, rpc, 8 B"))
    assert len(back) == len(there.aspects)
    for one in there.aspects:
        other = back[one.group, one.what]
        assert (other.first, other.second, other.differs) == (one.second, one.first, one.differs)


def test_only_the_members_of_a_fact_that_differ_stand_out(usual: Side, tmp_path: Path) -> None:
    libraries = {"libucp.so.0": {"version": "1.14"}, "libfabric.so.1": {"version": "1"}}
    after = made(tmp_path, seed=8, node={"libraries": libraries, "thp": "never"})
    found = between(usual, f"{UCX}, rpc, 8 B", after, f"{UCX}, rpc, 8 B", margin=0.3)
    said = {one.what: (one.first, one.second) for one in found.differing if one.group == "host"}
    assert said == {
        "libraries, libucp.so.0": (f"version: 1.13.1; build_id: {'ab' * 20}", "version: 1.14"),
        "libraries, libfabric.so.1": ("", "version: 1"),
        "transparent huge pages": ("madvise", "never"),
    }


def test_counts_copies_and_machine_probes(tmp_path: Path) -> None:
    def counted(point: dict[str, Any], attempt: dict[str, Any], _: int) -> None:
        slow = point["subject"]["layer"] == UCX
        attempt["counters"] = [{"copies": attempt["operations"] * (2 if slow else 1)}, {}]
        attempt["counted_operations"] = 100
        for use in attempt["cpu"]:
            use["system_calls"] = 300 if slow else 301
            use["involuntary_switches"] = 400 if slow else 0

    side = made(tmp_path, attempt_hook=counted, patterns=(("rpc", 1),))
    found = told(between(side, f"{UCX}, 8 B", side, f"{TCP}, 8 B"))
    copies = found["counted by the layer, an operation", "copies"]
    assert (copies.first, copies.second, copies.ratio, copies.differs) == ("2.00", "1.00", 0.5, True)
    calls = found["costs an operation", "system calls, all"]
    assert (calls.first, calls.second, calls.differs) == ("6.00", "6.02", False)
    assert found["costs an operation", "context switches (involuntary), all"].differs


def test_a_cell_without_a_number_says_why(tmp_path: Path) -> None:
    side = made(tmp_path, layers=(TCP, "native-ofi"), waits=("block",), troubles=True)
    found = between(side, f"{TCP}, rpc, 8 B", side, "native-ofi, rpc, 8 B")
    assert found.shift is None
    said = told(found)
    assert said["result", "why no number"].second.startswith("refused: libfabric's shm has no wait")
    assert said["result", "round trip"].second == "no number"


# ---- names ----


def test_each_cell_is_found_by_its_own_name(tmp_path: Path) -> None:
    """Also where all words of one are true of another: 8 B, and 8 B with replies that wait."""
    cells = made(tmp_path, given=({}, {"reply": "wait"}), launches=1).data.cells
    said = workloads(cells)
    names = [name_of(one, said[one.point_id]) for one in cells]
    assert len(set(names)) == len(names)
    assert f"{UCX}, within, poll, rpc, 8 B, reply wait, round trip" in names
    for one, name in zip(cells, names, strict=True):
        assert chosen(cells, split(name)) == [one]
    assert len(chosen(cells, split(f"{UCX}, rpc"))) == 4
    assert len(chosen(cells, split(f"{UCX}, rpc, reply wait"))) == 2


def test_words_in_any_order_and_spelling(usual: Side) -> None:
    assert cell(usual, "16kib , RPC,native-ucx") == cell(usual, f"{UCX}, within, poll, rpc, 16 KiB, round trip")
    assert cell(usual, f"request_bytes=8, {TCP}, rpc").series.layer == TCP
    assert chosen(usual.data.cells, split("rpc, nonsense")) == []
    assert unknown(usual.data.cells, split("rpc, nonsense")) == ["nonsense"]


def test_parts_of_names_are_taken_where_nothing_has_the_whole(usual: Side) -> None:
    """A whole part before a beginning, and that before what is only in it."""
    whole = cell(usual, f"{UCX}, within, poll, rpc, 16 KiB")
    for words in (
        "ucx, rpc, poll, within, 16 KiB",
        "UCX, rpc, 16K",
        "native_ucx, rpc, 16KiB",
        "nativ, rpc, trip, 16 KiB",
    ):
        assert cell(usual, words) == whole, words
    assert chosen(usual.data.cells, split("rpc, cx")) == chosen(usual.data.cells, split(f"rpc, {UCX}"))
    assert unknown(usual.data.cells, split("ucx, xcu, 9 B")) == ["xcu", "9 B"]


def test_the_cells_that_come_nearest(usual: Side) -> None:
    cells = usual.data.cells
    found = nearest(cells, split("ucx, rpc, 9 B, nonsense"))
    assert sorted(map(id, found)) == sorted(map(id, cells))
    assert found[0] in chosen(cells, split("ucx, rpc"))
    assert nearest(cells, ()) == list(cells)


def test_commas_in_brackets_are_of_the_name() -> None:
    assert split("a (x=1, y=2), poll,, 8 B") == ("a (x=1, y=2)", "poll", "8 B")
    assert bare("20\u202f\u00b5s") == "20us"
    assert bare("8 B \u2192 4 KiB") == "8b->4kib"
    assert bare("fetch_add") == bare("Fetch-Add")


def test_cells_that_would_be_called_the_same_are_told_apart(usual: Side) -> None:
    """A pattern's words may leave a parameter out."""
    file = usual.data.plan.patterns["rpc"]
    silent = file.model_copy(update={"words": file.words.model_copy(update={"workload": "{depth} in flight"})})
    vars(silent).pop("workload_words", None)
    cells = [one for one in usual.data.cells if one.case.pattern == "rpc" and one.series.layer == TCP]
    for one in cells:
        object.__setattr__(one.case, "file", silent)
    try:
        said = workloads(cells)
        assert sorted(said.values()) == [
            "1 in flight, request_bytes=16384, reply_bytes=16384",
            "1 in flight, request_bytes=8, reply_bytes=8",
        ]
        for one in cells:
            assert chosen(cells, split(name_of(one, said[one.point_id]))) == [one]
    finally:
        for one in cells:
            object.__setattr__(one.case, "file", file)
