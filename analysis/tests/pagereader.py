# SPDX-License-Identifier: BSD-3-Clause
"""Reads a report as a program would: a tree of elements, and its tables. Standard library alone."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from html.parser import HTMLParser

VOID = {"meta", "br", "hr", "img", "input", "link", "base"}


@dataclass
class Node:
    """An element with its attributes and its children: elements and pieces of text."""

    tag: str
    attrs: dict[str, str] = field(default_factory=dict)
    children: list[Node | str] = field(default_factory=list)

    def walk(self) -> Iterator[Node]:
        waiting = [self]
        while waiting:
            node = waiting.pop()
            yield node
            waiting += [child for child in reversed(node.children) if isinstance(child, Node)]

    def all(self, tag: str, **attrs: str) -> list[Node]:
        wanted = {name.replace("_", "-").rstrip("-"): value for name, value in attrs.items()}
        return [
            node
            for node in self.walk()
            if node.tag == tag and all(value in node.attrs.get(name, "").split(" ") for name, value in wanted.items())
        ]

    def one(self, tag: str, **attrs: str) -> Node:
        found = self.all(tag, **attrs)
        assert len(found) == 1, f"{len(found)} elements {tag} {attrs}"
        return found[0]

    @property
    def own(self) -> str:
        """Text of the element itself, without that of elements in it."""
        return "".join(child for child in self.children if isinstance(child, str)).strip()

    @property
    def text(self) -> str:
        """All text in the element."""
        return "".join(child if isinstance(child, str) else child.text for child in self.children).strip()

    @property
    def smalls(self) -> list[str]:
        """Texts of the small print in the element."""
        return [node.text for node in self.all("small")]


class _Builder(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.root = Node("root")
        self._open = [self.root]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        node = Node(tag, {name: value or "" for name, value in attrs})
        self._open[-1].children.append(node)
        if tag not in VOID:
            self._open.append(node)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._open[-1].children.append(Node(tag, {name: value or "" for name, value in attrs}))

    def handle_endtag(self, tag: str) -> None:
        while len(self._open) > 1:
            if self._open.pop().tag == tag:
                return
        raise AssertionError(f"</{tag}> closes nothing")

    def handle_data(self, data: str) -> None:
        self._open[-1].children.append(data)

    def unclosed(self) -> list[str]:
        return [node.tag for node in self._open[1:]]


def read(text: str) -> Node:
    """Return the tree of a document; every element in it has to be closed properly."""
    builder = _Builder()
    builder.feed(text)
    builder.close()
    assert builder.unclosed() == []
    return builder.root


@dataclass(frozen=True)
class Field:
    """One cell of a full table: its text, its small print, and its unrounded numbers."""

    text: str
    smalls: list[str]
    numbers: list[float]
    classes: str


@dataclass(frozen=True)
class FullRow:
    """One row of a full table."""

    case: str
    point_id: str
    layer: str
    wait: str
    label: str
    fields: dict[str, Field]


def full_rows(root: Node) -> list[FullRow]:
    """Return every row of every table with all columns; one whose columns stand in two tables is one row."""
    found: dict[tuple[str, str], FullRow] = {}
    for table in root.all("table", class_="full"):
        names = [head.attrs["data-f"] for head in table.all("th") if "data-f" in head.attrs]
        for row in table.one("tbody").all("tr"):
            cells = row.all("td")
            assert len(cells) == len(names)
            fields = {name: _field(cell) for name, cell in zip(names, cells, strict=True)}
            one = FullRow(
                table.attrs["data-case"],
                row.attrs["data-point"],
                row.one("bdi").text,
                row.attrs["data-wait"],
                row.one("th").text,
                fields,
            )
            found.setdefault((one.case, one.point_id), one).fields.update(fields)
    for table in root.all("table", class_="same"):
        names = [head.attrs["data-f"] for head in table.all("th") if "data-f" in head.attrs]
        for line in table.one("tbody").all("tr"):
            values = dict(zip(names, map(_field, line.all("td")[-len(names) :]), strict=True))
            for row in found.values():
                if row.case == table.attrs["data-case"] and line.attrs.get("data-wait", row.wait) == row.wait:
                    row.fields.update(values)
    return list(found.values())


def _field(cell: Node) -> Field:
    numbers = [float(number) for number in cell.attrs.get("data-v", "").split()]
    return Field(cell.own, cell.smalls, numbers, cell.attrs.get("class", ""))
