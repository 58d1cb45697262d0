# SPDX-License-Identifier: BSD-3-Clause
"""For the tests of Slurm: the helpers beside them are found, and what needs more than the machine has is skipped."""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))  # pytest's importlib mode leaves sys.path alone

from cluster import SlurmCluster, lacks

MakeCluster = Callable[..., AbstractContextManager[SlurmCluster]]


@pytest.fixture
def make_cluster(monkeypatch: pytest.MonkeyPatch) -> Iterator[MakeCluster]:
    """Make clusters in a folder that every host sees, with a testbed of their own."""
    if why := lacks():
        pytest.skip(why)
    folder = Path(tempfile.mkdtemp(prefix="cadge-slurm-", dir="/var/tmp"))
    folder.chmod(0o755)
    state = tempfile.mkdtemp(prefix="cs-")
    monkeypatch.setenv("CADGE_STATE", state)

    def make(hosts: int = 2, **how: object) -> SlurmCluster:
        return SlurmCluster(folder, hosts, **how)  # type: ignore[arg-type]

    yield make
    for one in (folder, state):
        shutil.rmtree(one, ignore_errors=True)
