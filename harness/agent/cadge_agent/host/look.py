# SPDX-License-Identifier: BSD-3-Clause
"""`agent look`: what this host is and what is wrong with it, before anybody plans to measure there."""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from cadge_agent.errors import EndedError
from cadge_agent.faults import FaultError, fault
from cadge_agent.formats import BlockHost, HostReport, Json, LayerReport
from cadge_agent.host import kernel
from cadge_agent.host.build import ask_driver, layer_faults, layers_of
from cadge_agent.host.facts import gather
from cadge_agent.host.fit import name_faults, network_faults, processor_faults
from cadge_agent.host.ports import Greeters, own_addresses, port_faults, reach, taken_ports, try_logins
from cadge_agent.orders import FromController, SurveyTargets
from cadge_agent.output import LeaseOutput
from cadge_agent.reactor import Reactor
from cadge_agent.segments import SHM
from cadge_agent.site import RESERVED_PORTS

DEADLINE_S = 600.0


def look(arguments: argparse.Namespace) -> int:
    """`agent.pyz look`, see the head of the package."""
    reactor = Reactor(DEADLINE_S)
    output = LeaseOutput(reactor)
    greeters = Greeters(arguments.host)
    try:
        surveyed: SurveyTargets = json.loads(arguments.hosts.read_text(encoding="utf-8"))
        (host,) = [one for one in surveyed["hosts"] if one["name"] == arguments.host]
        reactor.on_order = lambda order: _obey(order, arguments.host, surveyed["ssh"], output)
        output.emit(_looked(host, surveyed, arguments, greeters))
        reactor.wait(lambda: reactor.stop_reason is not None, DEADLINE_S)
    except EndedError as error:  # the controller is gone, and nobody else would remove this
        if arguments.work.name.startswith("look-"):
            shutil.rmtree(arguments.work, ignore_errors=True)
        sys.stderr.write(f"agent: {error}\n")
        return 5
    except (OSError, ValueError, KeyError) as error:
        sys.stderr.write(f"agent: {arguments.host} cannot be looked at: {error}\n")
        return 2
    finally:
        greeters.close()
    return 0


def _obey(order: FromController, host: str, ssh: Sequence[str], output: LeaseOutput) -> None:
    if "clock" in order:
        output.emit({"event": "clock", "host": host, "number": order["clock"], "realtime_ns": time.time_ns()})
    if "reach" in order:
        report = reach(host, order["reach"])
        output.emit({**report, "no_login": try_logins(ssh, order.get("login", []))})


def _looked(host: BlockHost, surveyed: SurveyTargets, arguments: argparse.Namespace, greeters: Greeters) -> HostReport:
    build: Path = arguments.build.absolute()
    name, libraries, prefix = host["name"], host.get("ld_library_path", ""), host.get("opal_prefix", "")
    several = len(surveyed["hosts"]) > 1
    faults = [*network_faults(host), *(name_faults(host) if several else ()), *processor_faults(host)]
    if left := ", ".join(kernel.left(arguments.work)):
        text = f"a campaign that was killed left values of the kernel on {name}: {left}"
        faults.append(fault("kernel", text, "The next campaign there restores them", only_warn=True))
    driver: Json | None = None
    layers: dict[str, LayerReport] = {}
    try:
        driver = ask_driver(name, build, libraries)
    except FaultError as error:
        faults.append(error.fault)
    else:
        layers = layers_of(build, host)
        faults += layer_faults(name, layers)
    first, last = surveyed["ports"]
    addresses = own_addresses(host)
    taken = taken_ports(sorted(set(addresses.values())), first, last)
    faults += port_faults(name, taken, first, last)
    greets = {}
    for variable, address in addresses.items():
        try:
            greets[variable] = greeters.listen(address, range(last - RESERVED_PORTS // 2 + 1, last + 1))
        except OSError as error:
            if not any(one["about"] in {"device", "address"} for one in faults):  # it would be the same again
                text = f"{name} cannot listen at {address}: {error.strerror}"
                faults.append(fault("address", text, f"Set its {variable} in the inventory to an address of its own"))
    return {
        "event": "looked",
        "host": name,
        "node": gather(name, build if driver else None, libraries, prefix, surveyed["programs"]),
        "build": str(build),
        "driver": driver,
        "layers": layers,
        "taken_ports": taken,
        "shm_free_bytes": shutil.disk_usage(SHM).free if SHM.is_dir() else 0,
        "greets": {variable: port for variable, port in greets.items() if port},
        "faults": faults,
    }
