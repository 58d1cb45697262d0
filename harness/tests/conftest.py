# SPDX-License-Identifier: BSD-3-Clause
"""A checkout with three made-up layers, testbeds without hosts, and a runner that answers without measuring."""

from __future__ import annotations

import json
import shutil
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings
from pydantic import JsonValue

from cadge_cli import cli
from cadge_cli.commands import plan as commands_plan
from cadge_cli.commands import run as commands_run
from cadge_harness.paths import Checkout
from cadge_harness.plan.catalogue import Catalogue, read_catalogue
from cadge_harness.plan.site import PlanSite, SiteHost
from cadge_harness.run.runner import WORK
from cadge_harness.run.session import CampaignEnd, OnEvent, OnLaunch
from cadge_harness.testbed import testbeds
from cadge_harness.testbed.model import Host, Testbed, TestbedKind
from cadge_results import Campaign, PatternFile, Workload, read_workloads
from cadge_results.command import Caller, called
from cadge_results.formats.event import LaunchStarted
from cadge_results.formats.reason import OF_THE_DRIVER
from cadge_results.parameter_tables import digest_of

if TYPE_CHECKING:
    from .test_driver_run import Pair

settings.register_profile("untimed", deadline=None)  # machines are shared: how long an example takes says nothing
settings.load_profile("untimed")


@pytest.fixture(scope="session", autouse=True)
def _own_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Keep what modules say out of the user's cache, which would have a file for each checkout of a test."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture(scope="session", autouse=True)
def _nothing_waits_for_the_disk() -> Iterator[None]:
    """What tests store need not outlast the machine: each fsync takes milliseconds, and a campaign has hundreds."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("os.fsync", lambda _descriptor: None)
        yield


@pytest.fixture(autouse=True)
def _quiet_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """What else runs on the machine of the tests is no problem of the campaign that a test makes."""
    monkeypatch.setattr("os.getloadavg", lambda: (0.0, 0.0, 0.0))


@pytest.fixture(autouse=True)
def _nothing_typed_before() -> Iterator[None]:
    """What a test typed is in no command that a later test of this process is told to type."""
    yield
    called(Caller())


@pytest.fixture
def pair(tmp_path: Path) -> Iterator[Pair]:
    """Two processes of a launch, gone afterwards whatever happened."""
    from .test_driver_run import Pair

    made = Pair(tmp_path)
    yield made
    made.end()


@pytest.fixture
def some(pair: Pair) -> Pair:
    """As many processes as a launch has endpoints, gone afterwards as well."""
    return pair


LAYER = """\
schema: cadge.layer/1
title: A layer for tests
style: {style}
substrate: {substrate}
library: Sockets
licence: BSD-3-Clause
rpc: emulated
launcher: {launcher}
places: [within, between]
limits: [{limits}]
"""

TINY = """\
schema: cadge.sweep/2
title: tiny
vectors:
  sizes: [8B, 4KiB]
patterns:
  - {pattern: rpc, request_bytes: sizes}
