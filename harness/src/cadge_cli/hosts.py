# SPDX-License-Identifier: BSD-3-Clause
"""The hosts of an inventory side by side, for `cadge doctor` and `cadge plan`."""

from __future__ import annotations

import re
import shutil
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from pydantic import JsonValue

from cadge_cli.output import Output, table
from cadge_cli.words import say
from cadge_harness.paths import Checkout
from cadge_harness.plan.catalogue import read_catalogue
from cadge_harness.plan.patterns import ask_version
from cadge_harness.run.findings import HostFinding, needed_programs
from cadge_harness.run.host_findings import CODES, HostsSummary, OwnBuild, read_survey
from cadge_harness.run.survey import as_seen, survey
from cadge_harness.testbed.meeting import with_addresses
from cadge_harness.testbed.model import BY_AGENT, Testbed

VALUES_MOST = 4
"""Of what hosts differ in, so many values are shown."""
OF_RANKS = (CODES["memory"], CODES["mpirun"])
"""Codes of findings on what MPI needs of hosts."""
_WIDTH = 120
"""Where there is no terminal that says how wide it is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HostsAnswer:
    """What a look at the hosts gives to an answer: lines, data, findings."""

    lines: list[str]
    data: dict[str, JsonValue]
    findings: list[HostFinding]
    testbed: Testbed
    """With what a plan depends on, as far as it was seen."""


def look_at_hosts(
    testbed: Testbed,
    checkout: Checkout,
    output: Output,
    needed: Collection[str] | None = None,
    programs: Collection[str] | None = None,
    layers: Collection[str] | None = None,
) -> HostsAnswer:
    """Log in to all hosts of a testbed and return what they are; of one that is not `needed` it is only warned.

    programs: those beside the build that are looked for; None for all that patterns need. layers: those that are
    brought and looked at; None for all of the build.
    """
    reached = with_addresses(testbed)
    output.say(say("hosts.log_in", n=len(reached.hosts), file=reached.inventory_path))
    present = [info for info in read_catalogue(checkout).layers if info.absent is None]
    chosen = [info for info in present if layers is None or info.name in layers]
    wanted = tuple(one for one in needed_programs(checkout) if programs is None or one.program in programs)
    own = OwnBuild(
        driver=ask_version(checkout.driver) or {}, layers=frozenset(info.name for info in chosen), programs=wanted
    )
    by_ssh = any(info.file.launcher != "direct" for info in chosen) and reached.host_ssh[:1] != (BY_AGENT,)
    found = survey(reached, checkout.build, sorted({one.program for one in wanted}), layers, logins=by_ssh)
    return describe(read_survey(found, reached, own), as_seen(testbed, found), needed)


def describe(found: HostsSummary, testbed: Testbed, needed: Collection[str] | None = None) -> HostsAnswer:
    """Put what was found on hosts in lines and data."""
    findings = [
        replace(finding, level="warn")
        if needed is not None and host and host not in needed and finding.level == "fail"
        else finding
        for host, finding in found.findings
    ]
    return HostsAnswer(
        lines=side_by_side(found, shutil.get_terminal_size((_WIDTH, 0)).columns),
        data={"hosts": {host: {what: cells[host] for what, cells in found.rows} for host in found.hosts}},
        findings=findings,
        testbed=testbed,
    )


def side_by_side(found: HostsSummary, columns: int) -> list[str]:
    """Return a table with a column for each host where that is not wider than `columns`; else what is equal, once.

    Then, for what is not, each value with its hosts, as `clush -b` folds them: h[1-7] 3.11.2; h8 3.9.2.
    """
    rows: list[Sequence[str]] = [("", *found.hosts)]
    rows += [(what, *(cells[host] for host in found.hosts)) for what, cells in found.rows]
    lines = table(rows)
    if max(map(len, lines)) <= columns:
        return lines
    equal, unequal, same_versions = [], [], 0
    for what, cells in found.rows:
        by_value: dict[str, list[str]] = {}
        for host in found.hosts:
            by_value.setdefault(cells[host], []).append(host)
        if len(by_value) == 1 and what in found.packages:
            same_versions += 1
        elif len(by_value) == 1:
            equal.append((what, *by_value))
        else:
            unequal += _values(what, by_value)
    if same_versions:
        equal.append((say("hosts.packages"), say("hosts.same_versions", n=same_versions)))
    return [
        *(
            [say("hosts.equal", n=len(found.hosts), hosts=fold(found.hosts)), *table([("", ""), *equal])[1:]]
            if equal
            else []
        ),
        *(["", say("hosts.unequal"), *table([("", "", ""), *unequal])[1:]] if unequal else []),
    ]


def _values(what: str, by_value: Mapping[str, Sequence[str]]) -> list[tuple[str, str, str]]:
    """Return what hosts differ in, a line each value, the most common first; of many values the first ones.

    Where each host has a value of its own and these fold as names do, as addresses often do, that is one line.
    """
    each = fold([*by_value])
    if len(by_value) == sum(map(len, by_value.values())) > VALUES_MOST and each.count("[") == 1 and each[-1] == "]":
        return [(what, fold([hosts[0] for hosts in by_value.values()]), each)]
    ordered = sorted(by_value.items(), key=lambda item: -len(item[1]))
    lines = [(what if at == 0 else "", fold(hosts), value) for at, (value, hosts) in enumerate(ordered[:VALUES_MOST])]
    if len(ordered) > VALUES_MOST:
        lines.append(("", "", say("hosts.more_values", n=len(ordered) - VALUES_MOST)))
    return lines


def fold(names: Sequence[str]) -> str:
    """Return names in short: h[1-3,7],login for h1, h2, h3, h7, login."""
    numbers: dict[str, list[int]] = {}
    alone = []
    for name in names:
        match = re.fullmatch(r"(.*?)(0|[1-9]\d*)", name)
        if match is None:
            alone.append(name)
        else:
            numbers.setdefault(match[1], []).append(int(match[2]))
    folded = [f"{stem}[{_ranges(of)}]" if len(of) > 1 else f"{stem}{of[0]}" for stem, of in numbers.items()]
    return ",".join([*folded, *alone])


def _ranges(numbers: Sequence[int]) -> str:
    runs: list[list[int]] = []
    for number in sorted(numbers):
        if runs and number == runs[-1][-1] + 1:
            runs[-1].append(number)
        else:
            runs.append([number])
    return ",".join(str(run[0]) if len(run) == 1 else f"{run[0]}-{run[-1]}" for run in runs)


def finding_lines(findings: Sequence[HostFinding]) -> list[str]:
    """Return a line for each finding: how bad it is, its code, what is wrong and what to do."""
    rows = [(item.level, item.code, item.text + (f"   fix: {item.fix}" if item.fix else "")) for item in findings]
    return table([("", "", ""), *rows])[1:]
