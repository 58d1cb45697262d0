# SPDX-License-Identifier: BSD-3-Clause
"""Sentences that a reader sees, in catalogues: `NAME.yml` beside this file has those of one part of the pages.

A catalogue holds whole sentences with named values. How a value is written stands after its colon:

    {n:launch|launches}     12 launches: the number and its noun        {n:~is|are}      the form alone
    {n}                     1 234                                       {value:3}        three digits
    {share:%} {share:%0}    a part of one in percent, 0 to 3 digits     {ratio:x}        1.18 times
    {names:,} {names:;}     a list                                      {names:and}      a, b and c
    {n:d} {time:.1f}        1234 and 0.5, as Python writes them         {path} {error}   their text

A module says its sentences by `say = partial(messages.say, "NAME")`; a study's own code, which is loaded from its
folder, names the path of its catalogue instead. Code chooses between sentences; no sentence holds
a condition. `ci/check_messages.py` finds sentences that nobody says and values that nobody gives;
`analysis/tests/messages/NAME.txt` shows every sentence as it is read, with 0, 1, 2, many.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from string import Formatter
from typing import Any

from cadge_analysis import units
from cadge_results.plugins.catalogue import read_yaml

FOLDER = Path(__file__).parent


class _Sentence(Formatter):
    def format_field(self, value: Any, spec: str) -> str:  # noqa: ANN401 - whatever a sentence is given
        if isinstance(value, str):
            if spec:
                raise ValueError(f"a text has no form {spec!r}")
            return value
        if spec == "and":
            return units.listing(tuple(value))
        if spec in {",", ";"} and not isinstance(value, int):
            return f"{spec} ".join(value)
        if "|" in spec:
            one, many = spec.removeprefix("~").split("|")
            return (one if value == 1 else many) if spec.startswith("~") else units.count_of(value, one, many)
        if spec.startswith("%"):
            return units.percent(value, int(spec[1:] or 1))
        if not spec and not isinstance(value, int):
            return str(value)
        own = {"": units.grouped, "x": units.times, "3": units.sig3}.get(spec)
        return own(value) if own else format(value, spec)

    def check_unused_args(self, used_args: Any, args: Any, kwargs: Mapping[str, Any]) -> None:  # noqa: ANN401
        """Let a sentence leave values out."""


@cache
def catalogue(of: str | Path) -> dict[str, str]:
    """Return the sentences of a catalogue, by its name or its path, by their keys, `remark.title`."""
    path = of if isinstance(of, Path) else FOLDER / f"{of}.yml"
    return dict(_flat(read_yaml(path.read_text(encoding="utf-8"))))


def _flat(found: Mapping[str, Any], before: str = "") -> Iterator[tuple[str, str]]:
    for key, value in found.items():
        if isinstance(value, dict):
            yield from _flat(value, f"{before}{key}.")
        else:
            yield f"{before}{key}", value


_SENTENCE = _Sentence()


def say(of: str | Path, key: str, /, **values: object) -> str:
    """Return a sentence of a catalogue. Raises KeyError for one that is not there, or a value that it lacks."""
    return _SENTENCE.vformat(catalogue(of)[key], (), values)
