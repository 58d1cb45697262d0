# SPDX-License-Identifier: BSD-3-Clause
"""What features cost: prices by round from one or several campaigns, and a reason wherever there is none."""

from __future__ import annotations

import re
from fnmatch import fnmatchcase
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
from cadge_analysis.study import prose, published
from cadge_analysis.study.views import build
from cadge_results import Campaign

CHECKOUT = Path(__file__).parents[2]
SC98 = CHECKOUT / "analysis" / "studies" / "sc98"
US = 1000
RELIABLE = {"provider": "udp;ofi_rxd"}
FACTOR = {"protection": 0.8, "flow_control": 0.5}


def by_hand(point: dict[str, Any], attempt: dict[str, Any], number: int) -> None:
    """Every round is slower than the one before by half: only pairs of one round show a factor."""
    known = synthetic.flat(point)
    value = US // 2
    if known["kind"] == "layer":
        factor = FACTOR.get(known["settings"].get("off"), 1.0) * (2 if known["settings"].get("provider") else 1)
        deep = 1.25 if known.get("depth", 1) > 1 else 1.0
        apart = 1 + (number * 4 % 9 - 4) / 1000 * (factor != 1)  # and no two neighbours have it alike
        value = round(20 * US * (known["size"] / 8) ** 0.5 * 1.5**number * factor * deep * apart)
    synthetic.set_samples(attempt, [(value, 200)])
    attempt["operations"] = 200
    attempt["elapsed_ns"] = value * 200


def campaign(root: Path, layers: tuple[str, ...], *settings: dict[str, str], **changes: Any) -> Campaign:  # noqa: ANN401
    options: dict[str, Any] = {
        "layers": layers,
        "sizes": (8, 4096),
        "places": ("within",),
        "waits": ("poll",),
        "patterns": (("pingpong", 1),),
        "settings": ({}, *settings),
        "attempt_hook": by_hand,
        "samples": 200,
        "launches": 9,
        "troubles": False,
    }
    return synthetic.make(root, synthetic.Options(**(options | changes)))


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Campaign:
    return campaign(tmp_path_factory.mktemp("styles"), ("am-ucx", "native-ucx", "pm-ofi"), seed=8)


@pytest.fixture(scope="module")
def switched(tmp_path_factory: pytest.TempPathFactory) -> Campaign:
    offs = ({"off": name} for name in FACTOR)
    return campaign(tmp_path_factory.mktemp("features"), ("am-ucx", "native-dgram", "native-ofi"), *offs, RELIABLE)


@pytest.fixture(scope="module")
def path(plain: Campaign, switched: Campaign, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("page") / "sc98.html"
    build([plain, switched], SC98, out)
    return out


def table(path: Path, name: str) -> dict[str, pagereader.Node]:
    root = pagereader.read(path.read_text())
    found = next(
        node for node in root.all("div", role="group") if node.attrs.get("aria-label") == name and "table" in str(node)
    )
    return {row.one("th").own: row for row in found.one("tbody").all("tr")}


def price(row: pagereader.Node) -> list[float]:
    return [float(part) for part in row.one("td").attrs["data-v"].split()]


def test_one_feature_off_by_its_on(path: Path) -> None:
    for name, factor in (("Protection", 0.8), ("Flow control", 0.5)):
        row = table(path, name)["am-ucx"]
        assert price(row) == pytest.approx([factor, factor], rel=0.003)
        assert "2 of 2 sizes differ from 1" in row.text


def test_a_pair_of_layers(path: Path) -> None:
    found = table(path, "Reliability")
    row = next(row for name, row in found.items() if name.startswith("native-ofi (provider="))
    assert price(row) == pytest.approx([0.5, 0.5], rel=0.003)
    assert "without it: native-dgram" in row.text


def test_a_parameter(tmp_path: Path) -> None:
    text = (SC98 / published.FILE).read_text()
    old = 'parameter: {name: pairs, "on": 2, "off": 1}'
    assert old in text
    (tmp_path / published.FILE).write_text(text.replace(old, 'parameter: {name: depth, "on": 8, "off": 1}'))
    (tmp_path / prose.FILE).write_text((SC98 / prose.FILE).read_text())
    out = tmp_path / "page.html"
    build([campaign(tmp_path / "c", ("am-ucx",), patterns=(("rpc", 1), ("rpc", 8)))], tmp_path, out)
    assert price(table(out, "Multiprogramming")["am-ucx"]) == pytest.approx([0.8, 0.8], rel=0.003)


def test_no_layer_is_left_out(path: Path) -> None:
    names = {"am-ucx", "native-ucx", "native-ofi", "native-dgram", "pm-ofi"}
    for feature in published.read(SC98).features:
        rows = table(path, feature.name)
        shown = {name for label in rows for name in label.split(", ")}
        assert names - {"native-ofi"} <= shown
        for row in rows.values():
            assert re.search(r"\d|[a-z]{4}", row.one("td").text)  # a price, or words
    assert (
        say("study", "features.no_campaign_page_switches") in next(iter(table(path, "Multiprogramming").values())).text
    )
    assert "is what frees the sender" in table(path, "Flow control")["pm-ofi"].text


def test_sections_say_which_campaign_they_are_of(path: Path, plain: Campaign, switched: Campaign) -> None:
    root = pagereader.read(path.read_text())
    text = root.one("section", id="provenance").text
    assert text.count("cadge run") == 2
    before, after = text.index("Of it: Then and now, Matrix, Semantics"), text.index("Of it: Switched off")
    assert before < after
    assert plain.campaign_id in text
    assert switched.campaign_id in text
    assert "am-ucx" in root.one("section", id="ablation").text


def test_every_layer_of_the_tree_has_a_price_or_a_reason() -> None:
    """What the study gives no reason for is switched by the sweep that measures it."""
    sweep = yaml.safe_load((CHECKOUT / "harness" / "sweeps" / "features.yml").read_text())
    off = {
        (one["layer"], one["settings"]["off"])
        for one in sweep["layers"]
        if isinstance(one, dict) and "off" in one["settings"]
    }
    layers = [yaml.safe_load(path.read_text()) for path in CHECKOUT.glob("layers/*/*.layer.yml")]
    names = [f"{one['style']}-{one['substrate']}" for one in layers if one["style"] not in {"null", "shim"}]
    assert len(names) > 20
    for feature in published.read(SC98).features:
        for name in names:
            has_reason = any(fnmatchcase(name, glob) for one in feature.reasons for glob in one.layers)
            has_price = any(fnmatchcase(name, glob) and value == feature.switched for glob, value in off)
            assert has_reason != has_price, (feature.name, name)


def test_a_feature_that_nothing_switches_is_named(tmp_path: Path) -> None:
    text = (SC98 / published.FILE).read_text()
    (tmp_path / published.FILE).write_text(text.replace("switched: protection", "switched: protecton", 1))
    with pytest.raises(BadInputError, match="Protection: protecton is no value of the ablation"):
        published.read(tmp_path)


@pytest.mark.parametrize("width", [375, 1280])
def test_the_page_never_scrolls_sideways(browser: Browser, path: Path, width: int) -> None:
    browser.open(path, width=width)
    assert browser.value("document.documentElement.scrollWidth") == width
    assert browser.value(TOO_WIDE) == []
    assert browser.complaints() == []
