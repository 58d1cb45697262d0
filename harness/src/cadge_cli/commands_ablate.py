# SPDX-License-Identifier: BSD-3-Clause
"""`cadge ablate`: a sweep called ablate-NAME, carried out, and its table; or the table of a stored campaign.

What measures is imported only where something is measured, so that --help stays quick.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from cadge_cli.options import (
    Measuring,
    json_option,
    measuring_options,
    output_of,
    refuse_options,
    selection_options,
    split_names,
)
from cadge_cli.output import table
from cadge_harness.errors import EXIT_OK, NothingSelectedError, UsageError
from cadge_harness.paths import find_checkout

if TYPE_CHECKING:
    from cadge_results import Campaign

EXAMPLES = "\b\nExamples:\n"
PREFIX = "ablate-"
_OF_A_RUN = ("layer_names", "seed", "budget", "testbed_name", "inventory", "tune", "report", "queue", "selftest_id")


@click.command(
    epilog=EXAMPLES
    + "  cadge ablate peregrine\n  cadge ablate peregrine --layers peregrine-udp --budget 2min\n"
    + "  cadge ablate peregrine last\n  cadge ablate peregrine 20261121T013042Z-1f3a9c2e --json"
)
@click.argument("name")
@click.argument("campaign", required=False)
@selection_options
@measuring_options
@json_option
@click.pass_context
def ablate(
    ctx: click.Context,
    name: str,
    campaign: str | None,
    layer_names: tuple[str, ...],
    seed: int | None,
    budget: str | None,
    how: Measuring,
    as_json: bool,
) -> int:
    """Measure layers as they are and with each optimisation off, and print what each is worth.

    NAME stands for the sweep ablate-NAME. With CAMPAIGN (an id, or `last`) nothing is measured: the table of that
    campaign is printed.
    """
    from cadge_cli.commands_run import measure
    from cadge_harness.run.request import read_request
    from cadge_results import Store

    output = output_of(ctx, as_json)
    sweep = _sweep_of(name)
    if campaign is not None:
        refuse_options(ctx, _OF_A_RUN, "is for measuring; with a campaign only its table is printed")
        found = Store(how.results or find_checkout().campaigns).open(campaign)
        if not found.launch_ids():
            raise NothingSelectedError(f"campaign {found.campaign_id} has no launches yet")
        if found.meta.sweep != sweep:
            output.say(f"campaign {found.campaign_id} was made by sweep {found.meta.sweep}, not by {sweep}")
        data, lines = _answer(found)
        return output.finish(EXIT_OK, {"run": None, "ablation": data}, lines)
    request = read_request(sweep, only=split_names(layer_names), seed=seed, budget=budget)
    done = measure(request, output, how)
    if not done.campaign.launch_ids():
        return output.finish(done.code, {"run": done.data, "ablation": None}, done.lines)
    data, lines = _answer(done.campaign)
    return output.finish(done.code, {"run": done.data, "ablation": data}, [*lines, "", *done.lines])


def _sweep_of(name: str) -> str:
    """Return the sweep of an ablation. Raises UsageError with the nearest name."""
    from cadge_results.complaint import nearest

    known = [path.stem.removeprefix(PREFIX) for path in find_checkout().sweeps.glob(f"{PREFIX}*.yml")]
    if name not in known:
        raise UsageError(f"unknown ablation {name!r}{nearest(name, known)}")
    return f"{PREFIX}{name}"


def _answer(campaign: Campaign) -> tuple[Any, list[str]]:
    """Return the ablation for programs and for people."""
    from cadge_analysis.page.ablation_table import answer

    found = answer(campaign)
    lines: list[str] = []
    for one in found.tables:
        lines += [one.title, *(f"  {line}" for line in table(one.rows)), *(f"  {text}" for text in one.remarks), ""]
    return found.data, [*lines, found.note]
