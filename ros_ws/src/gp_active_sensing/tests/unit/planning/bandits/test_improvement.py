"""Expected and probable improvement against quadrature, and far below the incumbent."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import norm

from gp_active_sensing.belief import BeliefConfig, build_belief
from gp_active_sensing.planning import build_policy
from gp_active_sensing.planning.bandits.improvement import log_expected_improvement
from gp_active_sensing.planning.bandits.view import view_of


@pytest.mark.parametrize("u", [-7.0, -2.0, -1.0, -0.5, 0.0, 0.3, 4.0])
@pytest.mark.parametrize("std", [0.1, 1.0, 5.0])
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


@pytest.mark.parametrize("incumbent", ["mean", "reading"])
@pytest.mark.parametrize("margin", [None, 0.7])
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
