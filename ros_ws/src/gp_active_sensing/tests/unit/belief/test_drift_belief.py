"""Belief over a field with drift: time, observed places, scales, transforms, copies."""

from __future__ import annotations

import logging
import math

import numpy as np
import pytest

from gp_active_sensing.belief import Belief, BeliefConfig, build_belief
from gp_active_sensing.belief.drift import DriftConfig
from gp_active_sensing.errors import ReadingError
from tests.cases import for_each

YEAR = 3.2e7
KINDS = {
    "rate": DriftConfig(kind="injection", rate=0.05),
    "doubling": DriftConfig(kind="injection", doubling=4.0),
    "discard": DriftConfig(kind="injection", doubling=4.0, discard_step=4.0),
    "kernel": DriftConfig(kind="kernel", time_scale=4.0),
    "window": DriftConfig(kind="window", window=4.0),
    "restart": DriftConfig(kind="restart", window=4.0),
    "weights": DriftConfig(kind="weights", time_scale=4.0),
}
KNOWN = {"signal_std": (1.0,), "noise_std": (0.2,)}
LINE = np.arange(8.0)[:, None]


def make(drift: DriftConfig, **options) -> Belief:
    settings = {"length_scales": (1.0, 3.0), **KNOWN, "mean_std": 3.0} | options
    return build_belief(BeliefConfig(drift=drift, **settings), LINE)


def told(belief: Belief, start: float = 0.0) -> Belief:
    for i, value in enumerate([0.5, 0.9, 1.2, 0.7]):
        belief.observe(2 * i, value, seconds=start + i)
    return belief


@for_each("drift", KINDS.values())
def test_old_readings_tell_less_and_less_until_the_prior_is_back(drift: DriftConfig) -> None:
    belief = told(make(drift, mean_std=0.0))
    before = belief.predict(np.array([6]))[1][0]
    for seconds in (5.0, 7.0, 12.0, 100.0, YEAR, 1000 * YEAR):
        belief.advance(seconds)
        now = belief.predict(np.array([6]))[1][0]
        assert now >= before - 1e-12
        before = now
        assert np.isfinite(belief.log_evidence).all()
        assert belief.weights.sum() == pytest.approx(1.0)
    if drift.discard_step is None:
        np.testing.assert_allclose(belief.predict()[1], 1.0, rtol=1e-6)
    assert belief.jittered == 0


@for_each("drift", KINDS.values())
def test_ages_of_years_from_the_clock_of_a_robot(drift: DriftConfig) -> None:
    """Stamps in seconds since 1970 are large; the predictions must not lose digits."""
    early, late = told(make(drift)), told(make(drift), 4.0 * 4.3e8)
    early.advance(5.5)
    late.advance(4.0 * 4.3e8 + 5.5)
    for a, b in zip(early.predict(), late.predict(), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)
    fresh = told(make(drift))
    fresh.advance(10 * YEAR)
    fresh.observe(3, 0.4, seconds=10 * YEAR)
    assert fresh.predict(np.array([3]))[0][0] == pytest.approx(0.4, abs=0.1)


@for_each("drift", KINDS.values())
def test_time_never_goes_back(drift: DriftConfig, caplog: pytest.LogCaptureFixture) -> None:
    belief, straight = told(make(drift)), told(make(drift))
    belief.advance(6.0)
    straight.advance(6.0)
    with caplog.at_level(logging.INFO):
        belief.advance(2.0)
        belief.advance(-YEAR)
    assert belief.seconds == 6.0
    assert len(caplog.records) == 1
    for a, b in zip(belief.predict(), straight.predict(), strict=True):
        np.testing.assert_array_equal(a, b)


@for_each("bad", [math.nan, math.inf, -math.inf])
@for_each("drift", KINDS.values())
def test_times_that_are_none_are_refused(drift: DriftConfig, bad: float) -> None:
    belief = told(make(drift))
    before = belief.predict()
    with pytest.raises(ReadingError, match="time of a reading") as error:
        belief.observe(0, 1.0, seconds=bad)
    assert error.value.reason == "bad_stamp"
    with pytest.raises(ValueError, match="expected a time in seconds"):
        belief.advance(bad)
    for a, b in zip(before, belief.predict(), strict=True):
        np.testing.assert_array_equal(a, b)


