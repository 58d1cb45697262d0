# SPDX-License-Identifier: BSD-3-Clause
"""The pattern `handler`: every call is worked for once, for as long as was drawn, and what is above that is told."""

import statistics
from collections.abc import Iterator
from pathlib import Path

import pytest

from .attempts import only, quantile
from .test_driver_run import Json, Pair, endpoint, launch, need, point

pytestmark = pytest.mark.alone

TEN_US = 10_000


@pytest.fixture
def two(tmp_path: Path) -> Iterator[Pair]:
    """The processes of a launch, gone afterwards whatever happened."""
    made = Pair(tmp_path)
    yield made
    for process in made.processes:
        if process.poll() is None:
            process.kill()
        process.communicate(timeout=10)


def handled(
    service: int = TEN_US,
    spread: str = "fixed",
    work: str = "spin",
    depth: int = 1,
    size: int = 64,
    touched: int = 0,
    duration: int = 50,
    touch: str = "write+read",
    workers: int = 0,
) -> Json:
    given = {"request_bytes": size, "reply_bytes": size, "depth": depth, "touch": touch, "workers": workers}
    given["dispatch"] = "workers" if workers else "inline"
    return point("handler", duration, service_ns=service, spread=spread, work=work, work_bytes=touched, **given)


def with_workers(layer: str, points: list[Json], workers: int, place: str = "within", **more: object) -> Json:
    """Nothing is pinned: there may be more threads than processors."""
    ends = [endpoint(0, "client", [1], pin=False), endpoint(1, "server", [0], pin=False)]
    ends = [endpoint(0, "client", [0], pin=False)] if place == "self" else ends
    ends[-1]["hands"] = [-1] * workers
    return launch(layer, points, place, endpoints=ends, **more)


def check_accounts(attempt: Json, given: Json) -> None:
    """Every call has its samples at both ends, and times add up. Whether ends sleep, a busy machine decides."""
    failed = [check for check in attempt["checks"] if not check["ok"] and check["name"] != "wait_mode"]
    assert not failed, failed
    assert attempt["status"] in {"done", "unsound"}, attempt["reason"]
    parameters = given["workload"]["parameters"]
    assert attempt["operations"] > 0
    assert only(attempt, "latency")["count"] == attempt["operations"]
    worked = only(attempt, "service")
    assert worked["count"] == attempt["executions"]["server"]
    assert attempt["operations"] <= worked["count"] <= attempt["executions"]["expected"]
    assert worked["endpoint"] == len(attempt["cpu"]) - 1, "the end that works says how long it took"
    if parameters["work"] == "touch":
        assert set(attempt["quantities"]) == {"latency", "service"}
        return
    overhead = only(attempt, "overhead")
    assert overhead["count"] == attempt["operations"]
    assert overhead["sum_ns"] > 0
    drawn = only(attempt, "latency")["sum_ns"] - overhead["sum_ns"]
    if attempt["lost"] == 0:
        # each call of the server's took what was drawn for it, or more; two clocks are as one to 100 ppm
        assert worked["sum_ns"] >= drawn * 0.9999 - attempt["operations"]
    if parameters["spread"] == "fixed":
        assert drawn == pytest.approx(parameters["service_ns"] * attempt["operations"], rel=1e-3)
    assert ("slowdown" in attempt["quantities"]) == (attempt["operations"] >= 1000 and parameters["service_ns"] > 0)


def every_kind(depth: int, workers: int = 0) -> list[Json]:
    return [
        handled(0, depth=depth, workers=workers),
        *(
            handled(5000, spread, work, depth, workers=workers)
            for spread in ("fixed", "exponential", "bimodal")
            for work in ("spin", "sleep")
        ),
        handled(0, work="touch", touched=65536, depth=depth, workers=workers),
        handled(TEN_US, "exponential", size=16, depth=depth, touch="none", workers=workers),
    ]


