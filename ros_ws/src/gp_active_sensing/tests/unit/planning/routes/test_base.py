"""Passes over a map: as much of the budget as an error of the map takes, and no more."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from gp_active_sensing.belief import Belief, BeliefConfig, belief_on
from gp_active_sensing.belief.aim import FEWEST, AimForecast, assurance, met, parts_that_count
from gp_active_sensing.loop import SensingLoop
from gp_active_sensing.planning import build_policy
from gp_active_sensing.planning.beliefs import representatives
from gp_active_sensing.planning.map_error import greedy_design
from gp_active_sensing.planning.request import TargetError
from gp_active_sensing.planning.routes.base import Pass, next_pass
from gp_active_sensing.planning.routes.tours import in_short_order
from gp_active_sensing.planning.tour import Tour
from gp_active_sensing.topology import Topology, make_grid
from gp_active_sensing.types import MEAN, OF, Aim, Budget, PlanLimit, Reading
from tests.cases import for_each
from tests.requesting import asked
from tests.unit.planning.routes.driving import driver_of

SIDE = 10
POLICIES = ("tour", "spread", "lawnmower")
BUDGETS = (Budget(metres=150.0, end=7), Budget(readings=48), Budget())


def truth_on(topology: Topology, seed: int = 0) -> np.ndarray:
    x, y = topology.positions.T
    a, b = np.random.default_rng(seed).uniform(0.0, 6.0, 2)
    return np.asarray(np.sin(0.5 * x + a) + np.cos(0.4 * y + b))


def read(belief: Belief, topology: Topology, places: Any) -> None:
    truth, rng = truth_on(topology), np.random.default_rng(1)
    for place in places:
        belief.observe(int(place), float(truth[place] + 0.1 * rng.normal()))


def spread_over(topology: Topology) -> list[int]:
    return [int(part[len(part) // 2]) for part in parts_that_count(topology, FEWEST)]


def for_error(belief: Belief, error: float) -> list[TargetError]:
    return [TargetError(0, belief, Aim(error))]


def passed(belief: Belief, topology: Topology, budget: Budget, aim: Aim) -> Pass:
    return next_pass(
        driver_of(belief, topology, budget), [TargetError(0, belief, aim)], 4, lambda: True
    )


def test_within_it_the_map_becomes_good_enough_and_with_a_place_less_it_does_not() -> None:
    topology = make_grid(SIDE, SIDE, 1.0, moves="free")
    belief = belief_on(BeliefConfig(), topology)
    read(belief, topology, range(0, SIDE**2, 3))
    driver, aim = driver_of(belief, topology, Budget(readings=60)), Aim(0.07)
    count = next_pass(driver, [TargetError(0, belief, aim)], 4, lambda: True).budget.readings
    assert count is not None
    assert FEWEST < count < 34
    forecast = AimForecast(aim, belief, topology.weights, *representatives(belief, 4))
    for number, enough in ((count, True), (count - 1, False)):
        places = driver.field.places[greedy_design(driver.field, number)]
        route = in_short_order(driver, places.tolist())
        left = driver.field.total - driver.field.values(driver.which(route.reads))
        assert forecast.met(left / forecast.total) is enough


@for_each("of", OF)
@for_each("known", [True, False])
def test_foreseen_with_nothing_taken_off_is_what_is_believed_now(known: bool, of: str) -> None:
    topology = make_grid(6, 5, 1.0)
    config = BeliefConfig((1.0, 3.0), signal_std=(1.0,), noise_std=(0.1,)) if known else None
    belief = belief_on(config or BeliefConfig(), topology)
    read(belief, topology, range(0, 30, 2))
    assert belief.scale_known is known
    every, weights = np.arange(len(belief.weights)), belief.weights
    promise = belief.promise(topology.weights)
    assert promise is not None
    ones = np.ones(len(every))
    before = 0.0
    for error in np.geomspace(0.3, 3.0, 12) * (promise.error if of == MEAN else promise.worst):
        aim = Aim(float(error), of)
        forecast = AimForecast(aim, belief, topology.weights, every, weights)
        assert forecast.met(ones) == bool(met(aim, belief, topology))
        sure = assurance(belief, topology.weights, float(error), of)
        assert forecast.assurance(ones) == pytest.approx(sure)
        # A quarter of the variance is half of the error.
        assert forecast.assurance(0.25 * ones) == pytest.approx(
            assurance(belief, topology.weights, 2.0 * float(error), of)
        )
        assert before <= sure
        before = sure


def mission(
    name: str,
    topology: Topology,
    budget: Budget,
    aim: Aim | None,
    starts: tuple[int, ...] = (0,),
    seed: int = 0,
) -> tuple[SensingLoop, list[float], list[int]]:
    """Drive it to its end; return the loop, metres of each probe, and where each ended."""
    loop = SensingLoop(
        topology,
        belief_on(BeliefConfig(), topology),
        type("Brief", (Tour,), {"trials": 5})() if name == "tour" else build_policy({"name": name}),
        budget=budget,
        limit=PlanLimit(expansions=12),
        aim=aim,
    )
    truth, rng = truth_on(topology, seed), np.random.default_rng(2)
    at, metres = list(starts), [0.0] * len(starts)
    going = set(range(len(starts)))
    while going:
        for probe in sorted(going):
            plan = loop.ask(at[probe], probe=str(probe))
            loop.policy_state = json.loads(json.dumps(loop.policy_state))
            for place in plan.path:
                at[probe] = place
                if loop.wants(place):
                    loop.tell([Reading(0, place, float(truth[place] + 0.1 * rng.normal()))])
            loop.moved(plan.cost)
            metres[probe] += plan.cost.metres
            if plan.waypoint is None:
                going.discard(probe)
    return loop, metres, at


@for_each("budget", BUDGETS)
@for_each("name", POLICIES)
def test_a_generous_budget_is_not_used_and_the_error_is_kept(name: str, budget: Budget) -> None:
    topology = make_grid(7, 7, 1.0, neighbours=8)
    loop, (metres,), (at,) = mission(name, topology, budget, Aim(0.4))
    assert loop.good_enough()
    assert budget.end is None or at == budget.end
    assert metres < 75.0
    mean, _ = loop.belief.predict()
    assert np.sqrt(np.mean(np.square(mean - truth_on(topology)))) <= 0.4


def test_without_an_aim_nothing_of_it_is_in_the_state() -> None:
    topology, budget = make_grid(6, 6, 1.0), Budget(metres=20.0)
    belief = belief_on(BeliefConfig(), topology)
    request = asked(belief, topology, 0, remaining=budget)
    policy = build_policy({"name": "tour"})
    plan, state = policy.plan(request)
    assert set(state) == {"routes", "renewed"}
    aimed, told = policy.plan(replace(request, aim=Aim(0.1), remaining=Budget(metres=200.0)))
    ((goal, readings, metres, seconds, end),) = told["passes"]
    assert goal == aimed.waypoint
    assert (readings, seconds, end) == (None, None, None)
    assert 5.0 < metres < 100.0
    assert plan.waypoint is not None


def test_what_other_probes_will_read_is_left_to_them() -> None:
    topology, budget = make_grid(SIDE, SIDE, 1.0), Budget(metres=300.0)
    belief = belief_on(BeliefConfig(), topology)
    driver = driver_of(belief, topology, budget)
    whole = next_pass(driver, for_error(belief, 0.01), 4, lambda: True)
    half = next_pass(driver, for_error(belief, 0.01), 4, lambda: True, probes=2)
    middles = spread_over(topology)
    rest = next_pass(driver, for_error(belief, 0.01), 4, lambda: True, elsewhere=middles[2:])
    taken = [found.budget.metres or 0.0 for found in (rest, half, whole)]
    assert taken == sorted(taken)
    assert taken[1] < 0.7 * taken[2]


@for_each("seed", range(3))
def test_two_probes_do_not_drive_twice_as_far_as_one(seed: int) -> None:
    topology = make_grid(12, 8, 1.0)
    loops = [
        mission("tour", topology, Budget(metres=150.0), Aim(0.5), starts, seed)
        for starts in ((0,), (0, 95))
    ]
    driven = [sum(metres) for _, metres, _ in loops]
    assert all(loop.good_enough() for loop, _, _ in loops)
    assert driven[1] < 2.0 * driven[0]
