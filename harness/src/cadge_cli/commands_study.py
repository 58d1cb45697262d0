# SPDX-License-Identifier: BSD-3-Clause
"""`cadge study`: a campaign beside the published figures of one paper, as one HTML page."""

from __future__ import annotations

from pathlib import Path

import click
from pydantic import JsonValue

from cadge_cli.options import json_option, out_option, output_of, results_option
from cadge_harness.errors import EXIT_OK, NothingSelectedError, UsageError
from cadge_harness.paths import find_checkout

EXAMPLES = "\b\nExamples:\n"
PUBLISHED = "published.yml"


@click.command(
    epilog=EXAMPLES
    + "  cadge study peregrine\n  cadge study peregrine 20261121T013042Z-1f3a9c2e -o peregrine.html\n"
    + "  cadge study peregrine last --engine-bench bench.json"
)
@click.argument("name")
@click.argument("campaign", default="last")
@out_option()
@click.option(
    "--engine-bench",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Readings of the engine's own benchmark, without Cadge: "
    '{"readings": [{"name", "unit", "median", "low", "high"}, ...]}.',
)
@results_option
@json_option
@click.pass_context
def study(
    ctx: click.Context,
    name: str,
    campaign: str,
    out: Path | None,
    engine_bench: Path | None,
    results: Path | None,
    as_json: bool,
) -> int:
    """Compare a campaign with the published figures of a paper: one HTML page that works offline.

    NAME is a folder of analysis/studies. Nothing is measured.
    """
    from cadge_analysis.study.build import build
    from cadge_harness.yamlfile import nearest
    from cadge_results import Store

    output = output_of(ctx, as_json, out)
    checkout = find_checkout()
    known = sorted(path.parent.name for path in checkout.studies.glob(f"*/{PUBLISHED}"))
    if name not in known:
        raise UsageError(f"unknown study {name!r}{nearest(name, known)}")
    found = Store(results or checkout.campaigns).open(campaign)
    if not found.launch_ids():
        raise NothingSelectedError(f"campaign {found.campaign_id} has no launches yet")
    path = out or found.layout.study(name)
    written = build(found, checkout.studies / name, path, engine_bench=engine_bench)
    data: dict[str, JsonValue] = {"campaign_id": found.campaign_id, "study": str(path), "bytes": written.size_bytes}
    return output.finish(EXIT_OK, data, output.wrote(written, path, "one file, opens offline"))
