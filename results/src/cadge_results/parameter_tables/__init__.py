# SPDX-License-Identifier: BSD-3-Clause
"""What the driver's C code knows of a pattern's file: NAME.params.h, made of NAME.pattern.yml when the driver is built.

In it stand the struct of the parameters, the words of choices, the quantities, what points need of a layer, and the
digest of all this, by which a launch file and a driver know that they mean the same pattern.

    python -m cadge_results.parameter_tables FOLDER NAME.pattern.yml ...    writes FOLDER/NAME.params.h
"""

from __future__ import annotations

import hashlib
import json
import re
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path

from cadge_results.errors import FormatError
from cadge_results.formats.point import Value
from cadge_results.plugins.catalogue import PATTERN_FILE, load_yaml
from cadge_results.plugins.parameter import Parameter
from cadge_results.plugins.pattern import PatternFile

KINDS = {"histogram": "DRV_HISTOGRAM", "rate": "DRV_RATE", "count": "DRV_COUNT", "fit": "DRV_FIT"}
ENDING = ".params.h"


def digest_of(file: PatternFile) -> str:
    """Return SHA-256, hex, of what driver and plan have to agree on; titles, limits and words are not among it."""
    parts = {
        "roles": list(file.roles),
        "parameters": [[name, list(one.values) or one.type] for name, one in file.parameters.items()],
        "quantities": [[name, one.kind] for name, one in file.quantities.items()],
        "needs": [[sorted(need.when.items()), list(need.caps)] for need in file.needs],
    }
    return hashlib.sha256(json.dumps(parts, separators=(",", ":")).encode()).hexdigest()


def _constant(*words: str) -> str:
    return re.sub(r"[^A-Z0-9]", "_", "_".join(words).upper())


def _words(name: str, one: Parameter) -> Iterable[str]:
    yield f"enum {{ {', '.join(_constant(name, word) for word in one.values)} }};"
    quoted = "".join(f'"{word}", ' for word in one.values)
    yield f"static const char *const {name}_words[] = {{{quoted}NULL}};"


def _row(name: str, one: Parameter) -> str:
    may_be = f".words = {name}_words" if one.type == "choice" else f".least = {one.min}, .most = {one.max}"
    return f'{{"{name}", DRV_{one.type.upper()}, offsetof(struct parameters, {name}), {may_be}}}'


def _condition(file: PatternFile, name: str, value: Value) -> str:
    number = file.parameters[name].values.index(value) if isinstance(value, str) else value
    return f"{{{list(file.parameters).index(name)}, {number}}}"


def _need(file: PatternFile, when: Mapping[str, Value], caps: Iterable[str]) -> str:
    wanted = " and ".join(f"{name} {value}" for name, value in when.items()) or "any such point"
    conditions = "".join(f"{_condition(file, name, value)}, " for name, value in when.items())
    flags = " | ".join(f"CADGE_CAP_{cap}" for cap in caps)
    return f'{{{{{conditions}}}, {len(when)}, {flags}, "{wanted}", "{" and ".join(caps)}"}}'


def header(name: str, file: PatternFile) -> str:
    """Return the text of NAME.params.h."""
    lines = [f"/* Made of {name}{PATTERN_FILE} by cadge_results.parameter_tables: change that. */"]
    lines += ["#include <stddef.h>", "", '#include "launch/pattern.h"', ""]
    lines += [f"enum quantity {{ {', '.join(map(_constant, file.quantities))}, QUANTITIES }};"]
    for key, one in file.parameters.items():
        if one.type == "choice":
            lines += _words(key, one)
    lines += ["struct parameters {"]
    lines += [f"\t{'uint32_t' if one.type == 'choice' else 'uint64_t'} {key};" for key, one in file.parameters.items()]
    table = [f"{_row(key, one)}, " for key, one in file.parameters.items()]
    quantities = [f'{{"{key}", {KINDS[one.kind]}}}, ' for key, one in file.quantities.items()]
    needs = [f"{_need(file, need.when, need.caps)}, " for need in file.needs]
    lines += ["};", "/* begins the pattern's table */", "#define PATTERN_TABLE \\"]
    lines += [f'\t.name = "{name}", .digest = "{digest_of(file)}", \\']
    lines += [
        "\t.parameters_bytes = sizeof(struct parameters), \\",
        "\t.parameters = (const struct drv_parameter[]){ \\",
    ]
    lines += [f"\t\t{row}\\" for row in table] + [
        "\t\t{.name = NULL}}, \\",
        "\t.quantities = (const struct drv_quantity[]){ \\",
    ]
    lines += [f"\t\t{row}\\" for row in quantities] + [
        "\t\t{.name = NULL}}, \\",
        "\t.needs_caps = (const struct drv_need[]){ \\",
    ]
    lines += [f"\t\t{row}\\" for row in needs] + ["\t\t{.wanted = NULL}}"]
    return "\n".join(lines) + "\n"


def write(folder: Path, path: Path) -> None:
    """Write the header of one pattern's file, unless it is there and the same. Raises FormatError."""
    name = path.name.removesuffix(PATTERN_FILE)
    text = header(name, load_yaml(path, PatternFile))
    made = folder / f"{name}{ENDING}"
    if not made.is_file() or made.read_text(encoding="utf-8") != text:
        made.write_text(text, encoding="utf-8")


def main(argv: list[str]) -> int:
    """Write the headers of all files named. Exit status: 1 where one is wrong."""
    folder = Path(argv[0])
    folder.mkdir(parents=True, exist_ok=True)
    try:
        for path in argv[1:]:
            write(folder, Path(path))
    except FormatError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    return 0
