# SPDX-License-Identifier: BSD-3-Clause
"""NAME.params.h: what C code knows of a pattern's file, and the digest by which a plan and a driver agree on it."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from cadge_results import read_workloads
from cadge_results.parameter_tables import digest_of, header, main

ROOT = Path(__file__).resolve().parents[2]
PATTERNS = read_workloads(ROOT / "harness").patterns
FILE = ROOT / "harness/patterns/rpc/rpc.pattern.yml"


def changed(tmp_path: Path, old: str, new: str) -> Path:
    """Write a pattern's file with a change."""
    text = FILE.read_text(encoding="utf-8")
    assert old in text
    path = tmp_path / FILE.name
    path.write_text(text.replace(old, new, 1), encoding="utf-8")
    return path


def digest_in(folder: Path) -> str:
    return (folder / "rpc.params.h").read_text(encoding="utf-8").partition('.digest = "')[2][:64]


@pytest.mark.parametrize(
    ("old", "new", "same"),
    [
        ("title: RPC", "title: Calls", True),
        ("max: 4096", "max: 2048", True),
        ("[usual, solicited,", "[solicited, usual,", False),
        ("  depth:", "  deep:", False),
        ("caps: [RPC]", "caps: [RPC, LEND]", False),
        ("kind: histogram", "kind: count", False),
        ("  client: {", "  caller: {", False),
    ],
)
def test_the_digest_is_of_what_both_sides_must_agree_on(tmp_path: Path, old: str, new: str, same: bool) -> None:
    path = changed(tmp_path, old, new)
    text = path.read_text(encoding="utf-8")
    if old == "  depth:":
        path.write_text(text.replace("depth", "deep"), encoding="utf-8")
    if old == "  client: {":
        path.write_text(text.replace("peers: [client]", "peers: [caller]"), encoding="utf-8")
    if new == "kind: count":
        path.write_text(
            text.replace("better: low, kind", "kind").replace(
                "unit: ns, kind: count", "unit: count, better: low, kind: count"
            ),
            encoding="utf-8",
        )
    assert main([str(tmp_path), str(path)]) == 0
    assert (digest_in(tmp_path) == digest_of(PATTERNS["rpc"])) is same


def test_what_did_not_change_is_not_written_again(tmp_path: Path) -> None:
    assert main([str(tmp_path), str(FILE)]) == 0
    made = tmp_path / "rpc.params.h"
    before = made.stat().st_mtime_ns
    assert main([str(tmp_path), str(FILE)]) == 0
    assert made.stat().st_mtime_ns == before
    assert main([str(tmp_path), str(changed(tmp_path, "title: payload", "title: bytes"))]) == 0
    assert made.stat().st_mtime_ns == before
    assert main([str(tmp_path), str(changed(tmp_path, "max: 4096", "max: 7"))]) == 0
    assert ".least = 1, .most = 7" in made.read_text(encoding="utf-8")


def test_a_wrong_file_is_refused_with_its_place(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(tmp_path), str(changed(tmp_path, "type: choice", "type: chance"))]) == 1
    assert str(tmp_path / FILE.name) in capsys.readouterr().err
    assert not (tmp_path / "rpc.params.h").exists()


@pytest.mark.parametrize("name", sorted(PATTERNS))
def test_each_table_compiles(tmp_path: Path, name: str) -> None:
    """As the file of a pattern that does nothing else."""
    (tmp_path / "table.h").write_text(header(name, PATTERNS[name]), encoding="utf-8")
    source = (
        '#include "table.h"\nextern const struct drv_pattern made;\nconst struct drv_pattern made = {PATTERN_TABLE};\n'
    )
    (tmp_path / "table.c").write_text(source, encoding="utf-8")
    includes = [f"-I{ROOT / one}" for one in ("harness/driver", "layers/include")]
    command = ["cc", "-std=c11", "-D_GNU_SOURCE", "-Wall", "-Wextra", "-Wno-missing-field-initializers", "-Werror"]
    done = subprocess.run(
        [*command, "-fsyntax-only", *includes, "table.c"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def test_without_python_the_build_says_what_to_do(tmp_path: Path) -> None:
    done = subprocess.run(
        ["make", "-f", "harness/build.mk", "driver", f"BUILD={tmp_path}", "TABLES_PYTHON=/nowhere/python"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 2
    assert "run make setup" in done.stderr
