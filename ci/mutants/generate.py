# SPDX-License-Identifier: BSD-3-Clause
"""Mutants of the analysis: one small wrong change each, of the conditions, numbers and returns of a source file."""

from __future__ import annotations

import ast
import hashlib
from collections.abc import Iterator
from copy import copy
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

PACKAGE = Path(__file__).resolve().parents[2] / "analysis/src/cadge_analysis"
PACKAGES = {
    "stats": "stats/*.py",
    "inference": "stats/inference/*.py",
    "cells": "cells/*.py",
    "blocks": "blocks/*.py",
    "messages": "**/*.py",
}
"""What can be mutated, by its files. Of `messages`, the conditions of all other functions that say a sentence."""
COMPARISONS: dict[type, tuple[type, ...]] = {
    ast.Lt: (ast.GtE, ast.LtE),
    ast.LtE: (ast.Gt, ast.Lt),
    ast.Gt: (ast.LtE, ast.GtE),
    ast.GtE: (ast.Lt, ast.Gt),
    ast.Eq: (ast.NotEq,),
    ast.NotEq: (ast.Eq,),
    ast.In: (ast.NotIn,),
    ast.NotIn: (ast.In,),
    ast.Is: (ast.IsNot,),
    ast.IsNot: (ast.Is,),
}
"""The comparison flipped, then its boundary moved."""
OPERATORS: dict[type, type] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Div,
    ast.Pow: ast.Mult,
    ast.Mod: ast.Mult,
    ast.And: ast.Or,
    ast.Or: ast.And,
}
UNTOUCHED = {"annotation", "returns", "decorator_list", "type_params"}
SEQUENCES = (ast.JoinedStr, ast.List, ast.Tuple, ast.ListComp)
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


@dataclass(frozen=True)
class Mutant:
    """A changed file. `was` and `becomes` are the changed lines; a test must call `called` to see it."""

    file: str
    line: int
    function: str
    was: str
    becomes: str
    text: str
    called: str

    @property
    def key(self) -> str:
        """What it is, wherever its line moves."""
        return f"{self.file} {self.function}: {self.was} => {self.becomes}"


@dataclass(frozen=True)
class _Place:
    """Where a node stands: the field of its parent, and its index where that is a list."""

    parent: Any
    field: str
    index: int | None

    @property
    def is_test(self) -> bool:
        """Whether a branch is chosen by what stands here."""
        return self.field in ("test", "ifs") and not isinstance(self.parent, ast.Assert)

    def put(self, node: ast.AST) -> None:
        if self.index is None:
            setattr(self.parent, self.field, node)
        else:
            getattr(self.parent, self.field)[self.index] = node


def _places(node: ast.AST) -> Iterator[tuple[ast.AST, _Place]]:
    """Yield all that stands below a node and may change."""
    for name, value in ast.iter_fields(node):
        if name in UNTOUCHED or (isinstance(node, ast.keyword) and node.arg == "strict"):
            continue
        for index, child in enumerate(value if isinstance(value, list) else [value]):
            if isinstance(child, ast.AST) and not isinstance(child, ast.Assert | ast.Raise):
                yield child, _Place(node, name, index if isinstance(value, list) else None)
                yield from _places(child)


def _changed(node: ast.AST, **fields: object) -> ast.AST:
    found = copy(node)
    for name, value in fields.items():
        setattr(found, name, value)
    return found


