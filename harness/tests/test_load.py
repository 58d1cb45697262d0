# SPDX-License-Identifier: BSD-3-Clause
"""The pattern `load`: every call that was due is accounted for, and a known stall shows in it and in no closed loop."""

import math

import pytest

from cadge_results.formats.histogram import decode

from .attempts import only
from .test_driver_run import Json, Pair, in_long_form, launch, need, point, quantile, rpc

pytestmark = pytest.mark.alone

OWN = ("request_bytes", "reply_bytes", "depth", "touch")


def load(
    percent: int,
    size: int = 8,
    depth: int = 64,
    arrivals: str = "poisson",
    touch: str = "write+read",
    duration: int = 100,
    offered: int = 0,
) -> Json:
    """Return a point; `offered`: calls a second, in place of a share of the closed loop's maximum."""
    given = {"request_bytes": size, "reply_bytes": size, "depth": depth, "arrivals": arrivals, "touch": touch}
    return point("load", duration, load_percent=percent, offered_per_s=offered, **given)


def rate(attempt: Json, name: str) -> float:
    found = only(attempt, name)
    return float(found["amount"] * 1e9 / found["elapsed_ns"])


def p99_ms(attempt: Json, name: str) -> float:
    return decode(only(attempt, name)["histogram"]).percentile(99) / 1e6


def check_accounts(attempt: Json, given: Json) -> None:
    """What was due was handed over, and is done or lost; times add up; the rate is the share that was asked for."""
    assert attempt["status"] == "done", attempt["reason"]
    parameters = given["workload"]["parameters"]
    offered, achieved = only(attempt, "offered"), only(attempt, "achieved")
    assert offered["amount"] == attempt["operations"] + attempt["lost"] == attempt["executions"]["expected"]
    assert attempt["executions"]["server"] <= attempt["executions"]["expected"]
    assert achieved["amount"] == attempt["operations"]
    if absolute := parameters["offered_per_s"]:
        assert "closed_loop" not in attempt["quantities"]
    else:
        assert only(attempt, "closed_loop")["elapsed_ns"] >= given["duration_ms"] * 200_000
    open_ns = given["duration_ms"] * (1_000_000 if absolute else 800_000)
    assert offered["elapsed_ns"] == open_ns <= achieved["elapsed_ns"] + 1
    for name in ("response", "service", "lag"):
        assert only(attempt, name)["count"] == attempt["operations"], name
    sums = [only(attempt, name)["sum_ns"] for name in ("response", "service", "lag")]
    assert sums[0] == pytest.approx(sums[1] + sums[2], abs=2 * attempt["operations"])
    per_s = absolute or rate(attempt, "closed_loop") * parameters["load_percent"] / 100
    expected = per_s * offered["elapsed_ns"] / 1e9
    most = 1.01 if parameters["arrivals"] == "fixed" else 6 * math.sqrt(expected)
    assert offered["amount"] == pytest.approx(expected, abs=most)
    assert 0 <= only(attempt, "held")["value"] <= 100
    late = p99_ms(attempt, "lag") * 10 > p99_ms(attempt, "response")
    slow = rate(attempt, "achieved") < 0.99 * rate(attempt, "offered")
    assert only(attempt, "generator_bound")["value"] == (late or slow)


@pytest.mark.paired
@pytest.mark.parametrize(
    ("layer", "wait"),
    [
        ("sockets-unix", "poll"),
        ("sockets-unix", "block"),
        *in_long_form(("sockets-tcp", "block")),
        *in_long_form(("sockets-udp", "poll")),
        ("native-ucx", "poll"),
        ("peregrine-shm", "poll"),
    ],
)
@pytest.mark.first(1)
def test_every_call_is_accounted_for(pair: Pair, layer: str, wait: str) -> None:
    """Over messages, calls of the layer's own, and what may lose them; from little to more than the layer does."""
    need(layer)
    points = [
        load(percent, size, depth, arrivals, touch)
        for percent in (20, 80, 150)
        for size, depth, arrivals, touch in (
            (8, 64, "poisson", "write+read"),
            (0, 1, "fixed", "none"),
            (4096, 16, "fixed", "write+read"),
        )
    ]
    result = pair.run(launch(layer, points, wait=wait))
    assert (result["status"], result["reason"]) == ("done", None)
    for given, attempt in zip(points, result["attempts"], strict=True):
        check_accounts(attempt, given)


