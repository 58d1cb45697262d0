# SPDX-License-Identifier: BSD-3-Clause
"""What is wrong with a document, in words of ours: the key, what is allowed there, what was given, and an example.

pydantic says where and of which type an error is. The words come from the model's JSON Schema at that place, so that
they are the same for every kind of error and every format, and never pydantic's.
"""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pydantic import BaseModel, TypeAdapter, ValidationError

    Kind = type[BaseModel] | TypeAdapter[Any]
    """What a document is read as."""

Path = tuple[str | int, ...]
Schema = Mapping[str, Any]

NAMED_MOST = 3
CHOICES_MOST = 12
GIVEN_MOST = 60
EXAMPLE = "; for example: "
_SEPARATORS = re.compile(r"[-_.+@ ]+")
_NUMBER = re.compile(r"[-+]?[0-9.]+(e[-+]?[0-9]+)?", re.IGNORECASE)
_BARE = re.compile(r"[A-Za-z0-9_*/][A-Za-z0-9_.*/+%@=()^ -]*")

WORDS_BY_PATTERN = {
    r"^[0-9]+ ?(B|KiB|MiB|GiB|kB|MB|GB)$": "a size with its unit (B, KiB, MiB, GiB, kB, MB, GB)",
    r"^[0-9]+ ?(ms|s|min|h)$": "a duration with its unit (ms, s, min, h)",
    r"^[0-9]{1,3}(\.[0-9]{1,3})? ?%$": "a share in percent",
    r"^[a-z][a-z0-9_]*$": "a name of small letters, digits and '_'",
    r"^[a-z][a-z0-9_+]*$": "a word of small letters, digits, '_' and '+'",
    r"^[a-z0-9]+$": "a word of small letters and digits",
    r"^[a-z][a-z0-9]*$": "a word of small letters and digits that begins with a letter",
    r"^[a-z]*$": "a word of small letters, or nothing",
    r"^[a-z_]+$": "the name of a test: small letters and '_'",
    r"^[A-Z][A-Z_]*$": "a capability of the contract in capital letters, without CADGE_CAP_",
    r"^[A-Z][A-Z0-9]*(_[A-Z0-9]+)*_$": "the beginning of a variable's name in capital letters, with '_' at its end",
    r"^[a-z0-9][a-z0-9._+-]*$": "the name of a program",
    r"^[a-z0-9][a-z0-9.+-]+$": "the name of a Debian package",
    r"^[0-9]+$": "a whole number",
    r"^[0-9a-f]{64}$": "a SHA-256 of 64 hexadecimal digits",
}
"""What may stand where a schema has this regular expression."""
EXAMPLES_BY_PATTERN: Mapping[str, str] = {
    r"^[a-z][a-z0-9_]*$": "request_bytes",
    r"^[a-z][a-z0-9_+]*$": "write+read",
    r"^[a-z0-9]+$": "ucx",
    r"^[a-z][a-z0-9]*$": "ucx",
    r"^[a-z]*$": "ucx",
    r"^[a-z_]+$": "peer_dies",
    r"^[A-Z][A-Z_]*$": "ONE_SIDED",
    r"^[A-Z][A-Z0-9]*(_[A-Z0-9]+)*_$": "UCX_",
    r"^[a-z0-9][a-z0-9._+-]*$": "nginx",
    r"^[a-z0-9][a-z0-9.+-]+$": "libucx-dev",
    r"^[0-9]+$": "1024",
    r"^[0-9a-f]{64}$": "0" * 64,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Complaint:
    """What is wrong at a path of a document, or with the key there."""

    path: Path
    text: str
    of_key: bool = False


def complaints(error: ValidationError, kind: Kind, raw: object) -> list[Complaint]:
    """Return what is wrong with `raw`, read as a `kind`, once for each place."""
    schema = schema_parts(kind)
    items = [(_path(item["loc"], raw, item["type"]), item) for item in error.errors(include_url=False)]
    found: dict[Path, Complaint] = {}
    for path, item in items:
        # a branch of a union that is not meant, where another one fits further in; or what follows from an error within
        inner = any(len(other) > len(path) and other[: len(path)] == path for other, _ in items)
        if inner and item["type"] not in {"value_error", "assertion_error", "extra_forbidden", "missing"}:
            continue
        if item["type"] == "extra_forbidden" and not schema.keys(path[:-1]):
            path = path[:-1]  # no place for keys
        if path not in found:
            of_key = item["type"] == "extra_forbidden" or "[key]" in item["loc"]
            found[path] = Complaint(path=path, text=_text(item, path, schema, raw), of_key=of_key)
    return list(found.values())


def explain(error: ValidationError, kind: Kind, raw: object) -> str:
    """Return errors in one line: `key: what is wrong`, at most four of them."""
    found = complaints(error, kind, raw)
    lines = [f"{'.'.join(map(str, one.path)) or 'document'}: {one.text}" for one in found[:4]]
    return "; ".join([*lines, *([f"and {len(found) - 4} more"] if len(found) > 4 else [])])


def explain_json(error: ValidationError, kind: Kind, text: str | bytes) -> str:
    """Return errors of a JSON text in one line, as `explain` does."""
    try:
        raw = json.loads(text)
    except (ValueError, RecursionError):
        raw = None
    return explain(error, kind, raw)


def nearest(name: str, known: Iterable[str], *, before: str = "") -> str:
    """Return `; did you mean X?` where known names are near, else all of them.

    Names that have the whole of it as parts go first, in the order of `known`; then the one that is alike in spelling.
    before: what a name is written behind (`--patterns `), for an example; none is given without it.
    """
    names = list(dict.fromkeys(known))
    if not names:
        return ""
    close = near_names(name, names)
    listed = " or ".join([", ".join(close[:-1]), close[-1]] if close[1:] else close)
    said = f"; did you mean {listed}?" if close else f"; known: {', '.join(sorted(names))}"
    return with_example(said, f"{before}{(close or sorted(names))[0]}") if before else said


def near_names(name: str, known: Iterable[str]) -> list[str]:
    """Return the few names that somebody may have meant, the likeliest first."""
    names = list(dict.fromkeys(known))
    parts = set(_SEPARATORS.split(name.casefold())) - {""}
    whole = [one for one in names if parts and parts <= set(_SEPARATORS.split(one.casefold()))]
    alike = difflib.get_close_matches(name.casefold(), [one.casefold() for one in names], n=1, cutoff=0.6)
    return whole[:NAMED_MOST] or [one for one in names if one.casefold() in alike][:1]


def with_example(text: str, example: str) -> str:
    """Return what is wrong, with an example behind it."""
    return f"{text} For example: {example}" if text.endswith("?") else f"{text}{EXAMPLE}{example}"


def flow(value: object) -> str:
    """Return a value as YAML writes it in one line."""
    match value:
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case str():
            plain = _BARE.fullmatch(value) and value == value.strip() and not _NUMBER.fullmatch(value)
            return value if plain and value not in {"true", "false", "null"} else json.dumps(value)
        case Mapping():
            return f"{{{', '.join(f'{flow(key)}: {flow(item)}' for key, item in value.items())}}}"
        case list() | tuple():
            return f"[{', '.join(map(flow, value))}]"
        case _:
            return str(value)


def given(value: object) -> str:
    """Return a value that somebody wrote as a message may hold it: printable, short."""
    text = "nothing" if value is None else repr(value) if isinstance(value, str) else flow(value)
    if len(text) <= GIVEN_MOST:
        return text
    if isinstance(value, Mapping):
        return "a group of keys"
    return "a list" if isinstance(value, list | tuple) else f"{text[: GIVEN_MOST - 3]}..."


@cache
def schema_parts(kind: Kind) -> SchemaParts:
    """Return the schema of what a document is read as."""
    return SchemaParts(kind.model_json_schema(by_alias=True) if isinstance(kind, type) else kind.json_schema())


class SchemaParts:
    """A JSON Schema whose parts are found by the path of a document."""

    def __init__(self, root: Schema) -> None:
        self._root = root

    def resolve(self, schema: Schema) -> Schema:
        """Return a schema with its reference followed; what stands beside the reference goes before."""
        if "$ref" not in schema:
            return schema
        there: Schema = self._root
        for part in schema["$ref"].removeprefix("#/").split("/"):
            there = there[part]
        return {**there, **{key: value for key, value in schema.items() if key != "$ref"}}

    def at(self, path: Path) -> Schema:
        """Return what a schema says of a path; nothing where it says nothing."""
        here: Schema = self.resolve(self._root)
        for part in path:
            here = next(self._inner(here, part), {})
        return here

    def _inner(self, schema: Schema, part: str | int) -> Iterator[Schema]:
        for branch in self.branches(schema):
            if isinstance(part, int):
                if "items" in branch:
                    yield self.resolve(branch["items"])
                elif part < len(branch.get("prefixItems", ())):
                    yield self.resolve(branch["prefixItems"][part])
            elif part in branch.get("properties", {}):
                yield self.resolve(branch["properties"][part])
            elif each := self.each(branch):
                yield self.resolve(each[1])
            elif "items" in branch:  # one group of keys in the place of a list of them
                yield from self._inner(self.resolve(branch["items"]), part)

    def branches(self, schema: Schema) -> list[Schema]:
        """Return the kinds of values that a schema allows, `null` left out: a key that may be left out needs none."""
        several = schema.get("anyOf") or schema.get("oneOf")
        if not several or "properties" in schema:
            return [schema]
        inner = [found for one in several for found in self.branches(self.resolve(one))]
        return [one for one in inner if one.get("type") != "null"]

    @staticmethod
    def each(one: Schema) -> tuple[Schema, Schema] | None:
        """Return what a mapping of names says of a name, and of what stands there."""
        for pattern, inner in one.get("patternProperties", {}).items():
            return {"type": "string", "pattern": pattern}, inner
        inner = one.get("additionalProperties")
        names = one.get("propertyNames") or {"type": "string", "examples": ["name"]}
        return (names, inner) if isinstance(inner, Mapping) else None

    def keys(self, path: Path) -> list[str]:
        """Return the keys that are known at a path."""
        groups = [
            group
            for branch in self.branches(self.at(path))
            for group in (branch, *self.branches(self.resolve(branch.get("items", {}))))
        ]
        return [key for group in groups for key in group.get("properties", ())]

    def allowed(self, schema: Schema, depth: int = 0) -> str:
        """Return what a schema allows, in words."""
        several = self.branches(schema)
        said = ["a list of such" if branch.get("items") in several else self._kind(branch, depth) for branch in several]
        return ", or ".join(dict.fromkeys(said))

    def _kind(self, one: Schema, depth: int) -> str:
        if "const" in one:
            return flow(one["const"])
        if "enum" in one:
            words = [flow(word) for word in one["enum"]]
            return f"one of {', '.join(words[:CHOICES_MOST])}" + (" and others" if len(words) > CHOICES_MOST else "")
        if "discriminator" in one or "oneOf" in one:
            return "a group of keys"
        match one.get("type"):
            case "boolean":
                return "true or false"
            case "integer" | "number":
                return _number(one)
            case "string":
                if "pattern" in one:
                    above = f" above {one['gt']}" if "gt" in one else ""
                    return WORDS_BY_PATTERN.get(one["pattern"], "text") + above
                return "text" if one.get("minLength") else "text, also none"
            case "array":
                return self._list(one, depth)
            case "object" if one.get("properties"):
                keys = ", ".join(one["properties"])
                return "a group of keys" if depth > 1 else f"a group of keys ({keys})"
            case "object":
                each = self.each(one)
                least = one.get("minProperties", 0)
                some = f"{least} or more names" if least > 1 else "names"
                return f"{some}, each with {self.allowed(self.resolve(each[1]), depth + 1) if each else 'any value'}"
            case list() as several:
                return ", or ".join(self._kind({"type": kind}, depth) for kind in several)
            case _:
                return "any value"

    def _list(self, one: Schema, depth: int) -> str:
        if "prefixItems" in one:
            return f"a list of {len(one['prefixItems'])} values"
        inner = self.allowed(self.resolve(one.get("items", {})), depth + 1)
        least = one.get("minItems", 0)
        some = f" of at least {least}" if least > 1 else " that is not empty" if least else ""
        return f"a list{some}, each of {inner}"

    def example(self, schema: Schema) -> object:
        """Return a value that a schema allows."""
        if schema.get("examples"):
            return schema["examples"][0]
        one = self.branches(schema)[0] if self.branches(schema) else schema
        for key in ("examples", "enum"):
            if one.get(key):
                return one[key][0]
        if "const" in one:
            return one["const"]
        if "oneOf" in one:
            return self.example(self.resolve(one["oneOf"][0]))
        if schema.get("default"):
            return schema["default"]
        match one.get("type"):
            case "boolean":
                return True
            case "integer" | "number":
                return one.get("minimum", one.get("exclusiveMinimum", 0) + (1 if one["type"] == "integer" else 0.5))
            case "array":
                items = one.get("prefixItems") or [one.get("items", {})] * max(1, one.get("minItems", 1))
                return [self.example(self.resolve(item)) for item in items]
            case "object":
                return self._object_example(one)
            case "string":
                return EXAMPLES_BY_PATTERN.get(one.get("pattern", ""), "some text")
            case _:
                return 1

    def _object_example(self, one: Schema) -> dict[str, object]:
        properties = one.get("properties", {})
        if properties:
            keys = one.get("required") or list(properties)[:1]
            return {key: self.example(self.resolve(properties[key])) for key in keys}
        each = self.each(one)
        if each is None:
            return {"name": 1}
        name, value = self.example(each[0]), self.example(self.resolve(each[1]))
        return {f"{name}{number or ''}": value for number in range(max(1, one.get("minProperties", 1)))}


def example_of(path: Path, schema: SchemaParts) -> str:
    """Return `key: value`, an example of the innermost key of a path."""
    while path and isinstance(path[-1], int):
        path = path[:-1]
    value = schema.example(schema.at(path))
    return f"{flow(path[-1])}: {flow(value)}" if path else flow(value)


def _number(one: Schema) -> str:
    what = "a whole number" if one["type"] == "integer" else "a number"
    least, most = one.get("minimum"), one.get("maximum")
    above, below = one.get("exclusiveMinimum"), one.get("exclusiveMaximum")
    if one["type"] == "integer":
        least = above + 1 if least is None and above is not None else least
        most = below - 1 if most is None and below is not None else most
        above = below = None
    said = [f"from {least}" if most is not None else f"of at least {least}"] if least is not None else []
    said += [f"above {above}"] if above is not None else []
    said += [f"{'to' if least is not None else 'of at most'} {most}"] if most is not None else []
    said += [f"below {below}"] if below is not None else []
    return " ".join([what, *said])


def _path(loc: Sequence[str | int], raw: object, kind: str) -> Path:
    """Return which keys and numbers of a document an error is of.

    pydantic's own path has labels of branches of unions as well, and numbers in a value that a validator made a list.
    """
    path: list[str | int] = []
    here: Any = raw
    for part in loc:
        inside = isinstance(here, Mapping) and part in here
        if inside or (isinstance(here, list | tuple) and isinstance(part, int) and part < len(here)):
            path.append(part)
            here = here[part]
    return (*path, loc[-1]) if kind == "missing" else tuple(path)


def _value_at(raw: Any, path: Path) -> object:  # noqa: ANN401 - any JSON
    for part in path:
        raw = raw[part]
    return raw


def _text(item: Mapping[str, Any], path: Path, schema: SchemaParts, raw: object) -> str:
    match item["type"]:
        case "extra_forbidden" if known := schema.keys(path[:-1]):
            near = near_names(str(path[-1]), known)
            said = f"unknown key{nearest(str(path[-1]), known)}"
            return with_example(said, example_of((*path[:-1], near[0]), schema)) if near else said
        case "json_invalid":
            return f"not JSON: {item['ctx']['error']}"
        case "missing":
            return with_example(f"is missing; it must be {schema.allowed(schema.at(path))}", example_of(path, schema))
        case "value_error" | "assertion_error":
            text = str(item["msg"]).removeprefix("Value error, ").removeprefix("Assertion failed, ")
            if not path or "like" in text or "for example" in text:
                return text
            return with_example(text, example_of(path, schema))
    here = schema.at(path)
    if "[key]" in item["loc"]:
        names = [found[0] for branch in schema.branches(schema.at(path[:-1])) if (found := schema.each(branch))]
        return with_example(f"such a name must be {schema.allowed(names[0])}", example_of(path[:-1], schema))
    value = _value_at(raw, path)
    words = [str(word) for branch in schema.branches(here) for word in branch.get("enum", ())]
    near = near_names(value, words) if isinstance(value, str) else []
    hint = f"; did you mean {near[0]}?" if near else ""
    return with_example(f"must be {schema.allowed(here)}, not {given(value)}{hint}", example_of(path, schema))
