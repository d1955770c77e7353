"""The tour: one route for all that is left, kept while nothing better is found."""

from __future__ import annotations

import dataclasses
import json
import math
from typing import Any

import numpy as np
import pytest

from gp_active_sensing.belief import BeliefConfig, belief_on
from gp_active_sensing.planning import build_policy
from gp_active_sensing.planning.explain import why
from gp_active_sensing.planning.map_error import MapVariance, map_error_of
from gp_active_sensing.planning.tour import Tour
from gp_active_sensing.types import Aim, Budget, Plan, PlanLimit
from tests.cases import for_each
from tests.requesting import Ticking, asked
from tests.unit.planning.test_map_error import believed, grid


def unchanged() -> Tour:
    """Return a tour that tries no changes of its routes."""
    return type("Unchanged", (Tour,), {"trials": 0})()


def test_two_probes_share_the_readings_and_the_map() -> None:
    topology = grid(12, 12)
    belief = believed(topology, np.random.default_rng(0), readings=2)
    policy = build_policy({"name": "tour"})
    state = None
    at = {"a": 0, "b": 143}
    goals: dict[str, int] = {}
    visited: dict[str, list[int]] = {"a": [], "b": []}
    left = 24
    shown: dict[str, set[int]] = {}
    while left > 0:
        for probe, other in (("a", "b"), ("b", "a")):
            others = {"pending": [goals[other]]} if other in goals else {"waiting": [at[other]]}
            request = asked(belief, topology, at[probe], remaining=Budget(readings=left), **others)
            plan, state = policy.plan(request, state)
            assert plan.waypoint is not None
            goals[probe] = plan.waypoint
            shown[probe] = set(plan.waypoints)
            assert len(plan.waypoints) <= math.ceil(left / 2), "its share of the readings"
            if len(shown) == 2:
                assert not shown["a"] & shown["b"]
        for probe, goal in list(goals.items()):
            belief.observe(goal, 0.0)
            visited[probe].append(goal)
            at[probe] = goal
            left -= 1
            del goals[probe]
        shown.clear()
    assert not set(visited["a"]) & set(visited["b"])
    assert len(visited["a"]) == len(visited["b"]) == 12


def test_the_route_of_a_probe_that_waits_for_its_turn_is_left_to_it() -> None:
    topology = grid(12, 12)
    belief = believed(topology, np.random.default_rng(0), readings=2)
    policy = unchanged()

    def ask(at: int, state: Any, **others: Any) -> tuple[Plan, Any]:
        request = asked(belief, topology, at, remaining=Budget(metres=30.0), **others)
        return policy.plan(request, state)

    first, state = ask(0, None, waiting=[143])
    assert 143 not in first.waypoints
    second, state = ask(143, state, pending=first.waypoints[:1])
    here, there = first.waypoints[0], second.waypoints[0]
    for place in (here, there):
        belief.observe(place, 0.0)
    # Both have come to their places. The first one is asked, the other waits and keeps its route.
    again, after_first = ask(here, state, waiting=[there])
    routes = {goal: reads for goal, reads in after_first["routes"]}
    (kept,) = [reads for goal, reads in state["routes"] if goal == there]
    assert routes[there] == kept
    assert set(routes) == {there, again.waypoints[0]}
    later, _ = ask(there, after_first, pending=again.waypoints[:1])
    assert set(later.waypoints) <= set(second.waypoints)
    # Without the word that it waits, nobody is known to be there.
    _, alone = ask(here, state)
    assert [goal for goal, _ in alone["routes"]] == [again.waypoints[0]]


@for_each(
    ("limit", "places", "candidates"),
    [
        (PlanLimit(expansions=0), 48, 1),
        (PlanLimit(seconds=0.0), 48, 1),
        (PlanLimit(seconds=0.2), 353, 2),
        (PlanLimit(), 500, 4),
    ],
)
def test_a_first_answer_in_little_time_is_planned_with_little(
    monkeypatch: pytest.MonkeyPatch, limit: PlanLimit, places: int, candidates: int
) -> None:
    """What the error of the map takes grows with the square of the places."""
    topology = grid(30, 20)
    belief = belief_on(BeliefConfig(), topology)
    belief.observe(31, 0.5)
    computed: list[tuple[int, int, int]] = []

    def counted(*of: Any, **more: Any) -> MapVariance:
        found = map_error_of(*of, **more)
        targets = len(more["targets"].places) if more["targets"] is not None else 500
        computed.append((len(found.places), len(found.weights), targets))
        return found

    monkeypatch.setattr("gp_active_sensing.planning.tour.map_error_of", counted)
    plan, _ = unchanged().plan(
        asked(belief, topology, 31, limit=limit, remaining=Budget(metres=120.0), clock=Ticking(0.0))
    )
    assert plan.waypoint is not None
    (found,) = computed
    assert found[0] <= places
    assert found[1] <= candidates
    assert found[2] <= places
    assert found[0] > 0.9 * places
    if limit in (PlanLimit(expansions=0), PlanLimit(seconds=0.0)):
        assert plan.expanded == 1  # one short tour through the first places of a design
        assert len(plan.waypoints) > 5


