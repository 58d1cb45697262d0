# SPDX-License-Identifier: BSD-3-Clause
"""The pattern `stream` both ways, and of several pairs: each end that sends has a rate of its own, and all confirm."""

import statistics

import pytest

from .test_driver_run import Json, Pair, endpoint, launch, need, stream

pytestmark = pytest.mark.paired

POINTS = [
    stream(64, 16, "write+read", ways="both", duration=60),
    stream(24, 1, ways="both"),
    stream(0, 4, ways="both"),
    stream(65536, 4, "write+read", ways="both"),
    stream(4096, 8, ways="both", buffers="same"),
    stream(4096, 8, "write+read"),
]
"""The last goes one way, so that one launch has both kinds."""


def check_accounts(attempt: Json, senders: list[int]) -> None:
    """Each end that sends has a rate; together they are what all others received."""
    failed = [check for check in attempt["checks"] if not check["ok"]]
    assert attempt["status"] == "done", (attempt["reason"], failed)
    rates = attempt["quantities"]["throughput"]
    assert [each["endpoint"] for each in rates] == senders
    assert sum(each["amount"] for each in rates) == attempt["bytes"]
    size = attempt["workload"]["parameters"]["bytes"]
    assert attempt["bytes"] == attempt["operations"] * size
    if size:
        assert min(each["amount"] for each in rates) > 0
    assert attempt["operations"] == attempt["executions"]["server"] > 0
    assert attempt["operations"] + attempt["lost"] == attempt["executions"]["expected"]
    assert max(each["elapsed_ns"] for each in rates) == attempt["elapsed_ns"]
    assert attempt["verified"]["full_before"] >= len(senders)


SLEEP = ("sockets-unix", "sockets-udp", "native-zmq", "peregrine-shm")


@pytest.mark.parametrize(
    ("layer", "wait"),
    [*((layer, wait) for layer in SLEEP for wait in ("poll", "block")), ("native-ucx", "poll"), ("fm-ofi", "poll")],
)
@pytest.mark.first(3)
def test_both_ends_send(some: Pair, layer: str, wait: str) -> None:
    """Over what copies, what lends, what queues, and what may lose a message."""
    need(layer)
    result = some.run(launch(layer, POINTS, wait=wait))
    assert (result["status"], result["reason"]) == ("done", None)
    for given, attempt in zip(POINTS, result["attempts"], strict=True):
        if attempt["reason_code"] == "MSG_TOO_LARGE":
            assert layer == "sockets-udp"
            continue
        both = given["workload"]["parameters"]["ways"] == "both"
        check_accounts(attempt, [0, 1] if both else [0])


def test_one_process_has_no_other_way(some: Pair) -> None:
    need("null-self")
    *both, one = some.run(launch("null-self", POINTS, "self"))["attempts"]
    assert {(each["status"], each["reason_code"]) for each in both} == {("refused", "NO_CAP")}
    check_accounts(one, [0])


def test_two_pairs_add_up(some: Pair) -> None:
    need("sockets-unix")
    ends = [
        *(endpoint(n, "client", [2 + n], pin=False) for n in range(2)),
        *(endpoint(2 + n, "server", [n], pin=False) for n in range(2)),
    ]
    points = [stream(4096, 8, pairs=2), stream(4096, 8, pairs=2, ways="both")]
    one, both = some.run(launch("sockets-unix", points, wait="block", endpoints=ends))["attempts"]
    check_accounts(one, [0, 1])
    check_accounts(both, [0, 1, 2, 3])


def test_a_known_delay_is_the_same_both_ways(some: Pair) -> None:
    """One message at a time, held back for 10 ms until it leaves: each end sends one in so long, as one alone does."""
    need("sockets-unix", "shim-delay")
    ways = ("one", "both")
    points = [stream(64, 1, ways=one, duration=250) for one in ways] * 3
    document = launch("sockets-unix", points, wait="block", shims=["delay"])
    attempts = some.run({**document, "settings": {"delay.delay_ns": "10000000"}})["attempts"]
    for number, senders in enumerate(([0], [0, 1])):
        took_ms = []
        for attempt in attempts[number :: len(ways)]:
            check_accounts(attempt, senders)
            ends = attempt["quantities"]["throughput"]
            took_ms.append(max(each["elapsed_ns"] / (each["amount"] / 64) / 1e6 for each in ends))
        # in turn they would take 20 each time
        assert min(took_ms) > 9.5, took_ms
        assert statistics.median(took_ms) < 16, took_ms
