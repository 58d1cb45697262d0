# SPDX-License-Identifier: BSD-3-Clause
"""Check the architecture: which room may use which, and what may stand at the top level.

The Python rooms are checked by import-linter (see pyproject.toml); what runs on nodes, here. Exit 0 when every rule
holds, 1 with one line for each violation.
"""

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

TOP_LEVEL = {
    "Makefile", "layers", "harness", "playbooks", "results", "analysis", "ci", "README.md",
    "LICENSE", "CITATION.cff", "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md", "pyproject.toml",
}  # fmt: skip

TRANSPORT_HEADERS = re.compile(r"^(ucp|uct|ucs|ucm)/|^rdma/|^infiniband/|^mpi\.h$|^xdp/|^bpf/")
C_STANDARD = {
    "assert.h", "errno.h", "inttypes.h", "limits.h", "stdalign.h", "stdarg.h", "stdatomic.h", "stdbool.h", "stddef.h",
    "stdint.h", "stdio.h", "stdlib.h", "string.h", "time.h",
}  # fmt: skip
# Of the suite and the driver, beside the contract: it reads the process's own stack, as no standard function does.
STACK_HEADER = Path("layers/include/cadge/stack.h")
CLOCK_CALL = re.compile(r"\b(clock_gettime|gettimeofday|__rdtsc|_mm_lfence|timespec_get)\s*\(")
FILE_CALL = re.compile(r"\b(fopen|opendir|creat)\s*\(")
# Of all adapters: below layers/.
SHARED = {"kit", "wire"}
LIBRARY_OF_WIRE = re.compile(r"wire/\w+/")
NODE_PYTHON = (3, 9)
ROLE_OPTION = re.compile(r"^      (\w+):$", re.MULTILINE)
ROLE_NAME = re.compile(r"\b(?:__)?cadge_\w+")
INCLUDE = re.compile(r'^\s*#\s*include\s*[<"]([^">]+)[">]')
DRIVER = Path("harness/driver")
DRIVER_ROOMS = ("base", "measure", "launch", "oob", "engine", "threads", "traffic", "session")
"""Each uses only itself and those before it; the main program uses all."""
PATTERNS = Path("harness/patterns")
# The one file of the layers' room that a floor may use, as it would an external library; it includes nothing of ours.
ALONE = "peregrine/engine/wires/xdp_socket"
# Rooms of the engine, each of which may use those before it.
ENGINE_ROOMS = ("base", "wires", "core")


@dataclass(frozen=True)
class Violation:
    """One broken rule: where and what."""

    path: Path
    line: int
    message: str


def tracked(root: Path) -> list[Path]:
    """Return the files that git tracks below `root`, relative to it."""
    listing = subprocess.run(["git", "ls-files", "-z"], cwd=root, capture_output=True, text=True, check=True).stdout
    return [Path(name) for name in listing.split("\0") if name]


def includes(text: str) -> Iterator[tuple[int, str]]:
    """Yield line number and name of each header that a C file includes."""
    for number, line in enumerate(text.splitlines(), 1):
        if match := INCLUDE.match(line):
            yield number, match.group(1)


def style_folders(root: Path) -> set[str]:
    """Return the folders that hold adapters: those with a layer file, and the skeleton that they begin with."""
    return {path.parent.name for path in (root / "layers").glob("*/*.layer.yml")} - {"shims"} | {"skeleton"}


