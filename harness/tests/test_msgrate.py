# SPDX-License-Identifier: BSD-3-Clause
"""The pattern `msgrate`: windows of messages, each acknowledged as a whole, of one pair and of several."""

import pytest

from .test_driver_run import Json, Pair, endpoint, in_long_form, launch, need, point, waited_ns

pytestmark = pytest.mark.paired


def rate(depth: int, size: int = 8, touch: str = "write+read", duration: int = 50, pairs: int = 1) -> Json:
    return point("msgrate", duration, bytes=size, depth=depth, touch=touch, pairs=pairs)


def check_accounts(attempt: Json, given: Json, *, clients: int = 1) -> None:
    """Every message was confirmed once, and every window has its sample."""
    failed = [check for check in attempt["checks"] if not check["ok"]]
    assert attempt["status"] == "done", (attempt["reason"], failed)
    rates, windows = attempt["quantities"]["rate"], attempt["quantities"]["window"]
    assert [each["endpoint"] for each in rates] == [each["endpoint"] for each in windows] == list(range(clients))
    assert sum(each["amount"] for each in rates) == attempt["operations"] > 0
    assert attempt["operations"] == attempt["executions"]["server"]
    assert attempt["operations"] + attempt["lost"] == attempt["executions"]["expected"]
    for each, window in zip(rates, windows, strict=True):
        if not attempt["lost"]:
            assert each["amount"] == window["count"] * given["workload"]["parameters"]["depth"]
        # windows follow one another, and nothing lies between
        assert window["sum_ns"] == pytest.approx(each["elapsed_ns"], rel=0.01)


POINTS = [
    rate(1),
    rate(1, 24, "none"),
    rate(7, 0),
    rate(64, 1),
    rate(512, 8, "none"),
    rate(16, 4096),
    rate(4, 65536),
]


@pytest.mark.parametrize("wait", ["poll", "block"])
@pytest.mark.parametrize("layer", ["sockets-unix", "sockets-udp", "peregrine-shm", *in_long_form("native-zmq")])
@pytest.mark.first(2)
def test_every_message_is_acknowledged(some: Pair, layer: str, wait: str) -> None:
    """Over what copies, what lends, what queues, and what may lose a message; how both ends wait is judged."""
    need(layer)
    result = some.run(launch(layer, POINTS, wait=wait))
    assert (result["status"], result["reason"]) == ("done", None)
    for given, attempt in zip(POINTS, result["attempts"], strict=True):
        refused = {"sockets-udp": "MSG_TOO_LARGE", "peregrine-shm": "DEPTH_TOO_DEEP"}.get(layer)
        if attempt["status"] != "refused" or attempt["reason_code"] != refused:
            check_accounts(attempt, given)


def test_one_process_plays_both(some: Pair) -> None:
    need("null-self")
    result = some.run(launch("null-self", POINTS, "self"))
    for given, attempt in zip(POINTS, result["attempts"], strict=True):
        check_accounts(attempt, given)


def test_a_window_takes_two_known_delays(some: Pair) -> None:
    """The shim holds back each message by 13 ms: a window is on its way for one of them, and so is its acknowledgement.

    However deep it is: what was sent with the first message has no delay of its own, and nothing leaves before the
    acknowledgement is there. Waits of the driver's own are 1 and 10 ms long: none of them looks like a delay.

    Other work on the machine adds the time until a thread that was woken gets a processor. It ends with a tick of the
    scheduler: windows then take 28, 32 or 40 ms, whatever the delay. The kernel counts that time, so it is taken off.
    """
    need("sockets-unix", "shim-delay")
    depths = (1, 8, 64)
    points = [rate(depth, duration=400) for depth in depths]
    document = launch("sockets-unix", points, wait="block", shims=["delay"])
    result = some.run({**document, "settings": {"delay.delay_ns": "13000000"}})
    for given, attempt in zip(points, result["attempts"], strict=True):
        check_accounts(attempt, given)
        [window] = attempt["quantities"]["window"]
        assert window["min_ns"] > 25.9e6
        assert (window["sum_ns"] - waited_ns(attempt)) / window["count"] < 29e6, (window, attempt["cpu"])


def test_two_pairs_add_up(some: Pair) -> None:
    """Each pair has a rate and a histogram of its own."""
    need("sockets-unix")
    ends = [
        *(endpoint(n, "client", [2 + n], pin=False) for n in range(2)),
        *(endpoint(2 + n, "server", [n], pin=False) for n in range(2)),
    ]
    points = [rate(1, pairs=2), rate(64, pairs=2)]
    result = some.run(launch("sockets-unix", points, wait="block", endpoints=ends))
    for given, attempt in zip(points, result["attempts"], strict=True):
        check_accounts(attempt, given, clients=2)
