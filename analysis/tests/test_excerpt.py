# SPDX-License-Identifier: BSD-3-Clause
"""An excerpt for a repository: what is in it, what its archive proves, and what goes where there is no room."""

from __future__ import annotations

import gzip
import hashlib
import json
import subprocess
from dataclasses import replace
from pathlib import Path

import pagereader
import pytest
import synthetic

from cadge_analysis import report
from cadge_analysis.errors import BadInputError, NoDataError
from cadge_analysis.publish import excerpt, run
from cadge_analysis.publish.excerpt import retract
from cadge_analysis.publish.leaks import LeakError
from cadge_analysis.publish.publish import redacted
from cadge_analysis.publish.run import Labels, RunBundle
from cadge_results import Campaign
from cadge_results.publish.published import Rules

LABELS = Labels(licence="CC-BY-4.0", authors=(), title="A | title *of* <mine>")
SMALL = synthetic.Options(
    layers=("sockets-tcp", "native-ucx"),
    sizes=(8,),
    places=("within",),
    waits=("poll",),
    patterns=(("rpc", 1),),
    samples=200,
)
ARCHIVE = excerpt.Archive("a.tar.gz", "0" * 64, 9)


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Campaign:
    return synthetic.make(tmp_path_factory.mktemp("small"), SMALL)


@pytest.fixture(scope="module")
def parted(small: Campaign) -> RunBundle:
    """A run with a page a pattern, of which each is made larger than it is."""
    made = run.bundled(small, LABELS)
    whole = {f"report-p{number}.html": b"x" * (6000 - 1000 * number) for number in range(1, 4)}
    return RunBundle(made.run, made.on_site, {**made.archived, **whole})


def put(campaign: Campaign, target: Path, archives: Path) -> Path:
    archives.mkdir(exist_ok=True)
    with redacted([campaign], Rules()) as copies:
        return excerpt.publish(copies, target, archives, LABELS)


def test_it_has_the_report_and_says_which_archive_has_the_rest(small: Campaign, tmp_path: Path) -> None:
    folder = tmp_path / "published"
    packed = put(small, folder, tmp_path / "archives")
    names = {path.name for path in folder.iterdir()}
    assert names >= {"report.html", "summary.csv", "summary.json", "README.md", "repeat.sh", "archive.sha256"}
    assert not {name for name in names if "record" in name or name.endswith(".gz")}
    subprocess.run(["sha256sum", "--quiet", "--check", "SHA256SUMS"], cwd=folder, check=True)
    subprocess.run(["sha256sum", "--quiet", "--check", folder / "archive.sha256"], cwd=packed.parent, check=True)
    readme = (folder / "README.md").read_text()
    assert hashlib.sha256(packed.read_bytes()).hexdigest() in readme
    assert r"# A \| title \*of\* \<mine\>" in readme
    (tmp_path / "out").mkdir()
    subprocess.run(["tar", "-C", tmp_path / "out", "-xzf", packed], check=True)
    (top,) = (tmp_path / "out").iterdir()
    for name in names - {"README.md", "SHA256SUMS", "archive.sha256", "run.json"}:
        assert (folder / name).read_bytes() == (top / name).read_bytes(), name
    made = report.build(top / small.campaign_id, tmp_path / "again.html", LABELS.title)
    assert (tmp_path / "again.html").read_bytes() == (folder / "report.html").read_bytes(), made


def test_again_it_changes_no_byte_and_keeps_what_is_not_its_own(small: Campaign, tmp_path: Path) -> None:
    folder = tmp_path / "published"
    put(small, folder, tmp_path / "archives")
    (folder / "picture.webp").write_bytes(b"mine")
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    put(small, folder, tmp_path / "archives")
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before


