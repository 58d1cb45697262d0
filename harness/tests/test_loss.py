# SPDX-License-Identifier: BSD-3-Clause
"""The pattern `loss`: whatever is dropped, every call is answered and executed once; what that costs is known."""

from __future__ import annotations

import math

import pytest

from .attempts import only, quantile
from .test_driver_run import Json, Pair, in_long_form, launch, need, point

pytestmark = pytest.mark.paired


def calls(size: int = 64, timeout: int = 1_000_000, touch: str = "write+read", duration: int = 100) -> Json:
    return point("loss", duration, bytes=size, timeout_ns=timeout, touch=touch)


def dropping(ppm: int, **more: int) -> Json:
    settings = {"fault.drop_ppm": str(ppm), **{f"fault.{name}": str(value) for name, value in more.items()}}
    return {"shims": ["fault"], "settings": settings}


def check_accounts(attempt: Json, given: Json) -> None:
    """Every call has an answer and was executed once; what was sent again took the timeout at least."""
    failed = [check for check in attempt["checks"] if not check["ok"]]
    assert attempt["status"] == "done", (attempt["reason"], failed)
    parameters = given["workload"]["parameters"]
    assert attempt["lost"] == attempt["late"] == 0, "nothing is given up"
    made = attempt["operations"]
    assert attempt["executions"]["expected"] == attempt["executions"]["server"] == made > 0
    assert attempt["verified"]["full_before"] > 0 < attempt["verified"]["full_after"]
    assert only(attempt, "latency")["count"] == only(attempt, "goodput")["amount"] == made
    recovered = only(attempt, "recovery")
    again, came = only(attempt, "retransmits")["value"], only(attempt, "repeated")["value"]
    assert recovered["count"] <= again
    assert came <= again
    assert only(attempt, "repeated")["endpoint"] == len(attempt["cpu"]) - 1
    if recovered["count"]:
        assert recovered["min_ns"] >= parameters["timeout_ns"] * 0.99


@pytest.mark.parametrize(
    ("layer", "wait"),
    [
        *in_long_form(("sockets-unix", "poll")),
        ("sockets-unix", "block"),
        *in_long_form(("sockets-udp", "poll")),
        ("sockets-udp", "block"),
        ("native-ucx", "poll"),
    ],
)
def test_calls_survive_what_is_dropped(pair: Pair, layer: str, wait: str) -> None:
    """One message in twenty: of a layer that is reliable below the shim, and of one that is not."""
    need(layer, "shim-fault")
    points = [calls(), calls(4096), calls(64, 200_000, "none")]
    result = pair.run(launch(layer, points, wait=wait, **dropping(50_000)))
    assert (result["status"], result["reason"]) == ("done", None)
    assert "RELIABLE" not in result["adapter"]["caps"]
    for given, attempt in zip(points, result["attempts"], strict=True):
        check_accounts(attempt, given)
    assert sum(only(attempt, "recovery")["count"] for attempt in result["attempts"]) > 0


def test_a_layer_that_loses_nothing_sends_nothing_again(pair: Pair) -> None:
    """At place self, where nobody is ever late: one thread asks and answers."""
    need("null-self")
    [attempt] = pair.run(launch("null-self", [calls(timeout=1_000_000_000)], "self"))["attempts"]
    check_accounts(attempt, calls())
    assert (only(attempt, "retransmits")["value"], only(attempt, "repeated")["value"]) == (0, 0)


@pytest.mark.parametrize("ppm", [1000, 10_000])
def test_losses_cost_what_their_rate_says(pair: Pair, ppm: int) -> None:
    """Request or answer is lost: q = 1 - (1 - p)^2 of all sends. Each costs a timeout, and nothing else does.

    The server sees again those whose answer was lost: half of them. Other work on the machine has a call sent again
    that was only late, and the server sees it again as well: the difference of both stays that of what was lost.
    """
    need("null-self", "shim-fault")
    given = calls(timeout=100_000, duration=500)
    lost = 1 - (1 - ppm / 1e6) ** 2
    [attempt] = pair.run(launch("null-self", [given], "self", **dropping(ppm, seed=3)))["attempts"]
    check_accounts(attempt, given)
    again, came = only(attempt, "retransmits")["value"], only(attempt, "repeated")["value"]
    expected = attempt["operations"] * lost / (1 - lost)
    assert again > expected - 6 * math.sqrt(expected)
    assert again - came == pytest.approx(expected / 2, abs=6 * math.sqrt(expected))
    # of hundreds of thousands of calls the few during which something else ran move no median
    assert quantile(attempt, "latency", 99.9) > 99_000
    assert quantile(attempt, "recovery") == pytest.approx(100_000, rel=0.02)
    assert quantile(attempt, "latency") < 10_000


def test_a_run_of_losses_is_survived(pair: Pair) -> None:
    """Five in a row: a call needs as many timeouts as requests of it were dropped."""
    need("null-self", "shim-fault")
    given = calls(timeout=50_000, duration=300)
    [attempt] = pair.run(launch("null-self", [given], "self", **dropping(2000, run=5)))["attempts"]
    check_accounts(attempt, given)
    again, recovered = only(attempt, "retransmits")["value"], only(attempt, "recovery")["count"]
    # a call that was only late, beside other work on the machine, is sent again once
    assert again > 2.5 * recovered
    assert quantile(attempt, "recovery") > 3 * 50_000


def test_what_lets_nothing_through_fails(pair: Pair) -> None:
    need("null-self", "shim-fault")
    given = {**calls(timeout=100_000), "deadline_ms": 300}
    [attempt] = pair.run(launch("null-self", [given], "self", **dropping(1_000_000)), codes=(0,))["attempts"]
    assert (attempt["status"], attempt["reason_code"]) == ("failed", "DEADLINE")
