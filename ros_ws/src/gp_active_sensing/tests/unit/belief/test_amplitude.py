"""Candidates whose amplitude changes from one side of the map to the other."""

from __future__ import annotations

import numpy as np

import gp_active_sensing as gas
from gp_active_sensing.belief import Belief, BeliefConfig, FeatureCovariance, HyperParameters
from gp_active_sensing.belief.grid import SLOPE
from gp_active_sensing.belief.prior import IDENTITY, Log
from gp_active_sensing.kernels import build_kernel
from tests.cases import for_each

GRID = gas.make_grid(14, 10, 1.0)
APART = np.linalg.norm(GRID.positions[:, None] - GRID.positions[None], axis=2) * np.sqrt(3.0) / 3.0
ROOT = np.linalg.cholesky((1.0 + APART) * np.exp(-APART) + 1e-9 * np.eye(GRID.n))
EAST = (GRID.positions[:, 0] - GRID.positions[:, 0].mean()) / GRID.positions[:, 0].std()


def observed(values: np.ndarray, config: BeliefConfig | None = None) -> Belief:
    belief = gas.belief_on(config or BeliefConfig(), GRID, quiet=True)
    for place in np.random.default_rng(4).permutation(GRID.n)[:60].tolist():
        belief.observe(place, float(values[place]))
        belief.adapt()
    return belief


def slope(belief: Belief) -> np.ndarray:
    slopes = [h.amplitude_slopes or (0.0, 0.0) for h in belief.hyperparameters]
    return np.asarray(belief.weights @ np.array(slopes))


def field(seed: int, slope_east: float) -> np.ndarray:
    smooth = ROOT @ np.random.default_rng([8, seed]).standard_normal(GRID.n)
    return np.asarray(10.0 + np.exp(slope_east * EAST) * smooth)


@for_each("slope_east", [-0.9, 0.9])
def test_an_amplitude_that_grows_to_one_side_is_found(slope_east: float) -> None:
    belief = observed(field(1, slope_east))
    found = slope(belief)
    assert np.sign(found[0]) == np.sign(slope_east)
    assert abs(found[0]) > SLOPE > abs(found[1])
    _, variance = belief.predict()
    left = ~belief.observed
    calm = left & (np.sign(slope_east) * EAST < -0.8)
    lively = left & (np.sign(slope_east) * EAST > 0.8)
    assert variance[lively].mean() > 4.0 * variance[calm].mean()


def test_a_field_of_one_amplitude_gets_hardly_any_slope() -> None:
    assert np.abs([slope(observed(field(seed, 0.0))) for seed in range(3)]).max() < SLOPE


def test_a_side_that_was_not_read_is_not_promised_to_be_calm() -> None:
    values = field(1, -0.9)
    belief = gas.belief_on(BeliefConfig(), GRID, quiet=True)
    west = np.flatnonzero(GRID.positions[:, 0] < 8.0)
    for place in np.random.default_rng(4).permutation(west)[:50].tolist():
        belief.observe(place, float(values[place]))
        belief.adapt()
    assert slope(belief)[0] == 0.0


@for_each("config", [{"signal_std": (1.0,)}, {"kernel": "none"}, {"length_scales": (3.0,)}])
def test_what_is_given_has_one_amplitude(config: dict) -> None:
    belief = observed(field(1, 0.9), BeliefConfig(**config))
    assert not any(h.amplitude_slopes for h in belief.hyperparameters)


def test_a_logarithm_has_one_amplitude() -> None:
    """Through it the expectation of a side with a large amplitude would explode."""
    values = 0.01 * np.exp(field(1, 0.0) - 10.0)
    belief = gas.belief_on(BeliefConfig(), GRID, quiet=True)
    transforms = set()
    for place in np.random.default_rng(4).permutation(GRID.n)[:60].tolist():
        belief.observe(place, float(values[place]))
        belief.adapt()
        transforms.add(type(belief.transform))
        if belief.transform is not IDENTITY:
            assert not any(h.amplitude_slopes for h in belief.hyperparameters)
    assert Log in transforms


def test_the_mean_square_of_the_amplitude_is_one() -> None:
    one = HyperParameters((2.0,), 3.0, 0.1)
    tilted = HyperParameters((2.0,), 3.0, 0.1, amplitude_slopes=(0.7, -0.35))
    covariance = FeatureCovariance(build_kernel("se"), GRID.positions, (one, tilted))
    everywhere = np.arange(GRID.n)
    variance = covariance.variance(everywhere)
    np.testing.assert_allclose(variance.mean(axis=1), 9.0)
    joint = covariance.between(everywhere, everywhere)
    np.testing.assert_allclose(np.diagonal(joint, axis1=1, axis2=2), variance)
    assert np.linalg.eigvalsh(joint).min() > -1e-9
    np.testing.assert_array_equal(covariance.only([0]).variance(everywhere), variance[:1])
    np.testing.assert_array_equal(
        covariance.only([1]).between(everywhere[:3], everywhere), joint[1:, :3]
    )
