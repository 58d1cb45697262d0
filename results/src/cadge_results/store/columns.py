# SPDX-License-Identifier: BSD-3-Clause
"""What the analysis needs of launch records, in a form that is quick to read: the record without its bulk, and columns.

The bulk of a record are samples: the first thousand of each quantity, which no analysis uses, and a histogram as text.
Here histograms are decoded, all of a launch in three columns; the rest is JSON. A record that is made of this again
is equal to the stored one but for `first_ns` and `histogram`, which are empty; `Samples.buckets` is there.

    packed = pack([columns_of(record, digest)])
    record = Maker().record(unpack(packed)[0])
"""

from __future__ import annotations

import hashlib
import json
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from pydantic import TypeAdapter

from cadge_results.errors import FormatError
from cadge_results.formats.base import Frozen
from cadge_results.formats.histogram import Columns, Histogram, Resolution, decode_all
from cadge_results.formats.point import Workload
from cadge_results.formats.reason import Reason
from cadge_results.formats.record import LaunchRecord
from cadge_results.formats.result import (
    Attempt,
    Check,
    CpuUse,
    Executions,
    Number,
    PayloadCheck,
    Rate,
    Reading,
    Samples,
    Warmup,
)

Buffer = bytes | bytearray | memoryview
_Part = TypeVar("_Part", bound=Frozen)

_NO_COLUMNS = Columns([], np.zeros(0, np.int64), np.zeros(0, np.int32), np.zeros(0, np.int64))
_WITHOUT_SAMPLES: dict[str, Any] = {"__all__": {"histogram", "first_ns"}}


@dataclass(frozen=True, slots=True)
class RecordColumns:
    """One record. digest: of the file that it was read from, SHA-256 in hexadecimal digits.

    head: the record as JSON, without attempts and points. attempts: of each its own JSON object, in which a reading
    is [quantity, kind, values]; samples without a text in `histogram` have the next one of `histograms`.
    """

    launch_id: str
    digest: str
    head: bytes
    attempts: bytes
    histograms: Columns


def columns_of(record: LaunchRecord, digest: str) -> RecordColumns:
    """Return a record's columns. A histogram that cannot be decoded stays as the text that it is."""
    result = record.result
    made = result.attempts if result is not None else ()
    every = [one for attempt in made for several in attempt.quantities.values() for one in several]
    samples = [one for one in every if isinstance(one, Samples)]
    histograms, damaged = _decoded([one.histogram for one in samples])
    texts = iter([one.histogram if place in damaged else None for place, one in enumerate(samples)])
    plain = iter(_readings().dump_python(every, mode="json", exclude=_WITHOUT_SAMPLES))
    attempts = _attempts().dump_python(made, mode="json", exclude={"__all__": {"quantities"}})
    for attempt, written in zip(made, attempts, strict=True):
        written["quantities"] = readings = []
        for name, several in attempt.quantities.items():
            for one in several:
                values = next(plain)
                if isinstance(one, Samples) and (text := next(texts)) is not None:
                    values["histogram"] = text
                readings.append([name, type(one).__name__, values])
            if not several:
                readings.append([name, "", {}])
    short = record.model_copy(
        update={
            "launch": record.launch.model_copy(update={"points": ()}),
            "result": result and result.model_copy(update={"attempts": ()}),
        }
    )
    text = json.dumps(attempts, separators=(",", ":"))
    return RecordColumns(record.launch_id, digest, short.to_json().encode(), text.encode(), histograms)


def _decoded(texts: Sequence[str]) -> tuple[Columns, frozenset[int]]:
    """Decode texts, and return the places of those that are damaged, which have no histogram."""
    try:
        return (decode_all(texts) if texts else _NO_COLUMNS), frozenset()
    except FormatError:
        damaged = frozenset(place for place, text in enumerate(texts) if not _is_whole(text))
        whole = [text for place, text in enumerate(texts) if place not in damaged]
        return (decode_all(whole) if whole else _NO_COLUMNS), damaged


