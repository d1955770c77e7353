"""Explicit exploration by independent tests: statistics, pairs, search, and where it is refused."""

from __future__ import annotations

import json
import logging
import math

import numpy as np
import pytest

from gp_active_sensing.belief import Belief, BeliefConfig, build_belief
from gp_active_sensing.errors import PlanningError
from gp_active_sensing.loop import SensingLoop
from gp_active_sensing.planning.greedy import Apgd
from gp_active_sensing.planning.independent_tests import Pair, PairTest, find_pairs, statistic
from gp_active_sensing.planning.ite import ExplicitExploration
from gp_active_sensing.topology import Topology, make_grid, make_line
from gp_active_sensing.types import Budget, Reading
from tests.cases import for_each
from tests.requesting import asked, believing

SCALES = (1.0, 4.0, 16.0)


def world(count: int = 60, **options) -> tuple[Topology, Belief]:
    topology = make_line(count, 1.0, moves="free")
    settings = {
        "length_scales": SCALES,
        "signal_std": (3.0,),
        "noise_std": (0.3,),
        "mean_value": 20.0,
        "mean_std": 0.0,
    }
    return topology, believing(topology, **(settings | options))


def draw_field(belief: Belief, index: int, seed: int) -> np.ndarray:
    """Noisy readings of every place, from the belief's candidate number `index`."""
    every = np.arange(belief.n)
    rng = np.random.default_rng([seed, 77])
    C = belief.covariance.between(every, every)[index] + 1e-8 * np.eye(belief.n)
    f = np.linalg.cholesky(C) @ rng.normal(size=belief.n)
    return 20.0 + f + math.sqrt(belief.noise_variance[index]) * rng.normal(size=belief.n)


def correlated(rng, correlation: float, variance: float, size) -> tuple[np.ndarray, np.ndarray]:
    C = np.array([[variance, correlation], [correlation, variance]])
    u, v = np.moveaxis(rng.multivariate_normal(np.zeros(2), C, size=size), -1, 0)
    return u, v


@for_each("differences", [False, True])
@for_each("correlation", [0.0, 0.4, 0.95])
def test_statistic_expects_the_correlation(correlation: float, differences: bool) -> None:
    u, v = correlated(np.random.default_rng(0), correlation, 1.1, 400_000)
    shift = 7.0 if differences else 0.0  # a mean that nobody knows
    values = statistic(u + shift, v + shift, 1.1, differences)
    assert values.mean() == pytest.approx(correlation, abs=0.01)


@for_each("differences", [False, True])
@for_each(("shorter", "longer"), [(0.0, 0.6), (0.2, 0.9), (0.6, 0.97)])
def test_midpoint_and_error_against_simulation(
    shorter: float, longer: float, differences: bool
) -> None:
    """The midpoint is that of clipped expectations; the bound is kept under both hypotheses."""
    pair = Pair(0, 1, shorter, longer)
    test = PairTest.for_pair(pair, 1.05, differences)
    rng = np.random.default_rng(1)
    needed = int(test.pairs_needed(pair, 0.1))
    assert test.error(pair, needed) <= 0.1 < test.error(pair, needed - 1)
    expectations = []
    for is_longer, correlation in ((False, shorter), (True, longer)):
        u, v = correlated(rng, correlation, 1.05, (3000, needed))
        told = np.clip(statistic(u, v, 1.05, differences), -test.clip, test.clip)
        expectations.append(told.mean())
        wrong = (told.mean(axis=1) > test.midpoint(pair)) != is_longer
        assert wrong.mean() <= 0.1
    assert test.midpoint(pair) == pytest.approx(np.mean(expectations), abs=0.01)


@for_each("columns", [1, 2])
def test_pairs_differ_most_and_are_nearly_independent(columns: int) -> None:
    rng = np.random.default_rng(3)
    features = rng.uniform(0, 60 if columns == 1 else 25, size=(80, columns))
    belief = build_belief(
        BeliefConfig(length_scales=(1.0, 3.0), signal_std=(2.0,), noise_std=(0.2,)), features
    )
    places = np.flatnonzero(rng.random(80) < 0.8)
    pairs = find_pairs(belief.covariance, places, 0, 1, 0.2, 50)
    assert len(pairs) >= 3
    every = np.arange(80)
    short, long = belief.covariance.between(every, every) / 4.0
    best = (long - short)[np.ix_(places, places)].max()
    ends = [(p.a, p.b) for p in pairs]
    assert len({x for pair in ends for x in pair}) == 2 * len(pairs)
    assert {x for pair in ends for x in pair} <= set(places.tolist())
    for pair in pairs:
        assert pair.shorter == pytest.approx(short[pair.a, pair.b])
        assert pair.longer == pytest.approx(long[pair.a, pair.b])
        assert pair.longer - pair.shorter >= 0.95 * best - 1e-12
    for i, first in enumerate(ends):
        for second in ends[:i]:
            assert long[np.ix_(first, second)].max() <= 0.2
    assert find_pairs(belief.covariance, places, 0, 1, 0.2, 2) == pairs[:2]


def test_pairs_are_found_in_parts_too(monkeypatch: pytest.MonkeyPatch) -> None:
    _, belief = world(50)
    every = np.arange(50)
    whole = find_pairs(belief.covariance, every, 0, 1, 0.3, 20)
    monkeypatch.setattr("gp_active_sensing.planning.independent_tests._NUMBERS", 1)
    assert find_pairs(belief.covariance, every, 0, 1, 0.3, 20) == whole


