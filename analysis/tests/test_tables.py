# SPDX-License-Identifier: BSD-3-Clause
"""Tables: every row has its columns, in their kinds; they say what the store says; hostile text stays harmless."""

from __future__ import annotations

import contextlib
import csv
import io
import json
import re
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import synthetic
from golden.scenes import unpacked
from test_scale_figures import weighed

from cadge_analysis import export, flat, queries
from cadge_analysis.cells.table import FlatColumn, beside, parameters, together
from cadge_analysis.errors import BadInputError, ExtraMissingError
from cadge_analysis.tables import TABLES
from cadge_results import Campaign, LaunchRecord
from cadge_results.errors import DamagedError
from cadge_results.formats.record import HostCounters, InterfaceCount
from cadge_results.formats.result import Executions, Samples
from cadge_results.store.outcomes import each_launch, each_outcome, outcomes_of

PAGE = (Path(__file__).parents[1] / "QUERIES.md").read_text(encoding="utf-8")
KINDS: dict[str, tuple[type, ...]] = {"text": (str,), "integer": (int,), "number": (int, float), "boolean": (bool,)}
HOSTILE = '=HYPERLINK("http://x")\n,"\u202e<b>\x1b[31m'
OPTIONS = synthetic.Options(layers=("sockets-tcp", "native-ucx"), sizes=(8, 4096), places=("within",), samples=200)


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Campaign:
    """Two layers with unsound attempts and a launch that is missing, and a host whose processor has a hostile name."""
    options = synthetic.Options(
        **{name: getattr(OPTIONS, name) for name in ("layers", "sizes", "places", "samples")},
        drop_launches=1,
        node={"cpu": {"model name": HOSTILE}, "governor": {"unknown": "none is visible"}},
    )
    return synthetic.make(tmp_path_factory.mktemp("small"), options)


@pytest.fixture(scope="module")
def other(tmp_path_factory: pytest.TempPathFactory) -> Campaign:
    """Another one, with a pattern that has other parameters, and a layer that is measured twice."""
    options = synthetic.Options(
        layers=("sockets-tcp",), sizes=(8,), places=("within",), waits=("poll",), patterns=(("rpc", 1),), samples=200,
        twins=("sockets-tcp",), seed=9,
    )  # fmt: skip
    return synthetic.make(tmp_path_factory.mktemp("other"), options)


OF_SOME_PATTERNS = ("knees", "fits")
"""Tables that these campaigns have no row of; a kept one has some."""


@pytest.fixture(scope="module")
def tour(tmp_path_factory: pytest.TempPathFactory) -> Campaign:
    """A real campaign of every pattern."""
    return unpacked("tour", tmp_path_factory.mktemp("tour"))


@pytest.mark.parametrize("name", TABLES)
def test_every_row_has_its_columns_in_their_kinds(name: str, small: Campaign, other: Campaign) -> None:
    table = TABLES[name]
    for campaign in (small, other):
        columns = table.columns(campaign)
        names = [one.name for one in columns]
        assert len(set(names)) == len(names)
        assert {one.name for one in table.fixed} <= set(names)
        rows = list(table.rows(campaign))
        assert rows or name in OF_SOME_PATTERNS
        for row in rows:
            assert list(row) == names
            for column in columns:
                value = row[column.name]
                assert value is None or type(value) in KINDS[column.kind], (column, value)


@pytest.mark.parametrize("name", ["values", "families", "leaders", "knees", "fits"])
def test_tables_beside_cells_have_their_columns_in_their_kinds(name: str, tour: Campaign) -> None:
    columns, rows = TABLES[name].columns(tour), list(TABLES[name].rows(tour))
    assert rows
    for row in rows:
        assert list(row) == [one.name for one in columns]
        for column in TABLES[name].fixed:
            value = row[column.name]
            assert value is None or type(value) in KINDS[column.kind], (column, value)


