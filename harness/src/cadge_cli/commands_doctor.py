# SPDX-License-Identifier: BSD-3-Clause
"""`cadge doctor`."""

from __future__ import annotations

from dataclasses import asdict

import click

from cadge_cli.options import json_option, output_of
from cadge_cli.output import table
from cadge_harness.errors import EXIT_OK, EXIT_UNFIT
from cadge_harness.paths import find_checkout
from cadge_harness.plan.catalogue import read_catalogue
from cadge_harness.plan.describe import describe_layers
from cadge_harness.run.findings import look
from cadge_harness.words import count_of


@click.command(epilog="\b\nExamples:\n  cadge doctor\n  cadge doctor --json")
@json_option
@click.pass_context
def doctor(ctx: click.Context, as_json: bool) -> int:
    """Check this machine and the build; change nothing. Exit code 3 where a sweep cannot be made."""
    output = output_of(ctx, as_json)
    checkout = find_checkout()
    found = look(checkout, describe_layers(read_catalogue(checkout), checkout))
    failed = [finding for finding in found if finding.level == "fail"]
    for finding in found:
        if finding.level in {"warn", "fail"}:
            output.problems.append(f"{finding.code} {finding.text}")
    rows = [("", "", "")]
    rows += [(item.level, item.code, item.text + (f"   fix: {item.fix}" if item.fix else "")) for item in found]
    warned = sum(1 for finding in found if finding.level == "warn")
    lines = [
        *table(rows)[1:],
        f"{len(failed)} failed, {count_of(warned, 'warning')}."
        + ("" if failed else "   Next:  cadge run --sweep smoke"),
    ]
    return output.finish(EXIT_UNFIT if failed else EXIT_OK, {"findings": [asdict(item) for item in found]}, lines)
