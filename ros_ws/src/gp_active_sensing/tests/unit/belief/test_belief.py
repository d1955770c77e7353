"""Belief: size, numbers far from zero, transforms, degenerate priors, copies."""

from __future__ import annotations

import logging

import numpy as np
import pytest

from gp_active_sensing.belief import (
    Belief,
    BeliefConfig,
    FeatureCovariance,
    HyperParameters,
    PriorMean,
    build_belief,
)
from gp_active_sensing.config import from_mapping
from gp_active_sensing.errors import BeliefError, ConfigError, ReadingError
from gp_active_sensing.kernels import build_kernel
from tests.cases import for_each


def make(features: np.ndarray, **options) -> Belief:
    settings = {"length_scales": [1.0, 3.0, 9.0], "signal_std": [2.0], "noise_std": [0.3]}
    return build_belief(from_mapping(BeliefConfig, settings | options), features)


def line(n: int) -> np.ndarray:
    return np.arange(float(n))[:, None]


def test_rereading_an_old_place_equals_reading_it_all_at_once() -> None:
    rng = np.random.default_rng(3)
    often, once = make(line(40)), make(line(40))
    readings = [(int(p), float(rng.normal())) for p in rng.integers(40, size=400)]
    for reading in readings:
        often.observe(*reading)
        assert often.weights.sum() == pytest.approx(1.0)
    for reading in readings:
        once.observe(*reading)
    np.testing.assert_allclose(often.weights, once.weights, rtol=1e-9)
    np.testing.assert_allclose(often.predict()[0], once.predict()[0], rtol=1e-9)
    assert often._data.factor.rows <= 40 + 10, "doubled rows are folded in from time to time"


@for_each("variance", [1e8, 1e14, 1e30])
def test_a_reading_of_enormous_variance_changes_nothing(variance: float) -> None:
    """Sensors send a huge variance if they do not know theirs. An old place gets a second row."""
    belief = make(line(12))
    for place in range(12):
        for _ in range(3):
            belief.observe(place, 33.0 + 0.5 * place)
        _ = belief.weights
    before = (belief.weights, *belief.predict())
    belief.observe(0, 34.0, variance)
    for old, new in zip(before, (belief.weights, *belief.predict()), strict=True):
        np.testing.assert_allclose(new, old, rtol=1e-6)


@for_each(
    ("value", "variance"),
    [(np.nan, None), (np.inf, None), (1e160, None), (1.0, 0.0), (1.0, -1.0), (1.0, 1e-310)],
)
def test_numbers_that_would_spoil_the_belief_are_refused(value, variance) -> None:
    belief = make(line(4))
    with pytest.raises(ReadingError):
        belief.observe(1, value, variance)
    assert not belief.observed.any()
    for place in (-1, 4):
        with pytest.raises(IndexError, match="0 … 3"):
            belief.observe(place, 1.0)


def test_numbers_far_from_zero_keep_their_digits() -> None:
    """Air pressure of about 101 325 with a standard deviation of 0.1 and 0.01 noise."""
    rng = np.random.default_rng(5)
    belief = make(line(5), signal_std=[0.1], noise_std=[0.01], mean_value=101_325.0, mean_std=10.0)
    shifted = make(line(5), signal_std=[0.1], noise_std=[0.01], mean_value=0.0, mean_std=10.0)
    for _ in range(1000):
        place, value = int(rng.integers(5)), float(rng.normal(0, 0.1))
        belief.observe(place, 101_325.0 + value)
        shifted.observe(place, value)
    np.testing.assert_allclose(belief.predict()[0] - 101_325.0, shifted.predict()[0], atol=1e-6)
    np.testing.assert_allclose(belief.log_evidence, shifted.log_evidence, rtol=1e-6)


def test_a_covariance_no_jitter_mends_is_an_error() -> None:
    class Broken(FeatureCovariance):
        def between(self, rows, columns):
            return -super().between(rows, columns)

    hyper = (HyperParameters((1.0,), 1.0, 0.1),)
    belief = Belief(Broken(build_kernel("se"), line(2), hyper), PriorMean.known(2, 0.0))
    belief.observe(0, 1.0)
    with pytest.raises(BeliefError, match="not positive definite"):
        _ = belief.weights


