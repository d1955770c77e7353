"""The sensing loop: readings used or counted, budgets, misses, reproducible decisions."""

from __future__ import annotations

import dataclasses
import logging
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gp_active_sensing.belief import BeliefConfig, belief_on, build_belief
from gp_active_sensing.config import from_mapping
from gp_active_sensing.errors import PlanningError
from gp_active_sensing.loop import SensingLoop
from gp_active_sensing.planning import build_policy
from gp_active_sensing.topology import MapConfig, build_topology, make_grid
from gp_active_sensing.types import Aim, Budget, Cost, Plan, PlanLimit, Reading
from tests.cases import for_each
from tests.recorded import check_recorded
from tests.unit.belief.test_more_places import cells


def make(policy: str = "ie", **options) -> SensingLoop:
    topology = build_topology(
        from_mapping(MapConfig, {"kind": "grid", "columns": 5, "rows": 4, "spacing": 2.0})
    )
    belief = build_belief(BeliefConfig(length_scales=(1.0, 4.0)), topology.features)
    options = {"budget": Budget(readings=6), "limit": PlanLimit(expansions=50)} | options
    return SensingLoop(topology, belief, build_policy({"name": policy}), **options)


@for_each(
    ("reading", "reason"),
    [
        (Reading(0, 3, math.nan), "not_finite"),
        (Reading(0, 3, math.inf), "not_finite"),
        (Reading(0, 3, 1.0, noise_variance=0.0), "bad_variance"),
        (Reading(0, 20, 1.0), "unknown_location"),
        (Reading(0, -1, 1.0), "unknown_location"),
        (Reading(0, None, 1.0), "bad_position"),
        (Reading(0, None, 1.0, position=(math.nan, 0.0)), "bad_position"),
        (Reading(0, None, 1.0, position=(500.0, 0.0)), "off_map"),
        (Reading(0, 3, "7"), "not_a_number"),  # type: ignore[arg-type]
        (Reading(0, 3, True), "not_a_number"),
        (Reading(0, 3, 10**400), "not_finite"),
        (Reading(0, 3, 1e160), "out_of_range"),
        (Reading(0, 3, 1.0, noise_variance=1e-310), "bad_variance"),
        (Reading(0, 3, 1.0, noise_variance="x"), "bad_variance"),  # type: ignore[arg-type]
        (Reading(0, 3.7, 1.0), "unknown_location"),  # type: ignore[arg-type]
        (Reading(0, None, 1.0, position=("a", 0.0)), "bad_position"),  # type: ignore[arg-type]
        (Reading(0, None, 1.0, position=(1.0, 2.0, 3.0)), "bad_position"),  # type: ignore[arg-type]
    ],
)
def test_bad_readings_are_counted_and_change_nothing(reading: Reading, reason: str, caplog) -> None:
    loop = make(snap_distance=5.0)
    good = Reading(1, 2, 0.5)
    with caplog.at_level(logging.WARNING):
        report = loop.tell([reading, good])
    assert report.accepted == 1
    assert [r.reason for r in report.rejected] == [reason]
    assert report.rejected[0].reading is reading
    assert report.rejected[0].message in caplog.text
    assert loop.counts[f"rejected_{reason}"] == 1
    assert [r.reason for r in loop.inform([reading]).rejected] == [reason]
    assert loop.counts[f"expert_rejected_{reason}"] == 1
    assert loop.belief.readings.sum() == 1
    assert np.isfinite(loop.belief.weights).all()
    assert loop.remaining.readings == 5


def test_late_readings_are_used_and_counted() -> None:
    loop, other = make(), make()
    readings = [Reading(10, 1, 1.0), Reading(5, 2, 2.0), Reading(20, 3, 3.0), Reading(19, 3, 3.5)]
    report = loop.tell(readings)
    assert report.accepted == 4
    assert report.late == 2
    assert loop.counts["late"] == 2
    other.tell(sorted(readings, key=lambda r: r.stamp_ns))
    np.testing.assert_allclose(loop.belief.predict()[0], other.belief.predict()[0], rtol=1e-9)


