# SPDX-License-Identifier: BSD-3-Clause
"""`cadge compare`: two campaigns, or two series, cell by cell, with verdicts."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import exp, log1p
from pathlib import Path
from typing import TYPE_CHECKING

import click
from pydantic import JsonValue

from cadge_cli.options import json_option, output_of, results_option
from cadge_harness.errors import EXIT_CHANGED, EXIT_OK, NothingSelectedError, UsageError
from cadge_harness.paths import find_checkout

if TYPE_CHECKING:
    from cadge_analysis.versus.against import Against, Change
    from cadge_analysis.versus.sides import Side
    from cadge_results import Store

EXAMPLES = "\b\nExamples:\n"
MARGIN_MOST = 1.0
SHARE = re.compile(r"([0-9]+(?:\.[0-9]+)?)%")
KINDS = ("slower", "faster", "missing")


@dataclass(frozen=True)
class FailOn:
    """What makes the exit code say so: a verdict, by at least this share; or cells that the second side lacks."""

    kind: str
    share: float = 0.0


@click.command(
    epilog=EXAMPLES
    + "  cadge compare 20261121T013042Z-1f3a9c2e last\n"
    + "  cadge compare last:sockets-tcp last:native-ucx\n"
    + "  cadge compare before last --fail-on slower:5% --fail-on missing\n"
    + "  cadge compare before last --format markdown >>$GITHUB_STEP_SUMMARY"
)
@click.argument("first", metavar="CAMPAIGN[:LAYER]")
@click.argument("second", metavar="CAMPAIGN[:LAYER]")
@click.option(
    "--margin", default="5%", show_default=True, metavar="SHARE", help="Within this the sides are the same, e.g. 2.5%."
)
@click.option(
    "--fail-on",
    multiple=True,
    metavar="WHAT",
    help="Exit with 8 where a cell is slower or faster (also by a least share: slower:5%), or missing in the second.",
)
@click.option("--format", "kind", type=click.Choice(["text", "markdown"]), default="text", show_default=True)
@results_option
@json_option
@click.pass_context
def compare(
    ctx: click.Context,
    first: str,
    second: str,
    margin: str,
    fail_on: tuple[str, ...],
    kind: str,
    results: Path | None,
    as_json: bool,
) -> int:
    """Compare two campaigns, or two layers: what differed in their conditions, and what became faster or slower.

    Each side is a campaign (its id, or `last`), or a layer of one as reports name it. Layers of one campaign are
    compared launch by launch, since launches of a round stand side by side; campaigns are not, and what the machine did
    between them is in the difference. Verdicts stand up to all cells that are compared together.
    """
    from cadge_analysis.versus.against import against
    from cadge_results import Store

    output = output_of(ctx, as_json)
    wanted = [_fail_on(text) for text in fail_on]
    share = _share(margin, "--margin")
    if not 0 < share <= MARGIN_MOST:
        raise UsageError(f"--margin {margin}: it is above 0% and at most 100%")
    store = Store(results or find_checkout().campaigns)
    sides = _sides(store, first, second)
    found = against(*sides, share)
    if not found.changes:
        missing = "; ".join(f"{why} ({count})" for why, count in found.missing.items())
        raise NothingSelectedError(f"the two sides have no cell in common{': ' if missing else ''}{missing}")
    lines = list(_markdown(found) if kind == "markdown" else _text(found))
    failed = [one for one in wanted if _holds(one, found)]
    for one in failed:
        limit = f" by {100 * one.share:.3g} % or more" if one.share else ""
        output.problem(f"--fail-on {one.kind}: {_holds(one, found)} of {len(found.changes)} cells{limit}")
    return output.finish(EXIT_CHANGED if failed else EXIT_OK, _data(found), lines)


def _share(text: str, option: str) -> float:
    said = SHARE.fullmatch(text)
    if said is None:
        raise UsageError(f"{option} {text}: a share is written like 5% or 2.5%")
    return float(said[1]) / 100


def _fail_on(text: str) -> FailOn:
    kind, colon, share = text.partition(":")
    if kind not in KINDS or (colon and kind == "missing"):
        raise UsageError(f"--fail-on {text}: it is slower, faster (also with a share, e.g. slower:5%), or missing")
    return FailOn(kind, _share(share, f"--fail-on {kind}:") if colon else 0.0)


def _holds(what: FailOn, found: Against) -> int:
    """Return in how many cells what --fail-on names is so."""
    if what.kind == "missing":
        return sum(count for why, count in found.missing.items() if why.endswith(f"in {found.second}"))
    cells = [change for change in found.changes if change.judged.verdict == what.kind]
    return sum(abs(change.shift.log_ratio) >= log1p(what.share) for change in cells)


def _sides(store: Store, first: str, second: str) -> tuple[Side, Side]:
    from cadge_analysis.stats.load import Dataset, read
    from cadge_analysis.versus.sides import Side
    from cadge_harness.yamlfile import nearest

    read_once: dict[str, Dataset] = {}

    def side(text: str) -> Side:
        campaign, colon, layer = text.partition(":")
        found = store.open(campaign or "last")
        if not found.launch_ids():
            raise NothingSelectedError(f"campaign {found.campaign_id} has no launches yet")
        if found.campaign_id not in read_once:
            read_once[found.campaign_id] = read(found)
        data = read_once[found.campaign_id]
        if not colon:
            return Side(found.campaign_id, data)
        known = {series.label: series for series in data.layers}
        if layer not in known:
            raise UsageError(f"campaign {found.campaign_id} has no layer {layer!r}{nearest(layer, sorted(known))}")
        return Side(f"{found.campaign_id}:{layer}", data, known[layer])

    sides = side(first), side(second)
    if (sides[0].series is None) != (sides[1].series is None):
        raise UsageError("one side is a layer and the other a whole campaign; give both a layer, or none")
    return sides


# ---- for people ----


def _text(found: Against) -> Iterator[str]:
    yield f"first   {found.first}"
    yield f"second  {found.second}"
    yield from _about(found)
    rows = [("verdict", "second / first", "first", "second", "cell"), *map(_row, found.changes)]
    widths = [max(len(row[column]) for row in rows) for column in range(4)]
    yield ""
    for row in rows:
        cells = [text.ljust(width) for text, width in zip(row, widths, strict=False)]
        yield "  ".join([*cells, row[4]]).rstrip()
    yield ""
    yield _counts(found)


def _markdown(found: Against) -> Iterator[str]:
    yield f"**{found.second}** against **{found.first}**"
    yield ""
    yield from (f"- {line.strip()}" for line in _about(found))
    yield ""
    yield "| verdict | second / first | first | second | cell |"
    yield "|---|---|---|---|---|"
    yield from (f"| {' | '.join(text.replace('|', '&#124;') for text in _row(change))} |" for change in found.changes)
    yield ""
    yield _counts(found)


def _about(found: Against) -> Iterator[str]:
    if not found.conditions:
        yield "nothing differed in the conditions that are known"
    if any(one.other_machine for one in found.conditions):
        yield "other machines: what is compared is machines, not layers"
    for one in found.conditions:
        yield f"  {one.what}: {one.first or 'nothing'} -> {one.second or 'nothing'}"
    for why, count in found.missing.items():
        yield f"  {count} {'cell' if count == 1 else 'cells'} not compared: {why}"
    yield f"{'paired by round' if found.paired else 'not paired'}; the same is within {100 * found.margin:.3g} %"


def _row(change: Change) -> tuple[str, str, str, str, str]:
    from cadge_analysis import units
    from cadge_analysis.stats.intervals import TARGET_COVERAGE

    shift, judged = change.shift, change.judged
    interval = ""
    if shift.low is not None and shift.high is not None:
        interval = f" [{exp(shift.low):.3f}, {exp(shift.high):.3f}]"
        if shift.coverage < TARGET_COVERAGE:
            interval += f" {units.percent(shift.coverage, 0)}"
    verdict = str(judged.verdict)
    if judged.verdict == "cannot tell":
        verdict += f" (about {judged.more} launches more)" if judged.more else " (far more launches)"
    where = ", ".join((change.series, change.place, change.wait, change.pattern, change.workload, change.quantity))
    first, second = (f"{units.sig3(value)} {change.unit}" for value in (change.first, change.second))
    return verdict, f"{change.ratio:.3f}{interval}", first, second, where


def _counts(found: Against) -> str:
    from cadge_analysis.stats.verdict import Verdict

    said = ", ".join(f"{found.count(verdict)} {verdict}" for verdict in Verdict if found.count(verdict))
    cells = len(found.changes)
    return f"{cells} {'cell' if cells == 1 else 'cells'}: {said} (at most 5 % of those called different are not)"


def _data(found: Against) -> dict[str, JsonValue]:
    conditions: Sequence[JsonValue] = [
        {"what": one.what, "first": one.first, "second": one.second, "other_machine": one.other_machine}
        for one in found.conditions
    ]
    changes: Sequence[JsonValue] = [_change(change) for change in found.changes]
    return {
        "first": found.first,
        "second": found.second,
        "paired": found.paired,
        "margin": found.margin,
        "conditions": [*conditions],
        "missing": dict(found.missing),
        "changes": [*changes],
    }


def _change(change: Change) -> dict[str, JsonValue]:
    shift, judged = change.shift, change.judged
    return {
        "series": change.series,
        "place": change.place,
        "wait": change.wait,
        "pattern": change.pattern,
        "workload": change.workload,
        "quantity": change.quantity,
        "unit": change.unit,
        "better": change.better,
        "first": change.first,
        "second": change.second,
        "ratio": change.ratio,
        "ratio_low": None if shift.low is None else exp(shift.low),
        "ratio_high": None if shift.high is None else exp(shift.high),
        "coverage": shift.coverage,
        "launches": [*shift.launches],
        "p": shift.p,
        "p_adjusted": judged.p,
        "verdict": str(judged.verdict),
        "more_launches": judged.more,
    }