def _alternatives(node: Any, place: _Place) -> Iterator[ast.AST]:  # noqa: ANN401 - any node of a syntax tree
    """Yield what may stand in place of a node."""
    if place.is_test:  # the other branch
        yield ast.UnaryOp(ast.Not(), node)
    if isinstance(place.parent, ast.Return) and not (isinstance(node, ast.Constant) and node.value is None):
        yield ast.Constant(None)
    match node:
        case ast.Compare(ops=[first, *others]):
            yield from (_changed(node, ops=[new(), *others]) for new in COMPARISONS[type(first)][place.is_test :])
        case ast.BoolOp(op=op):
            yield _changed(node, op=OPERATORS[type(op)]())
        case ast.BinOp(op=op) if type(op) in OPERATORS and not any(map(_is_sequence, ast.walk(node))):
            yield _changed(node, op=OPERATORS[type(op)]())
        case ast.UnaryOp(op=ast.Not(), operand=operand) if not place.is_test:
            yield operand
        case ast.Constant(value=bool(value)):
            yield _changed(node, value=not value)
        case ast.Constant(value=int(value) | float(value)):
            yield _changed(node, value=value + 1 if isinstance(value, int) else value * 2 or 1.0)


def _is_sequence(node: ast.AST) -> bool:
    return isinstance(node, SEQUENCES) or isinstance(getattr(node, "value", 0), str)


@cache
def _says(function: ast.AST) -> bool:
    """Return whether a function says a sentence."""
    called = (node.func for node in ast.walk(function) if isinstance(node, ast.Call))
    return any("say" in (getattr(one, "id", ""), getattr(one, "attr", "")) for one in called)


def of_source(file: str, source: bytes, *, conditions: bool = False) -> Iterator[Mutant]:
    """Yield the mutants of a file. conditions: only those of conditions in functions that say a sentence."""
    tree = ast.parse(source)
    up = dict(_places(tree))
    lines = source.splitlines(keepends=True)
    ends = [0]
    for line in lines:
        ends.append(ends[-1] + len(line))
    for node, place in up.items():
        around = [node]
        while around[-1] in up:
            around.append(up[around[-1]].parent)
        scopes = [one for one in around if isinstance(one, (*FUNCTIONS, ast.ClassDef))]
        function = next((one for one in scopes if isinstance(one, FUNCTIONS)), None)
        tested = any(up[one].is_test for one in around[:-1])
        if conditions and not (tested and function and _says(function)):
            continue
        # positions within an f-string are not known before Python 3.12: it is written anew
        whole: Any = next((one for one in reversed(around) if isinstance(one, ast.JoinedStr)), node)
        for new in _alternatives(node, place):
            place.put(new)
            text = ast.unparse(new if whole is node else whole).encode()
            place.put(node)
            begin, end = ends[whole.lineno - 1] + whole.col_offset, ends[whole.end_lineno - 1] + whole.end_col_offset
            first, last = ends[whole.lineno - 1], ends[whole.end_lineno]
            was, becomes = source[first:last], source[first:begin] + text + source[end:last]
            called = min(one.lineno for one in (function, *function.decorator_list)) if function else None
            yield Mutant(
                file=file,
                line=whole.lineno,
                function=".".join(one.name for one in reversed(scopes)),
                was=" ".join(was.decode().split()),
                becomes=" ".join(becomes.decode().split()),
                text=(source[:first] + becomes + source[last:]).decode(),
                called=f"{file}:{called}" if called else file,
            )


def of_package(package: str) -> list[Mutant]:
    """Return every mutant of a package, each once."""
    found: dict[str, Mutant] = {}
    for path in sorted(PACKAGE.glob(PACKAGES[package])):
        file = str(path.relative_to(PACKAGE))
        conditions = package == "messages" and file != "messages/__init__.py"
        if not conditions or not file.startswith(("stats/", "cells/", "blocks/")):
            mutants = of_source(file, path.read_bytes(), conditions=conditions)
            found |= {mutant.key: mutant for mutant in mutants}
    return list(found.values())


def chosen(package: str, count: int, seed: int) -> list[Mutant]:
    """Return so many mutants of a package. A change of the code moves no other mutant in the order of a seed."""

    def rank(mutant: Mutant) -> bytes:
        return hashlib.sha256(f"{seed} {mutant.key}".encode()).digest()

    return sorted(of_package(package), key=rank)[:count]
