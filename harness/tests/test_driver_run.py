# SPDX-License-Identifier: BSD-3-Clause
"""The driver as a program: two processes over 127.0.0.1, one process, and everything that can go wrong."""

import json
import os
import secrets
import select
import signal
import socket
import statistics
import subprocess
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from hdrh.histogram import HdrHistogram  # type: ignore[import-untyped]

pytestmark = pytest.mark.alone

BUILD = Path(os.environ.get("CADGE_BUILD", Path(__file__).parents[2] / "build"))
DRIVER = BUILD / "bin" / "cadge-driver"
LAYERS = BUILD / "layers"
SCHEMA = json.loads((Path(__file__).parents[2] / "results/schema/cadge.result-2.schema.json").read_text())

Json = dict[str, Any]


def in_long_form(*cases: object) -> list[Any]:
    """Return cases that `make long` runs and `make test` leaves out: others show the same within its eight minutes."""
    return [pytest.param(*(case if isinstance(case, tuple) else (case,)), marks=pytest.mark.long) for case in cases]


def wait_until_under_way(processes: Sequence[subprocess.Popen[str]], cpu_s: float = 0.3) -> None:
    """Wait until a launch measures: each of its processes, taken together, has had so much processor time.

    To start one takes a tenth of it, on a busy machine too, where a span of time says nothing.
    """
    ticks = os.sysconf("SC_CLK_TCK") * cpu_s * len(processes)
    wait_until(lambda: sum(_ticks(process.pid) for process in processes) >= ticks, "nobody works")


def wait_until(holds: Callable[[], bool], otherwise: str) -> None:
    """Wait for what will hold soon, however busy the machine is; fail after half a minute."""
    end = time.monotonic() + 30
    while not holds():
        assert time.monotonic() < end, otherwise
        time.sleep(0.005)


def stop(process: subprocess.Popen[str]) -> None:
    """Stop a process, all of its threads, and return once none of them runs."""
    process.send_signal(signal.SIGSTOP)
    threads = Path(f"/proc/{process.pid}/task")
    wait_until(
        lambda: all((one / "stat").read_text().rpartition(") ")[2][0] == "T" for one in threads.iterdir()),
        "it does not stop",
    )


def _sleeps(pid: int) -> int:
    """Return how often the threads of a process went to sleep."""
    found = (path.read_text() for path in Path(f"/proc/{pid}/task").glob("*/status"))
    return sum(int(text.partition("\nvoluntary_ctxt_switches:")[2].split()[0]) for text in found)


