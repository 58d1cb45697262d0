# SPDX-License-Identifier: BSD-3-Clause
"""Check that every link in the repository's Markdown leads somewhere, as a forge follows it.

A link to a file or folder is relative to its page, and what it names is tracked by git; a fragment is the anchor of a
heading, as forges make it of the heading's words, an `id` in HTML, or a line of a file that is no page (#L7). Links to
other sites are not followed. Where a page names a section of a report (*Answer*), it is a heading of the page that
explains reports; a test holds that page's headings against a report's own.

Exit 0 when every link leads somewhere, 1 with one line for each that does not.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from posixpath import normpath
from urllib.parse import unquote, urlsplit

from markdown_it import MarkdownIt
from markdown_it.token import Token

PARSER = MarkdownIt("commonmark").enable("table")
READING = "analysis/READING.md"
"""The page that explains each section of a report, under the section's own heading."""
OTHER_EMPHASIS = {
    "analysis/READING.md": "verdicts; its headings are the sections themselves",
    "ci/kit/README.md": "names of a workflow's jobs",
    "layers/peregrine/engine/PROTOCOL.md": "names of messages",
    "layers/peregrine/engine/wireshark/README.md": "entries of Wireshark's menus",
}
"""Pages in which words in emphasis with a capital letter are no sections of a report, and what they are there."""
LINE = re.compile(r"L(\d+)(?:-L(\d+))?")
NOT_IN_ANCHORS = re.compile(r"[^\w\- ]")


@dataclass(frozen=True, slots=True)
class Link:
    """A link: the line of the block that it stands in, and what it names."""

    line: int
    target: str


@dataclass(frozen=True, slots=True)
class BrokenLink:
    """A link that leads nowhere, and why."""

    page: str
    link: Link
    why: str


@dataclass(slots=True)
class Page:
    """What a page links to, and what can be linked to in it."""

    links: list[Link] = field(default_factory=list)
    anchors: set[str] = field(default_factory=set)
    headings: set[str] = field(default_factory=set)
    emphasised: list[Link] = field(default_factory=list)
    """Words in emphasis that begin with a capital letter."""


class _Html(HTMLParser):
    """Links and anchors of a piece of HTML within a page."""

    def __init__(self, page: Page, line: int) -> None:
        super().__init__()
        self._page, self._line = page, line

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:  # noqa: ARG002 - a signature
        for name, value in attrs:
            if value and name in {"href", "src"}:
                self._page.links.append(Link(self._line, value))
            elif value and name in {"id", "name"}:
                self._page.anchors.add(value)


def anchor_of(heading: str, before: Counter[str]) -> str:
    """Return the anchor that forges give to a heading; of those of one name, the second ends in -1.

    `before` counts the names that the page has had.
    """
    name = NOT_IN_ANCHORS.sub("", heading.strip().lower()).replace(" ", "-")
    before[name] += 1
    return name if before[name] == 1 else f"{name}-{before[name] - 1}"


def _words(inline: Token) -> str:
    """Return a heading's words without their marks."""
    return "".join(
        token.content if token.type in {"text", "code_inline"} else " "
        for token in inline.children or ()
        if token.type in {"text", "code_inline", "softbreak"}
    )


def _emphasised(inline: Token) -> Iterator[str]:
    """Yield the words of a block that stand in emphasis."""
    depth, words = 0, ""
    for token in inline.children or ():
        depth += {"em_open": 1, "em_close": -1}.get(token.type, 0)
        words += token.content if depth and token.type in {"text", "code_inline"} else " " if depth else ""
        if token.type == "em_close" and not depth:
            yield " ".join(words.split())
            words = ""


def read(text: str) -> Page:
    """Return the links and anchors of a page."""
    page, names, line, is_heading = Page(), Counter[str](), 1, False
    for token in PARSER.parse(text):
        line = token.map[0] + 1 if token.map else line
        if token.type == "html_block":
            _Html(page, line).feed(token.content)
        if token.type != "inline":
            is_heading = token.type == "heading_open"
            continue
        if is_heading:
            page.anchors.add(anchor_of(_words(token), names))
            page.headings.add(_words(token).strip())
        page.emphasised += (Link(line, words) for words in _emphasised(token) if words[:1].isupper())
        for child in token.children or ():
            target = child.attrs.get("href") or child.attrs.get("src")
            if child.type in {"link_open", "image"} and target:
                page.links.append(Link(line, str(target)))
            elif child.type == "html_inline":
                _Html(page, line).feed(child.content)
    return page


def tracked(root: Path) -> set[str]:
    """Return what git tracks below `root`: files, and the folders that they lie in."""
    argv = ["git", "ls-files", "-z"]
    listing = subprocess.run(argv, cwd=root, capture_output=True, text=True, check=True).stdout
    files = [name for name in listing.split("\0") if name and (root / name).is_file()]
    return {*files, *(str(parent) for name in files for parent in Path(name).parents)}


class Pages:
    """All Markdown pages of a checkout."""

    def __init__(self, root: Path) -> None:
        """Read what git tracks below `root`."""
        self._root, self._there = root, tracked(root)
        names = sorted(name for name in self._there if name.endswith(".md"))
        self._pages = {name: read((root / name).read_text(encoding="utf-8")) for name in names}

    def dead(self) -> Iterator[BrokenLink]:
        """Yield every link that leads nowhere."""
        for name, page in self._pages.items():
            for link in page.links:
                why = self._why(name, link.target)
                if why:
                    yield BrokenLink(name, link, why)
            yield from self._unknown_sections(name, page)

    def _unknown_sections(self, name: str, page: Page) -> Iterator[BrokenLink]:
        """Yield the sections of a report that a page names and that no report has."""
        reading = self._pages.get(READING)
        if reading is None or name in OTHER_EMPHASIS:
            return
        for one in page.emphasised:
            if one.target not in reading.headings:
                yield BrokenLink(
                    name, Link(one.line, f"*{one.target}*"), f"{READING} explains no section of a report so called"
                )

    def _why(self, name: str, target: str) -> str:
        """Return why a link of a page leads nowhere; nothing where it leads somewhere, or to another site."""
        parts = urlsplit(target)
        if parts.scheme or parts.netloc:
            return ""
        if parts.path.startswith("/"):
            return "begins with /, which is not the same place everywhere: name it relative to the page"
        path = normpath(Path(name).parent / unquote(parts.path)) if parts.path else name
        if path not in self._there:
            return f"{path} is not there, or not tracked by git"
        return self._fragment(path, unquote(parts.fragment)) if parts.fragment else ""

    def _fragment(self, path: str, fragment: str) -> str:
        page = self._pages.get(path)
        if page is not None:
            return "" if fragment in page.anchors else f"{path} has no heading with the anchor {fragment}"
        line = LINE.fullmatch(fragment)
        if not line or not (self._root / path).is_file():
            return f"{path} is no page: only lines of files have anchors (#L7)"
        have = len((self._root / path).read_text(encoding="utf-8").splitlines())
        return "" if int(line[2] or line[1]) <= have else f"{path} has {have} lines"


def main() -> int:
    """Print what was found; return the exit status."""
    found = list(Pages(Path(__file__).resolve().parent.parent).dead())
    for one in found:
        print(f"{one.page}:{one.link.line}: dead link {one.link.target}: {one.why}", file=sys.stderr)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
