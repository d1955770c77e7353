"""Beliefs recover the fractions of smooth field, independent component and noise."""

from __future__ import annotations

import numpy as np
import pytest

from gp_active_sensing.belief import BeliefConfig, build_belief
from gp_active_sensing.belief.config import NONE_SHARES, SHARES
from gp_active_sensing.kernels import NONE
from tests.cases import for_each

GRID = np.stack(np.meshgrid(np.arange(14.0), np.arange(14.0)), -1).reshape(-1, 2)
ROUGH = np.exp(-np.sqrt(((GRID[:, None] - GRID[None]) ** 2).sum(-1)) / 4.0)
ROOT = np.linalg.cholesky(ROUGH + 1e-9 * np.eye(len(GRID)))
ALL = (*SHARES, *NONE_SHARES)


def found(shares: tuple[float, float, float], seed: int) -> tuple[float, float]:
    """Return the independent fraction of the field, and the noise, from 60 places read twice."""
    rng = np.random.default_rng([12, seed])
    smooth, own, noise = (share**0.5 for share in shares)
    field = smooth * (ROOT @ rng.standard_normal(len(GRID))) + own * rng.standard_normal(len(GRID))
    config = BeliefConfig(kernel=("matern12", NONE), length_scales=(4.0,))
    belief = build_belief(config, GRID)
    for place in rng.choice(len(GRID), 60, replace=False).tolist():
        for _ in range(2):
            belief.observe(place, 50.0 + 7.0 * float(field[place] + noise * rng.standard_normal()))
    alone = [
        1.0 if h.kernel == NONE else h.place_std**2 / h.variance for h in belief.hyperparameters
    ]
    return float(belief.weights @ alone), float(belief.weights @ np.sqrt(belief.noise_variance))


@for_each("number", range(len(ALL)))
def test_the_shares_of_a_field_are_found(number: int) -> None:
    """The independent fraction is correct within 0.2, and the noise within a sixth."""
    smooth, own, noise = ALL[number]
    alone, std = np.mean([found(ALL[number], seed) for seed in range(8)], axis=0)
    assert abs(alone - own / (smooth + own)) < 0.2
    assert std == pytest.approx(7.0 * noise**0.5, rel=1.0 / 6.0)
