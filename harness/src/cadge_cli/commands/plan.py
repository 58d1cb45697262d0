# SPDX-License-Identifier: BSD-3-Clause
"""`cadge plan`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict, replace
from pathlib import Path

import click
from pydantic import JsonValue

from cadge_analysis.stats.inference import plan_power
from cadge_cli.options import (
    EXAMPLES,
    MeasureOptions,
    answers,
    asking_options,
    listed,
    looks_option,
    out_option,
    queue_option,
    refuse_options,
    results_option,
    sweep_options,
    testbed_options,
    trace_option,
)
from cadge_cli.output import Output, megabytes, table, wrapped
from cadge_cli.words import say
from cadge_harness.errors import EXIT_OK, EXIT_UNFIT
from cadge_harness.plan.budget import spoken
from cadge_harness.plan.cast import PAIR, say_cast
from cadge_harness.plan.link import RATE
from cadge_harness.plan.narrow import Narrowing, pilot_of, shares_of
from cadge_harness.run.ansible_files import build_bytes
from cadge_harness.run.request import Request, read_request
from cadge_harness.run.room import OF_HOSTS
from cadge_harness.testbed.model import Testbed
from cadge_harness.words import clock, count_of
from cadge_results import Plan, PlanBlock, Subject, write_output
from cadge_results.store.belongs import looks_of
from cadge_results.units import format_bytes

HOSTS_NAMED = 8
BLOCKS_SHOWN = 12
_NOT_OF_A_PILOT = ("layer_names", "launches", "looks", "out", "look", "power")


@click.command(
    epilog=EXAMPLES
    + "  cadge plan\n  cadge plan --sweep full-calls --layers native-ucx\n  cadge plan --write plan.json\n"
    + "  cadge plan --patterns rpc --sizes 8B --launches 15\n"
    + "  cadge plan --inventory hosts.yml\n  cadge plan --sweep press-smoke --trace access.log\n"
    + "  cadge plan --sweep press --pilot\n  cadge plan --power"
)
@sweep_options
@asking_options
@looks_option
@trace_option
@testbed_options
@results_option
@out_option("--write", text="Write the whole plan to a file.")
@click.option(
    "--pilot",
    is_flag=True,
    help="Measure the baseline's closed loop at each point, in a small campaign. Propose half of its lowest "
    "rate for all layers.",
)
@click.option(
    "--power",
    is_flag=True,
    help="Show the probability of finding a difference, by its size, from this testbed's stored campaigns.",
)
@queue_option
@click.option(
    "--look/--no-look",
    default=True,
    help="Log in to the hosts of an inventory as `cadge doctor` does, and show what it finds (default).",
)
@answers
def plan(
    sweep_name: str,
    layer_names: tuple[str, ...],
    seed: int | None,
    budget: str | None,
    asked: Narrowing,
    looks: str | None,
    log: Path | None,
    testbed_name: str,
    inventory: Path | None,
    results: Path | None,
    out: Path | None,
    pilot: bool,
    power: bool,
    queue: bool,
    look: bool,
    output: Output,
) -> int:
    """Show what a sweep would measure and what it would take: points, time, disk, ports. Measures only with --pilot.

    With an inventory it also logs in to the hosts and shows them side by side. Exit code 3 means that the sweep cannot
    run there.
    """
    only = listed("--layers", layer_names, "sockets-tcp native-ucx")
    request = read_request(sweep_name, only=only, seed=seed, budget=budget, looks=looks, log=log, asked=asked)
    if pilot:
        refuse_options(_NOT_OF_A_PILOT, say("plan.not_of_a_pilot"))
        how = MeasureOptions(
            testbed_name=testbed_name, inventory=inventory, tune=False, report=False, queue=queue, results=results
        )
        return _pilot(request, output, how)
    refuse_options(("queue",), say("plan.of_a_pilot"))
    chosen = request.testbed(testbed_name, inventory, start=False)
    for note in chosen.notes:
        output.say(note)
    made = request.plan(chosen, results)
    hosts = None
    if inventory is not None and look and request.checkout.driver.is_file():
        from cadge_cli.hosts import look_at_hosts

        needed = {host for block in made.blocks for host in block.hosts}
        hosts = look_at_hosts(chosen, request.checkout, output, needed, made.programs, made.layers)
        chosen = hosts.testbed
        made = request.plan(chosen, results)
    if power:
        from cadge_cli.power import power_data, power_lines, with_predicted

        made = with_predicted(made, results or request.checkout.campaigns, chosen)
    if out is not None:
        write_output(out, made.to_json().encode())
    data, lines = plan_data(made, chosen.name), plan_lines(made, request.sweep_name, chosen)
    if power:
        data |= {"power": power_data(made)}
        lines += ["", *power_lines(made), ""]
    carried_bytes = build_bytes(request.checkout.build, made.layers)
    data |= {"carried_bytes": carried_bytes}
    lines += wrapped(
        say("plan.while_it_runs", size=megabytes(carried_bytes), folder=OF_HOSTS),
        then="  ",
    )
    code = EXIT_OK
    if inventory is not None and look and not request.checkout.driver.is_file():
        output.problem(say("plan.no_build", fix=request.checkout.to_build))
    if hosts is not None:
        from cadge_cli.hosts import finding_lines

        data |= {**hosts.data, "findings": [asdict(finding) for finding in hosts.findings]}
        lines += ["", *hosts.lines, "", *finding_lines(hosts.findings)]
        output.problems += [f"{finding.code} {finding.text}" for finding in hosts.findings]
        code = EXIT_UNFIT if any(finding.level == "fail" for finding in hosts.findings) else EXIT_OK
    return output.finish(code, data, lines)


def _pilot(request: Request, output: Output, how: MeasureOptions) -> int:
    """Measure what the baseline reaches, and say which rate to offer to all layers."""
    from cadge_analysis.stats import offered as rates
    from cadge_analysis.stats.load import read
    from cadge_cli.commands.run import measure

    sweep, layer = pilot_of(request.sweep, request.workloads)
    short = replace(request, sweep=sweep, sweep_name=f"{request.sweep_name}-pilot", only=(layer,))
    done = measure(short, output, how)
    data, lines = dict(done.data), [*done.lines]
    found: dict[str, JsonValue] = {}
    shares = {
        pattern: each
        for pattern in dict.fromkeys(entry.pattern for entry in sweep.patterns)
        for each in shares_of(request.workloads, pattern).values()
    }
    measured = [read(done.campaign)] if done.campaign.launch_ids() else []
    for pattern, (parameter, quantity) in shares.items():
        loops = tuple(one for data_of in measured for one in rates.closed_loops(data_of, pattern, quantity))
        if not loops:
            output.problem(say("plan.no_closed_loop", pattern=pattern))
            continue
        value = rates.proposed(loops)
        found[pattern] = {
            "parameter": parameter,
            "value": value,
            "closed_loops_per_s": {one.label: one.per_s for one in loops},
        }
        lines += [
            "",
            say("plan.closed_loop", pattern=pattern, per_s=loops[0].per_s, n=len(loops)),
            f"  {loops[0].label}",
            say("plan.offer_half", pattern=pattern),
            f"  {parameter}: {value}",
        ]
    return output.finish(done.code, {**data, "pilot": found}, lines)


def plan_data(made: Plan, testbed: str) -> dict[str, JsonValue]:
    """Return a plan as `cadge plan --json` shows it."""
    planned = [point for point in made.points if point.state == "planned"]
    return {
        "plan_hash": made.plan_hash,
        "title": made.title,
        "testbed": testbed,
        "points": {"planned": len(planned), "refused": len(made.points) - len(planned)},
        "launches": len(made.launches),
        "epochs": made.epochs,
        "attempts": sum(len(launch.point_ids) for launch in made.launches),
        "blocks": [
            {
                "block_id": block.block_id,
                "place": block.place,
                "hosts": list(block.hosts),
                "casts": list(_casts(made, block)),
            }
            for block in made.blocks
        ],
        "wall_s": made.estimate.wall_s,
        "measure_s": made.estimate.measure_s,
        "disk_bytes": made.estimate.disk_bytes,
        "ports": list(made.estimate.ports or ()),
        "basis": made.estimate.basis,
        "later_looks": [
            {"launches": one.launches, "wall_s_most": one.wall_s, "disk_bytes_most": one.disk_bytes}
            for one in made.later
        ],
        "decides": "; ".join(plan_power.sentences(made)) or None,
        "notices": list(made.notices),
        "refused": [
            {"layer": layer, "place": place, "wait": wait, "reason": reason, "points": count}
            for (layer, place, wait, reason), count in _refused(made).items()
        ],
    }


def _epochs_lines(made: Plan) -> list[str]:
    """Return how often the testbed is made, where that is more than once."""
    if made.epochs == 1:
        return []
    return [say("plan.epochs", epochs=made.epochs, launches=made.rounds // made.epochs)]


def _looks_lines(made: Plan) -> list[str]:
    """Return what further looks may take, or rounds that are added, where there may be any."""
    if not made.later:
        return []
    if not looks_of(made.sweep):
        most = made.later[-1].launches
        return [say("plan.rounds_added", n=most, rounds=made.rounds)]
    most_s = made.estimate.wall_s + sum(one.wall_s for one in made.later)
    looks = ", ".join(str(one.launches) for one in made.later)
    budget = made.sweep.get("budget")
    within = say("plan.within_budget", budget=spoken(budget)) if isinstance(budget, int) else ""
    return [say("plan.first_look", looks=looks, time=clock(most_s), within=within)]


def _casts(made: Plan, block: PlanBlock) -> list[str]:
    """Return who runs where in a block, each cast of its launches once."""
    launches = [launch for launch in made.launches if launch.block == block.block_id]
    return list(dict.fromkeys(say_cast(launch.endpoints) for launch in launches))


def _place(made: Plan, block: PlanBlock) -> str:
    """Return where a block is measured, and the rate that the link between its hosts is given."""
    rate = next(launch.subject.setting(RATE) for launch in made.launches if launch.block == block.block_id)
    return f"{block.place} at {rate}" if rate else block.place


def _by_place(made: Plan) -> dict[tuple[str, str], list[str]]:
    """Return the blocks by where they are measured and who runs where."""
    found: dict[tuple[str, str], list[str]] = {}
    for block in made.blocks:
        for cast in _casts(made, block):
            found.setdefault((_place(made, block), cast), []).append(block.block_id)
    return found


def _named(blocks: Sequence[str]) -> str:
    """Return one block's name, or the first of several that alternate with those of other rates."""
    return blocks[0] if len(blocks) == 1 else f"{blocks[0]} and {len(blocks) - 1} more"


