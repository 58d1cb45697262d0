# SPDX-License-Identifier: BSD-3-Clause
"""`cadge selftest` as users run it; which self-test a campaign keeps, and what its report says of it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from cadge_cli import selftest_parts
from cadge_cli.commands import selftest as commands_selftest
from cadge_harness.paths import Checkout, selftests_of
from cadge_harness.plan.sweep import read_sweep
from cadge_harness.run.build_identity import build_digest
from cadge_results import SelftestFile, SelftestPart, Store, read_workloads
from cadge_results.formats.selftest import put_selftest, read_selftest

from .conftest import Answer, FakeRunner
from .test_learn import carry_out

Cadge = Callable[..., Answer]
ROOT = Path(__file__).parents[2]
BUILD = Path(os.environ.get("CADGE_BUILD") or ROOT / "build")


def made(build: str, **changes: Any) -> SelftestFile:  # noqa: ANN401 - of a model
    part = SelftestPart(name="delay", verdict="failed", says="200 ns found in 3 of 20", wall_s=1.0)
    given: dict[str, Any] = {
        "schema_": SelftestFile.schema_id(),
        "selftest_id": f"20251125T080000Z-{build[:8]}",
        "created_utc": "2025-11-25T08:00:00Z",
        "finished_utc": "2025-11-25T08:20:00Z",
        "version": "0.2.0",
        "revision": "unknown",
        "dirty": False,
        "build": build,
        "machine": {"cpu": ["another"]},
        "testbed": "local",
        "verdict": "failed",
        "parts": (part,),
        "wall_s": 1.0,
        **changes,
    }
    return SelftestFile(**given)


def test_wrong_input_is_refused(checkout: Checkout, cadge: Cadge) -> None:
    answer = cadge("selftest", "--only", "dely")
    assert answer.code == 2
    assert "unknown part 'dely'; did you mean delay?" in answer.err
    assert cadge("selftest", "--no-report").code == 2
    assert not selftests_of(checkout.campaigns).exists()


def test_verdicts_cannot_rest_on_a_self_test_that_is_not_there(checkout: Checkout, cadge: Cadge) -> None:
    answer = cadge("run", "--sweep", "tiny", "--testbed", "local", "--selftest", "last")
    assert answer.code == 5
    assert "there is no self-test in" in answer.err
    assert cadge("run", "--sweep", "tiny", "--testbed", "local", "--selftest", "20251125T080000Z-aaaaaaaa").code == 5
    assert Store(checkout.campaigns).campaigns() == ()


def test_a_campaign_keeps_the_newest_and_its_report_names_it(
    checkout: Checkout, cadge: Cadge, runner: FakeRunner
) -> None:
    assert runner
    build = build_digest(checkout)
    put_selftest(selftests_of(checkout.campaigns), made(build))
    carry_out(cadge, checkout)
    campaign = Store(checkout.campaigns).open("last")
    assert campaign.meta.build == build
    assert campaign.meta.selftest == made(build).pin()
    first = cadge("report", "last")
    assert first.code == 0, first.err
    text = campaign.layout.report.read_text(encoding="utf-8")
    assert "The self-test is of another processor and failed (delay)" in text
    assert "200 ns found in 3 of 20" in text
    # one that is made later changes nothing
    put_selftest(
        selftests_of(checkout.campaigns), made(build, selftest_id="20261126T080000Z-aaaaaaaa", verdict="passed")
    )
    assert cadge("report", "last").code == 0
    assert campaign.layout.report.read_text(encoding="utf-8") == text


def test_its_parts_and_its_sweeps_are_there() -> None:
    assert tuple(selftest_parts.PARTS) == commands_selftest.NAMES == tuple(selftest_parts.ABOUT)
    workloads = read_workloads(ROOT / "harness")
    for name in ("find", "delay", "stall", "quiet"):
        sweep, _ = read_sweep(ROOT / f"harness/sweeps/selftest-{name}.yml", workloads)
        assert not sweep.floors
        assert sweep.twin == "none", "a self-test plants what it looks for, and no more"


def test_the_load_beside_a_campaign_ends_with_it() -> None:
    from cadge_harness.run.disturb import disturbing

    with disturbing():
        mine = subprocess.run(
            ["ps", "-o", "pid=", "--ppid", str(os.getpid())], capture_output=True, text=True, check=True
        )
        assert len(mine.stdout.split()) >= 2, "ps itself, and the load"
    left = subprocess.run(["ps", "-o", "args=", "--ppid", str(os.getpid())], capture_output=True, text=True, check=True)
    assert "bytearray(source)" not in left.stdout


@pytest.mark.long
@pytest.mark.alone
@pytest.mark.timeout(900)
@pytest.mark.skipif(not (BUILD / "bin/cadge-driver").is_file(), reason="nothing is built; run: make build")
def test_a_self_test_for_real(tmp_path: Path) -> None:
    """One series of delays, the stall and what steers: all campaigns are made, and what is stored can be read."""
    environment = {
        **os.environ,
        "CADGE_ROOT": str(ROOT),
        "CADGE_BUILD": str(BUILD),
        "CADGE_LOCK": str(tmp_path / "lock"),
        "CADGE_RESULTS": str(tmp_path / "results"),
    }
    argv = ["selftest", "--testbed", "local", "--series", "1", "--only", "delay stall quiet coverage", "--json"]
    done = subprocess.run(
        [sys.executable, "-m", "cadge_cli.cli", *argv],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=840,
    )
    assert done.returncode in {1, 9}, done.stderr
    found = read_selftest(Path(json.loads(done.stdout)["data"]["file"]))
    verdicts = {part.name: part.verdict for part in found.parts}
    assert verdicts["quiet"] == "passed", done.stderr
    assert (verdicts["delay"], verdicts["coverage"]) == ("not judged", "not judged"), "one series is too few"
    assert verdicts["stall"] in {"passed", "not judged"}, done.stderr
    assert found.build == build_digest(Checkout(ROOT))
    campaigns = Store(selftests_of(tmp_path / "results") / "campaigns")
    for part in found.parts:
        for name in part.campaigns:
            assert campaigns.open(name).meta.status == "finished"
