# SPDX-License-Identifier: BSD-3-Clause
"""Every layer and shim runs the conformance suite; adapters that are wrong in one way fail the test of that name.

The short form, for `make test`, is under sanitizers and has every test of the suite once for each layer: within one
host polling, but for the tests that sleep, which all layers do side by side; between hosts what the way matters to.
What grows is looked for without sanitizers, in a run of its own: they hide it and make each open costly, and what is
leaked they tell at the end whatever ran. The long form, for `make long`: everything in both builds, at every place, in
both wait modes, one after the other.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import warnings
from collections.abc import Iterator, Mapping, Sequence
from concurrent import futures
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml
from _pytest.mark.structures import ParameterSet

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("CADGE_BUILD", ROOT / "build"))
BUILDS = {"release": BUILD, "asan": BUILD / "asan"}
PLACES = ("self", "within", "between")
WAITS = ("poll", "block")
SKIPPED = 77
ENDS_CLEAN = "ends_clean"  # always told, since it is the end of the suite itself

FAULTS = {
    "drops": "exactly_once_as_claimed",
    "repeats": "exactly_once_as_claimed",
    "reorders": "order_as_claimed",
    "flips-a-byte": "payload_intact",
    "lies-about-a-capability": "capability_lies",
    "leaks-a-descriptor": "no_growth",
    "leaks-memory": "no_growth",
    "sleeps": "poll_never_sleeps",
    "ignores-depth": "depth_max",
    "writes-too-far": "structs_may_grow",
    "claims-an-unread-path": "describe_path_true",
}
"""What is wrong with build/tests/bad-<fault>.so, and the one test that must find it."""

SLEEPING_FAULTS = {
    "misses-room": "wait_after_busy",
    "misses-a-connection": "wait_after_connect",
    "misses-the-end": "wait_peer_dies",
}
"""The same in block mode: wakes that get lost."""

SLEEPING_TESTS = ("wait_sleeps_and_wakes", "wait_after_connect", "wait_after_busy", "wait_peer_dies", "event_tells")
"""Tests that sleep, and so are for block mode."""

WAY_TESTS = (
    "message_max",
    "message_over_max_refused",
    "payload_intact",
    "depth_max",
    "order_as_claimed",
    "exactly_once_as_claimed",
    "both_directions_at_once",
    "put_get_fetch_add",
    "native_rpc",
    "describe_path_true",
    "close_with_work_outstanding",
    "disconnect_reconnect",
    "peer_dies",
)
"""Tests whose outcome most depends on the way between the peers: all that the short form has between hosts."""

ONE_SIDED_TESTS = ("put_notifies", "put_get_fetch_add", "quiet_is_visible", "rights_hold", "structs_may_grow")

NEED_A_DEVICE = {"verbs"}
"""Wires over which nothing opens here: ci/rdma/run has them on an emulated machine."""

SLOW = "mpi"
"""The wire whose leaks of its library take a full unwind at each allocation."""

WITHIN, ASLEEP = 0, 1
"""Turns of wire_by_style: what the short form has within a host, and what it has asleep."""

SIDE_BY_SIDE = 6
"""So many runs of tests that sleep go on at once."""

whole_suite_too = pytest.mark.parametrize(
    "whole", [pytest.param(False, id="it alone"), pytest.param(True, id="whole suite", marks=pytest.mark.long)]
)
"""Whether the one test finds a fault, and, in the long form, whether it is the only one that fails."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """One line of the suite."""

    test: str
    verdict: str
    reason: str
    took_ns: int


@dataclass(frozen=True, slots=True)
class Report:
    """One run of the suite: its exit status, and one outcome a test."""

    status: int
    outcomes: tuple[Outcome, ...]
    errors: str

    @property
    def failed(self) -> dict[str, str]:
        """Return what failed, with its reason."""
        return {each.test: each.reason for each in self.outcomes if each.verdict == "fail"}

    def verdict(self, test: str) -> str:
        """Return the verdict of one test, or 'absent'."""
        return next((each.verdict for each in self.outcomes if each.test == test), "absent")


def program(build: Path) -> Path:
    """Return the suite of a build; without one there is nothing to test."""
    path = build / "bin" / "cadge-conformance"
    if not path.exists():
        pytest.skip(f"{path} is not built")
    return path


def suppressions(module: Path) -> list[Path]:
    """Return the leaks that are known to be the library's: beside the layer, or else beside its wire."""
    style, _, substrate = module.stem.partition("-")
    files = [ROOT / "layers" / folder / f"{substrate}.supp" for folder in (style, f"wire/{substrate}")]
    return [file for file in files if file.exists()][:1]


