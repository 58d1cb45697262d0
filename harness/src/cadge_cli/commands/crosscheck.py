# SPDX-License-Identifier: BSD-3-Clause
"""`cadge crosscheck`: Cadge beside native tools, in the same rounds; and a stored campaign's table."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import click

from cadge_cli.options import (
    EXAMPLES,
    MeasureOptions,
    answers,
    measuring_options,
    opened,
    patterns_option,
    places_option,
    refuse_options,
    selftest_option,
    sizes_of,
    sizes_option,
    words_of,
)
from cadge_cli.output import edition
from cadge_cli.words import say
from cadge_harness.errors import EXIT_CHANGED, EXIT_OK, NothingSelectedError, UsageError
from cadge_harness.paths import find_checkout

if TYPE_CHECKING:
    from pydantic import JsonValue

    from cadge_analysis.stats.natives import NativePair
    from cadge_cli.output import Output
    from cadge_harness.native.cells import NativeSelection
    from cadge_results import Campaign, PatternFile
    from cadge_results.formats.base import Place

EXIT_TEXT = (
    "\n\n\b\nExit codes:\n"
    "  0  compared; nothing is beyond doubt above --threshold\n"
    "  5  nothing can be compared: the reasons are in the answer\n"
    "  8  a difference is above --threshold, by the lower end of its interval\n"
    "  and those of `cadge run`"
)
SIZES = "8B 4KiB 64KiB 1MiB"
POINT_MS = 150
PLACES: tuple[Place, ...] = ("within", "between")
_OF_A_RUN = (
    "layer_names", "tool_names", "patterns", "places", "sizes", "rounds", "seed", "testbed_name", "inventory", "queue",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Limits:
    """From which difference on the exit code says so; None: from none."""

    ns: float | None = None
    share: float | None = None


@click.command(
    epilog=EXAMPLES
    + "  cadge crosscheck\n"
    + '  cadge crosscheck --layers native-ucx --sizes "8B 4KiB" --rounds 15\n'
    + "  cadge crosscheck --places between --threshold 3%\n"
    + "  cadge crosscheck --tools all --testbed local\n"
    + "  cadge crosscheck last --format markdown --threshold 150ns --threshold 5%"
    + EXIT_TEXT
)
@click.argument("campaign", required=False)
@click.option("--layers", "layer_names", multiple=True, metavar="NAMES", help="Only these layers.")
@click.option(
    "--tools",
    "tool_names",
    multiple=True,
    metavar="NAMES|all",
    help="These tools (ucx_perftest, sockperf, ...), or all; default: one for each layer, pattern and wait mode.",
)
@patterns_option("all that a native tool measures too")
@places_option("within", PLACES)
@sizes_option(SIZES)
@click.option("--rounds", type=click.IntRange(1, 1000), default=9, show_default=True, help="Launches of each.")
@click.option("--seed", type=click.IntRange(0, 2**63 - 1), default=1, show_default=True, help="Order seed.")
@click.option(
    "--threshold",
    multiple=True,
    metavar="TIME|SHARE",
    help="Exit with 8 if Cadge takes more than this beyond doubt: 150ns (messages below 4 KiB), 3% (others, and"
    " rates).",
)
@click.option("--format", "kind", type=click.Choice(["text", "markdown"]), default="text", show_default=True)
@measuring_options
@selftest_option
@answers
def crosscheck(
    campaign: str | None,
    layer_names: tuple[str, ...],
    tool_names: tuple[str, ...],
    patterns: tuple[str, ...],
    places: tuple[str, ...],
    sizes: tuple[str, ...],
    rounds: int,
    seed: int,
    threshold: tuple[str, ...],
    kind: Literal["text", "markdown"],
    how: MeasureOptions,
    output: Output,
) -> int:
    """Compare layers with the native tools of their libraries, and print how much more Cadge takes.

    Launches of Cadge and runs of the tools share rounds, hosts and processors, in random order, with untouched
    data. They poll or sleep as the tool does. All times are whole round trips. With CAMPAIGN (an id, or `last`),
    Cadge measures nothing and prints the table of that campaign.

    Ctrl-C stops it; `cadge resume` continues with the remaining tools.
    """
    limits = limits_of(threshold)
    if campaign is not None:
        refuse_options(_OF_A_RUN, say("crosscheck.measures_only"))
        found = opened(how.results, campaign)
        code, data, lines = _answer(found, limits, kind, output)
        return output.finish(code, {"run": None, "crosscheck": data}, lines)
    from dataclasses import replace

    from cadge_cli.commands.run import measure
    from cadge_harness.native.cells import sweep_text
    from cadge_harness.native.interleave import NativeCampaign
    from cadge_harness.plan.patterns import read_patterns
    from cadge_harness.run.request import read_request

    if how.inventory is not None:
        raise UsageError(say("crosscheck.inventory"))
    workloads = read_patterns(find_checkout())
    wanted = _wanted(workloads.patterns, layer_names, tool_names, patterns, places, sizes)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "crosscheck.yml")
        text = sweep_text(wanted.pairs, workloads.patterns, rounds=rounds, seed=seed, duration_ms=POINT_MS)
        path.write_text(text, encoding="utf-8")
        request = read_request(str(path))
    beside = NativeCampaign(wanted.pairs, wanted.absent, rounds)
    done = measure(request, output, replace(how, report=False), beside)
    if not done.campaign.launch_ids():
        return output.finish(done.code, {"run": done.data, "crosscheck": None}, done.lines)
    code, data, lines = _answer(done.campaign, limits, kind, output)
    code = done.code if done.code != EXIT_OK else code
    return output.finish(code, {"run": done.data, "crosscheck": data}, [*lines, "", *done.lines])


def limits_of(texts: Sequence[str]) -> Limits:
    """Read --threshold. Raises UsageError."""
    ns = share = None
    for text in texts:
        match = re.fullmatch(r"([0-9]+(?:\.[0-9]+)?)(ns|us|%)", text.strip())
        if match is None:
            raise UsageError(say("crosscheck.threshold", text=text))
        number = float(match[1])
        if match[2] == "%":
            share = number / 100
        else:
            ns = number * (1000 if match[2] == "us" else 1)
    return Limits(ns, share)


def _wanted(
    patterns: Mapping[str, PatternFile],
    layer_names: tuple[str, ...],
    tool_names: tuple[str, ...],
    pattern_names: tuple[str, ...],
    places: tuple[str, ...],
    sizes: tuple[str, ...],
) -> NativeSelection:
    from cadge_cli.options import names_of
    from cadge_harness.native.cells import choose, natives_of
    from cadge_harness.native.tools import TOOLS
    from cadge_harness.plan.catalogue import read_catalogue

    natives = natives_of(info.file for info in read_catalogue(find_checkout()).layers)
    programs = list(dict.fromkeys(name for tool in TOOLS for name in (tool.name, tool.name.split()[0])))
    named = list(tool_names)
    if named == ["all"]:
        named = [tool.name for tool in TOOLS]
    elif any(name not in programs for name in named):
        named = names_of(tool_names, programs, "native tool")
    known = list(dict.fromkeys(one.pattern for ones in natives.values() for one in ones))
    where: list[Place] = ["between" if one == "between" else "within" for one in words_of("--places", places, PLACES)]
    return choose(
        TOOLS,
        natives,
        patterns,
        layers=names_of(layer_names, list(natives), say("crosscheck.with_tool", kind="layer")) if layer_names else (),
        named=named,
        only=names_of(pattern_names, known, say("crosscheck.with_tool", kind="pattern")) if pattern_names else (),
        places=where or ["within"],
        sizes=sizes_of(sizes or (SIZES,)),
    )


def _answer(
    campaign: Campaign, limits: Limits, kind: Literal["text", "markdown"], output: Output
) -> tuple[int, dict[str, JsonValue], list[str]]:
    """Return exit code, data and lines; what is above a limit is said at once."""
    from cadge_analysis.page.parts.natives import blocks_of, data_of
    from cadge_analysis.stats.natives import runs_of

    found, runs = campaign.native(), runs_of(campaign)
    if found is None or runs is None:
        raise NothingSelectedError(say("crosscheck.no_runs", campaign_id=campaign.campaign_id))
    above = [said for row in runs.pairs if (said := over(row, limits))]
    for problem in above:
        output.problem(problem)
    data: dict[str, JsonValue] = {
        "campaign_id": campaign.campaign_id,
        "rounds": found.rounds,
        "rows": [data_of(row) for row in runs.pairs],
        "absent": [one.model_dump(mode="json") for one in found.absent],
        "versions": dict(found.versions),
        "above": [*above],
    }
    return EXIT_CHANGED if above else EXIT_OK, data, edition(blocks_of(runs), kind).splitlines()


def over(row: NativePair, limits: Limits) -> str:
    """Return a sentence where a difference is surely above its limit, else nothing."""
    from cadge_analysis import units

    if row.says == "withheld":
        return ""
    name = f"{row.layer} {row.does} {units.size(row.cell.bytes)} {row.place}, {row.cell.tool}"
    if row.short:
        low = row.tax_ns.low if row.tax_ns else None
        if limits.ns is not None and low is not None and low > limits.ns and row.says != "cannot tell":
            return say("crosscheck.more_ns", what=name, low=low, ns=limits.ns)
        return ""
    ends = row.slower
    if limits.share is not None and ends is not None and ends[1] > 1 + limits.share:
        return say("crosscheck.more_times", what=name, low=ends[1], limit=1 + limits.share)
    return ""