def _ticks(pid: int) -> int:
    """Return the processor time of a process, user and system, in ticks of the clock."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].split()
    return int(fields[11]) + int(fields[12])


def waited_ns(attempt: Json) -> int:
    """Return how long all threads of an attempt, taken together, were ready and had no processor.

    That is the most by which other work on the machine, or too few processors, made anything longer that they did one
    after another.
    """
    return sum(use["run_wait_ns"] or 0 for use in attempt["cpu"])


def need(*layers: str) -> None:
    if not DRIVER.exists():
        pytest.skip(f"{DRIVER} is not built")
    for layer in layers:
        if not (LAYERS / f"{layer}.so").exists():
            pytest.skip(f"layer {layer} is not built in {LAYERS}")


def point(pattern: str, duration: int = 30, **parameters: int | str) -> Json:
    return {
        "attempt_id": "",
        "point_id": "0123456789abcdef",
        "workload": {"pattern": pattern, "parameters": parameters},
        "duration_ms": duration,
        "deadline_ms": duration + 5000,
    }


def pingpong(size: int, touch: str = "none", pairs: int = 1, **more: int) -> Json:
    return point("pingpong", bytes=size, touch=touch, pairs=pairs, **more)


def rpc(
    request: int = 8,
    reply: int = 8,
    depth: int = 1,
    touch: str = "none",
    payload: str = "usual",
    taken: str = "cont",
    **more: int,
) -> Json:
    given = {"request_bytes": request, "reply_bytes": reply, "depth": depth}
    return point("rpc", **given, touch=touch, payload=payload, reply=taken, **more)


def stream(
    size: int,
    depth: int = 1,
    touch: str = "none",
    buffers: str = "rotated",
    ways: str = "one",
    pairs: int = 1,
    **more: int,
) -> Json:
    given = {"touch": touch, "buffers": buffers, "ways": ways, "pairs": pairs, "spread": 0, **more}
    return point("stream", bytes=size, depth=depth, **given)


def onesided(size: int, operation: str = "put", depth: int = 1, duration: int = 50, **more: int | str) -> Json:
    given = {"target": "active", "notify": "none", "spread": 0, "registration": "library", **more}
    return point("onesided", duration, bytes=size, depth=depth, operation=operation, **given)


def endpoint(number: int, role: str, peers: list[int], pin: bool = True) -> Json:
    cpus = sorted(os.sched_getaffinity(0))
    return {
        "role": role,
        "host": f"h{number}",
        "cpus": [cpus[number % len(cpus)]] if pin else [],
        "device": "lo",
        "address": "127.0.0.1",
        "raw_device": "",
        "peers": peers,
    }


def launch(layer: str, points: list[Json], place: str = "within", wait: str = "poll", **more: object) -> Json:
    ends = [endpoint(0, "client", [1]), endpoint(1, "server", [0])]
    return {
        "schema": "cadge.launch/2",
        "launch_id": "t",
        "campaign_id": "c",
        "kind": "layer",
        "layer": layer,
        "shims": [],
        "launcher": "direct",
        "place": place,
        "wait": wait,
        "settings": {},
        "seed": 4711,
        "deadline_ms": 60000,
        "ports": [0, 0],
        "endpoints": [endpoint(0, "client", [0])] if place == "self" else ends,
        "patterns": {p["workload"]["pattern"]: {} for p in points},
        "points": [{**p, "attempt_id": str(i)} for i, p in enumerate(points)],
        **more,
    }


class Pair:
    """The processes of a launch: two as a rule, as many as its endpoints in general."""

    def __init__(self, folder: Path, driver: Path = DRIVER) -> None:
        self.folder = folder
        self.driver = driver
        self.modules = LAYERS
        self.out = folder / "result.json"
        self.token = folder / "token"
        self.write_token(self.token, secrets.token_hex(16))
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        self.processes: list[subprocess.Popen[str]] = []

    @staticmethod
    def write_token(path: Path, text: str, mode: int = 0o600) -> None:
        path.write_text(text)
        path.chmod(mode)

    def start(self, endpoint: int, document: Json, token: Path | None = None) -> subprocess.Popen[str]:
        path = self.folder / f"launch{endpoint}.json"
        path.write_text(json.dumps(document))
        command = [
            str(self.driver),
            "run",
            "--launch",
            str(path),
            "--endpoint",
            str(endpoint),
            "--modules",
            str(self.modules),
        ]
        if document["place"] != "self":
            command += ["--oob", f"127.0.0.1:{self.port}", "--token-file", str(token or self.token)]
        if endpoint == 0:
            command += ["--out", str(self.out)]
        process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        self.processes.append(process)
        return process

    def start_both(self, document: Json) -> tuple[subprocess.Popen[str], subprocess.Popen[str]]:
        server = self.start(1, document)
        return self.start(0, document), server

    def run(self, document: Json, codes: tuple[int, ...] = (0, 0)) -> Json:
        started = [self.start(number, document) for number in range(len(document["endpoints"]))]
        errors = [process.communicate(timeout=90)[1] for process in started]
        wanted = codes if len(started) <= len(codes) else (codes[0],) * len(started)
        assert tuple(process.returncode for process in started) == wanted[: len(started)], errors
        return self.result()

    def result(self) -> Json:
        document: Json = json.loads(self.out.read_text())
        assert not self.out.with_name("result.json.part").exists()
        jsonschema.validate(document, SCHEMA)
        return document

    def end(self) -> None:
        for process in self.processes:
            if process.poll() is None:
                process.kill()
            process.communicate(timeout=10)


def latency(attempt: Json) -> Json:
    [found] = attempt["quantities"]["latency"]
    assert found["endpoint"] == 0
    return dict(found)


def quantile(attempt: Json, percent: float) -> int:
    return int(HdrHistogram.decode(latency(attempt)["histogram"]).get_value_at_percentile(percent))


def check_sound(result: Json, reliable: bool = True) -> None:
    """Every attempt is done, and its numbers agree with each other."""
    assert (result["schema"], result["status"], result["reason"]) == ("cadge.result/2", "done", None)
    for attempt in result["attempts"]:
        failed = [check for check in attempt["checks"] if not check["ok"]]
        assert attempt["status"] == "done", (attempt["reason"], failed)
        assert attempt["operations"] > 0
        assert attempt["elapsed_ns"] > 0
        assert attempt["verified"]["mismatches"] == 0
        assert attempt["verified"]["full_before"] > 0
        assert attempt["verified"]["full_after"] > 0
        if reliable:
            assert attempt["executions"]["expected"] == attempt["executions"]["server"] == attempt["operations"]
            assert attempt["lost"] == attempt["late"] == 0
        pattern, parameters = attempt["workload"]["pattern"], attempt["workload"]["parameters"]
        if pattern == "stream":
            assert attempt["bytes"] == attempt["operations"] * parameters["bytes"]
            rate = {"endpoint": 0, "amount": attempt["bytes"], "elapsed_ns": attempt["elapsed_ns"]}
            assert attempt["quantities"] == {"throughput": [rate]}
            continue
        samples = latency(attempt)
        histogram = HdrHistogram.decode(samples["histogram"])
        assert histogram.get_total_count() == samples["count"] == attempt["operations"]
        assert len(samples["first_ns"]) == min(1000, samples["count"])
        assert samples["min_ns"] <= quantile(attempt, 50) <= samples["max_ns"] * 1.001
        assert int(samples["sum_sq_ns2"]) * samples["count"] >= samples["sum_ns"] ** 2
        assert samples["sum_ns"] <= attempt["elapsed_ns"] * parameters.get("depth", 1) * 1.001


PATTERNS = [
    *[pingpong(size) for size in (0, 1, 8, 16, 1000, 65536)],
    *[rpc(*sizes) for sizes in ((8, 8, 1), (0, 64, 1), (5000, 3, 8), (64, 0, 16))],
    *[stream(size, depth) for size, depth in ((1, 4), (24, 1), (64, 16), (65536, 4))],
    *[made(65536, touch="write+read") for made in (pingpong, rpc, stream)],
    stream(65536, 4, buffers="same"),
]


@pytest.mark.parametrize("layer", ["sockets-tcp", "sockets-unix"])
@pytest.mark.first(1)
def test_all_message_patterns(pair: Pair, layer: str) -> None:
    need(layer)
    result = pair.run(launch(layer, PATTERNS))
    check_sound(result)
    assert len(result["attempts"]) == len(PATTERNS)
    assert [len(result[name]) for name in ("path", "clock", "pinning", "endpoints")] == [2, 2, 2, 2]
    assert {check["name"] for check in result["checks"]} >= {"path", "clock", "pinning", "wait_mode"}
    assert all(len(attempt["cpu"]) == 2 for attempt in result["attempts"])
    assert result["adapter"]["file"].endswith(f"{layer}.so")
    assert result["adapter"]["build_id"]
    assert result["endpoints"][0]["pid"] != result["endpoints"][1]["pid"]


def test_blocking_sleeps(pair: Pair) -> None:
    need("sockets-tcp")
    result = pair.run(launch("sockets-tcp", [rpc(duration=100)], wait="block"))
    check_sound(result)
    attempt = result["attempts"][0]
    assert [side["voluntary_switches"] * 2 >= attempt["operations"] for side in attempt["cpu"]] == [True, True]


def test_unreliable_layer_counts_losses(pair: Pair) -> None:
    need("sockets-udp")
    points = [
        pingpong(64),
        rpc(8, 8, 4),
        stream(1000, 8),
        pingpong(70000),
    ]
    result = pair.run(launch("sockets-udp", points))
    *small, large = result["attempts"]
    check_sound({**result, "attempts": small}, reliable=False)
    assert (large["status"], large["reason_code"]) == ("refused", "MSG_TOO_LARGE")
    assert "wanted a message of 70000 bytes" in large["reason"]


def test_one_process(pair: Pair) -> None:
    need("null-self")
    result = pair.run(launch("null-self", PATTERNS, place="self"))
    check_sound(result)
    assert [len(result[name]) for name in ("path", "clock", "pinning", "endpoints")] == [1, 1, 1, 1]
    assert "RESERVE" in result["adapter"]["caps"]


@pytest.mark.parametrize("wait", ["poll", "block"])
@pytest.mark.first(1)
def test_messages_built_in_the_librarys_memory(pair: Pair, wait: str) -> None:
    """Between two processes, over the suite's own adapter: it sends what was reserved, and says later that it has."""
    pair.modules = BUILD / "tests"
    if not (pair.modules / "bad-nothing.so").exists():
        pytest.skip("the adapters of the conformance suite's own tests are not built")
    result = pair.run(launch("bad-nothing", PATTERNS, wait=wait))
    check_sound(result)
    assert "RESERVE" in result["adapter"]["caps"]