def stated(module: Path) -> list[str]:
    """Return the options with what the layer file says; without one, none."""
    style, _, substrate = module.stem.partition("-")
    file = ROOT / "layers" / style / f"{substrate}.layer.yml"
    if not file.exists():
        return []
    read = ["awk", "-f", ROOT / "ci/layer_facts.awk", file]
    facts = subprocess.run(read, capture_output=True, text=True, check=True, timeout=30).stdout.splitlines()
    return [word for fact in facts for word in ("--stated", fact)]


def run(build: Path, module: Path, *options: str, deadline_s: int = 240, under: Sequence[str] = ()) -> Report:
    """Run the suite on one module; `under` is a command that starts it."""
    environment = dict(os.environ)
    environment.pop("LD_PRELOAD", None)
    if build == BUILDS["asan"]:
        known = suppressions(module)
        # Leaks of libraries without frame pointers are told by a full unwind, which is slow: only where one is known,
        # and no deeper than those lie.
        unwind = ":fast_unwind_on_malloc=0:malloc_context_size=14" if known else ""
        # Otherwise the runtime of clang 14 takes its own header before a block of thread-local storage for one of glibc
        # wherever the block lies 16 bytes into a page, and the leak check crashes on the range it reads there. What the
        # block points to is found all the same: by way of the thread's own record of its blocks.
        environment["ASAN_OPTIONS"] = f"detect_leaks=1:exitcode=23:abort_on_error=0:intercept_tls_get_addr=0{unwind}"
        environment["LSAN_OPTIONS"] = ":".join(["print_suppressions=0", *(f"suppressions={file}" for file in known)])
    done = subprocess.run(
        [
            *under,
            program(build),
            "--modules",
            build / "layers",
            "--module",
            module,
            "--json",
            *stated(module),
            *options,
        ],
        capture_output=True,
        text=True,
        timeout=deadline_s,
        env=environment,
        cwd=ROOT,
    )
    if done.returncode not in (0, 1, SKIPPED):
        pytest.fail(f"the suite itself ended with {done.returncode}: {done.stderr[-2000:]}")
    outcomes = tuple(
        Outcome(test=line["test"], verdict=line["verdict"], reason=line["reason"], took_ns=line["took_ns"])
        for line in json.loads(done.stdout)
    )
    return Report(status=done.returncode, outcomes=outcomes, errors=done.stderr)


def only(*tests: str) -> list[str]:
    """Return the options for these tests alone."""
    return [word for test in tests for word in ("--only", test)]


@dataclass(frozen=True, slots=True)
class Sleeper:
    """A run of tests that sleep, in block mode."""

    build: str
    module: Path
    options: tuple[str, ...]

    def run(self) -> Report:
        """Run it."""
        return run(BUILDS[self.build], self.module, "--wait", "block", *self.options)


@dataclass(frozen=True, slots=True)
class Asleep:
    """The runs that go on side by side."""

    begun: dict[Sleeper, Future[Report]]

    def report(self, sleeper: Sleeper) -> Report:
        """Wait for a run; whoever asks once more, as a test that is tried again, gets one of its own, alone."""
        future = self.begun.pop(sleeper, None)
        return sleeper.run() if future is None else future.result()

    def alone(self, sleeper: Sleeper) -> Report:
        """Run it once more, alone: whoever is held up by the runs beside it does not sleep when it should."""
        futures.wait(self.begun.values())
        return sleeper.run()


@pytest.fixture(scope="module")
def asleep(request: pytest.FixtureRequest) -> Iterator[Asleep]:
    """Return what becomes of every run of this module that mostly sleeps: they go on side by side."""
    chosen = [item.callspec.params for item in request.session.items if hasattr(item, "callspec")]
    with ThreadPoolExecutor(SIDE_BY_SIDE) as pool:
        yield Asleep({each["sleeper"]: pool.submit(each["sleeper"].run) for each in chosen if "sleeper" in each})


@cache
def layer_file(layer: str) -> Mapping[str, Any]:
    """Return what a layer's file says; nothing where there is none."""
    style, _, substrate = layer.partition("-")
    file = ROOT / "layers" / style / f"{substrate}.layer.yml"
    return yaml.safe_load(file.read_text(encoding="utf-8")) if file.exists() else {}


def known_faults(module: Path, place: str) -> dict[str, str]:
    """Return the tests that the layer's library is known to fail at this place, and what it does then."""
    listed = layer_file(module.stem).get("known_faults", [])
    return {
        fault["test"]: fault["reason"] for fault in listed if fault.get("place") == place and "provider" not in fault
    }


