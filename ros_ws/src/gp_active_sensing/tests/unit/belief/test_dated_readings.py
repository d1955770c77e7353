"""Readings with their times: bounded memory, and the effect of merging them."""

from __future__ import annotations

import math

import numpy as np
import pytest

from gp_active_sensing.belief import BeliefConfig, build_belief
from gp_active_sensing.belief.dated_readings import DatedReadings
from gp_active_sensing.belief.drift import FRACTION, Ageing, DriftConfig
from tests.cases import for_each
from tests.unit.belief.test_drift_belief import KINDS


def belief_with(drift: DriftConfig, n: int = 6):
    config = BeliefConfig(
        length_scales=(2.0,), signal_std=(1.0,), noise_std=(0.2,), mean_std=3.0, drift=drift
    )
    return build_belief(config, np.arange(float(n))[:, None])


@pytest.mark.slow
@for_each("name", KINDS)
def test_a_fast_sensor_does_not_fill_the_memory(name: str) -> None:
    """A sensor reads 200 times per time constant, for 250 time constants."""
    history = DatedReadings(2, Ageing(KINDS[name], 0.2))
    most = 0
    for i in range(50_000):
        history.prune()
        history.add(i // 500 % 2, float(np.sin(i)), None, i * 0.02, expert=False)
        most = max(most, history.slots)
    assert history.count.sum() == 50_000
    # At most twice the slots in use: 12 time scales for the kernel, 69 for weights, a logarithmic
    # number for injection.
    assert most <= {"kernel": 26, "weights": 140}.get(name, 24) * FRACTION


@pytest.mark.slow
@for_each("name", KINDS)
def test_what_is_dropped_and_merged_makes_no_difference(name: str) -> None:
    """The predictions nearly equal those of a belief that keeps every slot."""
    drift = DriftConfig(kind="weights", time_scale=1.0) if name == "weights" else KINDS[name]
    rng = np.random.default_rng(7)
    belief, whole = belief_with(drift), belief_with(drift)
    whole._data._history._limit = 10**9
    for i in range(3_000):
        place, value = int(rng.integers(6)), float(rng.normal())
        for each in (belief, whole):
            each.observe(place, value, seconds=i * 0.04)
    assert belief._data._history.slots < whole._data._history.slots == 3_000
    mean, variance = belief.predict()
    expected, width = whole.predict()
    # Merged readings share the field's change with a rate, which adds no precision.
    np.testing.assert_allclose(variance, width, rtol=0.1 if name == "rate" else 0.02)
    assert name != "rate" or (variance > width).all()
    np.testing.assert_allclose(mean, expected, atol=0.3 * math.sqrt(width.max()))


def test_what_is_kept_depends_on_the_readings_only() -> None:
    asked, left_alone = (belief_with(KINDS["doubling"]) for _ in range(2))
    rng = np.random.default_rng(3)
    for i in range(2_000):
        place, value = int(rng.integers(6)), float(rng.normal())
        asked.observe(place, value, seconds=i * 0.05)
        left_alone.observe(place, value, seconds=i * 0.05)
        if i % 200 == 0:
            asked.advance(i * 0.05 + 0.01)
            asked.predict()
    for a, b in zip(asked.predict(), left_alone.predict(), strict=True):
        np.testing.assert_array_equal(a, b)
    np.testing.assert_array_equal(asked.log_evidence, left_alone.log_evidence)


def test_slots_do_not_cross_a_restart() -> None:
    belief = belief_with(DriftConfig(kind="restart", window=10.0))
    belief.observe(0, 5.0, seconds=19.9999)
    belief.observe(0, 1.0, seconds=20.0)
    alone = belief_with(DriftConfig(kind="restart", window=10.0))
    alone.observe(0, 1.0, seconds=20.0)
    for a, b in zip(belief.predict(), alone.predict(), strict=True):
        np.testing.assert_array_equal(a, b)


def test_under_the_kernel_so_many_places_and_times_are_kept() -> None:
    """The oldest slots are dropped; a place without a slot is unobserved."""
    drift = DriftConfig(kind="kernel", time_scale=1000.0)
    belief = belief_with(drift, 40)
    belief.observe(39, 1.0, seconds=0.0)
    for i in range(3_000):
        belief.observe(i % 39, float(np.sin(i)), seconds=8.0 * (1 + i // 30))
    history = belief._data._history
    assert history.slots <= 1.25 * 1024
    assert not belief.observed[39]
    assert belief.observed[:39].all()
    assert belief.visited[39]
    latest = belief.averages(np.arange(39))[0]
    expected = [np.sin(max(i for i in range(3_000) if i % 39 == place)) for place in range(39)]
    np.testing.assert_allclose(latest, expected)
    assert np.isfinite(belief.predict()).all()
