# SPDX-License-Identifier: BSD-3-Clause
"""How a site and its runs are to be cited: CITATION.cff (format 1.2.0), and the licence of the data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import yaml
from pydantic import JsonValue

from cadge_analysis.errors import BadInputError
from cadge_analysis.publish.model import LICENCES
from cadge_results.catalogue import read_yaml

_PERSON = {"family-names", "given-names", "name-particle", "name-suffix", "orcid", "affiliation", "email", "website"}
_ENTITY = {"name", "orcid", "website", "email", "address", "city", "country"}
NOBODY: tuple[dict[str, JsonValue], ...] = ({"name": "anonymous"},)


def authors_of(path: Path) -> tuple[dict[str, JsonValue], ...]:
    """Read authors from a YAML file: a list, or `authors: [...]`, as CITATION.cff has them. Raises BadInputError."""
    try:
        found = read_yaml(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise BadInputError(f"cannot read authors from {path}: {error}") from error
    listed = found.get("authors") if isinstance(found, dict) else found
    if not isinstance(listed, list) or not listed:
        raise BadInputError(f"{path}: a list of authors was expected, as in CITATION.cff: - family-names: ...")
    for number, one in enumerate(listed, 1):
        allowed = _ENTITY if isinstance(one, dict) and "name" in one else _PERSON
        if not isinstance(one, dict) or not one or not all(isinstance(value, str) for value in one.values()):
            raise BadInputError(f"{path}: author {number} has to be keys with text, as family-names and given-names")
        if unknown := sorted(set(one) - allowed):
            raise BadInputError(f"{path}: author {number}: CITATION.cff has no {', '.join(unknown)} here")
    return tuple(listed)


def citation(
    title: str,
    *,
    authors: Sequence[Mapping[str, JsonValue]],
    licence: str,
    released: str | None = None,
    identifier: str = "",
    tool: str = "",
) -> str:
    """Return a CITATION.cff of a data set. `released`: a day, as 2026-11-25; `tool`: the version of cadge."""
    document: dict[str, object] = {
        "cff-version": "1.2.0",
        "message": "If you use these data, please cite them as below.",
        "type": "dataset",
        "title": title,
        "authors": [dict(one) for one in authors] or [dict(one) for one in NOBODY],
        "license": licence,
        "keywords": ["benchmark", "communication layers"],
    }
    if identifier:
        text = "The identifier of the campaign."
        document["identifiers"] = [{"type": "other", "value": identifier, "description": text}]
    if released:
        document["date-released"] = released
    if tool:
        name = "Cadge: a comparative benchmark suite for user-space communication layers"
        document["references"] = [
            {"type": "software", "title": name, "authors": [{"name": "The Cadge authors"}], "version": tool}
        ]
    return yaml.safe_dump(document, sort_keys=False, allow_unicode=True, width=100)


def licence_text(licence: str) -> str:
    """Return LICENSE-DATA: under which terms the data may be used, apart from the licence of the programs."""
    name, address = LICENCES[licence]
    return (
        f"SPDX-License-Identifier: {licence}\n\n"
        "The reports, figures, records, summaries and other data of this site are licensed under\n"
        f"{name} ({licence}): {address}\n\n"
        "This is the licence of the data. Cadge, the program that made them, has its own: BSD-3-Clause.\n"
    )