launches: 3
seed: 7
duration: {default: 20ms}
"""

HARNESS = Path(__file__).parents[1]
WORKLOADS = read_workloads(HARNESS)
HISTOGRAM = "HISTFAAAACV4nJNpmSzMwMDAwgABzFCaEYjFPcpeMNh/gAic57/ADwBjTgX4"  # 1,000 samples of 1,000 ns


def _table(file: PatternFile) -> dict[str, object]:
    return {
        "digest": digest_of(file),
        "roles": list(file.roles),
    }


def driver_patterns() -> str:
    """Return what a driver that was built from this checkout's files says of them (cadge.driver-patterns/2)."""
    answer = {
        "schema": "cadge.driver-patterns/2",
        "patterns": {name: _table(file) for name, file in WORKLOADS.patterns.items()},
        "forms": {name: _table(file) for name, file in WORKLOADS.forms.items()},
        "floors": {name: {"forms": list(floor.forms)} for name, floor in WORKLOADS.floors.items()},
        "reasons": [str(reason) for reason in OF_THE_DRIVER],
    }
    return json.dumps(answer)


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Checkout:
    """A checkout where a-one and b-two are built, c-three is not, and b-two cannot block."""
    root = tmp_path / "checkout"
    (root / "layers/include/cadge").mkdir(parents=True)
    (root / "layers/include/cadge/layer.h").write_text("")
    for name, launcher, limits in (
        ("a-one", "direct", ""),
        ("b-two", "mpirun", "{when: {wait: block}, reason: b-two only polls}"),
        ("c-three", "direct", ""),
    ):
        style, substrate = name.split("-")
        (root / "layers" / style).mkdir()
        text = LAYER.format(style=style, substrate=substrate, launcher=launcher, limits=limits)
        (root / "layers" / style / f"{substrate}.layer.yml").write_text(text)
    (root / "build/layers").mkdir(parents=True)
    (root / "build/bin").mkdir()
    for name in ("a-one.so", "b-two.so", "shim-delay.so"):
        (root / "build/layers" / name).write_text("")
    (root / "build/layers/c-three.absent").write_text("libthree is missing (pkg-config three)\n")
    program = root / "build/bin/cadge-driver"
    program.write_text(f"#!/bin/sh\n[ \"$1\" = patterns ] || exit 2\ncat <<'END'\n{driver_patterns()}\nEND\n")
    program.chmod(0o755)
    for file in (*HARNESS.glob("patterns/*/*.*"), *HARNESS.glob("floors/*.yml")):
        copy = root / "harness" / file.relative_to(HARNESS)
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(file, copy)
    (root / "harness/sweeps").mkdir()
    (root / "harness/sweeps/tiny.yml").write_text(TINY)
    monkeypatch.setenv("CADGE_ROOT", str(root))
    monkeypatch.setenv("CADGE_LOCK", str(tmp_path / "lock"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("CADGE_BUILD", raising=False)
    for name in ("TESTBED", "INVENTORY", "LAYERS", "SWEEP", "TUNE"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(f"CADGE_{name}", raising=False)
    return Checkout(root)


@pytest.fixture
def catalogue(checkout: Checkout) -> Catalogue:
    """The layers of the checkout."""
    return read_catalogue(checkout)


@pytest.fixture
def site() -> PlanSite:
    """Two hosts on a machine with two cores."""
    return make_site()


def make_site(hosts: int = 2, cores: int = 2, *, shared: bool = True, raw_links: bool = True) -> PlanSite:
    """Return hosts h1, h2 and so on, with so many cores each, or all together where they are shared."""
    return PlanSite(
        name="emulated" if hosts > 1 else "local",
        hosts=tuple(SiteHost(name=f"h{number}", cpus=tuple(range(cores))) for number in range(1, hosts + 1)),
        shared=shared,
        raw_links=raw_links,
        ports=(18600, 18699),
        own_link=shared and hosts > 1,
    )


def make_testbed(kind: TestbedKind = TestbedKind.EMULATED, hosts: int = 2) -> Testbed:
    """Return a testbed that nobody made."""
    return Testbed(
        name=str(kind),
        kind=kind,
        hosts=tuple(
            Host(
                name=f"h{number}",
                management_address=f"198.18.0.1{number}",
                device="data0",
                address=f"198.19.0.1{number}",
                raw_device="raw0",
                cpus=(0, 1),
            )
            for number in range(1, hosts + 1)
        ),
        inventory_path=Path("/nowhere"),
    )


def without_checksums(campaign: Campaign) -> None:
    """Make a stored campaign one of a cadge that stored no checksums, and let its files be written."""
    for path in campaign.path.rglob("*.json.sha256"):
        path.unlink()
    campaign.layout.sweep.with_name("sweep.yml.sha256").unlink()
    meta = json.loads(campaign.layout.meta.read_text())
    del meta["checksum"]
    campaign.layout.meta.write_text(json.dumps(meta))
    for path in campaign.path.rglob("*.json"):
        path.chmod(0o644)


SAMPLES = {"endpoint": 0, "histogram": HISTOGRAM, "count": 1000, "sum_ns": 10**6, "min_ns": 1000, "max_ns": 1000}
READINGS = {
    "histogram": SAMPLES | {"sum_sq_ns2": str(10**9), "first_ns": [1000]},
    "rate": {"endpoint": 0, "amount": 8000, "elapsed_ns": 20_000_000},
}


def make_record(launch: Mapping[str, object], **changes: object) -> dict[str, object]:
    """Return what an agent would send for a launch where everything went well."""
    points = launch["points"]
    assert isinstance(points, list)
    attempts: list[dict[str, object]] = []
    sizes: list[int] = []
    for order, point in enumerate(points):
        assert isinstance(point, dict)
        workload = Workload.model_validate(point["workload"])
        pattern = WORKLOADS.file(workload.pattern)
        kept = {key: value for key, value in point.items() if key not in {"duration_ms", "deadline_ms"}}
        sizes.append(1000 * sum(pattern.moved_bytes(workload)))
        attempts.append(
            kept
            | {
                "order": order,
                "status": "done",
                "elapsed_ns": 20_000_000,
                "operations": 1000,
                "bytes": sizes[-1],
                "quantities": {pattern.main: [READINGS[pattern.main_quantity.kind]]},
                "checks": [{"name": "payload", "ok": True}],
            }
        )
    result: dict[str, object] = {
        "schema": "cadge.result/2",
        **{key: launch[key] for key in ("launch_id", "kind", "layer", "place", "wait", "seed")},
        "status": "done",
        "driver": {"version": "0.2.0", "abi": 1, "revision": "r", "compiler": "gcc"},
        "started_utc": "2026-11-21T03:00:00.123456Z",
        "wall_ns": 300_000_000,
        "attempts": attempts,
    }
    record: dict[str, object] = {
        "schema": "cadge.launch-record/2",
        "launch": launch,
        "result": result,
        "status": "done",
    }
    return record | _surroundings(launch, sum(sizes)) | changes


def _surroundings(launch: Mapping[str, object], payload: int) -> dict[str, object]:
    """Return what an agent says of a launch's processes and hosts where all is well."""
    ends = launch["endpoints"]
    assert isinstance(ends, list)
    devices: dict[str, set[str]] = {}
    for end in ends:
        devices.setdefault(end["host"], {"lo"}).update(filter(None, (end["device"], end["raw_device"])))
    zero = {"rx_bytes": 0, "tx_bytes": 0, "rx_packets": 0, "tx_packets": 0}
    data = {ends[0]["device"]: zero | {"rx_bytes": payload}} if launch["place"] == "between" else {}
    counters = [
        {"host": host, "before": dict.fromkeys(names, zero), "after": dict.fromkeys(names, zero) | data}
        for host, names in devices.items()
    ]
    others = 0 if launch["launcher"] == "direct" else None
    return {"counters": counters, "exit_codes": [0, *[others] * (len(ends) - 1)], "agent_version": "0.2.0"}


@dataclass
class FakeRunner:
    """Stands for Ansible: answers each launch at once. `stop_after` asks to stop after so many launches."""

    stop_after: int | None = None
    ended: CampaignEnd = field(default_factory=lambda: CampaignEnd(ok=True, exit_code=0))
    change: Callable[[dict[str, object]], dict[str, object] | None] = lambda record: record
    made: list[str] = field(default_factory=list)
    before_launch: Callable[[int], None] = lambda _number: None

    def __call__(
        self,
        testbed: Testbed,
        blocks: list[dict[str, JsonValue]],
        campaign: Path,
        on_event: OnEvent,
        on_launch: OnLaunch,
        stop: threading.Event,
    ) -> CampaignEnd:
        del testbed
        (campaign / WORK).mkdir(exist_ok=True)  # as the real one does
        for block in blocks:
            launches = block["launches"]
            assert isinstance(launches, list)
            for launch in launches:
                assert isinstance(launch, dict)
                if stop.is_set() or len(self.made) == self.stop_after:
                    return CampaignEnd(ok=False, exit_code=6)
                self.before_launch(len(self.made))
                on_event(LaunchStarted(launch_id=str(launch["launch_id"]), number=1, of=len(launches)))
                record = self.change(make_record(launch))
                if record is not None:
                    on_launch(record)
                    self.made.append(str(launch["launch_id"]))
        return self.ended


@pytest.fixture
def runner(monkeypatch: pytest.MonkeyPatch) -> FakeRunner:
    """Put a fake runner and a testbed without hosts in the place of the real ones."""
    fake = FakeRunner()
    monkeypatch.setattr(commands_run, "AnsibleRunner", lambda *_args, **_named: fake)
    monkeypatch.setattr(testbeds, "resolve", lambda *_args, **_named: make_testbed())
    monkeypatch.setattr(testbeds, "release", lambda _testbed: None)
    assert commands_plan is not None
    return fake


@dataclass(frozen=True)
class Answer:
    """What a command said."""

    code: int
    out: str
    err: str


@pytest.fixture
def cadge(capsys: pytest.CaptureFixture[str]) -> Callable[..., Answer]:
    """Run a command in this process."""

    def call(*argv: str) -> Answer:
        code = cli.invoke(list(argv))
        said = capsys.readouterr()
        return Answer(code, said.out, said.err)

    return call
