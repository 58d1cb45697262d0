# SPDX-License-Identifier: BSD-3-Clause
"""`agent run`: one block, as leader or as follower."""

from __future__ import annotations

import argparse
import contextlib
import sys

from cadge_agent.block import read_block
from cadge_agent.errors import BadBlockError, EndedError, HostLostError
from cadge_agent.fit import refuse_unfit
from cadge_agent.follower import Follower
from cadge_agent.leader import Leader
from cadge_agent.output import Output, tell_removed
from cadge_agent.reactor import Reactor
from cadge_agent.site import Site


def run(arguments: argparse.Namespace) -> int:
    """`agent.pyz run`."""
    try:
        block = read_block(arguments.block)
        reactor = Reactor(float(block["deadline_s"]))
        output = Output(reactor)
        reactor.on_ping = lambda: output.answer(arguments.host)
        site = Site(block, arguments.host, arguments.work, arguments.build or arguments.work / "build")
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


def _complain(output: Output, host: str, reason: str) -> None:
    with contextlib.suppress(EndedError):
        output.emit({"event": "problem", "host": host, "reason": reason})
    sys.stderr.write(f"agent: {reason}\n")
