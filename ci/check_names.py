# SPDX-License-Identifier: BSD-3-Clause
"""Check that plug-ins are known by their own files alone: no pattern, form, floor or layer by name anywhere else.

A name stands as a whole string literal, or as an identifier (DRV_NAME, NAME_pattern, floor_NAME). Where a word is one
of these and means something else, a comment on its line or on the three above says so: `cadge: another NAME`. Exit 0
when no name is found, 1 with one line for each.
"""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

PATTERN, FLOOR, LAYER = ".pattern.yml", ".floor.yml", ".layer.yml"
EXEMPT = {"tests", "studies", "sweeps", "bench"}
"""Folders in which names are what it is about: benches are studies of the harness itself."""
C_COMMENT = re.compile(r"/\*.*?\*/|//[^\n]*", re.DOTALL)
C_STRING = re.compile(r'"((?:[^"\\\n]|\\.)*)"')


@dataclass(frozen=True)
class Name:
    """A plug-in's name, what it is, where it may stand, and the identifiers that would be made of it."""

    word: str
    kind: str
    home: str
    """The beginning of the paths of its own files."""
    identifiers: re.Pattern[str]


@dataclass(frozen=True)
class Found:
    """A name in a place where it does not belong."""

    path: Path
    line: int
    what: str
    name: Name


def tracked(root: Path) -> list[Path]:
    """Return the C and Python files that git tracks below `root`, relative to it."""
    argv = ["git", "ls-files", "-z", "--", "*.c", "*.h", "*.cc", "*.py"]
    listing = subprocess.run(argv, cwd=root, capture_output=True, text=True, check=True).stdout
    return [Path(name) for name in listing.split("\0") if name and (root / name).is_file()]


def _identifiers(word: str, *ends: str) -> re.Pattern[str]:
    low, high = re.escape(word.replace("-", "_")), re.escape(word.replace("-", "_").upper())
    parts = [rf"DRV_{high}"] if "pattern" in ends else []
    parts += [rf"{low}_{end}|{end}_{low}|{high}_{end.upper()}|{end.upper()}_{high}" for end in ends]
    return re.compile(rf"\b(?:{'|'.join(parts)})\b")


def names(root: Path) -> list[Name]:
    """Return the names of all plug-ins, read from where their files lie."""
    found = []
    harness = root / "harness"
    for path in sorted([*harness.glob(f"patterns/*/*{PATTERN}"), *harness.glob(f"floors/*{PATTERN}")]):
        word = path.name.removesuffix(PATTERN)
        kind = "form" if path.parent.name == "floors" else "pattern"
        home = f"harness/floors/{word}" if kind == "form" else f"harness/patterns/{word}/"
        found.append(Name(word, kind, home, _identifiers(word, kind)))
    for path in sorted((root / "harness" / "floors").glob(f"*{FLOOR}")):
        word = path.name.removesuffix(FLOOR)
        found.append(Name(f"floor-{word}", "floor", f"harness/floors/{word}", _identifiers(word, "floor")))
    for path in sorted((root / "layers").glob(f"*/*{LAYER}")):
        if path.parent.name == "shims":
            continue
        word = f"{path.parent.name}-{path.name.removesuffix(LAYER)}"
        found.append(Name(word, "layer", f"layers/{path.parent.name}/", re.compile(r"(?!)")))
    return found


def literals(path: Path, text: str) -> Iterator[tuple[int, str]]:
    """Yield line and value of every string literal."""
    if path.suffix == ".py":
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                yield node.lineno, node.value
        return
    for match in C_STRING.finditer(text):
        yield text.count("\n", 0, match.start()) + 1, match[1]


def code(path: Path, text: str) -> str:
    """Return a file without its comments, every line in its place."""
    if path.suffix == ".py":
        return "\n".join(line.partition("#")[0] for line in text.splitlines())
    return C_COMMENT.sub(lambda match: "\n" * match[0].count("\n"), text)


def excused(lines: list[str], number: int, name: Name) -> bool:
    """Tell whether a comment says that a word on this line means something else."""
    return any(f"cadge: another {name.word}" in line for line in lines[max(0, number - 4) : number])


def check_file(path: Path, text: str, every: list[Name]) -> Iterator[Found]:
    """Yield every name that stands in a file that is not its own."""
    lines = text.splitlines()
    bare = code(path, text)
    strange = [name for name in every if not str(path).startswith(name.home)]
    by_word = {name.word: name for name in strange}
    for number, value in literals(path, text if path.suffix == ".py" else bare):
        name = by_word.get(value)
        if name is not None and not excused(lines, number, name):
            yield Found(path, number, f'"{value}"', name)
    for number, line in enumerate(bare.splitlines(), 1):
        for name in strange:
            for match in name.identifiers.finditer(line):
                if not excused(lines, number, name):
                    yield Found(path, number, match[0], name)


def check(root: Path) -> list[Found]:
    """Return every name that stands where it does not belong, in the checkout at `root`."""
    every = names(root)
    found: list[Found] = []
    for path in tracked(root):
        if not EXEMPT & set(path.parts[:-1]):
            found += check_file(path, (root / path).read_text(encoding="utf-8"), every)
    return found


def main() -> int:
    """Print what was found; return the exit status."""
    found = check(Path(__file__).resolve().parent.parent)
    for item in found:
        where = f"{item.path}:{item.line}"
        print(f"{where}: {item.what} is the name of a {item.name.kind}, known only by its own files", file=sys.stderr)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
