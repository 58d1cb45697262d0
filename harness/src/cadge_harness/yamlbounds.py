# SPDX-License-Identifier: BSD-3-Clause
"""How much a YAML file may hold. What is beyond that is no file of ours but a mistake, or malice.

Looked at as the parser's events come, before anything is built of them: a few hundred bytes of aliases can stand for
more values than there is memory, and a few thousand brackets for a deeper recursion than the stack holds.
"""

from __future__ import annotations

from dataclasses import dataclass

import yaml

from cadge_harness.errors import UsageError

DIGITS_MAX = 20
"""Digits of a number: enough for 64 bits. To read one takes time with the square of its digits."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """The most that a file may hold; the largest of ours has 3 KB and 400 values."""

    text_bytes: int = 256 * 1024
    depth: int = 32
    values: int = 10_000
    """Keys, values, lists and mappings; each alias counts as what it stands for."""


OWN = Bounds()
INVENTORY = Bounds(text_bytes=64 * 2**20, depth=100, values=1_000_000)
"""An inventory may be a company's, of which group `cadge` is a small part."""


@dataclass(slots=True)
class _Open:
    """A list or mapping that has begun: what it holds so far, and how many levels lie in it."""

    anchor: str | None
    values: int = 1
    height: int = 0

    def take(self, values: int, height: int) -> None:
        """Count what stands in it."""
        self.values += values
        self.height = max(self.height, height + 1)


def check_bytes(count: int, *, source: str, bounds: Bounds = OWN) -> None:
    """Refuse a text that is too large. Raises UsageError."""
    if count > bounds.text_bytes:
        raise UsageError(f"{source}: larger than {bounds.text_bytes} bytes, which is the limit")


def check_bounds(text: str, *, source: str, loader: type[yaml.SafeLoader], bounds: Bounds = OWN) -> None:
    """Refuse a text that holds too much, with line and column. Raises UsageError, yaml.YAMLError."""
    check_bytes(len(text), source=source, bounds=bounds)
    opened: list[_Open] = [_Open(None)]
    anchored: dict[str, tuple[int, int]] = {}
    total = 0
    for event in yaml.parse(text, Loader=loader):
        values = height = 0
        match event:
            case yaml.CollectionStartEvent():
                opened.append(_Open(event.anchor))
                total += 1
            case yaml.CollectionEndEvent():
                done = opened.pop()
                values, height = done.values, done.height
                if done.anchor is not None:
                    anchored[done.anchor] = values, height
                opened[-1].take(values, height)
            case yaml.AliasEvent():
                # One that is not there yet stands inside itself, which is refused later.
                values, height = anchored.get(event.anchor or "", (1, 0))
                total += values
                opened[-1].take(values, height)
            case yaml.ScalarEvent():
                if event.anchor is not None:
                    anchored[event.anchor] = 1, 0
                total += 1
                opened[-1].take(1, 0)
            case _:
                continue
        mark = event.start_mark
        where = f"{source}:{mark.line + 1}:{mark.column + 1}" if mark else source
        if len(opened) - 1 + height > bounds.depth:
            raise UsageError(f"{where}: nested more than {bounds.depth} deep")
        if total > bounds.values:
            raise UsageError(
                f"{where}: more than {bounds.values} values, where each alias counts as what it stands for"
            )
