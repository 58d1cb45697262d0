# SPDX-License-Identifier: BSD-3-Clause
"""Ranked layers, a panel a question: the one model of the page's dots, a terminal's bars and the card of a run.

It is plain data: `--json` prints it, one process hands it to another, and a published run keeps it.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from cadge_analysis.draw.scales import Axis, log_axis

EDGE_PERCENT = 3.0
"""So far from either end of a plot its axis ends."""
TICKS_MOST = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    """A layer in a question: its number in the unit shown, its interval, and how many times its floor it is.

    `value` is None where no launch gave a number; `why` says what became of it. `leads`: no other layer is better.
    `pairs_disagree`: the value and the floor beside it contradict `floor_times`, which is of paired rounds. `number`
    and `dashed`: its look. `direct`: what a program written for its library reaches. `transport`: what carries its
    messages, where its library names it. `marks`: see messages/ranked.yml.
    """

    name: str
    point_id: str
    value: float | None = None
    low: float | None = None
    high: float | None = None
    floor_times: float | None = None
    pairs_disagree: bool = False
    launches: int = 0
    leads: bool = False
    why: str = ""
    number: int = 0
    dashed: bool = False
    direct: float | None = None
    transport: str = ""
    marks: tuple[str, ...] = ()

    @classmethod
    def of(cls, stored: Mapping[str, Any]) -> Bar:
        """Return what `asdict` gave, or JSON of it."""
        return cls(**{**stored, "marks": tuple(stored["marks"])})

    @property
    def label(self) -> str:
        """The name, as of a key."""
        return self.name

    @property
    def beside(self) -> str:
        """What stands at the end of its row: transport and marks."""
        return " ".join(filter(None, (self.transport, *self.marks)))


@dataclass(frozen=True, slots=True, kw_only=True)
class PicturedQuestion:
    """A workload at a place. `floor`: what the machine itself can do, in the unit shown; None where it is not known.

    `headline`: the answer, in at most 20 words. `caution`: which warnings touch it. `absent`: which layers of the
    campaign are not in it, and why.
    """

    workload: str
    place: str
    wait: str
    quantity: str
    unit: str
    better: str
    floor: float | None
    bars: tuple[Bar, ...]
    topic: str = ""
    headline: str = ""
    caution: str = ""
    absent: str = ""

    @property
    def sense(self) -> str:
        """Which end is the good one, in words."""
        return f"{'lower' if self.better == 'low' else 'higher'} is better"

    @property
    def measured(self) -> tuple[Bar, ...]:
        """The layers with a number, the best first."""
        return tuple(bar for bar in self.bars if bar.value is not None)

    @property
    def axis(self) -> PanelAxis | None:
        """The axis of its plot; None where a logarithm has nothing to show."""
        found = [end for bar in self.bars for end in (bar.value, bar.low, bar.high, bar.direct)]
        known = [end for end in (*found, self.floor) if end is not None and end > 0]
        return PanelAxis(log_axis(known, wide=2)) if known else None


@dataclass(frozen=True, slots=True)
class PanelAxis:
    """Where values stand in a plot, in percent of its width."""

    axis: Axis

    def at(self, value: float) -> str:
        """Return the place of a value; one that a logarithm does not have stands at the left end."""
        share = self.axis.share(value) if value > 0 else 0.0
        return f"{EDGE_PERCENT + (100 - 2 * EDGE_PERCENT) * min(1.0, max(0.0, share)):.1f}%"

    @property
    def ticks(self) -> tuple[tuple[str, str], ...]:
        """Place and text of a few round values: decades, where there are two."""
        decades = [tick for tick in self.axis.ticks if math.isclose(math.log10(tick) % 1, 0, abs_tol=1e-9)]
        found = decades if len(decades) > 1 else list(self.axis.ticks)
        every = math.ceil(len(found) / TICKS_MOST) or 1
        return tuple((self.at(tick), _short(tick)) for tick in found[::every])


def _short(tick: float) -> str:
    """Return a round value in little room: 0.5, 20, 5k, 2M."""
    for scale, sign in ((1e6, "M"), (1e3, "k")):
        if tick >= scale * (1 - 1e-9):
            return f"{tick / scale:.12g}{sign}"
    return f"{tick:.12g}"


@dataclass(frozen=True, slots=True, kw_only=True)
class PanelNote:
    """What a mark means, or what a page draws so: "shaded", "bar" or "dashed". Without either, a sentence."""

    text: str
    mark: str = ""
    drawn: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Picture:
    """Questions with their answers, and in a sentence why nothing is concluded, where that is so.

    `notes`: what its marks mean.
    """

    questions: tuple[PicturedQuestion, ...]
    conclusion: str
    notes: tuple[PanelNote, ...] = ()

    def stored(self) -> dict[str, Any]:
        """Return it as JSON has it."""
        found: dict[str, Any] = json.loads(json.dumps(asdict(self)))
        return found

    @classmethod
    def of(cls, stored: Mapping[str, Any]) -> Picture:
        """Return what `stored` gave, or JSON of it."""
        questions = tuple(
            PicturedQuestion(**{**one, "bars": tuple(map(Bar.of, one["bars"]))}) for one in stored["questions"]
        )
        notes = tuple(PanelNote(**one) for one in stored["notes"])
        return cls(questions=questions, conclusion=stored["conclusion"], notes=notes)
