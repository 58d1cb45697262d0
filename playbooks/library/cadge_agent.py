# SPDX-License-Identifier: BSD-3-Clause
"""Documentation of the action cadge_agent; all of it runs on the controller, in action_plugins/cadge_agent.pyz."""

from __future__ import annotations

DOCUMENTATION = r"""
module: cadge_agent
short_description: Runs the agent of one block on a host while the controller holds its lease
description:
  - Starts the agent over the connection of the host and waits until it ends.
  - What the agent prints is handed to the controller's lease socket, and what comes from there to the agent.
  - When the controller goes away, the agent's standard input ends, and with it everything that it started.
author: The Cadge authors
options:
  argv:
    description: Command line of the agent on the host. A word may begin with ~/, the home of the user there.
    type: list
    elements: str
    required: true
  lease_socket:
    description: Unix socket on the controller that holds the lease.
    type: path
    required: true
  block_id:
    description: Name of the block, told to the controller.
    type: str
    required: true
"""

EXAMPLES = r"""
- name: Run the agent
  cadge_agent:
    argv: [python3, /home/me/.cache/cadge/c-n1/agent.pyz, run, --block, b.json, --host, n1, --work, .]
    lease_socket: /run/user/1000/cadge/lease
    block_id: b0
"""

RETURN = r"""
rc:
  description: Exit status of the agent.
  returned: always
  type: int
"""
