# SPDX-License-Identifier: BSD-3-Clause
"""`agent facts`: what this host is."""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import json
import os
import platform
import re
import resource
import shutil
import socket
import subprocess
from collections.abc import Iterable
from pathlib import Path

from cadge_agent.environment import SYSTEM_PATH, base_environment
from cadge_agent.formats import NODE_SCHEMA, Json
from cadge_agent.host.abilities import in_child, try_af_xdp, try_namespaces, try_process_vm_readv
from cadge_agent.host.configuration import configuration
from cadge_agent.host.libraries import build_id, libraries, package_versions
from cadge_agent.host.network import driver_of, offloads, xdp_attached
from cadge_agent.host.quota import quota
from cadge_agent.host.reading import read, unknown


def _cpu() -> Json:
    text = str(read("/proc/cpuinfo"))
    fields = dict(
        re.findall(r"^(model name|vendor_id|cpu family|model|stepping|microcode|flags)\s*:\s*(.*)$", text, re.MULTILINE)
    )
    flags = str(fields.pop("flags", "")).split()
    tsc = {name: name in flags for name in ("constant_tsc", "nonstop_tsc", "tsc_reliable", "rdtscp", "tsc_known_freq")}
    topology = {"logical": os.cpu_count(), "allowed": sorted(os.sched_getaffinity(0))}
    cores = set()
    for path in Path("/sys/devices/system/cpu").glob("cpu[0-9]*/topology"):
        cores.add((read(f"{path}/physical_package_id"), read(f"{path}/core_id")))
    topology["physical"] = len({str(core) for core in cores}) or None
    topology["sockets"] = len({str(core[0]) for core in cores}) or None
    return {"cpu": fields or unknown("not stated in /proc/cpuinfo"), "tsc": tsc, "cores": topology, "flags": flags}


def _boot() -> object:
    """Return which boot of the machine this is, as a hash: the number itself names the machine."""
    found = read("/proc/sys/kernel/random/boot_id")
    return hashlib.sha256(found.encode()).hexdigest()[:16] if isinstance(found, str) else found


def _governor() -> object:
    found = {str(read(str(path))) for path in Path("/sys/devices/system/cpu").glob("cpu*/cpufreq/scaling_governor")}
    return sorted(found) if found else unknown("no frequency scaling is visible")


def _frequency() -> object:
    """Return what drives the frequency, the limits set for it (kHz), and whether it may go above the base."""
    folders = sorted(Path("/sys/devices/system/cpu").glob("cpu[0-9]*/cpufreq"))
    if not folders:
        return unknown("no frequency scaling is visible")
    found: Json = {}
    for name in ("scaling_driver", "scaling_min_freq", "scaling_max_freq"):
        found[name] = ", ".join(sorted({str(read(f"{folder}/{name}")) for folder in folders}))
    for name in ("cpufreq/boost", "intel_pstate/no_turbo"):
        path = Path("/sys/devices/system/cpu", name)
        if path.exists():
            found[path.name] = read(str(path))
    return found


def _virtualisation(flags: list[str]) -> object:
    if shutil.which("systemd-detect-virt"):
        with contextlib.suppress(OSError, subprocess.SubprocessError):
            done = subprocess.run(["systemd-detect-virt"], capture_output=True, text=True, timeout=5, check=False)
            return done.stdout.strip() or "none"
    product = read("/sys/class/dmi/id/product_name")
    return {"hypervisor": "hypervisor" in flags, "product": product}


def _memory() -> Json:
    found = dict(
        re.findall(r"^(MemTotal|MemAvailable|SwapTotal):\s+(\d+) kB", str(read("/proc/meminfo")), re.MULTILINE)
    )
    return {name: int(value) * 1024 for name, value in found.items()}


def _hugepages() -> Json:
    found: Json = {}
    for path in sorted(Path("/sys/kernel/mm/hugepages").glob("hugepages-*")):
        found[path.name] = {"reserved": read(f"{path}/nr_hugepages"), "free": read(f"{path}/free_hugepages")}
    return found


