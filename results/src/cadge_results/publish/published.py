# SPDX-License-Identifier: BSD-3-Clause
"""A copy of a campaign that may be published: without names, without layers whose figures nobody may publish.

The copy is a campaign like any other: every file has its checksum, made anew, and the campaign file says `redacted`,
with a digest of the original, so that whoever has that can show which one it was. The plan's hash is that of the copy's
plan.
"""

from __future__ import annotations

import getpass
import hashlib
import json
import os
import re
import socket
import stat
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

from cadge_results.command import command
from cadge_results.errors import Damage, DamagedError, ResultsError
from cadge_results.formats.base import Document, digest_without
from cadge_results.formats.block import Block
from cadge_results.formats.campaign import CampaignMeta, Redaction
from cadge_results.formats.decision import Decision, LaterLook
from cadge_results.formats.imported import ImportedFile
from cadge_results.formats.native import NativeFile
from cadge_results.formats.node import NodeFacts
from cadge_results.formats.plan import Plan
from cadge_results.formats.record import LaunchRecord
from cadge_results.publish.redact import CampaignTexts, Names, Redactor, names_of
from cadge_results.store import aside
from cadge_results.store.campaigns import Campaign
from cadge_results.store.checksum import Checksum, beside
from cadge_results.store.damage import look
from cadge_results.store.layout import Layout, stored, visible
from cadge_results.store.verify import verify

Json = dict[str, Any]


