# SPDX-License-Identifier: BSD-3-Clause
"""Lays out what Sphinx reads: every Markdown page that git tracks, in its place, and the pages that code makes.

Links between pages stay as they are, since places do. A file that a page links to is laid out as well, and a folder is
its README; a folder without one is no page, so that its link becomes plain words. Where pages link to HTML, its folder
goes to the site as it lies.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterable, Mapping
from fnmatch import fnmatchcase
from pathlib import Path
from posixpath import normpath
from urllib.parse import unquote, urlsplit

import yaml
from ci.check_links import read, tracked

HERE = Path(__file__).parent
HTML_LINK = re.compile(r'(<a href="[^":]+)\.md((?:#[^"]*)?")')
"""A link to a page in HTML, which Sphinx does not see: around a picture, for one."""


def pages(root: Path) -> dict[str, str]:
    """Return the Markdown pages of a checkout, by their places."""
    names = sorted(name for name in tracked(root) if name.endswith(".md"))
    return {name: (root / name).read_text(encoding="utf-8") for name in names}


def linked(name: str, text: str) -> dict[str, str]:
    """Return what a page links to within the repository: the link as it is written, and the place that it names."""
    found = {}
    for link in read(text).links:
        parts = urlsplit(link.target)
        if parts.path and not parts.scheme and not parts.netloc:
            found[link.target] = normpath(Path(name).parent / unquote(parts.path))
    return found


def whole(root: Path) -> dict[str, list[str]]:
    """Return the folders with HTML of their own that pages link to, with all that git tracks there, but Markdown.

    Such files link to each other, and so go to the site as they lie, each folder as a whole.
    """
    found: dict[str, list[str]] = {}
    for name, text in pages(root).items():
        for place in linked(name, text).values():
            if place.endswith(".html") and (root / place).is_file():
                found[str(Path(place).parent)] = []
    for name in tracked(root):
        folder = str(Path(name).parent)
        if folder in found and not name.endswith(".md"):
            found[folder].append(name)
    return found


def with_links(name: str, text: str, root: Path, every: Iterable[str], as_they_lie: Iterable[str]) -> str:
    """Return a page whose links to folders lead to their README, or are plain words where there is none.

    Links to files that go to the site `as_they_lie` are HTML, which Sphinx leaves alone.
    """
    names, lying = set(every), set(as_they_lie)
    for target, place in linked(name, text).items():
        if place in lying:
            text = re.sub(rf"\[([^\]]*)\]\({re.escape(target)}\)", rf'<a href="{target}">\1</a>', text)
        if not (root / place).is_dir():
            continue
        if f"{place}/README.md" in names:
            text = text.replace(f"]({target})", f"]({target.rstrip('/')}/README.md)")
        else:
            text = re.sub(rf"\[([^\]]*)\]\({re.escape(target)}\)", r"\1", text)
    return HTML_LINK.sub(r"\1.html\2", text)


def _entry(name: str) -> str:
    """Return a page's line in the contents: its own heading, but the README's, which is the site's as well."""
    place = f"/{name.removesuffix('.md')}"
    return f"What it does <{place}>" if name == "README.md" else place


def contents(names: Iterable[str]) -> str:
    """Return the table of contents: each page in the first part one of whose patterns it matches. None is left out."""
    parts: Mapping[str, list[str]] = yaml.safe_load((HERE / "contents.yml").read_text(encoding="utf-8"))
    left, text = sorted(names), ""
    for part, patterns in parts.items():
        chosen: list[str] = []
        for pattern in patterns:
            chosen += [name for name in left if fnmatchcase(name, pattern) and name not in chosen]
        left = [name for name in left if name not in chosen]
        if chosen:
            listing = "\n".join(_entry(name) for name in chosen)
            text += f"\n```{{toctree}}\n:caption: {part}\n:hidden:\n\n{listing}\n```\n"
    assert not left, f"contents.yml has no part for {left}"
    return text


def stage(root: Path, source: Path, made: Mapping[str, str]) -> None:
    """Lay out all pages of the checkout at `root`, and those that were `made`, in the folder `source`, which is new."""
    every = {**pages(root), **made}
    lying = [name for names in whole(root).values() for name in names]
    every["index.md"] = (HERE / "index.md.in").read_text(encoding="utf-8") + contents(every)
    for name, text in every.items():
        place = source / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(with_links(name, text, root, every, lying), encoding="utf-8")
        for target in linked(name, text).values():
            if (root / target).is_file() and target not in every and target not in lying:
                (source / target).parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(root / target, source / target)
