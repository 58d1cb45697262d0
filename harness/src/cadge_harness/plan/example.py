# SPDX-License-Identifier: BSD-3-Clause
"""A document with a comment on every key of its format, made of the format's schema.

Keys of the schema's own example are filled in; all others stand there as comments, with a value that they may have.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from cadge_results.formats.complaint import Schema, SchemaParts, flow, schema_parts

if TYPE_CHECKING:
    from cadge_results.formats.complaint import Kind

WIDTH = 79
INDENT = "  "
PLAIN = ("boolean", "integer", "number", "string")
"""Types of which a comment says what is allowed; of others the example shows it."""


def commented(kind: Kind, head: str) -> str:
    """Return an example of a format as YAML, every key of it with a comment."""
    parts = schema_parts(kind)
    root = parts.at(())
    value = parts.example(root)
    assert isinstance(value, Mapping)  # noqa: S101 - a document is a mapping
    lines = ["---", *(f"# {line}".rstrip() for line in head.splitlines()), *_keys(parts, root, value, "")]
    return "\n".join(lines) + "\n"


def _keys(parts: SchemaParts, schema: Schema, value: Mapping[str, object], pad: str) -> Iterator[str]:
    """Yield all keys of a group; those that the example does not have are comments."""
    known = {key: parts.resolve(one) for key, one in schema["properties"].items()}
    given = [key for key in known if key in value]
    beside = [key for key in value if key not in known]
    # keys of the example's own, parameters of a pattern, stand behind the first one
    for key in [*given[:1], *beside, *(key for key in known if key not in given[:1])]:
        one = known.get(key, {})
        if not pad:
            yield ""
        yield from _comment(parts, one, pad)
        if key in value:
            yield from _entry(parts, key, one, value[key], pad)
        else:
            yield f"{pad}# {key}: {flow(parts.example(one))}"


def _comment(parts: SchemaParts, one: Schema, pad: str) -> Iterator[str]:
    said = [one["description"]] if "description" in one else []
    branch = next(iter(parts.branches(one)), {})
    if branch.get("type") in PLAIN and ("pattern" in branch or branch["type"] != "string"):
        said.append(f"{parts.allowed(one)[0].upper()}{parts.allowed(one)[1:]}.")
    if one.get("default") not in (None, [], {}, ""):
        said.append(f"Unless given: {flow(one['default'])}.")
    head = f"{pad}# "
    yield from textwrap.wrap(" ".join(said), WIDTH, initial_indent=head, subsequent_indent=head, break_on_hyphens=False)


def _entry(parts: SchemaParts, key: str, schema: Schema, value: object, pad: str) -> Iterator[str]:
    """Yield a key with its value: in lines of its own where that is a group of keys, or a list with some."""
    inner = pad + INDENT
    match value:
        case Mapping() if group := _group(parts, schema):
            yield f"{pad}{key}:"
            yield from _keys(parts, group, value, inner)
        case [*items] if any(isinstance(item, Mapping) for item in items):
            yield f"{pad}{key}:"
            each = next((parts.resolve(one["items"]) for one in parts.branches(schema) if "items" in one), {})
            for item in items:
                yield from _item(parts, each, item, inner)
        case _:
            yield f"{pad}{key}: {flow(value)}"


def _item(parts: SchemaParts, schema: Schema, item: object, pad: str) -> Iterator[str]:
    group = _group(parts, schema)
    if not isinstance(item, Mapping) or group is None:
        yield f"{pad}- {flow(item)}"
        return
    lines = list(_keys(parts, group, item, pad + INDENT))
    first = next(number for number, line in enumerate(lines) if not line.lstrip().startswith("#"))
    yield from (line[len(INDENT) :] for line in lines[:first])
    yield f"{pad}- {lines[first].strip()}"
    yield from lines[first + 1 :]


def _group(parts: SchemaParts, schema: Schema) -> Schema | None:
    return next((one for one in parts.branches(schema) if one.get("properties")), None)