def test_tables_beside_cells_say_what_the_export_says(small: Campaign) -> None:
    stream = io.StringIO()
    export.write(small, "json", stream)
    told = json.loads(stream.getvalue())
    values: dict[str, dict[str, Any]] = {}
    for row in TABLES["values"].rows(small):
        values.setdefault(str(row["point_id"]), {})[str(row["launch_id"])] = row["value"]
    assert values == {row["point_id"]: row["by_launch"] for row in told["rows"] if row["by_launch"]}
    groups = [
        {name: one[name] for name in ("pattern", "place", "wait", "ranked")} for one in told["verdicts"]["groups"]
    ]
    leaders = list(TABLES["leaders"].rows(small))
    assert [{name: one[name] for name in groups[0]} for one in leaders] == groups
    assert [one["leading"] for one in leaders] == ["; ".join(one["leading"]) for one in told["verdicts"]["groups"]]
    said = told["verdicts"]["families"] + told["verdicts"]["p99"]["families"]
    families = list(TABLES["families"].rows(small))
    assert [one["cannot_tell"] for one in families] == [one["cannot tell"] for one in said]
    assert [one["comparisons"] for one in families] == [one["comparisons"] for one in said]


def test_an_absent_value_of_a_cell_has_its_reason(small: Campaign, tour: Campaign) -> None:
    rows = [row for campaign in (small, tour) for row in TABLES["cells"].rows(campaign) if not row["twin"]]
    measured = [row for row in rows if row["kind"] == "layer" and row["attempts_valid"]]
    assert {(row["floor"] is None) == (row["floor_without"] is not None) for row in measured} == {True}
    assert {row["floor"] is None for row in measured} == {True, False}
    for row in measured:
        assert (row["floor_title"] is None) == (row["floor"] is None) == (row["below_floor"] is None)
        assert len(str(row["references"]).split(";")) == len(str(row["references_values"]).split(";"))
        assert row["calls"] is None or row["calls"] == "native" or str(row["calls"]).startswith("emulated")
    timed = [row for row in measured if row.get("latency_p50_ns") is not None]
    assert timed
    for row in timed:
        assert (row["latency_p99_ns"] is None) == (row["p99_without"] is not None)
        assert (row["latency_p999_ns"] is None) == (row["p999_without"] is not None)
        assert (row["cycles_all"] is None) == (row["cycles_without"] is not None)
    assert {row["p99_without"] is None for row in timed} == {True, False}
    assert {row["few_operations"] for row in measured} == {True, False}
    without = [row for row in rows if not row["attempts_valid"]]
    assert without
    assert all(row["few_operations"] is row["p99_without"] is row["floor_without"] is None for row in without)


def test_attempts_and_samples_say_what_the_store_says(small: Campaign) -> None:
    outcomes = small.outcomes()
    rows = list(TABLES["attempts"].rows(small))
    assert Counter(row["status"] for row in rows) == Counter(one.status for one in outcomes)
    assert len({row["status"] for row in rows}) >= 3
    for row, outcome in zip(rows, outcomes, strict=True):
        assert (row["point_id"], row["launch_id"]) == (outcome.point.point_id, outcome.launch_id)
        if outcome.attempt is not None and outcome.attempt.cpu:
            assert row["cpu_user_ns"] == sum(one.user_ns for one in outcome.attempt.cpu)
    found = [row for row in TABLES["samples"].rows(small) if row["p50_ns"] is not None]
    stored = [
        one
        for outcome in outcomes
        if outcome.attempt
        for several in outcome.attempt.quantities.values()
        for one in several
        if isinstance(one, Samples)
    ]
    assert [(row["count"], row["p99_ns"]) for row in found] == [(o.count, o.buckets.percentile(99)) for o in stored]


def test_outcomes_are_read_a_launch_at_a_time(small: Campaign) -> None:
    records = list(small.readings(as_planned=True))
    read: list[str] = []

    def each() -> Iterator[LaunchRecord]:
        for record in records:
            read.append(record.launch_id)
            yield record

    for _, record in each_launch(small.plan, each()):
        assert record is None or read[-1] == record.launch_id
    stored = small.launch_ids()
    assert read == [one.launch_id for one in small.plan.launches if one.launch_id in stored]
    assert outcomes_of(small.plan, reversed(records)) == list(each_outcome(small.plan, records))


