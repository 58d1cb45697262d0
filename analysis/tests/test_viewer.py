# SPDX-License-Identifier: BSD-3-Clause
"""The viewer in a real browser: what was exported is shown, number by number; what was altered is refused."""

from __future__ import annotations

import base64
import csv
import gzip
import hashlib
import io
import json
import math
import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import axe
import pagereader
import pytest
import synthetic
import test_imported
from chromium import Browser

from cadge_analysis import export, units
from cadge_analysis.draw import palette
from cadge_analysis.flat import FlatKind, lines
from cadge_analysis.page import viewer
from cadge_analysis.stats.load import read
from cadge_analysis.tables import TABLES
from cadge_results import Campaign
from cadge_results.outcomes import outcomes_of

pytestmark = pytest.mark.spare

HOSTILE = '"><img src=x onerror=document.title=1></script>,=1+1'
FORMULA = "=cmd|' /C calc'!A0"
TURNED = "tcp\u202eefas"
DONE = ("Shown", "Some files", "Nothing to show")


def unsound(point: dict[str, Any], attempt: dict[str, Any], _: int) -> None:
    """Let a check speak against every attempt of one layer at one size."""
    if point["subject"]["layer"] == "rdma-ucx" and 64 in point["workload"]["parameters"].values():
        attempt["checks"] = [*attempt.get("checks", []), {"name": "planted", "ok": False, "detail": HOSTILE}]


@pytest.fixture(scope="module")
def campaign(tmp_path_factory: pytest.TempPathFactory) -> Campaign:
    """Six layers, of which one would be markup, one a formula, and one turns text; refused and unsound points too."""
    options = synthetic.Options(
        layers=("rdma-ucx", "native-ofi", "sockets-tcp", HOSTILE, FORMULA, TURNED),
        sizes=(8, 64, 4096),
        places=("within",),
        waits=("poll", "block"),
        patterns=(("rpc", 1),),
        launches=3,
        samples=300,
        twins=("native-ofi",),
        attempt_hook=unsound,
    )
    return synthetic.make(tmp_path_factory.mktemp("viewed"), options)


@pytest.fixture(scope="module")
def exported(campaign: Campaign) -> dict[str, str]:
    """What `cadge export` writes of its cells, by format."""
    found = {}
    for kind in ("csv", "json"):
        stream = io.StringIO(newline="")
        export.write(campaign, kind, stream)
        found[kind] = stream.getvalue()
    found["jsonl"] = flat(campaign, "cells", "jsonl")
    return found


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("viewer") / "viewer.html"
    path.write_text(viewer.html("0.0-test"), encoding="utf-8")
    return path


@pytest.fixture
def opened(page: Path, browser: Browser) -> Iterator[Browser]:
    """The browser with the page, which must have nothing to complain of at the end."""
    browser.open(page, width=1280)
    yield browser
    assert browser.complaints() == []
    assert browser.value("document.images.length") == 0
    assert browser.value("document.title") == "Look at exported records"


def flat(campaign: Campaign, table: str, kind: FlatKind) -> str:
    one = TABLES[table]
    return "".join(lines(kind, [column.name for column in one.columns(campaign)], one.rows(campaign)))


def drop(browser: Browser, *files: tuple[str, str | bytes]) -> str:
    """Drop files on the page, and return what it says is wrong with them; "" where nothing is."""
    given = [
        [name, base64.b64encode(content if isinstance(content, bytes) else content.encode()).decode()]
        for name, content in files
    ]
    browser.value(
        f"(() => {{ const all = new DataTransfer(); for (const [name, text] of {json.dumps(given)}) all.items.add(new"
        " File([Uint8Array.from(atob(text), one => one.charCodeAt(0))], name)); document.getElementById('status')"
        ".textContent = ''; dispatchEvent(new DragEvent('drop', {dataTransfer: all, cancelable: true})); })()"
    )
    return waited(browser)


def waited(browser: Browser) -> str:
    deadline = time.monotonic() + 60
    while not browser.value("document.getElementById('status').textContent").startswith(DONE):
        assert time.monotonic() < deadline
        time.sleep(0.02)
    return str(browser.value("document.getElementById('trouble').innerText")).replace(units.THIN, "")


