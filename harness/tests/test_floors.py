# SPDX-License-Identifier: BSD-3-Clause
"""Floors measure what they say, verify it, refuse what they cannot, and leave nothing behind."""

from __future__ import annotations

import json
import os
import re
import secrets
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from cadge_results.formats import histogram

from .test_driver_run import wait_until_under_way

pytestmark = pytest.mark.paired

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("CADGE_BUILD", ROOT / "build"))
PROGRAMS = {"release": BUILD / "bin" / "cadge-driver", "asan": BUILD / "asan" / "bin" / "cadge-driver"}
FLOORS = ROOT / "harness" / "floors"
PREFIX = f"cadge-e-{os.getpid()}"
AS_ROOT = os.geteuid() == 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Ends:
    """Where the two endpoints run and what their links are called."""

    prefixes: tuple[tuple[str, ...], tuple[str, ...]] = ((), ())
    addresses: tuple[str, str] = ("127.0.0.1", "127.0.0.1")
    device: str = "lo"
    raw_device: str = ""


@contextmanager
def stalled(process: subprocess.Popen[str]) -> Iterator[None]:
    """Stop a process for 5 ms in each 15 ms."""
    over = threading.Event()

    def stall() -> None:
        while not over.wait(0.010):
            process.send_signal(signal.SIGSTOP)
            time.sleep(0.005)
            process.send_signal(signal.SIGCONT)

    thread = threading.Thread(target=stall)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


@dataclass(slots=True, kw_only=True)
class Launch:
    """A launch file and the two processes that run it."""

    folder: Path
    floor: str
    points: list[dict[str, Any]]
    place: str = "within"
    wait: str = "poll"
    ends: Ends = field(default_factory=Ends)
    deadline_ms: int = 60_000
    program: Path = PROGRAMS["release"]
    settings: dict[str, str] = field(default_factory=dict)

    def write(self) -> None:
        """Write launch and token."""
        port = free_port()
        document = {
            "schema": "cadge.launch/2",
            "launch_id": "floors",
            "campaign_id": "test",
            "kind": "floor",
            "layer": self.floor,
            "shims": [],
            "launcher": "direct",
            "place": self.place,
            "wait": self.wait,
            "settings": self.settings,
            "seed": 20261121,
            "deadline_ms": self.deadline_ms,
            "ports": [port + 1, port + 40],
            "endpoints": [
                {
                    "role": ("client", "server")[index],
                    "host": f"h{index}",
                    "cpus": self.cpus(index),
                    "device": self.ends.device,
                    "address": self.ends.addresses[index],
                    "raw_device": self.ends.raw_device,
                    "peers": [1 - index],
                }
                for index in (0, 1)
            ],
            "patterns": {"exchange": {}, "flow": {}},
            "points": self.points,
        }
        (self.folder / "launch.json").write_text(json.dumps(document))
        token = self.folder / "token"
        token.touch(mode=0o600)
        token.write_text(secrets.token_hex(16))
        self.oob = f"{self.ends.addresses[0]}:{port}"

    oob: str = ""

    def cpus(self, endpoint: int) -> list[int]:
        """Return the processor of an endpoint that sleeps: two that wake each other on one hardly ever do."""
        able = sorted(os.sched_getaffinity(0))
        return [able[endpoint % len(able)]] if self.wait == "block" and len(able) > 1 else []

    def start(self, endpoint: int) -> subprocess.Popen[str]:
        """Start one endpoint."""
        files = f"--launch {self.folder}/launch.json --token-file {self.folder}/token"
        arguments = f"run {files} --endpoint {endpoint} --oob {self.oob}".split()
        out = ["--out", str(self.folder / "out.json")] if endpoint == 0 else []
        command = [*self.ends.prefixes[endpoint], str(self.program), *arguments, *out]
        return subprocess.Popen(command, stderr=subprocess.PIPE, text=True)

    def run(self, *, timeout_s: float = 120, stalls: bool = False) -> dict[str, Any]:
        """Run both endpoints to their end and return the result; `stalls`: the server stops now and then."""
        self.write()
        both = [self.start(1), self.start(0)]
        with stalled(both[0]) if stalls else nullcontext():
            errors = [process.communicate(timeout=timeout_s)[1] for process in both]
        self.statuses = [process.returncode for process in both][::-1]
        assert 70 not in self.statuses, errors
        assert not [text for text in errors if "Sanitizer" in text], errors
        return self.result()

    statuses: list[int] = field(default_factory=list)

    def result(self) -> dict[str, Any]:
        """Return what endpoint 0 stored."""
        document: dict[str, Any] = json.loads((self.folder / "out.json").read_text())
        return document


