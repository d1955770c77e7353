"""Build the world and the sensing loop of a scenario, and routes of its simulated probes."""

from __future__ import annotations

import logging
import time
import zlib
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from gp_active_sensing.belief import belief_on
from gp_active_sensing.engine.config import START
from gp_active_sensing.errors import ActiveSensingError, ConfigError, PlanningError
from gp_active_sensing.loop import SensingLoop
from gp_active_sensing.planning import Policy
from gp_active_sensing.planning.base import drift_of, revisits
from gp_active_sensing.planning.budget import BudgetConstraint, check_end, in_metres
from gp_active_sensing.planning.turning import check_radius
from gp_active_sensing.records.ground_truth import NOTHING, FieldKnowledge, GroundTruth
from gp_active_sensing.sim.fields.truth import build_truth
from gp_active_sensing.sim.probe import SimulatedProbe
from gp_active_sensing.sim.scenario import Scenario, scenario_from_mapping
from gp_active_sensing.sim.sensor import SimulatedSensor
from gp_active_sensing.sim.traffic import find_traffic
from gp_active_sensing.topology import MapConfig, check_start, place_index
from gp_active_sensing.topology.base import Topology
from gp_active_sensing.topology.config import build_settled
from gp_active_sensing.types import BoolArray, Budget, Clock, FloatArray, IntArray, Route

if TYPE_CHECKING:
    from gp_active_sensing.experts.simulated import SimulatedExpert

RANDOM = "random"
"""Value of ``probe.start`` for a start drawn from the seed.

If a place has this name, the value means that place.
"""
_STREAM = 0x57A27
"""Constant that makes the random starts independent of all other random numbers."""

T = TypeVar("T")


@dataclass(frozen=True)
class World:
    """World of a simulated mission.

    Args:
        topology: the map.
        truth: noise-free field of the main quantity.
        sensor: sensor of the main quantity.
        start: index of the first place; None = the probe is at no place yet.
        speed: speed of the probe [m/s], or "limit" for the map's speeds.
        budget: budget of the mission, including its end place.
        crosses: True = drive the cheapest route; False = prefer routes through passed places.
        traffic: SUMO simulation with the probe
            (`gp_active_sensing_bench.traffic.live.LiveTraffic`); None = no live traffic.
        turn_radius: smallest radius of a curve of the probe [m]; 0 = the probe turns on the spot.
        map: settings of the map, with the computed spacing and origin.
        further: sensors of the further quantities, by name.
    """

    topology: Topology
    truth: GroundTruth
    sensor: SimulatedSensor
    start: int | None
    speed: float | str = "limit"
    traffic: Any = None
    budget: Budget = Budget()
    crosses: bool = False
    turn_radius: float = 0.0
    map: MapConfig | None = None
    further: Mapping[str, SimulatedSensor] = field(default_factory=dict)

    def probe(self) -> SimulatedProbe:
        """Return a probe at the start."""
        return SimulatedProbe(self.topology, self.start, self.speed, self.turn_radius)


def build_world(scenario: Scenario) -> World:
    """Build a scenario's world. Raises ActiveSensingError for an unusable map, table or start."""
    topology, settled = _under("map", lambda: build_settled(scenario.map))
    check_radius(topology, scenario.drive.turn_radius)
    traffic: Any = None
    if scenario.field.kind == "sumo":
        build = find_traffic()
        traffic = _under(
            "traffic", lambda: build(scenario.traffic, scenario.field, topology, scenario.seed)
        )
        truth: GroundTruth = traffic.truth
    else:
        truth = build_truth(scenario.field, topology, scenario.seed)
    sensor = SimulatedSensor(truth, scenario.sensor, scenario.seed)
    start, budget = _under("probe", lambda: _trip(topology, scenario))
    crosses = revisits(scenario.build_policy())
    return World(
        topology,
        truth,
        sensor,
        start,
        scenario.probe.speed,
        traffic,
        budget,
        crosses,
        scenario.drive.turn_radius,
        settled,
        {name: further_sensor(scenario, name, topology) for name in scenario.quantities},
    )


