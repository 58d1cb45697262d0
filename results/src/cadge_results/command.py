# SPDX-License-Identifier: BSD-3-Clause
"""Commands that a user is told to run: as the user calls cadge, with the options given so far that the command has.

    command("resume", campaign_id)  ->  cadge resume 20261121T013042Z-1f3a9c2e --results /data

The command line says once, when it begins, how it was called (`called`); whoever prints a command has no need to know.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field

WHERE = ("--results", "--inventory", "--testbed")
"""Options that say where something is: kept for every command that has them."""
WHAT = (
    "--sweep", "--layers", "--patterns", "--sizes", "--launches", "--duration", "--places", "--mode", "--seed",
    "--budget", "--looks", "--trace",
)  # fmt: skip
"""Options that say what is measured: kept for commands that name no campaign, which has all of this."""
_APART = (frozenset({"--inventory", "--testbed"}),)
"""Options of which one stands for the other."""


def _takes_none(_verb: str) -> Collection[str]:
    return ()


@dataclass(frozen=True, slots=True)
class Caller:
    """How cadge was called: the program, the words of each option that was given, and which options a command has."""

    program: str = "cadge"
    given: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    options_of: Callable[[str], Collection[str]] = _takes_none
    typed: tuple[str, ...] = ()
    """The words after the program, with the options that the environment gave."""


class _Process:
    """What is true of this process, in all its threads."""

    caller = Caller()


def called(caller: Caller) -> None:
    """Say how cadge was called."""
    _Process.caller = caller


def command(verb: str, *words: str) -> str:
    """Return a command line to paste. `words` are what is said beside the user's own options, and stand before them."""
    caller = _Process.caller
    kept = WHERE if any(not word.startswith("-") for word in _arguments(words)) else (*WHERE, *WHAT)
    said = {word for word in words if word.startswith("--")}
    for group in _APART:
        said |= group if said & group else set()
    takes = caller.options_of(verb)
    more = [word for name in kept if name in takes and name not in said for word in caller.given.get(name, ())]
    return " ".join([shlex.quote(caller.program), verb, *map(shlex.quote, (*words, *more))])


def typed() -> tuple[str, ...]:
    """Return the user's own command, without its program, as it can be typed where the environment is another."""
    return _Process.caller.typed


def typed_with(*words: str) -> str:
    """Return the user's own command line to paste, with further words."""
    return shlex.join((_Process.caller.program, *_Process.caller.typed, *words))


def _arguments(words: tuple[str, ...]) -> list[str]:
    """Return the words that are no option, and no option's value."""
    return [word for before, word in zip(("", *words), words, strict=False) if not before.startswith("--")]


def retold(line: str) -> str:
    """Return a command line as `command` makes it; one of another program stays as it is."""
    words = shlex.split(line)
    if words[:1] != ["cadge"] or len(words) == 1:
        return line
    group = len(words) > 2 and bool(_Process.caller.options_of(f"{words[1]} {words[2]}"))
    return command(" ".join(words[1:3]), *words[3:]) if group else command(words[1], *words[2:])
