# SPDX-License-Identifier: BSD-3-Clause
"""A report in several files: what stands where, how they are linked, and what is written and removed."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pagereader
import pytest
import synthetic
from chromium import Browser
from pageparts import headline, limits
from pagereader import Node

from cadge_analysis import report
from cadge_analysis.blocks.model import Figure, PageDocument
from cadge_analysis.errors import BadInputError
from cadge_analysis.page import pages
from cadge_analysis.publish.excerpt import retract
from cadge_analysis.publish.publish import publish, redacted
from cadge_analysis.publish.run import Labels
from cadge_analysis.stats.load import read
from cadge_analysis.verify import check_all
from cadge_results import Campaign, OutputError
from cadge_results.publish.published import Rules
from cadge_results.store import files as files_module

NAME = "a report #1%.html"
"""Its links have to be escaped."""


@pytest.fixture(scope="module")
def campaign(tmp_path_factory: pytest.TempPathFactory) -> Campaign:
    options = synthetic.Options(
        layers=("sockets-tcp", "native-ucx"),
        sizes=(8, 4096),
        places=("within",),
        waits=("poll",),
        samples=200,
        launches=3,
    )
    return synthetic.make(tmp_path_factory.mktemp("parted"), options)


@pytest.fixture(scope="module")
def page(campaign: Campaign) -> PageDocument:
    return report.page_of(read(campaign))


@pytest.fixture
def few_bytes(monkeypatch: pytest.MonkeyPatch, page: PageDocument) -> None:
    """Let a report be large from one byte less than this one has."""
    monkeypatch.setattr(pages, "ONE_FILE_MOST", len(report.html(page).encode()) - 1)


def data_of(root: Node) -> dict[str, Any]:
    (script,) = root.all("script", id="data")
    found: dict[str, Any] = json.loads(script.own)
    return found


def links_of(root: Node) -> set[str]:
    return {link.attrs["href"] for link in root.all("a")}


def test_what_has_four_megabytes_or_less_is_one_file(page: PageDocument, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = report.html(page)
    assert dict(report.files(page, NAME)) == {NAME: whole}
    assert pages.ONE_FILE_MOST == 4_000_000
    monkeypatch.setattr(pages, "ONE_FILE_MOST", len(whole.encode()))
    assert dict(report.files(page, NAME)) == {NAME: whole}
    monkeypatch.setattr(pages, "ONE_FILE_MOST", len(whole.encode()) - 1)
    assert len(dict(report.files(page, NAME))) == 3
    assert dict(report.files(page, NAME, parted=False)) == {NAME: whole}


@pytest.mark.usefixtures("few_bytes")
def test_a_large_one_has_a_page_a_pattern_and_nothing_is_lost(page: PageDocument) -> None:
    whole = pagereader.read(report.html(page))
    files = dict(report.files(page, NAME))
    assert list(files)[-1] == NAME, "the main file comes last"
    assert list(files)[:-1] == ["a report #1%-rpc.html", "a report #1%-stream.html"]
    roots = {name: pagereader.read(text) for name, text in files.items()}
    main = roots.pop(NAME)
    for section in whole.all("section"):
        anchor = section.attrs.get("id", "")
        if not anchor.startswith(("rpc-", "stream-")):
            (same,) = [one for one in main.all("section") if one.attrs.get("id", "") == anchor]
            assert same.text == section.text
            continue
        own = roots[f"a report #1%-{anchor.partition('-')[0]}.html"].one("section", id=anchor)
        assert own.text == section.text, "the page has the section whole"
        short = main.one("section", id=anchor)
        assert not short.all("table", class_="full")
        assert short.all("table", class_="summary")
    said = main.one("p", class_="pages").text
    assert "2 pages beside it" in said
    assert "--one-file" in said
    assert all(not root.all("p", class_="pages") for root in roots.values())
    assert main.one("head").one("title").text == page.title
    assert {root.one("head").one("title").text for root in roots.values()} == {
        f"RPC: {page.title}",
        f"Stream: {page.title}",
    }


@pytest.mark.usefixtures("few_bytes")
def test_links_lead_from_every_file_to_every_other_and_to_what_is_there(page: PageDocument) -> None:
    files = dict(report.files(page, NAME))
    ids = {
        name: {node.attrs["id"] for node in pagereader.read(text).walk() if "id" in node.attrs}
        for name, text in files.items()
    }
    for name, text in files.items():
        root = pagereader.read(text)
        reached = {name}
        for href in links_of(root):
            file, _, anchor = href.partition("#")
            target = unquote(file) or name
            assert "/" not in file
            assert ":" not in file
            assert target in files, href
            assert not anchor or anchor in ids[target], href
            reached.add(target)
        assert reached == set(files)
        assert not root.all("link")
        assert not root.all("img")
        assert "http:" not in text
        assert "https:" not in text


@pytest.mark.usefixtures("few_bytes")
def test_each_page_is_complete_by_itself(page: PageDocument) -> None:
    files = dict(report.files(page, NAME))
    main = pagereader.read(files[NAME])

    def policy(root: Node) -> str:
        (found,) = [one.attrs["content"] for one in root.all("meta") if "http-equiv" in one.attrs]
        return found

    for name in list(files)[:-1]:
        root = pagereader.read(files[name])
        assert policy(root) == policy(main)
        assert root.one("style").own.startswith(main.one("style").own), "and the heads of its tables"
        assert root.one("p", class_="deck").text == page.deck
        data = data_of(root)
        assert data["schema"] == "cadge.report-page/1"
        assert data["campaign_id"] == data_of(main)["campaign_id"]
        assert data["making"] == data_of(main)["making"]
        facts = root.one("section", id="provenance").text
        assert all(fact.text in facts for fact in page.sheet.facts)
        assert page.sheet.command in facts
        assert headline(page) in root.one("header").text
        if stops := [one for one in limits(page) if one.stops]:
            assert stops[0].title in root.one("p", class_="stops").text
        (skip,) = root.all("a", class_="skip")
        assert skip.attrs["href"].startswith("#")
    whole = data_of(pagereader.read(report.html(page)))
    assert data_of(main) == whole | {
        "report": NAME,
        "pages": {"rpc": "a report #1%-rpc.html", "stream": "a report #1%-stream.html"},
    }


def test_a_main_file_that_is_still_too_large_gives_figures_up(
    page: PageDocument, monkeypatch: pytest.MonkeyPatch
) -> None:
    main, _ = pages.split(page, NAME, 1)
    found = [main, *pages.lighter(main)]
    figures = [[sum(isinstance(b, Figure) for b in one.blocks) for one in pages.parts_of(each)] for each in found]
    assert figures == [[1, 0], [1, 0], [1, 0], [0, 0]]
    sizes = [len(report.html(each).encode()) for each in found]
    assert sizes == sorted(sizes, reverse=True)
    for most in (sizes[2], sizes[3], 1):
        monkeypatch.setattr(pages, "ONE_FILE_MOST", most)
        files = dict(report.files(page, NAME, parted=True))
        assert abs(len(files[NAME].encode()) - (most if most > 1 else sizes[3])) < 60, "it says another limit"
        assert len(pagereader.read(files["a report #1%-rpc.html"]).all("figure")) == 1
    section = pagereader.read(files[NAME]).one("section", id="rpc-within")
    assert not section.all("figure")
    assert section.all("table", class_="summary")


@pytest.mark.usefixtures("few_bytes")
def test_equal_pages_give_equal_bytes(page: PageDocument, campaign: Campaign) -> None:
    assert dict(report.files(page, NAME)) == dict(report.files(report.page_of(read(campaign)), NAME))


@pytest.mark.usefixtures("few_bytes")
def test_files_are_put_in_place_and_older_pages_go(
    page: PageDocument, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / NAME
    foreign = tmp_path / "a report #1%-notes.html"
    foreign.write_text("mine")
    other = tmp_path / "a report #1%-of-another.html"
    made = report.write_pages(page, out)
    assert [path.name for path in made.pages] == ["a report #1%-rpc.html", "a report #1%-stream.html"]
    files = dict(report.files(page, NAME))
    assert {path.name: path.read_text() for path in tmp_path.iterdir() if path != foreign} == files
    other.write_text(files["a report #1%-rpc.html"].replace('content="a report #1%.html"', 'content="b.html"'))
    stale = tmp_path / "a report #1%-gone.html"
    stale.write_text(files["a report #1%-rpc.html"])
    link = tmp_path / "a report #1%-link.html"
    link.symlink_to(stale.name)
    report.write(page, out)
    assert not stale.exists()
    monkeypatch.undo()
    report.write(page, out)
    assert out.read_text() == report.html(page)
    left = {path.name for path in tmp_path.iterdir()}
    assert left == {NAME, foreign.name, other.name, link.name}, "what is not ours, or of another report, stays"
    assert foreign.read_text() == "mine"


@pytest.mark.usefixtures("few_bytes")
def test_a_users_file_is_never_written_over(page: PageDocument, tmp_path: Path) -> None:
    (tmp_path / "r-rpc.html").write_text("mine")
    with pytest.raises(BadInputError, match=r"r-rpc.html is there, and is no page of r.html: nothing was written"):
        report.write(page, tmp_path / "r.html")
    assert [path.name for path in tmp_path.iterdir()] == ["r-rpc.html"]
    assert (tmp_path / "r-rpc.html").read_text() == "mine"
    (tmp_path / "r-rpc.html").unlink()
    (tmp_path / "r-rpc.html").mkdir()
    with pytest.raises(BadInputError):
        report.write(page, tmp_path / "r.html")


@pytest.mark.usefixtures("few_bytes")
def test_where_there_is_no_room_all_is_as_it_was(
    page: PageDocument, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "r.html"
    report.write(page, out)
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    fill = files_module._fill
    written: list[Path] = []

    def full(scratch: Path, content: bytes, **rest: Any) -> None:  # noqa: ANN401
        written.append(scratch)
        if len(written) == 3:
            raise OSError(28, "No space left on device")
        fill(scratch, content, **rest)

    monkeypatch.setattr(files_module, "_fill", full)
    with pytest.raises(OutputError, match="No space left"):
        report.write(replace(page, title=f"Another: {page.title}"), out)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


@pytest.mark.usefixtures("few_bytes")
@pytest.mark.parametrize("fails", [OSError(5, "Input/output error"), KeyboardInterrupt()])
@pytest.mark.parametrize("at", [1, 2, 3])
@pytest.mark.parametrize("links", [True, False])
def test_what_is_broken_off_between_two_files_is_as_it_was(
    at: int, fails: BaseException, links: bool, page: PageDocument, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "r.html"
    report.write(page, out)
    (tmp_path / "r-rpc.html").unlink()
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    rename = Path.rename
    renamed: list[Path] = []

    def broken(path: Path, target: Path) -> Path:
        renamed.append(path)
        if len(renamed) == at:
            raise fails
        return rename(path, target)

    def refused(*_: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(Path, "rename", broken)
    if not links:
        monkeypatch.setattr("os.link", refused)
    with pytest.raises((OutputError, KeyboardInterrupt)):
        report.write(replace(page, title=f"Another: {page.title}"), out)
    assert len(renamed) >= at
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


KILLED = """
import os, sys
from pathlib import Path
from cadge_results.store.files import write_together
rename, renamed = Path.rename, []
def dies(path, target):
    renamed.append(path)
    if len(renamed) == 2:
        os._exit(9)
    return rename(path, target)
