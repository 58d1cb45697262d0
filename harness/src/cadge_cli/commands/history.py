# SPDX-License-Identifier: BSD-3-Clause
"""`cadge history`: campaigns over time, point by point, with the changes that are found in them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from cadge_cli.options import EXAMPLES, answers, out_option, results_option
from cadge_cli.output import Output, edition, section
from cadge_cli.sides import Campaigns, margin_of
from cadge_cli.words import say
from cadge_harness.errors import EXIT_NOTHING, EXIT_OK, NothingSelectedError, UsageError
from cadge_harness.paths import find_checkout

if TYPE_CHECKING:
    from cadge_analysis.blocks.model import Block
    from cadge_analysis.versus.history import History
    from cadge_analysis.versus.sides import Side

EXIT_CODES = (
    "\n\n\b\nExit codes:\n"
    "  0  answered, with or without changes\n"
    "  2  an option is wrong\n"
    "  5  there are fewer than two campaigns, or no two have a comparable point"
)
LISTED_MOST = 60
HEADS = ("point", "after / before", "from campaign", "before", "after", "p", "what else changed there")


@click.command(
    epilog=EXAMPLES
    + "  cadge history\n"
    + "  cadge history 20261101T013042Z-1f3a9c2e 20261108T013107Z-77ab01de last\n"
    + "  cadge history --format html -o history.html"
    + EXIT_CODES
)
@click.argument("names", nargs=-1, metavar="[CAMPAIGN]...")
@click.option("--format", "kind", type=click.Choice(["text", "html"]), default="text", show_default=True)
@click.option(
    "--margin", default="5%", show_default=True, metavar="SHARE", help="Smaller differences count as the same."
)
@out_option(text="File instead of stdout.")
@results_option
@answers
def history(
    names: tuple[str, ...],
    kind: str,
    margin: str,
    out: Path | None,
    results: Path | None,
    output: Output,
) -> int:
    """Show each point over several campaigns, or over all of them, and where it changed.

    Campaigns are ordered by time. Each gives a point one value, its median. E-divisive with a permutation test of 1 %
    finds changes, from ten campaigns on. Floors show the machine itself: if they changed too, a change may be the
    machine's. Changes of versions, paths, links and settings are listed as events. Values of other machines, or of
    processes placed differently, are left out and listed.
    """
    from cadge_analysis.page.history import missing
    from cadge_analysis.versus.history import history as history_of
    from cadge_analysis.versus.history_data import document

    if kind == "html" and output.as_json and out is None:
        raise UsageError(say("general.json_needs_file", what="the page"))
    share = margin_of(margin)
    found = history_of(_campaigns(names, results), share)
    data = document(found)
    if not found.courses:
        why = next(iter(found.left), say("history.none_in_common"))
        output.problem(say("history.none_comparable", n=len(found.campaigns), why=why))
        return output.finish(EXIT_NOTHING, data)
    said = missing(found)
    if said:
        output.problem(said)
    text = _page(found) if kind == "html" else edition(_blocks(found), kind)
    lines = output.put(text, out, say("general.one_file") if kind == "html" else "", [_gist(found)])
    if out is not None:
        data |= {"file": str(out)}
    return output.finish(EXIT_OK, data, lines)


def _campaigns(names: tuple[str, ...], results: Path | None) -> list[Side]:
    """Return the named campaigns, each once; all that have launches where none is named."""
    from cadge_results import Store

    campaigns = Campaigns(results)
    if names:
        sides = [campaigns.side(name, lean=True) for name in names]
    else:
        store = Store(results or find_checkout().campaigns)
        sides = [campaigns.side(str(one.path), lean=True) for one in store.campaigns() if one.launch_ids()]
    found = {side.name: side for side in sides}
    if len(found) < 2:
        have = f"there is {len(found)}" if found else "there is none"
        raise NothingSelectedError(
            say("history.too_few", have=have),
            commands=("cadge run", "cadge report last"),
        )
    return list(found.values())


def _page(found: History) -> str:
    from cadge_analysis.blocks.html import printed
    from cadge_analysis.page import history as pages
    from cadge_analysis.report import stamp

    return printed(pages.page(found, generated=stamp(found.campaigns[-1].data)))


def _gist(found: History) -> str:
    from cadge_analysis import units

    cells, changed = units.count_of(len(found.courses), "point"), len(found.changed)
    by_chance = units.sig3(found.by_chance)
    return say(
        "history.gist",
        n=len(found.campaigns),
        cells=cells,
        changed=changed,
        unchanged=found.testable - changed,
        untested=len(found.courses) - found.testable,
        by_chance=by_chance,
    )


def _blocks(found: History) -> Iterator[Block]:
    from cadge_analysis.blocks.make import plain, plain_table
    from cadge_analysis.page.history import change_rows, way

    sides = enumerate(found.campaigns, 1)
    campaigns = [(str(at), one.name, one.data.meta.created_utc, str(len(one.numbers))) for at, one in sides]
    yield plain_table("", ("no.", "campaign", "measured", "points"), campaigns)
    if found.machine is not None:
        course = "  ".join(f"{stop.at + 1}: {stop.value:.3f}" for stop in found.machine.stops)
        turns = [say("history.machine_changed", at=one.at + 1, ratio=one.ratio) for one in found.machine.turns]
        yield plain("; ".join([say("history.machine", course=course), *turns]))
    rows = []
    for one, turn, events in change_rows(found):
        too = "floors as well" if found.machine_turned(turn.at) else ""
        what = f"{turn.ratio:.3f} {way(one, turn)}"
        said = "; ".join(filter(None, (too, events)))
        rows.append((one.name, what, str(turn.at + 1), *one.levels(turn), f"{turn.p:.2g}", said))
    yield plain_table("", HEADS, rows[:LISTED_MOST])
    if len(rows) > LISTED_MOST:
        yield plain(say("history.more", n=len(rows) - LISTED_MOST))
    others = (
        f"{one.at + 1}: {one.what}: {one.first or 'nothing'} -> {one.second or 'nothing'}" for one in found.events
    )
    yield from section("what else changed", others)
    yield from section(say("history.not_comparable"), (f"{often}: {why}" for why, often in found.left.items()))
    yield plain(_gist(found))
