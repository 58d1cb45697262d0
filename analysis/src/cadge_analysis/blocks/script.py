# SPDX-License-Identifier: BSD-3-Clause
"""What a report can do besides being read, and the digest by which the page's policy allows that script alone."""

from __future__ import annotations

import base64
import hashlib
from dataclasses import dataclass
from functools import cache, partial
from importlib.resources import files

from markupsafe import Markup

from cadge_analysis import messages

say = partial(messages.say, "report")


_PART = 65536
"""Characters of a text that is tidied at once, at least."""


def tidy(text: str) -> str:
    """Return a rendered page without indentation and empty lines."""
    found, at = [], 0
    while at < len(text):  # all its lines at once take three times its memory
        end = text.find("\n", at + _PART) + 1 or len(text)
        found.append("\n".join(line.strip() for line in text[at:end].splitlines() if line.strip()))
        at = end
    return "\n".join(filter(None, found)) + "\n"


@cache
def script() -> Script:
    """Return what a report can do besides being read, tidied already: its digest is of what stands in the file."""
    text = (files("cadge_analysis.blocks") / "templates" / "report.js").read_text("utf-8")
    return script_of(tidy(text).rstrip("\n"))


@dataclass(frozen=True, slots=True)
class Script:
    """`text` stands between its tags unchanged; `source` is what a Content-Security-Policy calls it (CSP 3, 2.3.1)."""

    text: Markup
    source: Markup


def script_of(text: str) -> Script:
    """Return a script of our own, of which no byte may change any more: its first line, and what is no comment.

    Raises ValueError where it would end its element, or where a reader of the file would see other characters.
    """
    if not text.isascii() or any(mark in text.lower() for mark in ("</script", "<!--", "\r")):
        raise ValueError(say("render.not_ascii"))
    first, *rest = text.splitlines(keepends=True)
    text = first + "".join(line for line in rest if not line.lstrip().startswith(("//", "/**")))
    digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
    return Script(Markup(text), Markup(f"'sha256-{digest}'"))  # noqa: S704 - ours, and checked above
