# SPDX-License-Identifier: BSD-3-Clause
"""Readings of an engine's own benchmark, without Cadge.

`{"schema", "rounds", "readings": [{"name", "unit", "median", "low", "high"}]}`; a reading that has a floor also tells
its name and the ratio to it: `"of", "ratio", "ratio_low", "ratio_high"`. `"values"` are those of each round.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Literal, Self

from pydantic import Field, ValidationError, model_validator

from cadge_analysis import messages
from cadge_analysis.errors import BadInputError
from cadge_results.formats.base import Frozen
from cadge_results.formats.complaint import explain_json

say = partial(messages.say, "study")

NS_BY_UNIT = {"ns": 1.0, "us": 1e3, "ms": 1e6}


class Reading(Frozen):
    """A median over rounds, with the interval that the benchmark gives it. Times are in ns, us or ms."""

    name: str = Field(min_length=1)
    unit: str
    median: float = Field(allow_inf_nan=False)
    low: float = Field(allow_inf_nan=False)
    high: float = Field(allow_inf_nan=False)
    of: str | None = None
    ratio: float | None = None
    ratio_low: float | None = None
    ratio_high: float | None = None
    values: tuple[float, ...] = ()

    @model_validator(mode="after")
    def _in_order(self) -> Self:
        if not self.low <= self.median <= self.high:
            raise ValueError(say("engine.median_outside", name=self.name))
        return self


class EngineBench(Frozen):
    """The whole file."""

    schema_: Literal["pgr.bench/1"] | None = Field(default=None, alias="schema")
    rounds: int | None = None
    readings: tuple[Reading, ...]

    def find(self, name: str) -> Reading | None:
        """Return a reading by name."""
        return next((reading for reading in self.readings if reading.name == name), None)


def read(path: Path) -> EngineBench:
    """Read the file. Raises BadInputError, which says what is wrong with it."""
    try:
        content = path.read_bytes()
        return EngineBench.model_validate_json(content)
    except OSError as error:
        raise BadInputError(f"{path} cannot be read: {error.strerror}") from error
    except ValidationError as error:
        raise BadInputError(f"{path}: {explain_json(error, EngineBench, content)}") from error