def free_port() -> int:
    """Return a port that was free a moment ago, low enough for a range above it."""
    while True:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port: int = probe.getsockname()[1]
        if port < 65_000:
            return port


def point(
    form: str, size: int, *, touch: str = "none", duration_ms: int = 50, deadline_ms: int = 15_000
) -> dict[str, Any]:
    """Return one point of a launch file."""
    parameters = {"bytes": size, "touch": touch, **({"depth": 16} if form == "flow" else {})}
    return {
        "attempt_id": f"{form}-{size}",
        "point_id": f"{size:016x}",
        "workload": {"pattern": form, "parameters": parameters},
        "duration_ms": duration_ms,
        "deadline_ms": deadline_ms,
    }


def size_of(each: dict[str, Any]) -> int:
    """Return the size of a point's messages, or an attempt's."""
    size: int = each["workload"]["parameters"]["bytes"]
    return size


def available(name: str = "release") -> Path:
    """Return the program of a build, or skip."""
    if not PROGRAMS[name].exists():
        pytest.skip(f"{PROGRAMS[name]} is not built")
    return PROGRAMS[name]


def check_attempt(attempt: dict[str, Any], *, lossy: bool = False) -> None:
    """Check that an attempt agrees with itself and that nothing was amiss but, perhaps, a busy machine."""
    broken = {check["name"]: check["detail"] for check in attempt["checks"] if not check["ok"]}
    broken.pop("wait_mode", None)  # says how busy this machine is; the test of wait modes looks at it
    assert not broken, attempt
    assert attempt["status"] in {"done", "unsound"}
    assert attempt["operations"] > 0
    assert attempt["verified"]["mismatches"] == 0
    assert attempt["verified"]["full_before"] > 0
    assert attempt["verified"]["full_after"] > 0
    assert attempt["verified"]["in_loop"] >= attempt["operations"]
    assert attempt["executions"]["expected"] - attempt["lost"] <= attempt["executions"]["server"]
    assert lossy or attempt["lost"] == 0
    assert len(attempt["cpu"]) == 2
    if attempt["workload"]["pattern"] == "flow":
        assert attempt["bytes"] == attempt["operations"] * size_of(attempt)
        rate = {"endpoint": 0, "amount": attempt["bytes"], "elapsed_ns": attempt["elapsed_ns"]}
        assert attempt["quantities"] == {"throughput": [rate]}
        return
    [samples] = attempt["quantities"]["latency"]
    decoded = histogram.decode(samples["histogram"])
    assert decoded.total == samples["count"] == attempt["operations"]
    assert samples["min_ns"] <= decoded.percentile(50) <= samples["max_ns"] * 1.001
    assert samples["sum_ns"] <= attempt["elapsed_ns"] <= samples["sum_ns"] + attempt["lost"] * 10**9 + 10**9


def messages(*sizes: int) -> list[dict[str, Any]]:
    """Return exchanges of these sizes."""
    return [point("exchange", size) for size in sizes]


def streams(*sizes: int) -> list[dict[str, Any]]:
    """Return flows of messages of these sizes."""
    return [point("flow", size) for size in sizes]


def touched(form: str, *sizes: int) -> list[dict[str, Any]]:
    """Return points whose messages are written anew and read whole."""
    return [point(form, size, touch="write+read") for size in sizes]


MEMORY_SIZES = (0, 1, 8, 15, 16, 56, 57, 4095, 4096, 65_536, 1 << 20)
CASES = [
    ("floor-cacheline", "poll", messages(0, 1, 7, 8, 16, 56) + touched("exchange", 8, 56)),
    (
        "floor-copyflag",
        "poll",
        messages(*MEMORY_SIZES)
        + streams(1, 8, 100, 4096, 1 << 20)
        + touched("exchange", 8, 17, 4096, 1 << 20)
        + touched("flow", 8, 100, 1 << 20),
    ),
    ("floor-futex", "block", messages(0, 8, 4096, 1 << 20) + streams(64, 65_536) + touched("exchange", 4096)),
    (
        "floor-tcp",
        "poll",
        messages(1, 8, 4096, 1 << 20) + streams(1, 17, 65_536, 4 << 20) + touched("flow", 17, 65_536),
    ),
    ("floor-tcp", "block", messages(1, 8, 4096, 1 << 20) + streams(1, 17, 65_536, 4 << 20)),
    ("floor-udp", "poll", messages(0, 1, 8, 1400, 65_507) + touched("exchange", 8, 65_507)),
    ("floor-udp", "block", messages(0, 1, 8, 1400, 65_507)),
]


