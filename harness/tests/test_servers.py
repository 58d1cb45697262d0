# SPDX-License-Identifier: BSD-3-Clause
"""The pattern `servers`: every client's calls are answered once, whoever of the server's threads answers them."""

from collections.abc import Iterator
from pathlib import Path

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
    wait_until_under_way,
    waited_ns,
)

pytestmark = pytest.mark.paired

STEPS = ["per_connection", "dispatcher", "clusters", "stealing"]
SHARED = ["cont", "wait"]
"""How threads that share a connection take their replies: each polls, or one more dispatches to them."""


@pytest.fixture
def two(tmp_path: Path) -> Iterator[Pair]:
    """The processes of a launch, gone afterwards whatever happened."""
    made = Pair(tmp_path)
    yield made
    for process in made.processes:
        if process.poll() is None:
            process.kill()
        process.communicate(timeout=10)


def served(
    clients: int = 4,
    step: str = "clusters",
    threads: int = 1,
    depth: int = 1,
    service: int = 0,
    size: int = 16,
    touch: str = "write+read",
    duration: int = 100,
    batch: int = 1,
    reply: str = "cont",
    connection: str = "private",
) -> Json:
    given = {"request_bytes": size, "reply_bytes": size + 8, "depth": depth, "touch": touch}
    given |= {"clients": clients, "step": step, "server_threads": threads, "service_ns": service, "batch": batch}
    given |= {"reply": reply, "connection": connection}
    made = point("servers", duration, **given)
    return {**made, "deadline_ms": duration + 30000}


def document(layer: str, points: list[Json], wait: str = "block", **more: object) -> Json:
    """Return a launch with the threads that the first point asks for; all its points ask for the same."""
    parameters = points[0]["workload"]["parameters"]
    step, threads, clients = parameters["step"], parameters["server_threads"], parameters["clients"]
    connections = 1 if parameters["connection"] == "shared" else clients
    ends = [endpoint(0, "client", [1]), endpoint(1, "server", [0])]
    if wait == "block":
        ends[0]["cpus"] = [-1] * connections
        ends[1]["cpus"] = [-1] * {"per_connection": connections, "dispatcher": 1}.get(step, threads)
    if step == "dispatcher":
        ends[1]["hands"] = [-1] * threads
    if parameters["reply"] != "cont":
        ends[0]["hands"] = [-1] * clients
    elif connections < clients:
        ends[0]["hands"] = [-1] * (clients - 1)
    return launch(layer, points, wait=wait, endpoints=ends, **more)


def rate(attempt: Json) -> float:
    found = only(attempt, "rate")
    return float(found["amount"] / found["elapsed_ns"] * 1e9)


def check(result: Json, reliable: bool = True) -> None:
    assert (result["status"], result["reason"]) == ("done", None)
    for attempt in result["attempts"]:
        failed = [one for one in attempt["checks"] if not one["ok"]]
        assert attempt["status"] == "done", (attempt["reason"], failed)
        parameters = attempt["workload"]["parameters"]
        assert only(attempt, "rate")["amount"] == only(attempt, "latency")["count"] == attempt["operations"] > 0
        clients, depth = parameters["clients"], parameters["depth"]
        assert attempt["verified"]["mismatches"] == 0
        # both ends compare each message whole
        assert attempt["verified"]["full_before"] == (
            2 * clients * depth if reliable else pytest.approx(2 * clients * depth, 1)
        )
        if reliable:
            assert attempt["executions"]["expected"] == attempt["executions"]["server"] == attempt["operations"]
            assert attempt["lost"] == 0


@pytest.mark.parametrize(
    "layer",
    [
        "sockets-unix",
        "peregrine-shm",
        *(pytest.param(one, marks=pytest.mark.long) for one in ("sockets-tcp", "sockets-udp")),
    ],
)
@pytest.mark.parametrize(
    ("step", "threads"),
    [
        ("per_connection", 1),
        *(("clusters", threads) for threads in (2, 5)),
        ("dispatcher", 3),
        ("stealing", 3),
        *in_long_form(*((step, 1) for step in ("clusters", "dispatcher", "stealing"))),
    ],
)
@pytest.mark.first(3)
def test_every_call_is_answered_once(two: Pair, layer: str, step: str, threads: int) -> None:
    """Over messages, calls and what may lose them; with more threads than clients too."""
    need(layer)
    points = [
        served(4, step, threads),
        served(4, step, threads, depth=8, size=5000),
        served(4, step, threads, depth=8, touch="none", service=2000),
    ]
    check(two.run(document(layer, points)), reliable=layer != "sockets-udp")


