# SPDX-License-Identifier: BSD-3-Clause
"""Reading all records of a campaign for the analysis: on two processors, and the second time from columns.

The raw files alone say what was measured. Each is read and held against its checksum whenever it is asked for, here as
everywhere; only what it is made into, a validated record, may come from the user's cache, by the digest of the very
bytes that were read. So a changed file is never answered from columns that were made of another, the cache may be
removed at any time, and a campaign in a folder that nobody can write has one as well. `cadge verify` uses none of it.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import subprocess
import sys
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Protocol

from cadge_results.errors import FormatError
from cadge_results.formats.record import LaunchRecord
from cadge_results.store.columns import Maker, RecordColumns, columns_of, joined, names_in, pack, split, unpack
from cadge_results.store.damage import Content, look
from cadge_results.store.layout import Layout
from cadge_results.store.usercache import cache_folder, cached, keep
from cadge_results.uncollected import uncollected

WORTH_BYTES = 4 << 20
"""Less than this is read in a fraction of a second: it is not worth a cache."""
SHARED_BYTES = 16 << 20
"""Less than this is not worth a second process, which takes a quarter of a second to begin."""
_FIRST = re.compile(rb'"first_ns":\[(?:0|[1-9][0-9]{0,17})(?:,(?:0|[1-9][0-9]{0,17})){0,999}\]')
BUNDLE_BYTES = 8 << 20
"""Of columns that are packed together: a reader has so much of them open at a time."""
CACHE_BYTES_MAX = 1 << 30
"""Of all campaigns together: the ones that were used longest ago go first."""


class RecordSource(Protocol):
    """Where stored records come from: each file is looked at, and refused where it is damaged."""

    @property
    def path(self) -> Path:
        """The campaign's folder."""

    def content(self, launch_id: str) -> Content:
        """Return what a record's file holds. Raises DamagedError."""

    def parse(self, launch_id: str, content: Content) -> LaunchRecord:
        """Return the record that a file holds. Raises FormatError."""


def read_all(source: RecordSource, launch_ids: Sequence[str], *, afresh: bool = False) -> Iterator[LaunchRecord]:
    """Yield records without their samples' texts: see `columns`. `afresh`: no cache is used.

    Nothing that was yielded is kept. Raises FormatError, DamagedError.
    """
    cache = None if afresh or not launch_ids else _cache_of(source.path)
    bundles = _known(cache)
    places = {key: place for place, bundle in enumerate(bundles) for key in names_in(bundle)}
    named = {name for name, _ in places}
    keys = {name: (name, source.content(name).digest) for name in launch_ids if name in named}
    sizes = {name: _size(source, name) for name in launch_ids if keys.get(name) not in places}
    fresh = Bundles() if cache is not None and sum(sizes.values()) >= WORTH_BYTES else None
    opened: tuple[int, dict[str, RecordColumns]] = (-1, {})
    maker = Maker()
    with contextlib.closing(_made(source, sizes)) as made:
        for name in launch_ids:
            if name in sizes:
                columns = next(made)
            else:
                place = places[keys[name]]
                if place != opened[0]:
                    opened = place, {one.launch_id: one for one in unpack(bundles[place])}
                columns = opened[1][name]
            if fresh is not None:
                fresh.add(columns)
            yield maker.record(columns)
    if fresh is not None and cache is not None:
        _keep(cache, fresh.whole())


class Bundles:
    """Columns of many records, packed so many at a time: few lie open at once, both here and for who reads them."""

    def __init__(self) -> None:
        """Begin with none."""
        self._packed = bytearray()
        self._open: list[RecordColumns] = []
        self._bytes = 0

    def add(self, columns: RecordColumns) -> None:
        """Add a record's."""
        self._open.append(columns)
        self._bytes += len(columns.attempts) + columns.histograms.upto.nbytes
        if self._bytes >= BUNDLE_BYTES:
            self._pack()

    def whole(self) -> bytearray:
        """Return them all, as bytes that `split` takes apart."""
        if self._open:
            self._pack()
        return self._packed

    def _pack(self) -> None:
        self._packed += joined([pack(self._open)])
        self._open, self._bytes = [], 0


def _size(source: RecordSource, launch_id: str) -> int:
    try:
        return Layout(source.path).launch(launch_id).stat().st_size
    except OSError:  # reading it says what is wrong
        return 0


