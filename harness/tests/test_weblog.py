# SPDX-License-Identifier: BSD-3-Clause
"""Logs of web servers: which lines are replayed, what is made of them, and what planning says where one is missing."""

import gzip
import hashlib
import json
import struct
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cadge_harness.errors import EXIT_USAGE, UsageError
from cadge_harness.paths import Checkout
from cadge_harness.plan import weblog
from cadge_harness.plan.weblog import Replay, ReplayBounds, look, read_log
from cadge_results import DamagedError, Store
from cadge_results.formats.trace import trace_number, trace_text
from cadge_results.plugins.parameter import plain

from .conftest import WORKLOADS, Answer, FakeRunner
from .weblogs import LINES, Log, line, synthetic_log

Cadge = Callable[..., Answer]

BOUNDS = ReplayBounds(files_max=1 << 20, min_bytes=64, max_bytes=1 << 20)
FREE = ReplayBounds(files_max=1 << 20, min_bytes=1, max_bytes=(1 << 32) - 1)


def replay(tmp_path: Path, content: bytes, bounds: ReplayBounds = BOUNDS, name: str = "access.log") -> Replay:
    path = tmp_path / name
    path.write_bytes(content)
    return read_log(path, bounds)


def names_of(made: Replay, log: Log) -> list[bytes]:
    names = log.by_popularity()
    return [names[number] for number in made.trace.requests]


def test_a_log_with_the_odd_cases_of_real_ones(tmp_path: Path) -> None:
    log = synthetic_log(7)
    made = replay(tmp_path, log.content)
    facts = made.facts
    assert facts.lines == LINES == len(log.lines)
    assert set(log.left_out) == set(weblog.REASONS)
    assert {one.reason: one.lines for one in facts.left_out} == log.left_out
    assert {one.reason: one.first_line for one in facts.left_out} == log.first_lines
    assert names_of(made, log) == log.requests
    assert facts.requests == len(log.requests) == LINES - sum(log.left_out.values())
    lengths = [log.lengths[name] for name in log.by_popularity()]
    assert list(made.trace.lengths) == [min(max(length, 64), 1 << 20) for length in lengths]
    assert (facts.lengthened_files, facts.shortened_files) == (1, 1)
    assert facts.shortened_requests == Counter(log.requests)[b"/images/picture2.gif"]
    assert facts.files_bytes == sum(made.trace.lengths)
    assert facts.requested_bytes == sum(made.trace.lengths[number] for number in made.trace.requests)
    assert facts.log_sha256 == hashlib.sha256(log.content).hexdigest()
    assert f"{log.left_out[weblog.REDIRECTED]} redirected (other 3xx) (line 14 is the first)" in facts.said()


def test_what_is_kept_holds_numbers_alone(tmp_path: Path) -> None:
    """Neither names of files nor clients leave the log."""
    made = replay(tmp_path, synthetic_log(3).content)
    kept = made.trace.content + made.facts.model_dump_json().encode()
    for secret in (b"example", b"clients", b"images", b"user", b"Mozilla"):
        assert secret not in kept
    head = struct.unpack("<16sIIQ", made.trace.content[:32])
    assert head == (b"cadge.trace/1\0\0\0", made.facts.files, 0, made.facts.requests)
    assert len(made.trace.content) == made.facts.content_bytes
    assert hashlib.sha256(made.trace.content).hexdigest() == made.facts.sha256
    assert trace_text(trace_number(made.facts.sha256)) == made.facts.sha256[:12]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (line(b"GET /a HTTP/1.0", 200, 5), (b"/a", 5)),
        (line(b"GET /a", 200, 5), (b"/a", 5)),
        (line(b"GET /a b c HTTP/1.0", 200, 5), (b"/a b c", 5)),
        (line(b"GET /a b c", 200, 5), (b"/a b c", 5)),
        (line(b"GET   /a   HTTP/0.9  ", 200, 5), (b"/a", 5)),
        (line(b"GET /a HTTP/ HTTP/1.0", 200, 5), (b"/a HTTP/", 5)),
        (line(b"GET /aHTTP/1.0", 200, 5), (b"/aHTTP/1.0", 5)),
        (line(b"GET /a#b HTTP/1.0", 200, 5), (b"/a", 5)),
        (line(b'GET /"a" HTTP/1.0', 200, 5), (b'/"a"', 5)),
        (line(b"GET /%61 HTTP/1.0", 200, 5), (b"/%61", 5)),
        (line(b"GET /a HTTP/1.0", 200, "-"), (b"/a", 0)),
        (line(b"GET /a HTTP/1.0", 200, 5, b' "-" "agent"'), (b"/a", 5)),
        (line(b"GET /a HTTP/1.0", 200, 5, b'"-"'), weblog.NO_LINE),
        (line(b"GET /a HTTP/1.0", 200, "9" * 19), weblog.NO_LINE),
        (b'www.example.org:80 10.0.0.1 - some body [x] "GET /a HTTP/1.1" 200 5', (b"/a", 5)),
        (b'10.0.0.1 - - [x] "GET /a HTTP/1.1" 20 5', weblog.NO_LINE),
        (line(b"get /a HTTP/1.0", 200, 5), weblog.OTHER_METHOD),
        (line(b"GET /x/cgi-bin/a HTTP/1.0", 200, 5), weblog.PROGRAM),
        (line(b"GET # HTTP/1.0", 200, 5), weblog.NO_NAME),
        (line(b"GET /a HTTP/1.0", 100, 5), weblog.OTHER_STATUS),
    ],
)
def test_a_line(text: bytes, found: tuple[bytes, int] | str) -> None:
    assert look(text) == found


