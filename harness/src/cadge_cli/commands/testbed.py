# SPDX-License-Identifier: BSD-3-Clause
"""`cadge testbed`: the emulated hosts, an inventory to begin with, and nodes that a killed campaign left."""

from __future__ import annotations

from importlib import resources
from pathlib import Path

import click

from cadge_cli.cli import NamedGroup
from cadge_cli.options import EXAMPLES, answers, opened, results_option, testbed_options
from cadge_cli.output import Output
from cadge_cli.words import say
from cadge_harness.errors import EXIT_OK, EXIT_UNFIT
from cadge_harness.testbed import testbeds


@click.group(
    cls=NamedGroup,
    epilog=EXAMPLES + "  cadge testbed up\n  cadge testbed status\n"
    "  cadge testbed exec -- ip address\n  cadge testbed exec --host h1 -- hostname\n  cadge testbed down\n"
    "  cadge testbed example >hosts.yml\n  cadge testbed restore --inventory hosts.yml",
)
def testbed() -> None:
    """Start, stop or inspect the emulated testbed; print an inventory for a cluster; restore nodes after a kill."""


@testbed.command()
@click.option("--hosts", type=click.IntRange(2, 16), default=2, show_default=True, help="Number of hosts.")
@answers
def up(hosts: int, output: Output) -> int:
    """Start the emulated hosts: namespaces with networks and sshd."""
    now = testbeds.up(hosts)
    words = "is up" if now["made"] else "was up already"
    lines = [say("testbed.is_state", state=words, hosts=now["hosts"], pid=now["pid"])]
    return output.finish(EXIT_OK, now, lines)


@testbed.command()
@answers
def down(output: Output) -> int:
    """Stop the emulated hosts. Refused while a campaign measures there."""
    was_up = testbeds.down()
    lines = [say("testbed.is", state="down") if was_up else say("testbed.was_down")]
    return output.finish(EXIT_OK, {"was_up": was_up}, lines)


@testbed.command()
@answers
def status(output: Output) -> int:
    """Show whether the emulated testbed is up. Exit code 3 means that it is not."""
    now = testbeds.status()
    lines = [say("testbed.is", state=now["state"])]
    if now["state"] == "up":
        lines = [say("testbed.is_state", state="is up", hosts=now["hosts"], pid=now["pid"])]
        lines += [f"used by {user}" for user in now["users"]]
        if now["owner"] == "nobody":
            lines.append(say("testbed.left_over"))
    for one in now["own"]:
        whose = "; ".join(one["users"]) or say("testbed.killed")
        lines.append(say("testbed.beside", whose=whose, hosts=one["hosts"], pid=one["pid"]))
    return output.finish(EXIT_OK if now["state"] == "up" else EXIT_UNFIT, now, lines)


@testbed.command("exec", context_settings={"ignore_unknown_options": True})
@click.option("--host", help="On this host, over SSH; without it in the testbed's own network.")
@click.argument("command", nargs=-1, required=True, type=click.UNPROCESSED)
def exec_(host: str | None, command: tuple[str, ...]) -> int:
    """Run a command in the testbed, and exit with its code."""
    return testbeds.exec_command(list(command), host)


@testbed.command(epilog=EXAMPLES + "  cadge testbed example >hosts.yml\n  cadge doctor --inventory hosts.yml")
@answers
def example(output: Output) -> int:
    """Print an inventory of two hosts that explains every variable."""
    text = resources.files("cadge_harness.testbed").joinpath("example_inventory.yml").read_text(encoding="utf-8")
    return output.finish(EXIT_OK, {"inventory": text}, text.splitlines())


@testbed.command(
    epilog=EXAMPLES + "  cadge testbed restore\n  cadge testbed restore 20261121T013042Z-1f3a9c2e --inventory lab.yml"
)
@click.argument("campaign", default="last")
@testbed_options
@results_option
@answers
def restore(
    campaign: str,
    testbed_name: str,
    inventory: Path | None,
    results: Path | None,
    output: Output,
) -> int:
    """Restore the nodes of a killed campaign.

    That is: tuned settings, values of the kernel, processes, folders.
    """
    from cadge_harness.run import ansible_io  # only where nodes are reached
    from cadge_harness.run.runner import WORK
    from cadge_results.formats.event import Event, Note

    found = opened(results, campaign, measured=False)
    kind = found.meta.testbed.kind
    if testbed_name == "auto" and inventory is None and kind in testbeds.KINDS:
        testbed_name = kind
    count = len(found.meta.testbed.hosts)
    chosen = testbeds.resolve(testbed_name, inventory, hosts=count)  # it may be down, but its hosts' files are here

    def tell(event: Event) -> None:
        if isinstance(event, Note):
            output.say(event.text)

    try:
        ended = ansible_io.restore(chosen, found.campaign_id, found.path / WORK, tell)
    finally:
        testbeds.release(chosen)
    for problem in ended.problems:
        output.problem(problem)
    hosts = [host.name for host in chosen.hosts]
    lines = [say("testbed.restored", name=name) for name in hosts] if ended.ok else []
    return output.finish(ended.exit_code, {"hosts": list(hosts), "campaign_id": found.campaign_id}, lines)
