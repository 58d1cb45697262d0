# SPDX-License-Identifier: BSD-3-Clause
"""What was moved aside: damaged files, and records of launches that are made again. Nothing of it is ever removed.

Each time has a folder of its own, `aside/<number>-<why>`, in which files lie as they lay in the campaign.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Literal, get_args

from cadge_results.store.checksum import beside
from cadge_results.store.files import explained, settle
from cadge_results.store.layout import Layout, check_no_link, stored, visible

Why = Literal["damaged", "failed", "disturbed", "alone"]
_FOLDER = re.compile(rf"(?P<number>[0-9]+)-(?P<why>{'|'.join(get_args(Why))})")


def move(layout: Layout, files: Iterable[Path], why: Why) -> Path:
    """Move files, each with its checksum, into a new folder, and return that. The campaign has to be held.

    A file goes before its checksum: one that is killed in between leaves the checksum of a launch that is missing.
    Raises StoreUnwritableError, StoreFullError, DamagedError where a link lies in the place of that.
    """
    check_no_link(layout.aside)
    number = max((int(found["number"]) for _, found in _folders(layout)), default=0) + 1
    folder = layout.aside / f"{number}-{why}"
    with explained(folder):
        folder.mkdir(parents=True)
        for file in files:
            target = folder / file.relative_to(layout.root)
            target.parent.mkdir(parents=True, exist_ok=True)
            for path, to in ((file, target), (beside(file), beside(target))):
                if path.is_symlink() or path.exists():
                    path.rename(to)
            settle(target.parent)
            settle(file.parent)
        settle(layout.aside)
    return folder


def launch_ids(layout: Layout) -> Mapping[Why, frozenset[str]]:
    """Return the launches of which a record lies aside, by why."""
    found: dict[Why, frozenset[str]] = {why: frozenset() for why in get_args(Why)}
    for folder, match in _folders(layout):
        why: Why = match["why"]  # type: ignore[assignment]  # one of them, as the expression says
        found[why] |= {path.stem for path in stored(Layout(folder).launches)}
    return found


def times(layout: Layout, why: Why) -> int:
    """Return how often something was moved aside for a reason."""
    return sum(match["why"] == why for _, match in _folders(layout))


def is_one(folder: Path) -> bool:
    """Say whether a folder is named as one of those."""
    return _FOLDER.fullmatch(folder.name) is not None


def _folders(layout: Layout) -> list[tuple[Path, re.Match[str]]]:
    every = ((path, _FOLDER.fullmatch(path.name)) for path in visible(layout.aside))
    return [(path, match) for path, match in every if match]
