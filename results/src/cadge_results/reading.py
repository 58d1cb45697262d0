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
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Protocol

from cadge_results.columns import Maker, RecordColumns, columns_of, pack, unpack
from cadge_results.damage import Content
from cadge_results.errors import FormatError
from cadge_results.layout import Layout
from cadge_results.record import LaunchRecord
from cadge_results.uncollected import uncollected
from cadge_results.usercache import cache_folder, cached, keep

WORTH_BYTES = 4 << 20
"""Less than this is read in a fraction of a second: it is not worth a cache."""
SHARED_BYTES = 16 << 20
"""Less than this is not worth a second process, which takes a quarter of a second to begin."""
_FIRST = re.compile(rb'"first_ns":\[(?:0|[1-9][0-9]{0,17})(?:,(?:0|[1-9][0-9]{0,17})){0,999}\]')
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

    Raises FormatError, DamagedError.
    """
    if not launch_ids:
        return
    cache = None if afresh else _cache_of(source.path)
    known = _known(cache)
    digests: dict[str, str] = {}
    sizes: dict[str, int] = {}
    for name in launch_ids:
        content = source.content(name).data
        digests[name] = hashlib.sha256(content).hexdigest()
        if (name, digests[name]) not in known:
            sizes[name] = len(content)
    if sizes:
        for one in _made(source, sizes):
            known[one.launch_id, one.digest] = one
            digests[one.launch_id] = one.digest  # a file that was replaced meanwhile is the one that was read
        if cache is not None and sum(sizes.values()) >= WORTH_BYTES:
            _keep(cache, [known[key] for key in digests.items()])
    maker = Maker()
    for key in digests.items():
        yield maker.record(known.pop(key))


def _made(source: RecordSource, sizes: Mapping[str, int]) -> Iterator[RecordColumns]:
    """Make columns of the files that have none yet, the second half of them by another process."""
    names = list(sizes)
    mine: list[str] = names
    others: list[str] = []
    if sum(sizes.values()) >= SHARED_BYTES and len(os.sched_getaffinity(0)) > 1:
        mine, others = _halves(sizes)
    found: Mapping[str, RecordColumns] = {}
    with _other(source.path, others) as ended:
        for name in mine:
            yield _columns(source, name)
        found = ended()
    for name in others:
        # whatever went wrong there goes wrong here again, and is said as always
        yield found.get(name) or _columns(source, name)


def _columns(source: RecordSource, name: str) -> RecordColumns:
    content = source.content(name)
    digest = hashlib.sha256(content.data).hexdigest()
    try:
        return columns_of(source.parse(name, replace(content, data=_without_first(content.data))), digest)
    except FormatError:  # what is wrong is said of the file as it is
        return columns_of(source.parse(name, content), digest)


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
def _other(campaign: Path, names: Sequence[str]) -> Iterator[Callable[[], Mapping[str, RecordColumns]]]:
    """Let another process make columns meanwhile; what is yielded waits for it and returns them, by launch.

    Nothing comes back where it could not begin, or failed.
    """
    if not names:
        yield dict
        return
    argv = [sys.executable, "-P", "-m", "cadge_results.reading", str(Layout(campaign.resolve()).launches)]
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


def _ended(child: subprocess.Popen[bytes]) -> Mapping[str, RecordColumns]:
    assert child.stdout is not None  # noqa: S101 - asked for by whoever began it
    packed = child.stdout.read()
    return {one.launch_id: one for one in unpack(packed)} if child.wait() == 0 else {}


@uncollected()
def main(argv: Sequence[str]) -> int:
    """Make columns of the records in a folder that standard input names, and write them to standard output."""
    folder = Path(argv[1])
    found = []
    for name in sys.stdin.read().split():
        path = folder / f"{name}.json"
        content = path.read_bytes()
        record = LaunchRecord.parse(_without_first(content), source=str(path))
        found.append(columns_of(record, hashlib.sha256(content).hexdigest()))
    sys.stdout.buffer.write(pack(found))
    return 0


def _cache_of(campaign: Path) -> Path | None:
    folder = cache_folder()
    name = hashlib.sha256(os.fsencode(campaign.resolve())).hexdigest()[:16]
    return folder and folder / "columns" / name


def _known(cache: Path | None) -> dict[tuple[str, str], RecordColumns]:
    """Return the columns that are cached, by launch and digest; a damaged cache has none."""
    packed = cached(cache, CACHE_BYTES_MAX) if cache is not None else None
    if packed is None or cache is None:
        return {}
    try:
        found = unpack(packed)
    except (FormatError, ValueError):
        return {}
    with contextlib.suppress(OSError):
        os.utime(cache)  # it was used now
    return {(one.launch_id, one.digest): one for one in found}


def _keep(cache: Path, columns: Sequence[RecordColumns]) -> None:
    packed = pack(columns)
    keep(cache, packed)
    with contextlib.suppress(OSError):
        left = CACHE_BYTES_MAX
        for path in sorted(cache.parent.iterdir(), key=lambda one: one.stat().st_mtime_ns, reverse=True):
            left -= path.stat().st_size
            if left < 0:
                path.unlink()


if __name__ == "__main__":
    sys.exit(main(sys.argv))
