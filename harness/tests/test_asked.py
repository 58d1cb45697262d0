# SPDX-License-Identifier: BSD-3-Clause
"""What `cadge run` and `cadge plan` are asked in place of what a sweep says, and that it is kept."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection
from pathlib import Path

import pytest

from cadge_harness.errors import UsageError
from cadge_harness.paths import Checkout
from cadge_harness.plan.narrow import NOTHING_ASKED, Narrowing, narrowed
from cadge_harness.plan.sweep import read_sweep, wanted
from cadge_harness.run.request import read_request
from cadge_results import Store, SweepFile
from cadge_results.command import Caller, called
from cadge_results.formats.base import Place, Wait

from .conftest import WORKLOADS, Answer, FakeRunner, make_testbed

Cadge = Callable[..., Answer]
WIDE = """\
schema: cadge.sweep/2
title: wide
layers: [a-one, {layer: b-two, places: within}]
baseline: a-one
places: [within, between]
waits: poll
vectors: {sizes: [8B, 4KiB, 1MiB]}
patterns:
  - {pattern: rpc, request_bytes: sizes, reply_bytes: sizes}
  - {pattern: rpc, request_bytes: 3968B}
  - {pattern: stream, bytes: sizes, depth: [1, 4, 16], zip: [[bytes, depth]]}
  - {pattern: msgrate, bytes: 8B, depth: 4, places: between, waits: [poll, block]}
  - {pattern: incast, request_bytes: 8B, clients: [1, 2], waits: block}
  - {pattern: press, nodes: 2, offered_per_s: 100}
launches: 6
seed: 7
budget: 20min
duration: {default: 40ms, least: 25ms, focus: [{pattern: rpc, request_bytes: 8B, duration: 1s}]}
"""


@pytest.fixture
def wide(checkout: Checkout) -> SweepFile:
    path = checkout.sweeps / "wide.yml"
    path.write_text(WIDE)
    return read_sweep(path, WORKLOADS)[0]


def asked(sweep: SweepFile, checkout: Checkout, **what: object) -> SweepFile:
    return narrowed(sweep, WORKLOADS, Narrowing(**what), name="wide", folder=checkout.sweeps)[0]  # type: ignore[arg-type]


def measured(sweep: SweepFile, pattern: str, *names: str) -> set[tuple[object, ...]]:
    """Return the values of some parameters of a pattern's workloads."""
    found = (one.workload for one in wanted(sweep, WORKLOADS) if one.workload.pattern == pattern)
    return {tuple(workload[name] for name in names) for workload in found}


def patterns_of(sweep: SweepFile) -> set[str]:
    return {entry.pattern for entry in sweep.patterns}


def where(sweep: SweepFile, pattern: str) -> set[tuple[Place, Wait]]:
    return {(one.place, one.wait) for one in wanted(sweep, WORKLOADS) if one.workload.pattern == pattern}


def test_nothing_asked_changes_nothing(wide: SweepFile, checkout: Checkout) -> None:
    assert narrowed(wide, WORKLOADS, NOTHING_ASKED, name="wide", folder=checkout.sweeps) == (wide, ())


def test_patterns_narrow(wide: SweepFile, checkout: Checkout) -> None:
    assert patterns_of(asked(wide, checkout, patterns=("stream", "press"))) == {"stream", "press"}


def test_a_pattern_that_the_sweep_does_not_measure_names_where_it_can_be_measured(
    wide: SweepFile, checkout: Checkout
) -> None:
    """A sweep that has it; where none has it, a file to copy and the option that takes the copy."""
    with pytest.raises(UsageError) as nowhere:
        asked(wide, checkout, patterns=("loss",))
    text = str(nowhere.value)
    assert "wide does not measure loss" in text
    assert f"copy {checkout.sweeps / 'smoke.yml'}, write {{pattern: loss, ...}}" in text
    assert "--sweep FILE" in text
    (checkout.sweeps / "lossy.yml").write_text("patterns:\n  - {pattern: loss, bytes: 8B}\n")
    with pytest.raises(UsageError) as elsewhere:
        asked(wide, checkout, patterns=("loss",))
    assert str(elsewhere.value).endswith("loss is in --sweep lossy")


def test_sizes_replace_those_of_the_file(wide: SweepFile, checkout: Checkout) -> None:
    """The reply whose sizes are those of the request gets them too; of `zip`, the rows with these sizes stay."""
    found = asked(wide, checkout, sizes=(64, 4096))
    assert measured(found, "rpc", "request_bytes", "reply_bytes") == {(64, 64), (64, 4096), (4096, 64), (4096, 4096)}
    assert measured(found, "stream", "bytes", "depth") == {(4096, 4)}
    assert measured(found, "msgrate", "bytes", "depth") == {(64, 4), (4096, 4)}
    assert measured(found, "incast", "request_bytes", "reply_bytes", "clients") == {
        (size, 8, clients) for size in (64, 4096) for clients in (1, 2)
    }
    assert measured(found, "press", "nodes") == {(2,)}


