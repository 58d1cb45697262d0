# SPDX-License-Identifier: BSD-3-Clause
"""Check the catalogues of sentences: each sentence is said somewhere, with every value that it names.

A catalogue NAME.yml of cadge_analysis/messages is said by the files that have `say = partial(messages.say, "NAME")`, or
call it in a function of theirs whose first argument is the key; the `messages.yml` of a study or of the command line by
the files beside it that have or import such a `say`, of MESSAGES. A key may be an f-string: its holes stand for one
part of a key. A function that says several sentences under one key names them: `# says: title, text, size` in the line
of its `def`.
Exit 1 with a line for each sentence that nobody says, and each value that nobody gives.
"""

from __future__ import annotations

import ast
import re
import string
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from cadge_analysis import messages

ROOT = Path(__file__).resolve().parent.parent
OWN = ("analysis/studies/*/cadge_study_*/messages.yml", "harness/src/cadge_cli/messages.yml")
SAYS = re.compile(r"# says: ([\w, ]+)")
HOLE = r"[a-z_0-9]+"


@dataclass(frozen=True)
class Speaker:
    """A function that says sentences of a catalogue: the ends of their keys, and values that it gives by itself."""

    ends: tuple[str, ...]
    gives: frozenset[str]


def fields(text: str) -> set[str]:
    """Return the values that a sentence names."""
    return {name for _, name, _, _ in string.Formatter().parse(text) if name}


def speakers(tree: ast.Module, lines: list[str], called: str) -> dict[str, Speaker]:
    """Return the functions of a file that say sentences of a catalogue, `called` so in Python, by their names."""
    found = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and ast.unparse(node.value) == f"partial(messages.say, {called})":
            found[ast.unparse(node.targets[0])] = Speaker(("",), frozenset())
        if called == "MESSAGES" and isinstance(node, ast.ImportFrom) and "say" in {one.name for one in node.names}:
            found["say"] = Speaker(("",), frozenset())
        if not isinstance(node, ast.FunctionDef):
            continue
        said = SAYS.search("\n".join(lines[node.lineno - 1 : node.body[0].lineno]))
        direct = any(
            isinstance(one, ast.Call) and ast.unparse(one.func) == "messages.say" and ast.unparse(one.args[0]) == called
            for one in ast.walk(node)
        )
        if direct:
            found[node.name] = Speaker(("",), frozenset())
        elif said:
            own = {
                key.value
                for one in ast.walk(node)
                if isinstance(one, ast.Dict)
                for key in one.keys
                if isinstance(key, ast.Constant) and isinstance(key.value, str)
            }
            found[node.name] = Speaker(tuple(f".{end.strip()}" for end in said[1].split(",")), frozenset(own))
    return found


def _text(node: ast.expr) -> str | None:
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else None


def _keys(node: ast.expr) -> str | None:
    """Return a pattern of the keys that an argument may be; None where it is neither text nor a choice of texts."""
    if text := _text(node):
        return re.escape(text)
    if isinstance(node, ast.IfExp):
        return f"(?:{_keys(node.body)}|{_keys(node.orelse)})"
    if isinstance(node, ast.JoinedStr):
        return "".join(re.escape(text) if (text := _text(part)) else HOLE for part in node.values)
    return None


def problems(name: str, called: str, sentences: dict[str, str], sources: dict[str, str]) -> Iterator[str]:
    """Yield what is wrong between a catalogue and the files that say its sentences."""
    said: set[str] = set()
    for path, source in sources.items():
        tree, lines = ast.parse(source), source.splitlines()
        known = speakers(tree, lines, called)
        inside = {id(one) for node in ast.walk(tree) if isinstance(node, ast.FunctionDef) and node.name in known
                  for one in ast.walk(node)}  # fmt: skip
        for call in ast.walk(tree):
            if not isinstance(call, ast.Call) or id(call) in inside or not isinstance(call.func, ast.Name):
                continue
            speaker = known.get(call.func.id)
            pattern = _keys(call.args[0]) if speaker and call.args else None
            if speaker is None or pattern is None:
                continue
            given = {one.arg for one in call.keywords if one.arg}
            spread = any(one.arg is None for one in call.keywords)
            replaced = {f".{one}" for one in given if f".{one}" in speaker.ends}
            hit = False
            for end in speaker.ends:
                for key in [key for key in sentences if re.fullmatch(pattern + re.escape(end), key)]:
                    hit = True
                    said.add(key)
                    lacks = sorted(fields(sentences[key]) - given - speaker.gives)
                    if lacks and not spread and end not in replaced:
                        yield f"{path}:{call.lineno}: {key} is not given {', '.join(lacks)}"
            if not hit:
                yield f"{path}:{call.lineno}: {name} has no sentence {ast.unparse(call.args[0])}"
    yield from (f"{name}: nobody says {key}" for key in sentences if key not in said)


def check() -> list[str]:
    """Return what is wrong with every catalogue."""
    files = sorted(path for room in ("analysis", "harness/src") for path in (ROOT / room).rglob("*.py"))
    product = [path for path in files if "tests" not in path.relative_to(ROOT).parts]
    sources = {str(path.relative_to(ROOT)): path.read_text(encoding="utf-8") for path in product}
    found: list[str] = []
    for path in sorted(messages.FOLDER.glob("*.yml")):
        says = (f'messages.say("{path.stem}"', f'messages.say, "{path.stem}"')
        mine = {where: text for where, text in sources.items() if any(one in text for one in says)}
        found += problems(path.name, repr(path.stem), messages.catalogue(path.stem), mine)
    for path in sorted(path for pattern in OWN for path in ROOT.glob(pattern)):
        folder = path.parent.relative_to(ROOT)
        mine = {where: text for where, text in sources.items() if folder in Path(where).parents}
        found += problems(str(path.relative_to(ROOT)), "MESSAGES", messages.catalogue(path), mine)
    return found


if __name__ == "__main__":
    wrong = check()
    sys.stderr.writelines(f"{line}\n" for line in wrong)
    sys.exit(1 if wrong else 0)
