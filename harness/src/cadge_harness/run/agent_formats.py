# SPDX-License-Identifier: BSD-3-Clause
"""The agent's formats.py: the models of the store as dictionaries with types, for a Python that has no pydantic.

`python -m cadge_harness.run.agent_formats` writes it; a test compares the committed one.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping
from typing import Any

from pydantic import BaseModel

from cadge_harness.run.agent_file import SOURCES
from cadge_results import NodeFacts
from cadge_results.formats import block, event, launch, record
from cadge_results.formats.base import Document

FILE = SOURCES / "cadge_agent" / "formats.py"
WIDTH = 120
HEAD = '''\
# SPDX-License-Identifier: BSD-3-Clause
"""The documents and lines that the agent reads and writes, by the names of their keys.

Made from the models of cadge_results by `python -m cadge_harness.run.agent_formats`: change those, and run it.
"""

from __future__ import annotations

from typing import Any, Literal, TypedDict, Union

'''
SCHEMAS: Mapping[str, type[Document]] = {"BLOCK": block.Block, "RECORD": record.LaunchRecord, "NODE": NodeFacts}
EVENTS: tuple[type[BaseModel], ...] = (
    event.Ready,
    event.LaunchStarted,
    event.LaunchFinished,
    event.LaunchRecorded,
    event.Problem,
    event.Note,
    event.Alive,
    event.BlockFinished,
    event.HostReport,
    event.Clock,
    event.ReachReport,
)
MODELS: Mapping[type[BaseModel], str] = {
    launch.Endpoint: "Endpoint",
    launch.LaunchTrace: "LaunchTrace",
    launch.LaunchFile: "Launch",
    block.BlockHost: "BlockHost",
    block.Mpirun: "Mpirun",
    block.Block: "Block",
    record.HostCounters: "HostCounters",
    record.HostLink: "HostLink",
    record.HostLoad: "HostLoad",
    record.HostSharedMemory: "HostSharedMemory",
    record.HostEnvironment: "HostEnvironment",
    record.HostKernel: "HostKernel",
    record.LaunchRecord: "Record",
    event.Fault: "Fault",
    event.LayerReport: "LayerReport",
    **{model: model.__name__ for model in EVENTS},
}
"""What the agent knows of; other models are any JSON to it."""
OF_THE_STORE = {"crosschecks"}
"""Added when a record is taken in."""
NARROWER = {("LaunchRecorded", "record"): "Record"}
"""What the agent knows better than the store, which reads it later."""
_PLAIN = {"string": "str", "integer": "int", "number": "float", "boolean": "bool", "null": "None"}


def text() -> str:
    """Return the file as it is committed."""
    lines = [f'{name}_SCHEMA = "{document.schema_id()}"' for name, document in SCHEMAS.items()]
    lines += ["", "Json = dict[str, Any]"]
    for model, name in MODELS.items():
        lines += ["", "", *_class(model, name)]
    lines += ["", "", "Event = Union["]
    lines += [*(f"    {MODELS[model]}," for model in EVENTS), "]"]
    return HEAD + "".join(f"{line}\n" for line in lines)


def _class(model: type[BaseModel], name: str) -> Iterator[str]:
    """Yield a class; keys that are left out where they say nothing stand in another one, which it extends."""
    schema = model.model_json_schema(by_alias=True)
    keys = {
        field.alias or own: NARROWER.get((name, own)) or _type(schema["properties"][field.alias or own], schema)
        for own, field in model.model_fields.items()
        if own not in OF_THE_STORE
    }
    optional = {field.alias or own for own, field in model.model_fields.items() if field.exclude_if is not None}
    base = "TypedDict"
    if optional:
        base = f"{name}Optional"
        yield f"class {base}(TypedDict, total=False):"
        yield f'    """Keys of `{name}` that are left out where they say nothing."""'
        yield ""
        yield from (f"    {key}: {kind}" for key, kind in keys.items() if key in optional)
        yield ""
        yield ""
    yield f"class {name}({base}):"
    about = " ".join((model.__doc__ or "").partition("\n\n")[0].split())
    yield from textwrap.wrap(f'"""{about}"""', WIDTH, initial_indent="    ", subsequent_indent="    ")
    yield ""
    yield from (f"    {key}: {kind}" for key, kind in keys.items() if key not in optional)


def _type(schema: Mapping[str, Any], whole: Mapping[str, Any]) -> str:
    """Return a property's type in Python's words."""
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        known = {model.__name__: ours for model, ours in MODELS.items()}
        return known.get(name) or _type(whole["$defs"][name], whole)
    if "const" in schema:
        return f'Literal["{schema["const"]}"]'
    if "anyOf" in schema:
        return _either(schema["anyOf"], whole)
    if schema.get("type") == "array":
        parts = schema.get("prefixItems") or [schema["items"]]
        return f"list[{_either(parts, whole)}]"
    if schema.get("type") == "object":
        values = schema.get("additionalProperties")
        kind = _type(values, whole) if isinstance(values, dict) and values else "Any"
        return f"dict[str, {kind}]" if kind not in ("Any", "Json") else "Json"
    return _PLAIN[schema["type"]] if "type" in schema else "Any"


def _either(parts: list[Mapping[str, Any]], whole: Mapping[str, Any]) -> str:
    return " | ".join(dict.fromkeys(_type(part, whole) for part in parts))


if __name__ == "__main__":
    FILE.write_text(text(), encoding="utf-8")