def test_a_pattern_that_takes_none_of_the_sizes_goes_and_is_named(wide: SweepFile, checkout: Checkout) -> None:
    found, notices = narrowed(wide, WORKLOADS, Narrowing(sizes=(2 << 20,)), name="wide", folder=checkout.sweeps)
    assert patterns_of(found) == {"rpc", "press"}
    assert [notice.split()[0] for notice in notices] == ["stream", "msgrate", "incast"]


def test_places_and_wait_modes(wide: SweepFile, checkout: Checkout) -> None:
    within = asked(wide, checkout, places=("within",))
    assert patterns_of(within) == {"rpc", "stream", "incast", "press"}
    assert where(within, "rpc") == {("within", "poll")}
    assert [entry.layer for entry in within.layers] == ["a-one", "b-two"]
    between = asked(wide, checkout, places=("between",))
    assert [entry.layer for entry in between.layers] == ["a-one"]
    assert where(between, "msgrate") == {("between", "poll"), ("between", "block")}
    asleep = asked(wide, checkout, waits=("block",))
    assert where(asleep, "rpc") == {("within", "block"), ("between", "block")}
    assert where(asleep, "msgrate") == {("between", "block")}
    assert "incast" not in patterns_of(asked(wide, checkout, waits=("poll",)))


@pytest.mark.parametrize(("launches", "budget_min"), [(3, 20), (6, 20), (9, 30), (60, 200)])
def test_the_budget_grows_with_launches(launches: int, budget_min: int, wide: SweepFile, checkout: Checkout) -> None:
    found = asked(wide, checkout, launches=launches)
    assert (found.launches, found.budget) == (launches, budget_min * 60_000)


def test_looks_go_where_launches_were_asked_for(wide: SweepFile, checkout: Checkout) -> None:
    looking = wide.model_copy(update={"looks": (6, 9)})
    found = asked(looking, checkout, launches=4)
    assert (found.launches, found.looks) == (4, None)


def test_a_duration_is_that_of_each_point(wide: SweepFile, checkout: Checkout) -> None:
    assert wide.budget
    found = asked(wide, checkout, duration_ms=30)
    assert (found.duration.default, found.duration.least, found.duration.focus, found.budget) == (30, None, (), None)


def test_the_title_says_what_was_asked(wide: SweepFile, checkout: Checkout) -> None:
    title = asked(wide, checkout, patterns=("rpc",), sizes=(8,), launches=2, places=("within",)).title
    assert title.startswith("wide (")
    assert all(word in title for word in ("rpc", "8B", "launches: 2", "within"))


WRONG = [
    (("--patterns", "rcp"), ("'rcp'", "rpc")),
    (("--patterns", "overlap"), ("overlap", "stream", "msgrate")),
    (("--patterns", ", "), ("--patterns", "rpc stream")),
    (("--sizes", "8"), ("--sizes", "8B or 4KiB")),
    (("--sizes", "x"), ("--sizes", "8B or 4KiB")),
    (("--sizes", "2GiB"), ("--sizes", "2GiB", "1073741824")),
    (("--sizes", "8B", "--patterns", "press"), ("--sizes", "press")),
    (("--launches", "0"), ("--launches", "1 to 1000", "--launches 9")),
    (("--launches", "1001"), ("--launches", "1 to 1000", "--launches 9")),
    (("--launches", "many"), ("'many'", "1 to 1000")),
    (("--launches", "9", "--looks", "9,12"), ("--launches", "--looks")),
    (("--duration", "19ms"), ("--duration", "20ms", "600s", "--duration 100ms")),
    (("--duration", "601s"), ("--duration", "20ms", "600s", "--duration 100ms")),
    (("--duration", "100"), ("--duration", "250ms or 5min")),
    (("--places", "here"), ("'here'", "within", "between", "--places within")),
    (("--mode", "adaptive"), ("'adaptive'", "poll", "block", "--mode poll")),
    (("--mode", "block", "--patterns", "rpc", "--places", "self", "--budget", "x"), ("--budget",)),
    (("--places", "within", "--patterns", "msgrate"), ("msgrate", "between")),
]


@pytest.mark.parametrize("verb", ["run", "plan"])
@pytest.mark.parametrize(("words", "said"), WRONG, ids=[" ".join(words) for words, _ in WRONG])
def test_wrong_values_are_refused_with_what_is_allowed(
    verb: str, words: tuple[str, ...], said: Collection[str], wide: SweepFile, runner: FakeRunner, cadge: Cadge
) -> None:
    assert wide
    answer = cadge(verb, "--sweep", "wide", *words)
    assert (answer.code, answer.out, runner.made) == (2, "", [])
    assert all(word in answer.err for word in said), answer.err


