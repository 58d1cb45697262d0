# SPDX-License-Identifier: BSD-3-Clause
"""Questions in SQL over the tables of many campaigns, and tables as Parquet: both by DuckDB, the extra `queries`.

A question is read-only and sees nothing but its tables: no file, no network, no variable of this process, no
extension that would have to be brought. Tables are made in memory, and only those that the question names.
"""

from __future__ import annotations

import re
import shlex
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cadge_analysis import messages
from cadge_analysis.cells.table import ExportTable, FlatColumn, together
from cadge_analysis.errors import BadInputError, ExtraMissingError, NoDataError, TooLongError
from cadge_analysis.flat import lines
from cadge_analysis.tables import TABLES
from cadge_results import Campaign
from cadge_results.errors import ResultsError

say = partial(messages.say, "general")

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

LOCK = Path(__file__).resolve().parents[3] / "ci" / "requirements-queries.lock"
"""In a checkout and in a release; an installed package has none."""
_TYPES = {"text": "VARCHAR", "integer": "BIGINT", "number": "DOUBLE", "boolean": "BOOLEAN"}
_CONFIG: dict[str, str | bool | int | float | list[str]] = {
    "memory_limit": "2GB",
    "threads": 1,  # each has read-ahead of its own, of 16 MB
    "temp_directory": "",
    "python_enable_replacements": "false",
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
}
LeaveOut = Callable[[Campaign, ResultsError], None]
LIMIT_S = 60.0
GRACE_S = 2.0
"""An interrupted database ends within that, unless it is inside a function on one value, where it looks at nothing."""
_TAKEN_MOST = 1000
"""Rows that are taken from DuckDB at a time."""


@dataclass(slots=True)
class QueryAnswer:
    """What a question found: names of columns, and rows, which are computed while they are read."""

    columns: tuple[str, ...]
    rows: Iterator[tuple[Any, ...]]


def _connected() -> DuckDBPyConnection:
    """Return an empty database in memory. Raises ExtraMissingError."""
    try:
        import duckdb  # the extra
    except ImportError as error:
        what = ("--require-hashes", "-r", str(LOCK)) if LOCK.is_file() else ("cadge[queries]",)
        install = shlex.join((sys.executable, "-m", "pip", "install", *what))
        raise ExtraMissingError(say("queries.no_duckdb", install=install)) from error
    return duckdb.connect(":memory:", config=_CONFIG)


def parquet(table: ExportTable, campaign: Campaign) -> bytes:
    """Return a table of a campaign as a Parquet file. Raises ExtraMissingError, AnalysisError."""
    with _connected() as database, tempfile.TemporaryDirectory(prefix="cadge-table-") as folder:
        _fill(database, table, [campaign], Path(folder), kind="VIEW")  # never whole in memory
        made = Path(folder) / "table.parquet"
        database.execute(f"COPY {table.name} TO '{made}' (FORMAT parquet, COMPRESSION zstd)")  # our own folder
        return made.read_bytes()


def ask(
    sql: str,
    campaigns: Sequence[Campaign],
    leave_out: LeaveOut | None = None,
    *,
    limit_s: float = LIMIT_S,
    stuck: Callable[[TooLongError], None] = lambda _error: None,
) -> QueryAnswer:
    """Ask one question. Raises ExtraMissingError, and BadInputError with what is wrong in the SQL.

    limit_s: how long the database may work on it, reading its answer included; raises TooLongError. leave_out: is told
    of a campaign that cannot be read, which a table then goes without; where there is none, raises as readers of
    campaigns do. stuck: called in another thread where the database works on for GRACE_S after it was interrupted.
    """
    database = _connected()
    import duckdb

    try:
        _refuse_all_but_a_question(database, sql)
        words = {word.lower() for word in re.findall(r"\w+", sql)}
        with tempfile.TemporaryDirectory(prefix="cadge-query-") as folder:
            for table in TABLES.values():
                if table.name in words:
                    _fill(database, table, campaigns, Path(folder), leave_out)
        database.execute("SET enable_external_access = false")
        database.execute("SET lock_configuration = true")
        database.execute("BEGIN TRANSACTION READ ONLY")  # EXPLAIN ANALYZE carries out whatever it explains
        watch = _Watch(database, limit_s, stuck)
        with watch:
            found = database.execute(sql)
    except duckdb.Error as error:
        raise _wrong(error) from error
    return QueryAnswer(tuple(one[0] for one in found.description or ()), _fetched(database, watch))


