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
import tempfile
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import BinaryIO, Protocol, overload

from cadge_results.errors import FormatError
from cadge_results.formats.record import LaunchRecord
from cadge_results.store.columns import Maker, RecordColumns, columns_of, joined, names_in, pack, unpack
from cadge_results.store.damage import Content, look
from cadge_results.store.layout import Layout
from cadge_results.store.usercache import cache_folder, growing, opened_cache
from cadge_results.uncollected import uncollected

WORTH_BYTES = 4 << 20
"""Less than this is read in a fraction of a second: it is not worth a cache."""
SHARED_BYTES = 16 << 20
"""Less than this is not worth a second process, which takes a quarter of a second to begin."""
OWN_SHARE = 0.4
"""Of the bytes that two processes read: then both take about as long."""
_BEGIN = b'"first_ns":['
_FIRST = re.compile(rb"(?:0|[1-9][0-9]{0,17})(?:,(?:0|[1-9][0-9]{0,17})){0,999}")
_AS_ZEROS = bytes.maketrans(b"123456789", b"0" * 9)
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
    with _known(cache) as known:
        places = {key: place for place, bundle in enumerate(known) for key in names_in(bundle)}
        named = {name for name, _ in places}
        keys = {name: (name, source.content(name).digest) for name in launch_ids if name in named}
        sizes = {name: _size(source, name) for name in launch_ids if keys.get(name) not in places}
        is_worth = cache is not None and sum(sizes.values()) >= WORTH_BYTES
        opened: tuple[int, dict[str, RecordColumns]] = (-1, {})
        maker = Maker()
        with (
            _keeping(cache if is_worth else None) as fresh,
            contextlib.closing(_made(source, sizes, fresh)) as made,
        ):
            for name in launch_ids:
                if name in sizes:
                    columns = next(made)
                else:
                    place = places[keys[name]]
                    if place != opened[0]:
                        opened = place, {one.launch_id: one for one in unpack(known[place])}
                    columns = opened[1][name]
                    fresh.add(columns)
                yield maker.record(columns)


class Bundles:
    """Columns of many records, packed so many at a time and written at once: few are in memory."""

    def __init__(self, write: Callable[[bytes], object] | None) -> None:
        """Begin with none. Where nothing writes them, nothing is packed."""
        self._write = write
        self._open: list[RecordColumns] = []
        self._bytes = 0

    def add(self, columns: RecordColumns) -> None:
        """Add a record's."""
        if self._write is None:
            return
        self._open.append(columns)
        self._bytes += len(columns.attempts) + columns.histograms.upto.nbytes
        if self._bytes >= BUNDLE_BYTES:
            self.flush()

    def add_packed(self, bundle: bytes) -> None:
        """Add columns that are packed already."""
        self.flush()
        if self._write is not None:
            self._write(joined([bundle]))

    def flush(self) -> None:
        """Write what is not written yet."""
        if self._open and self._write is not None:
            self._write(joined([pack(self._open)]))
        self._open, self._bytes = [], 0


class PackedFile(Sequence[bytes]):
    """Bundles in a file, each read when it is asked for."""

    def __init__(self, stream: BinaryIO) -> None:
        """Find the bundles. One that is cut short is there, and is refused when it is opened."""
        self._stream = stream
        self._places: list[tuple[int, int]] = []
        at, end = 0, os.fstat(stream.fileno()).st_size
        while at < end:
            stream.seek(at)
            length = int.from_bytes(stream.read(8), "little")
            self._places.append((at + 8, min(length, end)))
            at += 8 + length

    def __len__(self) -> int:
        """Return how many there are."""
        return len(self._places)

    @overload
    def __getitem__(self, place: int) -> bytes: ...
    @overload
    def __getitem__(self, place: slice) -> list[bytes]: ...
    def __getitem__(self, place: int | slice) -> bytes | list[bytes]:
        """Return one bundle, or several."""
        if isinstance(place, slice):
            return [self[one] for one in range(len(self))[place]]
        at, length = self._places[place]
        self._stream.seek(at)
        return self._stream.read(length)


def _size(source: RecordSource, launch_id: str) -> int:
    try:
        return Layout(source.path).launch(launch_id).stat().st_size
    except OSError:  # reading it says what is wrong
        return 0


def _made(source: RecordSource, sizes: Mapping[str, int], fresh: Bundles) -> Generator[RecordColumns, None, None]:
    """Make columns of the files that have none yet, in their order, the later ones by another process.

    All of them are added to `fresh`.
    """
    names = list(sizes)
    mine: list[str] = names
    others: list[str] = []
    if sum(sizes.values()) >= SHARED_BYTES and len(os.sched_getaffinity(0)) > 1:
        mine, others = _shared_out(sizes)
    with _other(source.path, others) as ended:
        for name in mine:
            columns = _columns(source, name)
            fresh.add(columns)
            yield columns
        theirs = _opened(ended(), fresh)
        one = next(theirs, None)
        for name in others:
            if one is not None and one.launch_id == name:
                yield one
                one = next(theirs, None)
            else:  # whatever went wrong there goes wrong here again, and is said as always
                columns = _columns(source, name)
                fresh.add(columns)
                yield columns


