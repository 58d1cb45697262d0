# SPDX-License-Identifier: BSD-3-Clause
"""From a plan and a testbed to what each block is given: hosts, processors and launch files."""

from __future__ import annotations

from collections.abc import Container, Mapping
from typing import TYPE_CHECKING

from pydantic import JsonValue

from cadge_harness.plan import timemodel
from cadge_harness.plan.sweep import workload_of
from cadge_results import Endpoint, LaunchFile, LaunchPoint, Plan, PlanLaunch, PlanPoint
from cadge_results.base import Place

if TYPE_CHECKING:
    from cadge_harness.testbed.model import Host, Testbed

BLOCK_SCHEMA = "cadge.block/1"
_GRACE_S = 120


def make_blocks(
    plan: Plan, testbed: Testbed, campaign_id: str, *, done: Container[str] = frozenset()
) -> list[dict[str, JsonValue]]:
    """Return the block documents of a plan with the launches that are not `done`; blocks without any are left out."""
    points = {point.point_id: point for point in plan.points}
    launches = {launch.launch_id: launch for launch in plan.launches}
    found: list[dict[str, JsonValue]] = []
    for block in plan.blocks:
        hosts = testbed.hosts[: block.hosts]
        endpoints = _endpoints(block.place, hosts)
        files = [
            _launch_file(launches[item], points, endpoints, testbed.ports, campaign_id)
            for item in block.launch_ids
            if item not in done
        ]
        if not files:
            continue
        found.append(
            {
                "schema": BLOCK_SCHEMA,
                "block_id": block.block_id,
                "campaign_id": campaign_id,
                "place": block.place,
                "hosts": [_host(host) for host in hosts],
                "leader": hosts[0].name,
                "ports": list(testbed.ports),
                "deadline_s": _GRACE_S + sum(file.deadline_ms for file in files) // 1000,
                "launches": [file.to_object() for file in files],
            }
        )
    return found


def _host(host: Host) -> dict[str, JsonValue]:
    return {
        "name": host.name,
        "management_address": host.management_address,
        "device": host.device,
        "address": host.address,
        "raw_device": host.raw_device,
        "cpus": list(host.cpus),
    }


def _endpoints(place: Place, hosts: tuple[Host, ...]) -> tuple[Endpoint, ...]:
    """Return who measures where. Within one host the loopback is the device; between two, the data network's."""
    if place == "between":
        first, second = hosts[0], hosts[1]
        return (
            _endpoint(first, first.device, first.address, _cpu(first, 0)),
            # Emulated hosts share one machine's processors, so the second host uses its second one.
            _endpoint(second, second.device, second.address, _cpu(second, 1)),
        )
    host = hosts[0]
    ends = (_endpoint(host, "lo", "127.0.0.1", _cpu(host, 0)), _endpoint(host, "lo", "127.0.0.1", _cpu(host, 1)))
    return ends[:1] if place == "self" else ends


def _endpoint(host: Host, device: str, address: str, cpu: int) -> Endpoint:
    return Endpoint(host=host.name, cpu=cpu, device=device, address=address, raw_device=host.raw_device)


def _cpu(host: Host, index: int) -> int:
    return host.cpus[index % len(host.cpus)] if host.cpus else -1


def _launch_file(
    launch: PlanLaunch,
    points: Mapping[str, PlanPoint],
    endpoints: tuple[Endpoint, ...],
    ports: tuple[int, int],
    campaign_id: str,
) -> LaunchFile:
    return LaunchFile(
        schema_=LaunchFile.schema_id(),
        launch_id=launch.launch_id,
        campaign_id=campaign_id,
        kind=launch.kind,
        layer=launch.layer,
        shims=launch.shims,
        launcher=launch.launcher,
        place=launch.place,
        wait=launch.wait,
        settings=launch.settings,
        seed=launch.seed,
        deadline_ms=launch.deadline_ms,
        ports=ports,
        endpoints=endpoints,
        points=tuple(_launch_point(points[item], order) for order, item in enumerate(launch.point_ids)),
    )


def _launch_point(point: PlanPoint, order: int) -> LaunchPoint:
    return LaunchPoint(
        attempt_id=str(order),
        point_id=point.point_id,
        pattern=point.pattern,
        request_bytes=point.request_bytes,
        reply_bytes=point.reply_bytes,
        depth=point.depth,
        operation=point.operation,
        target=point.target,
        duration_ms=point.duration_ms,
        deadline_ms=timemodel.point_deadline_ms(workload_of(point), point.duration_ms, point.place),
    )
