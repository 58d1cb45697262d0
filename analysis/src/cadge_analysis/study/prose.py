# SPDX-License-Identifier: BSD-3-Clause
"""What a study says in words of its own: page.yml, paragraphs by the section of the page that they open.

`**so**` is strong, `` `so` `` a tag as published figures have. A paragraph is a text, or `{lede: text}`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Literal

import yaml
from pydantic import Field, ValidationError

from cadge_analysis.blocks.model import Block, Span, Text
from cadge_analysis.errors import BadInputError
from cadge_results import ResultsError
from cadge_results.formats.base import Frozen
from cadge_results.formats.complaint import explain
from cadge_results.plugins.catalogue import read_yaml

FILE = "page.yml"
Section = Literal[
    "answer",
    "matrix",
    "distance",
    "bill",
    "ablation",
    "features",
    "models",
    "ladder",
    "contrast",
    "own",
    "hypotheses",
    "grid",
    "shares",
    "semantics",
    "published",
    "provenance",
]
_MARKED = re.compile(r"\*\*(.+?)\*\*|`(.+?)`")


class Lede(Frozen):
    """The sentences that open a section."""

    lede: str = Field(min_length=1)


class Prose(Frozen):
    """The whole file. `ablation_title` and `ablation_short`: what its section, and the link to it, are called here."""

    ablation_title: str = ""
    ablation_short: str = "Ablation"
    sections: Mapping[Section, tuple[Lede | str, ...]] = Field(default_factory=dict)

    def of(self, section: Section) -> tuple[Block, ...]:
        """Return what opens a section."""
        return tuple(
            Text(_spans(one.lede), "lede") if isinstance(one, Lede) else Text(_spans(one))
            for one in self.sections.get(section, ())
        )


def _spans(text: str) -> tuple[Span, ...]:
    found, at = [], 0
    for marked in _MARKED.finditer(text):
        strong, tag = marked.groups()
        found += [Span(text[at : marked.start()]), Span(strong, strong=True) if strong else Span(tag, role="tag")]
        at = marked.end()
    return tuple(one for one in (*found, Span(text[at:])) if one.text)


def read(folder: Path) -> Prose:
    """Read the prose of the study in a folder. Raises BadInputError, which says what is wrong with it."""
    path = folder / FILE
    try:
        known = read_yaml(path.read_text(encoding="utf-8"))
        return Prose.model_validate_json(json.dumps(known))
    except OSError as error:
        raise BadInputError(f"{path} cannot be read: {error.strerror}") from error
    except ValidationError as error:
        raise BadInputError(f"{path}: {explain(error, Prose, known)}") from error
    except (UnicodeDecodeError, yaml.YAMLError, ResultsError) as error:
        raise BadInputError(f"{path}: {error}") from error