@pytest.mark.parametrize("size", [0, 1, 8, 15])
@pytest.mark.first(2)
def test_a_message_shorter_than_a_head_is_built_there_too(pair: Pair, size: int) -> None:
    """Where it is the largest of its launch: the layer is asked for the room that a head needs."""
    need("null-self")
    check_sound(pair.run(launch("null-self", [pingpong(size, "write+read")], place="self")))


REPLIES = ((0, "none"), (8, "write+read"), (4096, "none"), (100000, "write+read"))


@pytest.mark.parametrize(("layer", "own_calls"), [("peregrine-shm", True), ("am-ofi", True), ("sockets-unix", False)])
@pytest.mark.first(1)
def test_each_way_in_which_a_reply_can_come(pair: Pair, layer: str, own_calls: bool) -> None:
    """Placed where the caller said only by calls of the layer's own; looked at and copied everywhere."""
    need(layer)
    ways = ("usual", "solicited", "unsolicited", "copied")
    points = [rpc(16, reply, depth=4, touch=touch, payload=way) for way in ways for reply, touch in REPLIES]
    attempts = iter(pair.run(launch(layer, points))["attempts"])
    for way in ways:
        for reply, _ in REPLIES:
            attempt = next(attempts)
            if way == "solicited" and not own_calls:
                assert (attempt["status"], attempt["reason_code"]) == ("refused", "NO_CAP")
                assert "needs RPC" in attempt["reason"]
                continue
            assert attempt["status"] == "done", (way, reply, attempt["reason"])
            assert attempt["verified"]["full_after"] > 0


