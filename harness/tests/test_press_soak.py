# SPDX-License-Identifier: BSD-3-Clause
"""The cluster web server whose nodes are killed under load and come back: what became of each request."""

import json
import subprocess
from pathlib import Path

import pytest

from .test_driver_run import BUILD, Json, in_long_form

pytestmark = pytest.mark.paired

QUEUE_AND_HELPERS = 1024 + 8
BUILDS = {"release": BUILD, "asan": BUILD / "asan"}


def soak(build: Path, *options: str, status: int = 0) -> Json:
    """Run the program, which ends well where all held; return its account."""
    program = build / "tests" / "press-soak"
    if not program.exists():
        pytest.skip(f"{program} is not built")
    command = [str(program), "--modules", str(build / "layers"), *options]
    done = subprocess.run(command, capture_output=True, text=True, timeout=280, check=False)
    assert done.returncode == status, (done.stdout[:1500], done.stderr[-3000:])
    return dict(json.loads(done.stdout))


def check_account(account: Json, requests: int, kills: int) -> None:
    """Each request ended in one of four ways; the program says so, and so do its numbers."""
    assert (account["status"], account["reason"]) == ("held", "")
    assert account["requests"] == requests
    assert account["wrong_files"] == account["resets_by_others"] == account["without_an_end"] == account["crashes"] == 0
    assert set(account["http_errors"]) <= {"503"}
    ended = account["answers"] + sum(account["http_errors"].values()) + account["resets_by_a_kill"]
    assert ended == requests
    # and one more, for the full queue; each of them cut off somebody who waited
    assert account["kills"] == account["restarts"] == kills + 1
    assert account["resets_by_a_kill"] >= kills
    for kind, count in account["bad_clients"].items():
        assert count["otherwise"] == 0, kind
        assert count["came"] == count["as_they_should"] + count["cut_by_a_kill"], kind
    queue = account["full_queue"]
    assert queue["answers"] + queue["503"] == queue["asked"] > queue["answers"] >= QUEUE_AND_HELPERS * 0.9
    # the first node lives on through all of it, and most of what it is asked for crosses the layer
    first = [settled["nodes"][0] for settled in account["settled"]]
    assert {node["life"] for node in first} == {1}
    assert first[-1]["forwarded"] > first[-1]["requests"] / 20
    assert first[-1]["file_message_bytes"] > 0


@pytest.mark.parametrize(
    ("build", "layer", "version", "requests", "kills"),
    [
        ("release", "sockets-tcp", 0, 10000, 3),
        *in_long_form(
            ("asan", "sockets-tcp", 0, 100000, 30),
            ("asan", "sockets-uring", 0, 30000, 10),
            ("asan", "peregrine-udp", 0, 30000, 10),
            ("asan", "peregrine-shm", 0, 30000, 10),
            ("release", "sockets-unix", 0, 100000, 30),
            ("release", "am-ucx", 0, 100000, 30),
            *(("release", "pm-ucx", version, 50000, 15) for version in range(1, 6)),
        ),
    ],
)
def test_nodes_that_die_cost_their_cache_and_no_file(
    build: str, layer: str, version: int, requests: int, kills: int
) -> None:
    if not (BUILDS[build] / "layers" / f"{layer}.so").exists():
        pytest.skip(f"layer {layer} is not built")
    options = ["--layer", layer, "--nodes", "3", "--requests", str(requests), "--kills", str(kills)]
    options += ["--version", str(version), *(["--keeps"] if layer.endswith("-ucx") else [])]
    account = soak(BUILDS[build], *options)
    check_account(account, requests, kills)
    came = [kind for kind, count in account["bad_clients"].items() if count["came"]]
    assert len(came) >= 13
    statuses = {status for count in account["bad_clients"].values() for status in count["statuses"]}
    assert statuses >= {"200", "400", "404", "405", "414", "416", "431", "505"}


@pytest.mark.parametrize(
    ("layer", "why"),
    [
        ("mpi-p2p", "none can come back"),
        ("sockets-udp", "it loses messages"),
        ("native-zmq", "no descriptor that an event loop could hold"),
        ("null-self", ""),
    ],
)
def test_what_cannot_take_a_node_back_is_refused(layer: str, why: str) -> None:
    if not (BUILD / "layers" / f"{layer}.so").exists():
        pytest.skip(f"layer {layer} is not built")
    account = soak(BUILD, "--layer", layer, "--requests", "1000", status=77)
    assert account["status"] == "refused"
    assert account["reason"]
    assert why in account["reason"]
    assert account["requests"] == 0
