# SPDX-License-Identifier: BSD-3-Clause
"""The cluster web server: whole launches of it, over real layers, with every byte of every answer compared."""

from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from hdrh.histogram import HdrHistogram  # type: ignore[import-untyped]

from cadge_results.plugins.pattern import PatternFile

from .test_driver_run import BUILD, Json, Pair, endpoint, in_long_form, launch, need

pytestmark = pytest.mark.alone

FILE = Path(__file__).resolve().parents[1] / "patterns/press/press.pattern.yml"
PATTERN = PatternFile.from_object(yaml.safe_load(FILE.read_text()), source=FILE.name)
DEFAULTS = {name: one.default for name, one in PATTERN.parameters.items()}


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Pair]:
    """A process for the client and one for each node, gone afterwards whatever happened."""
    made = Pair(tmp_path)
    yield made
    made.end()


def site(layer: str, nodes: int = 3, duration: int = 300, **parameters: int | str) -> Json:
    """Return a launch with a small site: caches of 256 KiB, disks that take half a millisecond."""
    small = {"cache_kib": 256, "service_ns": 500_000, "connections": 4, "nodes": nodes}
    point = {
        "point_id": "0123456789abcdef",
        "workload": {"pattern": "press", "parameters": {**DEFAULTS, **small, **parameters}},
        "duration_ms": duration,
        "deadline_ms": duration + 20000,
    }
    ends = [endpoint(0, "client", list(range(1, nodes + 1)), pin=False)]
    for number in range(1, nodes + 1):
        others = [other for other in range(1, nodes + 1) if other != number]
        ends.append(endpoint(number, "node", [0, *others], pin=False))
    return launch(layer, [point], wait="block", endpoints=ends)


def only_attempt(result: Json) -> Json:
    assert (result["status"], result["reason"]) == ("done", None)
    [attempt] = result["attempts"]
    failed = [check for check in attempt["checks"] if not check["ok"]]
    assert attempt["status"] == "done", (attempt["reason"], failed)
    assert attempt["verified"]["mismatches"] == 0
    # Thousands where each end has a core; dozens where two that poll took turns on one while the closed loop was timed.
    assert attempt["executions"]["expected"] == attempt["executions"]["server"] >= attempt["operations"] > 10
    return dict(attempt)


def test_a_given_rate_is_offered_to_every_layer_and_version(cluster: Pair) -> None:
    """No closed loop decides: 300 requests a second for a second, and the same number whatever carries them."""
    found = {}
    for layer, version in (("sockets-unix", "v0"), ("pm-ucx", "v0"), ("pm-ucx", "v5")):
        need(layer)
        made = site(layer, duration=1000, working_percent=100, offered_per_s=300, version=version)
        attempt = only_attempt(cluster.run(made))
        assert "closed_loop" not in attempt["quantities"]
        [offered] = attempt["quantities"]["offered"]
        assert offered["elapsed_ns"] == 1_000_000_000
        assert offered["amount"] == attempt["operations"]
        found[layer, version] = offered["amount"]
    assert max(found.values()) - min(found.values()) <= 1  # as each process's clock was calibrated
    assert found["sockets-unix", "v0"] == pytest.approx(300, abs=6 * 300**0.5)


def test_http_goes_over_the_management_network_where_the_layer_has_the_data_network_alone(cluster: Pair) -> None:
    """Nodes listen for clients at that address and at no other: with a wrong one nobody could be asked."""
    need("sockets-tcp")
    made = site("sockets-tcp", working_percent=100)
    for end in made["endpoints"]:
        end["management_address"] = "127.0.0.2"
    only_attempt(cluster.run(made))
    made["endpoints"][1]["management_address"] = "192.0.2.1"  # nobody's here (RFC 5737)
    processes = [cluster.start(number, made) for number in range(len(made["endpoints"]))]
    for process in processes:
        process.wait(timeout=60)
    assert "cannot listen for clients at 192.0.2.1" in str(cluster.result())


def value(attempt: Json, name: str) -> float:
    [found] = attempt["quantities"][name]
    return float(found["value"])


@pytest.mark.parametrize(
    "layer",
    ["sockets-tcp", "sockets-unix", *in_long_form("peregrine-udp")],
)
def test_a_cluster_over(cluster: Pair, layer: str) -> None:
    """Half of the files fit into the caches: some requests are forwarded, some wait for a disk, caches change."""
    need(layer)
    attempt = only_attempt(cluster.run(site(layer, working_percent=200)))
    assert 5 < value(attempt, "hit") < 100
    assert 10 < value(attempt, "forwarded") < 90
    forwards, files = value(attempt, "forward_messages"), value(attempt, "file_messages")
    assert forwards == pytest.approx(value(attempt, "forwarded") / 100, abs=0.02)
    # a file that is longer than a message goes in pieces
    assert forwards * 0.95 <= files <= 3 * forwards
    assert value(attempt, "caching_messages") > 0
    # copied at both ends, and nothing else has content
    assert value(attempt, "copied_bytes") == pytest.approx(2 * (value(attempt, "message_bytes")), rel=0.1)


