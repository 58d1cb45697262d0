# SPDX-License-Identifier: BSD-3-Clause
"""What registration costs: cold by warm of the same round, and what may be called free."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pagereader
import pytest
import synthetic
import yaml
from chromium import Browser
from test_browser import TOO_WIDE

from cadge_analysis.errors import BadInputError
from cadge_analysis.study import published
from cadge_analysis.study.views import build
from cadge_results import Campaign

SC98 = Path(__file__).parents[1] / "studies" / "sc98"
TRAPEZE = SC98.parent / "trapeze"
LAYERS = ("pm-ucx", "rdma-mpi", "rdma-ofi", "rdma-ucx", "vmmc-ofi", "vmmc-ucx")
FREE, COSTS, OPEN = "registration is free here", "registration costs", "cannot be told"
TITLE = "Put within one host, target active, polling"


def cold_ns(layer: str, size: int, warm_ns: int, number: int) -> int:
    """Return the time of a cold operation: three times the warm one, as long, 10 ns more, or now this, now that."""
    if layer == "pm-ucx":
        return warm_ns * 3
    if layer == "rdma-ofi":
        return warm_ns + 10
    if layer == "vmmc-ucx":
        return warm_ns * (4 if number % 2 else 9) // 6
    return warm_ns * 2 if layer == "vmmc-ofi" and size == 8 else warm_ns


def by_hand(point: dict[str, Any], attempt: dict[str, Any], number: int) -> None:
    """Every round is slower than the one before by half: only pairs of one round show a factor."""
    known = synthetic.flat(point)
    value = 500
    if known["kind"] == "layer":
        value = round(120 * (known["size"] / 8) ** 0.1 * 1.5**number)
        if known["registration"] == "cold":
            value = cold_ns(known["layer"], known["size"], value, number)
    synthetic.set_samples(attempt, [(value, 200)])
    synthetic.set_samples(attempt, [(value * 2, 200)], "visible")
    attempt["operations"] = 200
    attempt["elapsed_ns"] = value * 200
    if known["layer"] == "rdma-mpi":
        attempt |= {"status": "failed", "reason_code": "DEADLINE", "reason": "the window is closed", "quantities": {}}


def make(root: Path, **changes: Any) -> Campaign:  # noqa: ANN401
    options: dict[str, Any] = {
        "layers": LAYERS,
        "sizes": (8, 4096),
        "places": ("within",),
        "waits": ("poll",),
        "patterns": (("onesided", 1),),
        "given": tuple({"registration": word, "target": "active"} for word in ("warm", "cold")),
        "attempt_hook": by_hand,
        "samples": 200,
        "floors": False,
        "troubles": False,
    }
    return synthetic.make(root, synthetic.Options(**(options | changes)))


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("page") / "sc98.html"
    build([make(tmp_path_factory.mktemp("registration"))], SC98, out)
    return out


@pytest.fixture(scope="module")
def section(path: Path) -> pagereader.Node:
    return pagereader.read(path.read_text()).one("section", id="contrast-1")


@pytest.fixture(scope="module")
def rows(section: pagereader.Node) -> dict[str, pagereader.Node]:
    table = section.one("div", role="group")
    assert table.attrs["aria-label"] == TITLE
    return {row.one("th").own: row for row in table.one("tbody").all("tr")}


def verdict(row: pagereader.Node) -> str:
    return row.all("td")[-1].text.strip()


def test_a_ratio_is_of_one_round(rows: dict[str, pagereader.Node]) -> None:
    for layer, factor in (("pm-ucx", 3.0), ("rdma-ucx", 1.0)):
        for cell in rows[layer].all("td")[:-1]:
            assert [float(part) for part in cell.attrs["data-v"].split()] == pytest.approx([factor] * 3, rel=0.003)
    assert "+0.788" in rows["pm-ucx"].all("td")[0].text, "how much longer it took, in us"


def test_what_follows(rows: dict[str, pagereader.Node]) -> None:
    assert verdict(rows["pm-ucx"]) == COSTS
    assert verdict(rows["rdma-ucx"]) == FREE
    assert verdict(rows["rdma-ofi"]) == FREE, "10 ns more, which is nothing, though the ratio leaves 1 out"
    assert float(rows["rdma-ofi"].all("td")[0].attrs["data-v"].split()[2]) > 1.05
    assert verdict(rows["vmmc-ucx"]) == OPEN, "an interval that holds 1 is no proof"
    assert verdict(rows["vmmc-ofi"]) == f"8 B: {COSTS}; 4 KiB: {FREE}"


def test_no_layer_is_left_out(rows: dict[str, pagereader.Node]) -> None:
    assert set(rows) == set(LAYERS)
    assert verdict(rows["rdma-mpi"]) == "the window is closed"


def test_the_criterion_and_what_was_published_stand_with_it(section: pagereader.Node, path: Path) -> None:
    assert "108.8 MB/s (found; the paper on the pin-down cache, IPPS'98)" in section.text
    assert 'href="#contrast-1"' in path.read_text()


def test_a_campaign_without_it_has_no_section(tmp_path: Path) -> None:
    out = tmp_path / "sc98.html"
    build(
        [make(tmp_path / "c", given=({"target": "active", "registration": "warm"},), layers=("rdma-ucx",))], SC98, out
    )
    assert 'id="contrast-1"' not in out.read_text()


def test_one_launch_tells_nothing(tmp_path: Path) -> None:
    out = tmp_path / "sc98.html"
    build([make(tmp_path / "c", layers=("rdma-ucx",), launches=1)], SC98, out)
    table = pagereader.read(out.read_text()).one("section", id="contrast-1").one("tbody")
    assert verdict(table.one("tr")) == OPEN


def test_sections_say_which_campaign_they_are_of(tmp_path: Path) -> None:
    other = make(
        tmp_path / "a", layers=("am-ucx", "native-ucx"), patterns=(("pingpong", 1),), given=({},), attempt_hook=None
    )
    out = tmp_path / "sc98.html"
    build([other, make(tmp_path / "b", layers=("rdma-ucx",), seed=9)], SC98, out)
    assert "Of it: Registration" in pagereader.read(out.read_text()).one("section", id="provenance").text


def test_the_sweep_measures_both_values() -> None:
    sweep = yaml.safe_load((SC98.parents[2] / "harness/sweeps/registration.yml").read_text())
    spec = published.read(SC98).contrasts[0]
    assert spec is not None
    for pattern in sweep["patterns"]:
        assert {spec.parameter.on, spec.parameter.off} == set(pattern[spec.parameter.name])


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("      open: cannot be told\n", "", "said: give free, costs and open"),
        ("free: {times: 1.05", "free: {times: 1", "above 1"),
        ("figures: [pm_hit", "figures: [pm_hot", "no figure is called pm_hot"),
    ],
)
def test_wrong_files_are_refused(tmp_path: Path, old: str, new: str, says: str) -> None:
    text = (SC98 / published.FILE).read_text()
    assert old in text
    (tmp_path / published.FILE).write_text(text.replace(old, new))
    with pytest.raises(BadInputError, match=says):
        published.read(tmp_path)


@pytest.mark.parametrize("width", [375, 1280])
def test_the_page_never_scrolls_sideways(browser: Browser, path: Path, width: int) -> None:
    browser.open(path, width=width)
    assert browser.value("document.documentElement.scrollWidth") == width
    assert browser.value(TOO_WIDE) == []
    assert browser.complaints() == []


def copied_by_hand(point: dict[str, Any], attempt: dict[str, Any], number: int) -> None:
    """A copy of 4 KiB takes half as long again, one of nothing takes nothing."""
    known = synthetic.flat(point)
    value = round(5000 * 1.5**number)
    if known["kind"] == "layer" and known["payload"] == "copied" and known["reply_bytes"]:
        value = value * 3 // 2
    synthetic.set_samples(attempt, [(value, 200)])
    attempt["operations"] = 200
    attempt["elapsed_ns"] = value * 200


def test_columns_are_of_another_parameter_where_a_study_says_so(tmp_path: Path) -> None:
    given = tuple(
        {"payload": payload, "reply_bytes": reply} for payload in ("unsolicited", "copied") for reply in (0, 4096)
    )
    campaign = make(
        tmp_path,
        layers=("sockets-unix",),
        sizes=(16,),
        patterns=(("rpc", 1),),
        given=given,
        attempt_hook=copied_by_hand,
    )
    out = tmp_path / "trapeze.html"
    build([campaign], TRAPEZE, out)
    root = pagereader.read(out.read_text())
    copy = root.one("section", id="contrast-3")
    heads = [" ".join(head.text.split()) for head in copy.one("thead").all("th")]
    assert heads == ["layer", "0 B", "4 KiB", "verdict"]
    [row] = copy.one("tbody").all("tr")
    said = " ".join(row.text.split())
    assert "1.50" in said
    assert said.endswith("0 B: the copy is free here; 4 KiB: the copy costs")
    assert root.one("section", id="contrast-1").one("h3").text == "RPC within one host, polling"
