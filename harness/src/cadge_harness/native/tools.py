# SPDX-License-Identifier: BSD-3-Clause
"""All native tools, and which of them can run here."""

from __future__ import annotations

import shutil
from pathlib import Path

from cadge_harness.native import direct, iperf, mpisuites, netpipe, ofi, perftest, qperf, sockperf, ucx
from cadge_harness.native.hosts import variables
from cadge_harness.native.tool import Tool

TOOLS: tuple[Tool, ...] = (
    *ucx.TOOLS,
    *ofi.TOOLS,
    *netpipe.TOOLS,
    *sockperf.TOOLS,
    *qperf.TOOLS,
    *iperf.TOOLS,
    *perftest.TOOLS,
    *mpisuites.TOOLS,
    *direct.TOOLS,
)
_BY_NAME = {tool.name: tool for tool in TOOLS}
_DEVICES = Path("/sys/class/infiniband")


def programs() -> dict[str, str]:
    """Return every program, and why it cannot run here; "" where it can."""
    return {tool.program: why_absent(tool) for tool in TOOLS}


def by_name(name: str) -> Tool | None:
    """Return a tool, None where there is none of that name."""
    return _BY_NAME.get(name)


def why_absent(tool: Tool) -> str:
    """Return why a tool cannot run here and what would help, "" where it can."""
    if shutil.which(tool.program, path=variables({})["PATH"]) is None:
        return f"{tool.program} is not installed: {tool.remedy}"
    if tool.rdma and not (_DEVICES.is_dir() and any(_DEVICES.iterdir())):
        return "there is no RDMA device here"
    return ""