def test_what_fits_is_read_once_and_forwarded_by_the_rule(cluster: Pair) -> None:
    """All files fit: then nothing waits for a disk, and with n nodes (n - 1)/n of the requests are forwarded.

    Somewhat fewer: what two nodes were asked for at the same time, before either could tell, both have read.
    """
    need("sockets-tcp")
    fitting = site("sockets-tcp", working_percent=50, cache_kib=2048, connections=1, duration=800, load_percent=30)
    attempt = only_attempt(cluster.run(fitting))
    assert value(attempt, "hit") > 99
    assert 100 * 2 / 3 - 15 < value(attempt, "forwarded") < 100 * 2 / 3 + 3
    assert value(attempt, "caching_messages") < 0.05


WRITTEN = {"v1": (), "v2": ("forward", "caching"), "v3": ("forward", "caching", "file")}
"""What goes by remote write from that version on, beside credits and load."""


@pytest.mark.parametrize(
    ("layer", "version"),
    [
        ("pm-ofi", "v2"),
        ("pm-ofi", "v5"),
        *in_long_form(
            *((layer, version) for layer in ("rdma-ofi", "vmmc-ofi") for version in ("v1", "v2", "v3", "v4", "v5"))
        ),
        *in_long_form(("pm-ofi", "v1"), ("pm-ofi", "v3"), ("pm-ofi", "v4")),
    ],
)
@pytest.mark.first(1)
def test_each_version_has_its_counts(cluster: Pair, layer: str, version: str) -> None:
    """What goes as a message and what is written remotely, and how often a byte of a forwarded file is copied."""
    need(layer)
    wanted = site(layer, working_percent=200, version=version)
    # over the loopback interface: within a host these layers have nothing to sleep on
    attempt = only_attempt(cluster.run({**wanted, "place": "between"}))
    sent = {name: value(attempt, f"{name}_messages") for name in ("forward", "file", "caching", "load", "credit")}
    notified = value(attempt, "notify_messages")
    posts, puts = value(attempt, "posts"), value(attempt, "puts")
    written = WRITTEN[min(version, "v3")]
    boards = sent["load"] + sent["credit"]
    posted = sum(sent[name] for name in ("forward", "file", "caching") if name not in written)
    # a layer that notifies by itself needs no message for it; answers to the client are among the posts
    answers = 2 * wanted["points"][0]["workload"]["parameters"]["nodes"] / attempt["operations"]
    assert posts == pytest.approx(posted + (0 if layer.startswith("vmmc") else notified), abs=0.01 + answers)
    # a file in its pieces, as many as it has messages before v3, and then what tells of it
    pieces = value(attempt, "forwarded") / 100 if "file" in written else 0
    least = sum(sent[name] for name in written) + boards
    assert least + 0.9 * pieces - 0.01 <= puts <= least + 2 * pieces + 0.01
    assert (notified > 0) == bool(written)
    copies = {"v1": 2, "v2": 2, "v3": 2, "v4": 1, "v5": 0}[version]
    assert value(attempt, "copied_bytes") == pytest.approx(copies * value(attempt, "message_bytes"), rel=0.1)


@pytest.mark.long
@pytest.mark.parametrize("version", ["v0", "v2", "v5"])
def test_versions_under_sanitizers(cluster: Pair, version: str) -> None:
    need("pm-ofi")
    cluster.driver, cluster.modules = BUILD / "asan/bin/cadge-driver", BUILD / "asan/layers"
    wanted = site("pm-ofi", working_percent=200, version=version)
    only_attempt(cluster.run({**wanted, "place": "between"}))


@pytest.mark.parametrize(
    ("layer", "nodes", "version"),
    [("sockets-unix", 1, "v0"), *in_long_form(("pm-ofi", 2, "v0"), ("pm-ofi", 2, "v5"), ("rdma-ucx", 2, "v3"))],
)
def test_nodes_that_poll(cluster: Pair, layer: str, nodes: int, version: str) -> None:
    """Who polls looks into its memory by itself: nobody notifies."""
    need(layer)
    attempt = only_attempt(cluster.run({**site(layer, nodes=nodes, version=version), "wait": "poll"}))
    assert value(attempt, "notify_messages") == value(attempt, "wakeups") == 0
    assert (value(attempt, "puts") > 0) == (version != "v0")


def test_a_layer_without_remote_writes_has_messages_alone(cluster: Pair) -> None:
    need("sockets-tcp")
    [attempt] = cluster.run(site("sockets-tcp", version="v1"))["attempts"]
    assert (attempt["status"], attempt["reason_code"]) == ("refused", "NO_CAP")
    assert "needs PUT" in attempt["reason"]


def test_one_node_says_nothing(cluster: Pair) -> None:
    need("sockets-tcp")
    attempt = only_attempt(cluster.run(site("sockets-tcp", nodes=1, working_percent=50)))
    assert value(attempt, "forwarded") == value(attempt, "message_bytes") == 0


def test_a_disk_that_takes_long_is_seen(cluster: Pair) -> None:
    """Where nearly everything waits for a disk, a request takes as long as that does at least."""
    need("sockets-tcp")
    slow = site("sockets-tcp", working_percent=1600, service_ns=5_000_000, alpha_percent=1)
    attempt = only_attempt(cluster.run(slow))
    assert value(attempt, "hit") < 30
    [service] = attempt["quantities"]["service"]
    assert HdrHistogram.decode(service["histogram"]).get_value_at_percentile(50) > 5_000_000


def test_a_layer_that_loses_messages_is_refused(cluster: Pair) -> None:
    need("sockets-udp")
    [attempt] = cluster.run(site("sockets-udp"))["attempts"]
    assert (attempt["status"], attempt["reason_code"]) == ("refused", "NO_CAP")
