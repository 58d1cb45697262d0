# SPDX-License-Identifier: BSD-3-Clause
"""Where the numbers come from: campaign, tool, hosts, libraries, clocks, pinning, and how to make them again."""

from __future__ import annotations

import json
import re
import shlex
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from functools import partial

from cadge_analysis import messages, units, words
from cadge_analysis.blocks.make import plain_table, words_cell
from cadge_analysis.blocks.model import Fact, Key, Table, TableCell, TableLine
from cadge_analysis.stats import intervals
from cadge_analysis.stats.compare import Comparison
from cadge_analysis.stats.floors import Floor, Group
from cadge_analysis.stats.launch_facts import LaunchFacts, distinct_paths
from cadge_analysis.stats.load import Dataset, Series
from cadge_results.command import command as command_of_user

say = partial(messages.say, "report")

STEERING = ("LD_LIBRARY_PATH", "OPAL_PREFIX")
"""Variables of the inventory that say which libraries are used; the values of the others are of no interest."""

NODE_FACTS = (
    ("nodename", say("provenance.nodename")),
    ("kernel", "kernel"),
    ("cmdline", "kernel command line"),
    ("cpu", "processor"),
    ("cores", "cores"),
    ("mitigations", "mitigations"),
    ("governor", "frequency governor"),
    ("frequency", "frequency (kHz)"),
    ("quota", say("provenance.quota")),
    ("autogroup", say("provenance.autogroup")),
    ("virtualisation", "virtualisation"),
    ("clocksource", "clock source"),
    ("tsc", "TSC"),
    ("memory", "memory"),
    ("hugepages", "huge pages"),
    ("thp", "transparent huge pages"),
    ("libc", "C library"),
    ("python", "Python"),
    ("libraries", "libraries"),
    ("programs", say("provenance.programs")),
    ("configuration", say("provenance.configuration")),
    ("namespaces", "namespaces"),
    ("limits", "limits"),
    ("interfaces", "interfaces"),
    ("yama", "ptrace scope"),
    ("can", "permitted"),
)
_UNNAMED = re.compile(r"(?<![^ ;])\?: ")
_WHERE_NEEDED = {"programs", "configuration", "nodename", "frequency", "quota"}
"""Facts that a campaign has only where a point asks for them, or since late: no row where there is nothing."""


def plain(value: object) -> str:
    """Return a stored fact for people: nested objects as `name: value`, an unknown one with its reason."""
    if value is None:
        return "not stored"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, Mapping):
        if set(value) == {"unknown"}:
            return f"unknown: {value['unknown']}"
        return "; ".join(f"{key}: {_inner(item)}" for key, item in value.items()) or "none"
    if isinstance(value, list | tuple):
        return ", ".join(plain(item) for item in value) or "none"
    return str(value)


def _inner(value: object) -> str:
    text = plain(value)
    return f"({text})" if isinstance(value, Mapping) and set(value) != {"unknown"} else text


def moment(text: str) -> datetime:
    """Return a stored UTC time."""
    return datetime.fromisoformat(text)


def title(data: Dataset) -> str:
    """Return the report's own title: what was compared, and where something was measured, if anything was."""
    cells = [cell for cell in data.cells if cell.samples] or data.cells
    if not cells:  # hosts are compared, not layers
        return data.plan.title or say("provenance.pairs_title")
    places = [words.PLACES[p] for p in words.PLACE_ORDER if any(c.case.place == p for c in cells)]
    return f"Communication layers compared, {units.listing(places)}"


def deck(data: Dataset, on_pairs: int = 0) -> str:
    """Return the line under the title: what, where, when. on_pairs: layers that ran over pairs of hosts."""
    meta = data.meta
    created = moment(meta.created_utc)
    until = ""
    if meta.finished_utc:
        until = f", {units.duration((moment(meta.finished_utc) - created).total_seconds())}"
    launches = units.count_of(data.rounds, "launch", "launches")
    if data.looks is not None and data.rounds > data.looks.looks[0]:
        launches = f"{data.looks.looks[0]} to {launches}"
    machines = _machines(data)
    measured = {cell.series for cell in data.cells if cell.series.kind == "layer" and cell.samples}
    return say(
        "provenance.summary",
        layers=_of_all(len(measured), len(data.layers), "layer") if data.layers else units.count_of(on_pairs, "layer"),
        launches=launches,
        testbed=words.isolated(meta.testbed.name),
        hosts=_hosts(data),
        parted=", " if machines else "",
        machines=machines,
        sweep=words.isolated(meta.sweep),
        day=units.day(created),
        time=f"{created:%H:%M}",
        until=until,
    )