def place_to_open(module: Path) -> str:
    """Return the place where growth is looked for: a layer opens and closes in the same way at each of its places."""
    places = layer_file(module.stem)["places"]
    return "within" if "within" in places else str(places[0])


def check(report: Report, known: Mapping[str, str] | None = None) -> None:
    """Skip what cannot be had here, show what failed; a known fault of a library is a skip that says what it did."""
    if report.status == SKIPPED:
        pytest.skip("the layer does not do that here")
    excused = {test: reason for test, reason in (known or {}).items() if test in report.failed}
    lines = [f"not ok {test}: {reason}" for test, reason in report.failed.items() if test not in excused]
    assert not lines, "\n".join([*lines, report.errors[-4000:]])
    for test, reason in (known or {}).items():
        if report.verdict(test) == "ok":
            # Some show now and then only; whoever reads this for weeks takes the entry out.
            warnings.warn(f"known fault not seen: {test} passed; the layer file says: {reason}", stacklevel=2)
    if excused:
        pytest.skip("; ".join(f"known fault of the library, {test}: {reason}" for test, reason in excused.items()))
    assert report.status == 0


def layers_of(build: Path) -> list[Path]:
    """Return the layers that were built on the system's libraries, without shims; ci/conformance runs the others."""
    modules = (build / "layers").glob("*.so")
    return sorted(path for path in modules if not path.name.startswith("shim-") and "@" not in path.name)


@cache
def wire_of(module: Path) -> str:
    """Return the wire that the layer's style stands on, which has tests of its own at both places; or nothing."""
    style, _, substrate = module.stem.partition("-")
    files = (ROOT / f"layers/{style}/style.mk", ROOT / f"layers/wire/{substrate}/wire.mk")
    return substrate if all(file.exists() for file in files) else ""


@cache
def wire_by_style(turn: int) -> dict[str, str]:
    """Return one wire for each style that stands on wires: the next one for the next style, so that each has its turn.

    Layers of one style differ in the wire alone. Each turn pairs style and wire differently.
    The wire that takes longest has one style a turn.
    """
    wires: dict[str, list[str]] = {}
    for module in layers_of(BUILDS["asan"]):
        if wire := wire_of(module):
            wires.setdefault(module.stem.partition("-")[0], []).append(wire)
    chosen: dict[str, str] = {}
    for number, style in enumerate(sorted(wires)):
        here = sorted(set(wires[style]) - NEED_A_DEVICE) or wires[style]
        quick = [wire for wire in here if wire != SLOW]
        if len(quick) > 1:
            here = [SLOW] if number == turn and SLOW in here else quick
        chosen[style] = here[(number + turn) % len(here)]
    return chosen


def is_chosen(module: Path, turn: int) -> bool:
    """Say whether the short form has the layer: it has each that stands on no wire, and each style once."""
    return not wire_of(module) or module.stem in {"-".join(pair) for pair in wire_by_style(turn).items()}


def layer_cases() -> list[object]:
    """Return every built layer at every place in every wait mode, in both builds; between hosts WAY_TESTS alone, too.

    The short form has it under sanitizers, polling; what these hide is for test_layer_does_not_grow, what sleeps for
    test_what_sleeps. A style it has over every wire at `self`, over one wire within one host, and over another asleep.
    """
    return [
        pytest.param(
            name,
            module.name,
            place,
            wait,
            few,
            id=f"{name}-{module.stem}-{place}-{wait}" + "-way" * few,
            marks=[
                *([] if place == "self" else [pytest.mark.alone if wait == "block" else pytest.mark.paired]),
                *[pytest.mark.long]
                * (
                    name == "release"
                    or wait == "block"
                    or (place == "between" and not few)
                    or (place == "between" and wire_of(module) != "")
                    or (place == "within" and not is_chosen(module, WITHIN))
                ),
            ],
        )
        for name, build in BUILDS.items()
        for module in layers_of(build)
        for place in PLACES
        for wait in WAITS
        for few in (False, True)[: 2 if (name, place, wait) == ("asan", "between", "poll") else 1]
    ]


def shim_cases() -> list[object]:
    """Return every built shim over one layer of sockets, which both builds always have."""
    return [
        pytest.param(
            name,
            module.stem.removeprefix("shim-"),
            wait,
            id=f"{name}-{module.stem}-{wait}",
            marks=[
                pytest.mark.alone if wait == "block" else pytest.mark.paired,
                *[pytest.mark.long] * (name == "release" or wait == "block"),
            ],
        )
        for name, build in BUILDS.items()
        for module in sorted((build / "layers").glob("shim-*.so"))
        for wait in WAITS
    ]


