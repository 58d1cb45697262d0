# SPDX-License-Identifier: BSD-3-Clause
"""`cadge query`, and tables of `cadge export`: formats, exit codes, campaigns that are damaged, readers that leave."""

from __future__ import annotations

import csv
import io
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from cadge_cli.commands.export import TABLES
from cadge_harness.paths import Checkout
from cadge_results import Campaign, Store

from .conftest import Answer
from .test_ablate import ablating

pytestmark = pytest.mark.spare

__all__ = ["ablating"]  # a fixture
Cadge = Callable[..., Answer]
COUNT = "SELECT layer, count(*) AS n, 1.5 AS x FROM attempts GROUP BY layer ORDER BY layer"


@pytest.fixture
def campaign(ablating: Checkout, cadge: Cadge) -> Campaign:
    """A checkout's only campaign."""
    pytest.importorskip("duckdb", reason="the extra `queries` is not installed")
    assert cadge("run", "--sweep", "ablate-a", "--no-report").code == 0
    return Store(ablating.campaigns).open("last")


def counts(campaign: Campaign) -> list[tuple[str, int]]:
    layers = [outcome.point.subject.layer for outcome in campaign.outcomes()]
    return [(layer, layers.count(layer)) for layer in sorted(set(layers))]


def test_an_answer_is_the_same_in_every_format(campaign: Campaign, cadge: Cadge, tmp_path: Path) -> None:
    expected = counts(campaign)
    text = cadge("query", COUNT)
    assert text.code == 0
    assert [line.split() for line in text.out.splitlines()] == [
        ["layer", "n", "x"], *([layer, str(n), "1.5"] for layer, n in expected)]  # fmt: skip
    rows = [{"layer": layer, "n": n, "x": 1.5} for layer, n in expected]
    assert json.loads(cadge("query", COUNT, "--format", "json").out) == rows
    assert [json.loads(line) for line in cadge("query", COUNT, "--format", "jsonl").out.splitlines()] == rows
    found = csv.DictReader(io.StringIO(cadge("query", COUNT, "--format", "csv").out))
    assert [(row["layer"], int(row["n"])) for row in found] == expected
    document = json.loads(cadge("query", COUNT, "--json").out)
    assert document["data"] == {"columns": ["layer", "n", "x"], "rows": [list(row.values()) for row in rows]}
    assert cadge("query", COUNT, "-o", str(tmp_path / "f"), "--format", "jsonl").out == f"{tmp_path / 'f'}\n"
    assert [json.loads(line) for line in (tmp_path / "f").read_text().splitlines()] == rows
    assert cadge("query", COUNT, campaign.campaign_id, str(campaign.path)).out == text.out, "it counts once"


def test_values_of_every_kind_have_a_form(campaign: Campaign, cadge: Cadge) -> None:
    assert campaign
    sql = "SELECT date '2026-01-02' AS d, [1, NULL] AS l, 'nan'::DOUBLE AS nan, 2.50::DECIMAL(4, 2) AS c, NULL AS n, " \
          "'=1' AS f, chr(27) || 'x' AS esc, 170141183460469231731687303715884105727::HUGEINT AS big"  # fmt: skip
    (row,) = json.loads(cadge("query", sql, "--format", "json").out)
    assert row == {"d": "2026-01-02", "l": [1, None], "nan": None, "c": 2.5, "n": None, "f": "=1", "esc": "\x1bx",
                   "big": 2**127 - 1}  # fmt: skip
    (flat,) = csv.DictReader(io.StringIO(cadge("query", sql, "--format", "csv").out))
    assert (flat["l"], flat["f"], flat["n"]) == ("[1, null]", "'=1", "")
    text = cadge("query", sql).out
    assert "\x1b" not in text
    assert "\\x1bx" in text


def test_a_question_has_a_time_limit(campaign: Campaign, cadge: Cadge) -> None:
    assert campaign
    endless = "SELECT count(*) FROM range(10000000000) a, range(1000000) b"
    answer = cadge("query", endless, "--time-limit", "0.3")
    assert (answer.code, answer.out) == (2, "")
    assert "not answered within 0.3 s" in answer.err
    slow_rows = "SELECT a.range FROM range(10000000000) a WHERE a.range % 100000000 = 1"
    assert cadge("query", slow_rows, "--format", "csv", "--time-limit", "0.3").code == 2
    assert cadge("query", COUNT, "--time-limit", "0").code == 2
    assert cadge("query", COUNT, "--time-limit", "60").out == cadge("query", COUNT).out


def test_a_question_that_heeds_no_interruption_ends_too(campaign: Campaign) -> None:
    """In a process of its own, which is ended: 4 GB of one letter, of which the database stops at none."""
    one_value = "SELECT repeat('x', 4000000000)"
    program = "import sys; from cadge_cli import cli; sys.exit(cli.invoke(sys.argv[1:]))"
    given = ["query", one_value, "--time-limit", "0.3", "--results", str(campaign.path.parent), "--json"]
    ended = subprocess.run(
        [sys.executable, "-c", program, *given], capture_output=True, text=True, check=False, timeout=60
    )
    assert ended.returncode == 2
    answer = json.loads(ended.stdout)
    assert (answer["ok"], answer["code"], answer["data"]) == (False, 2, None)
    assert "not answered within 0.3 s" in answer["problems"][0]