def test_pending_waypoints_of_others_count_against_the_budget() -> None:
    loop = make(budget=Budget(readings=2))
    assert loop.ask(0).waypoint is not None
    assert loop.ask(0, pending=(3, 7)).waypoint is None
    assert loop.ask(0, pending=(3,)).waypoint not in (None, 3)


def test_a_pending_place_that_was_read_meanwhile_is_paid_for_once() -> None:
    loop = make(budget=Budget(readings=2))
    loop.tell([Reading(0, 7, 1.0)])
    assert loop.ask(0, pending=(7,)).waypoint is not None
    with pytest.raises(ValueError, match="0 … 19"):
        loop.ask(0, pending=(20,))
    with pytest.raises(ValueError, match="0 … 19"):
        loop.miss(-1)


def test_a_place_without_readings_is_retried_then_set_aside(caplog) -> None:
    loop = make(retries=2)
    first = loop.ask(0).waypoint
    assert loop.miss(first)
    assert loop.miss(first)
    with caplog.at_level(logging.WARNING):
        assert not loop.miss(first)
    assert "set aside" in caplog.text
    assert loop.ask(0).waypoint != first
    assert loop.counts["missed"] == 3
    loop.tell([Reading(1, first, 1.0)])  # a reading on the way brings it back
    assert first not in loop.set_aside


def test_decisions_depend_on_the_seed_and_their_number_only() -> None:
    def drive(loop: SensingLoop) -> list[int]:
        at, places = 0, []
        while (plan := loop.ask(at)).waypoint is not None:
            at = plan.waypoint
            places.append(at)
            loop.tell([Reading(0, at, 1.0)])
        return places

    first = drive(make("random", seed=4))
    assert first == drive(make("random", seed=4))
    assert first != drive(make("random", seed=5))
    # A loop restored after three decisions goes on as the first one did.
    loop = make("random", seed=4)
    for place in first[:3]:
        loop.tell([Reading(0, place, 1.0)])
        loop.replay_decision(None)
    assert loop.ask(first[2]).waypoint == first[3]


def test_a_probe_off_the_map_and_a_belief_that_does_not_fit_are_errors() -> None:
    loop = make()
    with pytest.raises(ValueError, match="0 … 19"):
        loop.ask(20)
    other = build_belief(BeliefConfig(length_scales=(1.0,)), np.zeros((3, 1)))
    with pytest.raises(ValueError, match=r"3 places, map .* has 20"):
        SensingLoop(loop.topology, other, loop.policy)


@for_each(("speed", "places"), [(0.5, 1), (1.0, 2), (4.0, 10)])
def test_seconds_are_counted_at_the_probe_s_own_speed(speed: float, places: int) -> None:
    """5 s on a grid of 2-m moves (the first place costs nothing: the probe stands there)."""
    loop, at, spent = make(budget=Budget(seconds=5.0), speed=speed), 0, 0.0
    visited = []
    while (plan := loop.ask(at)).waypoint is not None:
        at = plan.waypoint
        visited.append(at)
        assert plan.cost.seconds == pytest.approx(plan.cost.metres / speed)
        loop.moved(plan.cost)
        spent += plan.cost.seconds
        loop.tell([Reading(0, at, 1.0)])
    assert spent <= 5.0 + 1e-9
    assert len([v for v in visited if v != 0]) == places
    assert "metres or seconds" in plan.reason


def drive(loop: SensingLoop, at: int) -> tuple[list[int], Cost, str]:
    """Drive a mission to its end and home; return the places, what it took and why it ended."""
    spent, places = Cost(0.0, 0.0), [at]
    while True:
        plan = loop.ask(places[-1])
        for place in plan.path:
            places.append(place)
            if loop.wants(place):
                loop.tell([Reading(0, place, 1.0)])
        loop.moved(plan.cost)
        spent = spent.plus(plan.cost)
        if plan.waypoint is None:
            return places, spent, plan.reason


