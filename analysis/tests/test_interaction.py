# SPDX-License-Identifier: BSD-3-Clause
"""What a reader can do with a report, in a real browser; and that the file's policy lets its own script run alone."""

from __future__ import annotations

import base64
import csv
import hashlib
import io
import time
from pathlib import Path

import pagereader
import pytest
import synthetic
from chromium import Browser

from cadge_analysis import report
from cadge_analysis.blocks.script import script_of

HOSTILE = '"><img src=x onerror=document.title=1>,=1+1'
TURNED = "tcp\u202eefas"
SHOWN = "Array.from(document.querySelectorAll('{table} tbody tr:not([hidden]) th bdi')).map(e => e.textContent)"
ASKED = SHOWN.format(table="#questions > table.asked")
BOX = "Array.from(document.querySelectorAll('.shown label')).find(e => e.textContent === {name!r}).firstChild"
DRAWN = (
    "Array.from(document.querySelectorAll('#fig-rpc-within-poll > .scroll svg .k' + document.querySelector("
    "'#fig-rpc-within-poll label:nth-of-type({nth}) input').value)).some(e => e.getClientRects().length > 0)"
)
A4_PX = 718
"""The width of a page of paper between its margins."""
SORTERS = (
    "Array.from(document.querySelectorAll('[data-heads=many].sortable thead'))"
    ".filter(head => head.getBoundingClientRect().height > 2).length"
)
KEPT_TEXT = "window.kept = ''; navigator.clipboard.writeText = async text => {{ window.kept = text }}; {click}"


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The report of four layers: one name would be markup, one turns text round. One place, one wait mode."""
    folder = tmp_path_factory.mktemp("interaction")
    options = synthetic.Options(
        layers=("rdma-ucx", "native-ofi", HOSTILE, TURNED),
        sizes=(8, 64, 4096),
        places=("within",),
        waits=("poll",),
        patterns=(("rpc", 1),),
        launches=3,
        samples=300,
    )
    report.build(synthetic.make(folder / "campaigns", options).path, folder / "report.html")
    return folder / "report.html"


def harmless(browser: Browser) -> bool:
    """Tell whether the hostile name stayed text, and the page has nothing to complain of."""
    return not browser.complaints() and browser.value("document.images.length") == 0


def follow(browser: Browser, path: Path, fragment: str) -> None:
    """Open a report anew at a fragment."""
    browser.open(Path("/dev/null"), width=1280)
    browser.open(path, width=1280, fragment=fragment)


def arrived(browser: Browser, section: str) -> bool:
    """Tell whether a section comes to the window's top; pages scroll smoothly, which takes a while."""
    deadline = time.monotonic() + 10
    where = f"document.getElementById({section!r}).getBoundingClientRect().top"
    while not 0 <= browser.value(where) < 450:
        if time.monotonic() > deadline:
            return False
        time.sleep(0.05)
    return True


def test_the_policy_allows_the_script_of_the_file_and_no_other(path: Path, browser: Browser) -> None:
    text = path.read_bytes().decode()
    script = text.rpartition("<script>")[2].partition("</script>")[0]
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    policy = next(
        meta.attrs["content"]
        for meta in pagereader.read(text).all("meta")
        if meta.attrs.get("http-equiv") == "Content-Security-Policy"
    )
    assert f"script-src 'sha256-{digest}';" in policy
    assert policy.count("unsafe-inline") == 1
    assert 1000 < len(script) <= 30_000
    browser.open(path, width=1280)
    assert harmless(browser)
    add = (
        "let s = document.createElement('script'); s.textContent = 'window.got = 1'; document.body.append(s);"
        " window.got"
    )
    assert browser.value(add) is None
    assert any("Content Security Policy" in one for one in browser.complaints())


def test_a_script_that_would_end_its_element_is_refused() -> None:
    for text in ("'</SCRIPT>'", "'<!--'", "a\r\nb", "'\u00e9'"):
        with pytest.raises(ValueError, match="script for a page"):
            script_of(text)


