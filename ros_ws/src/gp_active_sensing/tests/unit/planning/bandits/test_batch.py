"""Several probes: the joint choice, one at a time, budgets, roads, and what nobody means to ask."""

from __future__ import annotations

import itertools
import json
import math

import numpy as np
import pytest

from gp_active_sensing.planning.bandits.batch import assign
from gp_active_sensing.planning.budget import NOTHING_IN_REACH, READINGS_SPENT
from gp_active_sensing.topology import Topology, make_grid, make_line
from gp_active_sensing.types import Budget, Plan
from tests.cases import for_each
from tests.requesting import asked
from tests.unit.planning.bandits.worlds import NAMES, batch, believe, scattered, start_of


def together(name: str, belief, topology: Topology, at, **options) -> list[Plan]:  # type: ignore[no-untyped-def]
    policy = batch(name, **options.pop("keys", {}))
    request = asked(belief, topology, None, **{"rng": np.random.default_rng(0), **options})
    return policy.plan_batch(request, at)[0]


def goals(plans: list[Plan]) -> list[int | None]:
    return [plan.waypoint for plan in plans]


@for_each("name", NAMES)
def test_the_members_of_a_batch_are_shared_out_by_the_way_there(name: str) -> None:
    topology = scattered()
    belief = believe(topology)
    policy = batch(name)
    at = [0, 11, 22, 33]
    plans = together(name, belief, topology, at)
    chosen = policy.choose(start_of(policy, belief, topology), 4, np.random.default_rng(0))
    assert sorted(goals(plans)) == sorted(chosen)
    x = topology.positions

    def driven(order: tuple[int, ...]) -> float:
        return sum(math.dist(x[a], x[b]) for a, b in zip(at, order, strict=True))

    least = min(map(driven, itertools.permutations(chosen)))
    assert sum(plan.cost.metres for plan in plans) == pytest.approx(least)
    assert driven(tuple(goals(plans))) == pytest.approx(least)  # type: ignore[arg-type]
    for plan in plans:
        assert plan.path == plan.waypoints
        assert plan.lower == plan.upper
        assert plan.waypoint in [c.location for c in plan.candidates]


@for_each("name", [name for name in NAMES if "sample" not in name])
def test_one_at_a_time_is_the_same_batch(name: str) -> None:
    topology = scattered()
    belief = believe(topology)
    policy = batch(name)
    chosen = policy.choose(start_of(policy, belief, topology), 5, np.random.default_rng(0))
    pending: list[int] = []
    state = None
    for _ in range(5):
        plan, state = policy.plan(asked(belief, topology, 0, pending=pending), state)
        state = json.loads(json.dumps(state))
        pending.append(plan.waypoint)  # type: ignore[arg-type]
    assert pending == chosen
    assert state == {"stage": 5, "lead": chosen[0], "round": 1}


@for_each("name", ["ucb_dpp_sample", "est_dpp_sample"])
def test_one_at_a_time_draws_what_is_likely_given_the_others(name: str) -> None:
    """Two members, each drawn given the first: the pair of the DPP's conditional."""
    topology = scattered(12)
    belief = believe(topology, 3)
    policy = batch(name)
    start = start_of(policy, belief, topology)
    lead = policy.choose(start, 1, np.random.default_rng(0))[0]
    counts = np.zeros(12)
    for seed in range(400):
        plan, _ = policy.plan(
            asked(belief, topology, 0, pending=[lead], rng=np.random.default_rng(seed)),
            {"stage": 1, "lead": lead},
        )
        counts[plan.waypoint] += 1
    told = belief.copy()
    told.observe(lead, 0.0)
    variance = told.predict()[1] / 0.2**2 + 1.0
    variance[lead] = 0.0
    share = variance / variance.sum()
    assert np.abs(counts / 400 - share).max() < 4.0 * math.sqrt(0.25 / 400)
    assert np.corrcoef(counts, share)[0, 1] > 0.7


