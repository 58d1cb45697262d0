# SPDX-License-Identifier: BSD-3-Clause
"""A published table beside ours, the share of the bare stream, and what is said of each claim."""

from __future__ import annotations

from itertools import product
from pathlib import Path
from typing import Any

import pagereader
import pytest
import synthetic
import yaml
from chromium import Browser
from test_browser import TOO_WIDE

from cadge_analysis.errors import BadInputError
from cadge_analysis.messages import say
from cadge_analysis.study import published
from cadge_analysis.study.views import build
from cadge_results import Campaign
from cadge_results.units import parse_bytes

ROOT = Path(__file__).parents[2]
TRAPEZE = ROOT / "analysis/studies/trapeze"
US = 1000
TAKES = {"cont": 10, "wait": 20, "defer": 15}
"""Microseconds of a call, by who takes its reply; passed on it takes twice as long."""


def by_hand(point: dict[str, Any], attempt: dict[str, Any], number: int) -> None:
    """Every round is slower than the one before by half: only pairs of one round show a factor.

    Calls keep 80 % of the stream at 4 KiB and 95 % at 8 KiB. A copy takes a tenth. pm-ucx fails at what it copies.
    """
    known = synthetic.flat(point)
    slower = 1.5**number
    if known["kind"] == "layer" and known["pattern"] == "stream":
        synthetic.set_rate(
            attempt, known["size"] * 1000, round(1e6 * slower * (0.80 if known["size"] == 4096 else 0.95))
        )
        return
    value = 500.0
    if known["kind"] == "layer":
        value = TAKES[known["reply"]] * US * slower * (1.1 if known["payload"] == "copied" else 1)
        value *= 2 if known.get("route") == "delegated" else 1
    synthetic.set_samples(attempt, [(round(value), 200)])
    attempt |= {"operations": 1000, "elapsed_ns": round(1e6 * slower)}
    if known["layer"] == "pm-ucx" and known.get("payload") == "copied":
        attempt |= {"status": "failed", "reason_code": "LIBRARY", "reason": "no room for a copy", "quantities": {}}
    if known["layer"] == "am-ofi":
        attempt |= {"status": "failed", "reason_code": "LIBRARY", "reason": "nothing works", "quantities": {}}


def make(root: Path, **changes: Any) -> Campaign:  # noqa: ANN401
    given = tuple(
        {
            "reply": taken,
            "payload": payload,
            "reply_bytes": size,
            "bytes": max(size, 4096),
            "depth": depth,
            "route": route,
        }
        for taken, payload, (size, depth), route in product(
            TAKES,
            ("solicited", "unsolicited", "copied"),
            ((0, 1), (4096, 1), (4096, 16), (8192, 16)),
            ("delegated", "direct"),
        )
        if route == "delegated" or (taken, payload) == ("cont", "solicited")
    )
    options: dict[str, Any] = {
        "layers": ("am-ofi", "am-ucx", "pm-ucx"),
        "sizes": (16,),
        "places": ("within",),
        "waits": ("block",),
        "patterns": (("rpc", 1), ("delegated", 1), ("stream", 16)),
        "given": given,
        "attempt_hook": by_hand,
        "samples": 200,
        "floors": False,
        "troubles": False,
    }
    return synthetic.make(root, synthetic.Options(**(options | changes)))


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("page") / "trapeze.html"
    build([make(tmp_path_factory.mktemp("calls"))], TRAPEZE, out)
    return out


@pytest.fixture(scope="module")
def root(path: Path) -> pagereader.Node:
    return pagereader.read(path.read_text())


def tables(root: pagereader.Node, section: str) -> dict[str, pagereader.Node]:
    return {one.attrs["aria-label"]: one for one in root.one("section", id=section).all("div", role="group")}


def said(node: pagereader.Node) -> str:
    return " ".join(node.text.split())


def rows(table: pagereader.Node) -> dict[tuple[str, ...], pagereader.Node]:
    """Return rows by what heads them: its text, and its small print."""
    found = {}
    for row in table.one("tbody").all("tr"):
        heads = row.all("th")
        key = [*(" ".join(head.own.split()) for head in heads), *(small for head in heads for small in head.smalls)]
        found[tuple(key)] = row
    return found


