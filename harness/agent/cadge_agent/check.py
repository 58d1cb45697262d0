# SPDX-License-Identifier: BSD-3-Clause
"""`agent check`: gets a host ready, or says why it is not."""

from __future__ import annotations

import argparse
import json
import sys

from cadge_agent.build import ask_driver
from cadge_agent.clean import clean_up
from cadge_agent.facts import gather
from cadge_agent.faults import FaultError
from cadge_agent.folders import write_whole


def check(arguments: argparse.Namespace) -> int:
    """`agent.pyz check`, see the head of the package."""
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
