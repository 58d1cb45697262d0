# SPDX-License-Identifier: BSD-3-Clause
"""Reading a user's own file of another tool's output into what a campaign can hold beside its own figures."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from cadge_harness.errors import UsageError, printable
from cadge_harness.printed import fabtests, imb, osu, ucx
from cadge_harness.printed.text import PrintedError, ToolHints, ToolOutput, is_cut
from cadge_results import LayerFile, PatternFile
from cadge_results.formats.base import Place
from cadge_results.formats.imported import TEXT_MAX, Format, ImportedFile, ImportedSeries, imported_id

FILE_BYTES_MAX = 4 << 20
_TELLING: frozenset[Format] = frozenset({"ucx_perftest", "fabtests"})
"""Tools that do not always print what they measured."""
_PROGRAMS: Mapping[Format, str] = {"imb": "IMB-MPI1 ", "ucx_perftest": "ucx_perftest "}
"""What stands before a test's name where layer files name a tool with its test."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportNotes:
    """What a user says of an import; "" and None where nothing."""

    label: str = ""
    host: str = ""
    place: Place | None = None
    note: str = ""


def read_import(
    path: Path,
    format_: Format,
    *,
    told: ToolHints,
    said: ImportNotes,
    layers: Iterable[LayerFile],
    patterns: Mapping[str, PatternFile],
    at: datetime,
) -> tuple[ImportedFile, tuple[str, ...]]:
    """Return an import, and the tests in the file that were not read.

    `layers`, `patterns`: they say which pattern does the same as a tool's test. Raises UsageError, with the file and
    the line.
    """
    content = _content(path)
    if (told.test or told.bytes is not None) and format_ not in _TELLING:
        raise UsageError(f"--test and --bytes are for {' and '.join(sorted(_TELLING))}: {format_} prints both")
    text = content.decode("utf-8", "replace")
    try:
        printed = read_text(text, format_, told)
    except PrintedError as error:
        raise UsageError(f"{path}{f':{error.line}' if error.line else ''}: {error}") from error
    if is_cut(text):
        last = text.count("\n") + 1
        raise UsageError(f"{path}:{last}: the last line has no end, so a part of it may be missing; add one if not")
    sha256 = hashlib.sha256(content).hexdigest()
    named = printed.version or format_
    found = ImportedFile(
        schema_=ImportedFile.schema_id(),
        imported_id=imported_id(sha256, (format_, told.test, str(told.bytes))),
        imported_utc=f"{at:%Y-%m-%dT%H:%M:%SZ}",
        format=format_,
        file=printable(path.name),
        sha256=sha256,
        size_bytes=len(content),
        version=printable(printed.version)[:TEXT_MAX],
        label=_text("label", said.label) or printable(f"{named}, {path.name}")[:TEXT_MAX],
        host=_text("host", said.host),
        place=said.place,
        note=_text("note", said.note),
        series=_beside(printed.series, format_, list(layers), patterns),
    )
    return found, printed.skipped


def read_text(text: str, format_: Format, told: ToolHints) -> ToolOutput:
    """Return what a tool printed. Raises PrintedError."""
    match format_:
        case "osu":
            return osu.read(text)
        case "imb":
            return imb.read(text)
        case "ucx_perftest":
            return ucx.read(text, told)
        case "fabtests":
            return fabtests.read(text, told)


def _text(option: str, text: str) -> str:
    """Return what a user says, on one line. Raises UsageError where it is too long."""
    plain = printable(" ".join(text.split()))
    if len(plain) > TEXT_MAX:
        raise UsageError(f"--{option} has {len(plain)} characters; at most {TEXT_MAX}")
    return plain


def _content(path: Path) -> bytes:
    try:
        if not path.is_file():
            raise UsageError(f"{path} is not a file" if path.exists() else f"{path} does not exist")
        with path.open("rb") as stream:
            content = stream.read(FILE_BYTES_MAX + 1)
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror}") from error
    if len(content) > FILE_BYTES_MAX:
        raise UsageError(f"{path} is larger than {FILE_BYTES_MAX >> 20} MiB, which no table of these tools is")
    return content


def _beside(
    series: Iterable[ImportedSeries], format_: Format, layers: list[LayerFile], patterns: Mapping[str, PatternFile]
) -> tuple[ImportedSeries, ...]:
    """Return series with the patterns that do the same, as the layers' files say of the tool's test."""
    found = []
    for one in series:
        name = _PROGRAMS.get(format_, "") + one.test
        kinds = {"time": "histogram", "bandwidth": "rate"}
        fitting = {
            native.pattern: None
            for file in layers
            for native in file.natives
            if (native.tool == name or native.tool.startswith(f"{name} -"))
            and native.pattern in patterns
            and patterns[native.pattern].main_quantity.kind == kinds.get(one.kind)
            and not patterns[native.pattern].calls
        }
        found.append(one.model_copy(update={"patterns": tuple(fitting)}))
    return tuple(found)
