# SPDX-License-Identifier: BSD-3-Clause
"""Numbers of the tree's shape that may fall and never rise: `ci/ratchets.json` keeps them, `ci/check` compares.

    python ci/ratchets.py            prints each number; exit 1 where one rose, with what counts now
    python ci/ratchets.py --write    keeps the numbers as they are now
    python ci/ratchets.py --list NAME    prints what one of them counts, a line each

Keep a number that fell in the commit that lowers it: then nobody takes back what was won.
"""

from __future__ import annotations

import argparse
import ast
import json
import re
import subprocess
import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
KEPT = Path("ci/ratchets.json")
FOLDER_FILES_MAX = 25
SMALL_LINES = 60
SENTENCE_WORDS = 4
SHAPES = re.compile(r"\w(?:Row|Table)$")
"""Names of classes that lay out a page: one package may have them."""
LAYOUT = ("cells", "blocks")
SQL = re.compile(r"(?:BEGIN|COPY|CREATE|SET) ")
WORD = re.compile(r"[A-Za-z][A-Za-z'\u2019-]+")
PRODUCT = ("harness/src/", "harness/agent/", "results/src/", "analysis/src/", "analysis/studies/")
Counted = Mapping[str, Iterable[str]]


@cache
def tracked(*endings: str) -> tuple[Path, ...]:
    """Return the files of the product that git tracks and that are there, relative to the root."""
    listing = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    found = [name for name in listing.split("\0") if name.endswith(endings) and (ROOT / name).is_file()]
    return tuple(Path(name) for name in found if "tests" not in Path(name).parts)


@cache
def tree(path: Path) -> ast.Module:
    """Return a Python file, parsed."""
    return ast.parse((ROOT / path).read_text(encoding="utf-8"))


def python() -> list[Path]:
    """Return the Python files of the product."""
    return [path for path in tracked(".py") if str(path).startswith(PRODUCT)]


def classes_named_twice() -> Iterator[str]:
    """Yield each class whose name another one has."""
    named = defaultdict(list)
    for path in python():
        if path.name == "formats.py" and "agent" in path.parts:
            continue  # made from the models, and called as they are
        for node in tree(path).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                named[node.name].append(f"{path}:{node.lineno}: {node.name}")
    for where in named.values():
        if len(where) > 1:
            yield from where[1:]


def layout_classes() -> Iterator[str]:
    """Yield each class of rows or tables outside the packages that lay tables out."""
    for path in python():
        if not set(LAYOUT) & set(path.parts):
            for node in ast.walk(tree(path)):
                if isinstance(node, ast.ClassDef) and SHAPES.search(node.name):
                    yield f"{path}:{node.lineno}: {node.name}"


def sentences_in_code() -> Iterator[str]:
    """Yield each text of four words or more in the analysis, outside its catalogue of messages; no docstrings."""
    for path in python():
        if path.parts[0] == "analysis" and "messages" not in path.parts:
            yield from _sentences(path, tree(path))


def sentences_of_commands() -> Iterator[str]:
    """Yield the same in the functions of the command line, outside its messages; what click shows as help is none."""
    for path in python():
        if "cadge_cli" in path.parts:
            functions = [node for node in tree(path).body if isinstance(node, ast.FunctionDef)]
            for node in functions:
                yield from _sentences(path, ast.Module(node.body, []))
            for found in (node for node in tree(path).body if isinstance(node, ast.ClassDef)):
                yield from _sentences(path, found)


def _sentences(path: Path, module: ast.AST) -> Iterator[str]:
    nodes = list(ast.walk(module))
    inner = {id(part) for node in nodes if isinstance(node, ast.JoinedStr) for part in ast.walk(node) if part != node}
    passed = {id(node.value) for node in nodes if isinstance(node, ast.Expr)}
    passed |= {
        id(part)
        for node in nodes
        if isinstance(node, ast.Call) and ast.unparse(node.func).startswith("click.")
        for part in ast.walk(node)
    }
    for node in nodes:
        if id(node) in inner | passed:
            continue
        if isinstance(node, ast.JoinedStr):
            text = " ".join(str(part.value) for part in node.values if isinstance(part, ast.Constant))
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            text = node.value
        else:
            continue
        if SQL.match(text):
            continue
        words = [word for word in text.split() if WORD.fullmatch(word.strip("()[].,;:!?*`'\"\u201c\u201d"))]
        if len(words) >= SENTENCE_WORDS:
            yield f"{path}:{node.lineno}: {' '.join(text.split())[:100]}"


