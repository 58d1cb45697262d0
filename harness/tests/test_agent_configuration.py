# SPDX-License-Identifier: BSD-3-Clause
"""Settings files of the system: what is in them is hashed, and whether a package brought it so is known."""

from __future__ import annotations

import hashlib
import shutil
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "agent"))

from cadge_agent.host import configuration  # type: ignore[import-not-found, unused-ignore]


@pytest.fixture
def places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(configuration, "PLACES", (str(tmp_path / "ucx"),))
    monkeypatch.setattr(configuration, "FILES", (str(tmp_path / "ld.so.preload"),))
    (tmp_path / "ucx").mkdir()
    return tmp_path


def test_a_file_that_no_package_brought(places: Path) -> None:
    content = b"# by zoe\n\n; no\nUCX_RNDV_THRESH=0\nUCX_TLS = tcp\n"
    (places / "ucx/ucx.conf").write_bytes(content)
    (places / "ld.so.preload").write_text("/opt/spin.so\n")
    found = configuration.configuration("")
    packaged = False if shutil.which("dpkg-query") else None
    assert found == {
        str(places / "ld.so.preload"): {
            "bytes": 13,
            "sha256": hashlib.sha256(b"/opt/spin.so\n").hexdigest(),
            "lines": 1,
            "packaged": packaged,
        },
        str(places / "ucx/ucx.conf"): {
            "bytes": len(content),
            "sha256": hashlib.sha256(content).hexdigest(),
            "lines": 2,
            "packaged": packaged,
        },
    }


@pytest.mark.skipif(shutil.which("dpkg-query") is None, reason="there is no dpkg here")
def test_a_conffile_and_any_other_file_of_a_package(monkeypatch: pytest.MonkeyPatch) -> None:
    own = [Path("/etc/ld.so.conf.d/libc.conf"), Path("/usr/share/doc/libc6/copyright")]  # a conffile, and none
    if not all(path.is_file() for path in own):
        pytest.skip("libc6 is not installed as Debian does")
    monkeypatch.setattr(configuration, "PLACES", ())
    monkeypatch.setattr(configuration, "FILES", tuple(map(str, own)))
    assert [facts["packaged"] for facts in configuration.configuration("").values()] == [True, True]
    read = Path.read_bytes
    monkeypatch.setattr(Path, "read_bytes", lambda path: read(path) + (b"x" if path in own else b""))
    assert [facts["packaged"] for facts in configuration.configuration("").values()] == [False, False]


def test_where_no_dpkg_is_nobody_knows(places: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (places / "ucx/ucx.conf").write_text("UCX_TLS=tcp\n")
    monkeypatch.setattr(shutil, "which", lambda _name: None)
    (facts,) = configuration.configuration("").values()
    assert facts["packaged"] is None
