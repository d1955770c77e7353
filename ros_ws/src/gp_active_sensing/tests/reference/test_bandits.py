"""Choices of the policies, compared with a plain implementation at O(n³)."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import norm

from gp_active_sensing.belief import BeliefConfig, build_belief
from gp_active_sensing.kernels import build_kernel
from gp_active_sensing.planning import build_policy
from gp_active_sensing.topology import FreeTopology
from tests.cases import for_each
from tests.reference.direct_bayes import DirectBelief
from tests.requesting import asked


def direct_moments(direct: DirectBelief, n: int) -> tuple[np.ndarray, np.ndarray]:
    everywhere = np.arange(n)
    parts = [direct.posterior(h, everywhere)[:2] for h in direct.hyperparameters]
    weights = direct.weights()
    mean = sum(w * m for w, (m, _) in zip(weights, parts, strict=True))
    variance = sum(
        w * (np.diagonal(C) + (m - mean) ** 2) for w, (m, C) in zip(weights, parts, strict=True)
    )
    return mean, np.sqrt(np.maximum(variance, 0.0))


def direct_scores(name: str, mean: np.ndarray, std: np.ndarray, t: int) -> np.ndarray:
    n = len(mean)
    if name == "gp_ucb":
        return mean + math.sqrt(2 * math.log(n * t**2 * math.pi**2 / 0.6) / 5.0) * std
    if name == "ei":
        u = (mean - mean.max()) / std
        return std * (norm.pdf(u) + u * norm.cdf(u))
    if name == "pi":
        return norm.cdf((mean - mean.max() - 0.3) / std)
    if name == "mean_only":
        return mean
    if name == "variance_only":
        return std
    levels = np.linspace(mean.max(), (mean + 9 * std).max(), 20_001)
    exceeding = 1.0 - np.prod(norm.cdf((levels[:, None] - mean) / std), axis=1)
    highest = mean.max() + float((0.5 * (exceeding[1:] + exceeding[:-1]) * np.diff(levels)).sum())
    return -(highest - mean) / std


KEYS = {"gp_ucb": {"scale": 5.0}, "pi": {"margin": 0.3}}


@pytest.mark.slow
@for_each("seed", range(6))
@for_each("name", ["gp_ucb", "ei", "pi", "mean_only", "variance_only", "est"])
def test_choices_are_those_of_plain_bayes(name: str, seed: int) -> None:
    rng = np.random.default_rng([seed, 8])
    n = 14
    positions = rng.uniform(0, 6, (n, 2))
    topology = FreeTopology("random", "map", [str(i) for i in range(n)], positions)
    scales = (0.7, 2.0, 5.0) if seed % 2 else (1.5,)
    config = BeliefConfig(
        length_scales=scales, signal_std=(1.0,), noise_std=(0.3,), mean_std=2.0 * (seed % 3)
    )
    belief = build_belief(config, positions)
    std = np.array([2.0 * (seed % 3)])
    direct = DirectBelief(
        build_kernel("se"),
        positions,
        belief.covariance.hyperparameters,
        np.ones((n, 1)),
        std,
        np.zeros(n),
        np.full(len(scales), 1.0 / len(scales)),
    )
    policy = build_policy({"name": name, **KEYS.get(name, {})})
    state = None
    field = rng.normal(0, 1, n)
    for t in range(1, 16):
        plan, state = policy.plan(
            asked(belief, topology, None, rng=np.random.default_rng(t)), state
        )
        scores = direct_scores(name, *direct_moments(direct, n), t)
        place = plan.waypoint
        assert place is not None
        # Rounding may swap places that are as good as equal, no others.
        assert scores[place] >= scores.max() - 1e-7 * max(1.0, abs(scores.max()))
        value = float(field[place] + 0.3 * rng.standard_normal())
        belief.observe(place, value)
        direct.observe(place, value)
