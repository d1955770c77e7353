"""Readings select the identity or a logarithm."""

from __future__ import annotations

import numpy as np
import pytest

import gp_active_sensing as gas
from gp_active_sensing.belief import Belief
from gp_active_sensing.belief.prior import IDENTITY, Log
from gp_active_sensing.planning.map_error import map_error_of
from tests.cases import for_each

GRID = gas.make_grid(12, 10, 1.0)
APART = np.linalg.norm(GRID.positions[:, None] - GRID.positions[None], axis=2) * np.sqrt(3.0) / 4.0
ROOT = np.linalg.cholesky((1.0 + APART) * np.exp(-APART) + 1e-9 * np.eye(GRID.n))


def normal(seed: int) -> np.ndarray:
    return ROOT @ np.random.default_rng([8, seed]).standard_normal(GRID.n)


def told(values: np.ndarray, transform: str | None = None, count: int = 60) -> Belief:
    belief = gas.belief_on(gas.BeliefConfig(transform=transform), GRID)
    for place in np.random.default_rng(4).permutation(GRID.n)[:count].tolist():
        belief.observe(place, float(values[place]))
        belief.adapt()
    return belief


@for_each("unit", [1e-3, 1.0, 1e4])
def test_a_skewed_field_is_seen_through_its_logarithm(unit: float) -> None:
    """The logarithm makes the true values more probable, in any unit."""
    field = unit * np.exp(normal(1))
    chosen, plain = told(field), told(field, "identity")
    assert isinstance(chosen.transform, Log)
    assert plain.transform is IDENTITY
    left = np.flatnonzero(~chosen.visited)
    inside = []
    for belief in (chosen, plain):
        low, high = belief.mixture(left).quantiles(np.array([0.05, 0.95]))
        inside.append((np.mean((low < field[left]) & (field[left] < high)), np.mean(high - low)))
    assert inside[0][0] > 0.8
    assert inside[0][1] < inside[1][1], "intervals are narrower where values are small"


@for_each("offset", [-30.0, 0.0, 30.0])
def test_a_normal_field_stays_as_it_is(offset: float) -> None:
    assert told(normal(2) + offset).transform is IDENTITY


def test_a_value_that_has_no_logarithm_ends_it() -> None:
    field = np.exp(normal(1))
    belief = told(field)
    assert isinstance(belief.transform, Log)
    unread = int(np.flatnonzero(~belief.visited)[0])
    belief.observe(unread, -50.0)
    assert belief.transform is IDENTITY
    assert belief.predict(np.array([unread]))[0] < -25.0


def test_it_is_a_function_of_the_readings() -> None:
    """Queries in between, copies and amended readings do not change the selection."""
    field = np.exp(normal(3))
    places = np.random.default_rng(4).permutation(GRID.n)[:40].tolist()
    first, other = (gas.belief_on(gas.BeliefConfig(), GRID) for _ in range(2))
    for number, place in enumerate(places):
        first.observe(place, float(field[place]))
        if number % 5 == 0:
            other.observe(place, 3.0 * float(field[place]))
            before = 3.0 * float(field[place]), None, 0.0, None
            other.amend(place, before, float(field[place]))
        else:
            other.observe(place, float(field[place]))
        other = other.copy()
        assert np.isfinite(other.weights).all()
        first.adapt()
        other.adapt()
    assert isinstance(first.transform, Log)
    assert other.transform == first.transform
    np.testing.assert_allclose(other.weights, first.weights, atol=1e-9)
    np.testing.assert_allclose(other.predict()[0], first.predict()[0], rtol=1e-8)


def test_the_error_of_a_map_is_in_the_readings_unit() -> None:
    """The planner's error equals the promised error to first order."""
    field = 100.0 + 8.0 * np.exp(0.5 * normal(1))
    belief = told(field, "log")
    found = map_error_of(belief, GRID, np.flatnonzero(~belief.visited))
    promise = belief.promise(GRID.weights)
    assert promise is not None
    assert np.sqrt(found.weights @ found.total) == pytest.approx(promise.error, rel=0.2)


@for_each("given", [{"signal_std": (1.0,)}, {"noise_std": (0.1,)}, {"transform": "identity"}])
def test_what_is_given_in_a_unit_keeps_it(given: dict[str, object]) -> None:
    belief = gas.belief_on(gas.BeliefConfig(**given), GRID)  # type: ignore[arg-type]
    field = np.exp(normal(1))
    for place in range(0, GRID.n, 2):
        belief.observe(place, float(field[place]))
        belief.adapt()
    assert belief.transform is IDENTITY


def test_one_reading_without_a_logarithm_is_enough_to_take_none() -> None:
    """This also holds if the place's average has a logarithm, or if the reading is the first."""
    field = np.exp(normal(1))
    belief = gas.belief_on(gas.BeliefConfig(), GRID)
    belief.observe(5, -0.2)
    belief.observe(5, 2.0 * float(field[5]) + 1.0)
    for place in range(0, GRID.n, 2):
        belief.observe(place, float(field[place]))
        belief.adapt()
    assert belief.transform is IDENTITY


@for_each("value", [0.3, 0.1, 1e-30])
def test_equal_readings_choose_nothing(value: float) -> None:
    belief = gas.belief_on(gas.BeliefConfig(), GRID)
    for place in range(0, GRID.n, 3):
        for _ in range(3):
            belief.observe(place, value)
        belief.adapt()
    assert belief.transform is IDENTITY
    assert belief.predict()[0] == pytest.approx(value)


@for_each("unit", [1e-3, 1.0, 1e3])
def test_steps_hide_as_much_in_any_unit(unit: float) -> None:
    """Under a logarithm, rounding is compared with the noise in the readings' unit."""
    field = 4.0 + 3.0 * np.exp(normal(1))
    belief = gas.belief_on(gas.BeliefConfig(), GRID)
    for place in np.random.default_rng(4).permutation(GRID.n)[:60].tolist():
        belief.observe(place, unit * round(float(field[place])))
        belief.adapt()
    read = np.flatnonzero(belief.visited)
    mean, variance = belief.predict(read)
    off = np.abs(mean / unit - field[read])
    assert np.mean(off < 1.645 * np.sqrt(variance) / unit) > 0.8


def test_the_choice_does_not_depend_on_what_the_candidates_followed() -> None:
    """Adapted candidates do not favour the transform under which they adapted."""
    field = np.exp(normal(3))
    followed, late = told(field), gas.belief_on(gas.BeliefConfig(transform=None), GRID)
    for place in np.random.default_rng(4).permutation(GRID.n)[:60].tolist():
        late.observe(place, float(field[place]))
    for transform in (IDENTITY, Log(0.0)):
        first, second = followed._evidence_of(transform), late._evidence_of(transform)
        assert first == pytest.approx(second, abs=1e-6)