def numbers(row: pagereader.Node) -> list[float | None]:
    return [float(cell.attrs["data-v"].split()[0]) if "data-v" in cell.attrs else None for cell in row.all("td")]


def test_every_combination_is_a_row(root: pagereader.Node) -> None:
    found = tables(root, "grid")
    assert list(found) == [
        "gms_net over Trapeze, 1998",
        "am-ucx within one host, blocking",
        "pm-ucx within one host, blocking",
    ]
    ours = rows(found["am-ucx within one host, blocking"])
    assert len(ours) == 2 * 3 * 3
    latency_0, latency_4k, latency_8k, rate_4k, rate_8k = numbers(ours["2-way", "waited for", "unsolicited and copied"])
    # six rounds: the middle of the third and the fourth
    middle = (1.5**2 + 1.5**3) / 2
    assert latency_0 == pytest.approx(22 * US * middle, rel=0.002)
    assert latency_4k == latency_0
    assert latency_8k is None, "not planned"
    assert rate_4k == pytest.approx(4096 * (1 / 1.5**2 + 1 / 1.5**3) / 2, rel=0.002)
    assert rate_8k == pytest.approx(2 * (rate_4k or 0), rel=0.002)
    passed_on = numbers(ours["3-way", "deferred", "solicited"])
    assert passed_on[0] == pytest.approx(30 * US * middle, rel=0.002)


def test_what_cannot_be_is_named(root: pagereader.Node) -> None:
    found = tables(root, "grid")["pm-ucx within one host, blocking"]
    row = rows(found)["2-way", "continued", "unsolicited and copied"]
    assert "no room for a copy" in said(row)
    assert "not planned" in said(row), "8 KiB, one at a time"
    assert "am-ofi within one host, blocking" in root.one("section", id="grid").text, "a layer without any number"
    assert "nothing works" in root.one("section", id="grid").text


def test_what_is_known_of_theirs_stands_above(root: pagereader.Node) -> None:
    known = rows(tables(root, "grid")["gms_net over Trapeze, 1998"])
    assert "empty reply + 54 \u00b5sseed" in said(known["2-way, waited for, solicited",])
    assert numbers(known["Trapeze itself",]) == [None, None, None, 88, 105]
    assert said(known["Trapeze itself",]).count("not found") == 3


def test_the_share_is_of_the_same_round(root: pagereader.Node) -> None:
    [table] = tables(root, "shares").values()
    found = rows(table)
    shares = numbers(found["am-ucx", "within one host, blocking"])
    assert shares == pytest.approx([0.80, 0.95], rel=0.002)
    assert "solicited" in said(found["am-ucx", "within one host, blocking"]), "which way its payload came"
    assert numbers(found["gms_net over Trapeze, 1998", "published"]) == [0.87, 0.92]
    assert "nothing works" in said(found["am-ofi", "within one host, blocking"])


def test_claims_have_a_verdict(root: pagereader.Node) -> None:
    [table] = tables(root, "hypotheses").values()
    verdicts = {row.one("th").own: said(row.all("td")[-1]) for row in table.one("tbody").all("tr")}
    counts = {row.one("th").own: numbers(row)[1:4] for row in table.one("tbody").all("tr")}
    assert verdicts["Calls keep most of the bandwidth that the layer has, at 4 KiB"] == "does not hold"
    assert counts["Calls keep most of the bandwidth that the layer has, at 4 KiB"] == [0, 2, 0]
    assert verdicts["The same, at 8 KiB"] == "holds"
    assert verdicts["A continuation is faster than a blocked caller"] == "holds"
    assert verdicts["A deferred continuation is slower than a blocked caller"] == "does not hold"
    # one of the layers copies; the other fails at it, and speaks for nothing
    assert counts["A deferred continuation is slower than a blocked caller"] == [0, 2, 0]
    assert verdicts["A copy by the receiver takes at most 7 % of throughput"] == "does not hold"
    assert verdicts["Passing a call on costs latency"] == "holds"
    assert verdicts["Passing a call on costs little bandwidth"] == "does not hold"


