# SPDX-License-Identifier: BSD-3-Clause
"""Drawings in the user's cache: the same bytes with it and without, and nothing in it is ever believed."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
import synthetic

from cadge_analysis import report
from cadge_analysis.draw import kept, renderer, svg
from cadge_analysis.stats.load import Dataset, read

SPEC: dict[str, object] = {
    "width": 20,
    "height": 10,
    "padding": {"left": 1, "top": 1, "right": 1, "bottom": 1},
    "autosize": {"type": "none"},
    "data": {"values": [{"x": 1, "y": 2}]},
    "mark": "point",
    "encoding": {"x": {"field": "x", "type": "quantitative"}, "y": {"field": "y", "type": "quantitative"}},
}


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    kept._room.cache_clear()
    return tmp_path / "cache" / "cadge" / "figures"


@pytest.fixture
def drawings(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What the renderer was asked to draw."""
    asked: list[str] = []
    draw = renderer.draw

    def counted(kind: renderer.Kind, text: str) -> bytes:
        asked.append(text)
        return draw(kind, text)

    monkeypatch.setattr(renderer, "draw", counted)
    return asked


def small(name: str = "a") -> str:
    return svg.render(SPEC, name=name, title="t", description="d")


def test_a_report_has_the_same_bytes_with_the_cache_and_without(
    cache: Path, drawings: list[str], tmp_path: Path
) -> None:
    options = synthetic.Options(
        layers=("sockets-tcp", "native-ucx"),
        sizes=(8, 4096),
        places=("within",),
        waits=("poll",),
        patterns=(("rpc", 1),),
        samples=200,
    )
    data: Dataset = read(synthetic.make(tmp_path, options))
    first = report.html(report.page_of(data))
    often = len(drawings)
    assert often >= 3
    assert len(list(cache.iterdir())) == often
    assert report.html(report.page_of(data)) == first
    assert len(drawings) == often, "the second time nothing was drawn"
    with kept.drawn_afresh():
        assert report.html(report.page_of(data)) == first
    assert len(drawings) == 2 * often


def test_other_data_names_and_code_are_other_drawings(
    cache: Path, drawings: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    small()
    small("b")
    svg.render({**SPEC, "width": 21}, name="a", title="t", description="d")
    assert len(drawings) == len(list(cache.iterdir())) == 3
    svg.render(SPEC, name="a", title="another", description="words")
    assert len(drawings) == 3, "title and description are not drawn"
    monkeypatch.setattr(kept, "_made_by", lambda: b"another renderer")
    small()
    assert len(drawings) == 4


def test_the_renderers_version_and_our_code_decide(monkeypatch: pytest.MonkeyPatch) -> None:
    before = kept._made_by.__wrapped__()
    assert before == kept._made_by.__wrapped__()
    monkeypatch.setattr(kept.metadata, "version", lambda _: "99.0")
    assert kept._made_by.__wrapped__() != before


@pytest.mark.parametrize("damage", ["cut", "turned", "empty", "of another", "not text", "too large"])
def test_a_damaged_entry_is_made_again(
    cache: Path, drawings: list[str], damage: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    right = small()
    (path,) = cache.iterdir()
    whole = path.read_bytes()
    if damage == "cut":
        path.write_bytes(whole[:-1])
    elif damage == "turned":
        path.write_bytes(whole[:40] + bytes([whole[40] ^ 1]) + whole[41:])
    elif damage == "empty":
        path.write_bytes(b"")
    elif damage == "of another":
        small("b")
        (other,) = set(cache.iterdir()) - {path}
        path.write_bytes(other.read_bytes())
        drawings.pop()
    elif damage == "not text":
        path.write_bytes(b"\xff" * 100)
    else:
        monkeypatch.setattr(kept, "ENTRY_BYTES_MAX", len(whole) - 1)
    assert small() == right
    assert len(drawings) == 2
    assert path.read_bytes() == whole


def test_another_users_entry_is_not_read(cache: Path, drawings: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    right = small()
    assert list(cache.iterdir())
    monkeypatch.setattr(os, "geteuid", lambda: 12345)
    assert small() == right
    assert len(drawings) == 2


def test_without_a_cache_folder_it_is_drawn(drawings: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.delenv("HOME")
    assert small() == small()
    assert len(drawings) == 2


def test_what_was_used_longest_ago_goes(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert cache
    small("old")
    (old,) = cache.iterdir()
    os.utime(old, (1, 1))
    small("new")
    (new,) = set(cache.iterdir()) - {old}
    monkeypatch.setattr(kept, "CACHE_BYTES_MAX", new.stat().st_size)
    kept._room.cache_clear()
    small("newest")
    assert not old.exists()
    assert new.exists()


def test_a_forged_entry_does_not_reach_the_checker(cache: Path, drawings: list[str]) -> None:
    right = small()
    (path,) = cache.iterdir()
    forged = b"<g>a better line</g>"
    path.write_bytes(kept._digest(bytes.fromhex(path.name), forged) + forged)
    assert "a better line" in small(), "whoever can write into the user's cache can write the report as well"
    with kept.drawn_afresh():
        assert small() == right
    assert len(drawings) == 2
