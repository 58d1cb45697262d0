# SPDX-License-Identifier: BSD-3-Clause
"""The pattern `phases`: the parts of a message's way add up, and each is as long as a shim makes it."""

from __future__ import annotations

import statistics

import pytest

from .attempts import only, quantile
from .test_driver_run import Json, Pair, in_long_form, launch, need, point

pytestmark = pytest.mark.paired

PARTS = ("post", "transfer", "progress")


def sent(size: int, touch: str = "write+read", duration: int = 60) -> Json:
    return point("phases", duration, bytes=size, touch=touch)


def check_accounts(attempt: Json, given: Json) -> None:
    """Every message has all its parts, which add up to its way."""
    failed = [check for check in attempt["checks"] if not check["ok"]]
    assert attempt["status"] == "done", (attempt["reason"], failed)
    made = attempt["operations"]
    assert made > 0
    assert attempt["bytes"] == made * (given["workload"]["parameters"]["bytes"] + 32)
    assert {only(attempt, name)["count"] for name in ("one_way", *PARTS)} == {made}
    whole = sum(only(attempt, name)["sum_ns"] for name in PARTS)
    assert only(attempt, "one_way")["sum_ns"] == pytest.approx(whole, abs=3 * made), "each part is rounded down"
    assert attempt["verified"]["full_before"] > 0 < attempt["verified"]["full_after"]
    if attempt["lost"] == 0:
        assert attempt["executions"]["server"] == attempt["executions"]["expected"] == made


EVERY = [sent(16), sent(5000), sent(1 << 20), sent(65536, "none")]


@pytest.mark.parametrize(
    ("layer", "wait"),
    [
        ("sockets-unix", "poll"),
        *in_long_form(("sockets-unix", "block")),
        *in_long_form(("peregrine-shm", "poll")),
        ("peregrine-shm", "block"),
        ("native-ucx", "poll"),
    ],
)
def test_the_parts_add_up(pair: Pair, layer: str, wait: str) -> None:
    """Between two processes, whose readings of the clock are compared."""
    need(layer)
    result = pair.run(launch(layer, EVERY, wait=wait))
    assert (result["status"], result["reason"]) == ("done", None)
    for given, attempt in zip(EVERY, result["attempts"], strict=True):
        check_accounts(attempt, given)


def test_one_process_plays_both(pair: Pair) -> None:
    need("null-self")
    result = pair.run(launch("null-self", EVERY, "self"))
    for given, attempt in zip(EVERY, result["attempts"], strict=True):
        check_accounts(attempt, given)


def test_what_may_be_lost_is_counted(pair: Pair) -> None:
    need("sockets-udp")
    points = [sent(16, duration=200), sent(8000, duration=200)]
    result = pair.run(launch("sockets-udp", points))
    for given, attempt in zip(points, result["attempts"], strict=True):
        check_accounts(attempt, given)


@pytest.mark.parametrize(
    ("setting", "part", "known"),
    [("send_ns", "post", 20_000), ("delay_ns", "transfer", 50_000), ("receive_ns", "progress", 30_000)],
)
def test_a_known_part_shows_as_such(pair: Pair, setting: str, part: str, known: int) -> None:
    """The shim works in post, holds a message, or works before it hands it on; the other parts stay what they are.

    Other work on the machine may move the medians of a launch: those of three.
    """
    need("null-self", "shim-delay")
    seen = []
    for _ in range(3):
        launched = launch(
            "null-self",
            [sent(64)],
            "self",
            shims=["delay"],
            settings={f"delay.{setting}": str(known)},
        )
        [attempt] = pair.run(launched)["attempts"]
        check_accounts(attempt, sent(64))
        seen.append({name: quantile(attempt, name) for name in PARTS})
    middle = {name: statistics.median(each[name] for each in seen) for name in PARTS}
    assert middle.pop(part) == pytest.approx(known, rel=0.03), seen
    assert sum(middle.values()) < 2000, seen
