# SPDX-License-Identifier: BSD-3-Clause
"""Names of plug-ins: found where they do not belong, and nowhere else."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

pytestmark = pytest.mark.spare

ROOT = Path(__file__).parents[2]


def _module() -> ModuleType:
    spec = importlib.util.spec_from_file_location("check_names", ROOT / "ci" / "check_names.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["check_names"] = module
    spec.loader.exec_module(module)
    return module


check_names = _module()


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    for name in (
        "harness/patterns/ring/ring.pattern.yml",
        "harness/floors/swap.pattern.yml",
        "harness/floors/pipe.floor.yml",
        "layers/new/wire.layer.yml",
    ):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("")
    return tmp_path


def found(tree: Path, path: str, text: str) -> list[tuple[int, str, str]]:
    every = check_names.names(tree)
    return [(one.line, one.what, one.name.kind) for one in check_names.check_file(Path(path), text, every)]


def test_the_list_is_read_from_the_files(tree: Path) -> None:
    assert {(name.word, name.kind) for name in check_names.names(tree)} == {
        ("ring", "pattern"),
        ("swap", "form"),
        ("floor-pipe", "floor"),
        ("new-wire", "layer"),
    }
    here = {name.word for name in check_names.names(ROOT)}
    assert {"rpc", "pingpong", "stream", "onesided", "exchange", "flow", "floor-tcp", "sockets-tcp"} <= here


@pytest.mark.parametrize(
    ("path", "text", "expected"),
    [
        ("harness/driver/x.c", 'int a;\nif (!strcmp(p, "ring"))\n', [(2, '"ring"', "pattern")]),
        ("harness/driver/x.c", "case DRV_RING: break;\n", [(1, "DRV_RING", "pattern")]),
        ("harness/driver/x.c", "extern const struct t ring_pattern;", [(1, "ring_pattern", "pattern")]),
        ("harness/driver/x.c", "extern const struct t pattern_ring;", [(1, "pattern_ring", "pattern")]),
        ("harness/driver/x.c", "extern struct floor floor_pipe;", [(1, "floor_pipe", "floor")]),
        ("harness/driver/x.c", 'open("floor-pipe"); /* "ring" */ // DRV_RING', [(1, '"floor-pipe"', "floor")]),
        ("harness/driver/x.c", 'say("a ring of them"); string_ring = DRV_RINGS;', []),
        ("harness/driver/x.c", 'put("ring"); /* cadge: another ring */', []),
        ("harness/patterns/ring/ring.c", 'const char *name = "ring"; struct t ring_pattern;', []),
        ("harness/patterns/other/other.c", 'const char *name = "ring";', [(1, '"ring"', "pattern")]),
        ("layers/new/wire.c", 'const char *name = "new-wire";', []),
        ("layers/old/wire.c", 'const char *name = "new-wire";', [(1, '"new-wire"', "layer")]),
        ("a.py", 'if x == "ring":\n    y = ["swap"]\n', [(1, '"ring"', "pattern"), (2, '"swap"', "form")]),
        ("a.py", 'y = "new-wire"', [(1, '"new-wire"', "layer")]),
        ("a.py", '"""A ring."""\nring = "rings"\n# "ring"\nz = f"{ring} ring"\n', []),
        ("a.py", 'x = "ring"  # cadge: another ring\n', []),
        ("a.py", "ring_pattern = 1\n", [(1, "ring_pattern", "pattern")]),
    ],
)  # fmt: skip
def test_what_is_found(path: str, text: str, expected: list[tuple[int, str, str]], tree: Path) -> None:
    assert sorted(found(tree, path, text)) == sorted(expected)


@pytest.mark.long  # ci/check asks it each time
def test_no_python_of_this_checkout_knows_a_plug_in() -> None:
    assert [item for item in check_names.check(ROOT) if item.path.suffix == ".py"] == []