@pytest.mark.parametrize("layer", ["rdma-ucx", "vmmc-ucx", "pm-ucx"])
@pytest.mark.first(1)
def test_puts_over_more_than_the_caches_hold(pair: Pair, layer: str) -> None:
    need(layer)
    points = [onesided(1 << 20, depth=4, spread=spread) for spread in (0, 1 << 27)]
    document = launch(layer, [*points, onesided(8, "compare_swap")])
    same, spread, swapped = pair.run(document)["attempts"]
    assert same["status"] == "done"
    assert spread["status"] == "done" or "caches" in spread["reason"], spread["reason"]
    assert swapped["status"] == ("done" if layer == "rdma-ucx" else "refused")


@pytest.mark.parametrize("layer", ["vmmc-ucx", "vmmc-ofi", "rdma-ucx"])
def test_puts_that_tell_their_target(pair: Pair, layer: str) -> None:
    need(layer)
    (told,) = pair.run(launch(layer, [onesided(64, depth=4, notify="each")]))["attempts"]
    assert told["status"] == ("refused" if layer == "rdma-ucx" else "done"), told


@pytest.mark.parametrize(
    ("layer", "build"),
    [
        *((layer, "release") for layer in ("rdma-ucx", "rdma-ofi", "vmmc-ucx", "pm-ucx", "pm-ofi")),
        ("rdma-ofi", "asan"),
        ("pm-ucx", "asan"),
    ],
)
@pytest.mark.first(2)
def test_memory_that_the_layer_knows_and_memory_that_it_does_not(
    pair: Pair, layer: str, build: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    need(layer)
    if build == "asan":
        pair.driver, pair.modules = BUILD / "asan/bin/cadge-driver", BUILD / "asan/layers"
        monkeypatch.setenv("ASAN_OPTIONS", "detect_leaks=0")  # of the libraries: the conformance suite looks for ours
        if not pair.driver.exists() or not (pair.modules / f"{layer}.so").exists():
            pytest.skip("there is no sanitized build")
    operations = ("put", "get") if layer.startswith("rdma") else ("put",)
    points = [
        onesided(size, operation, duration=20, registration=registration)
        for operation in operations
        for size in (1, 8, 4096, 1 << 20)
        for registration in ("warm", "cold", "library")
    ]
    *done, deep = pair.run(launch(layer, [*points, onesided(8, depth=4, registration="cold")]))["attempts"]
    assert [attempt["status"] for attempt in done] == ["done"] * len(points), done
    assert all(attempt["verified"]["mismatches"] == 0 for attempt in done)
    if layer.startswith("pm"):  # its own cache: each cold buffer is a miss, no warm one is
        misses = [attempt["counters"][0].get("pin_send_misses", 0) for attempt in done]
        cold = [attempt["workload"]["parameters"]["registration"] == "cold" for attempt in done]
        assert misses == [attempt["operations"] * one for attempt, one in zip(done, cold, strict=True)]
    assert (deep["status"], deep["reason_code"]) == ("refused", "DEPTH_TOO_DEEP")
    assert "registration cold, which takes one" in deep["reason"]


def test_delay_shim_moves_the_median(pair: Pair) -> None:
    need("null-self", "shim-delay")
    medians: dict[str, list[int]] = {"0": [], "20000": []}
    for _ in range(5):
        for delay, found in medians.items():
            settings = {"delay.delay_ns": delay}
            document = launch("null-self", [rpc()], "self", shims=["delay"], settings=settings)
            found.append(quantile(pair.run(document)["attempts"][0], 50))
    moved = statistics.median(medians["20000"]) - statistics.median(medians["0"])
    assert moved == pytest.approx(40000, rel=0.02), medians


def cpu_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def test_idle_blocking_server_sleeps(pair: Pair) -> None:
    """While nothing comes it wakes now and then to look for words of the other end, and goes to sleep again at once."""
    need("sockets-tcp")
    client, server = pair.start_both(launch("sockets-tcp", [rpc(duration=30000)], wait="block"))
    wait_until_under_way((client, server), cpu_s=0.1)
    stop(client)
    slept, before = _sleeps(server.pid), cpu_seconds(server.pid)
    wait_until(lambda: _sleeps(server.pid) >= slept + 300, "it does not sleep")
    assert cpu_seconds(server.pid) - before < 0.05
    client.send_signal(signal.SIGCONT)
    going_on = _sleeps(client.pid)
    wait_until(lambda: _sleeps(client.pid) > going_on + 100, "the client does not go on")
    client.terminate()
    assert (client.wait(timeout=30), server.wait(timeout=30)) == (4, 4)
    assert pair.result()["attempts"][0]["reason_code"] == "STOPPED"


@pytest.mark.paired
@pytest.mark.parametrize("wait", ["poll", "block"])
@pytest.mark.parametrize("victim", [0, 1])
@pytest.mark.first(1)
def test_killed_peer_is_noticed(pair: Pair, victim: int, wait: str) -> None:
    need("sockets-tcp")
    points = [rpc(duration=10), rpc(duration=20000), stream(8, 4)]
    processes = pair.start_both(launch("sockets-tcp", points, wait=wait))
    wait_until_under_way(processes)
    processes[victim].kill()
    killed = time.monotonic()
    assert processes[1 - victim].wait(timeout=10) == 4
    assert time.monotonic() - killed < 2.0
    if victim == 1:
        result = pair.result()
        assert [a["status"] for a in result["attempts"]] == ["done", "failed", "failed"]
        assert {a["reason_code"] for a in result["attempts"][1:]} == {"PEER_LOST"}


@pytest.mark.paired
def test_stopped_peer_meets_the_deadline(pair: Pair) -> None:
    need("sockets-tcp")
    points = [{**rpc(duration=3000), "deadline_ms": 4000}, rpc()]
    client, server = pair.start_both(launch("sockets-tcp", points))
    wait_until_under_way((client, server), cpu_s=0.1)
    stop(server)
    assert client.wait(timeout=15) == 4
    server.send_signal(signal.SIGCONT)
    assert server.wait(timeout=10) == 4
    assert [a["reason_code"] for a in pair.result()["attempts"]] == ["DEADLINE", "DEADLINE"]


@pytest.mark.paired
@pytest.mark.parametrize("victim", [0, 1])
def test_sigterm_ends_both_with_a_reason(pair: Pair, victim: int) -> None:
    need("sockets-tcp")
    processes = pair.start_both(launch("sockets-tcp", [rpc(duration=20000)]))
    wait_until_under_way(processes)
    processes[victim].terminate()
    assert [process.wait(timeout=5) for process in processes] == [4, 4]
    assert pair.result()["attempts"][0]["reason_code"] == "STOPPED"


def test_driver_dies_with_its_parent(pair: Pair) -> None:
    need("null-self")
    path = pair.folder / "launch.json"
    path.write_text(json.dumps(launch("null-self", [rpc(duration=30000)], place="self")))
    script = '"$@" & echo $!; wait'
    command = [
        str(a) for a in (DRIVER, "run", "--launch", path, "--endpoint", 0, "--modules", LAYERS, "--out", pair.out)
    ]
    shell = subprocess.Popen(["sh", "-c", script, "sh", *command], stdout=subprocess.PIPE, text=True)
    assert shell.stdout is not None
    driver = int(shell.stdout.readline())
    wait_until(lambda: _ticks(driver) > 0.1 * os.sysconf("SC_CLK_TCK"), "it does not work")
    ends = os.pidfd_open(driver)
    shell.kill()
    shell.wait(timeout=5)
    shell.stdout.close()
    ended, _, _ = select.select([ends], [], [], 10)
    os.close(ends)
    assert ended


@pytest.mark.paired
def test_wrong_token(pair: Pair) -> None:
    need("sockets-tcp")
    other = pair.folder / "other"
    pair.write_token(other, "x" * 32)
    document = launch("sockets-tcp", [rpc()], deadline_ms=2000)
    server, client = pair.start(1, document), pair.start(0, document, token=other)
    assert client.wait(timeout=10) == 4
    assert server.wait(timeout=10) == 4
    result = pair.result()
    assert (result["status"], result["reason_code"], result["attempts"]) == ("failed", "TOKEN", [])
    assert "x" * 32 not in json.dumps(result)


def test_token_that_others_can_read(pair: Pair) -> None:
    need("sockets-tcp")
    pair.token.chmod(0o644)
    client = pair.start(0, launch("sockets-tcp", [rpc()]))
    assert "mode 0600" in client.communicate(timeout=10)[1]
    assert client.returncode == 2


def test_taken_port(pair: Pair) -> None:
    need("sockets-tcp")
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", pair.port))
        taken.listen()
        coordinator = pair.start(0, launch("sockets-tcp", [rpc()]))
        assert "Address already in use" in coordinator.communicate(timeout=10)[1]
        assert coordinator.returncode == 4
        assert pair.result()["reason_code"] == "PORT"


@pytest.mark.paired
def test_nobody_there(pair: Pair) -> None:
    need("sockets-tcp")
    client = pair.start(0, launch("sockets-tcp", [rpc()], deadline_ms=1500))
    assert client.wait(timeout=5) == 4
    assert pair.result()["reason_code"] == "DEADLINE"


@pytest.mark.paired
def test_a_layer_that_hangs_is_shown_where(pair: Pair) -> None:
    """At the hard deadline a driver says the stacks of its threads, with the adapter's own functions."""
    layer = "bad-hangs-in-poll"
    pair.modules = BUILD / "tests"
    if not (pair.modules / f"{layer}.so").exists():
        pytest.skip(f"{layer} is not built")
    processes = pair.start_both(launch(layer, [rpc()], deadline_ms=1500))
    for process in processes:
        _, errors = process.communicate(timeout=20)
        assert process.returncode == 4
        said = [line.split("+")[0].strip() for line in errors.splitlines() if f"({layer}.so)" in line]
        assert said[:2] == ["spin_for_ever", "base_poll"], errors
        assert "_start+" in errors


def test_launch_files_that_differ(pair: Pair) -> None:
    need("sockets-tcp")
    one, other = (launch("sockets-tcp", [rpc(size, 8)]) for size in (8, 9))
    server, client = pair.start(1, one), pair.start(0, other)
    assert (client.wait(timeout=10), server.wait(timeout=10)) == (4, 4)
    assert pair.result()["reason_code"] == "PROTOCOL"


@pytest.mark.parametrize(
    ("layer", "place", "wait", "status", "reason_code"),
    [
        ("sockets-none", "within", "poll", "refused", "BUILD_ABSENT"),
        ("null-self", "within", "poll", "refused", "NO_CAP"),
        ("sockets-tcp", "self", "poll", "refused", "NO_CAP"),
    ],
)
def test_launches_that_cannot_be(pair: Pair, layer: str, place: str, wait: str, status: str, reason_code: str) -> None:
    need("sockets-tcp", "null-self")
    result = pair.run(launch(layer, [rpc()], place, wait), codes=(3, 3))
    assert (result["status"], result["reason_code"], result["attempts"]) == (status, reason_code, [])
    assert result["reason"]


def test_unknown_setting_and_device(pair: Pair) -> None:
    need("sockets-tcp")
    result = pair.run(launch("sockets-tcp", [rpc()], settings={"colour": "red"}), codes=(3, 3))
    assert (result["status"], result["reason_code"]) == ("failed", "ARGUMENT")
    assert "colour" in result["reason"]


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"layer": "../x"}, "layer must start"),
        ({"kind": "floor"}, "is not a form of floors"),
        ({"kind": "floors"}, "kind must be"),
        ({"extra": 1}, "extra is not a key"),
        ({"system_calls": "yes"}, "system_calls must be true or false"),
        ({"points": []}, "points must hold"),
        ({"schema": "cadge.launch/1"}, "which cadge 0.1 reads"),
        ({"shims": ["a", "b"]}, "shims may hold one"),
    ],
)
def test_bad_launch_files(pair: Pair, change: Json, says: str) -> None:
    need()
    client = pair.start(0, {**launch("sockets-tcp", [rpc()]), **change})
    assert says in client.communicate(timeout=10)[1]
    assert client.returncode == 2
    assert not pair.out.exists()


def test_out_that_cannot_be_written(pair: Pair) -> None:
    need("null-self")
    pair.out = pair.folder / "nowhere" / "result.json"
    client = pair.start(0, launch("null-self", [rpc()], place="self"))
    assert "--out" in client.communicate(timeout=10)[1]
    assert client.returncode == 2


def test_a_launch_that_counts_operations_ends_after_so_many(pair: Pair) -> None:
    """Whatever the time: both a warm-up that is steady at once and a measurement that is over in no time."""
    need("sockets-unix")
    points = [pingpong(8), rpc(8, 64, depth=4), stream(5000), stream(64)]
    document = launch("sockets-unix", [{**one, "duration_ms": 1} for one in points], operations=300)
    attempts = pair.run(document)["attempts"]
    # of small messages that stream, the clock is read at every 32nd
    assert [one["operations"] for one in attempts] == [300, 300, 300, 320]
    assert [one["warmup"]["operations"] for one in attempts] == [300, 300, 300, 300]
