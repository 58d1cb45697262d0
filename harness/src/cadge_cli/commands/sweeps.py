# SPDX-License-Identifier: BSD-3-Clause
"""`cadge sweeps`: what each sweep asks, what one of them measures, and one to begin with."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click
from pydantic import JsonValue

from cadge_cli.options import answers, testbed_options
from cadge_cli.output import Output, wrapped
from cadge_cli.words import say
from cadge_harness.errors import EXIT_OK, EXIT_USAGE, HarnessError, UsageError
from cadge_harness.paths import find_checkout
from cadge_harness.plan.patterns import read_patterns
from cadge_harness.plan.sweep import read_sweep
from cadge_harness.words import clock
from cadge_results import SweepFile
from cadge_results.command import command
from cadge_results.formats.complaint import flow, near_names, nearest
from cadge_results.formats.sweep import PatternEntry
from cadge_results.store.belongs import looks_of
from cadge_results.units import format_bytes

if TYPE_CHECKING:
    from cadge_harness.run.request import Request
    from cadge_results import Plan

EXAMPLE = "example"
"""In the place of a sweep's name: prints one with a comment on every key."""
HEAD = """A sweep for Cadge: what is measured, over which layers, how often.

  cadge sweeps example >mine.yml     write it to a file
  cadge sweeps ./mine.yml            check it, and see what it takes here
  cadge run --sweep ./mine.yml       measure, and make the report

Keys after a # may be given as well; each shows a value as an example."""
TOPICS = {
    "overview": "All layers, one beside the other",
    "traffic": "Load, many endpoints, mixed traffic",
    "costs": "What one thing costs",
    "models": "Models, and what they predict",
    "libraries": "Versions and settings of libraries",
    "studies": "For a study, beside published figures",
    "checks": "Cadge's own checks",
    "own": "Others",
}


@click.command(
    epilog="\b\nExamples:\n  cadge sweeps\n  cadge sweeps smoke\n  cadge sweeps example >mine.yml\n"
    "  cadge sweeps ./mine.yml\n  cadge sweeps --json | jq '.data.sweeps[].name'"
)
@click.argument("name", required=False, metavar="[NAME|FILE|example]")
@testbed_options
@answers
def sweeps(name: str | None, testbed_name: str, inventory: Path | None, output: Output) -> int:
    """List the sweeps and what each asks, or show one: patterns, sizes, layers, places, launches, planned time.

    `cadge sweeps example` prints a sweep file to start from, with a comment on every key.
    """
    if name is None:
        return _every(output)
    if name == EXAMPLE:
        from cadge_harness.plan.example import commented

        text = commented(SweepFile, HEAD)
        return output.finish(EXIT_OK, {"sweep": text}, text.splitlines())
    from cadge_harness.run.request import read_request

    known = [path.stem for path in find_checkout().sweeps.glob("*.yml")]
    if name not in known and EXAMPLE in near_names(name, [*known, EXAMPLE]):
        raise UsageError(f"unknown sweep {name!r}{nearest(name, [*known, EXAMPLE])}")
    request = read_request(name)
    made, why = _planned(request, testbed_name, inventory)
    planned: JsonValue = None
    if made is not None:
        points = sum(point.state == "planned" for point in made.points)
        planned = {
            "wall_s": made.estimate.wall_s,
            "measure_s": made.estimate.measure_s,
            "points": points,
            "launches": len(made.launches),
        }
    data: dict[str, JsonValue] = {"name": request.sweep_name, "sweep": request.sweep.to_object(), "planned": planned}
    return output.finish(EXIT_OK, data | {"not_planned": why or None}, list(_page(request, name, made, why)))


def _every(output: Output) -> int:
    """List all sweeps of the checkout; one that is wrong is named and does not hide the others."""
    checkout = find_checkout()
    workloads = read_patterns(checkout)
    found: dict[str, SweepFile] = {}
    for path in sorted(checkout.sweeps.glob("*.yml")):
        try:
            found[path.stem], _ = read_sweep(path, workloads)
        except UsageError as error:
            output.problem(str(error))
    data: Sequence[JsonValue] = [
        {
            "name": name,
            "title": sweep.title,
            "topic": sweep.topic,
            "patterns": [*dict.fromkeys(entry.pattern for entry in sweep.patterns)],
        }
        for name, sweep in found.items()
    ]
    return output.finish(EXIT_USAGE if output.problems else EXIT_OK, {"sweeps": [*data]}, list(_list(found)))


