"""Searches for hot spots: what they choose, where they go, what they do where nothing differs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gp_active_sensing.belief import Belief, BeliefConfig, build_belief
from gp_active_sensing.errors import ConfigError
from gp_active_sensing.planning import build_policy
from gp_active_sensing.planning.bandits import base
from gp_active_sensing.planning.bandits.acquisition import Thompson
from gp_active_sensing.planning.bandits.base import MOST_CANDIDATES, view_of
from gp_active_sensing.topology import Topology, make_grid, make_line
from gp_active_sensing.types import Budget, Plan
from tests.cases import for_each
from tests.requesting import asked

NAMES = ("ei", "est", "gp_ucb", "mean_only", "pi", "thompson", "variance_only")


def belief_of(topology: Topology, **keys: Any) -> Belief:
    base: dict[str, Any] = {"length_scales": (1.0, 3.0), "signal_std": (2.0,), "noise_std": (0.5,)}
    return build_belief(BeliefConfig(**(base | keys)), topology.features)


def decide(belief: Belief, topology: Topology, **mapping: Any) -> Plan:
    return build_policy(mapping).plan(asked(belief, topology, None))[0]


def peaked(minimise: bool = False) -> tuple[Topology, Belief]:
    """A line whose highest place is 7, read often enough to be sure of it."""
    line = make_line(12, 1.0, moves="free")
    belief = belief_of(line, mean_std=0.0)
    field = -0.2 * (np.arange(12) - 7.0) ** 2
    for place in range(12):
        for _ in range(400):
            belief.observe(place, float(-field[place] if minimise else field[place]))
    return line, belief


@for_each("name", [n for n in NAMES if n != "variance_only"])
@for_each("objective", ["maximise", "minimise"])
def test_once_the_field_is_known_the_hot_spot_is_read_again(name: str, objective: str) -> None:
    line, belief = peaked(minimise=objective == "minimise")
    assert decide(belief, line, name=name, objective=objective).waypoint == 7


@for_each("name", [n for n in NAMES if n not in ("est", "thompson")])
def test_of_many_goals_those_near_the_best_middles_are_scored(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    grid = make_grid(14, 14, 1.0, moves="free")
    belief = belief_of(grid, mean_std=0.0)
    x, y = grid.positions.T
    for place in np.random.default_rng(1).permutation(grid.n)[:30].tolist():
        belief.observe(place, float(np.sin(0.4 * x[place]) + np.cos(0.3 * y[place])))
    policy = build_policy({"name": name})
    every = policy.plan(asked(belief, grid, 90, pending=[17, 100]), None)[0]
    monkeypatch.setattr(base, "MOST_GOALS", 100)
    monkeypatch.setattr(base, "_GROUPS", 60)
    some = policy.plan(asked(belief, grid, 90, pending=[17, 100]), None)[0]
    assert some.waypoint == every.waypoint
    assert some.lower == pytest.approx(every.lower)
    assert len(some.candidates) < len(every.candidates)


def test_the_stage_is_counted_and_survives() -> None:
    line = make_line(5, 1.0, moves="free")
    policy = build_policy({"name": "gp_ucb"})
    belief, state = belief_of(line), None
    for stage in (1, 2, 3):
        plan, state = policy.plan(asked(belief, line, None, remaining=Budget()), state)
        assert state == {"stage": stage}
    plan, after = policy.plan(asked(belief, line, None, remaining=Budget(readings=0)), state)
    assert after == state, "no decision was taken"
    assert not plan.waypoints


@for_each("name", [n for n in NAMES if n != "thompson"])
def test_before_the_first_reading_it_is_the_place_where_the_probe_stands(name: str) -> None:
    line = make_line(450, 1.0, moves="free")
    policy = build_policy({"name": name})
    # With a known mean all places are alike to the last bit.
    belief = belief_of(line, mean_std=0.0, length_scales=(2.0,))
    plan, _ = policy.plan(asked(belief, line, 317))
    assert plan.waypoint == 317
    assert plan.cost == (0.0, 0.0)
    assert 317 in {c.location for c in plan.candidates}
    assert len(plan.candidates) == MOST_CANDIDATES


@for_each("transform", ["identity", "log"])
def test_the_view_is_the_mixture_in_the_unit_of_the_sensor(transform: str) -> None:
    line = make_line(8, 1.0, moves="free")
    # The logarithm's prior is narrow: moments of a vague log-normal are no numbers to compare.
    belief = belief_of(line, transform=transform, mean_std=0.5, signal_std=(0.7,))
    for place, value in ((1, 2.0), (1, 3.0), (5, 7.0)):
        belief.observe(place, value)
    view = view_of(belief, np.array([2, 5, 7]), stage=3)
    mean, variance = belief.predict()
    np.testing.assert_allclose(view.everywhere[0], mean)
    np.testing.assert_allclose(view.everywhere[1] ** 2, variance)
    np.testing.assert_allclose(view.mean, mean[[2, 5, 7]])
    noisy = belief.predict(noisy=True)[1] - variance
    assert view.noise_variance == pytest.approx(float(np.median(noisy)))
    assert view.best == pytest.approx(7.0)
    assert (view.stage, view.size) == (3, 8)
    if transform == "identity":
        assert view.noise_variance == pytest.approx(0.25)
    turned = view_of(belief, np.array([2, 5, 7]), sign=-1.0)
    np.testing.assert_allclose(turned.mean, -view.mean)
    best = -2.5 if transform == "identity" else -np.sqrt(6.0)
    assert turned.best == pytest.approx(best), "readings of a place average as the belief sees them"


def test_thompson_draws_from_the_posterior_and_from_the_best_where_there_are_too_many(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    line = make_line(3, 1.0, moves="free")
    belief = belief_of(line, length_scales=(1.0,), mean_std=0.0)
    belief.observe(1, 1.5)
    policy = build_policy({"name": "thompson"})
    rng = np.random.default_rng(1)
    chosen = np.zeros(3)
    for _ in range(3000):
        plan, _ = policy.plan(asked(belief, line, None, rng=rng))
        chosen[plan.waypoint] += 1
    # Places are chosen as often as they are the highest of the posterior.
    x = np.arange(3.0)
    K = 4.0 * np.exp(-0.5 * (x[:, None] - x) ** 2)
    gain = K[:, 1] / (4.0 + 0.25)
    mean, covariance = 1.5 * gain, K - np.outer(gain, K[1])
    draws = np.random.default_rng(2).multivariate_normal(mean, covariance, size=100_000)
    expected = np.bincount(draws.argmax(axis=1), minlength=3) / 100_000
    error = np.sqrt(expected * (1 - expected) / 3000)
    assert (np.abs(chosen / 3000 - expected) < 4.5 * error).all()
    # Only the one with the largest mean plus 3 deviations is drawn: the end that is known less.
    monkeypatch.setattr(Thompson, "joint", 1)
    plan, _ = Thompson().plan(asked(belief, line, None, rng=rng))
    view = view_of(belief, np.arange(3))
    assert plan.waypoint == int(np.argmax(view.mean + 3 * view.std))


def test_keys_that_a_schedule_needs_are_asked_for() -> None:
    with pytest.raises(ConfigError, match=r"policy\.dimension: is needed for schedule: compact"):
        build_policy({"name": "gp_ucb", "schedule": "compact", "extent": 1.0, "a": 1.0, "b": 1.0})
    with pytest.raises(ConfigError, match=r"policy\.norm: is needed for schedule: rkhs"):
        build_policy({"name": "gp_ucb", "schedule": "rkhs"})
    keys = {"dimension": 1, "extent": 1.0, "a": 1e-3, "b": 1.0, "delta": 0.5}
    with pytest.raises(ConfigError, match=r"policy\.a: expected 4·dimension·a/delta above 1"):
        build_policy({"name": "gp_ucb", "schedule": "compact", **keys})
    with pytest.raises(ConfigError, match=r"policy\.delta"):
        build_policy({"name": "gp_ucb", "delta": 1.0})
    with pytest.raises(ConfigError, match=r"policy\.objective: expected one of maximise, minimise"):
        build_policy({"name": "ei", "objective": "max"})