def _hosts(data: Dataset) -> str:
    """Return how many hosts were measured on, and of how many where others were not."""
    every = data.meta.testbed.hosts
    used = data.plan.hosts_used(every) or every
    return _of_all(len(used), len(every), "host")


def _of_all(some: int, every: int, what: str) -> str:
    """Return how many there are, and of how many where others did not take part."""
    count = units.count_of(every, what)
    return count if some == every else f"{units.grouped(some)} of {count}"


def _machines(data: Dataset) -> str:
    """Return how many processors there are, and of what machine: hosts that are emulated have the same ones."""
    several = sorted({found for node in data.nodes if (found := _count_of_processors(node.cores))})
    if not several:
        return ""
    least, most = several[0], several[-1]
    processors = (
        f"{least} to {units.count_of(most, 'processor')}" if least < most else units.count_of(most, "processor")
    )
    if data.meta.testbed.kind != "emulated":
        return f"{processors} each" if len(data.plan.hosts_used(data.meta.testbed.hosts)) > 1 else processors
    machine = "one virtual machine" if words.virtualisation(data) else "one machine"
    return f"namespaces of {machine} with {processors}"


def _count_of_processors(cores: object) -> int:
    """Return how many a host lets programs run on; 0 where its facts do not say."""
    if isinstance(cores, Mapping):
        allowed = cores.get("allowed")
        cores = len(allowed) if isinstance(allowed, list | tuple) else cores.get("logical")
    return cores if isinstance(cores, int) else 0


def layer_lines(
    data: Dataset, keys: Mapping[Series, Key], facts: Mapping[tuple[Series, str, str], tuple[LaunchFacts, ...]]
) -> tuple[TableLine, ...]:
    """Return every planned layer: library, file, and the path that ran, by place."""
    lines = []
    for series in data.layers:
        mine = {key: found for key, found in facts.items() if key[0] == series}
        every = [one for found in mine.values() for one in found]
        paths: dict[str, list[str]] = defaultdict(list)
        for (_, place, _), found in sorted(mine.items(), key=lambda item: words.PLACE_ORDER.index(item[0][1])):
            paths[words.PLACES_SHORT[place]].extend(tidied(one.used) for one in found if one.used)
        tally = Counter(cell.state for cell in data.cells if cell.series == series)
        library = words_cell(_unique(f"{one.library} {one.version}".strip() for one in every) or "not run")
        file = _unique(one.file for one in every)
        rest = (
            _unique(one.rpc for one in every),
            _unique(_semantics(one) for one in every),
            ", ".join(f"{tally[s]} {s}" for s in words.STATES if tally[s]),
        )
        cells = (
            TableCell(key=keys[series], is_name=True),
            replace(library, small=(("code", file),)) if file else library,
            TableCell(named=tuple((place, distinct_paths(used)) for place, used in paths.items())),
            *map(words_cell, rest),
        )
        lines.append(TableLine(cells=cells))
    return tuple(lines)


def tidied(used: str) -> str:
    """Return a path as a library stated it, without what it left empty: the use of a lane, or all after a last mark."""
    used = _UNNAMED.sub(say("provenance.unnamed_use") + " ", used)
    return " | ".join(one.strip().removesuffix(";") for one in used.split(" | "))


def own(data: Dataset, facts: Mapping[tuple[Series, str, str], tuple[LaunchFacts, ...]]) -> tuple[str, ...]:
    """Return the layers whose library is no other file than their adapter: it was built with this suite."""
    found = {series for (series, _, _), every in facts.items() if any(_is_own(one) for one in every)}
    return tuple(series.label for series in data.layers if series in found)


def _is_own(one: LaunchFacts) -> bool:
    return bool(one.file) and one.file == one.adapter_file


def _semantics(facts: LaunchFacts) -> str:
    return "; ".join(f"{name}: {who}" for name, who in facts.semantics.items() if who and who != "none")


def _unique(values: Iterable[str]) -> str:
    return " | ".join(dict.fromkeys(value for value in values if value))