@pytest.mark.parametrize("without", [0, 2, -1])
def test_a_launch_that_was_not_made_has_outcomes_in_its_place(small: Campaign, without: int) -> None:
    records = list(small.readings(as_planned=True))
    left_out = records.pop(without).launch_id
    rest = list(each_outcome(small.plan, records))
    every = list(each_outcome(small.plan, small.readings(as_planned=True)))
    assert [one.launch_id for one in rest] == [one.launch_id for one in every]
    assert {one.status for one in rest if one.launch_id == left_out} == {"missing"}
    assert [one.status for one in rest if one.launch_id != left_out] == [
        one.status for one in every if one.launch_id != left_out
    ]


@pytest.mark.parametrize(("values", "deviation"), [((10, 20, 30), 10.0), ((10**15, 10**15 + 2), 2**0.5), ((7,), None)])
def test_a_deviation_is_of_exact_sums(values: tuple[int, ...], deviation: float | None) -> None:
    made = Samples(
        endpoint=0,
        histogram="",
        count=len(values),
        sum_ns=sum(values),
        min_ns=min(values),
        max_ns=max(values),
        sum_sq_ns2=str(sum(one * one for one in values)),
    )
    assert made.deviation_ns == deviation


def test_what_is_stored_of_a_launch_and_an_attempt_is_a_column(
    small: Campaign, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Packets, what endpoints printed, and operations that others carried out: nothing else reads them."""
    first = next(record for record in small.readings() if record.result and record.result.attempts)
    before, after = (InterfaceCount(rx_bytes=n, tx_bytes=2 * n, rx_packets=3 * n, tx_packets=4 * n) for n in (10, 15))
    counted = HostCounters(host="h1", before={"data0": before}, after={"data0": after, "new0": after})
    assert first.result
    attempt = first.result.attempts[0].model_copy(update={"executions": Executions(expected=5, server=6)})
    result = first.result.model_copy(update={"attempts": (attempt,)})
    changed = first.model_copy(update={"counters": (counted,), "log_tail": ("one\n", "", "two"), "result": result})
    monkeypatch.setattr(Campaign, "readings", lambda _, **_as_planned: [changed])
    (row,) = (one for one in TABLES["launches"].rows(small) if one["launch_id"] == first.launch_id)
    assert [row[name] for name in ("interface_bytes", "interface_packets", "log")] == [15, 35, "one\ntwo"]
    (row,) = (one for one in TABLES["attempts"].rows(small) if one["executions"] is not None)
    assert (row["executions_expected"], row["executions"], row["point_id"]) == (5, 6, attempt.point_id)


def test_launches_and_facts(small: Campaign) -> None:
    rows = list(TABLES["launches"].rows(small))
    assert [row["launch_id"] for row in rows] == [one.launch_id for one in small.plan.launches]
    for host in TABLES["hosts"].rows(small):
        assert (host["cpu_model"], host["governor"]) == (HOSTILE, None)
    (one,) = TABLES["campaigns"].rows(small)
    assert one["campaign_id"] == small.campaign_id
    assert one["stored_launches"] == len(small.launch_ids())


def test_a_launch_says_what_its_layer_took_of_memory(small: Campaign, monkeypatch: pytest.MonkeyPatch) -> None:
    stored = [record for record in small.readings(as_planned=True) if record.status == "done"]
    heavier = [weighed(record, 50_000, 4_000_000) for record in stored[1:]]
    monkeypatch.setattr(Campaign, "readings", lambda _, **_as_planned: [stored[0], *heavier])
    rows = {row["launch_id"]: row for row in TABLES["launches"].rows(small)}
    named = ("channels", "memory_bytes", "memory_shared_bytes")
    assert [rows[stored[0].launch_id][name] for name in named] == [1, None, None], "an older record says nothing"
    assert [rows[heavier[0].launch_id][name] for name in named] == [1, 4_050_000, 4_000_000]


def test_csv_has_no_formula_and_json_lines_hold_the_text() -> None:
    row = {"a": HOSTILE, "b": -1.5, "c": None, "d": "\tx", "e": "a=b"}
    read = next(csv.DictReader(io.StringIO("".join(flat.lines("csv", list(row), [row])), newline="")))
    assert read == {"a": f"'{HOSTILE}", "b": "-1.5", "c": "", "d": "'\tx", "e": "a=b"}
    (line,) = flat.lines("jsonl", list(row), [row])
    assert line.count("\n") == 1
    assert line.isascii()
    assert json.loads(line) == row


def test_lines_are_made_while_they_are_read() -> None:
    made = []

    def rows() -> Any:  # noqa: ANN401 - a generator
        for number in range(3):
            made.append(number)
            yield {"a": number}

    lines = flat.lines("jsonl", ["a"], rows())
    assert next(lines) == '{"a": 0}\n'
    assert made == [0]


def test_a_parameter_that_is_called_as_a_column_gets_another_name(small: Campaign) -> None:
    found = beside([FlatColumn("depth", "text", "")], parameters(small.plan))
    assert found["depth"].name == "parameter_depth"
    assert found["request_bytes"].name == "request_bytes"


def test_columns_of_campaigns_are_put_together() -> None:
    one, two = FlatColumn("a", "integer", "x"), FlatColumn("a", "text", "y")
    assert together([[one, FlatColumn("b", "number", "")], [two]]) == (
        FlatColumn("a", "text", "x"),
        FlatColumn("b", "number", ""),
    )
    assert together([[one], [FlatColumn("a", "number", "")]])[0].kind == "number"


# -- by DuckDB


@pytest.fixture
def duckdb() -> Any:  # noqa: ANN401 - a module
    return pytest.importorskip("duckdb", reason="the extra `queries` is not installed")


@pytest.mark.parametrize("name", TABLES)
def test_parquet_holds_what_the_rows_hold(name: str, small: Campaign, tmp_path: Path, duckdb: Any) -> None:  # noqa: ANN401
    path = tmp_path / "t.parquet"
    path.write_bytes(queries.parquet(TABLES[name], small))
    found = duckdb.sql(f"SELECT * FROM '{path}'")  # noqa: S608 - our own path
    rows = [dict(zip(found.columns, row, strict=True)) for row in found.fetchall()]
    assert rows == list(TABLES[name].rows(small))


def test_a_question_is_answered_over_all_campaigns(small: Campaign, other: Campaign, duckdb: Any) -> None:  # noqa: ANN401, ARG001
    answer = queries.ask("SELECT campaign_id, count(*) AS n FROM Cells GROUP BY 1 ORDER BY 1", [small, other])
    assert answer.columns == ("campaign_id", "n")
    assert list(answer.rows) == sorted((one.campaign_id, len(one.plan.points)) for one in (small, other))
    both = queries.ask("SELECT DISTINCT cpu_model FROM attempts JOIN hosts USING (campaign_id)", [small])
    assert list(both.rows) == [(HOSTILE,)]


def test_the_fastest_is_the_fastest(small: Campaign, duckdb: Any) -> None:  # noqa: ANN401, ARG001
    (sql,) = (one for one in re.findall(r"^```sql\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL) if "fastest," in one)
    rows = [row for row in TABLES["cells"].rows(small) if row["latency_p50_ns"] and row["kind"] == "layer"]
    for _, place, wait, layer, p50_ns in queries.ask(sql, [small]).rows:
        case = [r for r in rows if (r["place"], r["wait"], r["pattern"], r["request_bytes"]) == (place, wait, "rpc", 8)]
        best = min(case, key=lambda r: float(r["latency_p50_ns"] or 0))
        assert (layer, p50_ns) == (best["layer"], best["latency_p50_ns"])


@pytest.mark.parametrize("sql", re.findall(r"^```sql\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL))
def test_every_question_of_the_page_is_one(sql: str, small: Campaign, duckdb: Any) -> None:  # noqa: ANN401, ARG001
    list(queries.ask(sql, [small]).rows)


@pytest.mark.parametrize(
    ("sql", "why"),
    [
        ("SELEC 1", "Parser Error: syntax error"),
        ("", "no statements"),
        ("SELECT 1; DROP TABLE hosts", "one question at a time: this is 2"),
        ("DROP TABLE hosts", "DROP is no question"),
        ("COPY hosts TO '{folder}/x.csv'", "COPY is no question"),
        ("ATTACH '{folder}/x.db'", "ATTACH is no question"),
        ("SET enable_external_access = true", "is no question"),
        ("INSTALL httpfs", "is no question"),
        ("CREATE TABLE x AS FROM hosts", "CREATE is no question"),
        ("FROM read_text('{folder}/secret')", "sees only its tables"),
        ("FROM read_csv('{folder}/secret')", "sees only its tables"),
        ("FROM glob('{folder}/*')", "sees only its tables"),
        ("FROM '{folder}/secret.csv'", "sees only its tables"),
        ("FROM secret", "Table with name secret does not exist(.|\n)*Tables: cells, values, families"),
        ("SELECT nothing FROM hosts", "Binder Error(.|\n)*cadge query --tables"),
        ("SELECT error('x' || cpu_model) FROM hosts", r'x=HYPER.*\n,"\\u202e<b>\\x1b'),
    ],
)
def test_what_is_no_question_is_refused_and_touches_nothing(
    sql: str, why: str, small: Campaign, tmp_path: Path, duckdb: Any  # noqa: ANN401, ARG001
) -> None:  # fmt: skip
    for name in ("secret", "secret.csv"):
        (tmp_path / name).write_text("a\n1\n")
    with pytest.raises(BadInputError, match=why):
        list(queries.ask(sql.format(folder=tmp_path), [small]).rows)
    assert {path.name for path in tmp_path.iterdir()} == {"secret", "secret.csv"}


@pytest.mark.parametrize("sql", ["SELECT 1", "SELECT nothing", "EXPLAIN ANALYZE DELETE FROM launches"])
def test_who_watches_the_time_is_gone_with_the_answer(
    sql: str,
    small: Campaign,
    duckdb: Any,  # noqa: ANN401, ARG001
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A thread that drops the database last, while the interpreter ends, aborts the process: status 134."""

    class Slow(threading.Thread):
        def run(self) -> None:
            super().run()
            time.sleep(0.3)  # as on a busy machine

    before = set(threading.enumerate())
    monkeypatch.setattr(queries.threading, "Thread", Slow)  # type: ignore[attr-defined]
    with contextlib.suppress(BadInputError):
        list(queries.ask(sql, [small]).rows)
    assert set(threading.enumerate()) <= before


def test_a_damaged_campaign_is_left_out_or_refused(small: Campaign, tmp_path: Path, duckdb: Any) -> None:  # noqa: ANN401, ARG001
    damaged = synthetic.make(tmp_path, OPTIONS)
    path = max(damaged.layout.launches.glob("*.json"))
    path.chmod(0o644)
    path.write_text(path.read_text()[:-100])
    damaged = Campaign(damaged.path)
    left = []
    answer = queries.ask(
        "SELECT DISTINCT campaign_id FROM launches", [damaged, small], lambda one, error: left.append((one, error))
    )
    assert list(answer.rows) == [(small.campaign_id,)]
    assert [one for one, _ in left] == [damaged]
    with pytest.raises(DamagedError):
        queries.ask("FROM launches", [damaged])


def test_without_the_extra_the_command_that_installs_it_is_named(
    small: Campaign, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(__import__("sys").modules, "duckdb", None)
    command = r"-m pip install --require-hashes -r \S*/ci/requirements-queries\.lock"
    with pytest.raises(ExtraMissingError, match=command) as it:
        queries.ask("SELECT 1", [small])
    assert it.value.exit_code == 3
    with pytest.raises(ExtraMissingError):
        queries.parquet(TABLES["hosts"], small)
    assert f"{sys.executable} -m pip" in str(it.value)
    assert "pip install --require-hashes -r ci/requirements-queries.lock" in PAGE
    assert re.search(r"^duckdb==", queries.LOCK.read_text(), re.MULTILINE)
    monkeypatch.setattr(queries, "LOCK", Path("/nowhere"))
    with pytest.raises(ExtraMissingError, match=r"pip install 'cadge\[queries\]'"):
        queries.ask("SELECT 1", [small])


def test_the_page_names_every_table() -> None:
    assert re.findall(r"^\| `(\w+)` \| (?:every|each) ", PAGE, re.MULTILINE) == list(TABLES)
