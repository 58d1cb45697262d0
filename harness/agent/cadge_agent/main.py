# SPDX-License-Identifier: BSD-3-Clause
"""The agent's command line."""

from __future__ import annotations

import argparse
import os
from pathlib import Path

from cadge_agent.check import check
from cadge_agent.clean import clean
from cadge_agent.facts import facts
from cadge_agent.look import look
from cadge_agent.run import run


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
        verb.add_argument("--programs", default="", help="beside the build, whose versions are told; spaces between")
    four = verbs.add_parser("clean", help="remove what a killed agent left")
    four.add_argument("--work", type=_path, required=True)
    four.add_argument("--campaign", required=True)
    four.set_defaults(action=clean)
    arguments = parser.parse_args()
    os.umask(0o077)  # what we make on a node, and what we start makes there, is nobody else's business
    return int(arguments.action(arguments))
