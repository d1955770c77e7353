"""What a belief promises of its map, and how probable it is that the promise is kept."""

from __future__ import annotations

import numpy as np
import pytest

from gp_active_sensing.belief import Belief
from gp_active_sensing.belief.covariance import FeatureCovariance, HyperParameters
from gp_active_sensing.belief.mean import PriorMean
from gp_active_sensing.belief.promise import assurance, promise_of
from gp_active_sensing.belief.transform import LOG, Transform
from gp_active_sensing.kernels import kernels
from gp_active_sensing.types import MEAN, OF, WORST

N = 12
WEIGHTS = np.array([0.0, 2.0, *np.ones(N - 2)])


def believed(
    *, known: bool = True, transform: Transform | None = None, readings: int = 5, seed: int = 0
) -> Belief:
    candidates = [HyperParameters((ell,), 1.0, 0.3) for ell in (0.7, 2.0, 6.0)]
    covariance = FeatureCovariance(
        kernels.factory("matern32")(), np.arange(N, dtype=np.float64)[:, None], candidates
    )
    more = {} if transform is None else {"transform": transform}
    belief = Belief(
        covariance, PriorMean.constant(N, 1.0, 10.0), [1, 2, 1], scale_known=known, **more
    )
    rng = np.random.default_rng(seed)
    for place in rng.choice(N, readings, replace=False).tolist():
        belief.observe(place, float(np.exp(0.3 * rng.normal())))
    return belief


@pytest.mark.parametrize("transform", [None, LOG])
def test_the_promise_is_the_mixtures_variance(transform: Transform | None) -> None:
    belief = believed(transform=transform)
    _, variance = belief.predict()
    promise = belief.promise(WEIGHTS)
    assert promise is not None
    assert promise.error == pytest.approx(np.average(variance, weights=WEIGHTS) ** 0.5)
    assert promise.worst == pytest.approx(variance[1:].max() ** 0.5)
    assert promise == pytest.approx(promise_of(belief.mixture(), 7.0 * WEIGHTS))


def test_a_scale_that_nobody_knows_needs_three_readings_more_than_the_mean() -> None:
    for readings in range(6):
        belief = believed(known=False, readings=readings)
        assert belief.settled == (readings > 3)
        assert (belief.promise(WEIGHTS) is None) == (readings <= 3)
        assert 0.0 <= assurance(belief, WEIGHTS, 1.0) < 1.0
    assert believed(readings=0).settled
    assert believed(readings=0).promise(WEIGHTS) is not None


@pytest.mark.parametrize("of", OF)
@pytest.mark.parametrize("known", [True, False])
def test_it_grows_with_what_is_allowed(known: bool, of: str) -> None:
    belief = believed(known=known, readings=7)
    sure = [assurance(belief, WEIGHTS, error, of) for error in (0.0, *np.geomspace(1e-3, 1e3, 60))]
    assert sure[0] == 0.0
    assert sure[-1] == pytest.approx(1.0)
    assert (np.diff(sure) >= 0.0).all()
    if known:  # each candidate all at once
        steps = {round(value, 9) for value in sure}
        assert len(steps) <= 4


@pytest.mark.parametrize("of", OF)
def test_against_draws_of_the_candidates_and_their_scale(of: str) -> None:
    belief = believed(known=False, readings=6, seed=4)
    rng = np.random.default_rng(2)
    mean, variance = belief.marginals()
    middle = belief.weights @ mean
    freedom = 5
    which = rng.choice(3, 20_000, p=belief.weights)
    # Q / c is chi-squared, and E[c] = Q / (freedom - 2) is in the variances.
    factor = (freedom - 2) / rng.chisquare(freedom, len(which))
    square = factor[:, None] * variance[which] + (mean[which] - middle) ** 2
    shares = WEIGHTS / WEIGHTS.sum()
    error = np.sqrt(square @ shares if of == MEAN else square[:, 1:].max(axis=1))
    for allowed in np.quantile(error, [0.1, 0.5, 0.9]):
        expected = float((error <= allowed).mean())
        assert assurance(belief, WEIGHTS, float(allowed), of) == pytest.approx(expected, abs=0.01)
    if of == MEAN:  # the promise is the root mean square of the same
        promise = belief.promise(WEIGHTS)
        assert promise is not None
        assert promise.error == pytest.approx(float(np.sqrt(np.mean(error**2))), rel=0.05)


def test_through_a_logarithm_the_scale_is_as_expected() -> None:
    belief = believed(known=False, transform=LOG, readings=6)
    promise = belief.promise(WEIGHTS)
    assert promise is not None
    for of in OF:
        assert assurance(belief, WEIGHTS, 0.0, of) == 0.0
        assert assurance(belief, WEIGHTS, 100.0 * promise.worst, of) == pytest.approx(1.0)
    assert assurance(belief, WEIGHTS, 0.99 * promise.error, WORST) < 1.0
