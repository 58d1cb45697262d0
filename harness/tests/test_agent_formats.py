# SPDX-License-Identifier: BSD-3-Clause
"""What the agent reads and writes is what the store's models say: it has the standard library alone and cannot ask."""

from __future__ import annotations

import sys
import typing
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

sys.path.insert(0, str(Path(__file__).parents[1] / "agent"))

from cadge_agent import formats, outcome  # type: ignore[import-not-found, unused-ignore]
from cadge_results import Block, BlockHost, Endpoint, LaunchFile, LaunchRecord, NodeFacts, block, event, record
from cadge_results.reason import REFUSALS, Reason

READ = [
    (formats.Block, Block),
    (formats.BlockHost, BlockHost),
    (formats.Mpirun, block.Mpirun),
    (formats.Launch, LaunchFile),
    (formats.Endpoint, Endpoint),
]
WRITTEN = [
    (formats.Record, LaunchRecord),
    (formats.HostCounters, record.HostCounters),
    (formats.HostLink, record.HostLink),
    (formats.HostLoad, record.HostLoad),
    (formats.HostSharedMemory, record.HostSharedMemory),
    (formats.Ready, event.Ready),
    (formats.LaunchStarted, event.LaunchStarted),
    (formats.LaunchFinished, event.LaunchFinished),
    (formats.LaunchRecorded, event.LaunchRecorded),
    (formats.Problem, event.Problem),
    (formats.Note, event.Note),
    (formats.Alive, event.Alive),
    (formats.BlockFinished, event.BlockFinished),
    (formats.Looked, event.Looked),
    (formats.Clock, event.Clock),
    (formats.Reached, event.Reached),
    (formats.Fault, event.Fault),
    (formats.LayerSaid, event.LayerSaid),
]
OF_THE_STORE = {"crosschecks"}
"""Added when a record is taken in."""
JSON_TYPES = {str: "string", int: "integer", float: "number", bool: "boolean", dict: "object", list: "array"}


def kinds(annotation: Any) -> set[str]:  # noqa: ANN401 - an annotation may be anything
    """The JSON types of an annotation of the agent."""
    origin = typing.get_origin(annotation)
    if origin is typing.Literal:
        return {JSON_TYPES[type(value)] for value in typing.get_args(annotation)}
    if typing.is_typeddict(annotation):
        return {"object"}
    if annotation is type(None):
        return {"null"}
    if (found := JSON_TYPES.get(origin or annotation)) is not None:
        return {found}
    return set().union(*(kinds(part) for part in typing.get_args(annotation)))


def kinds_of_schema(schema: dict[str, Any], defs: dict[str, Any]) -> set[str]:
    """The JSON types of a property of a model."""
    if "$ref" in schema:
        return kinds_of_schema(defs[schema["$ref"].rpartition("/")[2]], defs)
    if "anyOf" in schema:
        return set().union(*(kinds_of_schema(part, defs) for part in schema["anyOf"]))
    return {schema["type"]}


@pytest.mark.parametrize(("ours", "model"), [*READ, *WRITTEN], ids=lambda item: item.__name__)
def test_names_and_types_are_those_of_the_model(ours: type, model: type[BaseModel]) -> None:
    schema = model.model_json_schema(by_alias=True)
    hints = typing.get_type_hints(ours)
    assert set(hints) == set(schema["properties"]) - OF_THE_STORE
    defs = schema.get("$defs", {})
    theirs = {name: kinds_of_schema(schema["properties"][name], defs) for name in hints}
    mine = {name: kinds(annotation) for name, annotation in hints.items()}
    for name in hints:
        if (ours, model) in READ:
            assert theirs[name] == mine[name], name
        else:
            assert mine[name] <= theirs[name], name


def test_every_event_of_the_agent_is_held_against_its_model() -> None:
    assert set(typing.get_args(formats.Event)) == {
        ours for ours, model in WRITTEN if model.__module__ == event.__name__ and "event" in model.model_fields
    }


def test_schemas_are_those_that_the_store_reads() -> None:
    assert Block.schema_id() == formats.BLOCK_SCHEMA
    assert LaunchRecord.schema_id() == formats.RECORD_SCHEMA
    assert NodeFacts.schema_id() == formats.NODE_SCHEMA


def test_reasons_are_known_to_the_store() -> None:
    assert set(outcome.REASONS) <= set(Reason)
    assert set(outcome.REFUSALS) == set(outcome.REASONS) & set(REFUSALS)
