# SPDX-License-Identifier: BSD-3-Clause
"""Whether this machine has SimGrid, and a message to simulate."""

from __future__ import annotations

import pytest

from cadge_analysis.errors import SimulatorMissingError
from cadge_analysis.models.message import Message
from cadge_analysis.models.simulate import Simulator

MESSAGE = Message(size=4097, send_ns=300, receive_ns=400, latency_ns=2000, byte_ns=0.25, gap_ns=500)


def _why_not() -> str:
    try:
        Simulator().version()
    except SimulatorMissingError as error:
        return str(error)
    return ""


simgrid_needed = pytest.mark.skipif(bool(_why_not()), reason=_why_not() or "never")
