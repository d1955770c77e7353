"""Moves and goals within a budget, how others are refused, and the way to the end place."""

from __future__ import annotations

import logging

import numpy as np
import pytest

from gp_active_sensing.belief import Belief, BeliefConfig, build_belief
from gp_active_sensing.errors import PlanningError
from gp_active_sensing.planning.base import candidates, no_plan
from gp_active_sensing.planning.budget import (
    NOTHING_IN_REACH,
    BudgetConstraint,
    check_end,
    in_metres,
    reachable_goals,
    with_way_home,
)
from gp_active_sensing.topology import GraphTopology, Move, Topology, make_grid, make_line
from gp_active_sensing.types import Budget, Cost
from tests.cases import for_each
from tests.requesting import asked

LINE = make_line(10, 2.0, speed=4.0)
NOTHING = np.zeros(10, dtype=np.bool_)


def two_ways() -> GraphTopology:
    """From a to d by b, slow and short, or by c, fast and long; nothing leads back from e."""
    moves = [
        [Move(1, 10.0, 10.0), Move(2, 30.0, 3.0)],
        [Move(3, 10.0, 10.0)],
        [Move(3, 30.0, 3.0)],
        [Move(0, 5.0, 1.0), Move(4, 5.0, 1.0)],
        [],
    ]
    return GraphTopology("two ways", "map", list("abcde"), np.zeros((5, 2)), moves, stay=False)


def places(constraint: BudgetConstraint, at: int | None, observed=NOTHING, **options) -> list[int]:
    return [drive.place for drive in constraint.drives(at, observed, **options)]


def test_a_drive_needs_what_it_costs_and_the_way_home() -> None:
    observed = NOTHING.copy()
    observed[[4, 5, 6]] = True
    # Standing at 5: 3 and 7 are two moves away, and home is 2.
    assert places(BudgetConstraint(LINE, Budget(metres=4.0)), 5, observed) == [3, 7]
    assert places(BudgetConstraint(LINE, Budget(metres=3.9)), 5, observed) == []
    back = Budget(metres=6.0, end=2)
    assert places(BudgetConstraint(LINE, back), 5, observed) == [3]
    assert places(BudgetConstraint(LINE, Budget(metres=14.0, end=2)), 5, observed) == [3, 7]
    assert places(BudgetConstraint(LINE, Budget(metres=13.9, end=2)), 5, observed) == [3]
    assert places(BudgetConstraint(LINE, Budget(seconds=1.5, end=2)), 5, observed) == [3]
    either = Budget(metres=14.0, seconds=3.4, end=2)
    assert places(BudgetConstraint(LINE, either), 5, observed) == [3]
    drive = BudgetConstraint(LINE, back).drives(5, observed)[0]
    assert drive.route.path == (4, 3)
    assert drive.reads == (3,), "what is observed is not read again"
    assert drive.remaining(back) == Budget(None, 2.0, None, 2)


def test_what_may_be_read_on_the_way_counts() -> None:
    line = make_line(10, 2.0, reach=6.0)
    assert places(BudgetConstraint(line, Budget(readings=2)), 0) == [0, 1, 2]
    assert places(BudgetConstraint(line, Budget(readings=3)), 0) == [0, 1, 2, 3]
    observed = NOTHING.copy()
    observed[1] = True
    assert places(BudgetConstraint(line, Budget(readings=2)), 0, observed) == [0, 2, 3]
    # A place set aside gives no reading when it is crossed.
    one = BudgetConstraint(line, Budget(readings=1))
    assert places(one, 0, observed, unavailable=(2,)) == [0, 3]
    assert BudgetConstraint(line, Budget(readings=9)).restricts
    far = BudgetConstraint(line, Budget(readings=9)).drives(0, NOTHING)[-1]
    assert (far.place, far.reads) == (3, (1, 2, 3))
    assert far.remaining(Budget(readings=9, metres=20.0)) == Budget(6, 14.0)


def test_places_that_one_cannot_come_back_from() -> None:
    topology = two_ways()
    observed = np.array([True, True, True, True, False])
    assert places(BudgetConstraint(topology, Budget()), 3, observed) == [4]
    no_way_back = BudgetConstraint(topology, Budget(end=0))
    assert no_way_back.restricts
    assert places(no_way_back, 3, observed) == []
    assert no_way_back.why_none() == "no reachable place has a way to the end place 'a'"
    assert places(BudgetConstraint(topology, Budget(end=4)), 3, observed) == [4]


def test_the_way_home_is_the_one_that_fits() -> None:
    topology = two_ways()
    for budget, path in (
        (Budget(end=3), (2, 3)),
        (Budget(seconds=9.0, end=3), (2, 3)),
        (Budget(metres=20.0, end=3), (1, 3)),
        (Budget(metres=20.0, seconds=30.0, end=3), (1, 3)),
        (Budget(metres=90.0, seconds=30.0, end=3), (2, 3)),
        (Budget(metres=1.0, seconds=1.0, end=3), (2, 3)),  # none fits: the fastest
    ):
        home = BudgetConstraint(topology, budget).way_home(0)
        assert home is not None
        assert home.path == path, budget
    assert BudgetConstraint(topology, Budget(end=0)).way_home(4) is None
    assert BudgetConstraint(topology, Budget(end=0)).way_home(0) == ((), (0.0, 0.0))