class UnpublishableError(ResultsError):
    """The campaign cannot be published as it is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """What is taken out: `keep` are kinds of names that stay, `withheld` layers that may not be published, and why.

    `also` is further text to replace; `words` are words of programs and pages, which names may equal. `logs`: what
    programs printed goes too.
    """

    keep: Collection[str] = ()
    also: Collection[str] = ()
    withheld: Mapping[str, str] = field(default_factory=dict)
    words: Collection[str] = ()
    logs: bool = False


_MEASURED_BY = re.compile(
    r"(?:isolcpus|nohz\w*|rcu_\w+|irqaffinity|mitigations|no\w*(?:smt|spec\w*|pti)|spec\w*|pti|idle|\w*_idle\.max_cstate|\w*cstate"
    r"|intel_pstate|amd_pstate|cpufreq\.\w+|transparent_hugepage\w*|\w*hugepages\w*|tsc|clocksource|threadirqs|preempt"
    r"|\w*iommu\w*|numa\w*|skew_tick|maxcpus|nr_cpus|nosoftlockup|nmi_watchdog|audit|selinux|apparmor)(?:=[\w.,:+/-]*)?"
)
"""Parameters of a kernel that change times. Of all others (root, boot devices, consoles) nobody needs to know."""
LEFT_OUT = "(left out)"


def _without_free_text(kind: type[Document], content: Json, words: Collection[str]) -> Json:
    """Return a document without what programs printed and users typed: nobody can find every secret in that."""
    if kind is LaunchRecord:
        kept = [host | {"variables": {name: value for name, value in host["variables"].items() if name != "PATH"}}
                for host in content.get("environment", ())]  # fmt: skip
        return content | ({"log_tail": []} if "log_tail" in content else {}) | ({"environment": kept} if kept else {})
    if kind is NodeFacts and isinstance(line := content.get("cmdline"), str):
        return content | {"cmdline": " ".join(one for one in line.split() if _MEASURED_BY.fullmatch(one))}
    if kind is NativeFile:
        return content | {"readings": [one | {"command": "", "printed": ""} for one in content.get("readings", ())]}
    if kind is Block and "mpirun" in content:
        return content | {"mpirun": content["mpirun"] | {"ssh": []}}
    if kind is CampaignMeta:
        return content | {"command": [_typed(one, words) for one in content["command"]]}
    return content


def _typed(argument: str, words: Collection[str]) -> str:
    """Return an argument of a command where it is of our own words, options and numbers; else that it is left out."""
    name = Path(argument).name if "/" in argument else argument
    parts = [one for one in re.split(r"[^A-Za-z0-9]+", name) if one]
    ours = all(one in words or re.fullmatch(r"\d+[A-Za-z]{0,3}", one) for one in parts)
    return name if ours else LEFT_OUT


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedCopy:
    """What was made: the copy, the redactor with what it replaced, and the layers without their figures."""

    campaign: Campaign
    redactor: Redactor
    withheld: Mapping[str, str]
    logs: bool


def original_sha256(campaign: Campaign) -> str:
    """Return the digest of the lines that sha256sum prints of a campaign's documents, by name.

    The same as: find . -type f ( -name '*.json' -o -name sweep.yml -o -name trace.bin ) -not -path './aside/*'
    | LC_ALL=C sort | xargs sha256sum | sha256sum
    """
    lines = (f"{hashlib.sha256(path.read_bytes()).hexdigest()}  ./{name}\n" for name, path in _documents(campaign))
    return hashlib.sha256("".join(lines).encode()).hexdigest()


def _documents(campaign: Campaign) -> list[tuple[str, Path]]:
    layout = campaign.layout
    every = [path for path in _regular_files(layout.root) if layout.aside not in path.parents]
    named = sorted((str(path.relative_to(layout.root)), path) for path in every)
    return [(name, path) for name, path in named if path.suffix == ".json" or path in {layout.sweep, layout.trace}]


def _regular_files(root: Path) -> list[Path]:
    """Return the regular files below a folder, by name. No link is followed."""
    every = (Path(folder, name) for folder, _, names in os.walk(root) for name in names)
    return sorted(path for path in every if stat.S_ISREG(path.lstat().st_mode))


def _sources(campaign: Campaign, rules: Rules) -> Iterator[Path]:
    """Yield every file of which something may go out, but for what lies aside."""
    layout = campaign.layout
    yield from (layout.meta, layout.plan, layout.sweep)
    optional = (layout.trace, layout.native, *((layout.log,) if rules.logs else ()))
    yield from (path for path in optional if os.path.lexists(path))
    for folder in (layout.nodes, layout.launches, layout.imported, layout.decisions, layout.later):
        yield from stored(folder)
    yield from (folder / "block.json" for folder in visible(layout.blocks))


def _aside(campaign: Campaign) -> Iterator[Path]:
    """Yield the records of planned launches that lie aside: reports count them, and read nothing else there."""
    planned = {one.launch_id for one in campaign.plan.launches}
    for folder in visible(campaign.layout.aside):
        if aside.is_one(folder):
            yield from (path for path in stored(Layout(folder).launches) if path.stem in planned)


def _proven(campaign: Campaign, path: Path) -> bytes:
    """Return what a file held when it was stored. Raises DamagedError, and UnpublishableError where nothing says so.

    A campaign may come from a stranger. What he put in its place, he can have no checksum of unless he knows it.
    """
    found = look(path, campaign.layout.root)
    if isinstance(found, Damage):
        raise DamagedError(found)
    if not found.proven and (path != campaign.layout.meta or campaign.meta.checksum is None):
        name = campaign.layout.named(path)
        raise UnpublishableError(f"{name} of {campaign.path.name} has no checksum, so that it may be any file of yours")
    return found.data


def names(campaign: Campaign, rules: Rules) -> Names:
    """Read all of a campaign for the names in it; those of this machine and of who publishes are looked for as well.

    Raises DamagedError, UnpublishableError.
    """
    gathered = CampaignTexts()
    aliases: dict[str, str] = {}
    for path in _sources(campaign, rules):
        content = _proven(campaign, path)
        if path.suffix == ".json":
            gathered.value(found := json.loads(content))
            aliases |= _own_name(found) if path.parent == campaign.layout.nodes else {}
        elif path != campaign.layout.trace:
            gathered.text(content.decode(errors="replace"))
    for path in _aside(campaign):
        with suppress(ResultsError, ValueError):
            gathered.value(json.loads(_proven(campaign, path)))
    hosts = [*campaign.meta.testbed.hosts, *(path.stem for path in stored(campaign.layout.nodes))]
    hosts += [one.host for one in campaign.imported() if one.host]
    aliases |= _this_machine()
    return names_of(gathered, hosts, aliases=aliases, users=_self(), also=rules.also, words=rules.words)


def _own_name(facts: Json) -> dict[str, str]:
    """Return what a host's kernel calls it, where its facts say so."""
    name = facts.get("nodename")
    return {name: str(facts.get("host"))} if isinstance(name, str) else {}


def own_names(words: frozenset[str]) -> Names:
    """Return the names of this machine and of who sits at it, for a text of no campaign. `words` are no names."""
    return Names(hosts=(), aliases=_this_machine(), users=_self(), words=words)


def _this_machine() -> dict[str, str]:
    """Return the names of this machine: what the kernel says, and what its resolver makes of that."""
    own = socket.gethostname()
    return {name: own for name in (own, socket.getfqdn()) if name}


def _self() -> tuple[str, ...]:
    """Return who publishes, and who that was before sudo."""
    found = [os.environ.get("SUDO_USER", "")]
    with suppress(OSError, KeyError):  # of a number that no user has
        found.append(getpass.getuser())
    return tuple(dict.fromkeys(one for one in found if one))


def copy(campaign: Campaign, target: Path, rules: Rules) -> PublishedCopy:
    """Write the copy into a folder that is not there. Raises UnpublishableError, DamagedError, OSError."""
    found = verify(campaign)
    if found.damages:
        raise DamagedError(found.damages[0])
    redactor = Redactor(names(campaign, rules), rules.keep)
    return _Copy(campaign, target, redactor, rules).made()


