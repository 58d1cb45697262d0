# SPDX-License-Identifier: BSD-3-Clause
"""Replies of the pattern `rpc` that a second thread takes: a blocked caller, a worker; what cannot be is refused."""

import statistics

import pytest

from .test_driver_run import Json, Pair, check_sound, endpoint, launch, need, rpc, waited_ns

pytestmark = pytest.mark.paired

TAKEN = ("cont", "wait", "defer")
PARTLY = ("pm-ucx",)
PAYLOADS = ("solicited", "unsolicited", "copied")


def document(layer: str, points: list[Json], wait: str = "block", place: str = "within", **more: object) -> Json:
    """A launch whose client has a second thread, which is pinned as well."""
    alone = place == "self"
    client = endpoint(0, "client", [0 if alone else 1])
    client["hands"] = [endpoint(1, "", [])["cpus"][0]]
    ends = [client] if alone else [client, endpoint(1, "server", [0])]
    return launch(layer, points, place, wait, endpoints=ends, **more)


def cells(**more: int) -> list[Json]:
    return [
        rpc(16, reply, depth, "write+read" if reply % 2 else "none", payload, taken, **more)
        for taken in TAKEN[1:]
        for payload in PAYLOADS
        for reply, depth in ((0, 1), (4096, 8), (8191, 1), (100001, 4))
    ]


def check_done(attempt: Json) -> None:
    failed = [check for check in attempt["checks"] if not check["ok"]]
    assert attempt["status"] == "done", (attempt["workload"], attempt["reason"], failed)
    assert attempt["operations"] > 0
    assert attempt["verified"]["full_before"] > 0
    assert attempt["verified"]["full_after"] > 0
    if attempt["lost"] == 0:
        assert attempt["verified"]["in_loop"] == 2 * attempt["operations"], "requests and replies"
    [samples] = attempt["quantities"]["latency"]
    assert samples["count"] == attempt["operations"]


@pytest.mark.parametrize(
    ("layer", "impossible"),
    [
        ("sockets-unix", {"solicited": "needs RPC"}),
        ("sockets-udp", {"solicited": "needs RPC"}),
        ("peregrine-shm", {"unsolicited": "needs LEND"}),
        ("am-ucx", {"unsolicited": "needs LEND"}),
        ("pm-ucx", {"solicited": "needs RPC"}),
    ],
)
@pytest.mark.first(2)
def test_every_cell(pair: Pair, layer: str, impossible: dict[str, str]) -> None:
    """Over messages, what may lose them, and native calls; what is impossible is refused, and the reason says why."""
    need(layer)
    points = cells()
    result = pair.run(document(layer, points))
    for given, attempt in zip(points, result["attempts"], strict=True):
        parameters = given["workload"]["parameters"]
        if parameters["payload"] in impossible:
            assert (attempt["status"], attempt["reason_code"]) == ("refused", "NO_CAP")
            assert impossible[parameters["payload"]] in attempt["reason"]
        elif attempt["reason_code"] == "NO_CAP":
            # some lend on their short path alone, and the longest message on it is theirs to say
            assert (layer in PARTLY, parameters["payload"], attempt["status"]) == (True, "unsolicited", "failed")
            assert parameters["reply_bytes"] > 4096
            assert f"did not lend a reply of {parameters['reply_bytes']} bytes" in attempt["reason"]
        elif layer == "sockets-udp" and parameters["reply_bytes"] > 65000:
            assert (attempt["status"], attempt["reason_code"]) == ("refused", "MSG_TOO_LARGE")
        else:
            check_done(attempt)


def test_both_threads_sleep(pair: Pair) -> None:
    """One call at a time: the owner of the context sleeps for its reply, and for the other thread, which sleeps too.

    A thread that other work holds up finds its reply there, and does not sleep: the median of three rounds.
    """
    need("sockets-unix")
    points = [rpc(16, 0, taken=taken, duration=200) for taken in TAKEN]
    seen = []
    for _ in range(3):
        cont = pair.run(launch("sockets-unix", points[:1], wait="block"))
        result = pair.run(document("sockets-unix", points[1:]))
        check_sound(result)
        attempts = [*cont["attempts"], *result["attempts"]]
        seen.append([attempt["cpu"][0]["voluntary_switches"] / attempt["operations"] for attempt in attempts])
    medians = [statistics.median(each) for each in zip(*seen, strict=True)]
    assert medians == pytest.approx([1, 3, 3], rel=0.15), seen


def test_one_process_plays_both(pair: Pair) -> None:
    """Two threads that spin, on a core each; the layer places replies, and lends messages."""
    need("null-self")
    points = [rpc(16, reply, depth, taken=taken) for taken in TAKEN[1:] for reply, depth in ((0, 1), (4096, 8))]
    for attempt in pair.run(document("null-self", points, "poll", "self"))["attempts"]:
        check_done(attempt)


def test_a_delay_is_seen_as_such(pair: Pair) -> None:
    """The shim holds back each message by 10 ms: no call is faster than two, and none waits for a third.

    What the threads waited for a processor is taken off.
    """
    need("sockets-unix", "shim-delay")
    points = [rpc(16, 4096, taken=taken, payload="unsolicited", duration=300) for taken in TAKEN[1:]]
    more: Json = {"shims": ["delay"], "settings": {"delay.delay_ns": "10000000"}}
    for attempt in pair.run(document("sockets-unix", points, **more))["attempts"]:
        check_done(attempt)
        [found] = attempt["quantities"]["latency"]
        assert found["min_ns"] >= 20e6
        assert (found["sum_ns"] - waited_ns(attempt)) / found["count"] < 29e6, (found, attempt["cpu"])


def test_a_sleep_that_nobody_can_end_is_refused(pair: Pair) -> None:
    need("native-zmq")
    result = pair.run(document("native-zmq", [rpc(16, 0, taken=taken) for taken in TAKEN[1:]]))
    for attempt in result["attempts"]:
        assert (attempt["status"], attempt["reason_code"]) == ("refused", "NO_WAIT")
        assert "EVENT_FD" in attempt["reason"]


def test_a_launch_without_the_thread_fails(pair: Pair) -> None:
    need("sockets-unix")
    [attempt] = pair.run(launch("sockets-unix", [rpc(16, 0, taken="wait")]), codes=(3, 3))["attempts"]
    assert (attempt["status"], attempt["reason_code"]) == ("failed", "ARGUMENT")
    assert attempt["reason"] == "replies are taken by 1 other thread, and the launch has 0"
