# SPDX-License-Identifier: BSD-3-Clause
"""Launches of many endpoints, and of one with many channels, with patterns that exist only in the tests."""

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from .test_driver_run import (
    BUILD,
    Json,
    Pair,
    endpoint,
    launch,
    need,
    onesided,
    pingpong,
    rpc,
    stream,
    wait_until_under_way,
)

pytestmark = pytest.mark.alone

DRIVER = BUILD / "tests" / "cadge-driver"


@pytest.fixture
def many(tmp_path: Path) -> Iterator[Pair]:
    """As many processes as a launch has endpoints, gone afterwards whatever happened."""
    if not DRIVER.exists():
        pytest.skip(f"{DRIVER} is not built")
    made = Pair(tmp_path, DRIVER)
    yield made
    made.end()


def lap(size: int = 64, way: str = "forward", duration: int = 50) -> Json:
    return {
        "attempt_id": "",
        "point_id": "0123456789abcdef",
        "workload": {"pattern": "ring", "parameters": {"bytes": size, "way": way}},
        "duration_ms": duration,
        "deadline_ms": duration + 20000,
    }


def closed(request: int, reply: int) -> Json:
    return {
        **lap(),
        "workload": {"pattern": "closed_loop", "parameters": {"request_bytes": request, "reply_bytes": reply}},
    }


def ring(layer: str, count: int, points: list[Json], wait: str = "block", **more: object) -> Json:
    """Return the launch of a ring: each endpoint has channels to the one before and the one after."""
    neighbours = [endpoint(n, "node", [(n - 1) % count, (n + 1) % count], pin=False) for n in range(count)]
    return launch(layer, points, "within", wait, endpoints=neighbours, **more)


def check_ring(result: Json, count: int) -> None:
    assert (result["status"], result["reason"]) == ("done", None)
    assert [path["endpoint"] for path in result["path"]] == [n for n in range(count) for _ in range(2)]
    neighbours = [peer % count for n in range(count) for peer in (n - 1, n + 1)]
    assert [path["peer"] for path in result["path"]] == neighbours
    assert [end["role"] for end in result["endpoints"]] == ["node"] * count
    assert len({end["pid"] for end in result["endpoints"]}) == len(result["clock"]) == len(result["pinning"]) == count
    for attempt in result["attempts"]:
        failed = [check for check in attempt["checks"] if not check["ok"]]
        assert attempt["status"] == "done", (attempt["reason"], failed)
        assert len(attempt["cpu"]) == count
        for name in ("lap", "hops", "per_hop"):
            assert [each["endpoint"] for each in attempt["quantities"][name]] == list(range(count)), name
        laps = [each["count"] for each in attempt["quantities"]["lap"]]
        assert min(laps) > 0
        assert sum(laps) == attempt["operations"] == attempt["executions"]["expected"]
        assert attempt["executions"]["expected"] == attempt["executions"]["server"]
        assert all(each["value"] > 0 for name in ("hops", "per_hop") for each in attempt["quantities"][name])
        assert attempt["verified"]["full_before"] == attempt["verified"]["full_after"] == 2 * count
        assert attempt["verified"]["in_loop"] >= attempt["operations"]


@pytest.mark.parametrize("count", [3, 8])
def test_a_ring_that_sleeps(many: Pair, count: int) -> None:
    need("sockets-tcp")
    points = [lap(64), lap(5000, "backward"), lap(8), lap(16)]
    result = many.run(ring("sockets-tcp", count, points))
    refused = result["attempts"].pop(2)
    assert (refused["status"], refused["reason_code"]) == ("refused", "NO_CAP")
    check_ring(result, count)


def test_two_pairs_at_a_time(many: Pair) -> None:
    """Each client with a server of its own, and one histogram of each."""
    need("sockets-tcp")
    ends = [
        *(endpoint(n, "client", [2 + n], pin=False) for n in range(2)),
        *(endpoint(2 + n, "server", [n], pin=False) for n in range(2)),
    ]
    result = many.run(launch("sockets-tcp", [pingpong(64, pairs=2)], wait="block", endpoints=ends))
    assert (result["status"], result["reason"]) == ("done", None)
    [attempt] = result["attempts"]
    failed = [check for check in attempt["checks"] if not check["ok"]]
    assert attempt["status"] == "done", (attempt["reason"], failed)
    trips = [(each["endpoint"], each["count"]) for each in attempt["quantities"]["latency"]]
    assert [number for number, _ in trips] == [0, 1]
    assert min(count for _, count in trips) > 0
    assert sum(count for _, count in trips) == attempt["operations"]