def sleepers() -> list[object]:
    """Return a run of the tests that sleep for each layer that there is within one host, and for each shim.

    The short form has a style over one wire.
    """
    layers = BUILDS["asan"] / "layers"
    under: dict[str, tuple[Path, list[str]]] = {}
    for module in layers_of(BUILDS["asan"]):
        known = known_faults(module, "within")
        under[module.stem] = module, only(*(test for test in SLEEPING_TESTS if test not in known))
    for shim in sorted(layers.glob("shim-*.so")):
        options = ["--shim", shim.stem.removeprefix("shim-"), *only(*SLEEPING_TESTS)]
        under[shim.stem] = layers / "sockets-tcp.so", options
    return [
        pytest.param(
            Sleeper("asan", module, tuple(options)),
            id=name,
            marks=[pytest.mark.long] * (not is_chosen(layers / f"{name}.so", ASLEEP)),
        )
        for name, (module, options) in under.items()
    ]


def short(cases: list[object]) -> set[str]:
    """Return the names of those cases that the short form has."""
    marked = [case for case in cases if isinstance(case, ParameterSet)]
    return {str(case.id) for case in marked if not any(mark.name == "long" for mark in case.marks)}


def test_the_short_form_has_each_style_and_each_wire_once() -> None:
    """Every layer at one place at least; a style over one wire a place and mode, and each wire under a style."""
    modules = layers_of(BUILDS["asan"])
    wires = {module.stem: wire for module in modules if (wire := wire_of(module))}
    if not wires:
        pytest.skip("no style on a wire is built")
    styles = {name.partition("-")[0] for name in wires}
    layer, grown = short(layer_cases()), short(growth_cases())
    assert {f"asan-{module.stem}-self-poll" for module in modules} <= layer
    within = [name for name in wires if f"asan-{name}-within-poll" in layer]
    asleep = [name for name in wires if name in short(sleepers())]
    for names in (within, asleep):
        assert sorted(name.partition("-")[0] for name in names) == sorted(styles)
        assert {wires[name] for name in names} >= set(wires.values()) - NEED_A_DEVICE
    assert not set(within) & set(asleep)
    assert sorted(wires[name] for name in wires if f"release-{name}" in grown) == sorted(
        {wires[name] for name in within}
    )
    assert not [
        name for name in layer if "between" in name and name.split("-between")[0].removeprefix("asan-") in wires
    ]
    others = [module.stem for module in modules if module.stem not in wires]
    assert {f"asan-{name}-{place}" for name in others for place in ("within-poll", "between-poll-way")} <= layer


@pytest.mark.alone
@pytest.mark.parametrize("sleeper", sleepers())
def test_what_sleeps(sleeper: Sleeper, asleep: Asleep) -> None:
    report = asleep.report(sleeper)
    check(asleep.alone(sleeper) if report.failed else report)


@pytest.mark.filterwarnings("default:known fault not seen")
@pytest.mark.parametrize(("name", "module", "place", "wait", "few"), layer_cases())
def test_layer(name: str, module: str, place: str, wait: str, few: bool) -> None:
    build = BUILDS[name]
    path = build / "layers" / module
    known = known_faults(path, place)
    # A known hang lasts until its deadline: it is waited for in the release build alone.
    left_out = [word for test in known if name == "asan" and test != ENDS_CLEAN for word in ("--skip", test)]
    chosen = only(*WAY_TESTS) if few else ["--skip", "no_growth"]
    check(run(build, path, "--place", place, "--wait", wait, *left_out, *chosen), known)


def test_a_known_fault_that_has_gone_is_noticed() -> None:
    passed = Outcome(test="peer_dies", verdict="ok", reason="", took_ns=1)
    with pytest.warns(UserWarning, match="known fault not seen: peer_dies passed; .* it hangs"):
        check(Report(status=0, outcomes=(passed,), errors=""), {"peer_dies": "it hangs"})


@pytest.mark.paired
def test_peregrine_in_place() -> None:
    """Messages that stay in their sender's memory, from a packet's length on: what a driver's buffers lie in."""
    build = BUILDS["asan"]
    check(run(build, build / "layers" / "peregrine-shm.so", "--set", "in_place_bytes=1", "--cycles", "30"))


def growth_cases() -> list[object]:
    """Return every built layer in both builds; the short form has few, in release: each wire under one style."""
    style_of = {wire: style for style, wire in wire_by_style(WITHIN).items()}
    under_one = {f"{style}-{wire}" for wire, style in style_of.items()}
    return [
        pytest.param(
            name,
            module.name,
            place,
            id=f"{name}-{module.stem}",
            marks=[
                pytest.mark.paired,
                *[pytest.mark.long]
                * (name == "asan" or place == "between" or (wire_of(module) != "" and module.stem not in under_one)),
            ],
        )
        for name, build in BUILDS.items()
        for module in layers_of(build)
        for place in [place_to_open(module)]
    ]


