# SPDX-License-Identifier: BSD-3-Clause
"""Made-up costs, libraries and hosts of synthetic campaigns. Shapes alone are true to life; no number is measured."""

from __future__ import annotations

import hashlib
from datetime import UTC, datetime

SIZES = (8, 64, 512, 4096, 16384, 65536, 262144, 1048576, 4194304)
LAYERS = (
    "mpi-p2p",
    "native-ofi",
    "native-ucx",
    "rdma-ofi",
    "rdma-ucx",
    "sockets-tcp",
    "sockets-udp",
    "sockets-unix",
)
CREATED = datetime(2026, 11, 21, 3, 12, 4, tzinfo=UTC)

# (start-up ns, bytes a ns) of a round trip by place and layer; a guess at the shape, never a measurement
COST = {
    "within": {
        "sockets-tcp": (9000, 3.0),
        "sockets-udp": (8500, 2.2),
        "sockets-unix": (7000, 4.0),
        "native-ucx": (650, 8.0),
        "native-ofi": (1900, 6.0),
        "rdma-ucx": (350, 9.0),
        "rdma-ofi": (900, 6.5),
        "mpi-p2p": (720, 7.0),
        "floor-cacheline": (210, 2.0),
        "floor-copyflag": (232, 11.0),
        "floor-futex": (7000, 9.0),
        "floor-tcp": (8800, 3.2),
    },
    "between": {
        "sockets-tcp": (11000, 4.0),
        "sockets-udp": (10500, 2.5),
        "native-ucx": (13000, 3.1),
        "native-ofi": (16000, 2.9),
        "rdma-ucx": (13500, 3.0),
        "rdma-ofi": (18000, 2.8),
        "mpi-p2p": (11800, 3.3),
        "floor-xdp": (3200, 1.4),
        "floor-udp": (6500, 2.7),
        "floor-tcp": (7400, 4.6),
    },
    "self": {"null-self": (40, 200.0)},
}
FLOORS = {
    ("within", "poll"): {"floor-cacheline": 64, "floor-copyflag": 1 << 22},
    ("within", "block"): {"floor-futex": 1 << 22, "floor-tcp": 64},
    ("between", "poll"): {"floor-xdp": 1 << 22, "floor-udp": 1024, "floor-tcp": 1 << 22},
    ("between", "block"): {"floor-xdp": 1024, "floor-udp": 1024, "floor-tcp": 1 << 22},
}
REFUSED = {
    ("native-ofi", "within", "block"): ("NO_WAIT", "libfabric's shm has no wait that sleeps: fi_cq_sread spins"),
    ("rdma-ofi", "within", "block"): ("NO_WAIT", "libfabric's shm has no wait that sleeps: fi_cq_sread spins"),
    ("mpi-p2p", "within", "block"): ("NO_WAIT", "Open MPI has no wait that sleeps; it yields"),
    ("mpi-p2p", "between", "block"): ("NO_WAIT", "Open MPI has no wait that sleeps; it yields"),
}


def library(layer: str) -> dict[str, object]:
    part = layer.partition("-")[2]
    known = {
        "ucx": ("UCX", "1.13.1", "/usr/lib/x86_64-linux-gnu/libucp.so.0.0.0"),
        "ofi": ("libfabric", "1.17.0", "/usr/lib/x86_64-linux-gnu/libfabric.so.1.19.0"),
        "p2p": ("Open MPI", "4.1.4", "/usr/lib/x86_64-linux-gnu/libmpi.so.40.30.4"),
    }
    name, version, file = known.get(part, ("Linux sockets", "6.18.5", None))
    build_id = hashlib.sha1(part.encode(), usedforsecurity=False).hexdigest() if file else None
    return {"name": name, "stated_version": version, "file": file, "build_id": build_id}


def used(layer: str, place: str) -> str:
    part = layer.partition("-")[2]
    network = {
        "ucx": "tcp/data0",
        "ofi": "tcp;ofi_rxm",
        "p2p": "pml ob1 / btl tcp",
        "tcp": "TCP",
        "udp": "UDP",
        "xdp": "AF_XDP copy mode",
    }
    memory = {"ucx": "posix/memory, cma", "ofi": "shm", "p2p": "pml ob1 / btl vader", "tcp": "TCP over loopback"}
    return (network if place == "between" else memory).get(part, part)


def node(host: str, *, virtual: bool) -> dict[str, object]:
    return {
        "schema": "cadge.node/1",
        "host": host,
        "kernel": "6.18.5",
        "cpu": {"model": "17", "model name": "AMD EPYC 9B14", "cores": 2},
        "cores": 2,
        "mitigations": {"spectre_v2": "Mitigation: Retpolines", "meltdown": "Not affected"},
        "governor": {"unknown": "no cpufreq in this kernel"},
        "virtualisation": "kvm" if virtual else "none",
        "clocksource": "tsc",
        "tsc": {"constant": True, "nonstop": True},
        "memory": {"total_bytes": 25276514304},
        "thp": "madvise",
        "libc": "glibc 2.36",
        "python": "3.11.2",
        "libraries": {"libucp.so.0": {"version": "1.13.1", "build_id": "ab" * 20}},
        "namespaces": {"net": "net:[4026532000]"},
        "interfaces": {
            "data0": {"mtu": 1500, "driver": "veth", "speed": 10000},
            "raw0": {"mtu": 1500, "driver": "veth", "speed": 10000},
        },
    }
