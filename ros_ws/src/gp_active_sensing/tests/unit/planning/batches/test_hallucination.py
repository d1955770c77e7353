"""GP-BUCB and B-EST: hallucinated readings are readings of the mean; widening; first readings."""

from __future__ import annotations

import math

import numpy as np
import pytest

from gp_active_sensing.planning.bandits.est import est_n
from gp_active_sensing.planning.bandits.gp_ucb import finite_beta
from gp_active_sensing.planning.batches.hallucination import Ahead
from tests.unit.planning.batches.worlds import batch, believe, scattered, start_of


def test_a_hallucinated_reading_is_a_reading_of_the_mean() -> None:
    topology = scattered()
    belief = believe(topology, length_scales=(2.0,))
    ahead, told = Ahead(belief), belief.copy()
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
    ahead = Ahead(belief)
    ahead.read(3)
    mean, _ = belief.marginals()
    told = belief.copy()
    told.observe(3, 0.0)
    _, after = told.marginals()  # of each λ: no value matters
    weights = belief.weights
    expected = weights @ (after + (mean - weights @ mean) ** 2)
    np.testing.assert_allclose(ahead.std() ** 2, expected, atol=1e-9)
    assert 0.01 < weights.min()


@pytest.mark.parametrize("seed", range(5))
def test_gp_bucb_by_its_definition(seed: int) -> None:
    topology = scattered(seed=seed)
    belief = believe(topology, seed=seed)
    policy = batch("gp_bucb", delta=0.2, information=0.3)
    chosen = policy.choose(start_of(policy, belief, topology, stage=4), 5, np.random.default_rng(0))
    told, mean = belief.copy(), belief.predict()[0]
    for t, x in enumerate(chosen, start=4):
        std = np.sqrt(told.predict()[1])
        width = math.exp(0.3) * math.sqrt(finite_beta(t, topology.n, 0.2))
        scores = mean + width * std
        scores[chosen[: t - 4]] = -np.inf
        assert x == int(np.argmax(scores))
        told.observe(x, float(mean[x]))


@pytest.mark.parametrize("seed", range(5))
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


def test_factor() -> None:
    assert batch("gp_bucb").factor == 1.0
    assert batch("gp_bucb", information=0.7).factor == pytest.approx(math.exp(0.7))
    wide = batch("b_est", information=0.7, widening="exp_2c")
    assert wide.factor == pytest.approx(math.exp(1.4))


def test_a_wider_bound_explores_more() -> None:
    topology = scattered(200)
    belief = believe(topology, 30)
    mean, _ = belief.predict()
    rng = np.random.default_rng(0)
    expected = []
    for information in (0.0, 5.0):
        policy = batch("gp_bucb", information=information, scale=25.0)
        chosen = policy.choose(start_of(policy, belief, topology), 6, rng)
        expected.append(mean[chosen].mean())
    assert expected[1] < expected[0]


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
