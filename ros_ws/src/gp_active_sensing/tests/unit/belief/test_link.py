"""Linked beliefs, compared with direct inversion of the joint covariance of both quantities."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import multivariate_normal

from gp_active_sensing.belief import Belief, BeliefConfig, belief_on
from gp_active_sensing.belief.drift import DriftConfig
from gp_active_sensing.belief.link import (
    SHARES,
    LinkedCovariance,
    follow,
    link_of,
    linked,
    probability_of_link,
)
from gp_active_sensing.errors import ConfigError
from gp_active_sensing.topology import make_grid
from tests.cases import for_each

DENSE = BeliefConfig(
    kernel=("matern12", "se"),
    length_scales=(2.0, 5.0),
    signal_std=(3.0,),
    noise_std=(0.3,),
    mean_std=9.0,
)
SPARSE = BeliefConfig(
    kernel=("matern32", "none"),
    length_scales=(3.0,),
    signal_std=(1.5,),
    place_std=(0.4,),
    noise_std=(0.2,),
    mean_std=9.0,
)


def conditioned(
    K: np.ndarray, noise: float, places: np.ndarray, values: np.ndarray
) -> tuple[np.ndarray, np.ndarray, float]:
    """Return mean, covariance and log-evidence of a field of mean 0 with covariance K."""
    block = K[np.ix_(places, places)] + noise * np.eye(len(places))
    gain = np.linalg.solve(block, K[places]).T
    evidence = multivariate_normal.logpdf(values, np.zeros(len(places)), block)
    return gain @ values, K - gain @ K[places], float(evidence)


def direct(K: np.ndarray, noise: np.ndarray, weights: np.ndarray, *read: np.ndarray) -> tuple:
    """Return mean, covariance and log-evidences of a mixture (L, n, n) of such fields."""
    found = [conditioned(k, r, *read) for k, r in zip(K, noise, strict=True)]
    logs = np.array([evidence for *_, evidence in found])
    b = weights * np.exp(logs - logs.max())
    b /= b.sum()
    mean = sum(w * m for w, (m, *_) in zip(b, found, strict=True))
    C = sum(w * (V + np.outer(m - mean, m - mean)) for w, (m, V, _) in zip(b, found, strict=True))
    return mean, C, logs


def of_one(belief: Belief) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return prior covariances (L, n, n) with the mean's part, noise and prior weights."""
    every = np.arange(belief.n)
    K = belief.covariance.between(every, every) + 81.0
    return K, np.array([h.noise_std**2 for h in belief.hyperparameters]), belief.prior_weights


@for_each("seed", range(100))
def test_it_is_the_belief_of_the_joint_covariance(seed: int) -> None:
    rng = np.random.default_rng(seed)
    grid = make_grid(int(rng.integers(3, 8)), int(rng.integers(3, 7)), 1.0)
    n = grid.n
    dense, template = belief_on(DENSE, grid), belief_on(SPARSE, grid)
    at = rng.permutation(n)[: rng.integers(1, n)]
    values = rng.normal(2.0, 3.0, len(at))
    for place, value in zip(at.tolist(), values.tolist(), strict=True):
        dense.observe(place, value)
    mean, C, _ = direct(*of_one(dense), at, values)
    middle = mean.mean()
    size = (np.square(mean - middle) + np.diag(C)).mean()
    shared = (np.outer(mean - middle, mean - middle) + C) / size
    K, noise, weights = of_one(template)
    own = np.array([h.variance for h in template.hyperparameters])
    K = np.concatenate([K + s * own[:, None, None] * shared for s in SHARES])
    weights = np.outer([0.8, 0.1, 0.1], weights).ravel()
    few = rng.permutation(n)[: rng.integers(1, 8)]
    values = rng.normal(0.0, 2.0, len(few))
    belief = linked(template, dense)
    for place, value in zip(few.tolist(), values.tolist(), strict=True):
        belief.observe(place, value)
    mean, C, logs = direct(K, np.tile(noise, 3), weights, few, values)
    np.testing.assert_allclose(belief.log_evidence, logs, rtol=1e-8, atol=1e-8)
    found = belief.predict()
    np.testing.assert_allclose(found[0], mean, rtol=1e-8, atol=1e-8)
    np.testing.assert_allclose(found[1], np.diag(C), rtol=1e-8, atol=1e-8)
    some = belief.between(np.arange(n), few, np.arange(1, 6, 2))
    np.testing.assert_allclose(belief.cross(few)[1:6:2], np.swapaxes(some, 1, 2), atol=1e-10)
    np.testing.assert_allclose(belief.predict_at(grid.points)[0], mean, rtol=1e-8, atol=1e-8)


