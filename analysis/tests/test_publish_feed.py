# SPDX-License-Identifier: BSD-3-Clause
"""The feed of a site: what Atom demands, ids that stay, hostile text as text, and a retraction told first."""

from __future__ import annotations

from xml.etree import ElementTree as Xml

import pytest

from cadge_analysis.publish.banner import badge
from cadge_analysis.publish.feed import feed, new_id
from cadge_analysis.publish.model import PublishedRun, Retraction, SiteFile

ATOM = "{http://www.w3.org/2005/Atom}"
HOSTILE = '</title><script>alert("1")</script>\x00\x1b]]>\ufffe & more'


def about(title: str = "Compared", **more: str) -> SiteFile:
    authors = ({"family-names": "Curie", "given-names": "M"},)
    return SiteFile(schema_=SiteFile.schema_id(), title=title, authors=authors, **more)  # type: ignore[arg-type]


def run(day: int, title: str = "A run", retracted: Retraction | None = None) -> PublishedRun:
    return PublishedRun(
        schema_=PublishedRun.schema_id(),
        campaign_id=f"202611{day}T031204Z-557f9c1d",
        title=title,
        created_utc=f"2026-11-{day}T03:12:04.500000Z",
        site="here",
        layers=("a-b",),
        headline="h",
        validity="Valid",
        redacted=True,
        original_sha256="0" * 64,
        licence="CC-BY-4.0",
        bundle="b.tar.gz",
        retracted=retracted,
    )


def parsed(*runs: PublishedRun, title: str = "Compared") -> Xml.Element:
    return Xml.fromstring(feed(about(title), runs))  # noqa: S314 - our own


def texts(root: Xml.Element, path: str) -> list[str]:
    return [found.text or "" for found in root.findall("/".join(ATOM + name for name in path.split("/")))]


def test_it_has_what_atom_demands() -> None:
    root = parsed(run(22), run(21))
    for name in ("id", "title", "updated", "author/name", "entry/id", "entry/title", "entry/updated"):
        assert all(texts(root, name)), name
    assert texts(root, "updated") == ["2026-11-22T03:12:04Z"]
    assert texts(root, "author/name") == ["M Curie"]
    links = [link.attrib["href"] for link in root.findall(f"{ATOM}entry/{ATOM}link")]
    assert links == [f"runs/{one.campaign_id}/index.html" for one in (run(22), run(21))]
    assert feed(about(), [run(22), run(21)]) == feed(about(), [run(22), run(21)])


def test_ids_stay_when_titles_change_and_runs_come() -> None:
    before, after = parsed(run(21)), parsed(run(22), run(21, "Another title"), title="Another site")
    assert texts(before, "id") == texts(after, "id")
    assert texts(before, "entry/id")[0] == texts(after, "entry/id")[1]
    assert len({*texts(after, "id"), *texts(after, "entry/id")}) == 3


def test_a_site_keeps_its_id_where_an_older_run_comes() -> None:
    kept = about(feed_id=new_id([run(21)]))
    roots = [Xml.fromstring(feed(kept, runs)) for runs in ([run(21)], [run(21), run(11)])]  # noqa: S314 - our own
    assert texts(roots[0], "id") == texts(roots[1], "id") == texts(parsed(run(21)), "id")


def test_links_are_whole_where_it_is_known_where_the_site_is_read() -> None:
    root = Xml.fromstring(feed(about(url="https://www.example.org/cadge/"), [run(21)]))  # noqa: S314 - our own
    links = {link.attrib["rel"]: link.attrib["href"] for link in root.findall(f"{ATOM}link")}
    base = "https://www.example.org/cadge"
    assert links == {"self": f"{base}/feed.xml", "alternate": f"{base}/index.html"}
    assert all(link.attrib["href"].startswith(f"{base}/runs/2026") for link in root.findall(f"{ATOM}entry/{ATOM}link"))


@pytest.mark.parametrize(
    "url", ["www.example.org", "javascript:alert(1)", 'https://a"><script>', "https://a b", "ftp://a"]
)
def test_an_address_that_is_none_is_refused(url: str) -> None:
    with pytest.raises(ValueError, match="url"):
        about(url=url)


def test_a_badge_tells_of_the_run_and_of_its_retraction() -> None:
    stands, gone = badge(run(21)), badge(run(21, retracted=Retraction(because="the clock", at_utc="2026-11-26")))
    for content, text in ((stands, "1 layer compared, 2026-11-21"), (gone, "retracted 2026-11-26")):
        root = Xml.fromstring(content)  # noqa: S314 - our own
        assert root.attrib["aria-label"] == f"cadge: {text}"
        widths = [float(one.attrib["width"]) for one in root.findall(".//{*}g/{*}rect")]
        assert sum(widths) == float(root.attrib["width"])
    assert stands != gone


def test_hostile_text_is_text() -> None:
    root = parsed(run(21, HOSTILE), title=HOSTILE)
    shown = HOSTILE.replace("\x00", "\ufffd").replace("\x1b", "\ufffd").replace("\ufffe", "\ufffd")
    assert texts(root, "title") == [shown]
    assert texts(root, "entry/title") == [shown]
    assert not list(root.iter("script"))


def test_a_retraction_is_told_and_is_new() -> None:
    root = parsed(run(22), run(21, retracted=Retraction(because="the clock", at_utc="2026-11-26")))
    assert texts(root, "entry/title")[1] == "RETRACTED: A run"
    assert texts(root, "entry/summary")[1] == "Retracted on 2026-11-26: the clock"
    assert texts(root, "updated") == texts(root, "entry/updated")[1:] == ["2026-11-26T00:00:00Z"]
