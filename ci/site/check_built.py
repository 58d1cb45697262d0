# SPDX-License-Identifier: BSD-3-Clause
"""Check a built site: every link within it leads to a file and an anchor that are there, and nothing is fetched."""

from __future__ import annotations

from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from posixpath import normpath
from urllib.parse import unquote, urlsplit

from cadge_analysis.publish.excerpt import is_elsewhere

FETCHES = {"script": "src", "img": "src", "iframe": "src", "source": "src", "link": "href"}
"""Elements that a browser fetches by itself, and the attribute that says what."""
NO_RESOURCE = {"canonical", "index", "search", "next", "prev", "author", "copyright", "license"}
"""What a link element may be that nothing is fetched for."""


class _Page(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.targets: list[tuple[str, bool]] = []
        """What a page links to, and whether a browser fetches it by itself."""
        self.anchors: set[str] = set()
        self.elsewhere = False
        """It says that the page, and so its anchors, are in the archive of a published report."""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        self.anchors |= {given[name] for name in ("id", "name") if name in given}
        for name in ("href", "src"):
            if given.get(name):
                fetched = FETCHES.get(tag) == name and given.get("rel") not in NO_RESOURCE
                self.targets.append((given[name], fetched))


def _read(path: Path) -> _Page:
    page = _Page()
    text = path.read_text(encoding="utf-8")
    page.elsewhere = is_elsewhere(path.name, text)
    page.feed(text)
    return page


def wrong(site: Path) -> Iterator[str]:
    """Yield a sentence for every link of the site that leads nowhere, and for every one that a browser would fetch."""
    pages = {path.relative_to(site).as_posix(): _read(path) for path in sorted(site.rglob("*.html"))}
    for name, page in pages.items():
        for target, fetched in page.targets:
            parts = urlsplit(target)
            if parts.scheme == "data":
                continue
            if parts.scheme or parts.netloc:
                if fetched:
                    yield f"{name}: {target} would be fetched from elsewhere"
                continue
            place = normpath(Path(name).parent / unquote(parts.path)) if parts.path else name
            if not (site / place).is_file():
                yield f"{name}: {target}: there is no {place}"
            elif pages.get(place) and pages[place].elsewhere:
                continue
            elif parts.fragment and place in pages and unquote(parts.fragment) not in pages[place].anchors:
                yield f"{name}: {target}: {place} has no such anchor"
