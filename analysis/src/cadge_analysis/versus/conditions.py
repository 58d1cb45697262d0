# SPDX-License-Identifier: BSD-3-Clause
"""What differed between two sides besides what is compared: tool, testbed, hosts, libraries, paths."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from cadge_analysis.page.provenance import NODE_FACTS, plain
from cadge_analysis.stats.load import Dataset, LaunchFacts, launch_facts, without_numbers
from cadge_analysis.versus.sides import Side

MACHINE = frozenset({"cpu", "cores", "virtualisation"})
"""Facts of hosts which make them other machines."""
PASSING = frozenset({"memory", "namespaces", "interfaces"})
"""Facts that are of a moment: free memory, numbers of namespaces, counters."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """A condition and what it was on either side. `other_machine`: what is compared is machines then, not layers."""

    what: str
    first: str
    second: str
    other_machine: bool = False


def differences(first: Side, second: Side) -> tuple[Difference, ...]:
    """Return every condition that differed, that of the machines first. Nothing of one campaign with itself."""
    found = list(_of_campaigns(first.data, second.data)) if first.data.campaign_id != second.data.campaign_id else []
    found += _of_layers(first, second)
    return tuple(sorted(found, key=lambda one: not one.other_machine))


def _of_campaigns(first: Dataset, second: Dataset) -> Iterator[Difference]:
    said = [
        ("sweep", *(data.meta.sweep for data in (first, second))),
        ("testbed", *(f"{data.meta.testbed.kind} {data.meta.testbed.name}" for data in (first, second))),
        ("hosts", *(", ".join(data.meta.testbed.hosts) for data in (first, second))),
        ("cadge", *(_tool(data) for data in (first, second))),
        ("compiler", *(_compilers(data) for data in (first, second))),
    ]
    yield from (Difference(what=what, first=one, second=other) for what, one, other in said if one != other)
    for name, title in NODE_FACTS:
        if name in PASSING:
            continue
        ours, theirs = _facts(first, name), _facts(second, name)
        if ours != theirs:
            yield Difference(what=title, first=ours, second=theirs, other_machine=name in MACHINE)


def _tool(data: Dataset) -> str:
    tool = data.meta.tool
    return f"{tool.version} {tool.revision}{' with changes' if tool.dirty else ''}"


def _compilers(data: Dataset) -> str:
    return ", ".join(sorted({record.result.driver.compiler for record in data.records if record.result}))


def _facts(data: Dataset, name: str) -> str:
    """Return a fact of all hosts, once where they agree."""
    return " | ".join(dict.fromkeys(plain(getattr(node, name)) for node in data.nodes))


def _of_layers(first: Side, second: Side) -> Iterator[Difference]:
    ours, theirs = _by_layer(first), _by_layer(second)
    for key in sorted(ours.keys() & theirs.keys()):
        for what in ("library", "path"):
            one, other = ours[key][what], theirs[key][what]
            if one != other:
                yield Difference(what=f"{what} of {' '.join(filter(None, key))}", first=one, second=other)


def _by_layer(side: Side) -> Mapping[tuple[str, str, str], Mapping[str, str]]:
    found = {}
    for (series, place, wait), stated in launch_facts(side.data).items():
        if series.kind == "layer" and side.series in (None, series):
            label = "" if side.series else series.label
            found[label, place, wait] = {
                "library": " | ".join(dict.fromkeys(map(_library, stated))),
                "path": " | ".join(sorted({without_numbers(one.used) for one in stated})),
            }
    return found


def _library(facts: LaunchFacts) -> str:
    return f"{facts.library} {facts.version} {facts.build_id[:12]}".strip()
