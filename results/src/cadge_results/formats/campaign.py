# SPDX-License-Identifier: BSD-3-Clause
"""The campaign file: who measured what, when, with which command (`cadge.campaign/1`)."""

from __future__ import annotations

from typing import ClassVar, Literal, Self

from pydantic import Field, NonNegativeInt

from cadge_results.formats.base import Document, Frozen, Utc, digest_without
from cadge_results.formats.selftest import DIGEST, SelftestPin

CampaignStatus = Literal["running", "finished", "interrupted"]

CAMPAIGN_ID = r"^[0-9]{8}T[0-9]{6}Z-[0-9a-f]{8}$"


class TestbedFacts(Frozen):
    """The testbed's name, its kind (local, emulated, inventory) and the names of its hosts."""

    __test__ = False  # not a test class, whatever pytest makes of the name

    name: str
    kind: str
    hosts: tuple[str, ...]


class ToolFacts(Frozen):
    """Which cadge made the campaign; `dirty` where the checkout had changes that were not committed."""

    version: str
    revision: str
    dirty: bool


class PlanSize(Frozen):
    """How much was planned. `points` includes refused ones; `attempts` are points times launches."""

    points: NonNegativeInt
    attempts: NonNegativeInt
    launches: NonNegativeInt
    wall_s: float


class Redaction(Frozen):
    """Says that a published campaign is a copy from which names were taken, and layers that may not be published."""

    original_sha256: str = Field(pattern=DIGEST)
    """Of the campaign that it is a copy of: the digest over its files' digests, see `published.original_sha256`."""
    original_plan_hash: str = Field(pattern=DIGEST)
    replaced: dict[str, NonNegativeInt] = Field(default_factory=dict)
    """In how many places, by kind of name."""
    kept: tuple[str, ...] = ()
    """Kinds of names that were left on purpose."""
    withheld: dict[str, str] = Field(default_factory=dict)
    """Layers without their figures, and why."""
    logs: bool = Field(default=True, exclude_if=lambda value: value)
    """Whether what programs printed and users typed went out too: logs, command lines, PATH."""


class CampaignMeta(Document):
    """`campaign.json`: the only file of a campaign that changes, until the campaign is finished."""

    NAME: ClassVar[str] = "cadge.campaign"

    campaign_id: str = Field(pattern=CAMPAIGN_ID)
    created_utc: Utc
    finished_utc: Utc | None = None
    status: CampaignStatus
    sweep: str
    testbed: TestbedFacts
    seed: NonNegativeInt
    plan_hash: str
    tool: ToolFacts
    command: tuple[str, ...]
    planned: PlanSize
    problems: tuple[str, ...] = ()
    build: str | None = Field(default=None, pattern=DIGEST, exclude_if=lambda value: value is None)
    """Digest of the driver and of every built layer here, when it was begun."""
    selftest: SelftestPin | None = Field(default=None, exclude_if=lambda value: value is None)
    """What the newest self-test of this build said, or that of another where there was none, when it was begun."""
    redacted: Redaction | None = Field(default=None, exclude_if=lambda value: value is None)
    """Only in what was published."""
    checksum: str | None = Field(default=None, pattern=r"^[0-9a-f]{64}$")
    """SHA-256 of the rest. A campaign that was begun before files had checksums has none."""

    def sealed(self) -> Self:
        """Return it with the checksum of what it says now."""
        return self.model_copy(update={"checksum": digest_without("checksum", self.to_json())})

    def holds(self, stored: bytes) -> bool:
        """Say whether the file that it was read from is as it was written; True where there is no checksum."""
        return self.checksum is None or self.checksum == digest_without("checksum", stored)
