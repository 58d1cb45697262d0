# SPDX-License-Identifier: BSD-3-Clause
"""The pattern `loggp`: bursts are accounted for, and a link whose parameters are known shows just these."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from cadge_analysis.models.loggp import Fits, LayerFit, MissingNumber, Parameters

from .attempts import only, quantile
from .test_cli_campaign import run, surroundings  # noqa: F401 - a fixture
from .test_driver_run import Json, Pair, in_long_form, launch, need, point

pytestmark = pytest.mark.alone

SEND_NS, RECEIVE_NS, GAP_NS, BYTE_PS, LATENCY_NS = 1000, 2000, 5000, 100, 50_000
"""More than all messages of a burst take their one receiver: they overlap with the last one's way."""
LINK = {
    "delay.send_ns": str(SEND_NS),
    "delay.receive_ns": str(RECEIVE_NS),
    "delay.gap_ns": str(GAP_NS),
    "delay.byte_ps": str(BYTE_PS),
    "delay.delay_ns": str(LATENCY_NS),
}


def burst(size: int, messages: int = 16, delay: int = 0, touch: str = "write+read", duration: int = 60) -> Json:
    return point("loggp", duration, bytes=size, messages=messages, delay_percent=delay, touch=touch)


def check_accounts(attempt: Json, given: Json) -> None:
    """Every burst has its samples, what takes longer is longer, and all messages were carried out."""
    failed = [check for check in attempt["checks"] if not check["ok"]]
    assert attempt["status"] == "done", (attempt["reason"], failed)
    parameters = given["workload"]["parameters"]
    delayed = parameters["delay_percent"] > 0
    assert set(attempt["quantities"]) == {"prtt", "single"} | ({"undelayed", "receive"} if delayed else set())
    assert only(attempt, "prtt")["count"] == attempt["operations"] > 0
    assert attempt["bytes"] == attempt["operations"] * (parameters["messages"] + 1) * parameters["bytes"]
    assert attempt["verified"]["full_before"] > 0 < attempt["verified"]["full_after"]
    turns = attempt["operations"] + attempt["lost"]
    assert turns - 2 <= only(attempt, "single")["count"] + attempt["lost"] <= turns + attempt["lost"] + 1
    assert attempt["executions"]["server"] <= attempt["executions"]["expected"]
    if attempt["lost"] == 0:
        # at place self nobody is asked to pause
        asked = delayed * len(attempt["cpu"])
        assert attempt["executions"]["server"] == attempt["operations"] * (1 + parameters["messages"] + asked)
    if delayed:
        assert only(attempt, "prtt")["sum_ns"] > only(attempt, "undelayed")["sum_ns"]
        assert only(attempt, "receive")["endpoint"] == len(attempt["cpu"]) - 1, "the end that takes it says how long"
        assert only(attempt, "receive")["count"] <= turns


EVERY = [
    *[burst(size, messages, delay) for size in (16, 5000, 65536) for messages, delay in ((2, 0), (16, 0), (16, 100))],
    burst(64, 64, 300),
    burst(4096, 16, 100, touch="none"),
]


@pytest.mark.parametrize(
    ("layer", "wait"),
    [
        ("sockets-unix", "poll"),
        ("sockets-unix", "block"),
        *in_long_form(("sockets-tcp", "block")),
        ("peregrine-shm", "poll"),
        *in_long_form(("peregrine-shm", "block")),
        ("native-ucx", "poll"),
    ],
)
@pytest.mark.first(1)
def test_every_burst_is_accounted_for(pair: Pair, layer: str, wait: str) -> None:
    """Over messages of the kernel, of a ring, and of a library with protocols of its own; how it waits is judged."""
    need(layer)
    result = pair.run(launch(layer, EVERY, wait=wait))
    assert (result["status"], result["reason"]) == ("done", None)
    for given, attempt in zip(EVERY, result["attempts"], strict=True):
        check_accounts(attempt, given)


def test_one_process_plays_both(pair: Pair) -> None:
    """In memory of the library as well: the null layer reserves."""
    need("null-self")
    result = pair.run(launch("null-self", EVERY, "self"))
    for given, attempt in zip(EVERY, result["attempts"], strict=True):
        check_accounts(attempt, given)


def test_a_burst_that_lost_a_message_is_not_timed(pair: Pair) -> None:
    """Datagrams may be dropped: whole bursts alone are answered."""
    need("sockets-udp")
    points = [burst(16, duration=200), burst(1000, 16, 100, duration=200), burst(8000, 16, duration=200)]
    result = pair.run(launch("sockets-udp", points))
    for given, attempt in zip(points, result["attempts"], strict=True):
        check_accounts(attempt, given)


def sent_and_received_ns(delayed: Json) -> dict[str, float]:
    """What a message costs its sender and its receiver, from a burst of 16 with pauses."""
    sent = quantile(delayed, "undelayed") - quantile(delayed, "single")
    return {"o_s": sent / 15, "o_r": quantile(delayed, "receive")}


def own_work_ns(pair: Pair) -> dict[str, float]:
    """Return o_s and o_r of the same link where the shim adds nothing to them.

    Where one thread is sender and receiver its own work for a message is in both: a quarter of a microsecond to send
    and half a one to receive, where reading the clock takes 20 ns.
    """
    settings = LINK | {"delay.send_ns": "0", "delay.receive_ns": "0"}
    result = pair.run(launch("null-self", [burst(16, 16, 100, "none")], "self", shims=["delay"], settings=settings))
    return sent_and_received_ns(result["attempts"][0])


