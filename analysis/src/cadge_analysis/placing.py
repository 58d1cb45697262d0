# SPDX-License-Identifier: BSD-3-Clause
"""Puts a report's files in place: all of them whole, the main one last, and no file that is not ours is touched."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import chain
from pathlib import Path

from markupsafe import escape

from cadge_analysis import messages
from cadge_analysis.errors import BadInputError
from cadge_results import WrittenOutput, write_output, write_together

say = partial(messages.say, "general")

_HEAD_BYTES = 4096


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportFiles:
    """What lies where: the main file, and the pages beside it."""

    main: WrittenOutput
    pages: tuple[Path, ...]


def placed(files: Iterable[tuple[str, str]], out_path: Path) -> ReportFiles:
    """Write the files of a report, of which the last is the main one, for `out_path`; then remove its older pages.

    Raises BadInputError where a file that is no page of this report has the name of one, and OutputError; either way
    all is as it was.
    """
    made = ((out_path.with_name(name), text.encode()) for name, text in files)
    first, content = next(made)
    paths: list[Path] = []
    if first == out_path:
        written = write_output(out_path, content)
    else:
        size_bytes = 0

        def every() -> Iterator[tuple[Path, bytes]]:
            nonlocal size_bytes
            for path, found in chain([(first, content)], made):
                size_bytes = len(found)
                if path != out_path:
                    paths.append(path)
                    if os.path.lexists(path) and not is_page_of(path, out_path.name):
                        raise BadInputError(say("placing.in_the_way", path=path, out=out_path.name))
                yield path, found

        write_together(every())
        written = WrittenOutput(size_bytes=size_bytes, streamed=False)
    if not written.streamed:
        for path in sorted(out_path.parent.iterdir()):
            named = path.name.startswith(f"{out_path.stem}-") and path.suffix == out_path.suffix
            if named and path not in paths and is_page_of(path, out_path.name):
                path.unlink(missing_ok=True)
    return ReportFiles(main=written, pages=tuple(paths))


def is_page_of(path: Path, report: str) -> bool:
    """Say whether a file is a page that we made beside a report of that name: its head says so."""
    if path.is_symlink() or not path.is_file() or path.name == report:
        return False
    mark = f'<meta name="generator" content="cadge">\n<meta name="part-of" content="{escape(report)}">'
    try:
        with path.open("rb") as stream:
            return mark.encode() in stream.read(_HEAD_BYTES)
    except OSError:
        return False
