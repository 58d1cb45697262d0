# SPDX-License-Identifier: BSD-3-Clause
"""A site: what is in it, what it refuses, what it never removes, and that nothing goes out that must not."""

from __future__ import annotations

import gzip
import json
import re
import shutil
import socket
import subprocess
from pathlib import Path

import pagereader
import pytest
import synthetic
import test_imported
import yaml

from cadge_analysis import report
from cadge_analysis.errors import BadInputError, NoDataError
from cadge_analysis.publish import publish as publishing
from cadge_analysis.publish.excerpt import retract
from cadge_analysis.publish.leaks import LeakError, leaks, own_words
from cadge_analysis.publish.publish import publish, redacted
from cadge_analysis.publish.run import Labels
from cadge_results import Campaign
from cadge_results.publish.published import Rules, own_names
from cadge_results.publish.redact import Names, Redactor
from cadge_results.store.checksum import Checksum, beside
from cadge_results.store.verify import verify

LABELS = Labels(licence="CC-BY-4.0", authors=({"family-names": "Curie", "given-names": "Marie"},))
SMALL = synthetic.Options(
    layers=("sockets-tcp", "native-ucx"),
    sizes=(8,),
    places=("within",),
    waits=("poll",),
    patterns=(("rpc", 1),),
    samples=200,
)


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Campaign:
    return synthetic.make(tmp_path_factory.mktemp("small"), SMALL)


@pytest.fixture(scope="module")
def published(small: Campaign, tmp_path_factory: pytest.TempPathFactory) -> Path:
    site = tmp_path_factory.mktemp("published") / "site"
    put(small, site)
    return site


@pytest.fixture
def site(published: Path, tmp_path: Path) -> Path:
    """A copy of the site, for a test to change."""
    return shutil.copytree(published, tmp_path / "site")


def put(campaign: Campaign, site: Path, rules: Rules | None = None) -> Path:
    with redacted([campaign], rules or Rules()) as copies:
        (folder,) = publish(copies, site, LABELS)
    return folder


def test_what_was_imported_goes_with_it_and_names_nobody(small: Campaign, tmp_path: Path) -> None:
    copied = Campaign(Path(shutil.copytree(small.path, tmp_path / small.path.name)))
    said = {"host": "gpu-a", "note": "by zoe@lab.example.edu on gpu-a", "label": "ours"}
    file = test_imported.file("rpc").model_copy(update=said)
    path = copied.layout.imported_file(file.imported_id)
    path.parent.mkdir()
    content = file.to_json().encode()
    path.write_bytes(content)
    beside(path).write_text(Checksum.of(content, path.name).line())
    with redacted([copied], Rules()) as copies:
        (there,) = copies.made[0].campaign.imported()
    assert (there.label, there.file, there.sha256) == ("ours", "a.txt", file.sha256)
    assert "gpu-a" not in (there.host, there.note)
    assert "zoe" not in there.note


def test_an_export_that_goes_out_names_hosts_as_all_else_does(small: Campaign, site: Path) -> None:
    """The small campaign's hosts are h1 and h2, which redaction calls n1 and n2."""
    folder = site / "runs" / small.campaign_id
    said = json.loads((folder / "summary.json").read_text())
    own = {host for row in said["rows"] for host in row.get("hosts", "").split()}
    assert said["testbed"]["hosts_used"]
    assert own == set(said["testbed"]["hosts_used"])
    assert not own & set(small.meta.testbed.hosts)


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def sums_hold(folder: Path) -> bool:
    done = subprocess.run(["sha256sum", "--quiet", "--check", "SHA256SUMS"], cwd=folder, check=False)
    return done.returncode == 0


