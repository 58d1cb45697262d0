# SPDX-License-Identifier: BSD-3-Clause
"""Campaigns of strangers: whatever a stored document says, every command answers, and verify names the file."""

from __future__ import annotations

import json
import random
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from cadge_harness.paths import Checkout, selftests_of
from cadge_harness.run.build_identity import build_digest
from cadge_results import Campaign, NativeFile, NodeFacts, Store
from cadge_results.formats.selftest import BetweenCampaigns, put_selftest
from cadge_results.store.writer import CampaignWriter, put_for_ever

from .conftest import HARNESS, Answer, FakeRunner
from .mutants import Steps, change, mutate, replace, seal
from .test_imports import KEPT
from .test_looks import histogram
from .test_selftest import made as a_selftest

Cadge = Callable[..., Answer]
SWEEP = """\
schema: cadge.sweep/2
title: what every kind of document is stored for
layers: [a-one, b-two]
baseline: a-one
places: within
patterns:
  - {pattern: rpc, request_bytes: [8B]}
  - {pattern: stream, bytes: [4KiB]}
launches: 2
twin: none
seed: 7
duration: {default: 20ms}
"""
LOOKED_AT = SWEEP.replace("launches: 2", "looks: [9, 12]").replace("[8B]", "[8B, 64B]")
NODE = {
    "schema": "cadge.node/1",
    "kernel": {"release": "6.18.5", "version": "#1", "machine": "x86_64"},
    "cmdline": "quiet",
    "cpu": {"model": "17", "model name": "AMD EPYC 9B14", "microcode": "0x1"},
    "cores": {"logical": 2, "online": "0-1", "sockets": 1, "threads_per_core": 1},
    "mitigations": {"spectre_v2": "Mitigation: Retpolines", "meltdown": "Not affected"},
    "governor": {"unknown": "no cpufreq in this kernel"},
    "virtualisation": "kvm",
    "clocksource": {"current": "tsc", "available": "tsc"},
    "tsc": {"constant_tsc": True, "nonstop_tsc": True},
    "memory": {"total_bytes": 25276514304},
    "hugepages": {"total": 0},
    "thp": "always [madvise] never",
    "libc": "glibc 2.36",
    "python": "3.11.2",
    "libraries": {"libucp.so.0": {"version": "1.13.1", "file": "/usr/lib/libucp.so.0", "build_id": "ab" * 20}},
    "programs": {"nginx": {"version": "1.22", "file": "/usr/sbin/nginx", "build_id": "cd" * 20}},
    "configuration": {"/etc/ucx/ucx.conf": {"bytes": 12, "sha256": "a" * 64, "package": None}},
    "namespaces": {"net": "net:[4026532000]"},
    "limits": {"memlock": {"soft": 8388608, "hard": 8388608}, "nofile": {"soft": 1024, "hard": 4096}},
    "interfaces": {"data0": {"mtu": 1500, "driver": "veth", "speed": 10000}},
    "yama": {"ptrace_scope": "0"},
    "can": {"process_vm_readv": True, "af_xdp": {"unknown": "x"}, "namespaces": True},
}
PIN = {
    "selftest_id": "20261121T030000Z-0123abcd", "finished_utc": "2026-11-21T03:30:00Z", "version": "0.2.0",
    "build": "0" * 64, "machine": {"cpu": [{"model": "17"}], "cores": [2], "virtualisation": ["kvm"], "kernel": ["6"]},
    "verdict": "passed", "parts": {"delay": "passed", "stall": "passed"}, "says": {"delay": "x", "stall": "y"},
    "between": [{"place": "within", "wait": "poll", "form": "rpc", "common": 0.01, "spread": 0.01, "freedom": 4.0,
                 "campaigns": 5}],
}  # fmt: skip
BETWEEN = (
    BetweenCampaigns(place="within", wait="poll", form="rpc", common=0.01, spread=0.01, freedom=4.0, campaigns=5),
)
MUTANTS = 6
IN_PLACE_OF = {"plan.json": ("launches/",), "looks": ("launches/",), "decisions": ("looks/",)}
"""Of two documents that do not fit each other, the later one is named, and that may be the one that is as it was."""
READERS = (
    "report {first}",
    "report {first} --format text",
    "report {first} --against {other} -o {out}",
    "export {first} --format csv",
    "export {first} --format json",
    "export {first} --format loggp",
    "export {first} --format jsonl --table attempts",
    "export {first} --format jsonl --table samples",
    "export {first} --format jsonl --table launches",
    "export {first} --format jsonl --table hosts",
    "export {first} --format jsonl --table campaigns",
    "figures {first}",
    "compare {first} {other}",
    "compare {first}:a-one {first}:b-two",
    "compare {other} {first} --format html -o {out}",
    "history {first} {other}",
    "why {first} {other} a-one,within,poll,rpc,8B",
    "status {first}",
    "status {first} --json",
    "study peregrine {first} -o {out}",
    "study sc98 {first} -o {out}",
    "study press {first} -o {out}",
    "study logp {first} -o {out}",
    "scale {first}",
    "crosscheck {first}",
    "ablate a {first}",
    "import --list --into {first}",
    "publish {first} --to {site} --dry-run",
    "publish {first} --to {site} --yes",
    "verify {first}",
    "query {sql} {first}",
    "resume {first} --no-report",
    "resume {first} --failed --no-report",
)
SQL = "SELECT * FROM cells, hosts, launches, campaigns"


