"""Amended readings: the belief equals one without the replaced readings."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gp_active_sensing.belief import Belief, BeliefConfig, build_belief
from gp_active_sensing.config import from_mapping
from gp_active_sensing.errors import ReadingError
from tests.cases import for_each

POINTS = np.stack(np.meshgrid(np.arange(6.0), np.arange(5.0), indexing="ij"), -1).reshape(-1, 2)
ONE = {"length_scales": [1.5, 3.0], "signal_std": [2.0], "noise_std": [0.3], "mean_std": 10.0}
CONFIGS: dict[str, dict[str, Any]] = {
    "known": ONE,
    "noises": {**ONE, "noise_std": [0.1, 0.5]},
    "nothing": {"length_scales": [1.5, 3.0]},
    "window": {**ONE, "drift": {"kind": "window", "window": 50.0}},
    "injection": {**ONE, "drift": {"kind": "injection", "rate": 0.1}},
    "kernel": {**ONE, "drift": {"kind": "kernel", "time_scale": 50.0}},
    "log": {**ONE, "transform": "log"},
}


def fresh(name: str) -> Belief:
    belief = build_belief(from_mapping(BeliefConfig, CONFIGS[name]), POINTS, ("x", "y"))
    belief.place_at(POINTS)
    return belief


def same(one: Belief, other: Belief) -> None:
    for mine, theirs in zip(one.predict(), other.predict(), strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(one.weights, other.weights, rtol=1e-6, atol=1e-9)
    np.testing.assert_array_equal(one.readings, other.readings)


@pytest.mark.slow
@pytest.mark.seeds(0.4)
@for_each("name", CONFIGS)
def test_many_amended_readings_are_the_last_of_them(name: str, seed: int) -> None:
    """Amend readings of places with older readings, with queries in between, in any order."""
    rng = np.random.default_rng([seed, 5])
    drifting, scaled = "drift" in CONFIGS[name], name != "nothing"
    amended, plain = fresh(name), fresh(name)
    final: list[tuple[int, float, float | None, float | None, float]] = []
    for step in range(40):
        place, t = int(rng.integers(len(POINTS))), float(step)
        value = float(rng.uniform(5.0, 9.0))
        variance = 0.05 if scaled and rng.random() < 0.3 else None
        amended.observe(place, value, variance, seconds=t)
        before = (value, variance, t, None)
        off = None
        for _ in range(int(rng.integers(0, 4))):
            value, variance = float(rng.uniform(5.0, 9.0)), float(rng.uniform(0.01, 0.5))
            off = float(rng.uniform(0.0, 0.4))
            amended.amend(place, before, value, variance, seconds=t, off=off)
            before = (value, variance, t, off)
            if rng.random() < 0.3:
                assert np.isfinite(amended.weights).all()
        if rng.random() < 0.5:
            amended.predict()
        final.append((place, value, variance, off, t))
    first = fresh(name)
    for place, value, variance, off, t in final:
        first.observe(place, value, None if off is not None else variance, seconds=t)
        if off is not None:
            first.amend(place, (value, None, t, None), value, variance, seconds=t, off=off)
        plain.observe(place, value, None, seconds=t)
    if drifting:
        amended.advance(40.0)
        first.advance(40.0)
    same(amended, first)
    assert np.abs(amended.predict()[0] - plain.predict()[0]).max() > 1e-3  # variances do count


@pytest.mark.slow
@pytest.mark.seeds(0.2)
@for_each("name", CONFIGS)
def test_two_stays_at_one_place_are_amended_in_turn(name: str, seed: int) -> None:
    """An amended reading need not be in the last row of a place with two probes."""
    rng = np.random.default_rng([seed, 6])
    amended, plain = fresh(name), fresh(name)
    held: dict[tuple[int, int], tuple[float, float | None, float, float | None]] = {}
    for step in range(120):
        probe, place = int(rng.integers(2)), int(rng.integers(14))
        value, variance = float(rng.uniform(5.0, 9.0)), float(10.0 ** rng.uniform(-3.0, 1.0))
        before, t = held.get((probe, place)), 0.01 * step
        if before is None:
            amended.observe(place, value, None, seconds=t)
            held[probe, place] = value, None, t, None
        else:
            amended.amend(place, before, value, variance, seconds=t, off=0.1)
            held[probe, place] = value, variance, before[2], 0.1
        if rng.random() < 0.7:
            assert np.isfinite(amended.weights).all()
    for (_, place), (value, variance, t, off) in held.items():
        plain.observe(place, value, None, seconds=t)
        if off is not None:
            plain.amend(place, (value, None, t, None), value, variance, seconds=t, off=off)
    if "drift" in CONFIGS[name]:
        amended.advance(2.0)
        plain.advance(2.0)
    same(amended, plain)


def one_row_each(last: int) -> Belief:
    """Return an updated belief with a reading at each of the places 0 … `last`."""
    belief = fresh("known")
    for place in range(last + 1):
        belief.observe(place, 5.0 + 0.1 * place)
    assert np.isfinite(belief.weights).all()
    return belief


def test_one_place_less_sure_and_another_surer_in_their_first_rows() -> None:
    """All rows are rebuilt if an amended place has lost precision."""
    amended, plain = one_row_each(12), fresh("known")
    for place in (0, 1):
        amended.observe(place, 5.2, 1.0)
        assert np.isfinite(amended.weights).all()
    for place, variance in ((0, 1e-4), (1, 9.0)):
        amended.amend(place, (5.0 + 0.1 * place, None, 0.0, None), 7.0, variance, off=0.0)
        plain.observe(place, 7.0, variance, off=0.0)
        plain.observe(place, 5.2, 1.0)
    for place in range(2, 13):
        plain.observe(place, 5.0 + 0.1 * place)
    same(amended, plain)


def test_rows_are_cut_off_where_the_first_amended_reading_is() -> None:
    """The rows of two amended places are rebuilt; neither place gets a second row."""
    belief = one_row_each(12)
    for place in (2, 5):
        belief.amend(place, (5.0 + 0.1 * place, None, 0.0, None), 6.0, 0.01, off=0.0)
    assert np.isfinite(belief.weights).all()
    assert belief._data.factor.rows == 13
    # A row near the end is rebuilt beside a new place.
    belief = one_row_each(12)
    for place in (12, 13):
        belief.observe(place, 6.0)
    assert np.isfinite(belief.weights).all()
    assert belief._data.factor.rows == 14
    # Nothing is rebuilt for a further reading of an early place: none was amended.
    belief = one_row_each(12)
    belief.observe(0, 5.2, 1.0)
    assert np.isfinite(belief.weights).all()
    assert belief._data.factor.rows == 14


def test_a_variance_that_comes_with_the_amendment_has_the_unit_of_the_field() -> None:
    """With an unknown scale, an amendment may bring the first noise variance of a reading."""
    amended, plain = fresh("nothing"), fresh("nothing")
    for belief in (amended, plain):
        for place in range(10):
            belief.observe(place, 50.0 * (place % 3))
    amended.observe(20, 70.0)
    amended.amend(20, (70.0, None, 0.0, None), 90.0, 400.0)
    plain.observe(20, 90.0, 400.0)
    same(amended, plain)


def test_a_reading_that_cannot_be_used_changes_nothing() -> None:
    belief = fresh("known")
    belief.observe(3, 7.0)
    mean = belief.predict()[0]
    for value, variance in ((np.inf, 0.1), (7.0, -1.0), (7.0, np.nan)):
        with pytest.raises(ReadingError):
            belief.amend(3, (7.0, None, 0.0, None), value, variance)
    np.testing.assert_array_equal(belief.predict()[0], mean)
