"""Leave-one-out predictions equal those of a belief without the readings of the place."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from gp_active_sensing.belief import Belief, DriftConfig, FeatureCovariance, PriorMean
from gp_active_sensing.belief.leave_one_out import LeaveOneOut
from gp_active_sensing.belief.place_covariance import PlaceCovariance
from gp_active_sensing.belief.prior import HyperParameters, JoinedCovariance
from gp_active_sensing.kernels import build_kernel
from tests.cases import for_each

from .direct_bayes import DirectBelief
from .test_belief_direct import random_case


def without(direct: DirectBelief, place: int) -> DirectBelief:
    other = replace(direct)
    for reading in direct.readings:
        if reading[0] != place:
            other.observe(*reading)
    return other


def found_by(belief: Belief) -> LeaveOneOut:
    found = belief.leave_one_out()
    assert found is not None
    return found


@pytest.mark.seeds
def test_it_equals_conditioning_anew(seed: int) -> None:
    rng, belief, direct, readings = random_case(seed)
    for reading in readings:
        belief.observe(*reading)
        direct.observe(*reading)
        if rng.random() < 0.5:  # queries in between make second rows of a place
            assert np.isfinite(belief.weights).all()
    found = found_by(belief)
    assert set(found.places.tolist()) == {r[0] for r in readings}
    np.testing.assert_allclose(found.belief, belief.weights, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(found.average, belief.averages(found.places), rtol=1e-12)
    for i, place in enumerate(found.places.tolist()):
        rest = without(direct, place)
        where = np.array([place])
        np.testing.assert_allclose(found.weights[:, i], rest.weights(), rtol=1e-8, atol=1e-8)
        for number, hyper in enumerate(direct.hyperparameters):
            mean, covariance, _ = rest.posterior(hyper, where)
            assert found.mean[number, i] == pytest.approx(mean[0], rel=1e-8, abs=1e-8)
            assert found.variance[number, i] == pytest.approx(covariance[0, 0], rel=1e-8, abs=1e-8)


class DirectScale:
    """Bayes' rule with a common factor of all variances integrated out, one row a reading."""

    def __init__(self, belief: Belief, kernels: list[str], features: np.ndarray) -> None:
        self.belief, self.features = belief, features
        self.kernels = [build_kernel(name) for name in kernels]

    def answer(self, rows: list[tuple[int, float]], place: int, own=None):
        """Return means and variances (L,) at a place, and the weights (L,), given readings.

        Args:
            rows: place and value of each reading.
            place: place of the prediction.
            own: (L, rows) noise variance of each reading, in units of the candidate's factor.
        """
        belief = self.belief
        where = np.array([r[0] for r in rows], dtype=np.int64)
        both = np.append(where, place)
        offset, basis = belief.mean.offset, belief.mean.basis * belief.mean.std
        z = np.array([r[1] for r in rows]) - offset[where]
        freedom = len(rows) - basis.shape[1]
        logs, means, variances = [], [], []
        candidates = zip(self.kernels, belief.covariance.hyperparameters, strict=True)
        for number, (kernel, h) in enumerate(candidates):
            x = self.features[both]
            K = h.signal_std**2 * kernel.correlation(x, x, np.array(h.length_scales))
            K += h.place_std**2 * (both[:, None] == both) + basis[both] @ basis[both].T
            k, prior = K[:-1, -1], K[-1, -1]
            K = K[:-1, :-1] + h.noise_std**2 * np.eye(len(rows))
            K += 0.0 if own is None else np.diag(own[number])
            solved = np.linalg.solve(K, np.column_stack([z, k]))
            Q = z @ solved[:, 0]
            logs.append(-0.5 * np.linalg.slogdet(K)[1] - 0.5 * freedom * np.log(Q))
            means.append(offset[place] + k @ solved[:, 0])
            scale = Q / max(freedom - 2, 1)
            variances.append(scale * (prior - k @ solved[:, 1]))
        weights = np.log(belief.prior_weights) + np.array(logs)
        weights = np.exp(weights - weights.max())
        return np.array(means), np.array(variances), weights / weights.sum()


@pytest.mark.seeds
def test_an_unknown_scale_is_integrated_out_without_the_place(seed: int) -> None:
    """Check several kernels, independent components, repeated readings and a vague mean.

    The centre of the vague mean stays the first reading, as part of the prior.
    """
    rng = np.random.default_rng([17, seed])
    n = int(rng.integers(8, 16))
    features = rng.uniform(0, 10, size=(n, 2))
    names = ["matern12", "matern32", "se", "matern32"]
    hyper = [
        HyperParameters(
            (float(rng.uniform(1.0, 6.0)),), 1.0, float(rng.uniform(0.2, 0.8)), place_std=own
        )
        for own in (0.0, 0.5, 0.0, 1.5)
    ]
    parts = [
        PlaceCovariance(FeatureCovariance(build_kernel(name), features, [h]))
        for name, h in zip(names, hyper, strict=True)
    ]
    mean = PriorMean.constant(n, 0.0, float(rng.choice([0.0, 3.0, 100.0])))
    belief = Belief(JoinedCovariance(parts), mean, rng.dirichlet(np.ones(4)), scale_known=False)
    rows = []
    for _ in range(int(rng.integers(12, 40))):
        rows.append((int(rng.integers(n)), float(20.0 + 4.0 * rng.standard_normal())))
        belief.observe(*rows[-1])
        if rng.random() < 0.4:
            assert np.isfinite(belief.weights).all()
    direct = DirectScale(belief, names, features)
    found = found_by(belief)
    for i, place in enumerate(found.places.tolist()):
        means, variances, weights = direct.answer([r for r in rows if r[0] != place], place)
        np.testing.assert_allclose(found.mean[:, i], means, rtol=1e-8, atol=1e-8)
        np.testing.assert_allclose(found.variance[:, i], variances, rtol=1e-8, atol=1e-8)
        np.testing.assert_allclose(found.weights[:, i], weights, rtol=1e-8, atol=1e-8)
        expected = weights @ means
        assert found.predicted[i] == pytest.approx(expected, rel=1e-8, abs=1e-8)


