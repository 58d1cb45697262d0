# SPDX-License-Identifier: BSD-3-Clause
"""Errors of every YAML file that users write: the key, what is allowed, an example, and never a word of pydantic's.

A generator goes through each format's schema: every key is given values of each wrong type.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest
from pydantic import BaseModel, ValidationError
from pydantic_core._pydantic_core import list_all_errors

from cadge_analysis.study.claims import Hypotheses
from cadge_analysis.study.published import Publication
from cadge_harness.providers.library import LibraryFile
from cadge_results import FloorFile, LayerFile, PatternFile, SweepFile
from cadge_results.formats.complaint import Path, SchemaParts, complaints, schema_parts

WRITTEN: list[type[BaseModel]] = [
    SweepFile,
    LayerFile,
    PatternFile,
    FloorFile,
    LibraryFile,
    Publication,
    Hypotheses,
]
"""What users write."""
WRONG: list[object] = [
    None, True, 7, -1, 10**30, 1.5, "", "no such", "2s", "8", [], ["no such"], [7], [[]], [{}], [None], {}, {"no": 1},
    {"no": {}}, {"No Such": ["x"]}, {"no": [1.5]},
]  # fmt: skip
DEPTH_MOST = 7
PYDANTIC = [
    re.compile(re.sub(r"\\\{\w+\\\}", ".+", re.escape(template)))
    for one in list_all_errors()
    for template in {one["message_template_python"], one.get("message_template_json", one["message_template_python"])}
    if re.sub(r"\{\w+\}", "", template).strip(" ,:")
]
EXAMPLE = re.compile(r"(?i)for example: |\blike \S|\bas in \S|; known: \w")
ALLOWED = re.compile(
    r"\bmust be|\bis missing; it must be|unknown key|\bwrite|\bwritten|\bname\b|\bnames\b|\bneeds?\b|\bhas\b"
    r"|\bgive\b|\ban? \w+ (has|is)\b"
)


def places(schema: SchemaParts, path: Path = ()) -> Iterator[Path]:
    """Yield the path of every key that a schema knows, and of a first member of each list."""
    if len(path) > DEPTH_MOST:
        return
    for branch in schema.branches(schema.at(path)):
        for key in branch.get("properties", ()):
            yield (*path, key)
            yield from places(schema, (*path, key))
        if branch.get("items"):
            yield (*path, 0)
            yield from places(schema, (*path, 0))
        if (
            each := schema.each(branch)
        ) and "properties" not in branch:  # parameters beside keys are their pattern's to judge
            name = str(schema.example(each[0]))
            yield (*path, name)
            yield from places(schema, (*path, name))


def document(schema: SchemaParts, path: Path, value: object) -> object:
    """Return a document that has nothing but examples, and a value at a path."""

    def fill(at: Path) -> Any:  # noqa: ANN401 - any JSON
        if at == path:
            return value
        part = path[len(at)]
        if isinstance(part, int):
            return [fill((*at, part))]
        here = schema.example(schema.at(at))
        here = here if isinstance(here, dict) else {}
        return {**here, part: fill((*at, part))}

    return fill(())


def said(kind: type[BaseModel], raw: object) -> dict[Path, str]:
    """Return what is said of a document, by place; nothing where it is right."""
    try:
        kind.model_validate_json(json.dumps(raw))
    except ValidationError as error:
        return {one.path: one.text for one in complaints(error, kind, raw)}
    return {}


@pytest.mark.parametrize("kind", WRITTEN, ids=lambda kind: kind.__name__)
def test_every_key_with_values_of_each_wrong_type(kind: type[BaseModel]) -> None:
    schema = schema_parts(kind)
    wrong, never_refused = [], []
    every = list(dict.fromkeys(places(schema)))
    for path in every:
        refused = False
        for value in WRONG:
            raw = document(schema, path, value)
            found = said(kind, raw)
            mine = {
                where: text
                for where, text in found.items()
                if path[: len(where)] == where or where[: len(path)] == path
            }
            refused |= bool(mine)
            for where, text in found.items():
                # what does not fit together within a group of keys is told in words of that group's own
                together = any("properties" in one for one in schema.branches(schema.at(where)))
                lacks = not EXAMPLE.search(text) or (not together and not ALLOWED.search(text))
                if (where and lacks) or any(one.search(text) for one in PYDANTIC):
                    wrong.append((path, value, where, text))
        if not refused:
            never_refused.append(path)
    assert not wrong, f"{len(wrong)}: {wrong[:9]}"
    assert not never_refused
    assert len(every) > 8


@pytest.mark.parametrize("kind", WRITTEN, ids=lambda kind: kind.__name__)
def test_what_is_shown_as_an_example_is_right(kind: type[BaseModel]) -> None:
    schema = schema_parts(kind)
    for path in dict.fromkeys(places(schema)):
        raw = document(schema, path, schema.example(schema.at(path)))
        found = said(kind, raw)
        assert not {where: text for where, text in found.items() if where[: len(path)] == path and "must be" in text}, (
            raw
        )
