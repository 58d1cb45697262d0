# SPDX-License-Identifier: BSD-3-Clause
"""`cadge study`: campaigns beside the published figures of one paper, as one HTML page."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click
from pydantic import JsonValue

from cadge_cli.options import EXAMPLES, answers, out_option, refuse_others, results_option, with_launches
from cadge_cli.output import Output, wrapped
from cadge_cli.words import say
from cadge_harness.errors import EXIT_OK, UsageError
from cadge_harness.paths import Checkout, find_checkout
from cadge_results.command import command

if TYPE_CHECKING:
    from cadge_analysis.study.claims import Hypothesis, TestPlace

PUBLISHED = "published.yml"


@click.command(
    epilog=EXAMPLES
    + "  cadge study peregrine\n  cadge study peregrine 20261121T013042Z-1f3a9c2e -o peregrine.html\n"
    + "  cadge study peregrine last --engine-bench bench.json\n"
    + "  cadge study sc98 20261124T101530Z-5be1f08a last -o sc98.html\n"
    + "  cadge study --claims\n  cadge study --claims --json | jq '.data.hypotheses'"
)
@click.argument("name", required=False)
@click.argument("campaigns", nargs=-1, metavar="[CAMPAIGN]...")
@out_option()
@click.option(
    "--engine-bench",
    type=click.Path(path_type=Path, dir_okay=False),
    help='Results of Peregrine\'s own benchmark, without Cadge: {"readings": [{"name", "unit", "median", "low", '
    '"high"}, ...]}.',
)
@click.option("--claims", is_flag=True, help="List what papers claimed, and where each claim is tested, or why not.")
@results_option
@answers
def study(
    name: str | None,
    campaigns: tuple[str, ...],
    out: Path | None,
    engine_bench: Path | None,
    claims: bool,
    results: Path | None,
    output: Output,
) -> int:
    """Compare campaigns with the published figures of a paper: one HTML page that works offline.

    NAME is a folder of analysis/studies: darpc, logp, peregrine, press, sc98 or trapeze. Without CAMPAIGN the last
    one is used. Each section takes the first campaign that has data for it. Nothing is measured.

    The study sc98 uses the sweeps styles, features, pairs and registration; logp uses loggp; darpc, press and trapeze
    each use the sweep of that name.

    With --claims it lists the claims of all these papers; the studies have the verdicts.
    """
    from cadge_analysis.study.views import build
    from cadge_results import Store
    from cadge_results.formats.complaint import nearest
    from cadge_results.store.layout import check_no_link

    checkout = find_checkout()
    if claims:
        refuse_others(("claims",), "is not for --claims")
        return output.finish(EXIT_OK, *_claims(checkout))
    if name is None:
        raise UsageError(say("study.name_one"))
    known = sorted(path.parent.name for path in checkout.studies.glob(f"*/{PUBLISHED}"))
    if name not in known:
        raise UsageError(f"unknown study {name!r}{nearest(name, known)}")
    store = Store(results or checkout.campaigns)
    found = [store.open(campaign) for campaign in campaigns or ("last",)]
    ids = [one.campaign_id for one in found]
    for one in found:
        if ids.count(one.campaign_id) > 1:
            raise UsageError(say("study.twice", campaign_id=one.campaign_id))
        with_launches(one)
    path = out or check_no_link(found[0].layout.study(name))
    built = build(found, checkout.studies / name, path, engine_bench=engine_bench)
    if not built.has_ours:
        output.problem(say("study.no_point", ids=ids, name=name, command=command("study", "--claims")))
    data: dict[str, JsonValue] = {
        "campaign_id": ids[0],
        "campaign_ids": list(ids),
        "study": str(path),
        "bytes": built.written.size_bytes,
        "has_ours": built.has_ours,
    }
    return output.finish(EXIT_OK, data, output.wrote(built.written, path, say("general.one_file")))


def _claims(checkout: Checkout) -> tuple[JsonValue, list[str]]:
    """Return the claims for programs and for people."""
    from cadge_analysis.study.claims import read
    from cadge_harness.plan.patterns import read_patterns

    sweeps = {path.stem for path in checkout.sweeps.glob("*.yml")}
    found = read(checkout.studies, sweeps, set(read_patterns(checkout).patterns))
    data: list[JsonValue] = []
    lines: list[str] = []
    for number, one in enumerate(found.hypotheses, 1):
        figures = list(_figures(one, checkout.studies))
        data.append({"number": number, **one.model_dump(mode="json"), "figures": [*figures]})
        lines += [*wrapped(one.claim, f"{number:2}  "), *_lines(one, figures), ""]
    tested = sum(bool(one.tested) for one in found.hypotheses)
    lines.append(f"{len(found.hypotheses)} hypotheses, {tested} tested here")
    return {"hypotheses": data}, lines


def _lines(one: Hypothesis, figures: list[str]) -> Iterator[str]:
    for figure in figures:
        yield from wrapped(figure, "    published: ")
    for test in one.tested:
        yield from wrapped(_where(test), "    tested: ")
    if one.limits:
        yield from wrapped(one.limits, "    but: ")
    if one.cannot:
        yield from wrapped(one.cannot, "    not tested: ")


def _figures(one: Hypothesis, studies: Path) -> Iterator[str]:
    from cadge_analysis.study.claims import figure_of

    for named in one.published:
        figure = figure_of(studies, named)
        value = f"{figure.value * 100:g} %" if figure.unit == "share" else f"{figure.value:,.9g} {figure.unit}"
        yield f"{value}: {named.said or figure.name} (study {named.study})"


def _where(test: TestPlace) -> str:
    """Return the commands that show a test."""
    parts = []
    if test.sweep:
        parts.append(command("run", "--sweep", test.sweep))
    if test.study:
        section = f' (section "{test.section}")' if test.section else ""
        parts.append(f"{command('study', test.study)}{section}")
    if test.pattern:
        parts.append(command("patterns", test.pattern))
    return ", ".join(parts)