@for_each("seed", range(5))
def test_variances_of_the_readings_own_count_as_before(seed: int) -> None:
    """With an unknown scale, all readings determine the scale of their variances, which stays."""
    rng = np.random.default_rng([19, seed])
    features = rng.uniform(0, 10, size=(14, 2))
    hyper = [HyperParameters((length,), 1.0, 0.3) for length in (1.0, 3.0, 6.0)]
    covariance = FeatureCovariance(build_kernel("matern32"), features, hyper)
    belief = Belief(covariance, PriorMean.constant(14, 0.0, 5.0), scale_known=False)
    rows, variances = [], []
    for place in rng.permutation(14)[:12].tolist():
        rows.append((place, float(5.0 + features[place, 0] + rng.standard_normal())))
        variances.append(float(rng.uniform(0.05, 2.0)))
        belief.observe(*rows[-1], variances[-1])
    found = found_by(belief)
    unit = belief._data._unit
    assert unit is not None
    own = np.array(variances) / unit[:, None]
    direct = DirectScale(belief, ["matern32"] * 3, features)
    for i, place in enumerate(found.places.tolist()):
        left = [number for number, row in enumerate(rows) if row[0] != place]
        means, spreads, weights = direct.answer([rows[k] for k in left], place, own[:, left])
        np.testing.assert_allclose(found.mean[:, i], means, rtol=1e-8, atol=1e-8)
        np.testing.assert_allclose(found.variance[:, i], spreads, rtol=1e-8, atol=1e-8)
        np.testing.assert_allclose(found.weights[:, i], weights, rtol=1e-8, atol=1e-8)


def test_a_mean_that_nothing_else_knows_gives_finite_numbers() -> None:
    x = np.arange(30.0)[:, None]
    hyper = [HyperParameters((2.0,), 1.0, 0.1)]
    belief = Belief(FeatureCovariance(build_kernel("se"), x, hyper), PriorMean.linear(x, 0.0, 1e9))
    for place in (0, 9):
        belief.observe(place, float(place))
    found = found_by(belief)
    for numbers in (found.mean, found.variance, found.weights):
        assert np.isfinite(numbers).all()


def plain(n: int = 30, length: float = 5.0, unit: float = 1.0, **more) -> Belief:
    x = np.arange(float(n))[:, None]
    hyper = [(length, unit, 0.1 * unit), (9.0, unit, unit)]
    covariance = FeatureCovariance(
        build_kernel("se"), x, [HyperParameters((h[0],), *h[1:]) for h in hyper]
    )
    return Belief(covariance, PriorMean.constant(n, 0.0, 10.0 * unit), **more)


def test_predictions_are_the_same_in_any_unit() -> None:
    units = (1.0, 1e-6, 1e9)
    beliefs = [plain(unit=unit) for unit in units]
    for place in (0, 3, 4, 11, 17):
        for belief, unit in zip(beliefs, units, strict=True):
            belief.observe(place, float(np.sin(place)) * unit)
    one, *others = (found_by(belief) for belief in beliefs)
    for other, unit in zip(others, units[1:], strict=True):
        np.testing.assert_allclose(other.mean / unit, one.mean, rtol=1e-9, err_msg=str(unit))
        np.testing.assert_allclose(other.variance / unit**2, one.variance, rtol=1e-9)


def test_a_smooth_field_is_explained_and_noise_is_not() -> None:
    rng = np.random.default_rng(3)
    smooth, noise = plain(), plain()
    for place in range(0, 30, 2):
        smooth.observe(place, float(np.sin(place / 5.0)))
        noise.observe(place, float(rng.standard_normal()))
    told, untold = found_by(smooth), found_by(noise)
    assert told.explained is not None
    assert told.explained > 0.9
    assert untold.explained is not None
    assert untold.explained < 0.05
    error, constant = told.errors()
    read = told.read
    others = [(read.sum() - z) / (len(read) - 1) for z in read]
    assert constant == pytest.approx(np.sqrt(np.mean((read - others) ** 2)))
    assert error == pytest.approx(constant * np.sqrt(1.0 - told.explained))


def test_too_few_places_and_equal_readings_say_nothing() -> None:
    belief = plain()
    assert belief.leave_one_out() is None
    belief.observe(0, 1.0)
    with pytest.raises(ValueError, match="two places"):
        found_by(belief).errors()
    for place in (3, 6, 9):
        belief.observe(place, float(place))
        belief.observe(place, float(place) + 1.0)  # again: no further place
    assert found_by(belief).explained is None
    belief.observe(12, 3.0)
    assert found_by(belief).explained is not None
    same = plain()
    for place in range(8):
        same.observe(place, 3.0)
    assert found_by(same).explained is None


def test_it_is_not_asked_of_a_field_that_changes() -> None:
    belief = plain(drift=DriftConfig("weights", time_scale=60.0))
    belief.observe(0, 1.0)
    belief.observe(4, 2.0)
    assert belief.leave_one_out() is None