def test_a_site_has_all_that_a_reader_and_a_web_server_need(small: Campaign, site: Path) -> None:
    name = small.campaign_id
    for file in (".nojekyll", "LICENSE-DATA", "CITATION.cff", "schema/cadge.plan-2.schema.json"):
        assert (site / file).is_file(), file
    run = site / "runs" / name
    assert sums_hold(run)
    assert sums_hold(site)
    beside_runs = {file for file in contents(site) if not file.startswith("runs/")} - {"SHA256SUMS"}
    assert set((site / "SHA256SUMS").read_text().split()[1::2]) == beside_runs
    assert (site / "badge.svg").read_bytes() == (run / "badge.svg").read_bytes()
    assert set((run / "SHA256SUMS").read_text().split()[1::2]) | {"SHA256SUMS"} == set(contents(run))
    root = pagereader.read((site / "index.html").read_text())
    assert f"runs/{name}/index.html" in [link.attrs["href"] for link in root.all("a")]
    for link in root.all("a"):  # a folder without an index is refused by most web servers
        assert (site / str(link.attrs["href"])).is_file(), link.attrs
    text = root.one("table", class_="runs").text
    assert "sockets-tcp" in text
    kept = json.loads((run / "run.json").read_text())["picture"]["questions"]
    cards = root.all("figure", class_="ranking")
    assert [card.one("h2").text for card in cards] == [one["headline"] for one in kept] != []
    assert json.loads((run / "run.json").read_text())["headline"] in text
    records = gzip.decompress((run / "records.jsonl.gz").read_bytes()).splitlines()
    assert len(records) == len(small.launch_ids())
    cff = yaml.safe_load((run / "CITATION.cff").read_text())
    assert cff["type"] == "dataset"
    assert cff["authors"] == [{"family-names": "Curie", "given-names": "Marie"}]
    assert cff["identifiers"][0]["value"] == name


def test_its_archive_verifies_and_gives_the_same_report(small: Campaign, site: Path, tmp_path: Path) -> None:
    (archive,) = (site / "runs" / small.campaign_id).glob("*.tar.gz")
    (tmp_path / "unpacked").mkdir()
    subprocess.run(["tar", "-C", tmp_path / "unpacked", "-xzf", archive], check=True)
    (top,) = (tmp_path / "unpacked").iterdir()
    assert sums_hold(top)
    campaign = Campaign(top / small.campaign_id)
    assert verify(campaign).damages == []
    report.build(campaign.path, tmp_path / "again.html")
    assert (tmp_path / "again.html").read_bytes() == (top / "report.html").read_bytes()


def test_publishing_again_changes_no_byte_and_removes_nothing_that_is_not_its_own(small: Campaign, site: Path) -> None:
    before = contents(site)
    run = site / "runs" / small.campaign_id
    foreign = {site / "about.html": b"mine", run / "notes.txt": b"mine as well", site / ".git" / "HEAD": b"ref"}
    for path, content in foreign.items():
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(content)
    put(small, site)
    assert contents(site) == before | {str(path.relative_to(site)): text for path, text in foreign.items()}
    assert not list(site.parent.glob(".site.*"))


@pytest.mark.parametrize("name", ["runs", "runs/RUN", "schema", "runs/RUN/run.json", "runs/RUN/index.html"])
def test_a_site_of_others_is_neither_read_nor_written_through_links(name: str, small: Campaign, site: Path) -> None:
    outside = site.parent / "outside"
    path = site / name.replace("RUN", small.campaign_id)
    path.rename(outside)
    path.symlink_to(outside)
    before = contents(outside) if outside.is_dir() else outside.read_bytes()
    for change in (lambda: put(small, site), lambda: retract(site, small.campaign_id, "slow", "2026-11-26")):
        with pytest.raises(BadInputError, match="symbolic link"):
            change()
    assert (contents(outside) if outside.is_dir() else outside.read_bytes()) == before


def test_a_folder_with_something_else_is_refused_and_stays(small: Campaign, tmp_path: Path) -> None:
    folder = tmp_path / "thesis"
    folder.mkdir()
    (folder / "chapter.tex").write_text("x")
    with pytest.raises(BadInputError, match=r"no site of cadge.*chapter\.tex"):
        put(small, folder)
    assert contents(folder) == {"chapter.tex": b"x"}