def fields(grid: object, rho: float, seed: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    apart = np.linalg.norm(grid.points[:, None] - grid.points[None], axis=2) / 4.0
    root = np.linalg.cholesky((1.0 + apart) * np.exp(-apart) + 1e-9 * np.eye(grid.n))
    dense, rest = (root @ rng.normal(size=(grid.n, 2))).T
    return dense, rho * dense + np.sqrt(1.0 - rho**2) * rest


@for_each(("rho", "least", "most"), [(-0.95, 0.9, 1.0), (0.0, 0.0, 0.6)])
def test_readings_say_whether_there_is_a_link(rho: float, least: float, most: float) -> None:
    grid = make_grid(20, 20, 1.0)
    dense_field, field = fields(grid, rho, 3)
    dense, template = (belief_on(BeliefConfig(), grid, quiet=True) for _ in range(2))
    rng = np.random.default_rng(0)
    places, few = rng.permutation(grid.n)[:120].tolist(), rng.permutation(grid.n)[:14].tolist()
    belief, alone, made = template.copy(), template.copy(), []
    for number, place in enumerate(places):
        dense.observe(place, 1e3 * float(dense_field[place]))
        if number % 8 == 0 and few:
            for each in (belief, alone):
                each.observe(few[0], 7.0 + float(field[few[0]]))
                each.adapt()
            few = few[1:]
        made.append(follow(belief, template, dense))
    assert 10 < sum(made) < 40
    dense.observe(places[-2] + 1, 1e3 * float(dense_field[places[-2] + 1]))
    assert not follow(belief, template, dense)
    assert follow(belief, template, dense, now=True)
    assert not follow(belief, template, dense, now=True)
    assert least < probability_of_link(belief) < most
    errors = [np.sqrt(np.mean((each.predict()[0] - 7.0 - field) ** 2)) for each in (belief, alone)]
    assert errors[0] < (0.6 if rho else 1.03) * errors[1]
    assert belief.grid is not None
    assert len(belief.weights) == len(SHARES) * sum(len(k) for k in belief.grid.kernels)


def test_what_follows_is_as_if_it_had_been_linked_at_once() -> None:
    grid = make_grid(20, 20, 1.0)  # more places than are exact
    dense_field, field = fields(grid, 0.9, 1)
    dense, template = belief_on(DENSE, grid), belief_on(SPARSE, grid)
    belief = linked(template, dense)
    places, of_sparse = list(range(0, 400, 7)), [(p * 3) % 400 for p in range(0, 400, 14)]
    for number, place in enumerate(places):
        dense.observe(place, float(dense_field[place]))
        if number % 2 == 0:
            sparse = of_sparse[number // 2]
            belief.observe(sparse, float(field[sparse]))
        follow(belief, template, dense)
    follow(belief, template, dense, now=True)
    at_once = linked(template, dense)
    for sparse in of_sparse:
        at_once.observe(sparse, float(field[sparse]))
    for found, wanted in zip(belief.predict(), at_once.predict(), strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-9)
    assert probability_of_link(template) == 0.0 < probability_of_link(belief)
    link, every = link_of(dense), np.arange(400)
    w = dense.weights
    means, variances = dense.marginals()
    mean = w @ means
    square = np.square(mean - mean.mean()) + w @ (variances + np.square(means - mean))
    np.testing.assert_allclose(link.variance(every), square / square.mean(), rtol=1e-6)
    assert np.linalg.eigvalsh(link.between(every, every)).min() > -1e-9


def test_without_more_places_there_is_no_link() -> None:
    grid = make_grid(8, 8, 1.0)
    dense_field, field = fields(grid, 0.9, 1)
    dense, template = (belief_on(BeliefConfig(), grid, quiet=True) for _ in range(2))
    belief, alone, were = template.copy(), template.copy(), []
    for place in (0, 9, 18, 27, 36, 45):
        dense.observe(place, float(dense_field[place]))
    for place in (0, 9, 18, 27, 36):
        for each in (belief, alone):
            each.observe(place, float(field[place]))
        follow(belief, template, dense)
        were.append(isinstance(belief.covariance, LinkedCovariance))
    assert were == [False, False, True, True, False]  # 6 places of the other one
    np.testing.assert_allclose(belief.predict(), alone.predict(), rtol=1e-9)


def test_what_cannot_be_linked_is_refused() -> None:
    grid = make_grid(4, 4, 1.0)
    dense = belief_on(DENSE, grid)
    changing = replace(SPARSE, drift=DriftConfig(kind="kernel", time_scale=60.0))
    with pytest.raises(ConfigError):
        linked(belief_on(changing, grid), dense)
    with pytest.raises(ConfigError):
        linked(belief_on(SPARSE, make_grid(5, 4, 1.0)), dense)