@for_each(
    ("settings", "message"),
    [
        ({"kernel": "matern25"}, "Did you mean 'matern52'"),
        ({"length_scales": []}, "length_scales"),
        ({"length_scales": [0.0]}, r"length_scales\[0\]"),
        ({"length_scales": [[1.0, 2.0]]}, "expected 1 length-scale or 1"),
        ({"kernel": "graph_matern32", "length_scales": [[1.0, 2.0]]}, "has one length-scale"),
        ({"signal_std": [float("nan")]}, r"signal_std\[0\]"),
        ({"signal_std": None, "noise_std": None, "mean_std": 3.0}, "mean_std: has no unit"),
        ({"signal_std": None, "noise_std": None, "place_std": [1.0]}, "place_std: has no unit"),
        ({"mean_features": ["x"]}, "mean_features: are for mean: linear"),
        ({"kernel": ["se", "se"]}, "se is in the list more than once"),
        ({"kernel": ["se", "empirical"]}, "empirical is a history of readings and stands alone"),
        ({"kernel": []}, "kernel: expected at least 1 entries"),
        ({"kernel": "empirical"}, "history: is needed for kernel: empirical"),
        ({"history": "x.csv"}, "history: is for kernel: empirical"),
        ({"transform": "lgo"}, "transform: expected one of identity, log"),
    ],
)
def test_bad_configuration_is_a_clear_error(settings, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        make(line(3), **settings)


@for_each("variance", [1e-20, 1e-60])
def test_a_sensor_that_claims_perfection_is_believed_within_rounding(
    variance: float, caplog
) -> None:
    """The covariance of 600 exact readings on a line of 30 m with ℓ = 3 m is nearly singular."""
    features = np.linspace(0, 30, 600)[:, None]
    belief = make(features, length_scales=[3.0], signal_std=[1.0], mean_std=0.0)
    truth = np.sin(features[:, 0])
    with caplog.at_level(logging.WARNING):
        for place in range(0, 600):
            belief.observe(place, float(truth[place]), variance)
            if place % 50 == 0:
                assert np.isfinite(belief.weights).all()
        mean, _ = belief.predict()
    np.testing.assert_allclose(mean, truth, atol=1e-4)
    assert belief.jittered > 0
    assert caplog.text.count("too small to compute with") == 1


@for_each("mean", ["constant", "linear"])
@for_each("scale_known", [True, False])
def test_the_parts_of_the_posterior_covariance_agree(mean: str, scale_known: bool) -> None:
    """Joint, columns, marginals and roots agree on one covariance, with an unknown mean."""
    X = np.random.default_rng(5).uniform(0, 10, size=(9, 2))
    belief = make(X, mean=mean, mean_std=7.0, length_scales=[1.0, 4.0])
    belief = Belief(belief.covariance, belief.mean, scale_known=scale_known)
    everywhere, some, second = np.arange(9), np.array([0, 4, 8]), np.array([1])

    def agree() -> None:
        C = belief.joint(everywhere).covariance
        np.testing.assert_allclose(belief.cross(some), C[:, some], atol=1e-9)
        np.testing.assert_allclose(
            belief.marginals()[1], np.diagonal(C, axis1=1, axis2=2), atol=1e-9
        )
        np.testing.assert_allclose(belief.marginals(some)[1], belief.marginals()[1][:, some])
        scale, W, B, means = belief.roots(everywhere)
        prior = belief.covariance.between(everywhere, everywhere)
        formed = scale[:, None, None] * prior
        formed += np.swapaxes(B, 1, 2) @ B - np.swapaxes(W, 1, 2) @ W
        np.testing.assert_allclose(formed, C, atol=1e-9)
        np.testing.assert_allclose(means, belief.marginals()[0], atol=1e-9)
        part = belief.between(some, everywhere, second)
        np.testing.assert_allclose(part, C[1:, some], atol=1e-9)
        under = belief.marginals_under(some, second)
        for mine, all_of_them in zip(under, belief.marginals(some), strict=True):
            np.testing.assert_allclose(mine, all_of_them[1:], atol=1e-9)

    agree()
    # Places far apart are as good as independent, but for the mean that they share.
    assert np.abs(belief.cross(some)[:, 0, some[1:]]).min() > 5.0
    for place in (4, 7, 1):
        belief.observe(place, 2.0 + 0.1 * place)
        agree()


def test_what_a_transform_makes_too_large_is_refused() -> None:
    belief = make(line(3), transform="log")
    with pytest.raises(ReadingError, match="expected a noise variance of") as error:
        belief.observe(0, 1e-60, 1e-10)  # of the logarithm it is 1e110
    assert error.value.reason == "bad_variance"
    assert not belief.observed.any()


@for_each("offset", [1e3, -1e6])
def test_a_vague_mean_of_an_unknown_scale_is_vague_about_the_first_reading(offset: float) -> None:
    vague = {"signal_std": None, "noise_std": None, "mean_std": None}
    near, far = make(line(6), **vague), make(line(6), **vague)
    for place, value in ((1, 0.31379), (2, 0.92641), (4, -0.41853), (5, 0.10867)):
        near.observe(place, value)
        far.observe(place, offset + value)
    np.testing.assert_allclose(far.weights, near.weights, rtol=1e-4)
    np.testing.assert_allclose(far.predict()[0] - offset, near.predict()[0], atol=1e-4)
    np.testing.assert_allclose(far.predict()[1], near.predict()[1], rtol=1e-4)


def test_information_is_that_of_all_readings() -> None:
    """Some places have several readings, some readings a variance; the mean is unknown."""
    X = np.random.default_rng(6).uniform(0, 10, size=(7, 2))
    belief = make(X, mean="linear", mean_std=4.0, mean_value=2.0)
    place = np.array([2, 5, 2, 0, 6, 1, 3, 4, 2, 5])  # the last two have rows far from the end
    z = np.array([1.0, 3.0, 1.4, 2.2, -0.5, 1.9, 2.4, 0.1, 2.7, 1.2])
    own = [None, 0.2, None, None, 0.05, None, None, None, 0.3, None]
    for x, value, variance in zip(place.tolist(), z.tolist(), own, strict=True):
        belief.observe(x, value, variance)
        _ = belief.weights
    noise = np.diag([0.09 if variance is None else variance for variance in own])
    prior = belief.covariance.between(place, place)
    information = [
        0.5 * np.linalg.slogdet(np.eye(10) + np.linalg.solve(noise, K))[1] for K in prior
    ]
    np.testing.assert_allclose(belief.information, information, rtol=1e-9)


def test_on_a_large_map_unlikely_candidates_are_left_out_and_nothing_else(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rng = np.random.default_rng(0)
    belief = make(line(60), length_scales=[0.3, 1.0, 3.0, 9.0, 300.0])
    for place in range(0, 60, 2):
        belief.observe(place, float(np.sin(0.3 * place) + 0.1 * rng.normal()))
    whole, mean, variance = belief.mixture(), *belief.predict()
    everywhere = np.arange(60)
    between = belief.between(everywhere, everywhere[::3], np.array([1, 3]))
    monkeypatch.setattr("gp_active_sensing.belief.belief._LARGE", 10)
    monkeypatch.setattr("gp_active_sensing.belief.belief._BLOCK", 1000)
    found = belief.mixture()
    assert np.count_nonzero(found.weights) < np.count_nonzero(whole.weights)
    np.testing.assert_allclose(found.moments(), (mean, variance), rtol=1e-4, atol=1e-5)
    some = np.array([3, 40, 59])
    np.testing.assert_allclose(belief.mixture(some).moments()[0], found.moments()[0][some])
    np.testing.assert_allclose(
        belief.between(everywhere, everywhere[::3], np.array([1, 3])), between, atol=1e-9
    )
