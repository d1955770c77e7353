"""Promised error of a map, its probability, and the lower bound of any promise."""

from __future__ import annotations

import numpy as np
import pytest

from gp_active_sensing.belief import Belief, BeliefConfig, belief_on
from gp_active_sensing.belief import promise as module
from gp_active_sensing.belief.aim import SURE, AimForecast, assurance
from gp_active_sensing.belief.prior import (
    LOG,
    FeatureCovariance,
    HyperParameters,
    PriorMean,
    Transform,
)
from gp_active_sensing.belief.promise import MOST_PLACES, floor_of, promise_of
from gp_active_sensing.kernels import kernels
from gp_active_sensing.topology import make_line
from gp_active_sensing.types import MEAN, WORST, Aim, FloatArray
from tests.cases import for_each

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


@for_each("transform", [None, LOG])
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


@for_each("case", [(MEAN, None), (MEAN, LOG), (WORST, None)])
def test_against_draws_of_the_candidates_and_their_scale(
    case: tuple[str, Transform | None],
) -> None:
    of, transform = case
    plain = transform is None
    # Of much uncertainty through a logarithm the probability is too small.
    belief = believed(known=not plain, readings=6 if plain else 11, seed=4, transform=transform)
    rng = np.random.default_rng(2)
    every = belief.mixture()
    middle = every.moments()[0]
    freedom, count = 5, 20_000
    which = rng.choice(3, count, p=belief.weights)
    # Q / c is chi-squared, and E[c] = Q / (freedom - 2) is in the variances.
    factor = (freedom - 2) / rng.chisquare(freedom, count) if plain else np.ones(count)
    shares = WEIGHTS / WEIGHTS.sum()
    if of == MEAN:
        joint = belief.joint(np.arange(N))
        roots = np.linalg.cholesky(joint.covariance + 1e-12 * np.eye(N))
        off = np.einsum("kij,kj->ki", roots[which], rng.standard_normal((count, N)))
        field = joint.mean[which] + np.sqrt(factor)[:, None] * off
        error = np.sqrt(np.square(every.transform.inverse(field) - middle) @ shares)
    else:
        mean, variance = every.transform.moments(every.mean, every.variance)
        square = factor[:, None] * variance[which] + (mean[which] - middle) ** 2
        error = np.sqrt(square[:, 1:].max(axis=1))
    for allowed in np.quantile(error, [0.5, 0.9, 0.95]):
        expected = float((error <= allowed).mean())
        found = assurance(belief, WEIGHTS, float(allowed), of)
        # Two moments stand for a quadratic form.
        assert found == pytest.approx(expected, abs=0.04 if of == MEAN else 0.01)
    if of == MEAN:  # the promise is the root mean square of the same
        promise = belief.promise(WEIGHTS)
        assert promise is not None
        assert promise.error == pytest.approx(float(np.sqrt(np.mean(error**2))), rel=0.1)


def test_a_forecast_is_met_by_promise_and_assurance_together() -> None:
    belief = believed(known=False, readings=6, seed=4)
    promise = belief.promise(WEIGHTS)
    assert promise is not None
    every, ones = np.arange(3), np.ones(3)
    for factor, met in ((1.01, False), (100.0, True), (0.5, False)):
        aim = Aim(factor * promise.error, MEAN)
        forecast = AimForecast(aim, belief, WEIGHTS, every, belief.weights)
        assert forecast.met(ones) == met, factor
    assert assurance(belief, WEIGHTS, 1.01 * promise.error) < SURE


def belief_over(
    n: int,
    rng: np.random.Generator,
    *,
    mean_std: float = 0.0,
    known: bool = True,
    slope: bool = False,
) -> Belief:
    """Return a belief with three length-scales over n random places of a plane."""
    places = rng.uniform(0, 4, (n, 2))
    candidates = [
        HyperParameters((ell,), signal, noise)
        for ell, signal, noise in ((0.5, 1.0, 0.3), (1.5, 2.0, 0.1), (4.0, 1.0, 0.5))
    ]
    covariance = FeatureCovariance(kernels.factory("matern32")(), places, candidates)
    mean = PriorMean.constant(n, 0.0, mean_std)
    if slope:
        mean = PriorMean.linear(places, 0.0, mean_std)
    return Belief(covariance, mean, scale_known=known)


def left(belief: Belief, weights: FloatArray) -> float:
    """Return the promised error without the differences between the candidates' means."""
    _, variance = belief.marginals()
    return float(belief.weights @ variance @ weights / weights.sum()) ** 0.5


@pytest.mark.seeds
def test_random_cases_all_ways_at_once(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n = int(rng.integers(3, 25))
    known = bool(rng.integers(2))
    belief = belief_over(
        n,
        rng,
        mean_std=float(rng.choice([0.3, 10.0, 1e6])),
        known=known,
        slope=bool(rng.integers(2)),
    )
    weights = rng.uniform(0, 2, n) * (rng.random(n) < 0.8)
    weights[0] = 1.0
    for _ in range(int(rng.integers(6, 20))):  # places are read again, with noise of their own
        variance = float(rng.uniform(0.001, 2)) if rng.random() < 0.4 else None
        belief.observe(int(rng.integers(n)), float(rng.normal()), variance)
    found = belief.floor(weights)
    assert found is not None
    assert found.error <= left(belief, weights) * (1 + 1e-9)
    promise = belief.promise(weights)
    assert promise is not None
    assert found.error <= promise.error <= promise.worst


def test_it_is_reached_where_places_are_independent() -> None:
    n, k = 6, 4
    covariance = FeatureCovariance(
        kernels.factory("se")(), 100.0 * np.arange(n)[:, None], [HyperParameters((1.0,), 2.0, 0.5)]
    )
    belief = Belief(covariance, PriorMean.known(n, 0.0))
    for place in range(k):
        belief.observe(place, 0.0)
    found = belief.floor(np.ones(n))
    assert found is not None
    exact = ((n - k) * 4.0 + k * 4.0 * 0.25 / 4.25) / n
    assert found.error == pytest.approx(exact**0.5)
    assert found.error == pytest.approx(left(belief, np.ones(n)))


def test_parts_of_a_map_bound_it_as_well(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(5)
    belief = belief_over(60, rng, mean_std=10.0)
    for place in range(0, 60, 10):
        belief.observe(place, float(rng.normal()))
    whole = floor_of(belief._updated, belief.weights, np.ones(60))
    monkeypatch.setattr(module, "_NUMBERS", 3 * 20**2)
    parts = floor_of(belief._updated, belief.weights, np.ones(60))
    assert 0.5 * whole.error < parts.error < whole.error <= left(belief, np.ones(60))


def test_where_it_is_not_worked_out() -> None:
    weights = np.ones(MOST_PLACES + 1)
    large = belief_on(
        BeliefConfig(length_scales=(3.0,), signal_std=(1.0,), noise_std=(0.1,)),
        make_line(MOST_PLACES + 1, 1.0),
    )
    large.observe(0, 1.0)
    assert large.promise(weights) is not None
    assert large.floor(weights) is None
    rng = np.random.default_rng(0)
    plain = belief_over(5, rng)
    through_log = Belief(plain.covariance, plain.mean, transform=LOG)
    through_log.observe(1, 3.0)
    assert through_log.floor(np.ones(5)) is None