def choose(browser: Browser, label: str, value: str) -> None:
    """Choose in the list of that label."""
    browser.value(
        "(() => { const list = [...document.querySelectorAll('.choices label')].find(one => one.firstChild.textContent"
        f" === {json.dumps(label)}).querySelector('select'); list.value = {json.dumps(value)};"
        " list.dispatchEvent(new Event('change')); })()"
    )


CELLS = """[...document.querySelectorAll('.rows tbody tr')].map(row => Object.fromEntries([...row.cells].map(
  cell => [cell.dataset.f, cell.childNodes[0].textContent])))"""


def shown(browser: Browser) -> list[dict[str, str]]:
    """Return every row of the file as the page shows it, exactly, by column; what is empty is left out."""
    if browser.value("document.querySelectorAll('#chart-box select').length"):
        choose(browser, "Rows", "whole")
    choose(browser, "Columns", "all")
    choose(browser, "Numbers", "exact")
    found: list[dict[str, str]] = []
    while True:
        found += browser.value(CELLS)
        if browser.value("document.getElementById('after').disabled"):
            return [{key: text for key, text in row.items() if text} for row in found]
        browser.value("document.getElementById('after').click()")


def same(text: str, value: object) -> bool:
    """Tell whether a text of the page is a value of an export, exactly."""
    if isinstance(value, bool):
        return text == str(value).lower()
    if isinstance(value, int):
        return int(text) == value
    return float(text) == value if isinstance(value, float) else text == value


def compare(rows: list[dict[str, str]], wanted: list[dict[str, Any]]) -> int:
    """Compare what is shown with what was written, and return how many values agree."""
    assert len(rows) == len(wanted)
    values = 0
    for row, want in zip(rows, wanted, strict=True):
        held = {key: value for key, value in want.items() if value not in (None, "")}
        assert set(row) == set(held)
        for key, value in held.items():
            assert same(row[key], value), (key, row[key], value)
            values += 1
    return values


def test_cells_are_shown_as_they_were_exported(campaign: Campaign, exported: dict[str, str], opened: Browser) -> None:
    wanted = list(TABLES["cells"].rows(campaign))
    for number, (kind, text) in enumerate(exported.items()):
        if number:
            opened.open(Path(opened.value("decodeURI(location.pathname)")), width=1280)
        assert drop(opened, (f"cells.{kind}", text)) == ""
        found = [{key: text for key, text in row.items() if not key.startswith("counted ")} for row in shown(opened)]
        assert compare(found, wanted) > 1500
        facts = opened.value("document.getElementById('facts').innerText")
        assert campaign.campaign_id in facts
        assert re.search(rf"^{len(wanted)}$", facts, re.MULTILINE)


@pytest.mark.parametrize("table", [name for name in TABLES if name != "cells"])
@pytest.mark.first(2)
def test_every_other_table_is_shown_as_it_was_exported(table: str, campaign: Campaign, opened: Browser) -> None:
    wanted = list(TABLES[table].rows(campaign))
    for kind in ("csv", "jsonl"):
        packed = gzip.compress(flat(campaign, table, kind).encode())
        assert drop(opened, (f"{table}.{kind}.gz", packed)) == ""
        assert compare(shown(opened), wanted) >= len(wanted)


def test_the_csv_module_reads_what_the_page_reads(exported: dict[str, str], opened: Browser) -> None:
    """Quotes, commas and line ends within fields, of a hand-made file as well."""
    rows = list(csv.reader(io.StringIO(exported["csv"])))
    at = rows[0].index("reason")
    rows[1][at] = 'a "quoted", text\nof two lines'
    stream = io.StringIO(newline="")
    csv.writer(stream, lineterminator="\r\n", quoting=csv.QUOTE_ALL).writerows(rows)
    assert drop(opened, ("quoted.csv", stream.getvalue())) == ""
    assert shown(opened)[0]["reason"] == rows[1][at]


