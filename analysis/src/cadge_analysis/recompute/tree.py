# SPDX-License-Identifier: BSD-3-Clause
"""A report's HTML as a tree. Whatever stands in the file stands in the tree, comments and unknown elements as well."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from html.parser import HTMLParser

VOID = frozenset(("area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source", "track", "wbr"))


def spaced(text: str) -> str:
    """Return a text with single spaces; one that holds a number together (U+202F, U+00A0) stays as it is."""
    return re.sub(r"[ \t\r\n]+", " ", text).strip(" ")


@dataclass(slots=True)
class Node:
    """An element; `children` are elements and texts, in order."""

    tag: str
    attrs: dict[str, str] = field(default_factory=dict)
    children: list[Node | str] = field(default_factory=list)

    @property
    def elements(self) -> Iterator[Node]:
        """The elements in it, without texts."""
        return (child for child in self.children if isinstance(child, Node))

    @property
    def text(self) -> str:
        """All text in it, with single spaces."""
        return spaced(" ".join(self._texts()))

    def _texts(self) -> Iterator[str]:
        for child in self.children:
            if isinstance(child, str):
                yield child
            else:
                yield from child._texts()

    def all(self, tag: str) -> Iterator[Node]:
        """Yield every element of that name in it, from the first to the last."""
        for child in self.elements:
            if child.tag == tag:
                yield child
            yield from child.all(tag)


class _Builder(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.root = Node("document")
        self._open = [self.root]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        node = Node(tag, {name: value or "" for name, value in attrs})
        self._open[-1].children.append(node)
        if tag not in VOID:
            self._open.append(node)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._open[-1].children.append(Node(tag, {name: value or "" for name, value in attrs}))

    def handle_endtag(self, tag: str) -> None:
        if any(node.tag == tag for node in self._open[1:]):
            while self._open.pop().tag != tag:
                pass

    def handle_data(self, data: str) -> None:
        self._open[-1].children.append(data)

    def handle_comment(self, data: str) -> None:
        self._open[-1].children.append(Node("comment", {}, [data]))


def read(text: str) -> Node:
    """Return the tree of a document; what is not closed ends where what holds it does."""
    builder = _Builder()
    builder.feed(text)
    builder.close()
    return builder.root
