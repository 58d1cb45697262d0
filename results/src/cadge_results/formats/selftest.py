# SPDX-License-Identifier: BSD-3-Clause
"""The self-test file: what `cadge selftest` found out about the instrument on one machine (`cadge.selftest/1`).

It lies beside the campaigns, in a folder of its own, and never changes: `<selftest_id>.json` with its checksum. A
campaign keeps what counted of it when it was begun (`SelftestPin`), so that a report needs nothing but the campaign.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import ClassVar, Literal

from pydantic import Field, JsonValue

from cadge_results.errors import (
    Damage,
    DamagedError,
    FormatError,
    NotFoundError,
    SchemaTooNewError,
    SchemaTooOldError,
)
from cadge_results.formats.base import Document, Frozen, Utc, digest
from cadge_results.formats.node import NodeFacts
from cadge_results.store.checksum import Checksum, beside
from cadge_results.store.damage import look, misfit, unproven
from cadge_results.store.files import explained, put
from cadge_results.store.layout import stored

PartVerdict = Literal["passed", "failed", "not judged", "not made"]
"""Not judged: it was measured, and that was not enough to tell. Not made: nothing was measured."""
Overall = Literal["passed", "failed", "incomplete"]

SELFTEST_ID = r"^[0-9]{8}T[0-9]{6}Z-[0-9a-f]{8}$"
DIGEST = r"^[0-9a-f]{64}$"
FOLDER = "selftest"
MACHINE = ("cpu", "cores", "virtualisation", "kernel")
"""Facts of hosts by which a self-test is of this machine or of another one; another kernel makes it another."""
_OF_THE_SYSTEM = frozenset({"microcode"})

MachineFacts = dict[str, list[JsonValue]]


class BetweenCampaigns(Frozen):
    """How far campaigns of one machine lie apart, beyond what their launches explain: logarithms, of one campaign.

    Of cells of one place, wait mode and form of exchange. common: the standard deviation of what all series of a
    campaign have alike; spread: that of what a cell has beside. freedom: degrees of freedom of both.
    """

    place: str
    wait: str
    form: str

    common: float = Field(ge=0)
    spread: float = Field(ge=0)
    freedom: float = Field(gt=0)
    campaigns: int = Field(ge=2)


class SelftestPart(Frozen):
    """One part: what was planted or looked for, and what came."""

    name: str
    verdict: PartVerdict
    says: str
    """The finding in one sentence, with its figures."""
    figures: dict[str, JsonValue] = Field(default_factory=dict)
    campaigns: tuple[str, ...] = ()
    """Where its figures come from: ordinary campaigns, in the folder `campaigns` beside this file."""
    wall_s: float = Field(ge=0)


class _Identity(Frozen):
    """Of which machine and build a self-test is."""

    selftest_id: str = Field(pattern=SELFTEST_ID)
    finished_utc: Utc
    version: str
    """Of cadge."""
    build: str = Field(pattern=DIGEST)
    """Digest of the driver and of every built layer."""
    machine: MachineFacts
    verdict: Overall
    between: tuple[BetweenCampaigns, ...] = Field(default=(), exclude_if=lambda value: not value)
    """Of older self-tests, and of those without enough campaigns, it is not known."""


class SelftestPin(_Identity):
    """What a campaign keeps of the self-test that counted when it was begun."""

    parts: dict[str, PartVerdict]
    says: dict[str, str]
    asked: bool = Field(default=False, exclude_if=lambda value: not value)
    """Whether verdicts were to rest on this one: where it does not bear them, they are withheld."""


class SelftestFile(_Identity, Document):
    """A self-test, whole."""

    NAME: ClassVar[str] = "cadge.selftest"

    created_utc: Utc
    revision: str
    dirty: bool
    testbed: str
    parts: tuple[SelftestPart, ...]
    wall_s: float = Field(ge=0)

    def pin(self, *, asked: bool = False) -> SelftestPin:
        """Return what a campaign keeps of it."""
        return SelftestPin(
            selftest_id=self.selftest_id,
            finished_utc=self.finished_utc,
            version=self.version,
            build=self.build,
            machine=self.machine,
            verdict=self.verdict,
            between=self.between,
            parts={part.name: part.verdict for part in self.parts},
            says={part.name: part.says for part in self.parts},
            asked=asked,
        )


def overall(verdicts: Iterable[PartVerdict]) -> Overall:
    """Return the verdict on all parts: failed where one failed, passed where all passed."""
    found = list(verdicts)
    if "failed" in found:
        return "failed"
    return "passed" if found and all(one == "passed" for one in found) else "incomplete"


def machine_of(nodes: Iterable[NodeFacts]) -> MachineFacts:
    """Return what a machine, or those of a cluster together, is known by: each differing value once, in order."""

    def plain(value: JsonValue) -> JsonValue:
        if isinstance(value, dict):
            return {key: one for key, one in value.items() if key not in _OF_THE_SYSTEM}
        return value

    found = list(nodes)
    facts: MachineFacts = {}
    for name in MACHINE:
        each = {digest(one): one for one in (plain(getattr(node, name)) for node in found)}
        facts[name] = [each[key] for key in sorted(each)]
    return facts


def selftest_file(folder: Path, selftest_id: str) -> Path:
    """Return where a self-test lies."""
    return folder / f"{selftest_id}.json"


def put_selftest(folder: Path, found: SelftestFile) -> Path:
    """Store a self-test. Raises StoreFullError, StoreUnwritableError."""
    path = selftest_file(folder, found.selftest_id)
    content = found.to_json().encode()
    with explained(path):
        folder.mkdir(parents=True, exist_ok=True)
        put(beside(path), Checksum.of(content, path.name).line().encode(), mode=0o444)
        put(path, content, mode=0o444)
    return path


def read_selftest(path: Path) -> SelftestFile:
    """Read a self-test. Raises NotFoundError, SchemaTooNewError, SchemaTooOldError, DamagedError."""
    if not path.is_file():
        raise NotFoundError(f"{path} does not exist")
    content = look(path)
    if isinstance(content, Damage):
        raise DamagedError(content)
    if not content.proven:
        raise DamagedError(unproven(path))
    try:
        return SelftestFile.parse(content.data, source=str(path))
    except (SchemaTooNewError, SchemaTooOldError):
        raise
    except FormatError as error:
        raise DamagedError(misfit(path, content.data, str(error).removeprefix(f"{path}: "))) from error


def newest_selftest(folder: Path, *, build: str) -> SelftestFile | None:
    """Return the newest self-test of a build, else the newest of all; None where there is none that can be read.

    One in which parts were left out, or could not be judged, counts only where there is no other.
    """
    found: list[SelftestFile] = []
    for path in stored(folder, linked=True) if folder.is_dir() else ():
        try:
            found.append(read_selftest(path))
        except FormatError:  # of another version, or damaged: it says nothing
            continue

    def rank(one: SelftestFile) -> tuple[bool, bool, str, str]:
        return one.build == build, one.verdict != "incomplete", one.finished_utc, one.selftest_id

    return max(found, key=rank, default=None)
