# SPDX-License-Identifier: BSD-3-Clause
"""Campaigns without anything to compare say so first; whatever names hold, the page stays whole."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import chromium
import pagereader
import pytest
import synthetic

from cadge_analysis import messages, report, words
from cadge_analysis.stats import load

TOO_WIDE = """
Array.from(document.querySelectorAll('.top *, #answer *, #questions *, nav *')).filter(e => {
  const box = e.getBoundingClientRect();
  return e.checkVisibility({contentVisibilityAuto: true}) && box.width > 1 && box.right > innerWidth + .5;
}).map(e => e.tagName + '.' + e.className)
"""
FSI, PDI = "\u2068", "\u2069"


def options(**given: Any) -> synthetic.Options:  # noqa: ANN401
    usual: dict[str, Any] = {
        "layers": ("sockets-tcp", "native-ucx"),
        "sizes": (8, 4096),
        "places": ("within",),
        "waits": ("poll",),
        "patterns": (("rpc", 1),),
        "launches": 3,
        "samples": 200,
        "troubles": False,
    }
    return synthetic.Options(**(usual | given))


def path_of(folder: Path, **given: Any) -> Path:  # noqa: ANN401
    report.build(synthetic.make(folder / "store", options(**given)).path, folder / "r.html")
    return folder / "r.html"


def page_of(folder: Path, **given: Any) -> pagereader.Node:  # noqa: ANN401
    return pagereader.read(path_of(folder, **given).read_text())


def said(root: pagereader.Node) -> list[str]:
    """Return what the answer begins with."""
    return [node.text for node in root.one("section", id="answer").all("p", class_="opening")]


def fail(_: dict[str, Any], attempt: dict[str, Any], number: int) -> None:
    synthetic._spoil(attempt, "DEADLINE", "no progress for 3000 ms" if number else "the library ended")


def test_all_refused(tmp_path: Path) -> None:
    root = page_of(tmp_path, layers=("sockets-unix",), places=("between",), troubles=True)
    assert said(root) == [
        "Nothing here has a number: all 2 planned points were refused before anything was tried.",
        "The reason is: a Unix socket does not leave its host.",
    ]
    assert "planned attempts gave" not in root.one("dl", class_="compared").text, "none was planned"


def test_one_point_refused(tmp_path: Path) -> None:
    root = page_of(tmp_path, layers=("sockets-unix",), places=("between",), troubles=True, sizes=(8,))
    assert said(root)[0] == "Nothing here has a number: its one planned point was refused before anything was tried."


def test_some_failed_and_the_rest_was_not_run(tmp_path: Path) -> None:
    gone = {"lost": lambda launch: launch["subject"]["layer"] == "native-ucx"}
    assert said(page_of(tmp_path, attempt_hook=fail, **gone))[0] == (
        "Nothing here has a number: of 4 planned points 2 were tried, and failed and 2 were not run."
    )


def test_one_layer_with_numbers_of_several(tmp_path: Path) -> None:
    root = page_of(tmp_path, lost=lambda launch: launch["subject"]["layer"] == "native-ucx")
    assert said(root) == ["Nothing is compared: of 2 layers only sockets-tcp has numbers."]


def test_what_ranks_nobody_says_so(tmp_path: Path) -> None:
    """Two layers whose data nobody touched: without a word the first screen would be empty."""
    root = page_of(tmp_path, touches=("none",))
    assert not root.all("tr", class_="leads")
    why = messages.say("report", "opening.no_point_ranks")
    assert said(root) == [messages.say("report", "opening.no_layer_named", why=why)]


def test_a_usual_campaign_needs_no_such_words(tmp_path: Path) -> None:
    assert said(page_of(tmp_path)) == []


# ---- names ----

HOSTILE = {
    "script": "<script>alert(1)</script>",
    "quotes": "h\"1'><b onmouseover=alert(1)>",
    "long": "layer-" + "x" * 294,
    "from the right": "\u05e9\u05db\u05d1\u05d4-\u0637\u0628\u0642\u0629",
    "turned": "tcp\u202eefas\u2066",
}


def test_names_that_turn_are_set_apart() -> None:
    assert words.isolated("sockets-tcp") == "sockets-tcp"
    assert words.isolated("caf\u00e9 \u5c42") == "caf\u00e9 \u5c42"
    for name in (HOSTILE["from the right"], HOSTILE["turned"]):
        assert words.isolated(name) == f"{FSI}{name}{PDI}"


@pytest.mark.parametrize("name", HOSTILE.values(), ids=HOSTILE)
@pytest.mark.first(2)
def test_a_hostile_layer_is_harmless_and_leaves_the_page_whole(
    name: str, browser: chromium.Browser, tmp_path: Path
) -> None:
    path = path_of(tmp_path, layers=(name, "sockets-tcp"), launches=6, node={"kernel": name, "libc": name})
    root = pagereader.read(path.read_text())
    assert len(root.all("script")) == 2
    assert not root.all("b", onmouseover="alert(1)")
    rows = root.one("section", id="questions").one("tbody").all("tr")
    assert name in {row.one("th").one("bdi").text for row in rows}
    assert name in {bdi.text for bdi in root.all("table", class_="ranked")[0].all("bdi")}
    for width in (390, 1280):
        browser.open(path, width=width)
        assert browser.complaints() == []
        assert browser.value("document.documentElement.scrollWidth") == width
        assert browser.value(TOO_WIDE) == []
        letters = "getComputedStyle(document.querySelector('.ranking h3')).direction"
        assert browser.value(letters) == "ltr"


@pytest.mark.parametrize("name", [HOSTILE["quotes"], HOSTILE["long"], HOSTILE["turned"]])
def test_a_hostile_host_is_harmless(name: str, browser: chromium.Browser, tmp_path: Path) -> None:
    data = load.read(synthetic.make(tmp_path / "store", options()))
    testbed = data.meta.testbed.model_copy(update={"hosts": (name, "h2"), "name": name})
    node = data.nodes[0].model_copy(update={"host": name})
    meta = data.meta.model_copy(update={"testbed": testbed, "sweep": name, "problems": (name, name)})
    notices = data.plan.model_copy(update={"notices": (name, "another")})
    report.write(report.page_of(replace(data, meta=meta, nodes=(node,), plan=notices)), tmp_path / "r.html")
    root = pagereader.read((tmp_path / "r.html").read_text())
    assert not root.all("b", onmouseover="alert(1)")
    assert len(root.all("script")) == 2
    assert words.isolated(name) in root.one("p", class_="deck").text
    assert name in [one.text for one in root.one("section", id="provenance").all("td")]
    for width in (390, 1280):
        browser.open(tmp_path / "r.html", width=width)
        browser.value("document.querySelectorAll('.sure details').forEach(d => d.open = true)")
        assert browser.complaints() == []
        assert browser.value("document.documentElement.scrollWidth") == width
        assert browser.value(TOO_WIDE) == []


def test_the_head_says_what_was_compared(tmp_path: Path) -> None:
    layers = ("native-ucx", "rdma-ucx", "mpi-p2p")
    both = ("within", "between")
    root = page_of(tmp_path, layers=layers, places=both, patterns=(("rpc", 1), ("stream", 16)), waits=("poll", "block"))
    told = {item.one("dt").text: item.one("dd").text for item in root.one("dl", class_="compared").all("div")}
    over = "(within: shared memory; between: a network (data0))"
    assert told["UCX 1.13.1"] == f"native-ucx, rdma-ucx {over}"
    assert told["Open MPI 4.1.4"] == f"mpi-p2p {over}"
    # three layers, two patterns, two sizes, two places, two ways to wait, three launches
    assert told["Measured"].startswith(
        "RPC and Stream: 8 B to 4 KiB (2 sizes); polling and blocking. 144 of 144 planned attempts gave a number."
    )


def test_no_space_stands_before_the_semicolon_between_paths(tmp_path: Path) -> None:
    """The semicolon is the style sheet's, and white space between the elements would stand before it."""
    given = synthetic.Options(
        layers=("sockets-tcp", "sockets-unix"), places=("within", "between"), sizes=(8,), launches=3
    )
    report.build(synthetic.make(tmp_path / "store", given).path, tmp_path / "r.html")
    text = (tmp_path / "r.html").read_text()
    assert '</span></dd><dd>sockets-tcp <span class="dim">(within: shared memory; between' in text
