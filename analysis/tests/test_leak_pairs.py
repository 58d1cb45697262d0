# SPDX-License-Identifier: BSD-3-Clause
"""A secret that only its key gives away, in a document of JSON."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from cadge_analysis.publish.leaks import leaks


@pytest.mark.parametrize(
    ("document", "count"),
    [
        ({"environment": [{"variables": {"DB_PASSWORD": "rexdog", "UCX_TLS": "tcp"}}]}, 1),
        ({"a": {"aws_secret_access_key": "0123456789abcdefgh"}}, 1),
        ({"variables": {"UCX_TLS": "tcp", "HOME": "/tmp/x/home"}, "token": 12345678, "passes": "3"}, 0),
    ],
)
def test_a_key_says_what_its_value_is(document: object, count: int, tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_text(json.dumps(document))
    found = leaks(tmp_path, [path], None)
    assert len(found) == count
    assert all("it looks like" in one.what for one in found)
