"""Goals of searches for hot spots: within the budget, whatever is crossed, observed or not."""

from __future__ import annotations

import numpy as np
import pytest

from gp_active_sensing.belief import Belief, BeliefConfig, build_belief
from gp_active_sensing.errors import PlanningError
from gp_active_sensing.planning.base import READINGS_SPENT
from gp_active_sensing.planning.budget import BudgetConstraint
from gp_active_sensing.planning.reachability import NOTHING_IN_REACH, reachable_goals
from gp_active_sensing.topology import GraphTopology, Move, Topology, make_grid, make_line
from gp_active_sensing.types import Budget


def belief_of(topology: Topology, observed: list[int]) -> Belief:
    config = BeliefConfig(length_scales=(2.0,), signal_std=(1.0,), noise_std=(0.1,))
    belief = build_belief(config, topology.features)
    for place in observed:
        belief.observe(place, 1.0)
    return belief


def one_way_ring(n: int, *, stay: bool) -> GraphTopology:
    """0 → 1 → … → n-1 → 0, and a dead end n behind 1."""
    moves = [[Move((i + 1) % n, 10.0, 1.0 + i)] for i in range(n)] + [[]]
    moves[1].append(Move(n, 10.0, 1.0))
    positions = np.arange(2.0 * (n + 1)).reshape(-1, 2)
    return GraphTopology("ring", "map", list("abcdefgh"[: n + 1]), positions, moves, stay=stay)


def test_observed_places_are_goals_and_cost_one_reading() -> None:
    line = make_line(5, 1.0)
    reach = reachable_goals(belief_of(line, [0, 1]), line, 0, (), (), Budget())
    assert reach.locations.tolist() == [0, 1, 2, 3, 4]
    # Each visit is one reading, and so is every place on the way that is not observed yet.
    assert reach.reads.tolist() == [1, 1, 1, 2, 3]
    assert reach.metres.tolist() == [0.0, 1.0, 2.0, 3.0, 4.0]
    assert reach.route(4) == ((1, 2, 3, 4), (4.0, 4.0))
    assert reach.route(0) == ((0,), (0.0, 0.0))


def test_the_budget_has_to_last_for_what_may_be_read_on_the_way() -> None:
    line = make_line(6, 1.0)
    belief = belief_of(line, [0, 2])
    assert reachable_goals(belief, line, 0, (), (), Budget(readings=2)).locations.tolist() == [
        0,
        1,
        2,
        3,
    ]
    assert reachable_goals(belief, line, 0, (), (), Budget(metres=1.0)).locations.tolist() == [0, 1]
    assert reachable_goals(belief, line, 0, (), (), Budget(seconds=2.0)).locations.tolist() == [
        0,
        1,
        2,
    ]
    # What another probe is on its way to read is paid for, and what is set aside gives no reading.
    reach = reachable_goals(belief, line, 0, (1,), (3,), Budget(readings=1))
    assert reach.locations.tolist() == [0, 2, 4]


def test_why_there_is_no_goal() -> None:
    line = make_line(3, 1.0)
    belief = belief_of(line, [])
    reach = reachable_goals(belief, line, 0, (), (), Budget(readings=0))
    assert (reach.locations.size, reach.reason) == (0, READINGS_SPENT)
    assert reachable_goals(belief, line, 0, (0, 1), (2,), Budget()).reason == NOTHING_IN_REACH
    reach = reachable_goals(belief, line, 0, (), (0,), Budget(metres=0.5))
    assert reach.reason == "no reachable place is within the budget of metres or seconds"
    with pytest.raises(PlanningError, match="end place 9"):
        reachable_goals(belief, line, 0, (), (), Budget(end=9))


def test_a_car_drives_round_to_read_its_road_again() -> None:
    ring = one_way_ring(4, stay=False)
    reach = reachable_goals(belief_of(ring, [0]), ring, 0, (), (), Budget())
    assert reach.route(0) == ((1, 2, 3, 0), (40.0, 10.0))
    assert reach.reads[0] == 4
    stays = one_way_ring(4, stay=True)
    assert reachable_goals(belief_of(stays, [0]), stays, 0, (), (), Budget()).route(0).path == (0,)


def test_a_place_without_a_way_back_is_no_goal_where_one_is_needed() -> None:
    ring = one_way_ring(4, stay=False)
    belief = belief_of(ring, [])
    assert reachable_goals(belief, ring, 0, (), (), Budget()).locations.tolist() == [0, 1, 2, 3, 4]
    assert reachable_goals(belief, ring, 0, (), (), Budget(end=3)).locations.tolist() == [
        0,
        1,
        2,
        3,
    ]
    # From 4 there is no way at all, not even to 4 again.
    reach = reachable_goals(belief, ring, 4, (), (), Budget())
    assert reach.reason == NOTHING_IN_REACH


@pytest.mark.parametrize("seed", range(20))
def test_goals_are_what_the_constraint_allows(seed: int) -> None:
    rng = np.random.default_rng(seed)
    grid = make_grid(5, 4, 2.0, neighbours=8 if seed % 2 else 4)
    observed = rng.choice(20, size=6, replace=False).tolist()
    belief = belief_of(grid, observed)
    closed = rng.choice(20, size=4, replace=False).tolist()
    pending, unavailable = closed[:2], closed[2:]
    budget = Budget(
        readings=int(rng.integers(1, 6)) if rng.random() < 0.7 else None,
        metres=float(rng.uniform(2, 25)) if rng.random() < 0.5 else None,
        seconds=float(rng.uniform(2, 25)) if rng.random() < 0.5 else None,
        end=int(rng.integers(20)) if rng.random() < 0.5 else None,
    )
    at = int(rng.integers(20))
    reach = reachable_goals(belief, grid, at, pending, unavailable, budget)
    constraint = BudgetConstraint(grid, budget)
    by = "metres" if budget.metres is not None and budget.seconds is None else "seconds"
    ways = grid.ways_from(at, by)
    expected = []
    for goal in range(20):
        route = ways.route(goal)
        assert route is not None
        unread = [p for p in route.path if p not in observed and p not in closed]
        reads = len(unread) + (goal in observed)
        if goal not in closed and constraint.allows(goal, route.cost, reads=reads):
            expected.append(goal)
    assert reach.locations.tolist() == expected
    assert bool(reach.reason) == (not expected)
    for index in range(len(expected)):
        route = reach.route(index)
        assert route.cost == (reach.metres[index], reach.seconds[index])
