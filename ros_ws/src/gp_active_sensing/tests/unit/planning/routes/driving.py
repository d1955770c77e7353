"""A mission driven to its end, place by place, for tests of policies that follow a route."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from gp_active_sensing.belief import Belief, BeliefConfig, build_belief
from gp_active_sensing.loop import SensingLoop
from gp_active_sensing.planning.base import Policy
from gp_active_sensing.planning.budget import reachable_goals
from gp_active_sensing.planning.map_error import map_error_of, thinned
from gp_active_sensing.planning.request import QuantityBelief
from gp_active_sensing.planning.routes.follow import unread_of
from gp_active_sensing.planning.routes.tours import RouteDriver
from gp_active_sensing.topology import Topology, make_grid
from gp_active_sensing.types import Budget, Plan, PlanLimit, Reading
from tests.requesting import asked

LAKE = make_grid(
    16,
    12,
    1.0,
    neighbours=8,
    outline=[(0, 0), (15, 1), (13, 11), (3, 10)],
    obstacles=[((6.0, 4.0), (9.0, 7.0))],
)


@dataclass
class Driven:
    """What came of a mission: `read` in order, `metres` and `at` of each probe."""

    read: list[int] = field(default_factory=list)
    metres: list[float] = field(default_factory=list)
    seconds: float = 0.0
    plans: list[Plan] = field(default_factory=list)
    at: list[int | None] = field(default_factory=list)


def plain_belief(topology: Topology) -> Belief:
    config = BeliefConfig(length_scales=(3.0,), signal_std=(1.0,), noise_std=(0.1,))
    return build_belief(config, topology.positions)


def driver_of(
    belief: Belief,
    topology: Topology,
    budget: Budget,
    at: int | None = 0,
    *,
    candidates: int = 4,
    most: int = 500,
    others: tuple[QuantityBelief, ...] = (),
) -> RouteDriver:
    """Return what drives routes through all that can be reached and read."""
    request = asked(belief, topology, at, remaining=budget, others=others)
    reach, unread = reachable_goals(request), unread_of(request)
    places, is_still = thinned(topology, reach.locations[unread[reach.locations]], most)
    field = map_error_of(belief, topology, places, candidates=candidates, others=others)
    return RouteDriver(request, reach, unread, budget, field, is_still)


def drive(
    policy: Policy,
    topology: Topology,
    budget: Budget,
    starts: Sequence[int | None] = (0,),
) -> Driven:
    """Drive a mission to its end: the probes take turns, each with the others' goals pending."""
    belief, limit = plain_belief(topology), PlanLimit(expansions=500)
    loop = SensingLoop(topology, belief, policy, budget=budget, limit=limit)
    found = Driven(metres=[0.0 for _ in starts], at=list(starts))
    under_way: dict[int, Plan] = {}
    resting: set[int] = set()
    while len(resting) < len(starts):
        for probe in range(len(starts)):
            plan = under_way.pop(probe, None)
            if plan is not None:
                _arrive(loop, found, probe, plan)
            if probe in resting:
                continue
            pending = [p.waypoints[0] for p in under_way.values()]
            plan = loop.ask(found.at[probe], pending=pending, probe=str(probe))
            found.plans.append(plan)
            here = found.at[probe]
            for place in plan.path if here is not None and not topology.free else ():
                if place != here:
                    assert place in topology.neighbours(here)
                here = place
            # The budget is taken off when a drive begins: the others must not spend it.
            loop.moved(plan.cost)
            if plan.waypoint is None:
                resting.add(probe)
                _arrive(loop, found, probe, plan)
            else:
                assert plan.waypoint not in pending
                under_way[probe] = plan
    return found


def _arrive(loop: SensingLoop, found: Driven, probe: int, plan: Plan) -> None:
    for place in plan.path:
        found.at[probe] = place
        new = not loop.belief.observed[place]
        if new and loop.wants(place):
            loop.tell([Reading(0, place, 0.0)])
            found.read.append(place)
    found.metres[probe] += plan.cost.metres
    found.seconds += plan.cost.seconds