@pytest.mark.parametrize("build", ["asan", pytest.param("release", marks=pytest.mark.long)])  # smoke sweeps run it
@pytest.mark.parametrize(("floor", "wait", "points"), CASES, ids=[f"{floor}-{wait}" for floor, wait, _ in CASES])
@pytest.mark.first(3)
def test_within_one_host(tmp_path: Path, floor: str, wait: str, points: list[dict[str, Any]], build: str) -> None:
    launch = Launch(folder=tmp_path, floor=floor, wait=wait, points=points, program=available(build))
    result = launch.run()
    assert launch.statuses == [0, 0]
    assert (result["status"], result["kind"], result["adapter"]["name"]) == ("done", "floor", floor)
    assert len(result["path"]) == len(result["clock"]) == len(result["pinning"]) == len(result["endpoints"]) == 2
    assert result["path"][0]["medium"] == ("loopback" if floor in {"floor-tcp", "floor-udp"} else "memory")
    assert [size_of(attempt) for attempt in result["attempts"]] == [size_of(each) for each in points]
    for attempt in result["attempts"]:
        check_attempt(attempt, lossy=floor == "floor-udp")
    if floor in {"floor-cacheline", "floor-copyflag"}:
        lines = "one line" if floor == "floor-cacheline" else "two lines"
        assert f"flag on {lines}, spin with pause, pair 0 of 64" in result["path"][0]["used"]


@pytest.mark.parametrize(
    ("floor", "wait", "settings", "used", "note"),
    [
        (
            "floor-cacheline",
            "poll",
            {"lines": "two", "spin": "bare", "pair": "63"},
            "two lines, spin without pause, pair 63",
            "",
        ),
        (
            "floor-copyflag",
            "poll",
            {"lines": "one", "spin": "bare"},
            "one line, spin without pause, pair 0",
            "32 to 64",
        ),
        ("floor-copyflag", "poll", {"copies": "two"}, "two lines, spin with pause", "from 32 KiB on in chunks"),
        ("floor-copyflag", "poll", {"copies": "one", "made": "apart"}, "two lines", "made apart"),
        ("floor-copyflag", "poll", {"slots": "one"}, "private pages advised to be huge", "32 to 64"),
        ("floor-copyflag", "poll", {"pages": "small"}, "shared pages of 4 KiB, private pages of 4 KiB", "32 to 64"),
        ("floor-futex", "block", {"copies": "two"}, "futex", "two copies"),
        ("floor-futex", "block", {"pages": "small"}, "private pages of 4 KiB", ""),
    ],
)
@pytest.mark.first(2)
def test_variants_are_chosen_by_name(
    tmp_path: Path, floor: str, wait: str, settings: dict[str, str], used: str, note: str
) -> None:
    points = messages(8) + touched("exchange", 56)
    if floor != "floor-cacheline":
        points += messages(65_536, 262_144) + touched("exchange", 4_096, 32_768, 65_536, 262_144, 2 << 20)
    result = Launch(
        folder=tmp_path, floor=floor, wait=wait, points=points, program=available(), settings=settings
    ).run()
    assert (result["status"], result["reason"]) == ("done", None)
    for path in result["path"]:
        assert used in path["used"]
        assert note in path["note"]
        assert note or not path["note"]
    for attempt in result["attempts"]:
        check_attempt(attempt)


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"lines": "three"}, "must be one of one two, is 'three'"),
        ({"pair": "64"}, "must be a number from 0 to 63, is '64'"),
        ({"pair": "+1"}, "must be a number from 0 to 63, is '+1'"),
        ({"colour": "red"}, "has no setting 'colour'"),
    ],
)
def test_settings_that_a_floor_has_not(tmp_path: Path, settings: dict[str, str], says: str) -> None:
    launch = Launch(
        folder=tmp_path, floor="floor-cacheline", points=messages(8), program=available(), settings=settings
    )
    result = launch.run()
    assert (result["status"], result["reason_code"], launch.statuses) == ("failed", "ARGUMENT", [3, 3])
    assert says in result["reason"]