@dataclass(frozen=True)
class Ground:
    """Two campaigns that stay as they are, and where copies of them are changed."""

    kept: Path
    first: str
    other: str
    campaigns: Path
    scratch: Path

    def fresh(self) -> Path:
        """Return a copy of the first campaign in the place where it was."""
        shutil.rmtree(self.campaigns)
        shutil.copytree(self.kept, self.campaigns, symlinks=True)
        return self.campaigns / self.first

    def command(self, line: str) -> list[str]:
        names = {"first": self.first, "other": self.other, "out": str(self.scratch / "out.html"),
                 "site": str(self.scratch / "site"), "sql": SQL}  # fmt: skip
        return [part.format(**names) for part in line.split()]


@pytest.fixture
def ground(checkout: Checkout, cadge: Cadge, runner: FakeRunner, tmp_path: Path) -> Ground:
    """Two campaigns, the first with a document of every kind."""
    runner.change = _measured
    (checkout.root / "analysis").mkdir()
    (checkout.root / "analysis/studies").symlink_to(HARNESS.parent / "analysis/studies")
    for sweep in (LOOKED_AT, SWEEP.replace("seed: 7", "seed: 8")):
        (checkout.sweeps / "tiny.yml").write_text(sweep)
        answer = cadge("run", "--sweep", "tiny", "--no-report")
        assert answer.code == 0, answer.err
    runner.change = lambda record: record
    first, other = (one for one in Store(checkout.campaigns).campaigns())
    _complete(first)
    documents = (first.layout.decisions, first.layout.later, first.layout.aside)
    assert [folder.name for folder in documents if not any(folder.rglob("*.json"))] == []
    assert cadge("import", "osu", str(KEPT / "osu-5.7-latency.txt"), "--into", first.campaign_id).code == 0
    kept = tmp_path / "kept"
    shutil.copytree(checkout.campaigns, kept)
    return Ground(kept, first.campaign_id, other.campaign_id, checkout.campaigns, tmp_path)


def _measured(record: dict[str, object]) -> dict[str, object]:
    """Let b-two be slower at one size alone, so that a part of the campaign is decided at the first look."""
    launch, result = record["launch"], record["result"]
    assert isinstance(launch, dict)
    assert isinstance(result, dict)
    for attempt in result["attempts"]:
        size = attempt["workload"]["parameters"].get("request_bytes")
        if launch["kind"] == "floor" or size is None:
            continue
        value = random.Random(f"{launch['launch_id']}/{size}").randrange(9000, 11000)
        value *= 2 if launch["layer"] == "b-two" and size == 8 else 1
        samples = {"endpoint": 0, "histogram": histogram(value), "count": 1000, "sum_ns": value * 1000}
        samples |= {"min_ns": value, "max_ns": value, "sum_sq_ns2": str(1000 * value**2), "first_ns": [value]}
        attempt["quantities"] = {"latency": [samples]}
    return record