@for_each("seconds", [0.2, 0.25, 0.3, 0.39])
def test_an_error_is_forecast_with_the_candidates_that_the_time_allows(seconds: float) -> None:
    topology = grid(12, 12)
    belief = believed(topology, np.random.default_rng(0), readings=14)
    limit, error = PlanLimit(seconds=seconds), Aim(0.05)
    plan, _ = build_policy({"name": "tour"}).plan(
        asked(belief, topology, 0, limit=limit, aim=error, clock=Ticking(0.0))
    )
    assert plan.waypoint is not None


@for_each("budget", [Budget(metres=40.0), Budget()])
def test_the_time_is_shared_by_rows_and_designs_and_kept(budget: Budget) -> None:
    """The clock is looked at before each step, so their number says how long it went on."""
    topology = grid(12, 12)
    belief = believed(topology, np.random.default_rng(0))
    policy = build_policy({"name": "tour"})
    expanded = []
    for seconds in (0.0, 0.1, 0.4, 1e9, None):
        limit = PlanLimit(seconds=seconds)
        request = asked(belief, topology, 3, remaining=budget, limit=limit, clock=Ticking(0.01))
        plan, state = policy.plan(request)
        expanded.append(plan.expanded)
        assert plan.deadline_hit == (seconds is not None and seconds < 1.0)
        hurry = dataclasses.replace(request, limit=PlanLimit(seconds=0.0), clock=Ticking(0.01))
        after, _ = policy.plan(hurry, state)
        assert after.waypoint is not None
    assert expanded[0] < expanded[1] < expanded[2] < expanded[3] == expanded[4]
    assert expanded[0] <= 2
    assert expanded[2] <= 45


@for_each("limit", [PlanLimit(expansions=0), PlanLimit(seconds=0.0)])
def test_without_any_time_the_last_route_goes_on(
    monkeypatch: pytest.MonkeyPatch, limit: PlanLimit
) -> None:
    """The error of the map is not computed, which takes most of the time of a first answer."""
    topology = grid(12, 12)
    belief = believed(topology, np.random.default_rng(0))
    policy = build_policy({"name": "tour"})
    request = asked(belief, topology, 3, remaining=Budget(metres=40.0))
    plan, state = policy.plan(request)
    assert plan.waypoint is not None
    belief.observe(plan.waypoint, 0.3)
    later = dataclasses.replace(
        request, at=plan.waypoint, remaining=Budget(metres=40.0 - plan.cost.metres), limit=limit
    )
    with monkeypatch.context() as patch:
        patch.setattr("gp_active_sensing.planning.tour.map_error_of", None)
        after, kept = policy.plan(later, state)
        assert after.deadline_hit
        assert after.waypoints == plan.waypoints[1:]
        goes_on, _ = policy.plan(dataclasses.replace(later, at=after.waypoint), kept)
    assert goes_on.waypoint is not None


@for_each("more", [{}, {"metres": 1e5}, {"metres": 1e5, "seconds": 1e6}])
def test_new_routes_are_looked_for_when_a_tenth_of_any_limit_is_gone(more: dict[str, Any]) -> None:
    topology = grid(12, 12)
    belief = believed(topology, np.random.default_rng(0), readings=2)
    policy = unchanged()
    budget, at, state = Budget(readings=40, **more), 0, None
    looked: list[list[Any]] = []
    for _ in range(14):
        plan, state = policy.plan(asked(belief, topology, at, remaining=budget), state)
        state = json.loads(json.dumps(state))
        if not looked or state["renewed"] != looked[-1]:
            looked.append(state["renewed"])
        at = plan.waypoints[0]
        belief.observe(at, 0.0)
        budget = budget.minus(readings=1, cost=plan.cost)
    assert [readings for _, _, readings in looked][:3] == [40, 36, 32]


def test_the_plan_has_the_routes_that_were_weighed_and_what_each_promised() -> None:
    topology = grid(12, 12)
    belief = believed(topology, np.random.default_rng(0), readings=2)
    policy = build_policy({"name": "tour"})
    budget, at, state, kinds = Budget(metres=40.0), 0, None, []
    for _ in range(5):
        request = asked(belief, topology, at, remaining=budget)
        plan, state = policy.plan(request, state)
        unread = np.flatnonzero(~belief.observed)
        error = map_error_of(belief, topology, unread, candidates=4)
        own, *others = plan.routes
        total = float(error.weights @ error.total)
        assert own.left == pytest.approx(1.0 - plan.lower / total)
        assert (own.first, own.readings) == (plan.waypoint, len(plan.waypoints))
        # A new route is taken where it is better by a hundredth of what is left.
        assert all(0.0 < 0.99 * own.left <= route.left < 1.0 for route in others)
        assert len(others) <= 2
        kinds.append([route.kind.removesuffix(", changed") for route in plan.routes])
        at = plan.waypoints[0]
        belief.observe(at, 0.0)
        budget = budget.minus(readings=1, cost=plan.cost)
    assert set(kinds[0]) == {"evenly spaced rows", "a tour of the best places"}
    assert all("the previous route" in weighed for weighed in kinds[1:])
    names = topology.names
    assert "of the map's variance" in why(plan, names, "tour")
