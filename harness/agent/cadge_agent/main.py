# SPDX-License-Identifier: BSD-3-Clause
"""The agent's command line, and its verbs `check` and `run`."""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import sys
from pathlib import Path

from cadge_agent.block import read_block
from cadge_agent.clean import clean, clean_up
from cadge_agent.errors import BadBlockError, EndedError, HostLostError
from cadge_agent.faults import FaultError
from cadge_agent.fleet.follower import Follower
from cadge_agent.fleet.leader import Leader
from cadge_agent.folders import write_whole
from cadge_agent.host.build import ask_driver
from cadge_agent.host.facts import facts, gather
from cadge_agent.host.fit import refuse_unfit
from cadge_agent.host.look import look
from cadge_agent.output import LeaseOutput, tell_removed
from cadge_agent.reactor import Reactor
from cadge_agent.site import HostSite
from cadge_agent.step import patiently, step


def check(arguments: argparse.Namespace) -> int:
    """Get a host ready, or say why it is not: `agent.pyz check`, see the head of the package."""
    clean_up(arguments.work, arguments.campaign)
    try:
        answer = ask_driver(arguments.host, arguments.build, arguments.ld_library_path)
    except FaultError as error:
        sys.stderr.write(f"{error}\n")
        return 3
    stated = arguments.ld_library_path, arguments.opal_prefix, arguments.programs.split()
    node = gather(arguments.host, arguments.build, *stated)
    write_whole(arguments.work / "node.json", node)
    print(json.dumps(answer, sort_keys=True))
    return 0


def run(arguments: argparse.Namespace) -> int:
    """Run one block, as leader or as follower: `agent.pyz run`."""
    try:
        block = read_block(arguments.block)
        reactor = Reactor(float(block["deadline_s"]))
        output = LeaseOutput(reactor)
        reactor.on_ping = lambda: output.answer(arguments.host)
        site = HostSite(block, arguments.host, arguments.work, arguments.build or arguments.work / "build")
    except (OSError, ValueError, KeyError, BadBlockError) as error:
        sys.stderr.write(f"agent: {error}\n")
        return 2
    status = 70
    try:
        refuse_unfit(block, site.host)
        role = Leader if block["leader"] == arguments.host else Follower
        status = role(site, reactor, output).run()
    except EndedError as error:
        sys.stderr.write(f"agent: {error}\n")
        status = 5
    except HostLostError as error:
        _complain(output, site.name, f"another host was lost: {error}")
        status = 4
    except (OSError, BadBlockError) as error:
        _complain(output, site.name, str(error))
        status = 2
    finally:
        removed = site.close()
        with contextlib.suppress(EndedError):
            tell_removed(output, site.name, removed)
    return status


def _complain(output: LeaseOutput, host: str, reason: str) -> None:
    with contextlib.suppress(EndedError):
        output.emit({"event": "problem", "host": host, "reason": reason})
    sys.stderr.write(f"agent: {reason}\n")


def _path(text: str) -> Path:
    return Path(text).expanduser()


def main() -> int:
    """Command line, see the head of the package."""
    parser = argparse.ArgumentParser(description="Runs one block's launches on a host, and says what that host is.")
    verbs = parser.add_subparsers(dest="verb", required=True)
    one = verbs.add_parser("run", help="run a block under the lease of standard input")
    one.add_argument("--block", type=_path, required=True)
    one.add_argument("--host", required=True)
    one.add_argument("--work", type=_path, required=True)
    one.add_argument("--build", type=_path)
    one.set_defaults(action=run)
    two = verbs.add_parser("facts", help="say what this host is")
    two.add_argument("--host")
    two.add_argument("--build", type=_path)
    two.set_defaults(action=facts)
    three = verbs.add_parser("check", help="get this host ready, or say why it is not")
    three.add_argument("--work", type=_path, required=True)
    three.add_argument("--campaign", required=True)
    three.add_argument("--host", required=True)
    three.add_argument("--build", type=_path, required=True)
    three.set_defaults(action=check)
    five = verbs.add_parser("look", help="say what this host is and what is wrong with it, for the controller")
    five.add_argument("--hosts", type=_path, required=True)
    five.add_argument("--host", required=True)
    five.add_argument("--work", type=_path, required=True)
    five.add_argument("--build", type=_path, required=True)
    five.set_defaults(action=look)
    for verb in (two, three):  # as the inventory states them
        verb.add_argument("--ld-library-path", default="")
        verb.add_argument("--opal-prefix", default="")
        verb.add_argument("--programs", default="", help="programs whose versions are reported; spaces between")
    four = verbs.add_parser("clean", help="remove what a killed agent left")
    four.add_argument("--work", type=_path, required=True)
    four.add_argument("--campaign", required=True)
    four.set_defaults(action=clean)
    six = verbs.add_parser(
        "step", help="run a command on a host of a Slurm allocation, called as ssh is, or on several"
    )
    six.add_argument("--job", required=True)
    six.add_argument("--srun", required=True)
    six.add_argument("--conf", default="", help="slurm.conf, where it is not where Slurm looks for it")
    six.add_argument("--hosts", default="", help="with commas between: the command alone follows, lines have numbers")
    six.add_argument("--mpi", default="none", help="how srun introduces tasks to each other")
    six.add_argument("words", nargs=argparse.REMAINDER)
    six.set_defaults(action=step)
    seven = verbs.add_parser("slurm", help="run a program of Slurm, again while its controller restarts")
    seven.add_argument("words", nargs=argparse.REMAINDER)
    seven.set_defaults(action=lambda given: patiently(given.words, os.environ))
    arguments = parser.parse_args()
    os.umask(0o077)  # what we make on a node, and what we start makes there, is nobody else's business
    return int(arguments.action(arguments))
