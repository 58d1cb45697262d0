# SPDX-License-Identifier: BSD-3-Clause
"""`cadge selftest`: whether this build on this machine finds what is there, and nothing else.

What measures is imported only where something is measured, so that --help stays quick.
"""

from __future__ import annotations

import time
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import click

from cadge_cli.options import (
    EXAMPLES,
    MeasureOptions,
    answers,
    hosts_options,
    names_of,
)
from cadge_cli.output import Output
from cadge_cli.words import say
from cadge_harness import __version__
from cadge_harness.errors import EXIT_BAD_ANSWER, EXIT_OK, EXIT_UNFIT, EXIT_UNTRUSTED, HarnessError
from cadge_harness.paths import find_checkout, selftests_of
from cadge_harness.words import clock

if TYPE_CHECKING:
    from cadge_cli.selftest_parts import SelftestRun
    from cadge_results import SelftestFile, SelftestPart

NAMES = ("delay", "stall", "quiet", "coverage", "alike")
LIMIT_S = 30 * 60
SERIES = 20


@click.command(
    epilog=EXAMPLES
    + "  cadge selftest\n  cadge selftest --testbed local\n  cadge selftest --only stall --only quiet\n"
    + "  cadge selftest --json >selftest.json"
)
@click.option(
    "--only", multiple=True, metavar="PART", help=f"Only these parts, of: {', '.join(NAMES)}. Then it is incomplete."
)
@click.option(
    "--series",
    type=click.IntRange(1, 33),
    default=SERIES,
    show_default=True,
    help="How many series of 30 launches a side look for a planted delay; fewer are not judged.",
)
@hosts_options
@answers
def selftest(only: tuple[str, ...], series: int, how: MeasureOptions, output: Output) -> int:
    """Check that Cadge detects known delays, stalls and settings; half an hour at most.

    The result is stored beside the campaigns. Campaigns that are made afterwards name it, and so do their reports.
    Exit code 0: every part that was asked for passed; 1: one could not be made or judged; 9: one failed.
    """
    from cadge_cli.selftest_parts import ABOUT, SelftestRun, StoppedError

    wanted = names_of(only, NAMES, "part")
    parts = [name for name in NAMES if name in wanted]
    checkout = find_checkout()
    begun = datetime.now(UTC)
    folder = selftests_of(how.results or checkout.campaigns)
    campaigns = folder / "campaigns"
    begun_s = time.monotonic()
    making = SelftestRun(
        output=output,
        how=replace(how, results=campaigns),
        folder=folder / f"{begun:%Y%m%dT%H%M%SZ}",
        campaigns=campaigns,
        series=series,
        until_s=begun_s + LIMIT_S,
    )
    code = EXIT_OK
    found: list[SelftestPart] = []
    for number, name in enumerate(parts, start=1):
        output.say(f"part {number} of {len(parts)}, {name}: {ABOUT[name]}")
        try:
            found.append(_made(making, name))
        except StoppedError as error:
            code = error.exit_code
            break
        output.say(_line(found[-1]))
    file = _file(making, found, begun, time.monotonic() - begun_s, whole=len(found) == len(NAMES))
    if file is None:
        return output.finish(code or EXIT_UNFIT, None, [say("selftest.nothing_measured")])
    if code == EXIT_OK and file.verdict == "failed":
        code = EXIT_UNTRUSTED
    elif code == EXIT_OK and any(part.verdict != "passed" for part in found):
        code = EXIT_BAD_ANSWER
    from cadge_results.formats.selftest import put_selftest

    path = put_selftest(folder, file)
    lines = [*(_line(part) for part in file.parts), f"{file.verdict} after {clock(file.wall_s)}", f"self-test  {path}"]
    data: Any = {"file": str(path), "selftest": file.to_object()}
    return output.finish(code, data, lines)


def _made(making: SelftestRun, name: str) -> SelftestPart:
    """Make one part; what cannot be made here says why, and the others go on."""
    from cadge_analysis.errors import AnalysisError
    from cadge_cli.selftest_parts import PARTS, NotMadeError, StoppedError
    from cadge_results import SelftestPart

    part_s = time.monotonic()
    why, finding = "", None
    try:
        finding = PARTS[name](making)
    except StoppedError:
        raise
    except (NotMadeError, HarnessError, AnalysisError) as error:
        why = str(error)
    if finding and finding.between:
        making.between = finding.between
    return SelftestPart(
        name=name,
        verdict=finding.verdict if finding else "not made",
        says=finding.says if finding else why,
        figures=finding.figures if finding else {},
        campaigns=tuple(one.campaign_id for one in making.made.get(name, [])),
        wall_s=round(time.monotonic() - part_s, 1),
    )


def _line(part: SelftestPart) -> str:
    return f"{part.verdict:<10}  {part.name:<8}  {part.says} ({clock(part.wall_s)})"


def _file(
    making: SelftestRun, parts: list[SelftestPart], begun: datetime, wall_s: float, *, whole: bool
) -> SelftestFile | None:
    """Return what is stored; None where no campaign was made: then the machine is not even known."""
    from cadge_cli.commands.run import revision_of
    from cadge_harness.run.build_identity import build_digest
    from cadge_results import SelftestFile
    from cadge_results.formats.selftest import machine_of, overall

    made = [campaign for found in making.made.values() for campaign in found]
    if not made:
        return None
    checkout, now = find_checkout(), datetime.now(UTC)
    revision, dirty = revision_of(checkout.root)
    build = build_digest(checkout)
    verdict = overall(part.verdict for part in parts)
    return SelftestFile(
        schema_=SelftestFile.schema_id(),
        selftest_id=f"{begun:%Y%m%dT%H%M%SZ}-{build[:8]}",
        created_utc=f"{begun:%Y-%m-%dT%H:%M:%SZ}",
        finished_utc=f"{now:%Y-%m-%dT%H:%M:%SZ}",
        version=__version__,
        revision=revision,
        dirty=dirty,
        build=build,
        machine=machine_of(made[0].nodes()),
        testbed=made[0].meta.testbed.name,
        verdict=verdict if whole or verdict == "failed" else "incomplete",
        between=making.between,
        parts=tuple(parts),
        wall_s=round(wall_s, 1),
    )
