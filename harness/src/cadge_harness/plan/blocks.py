# SPDX-License-Identifier: BSD-3-Clause
"""From a plan and a testbed to what each block is given: hosts, processors and launch files."""

from __future__ import annotations

from collections import Counter
from collections.abc import Container
from typing import TYPE_CHECKING

from cadge_harness.plan import timemodel
from cadge_harness.plan.link import limits_rate
from cadge_results import Block, BlockHost, Endpoint, LaunchFile, LaunchPoint, LaunchTrace, Plan, PlanLaunch, PlanPoint
from cadge_results.formats.trace import TRACE_FILE
from cadge_results.parameter_tables import digest_of
from cadge_results.plugins.pattern import declared

if TYPE_CHECKING:
    from cadge_harness.testbed.model import Host, Testbed

_GRACE_S = 120


def make_blocks(plan: Plan, testbed: Testbed, campaign_id: str, *, done: Container[str] = frozenset()) -> list[Block]:
    """Return the blocks of a plan with the launches that are not `done`; blocks without any are left out."""
    launches = {launch.launch_id: launch for launch in plan.launches}
    found: list[Block] = []
    for block in plan.blocks:
        files = tuple(
            _launch_file(launches[item], plan, testbed, campaign_id) for item in block.launch_ids if item not in done
        )
        if not files:
            continue
        used = {end.host for file in files for end in file.endpoints}
        hosts = [host for host in testbed.hosts if host.name in used]
        found.append(
            Block(
                schema_=Block.schema_id(),
                block_id=block.block_id,
                campaign_id=campaign_id,
                place=block.place,
                hosts=tuple(BlockHost.model_validate(host, from_attributes=True) for host in hosts),
                leader=files[0].endpoints[0].host,
                ports=testbed.ports,
                deadline_s=_GRACE_S + sum(file.deadline_ms for file in files) // 1000,
                launches=files,
            )
        )
    return found


def _endpoints(launch: PlanLaunch, testbed: Testbed, *, own_traffic: bool) -> tuple[Endpoint, ...]:
    """Return who runs where. Within one host the loopback is the device; between hosts, the data network's.

    `own_traffic`: what its processes say beside the layer goes over the management network where the plan limits the
    rate of the data network anywhere: the limit is for the layer, and what it is compared with goes the same way.
    """
    hosts = {host.name: host for host in testbed.hosts}
    first = testbed.hosts[0].name
    shared = str(testbed.kind) == "emulated"
    used: Counter[str] = Counter()

    def take(host: Host, count: int) -> tuple[int, ...]:
        # Emulated hosts share one machine's processors, so every endpoint takes the next ones. Hosts of a cluster begin
        # at the same: the first host at its first processor, the others at their second.
        begun = used.total() if shared else used[host.name] + (host.name != first)
        used[host.name] += count
        return tuple(_cpu(host, begun + number) for number in range(count))

    between = launch.subject.place == "between"
    apart = own_traffic and between
    cpus = [take(hosts[seat.host], seat.threads) for seat in launch.endpoints]
    # Last, so that whoever has a context is where it is without hands: with too few processors, they share one.
    hands = [take(hosts[seat.host], seat.hands) for seat in launch.endpoints]
    found = []
    for number, seat in enumerate(launch.endpoints):
        host = hosts[seat.host]
        found.append(
            Endpoint(
                role=seat.role,
                host=seat.host,
                cpus=cpus[number],
                hands=hands[number],
                device=host.device if between else "lo",
                address=host.address if between else "127.0.0.1",
                raw_device=host.raw_device,
                management_address=host.management_address if apart else "",
                peers=seat.peers,
            )
        )
    return tuple(found)


def _cpu(host: Host, index: int) -> int:
    return host.cpus[index % len(host.cpus)] if host.cpus else -1


def _launch_file(launch: PlanLaunch, plan: Plan, testbed: Testbed, campaign_id: str) -> LaunchFile:
    subject = launch.subject
    points = [plan.by_id[item] for item in launch.point_ids]
    used = {point.workload.pattern: plan.pattern_of(point) for point in points}
    replayed = plan.trace if any(map(plan.replays, points)) else None
    return LaunchFile(
        schema_=LaunchFile.schema_id(),
        launch_id=launch.launch_id,
        campaign_id=campaign_id,
        kind=subject.kind,
        layer=subject.layer,
        shims=subject.shims,
        launcher=launch.launcher,
        place=subject.place,
        wait=subject.wait,
        settings=subject.settings,
        epoch=launch.epoch,
        seed=launch.seed,
        deadline_ms=launch.deadline_ms,
        ports=testbed.ports,
        endpoints=_endpoints(
            launch, testbed, own_traffic=limits_rate(plan) and any(one.own_traffic for one in used.values())
        ),
        system_calls=launch.round == plan.launches[0].round,
        rights=plan.floors[subject.layer].rights if subject.kind == "floor" else (),
        trace=LaunchTrace(file=TRACE_FILE, sha256=replayed.sha256) if replayed else None,
        patterns=declared(used),
        digests={name: digest_of(file) for name, file in used.items()},
        points=tuple(_launch_point(point, order, plan) for order, point in enumerate(points)),
    )


def _launch_point(point: PlanPoint, order: int, plan: Plan) -> LaunchPoint:
    deadline_ms = timemodel.point_deadline_ms(
        plan.pattern_of(point), point.workload, point.duration_ms, point.subject.place
    )
    return LaunchPoint(
        attempt_id=str(order),
        point_id=point.point_id,
        workload=point.workload,
        duration_ms=point.duration_ms,
        deadline_ms=deadline_ms,
    )
