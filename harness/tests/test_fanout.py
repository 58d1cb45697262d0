# SPDX-License-Identifier: BSD-3-Clause
"""The pattern `fanout`: one client, several servers, and rounds that end with the last reply."""

import signal
import time

import pytest

from cadge_results.formats.histogram import decode

from .attempts import only
from .test_driver_run import (
    Json,
    Pair,
    endpoint,
    in_long_form,
    launch,
    need,
    point,
    stop,
    wait_until_under_way,
    waited_ns,
)

pytestmark = pytest.mark.paired


def rounds(servers: int, request: int = 64, reply: int = 64, touch: str = "write+read", duration: int = 60) -> Json:
    return point("fanout", duration, servers=servers, request_bytes=request, reply_bytes=reply, touch=touch)


def document(layer: str, servers: int, points: list[Json], **more: object) -> Json:
    """Return a launch of one client, which is endpoint 0, and its servers."""
    ends = [
        endpoint(0, "client", list(range(1, servers + 1)), pin=False),
        *(endpoint(n, "server", [0], pin=False) for n in range(1, servers + 1)),
    ]
    return launch(layer, points, wait="block", endpoints=ends, **more)


def check_accounts(attempt: Json, servers: int) -> None:
    """A round is a call to each server; its times are in order, and rounds follow one another."""
    failed = [check for check in attempt["checks"] if not check["ok"] and check["name"] != "wait_mode"]
    assert not failed, (attempt["attempt_id"], failed)
    assert attempt["status"] in {"done", "unsound"}, attempt["reason"]
    last, first, each = (only(attempt, name) for name in ("latency", "first", "each"))
    assert each["count"] == attempt["operations"] > 0
    if not attempt["lost"]:
        assert last["count"] == first["count"] == attempt["operations"] / servers
        assert attempt["operations"] == attempt["executions"]["expected"] == attempt["executions"]["server"]
        assert last["sum_ns"] == pytest.approx(attempt["elapsed_ns"], rel=0.01)
        assert first["sum_ns"] <= last["sum_ns"]
        assert first["max_ns"] <= last["max_ns"]
        assert each["max_ns"] <= last["max_ns"]
    if servers == 1:
        assert first["sum_ns"] == last["sum_ns"] == each["sum_ns"]
    assert len(attempt["cpu"]) == servers + 1


@pytest.mark.parametrize("servers", [*in_long_form(1), 4])
@pytest.mark.parametrize(
    "layer", ["sockets-unix", "peregrine-shm", *in_long_form("sockets-udp", "native-zmq", "sockets-tcp")]
)
def test_every_server_answers(some: Pair, layer: str, servers: int) -> None:
    """Over messages, unreliable and lent ones among them, and native calls; small and large, touched and not."""
    need(layer)
    points = [rounds(servers), rounds(servers, 0, 5000), rounds(servers, 8, 8, "none"), rounds(servers, 20000, 0)]
    result = some.run(document(layer, servers, points))
    assert (result["status"], result["reason"]) == ("done", None)
    for attempt in result["attempts"]:
        check_accounts(attempt, servers)


def test_known_delays_are_waited_for_together(some: Pair) -> None:
    """The shim holds back each message by 13 ms: a round of five servers takes two delays, as that of one does.

    What the threads waited for a processor is taken off: a round of five that waited for one after another takes six.
    """
    need("sockets-unix", "shim-delay")
    for servers in (1, 5):
        given = document("sockets-unix", servers, [rounds(servers, duration=400)], shims=["delay"])
        [attempt] = some.run({**given, "settings": {"delay.delay_ns": "13000000"}})["attempts"]
        check_accounts(attempt, servers)
        for name in ("latency", "first", "each"):
            found = only(attempt, name)
            assert found["min_ns"] > 25.9e6, name
            assert (found["sum_ns"] - waited_ns(attempt)) / found["count"] < 32e6, (name, found, attempt["cpu"])


def test_a_round_waits_for_the_slowest(some: Pair) -> None:
    """One server of three is stopped for 300 ms: one round is as long as that, its first reply and others are not."""
    need("sockets-unix")
    given = document("sockets-unix", 3, [rounds(3, duration=2500)])
    processes = [some.start(number, given) for number in range(4)]
    wait_until_under_way(processes)
    stop(processes[2])
    time.sleep(0.3)  # so long, at least, it stays stopped
    processes[2].send_signal(signal.SIGCONT)
    errors = [process.communicate(timeout=90)[1] for process in processes]
    assert [process.returncode for process in processes] == [0] * 4, errors
    [attempt] = some.result()["attempts"]
    check_accounts(attempt, 3)
    names = ("latency", "first", "each")
    long = {name: sum(count for ns, count in histogram(attempt, name) if ns > 290e6) for name in names}
    # where the machine itself stood still for as long, a round is late as a whole, its first reply as well
    assert long["latency"] - long["first"] == 1, long
    assert long["each"] < 3 * long["latency"], long


def histogram(attempt: Json, name: str) -> list[tuple[int, int]]:
    decoded = decode(only(attempt, name)["histogram"])
    return list(zip(decoded.highs, decoded.counts, strict=True))


@pytest.mark.parametrize("victim", [*in_long_form(0), 2])
def test_one_of_them_dies(some: Pair, victim: int) -> None:
    """All others end soon, be it the client or a server."""
    need("sockets-unix")
    given = document("sockets-unix", 3, [rounds(3, duration=20000)])
    processes = [some.start(number, given) for number in range(4)]
    wait_until_under_way(processes)
    processes[victim].kill()
    assert [process.wait(timeout=10) for number, process in enumerate(processes) if number != victim] == [4] * 3
    if victim:
        [attempt] = some.result()["attempts"]
        assert (attempt["status"], attempt["reason_code"]) == ("failed", "PEER_LOST")
        assert f"endpoint {victim}" in attempt["reason"]