def _list(found: dict[str, SweepFile]) -> Iterator[str]:
    width = max(map(len, found), default=0)
    for topic, head in TOPICS.items():
        mine = {name: sweep for name, sweep in found.items() if sweep.topic == topic}
        if mine:
            yield head
        for name, sweep in mine.items():
            yield from _entry(name, sweep.title, width)
        if mine:
            yield ""
    yield f"What one of them measures, and how long:  {command('sweeps', 'NAME')}"
    yield f"One to begin your own with:               {command('sweeps', 'example')} >mine.yml"


def _entry(head: str, text: str, width: int) -> list[str]:
    first = f"  {head.ljust(width)}  "
    return wrapped(text, first) or [first.rstrip()]


def _planned(request: Request, testbed_name: str, inventory: Path | None) -> tuple[Plan | None, str]:
    """Return the sweep's plan here, or why there is none."""
    try:
        return request.plan(request.testbed(testbed_name, inventory, start=False)), ""
    except HarnessError as error:
        return None, str(error)


def _page(request: Request, given: str, made: Plan | None, why: str) -> Iterator[str]:
    sweep = request.sweep
    yield from wrapped(f"{request.sweep_name}: {sweep.title}")
    yield ""
    parts = [*_what(sweep), *_how(sweep), ("time here", _time(made, why))]
    width = max(len(head) for head, _ in parts)
    for head, text in parts:
        yield from _entry(head, text, width)
    yield ""
    yield f"Measure it:               {command('run', '--sweep', given)}"
    yield f"What runs, and what not:  {command('plan', '--sweep', given)}"


def _what(sweep: SweepFile) -> Iterator[tuple[str, str]]:
    """Yield what is measured: patterns, sizes, layers, places."""
    for number, entry in enumerate(sweep.patterns):
        yield ("" if number else "patterns"), _pattern(entry)
    for name, sizes in sweep.vectors.items():
        yield name, ", ".join(map(format_bytes, sizes))
    named = ", ".join(entry.label for entry in sweep.layers)
    yield "layers", named or ("all but " + ", ".join(sweep.without) if sweep.without else "all")
    if sweep.baseline is not None:
        yield "baseline", sweep.baseline
    yield "places", ", ".join(sweep.places) + (f"; {sweep.hosts} emulated hosts" if sweep.hosts > 2 else "")
    yield "waits", ", ".join(sweep.waits)


def _pattern(entry: PatternEntry) -> str:
    """Return an entry as its file has it."""
    more: dict[str, object] = {"places": entry.places, "waits": entry.waits, "zip": entry.zip}
    if entry.layers is not None:
        more["layers"] = tuple(one.label for one in entry.layers)
    given = {**entry.parameters, **{key: value for key, value in more.items() if value}}
    return "; ".join([entry.pattern, *(f"{key} {flow(value).strip('[]')}" for key, value in given.items())])


def _how(sweep: SweepFile) -> Iterator[tuple[str, str]]:
    """Yield how often and how long."""
    looks = f"; looks after {', '.join(map(str, sweep.looks))}" if sweep.looks else ""
    each = say("sweeps.epochs", epochs=sweep.epochs, launches=sweep.launches) if sweep.epochs > 1 else sweep.launches
    yield "launches", f"{each}{looks}"
    least = say("sweeps.down_to", least=_spoken(sweep.duration.least)) if sweep.duration.least else ""
    yield "duration", f"{_spoken(sweep.duration.default)} a point{least}"
    yield "budget", _spoken(sweep.budget) if sweep.budget else "none"
    yield "floors", say("sweeps.floors_beside") if sweep.floors else "none"


def _spoken(duration_ms: int) -> str:
    return f"{duration_ms} ms" if duration_ms < 1000 else clock(duration_ms / 1000)


def _time(made: Plan | None, why: str) -> str:
    if made is None:
        return f"not known: {why}"
    points = sum(point.state == "planned" for point in made.points)
    return say(
        "sweeps.takes",
        time=clock(made.estimate.wall_s),
        measuring=clock(made.estimate.measure_s),
        points=points,
        launches=len(made.launches),
    ) + (say("sweeps.further_rounds") if made.later and not looks_of(made.sweep) else "")
