# SPDX-License-Identifier: BSD-3-Clause
"""The renderer is a process beside ours: where it ends, a report has no pictures, says so, and has every number."""

from __future__ import annotations

import io
import os
import resource
import signal
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest
import synthetic
from pageparts import section

from cadge_analysis import report
from cadge_analysis.draw import kept, renderer, svg
from cadge_analysis.errors import NoRendererError, PictureError
from cadge_analysis.messages import say
from cadge_analysis.stats.load import read

SPEC = {
    "$schema": "https://vega.github.io/schema/vega-lite/v5.json",
    "width": 100, "height": 50, "padding": {"left": 1, "right": 1, "top": 1, "bottom": 1},
    "data": {"values": [{"a": 1}]}, "mark": "point", "encoding": {"x": {"field": "a", "type": "quantitative"}},
}  # fmt: skip
OPTIONS = synthetic.Options(
    layers=("sockets-tcp", "native-ucx"), sizes=(8,), places=("within",), waits=("poll",), patterns=(("rpc", 1),),
    samples=200,
)  # fmt: skip
LIMITED_BYTES = 8 << 30


@pytest.fixture
def own(monkeypatch: pytest.MonkeyPatch) -> renderer.Renderer:
    """A renderer of this test alone, without drawings that were kept."""
    made = renderer.Renderer()
    monkeypatch.setattr(renderer, "RENDERER", made)
    monkeypatch.setattr("cadge_analysis.page.parts.findings.RENDERER", made)
    monkeypatch.setenv("XDG_CACHE_HOME", "/dev/null")
    return made


def small() -> str:
    return svg.render(SPEC, name="n", title="t", description="d")


def test_a_limit_on_addresses_ends_the_child_alone(tmp_path: Path) -> None:
    synthetic.make(tmp_path, OPTIONS)
    (campaign,) = tmp_path.iterdir()
    page = tmp_path / "report.html"
    argv = [sys.executable, "-c", "from cadge_cli.cli import main; main()", "report", str(campaign), "-o", str(page)]
    done = subprocess.run(
        argv,
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "XDG_CACHE_HOME": str(tmp_path / "cache")},
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (LIMITED_BYTES, LIMITED_BYTES)),
    )
    assert done.returncode == 0, done.stderr
    assert "found: This report has no pictures: the renderer ended by signal " in done.stdout
    text = page.read_text()
    assert say("findings", "findings.no_pictures") in text
    assert svg.NO_PICTURE in text
    assert '<td data-v="' in text


def test_a_child_that_is_killed(own: renderer.Renderer, tmp_path: Path) -> None:
    data = read(synthetic.make(tmp_path, OPTIONS))
    drawn = report.page_of(data)
    assert own.trouble == ""
    child = own._child
    assert child is not None
    child.send_signal(signal.SIGKILL)
    child.wait()
    assert svg.NO_PICTURE in small()
    assert own.trouble == "the renderer ended by signal SIGKILL"
    page = report.page_of(data)
    assert [one.kind for one in page.findings if one.kind == "pictures"] == ["pictures"]
    assert section(page, "without") == section(drawn, "without")
    with pytest.raises(NoRendererError):
        own.draw("pdf", "<svg/>")


def test_what_it_refuses_is_no_end(own: renderer.Renderer) -> None:
    with kept.drawn_afresh(), pytest.raises(PictureError) as refused:
        own.draw("vegalite", '{"mark": 3}')
    assert not isinstance(refused.value, NoRendererError)
    assert svg.NO_PICTURE not in small()
    child = own._child
    assert child is not None
    own.close()
    assert child.returncode == 0, "it ends with its input"


def test_one_that_cannot_start(own: renderer.Renderer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "/nowhere/python")
    assert svg.NO_PICTURE in small()
    assert own.trouble == say("draw", "renderer.not_started", error="No such file or directory")


@pytest.mark.parametrize(
    ("code", "printed", "said"),
    [
        (1, "", "with exit status 1"),
        (-9, "all is well", "by signal SIGKILL"),
        (-6, "# Fatal error in V8", "by signal SIGABRT: Fatal error in V8"),
        (-6, "start\n  out of MEMORY #\nfatal", "by signal SIGABRT: out of MEMORY"),
    ],
)
def test_what_a_child_said_last(code: int, printed: str, said: str) -> None:
    """The first line that speaks of memory, or of a fatal error."""
    ended = renderer.Renderer()
    ended._child = cast("subprocess.Popen[bytes]", SimpleNamespace(stdin=io.BytesIO(), wait=lambda: code))
    ended._stderr = io.BytesIO(printed.encode())
    assert ended._why(EOFError()) == f"the renderer ended {said}"