def test_records_say_what_the_results_library_says(campaign: Campaign, opened: Browser) -> None:
    """Which attempts count, with every number that an endpoint recorded."""
    records = [campaign.content(name).data for name in sorted(campaign.launch_ids())]
    assert drop(opened, ("records.jsonl.gz", gzip.compress(b"".join(records)))) == ""
    rows = shown(opened)
    status = {
        (one.launch_id, one.point.point_id): one.status for one in outcomes_of(campaign.plan, campaign.readings())
    }
    made = {key: status[key] for key in status if key[0] and status[key] in ("valid", "unsound", "failed")}
    found = {(row["launch_id"], row["point_id"]): row["status"] for row in rows if "point_id" in row}
    assert {key: one for key, one in found.items() if one != "refused"} == {k: v for k, v in made.items() if k in found}
    assert {"valid", "unsound"} <= set(found.values())
    wanted = {
        (str(row["launch_id"]), str(row["point_id"]), str(row["quantity"]), row["endpoint"]): row
        for row in TABLES["samples"].rows(campaign)
    }
    compared = 0
    for row in rows:
        if "quantity" in row:
            own = wanted[row["launch_id"], row["point_id"], row["quantity"], int(row["endpoint"])]
            for name in ("count", "sum_ns", "min_ns", "max_ns", "amount", "elapsed_ns", "value"):
                assert (name in row) is (own[name] is not None)
                compared += name in row
                assert name not in row or float(row[name]) == own[name]
    assert compared > 100
    assert drop(opened, ("one.json", records[0])) == ""
    assert "cadge.launch-record/2" in opened.value("document.getElementById('facts').innerText")


def test_three_digits_are_those_of_a_report(opened: Browser, campaign: Campaign) -> None:
    """The page's rounding agrees with `units.sig3`, at ends of rounding too."""
    values = [0.0, 1.0, 5e-05, 0.0001, 0.04567, 0.9996, 9.994, 9.996, 99.96, 123.4, 999.4, 999.6, 12345.6, 5.5e9, -3.25]
    columns = [column.name for column in TABLES["launches"].columns(campaign)]
    first = next(TABLES["launches"].rows(campaign))
    text = "".join(lines("jsonl", columns, [first | {"loadavg": value + 0.0} for value in values]))
    assert drop(opened, ("rounded.jsonl", text.replace("5e-05", "0.00005"))) == ""
    choose(opened, "Columns", "all")
    found = [row["loadavg"] for row in opened.value(CELLS)]
    wanted = [units.grouped(int(value)) if value.is_integer() else units.sig3(value) for value in values]
    assert found == wanted


def test_a_series_looks_as_in_a_report(campaign: Campaign, exported: dict[str, str], opened: Browser) -> None:
    assert drop(opened, ("cells.csv", exported["csv"])) == ""
    choose(opened, "wait", "poll")
    keys = opened.value(
        "[...document.querySelectorAll('.series-keys label')].map(one => [one.querySelector('bdi').textContent, "
        "one.querySelectorAll('path')[1].getAttribute('d'), one.querySelectorAll('path')[1].getAttribute('style')])"
    )
    looks = {one.label: look for one, look in palette.identities(read(campaign).layers).items()}
    assert {name for name, _, _ in keys} == {*looks, "native-ofi, second series"}
    for name, shape, style in keys:
        if name in looks:
            assert shape == looks[name].shape
            assert f"var(--s{looks[name].slot})" in style
    drawn = "document.querySelectorAll('#figure svg.chart .series').length"
    assert opened.value(drawn) == len(keys)
    opened.value("document.querySelector('.series-keys input').click()")
    assert opened.value(drawn) == len(keys) - 1


