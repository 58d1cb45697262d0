# SPDX-License-Identifier: BSD-3-Clause
"""results/published: small, whole, with figures that agree; and `ci/published`, which makes it, on a small campaign."""

from __future__ import annotations

import gzip
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from cadge_analysis import reopen
from cadge_analysis.stats.compare import compare
from cadge_analysis.verify import printed
from cadge_results.publish.secrets_found import secret_in

ROOT = Path(__file__).resolve().parents[2]
PUBLISHED = ROOT / "results/published"
sys.path.insert(0, str(ROOT / "analysis/tests"))  # importlib mode leaves sys.path alone

import chromium  # noqa: E402 - found by the line above
import synthetic  # noqa: E402

MOST_BYTES = 15_000_000
MOST_PICTURE_BYTES = 200_000
COLUMNS = {"ns": "{}_p50_ns", "MB/s": "{}_mb_s", "1/s": "{}_per_s"}
"""Where a summary has a quantity, by its unit."""


def check(folder: Path) -> None:
    """Hold a folder that `ci/published` made to what its readers rely on."""
    subprocess.run(["sha256sum", "--quiet", "--check", "SHA256SUMS"], cwd=folder, check=True)
    files = [path for path in folder.rglob("*") if path.is_file()]
    listed = {line[66:] for line in (folder / "SHA256SUMS").read_text().splitlines()}
    assert {path.name for path in files} == listed | {"SHA256SUMS"}
    assert sum(path.stat().st_size for path in files) <= MOST_BYTES
    for path in files:
        if path.suffix == ".webp":
            assert path.stat().st_size <= MOST_PICTURE_BYTES, path
        else:
            assert secret_in(content_of(path)) is None, path
    digest, _, archive = (folder / "archive.sha256").read_text().strip().partition("  ")
    readme = (folder / "README.md").read_text()
    assert digest in readme
    assert archive == json.loads((folder / "run.json").read_text())["bundle"]
    report = printed((folder / "report.html").read_text(), "report.html")
    for name in report.pages:
        assert (folder / name).is_file(), name
    again = figures(report.data)
    (summary,) = folder.glob("summary.json*")
    rows = json.loads(content_of(summary))["rows"]
    said = {row["point_id"]: row for row in rows}
    assert again
    for point, (column, value) in again.items():
        assert said[point][column] == pytest.approx(value, rel=1e-3), said[point]


def content_of(path: Path) -> str:
    """Return a file's text, unpacked."""
    content = path.read_bytes()
    return (gzip.decompress(content) if path.suffix == ".gz" else content).decode()


def figures(data: object) -> dict[str, tuple[str, float]]:
    """Return the main figure of each point, made anew of what the report carries, with its column in a summary."""
    assert isinstance(data, dict)
    found = compare(reopen.carried(data, "report.html").data)
    numbers = [found.numbers[one.point_id] for one in found.data.cells if one.point_id in found.numbers]
    return {
        one.cell.point_id: (COLUMNS[one.quantity.unit].format(one.cell.case.file.main), one.central.value)
        for one in numbers
    }


@pytest.mark.long
def test_what_the_repository_has_is_small_whole_and_agrees() -> None:
    if not (PUBLISHED / "run.json").is_file():
        pytest.skip("results/published holds no run yet: make it with ci/published CAMPAIGN ARCHIVES")
    check(PUBLISHED)


@pytest.mark.long  # `cadge publish` by itself: analysis/tests/test_publish.py; reports in Chromium: test_browser.py
def test_one_command_makes_it_from_a_campaign(tmp_path: Path) -> None:
    if chromium.find() is None:
        pytest.skip("no Chromium, which makes the pictures")
    options = synthetic.Options(
        layers=("sockets-tcp", "native-ucx"),
        sizes=(8,),
        places=("within",),
        waits=("poll",),
        patterns=(("rpc", 1),),
        samples=200,
    )
    campaign = synthetic.make(tmp_path / "campaigns", options)
    (tmp_path / "archives").mkdir()
    folder = tmp_path / "published"
    argv = [ROOT / "ci/published", campaign.campaign_id, tmp_path / "archives", folder]
    environment = os.environ | {"CADGE_RESULTS": str(tmp_path / "campaigns")}
    done = subprocess.run(argv, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    check(folder)
    assert {path.name for path in folder.glob("*.webp")} == {"first-screen-light.webp", "first-screen-dark.webp"}
    light, dark = ((folder / f"first-screen-{one}.webp").read_bytes() for one in ("light", "dark"))
    assert light[8:12] == dark[8:12] == b"WEBP"
    assert light != dark
    # a figure that was changed afterwards is found, even where its checksum was made again
    summary = folder / "summary.json"
    changed = re.sub(r'("latency_p50_ns": )(\d)', r"\g<1>9\2", summary.read_text(), count=1)
    assert changed != summary.read_text()
    summary.write_text(changed)
    names = [line[66:] for line in (folder / "SHA256SUMS").read_text().splitlines()]
    again = subprocess.run(["sha256sum", *names], cwd=folder, check=True, capture_output=True).stdout
    (folder / "SHA256SUMS").write_bytes(again)
    with pytest.raises(AssertionError):
        check(folder)


def test_checksums_of_the_published_files_hold() -> None:
    """Also of the pictures, which may be replaced alone."""
    done = subprocess.run(
        ["sha256sum", "--check", "--quiet", "SHA256SUMS"], cwd=PUBLISHED, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (0, "")
