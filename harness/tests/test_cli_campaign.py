# SPDX-License-Identifier: BSD-3-Clause
"""Real campaigns: the smoke sweep over every layer that was built, through Ansible, drivers, store and report."""

from __future__ import annotations

import hashlib
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import jsonschema
import pytest

from cadge_harness.run.crosscheck import crosschecks
from cadge_results import Campaign, LaunchRecord, Store
from cadge_results.formats.histogram import decode
from cadge_results.store.verify import verify

from .test_umask import check_modes, cut_short

ROOT = Path(__file__).parents[2]
BUILD = Path(os.environ.get("CADGE_BUILD") or ROOT / "build")

pytestmark = pytest.mark.skipif(
    not (BUILD / "bin/cadge-driver").is_file(),
    reason=f"{BUILD} holds no programs; run: make build",
)

SHIMMED = """\
schema: cadge.sweep/2
title: the delay shim beside the bare layer
layers:
  - peregrine-shm
  - {layer: peregrine-shm, shims: [delay], settings: {delay.delay_ns: 20000}}
places: within
patterns: [{pattern: rpc, request_bytes: 8B}]
launches: 5
floors: false
duration: {default: 100ms}
"""
MANY = """\
schema: cadge.sweep/2
title: many short launches that sleep
layers: sockets-tcp
places: within
waits: block
patterns: [{pattern: rpc, request_bytes: 8B}]
launches: 8
floors: false
duration: {default: 20ms}
"""
FEW = "sockets-tcp native-ucx am-ofi rdma-mpi peregrine-xdp"
P50_CELL = re.compile(
    r'<tr data-point="[0-9a-f]+".*?<bdi>([^<]+)</bdi>.*?<td data-v="([0-9]+) [0-9]+ [0-9]+">', re.DOTALL
)


@pytest.fixture
def narrow_umask() -> Iterator[int]:
    """A umask that keeps others out, for as long as the test."""
    before = os.umask(0o077)
    yield 0o077
    os.umask(before)


