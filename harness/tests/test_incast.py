# SPDX-License-Identifier: BSD-3-Clause
"""The pattern `incast`: several clients, one server, every call answered once and to whom it belongs."""

import pytest

from cadge_results.formats.histogram import decode

from .test_driver_run import Json, Pair, endpoint, in_long_form, launch, need, point, wait_until_under_way

pytestmark = pytest.mark.paired


def calls(clients: int, request: int = 64, depth: int = 1, touch: str = "write+read", duration: int = 60) -> Json:
    sizes = {"request_bytes": request, "reply_bytes": 8}
    return point("incast", duration, clients=clients, depth=depth, touch=touch, **sizes)


def document(layer: str, clients: int, points: list[Json], wait: str = "block", **more: object) -> Json:
    """Return a launch of one server, which is endpoint 0, and its clients."""
    ends = [
        endpoint(0, "server", list(range(1, clients + 1)), pin=False),
        *(endpoint(n, "client", [0], pin=False) for n in range(1, clients + 1)),
    ]
    return launch(layer, points, wait=wait, endpoints=ends, **more)


def check_accounts(attempt: Json, clients: int) -> None:
    """Each client has its samples and its rate, and the server carried out the calls of all of them."""
    # ends that are not pinned may share a processor, and find their message there without having slept
    failed = [check for check in attempt["checks"] if not check["ok"] and check["name"] != "wait_mode"]
    assert not failed, (attempt["attempt_id"], failed)
    assert attempt["status"] in {"done", "unsound"}, attempt["reason"]
    found, rates = attempt["quantities"]["latency"], attempt["quantities"]["served"]
    assert [each["endpoint"] for each in found] == [each["endpoint"] for each in rates] == list(range(1, clients + 1))
    assert [each["count"] for each in found] == [each["amount"] for each in rates]
    assert min(each["count"] for each in found) > 0
    assert sum(each["count"] for each in found) == attempt["operations"]
    assert attempt["operations"] <= attempt["executions"]["server"] <= attempt["executions"]["expected"]
    if not attempt["lost"]:
        assert attempt["operations"] == attempt["executions"]["expected"]
    assert len(attempt["cpu"]) == clients + 1
    assert attempt["verified"]["full_before"] > 0
    assert attempt["verified"]["full_after"] > 0


@pytest.mark.parametrize("clients", [*in_long_form(1), 4])
@pytest.mark.parametrize(
    "layer", ["sockets-unix", "peregrine-shm", *in_long_form("sockets-udp", "native-zmq", "sockets-tcp")]
)
def test_every_call_is_answered(some: Pair, layer: str, clients: int) -> None:
    """Over messages, unreliable and lent ones among them, and native calls; deep and shallow, touched and not."""
    need(layer)
    points = [calls(clients), calls(clients, 0, 16), calls(clients, 5000, 4), calls(clients, 20000, touch="none")]
    result = some.run(document(layer, clients, points))
    assert (result["status"], result["reason"]) == ("done", None)
    for attempt in result["attempts"]:
        check_accounts(attempt, clients)


def test_a_server_is_shared_by_its_clients(some: Pair) -> None:
    """Each message is held back for 10 ms by the shim, and nothing else takes as long: clients do not wait for others.

    A round trip takes two delays, with one client as with five, and the rate grows with the clients.
    """
    need("sockets-unix", "shim-delay")
    rates = []
    for clients in (1, 5):
        given = document("sockets-unix", clients, [calls(clients, duration=400)], shims=["delay"])
        [attempt] = some.run({**given, "settings": {"delay.delay_ns": "10000000"}})["attempts"]
        check_accounts(attempt, clients)
        for each in attempt["quantities"]["latency"]:
            assert 19.5 < decode(each["histogram"]).percentile(50) / 1e6 < 28
        rates.append(sum(each["amount"] / each["elapsed_ns"] for each in attempt["quantities"]["served"]))
    assert 3.5 < rates[1] / rates[0] < 6.5


@pytest.mark.parametrize("victim", [*in_long_form(0), 2])
def test_one_of_them_dies(some: Pair, victim: int) -> None:
    """All others end soon, be it the server or a client."""
    need("sockets-unix")
    given = document("sockets-unix", 3, [calls(3, duration=20000)])
    processes = [some.start(number, given) for number in range(4)]
    wait_until_under_way(processes)
    processes[victim].kill()
    assert [process.wait(timeout=10) for number, process in enumerate(processes) if number != victim] == [4] * 3
    if victim:
        [attempt] = some.result()["attempts"]
        assert (attempt["status"], attempt["reason_code"]) == ("failed", "PEER_LOST")
        assert f"endpoint {victim}" in attempt["reason"]