@pytest.mark.parametrize("layer", ["sockets-unix", "peregrine-shm"])
@pytest.mark.long
def test_one_client_of_each_that_polls(two: Pair, layer: str) -> None:
    need(layer)
    for step in STEPS:
        result = two.run(document(layer, [served(1, step), served(1, step, depth=16)], wait="poll"))
        if step == "dispatcher":  # a third that polls, on two processors: whether it may is the planner's business
            assert all(attempt["executions"]["server"] > 0 for attempt in result["attempts"])
        else:
            check(result)


@pytest.mark.parametrize("step", ["per_connection", "clusters", *in_long_form("dispatcher", "stealing")])
@pytest.mark.first(1)
def test_sixty_four_clients(two: Pair, step: str) -> None:
    """They end in time on two cores, also with as many threads of the server's."""
    need("sockets-unix")
    result = two.run(document("sockets-unix", [served(64, step, duration=500)], deadline_ms=60000))
    check(result)
    assert len(result["path"]) == 128


def test_rates_of_clients_add_up(two: Pair) -> None:
    """The shim holds back each message by 10 ms, and so each client makes 50 calls a second, however many there are."""
    for clients, depth in ((1, 1), (8, 1), (8, 4)):
        expect_added_up(two, clients, depth)


@pytest.mark.parametrize(
    ("reply", "clients", "depth"),
    [
        ("cont", 16, 1),
        *in_long_form(("wait", 16, 1), *((reply, *many) for reply in SHARED for many in ((1, 1), (64, 1), (8, 4)))),
    ],
)
def test_rates_of_threads_that_share_add_up(two: Pair, reply: str, clients: int, depth: int) -> None:
    """Whoever sleeps is woken when its reply is there: else each would sleep for 10 ms more now and then."""
    expect_added_up(two, clients, depth, reply=reply, connection="shared")


def expect_added_up(two: Pair, clients: int, depth: int, reply: str = "cont", connection: str = "private") -> None:
    """Expect 50 calls a second of each slot of each client.

    It is never faster than the shim. What its threads waited for a processor is taken off.
    """
    need("sockets-unix", "shim-delay")
    more = {"shims": ["delay"], "settings": {"delay.delay_ns": "10000000"}}
    given = served(clients, depth=depth, duration=1000, reply=reply, connection=connection)
    result = two.run(document("sockets-unix", [given], **more))
    check(result)
    [attempt] = result["attempts"]
    assert decode(only(attempt, "latency")["histogram"]).percentile(1) >= 20e6 * 0.999
    share = rate(attempt) / (50 * clients * depth)
    assert 0.9 * (1 - waited_ns(attempt) / 1e9) < share < 1.05, attempt["cpu"]


@pytest.mark.parametrize(
    ("step", "threads"), [("clusters", 2), ("per_connection", 1), ("dispatcher", 2), ("stealing", 2)]
)
@pytest.mark.first(2)
def test_no_thread_handles_two_calls_at_a_time(two: Pair, step: str, threads: int) -> None:
    """A handler of 100 us: a thread answers no more than 10,000 calls a second."""
    need("sockets-unix")
    result = two.run(document("sockets-unix", [served(4, step, threads, depth=4, service=100_000, duration=300)]))
    check(result)
    [attempt] = result["attempts"]
    working = 4 if step == "per_connection" else threads
    # what was under way when the clock was first read is among the calls
    assert rate(attempt) <= working * 10_000 * 1.02 + 4 * 4 / 0.3
    assert only(attempt, "latency")["min_ns"] >= 100_000


def test_order_is_kept_where_one_thread_answers(two: Pair) -> None:
    """And not promised where several do: of two workers one has the shorter request now and then."""
    need("sockets-unix")
    found = {}
    for step, threads in (("clusters", 2), ("dispatcher", 1), ("dispatcher", 3)):
        result = two.run(document("sockets-unix", [served(2, step, threads, depth=16, service=5000, duration=300)]))
        check(result)
        found[step, threads] = result["attempts"][0]["quantities"].get("reordered", [{"value": None}])[0]["value"]
    assert found["clusters", 2] is None, "in place nothing can overtake, and nothing is counted"
    assert found["dispatcher", 1] == 0
    assert found["dispatcher", 3] > 0


def test_a_busy_cluster_gives_away(two: Pair) -> None:
    """Three clients on two clusters: the one with two of them has more to do.

    One that sleeps takes nothing: where others use the machine, two are seldom awake at a time.
    """
    need("sockets-unix")
    result = two.run(document("sockets-unix", [served(3, "stealing", 2, depth=16, service=20000, duration=1500)]))
    check(result)
    assert only(result["attempts"][0], "stolen")["value"] > 0