def _complete(campaign: Campaign) -> None:
    """Store what a made-up runner does not: facts of hosts, readings of native tools, a self-test, a record aside."""
    with CampaignWriter.resume(campaign.path) as writer:
        record = next(iter(campaign.launches()))
        writer.set_aside([record.launch.launch_id], "disturbed")
        writer.add_launch(record)
        for host in ("h1", "h2"):
            writer.add_node(NodeFacts.from_object(NODE | {"host": host}, source="t"))
        point = next(one for one in campaign.plan.points if one.state == "planned")
        cell = {"cell_id": "c", "point_id": point.point_id, "tool": "NPtcp", "bytes": 8, "statistic": "mean",
                "clocked": False}  # fmt: skip
        reading = {"cell_id": "c", "round": 0, "after": campaign.plan.launches[0].launch_id, "value": 1000.5,
                   "command": "NPtcp", "wall_ns": [1, 2], "run_wait_ns": [0, None]}  # fmt: skip
        absent = {"tool": "x", "layers": ["b-two"], "reason": "absent"}
        native = {"schema": "cadge.native/1", "rounds": 1, "cells": [cell], "versions": {"NPtcp": "5"},
                  "absent": [absent], "readings": [reading]}  # fmt: skip
        put_for_ever(campaign.layout.native, NativeFile.from_object(native, source="t").to_json().encode())
    path = campaign.layout.meta
    meta = json.loads(path.read_bytes()) | {"status": "finished", "finished_utc": "2026-11-21T03:30:00Z"}
    path.write_bytes(seal(campaign.path, path, json.dumps(meta | {"selftest": PIN}).encode()))


@pytest.mark.parametrize("seed", range(24))
@pytest.mark.first(1)
def test_no_document_ends_a_command_by_surprise(ground: Ground, cadge: Cadge, seed: int) -> None:
    """Whatever was changed: no internal error, verify finds what readers refuse, and unsealed numbers are not shown."""
    dice = random.Random(seed)
    ground.fresh()
    export = ground.command("export {first} --format json")
    whole = cadge(*export).out
    for _ in range(MUTANTS):
        mutant = mutate(ground.fresh(), dice)
        readers = [ground.command(line) for line in dice.sample(READERS, 3)]
        verified, exported = cadge(*ground.command("verify {first}")), cadge(*export)
        said = {" ".join(argv): cadge(*argv) for argv in readers}
        surprises = {line: one.err for line, one in said.items() if one.code == 70}
        assert (verified.code, exported.code, surprises) in ((0, 0, {}), (7, 7, {}), (7, 0, {})), mutant
        if verified.code == 7:
            name = mutant.file.relative_to(ground.campaigns / ground.first)
            said = {str(name.with_suffix("")), *IN_PLACE_OF.get(name.parts[0], ())}
            assert any(one in verified.out for one in said), mutant
        else:
            assert not {line for line, one in said.items() if one.code == 7}, mutant
        if not mutant.sealed and exported.code == 0:
            assert exported.out == whole, mutant


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.first(1)
def test_no_self_test_ends_a_command_by_surprise(
    checkout: Checkout, cadge: Cadge, runner: FakeRunner, seed: int
) -> None:
    """Whatever was changed: a run that names it refuses it or keeps it, and one that does not goes on."""
    assert runner
    dice = random.Random(seed)
    folder = selftests_of(checkout.campaigns)
    (checkout.sweeps / "tiny.yml").write_text(SWEEP)
    path = put_selftest(folder, a_selftest(build_digest(checkout), between=BETWEEN))
    content = path.read_bytes()
    for _ in range(MUTANTS):
        mutant = change(folder, path, content, dice)
        named = cadge("run", "--sweep", "tiny", "--no-report", "--selftest", path.stem)
        plain = cadge("run", "--sweep", "tiny", "--no-report")
        reported = cadge("report", "last", "-o", str(checkout.root / "out.html"))
        assert (named.code, plain.code, reported.code) in ((0, 0, 0), (7, 0, 0)), mutant
        assert named.code == 0 or str(path) in named.err, mutant
        assert mutant.sealed or named.code == 7, mutant


