"""Repeated readings of a place determine the noise only, and never make a map worse."""

from __future__ import annotations

import numpy as np
import pytest

import gp_active_sensing as gas
from gp_active_sensing.belief.prior import noise_estimate
from tests.cases import for_each

GRID = gas.make_grid(10, 10, 5.0)
APART = np.linalg.norm(GRID.positions[:, None] - GRID.positions[None], axis=2) * np.sqrt(3.0) / 20.0
ROOT = np.linalg.cholesky(4.0 * (1.0 + APART) * np.exp(-APART) + 1e-9 * np.eye(100))
NOISE = 0.05


def mapped(seed: int, count: int, how: str) -> tuple[float, float]:
    """Return the mean squared error at 80 unobserved places, and the 90 % intervals' coverage."""
    rng = np.random.default_rng([3, seed])
    field = 15.0 + ROOT @ rng.standard_normal(100)
    places = rng.choice(100, 20, replace=False)
    belief = gas.belief_on(gas.BeliefConfig(), GRID)
    for place in places.tolist():
        values = field[place] + NOISE * rng.standard_normal(count)
        if how == "averaged":
            belief.observe(place, float(values.mean()))
        else:
            for value in values.tolist():
                belief.observe(place, value, NOISE**2 if how == "stated" else None)
        belief.adapt()
    left = np.setdiff1d(np.arange(100), places)
    mean, variance = belief.predict(left)
    off = mean - field[left]
    inside = np.abs(off) < 1.645 * np.sqrt(variance)
    return float(np.mean(off**2)), float(inside.mean())


def test_more_readings_of_a_place_never_make_the_map_worse() -> None:
    """Single readings, averages and readings with a stated variance give equally good maps."""
    scores = {}
    for count, how in ((1, "plain"), (30, "plain"), (30, "stated"), (30, "averaged")):
        square, held = np.mean([mapped(seed, count, how) for seed in range(6)], axis=0)
        assert held > 0.78, (count, how)
        scores[count, how] = np.sqrt(square)
    once = scores.pop((1, "plain"))
    for what, error in scores.items():
        assert error < 1.1 * once, what


@for_each("unit", [0.01, 1.0, 400.0])
def test_differences_of_readings_tell_the_noise(unit: float) -> None:
    guesses = np.array([1e-4, 0.02, 0.3])
    many = noise_estimate(guesses, np.full(3, unit), 5000.0, 5000.0 * 0.09)
    np.testing.assert_allclose(many, 0.09 / unit, rtol=0.2)
    few = noise_estimate(guesses, np.full(3, unit), 1.0, 0.09)
    assert (np.diff(few) > 0.0).all(), "one difference leaves something of each guess"


def test_a_reading_more_of_a_place_is_no_reading_more_of_the_field() -> None:
    belief = gas.belief_on(gas.BeliefConfig(), GRID)
    for _ in range(20):
        belief.observe(3, 15.0 + 0.01)
    assert not belief.settled
    np.testing.assert_allclose(belief.weights, belief.prior_weights)
    for place in (50, 77, 99):
        belief.observe(place, 15.0 + 0.02 * place)
    assert belief.settled


@for_each("stated", [None, 0.01])
def test_a_reading_that_is_published_again_counts_once(stated: float | None) -> None:
    """Repetitions by a fast driver do not count; equal rounded values are separate readings."""
    rng = np.random.default_rng(2)
    exact = [(place, float(rng.normal(15.0, 1.0))) for place in range(0, 100, 7) for _ in range(3)]
    for step, once in ((None, True), (0.5, False)):
        values = [(p, v if step is None else step * round(v / step)) for p, v in exact]
        slow, fast = (gas.belief_on(gas.BeliefConfig(), GRID) for _ in range(2))
        now = 0.0
        for place, value in values:
            slow.observe(place, value, stated, seconds=now)
            for _ in range(10):
                now += 0.1
                fast.observe(place, value, stated, seconds=now)
        assert np.array_equal(slow.noise_variance, fast.noise_variance) == once
        assert np.array_equal(slow.predict(), fast.predict()) == once
    # Amending a repetition keeps the first reading.
    place, value = exact[0]
    before = (value, stated, 0.0, None)
    other = gas.belief_on(gas.BeliefConfig(), GRID)
    for seconds in (0.0, 0.1):
        other.observe(place, value, stated, seconds=seconds)
    other.amend(place, before, value + 1.0, stated)
    assert other.averages(np.array([place]))[0, 0] == pytest.approx(value + 0.5)


@for_each("gap", [0.0, 5.0])
def test_equal_readings_of_two_visits_are_two(gap: float) -> None:
    """The two readings have no times, or are far apart in time."""
    twice, once = (gas.belief_on(gas.BeliefConfig(noise_std=(0.5,)), GRID) for _ in range(2))
    for belief in (twice, once):
        for place, value in ((3, 15.0), (40, 16.0), (77, 14.5), (90, 15.5)):
            belief.observe(place, value)
    twice.observe(40, 16.0, seconds=gap)
    assert twice.average_noise(np.array([40]))[0, 0] < once.average_noise(np.array([40]))[0, 0]
