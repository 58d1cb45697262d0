# SPDX-License-Identifier: BSD-3-Clause
"""Another percentile and another baseline in the tables of a report, chosen in a real browser."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
import synthetic
from arithmetic import show
from chromium import Browser

from cadge_analysis import report
from cadge_analysis.stats import load
from cadge_results import Campaign
from cadge_results.formats.histogram import Histogram

BASE, OTHER, TURNED = "sockets-tcp", "native-ofi", "tcp\u202eefas"
SHORT = (
    "Object.fromEntries([...document.querySelector('table.summary').tBodies[0].rows].map("
    "row => [row.querySelector('bdi').textContent, row.cells[1].textContent]))"
)
OF_ALL = (
    "Object.fromEntries([...document.querySelectorAll('table.full')].filter(t => t.querySelector('[data-f={field}]'))"
    ".slice(0, 1).flatMap(t => [...t.tBodies[0].rows].map(row => [row.querySelector('th bdi').textContent,"
    " row.cells[[...t.tHead.rows[0].cells].findIndex(h => h.dataset.f === '{field}')].{what}])))"
)
PRESS = "document.querySelector('.shown input[value={value}]').click()"
PICK = (
    "(() => {{ const list = document.querySelector('.shown select'); list.value = {name!r};"
    " list.dispatchEvent(new Event('change')); }})()"
)
SAID = "document.querySelector('.chosen').textContent"


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A report with samples enough for the p99, and too few for the p99.9; and of rates, which have neither."""
    folder = tmp_path_factory.mktemp("compare-by")
    options = synthetic.Options(
        layers=("rdma-ucx", OTHER, TURNED, BASE),
        sizes=(8,),
        places=("within",),
        waits=("poll",),
        patterns=(("rpc", 1), ("stream", 64)),
        launches=3,
        troubles=False,
    )
    report.build(synthetic.make(folder / "campaigns", options).path, folder / "report.html")
    return folder / "report.html"


def nine_tenths(histograms: list[Histogram]) -> int:
    """Return the highest nanoseconds of the bucket that nine tenths of all values do not exceed."""
    tally: Counter[int] = Counter()
    for one in histograms:
        tally.update(dict(zip(one.highs.tolist(), one.counts.tolist(), strict=True)))
    seen, every = 0, tally.total()
    for high in sorted(tally):
        seen += tally[high]
        if 10 * seen >= 9 * every:
            return high
    raise ValueError("no values")


def again(browser: Browser, path: Path, fragment: str = "") -> None:
    browser.open(Path("/dev/null"), width=1280)
    browser.open(path, width=1280, fragment=fragment)


def test_short_tables_show_the_percentile_that_is_chosen(path: Path, browser: Browser) -> None:
    again(browser, path)
    as_made = browser.value("document.querySelector('main').innerHTML")
    shown = browser.value(SHORT)
    tails = browser.value(OF_ALL.format(field="p99", what="textContent"))
    assert set(shown) == {"rdma-ucx", OTHER, TURNED, BASE}
    assert all(tails[name] not in ("", shown[name]) for name in shown)
    rates = "document.querySelectorAll('table.summary')[1].innerHTML"
    before = browser.value(rates)
    browser.value(PRESS.format(value="p99"))
    for opened in ("pressed", "by its address"):
        assert browser.value(SHORT) == tails, opened
        assert browser.value(rates) == before, "a rate has no percentile"
        caption = browser.value("document.querySelector('table.summary caption').textContent")
        assert "p99 of the" in caption
        assert "floor" not in caption
        ratios = "[...document.querySelector('table.summary').querySelectorAll('.ratio')].every(e => e.hidden)"
        assert browser.value(ratios), "floors are of the p50"
        assert "Short tables show the p99 by choice" in browser.value(SAID)
        assert not browser.complaints()
        again(browser, path, "#v1&pct=p99")
    browser.value(PRESS.format(value="p999"))
    assert set(browser.value(SHORT).values()) == set(
        browser.value(OF_ALL.format(field="p999", what="textContent")).values()
    )
    assert "needs" in browser.value(SHORT)[OTHER], "too few samples is said, and no number shown"
    browser.value(PRESS.format(value="p50"))
    assert browser.value(SHORT) == shown
    assert browser.value("location.hash") == ""
    assert browser.value("document.querySelector('.chosen').hidden")
    again(browser, path)
    assert browser.value("document.querySelector('main').innerHTML") == as_made