def floor_table(comparison: Comparison) -> Table:
    """Return the floor at every size, and the references beside it: value with interval, and which it is."""
    floors, references = comparison.floors, comparison.references
    columns = sorted({key[:4] for key in (*floors, *references)}, key=_floor_order)
    beside = [column for column in columns if any(key[:4] == column for key in references)]
    rows = []
    for size in sorted({key[4] for key in (*floors, *references)}):
        limits = (floors.get((*column, size)) for column in columns)
        others = (references.get((*column, size), ()) for column in beside)
        cells = [(floor,) if floor else () for floor in limits] + list(others)
        rows.append((units.size(size), *(_floors_text(found, comparison.data) for found in cells)))
    heads = [_floor_head(column, comparison.data) for column in columns]
    heads += [f"{_floor_head(column, comparison.data)}; references" for column in beside]
    return plain_table(
        title=say("provenance.floors_title"),
        columns=("size", *heads),
        rows=tuple(rows),
    )


def _floor_order(column: Group) -> tuple[str, int, int, str]:
    place, wait, form, family = column
    return form, words.PLACE_ORDER.index(place), words.WAIT_ORDER.index(wait), repr(family)


def _floor_head(column: Group, data: Dataset) -> str:
    place, wait, form, family = column
    file = data.plan.patterns[form]
    quantity = file.main_quantity
    what = f"{quantity.title}, p50" if quantity.kind == "histogram" else quantity.title
    how = "".join(f", {file.parameters[name].title} {words.value(file.parameters[name], one)}" for name, one in family)
    return f"{what}, {words.shown(quantity).unit}; {words.PLACES_SHORT[place]}, {words.WAITS[wait]}{how}"


def _floors_text(found: Iterable[Floor], data: Dataset) -> str:
    return "; ".join(_floor_text(floor, data) for floor in found) or units.MISSING


def _floor_text(floor: Floor, data: Dataset) -> str:
    central = floor.central
    scale = words.shown(floor.case.file.main_quantity).scale
    ends = units.ends(central.low, central.high, scale)
    return f"{units.sig3(central.value * scale)}{ends} {words.floor_name(floor, data)}"


def campaign_facts(data: Dataset) -> tuple[Fact, ...]:
    """Return identity of campaign, plan and tool."""
    meta = data.meta
    drivers = _unique(
        f"{r.result.driver.version}, ABI {r.result.driver.abi}, {r.result.driver.revision}, {r.result.driver.compiler}"
        for r in data.records
        if r.result
    )
    return (
        Fact(name="Campaign", text=meta.campaign_id, code=True),
        Fact(name="Status", text=meta.status),
        Fact(name="Made", text=f"{meta.created_utc} to {meta.finished_utc or 'unfinished'}"),
        Fact(name="Sweep", text=": ".join(filter(None, (meta.sweep, data.plan.title)))),
        *_trace_facts(data),
        Fact(name="Seed", text=str(meta.seed), code=True),
        Fact(name="Plan hash", text=meta.plan_hash, code=True),
        Fact(
            name="Planned",
            text=f"{units.count_of(meta.planned.points, 'point')}, {units.count_of(meta.planned.attempts, 'attempt')}, "
            f"{units.count_of(meta.planned.launches, 'launch', 'launches')}, {units.duration(meta.planned.wall_s)}",
        ),
        *_looks_facts(data),
        Fact(name="Testbed", text=f"{meta.testbed.name} ({meta.testbed.kind}): {_hosts(data)}"),
        Fact(
            name="Tool",
            text=f"cadge {meta.tool.version}, revision {meta.tool.revision}"
            + (" " + words.UNCOMMITTED if meta.tool.dirty else ""),
        ),
        Fact(name="Driver", text=drivers or say("provenance.no_launch")),
        Fact(name="Shared memory", text=_shared_memory(data) or "not stored"),
        Fact(name="Environment", text=_environment(data) or "not stored"),
        *_launcher_facts(data),
        *_kernel_facts(data),
        *_redacted_facts(data),
    )


def _kernel_facts(data: Dataset) -> tuple[Fact, ...]:
    """Return the values of the kernel that launches were given, as read back; nothing where none was."""
    hosts: dict[str, dict[str, None]] = defaultdict(dict)
    for host in (host for record in data.records for host in record.kernel):
        for name, value in host.during.items():
            text = say("provenance.kernel", name=name, value=value, before=host.before[name])
            hosts[text][host.host] = None
    found = "; ".join(f"{text}: {', '.join(names)}" for text, names in sorted(hosts.items()))
    return (Fact(name="Kernel", text=found),) if found else ()