def further_sensor(scenario: Scenario, name: str, topology: Topology) -> SimulatedSensor:
    """Return the sensor of a further quantity, with its own random numbers."""
    each = scenario.quantities[name]
    seed = (scenario.seed << 32) + zlib.crc32(name.encode())
    truth = _under(f"quantities.{name}", lambda: build_truth(each.field, topology, seed))
    config = replace(each.sensor, on_the_way=each.sensor.on_the_way and not each.sampled)
    return SimulatedSensor(truth, config, seed)


def begun_elsewhere(
    world: World, scenario: Scenario, start: str | int, number: int, taken: Collection[int] = ()
) -> World:
    """Return a copy of the world in which another probe starts.

    A start "random" is drawn from the seed and the probe's `number`, which begins at 1. If
    possible, the draw avoids the starts of other probes (`taken`).

    Raises:
        ActiveSensingError: a start that cannot be used.
    """
    other = replace(scenario, probe=replace(scenario.probe, start=start))
    at, budget = _trip(world.topology, other, key=(number,), taken=taken)
    return replace(world, start=at, budget=budget)


def _under(section: str, build: Callable[[], T]) -> T:
    """Call `build`; if it raises ConfigError, put the section's name before each problem."""
    try:
        return build()
    except ConfigError as error:
        raise ConfigError([f"{section}.{problem}" for problem in error.problems]) from error


def _trip(
    topology: Topology, scenario: Scenario, key: tuple[int, ...] = (), taken: Collection[int] = ()
) -> tuple[int | None, Budget]:
    """Return the start place, and the budget with the end place.

    A random start is drawn from the seed and `key`. A place in `taken` is drawn only if no other
    place is usable.
    """
    given, end = scenario.probe.start, scenario.probe.end
    budget, speed = scenario.budget.budget(), scenario.probe.own_speed
    if end is not None and (end != START or START in topology.names):
        budget = replace(budget, end=place_index(topology, end, "end"))
    back = end is not None and budget.end is None
    if given != RANDOM or RANDOM in topology.names:
        start = check_start(topology, given)
        if back:
            budget = replace(budget, end=start)
            if start is None:
                msg = "end: start is where the probe begins, and it has no start; set probe.start"
                raise ConfigError(msg)
        return start, _checked(topology, budget, start, speed)
    # Skip places from which no place or no end can be reached. If no place remains, report
    # the problem of the first.
    order = np.random.default_rng([scenario.seed, _STREAM, *key]).permutation(topology.n).tolist()
    order.sort(key=lambda place: place in taken)
    nothing = np.zeros(topology.n, dtype=bool)

    def ending(place: int) -> Budget:
        return replace(budget, end=place) if back else budget

    def usable(place: int) -> bool:
        if not topology.candidates(place, nothing).size:
            return False
        constraint = BudgetConstraint(topology, in_metres(ending(place), speed))
        return end is None or bool(constraint.drives(place, nothing))

    start = next(filter(usable, order), order[0])
    return check_start(topology, start), _checked(topology, ending(start), start, speed)


def _checked(topology: Topology, budget: Budget, start: int | None, speed: float | None) -> Budget:
    try:
        check_end(topology, budget, start, speed=speed)
    except PlanningError as error:
        raise ConfigError(str(error)) from error
    return budget


def expert_of(scenario: Scenario, world: World) -> SimulatedExpert | None:
    """Return the simulated expert, who answers from the truth; None = the scenario has no expert.

    Raises:
        ConfigError: a station or the expert's start is not a place of the map.
    """
    if scenario.expert.kind == "none":
        return None
    from gp_active_sensing.experts.simulated import build_expert

    def values(places: IntArray, seconds: float) -> FloatArray:
        return world.truth.at(seconds)[places]

    return build_expert(scenario.expert, world.topology, values, scenario.seed)