def test_the_p90_of_short_tables_is_that_of_all_launches_together(path: Path, browser: Browser) -> None:
    """By hand, of the stored buckets: the upper end of the one in which nine tenths of all operations are reached."""
    (campaign,) = (path.parent / "campaigns").iterdir()
    by_hand = {}
    for cell in load.read(Campaign(campaign)).cells:
        if cell.series.kind == "layer" and cell.case.pattern == "rpc":
            of_launches = [sample.quantities["latency"].counts for sample in cell.samples]
            by_hand[cell.series.label] = nine_tenths(of_launches), [nine_tenths([one]) for one in of_launches]
    again(browser, path)
    shown = browser.value(SHORT)
    browser.value(PRESS.format(value="p90"))
    for opened in ("pressed", "by its address"):
        found = browser.value(SHORT)
        for name, (together, single) in by_hand.items():
            range_us = f"{show(min(single) / 1000)}\u2026{show(max(single) / 1000)}"
            assert found[name] == f"{show(together / 1000)}{range_us}", opened
        assert found != shown
        caption = browser.value("document.querySelector('table.summary caption').textContent")
        assert "p90 of the" in caption
        assert "Short tables show the p90 by choice" in browser.value(SAID)
        assert not browser.complaints()
        again(browser, path, "#v1&pct=p90")
    browser.value(PRESS.format(value="p50"))
    assert browser.value(SHORT) == shown
    assert browser.value("location.hash") == ""


@pytest.mark.parametrize("name", [OTHER, TURNED])
def test_tables_divide_by_the_layer_that_is_chosen_without_a_verdict(name: str, path: Path, browser: Browser) -> None:
    again(browser, path)
    judged = OF_ALL.format(field="verdict", what="textContent")
    medians = {
        layer: float(text.split(" ")[0])
        for layer, text in browser.value(OF_ALL.format(field="p50", what="dataset.v")).items()
    }
    before = browser.value(judged)
    assert any(sign in "".join(before.values()) for sign in "\u25b2\u25bc?\u2248")
    browser.value(PICK.format(name=name))
    kept = browser.value("location.hash")
    for opened in ("picked", "by its address"):
        told = browser.value(judged)
        ratios = browser.value(OF_ALL.format(field="verdict", what="dataset.v"))
        for layer, median in medians.items():
            if layer == name:
                assert told[layer] == "\u2013the baseline", opened
            else:
                assert float(ratios[layer]) == pytest.approx(median / medians[name])
                assert told[layer].endswith("\u00d7no verdict")
        assert not set("".join(told.values())) & set("\u25b2\u25bc?\u2248"), "nothing was judged against it"
        head = "document.querySelector('table.full [data-f=verdict]').firstChild.data"
        assert browser.value(head) == f"\u00f7 {name}"
        assert f"Tables divide by {name} by choice" in browser.value(SAID)
        assert "cadge report FILE --baseline LAYER" in browser.value(SAID)
        assert not browser.complaints()
        again(browser, path, kept)
    browser.value(PICK.format(name=""))
    assert browser.value(judged) == before
    assert browser.value("location.hash") == ""


def test_an_address_of_another_report_changes_nothing(path: Path, browser: Browser) -> None:
    again(browser, path)
    before = browser.value(SHORT), browser.value(OF_ALL.format(field="verdict", what="textContent"))
    again(browser, path, "#v1&pct=constructor&base=no-such")
    assert (browser.value(SHORT), browser.value(OF_ALL.format(field="verdict", what="textContent"))) == before
    assert browser.value("document.querySelector('.chosen').hidden")
    assert not browser.complaints()


def test_keys_alone_choose_both(path: Path, browser: Browser) -> None:
    again(browser, path)
    folds = "[...document.querySelectorAll('.layers-shown > summary')].at(-1)"
    browser.value(f"{folds}.focus()")

    def press(key: str, number: int, text: str = "") -> None:
        for kind in ("keyDown", "keyUp"):
            browser.send(
                "Input.dispatchKeyEvent", type=kind, key=key, code=key, windowsVirtualKeyCode=number, text=text
            )

    press("Enter", 13, "\r")
    press("Tab", 9)
    assert browser.value("document.activeElement.value") == "p50"
    press("ArrowDown", 40)
    assert browser.value("location.hash") == "#v1&pct=p90"
    press("ArrowDown", 40)
    assert browser.value("location.hash") == "#v1&pct=p99"
    press("Tab", 9)
    assert browser.value("document.activeElement.tagName") == "SELECT"
    press("ArrowDown", 40)
    assert "base=" in browser.value("location.hash")
    press("Escape", 27)
    press("Escape", 27)
    assert browser.value(f"document.activeElement === {folds}")


def test_a_narrow_page_can_be_sorted_by_touch(path: Path, browser: Browser) -> None:
    browser.open(path, width=390)
    heads = "document.querySelector('#questions > table.asked thead')"
    box = f"{heads}.querySelectorAll('button')[1].getBoundingClientRect()"
    width, left = browser.value(f"[{box}.width, {box}.x]")
    assert width > 30
    assert 0 <= left < 390
    assert browser.value(f"getComputedStyle({heads}).clipPath") == "none"
    assert browser.value("document.documentElement.scrollWidth") == 390
