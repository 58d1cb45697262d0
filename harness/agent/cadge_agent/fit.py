# SPDX-License-Identifier: BSD-3-Clause
"""Whether a host's network is what the inventory says: found before a block's first launch, not by its failures."""

from __future__ import annotations

import ipaddress
import socket

from cadge_agent.errors import BadBlockError
from cadge_agent.formats import Block, BlockHost
from cadge_agent.network import device_of


def refuse_unfit(block: Block, host: BlockHost) -> None:
    """Raise BadBlockError, with what to change, where this host cannot take part in a block of several hosts."""
    if len(block["hosts"]) < 2:
        return
    name, device, address = host["name"], host["device"], host["address"]
    devices = sorted(found for _, found in socket.if_nameindex())
    if device not in devices:
        raise BadBlockError(
            f"{name} has no device {device}; it has {', '.join(devices)}. Set its cadge_device in the inventory"
        )
    try:
        owner = device_of(address)
    except OSError:  # the kernel does not tell
        owner = (device, 0)
    if owner is None or owner[0] != device:
        where = f"it is of {owner[0]}" if owner else "no device there has it"
        raise BadBlockError(
            f"{name}: {address} is not an address of {device}: {where}. Set its cadge_address in the inventory"
        )
    _refuse_loopback(name, host["management_address"])


def _refuse_loopback(name: str, management: str) -> None:
    """Debian's /etc/hosts says that a host's own name is 127.0.1.1: an agent that listens there is found by nobody."""
    try:
        found = socket.gethostbyname(management)
    except OSError:
        return  # whoever has to find it says so
    if ipaddress.IPv4Address(found).is_loopback:
        raise BadBlockError(
            f"on {name} itself, {management} is {found}, which no other host reaches (/etc/hosts says so, perhaps). "
            "Set its cadge_management_address in the inventory to an address of its own"
        )
