# SPDX-License-Identifier: BSD-3-Clause
"""The pattern `overlap`: what goes on while the caller computes is known of the delay shim, and of one thread."""

from __future__ import annotations

import statistics

import pytest

from .attempts import only, quantile
from .test_driver_run import Json, Pair, in_long_form, launch, need, point

pytestmark = pytest.mark.alone


def moved(size: int, direction: str = "out", work: int = 100, touch: str = "write+read", duration: int = 60) -> Json:
    return point("overlap", duration, bytes=size, direction=direction, work_percent=work, touch=touch)


def check_accounts(attempt: Json, given: Json) -> None:
    """Every transfer has its samples, and the share follows from their medians."""
    failed = [check for check in attempt["checks"] if not check["ok"]]
    assert attempt["status"] == "done", (attempt["reason"], failed)
    parameters = given["workload"]["parameters"]
    assert set(attempt["quantities"]) == {"busy", "pure", "post", "available"}
    made = attempt["operations"]
    assert only(attempt, "busy")["count"] == only(attempt, "post")["count"] == made > 0
    assert abs(only(attempt, "pure")["count"] - made) <= attempt["lost"]
    assert attempt["bytes"] == made * (parameters["bytes"] + 16)
    assert attempt["verified"]["full_before"] > 0 < attempt["verified"]["full_after"]
    if attempt["lost"] == 0:
        assert attempt["executions"]["server"] == attempt["executions"]["expected"] == 2 * made
    share = 100 * (1 - quantile(attempt, "busy") / quantile(attempt, "pure"))
    assert only(attempt, "available")["value"] == pytest.approx(share, abs=0.5)
    assert only(attempt, "post")["min_ns"] <= only(attempt, "busy")["max_ns"]


EVERY = [
    *[moved(size, direction) for size in (16, 5000, 1 << 20) for direction in ("out", "in")],
    moved(65536, "out", 20, "none"),
    moved(65536, "in", 300),
]


@pytest.mark.parametrize(
    ("layer", "wait"),
    [
        ("sockets-unix", "poll"),
        *in_long_form(("sockets-tcp", "block")),
        ("peregrine-shm", "poll"),
        *in_long_form(("peregrine-shm", "block")),
        ("native-ucx", "poll"),
    ],
)
@pytest.mark.first(1)
def test_every_transfer_is_accounted_for(pair: Pair, layer: str, wait: str) -> None:
    need(layer)
    result = pair.run(launch(layer, EVERY, wait=wait))
    assert (result["status"], result["reason"]) == ("done", None)
    for given, attempt in zip(EVERY, result["attempts"], strict=True):
        check_accounts(attempt, given)


def test_what_may_be_lost_is_counted(pair: Pair) -> None:
    need("sockets-udp")
    points = [moved(16, duration=200), moved(8000, "in", duration=200)]
    result = pair.run(launch("sockets-udp", points))
    for given, attempt in zip(points, result["attempts"], strict=True):
        check_accounts(attempt, given)


def test_one_thread_has_nothing_to_overlap(pair: Pair) -> None:
    """At place self what the caller does not do nobody does. The median of three rounds."""
    need("null-self")
    seen = []
    for _ in range(3):
        result = pair.run(launch("null-self", EVERY, "self"))
        for given, attempt in zip(EVERY, result["attempts"], strict=True):
            check_accounts(attempt, given)
        seen.append([only(attempt, "available")["value"] for attempt in result["attempts"][4:6]])
    assert all(abs(statistics.median(shares)) < 10 for shares in zip(*seen, strict=True)), seen


@pytest.mark.parametrize(("work", "share"), [(100, 50), (50, 50), (25, 25)])
def test_a_known_delay_overlaps_with_known_work(pair: Pair, work: int, share: int) -> None:
    """The shim holds each message for 50 us, and lets it out when it is polled.

    The first of two is held while the caller works, as far as there is work: half of the transfer at most goes on by
    itself. The median of three rounds.
    """
    need("null-self", "shim-delay")
    given = moved(64, work=work)
    settings = {"delay.delay_ns": "50000"}
    seen = []
    for _ in range(3):
        launched = launch("null-self", [given], "self", shims=["delay"], settings=settings)
        [attempt] = pair.run(launched)["attempts"]
        check_accounts(attempt, given)
        assert quantile(attempt, "pure") == pytest.approx(100_000, rel=0.05)
        seen.append(only(attempt, "available")["value"])
    assert statistics.median(seen) == pytest.approx(share, abs=2), seen


def test_work_that_would_hold_up_a_launch_fails_its_attempt_alone(pair: Pair) -> None:
    need("null-self", "shim-delay")
    points = [moved(64, work=1000), moved(64, work=1)]
    settings = {"delay.delay_ns": "60000000"}
    launched = launch("null-self", points, "self", shims=["delay"], settings=settings)
    failed, done = pair.run(launched)["attempts"]
    assert (failed["status"], failed["reason_code"]) == ("failed", "DEADLINE")
    assert "the work during one would take more than a second" in failed["reason"]
    check_accounts(done, points[1])
