# SPDX-License-Identifier: BSD-3-Clause
"""`cadge compare`: two campaigns, or two series, point by point; with --point two points side by side."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from math import log1p
from pathlib import Path
from typing import TYPE_CHECKING

import click

from cadge_cli.options import EXAMPLES, answers, out_option, refuse_options, refuse_others, results_option
from cadge_cli.output import Output, edition, section
from cadge_cli.sides import margin_of, share_of, two_sides
from cadge_cli.words import say
from cadge_harness.errors import EXIT_CHANGED, EXIT_NOTHING, EXIT_OK, UsageError

if TYPE_CHECKING:
    from cadge_analysis.blocks.model import Block
    from cadge_analysis.versus.against import Change, Exclusion, SideComparison
    from cadge_analysis.versus.moved import Movement
    from cadge_analysis.versus.sides import Side

EXIT_CODES = (
    "\n\n\b\nExit codes:\n"
    "  0  compared; nothing that --fail-on names was found\n"
    "  2  an option or a side is wrong, or several points have that name\n"
    "  5  nothing can be compared, with the reasons; no such campaign or point;\n"
    "     --fail-on slower or faster has no answer: verdicts are withheld,\n"
    "     or launches are too few\n"
    "  8  --fail-on found what it names"
)
KINDS = ("slower", "faster", "missing", "refused", "undecided")
VERDICTS = ("slower", "faster")
"""Kinds that need a verdict: without one there is no answer."""
OF_VERDICTS = {"slower": "slower", "faster": "faster", "undecided": "cannot tell"}
MISSING = ("disappeared", "newly failing", "no longer measured")
"""What became of cells that the first side has a number of, and the second has not."""
LISTED_MOST = 60
"""So many cells stand in the table; the page and --json have all, and so has --all."""
NAMED_MOST = 3
MEANS_MOST = 12
HEADS = ("point", "verdict", "change", "second / first", "first", "second", "launches without a number", "not compared")


margin_option = click.option(
    "--margin",
    default="5%",
    show_default=True,
    metavar="SHARE",
    help="Smaller differences count as the same, e.g. 2.5%.",
)
fail_on_option = click.option(
    "--fail-on",
    multiple=True,
    metavar="WHAT",
    help="Exit with 8 if a point is slower or faster (slower:5%: by 5 % or more), undecided, refused or missing "
    "in the second. Exit with 5 if verdicts are withheld.",
)


@dataclass(frozen=True)
class FailOn:
    """What makes the exit code say so: a verdict, by at least this share; or cells that are not compared."""

    kind: str
    share: float = 0.0


@click.command(
    epilog=EXAMPLES
    + "  cadge compare 20261121T013042Z-1f3a9c2e last\n"
    + "  cadge compare last:sockets-tcp last:native-ucx\n"
    + "  cadge compare 20261121T013042Z-1f3a9c2e last --fail-on slower:5%\n"
    + "  cadge compare 20261121T013042Z-1f3a9c2e last --format markdown -o out.md\n"
    + "  cadge compare 20261121T013042Z-1f3a9c2e last --format html -o compare.html\n"
    + '  cadge compare last:am-ucx last:fm-ucx --point "within, poll, rpc, 8 B"\n'
    + '  cadge compare 20261121T013042Z-1f3a9c2e last --point "am-ucx, rpc, 8 B"\n'
    + '  cadge compare last:8B last:4KiB --point "am-ucx, within, poll, rpc"'
    + EXIT_CODES
)
@click.argument("first", metavar="CAMPAIGN[:LAYER|:@BUILD|:(SETTING)]")
@click.argument("second", metavar="CAMPAIGN[:LAYER|:@BUILD|:(SETTING)]")
@click.option(
    "--point",
    "cell",
    metavar="POINT",
    help="Show this point of both, side by side: path, protocol, copies, settings, versions, costs, machine.",
)
@margin_option
@fail_on_option
@click.option("--across-hosts", is_flag=True, help="Compare machines: do not refuse other hosts or processors.")
@click.option(
    "--vary",
    multiple=True,
    metavar="CONDITION",
    help="With --format html: a condition that differs on purpose, or the beginning of its name, e.g. library or "
    '"library (am-ucx".',
)
@click.option("--all", "everything", is_flag=True, help="List every point, also those that are the same.")
@click.option("--format", "kind", type=click.Choice(["text", "markdown", "html"]), default="text", show_default=True)
@out_option(text="File instead of stdout.")
@results_option
@answers
def compare(
    first: str,
    second: str,
    cell: str | None,
    margin: str,
    fail_on: tuple[str, ...],
    across_hosts: bool,
    vary: tuple[str, ...],
    everything: bool,
    kind: str,
    out: Path | None,
    results: Path | None,
    output: Output,
) -> int:
    """Compare two campaigns, or two layers: what differed in their conditions, and what became faster or slower.

    A side is a campaign (its id, or `last`), one of its layers (last:native-ucx), or all layers on one build
    (last:@1.22.0) or with one setting ("last:(off=all)"; "last:()" is without any).

    Cadge compares layers of one campaign round by round. Between campaigns the machine drifts. Cadge removes the change
    that all series share, floors included, and widens intervals by how much series differ in it. With fewer than five
    common series, the self-test of this machine gives that width. If layers moved and floors did not, Cadge says so and
    does not call it drift. Verdicts are corrected for the number of points.

    Cadge refuses to compare points of different machines, of processes placed differently, or of patterns that changed
    what they measure. It gives the reason.

    With --point it gives no verdict. It prints two points side by side, differences first. Name POINT as this command
    prints it: layer, place, wait mode, pattern, workload, separated by commas, in any order, as many as needed.
    NAME=VALUE gives a parameter. If the sides differ in one of these, add it to the campaign, as in last:4KiB.

    --format html writes one file that works offline: conditions, changes, ratios against size, tails, and points that
    only one side has.
    """
    from cadge_analysis.versus.against import against
    from cadge_analysis.versus.as_data import document

    if cell is not None:
        refuse_others(("first", "second", "cell", "margin", "kind", "out", "results"), "is not for --point")
        if kind == "html":
            raise UsageError(say("compare.cell_formats"))
        return _side_by_side(output, results, (first, second, cell), margin_of(margin), kind, out)
    if kind == "html":
        refuse_options(("everything",), say("compare.folds"))
        if output.as_json and out is None:
            raise UsageError(say("general.json_needs_file", what="the page"))
    else:
        refuse_options(("vary",), "is for --format html")
    wanted = fail_on_of(fail_on)
    share = margin_of(margin)
    sides = two_sides(results, first, second, lean=kind != "html")  # the page shows tails
    found = against(*sides, share, across_hosts=across_hosts)
    data = document(found)
    text = _page(found, sides, vary) if kind == "html" else edition(blocks_of(found, everything=everything), kind)
    lines = output.put(
        text, out, say("general.one_file") if kind == "html" else "", list(_counts(found))[:1] if found.changes else ()
    )
    if out is not None:
        data |= {"file": str(out)}
    return output.finish(code_of(found, wanted, output), data, lines)


def code_of(found: SideComparison, wanted: Sequence[FailOn], output: Output) -> int:
    """Return the exit code of a comparison, and say why it is not 0."""
    if not found.changes:
        why = say("compare.all_refused") if found.refused else say("compare.none_in_common")
        output.problem(say("compare.nothing_compared", why=why))
        return EXIT_NOTHING
    failed = [one for one in wanted if _holds(one, found)]
    for one in failed:
        limit = f" by {100 * one.share:.3g} % or more" if one.share else ""
        of = len(found.changes) + (0 if one.kind in OF_VERDICTS else len(found.left))
        output.problem(f"--fail-on {one.kind}: {_holds(one, found)} of {of} points{limit}")
    if failed:
        return EXIT_CHANGED
    unanswered = [one.kind for one in wanted if one.kind in VERDICTS] if found.silent else []
    for kind in dict.fromkeys(unanswered):
        why = found.withheld or say("compare.few_launches")
        output.problem(say("compare.no_answer", kind=kind, left=found.silent, n=len(found.changes), why=why))
    return EXIT_NOTHING if unanswered else EXIT_OK


def fail_on_of(texts: Iterable[str]) -> list[FailOn]:
    """Read what --fail-on names. Raises UsageError."""
    return [_fail_on(text) for text in texts]


def _side_by_side(
    output: Output, results: Path | None, named: tuple[str, str, str], margin: float, kind: str, out: Path | None
) -> int:
    """Show the cell `named`, of the first and of the second campaign, both of which it names."""
    from cadge_cli.two_cells import beside

    data, blocks = beside(results, *named, margin)
    lines = output.put(edition(blocks, kind), out)
    return output.finish(EXIT_OK, data | ({"file": str(out)} if out is not None else {}), lines)


def _page(found: SideComparison, sides: tuple[Side, Side], vary: tuple[str, ...]) -> str:
    from cadge_analysis.blocks.html import printed
    from cadge_analysis.page import beside
    from cadge_analysis.report import stamp

    newest = max((side.data for side in sides), key=lambda data: data.meta.created_utc)
    return printed(beside.page(found, *sides, vary=vary, generated=stamp(newest)))


def _fail_on(text: str) -> FailOn:
    kind, colon, share = text.partition(":")
    if kind not in KINDS or (colon and kind not in VERDICTS):
        raise UsageError(say("compare.fail_on", text=text))
    return FailOn(kind, share_of(share, f"--fail-on {kind}:") if colon else 0.0)


def _holds(what: FailOn, found: SideComparison) -> int:
    """Return in how many cells what --fail-on names is so."""
    if what.kind == "missing":
        return sum(str(one.fate) in MISSING for one in found.left)
    if what.kind == "refused":
        return sum(found.refused.values())
    cells = [change for change in found.changes if change.judged.verdict == OF_VERDICTS[what.kind]]
    return sum(abs(change.shift.log_ratio) >= log1p(what.share) for change in cells)


# ---- for people ----


def blocks_of(found: SideComparison, *, everything: bool) -> Iterator[Block]:
    """Yield a comparison for people."""
    from cadge_analysis.blocks.make import listed, plain, plain_table
    from cadge_analysis.versus.sides import side_title

    yield listed((f"first: {side_title(found.first)}", f"second: {side_title(found.second)}"))
    yield from _about(found, everything=everything)
    if found.changes or (everything and found.left):
        heads, rows, more = _changes(found, everything=everything)
        yield plain_table("", heads, rows)
        yield plain(more)
    if found.changes:
        yield listed(_counts(found))


def _about(found: SideComparison, *, everything: bool) -> Iterator[Block]:
    from cadge_analysis import units
    from cadge_analysis.blocks.make import plain
    from cadge_analysis.versus.drift_words import moved_alike, unknown, where

    if not found.conditions:
        yield plain(say("compare.conditions_alike"))
    if any(one.other_machine for one in found.conditions):
        yield plain(say("compare.machines" if found.across_hosts else "compare.other_machines"))
    changed = (f"{one.what}: {one.first or 'nothing'} -> {one.second or 'nothing'}" for one in found.conditions)
    yield from section(say("compare.conditions"), changed)
    yield from section(say("compare.machine_itself"), map(_step, found.moved))
    yield from section(say("compare.drift"), (f"{where(one)}: {moved_alike(one)}" for one in found.drift))
    if found.drift_is_unknown:
        yield plain(unknown(has_usual=bool(found.usual)))
    left = (
        f"{units.count_of(count, 'point')} {title}: {why} ({_named(found, why)})"
        for title, counts in (("refused", found.refused), ("left out", found.missing))
        for why, count in counts.items()
    )
    if not everything:  # else each has a row of its own
        yield from section(say("compare.not_compared"), left)
    how = "not paired"
    if found.paired:
        allowed = say("compare.correlate", correlation=found.correlation) if found.correlation else ""
        how = f"paired by round{allowed}"
    yield plain(say("compare.same_within", how=how, margin=100 * found.margin))
    if found.withheld:
        yield plain(f"verdicts are withheld: {found.withheld}")


def _step(step: Movement) -> str:
    most = f" ({step.least:.3f} to {step.most:.3f}, median of {step.parts})" if step.parts > 1 else ""
    return f"{step.what}: {step.ratio:.3f}{most}"


def _named(found: SideComparison, why: str) -> str:
    """Return the first cells that are not compared for a reason; all of them are in the answer for programs."""
    names = [one.name for one in found.left if one.why == why]
    return "; ".join(names[:NAMED_MOST]) + ("; ..." if len(names) > NAMED_MOST else "")


def _changes(found: SideComparison, *, everything: bool) -> tuple[tuple[str, ...], list[tuple[str, ...]], str]:
    """Return heads and rows of the changes, without columns that would be empty, and what is not listed in them."""
    from cadge_analysis import units
    from cadge_analysis.stats.inference.verdict import Verdict

    listed = [one for one in found.changes if everything or one.judged.verdict is not Verdict.SAME]
    shown = listed if everything else listed[:LISTED_MOST]
    left_out = {HEADS.index("change")} if found.paired else set()  # with nothing taken out, the change is the ratio
    left_out |= set() if any(change.objections for change in shown) else {len(HEADS) - 2}
    left = [_row_of_left(one) for one in found.left] if everything else []
    left_out |= set() if left else {len(HEADS) - 1}
    same, more = len(found.changes) - len(listed), len(listed) - len(shown)
    said = [f"{units.count_of(same, 'point')} the same"] if same else []
    said += [f"{units.count_of(more, 'point')} more"] if more else []
    heads, *rows = [
        tuple(text for at, text in enumerate(row) if at not in left_out) for row in (HEADS, *map(_row, shown), *left)
    ]
    return heads, rows, f"{' and '.join(said)}, listed with --all" if said else ""


def _row(change: Change) -> tuple[str, ...]:
    from cadge_analysis.stats.inference.verdict import Verdict
    from cadge_analysis.versus.change_words import disagreement, interval, more

    judged = change.judged
    ends = f" {interval(change, lambda end: f'{end:.3f}')}".rstrip().replace("\u00a0", " ")
    verdict = judged.verdict.word
    if judged.verdict is Verdict.UNKNOWN and (against := more(change)):
        verdict += f" ({against})"
    first, second = change.values
    ratio = f"{change.ratio:.3f}{ends if change.shift.shift.paired else ''}{disagreement(change)}"
    return change.name, verdict, f"{change.change:.3f}{ends}", ratio, first, second, change.objections, ""


def _row_of_left(one: Exclusion) -> tuple[str, ...]:
    return one.name, str(one.fate), "", "", *one.values, "", "; ".join(one.reasons) or one.why


def _counts(found: SideComparison) -> Iterator[str]:
    from cadge_analysis import units
    from cadge_analysis.stats.inference.sequential import ERROR
    from cadge_analysis.stats.inference.verdict import Verdict

    said = ", ".join(f"{found.count(verdict)} {verdict.word}" for verdict in Verdict if found.count(verdict))
    yield (say("compare.counts", n=len(found.changes), verdicts=said, error=100 * ERROR))
    if found.holds:
        yield found.holds
    levels = sorted({change.judged.level for change in found.changes if change.judged.interval})
    if levels:
        said = " or ".join(f"{100 * (1 - level):.4g} %" for level in levels)
        yield say("compare.intervals", levels=said)
    for one in found.wholes[:MEANS_MOST]:
        mean = f"no geometric mean: {one.why}"
        if one.mean is not None:
            mean = say("compare.mean", mean=one.mean, n=one.cells)
        better = "less is better" if one.better == "low" else "more is better"
        yield f"{one.series}, {one.pattern}, {one.quantity} ({better}): {mean}"
    if len(found.wholes) > MEANS_MOST:
        yield f"{units.count_of(len(found.wholes) - MEANS_MOST, 'mean')} more with --json"
