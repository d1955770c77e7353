from __future__ import annotations

import logging
from typing import Any

import numpy as np
import pytest

from gp_active_sensing.mission.plan_ahead import (
    DeferredLogs,
    foresee_by_cell,
    take,
)
from gp_active_sensing.mission.requests import PlanAheadRequest
from gp_active_sensing.sim import build_loop, build_world, load_scenario
from gp_active_sensing.types import Cost, PlanLimit, Reading
from tests.cases import for_each
from tests.unit.mission.worlds import Rig, begun, drive_to, foresee, grid

LIMIT = PlanLimit(expansions=200)
BELIEF = (
    "belief={kernel: matern32, length_scales: [80, 130, 200, 320, 500, 800, 1300], "
    "signal_std: [11], noise_std: [6], mean_std: 100}"
)


def sent_out(policy: str = "bal", **overrides):
    """A mission on the town with some readings taken, just sent to its next waypoint."""
    given = [f"{key.replace('__', '.')}={value}" for key, value in overrides.items()]
    settings = [BELIEF, "policy.horizon=5", *given] if policy == "bal" else [BELIEF, *given]
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


@for_each("policy", ["bal", "ie"])
def test_the_median_reading_gives_the_plan_of_asking_then(policy: str) -> None:
    _, loop, plan = sent_out(policy)
    goal = plan.waypoint
    seen = foresee(loop, goal, cost=plan.cost, limit=LIMIT)
    assert list(seen.medians) == sorted(seen.medians)
    for number, value in enumerate(seen.medians):
        assert seen.cell(value) == number
        arrived, asked = loop.snapshot(), loop.snapshot()
        for copy in (arrived, asked):
            copy.moved(plan.cost)
            copy.tell([Reading(9, goal, value)])
        taken, then = take(arrived, seen, value), asked.ask(goal, limit=LIMIT)
        assert taken.waypoints == then.waypoints
        assert taken.path == then.path
        assert arrived.decisions == asked.decisions
        assert arrived.policy_state == asked.policy_state


def test_a_plan_that_does_not_fit_any_more_is_not_taken() -> None:
    _, loop, plan = sent_out()
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
    _, loop, plan = sent_out(
        belief__transform="log", belief__signal_std="[0.5]", belief__noise_std="[0.1]"
    )
    assert foresee(loop, plan.waypoint, cancelled=lambda: True) is None
    seen = foresee(loop, plan.waypoint, limit=LIMIT)
    assert min(seen.medians) > 0.0
    assert seen.cell(1e9) == len(seen.plans) - 1


def test_a_plan_is_interrupted_where_the_policy_looks_at_its_clock() -> None:
    """Also under a limit in expansions, where nothing else would make it look."""
    _, loop, plan = sent_out(policy__alpha=0.0)
    asked = 0

    def cancelled() -> bool:
        nonlocal asked
        asked += 1
        return asked > 20

    limit = PlanLimit(expansions=10**9)
    assert list(foresee_by_cell(loop, plan.waypoint, limit=limit, cancelled=cancelled)) == []
    assert 20 < asked < 30, "the first plan would have looked at its clock for hours"


def test_a_surprising_reading_was_not_foreseen() -> None:
    _, loop, plan = sent_out()
    seen = foresee(loop, plan.waypoint, limit=LIMIT)
    low, high = seen.expected
    assert low < seen.medians[0] < seen.medians[-1] < high
    spare = {plan.waypoint, seen.plans[2].waypoint}
    observed = loop.belief.observed
    other = next(i for i in range(loop.topology.n) if not observed[i] and i not in spare)
    on_the_way = [Reading(10, other, 30.0)]
    for value, more in ((low - 1.0, []), (high + 1.0, []), (seen.medians[2], on_the_way)):
        arrived = loop.snapshot()
        arrived.tell([Reading(9, plan.waypoint, value), *more])
        assert take(arrived, seen, value) is None