Path.rename = dies
write_together((Path(name), Path(name + ".new").read_bytes()) for name in sys.argv[1:])
"""


@pytest.mark.usefixtures("few_bytes")
def test_after_a_kill_the_check_says_which_file_is_of_another_time(page: PageDocument, tmp_path: Path) -> None:
    out = tmp_path / "r.html"
    report.write(page, out)
    later = dict(report.files(replace(page, title=f"Another: {page.title}"), out.name))
    for name, text in later.items():
        (tmp_path / f"{name}.new").write_text(text)
    done = subprocess.run([sys.executable, "-c", KILLED, *(str(tmp_path / name) for name in later)], check=False)
    assert done.returncode == 9
    lying = {name: (tmp_path / name).read_text() for name in later}
    assert [name for name in later if lying[name] == later[name]] == ["r-rpc.html"], "new beside old"
    found = check_all(lying, dict(report.files(page, out.name)))
    assert {one.place.partition(": ")[0] for one in found.differences} == {"r-rpc.html"}
    report.write(page, out)
    assert {name: (tmp_path / name).read_text() for name in later} == dict(report.files(page, out.name))


@pytest.mark.usefixtures("few_bytes")
def test_no_id_and_no_landmark_stands_twice(page: PageDocument) -> None:
    """As axe's duplicate-id and landmark-unique have it, in one file and in each of several."""
    for text in (report.html(page), *dict(report.files(page, NAME)).values()):
        nodes = list(pagereader.read(text).walk())
        ids = [node.attrs["id"] for node in nodes if "id" in node.attrs]
        assert len(ids) == len(set(ids)) > 5
        known = {one.removeprefix("#") for node in nodes if (one := node.attrs.get("href", "")).startswith("#")}
        assert known <= set(ids)
        regions = [node for node in nodes if node.tag in ("nav", "main", "header", "footer")]
        regions += [node for node in nodes if node.tag == "section" and "aria-label" in node.attrs]
        landmarks = [(node.tag, node.attrs.get("aria-label", "")) for node in regions]
        assert len(landmarks) == len(set(landmarks)) >= 4


