# SPDX-License-Identifier: BSD-3-Clause
"""What forbids to compare two cells: another machine, other seats of their processes, other things measured.

Each is a sentence with what it was on either side. What may be the reason of a change (kernels, libraries, paths,
settings of the system) forbids nothing: it is told beside.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial

from cadge_analysis import messages
from cadge_analysis.page.parts.provenance import NODE_FACTS, plain
from cadge_analysis.stats.load import Cell
from cadge_analysis.stats.offered import unlike
from cadge_analysis.versus.sides import Side
from cadge_results import NodeFacts, PatternFile

say = partial(messages.say, "versus")

MACHINE = ("cpu", "cores", "virtualisation")
"""Facts of hosts which make them other machines."""
OF_THE_SYSTEM = frozenset({"microcode"})
"""Members of these which a new kernel or firmware changes; the machine is the same."""
ONE_MACHINE = frozenset({"local", "emulated"})
"""Testbeds whose hosts are this machine, whatever they are called."""

Seats = tuple[tuple[str, int], ...]


def forbids(first: Side, second: Side, ours: Cell, theirs: Cell, *, across_hosts: bool = False) -> str:
    """Return why two cells cannot be compared; empty where they can. `across_hosts`: other machines are meant to be."""
    return next(_reasons(first, second, ours, theirs, across_hosts=across_hosts), "")


def _reasons(first: Side, second: Side, ours: Cell, theirs: Cell, *, across_hosts: bool) -> Iterator[str]:
    yield from _of_patterns(ours.case.file, theirs.case.file)
    yield from filter(None, [unlike((ours, theirs))])
    here, there = first.hosts(ours), second.hosts(theirs)
    if here and there and _seats(here) != _seats(there):
        yield say("forbidden.spread_otherwise", here=_host_list(here), there=_host_list(there))
    if not across_hosts and first.data.campaign_id != second.data.campaign_id:
        yield from _of_machines(first, second, {host for _, host in here}, {host for _, host in there})


def _of_patterns(ours: PatternFile, theirs: PatternFile) -> Iterator[str]:
    one, other = ours.main_quantity, theirs.main_quantity
    if ours.main != theirs.main or (one.kind, one.unit, one.better) != (other.kind, other.unit, other.better):
        yield (
            say(
                "forbidden.measures_something_else",
                title=one.title,
                kind=one.kind,
                unit=one.unit,
                other_title=other.title,
                other_kind=other.kind,
                other_unit=other.unit,
            )
        )


def _seats(hosts: tuple[tuple[str, str], ...]) -> Seats:
    """Return the roles and, by numbers, which of them share a host."""
    known: dict[str, int] = {}
    return tuple((role, known.setdefault(host, len(known))) for role, host in hosts)


def _host_list(hosts: tuple[tuple[str, str], ...]) -> str:
    return ", ".join(f"{role} on {host}" for role, host in hosts)


def _of_machines(first: Side, second: Side, here: set[str], there: set[str]) -> Iterator[str]:
    kinds = {side.data.meta.testbed.kind for side in (first, second)}
    if not kinds <= ONE_MACHINE and here != there:
        yield say("forbidden.other_hosts", here=sorted(here), there=sorted(there))
    titles = dict(NODE_FACTS)
    for name in MACHINE:
        ours, theirs = _facts(first, here, name), _facts(second, there, name)
        if ours != theirs:
            yield say(
                "forbidden.another_machine",
                fact=titles[name],
                ours=" | ".join(ours),
                theirs=" | ".join(theirs),
            )


def _facts(side: Side, hosts: set[str], name: str) -> list[str]:
    """Return a fact of these hosts, each value once."""
    return sorted({plain(of_the_machine(node, name)) for node in side.data.nodes if node.host in hosts})


def of_the_machine(node: NodeFacts, name: str) -> object:
    """Return a fact of a host without what a new kernel changes."""
    value = getattr(node, name)
    if isinstance(value, Mapping):
        return {key: one for key, one in value.items() if key not in OF_THE_SYSTEM}
    return value


def other_parameters(side: Side, cell: Cell) -> str:
    """Return why a cell has no counterpart on a side whose pattern has other parameters; empty where it is not that."""
    case, file = cell.case, side.data.plan.patterns.get(cell.case.pattern)
    apart = set(case.file.parameters) ^ set(file.parameters) if file is not None else set()
    if not apart:
        return ""
    shared, place = set(case.file.parameters) - apart, side.key(cell)[:3]
    for key, other in side.cells.items():
        if key[:3] == place and other.case.pattern == case.pattern:
            values = other.case.workload
            if all(case.workload[name] == values[name] for name in shared):
                return say("forbidden.other_parameters", names=sorted(apart))
    return ""
