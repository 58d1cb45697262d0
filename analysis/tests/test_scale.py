# SPDX-License-Identifier: BSD-3-Clause
"""Traffic among many endpoints: the closed form by hand, the simulation beside it, and what ends a simulation."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import pytest
from simgrid_here import MESSAGE, simgrid_needed

from cadge_analysis.errors import SimulatorMissingError
from cadge_analysis.messages import say
from cadge_analysis.models.loggp import MissingNumber, ModelLine, ModelNumber, Parameters, Piece
from cadge_analysis.models.message import Message, message
from cadge_analysis.models.scale import Prediction, closed_ns, scale
from cadge_analysis.models.simulate import Simulator
from cadge_analysis.models.topology import Kind, Topology
from cadge_analysis.models.traffic import Traffic, closed_form_ns, pairs, routes


def line(start_ns: float, per_byte_ns: float) -> ModelLine:
    return ModelLine(start_ns=ModelNumber(value=start_ns), per_byte_ns=ModelNumber(value=per_byte_ns), off=0.0)


def fitted(receive: ModelLine | MissingNumber, one_way: ModelLine) -> Parameters:
    piece = Piece(
        from_bytes=1, to_bytes=65536, gap=line(500, 0.25), one_way=one_way, send=line(300, 0), receive=receive
    )
    return Parameters(latency_ns=ModelNumber(value=2000), pieces=(piece,))


def test_a_message_is_what_the_fit_says() -> None:
    found = message(fitted(line(400, 0), line(2700, 0.25)), 4097)
    assert found == MESSAGE
    assert found.one_way_ns == 2700 + 0.25 * 4096


def test_a_refused_overhead_is_a_part_of_the_way() -> None:
    found = message(fitted(MissingNumber(refused="too few sizes"), line(2700, 0.25)), 4097)
    assert found.receive_ns == 0
    assert found.latency_ns == 2400
    assert found.one_way_ns == MESSAGE.one_way_ns
    assert found.notes == (say("models", "message.part_of_latency", name="o_r", refused="too few sizes"),)


def test_overheads_longer_than_a_message_are_parts_of_the_way() -> None:
    # both ends copy a page while it is on its way: the gap grows faster than the time of one message
    found = message(fitted(line(400, 0), line(900, 0.05)), 4097)
    assert (found.send_ns, found.receive_ns, found.latency_ns) == (0, 0, pytest.approx(80.8))
    assert found.one_way_ns == pytest.approx(900 + 0.05 * 4096)
    assert found.sends_every_ns == pytest.approx(500 + 0.25 * 4096)
    assert len(found.notes) == 1


def test_every_message_goes_somewhere_else() -> None:
    for traffic in Traffic:
        for endpoints in (2, 3, 8):
            sent = routes(traffic, endpoints)
            assert len(sent) == endpoints
            for sender, to in enumerate(sent):
                assert sender not in to
                assert len(set(to)) == len(to)
            assert set(pairs(traffic, endpoints)) <= {(s, to) for s, row in enumerate(sent) for to in row}
    assert sum(map(len, routes(Traffic.ALLTOALL, 5))) == 20
    assert routes(Traffic.INCAST, 3) == [[], [0], [0]]


def closed(traffic: Traffic, endpoints: int, message: Message, ways_ns: list[float] | None = None) -> float:
    """Return the closed form, of equal ways where none are given."""
    count = endpoints - 1 if traffic is Traffic.INCAST else endpoints
    return closed_form_ns(traffic, endpoints, message, ways_ns or [message.latency_ns] * count)


def test_the_closed_form_by_hand() -> None:
    one_ns = 300 + 2000 + 0.25 * 4096 + 400
    assert closed(Traffic.SHIFT, 9, MESSAGE) == one_ns
    # an interface takes a message every 500 + 1024 ns
    assert closed(Traffic.INCAST, 9, MESSAGE) == one_ns + 7 * 1524
    assert closed(Traffic.ALLTOALL, 9, MESSAGE) == one_ns + 7 * 1524
    short = replace(MESSAGE, size=1)
    # one byte: the processor has 300 + 400 ns to do for each, the interface only 500
    assert closed(Traffic.ALLTOALL, 9, short) == 2700 + 7 * 700
    assert closed(Traffic.INCAST, 9, replace(short, receive_ns=900)) == 3200 + 7 * 900


def test_the_closed_form_of_ways_that_differ() -> None:
    short = replace(MESSAGE, size=1)
    assert closed(Traffic.SHIFT, 3, short, [2000, 2000, 4000]) == 4700
    # those from near are taken before the one from afar comes
    assert closed(Traffic.INCAST, 4, short, [4000, 2000, 2000]) == 4700
    # or they are not: nine of them take 8 x 500 ns after the first
    assert closed(Traffic.INCAST, 11, short, [4000, *[2000] * 9]) == 2700 + 9 * 500


def test_a_longer_way_has_more_latency() -> None:
    near, far = (closed_ns(Traffic.SHIFT, Topology(kind, 16), MESSAGE) for kind in (Kind.STAR, Kind.FAT_TREE))
    assert far - near == MESSAGE.latency_ns


@simgrid_needed
@pytest.mark.parametrize("traffic", Traffic)
@pytest.mark.parametrize("endpoints", [2, 3, 24])
def test_a_star_simulates_as_its_closed_form(traffic: Traffic, endpoints: int) -> None:
    (found,) = scale(MESSAGE, [Kind.STAR], [traffic], [endpoints], Simulator())
    assert found.error == pytest.approx(0, abs=1e-9)


@simgrid_needed
def test_the_network_holds_up_what_shares_its_links() -> None:
    # of a dragonfly two groups have as many links as a router has endpoints, and a shift sends a whole group there
    (found,) = scale(MESSAGE, [Kind.DRAGONFLY], [Traffic.SHIFT], [64], Simulator())
    assert found.simulated_ns is not None
    assert found.simulated_ns > found.closed_ns + 2 * MESSAGE.bytes_ns
    assert found.error is not None
    assert found.error < 0


@simgrid_needed
def test_a_simulation_has_a_deadline_and_a_limit_of_memory() -> None:
    topology = Topology(Kind.STAR, 2000)
    sent = routes(Traffic.INCAST, 2000)
    assert Simulator(deadline_s=0.05).simulate(sent, topology, MESSAGE) == "not over after 0.05 s"
    said = Simulator(memory_bytes=200 << 20).simulate(sent, topology, MESSAGE)
    assert isinstance(said, str)
    assert "with 200 MiB of memory" in said


def test_without_simgrid_it_says_so(tmp_path: Path) -> None:
    with pytest.raises(SimulatorMissingError, match="python3-simgrid"):
        Simulator(python=Path(sys.executable)).version()  # of the virtual environment
    with pytest.raises(SimulatorMissingError, match="cannot be run"):
        Simulator(python=tmp_path / "no-python").version()


def test_without_simulation_all_sizes_have_a_closed_form() -> None:
    rows = list(scale(MESSAGE, tuple(Kind), list(Traffic), [2, 100_000], None))
    assert len(rows) == 18
    for row in rows:
        assert isinstance(row, Prediction)
        assert row.simulated_ns is None
        assert row.error is None
        assert row.reason == "not asked for"
        assert row.closed_ns >= MESSAGE.one_way_ns


@simgrid_needed
def test_beyond_what_can_be_simulated_the_reason_stands_there() -> None:
    (found,) = scale(MESSAGE, [Kind.STAR], [Traffic.ALLTOALL], [129], Simulator())
    assert found.simulated_ns is None
    assert found.reason == say("models", "scale.simulated_up_to", traffic="alltoall", most=128)