@pytest.mark.paired
@pytest.mark.parametrize(
    ("layer", "wait"), [("sockets-unix", "poll"), ("sockets-unix", "block"), ("sockets-udp", "block")]
)
def test_the_stock_responder_answers_as_many_bytes_as_asked(many: Pair, layer: str, wait: str) -> None:
    """Between two processes, by the pattern of the tests that has a closed loop of its own."""
    need(layer)
    sizes = [(16, 16), (64, 5000), (5000, 17)]
    points = [closed(*pair) for pair in sizes]
    result = many.run(launch(layer, points, wait=wait))
    assert (result["status"], result["reason"]) == ("done", None)
    for pair, attempt in zip(sizes, result["attempts"], strict=True):
        failed = [check for check in attempt["checks"] if not check["ok"]]
        assert attempt["status"] == "done", (attempt["reason"], failed)
        assert attempt["operations"] > 0
        assert attempt["bytes"] == attempt["operations"] * sum(pair)
        assert attempt["verified"]["full_before"] > 0 < attempt["verified"]["full_after"]


@pytest.mark.long  # the agent's tests have such a ring, too
def test_sixty_four_endpoints(many: Pair) -> None:
    need("sockets-tcp")
    result = many.run(ring("sockets-tcp", 64, [lap(64, duration=200)], deadline_ms=120000))
    check_ring(result, 64)


def test_sixty_four_channels_of_one_endpoint(many: Pair) -> None:
    need("null-self")
    alone = [endpoint(0, "node", [0] * 64)]
    points = [lap(64), rpc(8, 8, 4), lap(1000)]
    document = launch("null-self", points, "self", endpoints=alone)
    result = many.run(document)
    assert [(path["endpoint"], path["peer"]) for path in result["path"]] == [(0, 0)] * 64
    assert [attempt["status"] for attempt in result["attempts"]] == ["done"] * 3
    for attempt in result["attempts"][::2]:
        [hops] = attempt["quantities"]["hops"]
        assert hops["value"] == 63 * attempt["operations"] > 0


@pytest.mark.paired
@pytest.mark.parametrize("victim", [0, 1, 4])
@pytest.mark.first(1)
def test_one_of_many_dies(many: Pair, victim: int) -> None:
    """Whoever it is: all others end soon, and the result of endpoint 0 names it."""
    need("sockets-tcp")
    document = ring("sockets-tcp", 5, [lap(duration=20000)])
    processes = [many.start(number, document) for number in range(5)]
    wait_until_under_way(processes)
    processes[victim].kill()
    killed = time.monotonic()
    codes = [process.wait(timeout=10) for number, process in enumerate(processes) if number != victim]
    assert (codes, time.monotonic() - killed < 3) == ([4] * 4, True)
    if victim:
        attempts = many.result()["attempts"]
        assert [(a["status"], a["reason_code"]) for a in attempts] == [("failed", "PEER_LOST")]
        assert f"endpoint {victim}" in attempts[0]["reason"]


def test_the_coordinator_only_serves(many: Pair) -> None:
    """Endpoint 0 need not be the one that measures."""
    need("sockets-tcp")
    points = [rpc(duration=50), stream(4096, 8, duration=50)]
    swapped = [endpoint(0, "server", [1]), endpoint(1, "client", [0])]
    for wait in ("poll", "block"):
        result = many.run(launch("sockets-tcp", points, wait=wait, endpoints=swapped))
        for attempt, quantity in zip(result["attempts"], ("latency", "throughput"), strict=True):
            assert attempt["status"] == "done", attempt["reason"]
            assert [each["endpoint"] for each in attempt["quantities"][quantity]] == [1]
            assert attempt["operations"] == attempt["executions"]["expected"] == attempt["executions"]["server"] > 0
            assert attempt["verified"]["full_before"] * attempt["verified"]["full_after"] > 0
            assert attempt["elapsed_ns"] >= 50_000_000