def _refused(made: Plan) -> Counter[tuple[str, str, str, str]]:
    return Counter((*_key(point.subject), point.reason or "") for point in made.points if point.state == "refused")


def _key(subject: Subject) -> tuple[str, str, str]:
    """Return what is one line of a plan: a layer over any pair of hosts, at a place, in a wait mode."""
    settings = tuple(item for item in subject.settings if item[0] != PAIR)
    return subject.model_copy(update={"settings": settings}).label, subject.place, subject.wait


def _pairs(subjects: Iterable[Subject]) -> dict[tuple[str, str, str], list[str]]:
    """Return the pairs of hosts of each line, in order, each once."""
    found: dict[tuple[str, str, str], dict[str, None]] = {}
    for subject in subjects:
        found.setdefault(_key(subject), {}).update(dict.fromkeys(filter(None, [subject.setting(PAIR)])))
    return {key: [*pairs] for key, pairs in found.items()}


def _with_pairs(label: str, pairs: Sequence[str]) -> str:
    """Return a label with its pair of hosts, or how many they are."""
    if not pairs:
        return label
    return f"{label} ({PAIR}={pairs[0]})" if len(pairs) == 1 else say("plan.over_pairs", label=label, n=len(pairs))


def _hosts(made: Plan, testbed: Testbed) -> str:
    """Return the hosts that a plan uses, and of how many they are where others are idle."""
    every = [host.name for host in testbed.hosts]
    used = made.hosts_used(every)
    named = ", ".join(used[:HOSTS_NAMED]) + (f" and {len(used) - HOSTS_NAMED} more" if len(used) > HOSTS_NAMED else "")
    of = "" if len(used) == len(every) else f" of {len(every):,}"
    return f"{len(used):,}{of} {'host' if len(every) == 1 else 'hosts'}: {named}" if used else "no host"