def _interfaces() -> Json:
    found: Json = {}
    for index, name in socket.if_nameindex():
        folder = f"/sys/class/net/{name}"
        found[name] = {
            "index": index,
            "mtu": read(f"{folder}/mtu"),
            "speed": read(f"{folder}/speed"),
            "state": read(f"{folder}/operstate"),
            "driver": driver_of(name),
            "offloads": offloads(name),
            "xdp": xdp_attached(name),
        }
    return found


def _limit(kind: int) -> Json:
    names = ["unlimited" if value == resource.RLIM_INFINITY else value for value in resource.getrlimit(kind)]
    return {"soft": names[0], "hard": names[1]}


def gather(
    host: str, build: Path | None, ld_library_path: str = "", opal_prefix: str = "", wanted: Iterable[str] = ()
) -> Json:
    """Everything we want to know of this host (cadge.node/1). Reads only.

    ld_library_path and opal_prefix are what the inventory states for endpoints; wanted: programs beside the build
    that points need.
    """
    cpu = _cpu()
    system = os.uname()
    mitigations: Json = {}
    for path in sorted(Path("/sys/devices/system/cpu/vulnerabilities").glob("*")):
        mitigations[path.name] = read(str(path))
    clock = "/sys/devices/system/clocksource/clocksource0"
    namespaces: Json = {}
    for kind in ("net", "pid", "mnt", "ipc", "uts"):
        try:
            namespaces[kind] = os.readlink(f"/proc/self/ns/{kind}")  # noqa: PTH115 - not a path
        except OSError as error:
            namespaces[kind] = unknown(error.strerror)
    return {
        "schema": NODE_SCHEMA,
        "host": host,
        "nodename": system.nodename,
        "boot": _boot(),
        "kernel": {"release": system.release, "version": system.version, "machine": system.machine},
        "cmdline": read("/proc/cmdline"),
        "cpu": cpu["cpu"],
        "cores": cpu["cores"],
        "mitigations": mitigations or unknown("not stated by the kernel"),
        "governor": _governor(),
        "frequency": _frequency(),
        "quota": quota(),
        "autogroup": read("/proc/sys/kernel/sched_autogroup_enabled"),
        "virtualisation": _virtualisation(cpu["flags"]),
        "clocksource": {
            "current": read(f"{clock}/current_clocksource"),
            "available": read(f"{clock}/available_clocksource"),
        },
        "tsc": cpu["tsc"],
        "memory": _memory(),
        "hugepages": _hugepages(),
        "thp": read("/sys/kernel/mm/transparent_hugepage/enabled"),
        "libc": " ".join(platform.libc_ver()),
        "python": platform.python_version(),
        "libraries": libraries(build, base_environment(ld_library_path)) if build else {},
        "programs": programs(wanted),
        "configuration": configuration(opal_prefix),
        "namespaces": namespaces,
        "limits": {"memlock": _limit(resource.RLIMIT_MEMLOCK), "nofile": _limit(resource.RLIMIT_NOFILE)},
        "interfaces": _interfaces(),
        "yama": {"ptrace_scope": read("/proc/sys/kernel/yama/ptrace_scope")},
        "can": {
            "process_vm_readv": in_child(try_process_vm_readv),
            "af_xdp": in_child(try_af_xdp),
            "namespaces": in_child(try_namespaces),
        },
    }


def facts(arguments: argparse.Namespace) -> int:
    """`agent.pyz facts`."""
    host = arguments.host or socket.gethostname()
    stated = arguments.ld_library_path, arguments.opal_prefix, arguments.programs.split()
    print(json.dumps(gather(host, arguments.build, *stated), indent=1))
    return 0


def programs(names: Iterable[str]) -> Json:
    """Find programs as a launch finds them: {name: {version, file, build_id}}, the version that of their package."""
    found: Json = {}
    for name in sorted(names):
        path = shutil.which(name, path=SYSTEM_PATH)
        if path is None:
            found[name] = unknown("not found")
            continue
        file = Path(path).resolve()
        found[name] = {"version": unknown("no package"), "file": str(file), "build_id": build_id(file)}
    package_versions(found)
    return found