def _opened(bundles: Iterable[bytes], fresh: Bundles) -> Iterator[RecordColumns]:
    for bundle in bundles:
        fresh.add_packed(bundle)
        yield from unpack(bundle)


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
    kept = []
    begin = 0
    while (at := data.find(_BEGIN, begin)) >= 0:
        first = at + len(_BEGIN)
        end = max(data.find(b"]", first), first)
        kept.append(data[begin:first])
        if not _is_first(data[first:end]):
            kept.append(data[first:end])
        begin = end
    return b"".join((*kept, data[begin:]))


def _is_first(numbers: bytes) -> bool:
    """Tell whether a list holds what `_FIRST` matches, which takes ten times as long and is asked where it must be."""
    ends = b",%b," % numbers
    if b",," in ends or b",0" in ends or numbers.translate(None, b"0123456789,"):
        return _FIRST.fullmatch(numbers) is not None
    return numbers.count(b",") < 1000 and b"0" * 19 not in numbers.translate(_AS_ZEROS)


def _shared_out(sizes: Mapping[str, int]) -> tuple[list[str], list[str]]:
    """Share names out in their order: to this process, which has all records to make as well, less than half."""
    first: list[str] = []
    rest = list(sizes)
    left = sum(sizes.values()) * OWN_SHARE
    while rest and left > 0:
        first.append(rest.pop(0))
        left -= sizes[first[-1]]
    return first, rest


@contextlib.contextmanager
def _other(campaign: Path, names: Sequence[str]) -> Iterator[Callable[[], Iterable[bytes]]]:
    """Let another process make columns meanwhile; what is yielded waits for it and returns them packed, in their order.

    None comes back of a file that no checksum proves, and none at all where it could not begin, or failed.
    """
    if not names:
        yield lambda: ()
        return
    argv = [sys.executable, "-P", "-m", "cadge_results.store.reading", str(campaign.resolve())]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    nowhere = subprocess.DEVNULL
    with (
        tempfile.TemporaryFile() as found,
        subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=found, stderr=nowhere, env=environment) as child,
    ):
        try:
            assert child.stdin is not None  # noqa: S101 - asked for above
            with contextlib.suppress(BrokenPipeError):
                child.stdin.write("".join(f"{name}\n" for name in names).encode())
                child.stdin.close()
            yield lambda: PackedFile(found) if child.wait() == 0 else ()
        finally:
            child.kill()


@uncollected()
def main(argv: Sequence[str]) -> int:
    """Make columns of the records of a campaign that standard input names, and write them to standard output."""
    layout = Layout(Path(argv[1]))
    found = Bundles(sys.stdout.buffer.write)
    for name in sys.stdin.read().split():
        path = layout.launch(name)
        content = look(path, layout.root)
        if isinstance(content, Content) and content.proven:
            record = LaunchRecord.parse(_without_first(content.data), source=str(path))
            found.add(columns_of(record, content.digest))
    found.flush()
    return 0


def _cache_of(campaign: Path) -> Path | None:
    folder = cache_folder()
    name = hashlib.sha256(os.fsencode(campaign.resolve())).hexdigest()[:16]
    return folder and folder / "columns" / name


@contextlib.contextmanager
def _known(cache: Path | None) -> Iterator[Sequence[bytes]]:
    """Yield the bundles of columns that are cached; a damaged cache has none."""
    with contextlib.ExitStack() as opened:
        found: Sequence[bytes] = ()
        with contextlib.suppress(OSError, FormatError, ValueError):
            if cache is not None and (stream := opened_cache(cache, CACHE_BYTES_MAX)) is not None:
                bundles = PackedFile(opened.enter_context(stream))
                for bundle in bundles:
                    names_in(bundle)
                found = bundles
                os.utime(cache)  # it was used now
        yield found


@contextlib.contextmanager
def _keeping(cache: Path | None) -> Iterator[Bundles]:
    """Yield what keeps columns in a cache, once all are there; None: in none."""
    if cache is None:
        yield Bundles(None)
        return
    with growing(cache) as write:
        bundles = Bundles(write)
        yield bundles
        bundles.flush()
    with contextlib.suppress(OSError):
        left = CACHE_BYTES_MAX
        for path in sorted(cache.parent.iterdir(), key=lambda one: one.stat().st_mtime_ns, reverse=True):
            left -= path.stat().st_size
            if left < 0:
                path.unlink()


if __name__ == "__main__":
    sys.exit(main(sys.argv))
