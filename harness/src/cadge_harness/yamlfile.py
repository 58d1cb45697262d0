# SPDX-License-Identifier: BSD-3-Clause
"""YAML with positions: every complaint about a file names its line, its column, and the nearest valid name.

Only what JSON can say is read (YAML 1.2's core: `yes` and `no` are strings, a date is a string), and no more than
`yamlbounds` allows.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from itertools import chain, islice
from typing import TypeVar

import yaml
from pydantic import JsonValue, ValidationError
from yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from cadge_harness.errors import UsageError
from cadge_harness.yamlbounds import DIGITS_MAX, check_bounds
from cadge_results import ResultsError
from cadge_results.formats.base import Document
from cadge_results.formats.complaint import Complaint, complaints
from cadge_results.plugins.catalogue import SafeLoader

DocumentT = TypeVar("DocumentT", bound=Document)
_Path = tuple[str | int, ...]
PROBLEMS_MOST = 5
"""Of a file, that are shown at a time."""
_SLOW_BYTES = 32 * 1024
"""What PyYAML's own loader, which takes a second for 150 KB, is given to say better what is wrong."""
_SHOWN_MOST = 400
"""Letters of a complaint: a file may hold a word of a hundred thousand, a terminal should not."""


class _Loader(yaml.SafeLoader):
    """SafeLoader with the scalars of JSON and nothing else."""


class _QuickLoader(SafeLoader):  # type: ignore[misc,valid-type]
    """The same by libyaml, which is several times as fast and says less of what is wrong."""


_Loader.yaml_implicit_resolvers = _QuickLoader.yaml_implicit_resolvers = {
    first: [
        (tag, regexp)
        for tag, regexp in resolvers
        if tag in {"tag:yaml.org,2002:int", "tag:yaml.org,2002:float", "tag:yaml.org,2002:null"}
    ]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}


@dataclass(frozen=True, slots=True)
class Marks:
    """Where each key and each value of a file stands, as (line, column) from 1."""

    values: dict[_Path, tuple[int, int]] = field(default_factory=dict)
    keys: dict[_Path, tuple[int, int]] = field(default_factory=dict)

    def nearest(self, path: _Path, *, key: bool = False) -> tuple[int, int]:
        """Return the position of a path or of the innermost part of it that is there."""
        if key and path in self.keys:
            return self.keys[path]
        while path and path not in self.values:
            path = path[:-1]
        return self.values.get(path, (1, 1))


def load_document(
    text: str,
    kind: type[DocumentT],
    *,
    source: str,
    check: Callable[[DocumentT], Iterable[Complaint]] = lambda _: (),
    check_raw: Callable[[Mapping[str, JsonValue]], Iterable[Complaint]] = lambda _: (),
) -> DocumentT:
    """Read one document of a format from YAML. Raises UsageError: `source:line:column: key: what is wrong`.

    `check` yields what else does not fit; `check_raw` what can be said of a file whatever its form.
    """
    raw, marks = load(text, source=source)
    if not isinstance(raw, dict) or not isinstance(raw.get("schema"), str):
        line, column = marks.nearest(("schema",))
        first = f"must be {kind.schema_id()}, which says the format; for example: schema: {kind.schema_id()}"
        raise UsageError(f"{source}:{line}:{column}: schema: {first}")
    try:
        kind.check_version(raw, source=source)
    except ResultsError as error:
        raise UsageError(str(error)) from error
    try:
        document = kind.model_validate_json(json.dumps(raw))
    except ValidationError as error:
        raise UsageError(_explain(chain(complaints(error, kind, raw), check_raw(raw)), marks, source)) from error
    if text := _explain(chain(check(document), check_raw(raw)), marks, source):
        raise UsageError(text)
    return document


