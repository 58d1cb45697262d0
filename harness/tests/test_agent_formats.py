# SPDX-License-Identifier: BSD-3-Clause
"""What the agent reads and writes is what the store's models say: it has the standard library alone and cannot ask."""

from __future__ import annotations

import ast
import sys
import typing
from pathlib import Path

import pytest

from cadge_harness.run import agent_formats
from cadge_results import Block, LaunchRecord, NodeFacts
from cadge_results.formats import event, launch
from cadge_results.formats.reason import REFUSALS, Reason

sys.path.insert(0, str(Path(__file__).parents[1] / "agent"))

from cadge_agent import formats, outcome  # type: ignore[import-not-found, unused-ignore]


def test_the_committed_file_is_what_the_models_give() -> None:
    assert agent_formats.FILE.read_text() == agent_formats.text(), "run: python -m cadge_harness.run.agent_formats"
    ast.parse(agent_formats.text(), feature_version=(3, 9))


def test_a_changed_model_changes_the_file(monkeypatch: pytest.MonkeyPatch) -> None:
    class Endpoint(launch.Endpoint):
        """An endpoint with one more key."""

        further: dict[str, int] | None = None

    known = {Endpoint if model is launch.Endpoint else model: name for model, name in agent_formats.MODELS.items()}
    monkeypatch.setattr(agent_formats, "MODELS", known)
    assert "    further: dict[str, int] | None\n" in agent_formats.text()


def test_keys_are_needed_unless_the_store_leaves_them_out() -> None:
    assert formats.Endpoint.__optional_keys__ == {"hands", "management_address"}
    assert formats.Launch.__optional_keys__ == {"epoch", "system_calls", "operations", "rights", "trace", "digests"}
    assert formats.Record.__optional_keys__ == {"kernel", "started_by"}
    assert set(typing.get_type_hints(formats.Record)) == {
        field.alias or name for name, field in LaunchRecord.model_fields.items()
    } - {"crosschecks"}


def test_the_agent_knows_every_event_that_ansible_does_not_send() -> None:
    of_ansible = {event.Stage, event.TaskFailed, event.PlaybookStart, event.Stats}
    assert set(agent_formats.EVENTS) == set(typing.get_args(event.Event)) - of_ansible


def test_schemas_are_those_that_the_store_reads() -> None:
    assert Block.schema_id() == formats.BLOCK_SCHEMA
    assert LaunchRecord.schema_id() == formats.RECORD_SCHEMA
    assert NodeFacts.schema_id() == formats.NODE_SCHEMA


def test_reasons_are_known_to_the_store() -> None:
    assert set(outcome.REASONS) <= set(Reason)
    assert set(outcome.REFUSALS) == set(outcome.REASONS) & set(REFUSALS)