def test_a_file_is_as_long_as_its_largest_answer(tmp_path: Path) -> None:
    """Shorter answers were cut off. What is asked for most often comes first; of two alike, the one that came first."""
    asked: list[tuple[bytes, int | str]] = [
        (b"/a", 70),
        (b"/b", "-"),
        (b"/c", 300),
        (b"/b", 900),
        (b"/a", "-"),
        (b"/b", 100),
        (b"/d", 0),
    ]
    text = b"\n".join(line(b"GET " + name + b" HTTP/1.0", 200, length) for name, length in asked)
    made = replay(tmp_path, text)  # without a line's end after the last
    assert list(made.trace.lengths) == [900, 70, 300]
    assert list(made.trace.requests) == [1, 0, 2, 0, 1, 0]
    assert [(one.reason, one.lines, one.first_line) for one in made.facts.left_out] == [(weblog.NO_LENGTH, 1, 7)]


def test_a_packed_log_is_the_same_trace(tmp_path: Path) -> None:
    content = synthetic_log(5).content
    packed = gzip.compress(content[:5000]) + gzip.compress(content[5000:])
    plain, unpacked = replay(tmp_path, content), replay(tmp_path, packed, name="access.log.gz")
    assert plain.trace.content == unpacked.trace.content
    assert unpacked.facts.log_sha256 == hashlib.sha256(packed).hexdigest() != plain.facts.log_sha256
    with pytest.raises(UsageError, match="is not a whole gzip file"):
        replay(tmp_path, packed[:-20])
    with pytest.raises(UsageError, match="is not a whole gzip file"):
        replay(tmp_path, packed + b"more")


def test_lines_are_the_same_however_a_log_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    content = synthetic_log(9, lines=300).content
    whole = replay(tmp_path, content)
    packed = gzip.compress(content)
    for size in (7, 4096):
        monkeypatch.setattr(weblog, "_CHUNK_BYTES", size)
        assert replay(tmp_path, content) == whole
        assert replay(tmp_path, packed).trace == whole.trace


FRAGMENTS = st.sampled_from(
    [
        b'"',
        b'] "',
        b"[",
        b"GET ",
        b"/a",
        b" HTTP/1.0",
        b'" 200 ',
        b"17",
        b"-",
        b"\n",
        b"\r",
        b" ",
        b"?",
        b"#",
        b"\0",
        b"\xff",
        b"HEAD ",
    ]
)


@given(st.lists(st.one_of(FRAGMENTS, st.binary(max_size=8)), max_size=60).map(b"".join))
@settings(max_examples=200, deadline=None)
def test_every_line_is_replayed_or_counted(tmp_path_factory: pytest.TempPathFactory, content: bytes) -> None:
    """Whatever a log holds, but what is packed: each line counts once, and nothing but a UsageError comes of it."""
    good = line(b"GET /good HTTP/1.0", 200, 5)
    made = replay(tmp_path_factory.mktemp("log"), b"\n" + content + b"\n" + good, FREE)
    trace, facts = made.trace, made.facts
    assert facts.lines == content.count(b"\n") + 3
    assert facts.requests + sum(one.lines for one in facts.left_out) == facts.lines
    assert set(trace.requests) == set(range(len(trace.lengths)))
    assert min(trace.lengths) >= 1
    asked = Counter(trace.requests)
    assert [asked[number] for number in range(len(trace.lengths))] == sorted(asked.values(), reverse=True)


