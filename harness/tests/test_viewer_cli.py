# SPDX-License-Identifier: BSD-3-Clause
"""`cadge viewer`: one page, where it was asked for, the same each time."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from cadge_harness import __version__

from .conftest import Answer

Cadge = Callable[..., Answer]


def test_the_page_is_written(cadge: Cadge, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert cadge("viewer").out == "viewer.html  0.1 MB\n"
    page = (tmp_path / "viewer.html").read_text(encoding="utf-8")
    assert f"Made by cadge {__version__}." in page
    told = json.loads(cadge("viewer", "--json", "-o", str(tmp_path / "other.html")).out)
    assert told["data"] == {"file": str(tmp_path / "other.html")}
    assert (tmp_path / "other.html").read_text(encoding="utf-8") == page
    assert cadge("viewer", "-o", str(tmp_path / "none" / "viewer.html")).code == 3