def test_the_chart_draws_the_numbers_of_the_file(exported: dict[str, str], opened: Browser) -> None:
    """Its table has each value with its ends; heights of marks are in the order of values."""
    assert drop(opened, ("cells.csv", exported["csv"])) == ""
    rows = [
        row for row in csv.DictReader(io.StringIO(exported["csv"]))
        if row["kind"] == "layer" and row["wait"] == "block" and row["state"] == "valid"
    ]  # fmt: skip
    cells = opened.value(
        "[...document.querySelectorAll('table.numbers tbody tr')]"
        ".map(row => [...row.cells].map(one => one.textContent))"
    )
    wanted = {
        (
            row["layer"].removeprefix("'") + (", second series" if row["twin"] == "True" else ""),
            float(row["request_bytes"]),
        ): (
            float(row["latency_p50_ns"]), float(row["latency_p50_low_ns"]), float(row["latency_p50_high_ns"])
        )
        for row in rows
    }  # fmt: skip
    assert {(one[0], float(one[1])): tuple(map(float, one[2:])) for one in cells} == wanted
    places = opened.value(
        "[...document.querySelectorAll('#figure .series')].map(one => [...one.querySelectorAll('path[transform]')].map("
        "mark => mark.getAttribute('transform').match(/translate\\(\\S+ (\\S+)\\)/)[1]).map(Number))"
    )
    assert opened.value("document.querySelectorAll('#figure .interval').length") == len(wanted)
    heights = sorted((height for series in places for height in series), reverse=True)
    values = sorted(math.log(value) for value, _, _ in wanted.values())
    pixels = (heights[0] - heights[-1]) / (values[-1] - values[0])
    assert heights == pytest.approx([heights[0] - (value - values[0]) * pixels for value in values], abs=0.2)
    assert opened.value("document.querySelector('#figure svg.chart').getAttribute('role')") == "img"
    assert "logarithmic" in opened.value("document.getElementById('chart-desc').textContent")
    caption = opened.value("document.querySelector('figcaption').textContent")
    assert "the ends of the interval" in caption


def test_rows_sort_and_filter(exported: dict[str, str], opened: Browser) -> None:
    assert drop(opened, ("cells.csv", exported["csv"])) == ""
    press = (
        "[...document.querySelectorAll('.rows thead .by')]"
        ".find(one => one.textContent.startsWith('latency_p50_ns')).click()"
    )
    values = "[...document.querySelectorAll('.rows td[data-f=latency_p50_ns]')].map(one => parseFloat(one.title))"
    opened.value(press)
    found = [one for one in opened.value(values) if one is not None]
    assert len(found) > 10
    assert found == sorted(found)
    opened.value(press)
    assert [one for one in opened.value(values) if one is not None] == found[::-1]
    assert opened.value("document.querySelector('.rows [aria-sort]').getAttribute('aria-sort')") == "descending"

    def passing(words: str) -> list[dict[str, str]]:
        opened.value(
            f"(() => {{ const box = document.getElementById('filter'); box.value = {json.dumps(words)};"
            " box.dispatchEvent(new Event('input')); })()"
        )
        return list(opened.value(CELLS))

    assert {row["layer"] for row in passing("layer=rdma-ucx state=valid")} == {"rdma-ucx"}
    assert {row["layer"] for row in passing("onerror")} == {HOSTILE, "rdma-ucx"}, "in a name, and in a reason"
    assert 0 < len(passing("latency_p50_ns>10000")) < len(passing(""))
    assert passing("no such text") == []
    assert opened.value("document.getElementById('count').textContent") == "No row passes the filter."


def damaged(text: str, number: int, old: str, new: str) -> str:
    """Return a text of which one line, counted from 1, was changed."""
    found = text.splitlines(keepends=True)
    assert old in found[number - 1]
    found[number - 1] = found[number - 1].replace(old, new, 1)
    return "".join(found)


