"""From a scenario to the things it describes: map, truth, sensor, probe, loop."""

from __future__ import annotations

import time
from dataclasses import dataclass

from gp_active_sensing.belief import build_belief
from gp_active_sensing.errors import ConfigError
from gp_active_sensing.loop import SensingLoop
from gp_active_sensing.sim.probe import SimulatedProbe
from gp_active_sensing.sim.scenario import Scenario
from gp_active_sensing.sim.sensor import SimulatedSensor
from gp_active_sensing.sim.truth import build_truth
from gp_active_sensing.topology import build_topology, check_start
from gp_active_sensing.topology.base import Topology
from gp_active_sensing.types import Clock, FloatArray

__all__ = ["World", "build_loop", "build_world"]


@dataclass(frozen=True)
class World:
    """What a simulated mission takes place in.

    Args:
        topology: the map.
        truth: (n,) noise-free field.
        sensor: reads it.
        start: index of the place where the probe stands, None = nowhere yet.
        speed: of the probe [m/s], or "limit".
    """

    topology: Topology
    truth: FloatArray
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
    topology = build_topology(scenario.map)
    truth = build_truth(scenario.field, topology, scenario.seed)
    sensor = SimulatedSensor(truth, scenario.sensor, scenario.seed)
    try:
        start = check_start(topology, scenario.probe.start)
    except ConfigError as error:
        raise ConfigError([f"probe.{problem}" for problem in error.problems]) from error
    return World(topology, truth, sensor, start, scenario.probe.speed)


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
        build_belief(scenario.belief, topology.features),
        scenario.build_policy(),
        budget=scenario.budget.budget(),
        seed=scenario.seed,
        limit=scenario.limit.limit(),
        retries=scenario.sensor.retries,
        speed=None if isinstance(speed, str) else float(speed),
        clock=clock,
    )
