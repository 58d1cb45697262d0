# SPDX-License-Identifier: BSD-3-Clause
"""Code that one study alone uses: a package `cadge_study_NAME` in the study's folder, found because it is there.

It is loaded by path, knows of ours `cadge_analysis` alone, and has two names:

- `Spec`, a model (`Frozen`) of what stands under `own` in the study's published.yml;
- `sections(comparison, published, spec)`, which returns what one campaign has for the study as sections of its page.

Its sentences stand in a catalogue of its own, `messages.yml` beside its code (see cadge_analysis/messages).
"""

from __future__ import annotations

import importlib.util
import json
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

from pydantic import ValidationError

from cadge_analysis import messages
from cadge_analysis.blocks.make import number_columns, words_column
from cadge_analysis.blocks.model import Block, Heading, Region, Table, TableLine
from cadge_analysis.errors import BadInputError
from cadge_analysis.stats.compare import Comparison
from cadge_analysis.study.published import FILE, Publication
from cadge_results.formats.base import Frozen
from cadge_results.formats.complaint import explain
from cadge_results.formats.point import Value as ParameterValue
from cadge_results.formats.result import NOT_READ_BACK, PathFacts

say = partial(messages.say, "study")

__all__ = ["NOT_READ_BACK", "Frozen", "ParameterValue", "PathFacts", "StudyCode", "layer_table", "load_own", "titled"]

PACKAGE = "cadge_study_"


@dataclass(frozen=True, slots=True)
class StudyCode:
    """The code of a study, with what its published.yml says to it."""

    make: Callable[[Comparison, Publication, Any], tuple[Region, ...]]
    spec: Frozen
    published: Publication

    def sections(self, comparison: Comparison) -> tuple[Region, ...]:
        """Return what a campaign has for the study; nothing where it has no point of it."""
        return self.make(comparison, self.published, self.spec)


def load_own(folder: Path, published: Publication) -> StudyCode | None:
    """Return the code of the study in a folder, None where it has none. Raises BadInputError where they do not fit."""
    found = sorted(path.parent for path in folder.glob(f"{PACKAGE}*/__init__.py"))
    if len(found) > 1:
        raise BadInputError(say("plugin.study_one_package_name", folder=folder, package=PACKAGE, n=len(found)))
    if not found:
        if published.own is not None:
            raise BadInputError(say("plugin.nothing_reads_own_no", folder=folder / FILE, package=PACKAGE))
        return None
    if published.own is None:
        raise BadInputError(say("plugin.own_missing_reads", folder=folder / FILE, name=found[0].name))
    module = _module(found[0])
    try:
        kind, make = module.Spec, module.sections
        spec = kind.model_validate_json(json.dumps(published.own))
    except AttributeError as error:
        raise BadInputError(say("plugin.studys_package_names_spec", found=found[0], error=error)) from error
    except ValidationError as error:
        raise BadInputError(f"{folder / FILE}: own: {explain(error, kind, published.own)}") from error
    return StudyCode(make, spec, published)


def layer_table(
    title: str, columns: Iterable[str], lines: Iterable[TableLine], *, head: str = "layer", wide: bool = False
) -> Table:
    """Return a table of numbers, a line a layer. A wide one has headings of several lines, and more room for names."""
    return Table(
        label=title,
        role="plain contrast wide" if wide else "plain contrast",
        columns=(words_column(head), *number_columns(columns)),
        lines=tuple(lines),
    )


def titled(*tables: Table) -> Iterator[Block]:
    """Yield tables, each below its title."""
    for table in tables:
        yield Heading(3, table.label)
        yield table


def _module(folder: Path) -> ModuleType:
    """Import a package by its folder, once."""
    loaded = sys.modules.get(folder.name)
    path = folder / "__init__.py"
    if loaded is not None and loaded.__file__ is not None and Path(loaded.__file__).resolve() == path.resolve():
        return loaded
    for name in [name for name in sys.modules if name == folder.name or name.startswith(f"{folder.name}.")]:
        del sys.modules[name]
    spec = importlib.util.spec_from_file_location(folder.name, path, submodule_search_locations=[str(folder)])
    assert spec is not None  # noqa: S101 - of a path that ends with .py there is one
    assert spec.loader is not None  # noqa: S101
    module = importlib.util.module_from_spec(spec)
    sys.modules[folder.name] = module
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        del sys.modules[folder.name]
        raise BadInputError(f"{folder} cannot be imported: {error}") from error
    return module
