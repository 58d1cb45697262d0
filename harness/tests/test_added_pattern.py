# SPDX-License-Identifier: BSD-3-Clause
"""A pattern is added as a layer is: two files, no edit; and its figure stands in the report.

In a copy of this checkout, so that nothing of it is touched: three endpoints in a ring, in block mode, with a parameter
and quantities that no other pattern has.
"""

from __future__ import annotations

import csv
import html
import io
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from statistics import median

import pytest

from cadge_results import Campaign, Store
from cadge_results.formats.histogram import decode, merge

ROOT = Path(__file__).parents[2]
BUILD = Path(os.environ.get("CADGE_BUILD") or ROOT / "build")
FOLDER = ROOT / "harness/driver/tests/patterns/ring"
SWEEP = """\
schema: cadge.sweep/2
title: around the ring
layers: [sockets-tcp]
places: within
waits: block
patterns:
  - {pattern: ring, bytes: [64B, 4KiB], way: [forward, backward]}
launches: 2
duration: {default: 40ms}
"""

pytestmark = [
    pytest.mark.paired,
    pytest.mark.skipif(
        not (BUILD / "bin/cadge-driver").is_file(), reason=f"{BUILD} holds no programs; run: make build"
    ),
    pytest.mark.skipif(not (ROOT / ".git").exists(), reason="which files belong to a checkout is git's to say"),
]


class Copy:
    """A copy of the checkout with what was built of it."""

    def __init__(self, root: Path) -> None:
        self.root = root
        listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
        for name in filter(None, listed.split("\0")):
            if (ROOT / name).is_file():
                (root / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(ROOT / name, root / name)
        shutil.copytree(BUILD, root / "build", symlinks=True, ignore=shutil.ignore_patterns("asan"))
        state = root.parent / "state"
        state.mkdir(mode=0o700)
        own = {"CADGE_ROOT": str(root), "CADGE_STATE": str(state), "CADGE_LOCK": str(state / "lock"), "NO_COLOR": "1"}
        sources = [root / part / "src" for part in ("harness", "results", "analysis")]
        hidden = {"TESTBED", "INVENTORY", "LAYERS", "SWEEP", "CADGE_BUILD", "CADGE_RESULTS"}
        kept = {name: value for name, value in os.environ.items() if name not in hidden}
        self.environment = kept | own | {"PYTHONPATH": os.pathsep.join(map(str, sources))}

    def run(self, *argv: str) -> subprocess.CompletedProcess[str]:
        """Run a program in the copy."""
        return subprocess.run(
            argv, cwd=self.root, env=self.environment, capture_output=True, text=True, check=False, timeout=280
        )

    def cadge(self, *argv: str) -> str:
        """Run cadge, by the copy's own code, and return what it says."""
        done = self.run(sys.executable, "-m", "cadge_cli.cli", *argv)
        assert done.returncode in {0, 1}, done.stderr
        return done.stdout

    def findings(self) -> list[str]:
        """Return what doctor says of the driver's patterns."""
        done = self.run(sys.executable, "-m", "cadge_cli.cli", "doctor", "--json")
        found = json.loads(done.stdout)["data"]["findings"]
        return [finding["text"] for finding in found if finding["code"] == "D15"]


def per_launch(campaign: Campaign, point_id: str) -> dict[str, list[float]]:
    """Return what each launch measured at a point, from the raw records."""
    found: dict[str, list[float]] = {"lap": [], "hops": [], "per_hop": []}
    for record in campaign.launches():
        assert record.result is not None
        assert [endpoint.role for endpoint in record.launch.endpoints] == ["node"] * 3
        (attempt,) = (one for one in record.result.attempts if one.point_id == point_id)
        laps = attempt.samples("lap")
        assert [one.endpoint for one in laps] == [0, 1, 2]
        found["lap"].append(merge(decode(one.histogram) for one in laps).percentile(50))
        found["hops"].append(sum(one.value for one in attempt.numbers("hops")))
        found["per_hop"].append(median(one.value for one in attempt.numbers("per_hop")))
    return found


def three_digits(value: float) -> str:
    """Write a number as a figure does: 62.0 keeps its nought, thousands are set apart."""
    text = f"{value:#.3g}".rstrip(".") if value < 999.5 else f"{float(f'{value:.3g}'):,.0f}"
    return text.replace(",", "\u202f")


@pytest.mark.long
def test_two_files_make_a_pattern(tmp_path: Path) -> None:
    copy = Copy(tmp_path / "checkout")
    before = {path for path in copy.root.rglob("*") if path.is_file() and "build" not in path.parts}
    folder = copy.root / "harness/patterns/ring"
    shutil.copytree(FOLDER, folder)
    assert "the build is stale: the driver has no pattern ring" in copy.findings()
    made = copy.run("make", "--no-print-directory", "-j2", "-f", "harness/build.mk", f"TABLES_PYTHON={sys.executable}")
    assert made.returncode == 0, made.stderr
    patterns = sum(1 for _ in copy.root.glob("harness/patterns/*/*.pattern.yml"))
    assert copy.findings() == [f"{patterns} patterns, 7 floors"]
    added = {path for path in copy.root.rglob("*") if path.is_file() and "build" not in path.parts} - before
    own = {path for path in added if "__pycache__" not in path.parts}
    assert {path.name for path in own} == {"ring.c", "ring.pattern.yml"}

    assert "A token of every endpoint goes round the ring of all." in copy.cadge("patterns", "ring")
    sweep = tmp_path / "ring.yml"
    sweep.write_text(SWEEP)
    assert "3 node on " in copy.cadge("plan", "--sweep", str(sweep), "--testbed", "local")
    results = tmp_path / "results"
    copy.cadge("run", "--sweep", str(sweep), "--testbed", "local", "--results", str(results))
    campaign = Store(results).open("last")
    outcomes = campaign.outcomes()
    assert {outcome.status for outcome in outcomes} == {"valid"}, {outcome.reason for outcome in outcomes}
    assert len(outcomes) == 2 * 2 * 2

    page = html.unescape(campaign.layout.report.read_text(encoding="utf-8"))
    assert "Ring within one host" in page
    assert "has the shortest lap" in page
    _, _, figure = page.partition('<figure class="fig" id="fig-ring-within-block">')
    figure = figure.partition("</figure>")[0]
    assert "sockets-tcp, \u00b5s" in figure
    exported = copy.cadge("export", str(campaign.path), "--format", "csv")
    rows = {row["point_id"]: row for row in csv.DictReader(io.StringIO(exported))}
    for point in campaign.plan.points:
        raw = per_launch(campaign, point.point_id)
        row = rows[point.point_id]
        assert (row["pattern"], row["way"]) == ("ring", point.workload["way"])
        assert float(row["lap_p50_ns"]) == pytest.approx(median(raw["lap"]))
        assert float(row["hops_tokens"]) == pytest.approx(median(raw["hops"]))
        assert float(row["per_hop_ns"]) == pytest.approx(median(raw["per_hop"]))
        if point.workload["way"] == "forward":
            drawn = three_digits(median(raw["lap"]) / 1000)
            assert re.search(rf">{re.escape(drawn)}[ \u00a0<]", figure), f"{drawn} is not in the figure"
