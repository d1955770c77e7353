"""Improvement and EST against quadrature and formulas; logarithms where probabilities vanish."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import norm

from gp_active_sensing.belief import BeliefConfig, build_belief
from gp_active_sensing.planning import build_policy
from gp_active_sensing.planning.bandits.acquisition import (
    est_a,
    est_n,
    log_exceedance,
    log_expected_improvement,
)
from gp_active_sensing.planning.bandits.base import view_of
from tests.cases import for_each


@for_each("u", [-7.0, -2.0, -1.0, -0.5, 0.0, 0.3, 4.0])
@for_each("std", [0.1, 1.0, 5.0])
def test_expected_improvement_is_its_integral(u: float, std: float) -> None:
    incumbent = 0.2
    mean = incumbent + u * std

    def integrand(f: float) -> float:
        return (f - incumbent) * norm.pdf(f, mean, std)

    middle, top = max(mean, incumbent + std), max(mean, incumbent) + 12 * std
    expected = quad(integrand, incumbent, middle, epsabs=0)[0]
    expected += quad(integrand, middle, top, epsabs=0)[0]
    found = log_expected_improvement(np.array([u]), np.array([std]))[0]
    assert math.exp(found) == pytest.approx(expected, rel=1e-6)


def test_its_logarithm_goes_on_where_it_is_no_float_any_more() -> None:
    u = -np.geomspace(0.5, 1e9, 400)
    logs = log_expected_improvement(u, np.ones(400))
    assert np.isfinite(logs).all()
    assert (np.diff(logs) < 0).all(), "farther below is less, without a step"
    # The leading terms of its tail: φ(u)/u² (1 - 3/u² + 15/u⁴ - …).
    for at in (-50.0, -9e3, -1.1e4, -1e8):
        tail = norm.logpdf(at) - 2 * math.log(-at) + math.log1p(-3 / at**2 + 15 / at**4)
        found = log_expected_improvement(np.array([at]), np.ones(1))[0]
        assert found == pytest.approx(tail, rel=1e-9)


@for_each("incumbent", ["mean", "reading"])
@for_each("margin", [None, 0.7])
def test_policies_improve_on_what_they_say(incumbent: str, margin: float | None) -> None:
    config = BeliefConfig(length_scales=(2.0,), signal_std=(1.0,), noise_std=(0.4,), mean_std=0.0)
    belief = build_belief(config, np.arange(9.0)[:, None])
    for place, value in ((2, 1.0), (2, 2.0), (6, 0.5)):
        belief.observe(place, value)
    view = view_of(belief, np.array([0, 3, 8]))
    mean, variance = belief.predict()
    standing = mean.max() if incumbent == "mean" else 1.5
    rng = np.random.default_rng(0)
    keys = {"incumbent": incumbent, "margin": margin}
    where = view.locations
    for name, share in (("pi", 0.25), ("ei", 0.0)):
        level = standing + (share * 0.4 if margin is None else margin)
        u = (mean[where] - level) / np.sqrt(variance[where])
        scores = build_policy({"name": name, **keys}).scores(view, belief, rng)
        if name == "pi":
            np.testing.assert_allclose(norm.cdf(scores), norm.sf(-u), rtol=1e-9)
        else:
            std = np.sqrt(variance[where])
            expected = std * (norm.pdf(u) + u * norm.cdf(u))
            np.testing.assert_allclose(np.exp(scores), expected, rtol=1e-9)


def quadrature(mean: np.ndarray, std: np.ndarray, start: float) -> float:
    """``m₀ + ∫ [1 - Π Φ]`` by adaptive quadrature between the means' own levels."""

    def exceeding(w: float) -> float:
        return 1.0 - float(np.prod(norm.cdf((w - mean) / std)))

    levels = np.concatenate([mean + k * std for k in (-6, -3, -1, 0, 1, 3, 6, 9)])
    edges = np.unique(np.concatenate([[start], levels[levels > start]]))
    parts = [
        quad(exceeding, a, b, epsabs=1e-10, epsrel=1e-10, limit=200)[0]
        for a, b in itertools.pairwise(edges)
    ]
    return start + math.fsum(parts)


@pytest.mark.seeds
def test_estn_is_its_integral(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 12))
    mean = rng.normal(0, 2, n)
    # Some are nearly certain: steps in the integrand.
    std = 10.0 ** rng.uniform(-4, 0.5, n)
    start = float(rng.normal(0, 2))
    assert est_n(mean, std, start) == pytest.approx(quadrature(mean, std, start), abs=1e-6)


def test_estn_of_what_is_certain() -> None:
    assert est_n(np.array([1.0, 3.0]), np.zeros(2), 2.0) == 3.0
    assert est_n(np.array([1.0, 3.0]), np.zeros(2), 5.0) == 5.0
    assert est_n(np.array([1.0]), np.array([0.1]), 40.0) == 40.0
    # A certain place at 3, an uncertain one at 0: E[max(3, f)].
    expected = 3.0 + norm.pdf(3.0) - 3.0 * norm.sf(3.0)
    assert est_n(np.array([0.0, 3.0]), np.array([1.0, 0.0]), 1.0) == pytest.approx(expected)


@pytest.mark.seeds
def test_esta_is_its_formula(seed: int) -> None:
    rng = np.random.default_rng([5, seed])
    n = int(rng.integers(1, 30))
    mean, std = rng.normal(0, 1, n), rng.uniform(0.1, 2.0, n)
    start = float(mean.max() + rng.uniform(0.0, 2.0))
    h = float(std.max())
    p1 = 1.0 - np.prod(norm.cdf((start + h - mean) / std))
    while p1 > 0.5:
        h *= 2.0
        p1 = 1.0 - np.prod(norm.cdf((start + h - mean) / std))
    p0 = 1.0 - np.prod(norm.cdf((start - mean) / std))
    s = h / math.sqrt(-2.0 * math.log(p1))
    expected = max(start + s * p0 * math.sqrt(math.pi / 2.0), mean.max())
    assert est_a(mean, std, start) == pytest.approx(expected, rel=1e-9)


def test_probabilities_of_exceeding_a_level_in_logarithms() -> None:
    mean, std = np.zeros(2), np.ones(2)
    # Far above: 2 Φ(-w) is 1e-350, less than any float.
    assert log_exceedance(40.0, mean, std) == pytest.approx(
        math.log(2.0) + norm.logsf(40.0), rel=1e-9
    )
    assert log_exceedance(1.0, mean, std) == pytest.approx(math.log(1 - norm.cdf(1.0) ** 2))
    assert log_exceedance(-60.0, mean, std) == pytest.approx(0.0, abs=1e-300)


def test_estn_of_what_is_certain_but_for_rounding() -> None:
    for value in (1.0, -1.0, 101_325.0):
        mean, std = np.full(5, value), np.full(5, 1e-17 * abs(value))
        below = float(np.nextafter(value, -np.inf))
        assert below <= est_n(mean, std, below) <= value * (1.0 + np.sign(value) * 1e-14)