def test_a_role_that_one_thread_plays(many: Pair) -> None:
    need("sockets-tcp")
    document = launch("sockets-tcp", [rpc()])
    document["endpoints"][1]["cpus"] = [0, 1]
    process = many.start(0, document)
    assert "which is played by one thread, not 2" in process.communicate(timeout=10)[1]
    assert process.returncode == 2


@pytest.mark.parametrize(("wait", "count", "threads"), [("block", 3, 2), ("block", 2, 8), ("poll", 2, 2)])
@pytest.mark.first(1)
def test_threads(many: Pair, wait: str, count: int, threads: int) -> None:
    """Each thread of an endpoint has a context of its own; the figures are the endpoint's."""
    need("sockets-tcp")
    document = ring("sockets-tcp", count, [lap(64), lap(1000, "backward")], wait=wait)
    for each in document["endpoints"]:
        each["cpus"] = [-1] * threads
    result = many.run(document)
    assert (result["status"], result["reason"]) == ("done", None)
    assert [path["endpoint"] for path in result["path"]] == [n for n in range(count) for _ in range(2 * threads)]
    assert len(result["endpoints"]) == count
    for attempt in result["attempts"]:
        failed = [check for check in attempt["checks"] if not check["ok"] and check["name"] != "wait_mode"]
        assert not failed
        laps = attempt["quantities"]["lap"]
        assert [each["endpoint"] for each in laps] == list(range(count))
        assert sum(each["count"] for each in laps) == attempt["operations"] == attempt["executions"]["server"]
        assert attempt["verified"]["full_before"] == 2 * count * threads
        assert len(attempt["cpu"]) == count


@pytest.mark.paired
def test_an_endpoint_with_threads_dies(many: Pair) -> None:
    """All threads of all others come to an end, long before their points would."""
    need("sockets-tcp")
    document = ring("sockets-tcp", 4, [lap(duration=20000)])
    for each in document["endpoints"]:
        each["cpus"] = [-1, -1]
    processes = [many.start(number, document) for number in range(4)]
    wait_until_under_way(processes)
    processes[2].kill()
    killed = time.monotonic()
    alive = [process for number, process in enumerate(processes) if number != 2]
    errors = [process.communicate(timeout=10)[1] for process in alive]
    assert [process.returncode for process in alive] == [4, 4, 4], errors
    assert time.monotonic() - killed < 3
    [attempt] = many.result()["attempts"]
    assert (attempt["status"], attempt["reason_code"]) == ("failed", "PEER_LOST")


@pytest.mark.paired
def test_one_of_many_never_comes(many: Pair) -> None:
    need("sockets-tcp")
    document = ring("sockets-tcp", 4, [lap()], deadline_ms=3000)
    processes = [many.start(number, document) for number in (0, 1, 3)]
    assert [process.wait(timeout=10) for process in processes] == [4, 4, 4]
    result = many.result()
    assert (result["status"], result["reason_code"]) == ("failed", "DEADLINE")
    assert "endpoint 2 did not connect" in result["reason"]


def test_channels_that_a_role_has_no_use_for(many: Pair) -> None:
    need("sockets-tcp")
    star = [endpoint(0, "client", [1, 2]), endpoint(1, "server", [0]), endpoint(2, "server", [0])]
    document = launch("sockets-tcp", [rpc()], endpoints=star)
    process = many.start(0, document)
    assert "cannot be played on 2 channels" in process.communicate(timeout=10)[1]
    put = onesided(8)
    swapped = [endpoint(0, "server", [1]), endpoint(1, "client", [0])]
    other = many.start(0, launch("sockets-tcp", [put], endpoints=swapped))
    assert "gives endpoint 1 the role 'client', which must be endpoint 0's" in other.communicate(timeout=10)[1]
    assert (process.returncode, other.returncode) == (2, 2)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"role": "client"}, "has no role 'client', which endpoint 1 is given"),
        ({"peers": [0]}, "more often than that one names it"),
        ({"peers": [0, 1, 2]}, "which is itself"),
    ],
)
def test_casts_that_cannot_be(many: Pair, change: Json, says: str) -> None:
    need("sockets-tcp")
    document = ring("sockets-tcp", 3, [lap()])
    document["endpoints"][1].update(change)
    process = many.start(0, document)
    assert says in process.communicate(timeout=10)[1]
    assert process.returncode == 2
