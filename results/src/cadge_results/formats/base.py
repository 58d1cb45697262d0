# SPDX-License-Identifier: BSD-3-Clause
"""What every stored format has in common: strictness, freezing, versions, canonical JSON."""

from __future__ import annotations

import contextlib
import hashlib
import json
import re
from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Any, ClassVar, Literal, Self, TypeVar, cast

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, JsonValue, ValidationError

from cadge_results.errors import FormatError, SchemaTooNewError, SchemaTooOldError
from cadge_results.formats.complaint import explain
from cadge_results.formats.strict import refusal

_Value = TypeVar("_Value")
_SCHEMA_KEY = re.compile(r"^(?P<name>[a-z]+(?:\.[a-z-]+)+)/(?P<major>\d+)(?:\.(?P<minor>\d+))?$")

Place = Literal["self", "within", "between"]
Wait = Literal["poll", "block"]
Kind = Literal["layer", "floor"]
Launcher = Literal["direct", "mpirun"]
Right = Literal["net_raw", "net_admin", "bpf", "ipc_lock"]
"""A capability, in the words of setpriv(1)."""
FileName = Annotated[str, Field(pattern=r"^[A-Za-z0-9_][A-Za-z0-9_.@+-]*$", max_length=200)]
"""A name that is a file's as well: it leads out of no folder."""


def _time(text: str) -> str:
    if datetime.fromisoformat(text).tzinfo is None:
        raise ValueError("a time without its zone")
    return text


Utc = Annotated[str, AfterValidator(_time)]
"""A time with its zone, as ISO 8601 writes it."""


class Frozen(BaseModel):
    """Part of a document: unknown keys are errors, nothing is coerced, nothing changes afterwards.

    A model is built when it is first used: most commands use few of them, and building all takes 0.15 s.
    """

    model_config = ConfigDict(
        extra="forbid",
        frozen=True,
        strict=True,
        allow_inf_nan=False,
        validate_by_name=True,
        validate_by_alias=True,
        defer_build=True,
    )


class SharedParts:
    """Makes equal parts of documents one object: a large campaign has most of them thousands of times."""

    def __init__(self) -> None:
        """Begin with none."""
        self._known: dict[object, Any] = {}

    def of(self, value: _Value) -> _Value:
        """Return an equal value, made of shared parts. A document takes them in the place of its own."""
        found: Any = value
        if isinstance(found, Frozen):
            found = self._model(found)
        elif type(found) is str:
            found = self._known.setdefault(found, found)
        elif type(found) is tuple:
            made = tuple([self.of(one) for one in found])
            found = self._known.setdefault((tuple, *map(_identity, made)), made)
        elif type(found) is dict:  # what may change is nobody else's
            found.update({name: self.of(one) for name, one in found.items()})
        return cast(_Value, found)

    def _model(self, model: Frozen) -> object:
        parts = vars(model)
        parts.update({name: self.of(part) for name, part in parts.items()})
        given = model.model_fields_set
        object.__setattr__(model, "__pydantic_fields_set__", self._known.setdefault(frozenset(given), given))
        return self._known.setdefault((type(model), *map(_identity, parts.values())), model)


def _identity(part: object) -> object:
    """Return what parts have in common that are written the same; of what is shared, that it is one object."""
    if part is None or type(part) is str:
        return part
    return (type(part), repr(part)) if isinstance(part, int | float) else id(part)


