# SPDX-License-Identifier: BSD-3-Clause
"""Predictions for more endpoints than there are: the closed form, and the simulation with what it differs by."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import product

from cadge_analysis import messages
from cadge_analysis.models.message import Message
from cadge_analysis.models.simulate import SimulationAnswer, Simulator
from cadge_analysis.models.topology import Kind, Topology, latency_ns
from cadge_analysis.models.traffic import Traffic, closed_form_ns, pairs, routes

say = partial(messages.say, "models")

ENDPOINTS_MOST = 100_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Prediction:
    """How long traffic takes in a network, in ns. `reason` says why there is no simulation."""

    topology: Topology
    traffic: Traffic
    closed_ns: float
    simulated_ns: float | None
    reason: str

    @property
    def error(self) -> float | None:
        """By how much the closed form lies above the simulation, as a share of that; None without one."""
        return self.closed_ns / self.simulated_ns - 1 if self.simulated_ns else None


def closed_ns(traffic: Traffic, topology: Topology, message: Message) -> float:
    """Return LogGP's closed form, with the latencies of the ways in this network."""
    ways_ns = [latency_ns(message, topology.links(*pair)) for pair in pairs(traffic, topology.endpoints)]
    return closed_form_ns(traffic, topology.endpoints, message, ways_ns)


def scale(
    message: Message,
    kinds: Sequence[Kind],
    traffics: Sequence[Traffic],
    endpoints: Sequence[int],
    simulator: Simulator | None,
) -> Iterator[Prediction]:
    """Yield a prediction for each combination; without `simulator` nothing is simulated.

    Raises SimulatorMissingError, before the first one, where a simulation is wanted and cannot be had.
    """
    if simulator is not None:
        simulator.version()
    for kind, traffic, count in product(kinds, traffics, endpoints):
        topology = Topology(kind, count)
        found = _simulated(traffic, topology, message, simulator)
        yield Prediction(
            topology=topology,
            traffic=traffic,
            closed_ns=closed_ns(traffic, topology, message),
            simulated_ns=found.finished_ns if isinstance(found, SimulationAnswer) else None,
            reason="" if isinstance(found, SimulationAnswer) else found,
        )


def _simulated(
    traffic: Traffic, topology: Topology, message: Message, simulator: Simulator | None
) -> SimulationAnswer | str:
    if simulator is None:
        return "not asked for"
    if topology.endpoints > traffic.simulated_most:
        return say("scale.simulated_up_to", traffic=traffic, most=traffic.simulated_most)
    return simulator.simulate(routes(traffic, topology.endpoints), topology, message)