@for_each("policy", ["random", "bal"])
@for_each(
    "budget",
    [Budget(metres=19.0), Budget(seconds=19.0), Budget(6, 30.0, 25.0), Budget(5), Budget(9, 8.0)],
)
def test_the_last_plan_leads_to_where_the_mission_has_to_end(policy: str, budget: Budget) -> None:
    for end, speed in ((0, None), (19, 0.9), (7, None)):
        limit = dataclasses.replace(budget, end=end)
        loop = make(policy, budget=limit, speed=speed)
        if budget.metres == 8.0 and end == 19:
            with pytest.raises(
                PlanningError, match="end: the way from 'c0r0' to 'c4r3' takes 14 m"
            ):
                loop.ask(0)
            continue
        places, spent, _ = drive(loop, 0)
        assert places[-1] == end
        assert loop.returning_home
        assert limit.metres is None or spent.metres <= limit.metres + 1e-9
        assert limit.seconds is None or spent.seconds <= limit.seconds + 1e-9
        assert limit.readings is None or loop.belief.observed.sum() <= limit.readings
        assert loop.remaining.end == end


def test_on_the_way_home_new_places_are_read_while_readings_last() -> None:
    loop = make("random", budget=Budget(2, end=0))
    loop.tell([Reading(0, 19, 1.0)])
    assert loop.wants(18)
    loop.tell([Reading(0, 14, 1.0)])
    plan = loop.ask(19)
    assert (plan.waypoint, plan.path[-1]) == (None, 0)
    assert plan.reason == "the budget of readings is spent"
    assert not loop.wants(18)
    report = loop.tell([Reading(1, 18, 1.0), Reading(1, 14, 2.0)])
    assert [r.reason for r in report.rejected] == ["budget_spent"]
    assert "a reading of c3r3: the budget of readings is spent" in report.rejected[0].message
    assert report.accepted == 1, "what is observed costs nothing"
    loop = make("random", budget=Budget(3, metres=14.0, end=0))
    plan = loop.ask(19)
    assert plan.waypoint in (14, 18, 19), "on the shortest way home"
    loop.tell([Reading(0, 19, 1.0)])
    loop.remaining = dataclasses.replace(loop.remaining, metres=13.0)
    assert loop.ask(19).path[-1] == 0
    report = loop.tell([Reading(1, place, 1.0) for place in (14, 9, 4, 3)])
    assert report.new_places == (14, 9), "the budget counts within one call, too"


def test_the_last_readings_are_kept_for_where_the_probe_is_going() -> None:
    loop = make("random", budget=Budget(readings=2))
    loop.tell([Reading(0, 0, 1.0)])
    for _ in range(3):
        loop.miss(1)
    goal = loop.ask(0).waypoint
    assert goal is not None
    assert [loop.wants(place) for place in (0, goal, 19, 1)] == [True, True, False, False]
    report = loop.tell([Reading(1, 19, 1.0), Reading(1, goal, 1.0), Reading(1, 18, 1.0)])
    assert report.new_places == (goal,)
    assert [r.reason for r in report.rejected] == ["budget_spent"] * 2
    # Without decisions nothing is kept: readings of a bag, or of a program that plans by itself.
    loop = make("random", budget=Budget(readings=2))
    assert loop.tell([Reading(0, place, 1.0) for place in range(4)]).accepted == 4
    loop = make("random", budget=Budget(readings=3))
    loop.replay_decision(None, (5, 6))
    assert loop.tell([Reading(0, place, 1.0) for place in (9, 10, 5, 6)]).new_places == (9, 5, 6)


def test_a_restart_on_the_way_home_reads_no_more_than_without() -> None:
    loop = make("random", budget=Budget(1, end=0))
    loop.tell([Reading(0, 19, 1.0)])
    loop.replay_way_home()
    assert loop.tell([Reading(0, 18, 1.0)]).accepted == 0
    copy = loop.snapshot()
    copy.returning_home = False
    loop.adopt(copy)
    assert not loop.returning_home


def test_a_plan_must_fit_with_the_way_home() -> None:
    loop = make("random", budget=Budget(9, metres=12.0, end=0))
    plan = Plan((8,), 0.0, 0.0, 1, 0.0, deadline_hit=False, path=(8,), cost=Cost(2.0, 2.0))
    assert loop.fits(plan)  # 8 is 8 m from home
    assert loop.fits(dataclasses.replace(plan, cost=Cost(4.0, 4.0)))
    assert not loop.fits(dataclasses.replace(plan, cost=Cost(4.1, 4.1)))
    loop.remaining = Budget(0, metres=12.0)
    assert not loop.fits(plan)