class Document(Frozen):
    """A whole document. `NAME` and `MAJOR` are what its `schema` key has to say.

    The major version changes when an old reader would misread the document; a minor version only adds. `READ_BY` says
    which cadge reads each older major version.
    """

    NAME: ClassVar[str]
    MAJOR: ClassVar[int] = 1
    READ_BY: ClassVar[Mapping[int, str]] = {1: "0.1"}
    INDENT: ClassVar[int | None] = 1

    schema_: str = Field(alias="schema", description="The format and its version.")

    @classmethod
    def schema_id(cls) -> str:
        """Return what this program writes into the `schema` key."""
        return f"{cls.NAME}/{cls.MAJOR}"

    @classmethod
    def parse(cls, text: str | bytes, *, source: str) -> Self:
        """Read a document from JSON; `source` names it in errors.

        Raises FormatError, SchemaTooNewError for a larger major version, SchemaTooOldError for a smaller one.
        """
        data = text.encode("utf-8", "surrogatepass") if isinstance(text, str) else text
        if why := refusal(data):
            raise FormatError(f"{source}: {why}")
        with contextlib.suppress(ValidationError):
            found = cls.model_validate_json(data)
            if found.schema_ == cls.schema_id():
                return found
        # what is wrong is said of what the JSON holds; to look at that first would take as long again
        try:
            raw: object = json.loads(data)
        except ValueError as error:
            raise FormatError(f"{source}: not JSON: {error}") from error
        except RecursionError as error:
            raise FormatError(f"{source}: not JSON that can be read: it is nested too deeply") from error
        return cls.from_object(raw, source=source)

    @classmethod
    def from_object(cls, raw: object, *, source: str) -> Self:
        """Read a document from parsed JSON (dicts, lists, strings, numbers)."""
        cls.check_version(raw, source=source)
        try:
            text = json.dumps(raw)
            if why := refusal(text.encode()):
                raise FormatError(f"{source}: {why}")
            return cls.model_validate_json(text)
        except ValidationError as error:
            raise FormatError(f"{source}: {explain(error, cls, raw)}") from error
        except RecursionError as error:
            raise FormatError(f"{source}: it is nested too deeply") from error
        except ValueError as error:  # of Python's writer: an integer of thousands of digits
            raise FormatError(f"{source}: {error}") from error

    @classmethod
    def check_version(cls, raw: object, *, source: str) -> None:
        """Refuse a document of another kind or of another major version."""
        if not isinstance(raw, Mapping):
            raise FormatError(f"{source}: a JSON object with a schema key was expected")
        stated = raw.get("schema")
        match = _SCHEMA_KEY.match(stated) if isinstance(stated, str) else None
        if match is None or match["name"] != cls.NAME:
            raise FormatError(f"{source}: schema is {stated!r}, expected {cls.schema_id()}")
        major, by = int(match["major"]), _writer(raw)
        if major > cls.MAJOR:
            raise SchemaTooNewError(
                f"{source}: written as {stated} by {by or 'a newer cadge'}; this cadge reads {cls.NAME} up to version "
                f"{cls.MAJOR}. Use that version or a newer one."
            )
        if major < cls.MAJOR:
            written = f"written as {stated} by {by}" if by else f"written as {stated}"
            reader = f"; cadge {cls.READ_BY[major]} reads it" if major in cls.READ_BY else ""
            raise SchemaTooOldError(f"{source}: {written}; this cadge reads version {cls.MAJOR}{reader}")

    def to_object(self) -> dict[str, JsonValue]:
        """Return the document as JSON values, keys as stored."""
        return cast(dict[str, JsonValue], self.model_dump(mode="json", by_alias=True))

    def to_json(self) -> str:
        """Return the document as it is stored: indented unless it is large, one newline at the end."""
        separators = (",", ":") if self.INDENT is None else None
        return json.dumps(self.to_object(), indent=self.INDENT, separators=separators, ensure_ascii=False) + "\n"


def _writer(raw: Mapping[str, object]) -> str:
    """Return which cadge says that it wrote a document; "" where it does not say."""
    for key in ("tool", "driver"):
        part = raw.get(key)
        if isinstance(part, Mapping) and isinstance(part.get("version"), str):
            return f"cadge {part['version']}"
    for key in ("agent_version", "tool_version"):
        if isinstance(raw.get(key), str):
            return f"cadge {raw[key]}"
    return ""


def canonical(value: object) -> str:
    """Return canonical JSON: sorted keys, no spaces, so that equal values give equal text."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)


def digest(value: object) -> str:
    """Return the SHA-256 of canonical JSON as 64 hex digits."""
    return hashlib.sha256(canonical(value).encode()).hexdigest()


def digest_without(key: str, document: str | bytes) -> str:
    """Return the digest of a stored JSON object's content but for one key, which holds just that digest."""
    content = json.loads(document)
    return digest({name: value for name, value in content.items() if name != key})
