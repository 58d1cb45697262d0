# SPDX-License-Identifier: BSD-3-Clause
"""Numbers of the tree's shape: what they count, and that a rise is refused by name."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from ci import ratchets

CODE = {
    "analysis/src/cadge_analysis/one.py": '''\
"""A docstring of four words and more is no sentence in code."""
from cadge_analysis import two
class Twice: ...
class CellRow: ...
def said(count):
    return f"there are {count} of them here", "three words only"
''',
    "analysis/src/cadge_analysis/two.py": (
        "def use():\n    from cadge_analysis import one\n    return one\nclass Twice: ...\n"
    ),
    "analysis/src/cadge_analysis/cells/table.py": "class TableRow: ...\n",
    "harness/driver/main.c": '#include "loop.h"\nint main(void)\n{\n\treturn drv_loop();\n}\n',
    "harness/driver/loop.h": "int drv_loop(void);\n",
    "harness/driver/loop.c": (
        '#include "loop.h"\nint drv_loop(void)\n{\n\tengine->layer->poll(ctx, sink);\n\treturn drv_back();\n}\n'
    ),
    "harness/driver/back.c": "int drv_back(void)\n{\n\tdrv_body_fill(at, 1);\n\treturn drv_loop();\n}\n",
    "harness/driver/own.h": "int drv_own(void);\n",
    "harness/driver/own.c": "int drv_own(void)\n{\n\treturn 0;\n}\n",
    "harness/patterns/alone/alone.c": (
        '#include "own.h"\nstatic void on_sent(struct cadge_sink *sink)\n{\n\tdrv_own();\n}\n'
    ),
    "harness/patterns/other/other.c": "static void other(void)\n{\n\tdrv_loop();\n}\n",
    "analysis/src/cadge_analysis/messages/words.py": "TEXT = 'a sentence of the catalogue itself'\n",
}


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A small tree, all of whose files are tracked."""
    for name, text in CODE.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    (tmp_path / "ci").mkdir()
    monkeypatch.setattr(ratchets, "ROOT", tmp_path)
    files = tuple(map(Path, CODE))
    monkeypatch.setattr(ratchets, "tracked", lambda *endings: [one for one in files if one.name.endswith(endings)])
    kept = (ratchets.tree, ratchets.imports, ratchets.c_text, ratchets.c_arrows)
    for one in kept:
        one.cache_clear()
    yield tmp_path
    for one in kept:
        one.cache_clear()


@pytest.mark.usefixtures("root")
def test_what_is_counted() -> None:
    def lines(name: str) -> list[str]:
        return [line.rpartition("/")[2] for line in ratchets.RATCHETS[name]()]

    assert lines("classes named twice") == ["two.py:4: Twice"]
    assert lines("row and table classes outside cells and blocks") == ["one.py:4: CellRow"]
    assert lines("sentences in the analysis outside messages") == ["one.py:6: there are of them here"]
    assert [line.partition(" (")[0] for line in lines("modules in circles")] == [
        "cadge_analysis.one",
        "cadge_analysis.two",
    ]
    assert lines("modules of fewer than 60 lines with one importer") == ["one.py: 6 lines", "two.py: 4 lines"]
    assert lines("files beyond 25 in a folder") == []
    assert lines("places of driver and patterns that poll") == ["loop.c:4: engine->layer->poll(ctx, sink);"]
    assert [
        line.partition(":")[0] for line in lines("functions of driver and patterns that are told of a sent message")
    ] == ["alone.c"]
    assert lines("places that write a message's body outside its writer") == ["back.c:3: drv_body_fill(at, 1);"]
    assert [line.partition(" (")[0] for line in lines("files of the harness in circles of includes and calls")] == [
        "back",
        "loop",
    ]
    assert {line.partition(":")[0] for line in lines("lines of the driver that one pattern alone uses")} == {
        "own.h",
        "own.c",
    }


def test_a_rise_is_refused_by_name(
    root: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.argv", ["ratchets", "--write"])
    assert ratchets.main() == 0
    kept = root / ratchets.KEPT
    numbers = json.loads(kept.read_text())
    monkeypatch.setattr("sys.argv", ["ratchets"])
    assert ratchets.main() == 0
    kept.write_text(json.dumps(numbers | {"modules in circles": 1}))
    assert ratchets.main() == 1
    assert "python ci/ratchets.py --list 'modules in circles'" in capsys.readouterr().err
    kept.write_text(json.dumps(numbers | {"modules in circles": 3}))
    assert ratchets.main() == 0
    assert "numbers fell" in capsys.readouterr().err
