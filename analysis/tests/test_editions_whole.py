# SPDX-License-Identifier: BSD-3-Clause
"""The Markdown and text editions tell every part of the page: each field of its view model, or it is named why not.

The page is made up from the types of the view model, a text of its own in each field, so a part that is added to the
page and forgotten in the editions is found, whoever adds it.
"""

from __future__ import annotations

import importlib
import pkgutil
import re
import types
from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from typing import Any, Union, get_args, get_origin, get_type_hints

from markupsafe import Markup

import cadge_analysis.page as package
from cadge_analysis.blocks.lines import filled, lines_of_page
from cadge_analysis.blocks.model import Facts, Region, Table, TableCell
from cadge_analysis.page.documents import document
from cadge_analysis.page.viewmodel import Page

_DRAWN = "a picture, or what belongs to one"
_LINKED = "where a link of the page leads"
_FOR_PROGRAMS = "for programs, which have `cadge export`"
ONLY_IN_HTML = {
    **dict.fromkeys(("Sheet.palette_light", "Sheet.palette_dark"), _DRAWN),
    **dict.fromkeys(("Remark.anchor", "Span.href"), _LINKED),
    **dict.fromkeys(("Finding.kind", "Remark.kind", "Remark.key", "Sheet.data_json", "Fact.key"), _FOR_PROGRAMS),
    "Span.role": "how something looks that is said in words beside it",
    "opened_from": "a report opened again is HTML alone, and a warning of its own says where it came from",
    "sheet": "the section on provenance tells it",
    "findings": "they are told among the warnings and notes, or in the sentence of what changed",
}
"""Fields of the view model that the editions leave out, or whole parts of the page, and why; all else is told."""


def _names() -> dict[str, Any]:
    """Return every name of the page's package, for annotations that are imported for types alone."""
    found: dict[str, Any] = {"Mapping": Mapping}
    for module in pkgutil.iter_modules(package.__path__):
        every = vars(importlib.import_module(f"{package.__name__}.{module.name}"))
        found |= {name: value for name, value in every.items() if is_dataclass(value)}
    return found


NAMES = _names()


def made_up(kind: Any, field: str, without: str, told: dict[str, str], part: str = "") -> Any:  # noqa: ANN401
    """Return a value of a type, in which every text says its field and a number; fields called `without` are empty.

    told: takes for each text its field, behind the name of the page's part that it is in.
    """
    if kind is Region:  # its blocks are told by what they are: test_blocks.py
        return Region(blocks=())
    if kind is Table:
        return Table(label="", role="", columns=(), lines=())
    if kind is Facts and field == "Page.compared":
        return Facts(())
    if kind is TableCell:
        return TableCell()
    if field == "Page.files":
        return ()
    origin, parts = get_origin(kind), get_args(kind)
    if is_dataclass(kind) and isinstance(kind, type):
        hints = get_type_hints(kind, localns=NAMES)
        return kind(
            **{
                one.name: made_up(hints[one.name], f"{kind.__name__}.{one.name}", without, told, part or one.name)
                for one in fields(kind)
            }
        )
    if origin in (Union, types.UnionType):
        (inner,) = (one for one in parts if one is not type(None))
        return made_up(inner, field, without, told, part)
    if origin is tuple:
        several = parts[:1] * 2 if parts[1:] == (...,) else parts
        return tuple(made_up(one, field, without, told, part) for one in several)
    if kind in (bool, int, float):
        return kind(0)
    assert kind in (str, Markup), f"{field}: a text edition cannot be asked for {kind}"
    if field.rpartition(".")[2] == without:
        return kind("")
    text = f"{field.replace('.', '-')}-{len(told)}"
    told[text] = f"{part}: {field}"
    return kind(text)


def told_fields(without: str) -> tuple[set[str], set[str]]:
    """Return every field of the page with a text, each behind its part, and those of which an edition tells some."""
    told: dict[str, str] = {}
    page = made_up(Page, "Page", without, told)
    said = " ".join(texts(tuple(filled(lines_of_page(document(page))))))
    spoken = {told[text] for text in re.findall(r"[A-Z][A-Za-z]*-[a-z_0-9]+-[0-9]+", said)}
    return set(told.values()), spoken


def texts(node: object) -> Iterator[str]:
    if is_dataclass(node):
        for one in fields(node):
            yield from texts(getattr(node, one.name))
    elif isinstance(node, tuple):
        for item in node:
            yield from texts(item)
    elif isinstance(node, str):
        yield node


def test_every_field_of_the_page_is_told_or_named() -> None:
    every, spoken = told_fields("")
    spoken |= told_fields("reason")[1]
    assert len(spoken) > 15
    silent = every - spoken
    named = {field for field in silent if {field, *field.split(": ")} & ONLY_IN_HTML.keys()}
    assert silent - named == set(), "tell these in page/documents.py, or say here why not"
    needed = {part for field in named for part in (field, *field.split(": "))}
    assert ONLY_IN_HTML.keys() - needed == set(), "these are told, or are gone"
    assert all(ONLY_IN_HTML.values())
