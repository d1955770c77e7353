"""Following a route: what is skipped, what is read on the way, budget, way home, several probes."""

from __future__ import annotations

import json

import numpy as np

from gp_active_sensing.planning.budget import BudgetConstraint
from gp_active_sensing.planning.routes.follow import Course, fits, next_plan, trip_of, unread_of
from gp_active_sensing.topology import make_grid, make_line
from gp_active_sensing.types import Budget, Plan
from tests.cases import for_each
from tests.requesting import asked
from tests.unit.planning.routes.driving import plain_belief

GRID = make_grid(6, 5, 1.0)
"""Place c + 6 r."""
FREE = make_grid(6, 5, 1.0, moves="free")


def read(topology, *places: int):
    belief = plain_belief(topology)
    for place in places:
        belief.observe(place, 1.0)
    return belief


def test_the_next_waypoint_is_the_first_unknown_place_on_the_way() -> None:
    plan = next_plan([5, 23], asked(read(GRID, 0), GRID, 0))
    assert plan is not None
    assert plan.waypoints == (1, 2, 3, 4, 5, 11, 17, 23)
    assert (plan.path, plan.cost, plan.horizon) == ((1,), (1.0, 1.0), 8)
    plan = next_plan([5, 23], asked(read(GRID, 0, 1, 2), GRID, 0))
    assert plan is not None
    assert (plan.path, plan.cost) == ((1, 2, 3), (3.0, 3.0))


@for_each(
    ("budget", "waypoints"),
    [
        (Budget(readings=3), (1, 2, 3)),
        (Budget(metres=5.0), (1, 2, 3, 4, 5)),
        (Budget(metres=8.0, end=0), (1, 2, 3, 4)),
        (Budget(seconds=8.5, end=6), (1, 2, 3)),
        (Budget(readings=2, metres=30.0, end=29), (1, 2)),
    ],
)
def test_what_is_told_of_fits_the_budget_and_the_way_home(
    budget: Budget, waypoints: tuple[int, ...]
) -> None:
    plan = next_plan([1, 2, 3, 4, 5, 11, 17, 23], asked(read(GRID, 0), GRID, 0, remaining=budget))
    assert plan is not None
    assert plan.waypoints == waypoints
    constraint = BudgetConstraint(GRID, budget)
    assert constraint.allows(plan.path[-1], plan.cost)


@for_each(
    ("readings", "route", "waypoints"),
    [
        (7, [3, 5, 7, 8], (3, 4, 5, 6, 7)),
        (5, [3, 5, 7], (3, 4, 5)),
        (6, [3, 5, 9, 6], (3, 4, 5, 6)),
        (3, [3, 4], (3,)),
    ],
)
def test_the_rest_of_a_route_is_charged_every_reading_on_the_way(
    readings: int, route: list[int], waypoints: tuple[int, ...]
) -> None:
    """With a reach of 3 m the first step crosses two places, and later ones cross some as well."""
    line = make_line(12, 1.0, reach=3.0)
    budget = Budget(readings=readings)
    plan = next_plan(route, asked(read(line, 0), line, 0, remaining=budget))
    assert plan is not None
    assert plan.path == (1, 2, 3)
    assert plan.waypoints == waypoints


def test_a_trip_counts_what_is_read_on_the_way() -> None:
    belief = read(GRID, 0, 2)
    unread = unread_of(asked(belief, GRID, pending=[3]))
    trip = trip_of(GRID, [4, 1], 0, unread)
    assert trip is not None
    assert trip.path == (1, 2, 3, 4, 3, 2, 1)
    assert (trip.cost, trip.reads) == ((7.0, 7.0), 2)
    assert fits(trip, BudgetConstraint(GRID, Budget(readings=2, metres=8.0, end=0)))
    assert not fits(trip, BudgetConstraint(GRID, Budget(readings=2, metres=7.5, end=0)))
    assert not fits(trip, BudgetConstraint(GRID, Budget(readings=1)))
    nothing = trip_of(GRID, [], 0, unread)
    assert nothing is not None
    assert fits(nothing, BudgetConstraint(GRID, Budget(readings=0)))
    parted = make_grid(3, 1, 1.0, obstacles=[((0.9, -1.0), (1.1, 1.0))])
    assert trip_of(parted, [0, 1], 0, np.ones(2, dtype=np.bool_)) is None
    assert not fits(None, BudgetConstraint(parted, Budget()))


def step(course: Course, belief, at: int, pending=(), topology=FREE) -> tuple[Plan, Course]:
    plan, course = course.next_plan(asked(belief, topology, at, pending=pending))
    assert plan is not None
    restored = Course.of(json.loads(json.dumps(course.to_state())))
    assert restored == course
    return plan, course


def test_the_goal_is_remembered_on_the_way_there() -> None:
    # The way from 0 to 12 crosses 6, which is on the route, too, but only later.
    course = Course((12, 13, 6, 7))
    belief = read(GRID, 0)
    plan, course = step(course, belief, 0, topology=GRID)
    assert plan.waypoint == 6
    belief.observe(6, 1.0)
    plan, course = step(course, belief, 6, topology=GRID)
    assert plan.waypoint == 12


def test_a_goal_that_another_probe_has_read_is_no_goal_any_more() -> None:
    belief = read(GRID, 0, 13)
    _, course = step(Course((12, 13, 19, 6, 7)), belief, 0, topology=GRID)
    assert course.aims == ((6, 0),)
    belief.observe(12, 1.0)
    plan, course = step(course, belief, 13, pending=[6], topology=GRID)
    assert (plan.waypoint, course.aims) == (19, ())
    belief.observe(6, 1.0)
    plan, course = step(course, belief, 6, topology=GRID)
    assert plan.waypoint == 7, "it goes on from where 6 is on the route, not from 12"


def test_several_probes_share_a_route_out() -> None:
    belief, course = read(FREE, 0), Course(tuple(range(1, 21)))
    first, course = step(course, belief, 0)
    assert first.waypoint == 1
    second, course = step(course, belief, 0, pending=[1])
    assert second.waypoint == 11  # the middle of what the first one is about to drive
    third, course = step(course, belief, 0, pending=[1, 11])
    assert third.waypoint == 6 or third.waypoint == 16
    belief.observe(1, 1.0)
    first, course = step(course, belief, 1, pending=[11])
    assert first.waypoints == tuple(range(2, 11))
    for place in range(2, 11):
        belief.observe(place, 1.0)
    first, course = step(course, belief, 10, pending=[11])
    assert first.waypoint == 16  # it has come to where the second one began
