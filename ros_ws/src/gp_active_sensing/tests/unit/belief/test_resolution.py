"""The step of a coarse sensor is estimated from its readings and limits the promised error."""

from __future__ import annotations

import numpy as np
import pytest

import gp_active_sensing as gas
from gp_active_sensing.belief.resolution import Resolution
from tests.cases import for_each

RNG = np.random.default_rng(5)
FINE = 20.0 + 3.0 * RNG.standard_normal(60)


def step_of(values: np.ndarray) -> float:
    found = Resolution()
    for value in values.tolist():
        found.add(value)
    return found.step


@for_each(
    ("values", "step"),
    [
        (np.round(FINE), 1.0),
        (np.round(FINE, 1), 0.1),
        (np.round(FINE * 2) / 2, 0.5),
        (np.round(FINE * 16) / 16, 0.0625),
        (np.round(FINE, 1).astype(np.float32).astype(float), 0.1),
        (1000.0 + np.round(FINE) * 10, 10.0),
        (3.3 / 4096 * np.round(FINE * 40), 3.3 / 4096),
        (np.full(5, 20.0), 1.0),
        (np.full(5, 20.5), 0.5),
        (np.concatenate([np.round(FINE, 1), FINE[:10]]), 0.1),
        (np.zeros(9), 0.0),
        (np.concatenate([np.zeros(82), 0.01 * np.abs(FINE[:18])]), 0.0),
        (np.concatenate([np.full(97, 20.0), FINE[:5]]), 0.0),
        (np.concatenate([np.full(40, 21.0), np.round(FINE)]), 1.0),
        (FINE, 0.0),
        (FINE.astype(np.float32).astype(float), 0.0),
        (101325.0 + 0.01 * FINE, 0.0),
        (np.array([*FINE, 3e-322, 1e99]), 0.0),
    ],
)
def test_a_step_is_found(values: np.ndarray, step: float) -> None:
    assert step_of(values) == pytest.approx(step, rel=1e-3, abs=1e-4 if not step else 0.0)


def test_a_reading_that_is_replaced_is_forgotten() -> None:
    found = Resolution()
    for value in (20.0, 21.0, 22.13):
        found.add(value)
    twin = found.copy()
    found.remove(22.13)
    assert (found.step, twin.step) == (1.0, 0.01)


@for_each("value", [20.0, 7.5, -0.3])
def test_equal_readings_promise_no_less_than_the_step_allows(value: float) -> None:
    grid = gas.make_grid(6, 5, 1.0)
    belief = gas.belief_on(gas.BeliefConfig(), grid)
    for place in range(0, 30, 2):
        for _ in range(3):
            belief.observe(place, value)
    least = step_of(np.full(3, value)) / np.sqrt(12.0)
    mean, variance = belief.predict()
    np.testing.assert_allclose(mean, value, atol=1e-6)
    assert np.sqrt(variance).min() == pytest.approx(least)
    promise = belief.promise(grid.weights)
    assert promise is not None
    assert promise.error >= 0.999 * least