@pytest.mark.parametrize("words", [("run", "--layers"), ("plan", "--layers"), ("quick",), ("selftest", "--only")])
@pytest.mark.parametrize("names", ["", " , "])
def test_no_name_is_not_every_name(words: tuple[str, ...], names: str, runner: FakeRunner, cadge: Cadge) -> None:
    """As where a variable of a script is empty: what would be measured is not what was meant."""
    answer = cadge(*words, names)
    assert (answer.code, answer.out, runner.made) == (2, "", [])


def test_sizes_that_were_asked_for_are_not_dropped_for_a_budget(checkout: Checkout) -> None:
    many = "[8B, 16B, 64B, 256B, 1KiB, 4KiB]"
    text = f"""\
schema: cadge.sweep/2
title: tight
layers: [a-one, b-two]
patterns: [{{pattern: rpc, request_bytes: {many}}}]
launches: 9
seed: 7
budget: 60s
duration: {{default: 200ms, least: 200ms}}
floors: false
"""
    (checkout.sweeps / "tight.yml").write_text(text)
    testbed = make_testbed()

    def sizes(what: Narrowing) -> set[int]:
        plan = read_request("tight", asked=what).plan(testbed)
        return {point.workload.integer("request_bytes") for point in plan.points if point.state == "planned"}

    assert len(sizes(NOTHING_ASKED)) < 6
    assert sizes(Narrowing(sizes=(8, 16, 64, 256, 1024, 4096))) == {8, 16, 64, 256, 1024, 4096}


OPTIONS = ("--patterns", "rpc", "--sizes", "8B 64B", "--launches", "2", "--duration", "30ms", "--places", "within")


def test_it_is_kept_by_the_campaign_and_by_every_command(wide: SweepFile, runner: FakeRunner, cadge: Cadge) -> None:
    assert wide
    runner.stop_after = 1
    assert cadge("run", "--sweep", "wide", *OPTIONS, "--mode", "poll", "--no-report").code == 6
    found = Store(read_request("wide").checkout.campaigns).open("last")
    assert found.meta.command == ("cadge", "run", "--sweep", "wide", *OPTIONS, "--mode", "poll", "--no-report")
    title = found.plan.sweep["title"]
    assert isinstance(title, str)
    data = json.loads(cadge("status", "--json").out)["data"]
    assert (data["sweep"], data["title"]) == ("wide", title)
    assert title in cadge("status").out
    runner.stop_after = None
    assert cadge("resume", "--no-report").code == 0
    done = Store(read_request("wide").checkout.campaigns).open("last")
    assert done.plan == found.plan
    points = [point for point in done.plan.points if point.subject.kind == "layer"]
    assert {point.workload.integer("request_bytes") for point in points} == {8, 64}
    assert {(point.subject.place, point.duration_ms) for point in points} == {("within", 30)}
    assert {launch.round for launch in done.plan.launches} == {0, 1}


def test_what_the_environment_says_is_kept_as_well(
    wide: SweepFile, runner: FakeRunner, cadge: Cadge, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As make's command line says it: make sweep CADGE_SIZES=8B."""
    assert wide
    assert runner
    monkeypatch.setenv("CADGE_SIZES", "8B 64B")
    monkeypatch.setenv("CADGE_LAUNCHES", "2")
    monkeypatch.setenv("CADGE_QUEUE", "0")
    assert cadge("run", "--sweep", "wide", "--patterns", "rpc", "--no-report").code == 0
    found = Store(read_request("wide").checkout.campaigns).open("last")
    command = found.meta.command
    again = ("--sizes", "8B", "--sizes", "64B", "--launches", "2", "--no-queue")
    assert command[:6] == ("cadge", "run", "--sweep", "wide", "--patterns", "rpc")
    assert sorted(command[7:]) == sorted(again)
    for name in ("CADGE_SIZES", "CADGE_LAUNCHES", "CADGE_QUEUE"):
        monkeypatch.delenv(name)
    assert cadge(*command[1:]).code == 0
    assert Store(read_request("wide").checkout.campaigns).open("last").plan.points == found.plan.points
    called(Caller())


def test_a_plan_shows_it(wide: SweepFile, runner: FakeRunner, cadge: Cadge, tmp_path: Path) -> None:
    assert wide
    assert runner
    path = tmp_path / "plan.json"
    answer = cadge("plan", "--sweep", "wide", *OPTIONS, "--write", str(path), "--json")
    data = json.loads(answer.out)["data"]
    assert data["title"] == json.loads(path.read_text())["sweep"]["title"]
    assert "rpc" in data["title"]
    assert data["title"] in cadge("plan", "--sweep", "wide", *OPTIONS).out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--sizes", "8"), "8B or 4KiB"),
        (("--sizes", ","), "8B 4KiB"),
        (("--places", "self"), "within, between"),
    ],
)
def test_a_crosscheck_reads_them_alike(words: tuple[str, str], said: str, checkout: Checkout, cadge: Cadge) -> None:
    assert checkout
    answer = cadge("crosscheck", *words)
    assert (answer.code, answer.out) == (2, "")
    assert said in answer.err
