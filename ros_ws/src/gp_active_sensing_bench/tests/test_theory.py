"""The bounds of the papers, against enumeration and closed form."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy.optimize import minimize

from gp_active_sensing.planning.bandits.gp_ucb import constant
from gp_active_sensing.planning.bandits.information_gain import SHARE
from gp_active_sensing_bench.theory import (
    allocation,
    batch_est_bound,
    batch_ucb_bound,
    dpp_sample_bound,
    est_bound,
    greedy_gain,
    information_gain,
    recommended_share,
    recommended_window,
    spectral_bound,
    trace_bound,
    ucb_bound,
)


def kernel_of(seed: int, n: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    x = rng.uniform(0, 4, n)
    return rng.uniform(0.5, 3) * np.exp(-0.5 * (x[:, None] - x) ** 2)


def test_the_gain_is_half_a_log_determinant_also_of_places_read_twice() -> None:
    K = kernel_of(0, 4)
    sign, value = np.linalg.slogdet(np.eye(4) + K / 0.3)
    assert sign > 0
    assert information_gain(K, 0.3) == pytest.approx(0.5 * value)
    twice = K[np.ix_([1, 1], [1, 1])]
    assert information_gain(twice, 0.3) == pytest.approx(0.5 * math.log1p(2 * K[1, 1] / 0.3))


@pytest.mark.seeds
def test_greedy_and_its_bounds_enclose_the_best(seed: int) -> None:
    n, T = 5, 4
    K, noise = kernel_of(seed, n), [0.05, 0.5][seed % 2]
    best = max(
        information_gain(K[np.ix_(a, a)], noise)
        for a in itertools.combinations_with_replacement(range(n), T)
    )
    greedy = greedy_gain(K, noise, T)[T]
    values = np.linalg.eigvalsh(K)
    assert SHARE * best <= greedy <= best + 1e-12
    assert best <= greedy / SHARE
    assert best <= trace_bound(values, noise, T) + 1e-12
    assert trace_bound(values, noise, T) <= spectral_bound(values, noise, T) + 1e-12


@pytest.mark.seeds
def test_whole_readings_are_shared_out_as_well_as_can_be(seed: int) -> None:
    rng = np.random.default_rng(seed)
    values = np.concatenate([rng.exponential(1.0, 3), [0.0] * (seed % 2)])
    noise, T = float(rng.uniform(0.05, 2)), int(rng.integers(0, 8))
    found = allocation(values, noise, T)
    assert found.sum() == T
    assert (found >= 0).all()

    def gained(m) -> float:
        return float(np.log1p(np.array(m) * values / noise).sum())

    best = max(
        gained(m) for m in itertools.product(range(T + 1), repeat=len(values)) if sum(m) == T
    )
    assert gained(found) == pytest.approx(best)


def test_real_readings_are_shared_out_as_well_as_can_be() -> None:
    values, noise, T = np.array([2.0, 0.7, 0.1, 0.0]), 0.3, 3.0
    result = minimize(
        lambda m: -np.log1p(m * values / noise).sum(),
        np.full(4, T / 4),
        bounds=[(0, T)] * 4,
        constraints={"type": "eq", "fun": lambda m: m.sum() - T},
        options={"ftol": 1e-12},
    )
    assert trace_bound(values, noise, 3) == pytest.approx(-0.5 * result.fun, abs=1e-7)
    assert trace_bound(values, noise, 0) == 0.0
    assert trace_bound(np.zeros(3), noise, 5) == 0.0
    assert spectral_bound(np.zeros(3), noise, 5) == 0.0


def test_many_readings_are_shared_out_without_counting_to_them() -> None:
    values = np.random.default_rng(1).exponential(1.0, 500)
    m = allocation(values, 0.1, 10**9)
    assert m.sum() == 10**9
    assert np.ptp(m + 0.1 / values) < 1.0 + 1e-6


# -- bounds on the regret --------------------------------------------------------------------------


def test_the_constants_and_bounds_are_those_of_the_papers() -> None:
    assert constant(1.0, 0.04) == pytest.approx(8.0 / math.log(1 + 1 / 0.04))
    # In other units of the readings v and σ² grow together, and C₁ with them.
    assert constant(9.0, 0.36) == pytest.approx(9.0 * constant(1.0, 0.04))
    assert ucb_bound(100, 20.0, 8.0, 2.5) == pytest.approx(math.sqrt(2.5 * 100 * 20.0 * 8.0))
    assert ucb_bound(100, 20.0, 8.0, 2.5, 2.0) == pytest.approx(200.0 + 2.0)
    zeta = 2 * math.log(math.pi**2 * 50**2 / (6 * 0.1))
    expected = math.sqrt(0.6 * 50 * 8.0) * (3.0 + math.sqrt(zeta))
    assert est_bound(50, 3.0, 8.0, 0.6, 0.1) == pytest.approx(expected)
    assert batch_ucb_bound(50, 5, 20.0, 8.0, 11.0) == pytest.approx(
        math.sqrt(11.0 * 50 * 5 * 20.0 * 8.0)
    )
    zeta = 2 * math.log(math.pi**2 * 50**2 / (3 * 0.1))
    expected = math.sqrt(11.0 * 50 * 5 * 8.0) * (3.0 + math.sqrt(zeta))
    assert batch_est_bound(50, 5, 3.0, 8.0, 11.0, 0.1) == pytest.approx(expected)
    largest = batch_ucb_bound(50, 5, 20.0, 8.0, 11.0)
    entropy = 50 * 4 * math.log(1000)  # as spread as can be
    assert dpp_sample_bound(50, 5, 20.0, 8.0, 11.0, 1000, 0.0) == largest
    assert dpp_sample_bound(50, 5, 20.0, 8.0, 11.0, 1000, entropy) == largest
    little = dpp_sample_bound(50, 5, 20.0, -2.0 + 8.0, 11.0, 1000, entropy)
    assert little == pytest.approx(math.sqrt(11.0 * 50 * 5 * 20.0 * 6.0))


def test_recommended_parameters() -> None:
    assert recommended_window(400, 1.0, 16.0) == pytest.approx(2.0 * 20.0)
    assert recommended_window(400, 1e9, 16.0) == 1.0
    assert recommended_window(4, 0.01, 16.0) == 4.0
    assert recommended_share(400, 1.0, 16.0) == pytest.approx(1.0 - 1.0 / 40.0)
    assert 0.0 < recommended_share(10, 1e9, 1.0) < 1.0
