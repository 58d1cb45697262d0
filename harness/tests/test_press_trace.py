# SPDX-License-Identifier: BSD-3-Clause
"""The cluster web server with a trace: whole launches that replay a log, from its lines to the bytes that come back."""

from array import array
from itertools import accumulate
from pathlib import Path

import pytest

from cadge_harness.plan.replay import bounds
from cadge_harness.plan.weblog import read_log
from cadge_results import Trace
from cadge_results.formats.trace import trace_number

from .conftest import WORKLOADS
from .test_driver_run import Json, Pair, in_long_form, need
from .test_press import cluster as cluster  # a fixture
from .test_press import only_attempt, site, value
from .test_press_nginx import FOLDERS, need_nginx
from .weblogs import synthetic_log

pytestmark = pytest.mark.alone


def with_trace(cluster: Pair, made: Trace, **parameters: int | str) -> Json:
    """Return a launch that replays a trace, which lies beside the launch files."""
    (cluster.folder / "trace.bin").write_bytes(made.content)
    usual: dict[str, int | str] = {"trace": trace_number(made.sha256), "cache_kib": 4096, "nodes": 2}
    document = site("sockets-tcp", **{"workload": "trace", **usual, **parameters})  # type: ignore[arg-type]
    document["trace"] = {"file": "trace.bin", "sha256": made.sha256}
    return document


def windows(trace: Trace, count: int) -> set[int]:
    """Return how many bytes so many requests in a row ask for, wherever they begin."""
    asked = [trace.lengths[number] for number in trace.requests]
    turns, rest = divmod(count, len(asked))
    sums = list(accumulate(asked + asked, initial=0))
    return {turns * sum(asked) + sums[begin + rest] - sums[begin] for begin in range(len(asked))}


@pytest.mark.parametrize(
    ("layer", "version"), [("sockets-tcp", "v0"), *in_long_form(("pm-ofi", "v0"), ("pm-ofi", "v5"))]
)
def test_a_log_is_replayed_in_its_order(layer: str, version: str, cluster: Pair) -> None:
    """Two thousand lines with the odd cases of real ones: every byte is right, and they are those of the sequence."""
    need(layer)
    attempt, trace = replayed(cluster, layer=layer, version=version, working_percent=200)
    # the caches are half of the files' bytes: they hold some of them, and not all
    assert 5 < value(attempt, "hit") < 100
    assert value(attempt, "caching_messages") > 0
    # sets of requests of the same number that are no stretch of the log have other sums; the whole log has one
    whole = attempt["operations"] % len(trace.requests) == 0
    assert whole or len(windows(trace, attempt["operations"])) > 1000


def test_nginx_replays_it_too(cluster: Pair, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    need("sockets-tcp")
    need_nginx()
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setenv("PATH", FOLDERS)
    replayed(cluster, server="nginx", working_percent=100)


def replayed(cluster: Pair, layer: str = "sockets-tcp", **parameters: int | str) -> tuple[Json, Trace]:
    """Make a launch that replays a log; every byte of it is that of a stretch of the log. Return attempt and trace."""
    path = cluster.folder / "access.log"
    path.write_bytes(synthetic_log(1).content)
    trace = read_log(path, bounds(WORKLOADS)).trace
    # within a host libfabric has nothing to sleep on, so that it goes over the loopback interface
    place = "between" if layer.endswith("-ofi") else "within"
    document = {**with_trace(cluster, trace, **parameters), "layer": layer, "place": place}
    [attempt] = cluster.run(document)["attempts"]
    assert (attempt["status"], attempt["reason"], attempt["verified"]["mismatches"]) == ("done", None, 0)
    assert attempt["bytes"] in windows(trace, attempt["operations"])
    return attempt, trace


def test_caches_are_as_large_as_the_working_set_asks_for(cluster: Pair) -> None:
    """All files once, again and again: a cache for all of them hits always, one for all but one never."""
    need("sockets-tcp")
    trace = Trace(lengths=array("I", [10_000] * 40), requests=array("I", range(40)))
    one = {"nodes": 1, "connections": 1, "service_ns": 100_000}
    fitting = only_attempt(cluster.run(with_trace(cluster, trace, working_percent=100, **one)))
    assert value(fitting, "hit") == 100
    assert value(fitting, "partial_replay") == 0
    larger = only_attempt(cluster.run(with_trace(cluster, trace, working_percent=103, **one)))
    assert value(larger, "hit") == 0


def test_a_trace_that_is_longer_than_the_attempt_says_so(cluster: Pair) -> None:
    need("sockets-tcp")
    trace = Trace(lengths=array("I", [64, 1 << 20]), requests=array("I", [0] * 1_000_000 + [1]))
    attempt = only_attempt(cluster.run(with_trace(cluster, trace, nodes=1)))
    assert value(attempt, "partial_replay") == 1
    assert attempt["bytes"] == 64 * attempt["operations"]


SMALL = Trace(lengths=array("I", [100, 200]), requests=array("I", [0, 1, 0]))


@pytest.mark.parametrize(
    ("trace", "number", "said"),
    [
        (SMALL, {"trace": 1}, "the point replays trace 000000000001, and the launch has"),
        (Trace(lengths=array("I", [63]), requests=array("I", [0])), {}, "longer or shorter ones, than can be served"),
        (Trace(lengths=array("I", [(1 << 20) + 1]), requests=array("I", [0])), {}, "longer or shorter ones"),
    ],
)
def test_a_trace_that_cannot_be_served(trace: Trace, number: dict[str, int], said: str, cluster: Pair) -> None:
    need("sockets-tcp")
    [attempt] = cluster.run(with_trace(cluster, trace, **number))["attempts"]
    assert attempt["status"] == "failed"
    assert said in attempt["reason"]


def test_processes_begin_with_the_trace_that_the_launch_states(cluster: Pair) -> None:
    """One that was cut on its way, and none at all, are refused before the layer is opened."""
    need("sockets-tcp")
    document = with_trace(cluster, SMALL)
    path = cluster.folder / "trace.bin"
    for content, said in ((SMALL.content[:-4], "its SHA-256 is not the one"), (None, "No such file")):
        path.unlink()
        if content is not None:
            path.write_bytes(content)
        process = cluster.start(1, document)
        error = process.communicate(timeout=20)[1]
        assert (process.returncode, said in error) == (2, True), error
