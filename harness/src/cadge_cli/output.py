# SPDX-License-Identifier: BSD-3-Clause
"""What the commands say: results on stdout, everything else on stderr.

With --json stdout is exactly one object: {ok, code, data, problems[]}.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import textwrap
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import TYPE_CHECKING, TextIO

from cadge_harness.errors import EXIT_OK, EXIT_UNFIT

if TYPE_CHECKING:  # importing it takes longer than answering --help
    from pathlib import Path

    from pydantic import JsonValue

    from cadge_analysis.blocks.model import Block
    from cadge_results import WrittenOutput

LINES_AT_ONCE = 256
"""How many lines of a stream are printed together."""


@dataclass(slots=True)
class Output:
    """Collects problems and, at the end, prints the answer of one command."""

    as_json: bool = False
    stdout: TextIO | None = field(default_factory=lambda: sys.stdout)
    """None where it was closed before we began; stderr likewise."""
    stderr: TextIO | None = field(default_factory=lambda: sys.stderr)
    problems: list[str] = field(default_factory=list)
    told: set[str] = field(default_factory=set)
    """What was said while the command worked, also by a display of its own: it need not be said again."""
    brief: bool = False
    """While it works it says how far it is, in one line, and troubles."""

    def say(self, text: str) -> None:
        """Tell the user something while the command works."""
        self.told.add(text)
        write_text(self.stderr, f"{text}\n")

    def problem(self, text: str) -> None:
        """Keep something wrong for the answer, and tell the user of it unless that was done when it happened."""
        if text not in self.problems:
            self.problems.append(text)
            if text not in self.told:
                self.say(f"cadge: {text}")

    def wrote(self, written: WrittenOutput, path: Path, about: str = "") -> list[str]:
        """Return the lines of the answer that name an output, with its size where there is something to say about it.

        Of one that went into a device or a pipe stderr tells, for the pipe may be our stdout.
        """
        if written.streamed:
            self.say(f"{written.size_bytes} bytes written to {path}")
            return []
        return [f"{path}  {megabytes(written.size_bytes)}, {about}" if about else str(path)]

    def put(self, text: str, out: Path | None, about: str = "", gist: Sequence[str] = ()) -> list[str]:
        """Return a text as the lines of the answer; where it goes to a file, its name, and below it the gist."""
        if out is None:
            return text.splitlines()
        from cadge_results import write_output

        written = write_output(out, text.encode())
        return [*self.wrote(written, out, about), *(() if written.streamed else gist)]

    def finish(self, code: int, data: JsonValue, lines: Sequence[str] = ()) -> int:
        """Print the answer and return the exit code: of an answer that nobody can have, another one."""
        if self.as_json:
            answer = {"ok": code == EXIT_OK, "code": code, "data": data, "problems": self.problems}
            text = json.dumps(answer, ensure_ascii=True) + "\n"
        else:
            text = "".join(f"{line}\n" for line in lines)
        if why := write_text(self.stdout, text):
            self.say(f"cadge: {unwritten(why)}")
            return EXIT_UNFIT
        return code

    def stream(self, lines: Iterable[str], code: int = EXIT_OK) -> int:
        """Print lines while they are made, each with its end, and return the exit code as `finish` does.

        Nothing more is made for a reader that went away.
        """
        several = iter(lines)
        while text := "".join(islice(several, LINES_AT_ONCE)):
            try:
                why = _write(self.stdout, text)
            except BrokenPipeError:
                break
            if why:
                self.say(f"cadge: {unwritten(why)}")
                return EXIT_UNFIT
        return code


def unwritten(why: str) -> str:
    """Return the sentence for a stdout that takes nothing."""
    return f"cannot write the answer to stdout: {why}"


def write_text(stream: TextIO | None, text: str) -> str | None:
    """Write text whatever the locale's encoding is. Return why it cannot be written, None where that is no trouble.

    A reader that went away is no error of ours: it has seen what it wanted.
    """
    try:
        return _write(stream, text)
    except BrokenPipeError:
        return None


def _write(stream: TextIO | None, text: str) -> str | None:
    """Write as `write_text` does. Raises BrokenPipeError where the reader went away; the stream is silent then."""
    if not text:
        return None
    if stream is None:
        return "it is closed"
    encoding = getattr(stream, "encoding", None) or "utf-8"
    try:
        stream.write(text.encode(encoding, "backslashreplace").decode(encoding))
        stream.flush()
    except BrokenPipeError:
        silence(stream)
        raise
    except OSError as error:
        silence(stream)
        return error.strerror or str(error)
    except ValueError:  # closed by somebody in this process
        return "it is closed"
    return None


def silence(stream: TextIO) -> None:
    """Point a stream's descriptor elsewhere, so that the interpreter's last flush does not fail as well."""
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, stream.fileno())
    os.close(null)


def is_terminal(stream: TextIO | None) -> bool:
    """Say whether a live display makes sense on a stream."""
    plain = os.environ.get("NO_COLOR") or os.environ.get("CI") or os.environ.get("TERM") in {None, "", "dumb"}
    return not plain and stream is not None and stream.isatty()


COLUMNS = 80
COLUMNS_MOST = 100
"""Longer lines are hard to read."""
TABLES_WIDE = 300
"""Columns that a table of many columns may take: a row stays one line, which grep finds."""


def columns() -> int:
    """Return how many columns sentences have: those of the terminal, and of a usual one where there is none."""
    return max(20, min(shutil.get_terminal_size((COLUMNS, 24)).columns, COLUMNS_MOST))


def wrapped(text: str, begin: str = "", then: str | None = None) -> list[str]:
    """Return a sentence in lines of so many columns: `begin` stands before the first, `then` before all others.

    No word is broken: names and options stay as they can be typed.
    """
    after = " " * len(begin) if then is None else then
    return textwrap.wrap(
        text,
        columns(),
        initial_indent=begin,
        subsequent_indent=after,
        break_on_hyphens=False,
        break_long_words=False,
    )


def table(rows: Sequence[Sequence[str]]) -> list[str]:
    """Return rows as lines with aligned columns; the first row is the heading."""
    if not rows:
        return []
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]) - 1)]
    lines = []
    for row in rows:
        cells = [cell.ljust(width) for cell, width in zip(row, widths, strict=False)]
        lines.append("  ".join([*cells, row[-1]]).rstrip())
    return lines


def megabytes(count: int) -> str:
    """Return bytes for people."""
    return f"{count / 1e6:.1f} MB"


def edition(blocks: Iterable[Block], kind: str) -> str:
    """Return blocks as text or Markdown, as pages are printed; in text each row of a table is one line."""
    from cadge_analysis.blocks.lines import lines_of
    from cadge_analysis.blocks.markdown import markdown
    from cadge_analysis.blocks.text import text

    return markdown(lines_of(blocks)) if kind == "markdown" else text(lines_of(blocks), TABLES_WIDE)


def section(title: str, items: Iterable[str]) -> list[Block]:
    """Return a list below what it is a list of; nothing where it is empty."""
    from cadge_analysis.blocks.make import listed, plain

    found = tuple(items)
    return [plain(title), listed(found)] if found else []
