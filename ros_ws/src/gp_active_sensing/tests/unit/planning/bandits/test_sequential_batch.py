"""GP-BUCB, B-EST and LP-UCB: readings that are not made yet, and penalties around members."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.special import erfc

from gp_active_sensing.planning.bandits.acquisition import est_n
from gp_active_sensing.planning.bandits.sequential_batch import (
    AnticipatedStd,
    largest_slope,
    log_penalty,
    scaled_features,
)
from tests.cases import for_each
from tests.unit.planning.bandits.worlds import batch, believe, field, scattered, start_of


def test_a_hallucinated_reading_is_a_reading_of_the_mean() -> None:
    topology = scattered()
    belief = believe(topology, length_scales=(2.0,))
    ahead, told = AnticipatedStd(belief), belief.copy()
    mean = belief.predict()[0]
    for place in (5, 17, 5, int(np.flatnonzero(belief.observed)[0])):
        ahead.read(place)
        told.observe(place, float(mean[place]))
    after, variance = told.predict()
    np.testing.assert_allclose(after, mean, atol=1e-9)
    np.testing.assert_allclose(ahead.std(), np.sqrt(variance), atol=1e-9)


def test_under_several_length_scales_the_belief_in_them_stays() -> None:
    topology = scattered()
    belief = believe(topology, length_scales=(1.0, 4.0))
    ahead = AnticipatedStd(belief)
    ahead.read(3)
    mean, _ = belief.marginals()
    told = belief.copy()
    told.observe(3, 0.0)
    _, after = told.marginals()  # of each λ: no value matters
    weights = belief.weights
    expected = weights @ (after + (mean - weights @ mean) ** 2)
    np.testing.assert_allclose(ahead.std() ** 2, expected, atol=1e-9)
    assert 0.01 < weights.min()


@for_each("seed", range(5))
def test_b_est_by_its_definition(seed: int) -> None:
    topology = scattered(seed=seed)
    belief = believe(topology, seed=seed)
    policy = batch("b_est")
    start = start_of(policy, belief, topology)
    chosen = policy.choose(start, 5, np.random.default_rng(0))
    mean, variance = belief.predict()
    highest = est_n(mean, np.sqrt(variance), start.view.best)
    told = belief.copy()
    for number, x in enumerate(chosen):
        gaps = (highest - mean) / np.sqrt(told.predict()[1])
        gaps[chosen[:number]] = np.inf
        # Without widening the place with the largest bound is that of EST itself.
        assert x == int(np.argmin(gaps))
        told.observe(x, float(mean[x]))


def test_first_readings_are_where_least_is_known() -> None:
    topology = scattered()
    belief = believe(topology)
    policy = batch("gp_bucb", initial=5, scale=100.0)
    without = batch("gp_bucb", scale=100.0)
    start = start_of(policy, belief, topology, stage=3)
    chosen = policy.choose(start, 4, np.random.default_rng(0))
    told = belief.copy()
    for x in chosen[:3]:  # decisions number 3, 4 and 5
        assert x == int(np.argmax(told.predict()[1]))
        told.observe(x, 0.0)
    start = start_of(without, belief, topology, members=tuple(chosen[:3]), stage=3)
    assert without.choose(start, 1, np.random.default_rng(0)) == chosen[3:]


def test_penalties_far_below_the_range_of_floats() -> None:
    found = log_penalty(np.array([0.0, 1.0]), 1.0, 1e6, 0.0, 1.0)
    assert np.isfinite(found).all()
    assert found[1] > found[0]


def test_the_largest_slope_between_neighbours() -> None:
    x = np.array([[0.0], [1.0], [3.0], [3.0], [4.0]])
    values = np.array([0.0, 1.0, 5.0, 9.0, 5.5])
    # The twins at 3 are at no distance of each other; from one of them to 4 it is steepest.
    assert largest_slope(x, values) == pytest.approx(3.5)
    assert largest_slope(x[:1], values[:1]) == 0.0
    assert largest_slope(np.zeros((3, 2)), np.arange(3.0)) == 0.0
    assert largest_slope(x, np.ones(5)) == 0.0


@for_each("seed", range(5))
def test_choice_by_its_definition(seed: int) -> None:
    topology = scattered(30, seed=seed)
    belief = believe(topology, seed=seed)
    policy = batch("lp_ucb")
    start = start_of(policy, belief, topology)
    mean, std = start.view.everywhere
    points = topology.positions / 2.0  # the length-scale
    slope = max(
        abs(mean[i] - mean[j]) / np.linalg.norm(points[i] - points[j])
        for i in range(30)
        for j in np.argsort(np.linalg.norm(points - points[i], axis=1))[1:5]
    )
    alpha = (start.upper() - mean.mean()) / math.sqrt(np.mean(std**2) + np.var(mean))
    scores = np.log1p(np.exp(alpha))
    chosen = policy.choose(start, 4, np.random.default_rng(0))
    for number, x in enumerate(chosen):
        scores[chosen[:number]] = -1.0
        assert x == int(np.argmax(scores))
        far = np.linalg.norm(points - points[x], axis=1)
        z = (slope * far - start.view.best + mean[x]) / (math.sqrt(2.0) * std[x])
        scores *= 0.5 * erfc(-z)


def test_no_unit_matters() -> None:
    topology = scattered()
    chosen = []
    for unit in (1.0, 1e-6, 1e6):
        belief = believe(topology, 0, signal_std=(unit,), noise_std=(0.2 * unit,))
        for place in range(0, 40, 4):
            belief.observe(place, unit * float(field(topology)[place]))
        policy = batch("lp_ucb")
        start = start_of(policy, belief, topology)
        chosen.append(policy.choose(start, 5, np.random.default_rng(0)))
    assert chosen[0] == chosen[1] == chosen[2]


def test_before_any_reading_the_prior_says_how_steep_the_field_is() -> None:
    topology = scattered()
    belief = believe(topology, 0, mean_std=0.0)
    policy = batch("lp_ucb")
    chosen = policy.choose(start_of(policy, belief, topology), 4, np.random.default_rng(0))
    apart = np.linalg.norm(topology.positions[chosen][:, None] - topology.positions[chosen], axis=2)
    assert apart[np.triu_indices(4, 1)].min() > 2.0


def test_features_are_scaled_by_the_length_scales() -> None:
    topology = scattered()
    belief = believe(topology, length_scales=((1.0, 4.0),))
    scaled = scaled_features(belief, topology.features)
    np.testing.assert_allclose(scaled, topology.features / [1.0, 4.0])
