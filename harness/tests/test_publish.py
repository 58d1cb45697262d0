# SPDX-License-Identifier: BSD-3-Clause
"""`cadge publish` from the command line, with --preview and --retract."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path

import pytest

from .conftest import Answer

Cadge = Callable[..., Answer]


@pytest.mark.parametrize(
    ("argv", "code", "said"),
    [
        (["publish"], 2, "--to DIR"),
        (["publish", "--to", "site", "--url", "www.example.org"], 2, "https://www.example.org/cadge"),
        (["publish", "--dry-run", "--keep", "host"], 2, "hosts"),
        (["publish", "--dry-run", "--also", "x"], 2, "two characters"),
        (["publish", "--to", "site", "--cite", "nowhere.yml"], 2, "cannot read authors from nowhere.yml"),
        (["publish", "--retract", "2026", "--to", ".", "--because", " "], 2, "needs a reason"),
        (["publish", "--retract", "2026", "--to", "."], 2, "needs a reason"),
        (["publish", "--retract", "2026", "--because", "x"], 2, "--to SITE"),
        (["publish", "--retract", "2026", "--to", ".", "--because", "x"], 2, "is no site of cadge"),
        (["publish", "last", "--retract", "2026", "--to", "."], 2, "is not for --retract"),
        (["publish", "--preview", "."], 2, "is no site of cadge"),
        (["publish", "--preview", ".", "--yes"], 2, "--yes is not for --preview"),
        (["publish", "--to", ".", "--port", "8000"], 2, "--port is for --preview"),
        (["publish", "--to", ".", "--because", "x"], 2, "--because is for --retract"),
    ],
)
def test_what_cannot_be_done_says_so(
    argv: list[str], code: int, said: str, cadge: Cadge, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    answer = cadge(*argv)
    assert answer.code == code
    assert said in answer.err


def test_preview_serves_this_machine_alone_until_it_is_interrupted(tmp_path: Path) -> None:
    (tmp_path / "cadge-site.json").write_text('{"schema": "cadge.site/1", "title": "t"}')
    (tmp_path / "index.html").write_text("<p>here</p>")
    (tmp_path / "mine").symlink_to("/etc")
    argv = [sys.executable, "-c", "from cadge_cli.cli import main; main()", "publish", "--preview", str(tmp_path)]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        line = child.stdout.readline()
        found = re.match(r"(http://127\.0\.0\.1:\d+/) ", line)
        assert found, line
        with urllib.request.urlopen(found[1], timeout=20) as answer:  # noqa: S310 - our own address
            assert answer.read() == b"<p>here</p>"
        for name in ("mine/passwd", "mine/", "../passwd"):
            with pytest.raises(urllib.error.HTTPError, match="404"):
                urllib.request.urlopen(f"{found[1]}{name}", timeout=20)  # noqa: S310 - our own address
        try:
            child.send_signal(signal.SIGINT)
            assert child.wait(timeout=20) == 0
        finally:
            child.kill()