def _modules() -> dict[str, Path]:
    found = {}
    for path in python():
        parts = list(path.with_suffix("").parts)
        start = next((at for at, part in enumerate(parts) if part.startswith("cadge_")), None)
        if start is not None:
            name = ".".join(parts[start:])
            found[name.removesuffix(".__init__")] = path
    return found


@cache
def imports() -> dict[str, set[str]]:
    """Return which modules of ours each module names, also in functions and for types alone."""
    modules = _modules()
    graph: dict[str, set[str]] = {name: set() for name in modules}
    for name, path in modules.items():
        for node in ast.walk(tree(path)):
            if isinstance(node, ast.Import):
                graph[name] |= {alias.name for alias in node.names} & set(modules)
            elif isinstance(node, ast.ImportFrom) and node.module:
                inner = {f"{node.module}.{alias.name}" for alias in node.names} & set(modules)
                graph[name] |= inner or ({node.module} & set(modules))
    return graph


def small_modules() -> Iterator[str]:
    """Yield each module of fewer than 60 lines that one module alone imports."""
    modules = _modules()
    users: Counter[str] = Counter(one for found in imports().values() for one in found)
    for name, path in modules.items():
        lines = len((ROOT / path).read_text(encoding="utf-8").splitlines())
        if lines < SMALL_LINES and users[name] == 1 and path.name not in {"__init__.py", "__main__.py"}:
            yield f"{path}: {lines} lines"


def circles(graph: Mapping[str, set[str]]) -> Iterator[str]:
    """Yield each node that reaches itself (Tarjan, 1972)."""
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    found: list[list[str]] = []

    def visit(node: str) -> None:
        index[node] = low[node] = len(index)
        stack.append(node)
        for other in sorted(graph.get(node, ())):
            if other not in index:
                visit(other)
                low[node] = min(low[node], low[other])
            elif other in stack:
                low[node] = min(low[node], index[other])
        if low[node] == index[node]:
            at = stack.index(node)
            found.append(stack[at:])
            del stack[at:]

    for node in sorted(graph):
        if node not in index:
            visit(node)
    for circle in found:
        if len(circle) > 1:
            yield from (f"{name} (a circle of {len(circle)})" for name in sorted(circle))


def module_circles() -> Iterator[str]:
    """Yield each module that stands in a circle of imports."""
    return circles(imports())


def full_folders() -> Iterator[str]:
    """Yield each file beyond the twenty-fifth of its folder, of the sources of the product."""
    rooms = {"harness", "layers", "results", "analysis"}
    held = Counter(path.parent for path in tracked(".py", ".c", ".h") if path.parts[0] in rooms)
    for folder, files in sorted(held.items()):
        yield from (f"{folder}: {files} files" for _ in range(files - FOLDER_FILES_MAX))


INCLUDE = re.compile(r'^#include "([^"]+)"', re.MULTILINE)
FUNCTION = re.compile(r"^(?!static\b|typedef\b|extern\b)[a-z]\w*[\w *]*?\b(\w+)\([^;{}]*\)\n\{", re.MULTILINE)
DRIVER = "harness/driver/"


@cache
def c_text(*folders: str) -> Mapping[Path, str]:
    """Return the C files below some folders with their text."""
    return {
        path: (ROOT / path).read_text(encoding="utf-8")
        for path in tracked(".c", ".h")
        if str(path).startswith(folders or ("harness/",))
    }


def _found(pattern: str, *folders: str) -> Iterator[str]:
    expression = re.compile(pattern)
    for path, text in c_text(*folders).items():
        for number, line in enumerate(text.splitlines(), 1):
            if expression.search(line):
                yield f"{path}:{number}: {line.strip()}"


def poll_sites() -> Iterator[str]:
    """Yield each place of driver and patterns that polls a layer."""
    return _found(r"layer->poll\(", DRIVER, "harness/patterns/")


def sent_callbacks() -> Iterator[str]:
    """Yield each function of driver and patterns that is told of a sent message."""
    return _found(r"^static void \w*sent\w*\(struct cadge_sink", DRIVER, "harness/patterns/")


