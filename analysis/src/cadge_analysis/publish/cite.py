# SPDX-License-Identifier: BSD-3-Clause
"""How a site and its runs are to be cited: CITATION.cff (format 1.2.0), and the licence of the data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path

import yaml
from pydantic import JsonValue

from cadge_analysis import messages
from cadge_analysis.errors import BadInputError
from cadge_analysis.publish.model import LICENCES
from cadge_results.plugins.catalogue import read_yaml

say = partial(messages.say, "publish")

_PERSON = {"family-names", "given-names", "name-particle", "name-suffix", "orcid", "affiliation", "email", "website"}
_ENTITY = {"name", "orcid", "website", "email", "address", "city", "country"}
NOBODY: tuple[dict[str, JsonValue], ...] = ({"name": "anonymous"},)


def authors_of(path: Path) -> tuple[dict[str, JsonValue], ...]:
    """Read authors from a YAML file: a list, or `authors: [...]`, as CITATION.cff has them. Raises BadInputError."""
    try:
        found = read_yaml(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise BadInputError(say("cite.unreadable", path=path, error=error)) from error
    listed = found.get("authors") if isinstance(found, dict) else found
    if not isinstance(listed, list) or not listed:
        raise BadInputError(say("cite.no_list", path=path))
    for number, one in enumerate(listed, 1):
        allowed = _ENTITY if isinstance(one, dict) and "name" in one else _PERSON
        if not isinstance(one, dict) or not one or not all(isinstance(value, str) for value in one.values()):
            raise BadInputError(say("cite.author_without_keys", path=path, number=number))
        if unknown := sorted(set(one) - allowed):
            raise BadInputError(say("cite.unknown_keys", path=path, number=number, unknown=unknown))
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
        "message": say("cite.please_cite"),
        "type": "dataset",
        "title": title,
        "authors": [dict(one) for one in authors] or [dict(one) for one in NOBODY],
        "license": licence,
        "keywords": ["benchmark", "communication layers"],
    }
    if identifier:
        text = say("cite.identifier")
        document["identifiers"] = [{"type": "other", "value": identifier, "description": text}]
    if released:
        document["date-released"] = released
    if tool:
        name = say("cite.title")
        document["references"] = [
            {"type": "software", "title": name, "authors": [{"name": "The Cadge authors"}], "version": tool}
        ]
    return yaml.safe_dump(document, sort_keys=False, allow_unicode=True, width=100)


def licence_text(licence: str) -> str:
    """Return LICENSE-DATA: under which terms the data may be used, apart from the licence of the programs."""
    name, address = LICENCES[licence]
    return say("cite.licence", licence=licence, name=name, address=address) + "\n"
