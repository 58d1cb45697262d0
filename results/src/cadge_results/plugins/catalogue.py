# SPDX-License-Identifier: BSD-3-Clause
"""Which patterns, forms of floors and floors there are: files found by wildcard, never listed."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import yaml

from cadge_results.errors import FormatError, ResultsError
from cadge_results.formats.base import Document
from cadge_results.plugins.floor import FloorFile
from cadge_results.plugins.pattern import PatternFile

D = TypeVar("D", bound=Document)
Load = Callable[[Path, type[D]], D]

SafeLoader: type[yaml.SafeLoader] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
"""By libyaml, which is several times as fast, where PyYAML was built with it."""


class _StrictLoader(SafeLoader):  # type: ignore[misc,valid-type]
    """Refuses a key that stands twice in a mapping, of which PyYAML takes the last one."""

    def construct_mapping(self, node: yaml.Node, deep: bool = False) -> dict[Hashable, object]:
        keys: set[str] = set()
        for key in (one for one, _ in node.value if isinstance(one, yaml.ScalarNode)):
            if key.value in keys:
                raise yaml.constructor.ConstructorError(None, None, f"{key.value} is given twice", key.start_mark)
            keys.add(key.value)
        found: dict[Hashable, object] = super().construct_mapping(node, deep)
        return found


def read_yaml(text: str) -> Any:  # noqa: ANN401 - whatever the file holds
    """Return what YAML of ours says. Raises yaml.YAMLError, also where a key stands twice."""
    return yaml.load(text, _StrictLoader)  # noqa: S506 - it is a safe one


PATTERN_FILE = ".pattern.yml"
FLOOR_FILE = ".floor.yml"


def load_yaml(path: Path, kind: type[D]) -> D:
    """Read one document from YAML. Raises FormatError, ResultsError."""
    try:
        return kind.from_object(read_yaml(path.read_text(encoding="utf-8")), source=str(path))
    except (UnicodeDecodeError, yaml.YAMLError) as error:
        raise FormatError(f"{path}: {error}") from error
    except OSError as error:
        raise ResultsError(f"{path} cannot be read: {error.strerror}") from error


@dataclass(frozen=True, slots=True, kw_only=True)
class Workloads:
    """Everything that can be measured with, by name: patterns, the forms of floors, and floors."""

    patterns: Mapping[str, PatternFile]
    forms: Mapping[str, PatternFile] = field(default_factory=dict)
    floors: Mapping[str, FloorFile] = field(default_factory=dict)

    def file(self, name: str) -> PatternFile:
        """Return a pattern or a form. Raises KeyError."""
        return self.patterns[name] if name in self.patterns else self.forms[name]

    @property
    def ordered(self) -> tuple[str, ...]:
        """Names of the patterns as a report shows them."""
        return in_order(self.patterns)


def in_order(patterns: Mapping[str, PatternFile]) -> tuple[str, ...]:
    """Return names as a report shows them: by the place that each pattern asks for, then by name."""
    return tuple(sorted(patterns, key=lambda name: (patterns[name].order, name)))


def _pattern_files(folder: Path) -> list[Path]:
    """Return each pattern's YAML file, from a folder of its name. Raises FormatError where a file is missing."""
    found = []
    for own in sorted(path for path in folder.glob("[!.]*") if path.is_dir()):
        files = [own / f"{own.name}{ending}" for ending in (".c", PATTERN_FILE)]
        for path in files:
            if not path.is_file():
                raise FormatError(
                    f"{own}: {path.name} is missing; a pattern is a folder with NAME.c and NAME{PATTERN_FILE}"
                )
        found.append(files[1])
    return found


def read_workloads(harness: Path, load: Callable[[Path, type[Document]], Document] | None = None) -> Workloads:
    """Read the files below `harness`. Raises what `load` raises, and FormatError where names do not fit together."""

    def read(paths: Iterable[Path], ending: str, kind: type[D]) -> dict[str, D]:
        found = {}
        for path in sorted(paths):
            document = load_yaml(path, kind) if load is None else load(path, kind)
            assert isinstance(document, kind)  # noqa: S101 - loaders return what they are asked for
            found[path.name.removesuffix(ending)] = document
        return found

    patterns = read(_pattern_files(harness / "patterns"), PATTERN_FILE, PatternFile)
    forms = read((harness / "floors").glob(f"*{PATTERN_FILE}"), PATTERN_FILE, PatternFile)
    floors = {}
    for name, floor in read((harness / "floors").glob(f"*{FLOOR_FILE}"), FLOOR_FILE, FloorFile).items():
        if floor.substrate != name:
            raise FormatError(f"{harness}/floors/{name}{FLOOR_FILE}: its substrate says {floor.substrate}")
        floors[floor.name] = floor
        if unknown := sorted(set(floor.forms) - set(forms)):
            raise FormatError(f"{harness}/floors/{name}{FLOOR_FILE}: there is no form {unknown[0]}")
    for name, pattern in patterns.items():
        where = f"{harness}/patterns/{name}/{name}{PATTERN_FILE}"
        if name in forms:
            raise FormatError(f"{where}: a form of floors has this name")
        if pattern.floor.form is not None:
            if pattern.floor.form not in forms:
                raise FormatError(f"{where}: there is no form {pattern.floor.form}")
            unknown = sorted(set(pattern.floor.carry) - set(forms[pattern.floor.form].parameters))
            if unknown:
                raise FormatError(f"{where}: {pattern.floor.form} has no parameter {unknown[0]}")
    return Workloads(patterns=patterns, forms=forms, floors=floors)