@pytest.mark.still
def test_a_known_link_shows_its_parameters(pair: Pair) -> None:
    """o_s, o_r, L, g and G of the shim, each found by the arithmetic of the method. Of each the nearest counts.

    What others take from the caches comes and goes with the rounds; a wrong sum stays.
    """
    need("null-self", "shim-delay")
    messages, sizes = 16, (16, 16384)
    points = [burst(size, messages, delay, "none") for size in sizes for delay in (0, 100)]
    known = {"d": 1.0, "g": GAP_NS, "G": BYTE_PS, "o_s": SEND_NS, "o_r": RECEIVE_NS, "L": LATENCY_NS}
    slack = {"d": 0.02, "g": 50, "G": 5, "o_s": 150, "o_r": 200, "L": 1500}
    nearest: dict[str, float] = {}
    for _ in range(10):
        result = pair.run(launch("null-self", points, "self", shims=["delay"], settings=LINK))
        for given, attempt in zip(points, result["attempts"], strict=True):
            check_accounts(attempt, given)
        bare, delayed, large, _ = result["attempts"]
        delay = (quantile(delayed, "prtt") - quantile(delayed, "undelayed")) / (messages - 1)
        gaps = [(quantile(one, "prtt") - quantile(one, "single")) / (messages - 1) for one in (bare, large)]
        found = {
            "g": gaps[0],
            "G": 1000 * (gaps[1] - gaps[0]) / (sizes[1] - sizes[0]),
            **(costs := sent_and_received_ns(delayed)),
        }
        found["L"] = quantile(bare, "single") / 2 - costs["o_s"] - costs["o_r"]
        found["d"] = delay / quantile(delayed, "single")
        found |= {name: costs[name] - own for name, own in own_work_ns(pair).items()}
        for name, value in found.items():
            nearest[name] = min(value, nearest.get(name, value), key=lambda one: abs(one - known[name]))
        if all(nearest[name] == pytest.approx(known[name], abs=slack[name]) for name in known):
            return
    pytest.fail(f"a link of {known} was found to be one of {nearest}")


def test_delays_that_would_hold_up_a_launch_fail_their_attempt_alone(pair: Pair) -> None:
    """2 ms there and back, ten times that between 64 messages: more than the second that nobody looks around."""
    need("null-self", "shim-delay")
    points = [burst(64, 64, 1000), burst(64, 16)]
    settings = {"delay.delay_ns": "1000000"}
    launched = launch("null-self", points, "self", shims=["delay"], settings=settings)
    failed, done = pair.run(launched)["attempts"]
    assert (failed["status"], failed["reason_code"]) == ("failed", "DEADLINE")
    assert "a burst with its delays would take more than a second" in failed["reason"]
    check_accounts(done, points[1])


SWEEP = """\
schema: cadge.sweep/2
title: a link whose parameters are known
layers:
  - layer: null-self
    shims: [delay]
    settings: {settings}
places: self
patterns:
  - {{pattern: loggp, bytes: [16B, 256B, 4KiB, 16KiB, 64KiB], messages: [4, 16], touch: none}}
  - {{pattern: loggp, bytes: [16B, 256B, 4KiB, 16KiB, 64KiB], messages: 16, delay_percent: 100, touch: none}}
floors: false
launches: 9
duration: {{default: 30ms}}
"""


def parameters_of(found: LayerFit) -> dict[str, float]:
    """Return LogGP's parameters of a layer with one protocol; nothing where one of them was refused."""
    if not isinstance(found.model, Parameters) or len(found.model.pieces) != 1:
        return {}
    [piece], latency = found.model.pieces, found.model.latency_ns
    if (
        isinstance(latency, MissingNumber)
        or isinstance(piece.send, MissingNumber)
        or isinstance(piece.receive, MissingNumber)
    ):
        return {}
    return {
        "L": latency.value,
        "g": piece.gap.start_ns.value,
        "G": piece.gap.per_byte_ns.value * 1000,
        "o_s": piece.send.at(16),
        "o_r": piece.receive.at(16),
        "held out": found.held_out[0].median_error,
    }


@pytest.mark.alone
@pytest.mark.long
def test_a_campaign_gives_the_parameters_of_the_link(
    surroundings: dict[str, str],  # noqa: F811 - the fixture
    tmp_path: Path,
    pair: Pair,
) -> None:
    """From the sweep to the export: the fit finds the link, and predicts bursts that it did not see."""
    need("null-self", "shim-delay")
    sweep, out = tmp_path / "link.yml", tmp_path / "fits.json"
    sweep.write_text(SWEEP.format(settings=json.dumps(LINK)))
    known = {"L": LATENCY_NS, "g": GAP_NS, "G": BYTE_PS, "o_s": SEND_NS, "o_r": RECEIVE_NS, "held out": 0}
    slack = {"L": 1000, "g": 100, "G": 5, "o_s": 150, "o_r": 200, "held out": 0.05}
    _, data = run(surroundings, "run", "--sweep", str(sweep), "--testbed", "local")
    run(surroundings, "export", str(data["campaign_id"]), "--format", "loggp", "-o", str(out))
    [found] = Fits.parse(out.read_text(), source="export").fits
    here = parameters_of(found)
    assert here, found.model
    here |= {name: here[name] - own for name, own in own_work_ns(pair).items()}
    assert all(abs(here[name] - known[name]) <= slack[name] for name in known), here
