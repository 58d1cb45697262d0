# SPDX-License-Identifier: BSD-3-Clause
"""`cadge doctor`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path

import click
from pydantic import JsonValue

from cadge_cli.options import answers, inventory_option, results_option
from cadge_cli.output import Output
from cadge_cli.words import say
from cadge_harness.errors import EXIT_OK, EXIT_UNFIT
from cadge_harness.paths import find_checkout
from cadge_harness.plan.catalogue import read_catalogue
from cadge_harness.plan.describe import describe_layers
from cadge_harness.run.findings import look, look_at_controller
from cadge_harness.words import count_of
from cadge_results.command import command


@click.command(epilog="\b\nExamples:\n  cadge doctor\n  cadge doctor --inventory hosts.yml\n  cadge doctor --json")
@inventory_option
@results_option
@answers
def doctor(inventory: Path | None, results: Path | None, output: Output) -> int:
    """Check this machine and the build, or every host of an inventory, side by side; change nothing.

    On the hosts of an inventory: login, Python, build, layers, device, address, processors, clock, libraries, ports,
    and whether the hosts reach each other. Exit code 3 where a sweep cannot be made.
    """
    from cadge_cli.hosts import finding_lines, look_at_hosts
    from cadge_harness.native.tools import programs
    from cadge_harness.testbed import testbeds

    checkout = find_checkout()
    lines: list[str] = []
    native: dict[str, str] = {}
    data: dict[str, JsonValue] = {}
    if inventory is None:
        found = look(checkout, describe_layers(read_catalogue(checkout), checkout), results)
        following = command("run", "--sweep", "smoke")
        native = programs()
        data = {"native_tools": {**native}}
    else:
        testbed = testbeds.resolve("auto", inventory)
        found = look_at_controller(checkout, results)
        following = command("run", "--sweep", "smoke", "--inventory", str(inventory))
        if checkout.driver.is_file():  # else there is nothing to bring to them, as was said
            hosts = look_at_hosts(testbed, checkout, output)
            found += hosts.findings
            lines, data = [*hosts.lines, ""], hosts.data
    failed = [finding for finding in found if finding.level == "fail"]
    for finding in found:
        if finding.level in {"warn", "fail"}:
            output.problems.append(f"{finding.code} {finding.text}")
    warned = sum(1 for finding in found if finding.level == "warn")
    lines += [
        *finding_lines(found),
        *_native_lines(native),
        f"{len(failed)} failed, {count_of(warned, 'warning')}." + ("" if failed else f"   Next:  {following}"),
    ]
    data = {"findings": [asdict(item) for item in found], **data}
    return output.finish(EXIT_UNFIT if failed else EXIT_OK, data, lines)


def _native_lines(native: Mapping[str, str]) -> list[str]:
    """Return which native tools `cadge crosscheck` finds; none is needed for anything else."""
    if not native:
        return []
    here = [name for name, why in native.items() if not why]
    missing = sorted({why for why in native.values() if why})
    return [
        say("doctor.native_tools", tools=", ".join(here) or "none"),
        *(f"  {why}" for why in missing),
    ]