@for_each("drift", KINDS.values())
def test_copies_are_independent(drift: DriftConfig) -> None:
    belief = told(make(drift))
    before = belief.predict()
    copy = belief.copy()
    copy.observe(1, 9.0, seconds=3.5)
    copy.advance(8.0)
    copy.predict()
    assert belief.seconds == 3.0
    for a, b in zip(before, belief.predict(), strict=True):
        np.testing.assert_array_equal(a, b)
    again = belief.copy()
    for a, b in zip(before, again.predict(), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12)
    belief.observe(1, 9.0, seconds=3.5)
    belief.advance(8.0)
    for a, b in zip(copy.predict(), belief.predict(), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12)


@for_each("name", sorted(set(KINDS) - {"rate"}))
def test_unknown_scale_follows_the_unit_of_the_readings(name: str) -> None:
    """Values times 1000 give predictions times 1000 at any time."""
    one, thousand = (
        make(KINDS[name], signal_std=None, noise_std=None, mean_std=None) for _ in range(2)
    )
    rng = np.random.default_rng(2)
    for i in range(30):
        place, value = int(rng.integers(8)), float(20.0 + rng.normal())
        one.observe(place, value, seconds=0.3 * i)
        thousand.observe(place, 1000.0 * value, seconds=0.3 * i)
    for seconds in (9.0, 11.0, 14.0, 30.0, YEAR):
        one.advance(seconds)
        thousand.advance(seconds)
        (mean, variance), (large, wide) = one.predict(), thousand.predict()
        np.testing.assert_allclose(1000.0 * mean, large, rtol=1e-6)
        np.testing.assert_allclose(1e6 * variance, wide, rtol=1e-4)
        np.testing.assert_allclose(one.weights, thousand.weights, atol=1e-8)
    assert one.settled == (name == "kernel"), "readings without worth tell nothing of the scale"


UNKNOWN: dict[str, None] = dict.fromkeys(("signal_std", "noise_std", "mean_std"))


@for_each("name", ["doubling", "weights"])
def test_readings_at_one_time_tell_as_much_of_the_scale_as_those_soon_after(name: str) -> None:
    at_once, soon = make(KINDS[name], **UNKNOWN), make(KINDS[name], **UNKNOWN)
    rng = np.random.default_rng(6)
    for place in range(8):
        for k, value in enumerate(rng.normal(20.0, 2.0, 3).tolist()):
            at_once.observe(place, value, seconds=0.3 * place)
            soon.observe(place, value, seconds=0.3 * place + 0.05 * k)
    for belief in (at_once, soon):
        belief.advance(3.0)
    np.testing.assert_allclose(at_once.weights, soon.weights, atol=0.02)
    np.testing.assert_allclose(at_once.predict()[1], soon.predict()[1], rtol=0.05)


def test_when_equal_readings_are_forgotten_the_scale_is_unknown_and_not_zero() -> None:
    belief = make(KINDS["window"], **UNKNOWN)
    for place in (0, 3, 6):
        belief.observe(place, 20.0, seconds=1.0)
    belief.advance(YEAR)
    assert (belief.predict()[1] > 0.5).all()


@for_each("name", ["doubling", "weights"])
def test_stale_readings_do_not_speak_for_the_least_noise(name: str) -> None:
    """Readings without weight have no effect on the evidence of λ."""
    belief = make(KINDS[name], signal_std=(1.0,), noise_std=(0.05, 0.2, 0.8))
    rng = np.random.default_rng(1)
    for i in range(60):
        belief.observe(int(rng.integers(8)), float(0.8 * rng.normal()), seconds=0.1 * i)
    prior = belief.prior_weights
    belief.advance(YEAR)
    np.testing.assert_allclose(belief.weights, prior, rtol=1e-3)
