# SPDX-License-Identifier: BSD-3-Clause
"""Who looks how: a colour for light pages, one for dark pages, a marker and dashes, by the rules of looks.yml.

Colour never stands alone: each series has its own marker or dashes, and its name beside the line.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import product
from pathlib import Path

from pydantic import BaseModel, ConfigDict

from cadge_analysis.stats.load import Series
from cadge_results.plugins.catalogue import read_yaml

PAGE_LIGHT, PAGE_DARK = "#ffffff", "#14161a"


class _Variant(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    hollow: bool
    dash: tuple[int, ...]


class _Style(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    marker: str
    shade: int = 0


class _Looks(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    colours: tuple[tuple[str, str], ...]
    markers: dict[str, str]
    substrates: dict[str, tuple[int, ...]]
    styles: dict[str, _Style]
    variants: tuple[_Variant, ...]


LOOKS = _Looks.model_validate(read_yaml(Path(__file__).with_name("looks.yml").read_text(encoding="utf-8")))
LIGHT = tuple(light for light, _ in LOOKS.colours)
DARK = tuple(dark for _, dark in LOOKS.colours)
SHAPES = tuple(LOOKS.markers.values())
_MARKERS = tuple(LOOKS.markers)

# Neutral inks of charts. Each is replaced by a variable of the page, so they must differ from every series colour.
INK, MUTED, GRID, FLOOR, GHOST = "#1c1d21", "#5c5f68", "#e4e5e9", "#3b3d44", "#cfd1d8"
NEUTRALS = {INK: "ink", MUTED: "muted", GRID: "grid", FLOOR: "floor", GHOST: "ghost"}
NEUTRALS_DARK = {"ink": "#e9eaee", "muted": "#a3a6b1", "grid": "#2b2e36", "floor": "#c6c8d0", "ghost": "#454954"}


@dataclass(frozen=True, slots=True)
class Identity:
    """How a series looks: places in the tables of looks.yml."""

    slot: int
    marker: int
    variant: int = 0

    @classmethod
    def of_number(cls, number: int) -> Identity:
        """Return the look that has a number."""
        place, variant = divmod(number, len(LOOKS.variants))
        slot, marker = divmod(place, len(SHAPES))
        return cls(slot, marker, variant)

    @property
    def number(self) -> int:
        """A number of this look alone, by which a page finds all that is drawn of the series."""
        return (self.slot * len(SHAPES) + self.marker) * len(LOOKS.variants) + self.variant

    @property
    def token(self) -> str:
        """What stands in a chart for its colour until it is dressed for a page: a colour that nothing else has."""
        return f"#fe{self.number:04x}"

    @property
    def faint_token(self) -> str:
        """As `token`, of one that stands back, in grey, until a page picks it out."""
        return f"#fd{self.number:04x}"

    @property
    def ink_token(self) -> str:
        """As `token`, of the text that names it."""
        return f"#fc{self.number:04x}"

    @property
    def faint_ink_token(self) -> str:
        """As `ink_token`, of one that stands back."""
        return f"#fb{self.number:04x}"

    @property
    def light(self) -> str:
        """Colour on a light page, which is also the fallback."""
        return LIGHT[self.slot]

    @property
    def shape(self) -> str:
        """Outline of the marker."""
        return SHAPES[self.marker]

    @property
    def hollow(self) -> bool:
        """Whether the marker is drawn as its outline alone."""
        return LOOKS.variants[self.variant].hollow

    @property
    def dash(self) -> tuple[int, ...]:
        """Dashes of the line; none: it is whole."""
        return LOOKS.variants[self.variant].dash


def variables() -> dict[str, str]:
    """Return what stands for each token in a page.

    The series' own variable, which a page sets for one that is picked out; else that of all others, which is then set
    as well; else its colour's; else the light one.
    """
    found = {}
    for slot, marker, variant in product(range(len(LIGHT)), range(len(SHAPES)), range(len(LOOKS.variants))):
        look = Identity(slot, marker, variant)
        found[look.token] = f"var(--k{look.number},var(--dim,var(--s{slot},{look.light})))"
        found[look.faint_token] = f"var(--k{look.number},var(--dim,var(--ghost,{GHOST})))"
        found[look.ink_token] = f"var(--t{look.number},var(--ink,{INK}))"
        found[look.faint_ink_token] = f"var(--muted,{MUTED})"
    return found


def classes() -> dict[str, str]:
    """Return the class of all that is drawn in each token: that of its series."""
    found: dict[str, str] = {}
    for slot, marker, variant in product(range(len(LIGHT)), range(len(SHAPES)), range(len(LOOKS.variants))):
        look = Identity(slot, marker, variant)
        tokens = look.token, look.faint_token, look.ink_token, look.faint_ink_token
        found |= dict.fromkeys(tokens, f"k{look.number}")
    return found


def _hash(text: str, among: int) -> int:
    return zlib.crc32(text.encode()) % among


def style_of(series: Series) -> str:
    """Return the style that a layer's name begins with; looks, and small pictures, go by it."""
    return series.layer.partition("-")[0]


def _wanted(series: Series) -> Identity:
    """Return the look that follows from what a series is, alone."""
    style, _, substrate = series.layer.partition("-")
    shades = LOOKS.substrates.get(substrate, (_hash(substrate, len(LIGHT)),))
    known = LOOKS.styles.get(style)
    slot = shades[known.shade % len(shades) if known else 0]
    marker = _hash(style, len(SHAPES)) if known is None else _MARKERS.index(known.marker)
    if not series.shims and not series.settings:
        return Identity(slot, marker)
    return Identity(slot, marker, 1 + _hash(series.label, len(LOOKS.variants) - 1))


def _is_known(series: Series) -> bool:
    style, _, substrate = series.layer.partition("-")
    return style in LOOKS.styles and substrate in LOOKS.substrates


def _next(look: Identity) -> Iterator[Identity]:
    """Yield a look and those nearest to it: other dashes first (of a variant), then other markers."""
    plain = look.variant == 0
    variants = [(look.variant - 1 + step) % (len(LOOKS.variants) - 1) + 1 for step in range(len(LOOKS.variants) - 1)]
    markers = [(look.marker + step) % len(SHAPES) for step in range(len(SHAPES))]
    if plain:
        yield from (Identity(look.slot, marker) for marker in markers)
        variants = list(range(1, len(LOOKS.variants)))
    yield from (Identity(look.slot, marker, variant) for marker in markers for variant in variants)


def identities(series: Iterable[Series]) -> dict[Series, Identity]:
    """Return a look for each series. It keeps its look in every report, unless two want the same one.

    Of two that want the same, one that looks.yml knows goes first, then the one earlier in the alphabet; the other
    takes the next free one.
    """
    taken: set[Identity] = set()
    looks: dict[Series, Identity] = {}
    ordered = sorted(set(series), key=lambda one: (bool(one.shims or one.settings), not _is_known(one), one))
    for one in ordered:
        wanted = _wanted(one)
        look = next((look for look in _next(wanted) if look not in taken), wanted)
        taken.add(look)
        looks[one] = look
    return looks