def _redacted_facts(data: Dataset) -> tuple[Fact, ...]:
    """Return what was taken out of a published copy; nothing for a campaign as it was measured."""
    found = data.meta.redacted
    if found is None:
        return ()
    places = ", ".join(f"{kind} in {units.count_of(often, 'place')}" for kind, often in found.replaced.items())
    kept = f"; left on purpose: {', '.join(found.kept)}" if found.kept else ""
    left = "".join(f"; without figures: {layer}, as {why}" for layer, why in found.withheld.items())
    text = say(
        "provenance.redacted",
        places=places or "no name",
        kept=kept,
        left=left,
        original_sha256=found.original_sha256,
    )
    return (Fact(name="Redacted", text=text),)


def _looks_facts(data: Dataset) -> tuple[Fact, ...]:
    """Return after how many launches the campaign was looked at, and why it ended; or which rounds were added."""
    looks = data.looks
    if looks is None:
        planned = data.plan.sweep.get("launches")
        added = data.rounds - planned if data.plan.later and isinstance(planned, int) else 0
        return (Fact(name="Added", text=say("provenance.added", n=added)),) if added > 0 else ()
    listed = ", ".join(str(launches) for launches in looks.looks)
    return (Fact(name="Looks", text=say("provenance.looks", listed=listed, said=looks.said())),)


def _trace_facts(data: Dataset) -> tuple[Fact, ...]:
    """Return which log is replayed, where one is: its own hash, and that of what was made of it."""
    trace = data.plan.trace
    if trace is None:
        return ()
    text = say("provenance.trace", trace=trace.name, log_sha256=trace.log_sha256, sha256=trace.sha256)
    return (Fact(name="Trace", text=text),)


def _shared_memory(data: Dataset) -> str:
    """Say where endpoints kept shared memory: each way once, with its hosts and what libraries were told for it."""
    hosts: dict[str, dict[str, None]] = defaultdict(dict)
    for host in (host for record in data.records for host in record.shared_memory):
        text = words.SHARED_MEMORY[host.kind] + (f" ({host.why})" if host.why else "")
        if host.variables:
            text += f", set by {', '.join(host.variables)}"
        hosts[text][host.host] = None
    return "; ".join(f"{text}: {', '.join(names)}" for text, names in hosts.items())


def _launcher_facts(data: Dataset) -> tuple[Fact, ...]:
    """Return which launchers started ranks, where one did and was stored."""
    named = sorted({record.started_by for record in data.records if record.started_by})
    return (Fact(name="Ranks started by", text="; ".join(named)),) if named else ()


def _environment(data: Dataset) -> str:
    """Say which variables endpoints were given: those of all once, then what some had beside."""
    hosts: dict[tuple[str, ...], dict[str, None]] = defaultdict(dict)
    for host in (host for record in data.records for host in record.environment):
        given = (f"{name}={value}" if name in STEERING else name for name, value in sorted(host.variables.items()))
        hosts[tuple(given)][host.host] = None
    if not hosts:
        return ""
    common = [name for name in next(iter(hosts)) if all(name in given for given in hosts)]
    more = (
        say("provenance.environment_of", hosts=list(names), names=[name for name in given if name not in common])
        for given, names in hosts.items()
        if len(given) > len(common)
    )
    return "; ".join((say("provenance.environment", names=common), *more))


def told_command(data: Dataset, verb: str, *given: str) -> str:
    """Return a command that a page of the campaign names, as its user calls cadge; a published page names no path."""
    if data.meta.redacted is not None:
        return shlex.join(["cadge", verb, *given])
    return command_of_user(verb, *given)


def run_again(data: Dataset, *options: str) -> str:
    """Return the command that goes on with the campaign."""
    return told_command(data, "resume", data.campaign_id, *options)


def command(data: Dataset) -> str:
    """Return the command that makes the campaign again, quoted for a shell."""
    return shlex.join(data.meta.command)


def _library_table(data: Dataset, facts: Mapping[tuple[Series, str, str], tuple[LaunchFacts, ...]]) -> Table:
    rows = dict.fromkeys(
        (
            series.label,
            f"{one.library} {one.version}".strip(),
            one.file or units.MISSING,
            one.build_id or units.MISSING,
            one.adapter_file or units.MISSING,
            one.adapter_build_id or units.MISSING,
        )
        for (series, _, _), found in sorted(facts.items(), key=lambda item: item[0])
        if series in data.layers
        for one in found
    )
    return plain_table(
        title=say("provenance.libraries_title"),
        columns=("layer", "library", "file", "build id", "adapter", "build id"),
        rows=tuple(rows),
    )


