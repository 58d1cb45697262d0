# SPDX-License-Identifier: BSD-3-Clause
"""Claims that concern several studies (`analysis/studies/hypotheses.yml`), and where each of them is tested.

What the file names has to be there: a study's figures and sections, a sweep, a pattern.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from functools import partial
from pathlib import Path
from typing import ClassVar, Self

import yaml
from pydantic import Field, JsonValue, model_validator

from cadge_analysis import messages
from cadge_analysis.errors import BadInputError
from cadge_analysis.study.published import FILE, PublishedFigure
from cadge_analysis.study.published import read as read_study
from cadge_results import ResultsError
from cadge_results.formats.base import Document, Frozen
from cadge_results.plugins.catalogue import read_yaml

say = partial(messages.say, "study")

HYPOTHESES = "hypotheses.yml"


class FigureOf(Frozen):
    """A figure of a study, by name; `said`: what it is, where its own name speaks of the one before it."""

    study: str
    figure: str
    said: str = ""


class TestPlace(Frozen):
    """Where a claim is tested: a section of a study's page, the sweep that it is made of, or a pattern."""

    __test__: ClassVar[bool] = False  # no test of pytest's

    study: str = ""
    section: str = ""
    sweep: str = ""
    pattern: str = ""

    @model_validator(mode="after")
    def _names_something(self) -> Self:
        if not (self.study or self.sweep or self.pattern):
            raise ValueError(say("hypothesis_file.give_study_sweep_pattern"))
        if self.section and not self.study:
            raise ValueError(say("hypothesis_file.section_study", section=self.section))
        return self


class Hypothesis(Frozen):
    """A claim. `limits`: what its test here does not say; `cannot`: why there is none."""

    claim: str = Field(min_length=1)
    published: tuple[FigureOf, ...] = ()
    tested: tuple[TestPlace, ...] = ()
    limits: str = ""
    cannot: str = ""

    @model_validator(mode="after")
    def _tested_or_not(self) -> Self:
        if bool(self.tested) == bool(self.cannot):
            raise ValueError(say("hypothesis_file.give_either_where_tested"))
        return self


class Hypotheses(Document):
    """All of them, in the order in which they are numbered."""

    NAME: ClassVar[str] = "cadge.hypotheses"

    hypotheses: tuple[Hypothesis, ...] = Field(min_length=1)


def read(studies: Path, sweeps: Collection[str], patterns: Collection[str]) -> Hypotheses:
    """Read the file beside the studies. Raises BadInputError where it names what is not there."""
    path = studies / HYPOTHESES
    try:
        found = Hypotheses.from_object(read_yaml(path.read_text(encoding="utf-8")), source=str(path))
    except OSError as error:
        raise BadInputError(f"{path} cannot be read: {error.strerror}") from error
    except (UnicodeDecodeError, yaml.YAMLError, ResultsError) as error:
        raise BadInputError(f"{path}: {error}") from error
    for number, one in enumerate(found.hypotheses, 1):
        for problem in _problems(one, studies, sweeps, patterns):
            raise BadInputError(f"{path}: hypothesis {number}: {problem}")
    return found


def figure_of(studies: Path, named: FigureOf) -> PublishedFigure:
    """Return a figure; `read` has seen that it is there."""
    return read_study(studies / named.study).figures[named.figure]


def _problems(one: Hypothesis, studies: Path, sweeps: Collection[str], patterns: Collection[str]) -> Iterator[str]:
    named = [figure.study for figure in one.published] + [test.study for test in one.tested if test.study]
    for study in named:
        if not (studies / study / FILE).is_file():
            yield say("hypothesis_file.none_called", kind="study", name=study)
    for figure in one.published:
        if figure.figure not in read_study(studies / figure.study).figures:
            yield say("hypothesis_file.study_has_none", study=figure.study, kind="figure", name=figure.figure)
    for test in one.tested:
        if test.section and test.section not in set(_titles(_raw(studies / test.study / FILE))):
            yield say("hypothesis_file.study_has_none", study=test.study, kind="section", name=test.section)
        if test.sweep and test.sweep not in sweeps:
            yield say("hypothesis_file.none_called", kind="sweep", name=test.sweep)
        if test.pattern and test.pattern not in patterns:
            yield say("hypothesis_file.none_called", kind="pattern", name=test.pattern)


def _raw(path: Path) -> dict[str, JsonValue]:
    found = read_yaml(path.read_text(encoding="utf-8"))
    return {key: value for key, value in found.items() if key != "figures"}


def _titles(value: JsonValue) -> Iterator[str]:
    """Yield what the sections of a page are called, whatever they are made of."""
    if isinstance(value, dict):
        for key, inner in value.items():
            if key in {"title", "name"} and isinstance(inner, str):
                yield inner
            yield from _titles(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _titles(inner)