def fly(
    policy: ExplicitExploration,
    topology: Topology,
    belief: Belief,
    field: np.ndarray,
    readings: int | None,
    *,
    lost: tuple[int, ...] = (),
    stages: int | None = None,
    until_found: bool = False,
) -> tuple[list[int], list]:
    """Fly a mission; places of `lost` never give a reading. Return waypoints and states."""
    loop = SensingLoop(topology, belief, policy, budget=Budget(readings=readings), retries=1)
    visited, states = [], []
    for _ in range(stages or 10**6):
        plan = loop.ask(visited[-1] if visited else None)
        if plan.waypoint is None:
            break
        assert np.isfinite([plan.lower, plan.upper]).all()
        loop.policy_state = json.loads(json.dumps(loop.policy_state))
        visited.append(plan.waypoint)
        states.append(loop.policy_state)
        if until_found and "weights" in loop.policy_state:
            break
        if plan.waypoint in lost:
            loop.miss(plan.waypoint)
        else:
            loop.tell([Reading(0, plan.waypoint, float(field[plan.waypoint]))])
    return visited, states


def found_scales(belief: Belief, state) -> list[float]:
    kept = np.flatnonzero(np.array(state["weights"]) > 0)
    return sorted({belief.hyperparameters[i].length_scales[0] for i in kept})


@pytest.mark.parametrize("seeds", [range(1), pytest.param(range(4), marks=pytest.mark.long)])
def test_it_finds_the_length_scale(seeds: range) -> None:
    """On a map with room for as many pairs as the confidence takes, it errs at most so often."""
    wrong = 0
    for seed in seeds:
        for index, mean_std in enumerate((0.0, None, None)):
            topology, belief = world(600, mean_std=mean_std)
            field = draw_field(belief, index, seed)
            policy = ExplicitExploration(confidence=0.9, share=1.0)
            _, states = fly(policy, topology, belief, field, 400, until_found=True)
            assert len(states) > 20
            wrong += found_scales(belief, states[-1]) != [SCALES[index]]
    assert wrong <= len(seeds) // 2


def test_a_test_of_a_few_pairs_says_what_it_is_worth(caplog) -> None:
    topology, belief = world(60)
    with caplog.at_level(logging.INFO):
        visited, states = fly(ExplicitExploration(), topology, belief, draw_field(belief, 0, 0), 12)
    assert any(r.levelno == logging.WARNING for r in caplog.records)
    testing = [s for s in states if "weights" not in s]
    assert 2 <= len(testing) <= 6, "no more than its share of the budget"
    assert len(visited) == len(set(visited)) == 12
    assert len(found_scales(belief, states[-1])) == 1


def test_the_rest_is_apgd_at_the_length_scale_found() -> None:
    topology, belief = world(60, signal_std=(3.0, 5.0))
    field = draw_field(belief, 0, 0)
    _, states = fly(ExplicitExploration(), topology, belief, field, 12, stages=8)
    state = states[-1]
    kept = np.array(state["weights"])
    assert (kept > 0).sum() == 2, "both signals of one length-scale"
    remaining = {"remaining": Budget(readings=4), "rng": np.random.default_rng(0)}
    found, after = ExplicitExploration().plan(asked(belief, topology, 5, **remaining), state)
    expected, _ = Apgd().plan(asked(belief, topology, 5, **remaining), state)
    assert found.candidates == expected.candidates
    assert after == state


def test_it_works_when_readings_are_missing() -> None:
    topology, belief = world(60)
    field = draw_field(belief, 0, 0)
    normal, _ = fly(ExplicitExploration(share=1.0), *world(60), field, 20)
    lost = tuple(normal[:3])
    visited, states = fly(ExplicitExploration(share=1.0), topology, belief, field, 20, lost=lost)
    assert not belief.observed[list(lost)].any()
    assert int(belief.observed.sum()) == 20
    assert "weights" in states[-1]
    assert max(visited.count(x) for x in lost) == 2, "tried again once, then set aside"


def test_while_others_are_on_their_way_it_takes_a_reading_by_apgd() -> None:
    topology, belief = world(60)
    options = {"rng": np.random.default_rng(0), "remaining": Budget(readings=8)}
    policy, state, pending = ExplicitExploration(share=0.5), None, []
    for _ in range(4):
        plan, state = policy.plan(asked(belief, topology, None, pending=pending, **options), state)
        pending.append(plan.waypoint)
    assert len(set(pending)) == 4
    assert len(state["pairs"]) == 1
    pair = state["pairs"][0]
    assert set(pending[:2]) == {pair[0], pair[1]}, "the test under way waits for its readings"
    for place in pending:
        belief.observe(place, 20.0)
    _, after = policy.plan(asked(belief, topology, None, **options), state)
    assert "weights" in after or after["pairs"] != state["pairs"]


def test_a_share_too_small_for_a_pair_leaves_the_belief_as_it_is() -> None:
    topology, belief = world(30)
    _, state = ExplicitExploration().plan(
        asked(belief, topology, None, remaining=Budget(readings=3))
    )
    np.testing.assert_allclose(state["weights"], belief.weights)
    _, state = ExplicitExploration(share=0.0).plan(
        asked(belief, topology, None, remaining=Budget(readings=30))
    )
    np.testing.assert_allclose(state["weights"], belief.weights)


def test_a_length_scale_for_each_feature_is_refused() -> None:
    topology = make_grid(4, 3, 1.0, moves="free")
    belief = believing(topology, length_scales=((1.0, 2.0), (2.0, 4.0)))
    with pytest.raises(PlanningError, match="one for each feature"):
        SensingLoop(topology, belief, ExplicitExploration())
    with pytest.raises(PlanningError, match="one for each feature"):
        ExplicitExploration().plan(asked(belief, topology, None))
