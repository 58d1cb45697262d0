# SPDX-License-Identifier: BSD-3-Clause
"""The pattern `mixed`: calls and stream are told apart and accounted for, and what one waits for the other shows."""

import statistics

import pytest

from cadge_results.formats.histogram import decode

from .attempts import only
from .test_driver_run import Json, Pair, endpoint, in_long_form, launch, need, point

pytestmark = pytest.mark.paired

CALL = {"type": "integer", "min": 0, "max": 4096}
BULK = 32768


def mixed(
    aggressor: str, size: int = 8, bulk: int = BULK, window: int = 4, touch: str = "write+read", duration: int = 60
) -> Json:
    given = {"request_bytes": size, "reply_bytes": size, "bulk_bytes": bulk, "window": window, "touch": touch}
    return point("mixed", duration, aggressor=aggressor, **given)


def document(layer: str, points: list[Json], wait: str = "poll", third: bool = False, **more: object) -> Json:
    """Two channels between client and server; with a third endpoint, which streams, one from that to the server."""
    pin = wait == "poll"
    made = [endpoint(0, "client", [1, 1], pin=pin), endpoint(1, "server", [0, 0] + [2] * third, pin=pin)]
    made += [endpoint(2, "aggressor", [1], pin=False)] * third
    return launch(layer, points, wait=wait, endpoints=made, **more)


def p50_us(attempt: Json) -> float:
    return decode(only(attempt, "latency")["histogram"]).percentile(50) / 1e3


def check_accounts(attempt: Json, given: Json) -> None:
    """Every call has its sample; the stream ran where there is one, and was measured where it left."""
    failed = [check for check in attempt["checks"] if not check["ok"]]
    parameters = given["workload"]["parameters"]
    assert attempt["status"] == "done", (parameters, attempt["reason"], failed)
    assert only(attempt, "latency")["count"] == attempt["operations"] > 0
    assert attempt["bytes"] == attempt["operations"] * 2 * parameters["request_bytes"]
    assert attempt["verified"]["full_before"] > 0
    assert attempt["verified"]["full_after"] > 0
    assert attempt["elapsed_ns"] >= given["duration_ms"] * 1e6
    if parameters["aggressor"] == "none":
        assert set(attempt["quantities"]) == {"latency"}
        assert attempt["executions"]["expected"] >= attempt["operations"]
        return
    where = 2 if parameters["aggressor"] == "endpoint" else 0
    stream, bulk = only(attempt, "throughput"), only(attempt, "bulk")
    assert stream["endpoint"] == bulk["endpoint"] == where
    messages, rest = divmod(stream["amount"], parameters["bulk_bytes"])
    assert rest == 0
    assert 0 < messages <= bulk["count"]
    assert stream["elapsed_ns"] >= given["duration_ms"] * 1e6
    assert attempt["executions"]["expected"] >= attempt["operations"] + messages


WHERE = ("none", "same", "channel")


@pytest.mark.parametrize(
    ("layer", "wait"),
    [
        ("sockets-unix", "poll"),
        *in_long_form(("sockets-tcp", "block")),
        *in_long_form(("sockets-udp", "poll")),
        ("native-ucx", "poll"),
        ("am-ofi", "poll"),
        ("peregrine-shm", "block"),
    ],
)
@pytest.mark.first(1)
def test_calls_and_stream_are_both_accounted_for(some: Pair, layer: str, wait: str) -> None:
    """Over messages, calls of the layer's own, and what may lose them; on one channel and on two."""
    need(layer)
    points = [
        mixed(aggressor, size, bulk, window, touch)
        for aggressor in WHERE
        for size, bulk, window, touch in ((8, BULK, 4, "write+read"), (0, 8192, 1, "none"), (4096, BULK, 16, "none"))
    ]
    result = some.run(document(layer, points, wait))
    assert (result["status"], result["reason"]) == ("done", None)
    for given, attempt in zip(points, result["attempts"], strict=True):
        check_accounts(attempt, given)


@pytest.mark.parametrize("layer", ["sockets-unix", "peregrine-shm"])
def test_the_stream_of_another_process(some: Pair, layer: str) -> None:
    need(layer)
    points = [mixed("endpoint", window=window, touch=touch) for window, touch in ((16, "write+read"), (1, "none"))]
    result = some.run(document(layer, points, "block", third=True))
    assert (result["status"], result["reason"]) == ("done", None)
    assert [end["role"] for end in result["endpoints"]] == ["client", "server", "aggressor"]
    for given, attempt in zip(points, result["attempts"], strict=True):
        check_accounts(attempt, given)


def test_one_process_plays_all(some: Pair) -> None:
    """Over the layer that does nothing; another endpoint is none of its own."""
    need("null-self")
    points = [mixed(aggressor) for aggressor in (*WHERE, "endpoint")]
    alone = [endpoint(0, "client", [0, 0])]
    *made, other = some.run(launch("null-self", points, "self", endpoints=alone))["attempts"]
    for given, attempt in zip(points, made, strict=False):
        check_accounts(attempt, given)
    assert (other["status"], other["reason_code"]) == ("refused", "NO_CAP")
    assert "place self has one endpoint" in other["reason"]


def test_a_known_delay_shows_in_calls_and_in_the_stream(some: Pair) -> None:
    """The shim holds back each message by 10 ms: a call takes 20, and so does each window of the stream."""
    need("sockets-unix", "shim-delay")
    points = [mixed(aggressor, duration=400) for aggressor in WHERE]
    settings = {"delay.delay_ns": "10000000"}
    result = some.run(document("sockets-unix", points, "block", shims=["delay"], settings=settings))
    for given, attempt in zip(points, result["attempts"], strict=True):
        check_accounts(attempt, given)
        assert 19.9 < p50_us(attempt) / 1e3 < 28
        if given["workload"]["parameters"]["aggressor"] != "none":
            stream = only(attempt, "throughput")
            windows = stream["amount"] / (4 * BULK)
            assert 0.7 < windows * 20e6 / stream["elapsed_ns"] < 1.05


def test_a_call_waits_for_the_message_that_its_thread_writes(some: Pair) -> None:
    """Where nothing else takes time: one message of 1 MiB is written and read between two looks at the layer."""
    need("null-self")
    points = [mixed("none"), *(mixed(aggressor, bulk=1 << 20) for aggressor in ("same", "channel"))]
    alone = [endpoint(0, "client", [0, 0])]
    seen = []
    for _ in range(3):
        attempts = some.run(launch("null-self", points, "self", endpoints=alone))["attempts"]
        for given, attempt in zip(points, attempts, strict=True):
            check_accounts(attempt, given)
        seen.append([p50_us(attempt) for attempt in attempts])
    rest_us, *beside_us = (statistics.median(each) for each in zip(*seen, strict=True))
    # at 100 GB/s, which no processor reaches with one core, writing and reading them takes 20 us
    assert all(one_us > rest_us + 20 for one_us in beside_us), seen
