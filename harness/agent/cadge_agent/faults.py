# SPDX-License-Identifier: BSD-3-Clause
"""A thing that is wrong with a host, in words: what and where, and what to do."""

from __future__ import annotations

from cadge_agent.formats import Fault


def fault(about: str, text: str, fix: str, *, only_warn: bool = False) -> Fault:
    """Make one. `about`: what was looked at, in a word; text and fix are sentences without their full stops."""
    return {"about": about, "level": "warn" if only_warn else "fail", "text": text, "fix": fix}


def said(one: Fault) -> str:
    """Put it in one line."""
    return f"{one['text']}. {one['fix']}"


class FaultError(Exception):
    """What was asked for cannot be had, for this fault."""

    def __init__(self, one: Fault) -> None:
        super().__init__(said(one))
        self.fault = one