def test_what_is_damaged_or_of_something_else_is_refused_by_its_line(
    campaign: Campaign, exported: dict[str, str], opened: Browser
) -> None:
    csv_text, json_text, jsonl = exported["csv"], exported["json"], exported["jsonl"]
    record = campaign.content(min(campaign.launch_ids())).data
    launch = json.loads(record)
    name = campaign.campaign_id
    packed = gzip.compress(csv_text.encode())
    cases: list[tuple[str | bytes, str]] = [
        ("", "The file is empty"),
        (" \n\n", "nothing but space"),
        ("a,b\n1,2\n", r"Line 1: .*columns.*nearest is \w+, of which these are missing: "),
        (csv_text.splitlines()[0] + "\n", "names columns, and has no rows"),
        (damaged(csv_text, 1, "point_id", "campaign_id"), "Line 1: The column campaign_id is there twice"),
        (damaged(csv_text, 3, f"{name},", f"{name},,"), r"Line 3: There are \d+ fields, and the first line names \d+"),
        (csv_text[: csv_text.rindex(",", 0, -200)], r"Line \d+: There are \d+ field"),
        (
            damaged(csv_text, 4, ",False,", ",maybe,"),
            'Line 4: In the column twin stands "maybe", which is no True or F',
        ),
        (re.sub(r"\d+\.\d+", "12x", csv_text, count=1), 'Line 2: In the column .* stands "12x", which is no number'),
        (csv_text + '"open', r"Line \d+: A quoted field .* is not closed"),
        (damaged(csv_text, 2, f"{name},", f'{name[:4]}"{name[4:]},'), "Line 2: A quotation mark stands within"),
        (csv_text.encode()[:900] + b"\xff\xfe" + csv_text.encode()[900:], "Line 1: .*no UTF-8"),
        (packed[: len(packed) // 2], "packed data is damaged or cut off"),
        (json_text[: len(json_text) // 2], r"Line \d{2,}: The JSON ends before it is complete"),
        (json_text.replace(": true", ": treu", 1), r"Line \d+: This is no JSON"),
        (json_text.replace(export.SCHEMA, "cadge.export/9"), r"Line \d+: .*reads cadge\.export/3"),
        (json_text.replace(export.SCHEMA, "other/1"), r'Line \d+: The format "other/1" is not known'),
        (json_text.replace('"rows"', '"sorw"'), "has no rows"),
        ('{\n"a": 1\n}\n', "Line 1: This JSON names no format"),
        (damaged(jsonl, 2, '"campaign_id"', '"campaign"'), "Line 2: The column campaign is in no line before"),
        (damaged(jsonl, 3, '"twin": false', '"twin": 0'), 'Line 3: In the column twin stands "0", which is no boolean'),
        (jsonl[:-50], r"Line \d+: The JSON ends before"),
        (jsonl + "[]\n", r"Line \d+: This line is no record"),
        (json.dumps(launch | {"schema": "cadge.launch-record/7"}), "reads cadge.launch-record/2"),
        (json.dumps(launch | {"launch": None}), "missing or of another kind"),
        (b"PAR1" + bytes(40), "This is Parquet"),
        (b"PK\x03\x04" + bytes(40), "ZIP"),
        (b"ab\x00cd", "no text"),
        (gzip.compress(b"name".ljust(257, b"\0") + b"ustar" + bytes(249)), "This is an archive"),
        ("<!doctype html>\n<title>report</title>", "page or a picture"),
    ]
    for content, pattern in cases:
        said = drop(opened, ("given", content))
        assert re.search(pattern, said), (pattern, said, content[:200])
        assert not opened.value("document.getElementById('shown').checkVisibility()"), "nothing of it is shown"
    assert re.search("given: Line 1: ", drop(opened, ("cells.csv", csv_text), ("given", "a,b\n1,2\n")))
    assert opened.value("document.getElementById('shown').checkVisibility()"), "the good one is"


def test_a_file_without_its_last_line_end_is_shown_with_a_warning(exported: dict[str, str], opened: Browser) -> None:
    for kind in ("csv", "jsonl"):
        assert drop(opened, (f"cells.{kind}", exported[kind][:-1])) == ""
        assert "has no end: the file may be cut off" in opened.value("document.getElementById('facts').innerText")


def test_a_file_that_is_too_large_is_refused_unread(opened: Browser) -> None:
    opened.value(
        "(() => { const file = new File(['a'], 'big.csv'); Object.defineProperty(file, 'size', {value: 400000001});"
        " const all = {files: [file]}; const event = new Event('drop'); event.dataTransfer = all;"
        " document.getElementById('status').textContent = ''; dispatchEvent(event); })()"
    )
    assert re.search(r"has 400 MB; this page reads at most 400 MB\..*cadge export --table", waited(opened))


def test_rows_beyond_what_fits_are_counted(
    exported: dict[str, str], tmp_path: Path, browser: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(viewer, "MOST_CELLS", 10 * exported["csv"].splitlines()[0].count(","))
    (tmp_path / "v.html").write_text(viewer.html("x"), encoding="utf-8")
    browser.open(tmp_path / "v.html", width=1280)
    assert drop(browser, ("cells.csv", exported["csv"])) == ""
    facts = browser.value("document.getElementById('facts').innerText")
    assert re.search(r"\d+; the first 10 are shown, as more do not fit", facts)
    assert len(shown(browser)) == 10


def test_a_retracted_run_says_so(campaign: Campaign, exported: dict[str, str], opened: Browser) -> None:
    run = {
        "schema": "cadge.published/1", "campaign_id": campaign.campaign_id, "title": "t",
        "retracted": {"because": f"slow {HOSTILE}", "at_utc": "2026-11-27"},
    }  # fmt: skip
    assert drop(opened, ("summary.csv", exported["csv"])) == ""
    banner = "document.querySelector('#facts .stops')?.textContent"
    assert opened.value(banner) is None
    assert drop(opened, ("run.json", json.dumps(run, indent=1))) == ""
    assert opened.value(banner) == (
        f"Retracted on 2026-11-27: the run {campaign.campaign_id} is not to be relied on. slow {HOSTILE}"
    )
    assert opened.value("document.querySelectorAll('.rows').length") == 1


def test_an_import_stays_marked(opened: Browser) -> None:
    assert drop(opened, ("0123.json", test_imported.file("rpc").to_json())) == ""
    rows = shown(opened)
    assert {row["origin"] for row in rows} == {"imported"}
    assert {row["layer"] for row in rows} == {"imported: </script><script>alert(1)</script>"}
    assert [float(row["time_ns"]) for row in rows if "time_ns" in row] == [2460.0, 0.0, 780.0]
    assert [float(row["bandwidth_bytes_per_s"]) for row in rows if "bandwidth_bytes_per_s" in row] == [3_804_930_000.0]
    assert "never ranked" in opened.value("document.querySelector('figcaption').textContent")
    assert "has no interval and no verdict" in opened.value("document.getElementById('facts').innerText")


def test_digits_of_great_numbers_stay(campaign: Campaign, opened: Browser) -> None:
    seed = 9_007_199_254_740_993
    columns = [column.name for column in TABLES["campaigns"].columns(campaign)]
    (row,) = TABLES["campaigns"].rows(campaign)
    for kind in ("csv", "jsonl"):
        text = "".join(lines(kind, columns, [row | {"seed": seed}]))  # type: ignore[arg-type]
        assert drop(opened, (f"campaigns.{kind}", text)) == ""
        assert shown(opened)[0]["seed"] == str(seed)


def test_text_can_be_pasted(exported: dict[str, str], opened: Browser) -> None:
    opened.value("document.querySelector('#take details').open = true")
    opened.value(f"document.getElementById('text').value = {json.dumps(exported['csv'].rstrip())}")
    opened.value("document.getElementById('status').textContent = ''; document.getElementById('paste').click()")
    assert waited(opened) == ""
    assert opened.value("document.querySelectorAll('.rows tbody tr').length") > 10
    assert "cut off" not in opened.value("document.getElementById('facts').innerText")


def test_names_are_text_and_turn_nothing_else(exported: dict[str, str], opened: Browser) -> None:
    assert drop(opened, (f"{HOSTILE}{TURNED}.csv", exported["csv"])) == ""
    loose = opened.value(
        "(() => { const found = [], walker = document.createTreeWalker(document.querySelector('main'), 4); while ("
        "walker.nextNode()) { const node = walker.currentNode; if (node.data.includes('\\u202e') && !node.parentElement"
        ".closest('bdi, textarea, option')) found.push(node.data); } return found; })()"
    )
    assert loose == []
    assert FORMULA in opened.value("[...document.querySelectorAll('.rows bdi')].map(one => one.textContent)")


def test_the_page_reaches_nothing_and_runs_its_own_script_alone(
    page: Path, browser: Browser, exported: dict[str, str]
) -> None:
    text = page.read_bytes().decode()
    script = text.rpartition("<script>")[2].partition("</script>")[0]
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    meta = next(one for one in pagereader.read(text).all("meta") if "http-equiv" in one.attrs)
    assert f"default-src 'none'; script-src 'sha256-{digest}';" in meta.attrs["content"]
    assert len(script) <= 60_000
    browser.open(page, width=1280)
    assert drop(browser, ("cells.csv", exported["csv"])) == ""
    assert browser.requests() == [page.as_uri()]
    browser.value("fetch('http://127.0.0.1:1/').catch(() => {})")
    assert any("Content Security Policy" in one for one in browser.complaints())


def test_without_scripts_the_page_says_what_it_needs(page: Path, browser: Browser) -> None:
    browser.open(page, width=1280, scripts=False)
    text = browser.value("document.querySelector('main').innerText")
    assert "This page needs scripts" in text
    assert "A report needs none" in text
    assert not browser.value("document.getElementById('take').checkVisibility()")


@pytest.mark.parametrize(("width", "dark"), [(1280, False), (1280, True), (700, False), (390, True)])
def test_the_page_is_for_everybody(
    width: int, dark: bool, page: Path, browser: Browser, exported: dict[str, str]
) -> None:
    """Nothing but a chart is wider than the window; by axe-core no rule of WCAG 2.1 AA is broken."""
    browser.open(page, width=width, dark=dark)
    assert drop(browser, ("cells.csv", exported["csv"]), ("bad.csv", "a\n1\n")) != ""
    browser.value("document.querySelectorAll('main details').forEach(one => { one.open = true; })")
    for every in ("", "all"):
        choose(browser, "Columns", every)
        assert browser.value("document.documentElement.scrollWidth") == width
        wide = browser.value(
            "[...document.querySelectorAll('.scroll')].filter(one => one.scrollWidth > one.clientWidth"
            " && !one.querySelector('svg.chart')).map(one => one.getAttribute('aria-label'))"
        )
        assert wide == []
    if axe.PROGRAM.is_file():
        assert axe.violations(browser) == []


def test_controls_are_reached_by_tab(page: Path, browser: Browser, exported: dict[str, str]) -> None:
    browser.open(page, width=1280)
    assert drop(browser, ("cells.csv", exported["csv"])) == ""
    assert browser.value("document.activeElement.id") == "what", "the reader is brought to what was found"
    stops = browser.value(
        "[...document.querySelectorAll('#shown :is(button, input, select, summary, [tabindex=\"0\"])')]"
        ".filter(one => !one.disabled && one.checkVisibility()).map((one, at) => (one.dataset.stop = at))"
    )
    assert len(stops) > 20
    reached = []
    for _ in stops:
        for kind in ("rawKeyDown", "keyUp"):
            browser.send("Input.dispatchKeyEvent", type=kind, key="Tab", code="Tab", windowsVirtualKeyCode=9)
        reached.append(
            browser.value(
                "(() => { const one = document.activeElement, style = getComputedStyle(one); return"
                " [Number(one.dataset.stop ?? -1), style.outlineStyle !== 'none'] })()"
            )
        )
    assert reached == [[at, True] for at in range(len(stops))]


def test_paper_has_the_chart_and_no_controls(page: Path, browser: Browser, exported: dict[str, str]) -> None:
    browser.open(page, width=718)
    assert drop(browser, ("cells.csv", exported["csv"])) == ""
    browser.send("Emulation.setEmulatedMedia", media="print")
    try:
        assert not browser.value(
            "[...document.querySelectorAll('select, button:not(.by)')].some(one => one.checkVisibility())"
        )
        assert browser.value("document.querySelector('#figure svg.chart').checkVisibility()")
        assert browser.value("document.documentElement.scrollWidth") == 718
        keys = "[...document.querySelectorAll('.series-keys label')].filter(one => one.checkVisibility()).length"
        drawn = browser.value(keys)
        browser.value("document.querySelector('.series-keys input').click()")
        assert browser.value(keys) == drawn - 1, "paper names what it draws"
    finally:
        browser.send("Emulation.setEmulatedMedia", media="")


def test_the_same_version_gives_the_same_bytes(page: Path) -> None:
    assert viewer.html("0.0-test").encode() == page.read_bytes()