def test_a_column_sorts_up_down_and_as_it_was(path: Path, browser: Browser) -> None:
    browser.open(path, width=1280)
    first = browser.value(ASKED)
    assert len(first) == 4
    press = "document.querySelectorAll('#questions > table.asked thead button')[1].click()"
    way = "document.querySelectorAll('#questions > table.asked thead th')[1].ariaSort"
    cells = "document.querySelectorAll('#questions > table.asked tbody td:nth-child(2)')"
    values = f"Array.from({cells}).map(e => parseFloat(e.dataset.v))"
    browser.value(press)
    assert browser.value(way) == "ascending"
    assert browser.value(values) == sorted(browser.value(values))
    browser.value(press)
    assert browser.value(way) == "descending"
    assert browser.value(values) == sorted(browser.value(values), reverse=True)
    turned = browser.value(ASKED)
    assert turned != first
    assert "sorted by" not in browser.value("document.querySelector('#questions > table.asked thead').innerText")
    kept = browser.value("location.hash")
    follow(browser, path, kept)
    assert browser.value(ASKED) == turned
    assert browser.value(way) == "descending"
    browser.value(press)
    assert browser.value(ASKED) == first
    assert browser.value(way) is None
    assert browser.value("location.hash") == ""
    assert harmless(browser)


@pytest.mark.parametrize("name", ["native-ofi", HOSTILE, TURNED])
def test_a_hidden_layer_is_hidden_everywhere_and_stays_so(name: str, path: Path, browser: Browser) -> None:
    browser.open(path, width=1280)
    keys = browser.value(
        "Array.from(document.querySelectorAll('#fig-rpc-within-poll .keys bdi')).map(e => e.textContent)"
    )
    drawn = [DRAWN.format(nth=1 + number) for number in range(len(keys))]
    assert all(browser.value(one) for one in drawn)
    heads = (
        "Array.from(document.querySelectorAll('#fig-rpc-within-poll table th:not([hidden])')).map(e => e.textContent)"
    )
    assert any(name in head for head in browser.value(heads))
    browser.value(BOX.format(name=name) + ".click()")
    for again in (False, True):
        if again:
            follow(browser, path, browser.value("location.hash"))
        for table in ("#questions > table.asked", "table.summary", "table.full"):
            shown = browser.value(SHOWN.format(table=table))
            assert shown
            assert name not in shown
        assert [browser.value(one) for one in drawn] == [key != name for key in keys]
        assert not any(name in head for head in browser.value(heads))
        assert browser.value(BOX.format(name=name) + ".checked") is False
        browser.send("Emulation.setEmulatedMedia", media="print")
        assert name in browser.value("document.querySelector('.chosen').textContent")
        assert browser.value("document.querySelector('.chosen').getClientRects().length") > 0, "paper says it as well"
        browser.send("Emulation.setEmulatedMedia", media="")
        assert harmless(browser)
    browser.value("document.querySelector('.shown button').click()")
    assert browser.value("document.querySelector('.chosen').hidden") is True
    assert name in browser.value(ASKED)
    assert browser.value("location.hash") == ""


LOOSE = """
(() => {
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT), found = [];
  while (walker.nextNode()) {
    const node = walker.currentNode, parent = node.parentElement, text = node.data;
    if (!text.includes(NAME) || parent.closest('script, bdi') || text.trim() === NAME) continue;
    if (text.split(NAME).slice(0, -1).some(part => !/[\\u2068/]$/.test(part))) found.push(text.slice(0, 160));
  }
  return found;
})()
"""


def test_a_name_that_turns_text_turns_its_own_alone(path: Path, browser: Browser) -> None:
    """In sentences, warnings, heads, captions and what is read out of pictures it is set apart (UAX 9), or in <bdi>."""
    browser.open(path, width=1280)
    assert browser.value(f"document.body.textContent.split('{TURNED}').length") > 20
    assert "\n".join(browser.value(LOOSE.replace("NAME", f"'{TURNED}'"))) == ""


