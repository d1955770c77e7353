from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import norm

from gp_active_sensing.records.metrics import coverage, ends, mean_of, nlpd, rmse, rmspe

MEAN = np.array([1.0, 2.0, 3.0, 4.0])
TRUTH = np.array([1.0, 0.0, 3.5, 100.0])
OBSERVED = np.array([False, False, False, True])


def test_rmspe_leaves_observed_places_out() -> None:
    assert rmspe(MEAN, TRUTH, OBSERVED) == pytest.approx(math.sqrt((0 + 4 + 0.25) / 3))


def test_nlpd_is_the_density_of_the_normal() -> None:
    variance = np.array([1.0, 4.0, 0.25, 9.0])
    expected = -norm.logpdf(TRUTH[:3], MEAN[:3], np.sqrt(variance[:3])).mean()
    assert nlpd(MEAN, variance, TRUTH, OBSERVED) == pytest.approx(expected)


def test_nothing_left_has_no_error() -> None:
    everything = np.ones(4, dtype=bool)
    assert rmspe(MEAN, TRUTH, everything) is None
    assert nlpd(MEAN, MEAN, TRUTH, everything) is None


def test_coverage_is_the_share_inside_the_central_interval() -> None:
    below = np.array([0.0, 0.04, 0.06, 0.3, 0.5, 0.94, 0.96, 1.0])
    assert ends(0.9) == pytest.approx((0.05, 0.95))
    assert coverage(below, 0.9) == pytest.approx(4 / 8)
    assert coverage(below, 0.5) == pytest.approx(2 / 8)
    assert coverage(below[:0], 0.5) is None
    assert mean_of(np.array([0.25, 0.75])) == 0.5


def test_certainty_gives_a_finite_score() -> None:
    score = nlpd(TRUTH, np.zeros(4), TRUTH, OBSERVED)
    assert score is not None
    assert math.isfinite(score)


def test_shapes_must_agree() -> None:
    with pytest.raises(ValueError, match="as many predictions as true values"):
        rmse(MEAN, TRUTH[:2])