class _Copy:
    def __init__(self, campaign: Campaign, target: Path, redactor: Redactor, rules: Rules) -> None:
        self.old, self.new = campaign.layout, Layout(target)
        self.campaign, self.redactor = campaign, redactor
        plan = campaign.plan
        planned = {point.subject.layer for point in plan.points if point.subject.kind == "layer"}
        self.withheld = {name: why for name, why in rules.withheld.items() if name in planned}
        self.points = {one.point_id for one in plan.points if one.subject.layer in self.withheld}
        self.launches = {one.launch_id for one in plan.launches if one.subject.layer in self.withheld}
        self.keep, self.logs = rules.keep, rules.logs
        if self.withheld and campaign.decisions():
            raise UnpublishableError(
                f"what was decided at the looks of {campaign.campaign_id} rests on {', '.join(self.withheld)}, which "
                "may not be published; measure again without it",
                commands=(command("run", *(part for name in self.withheld for part in ("--without", name))),),
            )

    def made(self) -> PublishedCopy:
        """Write everything, the campaign file last. Raises UnpublishableError, DamagedError."""
        for folder in (self.new.root, self.new.nodes, self.new.launches, self.new.blocks):
            folder.mkdir(parents=True)
        self._text(self.old.sweep, self.new.sweep)
        if self.old.trace.exists():
            self._put(self.new.trace, _proven(self.campaign, self.old.trace))
        plan = self._plan()
        for host in stored(self.old.nodes):
            facts = self._read(host, NodeFacts)
            self._document(self.new.node(self.redactor.host(host.stem)), NodeFacts, facts)
        for folder in visible(self.old.blocks):
            self._block(folder / "block.json")
        for path in stored(self.old.launches):
            if path.stem not in self.launches:
                self._document(self.new.launch(path.stem), LaunchRecord, self._read(path, LaunchRecord))
        if self.old.native.exists():
            self._native()
        if self.old.imported.exists():
            for path in stored(self.old.imported):
                self._document(self.new.imported_file(path.stem), ImportedFile, self._read(path, ImportedFile))
        self._aside()
        self._looks(plan["plan_hash"])
        if self.logs and os.path.lexists(self.old.log):
            self._text(self.old.log, self.new.log)
        self._meta(plan)
        self._check_names()
        return PublishedCopy(
            campaign=Campaign(self.new.root), redactor=self.redactor, withheld=self.withheld, logs=self.logs
        )

    def _read(self, path: Path, kind: type[Document]) -> Json:
        """Return a document as it is stored. Raises UnpublishableError, DamagedError, FormatError."""
        stored = _proven(self.campaign, path)
        kind.parse(stored, source=self.campaign.layout.named(path))
        content = cast(Json, json.loads(stored))
        return content if self.logs else _without_free_text(kind, content, self.redactor.names.words)

    def _put(self, path: Path, content: bytes) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        beside(path).write_text(Checksum.of(content, path.name).line(), encoding="utf-8")

    def _document(self, path: Path, kind: type[Document], content: Json) -> None:
        self._put(path, as_stored(kind, cast(Json, self.redactor.value(content))))

    def _lines(self, text: str) -> str:
        """Redact line by line, as messages name lines."""
        return "".join(self.redactor.text(line) for line in text.splitlines(keepends=True))

    def _text(self, old: Path, new: Path) -> None:
        self._put(new, self._lines(_proven(self.campaign, old).decode(errors="replace")).encode())

    def _plan(self) -> Json:
        plan = self._read(self.old.plan, Plan)
        for point in plan["points"]:
            if point["point_id"] in self.points:
                why = self.withheld[point["subject"]["layer"]]
                point |= {"state": "refused", "reason": f"not published: {why}", "reason_code": None}
        made = cast(Json, self.redactor.value(self._without_withheld(plan)))
        made["plan_hash"] = digest_without("plan_hash", json.dumps(made))
        self._put(self.new.plan, as_stored(Plan, made))
        return made

    def _without_withheld(self, plan: Json) -> Json:
        """Return a plan, or what was planned after it, without the launches of withheld layers."""
        blocks = [
            block | {"launch_ids": [one for one in block["launch_ids"] if one not in self.launches]}
            for block in plan["blocks"]
        ]
        return plan | {
            "launches": [one for one in plan["launches"] if one["launch_id"] not in self.launches],
            "blocks": [block for block in blocks if block["launch_ids"]],
        }

    def _block(self, path: Path) -> None:
        block = self._read(path, Block)
        block["launches"] = [one for one in block["launches"] if one["launch_id"] not in self.launches]
        if block["launches"]:
            self._document(self.new.block(path.parent.name), Block, block)

    def _native(self) -> None:
        """Leave out tools that ran beside a withheld layer: what they print are its library's figures."""
        native = self._read(self.old.native, NativeFile)
        cells = {one["cell_id"] for one in native["cells"] if one["point_id"] in self.points}
        for name in ("cells", "readings"):
            native[name] = [one for one in native[name] if one["cell_id"] not in cells]
        self._document(self.new.native, NativeFile, native)

    def _aside(self) -> None:
        """Copy launches that were moved aside; what is damaged or unproven cannot be redacted."""
        for path in _aside(self.campaign):
            if path.stem in self.launches:
                continue
            try:
                content = self._read(path, LaunchRecord)
            except (ResultsError, ValueError):
                content = {"not_published": "it is damaged, so that names in it cannot be found"}
            self._document(self.new.root / path.relative_to(self.old.root), LaunchRecord, content)

    def _check_names(self) -> None:
        """Refuse files of which one would overwrite another on a file system that knows no case."""
        known: dict[str, str] = {}
        for name, _ in document_paths(Campaign(self.new.root)):
            if (other := known.setdefault(name.lower(), name)) != name:
                raise UnpublishableError(f"{name} and {other} differ by case alone; some file systems hold only one")

    def _looks(self, plan_hash: str) -> None:
        """Write decisions and later looks, each with the digests of what they were made from here."""
        copied = Campaign(self.new.root)
        number = 0
        while (old := self.old.decision(number + 1)).exists():
            number += 1
            decision = self._read(old, Decision) | {"plan_hash": plan_hash}
            count, digest = self._records(copied, decision["launches"])
            self._document(self.new.decision(number), Decision, decision | {"records": count, "records_sha256": digest})
            later = self.old.later_look(number + 1)
            if later.exists():
                sha = hashlib.sha256(self.new.decision(number).read_bytes()).hexdigest()
                self._later(later, {"plan_hash": plan_hash, "decision_sha256": sha})
                copied.grown()
        added = stored(self.old.later) if not number and copied.stored_plan.launches else []  # after no decision
        for later in added:
            self._later(later, {"plan_hash": plan_hash})

    def _later(self, path: Path, changes: Json) -> None:
        part = self._without_withheld(self._read(path, LaterLook) | changes)
        self._document(self.new.later / path.name, LaterLook, part)

    def _records(self, copied: Campaign, rounds: int) -> tuple[int, str]:
        have = frozenset(path.stem for path in stored(self.new.launches))
        names = sorted(
            one.launch_id for one in self.campaign.plan.launches if one.round < rounds and one.launch_id in have
        )
        lines = (f"{hashlib.sha256(copied.layout.launch(name).read_bytes()).hexdigest()}  {name}\n" for name in names)
        return len(names), hashlib.sha256("".join(lines).encode()).hexdigest()

    def _meta(self, plan: Json) -> None:
        meta = self._read(self.old.meta, CampaignMeta)
        before = meta.get("redacted")
        meta["plan_hash"] = plan["plan_hash"]
        if self.withheld:
            lost = [one for one in self.campaign.stored_plan.launches if one.launch_id in self.launches]
            meta["planned"]["launches"] -= len(lost)
            attempts = sum(len(one.point_ids) for one in lost)
            meta["planned"]["attempts"] = max(0, meta["planned"]["attempts"] - attempts)
            says = (meta.get("selftest") or {}).get("says", {})
            for part, text in says.items():
                if any(name in text for name in self.withheld):
                    says[part] = "not published: it has figures of a layer that may not be published"
        made = cast(Json, self.redactor.value(meta))
        counted: Counter[str] = Counter()
        for (category, _, _), often in self.redactor.places.items():
            counted[category] += often
        if counted or self.withheld or not self.logs:
            made["redacted"] = before or Redaction(
                original_sha256=original_sha256(self.campaign),
                original_plan_hash=self._read(self.old.plan, Plan)["plan_hash"],
                replaced=dict(sorted(counted.items())),
                kept=tuple(sorted(self.keep)),
                withheld=dict(self.withheld),
                logs=self.logs,
            ).model_dump(mode="json")
        made.pop("checksum", None)
        sealed = CampaignMeta.from_object(made, source="campaign.json").sealed()
        self.new.meta.write_text(sealed.to_json(), encoding="utf-8")


def as_stored(kind: type[Document], content: Json) -> bytes:
    """Return a document's bytes as the store writes them; only what was changed differs."""
    separators = (",", ":") if kind.INDENT is None else None
    return (json.dumps(content, indent=kind.INDENT, separators=separators, ensure_ascii=False) + "\n").encode()


def document_paths(campaign: Campaign) -> Iterator[tuple[str, Path]]:
    """Yield every file of a copy by its name there: documents, checksums, log, and what lies aside."""
    root = campaign.layout.root
    for path in _regular_files(root):
        if not path.name.startswith("."):
            yield str(path.relative_to(root)), path
