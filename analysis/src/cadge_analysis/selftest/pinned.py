# SPDX-License-Identifier: BSD-3-Clause
"""The self-test that a campaign keeps: whether it is of the same build and machine, how old it was, and what follows.

Everything is from the campaign's own files: a self-test that is made later changes no report.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial

from cadge_analysis import messages, units
from cadge_results import CampaignMeta, NodeFacts, SelftestPin
from cadge_results.formats.selftest import machine_of

say = partial(messages.say, "selftest")

_NAMES = {"cpu": "processor", "cores": "cores", "virtualisation": "virtualisation", "kernel": "kernel"}
_SHOWN = 12


@dataclass(frozen=True, slots=True, kw_only=True)
class SelftestMatch:
    """A campaign's self-test. `others`: in what it is of another build or machine; empty where it is of the same."""

    pin: SelftestPin
    others: tuple[str, ...]
    age_s: float
    """From its end to the beginning of the campaign."""

    @property
    def bears(self) -> bool:
        """Whether verdicts may rest on it."""
        return not self.others and self.pin.verdict == "passed"

    @property
    def warns(self) -> bool:
        """Whether it speaks against verdicts; one of which parts were left out does not, unless it was to bear them."""
        return bool(self.others) or self.pin.verdict == "failed" or (self.pin.asked and not self.bears)


def standing(meta: CampaignMeta, nodes: Sequence[NodeFacts]) -> SelftestMatch | None:
    """Return what a campaign keeps of a self-test; None where none had been made."""
    pin = meta.selftest
    if pin is None:
        return None
    others = [] if meta.build == pin.build else ["another build"]
    others += [f"another {_NAMES.get(name, name)}" for name in _other_facts(pin, nodes)]
    age = datetime.fromisoformat(meta.created_utc) - datetime.fromisoformat(pin.finished_utc)
    return SelftestMatch(pin=pin, others=tuple(others), age_s=age.total_seconds())


def is_of_this_machine(pin: SelftestPin, nodes: Sequence[NodeFacts]) -> bool:
    """Tell whether a self-test is of the machine of these hosts, with whatever build."""
    return not _other_facts(pin, nodes)


def _other_facts(pin: SelftestPin, nodes: Sequence[NodeFacts]) -> list[str]:
    here = machine_of(nodes)
    return [name for name, facts in pin.machine.items() if here.get(name) != facts]


def withholds(meta: CampaignMeta, nodes: Sequence[NodeFacts]) -> str:
    """Return why verdicts are withheld: the self-test that they were to rest on does not bear them; else empty."""
    found = standing(meta, nodes)
    if found is None or not found.pin.asked or found.bears:
        return ""
    return say("pinned.not_usable", selftest_id=found.pin.selftest_id, why=_wrong(found))


def sentence(meta: CampaignMeta, nodes: Sequence[NodeFacts]) -> str:
    """Say which self-test there was, of what, how old, and with what result."""
    found = standing(meta, nodes)
    if found is None:
        return say("pinned.none")
    pin = found.pin
    of = f"of {units.listing(found.others)}" if found.others else say("pinned.of_this_build")
    verdict = {"passed": "passed", "failed": "failed", "incomplete": "was incomplete"}[pin.verdict]
    parts = "; ".join(f"{name} {said}" for name, said in pin.parts.items())
    return say(
        "pinned.resting",
        selftest_id=pin.selftest_id,
        of=of,
        version=pin.version,
        build=pin.build[:_SHOWN],
        age=units.duration(found.age_s),
        verdict=verdict,
        parts=parts,
    )


def warning(meta: CampaignMeta, nodes: Sequence[NodeFacts]) -> tuple[str, str]:
    """Return title and text of what belongs on the first screen; empty where nothing does."""
    found = standing(meta, nodes)
    if found is None or not found.warns:
        return "", ""
    pin = found.pin
    title = f"The self-test {_wrong(found)}"
    text = say(
        "pinned.pinned",
        selftest_id=pin.selftest_id,
        how="asked for" if pin.asked else "the newest",
    )
    text += "".join(f" {pin.says.get(name, '')}." for name in _failed(found))
    text += " Verdicts are withheld." if pin.asked else " " + say("pinned.not_resting")
    return title, say("pinned.next_step", text=text)


def _failed(found: SelftestMatch) -> list[str]:
    return [name for name, verdict in found.pin.parts.items() if verdict == "failed"]


def _wrong(found: SelftestMatch) -> str:
    failed = _failed(found)
    said = [f"is of {units.listing(found.others)}"] if found.others else []
    said += [f"failed ({units.listing(failed)})"] if failed else []
    said += ["was incomplete"] if found.pin.verdict == "incomplete" else []
    return " and ".join(said)
