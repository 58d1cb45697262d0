# SPDX-License-Identifier: BSD-3-Clause
"""The pattern `reconnect`: a channel is made again and again, of one client and of several, and used each time."""

import pytest

from cadge_results.formats.histogram import decode

from .test_driver_run import Json, Pair, endpoint, in_long_form, launch, need, point, wait_until_under_way

pytestmark = pytest.mark.paired

SPANS = ("setup", "first", "next", "addresses", "teardown")


def again(clients: int = 1, size: int = 8, duration: int = 60) -> Json:
    return point("reconnect", duration, bytes=size, clients=clients)


def document(layer: str, clients: int, points: list[Json], wait: str = "poll", **more: object) -> Json:
    """Return a launch of one server, which is endpoint 0, with two channels to each client."""
    numbers = list(range(1, clients + 1))
    ends = [
        endpoint(0, "server", numbers + numbers, pin=False),
        *(endpoint(n, "client", [0, 0], pin=False) for n in numbers),
    ]
    return launch(layer, points, wait=wait, endpoints=ends, **more)


def check_accounts(attempt: Json, clients: int) -> None:
    """Every connection has its five spans and carried two messages, all of which the server had."""
    failed = [check for check in attempt["checks"] if not check["ok"]]
    assert attempt["status"] == "done", (attempt["reason"], failed)
    for name in SPANS:
        found = attempt["quantities"][name]
        assert [each["endpoint"] for each in found] == list(range(1, clients + 1))
        assert sum(each["count"] for each in found) == attempt["operations"] > 0
        assert all(each["sum_ns"] <= attempt["elapsed_ns"] for each in found)
    assert attempt["executions"]["expected"] == attempt["executions"]["server"] == 2 * attempt["operations"]
    assert attempt["lost"] == 0
    # there and back, twice a connection; two connections of each client are compared whole
    assert attempt["verified"]["in_loop"] == 4 * attempt["operations"]
    assert attempt["verified"]["full_before"] == attempt["verified"]["full_after"] == 4 * clients


@pytest.mark.parametrize(("clients", "wait"), [(1, "poll"), (1, "block"), (4, "block")])
@pytest.mark.parametrize(
    "layer",
    [
        "sockets-unix",
        "peregrine-shm",
        "native-ucx",
        *in_long_form("sockets-tcp", "native-zmq", "native-ofi", "am-ucx", "fm-ofi"),
    ],
)
@pytest.mark.first(3)
def test_channels_are_made_again(some: Pair, layer: str, clients: int, wait: str) -> None:
    need(layer)
    if wait == "block" and layer not in {"sockets-unix", "sockets-tcp", "native-zmq", "peregrine-shm"}:
        pytest.skip("it does not sleep within a host")
    result = some.run(document(layer, clients, [again(clients), again(clients, 5000)], wait))
    assert (result["status"], result["reason"]) == ("done", None)
    for attempt in result["attempts"]:
        check_accounts(attempt, clients)


def test_who_cannot_connect_again_says_so(some: Pair) -> None:
    need("sockets-udp")
    [attempt] = some.run(document("sockets-udp", 1, [again()]))["attempts"]
    assert (attempt["status"], attempt["reason_code"]) == ("refused", "NO_CAP")
    assert "no message may be lost" in attempt["reason"]


def test_a_known_delay_is_in_what_it_delays(some: Pair) -> None:
    """The shim holds back messages by 10 ms, and no connection: round trips and the exchange take two such delays."""
    need("sockets-unix", "shim-delay")
    given = document("sockets-unix", 1, [again(duration=600)], "block", shims=["delay"])
    [attempt] = some.run({**given, "settings": {"delay.delay_ns": "10000000"}})["attempts"]
    check_accounts(attempt, 1)
    ms = {name: decode(attempt["quantities"][name][0]["histogram"]).percentile(50) / 1e6 for name in SPANS}
    assert all(19.5 < ms[name] < 28 for name in ("first", "next", "addresses")), ms
    assert ms["setup"] < 5, ms
    assert ms["teardown"] < 5, ms


@pytest.mark.parametrize("victim", [*in_long_form(0), 2])
def test_one_of_them_dies(some: Pair, victim: int) -> None:
    """A channel that goes down is taken for no fault only where its other end is alive."""
    need("sockets-unix", "shim-delay")
    given = document("sockets-unix", 2, [again(2, duration=20000)], "block", shims=["delay"])
    given["settings"] = {"delay.delay_ns": "10000000"}  # else it would have connected as often as it may
    processes = [some.start(number, given) for number in range(3)]
    wait_until_under_way(processes, cpu_s=0.05)  # they mostly sleep
    processes[victim].kill()
    assert [process.wait(timeout=10) for number, process in enumerate(processes) if number != victim] == [4] * 2
