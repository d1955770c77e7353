"""Several simulated probes in one world: one map, one field, one clock, one sensor noise."""

from __future__ import annotations

from collections.abc import Sequence

from gp_active_sensing.errors import ConfigError
from gp_active_sensing.mission.names import probe_names
from gp_active_sensing.sim.robot import SharedWorld, SimulatedRobot
from gp_active_sensing.sim.scenario import Scenario
from gp_active_sensing.sim.traffic_robot import TrafficRobot
from gp_active_sensing.sim.world import RANDOM, World, begun_elsewhere

__all__ = ["build_players"]


def build_players(
    scenario: Scenario,
    world: World,
    names: Sequence[str] | None = None,
    starts: Sequence[str] = (),
) -> dict[str, SimulatedRobot | TrafficRobot]:
    """Return the probes of a world by their names, each where it begins.

    The first begins where the scenario says, the others at places that the seed chooses; a reading
    depends on the place and on how often any of them was there, not on which one it is.

    Args:
        scenario: what is simulated.
        world: its world.
        names: of the probes; empty = one without a name; None = as many as the scenario says.
        starts: places where the first ones begin instead, by name or number, or the word "random".

    Raises:
        ConfigError: names or starts that cannot be used; several probes in live traffic.
    """
    names = probe_names(scenario.names if names is None else names) or ("",)
    if len(starts) > len(names):
        msg = f"starts: expected at most one a probe, {len(names)}, got {len(starts)}"
        raise ConfigError(msg)
    readings, on_the_way = scenario.sensor.readings, scenario.sensor.on_the_way
    if world.traffic is not None:
        if len(names) > 1 or starts:
            msg = (
                "probes: in live traffic there is one car, which begins at probe.start; several "
                "probes and starts of their own need a field that is known (a table or a draw)"
            )
            raise ConfigError(msg)
        return {names[0]: TrafficRobot(world, readings=readings, on_the_way=on_the_way)}
    traces = SharedWorld.on(world.topology)
    players: dict[str, SimulatedRobot | TrafficRobot] = {}
    taken: list[int] = []
    for number, name in enumerate(names):
        if number < len(starts):
            own = begun_elsewhere(world, scenario, _place(world, starts[number]), number, taken)
        elif number:
            own = begun_elsewhere(world, scenario, RANDOM, number, taken)
        else:
            own = world
        if own.start is not None:
            taken.append(own.start)
        players[name] = SimulatedRobot(
            own,
            readings=readings,
            on_the_way=on_the_way,
            stop=scenario.sensor.seconds,
            name=name,
            traces=traces,
        )
    return players


def _place(world: World, given: str) -> str | int:
    """Return a place as it was given: a text of digits is an index, unless it is a name."""
    is_name = given in world.topology.names
    return int(given) if given.isascii() and given.isdigit() and not is_name else given
