# SPDX-License-Identifier: BSD-3-Clause
"""`cadge inventory`."""

from __future__ import annotations

from importlib import resources

import click

from cadge_cli.options import json_option, output_of


@click.group(epilog="\b\nExamples:\n  cadge inventory example >hosts.yml")
def inventory() -> None:
    """Help with describing a cluster's hosts."""


@inventory.command(epilog="\b\nExamples:\n  cadge inventory example >hosts.yml\n  cadge doctor --inventory hosts.yml")
@json_option
@click.pass_context
def example(ctx: click.Context, as_json: bool) -> int:
    """Print an inventory of two hosts with every variable that Cadge reads, and what each is for."""
    output = output_of(ctx, as_json)
    text = resources.files("cadge_harness.testbed").joinpath("example_inventory.yml").read_text(encoding="utf-8")
    return output.finish(0, {"inventory": text}, text.splitlines())