def test_one_launch_tells_nothing(tmp_path: Path) -> None:
    out = tmp_path / "trapeze.html"
    build([make(tmp_path / "c", layers=("am-ucx",), launches=1, patterns=(("rpc", 1), ("stream", 16)))], TRAPEZE, out)
    [table] = tables(pagereader.read(out.read_text()), "hypotheses").values()
    verdicts = {said(row.all("td")[-1]) for row in table.one("tbody").all("tr")}
    assert verdicts == {"cannot be told", say("study", "hypotheses.not_tested_no_campaign")}


def test_a_campaign_without_calls_has_neither_table_nor_shares(tmp_path: Path) -> None:
    out = tmp_path / "trapeze.html"
    build([make(tmp_path / "c", layers=("am-ucx",), patterns=(("stream", 16),))], TRAPEZE, out)
    text = out.read_text()
    assert 'id="grid"' not in text
    assert 'id="shares"' not in text


def entries() -> list[dict[str, Any]]:
    sweep = yaml.safe_load((ROOT / "harness/sweeps/trapeze.yml").read_text())
    patterns: list[dict[str, Any]] = sweep["patterns"]
    return patterns


def measures(entry: dict[str, Any], given: dict[str, int | str]) -> bool:
    """Tell whether an entry of a sweep has a workload with these values; what it does not name is at its default."""
    file = synthetic.WORKLOADS.file(entry["pattern"])
    for name, value in given.items():
        raw = entry.get(name, file.parameters[name].default)
        values = [
            parse_bytes(one) if str(one).endswith("B") else one for one in (raw if isinstance(raw, list) else [raw])
        ]
        if value not in values:
            return False
    return True


def test_the_sweep_has_the_whole_table() -> None:
    spec = published.read(TRAPEZE)
    assert spec.grid
    assert spec.shares
    for topology, column, *words in product(spec.grid.topologies, spec.grid.columns, *spec.grid.by.values()):
        given = {**topology.given, **column.given, **dict(zip(spec.grid.by, words, strict=True))}
        assert any(one["pattern"] == topology.pattern and measures(one, given) for one in entries()), given
    for size in spec.shares.figures:
        given = {"bytes": size, **spec.shares.of_given}
        assert any(one["pattern"] == spec.shares.of and measures(one, given) for one in entries())


def test_the_sweep_has_what_the_study_sets_side_by_side() -> None:
    for spec in published.read(TRAPEZE).contrasts:
        for value in (spec.parameter.on, spec.parameter.off):
            given = {**spec.given, spec.parameter.name: value}
            assert any(one["pattern"] == spec.pattern and measures(one, given) for one in entries()), spec.title


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("    above: 0.87\n", "    above: 0.87\n    most: 2\n", "give either most or above"),
        ("    size: 4096\n", "    size: 4095\n", "no share of 4\u202f095 bytes is published"),
        ("    contrast: Placed or not\n", "    contrast: Placed\n", "no contrast is called Placed"),
        ("    contrast: Placed or not\n", "    contrast: Placed or not\n    size: 4096\n", "either a contrast or"),
        ('said: {"MB/s, 8 KiB": more than}', 'said: {"MB/s, 9 KiB": more than}', "no column is called MB/s, 9 KiB"),
        ("8192: kept_8k}", "8192: kept_9k}", "no figure is called kept_9k"),
    ],
)
def test_wrong_files_are_refused(tmp_path: Path, old: str, new: str, says: str) -> None:
    text = (TRAPEZE / published.FILE).read_text()
    assert old in text
    (tmp_path / published.FILE).write_text(text.replace(old, new, 1))
    with pytest.raises(BadInputError, match=says):
        published.read(tmp_path)


@pytest.mark.parametrize("width", [375, 1280])
def test_the_page_never_scrolls_sideways(browser: Browser, path: Path, width: int) -> None:
    browser.open(path, width=width)
    assert browser.value("document.documentElement.scrollWidth") == width
    assert browser.value(TOO_WIDE) == []
    assert browser.complaints() == []