def test_a_revisit_costs_a_reading_beside_those_on_its_way() -> None:
    loop = make("random")
    loop.tell([Reading(0, 2, 1.0)])
    plan = Plan((2,), 0.0, 0.0, 1, 0.0, deadline_hit=False, path=(1, 2), cost=Cost(4.0, 4.0))
    assert loop.fits(plan, remaining=Budget(2))
    assert not loop.fits(plan, remaining=Budget(1)), "1 is read on the way, and 2 once more"


def test_a_snapshot_has_promises_of_its_own() -> None:
    """Planned on beside the loop: only a plan that is adopted has readings kept for it."""
    loop = make("random", budget=Budget(3))
    way = loop.ask(0, probe="a").path
    copy = loop.snapshot()
    other = copy.ask(0, probe="a", pending=way).path
    copy.ask(19, probe="b", pending=(*way, *other))
    nothing = loop.belief.observed
    assert loop.reservations.goals(lambda _: nothing, ()) == {("", way[-1])}
    assert loop.readings_for("b", way) == 3 - len(way)
    loop.adopt(copy, "a")
    assert loop.reservations.goals(lambda _: nothing, ()) == {("", other[-1])}
    copy.release("a")
    assert loop.reservations.goals(lambda _: nothing, ()) == {("", other[-1])}


def test_what_befalls_a_snapshot_does_not_reach_the_loop(caplog) -> None:
    loop = make("max_entropy", budget=Budget(9), retries=1)
    copy = loop.snapshot()
    copy.blocked.add(4)
    copy.tell([Reading(0, 3, 1.0), Reading(0, 3, math.nan)])
    for _ in range(2):
        copy.miss(7)
    assert copy.set_aside == {7}
    assert (loop.blocked, loop.set_aside, loop.counts) == (set(), set(), {})
    assert not loop.belief.observed.any()
    assert loop.remaining == Budget(9)
    copy = loop.snapshot()
    copy.miss(8)
    loop.miss(8)
    assert loop.set_aside == set(), "the first miss of its own"


def test_a_reading_makes_up_for_the_visits_that_gave_none() -> None:
    loop = make("gp_ucb", retries=1)
    assert loop.miss(7)
    assert loop.tell([Reading(0, 7, 1.0)]).new_places == (7,)
    assert loop.miss(7), "the first one since"
    assert not loop.miss(7)
    assert loop.set_aside == {7}


CONFIG = BeliefConfig(length_scales=(20.0, 60.0), signal_std=(1.0,), noise_std=(0.1,))


def loop(count: int = 25) -> SensingLoop:
    topology = cells(count)
    policy = build_policy({"name": "ie"})
    return SensingLoop(topology, belief_on(CONFIG, topology), policy, budget=Budget(readings=9))


def test_what_was_spent_stays_and_occupied_places_are_not_chosen() -> None:
    engine = loop()
    engine.tell([Reading(i, i, 20.0 + i) for i in range(3)])
    before, copy = engine.remaining, engine.snapshot()
    larger = cells(60)
    plan = engine.ask(0)
    engine.move_to(larger, belief_on(CONFIG, larger), closed=plan.path)
    assert engine.remaining == before
    assert engine.spent == 3
    assert copy.topology.n == copy.belief.n == 25, "a snapshot keeps its map"
    again = engine.ask(0)
    assert again.waypoint is not None
    assert again.waypoint not in plan.path
    engine.move_to(larger, belief_on(CONFIG, larger))
    assert engine.unavailable == frozenset(), "they come back"


def test_a_probe_in_a_place_that_became_occupied_drives_on_from_the_nearest_one() -> None:
    engine = loop()
    topology = engine.topology
    engine.move_to(topology, belief_on(CONFIG, topology), closed=[0])
    near = engine.open_place(0)
    assert near in topology.neighbours(0).tolist()
    assert engine.open_place(near) == near


def test_another_map_is_refused_and_nothing_has_changed() -> None:
    engine = loop(60)
    smaller = cells(25)
    with pytest.raises(ValueError, match=r"begins with the 60 places .* got one of 25"):
        engine.move_to(smaller, belief_on(CONFIG, smaller))
    assert engine.topology.n == engine.belief.n == 60


