"""Belief over kernels: invariances, extreme values, and rejected input."""

from __future__ import annotations

import math

import numpy as np
import pytest

from gp_active_sensing_learning.kernel_belief import kernel_belief
from tests.cases import for_each


def test_the_order_of_the_kernels_has_no_consequence() -> None:
    bounds = np.array([-3.0, 0.0, -12.0, -0.5, -80.0])
    turned = np.array([3, 0, 4, 2, 1])
    one, other = kernel_belief(bounds), kernel_belief(bounds[turned])
    assert np.array_equal(one.probabilities[turned], other.probabilities)
    assert np.array_equal(one.mean[turned], other.mean)
    covariance = one.root @ one.root.T
    assert other.root @ other.root.T == pytest.approx(covariance[np.ix_(turned, turned)], abs=1e-12)
    assert one.elbo == other.elbo
    assert np.array_equal(
        one.correlations[np.ix_(turned, turned)].round(9), other.correlations.round(9)
    )


def test_a_constant_added_to_all_bounds_changes_nothing() -> None:
    bounds = np.array([-3.0, 0.0, -12.0])
    one, other = kernel_belief(bounds), kernel_belief(bounds - 2.0**20)
    assert np.array_equal(one.probabilities, other.probabilities)
    assert other.elbo == pytest.approx(one.elbo - 2.0**20, abs=1e-6)


@for_each("scale", [1e3, 1e6, 1e9])
def test_bounds_of_any_size_are_stable(scale: float) -> None:
    found = kernel_belief(np.array([0.0, -1.0, -2.0, -3.0]) * scale)
    assert found.probabilities[0] > 0.97
    assert -200.0 < found.elbo < 0.0
    assert np.all(np.isfinite(found.root))


@for_each(
    ("bounds", "options", "words"),
    [
        ([], {}, "one or more kernels"),
        ([0.0, math.nan], {}, "all finite"),
        ([0.0], {"prior_std": 0.0}, "standard deviation"),
        ([0.0], {"samples": 1}, "at least 2 samples"),
    ],
)
def test_refused(bounds: list[float], options: dict[str, float], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        kernel_belief(bounds, **options)  # type: ignore[arg-type]
