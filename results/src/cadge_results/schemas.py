# SPDX-License-Identifier: BSD-3-Clause
"""JSON Schemas of the stored formats, exported from the models.

`python -m cadge_results.schemas FOLDER` writes them; a test compares the committed ones.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from cadge_results.formats.base import Document
from cadge_results.formats.block import Block
from cadge_results.formats.campaign import CampaignMeta
from cadge_results.formats.decision import Decision, LaterLook
from cadge_results.formats.imported import ImportedFile
from cadge_results.formats.launch import LaunchFile
from cadge_results.formats.native import NativeFile
from cadge_results.formats.node import NodeFacts
from cadge_results.formats.plan import Plan
from cadge_results.formats.record import LaunchRecord
from cadge_results.formats.result import Result
from cadge_results.formats.selftest import SelftestFile
from cadge_results.formats.sweep import SweepFile
from cadge_results.plugins.build import Build
from cadge_results.plugins.floor import FloorFile
from cadge_results.plugins.layerfile import LayerFile
from cadge_results.plugins.pattern import PatternFile

DOCUMENTS: tuple[type[Document], ...] = (
    Block,
    CampaignMeta,
    Decision,
    FloorFile,
    ImportedFile,
    LaterLook,
    LaunchFile,
    LaunchRecord,
    LayerFile,
    NativeFile,
    NodeFacts,
    PatternFile,
    Plan,
    Build,
    Result,
    SelftestFile,
    SweepFile,
)


def file_name(document: type[Document]) -> str:
    """Return the schema file's name, e.g. cadge.result-1.schema.json."""
    return f"{document.schema_id().replace('/', '-')}.schema.json"


def schema_text(document: type[Document]) -> str:
    """Return the schema as it is committed."""
    schema = document.model_json_schema(by_alias=True)
    schema["$schema"] = "https://json-schema.org/draft/2020-12/schema"
    schema["title"] = document.schema_id()
    schema["properties"]["schema"] = {"pattern": f"^{document.NAME}/{document.MAJOR}(\\.[0-9]+)?$", "type": "string"}
    return json.dumps(schema, indent=1, sort_keys=True, ensure_ascii=False) + "\n"


def export(folder: Path) -> list[Path]:
    """Write every schema into a folder, remove those of formats that are no longer read, and return the files."""
    names = {file_name(document) for document in DOCUMENTS}
    for old in folder.glob("*.schema.json"):
        if old.name not in names:
            old.unlink()
    written = []
    for document in DOCUMENTS:
        path = folder / file_name(document)
        path.write_text(schema_text(document), encoding="utf-8")
        written.append(path)
    return written


if __name__ == "__main__":
    for name in export(Path(sys.argv[1])):
        sys.stdout.write(f"{name}\n")
