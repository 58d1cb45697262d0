# SPDX-License-Identifier: BSD-3-Clause
"""What the kernel says of this host's network devices and processors."""

from __future__ import annotations

import ctypes
import fcntl
import os
import socket
import struct
from pathlib import Path

from cadge_agent.formats import Json

SIOCETHTOOL = 0x8946
ETHTOOL_GET = {"rx_checksum": 0x14, "tx_checksum": 0x16, "scatter_gather": 0x18, "tso": 0x1E, "gso": 0x23, "gro": 0x2B}
ETHTOOL_GDRVINFO = 0x3


def _ethtool(device: str, data: bytearray) -> bytearray:
    pointer = ctypes.addressof((ctypes.c_char * len(data)).from_buffer(data))
    request = struct.pack("16sP16x", device.encode(), pointer)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as handle:
        fcntl.ioctl(handle, SIOCETHTOOL, request)
    return data


def offloads(device: str) -> Json:
    """Read the device's offloads as booleans; {"unknown": reason} for one that cannot be read."""
    found: Json = {}
    for name, command in ETHTOOL_GET.items():
        try:
            answer = _ethtool(device, bytearray(struct.pack("II", command, 0)))
            found[name] = bool(struct.unpack("II", answer)[1])
        except OSError as error:
            found[name] = {"unknown": os.strerror(error.errno or 0)}
    return found


def driver_of(device: str) -> object:
    """Kernel driver of a device."""
    try:
        answer = _ethtool(device, bytearray(struct.pack("I", ETHTOOL_GDRVINFO) + bytes(192)))
        return bytes(answer[4:36]).split(b"\0")[0].decode()
    except OSError as error:
        return {"unknown": os.strerror(error.errno or 0)}


def _netlink(kind: int, body: bytes, dump: bool) -> list[bytes]:
    """Ask rtnetlink; returns the bodies of the answers."""
    flags = 0x1 | (0x300 if dump else 0)
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0) as handle:
        handle.settimeout(2)
        handle.send(struct.pack("IHHII", 16 + len(body), kind, flags, 1, 0) + body)
        found: list[bytes] = []
        while True:
            data = handle.recv(1 << 20)
            while len(data) >= 16:
                length, what = struct.unpack_from("IH", data)
                if what == 3:
                    return found
                if what == 2:
                    number = -struct.unpack_from("i", data, 16)[0]
                    raise OSError(number, os.strerror(number))
                found.append(data[16:length])
                data = data[(length + 3) & ~3 :]
            if not dump:
                return found


def _attributes(data: bytes) -> dict[int, bytes]:
    found = {}
    while len(data) >= 4:
        length, kind = struct.unpack_from("HH", data)
        if length < 4:
            break
        found[kind & 0x3FFF] = data[4:length]
        data = data[(length + 3) & ~3 :]
    return found


def xdp_attached(device: str) -> bool | None:
    """Whether an XDP program is attached; None where the kernel does not say."""
    try:
        index = socket.if_nametoindex(device)
        answer = _netlink(18, struct.pack("BxHiII", 0, 0, index, 0, 0), dump=False)[0]
        xdp = _attributes(answer[16:]).get(43, b"")
        attached = _attributes(xdp).get(2, b"\0")
    except (OSError, IndexError, struct.error):
        return None
    return attached[0] != 0


def rate_of(device: str) -> int | None:
    """Bits a second that a token bucket (tbf) lets the device send; 0: it has none; None: the kernel does not say."""
    try:
        index = socket.if_nametoindex(device)
        for answer in _netlink(38, struct.pack("BxxxiIII", 0, index, 0, 0, 0), dump=True):
            _, found, _, parent, _ = struct.unpack_from("BxxxiIII", answer)
            own = _attributes(answer[20:])
            if (found, parent) == (index, 0xFFFFFFFF) and own.get(1, b"").rstrip(b"\0") == b"tbf":
                options = _attributes(own[2])
                # the fifth number of what describes the rate; a larger one has an attribute of its own
                (rate,) = struct.unpack_from("I", options[1], 8)
                return 8 * int(struct.unpack("Q", options[4])[0] if 4 in options else rate)
    except (OSError, KeyError, struct.error):
        return None
    return 0


def address_of(name: str) -> str:
    """Return the address of a host by its name or address: the first IPv4 one, else the first IPv6. Raises OSError."""
    found = socket.getaddrinfo(name, None, type=socket.SOCK_STREAM)
    first = min(found, key=lambda one: one[0] != socket.AF_INET)
    return str(first[4][0])


def family_of(address: str) -> socket.AddressFamily:
    """Return the family of a numeric address."""
    return socket.AF_INET6 if ":" in address else socket.AF_INET


def with_port(address: str, port: int) -> str:
    """Return an address or name with a port, as one word."""
    return f"[{address}]:{port}" if ":" in address else f"{address}:{port}"


def device_of(address: str) -> tuple[str, int] | None:
    """(device, prefix length) of one of this host's addresses; None if it is not ours.

    Every address of the loopback's network is ours: many systems give their own name 127.0.1.1.
    """
    family = family_of(address)
    wanted = socket.inet_pton(family, address)
    for answer in _netlink(22, struct.pack("BBBBi", family, 0, 0, 0, 0), dump=True):
        _, length, _, _, index = struct.unpack_from("BBBBi", answer)
        own = _attributes(answer[8:])
        raw = own.get(2, own.get(1, b""))
        loops = family == socket.AF_INET and wanted[0] == raw[0] == 127
        if raw == wanted or loops:
            return socket.if_indextoname(index), length
    return None


def interface_counters(devices: list[str]) -> Json:
    """Bytes and packets of `devices`, from /proc/net/dev."""
    found: Json = {}
    for line in Path("/proc/net/dev").read_text(encoding="utf-8").splitlines()[2:]:
        name, _, numbers = line.partition(":")
        if name.strip() in devices:
            n = [int(word) for word in numbers.split()]
            found[name.strip()] = {"rx_bytes": n[0], "tx_bytes": n[8], "rx_packets": n[1], "tx_packets": n[9]}
    return found


def steal_ns() -> int:
    """Time that a hypervisor took from all processors together, since boot."""
    words = Path("/proc/stat").read_text(encoding="ascii").split("\n", 1)[0].split()
    return int(words[8]) * (1_000_000_000 // os.sysconf("SC_CLK_TCK")) if len(words) > 8 else 0