class _Watch:
    """Interrupts a database that has worked for too long; what its reader takes in between does not count."""

    def __init__(self, database: DuckDBPyConnection, limit_s: float, stuck: Callable[[TooLongError], None]) -> None:
        self._database = database
        self._stuck = stuck
        self._error = TooLongError(say("queries.too_long", limit_s=limit_s))
        self._left_s = limit_s
        self._begun_s = 0.0
        self._ended = threading.Event()
        self._thread = threading.Thread()

    def __enter__(self) -> None:
        self._begun_s = time.monotonic()
        self._ended = threading.Event()
        args = (self._ended, max(0.0, self._left_s))
        self._thread = threading.Thread(target=self._watch, args=args, daemon=True)
        self._thread.start()

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> None:
        import duckdb

        self._ended.set()
        self._thread.join()  # else it may be the last that has the database, and end it while the interpreter ends
        self._left_s -= time.monotonic() - self._begun_s
        if isinstance(error, duckdb.InterruptException):
            raise self._error from error

    def _watch(self, ended: threading.Event, left_s: float) -> None:
        if ended.wait(left_s):
            return
        self._database.interrupt()
        if not ended.wait(GRACE_S):
            self._stuck(self._error)


def _fetched(database: DuckDBPyConnection, watch: _Watch) -> Iterator[tuple[Any, ...]]:
    import duckdb

    def several() -> list[tuple[Any, ...]]:
        with watch:
            return database.fetchmany(_TAKEN_MOST)

    with database:
        try:
            while rows := several():
                yield from rows
        except duckdb.Error as error:
            raise _wrong(error) from error


def _refuse_all_but_a_question(database: DuckDBPyConnection, sql: str) -> None:
    import duckdb

    statements = database.extract_statements(sql)
    if len(statements) != 1:
        raise BadInputError(say("queries.one_at_a_time", n=len(statements) or "no"))
    if statements[0].type not in (duckdb.StatementType.SELECT, duckdb.StatementType.EXPLAIN):
        raise BadInputError(say("queries.no_question", type=statements[0].type.name))


def _wrong(error: Exception) -> BadInputError:
    """Return what DuckDB says, with what there is where a name is unknown; nothing in it is obeyed by a terminal."""
    import duckdb

    text = str(error).strip()
    said = "".join(one if one.isprintable() or one == "\n" else repr(one)[1:-1] for one in text)
    if isinstance(error, duckdb.PermissionException):
        return BadInputError(say("queries.tables_only", tables=TABLES, said=said))
    if "read-only mode" in said:
        return BadInputError(say("queries.read_only"))
    if re.match(r"Catalog Error: Table", said):
        said += "\n" + say("queries.tables", tables=TABLES)
    elif said.startswith("Binder Error"):
        said += "\n" + say("queries.columns")
    return BadInputError(say("queries.cannot_answer", said=said))


def _fill(
    database: DuckDBPyConnection, table: ExportTable, campaigns: Iterable[Campaign], folder: Path,
    leave_out: LeaveOut | None = None, *, kind: str = "TABLE",
) -> None:  # fmt: skip
    """Make a table of all campaigns; what a campaign has no column for is NULL in its rows.

    kind: VIEW reads the rows from the folder when they are asked for.
    """
    found: list[tuple[FlatColumn, ...]] = []
    path = folder / f"{table.name}.jsonl"
    with path.open("w", encoding="ascii") as stream:
        for campaign in campaigns:
            begun = stream.tell()
            try:
                columns = table.columns(campaign)
                stream.writelines(lines("jsonl", [one.name for one in columns], table.rows(campaign)))
                found.append(columns)
            except NoDataError:  # it planned nothing
                continue
            except ResultsError as error:
                if leave_out is None:
                    raise
                leave_out(campaign, error)
                stream.seek(begun)
                stream.truncate()
    every = together([*found, table.fixed])
    typed = ", ".join(f"{_quoted(one.name)}: '{_TYPES[one.kind]}'" for one in every)
    if path.stat().st_size:
        source = f"read_json('{path}', format = 'newline_delimited', columns = {{{typed}}})"
        database.execute(f"CREATE {kind} {table.name} AS SELECT * FROM {source}")  # noqa: S608 - our own names
    else:
        typed = ", ".join(f"{_quoted(one.name)} {_TYPES[one.kind]}" for one in every)
        database.execute(f"CREATE TABLE {table.name} ({typed})")


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
