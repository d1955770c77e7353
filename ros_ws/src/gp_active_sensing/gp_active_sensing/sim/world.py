"""From a scenario to the things it describes: map, truth, sensor, probe, loop."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from gp_active_sensing.belief import build_belief
from gp_active_sensing.errors import ConfigError
from gp_active_sensing.loop import SensingLoop
from gp_active_sensing.sim.probe import SimulatedProbe
from gp_active_sensing.sim.scenario import Scenario
from gp_active_sensing.sim.sensor import SimulatedSensor
from gp_active_sensing.sim.truth import Truth, build_truth
from gp_active_sensing.topology import build_topology, check_start
from gp_active_sensing.topology.base import Topology
from gp_active_sensing.types import Clock

__all__ = ["World", "build_loop", "build_world"]

RANDOM = "random"
"""The word for a start that the seed chooses, unless the map has a place of that name."""
_STREAM = 0x57A27
"""Keeps the choice of the start apart from other draws keyed by the same seed."""

T = TypeVar("T")


@dataclass(frozen=True)
class World:
    """What a simulated mission takes place in.

    Args:
        topology: the map.
        truth: the noise-free field, at any time of the mission.
        sensor: reads it.
        start: index of the place where the probe stands, None = nowhere yet.
        speed: of the probe [m/s], or "limit".
    """

    topology: Topology
    truth: Truth
    sensor: SimulatedSensor
    start: int | None
    speed: float | str = "limit"

    def probe(self) -> SimulatedProbe:
        """Return a probe at the start."""
        return SimulatedProbe(self.topology, self.start, self.speed)


def build_world(scenario: Scenario) -> World:
    """Return the world of a scenario.

    Raises:
        ActiveSensingError: a map, table or start that cannot be used.
    """
    topology = _under("map", lambda: build_topology(scenario.map))
    truth = build_truth(scenario.field, topology, scenario.seed)
    sensor = SimulatedSensor(truth, scenario.sensor, scenario.seed)
    start = _under("probe", lambda: _start(topology, scenario))
    return World(topology, truth, sensor, start, scenario.probe.speed)


def _under(section: str, build: Callable[[], T]) -> T:
    """Build something; the problems it finds get the path of their section."""
    try:
        return build()
    except ConfigError as error:
        raise ConfigError([f"{section}.{problem}" for problem in error.problems]) from error


def _start(topology: Topology, scenario: Scenario) -> int | None:
    given = scenario.probe.start
    if given != RANDOM or RANDOM in topology.names:
        return check_start(topology, given)
    # Places that lead nowhere are passed over; with nothing but such, say what is wrong with one.
    order = np.random.default_rng([scenario.seed, _STREAM]).permutation(topology.n)
    nothing = np.zeros(topology.n, dtype=bool)
    usable = (int(x) for x in order if topology.candidates(int(x), nothing).size)
    return check_start(topology, next(usable, int(order[0])))


def build_loop(
    scenario: Scenario, topology: Topology, *, clock: Clock = time.monotonic
) -> SensingLoop:
    """Return the engine of a scenario, before its first reading.

    Raises:
        ConfigError: a belief or policy that cannot be built for this map.
    """
    speed = scenario.probe.speed
    return SensingLoop(
        topology,
        build_belief(scenario.belief, topology.features, topology.feature_names),
        scenario.build_policy(),
        budget=scenario.budget.budget(),
        seed=scenario.seed,
        limit=scenario.limit.limit(),
        retries=scenario.sensor.retries,
        speed=None if isinstance(speed, str) else float(speed),
        clock=clock,
    )
