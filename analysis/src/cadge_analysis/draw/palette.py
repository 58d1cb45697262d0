# SPDX-License-Identifier: BSD-3-Clause
"""Who looks how: a colour for light pages, one for dark pages and a marker, fixed by a series' name.

The colours keep at least 3:1 contrast to their page (WCAG 2.2, graphics) and stay apart for eyes that see fewer
colours; a test computes both. Colour never stands alone: each identity has its own marker shape and its name beside
the line.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable
from dataclasses import dataclass

PAGE_LIGHT, PAGE_DARK = "#ffffff", "#14161a"

LIGHT = (
    "#608dea",
    "#e25a17",
    "#18592d",
    "#551364",
    "#0f0f0f",
    "#868782",
    "#1621bb",
    "#d021b3",
    "#e9004f",
    "#730600",
)
DARK = (
    "#3d6afe",
    "#c73501",
    "#24e781",
    "#e67edc",
    "#f3fbf8",
    "#72696d",
    "#00bdff",
    "#ca00f7",
    "#dcf441",
    "#5f791b",
)
# One outline each in a box from -1 to 1, for charts and for the key alike.
SHAPES = (
    "M-.8,-.8H.8V.8H-.8Z",
    "M-.9,0A.9,.9,0,1,1,.9,0A.9,.9,0,1,1,-.9,0Z",
    "M0,-1.15L1,0L0,1.15L-1,0Z",
    "M0,-1.05L1,.75H-1Z",
    "M0,1.05L1,-.75H-1Z",
    "M-.35,-1H.35V-.35H1V.35H.35V1H-.35V.35H-1V-.35H-.35Z",
    "M1.05,0L-.75,1V-1Z",
    "M-1.05,0L.75,1V-1Z",
    "M-1,-.55L-.55,-1L0,-.45L.55,-1L1,-.55L.45,0L1,.55L.55,1L0,.45L-.55,1L-1,.55L-.45,0Z",
    "M0,-1.15L.3,-.36L1.1,-.36L.45,.14L.68,.95L0,.46L-.68,.95L-.45,.14L-1.1,-.36L-.3,-.36Z",
)
# Neutral inks of charts. Each is replaced by a variable of the page, so they must differ from every series colour.
INK, MUTED, GRID, FLOOR, GHOST = "#1c1d21", "#5c5f68", "#e4e5e9", "#3b3d44", "#cfd1d8"
NEUTRALS = {INK: "ink", MUTED: "muted", GRID: "grid", FLOOR: "floor", GHOST: "ghost"}
NEUTRALS_DARK = {"ink": "#e9eaee", "muted": "#a3a6b1", "grid": "#2b2e36", "floor": "#c6c8d0", "ghost": "#454954"}

_SALT = 187611  # chosen once, so that the layers of the first release take ten places without a collision


@dataclass(frozen=True, slots=True)
class Identity:
    """How a series looks: its place in the tables above, and dashes where places are used twice."""

    slot: int
    dashed: bool

    @property
    def light(self) -> str:
        """Colour on a light page, which is also the fallback."""
        return LIGHT[self.slot]

    @property
    def shape(self) -> str:
        """Outline of the marker."""
        return SHAPES[self.slot]


def identities(names: Iterable[str]) -> dict[str, Identity]:
    """Return a look for each name. A name keeps its look in every report, unless two names want the same one.

    The wanted place is a hash of the name alone, never its rank in the results; of two that want the same, the one
    later in the alphabet moves on to the next free place. Past ten series places are used again, with dashes.
    """
    taken: set[tuple[int, bool]] = set()
    looks: dict[str, Identity] = {}
    for name in sorted(set(names)):
        wanted = zlib.crc32(f"{_SALT}/{name}".encode()) % len(LIGHT)
        order = [((wanted + step) % len(LIGHT), dashed) for dashed in (False, True) for step in range(len(LIGHT))]
        slot, dashed = next((look for look in order if look not in taken), order[0])
        taken.add((slot, dashed))
        looks[name] = Identity(slot, dashed)
    return looks
