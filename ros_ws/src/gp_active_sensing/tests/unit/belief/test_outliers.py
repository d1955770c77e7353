"""Outliers of a sensor must not make the field look rough."""

from __future__ import annotations

import numpy as np

from gp_active_sensing.belief import Belief, BeliefConfig, belief_on
from gp_active_sensing.kernels import NONE
from gp_active_sensing.sim import build_world, load_scenario


def told(seed: int, *overrides: str) -> tuple[Belief, np.ndarray]:
    """Return the default belief after 60 visits of the warehouse with three readings, and truth."""
    scenario = load_scenario("warehouse", overrides=[f"seed={seed}", "sensor.bias=0", *overrides])
    world = build_world(scenario)
    belief = belief_on(BeliefConfig(), world.topology)
    places = np.random.default_rng(seed).permutation(world.topology.n)[:60].tolist()
    for stage, place in enumerate(places):
        for number in range(3):
            reading = world.sensor.read(place, number, stage)
            if reading is not None:
                belief.observe(place, reading.value)
        belief.adapt()
    return belief, world.truth.at(0.0)


def log_length(belief: Belief) -> float:
    smooth = [
        (weight, h.length_scales[0])
        for weight, h in zip(belief.weights, belief.hyperparameters, strict=True)
        if h.kernel != NONE
    ]
    return sum(w * float(np.log(ell)) for w, ell in smooth) / sum(w for w, _ in smooth)


def test_outliers_do_not_shorten_the_length_scale() -> None:
    """The scenario's outliers are 15 dB with a probability of 5 %; the noise is 1.5 dB."""
    shorter, inside = [], []
    for seed in range(4):
        clean, _ = told(seed, "sensor.outlier=0")
        contaminated, truth = told(seed)
        shorter.append(log_length(clean) - log_length(contaminated))
        mean, variance = contaminated.predict()
        left = ~contaminated.observed
        inside.append(np.mean(np.abs(mean - truth)[left] < 1.645 * np.sqrt(variance[left])))
    assert np.mean(shorter) < np.log(1.25), "no rougher than without outliers"
    assert np.mean(inside) > 0.85, "and the intervals of the true value hold"