MISTAKES: tuple[tuple[list[str], int, str], ...] = (
    (["query"], 2, "--tables to list"),
    (["query", "SELECT 1", "--tables"], 2, "or --tables"),
    (["query", "SELEC 1"], 2, "syntax error"),
    (["query", "DROP TABLE hosts"], 2, "DROP is no question"),
    (["query", "EXPLAIN ANALYZE DELETE FROM cells"], 2, "a question cannot change anything"),
    (["query", "/* */ explain /* */ analyze (FORMAT json) UPDATE hosts SET host = 'x'"], 2, "cannot change anything"),
    (["query", "SELECT 1 AS a, 2 AS a", "--format", "json"], 2, "two columns are called 'a'"),
    (["query", "SELECT 1", "--format", "csv", "--json"], 2, "add -o FILE"),
    (["query", "SELECT 1", "nothing"], 5, "no campaign 'nothing'"),
    (["query", "SELECT 1", "--results", "/nowhere"], 5, "no campaign in /nowhere"),
    (["export", "--format", "parquet"], 2, "add -o FILE"),
    (["export", "--format", "json", "--table", "hosts"], 2, "--table is for"),
)


def test_mistakes_have_a_sentence_and_a_code(campaign: Campaign, cadge: Cadge) -> None:
    assert campaign
    for argv, code, said in MISTAKES:
        answer = cadge(*argv)
        assert (answer.code, answer.out if "--json" not in argv else "") == (code, ""), argv
        assert said in answer.err


def test_a_damaged_campaign_is_left_out_and_said(campaign: Campaign, cadge: Cadge) -> None:
    path = campaign.layout.launch(campaign.plan.launches[0].launch_id)
    path.chmod(0o644)
    path.write_bytes(path.read_bytes()[:-100])
    answer = cadge("query", COUNT)
    assert (answer.code, answer.out) == (7, "layer  n  x\n")
    assert f"the answer is without {campaign.campaign_id}: {path} is damaged" in answer.err
    assert cadge("query", COUNT, "last").code == 7
    assert cadge("query", COUNT, "last").out == ""
    assert cadge("export", "--table", "attempts", "--format", "jsonl").out == ""


def test_tables_and_columns_are_listed_also_without_a_campaign(cadge: Cadge, ablating: Checkout) -> None:
    assert ablating
    text = cadge("query", "--tables")
    assert text.code == 0
    assert [line.partition(":")[0] for line in text.out.splitlines() if line and line[0] != " "] == list(TABLES)
    data = json.loads(cadge("query", "--tables", "--json").out)["data"]
    assert {"name": "host", "kind": "text"}.items() <= next(
        one for one in data["hosts"] if one["name"] == "host"
    ).items()


def test_a_table_is_the_same_in_a_file_and_on_stdout(campaign: Campaign, cadge: Cadge, tmp_path: Path) -> None:
    for table in TABLES:
        lines = {}
        for kind in ("csv", "jsonl"):
            argv = ("export", "--format", kind, "--table", table)
            assert cadge(*argv, "-o", str(tmp_path / kind)).code == 0
            lines[kind] = cadge(*argv).out
            assert lines[kind] == (tmp_path / kind).read_text()
        rows = [json.loads(line) for line in lines["jsonl"].splitlines()]
        read = list(csv.DictReader(io.StringIO(lines["csv"])))
        assert len(rows) == len(read)
        may_be_none = table in ("families", "leaders", "knees", "fits") or (table == "hosts" and not campaign.nodes())
        assert rows or may_be_none
        assert all(list(row) == list(one) for row, one in zip(rows, read, strict=True))
        assert {row["campaign_id"] for row in rows} <= {campaign.campaign_id}
        assert cadge("export", "--format", "parquet", "--table", table, "-o", str(tmp_path / "p")).code == 0
        assert (tmp_path / "p").read_bytes()[:4] == b"PAR1"


def test_a_reader_that_leaves_is_no_error(campaign: Campaign) -> None:
    argv = (
        f"{sys.executable} -m cadge_cli.cli export --format jsonl --table samples | head -n 1; echo ${{PIPESTATUS[0]}}"
    )
    done = subprocess.run(["bash", "-c", argv], capture_output=True, text=True, check=False, timeout=120)
    first, code = done.stdout.splitlines()
    assert json.loads(first)["campaign_id"] == campaign.campaign_id
    assert (code, done.stderr) == ("0", "")


def test_the_tables_of_the_command_line_are_those_of_the_analysis() -> None:
    from cadge_analysis.tables import TABLES as KNOWN

    assert tuple(KNOWN) == TABLES
