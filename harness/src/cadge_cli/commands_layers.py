# SPDX-License-Identifier: BSD-3-Clause
"""`cadge layers`. Apart from `plan`, whose modules take longer to import than this takes to answer."""

from __future__ import annotations

import click
from pydantic import JsonValue

from cadge_cli.options import json_option, output_of
from cadge_cli.output import table
from cadge_harness.paths import find_checkout
from cadge_harness.plan.catalogue import LayerInfo, read_catalogue
from cadge_harness.plan.describe import describe_layers
from cadge_harness.words import count_of

EXAMPLES = "\b\nExamples:\n"


@click.command(epilog=EXAMPLES + "  cadge layers\n  cadge layers --json | jq '.data.layers[] | select(.available)'")
@json_option
@click.pass_context
def layers(ctx: click.Context, as_json: bool) -> int:
    """List the layers: what they are, which library serves them, and why some are absent."""
    output = output_of(ctx, as_json)
    checkout = find_checkout()
    catalogue = describe_layers(read_catalogue(checkout), checkout)
    rows = [("layer", "library", "version", "")]
    data: list[JsonValue] = []
    for info in catalogue.layers:
        entry = layer_entry(info)
        data.append(entry)
        rows.append((info.name, info.library, str(entry["version"] or "-"), str(entry["reason"] or "")))
    ready = sum(1 for info in catalogue.layers if info.absent is None)
    lines = [*table(rows), f"{ready} of {count_of(len(catalogue.layers), 'layer')} built."]
    return output.finish(0, {"layers": data}, lines)


def layer_entry(info: LayerInfo) -> dict[str, JsonValue]:
    """Return one layer as `cadge layers --json` shows it."""
    return {
        "name": info.name,
        "style": info.file.style,
        "substrate": info.file.substrate,
        "title": info.file.title,
        "library": info.library,
        "version": info.description.version if info.description else None,
        "available": info.absent is None,
        "reason": info.absent.reason if info.absent else None,
    }