@pytest.fixture(scope="module")
def surroundings(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """An environment with a state folder and a lock of its own."""
    folder = tmp_path_factory.mktemp("campaigns")
    state = folder / "state"
    state.mkdir(mode=0o700)
    plain = {
        name: value for name, value in os.environ.items() if name not in {"TESTBED", "INVENTORY", "LAYERS", "SWEEP"}
    }
    own = {"CADGE_ROOT": str(ROOT), "CADGE_BUILD": str(BUILD), "CADGE_STATE": str(state), "NO_COLOR": "1"}
    return {**plain, **own, "CADGE_RESULTS": str(folder / "results"), "CADGE_LOCK": str(folder / "lock")}


def command(*argv: str) -> list[str]:
    return [sys.executable, "-m", "cadge_cli.cli", *argv]


def run(environment: dict[str, str], *argv: str) -> tuple[int, dict[str, object]]:
    """Run a command with --json and return its exit code and its data."""
    done = subprocess.run(
        command(*argv, "--json"), env=environment, capture_output=True, text=True, check=False, timeout=280
    )
    assert done.stdout, done.stderr
    answer = json.loads(done.stdout)
    assert answer["code"] == done.returncode
    assert done.returncode in {0, 1}, f"{answer['problems']}\n{done.stderr}"
    assert isinstance(answer["data"], dict)
    return done.returncode, answer["data"]


def judge(campaign: Campaign) -> None:
    """Hold what holds for every whole campaign."""
    plan, outcomes = campaign.plan, campaign.outcomes()
    assert campaign.meta.status == "finished"
    assert verify(campaign).damages == []
    refused = sum(1 for point in plan.points if point.state == "refused")
    assert len(outcomes) == refused + sum(len(launch.point_ids) for launch in plan.launches)
    counts = Counter(outcome.status for outcome in outcomes)
    assert counts["missing"] == 0
    assert counts["failed"] == 0, {outcome.reason for outcome in outcomes if outcome.status == "failed"}
    assert counts["valid"] > counts["unsound"], {outcome.reason for outcome in outcomes if outcome.status == "unsound"}
    schema = json.loads((ROOT / "results/schema/cadge.launch-record-2.schema.json").read_text())
    for record in campaign.launches():
        jsonschema.validate(record.to_object(), schema)
        assert record.crosschecks == crosschecks(record)
        check_attempts(record)
    assert {node.host for node in campaign.nodes()} == set(campaign.meta.testbed.hosts)
    assert campaign.layout.report.stat().st_size > 10_000
    assert not (campaign.path / ".work").exists()


def check_attempts(record: LaunchRecord) -> None:
    """Hold that the numbers of each attempt fit together."""
    assert record.result is not None
    for attempt in record.result.attempts:
        if attempt.status not in {"done", "unsound"}:
            continue
        for samples in attempt.samples("latency"):
            histogram = decode(samples.histogram)
            assert samples.count == histogram.total
            assert histogram.lows[0] <= samples.min_ns <= histogram.highs[0]
            assert histogram.lows[-1] <= samples.max_ns <= histogram.highs[-1]
            low = sum(low * count for low, _high, count in histogram)
            high = sum(high * count for _low, high, count in histogram)
            assert low <= samples.sum_ns <= high


def digests(folder: Path) -> dict[str, str]:
    """Return the hash of every raw file."""
    files = [path for path in folder.rglob("*") if path.is_file() and path.name not in {"report.html", ".lock"}]
    return {str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def report_and_restore(campaign: Campaign, surroundings: dict[str, str]) -> None:
    """Hold that a report changes nothing, and that what a kill leaves on the hosts is removed."""
    before = digests(campaign.path)
    run(surroundings, "report", campaign.campaign_id)
    assert digests(campaign.path) == before, "making a report changed raw files"
    left = [Path.home() / f".cache/cadge/{campaign.campaign_id}-{host}" for host in campaign.meta.testbed.hosts]
    for folder in left:  # emulated hosts are gone by now, their files are not
        folder.mkdir(parents=True)
    run(surroundings, "testbed", "restore", campaign.campaign_id)
    assert not any(folder.exists() for folder in left)


by_root = pytest.mark.skipif(os.geteuid() != 0, reason="namespaces take root")


@pytest.mark.alone
@pytest.mark.parametrize(
    ("testbed", "launches", "layers"),
    [
        # emulated hosts show more
        pytest.param("local", 2, "sockets-tcp peregrine-shm mpi-p2p", marks=[pytest.mark.long] * (os.geteuid() == 0)),
        # one of each library and launcher: CI makes this sweep of all layers on a machine of its own
        pytest.param("emulated", 1, FEW, marks=by_root),
        pytest.param("emulated", 2, "all", marks=[by_root, pytest.mark.long]),
    ],
)
def test_the_smoke_sweep(testbed: str, launches: int, layers: str, surroundings: dict[str, str]) -> None:
    """As it is, with two launches of each point, or with one."""
    sweep = Path(surroundings["CADGE_STATE"]).parent / "smoke.yml"
    sweep.write_text((ROOT / "harness/sweeps/smoke.yml").read_text().replace("launches: 2", f"launches: {launches}"))
    _, data = run(surroundings, "run", "--sweep", str(sweep), "--testbed", testbed, "--layers", layers)
    campaign = Store(Path(surroundings["CADGE_RESULTS"])).open(str(data["campaign_id"]))
    judge(campaign)
    assert campaign.meta.testbed.kind == testbed
    if launches > 1:
        report_and_restore(campaign, surroundings)


@pytest.mark.alone
@pytest.mark.long  # of drivers by themselves: test_driver_run.py
def test_the_delay_shim_moves_the_median(surroundings: dict[str, str]) -> None:
    """20 us a side are 40 us more in the report, within 2 %; of shared memory, whose own part is below that.

    On a machine whose processors are far apart a side that idled finds its lines further away, by less than a trip.
    """
    sweep = Path(surroundings["CADGE_STATE"]).parent / "delay.yml"
    sweep.write_text(SHIMMED)
    _, data = run(surroundings, "run", "--sweep", str(sweep), "--testbed", "local")
    campaign = Store(Path(surroundings["CADGE_RESULTS"])).open(str(data["campaign_id"]))
    page = campaign.layout.report.read_text(encoding="utf-8")
    first = page.partition('<table class="full ')[2].partition("</table>")[0]
    median_ns = {layer: int(value) for layer, value in P50_CELL.findall(first)}
    assert len(median_ns) == 2, median_ns
    bare, delayed = sorted(median_ns, key=len)
    assert "delay.delay_ns=20000" in delayed
    assert 39_200 <= median_ns[delayed] - median_ns[bare] <= 40_000 + max(800, median_ns[bare])


@pytest.mark.slow
@pytest.mark.long
def test_ctrl_c_and_resume(surroundings: dict[str, str], narrow_umask: int) -> None:
    """One signal while it measures: exit code 130, nothing lost, and the rest is made by the same plan.

    So is a launch whose record is damaged meanwhile. With a narrow umask, which everything that it makes has.
    """
    sweep = Path(surroundings["CADGE_STATE"]).parent / "many.yml"
    sweep.write_text(MANY)
    argv = command("run", "--sweep", str(sweep), "--testbed", "local", "--no-report")
    process = subprocess.Popen(argv, env=surroundings, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    store = Store(Path(surroundings["CADGE_RESULTS"]))
    known = {campaign.path for campaign in store.campaigns()}
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline:
        new = [campaign for campaign in store.campaigns() if campaign.path not in known]
        if new and len(new[0].launch_ids()) >= 2:
            break
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=120)
    assert process.returncode == 130, f"{out}\n{err}"
    campaign = store.open("last")
    missing = campaign.missing_launch_ids()
    assert 0 < len(missing) < len(campaign.plan.launches)
    assert campaign.meta.status == "interrupted"
    damaged = min(campaign.launch_ids())
    cut_short(campaign.layout.launch(damaged))
    run(surroundings, "verify", "--repair")
    missing = campaign.missing_launch_ids()
    assert damaged in missing
    before = digests(campaign.layout.launches)
    code, _ = run(surroundings, "resume", "--no-report")
    assert code in {0, 1}
    assert campaign.missing_launch_ids() == ()
    after = digests(campaign.layout.launches)
    assert {name: after[name] for name in before} == before
    assert set(after) - set(before) == {f"{name}.json{end}" for name in missing for end in ("", ".sha256")}
    assert campaign.made_again() == {"damaged": {damaged}}
    assert verify(campaign).damages == []
    report_and_restore(campaign, surroundings)
    check_modes(campaign, narrow_umask)


LOOKED_AT = """\
schema: cadge.sweep/2
title: a layer held up by 20 us beside itself, and one that is as fast
layers:
  - peregrine-shm
  - {layer: peregrine-shm, shims: [delay], settings: {delay.send_ns: 20000}}
  - {layer: peregrine-shm, shims: [trace]}
baseline: peregrine-shm
places: within
patterns: [{pattern: rpc, request_bytes: 8B}]
looks: [8, 10, 11]
twin: none
floors: false
duration: {default: 30ms}
"""


@pytest.mark.long
@pytest.mark.alone
def test_looks_broken_off_after_the_first(surroundings: dict[str, str], tmp_path: Path) -> None:
    """Only what is undecided goes on, and a campaign that is broken off goes on by what it had decided."""
    sweep = tmp_path / "looked-at.yml"
    sweep.write_text(LOOKED_AT)
    argv = command("run", "--sweep", str(sweep), "--testbed", "local", "--no-report")
    process = subprocess.Popen(argv, env=surroundings, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    store = Store(Path(surroundings["CADGE_RESULTS"]))
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline and process.poll() is None:
        campaign = store.campaigns()[-1] if store.campaigns() else None
        if campaign is not None and campaign.meta.sweep == "looked-at" and campaign.decisions():
            break
        time.sleep(0.05)
    process.send_signal(signal.SIGKILL)
    process.wait(timeout=30)
    campaign = store.open("last")
    first = campaign.layout.decision(1).read_bytes()
    _, data = run(surroundings, "resume", campaign.campaign_id)
    campaign = store.open("last")
    assert campaign.layout.decision(1).read_bytes() == first
    run(surroundings, "report", campaign.campaign_id)  # where all was decided at once, there was nothing to resume
    judge(campaign)
    rounds = Counter(name for launch in campaign.plan.launches for name in launch.point_ids)
    assert set(rounds.values()) <= {8, 10, 11}
    for look, decision in zip((10, 11), campaign.decisions(), strict=False):
        assert decision.goes_on == {name for name, count in rounds.items() if count >= look}
    assert data.get("look_next", "done") == "done"
    run(surroundings, "verify", campaign.campaign_id)