def test_the_result_has_the_schema_of_the_store(tmp_path: Path) -> None:
    jsonschema = pytest.importorskip("jsonschema")
    schema = json.loads((ROOT / "results/schema/cadge.result-2.schema.json").read_text())
    points = [point("exchange", 8), point("flow", 4096), point("exchange", 0)]
    result = Launch(folder=tmp_path, floor="floor-tcp", points=points, program=available()).run()
    jsonschema.validate(result, schema)
    assert [attempt["status"] for attempt in result["attempts"]][2] == "refused"


def test_blocking_floors_sleep(tmp_path: Path) -> None:
    points = [point("exchange", 8, duration_ms=150)]
    for floor in ("floor-futex", "floor-tcp", "floor-udp"):
        result = Launch(folder=tmp_path, floor=floor, wait="block", points=points, program=available()).run()
        attempt = result["attempts"][0]
        for side in attempt["cpu"]:
            assert side["voluntary_switches"] >= attempt["operations"] // 2, (floor, attempt)


@pytest.mark.parametrize(
    ("floor", "place", "wait", "points", "code"),
    [
        ("floor-cacheline", "within", "poll", [point("exchange", 57)], "MSG_TOO_LARGE"),
        ("floor-cacheline", "within", "poll", [point("flow", 8)], "NO_CAP"),
        ("floor-tcp", "within", "poll", [point("exchange", 0)], "NO_CAP"),
        ("floor-tcp", "within", "poll", [point("flow", 0)], "NO_CAP"),
        ("floor-udp", "within", "poll", [point("exchange", 65_508)], "MSG_TOO_LARGE"),
        ("floor-udp", "within", "poll", [point("flow", 64)], "NO_CAP"),
    ],
)
def test_points_that_a_floor_cannot_make(
    tmp_path: Path, floor: str, place: str, wait: str, points: list[dict[str, Any]], code: str
) -> None:
    launch = Launch(folder=tmp_path, floor=floor, place=place, wait=wait, points=points, program=available())
    attempt = launch.run()["attempts"][0]
    assert launch.statuses == [0, 0]
    assert (attempt["status"], attempt["reason_code"]) == ("refused", code)
    assert attempt["reason"]


@pytest.mark.parametrize(
    ("floor", "place", "wait", "code"),
    [
        ("floor-copyflag", "between", "poll", "NO_CAP"),
        ("floor-futex", "within", "poll", "NO_WAIT"),
        ("floor-cacheline", "within", "block", "NO_WAIT"),
        ("floor-xdp", "within", "poll", "NO_CAP"),
        ("floor-xdp", "between", "poll", "NODE_LACKS"),
        ("floor-packet", "within", "poll", "NO_CAP"),
    ],
)
def test_launches_that_a_floor_cannot_make(tmp_path: Path, floor: str, place: str, wait: str, code: str) -> None:
    points = [point("exchange", 8)]
    launch = Launch(folder=tmp_path, floor=floor, place=place, wait=wait, points=points, program=available())
    result = launch.run()
    assert launch.statuses[0] == 3
    assert (result["status"], result["reason_code"], result["attempts"]) == ("refused", code, [])


def test_a_dead_endpoint_ends_the_launch(tmp_path: Path) -> None:
    points = [point("exchange", 8, duration_ms=10_000)]
    launch = Launch(folder=tmp_path, floor="floor-copyflag", points=points, program=available())
    launch.write()
    server, client = launch.start(1), launch.start(0)
    wait_until_under_way([server, client])
    server.send_signal(signal.SIGKILL)
    began = time.monotonic()
    error = client.communicate(timeout=30)[1]
    server.communicate()
    assert time.monotonic() - began < 8
    assert client.returncode == 4, error
    result = launch.result()
    [attempt] = result["attempts"]
    assert (result["status"], attempt["status"], attempt["reason_code"]) == ("done", "failed", "PEER_LOST")


