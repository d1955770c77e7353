"""Limits on the value: what is closed, and that nobody enters it, however a mission goes."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from gp_active_sensing import Budget, SensingLoop, build_policy
from gp_active_sensing.belief import Belief, BeliefConfig, belief_on
from gp_active_sensing.config import from_mapping
from gp_active_sensing.engine.limits import LimitsConfig
from gp_active_sensing.errors import ConfigError
from gp_active_sensing.mission.course import corners, places_along
from gp_active_sensing.records.run_directory import RunDirectory
from gp_active_sensing.sim import load_scenario, run_scenario
from gp_active_sensing.topology import build_topology
from gp_active_sensing.topology.base import FreeTopology, GraphTopology
from gp_active_sensing.topology.grids import make_grid
from gp_active_sensing.types import PlanLimit, Reading
from tests.cases import for_each
from tests.robots import Robot, Voyage
from tests.unit.sim.scenarios import GRID, scenario
from tests.unit.sim.test_resume import killed_and_resumed

POND = make_grid(12, 9, 5.0)


def depth(seed: int) -> np.ndarray:
    """Return the depth of each place: shoals below 1 m about deep water."""
    rng = np.random.default_rng([seed, 1])
    waves, phases = rng.normal(size=(60, 2)) / 15.0, rng.uniform(0.0, 2.0 * np.pi, 60)
    height = np.cos(POND.positions @ waves.T + phases).sum(axis=1)
    return np.asarray(3.0 + 1.8 * np.sqrt(2.0 / 60.0) * height)


def told(known: bool, **keys: object) -> Belief:
    given = {"length_scales": [15.0], "signal_std": [1.5], "noise_std": [0.1]} if known else {}
    return belief_on(from_mapping(BeliefConfig, {**given, **keys}), POND)


def test_the_probability_is_that_of_draws_of_the_mixture() -> None:
    belief = told(known=True, transform="log")
    for place, value in enumerate([2.0, 3.0, 1.2, 0.6], start=40):
        belief.observe(place, value)
    found = belief.probability_between(1.0, 2.5)
    (mean,), (variance,) = belief.marginals()
    draws = np.exp(mean + np.sqrt(variance) * np.random.default_rng(0).normal(size=(40_000, 108)))
    np.testing.assert_allclose(found, ((draws > 1.0) & (draws < 2.5)).mean(axis=0), atol=0.012)
    np.testing.assert_allclose(belief.probability_between(-np.inf, np.inf), 1.0)


def test_an_unknown_scale_has_wider_tails_than_the_mixture_while_readings_are_few() -> None:
    belief = told(known=False)
    for place, value in zip((40, 55, 70, 90, 5), (3.0, 3.4, 2.7, 3.2, 3.1), strict=True):
        belief.observe(place, value)
    assert belief.settled
    mean, variance = belief.predict()
    far = int(np.argmax(variance))
    limit = float(mean[far] - 3.0 * np.sqrt(variance[far]))
    normal = belief.mixture().below(np.full(belief.n, limit))[far]
    assert 1.0 - belief.probability_between(limit, np.inf)[far] > 1.5 * normal


def test_what_is_open() -> None:
    """Declared and unread; read and inside; unread and inside with the probability asked for."""
    belief, limits = told(known=True, mean_value=3.0, mean_std=0.0), LimitsConfig(at_least=1.0)
    declared = {0, 1, 12}
    assert np.flatnonzero(~limits.closed(belief, declared)).tolist() == sorted(declared)
    belief.observe(0, 3.0)
    belief.observe(1, 0.2)  # declared, and read as too shallow
    closed = limits.closed(belief, declared)
    assert closed[[0, 1, 12]].tolist() == [False, True, False]
    inside = belief.probability_between(1.0, np.inf)
    unread = np.arange(2, POND.n)
    unread = unread[unread != 12]
    assert closed[unread].tolist() == (inside[unread] < 0.99).tolist()
    loose = LimitsConfig(at_least=1.0, probability=0.6).closed(belief, declared)
    assert loose.sum() < closed.sum()


def test_before_the_variances_exist_only_what_was_read_or_declared_is_open() -> None:
    belief = told(known=False)
    belief.observe(50, 4.0)
    belief.observe(51, 0.3)
    assert not belief.settled
    closed = LimitsConfig(at_least=1.0).closed(belief, {7})
    assert np.flatnonzero(~closed).tolist() == [7, 50]


@for_each(
    "limits",
    [{"at_least": 2.0, "at_most": 2.0}, {"at_least": 3.0, "at_most": 1.0}, {"probability": 0.9}],
)
def test_limits_that_leave_nothing_or_have_no_value_are_refused(limits: dict[str, float]) -> None:
    with pytest.raises(ConfigError, match="at_least"):
        from_mapping(LimitsConfig, limits).limits()


def test_where_ways_cross_anything_limits_are_refused() -> None:
    free = FreeTopology("s", "map", "abc", [(0.0, 0.0), (9.0, 1.0), (8.0, 8.0)])
    with pytest.raises(ConfigError, match="limits"):
        SensingLoop(
            free, belief_on(BeliefConfig(), free), build_policy({"name": "spread"}),
            limits=LimitsConfig(at_least=1.0),
        )  # fmt: skip


@for_each("world", [POND, build_topology(load_scenario("town").map)])
def test_no_way_of_a_map_leads_into_closed_places(world: GraphTopology) -> None:
    rng = np.random.default_rng(5)
    closed = set(rng.choice(world.n, world.n // 5, replace=False).tolist())
    found = world.closed_to(closed)
    for start in rng.choice(sorted(set(range(world.n)) - closed), 10).tolist():
        ways = found.ways_from(start)
        for goal in range(0, world.n, 9):
            way = ways.route(goal)
            assert goal not in closed or way is None or goal == start
            assert way is None or not closed & set(way.path)
    assert found.closed_to(()) is found
    assert world.neighbours(0).size >= found.neighbours(0).size


def test_no_leg_cuts_the_corner_of_a_closed_place() -> None:
    """A wall of closed places in the middle: the probe is sent round its end."""
    wall = [6 + 12 * row for row in range(8)]
    open_map = POND.closed_to(wall)
    path = open_map.ways_from(12 * 2).route(12 * 2 + 11)
    assert path is not None
    assert not set(wall) & set(path.path)
    start = POND.positions[24]
    places = places_along(open_map, start, path.path)
    legs = [start, *POND.positions[list(corners(open_map, start, places))]]
    for a, b in pairwise(legs):
        line = a + np.linspace(0.0, 1.0, 200)[:, None] * (b - a)
        inside = np.abs(line[:, None] - POND.positions[wall]).max(axis=2) < 2.49
        assert not inside.any()


def test_a_place_beyond_the_limits_is_left_by_the_next_place() -> None:
    grid = {"kind": "grid", "columns": 4, "rows": 3, "spacing": 10.0}
    voyage = Voyage({"map": grid, "limits": {"at_least": -9.0}}, Robot(0.0, 2.0, acceleration=9.0))
    probe, loop = voyage.mission.probe, voyage.mission.loop
    assert voyage.run(60.0, lambda: probe.plan is not None)
    names = ["c0r0", "c1r0", *(f"c{c}r1" for c in range(4))]
    at, beside, *way = (loop.topology.names.index(name) for name in names)
    plan = replace(probe.plan, path=tuple(way), waypoints=(way[-1],))
    loop.set_limits((), ("",), ())
    probe.set_out(plan, 9, voyage.now_ns)
    assert probe.waypoints == (way[-1],)
    loop.set_limits((), ("",), (at, beside))
    probe.update_waypoints()
    assert probe.waypoints == (way[0], way[-1])


@for_each("policy", ["tour", "bal", "gp_ucb", "lawnmower", "max_entropy", "random"])
def test_nobody_enters_what_is_closed_and_little_of_it_is_shallow(policy: str) -> None:
    counts = Counter[str]()
    for seed in range(3):
        truth, rng = depth(seed), np.random.default_rng(seed)
        start = int(np.argmax(truth))
        loop = SensingLoop(
            POND, told(known=False), build_policy({"name": policy}),
            budget=Budget(readings=40, metres=900.0, end=start), seed=seed,
            limit=PlanLimit(expansions=20), limits=LimitsConfig(at_least=1.0),
        )  # fmt: skip
        ways: list[int] = []
        at = start
        for _ in range(200):
            for place in [at, *ways]:
                if not loop.belief.observed[place]:
                    value = truth[place] + 0.05 * rng.normal()
                    loop.tell([Reading(0, location=place, value=value)])
            plan = loop.ask(at)
            assert not loop.beyond & set(plan.path) - {start}
            counts["crossed"] += len(plan.path)
            counts["shallow"] += int((truth[list(plan.path)] < 1.0).sum())
            if not plan.waypoints:
                break
            loop.moved(plan.cost)
            ways, at = list(plan.path), plan.path[-1]
        assert plan.path[-1:] == (start,) or at == start
    assert counts["crossed"] > 60
    assert counts["shallow"] <= 0.02 * counts["crossed"] + 2


def test_a_mission_with_limits_journals_them_and_resumes_to_the_bit(tmp_path: Path) -> None:
    what = scenario(
        {**GRID, "map": {"kind": "grid", "columns": 8, "rows": 6, "spacing": 10.0}},
        limits={"at_least": 32.0},
        probe={"start": 20, "end": "start"},
        budget={"readings": 12, "metres": 600.0},
    )
    whole = tmp_path / "whole"
    summary = run_scenario(what, whole).to_mapping()
    events = [e for e in RunDirectory.open(whole).events() if e["event"] == "limits"]
    assert len(events) > 1
    assert len(events[0]["closed"]) > 20
    assert events[0]["began"] == [""]
    killed_and_resumed(what, whole, summary, 6)


def test_places_that_a_question_opens_are_driven_to_at_once(tmp_path: Path) -> None:
    shore = [[0, 60], [120, 0], [300, 30], [330, 180], [150, 240], [15, 180]]
    what = scenario(
        {**GRID, "map": {"kind": "grid", "outline": shore, "spacing": 20.0, "neighbours": 8}},
        field={"kind": "gp", "length_scale": 60.0, "signal_std": 2.0, "mean": 6.0},
        limits={"at_least": 1.0},
        probes=2,
        probe={"start": 20, "end": "start"},
        budget={"readings": 16, "metres": 600.0},
    )
    whole = tmp_path / "whole"
    summary = run_scenario(what, whole).to_mapping()
    events = list(RunDirectory.open(whole).events())
    [*_, last] = (e for e in events if e["event"] == "limits")
    assert last["began"] == ["probe_1", "probe_2"]
    assert not [e["why"] for e in events if e["event"] == "blocked"]
    killed_and_resumed(what, whole, summary, 6)
