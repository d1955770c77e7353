"""When a kernel has converged: with settings in the proportions of the default ones."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from gp_active_sensing.kernels.grammar import parse
from gp_active_sensing_learning.data.dataset import Dataset
from gp_active_sensing_learning.kernel_selection import VbksConfig, select_kernels
from tests.cases import for_each

pytestmark = pytest.mark.heavy("learn")

SMALL = VbksConfig(inducing=8, batch=100, restarts=1, iterations=1000, evaluate_every=50)


def rows() -> Dataset:
    rng = np.random.default_rng(4)
    X = rng.uniform(-5.0, 5.0, size=(400, 1))
    return Dataset(X, np.sin(X[:, 0]) + 0.2 * rng.normal(size=400), ("x",), "v", "made rows")


@for_each("hyperparameters", ["full", "point"])
@pytest.mark.long
def test_kernels_converge_before_the_limit(hyperparameters: str) -> None:
    default = VbksConfig()
    assert SMALL.iterations * default.evaluate_every == default.iterations * SMALL.evaluate_every
    config = dataclasses.replace(SMALL, hyperparameters=hyperparameters)
    (fit,) = select_kernels(rows(), [parse("SE")], config).fits
    assert fit.outcome.startswith("converged: the bound rose by less than 0.001 nat a row")
    assert ("3 sizes of the step" in fit.outcome) == (hyperparameters == "point")
    assert fit.iterations < config.iterations
    # What is left to gain is as little as is said.
    on = dataclasses.replace(config, patience=1000, iterations=2000)
    (longer,) = select_kernels(rows(), [parse("SE")], on).fits
    assert longer.outcome.startswith("stopped at the limit")
    assert longer.bound - fit.bound < 3 * 0.001 * len(rows())