@pytest.mark.parametrize(("name", "module", "place"), growth_cases())
def test_layer_does_not_grow(name: str, module: str, place: str) -> None:
    """Resident memory can be judged without sanitizers only. Cheap layers are opened a thousand times at once."""
    build = BUILDS[name]
    path = build / "layers" / module
    report = run(build, path, "--place", place, "--only", "no_growth", "--cycles", "50" if name == "asan" else "100")
    check(report)
    if all(each.took_ns < 100_000_000 for each in report.outcomes if each.test == "no_growth"):
        check(run(build, path, "--place", place, "--only", "no_growth", "--cycles", "1000"))


def test_a_small_limit_of_locked_memory_is_enough_for_io_uring() -> None:
    """The kernel gives back the memory of a ring that was closed later, so that opens in a row reach the limit."""
    module = BUILDS["release"] / "layers/sockets-uring.so"
    if not module.exists() or not shutil.which("prlimit") or not shutil.which("setpriv"):
        pytest.skip("this takes sockets-uring, prlimit and setpriv")
    unprivileged = ("setpriv", "--bounding-set", "-ipc_lock", "--") if os.geteuid() == 0 else ()
    under = ("prlimit", "--memlock=1048576:1048576", *unprivileged)
    check(run(BUILDS["release"], module, "--place", "within", *only("no_growth"), "--cycles", "1000", under=under))


@pytest.mark.parametrize(
    ("layer", "setting", "words"),
    [
        ("fm-ucx", "packet_bytes=513", "is '513', not a multiple of 8 from 512 to 8128"),
        ("fm-ofi", "packet_bytes=16392", "from 512 to 16384"),
        ("am-ucx", "packet_bytes=1k", "is '1k', not a multiple of 8"),
        ("pm-ucx", "packet_bytes=1024", "the style's packets have one size"),
        ("vmmc-ucx", "packet_bytes=1024", "the style's packets have one size"),
        ("am-ucx", "off=zero_copy_send", "it can be protection, flow_control, zero_copy_receive"),
        ("fm-ucx", "off=flow_control+credits", "cannot be 'credits' here; it can be flow_control"),
        ("bip-ucx", "off=protection", "nothing of this layer can be switched off"),
    ],
)
def test_a_setting_that_a_style_does_not_have_is_refused(layer: str, setting: str, words: str) -> None:
    module = BUILDS["release"] / f"layers/{layer}.so"
    if not module.exists():
        pytest.skip(f"{layer} is not built")
    report = run(BUILDS["release"], module, "--set", setting, *only("opens_and_limits"))
    assert words in report.failed["opens_and_limits"]


@pytest.mark.parametrize("layer", ["am-ucx", "bip-ofi", "fm-ucx"])
@pytest.mark.parametrize("packet_bytes", [512, 8128])
@pytest.mark.first(1)
def test_packets_of_other_lengths(layer: str, packet_bytes: int) -> None:
    """What is longer than a packet goes another way, which begins at another length."""
    build = BUILDS["asan"]
    module = build / f"layers/{layer}.so"
    if not module.exists():
        pytest.skip(f"{layer} is not built")
    tests = only("message_odd_sizes", "message_max", "payload_intact", "depth_max", "order_as_claimed")
    check(run(build, module, "--place", "within", "--set", f"packet_bytes={packet_bytes}", *tests))


def test_one_test_of_a_layer_that_does_not_open_here_is_a_skip() -> None:
    module = BUILDS["release"] / "layers/peregrine-ip.so"
    powerless = ("setpriv", "--bounding-set", "-net_raw") if os.geteuid() == 0 else ()
    report = run(BUILDS["release"], module, "--only", "no_growth", "--cycles", "5", under=powerless)
    assert report.status == SKIPPED, report
    assert report.verdict("opens_and_limits") == report.verdict("no_growth") == "skip"


@pytest.mark.alone
@pytest.mark.long
@pytest.mark.timeout(900)
@pytest.mark.parametrize("module", [path.name for path in layers_of(BUILDS["release"])])
def test_layer_opens_a_thousand_times(module: str) -> None:
    build = BUILDS["release"]
    place = "self" if module.startswith("null-") else "within"
    options = ("--place", place, "--only", "no_growth", "--cycles", "1000", "--scale", "5")
    check(run(build, build / "layers" / module, *options, deadline_s=800))


@pytest.mark.parametrize(("name", "shim", "wait"), shim_cases())
@pytest.mark.first(2)
def test_shim(name: str, shim: str, wait: str) -> None:
    build = BUILDS[name]
    report = run(build, build / "layers" / "sockets-tcp.so", "--shim", shim, "--wait", wait, "--cycles", "50")
    check(report)