def body_writers() -> Iterator[str]:
    """Yield each place that writes a message's body, outside the one writer."""
    calls = _found(r"^\t.*\b(drv_body_fill|drv_touch_write)\(", DRIVER, "harness/patterns/")
    return (line for line in calls if "/payload." not in line)


@cache
def c_arrows() -> dict[str, set[str]]:
    """Return for each pair of .c and .h of the harness which others it includes, or of which it calls a function."""
    texts = c_text()
    stems = {str(path.with_suffix("")) for path in texts}
    defines = {name: str(path.with_suffix("")) for path, text in texts.items() for name in FUNCTION.findall(text)}
    graph: dict[str, set[str]] = {stem: set() for stem in stems}
    for path, text in texts.items():
        own = str(path.with_suffix(""))
        for name in INCLUDE.findall(text):
            stem = name.removesuffix(".h")
            places = (f"{DRIVER}{stem}", f"harness/apps/{stem}", f"harness/patterns/{stem}", str(path.parent / stem))
            graph[own] |= {place for place in places if place in stems}
        if path.suffix == ".c":
            graph[own] |= {defines[word] for word in set(re.findall(r"\b(?:drv|press)_\w+", text)) & set(defines)}
        graph[own].discard(own)
    return graph


def c_circles() -> Iterator[str]:
    """Yield each pair of .c and .h of the harness that stands in a circle of includes and calls."""
    return circles(c_arrows())


def _reached(starts: Iterable[str]) -> set[str]:
    found: set[str] = set()
    left = list(starts)
    while left:
        one = left.pop()
        if one not in found:
            found.add(one)
            left += c_arrows()[one]
    return found


def one_pattern_code() -> Iterator[str]:
    """Yield each line of the driver that one pattern alone uses: it belongs into that one's folder."""
    stems = [stem for stem in c_arrows() if stem.startswith(("harness/patterns/", "harness/floors/"))]
    users: Counter[str] = Counter()
    folders = {stem: Path(stem.replace("/floors/frames/", "/floors/")).parent for stem in stems}
    for folder in set(folders.values()):
        users.update(_reached(stem for stem in stems if folders[stem] == folder))
    shared = _reached([f"{DRIVER}main"]) if f"{DRIVER}main" in c_arrows() else set()
    for path, text in c_text(DRIVER).items():
        stem = str(path.with_suffix(""))
        if users[stem] == 1 and stem not in shared:
            yield from (f"{path}:{number}" for number, _ in enumerate(text.splitlines(), 1))


RATCHETS: dict[str, Callable[[], Iterable[str]]] = {
    "classes named twice": classes_named_twice,
    "row and table classes outside cells and blocks": layout_classes,
    "sentences in the analysis outside messages": sentences_in_code,
    "sentences in the command line outside messages": sentences_of_commands,
    "modules of fewer than 60 lines with one importer": small_modules,
    "modules in circles": module_circles,
    "files beyond 25 in a folder": full_folders,
    "places of driver and patterns that poll": poll_sites,
    "functions of driver and patterns that are told of a sent message": sent_callbacks,
    "places that write a message's body outside its writer": body_writers,
    "files of the harness in circles of includes and calls": c_circles,
    "lines of the driver that one pattern alone uses": one_pattern_code,
}


def main() -> int:
    """Print, write or list; return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--list", choices=RATCHETS, metavar="NAME")
    options = parser.parse_args()
    if options.list:
        sys.stdout.writelines(f"{line}\n" for line in RATCHETS[options.list]())
        return 0
    now = {name: sum(1 for _ in count()) for name, count in RATCHETS.items()}
    if options.write:
        (ROOT / KEPT).write_text(json.dumps(now, indent=2) + "\n", encoding="utf-8")
    kept = json.loads((ROOT / KEPT).read_text(encoding="utf-8"))
    for name, number in now.items():
        before = kept.get(name, number)
        sys.stdout.write(f"{number:6}  {name}{'' if number == before else f' (was {before})'}\n")
    rose = [name for name, number in now.items() if number > kept.get(name, number)]
    fell = [name for name, number in now.items() if number < kept.get(name, number) or name not in kept]
    for name in rose:
        sys.stderr.write(f"more {name} than before; see: python ci/ratchets.py --list '{name}'\n")
    if fell and not rose:
        sys.stderr.write("numbers fell: keep them by python ci/ratchets.py --write, in the same commit\n")
    return 1 if rose else 0


if __name__ == "__main__":
    sys.exit(main())
