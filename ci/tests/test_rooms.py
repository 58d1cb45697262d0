# SPDX-License-Identifier: BSD-3-Clause
"""The rules of the architecture hold here, and each is seen to fail where it is broken."""

import importlib.util
import subprocess
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[2]


def load() -> ModuleType:
    spec = importlib.util.spec_from_file_location("check_rooms", ROOT / "ci/check_rooms.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    import sys

    sys.modules["check_rooms"] = module
    spec.loader.exec_module(module)
    return module


rooms = load()


def test_this_checkout_keeps_the_rules() -> None:
    assert rooms.check(ROOT) == []


def make_checkout(root: Path, path: str, text: str) -> None:
    """A checkout of some layers and one file with this text."""
    engine = "layers/peregrine/engine/"
    layers = ("layers/native/ucx.layer.yml", "layers/native/ucx.h", "layers/am/ucx.layer.yml")
    patterns = ("harness/patterns/star/burst.h",)
    for name in (*layers, *patterns, engine + "wires/wire.h", engine + "wires/xdp_socket.h", path):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).touch()
    (root / path).write_text(text)
    subprocess.run(["git", "init", "-q", root], check=True)
    subprocess.run(["git", "add", "-A"], cwd=root, check=True)


def test_a_floor_may_use_the_file_that_stands_alone(tmp_path: Path) -> None:
    text = '#include "cadge/layer.h"\n#include "fail.h"\n#include "peregrine/engine/wires/xdp_socket.h"\n'
    make_checkout(tmp_path, "harness/floors/xdp.c", text)
    assert rooms.check(tmp_path) == []


def test_a_pattern_may_use_its_own_folder(tmp_path: Path) -> None:
    make_checkout(tmp_path, "harness/patterns/star/tests/test_burst.c", '#include "star/burst.h"\n')
    assert rooms.check(tmp_path) == []


@pytest.mark.parametrize(
    ("path", "text", "message"),
    [
        ("notes.txt", "", "has no place at the top level"),
        ("layers/include/cadge/layer.h", "#include <sys/socket.h>\n", "only C standard headers"),
        ("layers/am/ucx.c", '#include "native/ucx.h"\n', "may not use another layer"),
        ("layers/am/ucx.c", '#include "driver/clock.h"\n', "may not use the driver"),
        ("layers/am/ucx.c", "x = clock_gettime(CLOCK_MONOTONIC, &t);\n", "reads no clock"),
        ("layers/am/ucx.c", 'f = fopen("/tmp/x", "r");\n', "opens no file"),
        ("layers/kit/adapter.c", '#include "wire/wire.h"\n', "kit/ knows no library and no wire"),
        ("layers/kit/adapter.c", "#include <mpi.h>\n", "kit/ knows no library and no wire"),
        ("layers/kit/adapter.c", '#include "native/ucx.h"\n', "adapters use kit/"),
        ("layers/wire/ucx/wire.c", '#include "wire/ofi/ofi.h"\n', "a wire may not use another"),
        ("layers/wire/ucx/wire.c", '#include "native/ucx.h"\n', "adapters use wire/"),
        ("layers/wire/ucx/wire.c", 'f = fopen("/tmp/x", "r");\n', "opens no file"),
        ("layers/shims/trace.c", '#include "native/ucx.h"\n', "a shim may not use a concrete layer"),
        ("layers/peregrine/engine/core/call.c", '#include "cadge/layer.h"\n', "knows nothing of Cadge"),
        ("layers/peregrine/engine/wires/udp.c", '#include "../core/engine.h"\n', "knows nothing of core"),
        ("layers/peregrine/engine/base/packet.c", '#include "../wires/wire.h"\n', "nothing of wires and core"),
        ("layers/peregrine/engine/wires/xdp_socket.c", '#include "wire.h"\n', "so it stands alone"),
        ("harness/floors/xdp.c", '#include "peregrine/engine/wires/wire.h"\n', "no layer"),
        ("harness/floors/xdp.c", '#include "../../layers/peregrine/engine/wires/wire.h"\n', "no layer"),
        ("harness/floors/xdp.c", '#include "native/ucx.h"\n', "no layer"),
        ("harness/driver/main.c", '#include "peregrine/engine/wires/xdp_socket.h"\n', "no layer"),
        ("harness/patterns/ring/ring.c", '#include "peregrine/engine/wires/xdp_socket.h"\n', "no layer"),
        ("harness/driver/traffic/push.c", '#include "star/burst.h"\n', "a pattern's folder is its own"),
        ("harness/patterns/ring/ring.c", '#include "star/burst.h"\n', "a pattern's folder is its own"),
        ("harness/driver/oob/link.c", '#include "engine/engine.h"\n', "only rooms before it"),
        ("harness/driver/main.c", "#include <ucp/api/ucp.h>\n", "may not use a transport library"),
        ("harness/driver/main.c", 'if (!strcmp(name, "native-ucx")) {}\n', "knows no layer by name"),
        ("harness/agent/cadge_agent/x.py", "match 1:\n    case _:\n        pass\n", "runs on nodes with Python 3.9"),
        ("harness/agent/cadge_agent/x.py", "a: int | None = 1\n", "lacks `from __future__ import annotations`"),
        ("harness/agent/cadge_agent/x.py", "def f():\n    import yaml\n", "only the standard library: yaml"),
        ("playbooks/roles/r/files/x.py", "from cadge_agent import y\n", "only the standard library: cadge_agent"),
        ("playbooks/roles/r/tasks/main.yml", "- debug: {msg: '{{ cadge_x }}'}\n", "not in the role's argument_specs"),
        ("playbooks/roles/r/tasks/main.yml", "- debug: {msg: '{{ __cadge_q.stat }}'}\n", "only its own names"),
    ],
)
def test_a_broken_rule_is_found(tmp_path: Path, path: str, text: str, message: str) -> None:
    make_checkout(tmp_path, path, text)
    found = [item for item in rooms.check(tmp_path) if message in item.message]
    assert [str(item.path) for item in found] == [path]
