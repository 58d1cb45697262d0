# SPDX-License-Identifier: BSD-3-Clause
"""The same records give the same bytes whatever fonts a machine has."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import loudfont
import pytest
import synthetic

from cadge_analysis.draw import textwidth

MEASURED = """
import json, sys, vl_convert
spec = {"data": {"values": [{"x": "WWW"}]}, "mark": "bar", "encoding": {"x": {"field": "x"}}}
spec["config"] = {"font": "system-ui, sans-serif"}
sys.stdout.write(vl_convert.vegalite_to_svg(json.dumps(spec), vl_version="5.20"))
"""
REPORT = """
import sys
from pathlib import Path
from cadge_analysis import report
report.build(Path(sys.argv[1]), Path(sys.argv[2]))
"""


def run(code: str, home: Path, *arguments: Path) -> str:
    """Run a program under a home folder of its own, from which a renderer takes fonts as well."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("FONTCONFIG", "XDG"))}
    command = [sys.executable, "-c", code, *map(str, arguments)]
    return subprocess.run(
        command, env={**environment, "HOME": str(home)}, check=True, capture_output=True, text=True
    ).stdout


@pytest.mark.long
def test_a_report_keeps_its_bytes_where_other_fonts_are_installed(tmp_path: Path) -> None:
    bare, loud = tmp_path / "bare", tmp_path / "loud"
    bare.mkdir()
    loudfont.write(loud / ".fonts")
    assert run(MEASURED, bare) != run(MEASURED, loud), "the fonts are found, and change what is laid out by them"
    options = synthetic.Options(
        layers=(*synthetic.LAYERS[:7], "\u5c42-\u06a9\u0627\u0631", "x\u0308-\U0001f680 <b>"),
        sizes=(8, 4096, 65536),
        places=("within",),
        waits=("poll",),
        patterns=(("rpc", 1), ("stream", 16)),
        launches=5,
        samples=200,
        troubles=False,
    )
    campaign = synthetic.make(tmp_path / "store", options).path
    for home in (bare, loud):
        run(REPORT, home, campaign, home / "report.html")
    text = (bare / "report.html").read_text()
    assert text.count('<svg class="chart"') > 10
    assert text == (loud / "report.html").read_text()


@pytest.mark.parametrize(
    ("text", "em"), [("", 0.0), ("ill", 0.84), ("\u5c42", 1.0), ("e\u0301", 0.62), ("\u0416", 0.78)]
)
def test_widths_come_from_a_table(text: str, em: float) -> None:
    assert textwidth.width_px(text, 10) == pytest.approx(10 * em)


def test_a_long_name_keeps_both_ends_and_fits() -> None:
    name = "native-ucx with env.UCX_TLS=" + "x" * 300 + ",shm"
    short = textwidth.shortened(name, 11, 240)
    assert short.startswith("native-ucx with")
    assert short.endswith(",shm")
    assert textwidth.width_px(short, 11) <= 240 < textwidth.width_px(name, 11)
    assert textwidth.shortened("sockets-tcp", 11, 240) == "sockets-tcp"