def build_loop(
    scenario: Scenario, topology: Topology, *, clock: Clock = time.monotonic
) -> SensingLoop:
    """Return the sensing loop of a scenario before its first reading.

    Raises:
        ConfigError: a belief or policy that cannot be built for this map.
    """
    budget = scenario.budget.budget()
    if scenario.probe.end is not None:
        _, budget = _under("probe", lambda: _trip(topology, scenario))
    policy = scenario.build_policy()
    check_mission_ends(scenario, policy)
    drift, aims = drift_of(policy), scenario.budget.aims(scenario.main)
    further = [
        each.quantity(name, belief_on(each.belief, topology, drift), aims.get(name))
        for name, each in scenario.quantities.items()
    ]
    return SensingLoop(
        topology,
        belief_on(scenario.belief, topology, drift),
        policy,
        budget=budget,
        seed=scenario.seed,
        limit=scenario.limit.limit(),
        retries=scenario.sensor.retries,
        speed=scenario.probe.own_speed,
        turn_radius=scenario.drive.turn_radius,
        aim=scenario.budget.aim(scenario.main),
        limits=scenario.limits.limits(),
        name=scenario.main,
        quantities=further,
        clock=clock,
    )


def check_mission_ends(scenario: Scenario, policy: Policy) -> None:
    """Raise ConfigError if the policy may reread places and the number of readings has no limit."""
    if revisits(policy) and scenario.budget.readings is None:
        msg = (
            f"budget.readings: is needed with policy {scenario.policy['name']}, which may read the "
            "same place again and again: that is no metres and no seconds of driving"
        )
        raise ConfigError(msg)


logger = logging.getLogger(__name__)


def field_knowledge(scenario: Mapping[str, Any]) -> FieldKnowledge:
    """Return the truth, sensor and unit of each quantity of a scenario.

    For live traffic, only the unit is known. The result is empty if the scenario cannot be built.
    """
    try:
        whole = scenario_from_mapping(scenario)
        if whole.field.kind == "sumo":
            logger.info("the truth is in the simulator's SUMO: no scores of the map")
            return FieldKnowledge(unit=whole.field.unit)
        world = build_world(whole)
    except ActiveSensingError as error:
        logger.warning("the truth of the scenario is not known on this map: %s", error)
        return NOTHING
    return knowledge_of(world, whole)


def knowledge_of(world: World, scenario: Scenario) -> FieldKnowledge:
    """Return truth, sensor and unit of each quantity."""
    further = {
        name: FieldKnowledge(sensor.truth, sensor, scenario.quantities[name].field.unit)
        for name, sensor in world.further.items()
    }
    return FieldKnowledge(world.truth, world.sensor, scenario.field.unit, further)


def way_to(world: World, at: int | None, goal: int, passed: BoolArray) -> Route | None:
    """Return the simulated probe's route to a waypoint; None = no route exists.

    With `World.crosses`, the route is the cheapest. Otherwise the route avoids the places for which
    `passed` (n,) is False. It crosses them only if there is no other route, or on the way to the
    end place if that is cheaper. `at` None = the probe is at no place yet.
    """
    if world.crosses and at is not None:
        unit = "metres" if _by_metres(world) else "seconds"
        return world.topology.ways_from(at, unit).route(goal)
    known = _route(world, at, goal, passed)
    if at is not None and goal == world.budget.end:
        speed = None if isinstance(world.speed, str) else world.speed
        budget = in_metres(world.budget, speed)
        home = BudgetConstraint(world.topology, budget).way_home(at)
        by = 0 if _by_metres(world) else 1
        if home is not None and home.path:
            return known if known is not None and known.cost[by] <= home.cost[by] else home
    return known or _route(world, at, goal, np.ones(world.topology.n, dtype=np.bool_))


def _by_metres(world: World) -> bool:
    return world.budget.seconds is None and world.budget.metres is not None


def _route(world: World, at: int | None, goal: int, crossable: BoolArray) -> Route | None:
    try:
        return world.topology.route(at, goal, crossable)
    except PlanningError:
        return None
