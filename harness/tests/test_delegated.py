# SPDX-License-Identifier: BSD-3-Clause
"""The pattern `delegated` with real layers: three processes, three routes, and what a known delay does to each."""

import pytest

from cadge_results.formats.histogram import decode

from .test_driver_run import Json, Pair, endpoint, in_long_form, launch, need, point, wait_until_under_way

pytestmark = pytest.mark.paired

ROUTES = {"direct": 2, "delegated": 3, "relay": 4}
"""How many messages an operation takes."""


def call(
    route: str,
    reply: int = 0,
    depth: int = 1,
    touch: str = "write+read",
    duration: int = 30,
    payload: str = "usual",
    taken: str = "cont",
) -> Json:
    given = {"request_bytes": 16, "reply_bytes": reply, "depth": depth, "touch": touch}
    return point("delegated", duration, **given, payload=payload, reply=taken, route=route)


def document(layer: str, points: list[Json], hands: int = 0, **more: object) -> Json:
    ends = [
        {**endpoint(0, "client", [1, 2], pin=False), "hands": [-1] * hands},
        endpoint(1, "delegate", [0, 2], pin=False),
        endpoint(2, "server", [0, 1], pin=False),
    ]
    return launch(layer, points, wait="block", endpoints=ends, **more)


@pytest.mark.parametrize("layer", ["sockets-unix", "peregrine-shm", *in_long_form("sockets-udp", "native-zmq")])
def test_every_route_ends_at_the_client(some: Pair, layer: str) -> None:
    """Over messages, unreliable and lent ones among them, and over calls that the layer delegates itself."""
    need(layer)
    points = [
        call(route, reply, depth, touch)
        for route in ROUTES
        for reply, depth, touch in ((0, 1, "write+read"), (4096, 8, "write+read"), (8192, 1, "none"))
    ]
    result = some.run(document(layer, points))
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
        check_hops(attempt)


def check_hops(attempt: Json) -> None:
    """One clock serves all ends here: hops add up to the mean of the round trips, unless a call was lost."""
    messages = ROUTES[attempt["workload"]["parameters"]["route"]]
    names = [f"hop_{number}" for number in range(1, messages + 1)]
    if attempt["lost"]:
        names = []
    assert set(attempt["quantities"]) == {"latency", *names}
    hops = [quantity["value"] for name in names for quantity in attempt["quantities"][name]]
    assert all(hop > 0 for hop in hops)
    if hops:
        [latency] = attempt["quantities"]["latency"]
        # each sample is rounded down to a whole ns
        assert sum(hops) == pytest.approx(latency["sum_ns"] / latency["count"], abs=1.5)


@pytest.mark.parametrize(("layer", "delegates"), [("sockets-unix", False), ("peregrine-shm", True)])
@pytest.mark.first(1)
def test_every_way_to_take_a_reply(some: Pair, layer: str, delegates: bool) -> None:
    """What a call to one server offers, one to a second server offers as well; the rest is refused, and says why."""
    need(layer)
    for hands, takers in ((0, ("cont",)), (1, ("wait", "defer"))):
        points = [
            call(route, reply, depth, payload=payload, taken=taken)
            for taken in takers
            for route in ROUTES
            for payload in ("solicited", "unsolicited", "copied")
            for reply, depth in ((0, 1), (4096, 4))
        ]
        result = some.run(document(layer, points, hands))
        for given, attempt in zip(points, result["attempts"], strict=True):
            parameters = given["workload"]["parameters"]
            # the one that delegates lends nothing, the other one does
            # the one that delegates lends nothing, the other one does
            impossible = (parameters["payload"] == "solicited" and not delegates) or (
                parameters["payload"] == "unsolicited" and hands and delegates
            )
            if impossible:
                assert (attempt["status"], attempt["reason_code"]) == ("refused", "NO_CAP"), parameters
                continue
            failed = [check for check in attempt["checks"] if not check["ok"] and check["name"] != "wait_mode"]
            assert not failed, (parameters, failed)
            assert attempt["operations"] > 0
            check_hops(attempt)


def test_each_message_of_a_route_is_late_by_the_known_delay(some: Pair) -> None:
    """The shim holds back each message by 10 ms: two of a direct call, three of a delegated one, four of a relay."""
    need("sockets-unix", "shim-delay")
    points = [call(route, 4096, duration=300) for route in ROUTES]
    result = some.run(document("sockets-unix", points, shims=["delay"], settings={"delay.delay_ns": "10000000"}))
    for attempt, (route, messages) in zip(result["attempts"], ROUTES.items(), strict=True):
        assert attempt["status"] == "done", attempt["reason"]
        [found] = attempt["quantities"]["latency"]
        median_ms = decode(found["histogram"]).percentile(50) / 1e6
        assert messages * 10 - 0.5 < median_ms < messages * 14, route
        check_hops(attempt)
        for number in range(1, messages + 1):
            [hop] = attempt["quantities"][f"hop_{number}"]
            # a mean, which one stall of the machine makes longer, and nothing shorter
            assert hop["value"] / 1e6 > 9.9, (route, number)


def test_hops_of_lost_calls_are_not_told(some: Pair) -> None:
    """A lost call was seen at some stops and not at others: there is no hop to be told apart."""
    need("sockets-udp", "shim-fault")
    points = [call(route, depth=8, duration=300) for route in ROUTES]
    settings = {"fault.drop_ppm": "20000", "fault.seed": "1"}
    result = some.run(document("sockets-udp", points, shims=["fault"], settings=settings))
    for attempt in result["attempts"]:
        assert attempt["lost"] > 0
        check_hops(attempt)


def test_the_delegate_dies(some: Pair) -> None:
    """All others end soon, and the result names it."""
    need("sockets-unix")
    launched = document("sockets-unix", [call("relay", duration=20000)])
    processes = [some.start(number, launched) for number in range(3)]
    wait_until_under_way(processes)
    processes[1].kill()
    assert [processes[number].wait(timeout=10) for number in (0, 2)] == [4, 4]
    [attempt] = some.result()["attempts"]
    assert (attempt["status"], attempt["reason_code"]) == ("failed", "PEER_LOST")
    assert "endpoint 1" in attempt["reason"]