HELD = ("--set", "delay.delay_ns=1")
WORKED = ("--set", "delay.send_ns=1000", "--set", "delay.receive_ns=1000")


@pytest.mark.paired
@pytest.mark.parametrize(
    ("layer", "given"),
    [
        pytest.param("sockets-tcp", HELD, id="messages are held"),
        pytest.param("pm-ucx", (*WORKED, *only(*ONE_SIDED_TESTS)), id="one-sided operations are worked for"),
        pytest.param("pm-ucx", (*HELD, *only("capability_lies", *ONE_SIDED_TESTS)), id="they are not granted"),
        pytest.param("pm-ucx", WORKED, id="all are worked for", marks=pytest.mark.long),
    ],
)
def test_shim_delay(layer: str, given: tuple[str, ...]) -> None:
    """What it holds it cannot let pass by; where it holds nothing it grants one-sided operations, too."""
    build = BUILDS["asan"]
    module = build / "layers" / f"{layer}.so"
    if not module.exists():
        pytest.skip(f"{layer} is not built")
    report = run(build, module, "--shim", "delay", *given, "--cycles", "50")
    check(report)
    if layer != "sockets-tcp":
        granted = HELD[1] not in given
        assert (report.verdict("put_get_fetch_add") == "ok") is granted


def bad(fault: str, build: Path = BUILDS["release"]) -> Path:
    """Return the adapter with that fault."""
    program(build)
    path = build / "tests" / f"bad-{fault}.so"
    assert path.exists(), f"{path} is not built"
    return path


@pytest.mark.parametrize(
    "wait",
    [
        pytest.param("poll", marks=pytest.mark.paired),
        pytest.param("block", marks=[pytest.mark.alone, pytest.mark.long]),
    ],
)
@pytest.mark.parametrize("name", BUILDS)
@pytest.mark.first(1)
def test_the_sound_one_passes_everything(name: str, wait: str) -> None:
    build = BUILDS[name]
    report = run(build, bad("nothing", build), "--wait", wait, "--cycles", "60")
    assert report.failed == {}
    skipped = {each.test for each in report.outcomes if each.verdict == "skip"}
    # Nearly nothing is skipped here, or the suite would prove nothing of its own tests.
    # (Its messages are too short for the one that asks for long ones.)
    assert skipped <= {"open_bad_device", "long_stay_warm", "layer_file_true", *SLEEPING_TESTS}
    for test in SLEEPING_TESTS:
        assert (report.verdict(test) == "ok") == (wait == "block"), test


@pytest.mark.parametrize("name", BUILDS)
def test_an_adapter_in_cpp_passes(name: str) -> None:
    build = BUILDS[name]
    program(build)
    path = build / "tests/test-cpp.so"
    assert path.exists(), f"{path} is not built"
    check(run(build, path, "--place", "self", "--cycles", "50"))


@pytest.mark.alone
@pytest.mark.parametrize(
    "sleeper",
    [Sleeper(name, build / "tests" / "bad-nothing.so", tuple(only(*SLEEPING_TESTS))) for name, build in BUILDS.items()],
    ids=list(BUILDS),
)
def test_the_sound_one_sleeps_and_wakes(sleeper: Sleeper, asleep: Asleep) -> None:
    report = asleep.report(sleeper)
    report = asleep.alone(sleeper) if report.failed else report
    assert {test: report.verdict(test) for test in SLEEPING_TESTS} == dict.fromkeys(SLEEPING_TESTS, "ok")
    assert report.failed == {}


@pytest.mark.paired
@whole_suite_too
@pytest.mark.parametrize(("fault", "test"), FAULTS.items())
def test_a_fault_fails_the_test_of_its_name(fault: str, test: str, whole: bool) -> None:
    report = run(BUILDS["release"], bad(fault), "--cycles", "60", *([] if whole else only(test)))
    assert list(report.failed) == [test]
    assert report.status == 1
    if test == "poll_never_sleeps":
        assert "known_faults in sleeps.layer.yml" in report.failed[test]


def test_memory_that_was_freed_is_no_growth() -> None:
    check(run(BUILDS["release"], bad("leaves-holes"), "--cycles", "60", *only("no_growth")))


def check_lost_wake(report: Report, test: str) -> None:
    """Hold that the test found a wake that got lost, and no other did."""
    assert list(report.failed) == [test]
    assert "kept sleeping" in report.failed[test] or "wait slept" in report.failed[test]