PROVIDER = {
    "schema": "cadge.provider/1", "library": "exact", "title": "Exact", "version": "9.9.9", "source": "prefix",
    "origin": "/opt/exact", "file": "root/lib/libexact.so.9", "build_id": "ab" * 20, "launcher": "root/bin/go",
    "environment": {"EXACT_HOME": "root"}, "lacks": {"block": "it does not sleep"},
}  # fmt: skip


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.first(1)
def test_no_provider_ends_a_command_by_surprise(
    checkout: Checkout, cadge: Cadge, runner: FakeRunner, seed: int
) -> None:
    """Whatever was changed: whoever reads it names its file and how it goes away, or takes it for what it says."""
    assert runner
    dice = random.Random(seed)
    folder = checkout.build / "providers"
    path = folder / "exact-9.9.9/provider.json"
    path.parent.mkdir(parents=True)
    content = json.dumps(PROVIDER).encode()
    for name, text in (("a-one@exact-9.9.9.so", ""), ("a-one@exact-9.9.9.provider", "exact-9.9.9\n")):
        (checkout.modules / name).write_text(text)
    (checkout.sweeps / "tiny.yml").write_text(SWEEP.replace("a-one, b-two", "a-one, b-two, a-one@exact-9.9.9"))
    path.write_bytes(content)
    assert cadge("plan", "--sweep", "tiny").code == 0
    for _ in range(4 * MUTANTS):
        mutant = change(folder, path, content, dice)
        answers = [cadge(*line.split()) for line in ("provider list", "layers", "plan --sweep tiny")]
        if [one.code for one in answers] == [3, 3, 3]:
            assert all(str(path) in one.err for one in answers), mutant
            assert all("cadge provider remove exact-9.9.9" in one.err for one in answers), mutant
        else:  # it is as good as it was, or no longer the one that the layer was built with
            assert [one.code for one in answers] in ([0, 0, 0], [0, 0, 2]), mutant


KINDS: dict[str, tuple[str, Steps, object]] = {
    "nesting": ("launches/*.json", ("result", "adapter"), "@100,000 brackets@"),
    "5,000 digits": ("launches/*.json", ("result", "wall_ns"), "@5,000 digits@"),
    "a lone surrogate": ("nodes/*.json", ("kernel",), "@a lone surrogate@"),
    "a point without a parameter": ("plan.json", ("points", 0, "workload", "parameters"), {}),
    "another layer than was planned": ("launches/*.json", ("launch", "layer"), "c-three"),
    "a time that is none": ("campaign.json", ("created_utc",), "yesterday"),
    "a key that stands twice": ("launches/*.json", ("result", "@twice@layer"), "c-three"),
    "rounds that the plan has not": ("looks/*.json", ("launches_before",), 10),
    "other rounds": ("looks/*.json", ("launches_after",), 13),
    "infinite": ("native.json", ("readings", 0, "value"), "@infinite@"),
    "a quantity of another kind": ("launches/*.json", ("result", "attempts", 0, "quantities"),
                                   {"latency": [{"endpoint": 0, "value": 3}]}),
}  # fmt: skip


def test_each_kind_that_readers_had_died_of(ground: Ground, cadge: Cadge) -> None:
    for name, (pattern, steps, value) in KINDS.items():
        campaign = ground.fresh()
        path = min(campaign.glob(pattern))
        replace(campaign, path, steps, value)
        verified = cadge(*ground.command("verify {first}"))
        assert verified.code == 7, name
        assert str(path.relative_to(campaign)) in verified.out, name
        lines = ("report {first}", "export {first}", "status {first}", "crosscheck {first}", "resume {first} --failed")
        answers = [cadge(*ground.command(line)) for line in lines]
        assert {answer.code for answer in answers} <= {0, 3, 7}, name
        refused = [answer.err for answer in answers if answer.code == 7]
        assert refused, name
        assert all(str(path) in said for said in refused), name