@pytest.mark.parametrize(
    ("floor", "wait", "late", "settings"),
    [
        ("floor-tcp", "poll", ("flow", 1 << 20), {}),
        ("floor-tcp", "poll", ("exchange", 4 << 20), {}),
        ("floor-tcp", "block", ("flow", 1 << 20), {}),
        ("floor-udp", "poll", ("exchange", 65_507), {}),
        ("floor-copyflag", "poll", ("exchange", 4 << 20), {"copies": "two"}),
        ("floor-futex", "block", ("flow", 1 << 20), {}),
    ],
)
@pytest.mark.first(2)
def test_an_attempt_that_runs_out_of_time_ends_alone(
    tmp_path: Path, floor: str, wait: str, late: tuple[str, int], settings: dict[str, str]
) -> None:
    """What it left under way reaches no later attempt, and neither endpoint ends for it."""
    # Its duration fits into its deadline; with what comes before it does not. Who never waits for long does not look.
    lates = [{**point(*late, duration_ms=199, deadline_ms=200), "attempt_id": f"late-{number}"} for number in (0, 1)]
    lossy = floor == "floor-udp"
    others = [] if lossy else streams(64, 65_536)
    points = [lates[0], *messages(8, 4096), *others, lates[1], *messages(1)]
    launch = Launch(folder=tmp_path, floor=floor, wait=wait, points=points, program=available(), settings=settings)
    result = launch.run(stalls=True)
    assert launch.statuses == [0, 0]
    for wanted, attempt in zip(points, result["attempts"], strict=True):
        if wanted in lates and lossy and attempt["status"] != "failed":
            # A wait for a datagram ends with its loss, at times before anybody looks at the deadline; and of so few
            # operations it takes no more than four sleeps to count as one that does not poll.
            assert attempt["status"] in ("done", "unsound")
        elif wanted in lates:
            assert (attempt["status"], attempt["reason"]) == ("failed", "the deadline of this step passed")
        else:
            check_attempt(attempt, lossy=lossy)


def test_wrong_arguments(tmp_path: Path) -> None:
    program = available()
    for arguments in (
        [],
        ["run"],
        ["measure"],
        ["run", "--launch", "x", "--endpoint", "2", "--oob", "a", "--token-file", "t"],
    ):
        done = subprocess.run([program, *arguments], capture_output=True, text=True, timeout=20)
        assert done.returncode == 2, arguments
    launch = Launch(folder=tmp_path, floor="floor-none", points=[point("exchange", 8)], program=program)
    result = launch.run()
    assert (result["status"], result["reason_code"], launch.statuses) == ("refused", "BUILD_ABSENT", [3, 3])
    assert "there is no floor 'floor-none'" in result["reason"]


def ip(*arguments: str) -> None:
    """Run ip(8)."""
    subprocess.run(["ip", *arguments], check=True, timeout=20)


@pytest.fixture
def hosts() -> Iterator[Ends]:
    """Two network namespaces with a data link and a raw link between them."""
    if not AS_ROOT:
        pytest.skip("namespaces need root")
    names = [f"{PREFIX}-a", f"{PREFIX}-b"]
    made: list[str] = []
    try:
        for name in names:
            if subprocess.run(["ip", "netns", "add", name], capture_output=True, timeout=20).returncode:
                pytest.skip("namespaces cannot be made here")
            made.append(name)
            ip("-n", name, "link", "set", "lo", "up")
        for device in ("raw0", "data0"):
            ip("link", "add", device, "netns", names[0], "type", "veth", "peer", "name", device, "netns", names[1])
        for index, name in enumerate(names):
            ip("-n", name, "addr", "add", f"198.19.78.{index + 1}/24", "dev", "data0")
            ip("-n", name, "link", "set", "raw0", "up")
            ip("-n", name, "link", "set", "data0", "up")
        yield Ends(
            prefixes=(("ip", "netns", "exec", names[0]), ("ip", "netns", "exec", names[1])),
            addresses=("198.19.78.1", "198.19.78.2"),
            device="data0",
            raw_device="raw0",
        )
    finally:
        for name in made:
            ip("netns", "del", name)


def program_attached(ends: Ends) -> bool:
    """Return whether the raw link of either end has an XDP program."""
    shown = [
        subprocess.run(
            [*prefix, "ip", "link", "show", "raw0"], capture_output=True, text=True, check=True, timeout=20
        ).stdout
        for prefix in ends.prefixes
    ]
    return any("xdp" in text for text in shown)


# As much as a packet that no link has to cut, and a byte more; and the same of a message of one packet.
PACKETS = (
    messages(0, 8, 1460, 1461, 32_768, 32_769, 4 << 20, (4 << 20) + 1)
    + streams(17, 4 << 20)
    + touched("exchange", 32_769)
    + touched("flow", 65_536)
)