def test_a_pipe_gets_one_file(page: PageDocument, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pages, "ONE_FILE_MOST", 1)
    assert report.write_pages(page, Path("/dev/null")).pages == ()
    (tmp_path / "link").symlink_to("/dev/null")
    assert report.write_pages(page, tmp_path / "link").pages == ()


@pytest.mark.usefixtures("few_bytes")
def test_all_files_are_verified(page: PageDocument) -> None:
    files = dict(report.files(page, NAME))
    good = check_all(files, files)
    assert good.agrees
    one_file = check_all({NAME: report.html(page)}, {NAME: report.html(page)})
    assert good.numbers > one_file.numbers > 500
    spoiled = dict(files)
    name = "a report #1%-rpc.html"
    spoiled[name] = re.sub(r'data-v="(\d)', r'data-v="9\1', files[name], count=1)
    bad = check_all(spoiled, files)
    (difference,) = bad.differences
    assert difference.place.startswith(f"{name}: ")
    missing = check_all({one: text for one, text in files.items() if one != name}, files)
    assert [(one.place, one.printed) for one in missing.differences] == [(name, "nothing")]


@pytest.mark.usefixtures("few_bytes")
def test_the_main_file_opens_again_and_a_page_says_which_does(page: PageDocument) -> None:
    files = dict(report.files(page, NAME))
    again = report.html(report.page_again(files[NAME], NAME, "native-ucx"))
    assert again == report.html(report.page_again(report.html(page), NAME, "native-ucx")), (
        "parted or not, it is one campaign"
    )
    with pytest.raises(BadInputError, match=r"is one page of a report: open a report #1%.html"):
        report.html(report.page_again(files["a report #1%-rpc.html"], "x.html", None))


