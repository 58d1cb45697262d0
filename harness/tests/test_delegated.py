# SPDX-License-Identifier: BSD-3-Clause
"""The pattern `delegated` with real layers: three processes, three routes, and what a known delay does to each."""

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from cadge_results.histogram import decode

from .test_driver_run import DECLARED, Json, Pair, endpoint, launch, need, point

pytestmark = pytest.mark.alone

ROUTES = {"direct": 2, "delegated": 3, "relay": 4}
"""How many messages an operation takes."""
PATTERNS = {
    "delegated": {
        **{name: DECLARED["rpc"][name] for name in ("request_bytes", "reply_bytes", "depth", "touch")},
        "route": {"type": "choice", "values": ["delegated", "relay", "direct"]},
    },
}


@pytest.fixture
def three(tmp_path: Path) -> Iterator[Pair]:
    """Three processes, gone afterwards whatever happened."""
    made = Pair(tmp_path)
    yield made
    for process in made.processes:
        if process.poll() is None:
            process.kill()
        process.communicate(timeout=10)


def call(route: str, reply: int = 0, depth: int = 1, touch: str = "write+read", duration: int = 30) -> Json:
    return point("delegated", duration, request_bytes=16, reply_bytes=reply, depth=depth, touch=touch, route=route)


def document(layer: str, points: list[Json], **more: object) -> Json:
    ends = [
        endpoint(0, "client", [1, 2], pin=False),
        endpoint(1, "delegate", [0, 2], pin=False),
        endpoint(2, "server", [0, 1], pin=False),
    ]
    return launch(layer, points, wait="block", endpoints=ends, patterns=PATTERNS, **more)


@pytest.mark.parametrize("layer", ["sockets-unix", "sockets-udp", "native-zmq", "peregrine-shm"])
def test_every_route_ends_at_the_client(three: Pair, layer: str) -> None:
    """Over messages, unreliable and lent ones among them, and over calls that the layer delegates itself."""
    need(layer)
    points = [
        call(route, reply, depth, touch)
        for route in ROUTES
        for reply, depth, touch in ((0, 1, "write+read"), (4096, 8, "write+read"), (8192, 1, "none"))
    ]
    result = three.run(document(layer, points))
    assert (result["status"], result["reason"]) == ("done", None)
    assert [end["role"] for end in result["endpoints"]] == ["client", "delegate", "server"]
    for attempt in result["attempts"]:
        failed = [check for check in attempt["checks"] if not check["ok"] and check["name"] != "wait_mode"]
        assert not failed, (attempt["attempt_id"], failed)
        assert attempt["status"] in {"done", "unsound"}, attempt["reason"]
        assert attempt["operations"] > 0
        assert attempt["executions"]["server"] <= attempt["executions"]["expected"]
        assert attempt["verified"]["full_before"] > 0
        assert attempt["verified"]["full_after"] > 0
        assert [each["endpoint"] for each in attempt["quantities"]["latency"]] == [0]
        assert len(attempt["cpu"]) == 3


def test_each_message_of_a_route_is_late_by_the_known_delay(three: Pair) -> None:
    """The shim holds back each message by 10 ms: two of a direct call, three of a delegated one, four of a relay."""
    need("sockets-unix", "shim-delay")
    points = [call(route, 4096, duration=300) for route in ROUTES]
    result = three.run(document("sockets-unix", points, shims=["delay"], settings={"delay.delay_ns": "10000000"}))
    for attempt, (route, messages) in zip(result["attempts"], ROUTES.items(), strict=True):
        assert attempt["status"] == "done", attempt["reason"]
        [found] = attempt["quantities"]["latency"]
        median_ms = decode(found["histogram"]).percentile(50) / 1e6
        assert messages * 10 - 0.5 < median_ms < messages * 10 + 8, route


def test_the_delegate_dies(three: Pair) -> None:
    """All others end soon, and the result names it."""
    need("sockets-unix")
    launched = document("sockets-unix", [call("relay", duration=20000)])
    processes = [three.start(number, launched) for number in range(3)]
    time.sleep(2)  # the attempt has begun, on a busy machine too
    processes[1].kill()
    assert [processes[number].wait(timeout=10) for number in (0, 2)] == [4, 4]
    [attempt] = three.result()["attempts"]
    assert (attempt["status"], attempt["reason_code"]) == ("failed", "PEER_LOST")
    assert "endpoint 1" in attempt["reason"]
