# SPDX-License-Identifier: BSD-3-Clause
"""What a report was made with beside its campaign's records: who has both can make it again."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from datetime import UTC, datetime
from functools import cache, partial
from importlib import metadata
from pathlib import Path

import cadge_analysis
import cadge_results
from cadge_analysis import messages
from cadge_analysis.errors import BadInputError

say = partial(messages.say, "general")

_SOURCES = (".py", ".j2", ".css", ".js")


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportChoices:
    """The choices of whoever made a report; None where nothing was chosen.

    `title`: its own title. `baseline`: what layers are judged against in place of what the sweep declares. `against`
    and `margin`: the earlier campaign beside it, and the share within which both are the same. `epoch`: the time that
    it says it was made at, in seconds (SOURCE_DATE_EPOCH).
    """

    title: str | None = None
    baseline: str | None = None
    against: str | None = None
    margin: float | None = None
    epoch: int | None = None

    def stored(self) -> dict[str, object]:
        """Return it as a report embeds it, with the program that makes it."""
        chosen = {name: value for name, value in asdict(self).items() if value is not None}
        return {"version": version(), "program": program(), **chosen}

    @classmethod
    def of(cls, stored: Mapping[str, object]) -> ReportChoices:
        """Return the choices that a report embeds; what is of another kind than it should be counts as not chosen."""
        kinds = {"title": str, "baseline": str, "against": str, "margin": float, "epoch": int}
        found = {one.name: stored.get(one.name) for one in fields(cls)}
        return cls(**{name: value for name, value in found.items() if type(value) is kinds[name]})  # type: ignore[arg-type]


def version() -> str:
    """Return the version of the package, "unknown" where it was never installed."""
    try:
        return metadata.version("cadge")
    except metadata.PackageNotFoundError:
        return "unknown"


@cache
def program() -> str:
    """Return a digest of all that makes a report: between two releases the version says too little."""
    digest = hashlib.sha256()
    for package in (cadge_analysis, cadge_results):
        root = Path(package.__file__ or "").parent
        for path in sorted(path for path in root.rglob("*") if path.suffix in _SOURCES):
            content = path.read_bytes()
            name = f"{package.__name__}/{path.relative_to(root).as_posix()}"
            digest.update(f"{name}\0{len(content)}\0".encode() + content)
    return digest.hexdigest()[:16]


def epoch() -> int | None:
    """Return SOURCE_DATE_EPOCH, None where it is not set. Raises BadInputError."""
    text = os.environ.get("SOURCE_DATE_EPOCH")
    if text is None:
        return None
    try:
        datetime.fromtimestamp(int(text), UTC)
        return int(text)
    except (ValueError, OverflowError, OSError) as error:
        raise BadInputError(say("making.no_time", text=text)) from error