@for_each("name", [name for name in NAMES if "dpp" in name or "pe" in name])
def test_one_probe_searches_while_the_others_explore(name: str) -> None:
    """Probes that never wait together: there is always one on its way to the largest bound."""
    topology = scattered()
    belief = believe(topology)
    policy = batch(name)
    first, state = policy.plan(asked(belief, topology, 0))
    assert state["lead"] == first.waypoint
    second, state = policy.plan(asked(belief, topology, 1, pending=first.waypoints), state)
    assert state["lead"] == first.waypoint
    belief.observe(first.waypoint, 0.0)  # the first arrives
    third, state = policy.plan(asked(belief, topology, 2, pending=second.waypoints), state)
    assert state["lead"] == third.waypoint
    alone, _ = policy.plan(asked(belief, topology, 2, unavailable=second.waypoints))
    assert third.waypoint == alone.waypoint


@for_each("name", NAMES)
def test_more_probes_than_places(name: str) -> None:
    topology = scattered(3)
    belief = believe(topology, 1)
    plans = together(name, belief, topology, [0, 1, 2, 0, 1])
    got = [goal for goal in goals(plans) if goal is not None]
    assert sorted(got) == [0, 1, 2]
    for plan in plans:
        assert (plan.reason == NOTHING_IN_REACH) == (plan.waypoint is None)
    # Two are under way to some already.
    plans = together(name, belief, topology, [0, 1], pending=[2, 0])
    assert goals(plans).count(1) == 1
    assert goals(plans).count(None) == 1


@for_each("name", NAMES)
def test_fewer_readings_than_probes(name: str) -> None:
    topology = scattered()
    belief = believe(topology)
    plans = together(name, belief, topology, [0, 1, 2], remaining=Budget(readings=2))
    assert goals(plans).count(None) == 1
    assert [plan.reason for plan in plans if plan.waypoint is None] == [READINGS_SPENT]
    plans = together(name, belief, topology, [0, 1], remaining=Budget(readings=0))
    assert [plan.reason for plan in plans] == [READINGS_SPENT] * 2


@for_each("name", NAMES)
def test_probes_that_reach_different_places(name: str) -> None:
    """Each has little left to drive, and is alone in its corner: goals that each can afford."""
    topology = make_grid(12, 1, 1.0)
    belief = believe(topology, 0)
    belief.observe(5, 1.0)
    plans = together(name, belief, topology, [0, 5, 11], remaining=Budget(metres=1.0))
    got = goals(plans)
    assert None not in got
    assert len(set(got)) == 3
    assert all(plan.cost.metres <= 1.0 for plan in plans)


@for_each("name", NAMES)
def test_places_read_on_the_way_count_for_all_probes(name: str) -> None:
    topology = make_line(12, 1.0)
    belief = believe(topology, 0)
    belief.observe(0, 1.0)
    for readings in range(1, 12):
        plans = together(name, belief, topology, [0, 11], remaining=Budget(readings=readings))
        crossed = {place for plan in plans for place in plan.path} - {0}
        assert len(crossed) <= readings


def best(costs: np.ndarray) -> tuple[int, float]:
    """How many probes can get a goal, and for which cost at least, by enumeration."""
    k, g = costs.shape
    found = (0, 0.0)
    for goals in itertools.product([None, *range(g)], repeat=k):
        taken = [goal for goal in goals if goal is not None]
        if len(set(taken)) < len(taken):
            continue
        cost = sum(costs[i, goal] for i, goal in enumerate(goals) if goal is not None)
        if math.isfinite(cost) and (-len(taken), cost) < (-found[0], found[1]):
            found = (len(taken), cost)
    return found


@pytest.mark.seeds
def test_as_many_as_possible_for_the_least_cost(seed: int) -> None:
    rng = np.random.default_rng(seed)
    k, g = rng.integers(1, 5, size=2)
    costs = rng.uniform(0.0, 100.0, size=(k, g))
    costs[rng.random((k, g)) < rng.choice([0.0, 0.3, 0.7])] = np.inf
    goals = assign(costs)
    got = [(i, goal) for i, goal in enumerate(goals) if goal is not None]
    assert len({goal for _, goal in got}) == len(got)
    number, cost = best(costs)
    assert len(got) == number
    assert sum(costs[pair] for pair in got) == pytest.approx(cost)