def _is_whole(text: str) -> bool:
    try:
        decode_all([text])
    except FormatError:
        return False
    return True


@cache
def _attempts() -> TypeAdapter[tuple[Attempt, ...]]:
    return TypeAdapter(tuple[Attempt, ...])


@cache
def _readings() -> TypeAdapter[list[Reading]]:
    return TypeAdapter(list[Reading])


@dataclass(slots=True)
class Maker:
    """Makes records of columns. What many attempts share is made once."""

    _workloads: dict[str, Workload] = field(default_factory=dict)
    _checks: dict[tuple[str, bool, str], Check] = field(default_factory=dict)

    def record(self, columns: RecordColumns) -> LaunchRecord:
        """Return the record. Its parts were validated when the columns were made of them."""
        head = LaunchRecord.model_validate_json(columns.head)
        if head.result is None:
            return head
        histograms = iter(columns.histograms.histograms())
        attempts = tuple(self._attempt(raw, histograms) for raw in json.loads(columns.attempts))
        return head.model_copy(update={"result": head.result.model_copy(update={"attempts": attempts})})

    def _attempt(self, raw: dict[str, Any], histograms: Iterator[Histogram]) -> Attempt:
        quantities: dict[str, tuple[Reading, ...]] = {}
        for name, kind, values in raw["quantities"]:
            one = (_reading(kind, values, histograms),) if kind else ()
            quantities[name] = quantities.get(name, ()) + one
        cpu, code = raw["cpu"], raw["reason_code"]
        return built(
            Attempt,
            _in_order(
                Attempt,
                raw
                | {
                    "workload": self._workload(raw["workload"]),
                    "reason_code": code and Reason(code),
                    "warmup": raw["warmup"] and built(Warmup, raw["warmup"]),
                    "quantities": quantities,
                    "executions": raw["executions"] and built(Executions, raw["executions"]),
                    "verified": raw["verified"] and built(PayloadCheck, raw["verified"]),
                    "cpu": None if cpu is None else tuple(built(CpuUse, use) for use in cpu),
                    "counters": tuple(raw.get("counters", ())),
                    "checks": tuple(self._check(**check) for check in raw["checks"]),
                },
            ),
        )

    def _workload(self, raw: dict[str, Any]) -> Workload:
        key = repr(raw)
        if key not in self._workloads:
            self._workloads[key] = Workload.model_validate(raw)
        return self._workloads[key]

    def _check(self, name: str, ok: bool, detail: str) -> Check:
        key = name, ok, detail
        if key not in self._checks:
            self._checks[key] = Check(name=name, ok=ok, detail=detail)
        return self._checks[key]


def _reading(kind: str, values: dict[str, Any], histograms: Iterator[Histogram]) -> Reading:
    if kind == Rate.__name__:
        return built(Rate, values)
    if kind == Number.__name__:
        return built(Number, values)
    if "histogram" in values:
        return built(Samples, _in_order(Samples, values | {"first_ns": ()}))
    samples = _in_order(Samples, values | {"histogram": "", "first_ns": ()})
    samples["buckets"] = next(histograms)  # what the property would decode the text to
    return built(Samples, samples)


def built(kind: type[_Part], values: dict[str, Any]) -> _Part:
    """Make a part of a record of values that were validated: what `model_construct` does, in a tenth of its time.

    The values are in the order of its fields, which is that of its JSON.
    """
    made = kind.__new__(kind)
    object.__setattr__(made, "__dict__", values)
    object.__setattr__(made, "__pydantic_fields_set__", _fields(kind))
    object.__setattr__(made, "__pydantic_extra__", None)
    object.__setattr__(made, "__pydantic_private__", None)
    return made


@cache
def _fields(kind: type[Frozen]) -> set[str]:
    return set(kind.model_fields)


@cache
def _order(kind: type[Frozen]) -> tuple[str, ...]:
    return tuple(kind.model_fields)