def _subjects(made: Plan, points: Counter[tuple[str, str, str]]) -> list[str]:
    """Return what is launched: a table of the layers, and one of the floors."""
    lines: list[str] = []
    pairs = _pairs(launch.subject for launch in made.launches)
    for kind in ("layer", "floor"):
        keys = Counter(_key(launch.subject) for launch in made.launches if launch.subject.kind == kind)
        rows = [
            (_with_pairs(key[0], pairs[key]), *key[1:], str(points[key]), str(count))
            for key, count in sorted(keys.items())
        ]
        if rows:
            lines += [*table([(kind, "place", "wait", "points", "launches"), *rows]), ""]
    return lines


def plan_lines(made: Plan, sweep: str, testbed: Testbed) -> list[str]:
    """Return a plan for people."""
    points = Counter(_key(point.subject) for point in made.points if point.state == "planned")
    durations = sorted({point.duration_ms for point in made.points if point.state == "planned"})
    sizes = sorted({size for point in made.points for size in made.pattern_of(point).moved_bytes(point.workload)})
    where = [("block", "place", "who runs where")]
    rows = [(_named(blocks), *row) for row, blocks in _by_place(made).items()]
    where += rows[:BLOCKS_SHOWN]
    if len(rows) > BLOCKS_SHOWN:
        where.append(("", "", say("plan.more_blocks", n=len(rows) - BLOCKS_SHOWN)))
    hosts, plan_id = _hosts(made, testbed), made.plan_hash[:8]
    head = say("plan.head", sweep=sweep, testbed=testbed.name, hosts=hosts, seed=made.seed, plan=plan_id)
    lines = [
        *_sentences([head, made.title]),
        "",
        *_subjects(made, points),
        *table(where),
    ]
    if refused := _refused(made):
        lines += ["", "refused:"]
        pairs = _pairs(point.subject for point in made.points if point.state == "refused")
        for key, count in sorted(refused.items()):
            label = _with_pairs(key[0], pairs[key[:3]])
            text = f"{label} {key[1]}/{key[2]}: {count_of(count, 'point')}: {key[3]}"
            lines += wrapped(text, "  ", "    ")
    ports = made.estimate.ports
    facts = [
        f"{count_of(sum(points.values()), 'point')}, {sum(refused.values())} refused; "
        f"{count_of(len(made.launches), 'launch', 'launches')}, "
        f"{count_of(sum(len(launch.point_ids) for launch in made.launches), 'attempt')} in "
        f"{count_of(len(made.blocks), 'block')}",
        (f"sizes {format_bytes(sizes[0])} to {format_bytes(sizes[-1])}; " if sizes else "")
        + (f"{durations[0]} to " if durations[0] != durations[-1] else "")
        + f"{durations[-1]} ms a point",
        say(
            "plan.takes",
            time=clock(made.estimate.wall_s),
            measuring=clock(made.estimate.measure_s),
            disk=megabytes(made.estimate.disk_bytes),
        )
        + (f"; ports {ports[0]}-{ports[1]}" if ports else ""),
        *([f"times from {made.estimate.basis}"] if made.estimate.basis else []),
        *_epochs_lines(made),
        *_looks_lines(made),
        *plan_power.sentences(made),
        *made.notices,
    ]
    return [*lines, "", *_sentences(facts)]


def _sentences(facts: Sequence[str]) -> list[str]:
    return [line for fact in facts for line in wrapped(fact, then="  ")]
