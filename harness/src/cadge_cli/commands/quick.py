# SPDX-License-Identifier: BSD-3-Clause
"""`cadge quick`: a first look at a few layers, on this machine alone and in the terminal."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import click

from cadge_cli.closing import closing_lines, closing_of
from cadge_cli.commands.run import CampaignRun, measure
from cadge_cli.options import MeasureOptions, answers, listed, queue_option, results_option
from cadge_cli.output import Output
from cadge_harness.errors import EXIT_BAD_ANSWER, EXIT_OK
from cadge_harness.run.request import Request, read_request
from cadge_results import Plan
from cadge_results.command import command
from cadge_results.formats.sweep import LayerEntry

EXIT_CODES = (
    "\n\n\b\nExit codes:\n"
    "  0    measured\n"
    "  1    measured, but an attempt failed or is unsound\n"
    "  2    a name or an option is wrong\n"
    "  3    nothing is built, or the campaign cannot be stored\n"
    "  5    none of the layers can run here\n"
    "  6    not complete; `cadge resume` continues\n"
    "  130  stopped by Ctrl-C; `cadge resume` continues"
)
SWEEP = "quick"
LINES_MOST = 15
"""Lines of the picture."""


@click.command(
    epilog="\b\nExamples:\n  cadge quick\n  cadge quick native-ucx am-ucx fm-ucx\n  cadge quick --json" + EXIT_CODES
)
@click.argument("layers", nargs=-1)
@queue_option
@results_option
@answers
def quick(layers: tuple[str, ...], queue: bool, results: Path | None, output: Output) -> int:
    """Compare a few layers on this machine in half a minute: RPC of 8 B and a stream of 1 MiB, within one host.

    LAYERS are names that `cadge layers` lists; without any, it takes five layers of five styles. The campaign is stored
    with its raw data: `cadge report` makes its report, `cadge compare` compares it with another one. It has too few
    launches for verdicts; `cadge run` makes enough.
    """
    output.brief = True
    how = MeasureOptions(testbed_name="local", inventory=None, tune=False, report=False, queue=queue, results=results)
    done = measure(_request(listed("cadge quick", layers, "sockets-tcp native-ucx")), output, how, told=_plan_notices)
    if done.code not in (EXIT_OK, EXIT_BAD_ANSWER):
        return output.finish(done.code, done.data, done.lines)
    closing = closing_of(done.campaign)
    lines = closing_lines(closing, output, most=LINES_MOST)
    lines += [f"Next: {command('report')} (its report),", f"  {command('run')} (verdicts)"]
    return output.finish(done.code, {**done.data, **closing}, [*lines, *_troubles(done)])


def _request(named: tuple[str, ...]) -> Request:
    """Return the sweep of a first look, over the layers that were named."""
    request = read_request(SWEEP)
    for name in named:
        request.catalogue.get(name)
    entries = tuple(LayerEntry(layer=name) for name in dict.fromkeys(named))
    if not entries:
        return request
    baseline = request.sweep.baseline if request.sweep.baseline in named else None
    return replace(request, sweep=request.sweep.model_copy(update={"layers": entries, "baseline": baseline}))


def _plan_notices(plan: Plan) -> list[str]:
    """Return what is said of a plan: which layers cannot run here, and why."""
    planned = {point.subject.layer for point in plan.points if point.state == "planned"}
    reasons = {
        point.subject.layer: point.reason
        for point in plan.points
        if point.subject.kind == "layer" and point.subject.layer not in planned
    }
    return [*(f"{layer} cannot run here: {reason}" for layer, reason in reasons.items()), *plan.notices]


def _troubles(done: CampaignRun) -> list[str]:
    """Return what is said of attempts that failed or are unsound, where there are any."""
    return ["", *done.lines] if done.code == EXIT_BAD_ANSWER else []
