# SPDX-License-Identifier: BSD-3-Clause
"""`cadge health`: every pair of hosts measured, and which host or link is slow or stalls."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click
from pydantic import JsonValue

from cadge_cli.commands.run import measure
from cadge_cli.options import EXAMPLES, MeasureOptions, answers, hosts_options, listed, opened
from cadge_cli.output import Output, edition
from cadge_cli.words import say
from cadge_harness.errors import EXIT_BAD_ANSWER, EXIT_CHANGED, EXIT_OK, EXIT_UNREACHABLE, NothingSelectedError
from cadge_harness.run.request import read_request

if TYPE_CHECKING:
    from cadge_analysis.pairs.matrix import PairMatrix
    from cadge_results import Campaign

SWEEP = "health"
EXIT_CODES = (
    "\n\n\b\nExit codes:\n"
    "  0    no host or link is slow\n"
    "  2    a name or an option is wrong\n"
    "  3    nothing is built, or a host cannot be used\n"
    "  4    a host does not answer; the others are measured\n"
    "  5    there are fewer than two hosts\n"
    "  6    not complete; `cadge resume` continues\n"
    "  8    a host or link is slow, stalls, or gave no number"
)


@click.command(
    epilog=EXAMPLES
    + "  cadge health --inventory lab.yml\n  cadge health --testbed slurm:ib0\n"
    + "  cadge health --inventory lab.yml --pairs 8\n  cadge health --of last"
    + EXIT_CODES
)
@click.option(
    "--layers", "names", multiple=True, metavar="NAMES", help="Measure with these layers instead of the sweep's."
)
@click.option(
    "--pairs",
    type=click.IntRange(1),
    metavar="K",
    help="Measure each host with K others instead of all, for more than 64 hosts.",
)
@click.option("--of", "campaign", metavar="CAMPAIGN", help="Answer from a stored campaign, and measure nothing.")
@hosts_options
@answers
def health(names: tuple[str, ...], pairs: int | None, campaign: str | None, how: MeasureOptions, output: Output) -> int:
    """Measure every pair of hosts both ways by two layers, and name a host or link that is slow or stalls.

    A host is slow if it is slower than the rest by more than 10 %, and by five robust standard deviations, over every
    layer. A link is slow from 33 % on, or from 10 % and eight standard deviations. A host or link loses packets or
    stalls if its mean call takes more than twice as long as the rest's. With fewer than four hosts, Cadge shows numbers
    only. Eight hosts take two minutes, sixteen about eight.
    """
    if campaign is not None:
        return _answered(opened(how.results, campaign), output, EXIT_OK, {}, [])
    request = read_request(SWEEP, only=listed("--layers", names, "sockets-tcp native-ucx"))
    if pairs is not None:
        request = request.with_pairs(pairs)
    done = measure(request, output, how)
    if done.code not in (EXIT_OK, EXIT_BAD_ANSWER, EXIT_UNREACHABLE) or not done.campaign.launch_ids():
        return output.finish(done.code, done.data, done.lines)
    return _answered(done.campaign, output, done.code, done.data, done.lines)


def _answered(campaign: Campaign, output: Output, code: int, data: dict[str, JsonValue], lines: list[str]) -> int:
    from cadge_analysis.pairs.matrix import matrices
    from cadge_analysis.pairs.section import is_well, matrix_table, means_that_stall, sentences
    from cadge_analysis.stats.load import read

    found = matrices(read(campaign))
    if not found:
        raise NothingSelectedError(say("health.no_pairs", campaign_id=campaign.campaign_id))
    tables = edition(map(matrix_table, [*found, *means_that_stall(found)]), "text").splitlines()
    said = sentences(found)
    data = {**data, "found": [*said], "is_well": is_well(found), "matrices": [_data(one) for one in found]}
    if code in (EXIT_OK, EXIT_BAD_ANSWER) and not is_well(found):
        code = EXIT_CHANGED
    return output.finish(code, data, [*said, "", *tables, *lines])


def _data(one: PairMatrix) -> JsonValue:
    """Return a matrix as a list of pairs: values in the quantity's base unit; spread: see `PairMatrix`."""
    return {
        "layer": one.series.label,
        "pattern": one.case.pattern,
        "parameters": dict(one.case.workload.values),
        "unit": one.quantity.unit,
        "better": one.quantity.better,
        "pairs": [
            {
                "first": pair[0],
                "second": pair[1],
                "value": value,
                "mean_ns": one.means.get(pair),
                "spread": one.spreads.get(pair),
            }
            for pair, value in one.values.items()
        ],
        "missing": [{"first": first, "second": second, "why": why} for (first, second), why in one.missing.items()],
    }