@pytest.mark.paired
@pytest.mark.parametrize("wait", ["poll", "block"])
@pytest.mark.parametrize("layer", ["sockets-unix", "peregrine-shm", "sockets-udp"])
@pytest.mark.first(2)
def test_every_call_is_worked_for(two: Pair, layer: str, wait: str) -> None:
    """Over messages, native calls and what may lose them, whatever the work is."""
    need(layer)
    points = [*every_kind(1), *every_kind(16)]
    result = two.run(launch(layer, points, wait=wait))
    assert (result["status"], result["reason"]) == ("done", None)
    for given, attempt in zip(points, result["attempts"], strict=True):
        check_accounts(attempt, given)


def test_one_process_plays_both(two: Pair) -> None:
    need("null-self")
    points = [*every_kind(1), *every_kind(16)]
    result = two.run(launch("null-self", points, "self"))
    for given, attempt in zip(points, result["attempts"], strict=True):
        check_accounts(attempt, given)


def test_ten_microseconds_are_seen_as_such(two: Pair) -> None:
    """By the server's own clock, and by the client's: so much longer than a call whose handler does nothing.

    The machine may be at other work: medians, and of three rounds. A handler is never seen as shorter.
    """
    need("null-self")
    seen = []
    for _ in range(3):
        none, ten = two.run(launch("null-self", [handled(0), handled()], "self"))["attempts"]
        check_accounts(ten, handled())
        assert only(ten, "service")["min_ns"] >= TEN_US
        assert only(ten, "latency")["min_ns"] >= TEN_US
        assert quantile(ten, "service") == pytest.approx(TEN_US, rel=0.02)
        seen.append(quantile(ten, "latency") - quantile(none, "latency"))
    assert statistics.median(seen) == pytest.approx(TEN_US, rel=0.02), seen


def test_a_seed_repeats_the_draws(two: Pair) -> None:
    """What is drawn for the first calls is the same in every launch of a seed, and other numbers for another."""
    need("null-self")
    first = []
    for seed in (1, 1, 2):
        document = launch("null-self", [handled(500_000, "exponential")], "self", seed=seed)
        [attempt] = two.run(document)["attempts"]
        first.append(only(attempt, "service")["first_ns"][:20])
    same, other = (
        statistics.median(abs(there_ns - here_ns) / here_ns for here_ns, there_ns in zip(first[0], each, strict=True))
        for each in first[1:]
    )
    assert same < 0.01 < other


def test_the_mean_is_that_of_every_spread(two: Pair) -> None:
    need("null-self")
    points = [handled(1000, spread, duration=300) for spread in ("fixed", "exponential", "bimodal")]
    result = two.run(launch("null-self", points, "self"))
    for given, attempt in zip(points, result["attempts"], strict=True):
        check_accounts(attempt, given)
        drawn = only(attempt, "latency")["sum_ns"] - only(attempt, "overhead")["sum_ns"]
        # of a hundred thousand calls; a bimodal one deviates by 4.7 means
        assert drawn / attempt["operations"] == pytest.approx(1000, rel=0.15)


def test_calls_wait_for_those_in_front(two: Pair) -> None:
    """Depth 1 has nobody in front. With 8 in flight a short call may stand behind a long one, whose time it waits."""
    need("sockets-unix")
    points = [handled(TEN_US, "bimodal", depth=depth, duration=400) for depth in (1, 8)]
    alone, crowd = two.run(launch("sockets-unix", points))["attempts"]
    for given, attempt in zip(points, (alone, crowd), strict=True):
        check_accounts(attempt, given)
    short_ns = TEN_US * 200 // 299
    # 8 x 0.5 % of the calls are in flight together with one of 669 us: far more than one in 100
    assert quantile(crowd, "overhead", 99) > 100 * short_ns / 3
    assert quantile(crowd, "overhead") > 5 * short_ns, "seven others are in front"
    assert only(crowd, "slowdown")["value"] > 50
    assert quantile(crowd, "service") == pytest.approx(quantile(alone, "service"), rel=0.02)


