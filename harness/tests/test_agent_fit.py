# SPDX-License-Identifier: BSD-3-Clause
"""A host whose network is not what the inventory says is refused before a block's first launch, with what to set."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "agent"))

from cadge_agent.errors import BadBlockError  # type: ignore[import-not-found, unused-ignore]
from cadge_agent.host.fit import refuse_unfit  # type: ignore[import-not-found, unused-ignore]
from cadge_agent.launch import ports_of  # type: ignore[import-not-found, unused-ignore]

HERE = {
    "name": "n1",
    "device": "lo",
    "address": "127.0.0.1",
    "raw_device": "",
    "cpus": [],
    "management_address": "10.0.0.1",
}


def block(*hosts: dict[str, Any]) -> dict[str, Any]:
    return {"hosts": [*hosts]}


def test_a_sound_one_is_taken() -> None:
    refuse_unfit(block(HERE, {**HERE, "name": "n2"}), HERE)
    without_raw = {**HERE, "raw_device": "nosuch0"}  # which few launches need
    refuse_unfit(block(without_raw, {**HERE, "name": "n2"}), without_raw)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"device": "nosuch0"}, r"n1 has no device nosuch0; it has (.*, )?lo(, .*)?\. Set its cadge_device"),
        ({"address": "192.0.2.7"}, r"192\.0\.2\.7 is not an address of lo: no device there has it\. Set its"),
        ({"management_address": "localhost"}, r"on n1 itself, localhost is 127\.0\.0\.1, which no other host reaches"),
        (
            {"management_address": "node-1.invalid"},
            r"on n1 itself, the name node-1\.invalid cannot be looked up: .+\. Write it into /etc/hosts there, or",
        ),
    ],
)
def test_what_is_wrong_is_said(change: dict[str, Any], said: str) -> None:
    host = {**HERE, **change}
    with pytest.raises(BadBlockError, match=said):
        refuse_unfit(block(host, {**HERE, "name": "n2"}), host)
    refuse_unfit(block(host), host)  # alone it needs no network


def test_ports_are_halved_where_half_is_enough() -> None:
    """The second attempt at a launch has others than the first, unless its contexts need all of them."""
    block = [18600, 18699]
    assert [ports_of(block, 2, attempt) for attempt in (0, 1)] == [[18600, 18645], [18645, 18690]]
    assert [ports_of(block, 64, attempt) for attempt in (0, 1)] == [[18600, 18691]] * 2
