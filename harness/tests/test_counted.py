# SPDX-License-Identifier: BSD-3-Clause
"""System calls, cycles and instructions of a launch: counted where they can be, else with a reason."""

from __future__ import annotations

import pytest

from .test_driver_run import Json, Pair, check_sound, launch, need, pingpong, rpc

pytestmark = pytest.mark.alone


def counted(result: Json, number: int = 0) -> list[float]:
    """Return the system calls of an operation, endpoint by endpoint."""
    how = result["endpoints"][0]["counted"]["system_calls"]
    if how.startswith("not to be had"):
        pytest.skip(f"system calls are {how}")
    assert "raw_syscalls:sys_enter" in how
    attempt = result["attempts"][number]
    return [side["system_calls"] / attempt["counted_operations"] for side in attempt["cpu"]]


def test_a_blocking_socket_sends_receives_and_waits(pair: Pair) -> None:
    need("sockets-tcp")
    found: list[list[float]] = []
    for _ in range(5):
        result = pair.run(launch("sockets-tcp", [pingpong(8), rpc()], wait="block", system_calls=True))
        check_sound(result)
        found.append([calls for number in (0, 1) for calls in counted(result, number)])
        # it sends, finds nothing, sleeps, finds something; beside load the answer may be there at once
        if all(2.5 < calls < 8 for calls in found[-1]):
            return
    pytest.fail(f"system calls an operation, of each end: {found}")


def test_a_library_without_the_kernel_calls_it_for_none_of_its_operations(pair: Pair) -> None:
    need("null-self")
    result = pair.run(launch("null-self", [rpc()], place="self", system_calls=True))
    check_sound(result)
    (calls,) = counted(result)
    assert calls < 0.05


def test_nothing_is_counted_where_nobody_asked(pair: Pair) -> None:
    need("sockets-tcp")
    result = pair.run(launch("sockets-tcp", [pingpong(8)], wait="block"))
    check_sound(result)
    for endpoint in result["endpoints"]:
        assert endpoint["counted"]["system_calls"].startswith("not in this launch")
        assert endpoint["counted"]["cycles"].startswith("not in block mode")
    for side in result["attempts"][0]["cpu"]:
        assert side["system_calls"] is side["cycles"] is side["instructions"] is None


def test_cycles_are_counted_or_it_is_said_why_not(pair: Pair) -> None:
    need("null-self")
    result = pair.run(launch("null-self", [rpc()], place="self"))
    attempt, how = result["attempts"][0], result["endpoints"][0]["counted"]["cycles"]
    (side,) = attempt["cpu"]
    if how.startswith("not to be had"):
        assert side["cycles"] is side["instructions"] is None
        return
    # it polls: a processor gives billions a second, and takes more than one an operation
    assert 0.2 < side["cycles"] / side["wall_ns"] < 10
    assert side["instructions"] > attempt["operations"]