def test_with_nothing_known_it_holds_from_the_first_reading() -> None:
    """Before the first reading the predictive spread is beyond what a sensor can say."""
    scenario = load_scenario("town", overrides=["belief.transform=log"])
    world = build_world(scenario)
    loop = build_loop(scenario, world.topology)
    at, fitted = world.start, 0
    for stamp in range(4):
        plan = loop.ask(at, limit=LIMIT)
        seen = foresee(loop, plan.waypoint, cost=plan.cost, limit=PlanLimit(expansions=20))
        at = plan.waypoint
        value = world.sensor.read(at, 0, stamp).value
        loop.moved(plan.cost)
        loop.tell([Reading(stamp, at, value)])
        taken = take(loop.snapshot(), seen, value)
        if taken is not None:
            fitted += 1
            assert np.isfinite([taken.lower, taken.upper]).all()
            assert taken.waypoint in loop.topology.candidates(at, loop.belief.observed)
    assert fitted >= 2


def test_what_is_said_of_supposed_readings_waits_until_one_of_them_is_true(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    _, loop, plan = sent_out(budget__readings=9)
    said: list[str] = []
    policy = type(loop.policy)
    silent = policy.plan

    def spoken(self: Any, request: Any, state: Any) -> Any:
        logging.getLogger("gp_active_sensing").info("planned")
        return silent(self, request, state)

    monkeypatch.setattr(policy, "plan", spoken)

    class Handler(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            said.append(record.getMessage())

    handler = Handler(level=logging.INFO)
    handler.addFilter(DeferredLogs())
    source = logging.getLogger("gp_active_sensing")
    level = source.level
    source.setLevel(logging.INFO)
    source.addHandler(handler)
    try:
        seen = foresee(loop, plan.waypoint, limit=LIMIT)
        assert said == []
        loop.tell([Reading(9, plan.waypoint, seen.medians[1])])
        assert take(loop, seen, seen.medians[1]) is not None
        assert len(said) == 1
    finally:
        source.setLevel(level)
        source.removeHandler(handler)


SAMPLES = 3


def under_way(*, columns: int = 5, cells: int | None = SAMPLES, **options: object) -> Rig:
    """Return a mission on its second leg, with so many cells foreseen."""
    rig = Rig(grid(columns), ahead=SAMPLES, **options)  # type: ignore[arg-type]
    drive_to(begun(rig), 2.0)
    rig.step(2.1)
    if cells is not None:
        rig.foresee(cells)
    return rig


def median(rig: Rig, cell: int = 1) -> float:
    contingent = rig.mission.probe.ahead.contingent
    return contingent.medians[cell]


@for_each("cell", range(SAMPLES))
def test_what_has_been_foreseen_so_far_is_used(cell: int) -> None:
    rig = under_way(cells=2)
    drive_to(rig, 3.0, None, median(rig, cell), plan=False)
    assert (rig.asked is None) == (cell < 2)


def asked_for(rig: Rig) -> PlanAheadRequest:
    job = rig.asked_ahead
    assert not job.cancelled()
    return job


@for_each("how", ["pause", "stop", "clock"])
def test_it_is_cancelled_when_the_mission_does_not_go_on(how: str) -> None:
    rig = under_way(cells=None)
    job = asked_for(rig)
    if how == "pause":
        rig.mission.pause()
    elif how == "stop":
        rig.mission.stop("asked to finish")
    else:
        rig.step(0.5)
    assert job.cancelled()
    rig.foresee()
    assert rig.mission.probe.ahead.contingent is None, "an answer that comes late is not used"
    assert rig.mission.probe.ahead.progress == ""


def test_a_place_read_on_the_way_makes_it_begin_anew() -> None:
    rig = under_way(cells=None)
    job = asked_for(rig)
    other = next(
        place
        for place in range(5)
        if not rig.loop.belief.observed[place] and place != rig.mission.plan.waypoints[0]
    )
    drive_to(rig, 2.5, other)
    assert job.cancelled()
    assert asked_for(rig) is not job
    assert bool(asked_for(rig).loop.belief.observed[other])