def test_where_all_pages_fit_not_they_that_are_left_out_say_where_they_are(parted: RunBundle) -> None:
    every = excerpt.files(parted, ARCHIVE)
    size_bytes = sum(len(content) for name, content in every.items() if name != "README.md")
    most_bytes = size_bytes + excerpt.SPARE_BYTES - 1
    found = excerpt.files(parted, ARCHIVE, most_bytes)
    assert sum(map(len, found.values())) <= most_bytes
    for first in ("report-p1.html", "report-p2.html"):
        assert found[first] == parted.archived[first], "in the report's order"
    page = pagereader.read(found["report-p3.html"].decode())
    assert ARCHIVE.sha256 in page.text
    left_out = {name for name, content in found.items() if excerpt.is_elsewhere(name, content.decode(errors="replace"))}
    assert left_out == {"report-p3.html"}
    assert "report-p3.html" in found["README.md"].decode().partition("## Left out here")[2].partition("## ")[0]
    for link in page.all("a"):
        assert link.attrs["href"] in found


def test_a_large_summary_goes_in_packed(parted: RunBundle) -> None:
    large = b'{"rows": [' + b" " * 60_000_000 + b"]}"
    found = excerpt.files(replace(parted, archived={**parted.archived, "summary.json": large}), ARCHIVE, 3_000_000)
    assert gzip.decompress(found["summary.json.gz"]) == large
    assert "summary.json" not in found
    assert found["summary.csv"] == parted.archived["summary.csv"]
    assert "[summary.csv](summary.csv), [summary.json.gz](summary.json.gz) |" in found["README.md"].decode()


def test_what_is_too_large_even_so_is_refused(parted: RunBundle) -> None:
    with pytest.raises(BadInputError, match="exceed the 50\u202f000 bytes of an excerpt"):
        excerpt.files(parted, ARCHIVE, 50_000)


@pytest.mark.parametrize("archives", ["published", "nowhere"])
def test_the_archive_goes_elsewhere(archives: str, small: Campaign, tmp_path: Path) -> None:
    (tmp_path / "published").mkdir()
    with redacted([small], Rules()) as copies, pytest.raises(BadInputError, match=r"no folder|in .*published"):
        excerpt.publish(copies, tmp_path / "published", tmp_path / archives, LABELS)
    assert not list((tmp_path / "published").iterdir())


def test_what_must_not_go_out_stops_it(small: Campaign, tmp_path: Path) -> None:
    labels = Labels(licence="CC-BY-4.0", authors=(), title="ghp_" + "a" * 36)
    (tmp_path / "archives").mkdir()
    with redacted([small], Rules()) as copies, pytest.raises(LeakError, match=r"run\.json:\d+: "):
        excerpt.publish(copies, tmp_path / "published", tmp_path / "archives", labels)
    assert [path.name for path in tmp_path.iterdir()] == ["archives"]
    assert not list((tmp_path / "archives").iterdir())


def test_its_run_says_what_a_site_says(small: Campaign, tmp_path: Path) -> None:
    folder = tmp_path / "published"
    packed = put(small, folder, tmp_path / "archives")
    said = json.loads((folder / "run.json").read_text())
    assert (said["campaign_id"], said["bundle"]) == (small.campaign_id, packed.name)


def test_a_retraction_stands_on_its_pages_and_outlives_publishing(small: Campaign, tmp_path: Path) -> None:
    folder = tmp_path / "published"
    put(small, folder, tmp_path / "archives")
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    with pytest.raises(NoDataError, match=small.campaign_id):
        retract(folder, "1999", "x", "2026-11-26")
    assert retract(folder, small.campaign_id[:12], "the clock <ran> *slow*", "2026-11-26") == small.campaign_id
    after = {path.name: path.read_bytes() for path in folder.iterdir()}
    assert {name for name in before if before[name] != after[name]} == {
        "report.html", "README.md", "run.json", "SHA256SUMS"
    }  # fmt: skip
    subprocess.run(["sha256sum", "--quiet", "--check", "SHA256SUMS"], cwd=folder, check=True)
    page = pagereader.read(after["report.html"].decode())
    assert "the clock <ran> *slow*" in page.one("section", role="alert").text
    assert not [link for link in page.all("a") if str(link.attrs["href"]).startswith("../")]
    assert r"> **RETRACTED on 2026-11-26:** the clock \<ran\> \*slow\*" in after["README.md"].decode()
    with pytest.raises(BadInputError, match="was retracted on 2026-11-26"):
        retract(folder, small.campaign_id, "again", "2026-11-27")
    put(small, folder, tmp_path / "archives")
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == after