@pytest.mark.paired
def test_a_given_rate_is_offered_whatever_the_layer_can_do(pair: Pair) -> None:
    """The same to each layer: a number of calls that depends on the seed alone."""
    offered = {}
    for layer in ("sockets-unix", "peregrine-shm"):
        need(layer)
        points = [load(50, offered=2000, arrivals=arrivals, duration=200) for arrivals in ("poisson", "fixed")]
        result = pair.run(launch(layer, points, wait="block"))
        for given, attempt in zip(points, result["attempts"], strict=True):
            check_accounts(attempt, given)
        offered[layer] = [only(attempt, "offered")["amount"] for attempt in result["attempts"]]
    poisson, fixed = zip(*offered.values(), strict=True)
    # the last instant may fall on either side of the end, as each process's clock was calibrated
    assert set(fixed) <= {399, 400}
    assert max(poisson) - min(poisson) <= 1


def test_the_layer_that_does_nothing_shows_what_the_client_can_offer(pair: Pair) -> None:
    """At place self one thread asks and answers. What it achieves where more is offered is the client's own limit."""
    need("null-self")
    points = [load(percent, arrivals=arrivals) for percent in (1, 150) for arrivals in ("poisson", "fixed")]
    result = pair.run(launch("null-self", points, "self"))
    for given, attempt in zip(points, result["attempts"], strict=True):
        check_accounts(attempt, given)
        if given["workload"]["parameters"]["load_percent"] == 150:
            assert rate(attempt, "achieved") < 0.99 * rate(attempt, "offered")
            assert only(attempt, "held")["value"] > 50


def test_the_seed_decides_when_calls_are_due(pair: Pair) -> None:
    """Equal seeds give equal gaps in units of the mean; another seed gives other numbers of calls."""
    need("null-self")
    counts = []
    for seed in (1, 2):
        document = launch("null-self", [load(10)], "self", seed=seed)
        [attempt] = pair.run(document)["attempts"]
        check_accounts(attempt, load(10))
        counts.append(only(attempt, "offered")["amount"])
    assert counts[0] != counts[1]


def was_disturbed(attempt: Json) -> bool:
    """Tell whether the process waited for a processor for more than half a percent of its time."""
    [use] = attempt["cpu"]
    return bool((use["run_wait_ns"] or 0) * 200 > use["wall_ns"])


def test_a_stall_shows_under_load_and_in_no_closed_loop(pair: Pair) -> None:
    """5 ms in every 100 ms nothing leaves. Who waits for a reply before it asks again is held up but once a stall.

    Other work on the machine stalls a process as well: a round in which there was some proves nothing against it.
    """
    need("null-self", "shim-delay")
    steady = {"delay.delay_ns": "20000"}
    stalling = {**steady, "delay.stall_ns": "5000000", "delay.stall_every_ns": "100000000"}
    points = [rpc(duration=500), load(10, duration=500)]
    for _ in range(8):
        before, after = (
            pair.run(launch("null-self", points, "self", shims=["delay"], settings=settings))["attempts"]
            for settings in (steady, stalling)
        )
        check_accounts(after[1], points[1])
        undisturbed_ms, stalled_ms = p99_ms(before[1], "response"), p99_ms(after[1], "response")
        closed = quantile(after[0], 99) / quantile(before[0], 99)
        # of the many that were due in a stall only as many as may be outstanding were sent into it
        service_ms = p99_ms(after[1], "service")
        if undisturbed_ms < 2.5 < stalled_ms and closed < 1.2 and service_ms < 2.5:
            return
        assert any(map(was_disturbed, (*before, *after))), (undisturbed_ms, stalled_ms, closed, service_ms)
    pytest.skip("something else on the machine held up every round")