WORLD = make_grid(6, 4, 2.0, speed=0.5, obstacles=[((4.0, 2.0), (6.0, 3.9))])
RING = make_grid(5, 5, 1.5, reach=2.0, neighbours=8)
LOOPS: tuple[dict[str, Any], ...] = (
    {"policy": "gp_ucb", "budget": Budget(9, 60.0), "retries": 0, "speed": 0.8},
    {"policy": "est_dpp_sample", "budget": Budget(12, None, 200.0, 3), "retries": 2},
    {"policy": "ie", "budget": Budget(7, 40.0, 90.0, 0), "retries": 1, "seed": 4},
    {"policy": "sparq_gp_ucb", "budget": Budget(14), "retries": 1},
    {"policy": "tour", "budget": Budget(), "aim": Aim(0.7), "retries": 1},
)


@for_each("options", LOOPS)
@for_each("topology", [WORLD, RING])
def test_random_missions_of_two_probes_are_those_on_record(options: Any, topology: Any) -> None:
    """Whatever comes: readings, misses, answers, snapshots, other budgets; see `tests.recorded`."""
    policy, rng = build_policy({"name": options["policy"]}), np.random.default_rng(6)
    drift = {"kind": "weights", "time_scale": 40.0} if options["policy"][:5] == "sparq" else {}
    config = {"length_scales": [1.5, 4.0], "signal_std": [2.0], "noise_std": [0.2], "drift": drift}
    belief = belief_on(from_mapping(BeliefConfig, config), topology)
    more = {key: value for key, value in options.items() if key != "policy"}
    loop = SensingLoop(topology, belief, policy, limit=PlanLimit(expansions=8), **more)
    at, pending, found = {"a": 0, "b": topology.n - 1}, {"a": None, "b": None}, []
    for step in range(30):
        probe, other = ("a", "b") if step % 2 else ("b", "a")
        loop.clock_ns = step * 10**9
        goal = pending[other]
        taker = loop.snapshot() if step % 4 == 1 else loop
        plan = taker.ask(
            at[probe], probe=probe, pending=() if goal is None else (goal,),
            waiting={other: at[other]} if goal is None and step % 3 else {}, now_ns=loop.clock_ns,
        )  # fmt: skip
        if taker is not loop:
            loop.adopt(taker, probe)
        loop.moved(plan.cost)
        pending[probe] = plan.waypoint
        places = [*plan.path, int(rng.integers(topology.n))]
        wanted = [(place, loop.wants(place), loop.costs(place)) for place in places]
        late = [0, 3, -40][step % 3] * 10**9
        readings = [Reading(loop.clock_ns - late, p, float(np.sin(p))) for p in places]
        told = loop.tell(readings[: 1 + step % 3]) if step % 5 else loop.inform(readings[-1:])
        missed = loop.miss(places[0]) if step % 7 == 3 else None
        if step % 11 == 10:
            loop.release(probe)
            loop.shut_moves([(places[0], places[-1])])
        if step == 13:
            loop.replay_decision(loop.policy_state, plan.path, probe, again=bool(plan.path))
        if step == 19:
            found.append(loop.open_place(places[0]))
        at[probe] = plan.path[-1] if plan.path else at[probe]
        reasons = [rejection.reason for rejection in told.rejected]
        found.append([plan.waypoints, plan.path, plan.cost, bool(plan.reason), wanted, missed])
        found.append([told.accepted, told.new_places, reasons, loop.remaining, loop.spent])
        found.append([dict(loop.counts), loop.set_aside, loop.decisions, loop.returning_home])
        kept = {p for _, p in loop.reservations.kept(loop.observed_of, ())}, loop.queries()
        found.append([*kept, loop.visits, loop.readings_for(probe, [places[0]])])
        longer = dataclasses.replace(plan, cost=plan.cost.plus(Cost(3.0, 2.0)))
        found.append([loop.fits(longer) if plan.waypoints else None])
    name = f"{options['policy']} {topology.n}"
    check_recorded(Path(__file__).with_name("recorded.json"), name, found)