@pytest.mark.parametrize("what", ["ghp_" + "a" * 36, "mail bob@lab.ac.uk", "at 10.11.12.13"])
@pytest.mark.first(1)
def test_what_is_left_is_found_with_its_place_and_nothing_is_published(
    what: str, small: Campaign, site: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = contents(site)
    real = publishing.run_files

    def leaking(*arguments: object) -> dict[str, bytes]:
        files = real(*arguments)  # type: ignore[arg-type]
        return files | {"summary.csv": files["summary.csv"] + f"\n{what}\n".encode()}

    monkeypatch.setattr(publishing, "run_files", leaking)
    with pytest.raises(LeakError, match=r"summary\.csv:\d+: ") as caught:
        put(small, site)
    assert caught.value.exit_code == 10
    assert contents(site) == before
    assert not list(site.parent.glob(".site.*"))


def test_a_redaction_that_leaves_hosts_is_found(
    small: Campaign, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # as by a fault of ours: the place where a host must stand keeps it
    monkeypatch.setattr(Redactor, "host", lambda _, name: name)
    with pytest.raises(LeakError, match=r"campaign\.json:\d+: h1 \(hosts\)"):
        put(small, tmp_path / "site")
    assert not (tmp_path / "site").exists()


UUID = "6e0ef96a-0000-4000-8000-123456789abc"


@pytest.mark.parametrize(
    ("name", "content", "what"),
    [
        ("a.json", '{"parameters": {\n"rail": "10.9.8.7"}\n}', r"a\.json:2: 10\.9\.8\.7 \(addresses\)"),
        ("a.json", '{"version": "1.2 of gpu-a"}', r"a\.json:1: gpu-a \(hosts\)"),
        ("a.jsonl", '{}\n{"version": "in /home/bob"}', r"a\.jsonl:2: /home/bob \(paths\)"),
        ("feed.xml", f"<id>urn:uuid:{UUID}</id>\n<title>gpu-a</title>", r"feed\.xml:2: gpu-a"),
        ("a.json", '{"version": "1.14.1.0", "sha256": "abcdef"}', None),
    ],
)
def test_the_check_reads_fixed_keys_and_the_feed(name: str, content: str, what: str | None, tmp_path: Path) -> None:
    (tmp_path / name).write_text(content)
    found = leaks(tmp_path, [tmp_path / name], Redactor(Names(hosts=("gpu-a",))))
    assert [bool(re.match(what or "", str(one))) for one in found] == ([True] if what else [])


def test_a_retraction_stands_on_report_and_index_and_outlives_publishing(small: Campaign, site: Path) -> None:
    run = site / "runs" / small.campaign_id
    before = contents(site)
    assert retract(site, small.campaign_id[:12], "the clock <ran> slow", "2026-11-26") == small.campaign_id
    after = contents(site)
    mine = {f"runs/{small.campaign_id}/{name}" for name in ("index.html", "run.json", "badge.svg", "SHA256SUMS")} | {
        "index.html",
        "feed.xml",
        "badge.svg",
        "SHA256SUMS",
    }
    assert {name for name in before if before[name] != after[name]} == mine
    for _ in range(2):
        assert sums_hold(run)
        assert sums_hold(site)
        page = pagereader.read((run / "index.html").read_text())
        assert "the clock <ran> slow" in page.one("section", role="alert").text
        assert page.one("head").one("title").text.startswith("Retracted: ")
        assert "the clock &lt;ran&gt; slow" in (site / "feed.xml").read_text()
        assert (
            "the clock <ran> slow"
            in pagereader.read((site / "index.html").read_text()).one("table", class_="runs").text
        )
        put(small, site)
    with pytest.raises(BadInputError, match="was retracted on 2026-11-26"):
        retract(site, small.campaign_id, "again", "2026-11-27")
    with pytest.raises(NoDataError, match="no run begins with"):
        retract(site, "1999", "x", "2026-11-27")


@pytest.mark.parametrize(
    ("because", "what"),
    [
        ("the host 10.7.0.3 was slow", "10.7.0.3"),
        ("ask zoe@lab.example.edu", "zoe@lab.example.edu"),
        ("see /home/zoe/notes", "/home/zoe"),
        ("key ghp_" + "a" * 36, "looks like"),
        (f"{socket.gethostname()}-made-longer was slow, as was {socket.gethostname()}", socket.gethostname()),
    ],
)
def test_a_reason_that_names_somebody_is_refused(because: str, what: str, small: Campaign, site: Path) -> None:
    before = contents(site)
    if what == socket.gethostname() and not Redactor(own_names(own_words())).told(because):
        pytest.skip("this machine's name is a common word")
    with pytest.raises(BadInputError, match=re.escape(what)):
        retract(site, small.campaign_id, because, "2026-11-26")
    assert contents(site) == before


def test_a_layer_that_may_not_be_published_has_no_figure_anywhere(small: Campaign, tmp_path: Path) -> None:
    rules = Rules(withheld={"native-ucx": "section 3 of its licence"})
    run = put(small, tmp_path / "site", rules)
    page = pagereader.read((run / "index.html").read_text())
    assert "not published: section 3 of its licence" in page.text
    rows = json.loads((run / "summary.json").read_text())["rows"]
    withheld = [row for row in rows if row["layer"] == "native-ucx"]
    assert withheld
    assert all(row["state"] == "refused" and "latency_p50_ns" not in row for row in withheld)
    records = gzip.decompress((run / "records.jsonl.gz").read_bytes()).splitlines()
    assert {json.loads(line)["launch"]["layer"] for line in records} >= {"sockets-tcp"}
    assert "native-ucx" not in {json.loads(line)["launch"]["layer"] for line in records}