def _in_order(kind: type[Frozen], values: dict[str, Any]) -> dict[str, Any]:
    return {name: values[name] for name in _order(kind)}


def pack(several: Sequence[RecordColumns]) -> bytes:
    """Return records' columns as bytes, with a digest over all of them, and what they were made by."""
    names = [[one.launch_id, one.digest, len(one.head), len(one.attempts)] for one in several]
    parts = [one.histograms for one in several]
    kinds = list(dict.fromkeys(resolution for part in parts for resolution in part.resolutions))
    places = {resolution: place for place, resolution in enumerate(kinds)}
    index = {
        "records": names,
        "histograms": [len(part.resolutions) for part in parts],
        "resolutions": kinds,
    }
    chosen = [places[resolution] for part in parts for resolution in part.resolutions]
    blobs = [
        json.dumps(index).encode(),
        b"".join(piece for one in several for piece in (one.head, one.attempts)),
        np.array(chosen, np.int64).tobytes(),
        b"".join(part.lengths.tobytes() for part in parts),
        b"".join(part.places.tobytes() for part in parts),
        b"".join(part.upto.tobytes() for part in parts),
    ]
    body = joined([zlib.compress(blob, 1) for blob in blobs])
    return _made_by() + hashlib.sha256(body).digest() + body


def names_in(packed: Buffer) -> list[tuple[str, str]]:
    """Return launch and digest of each record that `pack` was given. Raises FormatError as `unpack` does."""
    return [(name, digest) for name, digest, *_ in json.loads(zlib.decompress(_blobs(packed)[0]))["records"]]


def _blobs(packed: Buffer) -> list[memoryview]:
    view = memoryview(packed)
    made_by, digest, body = view[:32], view[32:64], view[64:]
    if made_by != _made_by() or hashlib.sha256(body).digest() != digest:
        raise FormatError("columns are damaged, or were made by another cadge")
    return split(body)


def joined(blobs: Sequence[bytes]) -> bytes:
    """Return blobs one after the other, each behind its length."""
    return b"".join([len(one).to_bytes(8, "little") + one for one in blobs])


def split(body: Buffer) -> list[memoryview]:
    """Return the blobs that were joined, as views: those of a whole cache may be a quarter of a gigabyte."""
    found, at = [], 0
    view = memoryview(body)
    while at < len(view):
        end = at + 8 + int.from_bytes(view[at : at + 8], "little")
        found.append(view[at + 8 : end])
        at = end
    return found


def unpack(packed: Buffer) -> list[RecordColumns]:
    """Return the columns that `pack` was given. Raises FormatError where these are not its bytes, or another's."""
    blobs = [zlib.decompress(one) for one in _blobs(packed)]
    index = json.loads(blobs[0])
    text = blobs[1]
    kinds = [Resolution(*one) for one in index["resolutions"]]
    chosen = np.frombuffer(blobs[2], np.int64).tolist()
    lengths, upto = (np.frombuffer(blobs[place], np.int64) for place in (3, 5))
    places = np.frombuffer(blobs[4], np.int32)
    found, at, first, bucket = [], 0, 0, 0
    for (name, of, head, attempts), often in zip(index["records"], index["histograms"], strict=True):
        mine = lengths[first : first + often]
        end = bucket + int(mine.sum())
        columns = Columns(
            [kinds[place] for place in chosen[first : first + often]], mine, places[bucket:end], upto[bucket:end]
        )
        middle = at + head
        found.append(RecordColumns(name, of, text[at:middle], text[middle : middle + attempts], columns))
        at, first, bucket = middle + attempts, first + often, end
    return found


@cache
def _made_by() -> bytes:
    """Return a digest of the code that decides what columns hold: those of another cadge are nobody's."""
    digest = hashlib.sha256()
    for path in sorted(Path(__file__).parents[1].rglob("*.py")):
        digest.update(path.read_bytes())
    return digest.digest()