@pytest.mark.alone
@pytest.mark.parametrize(
    ("sleeper", "test"),
    [
        pytest.param(Sleeper("release", BUILDS["release"] / f"tests/bad-{fault}.so", tuple(only(test))), test, id=fault)
        for fault, test in SLEEPING_FAULTS.items()
    ],
)
def test_a_wake_that_gets_lost_fails_the_test_of_its_name(sleeper: Sleeper, test: str, asleep: Asleep) -> None:
    assert sleeper.module.exists(), f"{sleeper.module} is not built"
    report = asleep.report(sleeper)
    check_lost_wake(report if report.failed else asleep.alone(sleeper), test)


@pytest.mark.alone
@pytest.mark.long
@pytest.mark.parametrize(("fault", "test"), SLEEPING_FAULTS.items())
def test_a_wake_that_gets_lost_fails_no_other_test(fault: str, test: str) -> None:
    check_lost_wake(run(BUILDS["release"], bad(fault), "--wait", "block", "--cycles", "20"), test)


def test_where_a_layer_does_not_open_nothing_else_is_tried() -> None:
    report = run(BUILDS["release"], bad("does-not-open"), "--cycles", "20")
    assert list(report.failed) == ["opens_and_limits"]
    after = [each for each in report.outcomes if each.test not in ("table_is_sound", "one_export", "library_stated")]
    assert {each.verdict for each in after[1:] if each.test != ENDS_CLEAN} == {"skip"}
    assert all("opens_and_limits failed" in each.reason for each in after[1:] if each.test != ENDS_CLEAN)


@pytest.mark.paired
def test_what_came_twice_is_called_that() -> None:
    report = run(BUILDS["release"], bad("repeats-often"), "--cycles", "20", "--only", "message_max")
    assert "delivered twice" in report.failed["message_max"]


def test_a_test_that_is_left_out_says_so() -> None:
    few = only("message_empty", FAULTS["drops"])
    report = run(BUILDS["release"], bad("drops"), *few, "--skip", FAULTS["drops"])
    assert report.verdict(FAULTS["drops"]) == "skip"
    assert report.verdict("message_empty") == "ok"
    assert report.verdict("message_one_byte") == "absent"
    assert report.failed == {}


@pytest.mark.paired
@whole_suite_too
@pytest.mark.parametrize(("fault", "words"), [("crashes", "killed by signal 6"), ("hangs", "no verdict in time")])
def test_a_process_that_dies_or_hangs_costs_one_test(fault: str, words: str, whole: bool) -> None:
    later = ("describe_path_true", "peer_dies")
    few = [] if whole else only("capability_lies", *later)
    report = run(BUILDS["release"], bad(fault), "--cycles", "20", "--deadline", "2", *few)
    assert list(report.failed) == ["capability_lies"]
    assert words in report.failed["capability_lies"]
    assert [report.verdict(test) for test in later] == ["ok", "ok"]


@pytest.mark.paired
@pytest.mark.parametrize("fault", ["hangs-in-poll", "hangs-under-a-launcher"])
def test_a_hung_test_shows_where_its_ranks_are(fault: str) -> None:
    if "launcher" in fault and not shutil.which("mpirun"):
        pytest.skip("mpirun is not installed")
    report = run(BUILDS["release"], bad(fault), "--deadline", "2", *only("message_empty"))
    assert list(report.failed) == ["message_empty"]
    ranks = report.errors.split("# rank ")[1:]
    assert [rank[:2] for rank in ranks] == ["0,", "1,"]
    for rank in ranks:
        named = [line.split()[1].split("+")[0] for line in rank.splitlines() if f"(bad-{fault}.so)" in line]
        assert named[:2] == ["spin_for_ever", "base_poll"], report.errors
        assert "test_message_empty+" in rank


@pytest.mark.paired
def test_threads_that_take_no_signal_are_one_line_of_a_rank() -> None:
    report = run(BUILDS["release"], bad("hangs-beside-threads"), "--deadline", "2", *only("message_empty"))
    lines = [line for line in report.errors.splitlines() if line.startswith("# rank ") and "block signals" in line]
    assert [re.findall(r"\d+", line)[:2] for line in lines] == [["0", "5"], ["1", "5"]], report.errors
    assert report.errors.count("spin_for_ever+") == 2


