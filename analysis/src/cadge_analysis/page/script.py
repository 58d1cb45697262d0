# SPDX-License-Identifier: BSD-3-Clause
"""The report's script: its text as it stands in the file, and the digest by which the file's policy allows it alone."""

from __future__ import annotations

import base64
import hashlib
from dataclasses import dataclass
from functools import partial

from markupsafe import Markup

from cadge_analysis import messages

say = partial(messages.say, "report")


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
        raise ValueError(say("script.not_ascii"))
    first, *rest = text.splitlines(keepends=True)
    text = first + "".join(line for line in rest if not line.lstrip().startswith(("//", "/**")))
    digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
    return Script(Markup(text), Markup(f"'sha256-{digest}'"))  # noqa: S704 - ours, and checked above