def check_c_file(root: Path, path: Path, styles: set[str]) -> Iterator[Violation]:
    """Yield what is wrong with one C file or header."""
    parts = path.parts
    text = (root / path).read_text(encoding="utf-8")
    room = parts[1] if parts[0] == "layers" else parts[0] + "/" + parts[1]
    in_tests = "tests" in parts
    # of use without Cadge, so no adapter: it has a clock and files
    in_engine = parts[0] == "layers" and parts[2:3] == ("engine",)
    for line, header in includes(text):
        first = header.split("/")[0]
        of_contract = parts[:2] == ("layers", "include") and path != STACK_HEADER
        if of_contract and header not in C_STANDARD and first != "cadge":
            yield Violation(path, line, f"the contract may include only C standard headers, not <{header}>")
        if room in styles and not in_tests:
            if header == "cadge/stack.h":
                yield Violation(path, line, "an adapter has no use for stacks: cadge/stack.h")
            if first in styles - {room} and (root / "layers" / header).exists():
                yield Violation(path, line, f"an adapter may not use another layer: {header}")
            if "driver/" in header or header.startswith("harness/"):
                yield Violation(path, line, f"an adapter may not use the driver: {header}")
        of_style = first in styles and (root / "layers" / header).exists()
        if room in SHARED and (of_style or "driver/" in header or header.startswith("harness/")):
            yield Violation(path, line, f"adapters use {room}/, and it uses none of them: {header}")
        if room == "kit" and (first == "wire" or TRANSPORT_HEADERS.search(header)):
            yield Violation(path, line, f"kit/ knows no library and no wire: {header}")
        if room == "wire" and LIBRARY_OF_WIRE.match(header) and header.split("/")[1] != parts[2]:
            yield Violation(path, line, f"a wire may not use another: {header}")
        if in_engine and (first in {"cadge", *SHARED} or first in styles):
            yield Violation(path, line, f"the engine knows nothing of Cadge: {header}")
        if in_engine and parts[3] in ENGINE_ROOMS:
            above = ENGINE_ROOMS[ENGINE_ROOMS.index(parts[3]) + 1 :]
            if Path(header).parent.name in above:
                yield Violation(path, line, f"room {parts[3]} knows nothing of {' and '.join(above)}: {header}")
        if parts[0] == "harness" and not in_tests:
            layer = header.split("layers/")[-1]
            ours = first != "cadge" and (root / "layers" / layer).exists()
            if ours and not (room == "harness/floors" and header == f"{ALONE}.h"):
                yield Violation(
                    path, line, f"the harness may use the contract and a floor {ALONE}.h, no layer: {header}"
                )
        if parts[1:3] != ("patterns", first) and (root / PATTERNS / header).exists():
            yield Violation(path, line, f"a pattern's folder is its own: {header}")
        if (
            path.with_suffix("") == Path("layers", ALONE)
            and (root / path.parent / header).exists()
            and header != f"{path.stem}.h"
        ):
            yield Violation(path, line, f"floors use this file without the engine, so it stands alone: {header}")
        if (
            path.parent.parent == DRIVER
            and not in_tests
            and first in DRIVER_ROOMS[DRIVER_ROOMS.index(path.parent.name) + 1 :]
        ):
            yield Violation(path, line, f"{path.parent.name}/ uses only rooms before it: {header}")
        if room == "shims" and first in styles:
            yield Violation(path, line, f"a shim may not use a concrete layer: {header}")
        if room == "harness/driver" and TRANSPORT_HEADERS.search(header):
            yield Violation(path, line, f"the driver may not use a transport library: {header}")
    if room in styles | SHARED and not in_tests and not in_engine:
        for number, code in enumerate(text.splitlines(), 1):
            if CLOCK_CALL.search(code) and "cadge: protocol timer" not in code:
                yield Violation(path, number, "an adapter reads no clock (a protocol's own timer says so on the line)")
            if FILE_CALL.search(code) and "cadge: sysfs" not in code:
                yield Violation(path, number, "an adapter opens no file (what reads sysfs says so on the line)")
    if room == "harness/driver" and not in_tests:
        names = {p.name for p in (root / "layers").glob("*/*.layer.yml")}
        layers = {
            f"{p.parent.name}-{p.name.removesuffix('.layer.yml')}" for p in (root / "layers").glob("*/*.layer.yml")
        }
        for number, code in enumerate(text.splitlines(), 1):
            if names and "strcmp" in code and any(f'"{layer}"' in code for layer in layers):
                yield Violation(path, number, "the driver knows no layer by name")


def runs_on_nodes(path: Path) -> bool:
    """Say whether a Python file is brought to the hosts of a testbed: the agent, and the scripts of roles."""
    of_a_role = path.parts[:2] == ("playbooks", "roles") and path.parts[3:4] == ("files",)
    return path.suffix == ".py" and (path.parts[:2] == ("harness", "agent") or of_a_role)


def check_node_file(root: Path, path: Path) -> Iterator[Violation]:
    """Yield what a host with nothing but Python 3.9 could not read or does not have."""
    try:
        tree = ast.parse((root / path).read_text(encoding="utf-8"), feature_version=NODE_PYTHON)
    except SyntaxError as error:
        yield Violation(path, error.lineno or 1, f"runs on nodes with Python 3.9: {error.msg}")
        return
    ours = {"cadge_agent"} if path.parts[:2] == ("harness", "agent") else set()
    futures = set()
    for node in ast.walk(tree):
        if not isinstance(node, ast.Import | ast.ImportFrom):
            continue
        names = [alias.name for alias in node.names]
        if isinstance(node, ast.ImportFrom):
            futures |= set(names) if node.module == "__future__" else set()
            names = [node.module or "."]
        for name in names:
            if name.split(".")[0] not in sys.stdlib_module_names | ours:
                yield Violation(path, node.lineno, f"runs on nodes, with only the standard library: {name}")
    if "annotations" not in futures:
        yield Violation(path, 1, "runs on nodes with Python 3.9: lacks `from __future__ import annotations`")


def check_role(root: Path, role: Path) -> Iterator[Violation]:
    """Yield what a role reads that its argument_specs do not declare, and names of another role's own."""
    plugins = {path.stem for path in (root / "playbooks" / "library").glob("*.py")}
    roles = {path.name for path in role.parent.iterdir()}
    specs = root / role / "meta" / "argument_specs.yml"
    declared = set(ROLE_OPTION.findall(specs.read_text(encoding="utf-8"))) if specs.exists() else set()
    for path in sorted((root / role / "tasks").glob("*.yml")):
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            for name in ROLE_NAME.findall(line.partition(" #")[0]):
                if name.startswith("__"):
                    if not name.startswith(f"__{role.name}_"):
                        yield Violation(path.relative_to(root), number, f"a role reads only its own names, not {name}")
                elif name not in declared | plugins | roles:
                    yield Violation(path.relative_to(root), number, f"{name} is not in the role's argument_specs")


def check(root: Path) -> list[Violation]:
    """Return every violation in the checkout at `root`."""
    found: list[Violation] = []
    styles = style_folders(root)
    for role in sorted(root.glob("playbooks/roles/*")):
        found += check_role(root, role)
    for path in tracked(root):
        top = path.parts[0]
        if not top.startswith(".") and top not in TOP_LEVEL:
            found.append(Violation(path, 1, f"'{top}' has no place at the top level"))
        if path.suffix in {".c", ".h", ".cc"} and (root / path).exists():
            found += check_c_file(root, path, styles)
        if runs_on_nodes(path) and (root / path).exists():
            found += check_node_file(root, path)
    return found


def main() -> int:
    """Print the violations; return the exit status."""
    found = check(Path(__file__).resolve().parent.parent)
    for item in found:
        print(f"{item.path}:{item.line}: {item.message}", file=sys.stderr)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
