# SPDX-License-Identifier: BSD-3-Clause
"""Events of agents and of Ansible, and the block that travels to the nodes."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from cadge_results import Block, FormatError, LaunchRecord, Reason, read_event
from cadge_results.formats.event import LaunchFinished, LaunchRecorded, Note, Ready, Stage, TaskFailed


def test_each_line_becomes_an_object() -> None:
    ready = '{"event":"ready","host":"n1","leader":true,"todo":3,"agent_version":"2","node":null}'
    assert read_event(ready, source="n1") == Ready(host="n1", leader=True, todo=3, agent_version="2")
    line = {"event": "launch_finished", "launch_id": "b1", "status": "failed", "reason": "x", "reason_code": "PORT"}
    found = read_event(json.dumps({**line, "wall_ns": 1, "kept": False}), source="n1")
    assert isinstance(found, LaunchFinished)
    assert found.reason_code is Reason.PORT
    assert isinstance(read_event(b'{"event":"launch_record","launch_id":"a","record":{}}', source="n1"), LaunchRecorded)
    assert read_event('{"event":"task","name":"Copy","role":"deploy"}', source="a") == Stage(name="Copy", role="deploy")
    lost = '{"event":"unreachable","host":"n1","task":"Copy","message":"no route"}'
    assert isinstance(read_event(lost, source="a"), TaskFailed)
    assert read_event('{"event":"note","text":"x"}', source="a") == Note(text="x")


@pytest.mark.parametrize(
    "line",
    [
        "",
        "{",
        "[]",
        '{"event":"party"}',
        '{"event":"note"}',
        '{"event":"note","text":1}',
        '{"event":"note","text":"x","more":1}',
        '{"event":"launch_finished","launch_id":"a","status":"failed","reason_code":"PORT_TAKEN"}',
    ],
)
def test_what_is_no_event(line: str) -> None:
    with pytest.raises(FormatError, match=r"^n1: "):
        read_event(line, source="n1")


def make_block(record: LaunchRecord) -> dict[str, object]:
    host = {"name": "here", "management_address": "127.0.0.1", "device": "lo", "address": "127.0.0.1", "cpus": [0]}
    return {
        "schema": "cadge.block/2",
        "block_id": "b1",
        "campaign_id": record.launch.campaign_id,
        "place": "within",
        "hosts": [host],
        "leader": "here",
        "ports": [18600, 18699],
        "deadline_s": 60,
        "launches": [record.launch.to_object()],
    }


def test_a_block_knows_the_hosts_of_its_launches(record: Callable[..., LaunchRecord]) -> None:
    raw = make_block(record(0))
    block = Block.from_object(raw, source="b1")
    assert block.launches[0] == record(0).launch
    with pytest.raises(FormatError, match="there is not among the block's hosts"):
        Block.from_object({**raw, "leader": "there"}, source="b1")
    with pytest.raises(FormatError, match="launches"):
        Block.from_object({**raw, "launches": []}, source="b1")


def test_channels_have_two_ends(record: Callable[..., LaunchRecord]) -> None:
    raw = make_block(record(0))
    launch = record(0).launch.to_object()
    assert isinstance(launch["endpoints"], list)
    assert isinstance(launch["endpoints"][1], dict)
    launch["endpoints"][1]["peers"] = []
    with pytest.raises(FormatError, match="endpoint 0 has a channel to 1, which has none back"):
        Block.from_object({**raw, "launches": [launch]}, source="b1")