@pytest.mark.parametrize("build", [pytest.param("release", marks=pytest.mark.long), "asan"])
def test_between_two_hosts(tmp_path: Path, hosts: Ends, build: str) -> None:
    program = available(build)
    for floor, wait, points, settings in (
        ("floor-tcp", "poll", [point("exchange", 8), point("flow", 65_536)], {}),
        ("floor-tcp", "block", [point("exchange", 8)], {}),
        ("floor-udp", "poll", [point("exchange", 0), point("exchange", 1400)], {}),
        ("floor-udp", "block", [point("exchange", 8)], {}),
        (
            "floor-xdp",
            "poll",
            [point("exchange", size) for size in (0, 8, 60, 1458, 1498, 1499, 4096, 65_536, 4 << 20)],
            {},
        ),
        ("floor-xdp", "poll", [point("exchange", 8)], {"attach": "native"}),
        ("floor-xdp", "block", [point("exchange", size) for size in (8, 4096, 65_536, (4 << 20) + 1, 8)], {}),
        ("floor-packet", "poll", PACKETS, {}),
        ("floor-packet", "poll", messages(65_536) + streams(65_536), {"packet": "60k", "pages": "small"}),
        ("floor-packet", "block", messages(8, 65_536) + streams(17, 65_536), {}),
    ):
        launch = Launch(
            folder=tmp_path,
            floor=floor,
            place="between",
            wait=wait,
            points=points,
            ends=hosts,
            program=program,
            settings=settings,
        )
        result = launch.run()
        if floor in {"floor-xdp", "floor-packet"} and result["reason_code"] in {"PERMISSION", "NODE_LACKS"}:
            assert result["reason"]
            continue
        assert (result["status"], result["reason"]) == ("done", None)
        assert result["path"][0]["medium"] == "network"
        assert result["path"][0]["device"] == ("raw0" if floor == "floor-xdp" else "data0")
        for attempt in result["attempts"]:
            if size_of(attempt) > 4 << 20:
                assert (attempt["status"], attempt["reason_code"]) == ("refused", "MSG_TOO_LARGE")
            else:
                check_attempt(attempt, lossy=floor != "floor-tcp")
        if floor == "floor-xdp":
            assert f"{settings.get('attach', 'generic')} attachment" in result["path"][0]["used"]
            assert not program_attached(hosts)


def test_killed_raw_frames_leave_no_program(tmp_path: Path, hosts: Ends) -> None:
    points = [point("exchange", 64, duration_ms=10_000)]
    launch = Launch(folder=tmp_path, floor="floor-xdp", place="between", points=points, ends=hosts, program=available())
    launch.write()
    both = [launch.start(1), launch.start(0)]
    attached = False
    until = time.monotonic() + 8
    while not attached and time.monotonic() < until and both[1].poll() is None:
        attached = program_attached(hosts)
    if not attached:
        for process in both:
            process.kill()
        pytest.skip("no XDP program can be attached here")
    for process in both:
        process.send_signal(signal.SIGKILL)
        process.communicate(timeout=10)
    until = time.monotonic() + 5
    while program_attached(hosts) and time.monotonic() < until:
        time.sleep(0.05)
    assert not program_attached(hosts)


# What a link may do to packets, done in the receiving call of one endpoint: of 16 one is lost, one comes twice, and one
# after the one behind it.
FAULTS = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/types.h>

static char kept[1 << 17];
static ssize_t kept_bytes = -1;

