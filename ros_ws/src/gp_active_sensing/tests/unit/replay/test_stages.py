from __future__ import annotations

import numpy as np
import pytest

from gp_active_sensing.belief import BeliefConfig, build_belief
from gp_active_sensing.replay.stages import information

PLACES = np.array([[float(x), 0.0] for x in range(0, 60, 10)])


def test_one_candidate_is_the_closed_form() -> None:
    config = BeliefConfig(
        length_scales=(20.0,), signal_std=(2.0,), noise_std=(0.5,), mean_value=0.0, mean_std=0.0
    )
    belief = build_belief(config, PLACES)
    told = information(belief, [0, 3])
    assert told == pytest.approx([0.5 * np.log(1.0 + 4.0 / 0.25)] * 2, abs=1e-3)
    belief.observe(0, 1.0)
    _, variance = belief.marginals(np.array([0, 3]))
    expected = 0.5 * np.log1p(variance[0] / 0.25)
    assert information(belief, [0, 3]) == pytest.approx(expected.tolist(), abs=1e-3)


def test_several_candidates_are_the_entropy_of_the_mixture_less_that_of_the_noise() -> None:
    config = BeliefConfig(
        length_scales=(8.0, 40.0), signal_std=(2.0,), noise_std=(0.3, 0.6), mean_std=5.0
    )
    belief = build_belief(config, PLACES)
    for place, value in ((0, 1.0), (2, -2.0)):
        belief.observe(place, value)
    (told,) = information(belief, [4])
    mean, variance = belief.marginals(np.array([4]))
    noisy = variance[:, 0] + belief.noise_variance
    z = np.linspace(-60.0, 60.0, 400_001)
    density = np.zeros_like(z)
    for b, m, v in zip(belief.weights, mean[:, 0], noisy, strict=True):
        density += b * np.exp(-0.5 * (z - m) ** 2 / v) / np.sqrt(2 * np.pi * v)
    entropy = float((-density * np.log(np.maximum(density, 1e-300))).sum() * (z[1] - z[0]))
    noise = float(belief.weights @ (0.5 * np.log(2 * np.pi * np.e * belief.noise_variance)))
    assert told == pytest.approx(entropy - noise, abs=1e-3)


def test_pending_places_are_known_already() -> None:
    config = BeliefConfig(length_scales=(30.0,), signal_std=(2.0,), noise_std=(0.5,), mean_std=5.0)
    belief = build_belief(config, PLACES)
    (alone,) = information(belief, [2])
    (beside,) = information(belief, [2], pending=[3])
    assert 0.0 < beside < alone
    assert information(belief, []) == []