def _made(source: RecordSource, sizes: Mapping[str, int]) -> Generator[RecordColumns, None, None]:
    """Make columns of the files that have none yet, in their order, the second half of them by another process."""
    names = list(sizes)
    mine: list[str] = names
    others: list[str] = []
    if sum(sizes.values()) >= SHARED_BYTES and len(os.sched_getaffinity(0)) > 1:
        mine, others = _halves(sizes)
    with _other(source.path, others) as ended:
        for name in mine:
            yield _columns(source, name)
        theirs = ended()
        one = next(theirs, None)
        for name in others:
            if one is not None and one.launch_id == name:
                yield one
                one = next(theirs, None)
            else:  # whatever went wrong there goes wrong here again, and is said as always
                yield _columns(source, name)


def _columns(source: RecordSource, name: str) -> RecordColumns:
    content = source.content(name)
    try:
        return columns_of(source.parse(name, replace(content, data=_without_first(content.data))), content.digest)
    except FormatError:  # what is wrong is said of the file as it is
        return columns_of(source.parse(name, content), content.digest)


def _without_first(data: bytes) -> bytes:
    """Return a record without its first samples, four fifths of its bytes, which columns do not have.

    Only lists that are whole and valid are left out, so that whatever else they hold is refused as ever.
    """
    return _FIRST.sub(rb'"first_ns":[]', data)


def _halves(sizes: Mapping[str, int]) -> tuple[list[str], list[str]]:
    """Share names out in their order, about as many bytes to either side."""
    first: list[str] = []
    rest = list(sizes)
    left = sum(sizes.values()) / 2
    while rest and left > 0:
        first.append(rest.pop(0))
        left -= sizes[first[-1]]
    return first, rest


@contextlib.contextmanager
def _other(campaign: Path, names: Sequence[str]) -> Iterator[Callable[[], Iterator[RecordColumns]]]:
    """Let another process make columns meanwhile; what is yielded waits for it and returns them, in their order.

    None comes back of a file that no checksum proves, and none at all where it could not begin, or failed.
    """
    if not names:
        yield lambda: iter(())
        return
    argv = [sys.executable, "-P", "-m", "cadge_results.store.reading", str(campaign.resolve())]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    pipe = subprocess.PIPE
    with subprocess.Popen(argv, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL, env=environment) as child:
        try:
            assert child.stdin is not None  # noqa: S101 - asked for above
            with contextlib.suppress(BrokenPipeError):
                child.stdin.write("".join(f"{name}\n" for name in names).encode())
                child.stdin.close()
            yield lambda: _ended(child)
        finally:
            child.kill()


def _ended(child: subprocess.Popen[bytes]) -> Iterator[RecordColumns]:
    assert child.stdout is not None  # noqa: S101 - asked for by whoever began it
    packed = child.stdout.read()
    for bundle in split(packed) if child.wait() == 0 else ():
        yield from unpack(bundle)


@uncollected()
def main(argv: Sequence[str]) -> int:
    """Make columns of the records of a campaign that standard input names, and write them to standard output."""
    layout = Layout(Path(argv[1]))
    found = Bundles()
    for name in sys.stdin.read().split():
        path = layout.launch(name)
        content = look(path, layout.root)
        if isinstance(content, Content) and content.proven:
            record = LaunchRecord.parse(_without_first(content.data), source=str(path))
            found.add(columns_of(record, content.digest))
    sys.stdout.buffer.write(found.whole())
    return 0


def _cache_of(campaign: Path) -> Path | None:
    folder = cache_folder()
    name = hashlib.sha256(os.fsencode(campaign.resolve())).hexdigest()[:16]
    return folder and folder / "columns" / name


def _known(cache: Path | None) -> list[memoryview]:
    """Return the bundles of columns that are cached; a damaged cache has none."""
    packed = cached(cache, CACHE_BYTES_MAX) if cache is not None else None
    if packed is None or cache is None:
        return []
    bundles = split(packed)
    try:
        for bundle in bundles:
            names_in(bundle)
    except (FormatError, ValueError):
        return []
    with contextlib.suppress(OSError):
        os.utime(cache)  # it was used now
    return bundles


def _keep(cache: Path, packed: bytearray) -> None:
    keep(cache, packed)
    with contextlib.suppress(OSError):
        left = CACHE_BYTES_MAX
        for path in sorted(cache.parent.iterdir(), key=lambda one: one.stat().st_mtime_ns, reverse=True):
            left -= path.stat().st_size
            if left < 0:
                path.unlink()


if __name__ == "__main__":
    sys.exit(main(sys.argv))
