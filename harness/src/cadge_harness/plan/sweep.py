# SPDX-License-Identifier: BSD-3-Clause
"""Sweeps: finding and reading a sweep file, and turning its values into workloads.

A workload is what is measured, without saying on which layer: pattern, sizes, depth.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from pathlib import Path

from cadge_harness.errors import UsageError
from cadge_harness.yamlfile import load_document, nearest
from cadge_results import PlanPoint, SweepFile
from cadge_results.base import Operation, Pattern, Place, Target, Wait
from cadge_results.sweep import PatternEntry

FETCH_ADD_BYTES = 8


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Workload:
    """One thing to measure. For stream `depth` is the window and reply_bytes is 0."""

    pattern: Pattern
    request_bytes: int
    reply_bytes: int
    depth: int = 1
    operation: Operation | None = None
    target: Target | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """A workload at a place and in a wait mode."""

    workload: Workload
    place: Place
    wait: Wait


def workload_of(point: PlanPoint) -> Workload:
    """Return what a planned point measures."""
    return Workload(
        pattern=point.pattern,
        request_bytes=point.request_bytes,
        reply_bytes=point.reply_bytes,
        depth=point.depth,
        operation=point.operation,
        target=point.target,
    )


def find_sweep(name: str, folder: Path) -> Path:
    """Return the file of a sweep, by path or by name. Raises UsageError with the nearest name."""
    path = Path(name)
    if "/" in name or path.suffix in {".yml", ".yaml"}:
        if not path.is_file():
            raise UsageError(f"sweep file {name} is not there")
        return path
    found = folder / f"{name}.yml"
    if found.is_file():
        return found
    known = [item.stem for item in folder.glob("*.yml")]
    raise UsageError(f"unknown sweep {name!r}{nearest(name, known)}")


def read_sweep(path: Path) -> tuple[SweepFile, str]:
    """Return a sweep and its text. Raises UsageError with line and column."""
    try:
        text = path.read_bytes().decode("utf-8")
    except UnicodeDecodeError as error:
        raise UsageError(f"{path}: not UTF-8 text (byte {error.start})") from error
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror}") from error
    return load_document(text, SweepFile, source=str(path)), text


def wanted(sweep: SweepFile) -> list[Wanted]:
    """Return every workload at every place in every wait mode of a sweep once, in the order of the file."""
    found: dict[Wanted, None] = {}
    for entry in sweep.patterns:
        places = entry.places or sweep.places
        waits = entry.waits or sweep.waits
        for place, wait, workload in product(places, waits, list(_workloads(entry, sweep))):
            found[Wanted(workload=workload, place=place, wait=wait)] = None
    return list(found)


def _workloads(entry: PatternEntry, sweep: SweepFile) -> Iterator[Workload]:
    axes = _axes(entry, sweep)
    for values in _combinations(axes, entry.zip):
        if entry.pattern == "rpc":
            request = _int(values["request"])
            reply = values["reply"]
            yield Workload(
                pattern="rpc",
                request_bytes=request,
                reply_bytes=request if reply == "same" else _int(reply),
                depth=_int(values["depth"]),
            )
            continue
        size = _int(values["bytes"])
        if entry.pattern == "pingpong":
            yield Workload(pattern="pingpong", request_bytes=size, reply_bytes=size)
        elif entry.pattern == "stream":
            yield Workload(pattern="stream", request_bytes=size, reply_bytes=0, depth=_int(values["depth"]))
        elif values["operation"] != "fetch_add" or size == FETCH_ADD_BYTES:
            # fetch_add works on one 64-bit word: the other sizes of a list do not exist for it.
            yield Workload(
                pattern="onesided",
                request_bytes=size,
                reply_bytes=0,
                depth=_int(values["depth"]),
                operation=_operation(values["operation"]),
                target="active" if values["target"] == "active" else "passive",
            )


_Value = int | str


def _axes(entry: PatternEntry, sweep: SweepFile) -> dict[str, tuple[_Value, ...]]:
    """Return the values of each field that the pattern has, defaults filled in."""
    axes: dict[str, tuple[_Value, ...]] = {}
    if entry.pattern == "rpc":
        axes["request"] = _sizes(entry.request, sweep)
        axes["reply"] = ("same",) if entry.reply in (None, "same") else _sizes(entry.reply, sweep)
    else:
        axes["bytes"] = _sizes(entry.bytes, sweep)
    if entry.pattern != "pingpong":
        axes["depth"] = entry.depth
    if entry.pattern == "onesided":
        axes["operation"] = entry.operation or ()
        axes["target"] = entry.target or ("passive",)
    return axes


def _sizes(value: str | tuple[int, ...] | None, sweep: SweepFile) -> tuple[_Value, ...]:
    if isinstance(value, str):
        return sweep.vectors[value]
    return value or ()


def _combinations(
    axes: dict[str, tuple[_Value, ...]], zipped: tuple[tuple[str, ...], ...]
) -> Iterator[dict[str, _Value]]:
    """Yield every combination; fields of one zip group advance together."""
    groups: list[list[dict[str, _Value]]] = []
    done: set[str] = set()
    for names in zipped:
        lengths = {name: len(axes[name]) for name in names}
        if len(set(lengths.values())) > 1:
            listed = ", ".join(f"{name} has {count}" for name, count in lengths.items())
            raise UsageError(f"zip: fields that advance together need as many values each; {listed}")
        groups.append([dict(zip(names, row, strict=True)) for row in zip(*(axes[name] for name in names), strict=True)])
        done.update(names)
    groups.extend([{name: value} for value in values] for name, values in axes.items() if name not in done)
    for parts in product(*groups):
        merged: dict[str, _Value] = {}
        for part in parts:
            merged |= part
        yield merged


def _int(value: _Value) -> int:
    if not isinstance(value, int):
        raise TypeError(f"{value!r} is not a number")
    return value


def _operation(value: _Value) -> Operation:
    if value == "put":
        return "put"
    return "get" if value == "get" else "fetch_add"
