# SPDX-License-Identifier: BSD-3-Clause
"""What a fitted model predicts of each pattern that says what it is to a model: by hand, with round numbers."""

from __future__ import annotations

import pytest
from synthetic import WORKLOADS

from cadge_analysis.models.held_out import predict_ns
from cadge_analysis.models.loggp import MissingNumber, ModelLine, ModelNumber, Parameters, Piece
from cadge_results import Workload
from cadge_results.plugins.parameter import holds


def line(start_ns: float, per_byte_ns: float) -> ModelLine:
    return ModelLine(start_ns=ModelNumber(value=start_ns), per_byte_ns=ModelNumber(value=per_byte_ns), off=0.0)


def model(receive: ModelLine | MissingNumber) -> Parameters:
    piece = Piece(
        from_bytes=1,
        to_bytes=1 << 20,
        gap=line(600, 1),
        one_way=line(2000, 2),
        send=line(300, 0),
        receive=receive,
    )
    return Parameters(latency_ns=ModelNumber(value=1000), pieces=(piece,))


MODEL = model(line(400, 0))


def predicted(pattern: str, known: Parameters = MODEL, **given: int | str) -> float | None:
    """Return the prediction of the first form that holds; None where the pattern has none for these values."""
    file = WORKLOADS.file(pattern)
    workload: Workload = file.workload(pattern, given)
    modelled = next((one for one in file.modelled_as if holds(one.when, workload)), None)
    return None if modelled is None else predict_ns(known, modelled, workload)


def one_way(size: int) -> float:
    return 2000 + 2 * (size - 1)


def test_messages_one_after_the_other() -> None:
    assert predicted("rpc", request_bytes=64, reply_bytes=8) == one_way(64) + one_way(8)
    assert predicted("pingpong", bytes=100) == predicted("pingpong", bytes=100, pairs=2) == 2 * one_way(100)


def test_a_call_that_is_passed_on_has_more_of_them() -> None:
    sizes = {"request_bytes": 16, "reply_bytes": 4096}
    assert predicted("delegated", route="direct", **sizes) == one_way(16) + one_way(4096)
    assert predicted("delegated", route="delegated", **sizes) == 2 * one_way(16) + one_way(4096)
    assert predicted("delegated", route="relay", **sizes) == 2 * one_way(16) + 2 * one_way(4096)


def test_a_handler_takes_its_time() -> None:
    assert predicted("handler", service_ns=10_000) == 2 * one_way(64) + 10_000
    assert predicted("handler", service_ns=10_000, spread="exponential") is None
    assert predicted("handler", service_ns=10_000, work="sleep") is None


def test_clients_wait_for_a_server_that_is_never_idle() -> None:
    # both ends of a message of 8 bytes keep an interface for 607 ns, and the server's processor for 700
    alone = 2 * one_way(8)
    assert predicted("incast", request_bytes=8, clients=1) == alone
    assert predicted("incast", request_bytes=8, clients=5) == alone  # 3,500 of 4,028 ns
    assert predicted("incast", request_bytes=8, clients=10) == 7000
    without = model(MissingNumber(refused="too few sizes"))
    assert predicted("incast", without, request_bytes=8, clients=10) == 6070


def test_all_to_all_takes_a_message_more_for_each_endpoint_more() -> None:
    # 300 and 400 ns of a processor for each, and an interface that takes 600 ns and 63 for its bytes
    alone = one_way(64)
    assert predicted("alltoall", bytes=64, endpoints=2) == alone
    assert predicted("alltoall", bytes=64, endpoints=8) == pytest.approx(alone + 6 * 700)
    assert predicted("alltoall", bytes=1024, endpoints=8) == pytest.approx(one_way(1024) + 6 * (600 + 1023))


def test_a_call_waits_for_the_stream_in_front_of_it() -> None:
    given = {"request_bytes": 8, "bulk_bytes": 32768, "window": 4}
    alone = 2 * one_way(8)
    assert predicted("mixed", request_bytes=8, aggressor="none") == alone
    for aggressor in ("same", "channel", "endpoint"):
        assert predicted("mixed", aggressor=aggressor, **given) == alone + 4 * (600 + 32767)


@pytest.mark.parametrize("pattern", ["rpc", "pingpong", "delegated", "handler", "incast", "alltoall", "mixed"])
def test_what_a_pattern_is_to_a_model_is_made_of_its_own_parameters(pattern: str) -> None:
    file = WORKLOADS.file(pattern)
    for one in file.modelled_as:
        assert set(one.parameters) <= set(file.parameters)
        assert all(file.parameters[name].unit == "bytes" for name in one.messages)