def load(text: str, *, source: str) -> tuple[JsonValue, Marks]:
    """Read YAML into JSON values and their positions. Raises UsageError with line and column."""
    try:
        node = _compose(text, source)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        where = f"{mark.line + 1}:{mark.column + 1}" if mark else "1:1"
        context = f" {error.context}" if error.context else ""
        raise UsageError(_short(f"{source}:{where}: malformed YAML: {error.problem}{context}")) from error
    except yaml.YAMLError as error:
        raise UsageError(f"{source}: malformed YAML: {error}") from error
    if node is None:
        raise UsageError(f"{source}:1:1: the file is empty")
    marks = Marks()
    return _value(node, (), marks, source, frozenset()), marks


def _compose(text: str, source: str) -> Node | None:
    for loader in (_QuickLoader, _Loader):
        try:
            check_bounds(text, source=source, loader=loader)
            return yaml.compose(text, Loader=loader)
        except yaml.YAMLError:
            if loader is _Loader or len(text) > _SLOW_BYTES:
                raise
    return None


def _short(text: str) -> str:
    return text if len(text) <= _SHOWN_MOST else f"{text[: _SHOWN_MOST - 3]}..."


def _value(node: Node, path: _Path, marks: Marks, source: str, above: frozenset[int]) -> JsonValue:
    marks.values[path] = _at(node)
    if id(node) in above:
        raise UsageError(f"{source}:{_colon(node)}: an alias contains itself")
    inside = above | {id(node)}
    if isinstance(node, MappingNode):
        return _mapping(node, path, marks, source, inside)
    if isinstance(node, SequenceNode):
        return [_value(item, (*path, index), marks, source, inside) for index, item in enumerate(node.value)]
    return _scalar(node, source)


def _mapping(node: MappingNode, path: _Path, marks: Marks, source: str, above: frozenset[int]) -> JsonValue:
    found: dict[str, JsonValue] = {}
    for key_node, value_node in node.value:
        key = key_node.value
        if not isinstance(key_node, ScalarNode) or not isinstance(key, str):
            raise UsageError(f"{source}:{_colon(key_node)}: a key has to be a word")
        if key in found:
            raise UsageError(f"{source}:{_colon(key_node)}: {key} is given twice")
        marks.keys[*path, key] = _at(key_node)
        found[key] = _value(value_node, (*path, key), marks, source, above)
    return found


def _scalar(node: Node, source: str) -> JsonValue:
    text = str(node.value)
    if isinstance(node, ScalarNode) and not node.style:
        if node.tag == "tag:yaml.org,2002:null":
            return None
        if text in {"true", "false"}:
            return text == "true"
        if node.tag == "tag:yaml.org,2002:int" and text.removeprefix("-").isdecimal():
            digits = len(text.removeprefix("-"))
            if digits > DIGITS_MAX:
                raise UsageError(f"{source}:{_colon(node)}: a number of {digits} digits; at most {DIGITS_MAX}")
            return int(text)
        if node.tag == "tag:yaml.org,2002:float":
            return _float(text)
    if node.tag.startswith("!") or node.tag not in _PLAIN_TAGS:
        raise UsageError(f"{source}:{_colon(node)}: the tag {node.tag} is not allowed")
    return text


_PLAIN_TAGS = frozenset(f"tag:yaml.org,2002:{name}" for name in ("str", "int", "float", "null", "bool"))


def _float(text: str) -> JsonValue:
    try:
        value = float(text)
    except ValueError:
        return text
    return value if value - value == 0 else text


def _at(node: Node) -> tuple[int, int]:
    return node.start_mark.line + 1, node.start_mark.column + 1


def _colon(node: Node) -> str:
    line, column = _at(node)
    return f"{line}:{column}"


def _explain(found: Iterable[Complaint], marks: Marks, source: str) -> str:
    """Return a line for each of the first complaints; an empty text where there is none."""
    lines = []
    for one in islice(found, PROBLEMS_MOST):
        line, column = marks.nearest(one.path, key=one.of_key)
        name = ".".join(map(str, one.path))
        lines.append(_short(f"{source}:{line}:{column}: {name + ': ' if name else ''}{one.text}"))
    return "\n".join(lines)