NAME = st.binary(min_size=1, max_size=100).filter(
    lambda name: (
        name.strip() == name and not set(name) & set(b'\n\r"#?') and b"HTTP/" not in name and b"/cgi-bin/" not in name
    )
)


@given(st.lists(st.tuples(NAME, st.integers(1, 1 << 31), st.booleans()), min_size=1, max_size=30))
@settings(max_examples=100, deadline=None)
def test_what_is_asked_for_comes_back(
    tmp_path_factory: pytest.TempPathFactory, asked: list[tuple[bytes, int, bool]]
) -> None:
    """Any names, in any order: the trace has the sequence and the lengths that were written."""
    log = Log()
    for name, length, old in asked:
        log.ask(line(b"GET " + name + (b"" if old else b" HTTP/1.0"), 200, length), name, length)
    made = replay(tmp_path_factory.mktemp("log"), log.content, FREE)
    assert not made.facts.left_out
    assert names_of(made, log) == log.requests
    assert list(made.trace.lengths) == [log.lengths[name] for name in log.by_popularity()]


@pytest.mark.parametrize("piece", [b'] "', b'" 200 ', b'] "GET ', b" HTTP/1", b'GET /a HTTP/1.0" 200 1', b"\n"])
@pytest.mark.long
def test_time_grows_with_the_log_alone(tmp_path: Path, piece: bytes) -> None:
    """A MiB of what could make a reader look again and again, whole and in the longest lines."""
    content = piece * ((1 << 20) // len(piece))
    begun = time.process_time()
    with pytest.raises(UsageError, match=r"no line of .* can be replayed"):
        replay(tmp_path, content)
    lines = (piece * (weblog.LINE_BYTES_MAX // len(piece)) + b"\n") * 16
    with pytest.raises(UsageError, match=r"no line of .* can be replayed"):
        replay(tmp_path, lines)
    assert time.process_time() - begun < 10


def test_more_than_there_may_be(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    content = b"".join(line(b"GET /%d HTTP/1.0" % number, 200, 5) + b"\n" for number in range(20))
    with pytest.raises(UsageError, match="line 11 asks for a further file, and a trace has at most 10; give a part"):
        replay(tmp_path, content, ReplayBounds(files_max=10, min_bytes=1, max_bytes=9))
    monkeypatch.setattr(weblog, "REQUESTS_MAX", 15)
    with pytest.raises(UsageError, match="line 16 is a further request, and a trace has at most 15; give a part"):
        replay(tmp_path, content)


# -- from the command line

SWEEP = """\
schema: cadge.sweep/2
title: A small one
layers: a-one
places: within
waits: block
patterns: PATTERNS
floors: false
launches: 1
duration: {default: 100ms}
"""


@pytest.fixture
def web(checkout: Checkout, runner: FakeRunner) -> Checkout:
    """A checkout on which `run` would work, with a log."""
    assert runner
    (checkout.root / "access.log").write_bytes(synthetic_log(11, lines=200).content)
    return checkout


def sweep(web: Checkout, *patterns: str) -> str:
    (web.sweeps / "web.yml").write_text(SWEEP.replace("PATTERNS", f"[{', '.join(patterns)}]"))
    return "web"


def run(cadge: Cadge, web: Checkout, *more: str, log: str = "access.log") -> Answer:
    options = ("--testbed", "local", "--no-report", "--trace", str(web.root / log))
    return cadge("run", "--sweep", "web", *options, *more)


def test_a_trace_takes_the_place_of_what_a_sweep_leaves_open(web: Checkout, cadge: Cadge) -> None:
    """Entries that say no workload replay it, without what it decides; those that say one keep it."""
    sweep(
        web,
        "{pattern: press, nodes: 2, alpha_percent: [60, 90], cache_kib: [64, 256], zip: [[alpha_percent, cache_kib]]}",
        "{pattern: press, nodes: 2, workload: [nasa, trace]}",
    )
    answer = run(cadge, web)
    assert answer.code == 0, answer
    campaign = Store(web.campaigns).open("last")
    facts = campaign.plan.trace
    assert facts is not None
    assert facts.name == "access.log"
    assert facts.said() in answer.err + answer.out
    points = [dict(point.workload.values) for point in campaign.plan.points]
    assert [(one["workload"], one["trace"], one["alpha_percent"]) for one in points] == [
        ("trace", facts.number, 80),
        ("nasa", 0, 80),
    ]
    assert plain(campaign.plan.patterns["press"].parameters["trace"], facts.number) == facts.sha256[:12]
    stored = campaign.layout.trace
    assert hashlib.sha256(stored.read_bytes()).hexdigest() == facts.sha256
    block = json.loads(campaign.layout.block("b1").read_text())
    assert [launch["trace"] for launch in block["launches"]] == [{"file": "trace.bin", "sha256": facts.sha256}]
    assert cadge("verify").code == 0


def test_other_traces_are_other_points(web: Checkout, cadge: Cadge) -> None:
    sweep(web, "{pattern: press, nodes: 2}")
    (web.root / "other.log").write_bytes(synthetic_log(12, lines=200).content)
    found, out = [], web.root / "plan.json"
    for log in ("access.log", "other.log", "access.log"):
        trace = ("--trace", str(web.root / log))
        assert cadge("plan", "--sweep", "web", "--testbed", "local", *trace, "--write", str(out)).code == 0
        found.append(json.loads(out.read_text())["points"][0]["point_id"])
    assert found[0] == found[2] != found[1]


def test_a_stored_trace_that_was_changed_is_found(web: Checkout, cadge: Cadge) -> None:
    sweep(web, "{pattern: press, nodes: 2}")
    assert run(cadge, web).code == 0
    campaign = Store(web.campaigns).open("last")
    assert campaign.trace_file() == campaign.layout.trace
    campaign.layout.trace.chmod(0o600)
    with campaign.layout.trace.open("r+b") as stream:
        stream.seek(40)
        stream.write(b"\x7f")
    answer = cadge("verify")
    assert answer.code == 7, answer
    assert "trace.bin" in answer.out + answer.err
    with pytest.raises(DamagedError, match=r"trace\.bin"):
        campaign.trace_file()


def test_without_a_trace_its_points_are_refused(web: Checkout, cadge: Cadge) -> None:
    sweep(web, "{pattern: press, nodes: 2, workload: [clarknet, trace]}")
    answer = cadge("plan", "--sweep", "web", "--testbed", "local")
    assert answer.code == 0, answer
    why = "workload trace replays the log of a web server, and none was given; --trace FILE gives it"
    assert f"a-one within/block: 1 point: {why}" in " ".join(answer.out.split())
    sweep(web, "{pattern: press, nodes: 2, workload: trace}")
    answer = cadge("run", "--sweep", "web", "--testbed", "local")
    assert answer.code == 5, answer
    assert why in answer.err


@pytest.mark.parametrize(
    ("patterns", "content", "said"),
    [
        ("{pattern: pingpong, bytes: 8B}", None, "nothing in sweep web replays a trace; a sweep of press does"),
        ("{pattern: press, nodes: 2, workload: nasa}", None, "nothing in sweep web replays a trace"),
        ("{pattern: press, nodes: 2, trace: 5}", None, "trace: is what --trace FILE gives, and cannot be written"),
        (
            "{pattern: press, nodes: 2, workload: trace, alpha_percent: 60}",
            None,
            "press has none of these combinations",
        ),
        ("{pattern: press, nodes: 2}", b"", "access.log is empty"),
        ("{pattern: press, nodes: 2}", b"\x00\x01\n" * 9, "can be replayed: 9 not in Common Log Format (line 1 is the"),
        (
            "{pattern: press, nodes: 2}",
            line(b"GET /a HTTP/1.0", 304),
            "can be replayed: 1 not modified (304), so that no file was sent (line 1)",
        ),
    ],
)
def test_what_cannot_be_replayed_is_said_before_anything_runs(
    patterns: str, content: bytes | None, said: str, web: Checkout, cadge: Cadge
) -> None:
    sweep(web, patterns)
    if content is not None:
        (web.root / "access.log").write_bytes(content)
    answer = run(cadge, web)
    assert (answer.code, said in answer.err) == (EXIT_USAGE, True), answer
    assert not web.campaigns.is_dir() or not any(web.campaigns.iterdir())


def test_a_log_that_cannot_be_read(web: Checkout, cadge: Cadge) -> None:
    sweep(web, "{pattern: press, nodes: 2}")
    for log, said in (("none.log", "No such file"), ("harness", "Is a directory")):
        answer = run(cadge, web, log=log)
        assert (answer.code, said in answer.err) == (EXIT_USAGE, True), answer


def test_words_leave_out_what_a_trace_decides() -> None:
    file = WORKLOADS.patterns["press"]
    usual = file.workload("press", {})
    replayed = file.workload("press", {"workload": "trace", "trace": 0xABC})
    words = file.fill(file.workload_words, usual, plain)
    assert words.startswith("clarknet, 4 nodes, working set 100 %, exponent 80 %, caches of 4096 KiB, disk ")
    words = file.fill(file.workload_words, replayed, plain)
    assert words.startswith("trace 000000000abc, 4 nodes, working set 100 %, disk ")
