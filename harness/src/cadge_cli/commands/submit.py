# SPDX-License-Identifier: BSD-3-Clause
"""`cadge submit`: `cadge run` or `cadge resume` as a Slurm job."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import click

from cadge_cli.options import EXAMPLES, answers
from cadge_cli.output import Output
from cadge_cli.words import say
from cadge_harness.errors import EXIT_OK, UnfitError, UsageError
from cadge_harness.paths import find_checkout
from cadge_harness.run.request import read_request
from cadge_harness.testbed.slurm import NAME
from cadge_results import Store

STOP_S = 60
"""So long before its end Slurm tells the job to stop, or up to a minute earlier: it looks once a minute."""
LEAST_S = 180
"""A shorter job would be told to stop as soon as it begins."""
SPARE_MS = 5 * 60_000
"""Beside a sweep's budget: looking at the nodes, bringing the build, the report."""


@click.command(
    epilog=EXAMPLES
    + "  cadge submit --nodes 2 --sweep default --dry-run\n"
    + "  cadge submit --nodes 2 --time 2:00:00 --testbed slurm:ib0 --sweep full-calls\n"
    + "  cadge submit --time 30 --sbatch --partition=short --sweep smoke\n"
    + "  cadge submit --resume last --nodes 2 --time 2:00:00",
    context_settings={"ignore_unknown_options": True},
)
@click.option(
    "--nodes",
    type=click.IntRange(1),
    help="How many nodes the job has; default: 2, and with --resume those of the campaign.",
)
@click.option(
    "--time",
    "limit",
    metavar="TIME",
    help="Longest time of the job, as sbatch takes it: minutes, or hours:minutes:seconds; default: the sweep's "
    "budget and five minutes.",
)
@click.option("--sbatch", multiple=True, metavar="OPTIONS", help='More options for sbatch, e.g. "--partition=short".')
@click.option("--resume", "campaign", metavar="ID|last", help="Continue this campaign instead of starting a new one.")
@click.option("--dry-run", is_flag=True, help="Print the job script, and submit nothing.")
@click.argument("words", nargs=-1, type=click.UNPROCESSED)
@answers
def submit(
    nodes: int | None,
    limit: str | None,
    sbatch: tuple[str, ...],
    campaign: str | None,
    dry_run: bool,
    words: tuple[str, ...],
    output: Output,
) -> int:
    """Submit a sweep as a Slurm job: `cadge run` on the nodes that the job gets, with all processors of each.

    All other options are those of `cadge run` (with --resume, of `cadge resume`). The job stops before its time is
    over, with exit code 6; `cadge submit --resume last` continues. The job's first node must see home and checkout;
    the other nodes need neither. A continued campaign waits for the nodes where it began.
    """
    from cadge_cli.commands import run as of_run

    verb, made = ("run", of_run.run) if campaign is None else ("resume", of_run.resume)
    given = [*words] if campaign is None else [campaign, *words]
    read = made.make_context(verb, [*given], parent=click.get_current_context().parent)  # a mistake ends here
    more = [f"#SBATCH {word}" for one in sbatch for word in shlex.split(one)]
    if campaign is not None:
        store = Store(read.params["results"] or find_checkout().campaigns)
        found = store.open(campaign, measured=False)
        given[0], began = found.campaign_id, found.meta.testbed
        if began.name == NAME and not any(word.startswith(("#SBATCH --nodelist", "#SBATCH -w")) for word in more):
            nodes = nodes or len(began.hosts)
            more.append(f"#SBATCH --nodelist={','.join(began.hosts)}")
    budget_ms = None if campaign is not None else _budget_ms(read)
    if limit is None and budget_ms is None:
        what = f"sweep {read.params['sweep_name']}" if campaign is None else f"campaign {given[0]}"
        raise UsageError(say("submit.no_time", what=what))
    if limit and (limit_s := _seconds(limit)) is not None and limit_s < LEAST_S:
        raise UsageError(say("submit.too_short", limit=limit, least=LEAST_S // 60))
    limit = limit or str(-(-((budget_ms or 0) + SPARE_MS) // 60_000))  # sbatch takes minutes
    if read.params["testbed_name"] == "auto":
        given += ["--testbed", NAME]
    script = [
        "#!/bin/sh",
        "#SBATCH --job-name=cadge --output=cadge-%j.log",
        f"#SBATCH --nodes={nodes or 2} --exclusive --time={limit}",
        f"#SBATCH --signal=B:TERM@{STOP_S}",
        *more,
        f"exec {shlex.join([str(Path(sys.executable).with_name('cadge')), verb, *given])}",
    ]
    if dry_run:
        return output.finish(EXIT_OK, {"script": "\n".join(script)}, script)
    job = _submitted("\n".join([*script, ""]))
    log = Path.cwd() / f"cadge-{job}.log"
    lines = [say("submit.submitted", job=job), say("submit.follow", job=job, log=log)]
    return output.finish(EXIT_OK, {"job": job, "log": str(log)}, lines)


def _budget_ms(read: click.Context) -> int | None:
    """Return a sweep's budget. Raises UsageError where there is no such sweep."""
    return read_request(read.params["sweep_name"], budget=read.params["budget"]).sweep.budget


def _seconds(limit: str) -> int | None:
    """Return a time as sbatch takes it (minutes, M:S, H:M:S, D-H, D-H:M, D-H:M:S); None for what sbatch is to judge."""
    match = re.fullmatch(r"(?:(\d+)-)?(\d+)(?::(\d+))?(?::(\d+))?", limit)
    if match is None:
        return None
    days, *rest = match.groups()
    numbers = [int(part) for part in rest if part is not None]
    units = (3600, 60, 1) if days is not None or len(numbers) == 3 else (60, 1)
    return int(days or 0) * 86_400 + sum(number * unit for number, unit in zip(numbers, units, strict=False))


def _submitted(script: str) -> str:
    """Hand a script to sbatch; returns the job's number."""
    program = shutil.which("sbatch")
    if program is None:
        raise UnfitError(say("submit.no_slurm"))
    done = subprocess.run([program, "--parsable"], input=script, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise UsageError(say("submit.refused", said=" ".join(done.stderr.split())))
    return done.stdout.strip().partition(";")[0]
