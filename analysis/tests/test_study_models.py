# SPDX-License-Identifier: BSD-3-Clause
"""LogGP of a paper above ours: the share of a message that is processor, and what is refused or was never seen."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pagereader
import pytest
import synthetic
from test_loggp_report import O_R, O_S, SIZES, by_hand, one_way_ns

from cadge_analysis.blocks.make import tables_of
from cadge_analysis.blocks.model import PUBLISHED
from cadge_analysis.errors import BadInputError
from cadge_analysis.stats import load
from cadge_analysis.stats.compare import compare
from cadge_analysis.study import published
from cadge_analysis.study.models import models
from cadge_analysis.study.views import build
from cadge_results import Campaign

LOGP = Path(__file__).parents[1] / "studies" / "logp"


def make(root: Path, **changes: Any) -> Campaign:  # noqa: ANN401
    options: dict[str, Any] = {
        "layers": ("sockets-tcp", "native-ucx"),
        "sizes": SIZES,
        "places": ("within",),
        "waits": ("poll",),
        "patterns": (("loggp", 1),),
        "given": ({}, {"delay_percent": 100}),
        "floors": False,
        "troubles": False,
        "launches": 5,
        "attempt_hook": by_hand,
    }
    return synthetic.make(root, synthetic.Options(**{**options, **changes}))


@pytest.fixture(scope="module")
def section(tmp_path_factory: pytest.TempPathFactory) -> pagereader.Node:
    folder = tmp_path_factory.mktemp("logp")
    assert build([make(folder)], LOGP, folder / "logp.html").has_ours
    return pagereader.read((folder / "logp.html").read_text()).one("section", id="models")


def rows(section: pagereader.Node) -> dict[str, pagereader.Node]:
    return {row.one("th").text: row for row in section.one("tbody").all("tr")}


def test_ours_stand_below_what_was_published(section: pagereader.Node) -> None:
    found = rows(section)
    assert [label.split("published")[0].split("within")[0] for label in found] == [
        "Active Messages on the Berkeley NOW, 1997",
        "MPI, Netgauge's sample",
        "native-ucx",
        "sockets-tcp",
    ]
    ours = next(row for label, row in found.items() if label.startswith("native-ucx"))
    values = [float(cell.attrs["data-v"].split()[0]) for cell in ours.all("td")]
    assert values[:2] == pytest.approx([O_S, O_R], rel=0.03)
    assert values[4] == pytest.approx(one_way_ns(16), rel=0.03)
    assert values[5] == pytest.approx((O_S + O_R) / one_way_ns(16), rel=0.03)


def test_what_is_refused_or_was_not_seen_says_so(section: pagereader.Node) -> None:
    found = rows(section)
    assert any(label.startswith("sockets-tcp") for label in found)
    now = next(row for label, row in found.items() if "NOW" in label)
    assert now.text.count("not seen") == 5
    sample = next(row for label, row in found.items() if "Netgauge" in label)
    assert "133" in sample.text, "its processors are at work for longer than half a round trip"
    assert "\u22120.2002" in sample.text
    assert "0 of 1 fit." in section.text


def test_a_campaign_without_bursts_leaves_ours_blank(tmp_path: Path) -> None:
    campaign = make(tmp_path, patterns=(("pingpong", 1),), sizes=(16, 64), given=({},))
    built = build([campaign], LOGP, tmp_path / "logp.html")
    section = pagereader.read((tmp_path / "logp.html").read_text()).one("section", id="models")
    assert "Ours is blank" in section.text
    assert not built.has_ours


def test_an_unknown_figure_is_refused(tmp_path: Path) -> None:
    text = (LOGP / published.FILE).read_text()
    (tmp_path / published.FILE).write_text(text.replace("send: now_o}", "send: then_o}"))
    with pytest.raises(BadInputError, match="no figure is called then_o"):
        published.read(tmp_path)


def test_a_layer_with_settings_is_another_row(tmp_path: Path) -> None:
    data = load.read(make(tmp_path, layers=("native-ucx",), settings=({}, {"lend": "yes"}), launches=2))
    (table,) = tables_of(models(compare(data), published.read(LOGP)))
    names = [line.cells[0].spans[0].text for line in table.lines if line.role != PUBLISHED]
    assert names == ["native-ucx", "native-ucx (lend=yes)"]