def _step_text(steps_ns: Sequence[float | None]) -> str:
    known = [one for one in steps_ns if one is not None]
    return f"{units.sig3(max(known))} ns" if known else "not stored"


def _clock_table(data: Dataset) -> Table:
    groups: dict[tuple[str, str, int], list[tuple[float, float, float, float | None]]] = defaultdict(list)
    for record in data.records:
        result = record.result
        if result is None:
            continue
        for endpoint, clock in zip(result.endpoints, result.clock, strict=False):
            key = (endpoint.host, clock.source, clock.hz // 1_000_000)
            groups[key].append((clock.read_cost_ns, abs(clock.drift_ppm), clock.bracket_ns, clock.step_ns))
    return plain_table(
        title="Clocks",
        columns=("host", "source", "MHz", "read cost, median", "drift, worst", "bracket, worst", "step", "readings"),
        rows=tuple(
            (
                host,
                source,
                units.grouped(mhz),
                f"{units.sig3(intervals.median([cost for cost, *_ in found]))} ns",
                f"{units.sig3(max(drift for _, drift, *_ in found))} ppm",
                f"{units.sig3(max(bracket for _, _, bracket, _ in found))} ns",
                _step_text([step for *_, step in found]),
                units.grouped(len(found)),
            )
            for (host, source, mhz), found in sorted(groups.items())
        ),
    )


def _pin_table(data: Dataset) -> Table:
    tally: Counter[tuple[str, str, str, str, str]] = Counter()
    for record in data.records:
        result = record.result
        if result is None:
            continue
        roles = record.launch.roles
        ends = zip(roles, result.endpoints, result.pinning, strict=False)
        for number, (role, endpoint, pin) in enumerate(ends):
            wished = (pin.asked,) if isinstance(pin.asked, int) else pin.asked
            asked = ", ".join(f"CPU {cpu}" for cpu in wished if cpu >= 0) or "none"
            actual = ", ".join(f"CPU {cpu}" for cpu in pin.actual)
            name = role if roles.count(role) == 1 else f"{role} {number}"
            tally[endpoint.host, name, asked, actual, "yes" if pin.ok else "no"] += 1
    return plain_table(
        title="Pinning, read back",
        columns=("host", "endpoint", "asked", "found", "as asked", "launches"),
        rows=tuple((*key, units.grouped(often)) for key, often in sorted(tally.items())),
    )


def fact_tables(data: Dataset, facts: Mapping[tuple[Series, str, str], tuple[LaunchFacts, ...]]) -> tuple[Table, ...]:
    """Return libraries, clocks and pinning, as far as there are any."""
    every = _library_table(data, facts), _clock_table(data), _pin_table(data)
    return tuple(table for table in every if table.lines)


def host_table(data: Dataset) -> Table:
    """Return every host's fingerprint: of the first one all, of another one what is otherwise there."""
    lines: list[tuple[str, str, str]] = []
    first = data.nodes[0] if data.nodes else None
    for node in data.nodes:
        values = {key: getattr(node, key) for key, _ in NODE_FACTS}
        if first is not None and node is not first:
            values = {key: _apart(value, getattr(first, key)) for key, value in values.items()}
            values = {key: value for key, value in values.items() if value is not _SAME}
            rest = say("provenance.as_first", first=words.isolated(first.host))
            lines.append((node.host, say("provenance.rest") if values else say("provenance.every"), rest))
        lines += (
            (node.host, title, plain(values[key]))
            for key, title in NODE_FACTS
            if key in values and (values[key] or key not in _WHERE_NEEDED)
        )
    return plain_table(say("provenance.hosts_title"), ("host", "fact", "value"), lines)


_SAME = object()


def _apart(mine: object, other: object) -> object:
    """Return what of a fact is not as another one's, of nested ones the differing parts alone; _SAME where all is."""
    if mine == other:
        return _SAME
    if not (isinstance(mine, Mapping) and isinstance(other, Mapping)) or "unknown" in mine or "unknown" in other:
        return mine
    parts = {key: _apart(value, other[key]) if key in other else value for key, value in mine.items()}
    gone = {key: "not there" for key in other if key not in mine}
    return {key: value for key, value in parts.items() if value is not _SAME} | gone


def as_json(value: object) -> str:
    """Return JSON that may stand inside a script element: no `<`, `>` or `&` survives as such.

    Keys keep their order, which of a pattern's parameters means something.
    """
    text = json.dumps(value, separators=(",", ":"), ensure_ascii=True)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
