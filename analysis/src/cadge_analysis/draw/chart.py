# SPDX-License-Identifier: BSD-3-Clause
"""What a chart holds, and how its series are separated: colour, marker and dashes by identity, one look for all."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from cadge_analysis.draw.palette import GRID, INK, MUTED, Identity
from cadge_analysis.draw.svg import Spec

TEXT_PX = 11
FLOOR_LABEL = "floor"
THE_FLOOR = "the floor"


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """One measured size of one series: bytes, value with interval in the chart's unit, and its ratio to `base`.

    One that is `ringed` is set apart from the others of its series. `rank`: that of its series at this size, "1=".
    """

    size: int
    value: float
    low: float | None = None
    high: float | None = None
    ratio: float | None = None
    ratio_low: float | None = None
    ratio_high: float | None = None
    ringed: bool = False
    rank: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One series; `short_bytes` is the largest size on its short path (0: it has but one path), `long_path` the other.

    `style` is what it shares with its kin. One that is `faint` stands back: a grey line without marks, its name grey.
    """

    label: str
    look: Identity
    marks: tuple[Mark, ...] = ()
    short_bytes: int = 0
    long_path: str = ""
    style: str = ""
    faint: bool = False

    @property
    def turn(self) -> tuple[Mark, Mark] | None:
        """The last mark on its short path and the first on its long one; None where it has not both."""
        pairs = pairwise(self.marks) if self.short_bytes else ()
        return next(((a, b) for a, b in pairs if a.size <= self.short_bytes < b.size), None)

    @property
    def token(self) -> str:
        """What stands for its colour."""
        return self.look.faint_token if self.faint else self.look.token

    @property
    def ink_token(self) -> str:
        """What stands for the colour of its name."""
        return self.look.faint_ink_token if self.faint else self.look.ink_token


@dataclass(frozen=True, slots=True, kw_only=True)
class FloorMark:
    """The fastest floor at one size, in the chart's unit."""

    size: int
    value: float
    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Foreign:
    """A line that was not measured here: its name, and (size, value in the chart's unit). It has no interval."""

    label: str
    marks: tuple[tuple[int, float], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Chart:
    """All that one figure shows.

    Ratios are to `base`: the floor, or one of the series.

    `sizes` names every value of the axis that `along` is called, which is logarithmic unless it is `proportional`. The
    values of a linear chart begin at zero, those of another are logarithmic.
    """

    unit: str
    spoken: str
    title: str
    along: str
    along_title: str
    sizes: Mapping[int, str]
    lines: tuple[Line, ...]
    more_is_better: bool = False
    linear: bool = False
    proportional: bool = False
    floor: tuple[FloorMark, ...] = ()
    base: str = THE_FLOOR
    foreign: tuple[Foreign, ...] = ()


GIVEN: Spec = {"field": "c", "type": "nominal", "scale": None}
"""A colour that each row brings: a scale would be one for all layers of a panel."""


def shape_of(lines: Sequence[Line]) -> Spec:
    """Return the marker of each series."""
    return {
        "field": "s",
        "type": "nominal",
        "legend": None,
        "scale": {"domain": [line.label for line in lines], "range": [line.look.shape for line in lines]},
    }


def dash_of(lines: Sequence[Line]) -> Spec:
    """Return the dashes of series that are variants of others."""
    return {
        "field": "s",
        "type": "nominal",
        "legend": None,
        "scale": {
            "domain": [line.label for line in lines],
            "range": [list(line.look.dash) or [1, 0] for line in lines],
        },
    }


def marker(lines: Sequence[Line]) -> Spec:
    """Return how markers are encoded: shape and colour by series; some are filled, others drawn as outlines."""

    def opacity(*, filled: bool) -> Spec:
        return {
            "field": "s",
            "type": "nominal",
            "legend": None,
            "scale": {
                "type": "ordinal",
                "domain": [line.label for line in lines],
                "range": [0 if line.look.hollow is filled else 1 for line in lines],
            },
        }

    return {
        "fill": GIVEN,
        "stroke": GIVEN,
        "shape": shape_of(lines),
        "fillOpacity": opacity(filled=True),
        "strokeOpacity": opacity(filled=False),
    }


def config() -> Spec:
    """Return what every chart looks like."""
    axis: Spec = {
        "domainColor": MUTED,
        "tickColor": MUTED,
        "gridColor": GRID,
        "labelColor": MUTED,
        "titleColor": INK,
        "labelFontSize": TEXT_PX,
        "labelLimit": 0,
        "titleLimit": 0,
        "titleFontSize": TEXT_PX,
        "titleFontWeight": "normal",
        "tickSize": 4,
        "domain": False,
    }
    return {
        "background": None,
        "font": "system-ui, sans-serif",
        "aria": False,
        "view": {"stroke": None},
        "axis": axis,
        "axisX": {"gridOpacity": 0.6},
    }