def test_where_nothing_is_restricted_nothing_is_looked_up() -> None:
    assert not BudgetConstraint(LINE, Budget()).restricts
    assert not BudgetConstraint(LINE, Budget(readings=3)).restricts
    assert not BudgetConstraint(LINE, Budget(readings=3, end=4)).restricts, (
        "there is always a way back"
    )
    assert BudgetConstraint(LINE, Budget(metres=1e9)).restricts
    free = make_line(10, 2.0, moves="free", speed=4.0)
    assert BudgetConstraint(free, Budget(metres=54.0)).leaves_room(3)
    assert not BudgetConstraint(free, Budget(metres=53.9)).leaves_room(3)
    assert not BudgetConstraint(free, Budget(metres=54.0, end=0)).leaves_room(3)
    assert BudgetConstraint(free, Budget(seconds=18.0, end=0)).leaves_room(3)
    assert not BudgetConstraint(free, Budget(seconds=17.9, end=0)).leaves_room(3)
    assert not BudgetConstraint(LINE, Budget(metres=1e9)).leaves_room(3)


def test_an_own_speed_turns_seconds_into_metres() -> None:
    assert in_metres(Budget(3, None, 10.0, 4), 2.0) == Budget(3, 20.0, None, 4)
    assert in_metres(Budget(3, 15.0, 10.0, 4), 2.0) == Budget(3, 15.0, None, 4)
    for budget in (Budget(3, 15.0, 10.0, 4), Budget(3)):
        assert in_metres(budget, None) is budget


@for_each("budget", [Budget(metres=1.0), Budget(seconds=0.1), Budget(metres=3.0, end=0)])
def test_why_nothing_is_chosen(budget: Budget) -> None:
    found = candidates(asked(belief_of(LINE, [0]), LINE, 0, remaining=budget))
    assert "the budget of metres or seconds is too small" in found.reason
    assert not found.locations.size
    found = candidates(asked(belief_of(LINE, list(range(10))), LINE, 0, remaining=budget))
    assert "every reachable place is observed" in found.reason


def test_an_end_that_cannot_be_reached_is_refused() -> None:
    topology = two_ways()
    for message, of, budget, at, speed in (
        ("takes 12 m and 6 s, 5 s are left", LINE, Budget(seconds=5.0, end=7), 1, 2.0),
        ("1 m and 5 s are left", LINE, Budget(metres=1.0, seconds=5.0, end=7), 1, None),
        ("'a' cannot be reached from 'e'", topology, Budget(end=0), 4, None),
    ):
        with pytest.raises(PlanningError, match=message):
            check_end(of, budget, at, speed=speed)
    with pytest.raises(PlanningError, match="no place of map 'line' can be observed first"):
        # From nowhere any place may be first: with no metre to drive only the end itself, if free.
        check_end(make_line(3, 1.0), Budget(readings=0, end=0), None)
    with pytest.raises(PlanningError, match="end place 10; map 'line' has places 0 … 9"):
        BudgetConstraint(LINE, Budget(end=10))
    check_end(LINE, Budget(metres=12.0, end=7), 1)
    check_end(LINE, Budget(metres=0.0, end=7), 7)
    check_end(LINE, Budget(metres=0.0, end=7), None)
    check_end(LINE, Budget(), 1)


def test_the_last_plan_leads_home(caplog: pytest.LogCaptureFixture) -> None:
    last = no_plan("the budget of readings is spent")
    plan = with_way_home(last, LINE, 3, Budget(metres=8.0, end=1))
    assert (plan.path, plan.cost, plan.waypoint) == ((2, 1), Cost(4.0, 1.0), None)
    assert plan.reason == last.reason
    assert with_way_home(last, LINE, 1, Budget(end=1)).path == ()
    assert with_way_home(last, LINE, 1, Budget()) is last
    with caplog.at_level(logging.WARNING):
        assert with_way_home(last, LINE, 3, Budget(metres=3.0, end=1)).path == (2, 1)
    assert "takes 4 m and 1 s, more than is left of the budget" in caplog.text
    lost = with_way_home(last, two_ways(), 4, Budget(end=0))
    assert lost.path == ()
    assert lost.reason == f"{last.reason}; the end place 'a' cannot be reached"


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


def test_a_car_drives_round_to_read_its_road_again() -> None:
    ring = one_way_ring(4, stay=False)
    reach = reachable_goals(asked(belief_of(ring, [0]), ring, 0))
    assert reach.route(0) == ((1, 2, 3, 0), (40.0, 10.0))
    assert reach.reads[0] == 4
    stays = one_way_ring(4, stay=True)
    assert reachable_goals(asked(belief_of(stays, [0]), stays, 0)).route(0).path == (0,)


def test_a_place_without_a_way_back_is_no_goal_where_one_is_needed() -> None:
    ring = one_way_ring(4, stay=False)
    belief = belief_of(ring, [])
    assert reachable_goals(asked(belief, ring, 0)).locations.tolist() == [0, 1, 2, 3, 4]
    reach = reachable_goals(asked(belief, ring, 0, remaining=Budget(end=3)))
    assert reach.locations.tolist() == [0, 1, 2, 3]
    # From 4 there is no way at all, not even to 4 again.
    reach = reachable_goals(asked(belief, ring, 4))
    assert reach.reason == NOTHING_IN_REACH


def test_either_way_home_makes_a_goal_affordable() -> None:
    topology = two_ways()
    for budget in (
        Budget(metres=70.0, seconds=10.0, end=3),
        Budget(metres=30.0, seconds=30.0, end=3),
    ):
        reach = reachable_goals(asked(belief_of(topology, [3]), topology, 3, remaining=budget))
        assert 0 in reach.locations, budget
        assert BudgetConstraint(topology, budget).allows(0, Cost(5.0, 1.0)), budget


@pytest.mark.seeds
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
    reach = reachable_goals(asked(belief, grid, at, pending, unavailable, budget))
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