ssize_t recv(int fd, void *to, size_t bytes, int flags)
{
	static ssize_t (*real)(int, void *, size_t, int);
	static unsigned int state = 1;
	int domain = 0;
	socklen_t size = sizeof(domain);
	ssize_t got;

	if (!real)
		real = (ssize_t (*)(int, void *, size_t, int))dlsym(RTLD_NEXT, "recv");
	getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &size);
	if (domain == AF_PACKET && kept_bytes >= 0) {
		got = kept_bytes < (ssize_t)bytes ? kept_bytes : (ssize_t)bytes;
		memcpy(to, kept, (size_t)got);
		kept_bytes = -1;
		return got;
	}
	got = real(fd, to, bytes, flags);
	if (domain != AF_PACKET || got < 0)
		return got;
	state = state * 1103515245u + 12345u;
	switch (state >> 16 & 15) {
	case 0: return real(fd, to, bytes, flags);
	case 1:
	case 2:
		memcpy(kept, to, (size_t)got);
		kept_bytes = got;
		if ((state >> 16 & 15) == 1)
			return got;
		got = real(fd, to, bytes, flags);
		if (got < 0)
			kept_bytes = -1;
	}
	return got;
}
"""


def test_a_bad_link_loses_messages_and_makes_none(tmp_path: Path, hosts: Ends) -> None:
    """Pieces that are missing, doubled or out of order: whatever is counted as whole has the right bytes."""
    (tmp_path / "faults.c").write_text(FAULTS)
    faults = tmp_path / "faults.so"
    subprocess.run(["cc", "-shared", "-fPIC", "-o", faults, tmp_path / "faults.c", "-ldl"], check=True, timeout=60)
    prefixes = (hosts.prefixes[0], (*hosts.prefixes[1], "env", f"LD_PRELOAD={faults}"))
    points = [point(form, 100_000, touch="write+read", duration_ms=400) for form in ("exchange", "flow")]
    launch = Launch(
        folder=tmp_path,
        floor="floor-packet",
        place="between",
        points=points,
        ends=replace(hosts, prefixes=prefixes),
        program=available(),
    )
    result = launch.run()
    assert (result["status"], result["reason"]) == ("done", None)
    for attempt in result["attempts"]:
        check_attempt(attempt, lossy=True)
        assert attempt["lost"] > 0
        assert attempt["verified"]["full_before"] >= 4  # as many as on a good link
        assert attempt["verified"]["full_after"] >= 4


def test_packets_that_the_link_cuts_are_put_together(tmp_path: Path, hosts: Ends) -> None:
    """As on a link of cards: the sender's kernel cuts what the device does not take, and the receiver's may join it."""
    for index, prefix in enumerate(hosts.prefixes):
        ip("-n", prefix[-1], "link", "set", "data0", "gso_max_size", "3000")
        join = [*prefix, "ethtool", "-K", "data0", "gro", "on"]
        assert index == 0 or not shutil.which("ethtool") or subprocess.run(join, timeout=20).returncode == 0
    points = messages(8, 1461, 65_536) + streams(1461, 65_536) + touched("flow", 65_536)
    launch = Launch(
        folder=tmp_path, floor="floor-packet", place="between", points=points, ends=hosts, program=available()
    )
    before = packets_received(hosts)
    result = launch.run()
    assert (result["status"], result["reason"]) == ("done", None)
    for attempt in result["attempts"]:
        check_attempt(attempt, lossy=True)
    moved = sum(attempt["bytes"] for attempt in result["attempts"])
    assert (packets_received(hosts) - before) * 1500 > moved / 2  # the rest are answers


def packets_received(ends: Ends) -> int:
    """Return how many packets the second host's data link has received."""
    command = [*ends.prefixes[1], "ip", "-s", "-j", "link", "show", "data0"]
    shown = subprocess.run(command, capture_output=True, text=True, check=True, timeout=20).stdout
    count: int = json.loads(shown)[0]["stats64"]["rx"]["packets"]
    return count


def test_hosts_answer_no_packets(tmp_path: Path, hosts: Ends) -> None:
    """The stacks of both hosts drop what is not meant for them before they look at it: no reset, no ICMP, no route."""

    def answered() -> int:
        command = [*hosts.prefixes[1], "cat", "/proc/net/snmp"]
        text = subprocess.run(command, capture_output=True, text=True, check=True, timeout=20).stdout
        rows = [line.split() for line in text.splitlines()]
        counts = {
            name + key: int(value)
            for (name, *keys), (_, *values) in zip(rows[::2], rows[1::2], strict=True)
            for key, value in zip(keys, values, strict=True)
        }
        return counts["Tcp:OutRsts"] + counts["Icmp:OutMsgs"] + counts["Ip:InAddrErrors"]

    before = answered()
    points = messages(8, 65_536) + streams(65_536)
    launch = Launch(
        folder=tmp_path, floor="floor-packet", place="between", points=points, ends=hosts, program=available()
    )
    result = launch.run()
    assert (result["status"], result["reason"]) == ("done", None)
    assert sum(attempt["operations"] for attempt in result["attempts"]) > 20
    assert answered() - before < 3  # the connections that the driver itself makes may end with one


