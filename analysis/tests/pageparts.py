# SPDX-License-Identifier: BSD-3-Clause
"""What tests ask a report's document for, by the roles and ids of its blocks."""

from __future__ import annotations

from cadge_analysis.blocks.make import every, items_of, region_of
from cadge_analysis.blocks.model import Fact, Facts, Fold, Heading, PageDocument, Region, Remark, Remarks, Text
from cadge_analysis.page.pages import parts_of

sections = parts_of


def section(page: PageDocument, name: str) -> Region:
    """Return the section, or the region, of an id or a role."""
    found = region_of(page.blocks, name)
    assert found is not None, name
    return found


def headline(page: PageDocument) -> str:
    """Return how many warnings and notes there are, as said on the first screen."""
    return next(one.text for one in section(page, "banner").blocks if isinstance(one, Heading))


def limits(page: PageDocument) -> list[Remark]:
    """Return all warnings, and then all notes."""
    return [remark for one in every(page.blocks) if isinstance(one, Remarks) for remark in one.remarks]


def texts(page: PageDocument, role: str) -> list[str]:
    """Return the sentences of a role."""
    found = (one for one in every(page.blocks) if isinstance(one, Text) and one.role == role)
    return ["".join(span.text for span in one.spans) for one in found]


def listed(page: PageDocument, role: str) -> list[str]:
    """Return the items of the lists of a role."""
    return [item.text for item in items_of(page.blocks, role)]


def facts(page: PageDocument, name: str) -> tuple[Fact, ...]:
    """Return the facts of a section, or of a fold of a role."""
    found = (one for one in every(page.blocks) if isinstance(one, Fold) and one.role == name)
    blocks = next((one.blocks for one in found), None) or section(page, name).blocks
    return tuple(fact for one in blocks if isinstance(one, Facts) for fact in one.facts)
