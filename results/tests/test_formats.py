# SPDX-License-Identifier: BSD-3-Clause
"""Strictness, versions, schemas that equal the models."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import jsonschema
import pytest
from pydantic import JsonValue

from cadge_results import FormatError, LaunchRecord, Plan, SchemaTooNewError, SchemaTooOldError
from cadge_results.formats.base import Document, SharedParts, canonical
from cadge_results.formats.record import HostLoad
from cadge_results.formats.result import Result
from cadge_results.schemas import DOCUMENTS, file_name, schema_text
from cadge_results.units import format_bytes, parse_bytes, parse_ms

SCHEMAS = Path(__file__).parents[1] / "schema"


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda document: document.NAME)
def test_committed_schema_equals_the_model(document: type) -> None:
    committed = (SCHEMAS / file_name(document)).read_text(encoding="utf-8")
    assert committed == schema_text(document), "run: python -m cadge_results.schemas results/schema"


def test_no_schema_without_a_model() -> None:
    assert {path.name for path in SCHEMAS.glob("*.json")} == {file_name(document) for document in DOCUMENTS}


def test_documents_fit_their_schemas(plan: Plan, record: Callable[..., LaunchRecord]) -> None:
    for document in (plan, record(0), record(0).launch, record(0).result):
        assert document is not None
        schema = json.loads((SCHEMAS / file_name(type(document))).read_text(encoding="utf-8"))
        jsonschema.validate(document.to_object(), schema)


def test_round_trip(plan: Plan) -> None:
    assert Plan.parse(plan.to_json(), source="x") == plan


def test_equal_parts_are_one_object_in_an_equal_document(plan: Plan, record: Callable[..., LaunchRecord]) -> None:
    shared = SharedParts()
    for document in (plan, record(0), record(1)):
        alike = shared.of(type(document).parse(document.to_json(), source="x"))
        assert alike == document
        assert alike.to_json() == document.to_json()
        assert alike.model_fields_set == type(document).parse(document.to_json(), source="x").model_fields_set
    points = shared.of(Plan.parse(plan.to_json(), source="x")).points
    assert len({id(point.workload) for point in points}) == len({point.workload for point in points})
    assert len({id(point.subject) for point in points}) == len({point.subject for point in points})


def test_parts_that_are_written_otherwise_stay_apart() -> None:
    shared = SharedParts()
    zeros = [shared.of(HostLoad(host="h1", loadavg=value)) for value in (0.0, -0.0, 0.0)]
    assert zeros[0] is zeros[2] is not zeros[1]
    assert [shared.of((one,)) for one in (1, True, 1.0)] == [(1,), (True,), (1.0,)]
    assert [type(shared.of((one,))[0]) for one in (1, True, 1.0)] == [int, bool, float]
    alone = HostLoad(host="h1")
    assert shared.of(alone).model_fields_set == {"host"}
    assert shared.of(HostLoad(host="h1", loadavg=None)).model_fields_set == {"host"}, "the first of them stays"


def test_older_minor_is_read_and_larger_major_is_not(plan: Plan) -> None:
    raw = plan.to_object()
    assert Plan.from_object({**raw, "schema": "cadge.plan/2.0"}, source="x").points == plan.points
    with pytest.raises(SchemaTooNewError, match=r"x: written as cadge.plan/3 by cadge 9.9; this cadge reads"):
        Plan.from_object({**raw, "schema": "cadge.plan/3", "tool": {"version": "9.9"}}, source="x")
    with pytest.raises(SchemaTooNewError, match="by a newer cadge"):
        Plan.from_object({**raw, "schema": "cadge.plan/3"}, source="x")


def test_an_older_major_is_refused_with_the_version_that_reads_it(
    plan: Plan, record: Callable[..., LaunchRecord]
) -> None:
    old = {**record(0).to_object(), "schema": "cadge.launch-record/1", "agent_version": "0.1.0"}
    text = r"^x: written as cadge.launch-record/1 by cadge 0.1.0; this cadge reads version 2; cadge 0.1 reads it$"
    with pytest.raises(SchemaTooOldError, match=text):
        LaunchRecord.from_object(old, source="x")
    text = r"^x: written as cadge.plan/1; this cadge reads version 2; cadge 0.1 reads it$"
    with pytest.raises(SchemaTooOldError, match=text):
        Plan.parse('{"schema": "cadge.plan/1", "points": []}', source="x")
    with pytest.raises(SchemaTooOldError, match=r"^x: written as cadge.plan/0; this cadge reads version 2$"):
        Plan.from_object({**plan.to_object(), "schema": "cadge.plan/0"}, source="x")


@pytest.mark.parametrize("document", [item for item in DOCUMENTS if item.MAJOR > 1], ids=lambda item: item.NAME)
def test_every_older_major_has_a_reader(document: type[Document]) -> None:
    assert set(range(1, document.MAJOR)) <= set(document.READ_BY)


@pytest.mark.parametrize("schema", [None, 1, "cadge.result/2", "cadge.plan", "cadge.plan/x"])
def test_other_documents_are_refused(plan: Plan, schema: object) -> None:
    with pytest.raises(FormatError, match=r"expected cadge\.plan/2"):
        Plan.from_object({**plan.to_object(), "schema": schema}, source="x")


def test_unknown_keys_and_wrong_types_are_refused(plan: Plan) -> None:
    raw = plan.to_object()
    with pytest.raises(FormatError, match="colour"):
        Plan.from_object({**raw, "colour": 1}, source="x")
    with pytest.raises(FormatError, match="seed"):
        Plan.from_object({**raw, "seed": "1"}, source="x")
    with pytest.raises(FormatError, match="not JSON"):
        Plan.parse("{", source="x")
    with pytest.raises(FormatError, match="object"):
        Plan.parse("[]", source="x")


def test_models_are_frozen(plan: Plan) -> None:
    with pytest.raises(ValueError, match="frozen"):
        plan.seed = 3  # type: ignore[misc]


def test_memory_of_processes_is_told_or_absent(record: Callable[..., LaunchRecord]) -> None:
    """Records without it are written as they were read; a moment that the kernel did not tell is null."""
    result = record(0).result
    assert result is not None
    assert "resident_bytes" not in result.to_object()
    sizes = {"private": 483_328, "shared": 4_218_880, "shared_part": 2_109_440, "file": 5_230_592}
    told: list[JsonValue] = [{"before": None, "opened": sizes, "connected": sizes}] * 2
    again = Result.from_object({**result.to_object(), "resident_bytes": told}, source="x")
    first, second = again.resident_bytes
    assert first == second
    assert first.before is None
    assert first.connected is not None
    assert first.connected.memory == 483_328 + 4_218_880
    assert again.to_object()["resident_bytes"] == told


def test_canonical_json_does_not_depend_on_order() -> None:
    assert canonical({"b": 1, "a": [2, {"d": 1, "c": 2}]}) == '{"a":[2,{"c":2,"d":1}],"b":1}'


@pytest.mark.parametrize(
    ("text", "count"), [("0B", 0), ("8B", 8), ("4KiB", 4096), ("4 MiB", 4 << 20), ("1kB", 1000), ("2GiB", 2 << 30)]
)
def test_sizes(text: str, count: int) -> None:
    assert parse_bytes(text) == count
    assert parse_bytes(format_bytes(count)) == count


@pytest.mark.parametrize(("text", "ms"), [("250ms", 250), ("2s", 2000), ("5 min", 300_000), ("1h", 3_600_000)])
def test_durations(text: str, ms: int) -> None:
    assert parse_ms(text) == ms


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (8, "8 has no unit; a size is written like 8B"),
        ("8", "has no unit"),
        ("4KB", r"did you mean KiB \(1024\) or kB \(1000\)"),
        ("4 bytes", "unknown unit"),
        ("x", "not a size"),
        ("-8B", "not a size"),
        (None, "not a size"),
        (True, "not a size"),
    ],
)
def test_bad_sizes(value: object, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        parse_bytes(value)


def test_bad_duration() -> None:
    with pytest.raises(ValueError, match="5 has no unit; a duration is written like 250ms"):
        parse_ms(5)
