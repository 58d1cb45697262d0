# SPDX-License-Identifier: BSD-3-Clause
"""The pattern `alltoall`: rounds of all with all, as many at every process, and nothing astray."""

import pytest

from .test_driver_run import Json, Pair, endpoint, in_long_form, launch, need, point, wait_until_under_way

pytestmark = pytest.mark.paired


def rounds(count: int, size: int = 64, touch: str = "write+read", duration: int = 60) -> Json:
    return point("alltoall", duration, bytes=size, touch=touch, endpoints=count)


def document(layer: str, count: int, points: list[Json], wait: str = "block", **more: object) -> Json:
    every = range(count)
    ends = [endpoint(n, "node", [other for other in every if other != n], pin=False) for n in every]
    return launch(layer, points, wait=wait, endpoints=ends, **more)


def check_accounts(attempt: Json, count: int) -> None:
    """All have as many rounds, and each of them sent to and got from every other one."""
    failed = [check for check in attempt["checks"] if not check["ok"]]
    assert attempt["status"] == "done", (attempt["reason"], failed)
    found, sent = attempt["quantities"]["latency"], attempt["quantities"]["sent"]
    assert [each["endpoint"] for each in found] == [each["endpoint"] for each in sent] == list(range(count))
    assert len({each["count"] for each in found}) == 1
    assert attempt["operations"] == found[0]["count"] * count * (count - 1) > 0
    assert attempt["operations"] == attempt["executions"]["expected"] == attempt["executions"]["server"]
    assert attempt["bytes"] == sum(each["amount"] for each in sent)
    assert attempt["bytes"] == attempt["operations"] * attempt["workload"]["parameters"]["bytes"]
    for each, rate in zip(found, sent, strict=True):
        assert each["sum_ns"] == pytest.approx(rate["elapsed_ns"], rel=0.01)
    assert attempt["verified"]["full_before"] == attempt["verified"]["full_after"] == 2 * count * (count - 1)
    assert attempt["verified"]["in_loop"] == attempt["operations"]


@pytest.mark.parametrize("count", [*in_long_form(2), 5])
@pytest.mark.parametrize("layer", ["sockets-unix", "peregrine-shm", *in_long_form("sockets-tcp", "native-zmq")])
def test_all_send_to_all(some: Pair, layer: str, count: int) -> None:
    need(layer)
    points = [rounds(count), rounds(count, 16, "none"), rounds(count, 5000), rounds(count, 200000, duration=100)]
    result = some.run(document(layer, count, points))
    assert (result["status"], result["reason"]) == ("done", None)
    for attempt in result["attempts"]:
        check_accounts(attempt, count)


@pytest.mark.parametrize("layer", ["native-ucx", "sockets-unix", *in_long_form("native-ofi", "am-ucx", "fm-ofi")])
def test_two_that_poll(some: Pair, layer: str) -> None:
    need(layer)
    result = some.run(document(layer, 2, [rounds(2), rounds(2, 70000)], "poll"))
    for attempt in result["attempts"]:
        check_accounts(attempt, 2)


def test_who_may_lose_a_message_is_refused(some: Pair) -> None:
    need("sockets-udp")
    [attempt] = some.run(document("sockets-udp", 3, [rounds(3)]))["attempts"]
    assert (attempt["status"], attempt["reason_code"]) == ("refused", "NO_CAP")
    assert "no message may be lost" in attempt["reason"]


@pytest.mark.parametrize("count", [2, 6])
def test_a_round_takes_one_known_delay(some: Pair, count: int) -> None:
    """The shim holds back each message by 10 ms: all of a round are on their way at the same time.

    A process that is late finds messages of others there: its round is shorter by as much as theirs were longer.
    """
    need("sockets-unix", "shim-delay")
    given = document("sockets-unix", count, [rounds(count, duration=400)], shims=["delay"])
    [attempt] = some.run({**given, "settings": {"delay.delay_ns": "10000000"}})["attempts"]
    check_accounts(attempt, count)
    found = attempt["quantities"]["latency"]
    mean_ns = sum(each["sum_ns"] for each in found) / sum(each["count"] for each in found)
    assert 9.5 < mean_ns / 1e6 < 20


@pytest.mark.parametrize("victim", [*in_long_form(0), 2])
def test_one_of_them_dies(some: Pair, victim: int) -> None:
    need("sockets-unix")
    given = document("sockets-unix", 4, [rounds(4, duration=20000)])
    processes = [some.start(number, given) for number in range(4)]
    wait_until_under_way(processes)
    processes[victim].kill()
    assert [process.wait(timeout=10) for number, process in enumerate(processes) if number != victim] == [4] * 3