def test_more_memory_takes_longer(two: Pair) -> None:
    """No clock is read, and nothing is drawn: the handler's own time is that of reading and writing."""
    need("sockets-unix")
    sizes = (4096, 65536, 1 << 22)
    points = [handled(0, work="touch", touched=size) for size in sizes]
    result = two.run(launch("sockets-unix", points))
    medians = []
    for given, attempt in zip(points, result["attempts"], strict=True):
        check_accounts(attempt, given)
        medians.append(quantile(attempt, "service"))
        assert medians[-1] < quantile(attempt, "latency")
    assert medians[0] * 4 < medians[1] < medians[2] / 16


@pytest.mark.paired
@pytest.mark.parametrize("workers", [pytest.param(1, marks=pytest.mark.long), 3])
@pytest.mark.parametrize("layer", ["sockets-unix", "peregrine-shm", "sockets-udp"])
@pytest.mark.first(1)
def test_every_call_is_worked_for_by_others(two: Pair, layer: str, workers: int) -> None:
    """Over messages, native calls and what may lose them; workers and their owner sleep, and wake each other."""
    need(layer)
    points = [*every_kind(1, workers), *every_kind(16, workers)]
    result = two.run(with_workers(layer, points, workers, wait="block"))
    assert (result["status"], result["reason"]) == ("done", None)
    for given, attempt in zip(points, result["attempts"], strict=True):
        check_accounts(attempt, given)


def test_a_worker_of_one_process_that_plays_both(two: Pair) -> None:
    """In poll mode it spins: over the layer that does nothing."""
    need("null-self")
    points = [handled(0, workers=1), handled(5000, "exponential", depth=16, workers=1)]
    result = two.run(with_workers("null-self", points, 1, "self"))
    for given, attempt in zip(points, result["attempts"], strict=True):
        check_accounts(attempt, given)


def test_workers_sleep_only_over_a_layer_with_a_descriptor(two: Pair) -> None:
    need("native-zmq")
    [attempt] = two.run(with_workers("native-zmq", [handled(workers=1)], 1, wait="block"))["attempts"]
    assert (attempt["status"], attempt["reason_code"]) == ("refused", "NO_WAIT")


def test_workers_do_several_calls_at_a_time(two: Pair) -> None:
    """Handlers that sleep 5 ms need no processor: four of them at a time take a quarter of the time of one."""
    need("sockets-unix")
    five_ms = 5_000_000
    points = [handled(five_ms, work="sleep", depth=8, duration=400, workers=workers) for workers in (0, 1, 4)]
    took_ms = []
    for given, workers in zip(points, (0, 1, 4), strict=True):
        [attempt] = two.run(with_workers("sockets-unix", [given], workers, wait="block"))["attempts"]
        check_accounts(attempt, given)
        took_ms.append(quantile(attempt, "latency") / 1e6)
    inline_ms, one_ms, four_ms = took_ms
    # eight in flight, one after the other, or two by two of each of four
    assert 39 < inline_ms < 60
    assert 39 < one_ms < 60
    assert 9.9 < four_ms < 20


def test_a_long_call_holds_up_no_other_where_another_worker_is_free(two: Pair) -> None:
    """One call in 200 takes a hundred times as long. With one queue and two workers the others go on beside it."""
    need("sockets-unix")
    mean_ns = 300_000
    short_ns = mean_ns * 200 // 299
    seen = {}
    for workers in (0, 4):
        given = handled(mean_ns, "bimodal", work="sleep", depth=4, duration=1500, workers=workers)
        [attempt] = two.run(with_workers("sockets-unix", [given], workers, wait="block"))["attempts"]
        check_accounts(attempt, given)
        seen[workers] = quantile(attempt, "overhead", 99.5)
    # of four in flight, three stand behind a long one: three calls in two hundred, give or take what the seed draws
    assert seen[0] > 20 * short_ns
    assert seen[4] < seen[0] / 2
