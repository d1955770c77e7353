"""Plans made on the way: as good as those made on arrival, and never used when they do not fit."""

from __future__ import annotations

import numpy as np
import pytest

from gp_active_sensing.foresight import foresee, take
from gp_active_sensing.sim import build_loop, build_world, load_scenario
from gp_active_sensing.types import Cost, PlanLimit, Reading

LIMIT = PlanLimit(expansions=200)


def under_way(policy: str = "bal", **overrides):
    """A mission on the town with some readings taken, just sent to its next waypoint."""
    settings = [f"{key.replace('__', '.')}={value}" for key, value in overrides.items()]
    scenario = load_scenario("town", policy=policy, overrides=settings)
    world = build_world(scenario)
    loop = build_loop(scenario, world.topology)
    at = world.start
    for stamp in range(6):
        plan = loop.ask(at, limit=LIMIT)
        at = plan.waypoint
        loop.tell([world.sensor.read(at, 0, stamp)])
    plan = loop.ask(at, limit=LIMIT)
    return world, loop, plan


@pytest.mark.parametrize("policy", ["bal", "ie", "apgd", "random"])
def test_the_median_reading_gives_the_plan_of_asking_then(policy: str) -> None:
    _, loop, plan = under_way(policy)
    goal = plan.waypoint
    seen = foresee(loop, goal, cost=plan.cost, limit=LIMIT)
    assert seen is not None
    assert list(seen.medians) == sorted(seen.medians)
    for number, value in enumerate(seen.medians):
        assert seen.cell(value) == number
        arrived, asked = loop.snapshot(), loop.snapshot()
        for copy in (arrived, asked):
            copy.moved(plan.cost)
            copy.tell([Reading(9, goal, value)])
        taken, then = take(arrived, seen, value), asked.ask(goal, limit=LIMIT)
        assert taken is not None
        assert taken.waypoints == then.waypoints
        assert taken.path == then.path
        assert arrived.decisions == asked.decisions
        assert arrived.policy_state == asked.policy_state


def test_foreseeing_changes_nothing() -> None:
    _, loop, plan = under_way()
    before = loop.belief.weights.copy(), loop.decisions, loop.remaining
    foresee(loop, plan.waypoint, limit=LIMIT)
    np.testing.assert_array_equal(loop.belief.weights, before[0])
    assert (loop.decisions, loop.remaining) == before[1:]
    assert not loop.belief.observed[plan.waypoint]


def test_a_plan_that_does_not_fit_any_more_is_not_taken() -> None:
    _, loop, plan = under_way()
    goal = plan.waypoint
    seen = foresee(loop, goal, cost=plan.cost, limit=LIMIT)
    assert take(loop.snapshot(), seen, seen.medians[2]) is None, "the goal has not been read"
    loop.tell([Reading(9, goal, seen.medians[2])])
    waypoint = seen.plans[2].waypoint
    assert take(loop.snapshot(), seen, float("nan")) is None
    read = loop.snapshot()
    read.tell([Reading(10, waypoint, 30.0)])
    assert take(read, seen, seen.medians[2]) is None, "the waypoint has been read on the way"
    gone = loop.snapshot()
    gone.set_aside.add(waypoint)
    assert take(gone, seen, seen.medians[2]) is None
    decided = loop.snapshot()
    decided.ask(goal, limit=LIMIT)
    assert take(decided, seen, seen.medians[2]) is None, "another decision came first"
    poor = loop.snapshot()
    poor.remaining = poor.remaining.minus(cost=Cost(0.0, 0.0))
    poor.remaining = type(poor.remaining)(readings=5, metres=1.0)
    assert take(poor, seen, seen.medians[2]) is None, "the way is too long"
    assert take(loop.snapshot(), seen, seen.medians[2]).waypoint == waypoint


def test_it_can_be_cancelled_and_works_in_other_units() -> None:
    _, loop, plan = under_way(
        belief__transform="log", belief__signal_std="[0.5]", belief__noise_std="[0.1]"
    )
    assert foresee(loop, plan.waypoint, cancelled=lambda: True) is None
    seen = foresee(loop, plan.waypoint, limit=LIMIT)
    assert min(seen.medians) > 0.0
    assert seen.cell(1e9) == len(seen.plans) - 1