def test_a_site_has_every_page_and_a_retraction_marks_all(
    campaign: Campaign, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pages, "ONE_FILE_MOST", 1)
    with redacted([campaign], Rules()) as copies:
        (folder,) = publish(copies, tmp_path / "site", Labels(licence="CC0-1.0", authors=()))
    names = ["index-rpc.html", "index-stream.html", "index.html"]
    assert sorted(path.name for path in folder.glob("*.html")) == names
    for name in names:
        text = (folder / name).read_text()
        assert "All runs" in text
        assert "Data: CC0-1.0." in text
        for href in links_of(pagereader.read(text)):
            assert href.startswith(("#", "../")) or (folder / href.partition("#")[0]).is_file()
    retract(tmp_path / "site", campaign.campaign_id, "a wrong cable", "2026-11-26T00:00:00Z")
    assert all("RETRACTED" in (folder / name).read_text() for name in names)


@pytest.mark.usefixtures("few_bytes")
def test_a_browser_shows_a_page_and_goes_from_file_to_file(
    browser: Browser, page: PageDocument, tmp_path: Path
) -> None:
    width = 390
    long = "a \u202ename of <b>300</b> characters" * 12
    out = tmp_path / NAME
    made = report.write_pages(replace(page, title=long), out)
    for path in (made.pages[0], out):
        browser.open(path, width=width)
        browser.value("document.querySelectorAll('details').forEach(d => d.open = true)")
        assert browser.value("document.documentElement.scrollWidth") == width
        assert browser.complaints() == []
        assert browser.requests() == [path.resolve().as_uri()]
        levels = browser.value("Array.from(document.querySelectorAll('h1,h2,h3,h4,h5,h6')).map(e => +e.tagName[1])")
        assert levels.count(levels[0]) == 1 == levels[0]
        assert max(later - earlier for earlier, later in pairwise(levels)) == 1
    address = browser.value("document.querySelector('.elsewhere a').href")
    assert address == f"{made.pages[0].resolve().as_uri()}#rpc-within"
    browser.open(made.pages[0], width=width)
    assert browser.value("document.querySelector('.kicker a').href") == out.resolve().as_uri()