def test_blocking_packets_sleep(tmp_path: Path, hosts: Ends) -> None:
    points = [point("exchange", 8, duration_ms=150)]
    launch = Launch(
        folder=tmp_path,
        floor="floor-packet",
        place="between",
        wait="block",
        points=points,
        ends=hosts,
        program=available(),
    )
    [attempt] = launch.run()["attempts"]
    check_attempt(attempt, lossy=True)
    for side in attempt["cpu"]:
        assert side["voluntary_switches"] >= attempt["operations"] // 2, attempt


def test_a_late_stream_of_packets_ends_alone(tmp_path: Path, hosts: Ends) -> None:
    late = {**point("flow", 1 << 20, duration_ms=199, deadline_ms=200), "attempt_id": "late"}
    points = [late, *messages(8, 65_536), *streams(64, 1 << 20)]
    launch = Launch(
        folder=tmp_path, floor="floor-packet", place="between", points=points, ends=hosts, program=available()
    )
    first, *others = launch.run(stalls=True)["attempts"]
    assert launch.statuses == [0, 0]
    assert (first["status"], first["reason"]) == ("failed", "the deadline of this step passed")
    for attempt in others:
        check_attempt(attempt, lossy=True)


@pytest.mark.skipif(not AS_ROOT, reason="only root can give its rights away")
@pytest.mark.parametrize("floor", ["floor-xdp", "floor-packet"])
def test_raw_frames_without_rights_say_so(tmp_path: Path, hosts: Ends, floor: str) -> None:
    drop = ("setpriv", "--bounding-set=-all", "--inh-caps=-all")
    ends = Ends(
        prefixes=((*hosts.prefixes[0], *drop), (*hosts.prefixes[1], *drop)),
        addresses=hosts.addresses,
        device=hosts.device,
        raw_device=hosts.raw_device,
    )
    points = [point("exchange", 8)]
    launch = Launch(folder=tmp_path, floor=floor, place="between", points=points, ends=ends, program=available())
    result = launch.run()
    assert (result["status"], result["reason_code"]) == ("refused", "PERMISSION")
    assert "need root" in result["reason"]


CAPABILITIES = re.compile(r"^Cap(?:Prm|Eff|Inh|Amb):\s*([0-9a-f]+)$", re.MULTILINE)


def rights_of(process: subprocess.Popen[str]) -> set[int]:
    """Return the sets of capabilities that a driver has; nothing where it is not there, or has not begun yet."""
    folder = Path(f"/proc/{process.pid}")
    with suppress(OSError):
        if (folder / "comm").read_text() == "cadge-driver\n":
            return {int(found, 16) for found in CAPABILITIES.findall((folder / "status").read_text())}
    return set()


@pytest.mark.skipif(not AS_ROOT, reason="only root can be another user")
@pytest.mark.parametrize("floor", ["xdp", "packet"])
def test_a_user_opens_with_lent_rights_and_measures_without(hosts: Ends, floor: str) -> None:
    """With those alone that the floor's file names, and while it measures it has none."""
    file = yaml.safe_load((FLOORS / f"{floor}.floor.yml").read_text())
    names = ",".join(f"+{name}" for name in file["rights"])
    nobody = 65534
    become = ("setpriv", f"--reuid={nobody}", f"--regid={nobody}", "--clear-groups")
    lent = ("--bounding-set=-sys_admin", f"--inh-caps={names}", f"--ambient-caps={names}")
    with tempfile.TemporaryDirectory(prefix="ct-") as name:
        folder = Path(name)
        program = Path(shutil.copy(available(), folder))
        ends = replace(hosts, prefixes=tuple((*prefix, *become, *lent) for prefix in hosts.prefixes))
        points = [{**point("exchange", 8), "duration_ms": 1500}]
        launch = Launch(
            folder=folder, floor=f"floor-{floor}", place="between", points=points, ends=ends, program=program
        )
        launch.write()
        for path in (folder, *folder.iterdir()):
            os.chown(path, nobody, nobody)
        both = [launch.start(1), launch.start(0)]
        seen: list[set[int]] = [set(), set()]
        while any(process.poll() is None for process in both):
            seen = [rights_of(process) or before for process, before in zip(both, seen, strict=True)]
            time.sleep(0.01)
        errors = [process.communicate()[1] for process in both]
        result = launch.result()
    if result["reason_code"] == "NODE_LACKS":
        pytest.skip(result["reason"])
    assert (result["status"], result["reason"]) == ("done", None), errors
    check_attempt(result["attempts"][0], lossy=True)
    assert seen == [{0}, {0}]