def test_anchors_work_and_keep_the_state(path: Path, browser: Browser) -> None:
    follow(browser, path, "#provenance")
    assert arrived(browser, "provenance")
    follow(browser, path, "#v1&hide=native-ofi,no-such&sort=none:9:up,%E0%A4%A&at=provenance&later=1")
    assert "native-ofi" not in browser.value(ASKED)
    assert len(browser.value(ASKED)) == 3
    assert arrived(browser, "provenance")
    assert harmless(browser)


def test_a_table_is_taken_along(path: Path, browser: Browser) -> None:
    browser.open(path, width=1280)
    browser.value(
        "document.querySelector('details.case').open = true; document.querySelector('details.case').offsetHeight"
    )
    click = "document.querySelector('#questions > table.asked + .take button').click(); window.kept"
    markdown = browser.value(KEPT_TEXT.format(click=click)).splitlines()
    assert len(markdown) == 2 + 4
    assert {line.replace("\\|", "").count("|") for line in markdown} == {markdown[1].count("|")}
    assert any("\\<img" in line for line in markdown)
    caught = "window.made = null; URL.createObjectURL = blob => { window.made = blob; return '#'; };"
    browser.value(caught + "document.querySelectorAll('#questions > table.asked + .take button')[1].click()")
    answer = browser.send("Runtime.evaluate", expression="made.text()", awaitPromise=True, returnByValue=True)
    rows = list(csv.reader(io.StringIO(answer["result"]["value"])))
    assert len(rows) == 1 + 4
    assert len({len(row) for row in rows}) == 1
    assert HOSTILE in {row[0] for row in rows}
    exact = [number for number, head in enumerate(rows[0]) if head.endswith(", exact")]
    assert exact
    assert all(float(row[exact[0]]) > 0 for row in rows[1:])


def test_values_are_read_off_a_figure_with_keys(path: Path, browser: Browser) -> None:
    browser.open(path, width=1280)
    browser.value("document.querySelector('#fig-rpc-within-poll .read input').focus()")
    where = "+document.querySelector('#fig-rpc-within-poll .cursor').getAttribute('x1')"
    text = "document.querySelector('#fig-rpc-within-poll .values').textContent"
    first = browser.value(where)
    assert browser.value(text).startswith("8 B")
    for kind in ("keyDown", "keyUp"):
        browser.send("Input.dispatchKeyEvent", type=kind, key="ArrowRight", code="ArrowRight", windowsVirtualKeyCode=39)
    assert browser.value(where) > first
    shown = browser.value(text)
    assert shown.startswith("64 B")
    cell = (
        "Array.from(document.querySelectorAll('#fig-rpc-within-poll table.numbers tbody tr'))[1].cells[2].textContent"
    )
    assert browser.value(cell) in shown
    box = browser.value(
        "(() => { const s = document.querySelector('#fig-rpc-within-poll svg.chart');"
        " s.scrollIntoView({behavior: 'instant'});"
        " const b = s.getBoundingClientRect(); return [b.right - 5, b.top + 200]; })()"
    )
    browser.send("Input.dispatchMouseEvent", type="mouseMoved", x=box[0], y=box[1])
    assert browser.value(text).startswith("4 KiB")
    assert harmless(browser)


def test_paper_has_no_controls(path: Path, browser: Browser) -> None:
    browser.open(path, width=A4_PX)
    browser.value("document.querySelectorAll('main details').forEach(one => { one.open = true; })")
    browser.value("document.body.offsetHeight")
    controls = "Array.from(document.querySelectorAll('.take, .read, .layers-shown'))"
    seen = f"{controls}.filter(e => e.getClientRects().length).length"
    assert browser.value(seen) > 2
    browser.send("Emulation.setEmulatedMedia", media="print")
    try:
        assert browser.value(seen) == 0
        assert browser.value(SORTERS) == 0
        assert browser.value("document.documentElement.scrollWidth") == A4_PX, "else all of it is printed smaller"
    finally:
        browser.send("Emulation.setEmulatedMedia", media="")
