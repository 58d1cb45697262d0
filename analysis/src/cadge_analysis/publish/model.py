# SPDX-License-Identifier: BSD-3-Clause
"""What a site keeps of itself and of each run (`cadge.site/1`, `cadge.published/1`)."""

from __future__ import annotations

from functools import partial
from typing import ClassVar, Literal

from pydantic import Field, JsonValue

from cadge_analysis import messages
from cadge_analysis.blocks.ranked import Picture, PicturedQuestion
from cadge_results.formats.base import Document, Frozen
from cadge_results.formats.campaign import CAMPAIGN_ID

say = partial(messages.say, "publish")

Licence = Literal["CC-BY-4.0", "CC0-1.0"]
LICENCES: dict[str, tuple[str, str]] = {
    "CC-BY-4.0": (
        say("licences.attribution"),
        "https://creativecommons.org/licenses/by/4.0/legalcode",
    ),
    "CC0-1.0": (
        say("licences.zero"),
        "https://creativecommons.org/publicdomain/zero/1.0/legalcode",
    ),
}


URL = r"^https?://[^\s<>\"'`\\]+$"


class Retraction(Frozen):
    """Why a run is not to be relied on, and since when."""

    because: str = Field(min_length=1)
    at_utc: str


class PublishedRun(Document):
    """`run.json`: what the index says of a run. Of the rest the run's own files tell."""

    NAME: ClassVar[str] = "cadge.published"

    campaign_id: str = Field(pattern=CAMPAIGN_ID)
    title: str
    created_utc: str
    site: str
    layers: tuple[str, ...]
    withheld: dict[str, str] = Field(default_factory=dict)
    """Layers whose figures may not be published, and why."""
    headline: str
    picture: dict[str, JsonValue] | None = Field(default=None, exclude_if=lambda value: value is None)
    """The first ranked panels of its report."""
    validity: str
    redacted: bool
    original_sha256: str
    """Of the campaign as it was measured; see `redacted` in campaign.json."""
    licence: Licence
    bundle: str
    """The archive with everything, beside this file."""
    retracted: Retraction | None = Field(default=None, exclude_if=lambda value: value is None)

    @property
    def panels(self) -> tuple[PicturedQuestion, ...]:
        """The panels of its card."""
        return Picture.of(self.picture).questions if self.picture else ()


class SiteFile(Document):
    """`cadge-site.json`: marks a folder as a site of ours."""

    NAME: ClassVar[str] = "cadge.site"

    title: str
    licence: Licence = "CC-BY-4.0"
    authors: tuple[dict[str, JsonValue], ...] = ()
    """As CITATION.cff has them."""
    feed_id: str | None = Field(default=None, exclude_if=lambda value: value is None)
    """Of the feed, for good: a reader takes a feed with another id for another feed."""
    url: str | None = Field(default=None, pattern=URL, exclude_if=lambda value: value is None)
    """Where the site is read, if that was said."""