@pytest.mark.parametrize("layer", ["peregrine-shm", "peregrine-udp"])
@pytest.mark.parametrize("step", ["clusters", "dispatcher"])
@pytest.mark.first(1)
def test_batches(two: Pair, layer: str, step: str) -> None:
    """As many outstanding as a batch has, or more; and none larger than that."""
    need(layer)
    points = [
        *(
            served(3, step, 1, depth=depth, batch=8, touch=touch)
            for depth in (8, 20)
            for touch in ("none", "write+read")
        ),
        served(3, step, 1, depth=4, batch=8),
    ]
    *done, larger = (result := two.run(document(layer, points)))["attempts"]
    check({**result, "attempts": done})
    assert (larger["status"], larger["reason_code"]) == ("refused", "DEPTH_TOO_DEEP")
    assert "batches of 8 calls where 4 may be outstanding" in larger["reason"]


def test_calls_that_are_answered_inside_their_handler(two: Pair) -> None:
    """Active messages are: nobody else can answer them."""
    need("am-ofi")
    for step in ("dispatcher", "stealing"):
        [attempt] = two.run(document("am-ofi", [served(1, step)], wait="poll"))["attempts"]
        assert (attempt["status"], attempt["reason_code"]) == ("refused", "NO_CAP")
        assert "before their handler ends" in attempt["reason"]


@pytest.mark.parametrize("layer", ["sockets-unix", "peregrine-shm", "sockets-udp"])
@pytest.mark.parametrize("reply", ["wait", "defer"])
@pytest.mark.parametrize("clients", [pytest.param(1, marks=pytest.mark.long), 5])
@pytest.mark.first(2)
def test_clients_that_dispatch_their_replies(two: Pair, layer: str, reply: str, clients: int) -> None:
    """Each has a thread of its own that takes them, and every one of them takes its own."""
    need(layer)
    points = [served(clients, depth=depth, reply=reply) for depth in (1, 8)]
    check(two.run(document(layer, points)), reliable=layer != "sockets-udp")


def test_batches_that_the_layer_does_not_have(two: Pair) -> None:
    need("sockets-unix")
    [attempt] = two.run(document("sockets-unix", [served(2, depth=8, batch=4)]))["attempts"]
    assert (attempt["status"], attempt["reason_code"]) == ("refused", "NO_CAP")


def test_the_clients_die(two: Pair) -> None:
    need("sockets-unix")
    processes = two.start_both(document("sockets-unix", [served(4, threads=2, duration=20000)]))
    wait_until_under_way(processes)
    processes[0].kill()
    assert processes[1].wait(timeout=10) == 4


@pytest.mark.parametrize(
    ("layer", "reply", "clients"),
    [
        ("sockets-unix", "cont", 5),
        ("peregrine-shm", "wait", 5),
        *in_long_form(
            ("sockets-unix", "wait", 5),
            ("peregrine-shm", "cont", 5),
            *(("sockets-unix", reply, 1) for reply in SHARED),
            *((layer, reply, 7) for layer in ("sockets-tcp", "sockets-udp", "peregrine-udp") for reply in SHARED),
        ),
    ],
)
def test_threads_that_share_a_connection(two: Pair, layer: str, reply: str, clients: int) -> None:
    """Every call of every one is answered once, to whose it is: over messages, calls and what may lose them."""
    need(layer)
    points = [
        served(clients, reply=reply, connection="shared"),
        served(clients, depth=8, size=5000, reply=reply, connection="shared"),
        served(clients, depth=8, touch="none", service=2000, reply=reply, connection="shared"),
    ]
    result = two.run(document(layer, points))
    check(result, reliable=layer != "sockets-udp")
    assert len(result["path"]) == 2, "one connection, seen from both ends"


@pytest.mark.long
@pytest.mark.parametrize("reply", SHARED)
def test_sixty_four_threads_on_one_connection(two: Pair, reply: str) -> None:
    """They end in time on two cores, with as many workers of the server's too."""
    need("sockets-unix")
    given = served(64, "dispatcher", 4, duration=200, reply=reply, connection="shared")
    result = two.run(document("sockets-unix", [given], deadline_ms=60000))
    check(result)


@pytest.mark.long
def test_batches_of_threads_that_share(two: Pair) -> None:
    need("peregrine-udp")
    points = [served(3, depth=depth, batch=8, connection="shared") for depth in (8, 20)]
    check(two.run(document("peregrine-udp", points)))


@pytest.mark.long
def test_one_thread_with_a_lock_that_polls(two: Pair) -> None:
    need("sockets-unix")
    check(two.run(document("sockets-unix", [served(1, connection="shared")], wait="poll")))


@pytest.mark.parametrize("reply", ["cont", *in_long_form("wait")])
def test_the_server_of_a_shared_connection_dies(two: Pair, reply: str) -> None:
    """Every thread is woken, and all of them end."""
    need("sockets-unix")
    given = served(6, duration=20000, reply=reply, connection="shared")
    processes = two.start_both(document("sockets-unix", [given]))
    wait_until_under_way(processes)
    processes[1].kill()
    assert processes[0].wait(timeout=10) == 4
