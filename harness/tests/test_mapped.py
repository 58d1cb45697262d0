# SPDX-License-Identifier: BSD-3-Clause
"""What is mapped into a driver and how it is scheduled is stored, also where a file of the system forced it."""

from __future__ import annotations

import hashlib
import os
import subprocess
from pathlib import Path

import pytest

from .test_driver_run import LAYERS, Pair, launch, need, pingpong, rpc

pytestmark = pytest.mark.alone


@pytest.fixture
def preloaded(tmp_path: Path) -> Path:
    """A library that nobody needs, without a build id."""
    (tmp_path / "spin.c").write_text("int cadge_test_spins(void) { return 1; }\n")
    made = tmp_path / "libspin.so"
    argv = ["cc", "-shared", "-fPIC", "-Wl,--build-id=none", "-o", str(made), str(tmp_path / "spin.c")]
    subprocess.run(argv, check=True)
    return made


def test_a_driver_tells_what_is_mapped_into_it(
    tmp_path: Path, preloaded: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    need("sockets-tcp")
    pair = Pair(tmp_path)
    document = launch("sockets-tcp", [pingpong(8), rpc(8, 8)], place="between")
    monkeypatch.setenv("LD_PRELOAD", str(preloaded))
    client = pair.start(0, document)
    monkeypatch.delenv("LD_PRELOAD")
    server = pair.start(1, document)
    try:
        errors = [one.communicate(timeout=90)[1] for one in (client, server)]
        assert [one.returncode for one in (client, server)] == [0, 0], errors
    finally:
        pair.end()
    found = pair.result()
    first, second = ([found["objects"][place] for place in end["objects"]] for end in found["endpoints"])
    by_how = [{one["file"]: one for one in some} for some in (first, second)]
    (forced,) = [one for one in first if one["how"] == "preloaded"]
    assert forced == {
        "file": str(preloaded.resolve()),
        "how": "preloaded",
        "sha256": hashlib.sha256(preloaded.read_bytes()).hexdigest(),
    }
    assert not [one for one in second if one["how"] in ("preloaded", "mapped")]
    layer = by_how[1][str((LAYERS / "sockets-tcp.so").resolve())]
    assert layer["how"] == "loaded"
    assert layer["build_id"] == found["adapter"]["build_id"]
    assert [one["how"] for one in second].count("program") == 1
    assert {Path(one["file"]).name for one in second if one["how"] == "needed"} >= {"libc.so.6"}
    files = [tuple(sorted(one.items())) for one in found["objects"]]
    assert len(set(files)) == len(files), "each once, whoever has it"


def test_a_driver_tells_how_it_is_scheduled(tmp_path: Path) -> None:
    need("null-self")
    pair = Pair(tmp_path)
    document = launch("null-self", [pingpong(8)], place="self")
    was = os.sched_getscheduler(0)
    try:
        os.sched_setscheduler(0, os.SCHED_BATCH, os.sched_param(0))
        found = pair.run(document)
    finally:
        os.sched_setscheduler(0, was, os.sched_param(0))
    (end,) = found["endpoints"]
    assert end["scheduling"] == {"policy": "batch", "priority": 0, "nice": os.nice(0)}