@pytest.mark.parametrize(
    ("fact", "words"),
    [
        ("library=UCX", ("library", "'UCX'", "'Linux sockets'")),
        ("style=am", ("style", "'am'", "'bad'")),
        ("substrate=foo", ("substrate", "'foo'", "'nothing'")),
        ("rpc=emulated", ("rpc", "'emulated'", "'native'")),
        ("reliable=false", ("reliable", "'false'", "'true'")),
        ("launcher=mpirun", ("launcher", "'mpirun'", "'direct'")),
        ("places=within between", ("places", "'within between'", "does not claim 'between'")),
        ("places=between", ("places", "'between'", "claims 'within'")),
        ("min_bytes=any any 4096", ("message_bytes_max", "4096", "up to 65536")),
        ("min_bytes=within poll 65538", ("message_bytes_max", "65538", "up to 65536")),
        ("todo=title, library", ("TODO at: title, library",)),
        ("file=no/limit.yml", ("message_bytes_max", "no limit", "{when: {min_bytes: 65537}")),
    ],
)
def test_a_layer_file_that_says_otherwise(fact: str, words: tuple[str, ...]) -> None:
    few = only("layer_file_true")
    report = run(BUILDS["release"], bad("nothing"), "--stated", fact, *few)
    assert list(report.failed) == ["layer_file_true"]
    for word in words:
        assert word in report.failed["layer_file_true"]


def test_a_layer_file_that_says_the_same() -> None:
    facts = (
        "style=bad",
        "library=Linux sockets",
        "places=within",
        "min_bytes=any block 9",
        "min_bytes=within any 65537",
    )
    options = [word for fact in facts for word in ("--stated", fact)]
    report = run(BUILDS["release"], bad("nothing"), *options, *only("layer_file_true"))
    assert report.verdict("layer_file_true") == "ok", report
    assert run(BUILDS["release"], bad("nothing"), *only("layer_file_true")).verdict("layer_file_true") == "skip"


def test_a_table_that_cannot_be_trusted_is_not_opened(tmp_path: Path) -> None:
    build = BUILDS["release"]
    source = tmp_path / "none.c"
    source.write_text("int nothing_here(void);\nint nothing_here(void) { return 1; }\n")
    module = tmp_path / "bad-empty.so"
    subprocess.run(["cc", "-shared", "-fPIC", "-o", module, source], check=True, timeout=60)
    report = run(build, module)
    assert report.status == 1
    assert "no symbol cadge_layer_entry" in report.failed["table_is_sound"]


def test_wrong_arguments() -> None:
    suite = program(BUILDS["release"])
    for arguments in (
        [],
        ["--layer", "no-such"],
        ["--layer", "x", "--place", "there"],
        ["--layer", "x", "--cycles", "0"],
        ["--module", str(bad("nothing")), "--only", "no_such_test"],
        ["--module", str(bad("nothing")), "--skip", "no_such_test"],
        ["--module", str(bad("nothing")), "--stated", "library"],
    ):
        done = subprocess.run([suite, *arguments], capture_output=True, text=True, timeout=30, cwd=ROOT)
        assert done.returncode == 2, arguments
        assert done.stderr.startswith("cadge-conformance: "), arguments


@pytest.mark.alone
def test_nothing_is_left_behind() -> None:
    """The suite's namespaces, processes and files vanish with it, also when a test failed."""
    before = sorted(path.name for path in Path("/dev/shm").iterdir())
    links = sorted(path.name for path in Path("/sys/class/net").iterdir())
    report = run(BUILDS["release"], bad("leaks-a-descriptor"), "--cycles", "20", *only("no_growth", "peer_dies"))
    assert list(report.failed) == ["no_growth"]
    tcp = BUILDS["release"] / "layers" / "sockets-tcp.so"
    if tcp.exists():
        run(BUILDS["release"], tcp, "--place", "between", "--only", "message_empty")
    assert sorted(path.name for path in Path("/sys/class/net").iterdir()) == links
    left = {path.name for path in Path("/dev/shm").iterdir()} - set(before)
    assert not {name for name in left if "cadge" in name}


@pytest.mark.paired
def test_a_leak_of_a_rank_is_found_whatever_its_launcher_says(tmp_path: Path) -> None:
    """The status of a launcher may be 0 where a rank's was not."""
    if not (mpirun := shutil.which("mpirun")):
        pytest.skip("mpirun is not installed")
    module = bad("leaks-under-a-launcher", BUILDS["asan"])
    forgetful = tmp_path / "mpirun"
    forgetful.write_text(f'#!/bin/sh\n"{mpirun}" "$@"\nexit 0\n')
    forgetful.chmod(0o755)
    report = run(BUILDS["asan"], module, "--mpirun", str(forgetful), *only("opens_and_limits"))
    assert report.status == 1
    assert report.failed.keys() == {ENDS_CLEAN}
    assert "AddressSanitizer: " in report.failed[ENDS_CLEAN]
    assert "leaks-under-a-launcher.supp" in report.failed[ENDS_CLEAN]
    assert "LeakSanitizer" in report.errors
