"""Every registered kernel: a valid covariance, and the formula its docstring states."""

from __future__ import annotations

import re

import numpy as np
import pytest

from gp_active_sensing.kernels import build_graph_kernel, build_kernel, graph_kernels, kernels
from gp_active_sensing.kernels.base import GraphKernel
from tests.cases import for_each


@for_each("kernel", map(build_kernel, kernels.names()))
def test_gram_matrix_is_symmetric_and_positive_definite(kernel) -> None:
    X = np.random.default_rng(1).uniform(0, 10, size=(40, 3))
    for scales in (np.array([2.0]), np.array([0.5, 2.0, 8.0])):
        K = kernel.correlation(X, X, scales)
        np.testing.assert_allclose(K, K.T, rtol=0, atol=1e-15)
        np.testing.assert_allclose(np.diag(K), 1.0)
        assert np.linalg.eigvalsh(K).min() > -1e-10


@for_each("kernel", map(build_kernel, kernels.names()))
def test_docstring_formula_is_the_code(kernel) -> None:
    found = re.search(r"``(.*?)``", type(kernel).of_distance.__doc__ or "")
    assert found, "of_distance states its formula"
    r = np.linspace(0.0, 6.0, 61)
    stated = eval(found.group(1), {"exp": np.exp, "sqrt": np.sqrt, "r": r})
    np.testing.assert_allclose(kernel.of_distance(r), stated, rtol=1e-14)


@for_each("kernel", map(build_kernel, kernels.names()))
def test_one_length_scale_per_feature_is_a_scaling_of_the_features(kernel) -> None:
    rng = np.random.default_rng(2)
    X, Y, scales = rng.normal(size=(5, 3)), rng.normal(size=(7, 3)), np.array([0.3, 1.0, 4.0])
    expected = kernel.correlation(X / scales, Y / scales, np.array([1.0]))
    np.testing.assert_allclose(kernel.correlation(X, Y, scales), expected, rtol=1e-13)


@for_each("kernel", map(build_kernel, kernels.names()))
def test_far_from_the_origin_near_places_stay_apart(kernel) -> None:
    """Map coordinates may be millions of metres (UTM); correlations must not be rounded away."""
    X = np.array([[5.0e6, 3.0e5], [5.0e6 + 0.5, 3.0e5]])
    near = np.array([[0.0, 0.0], [0.5, 0.0]])
    scale = np.array([1.0])
    assert kernel.correlation(X, X, scale)[0, 1] == pytest.approx(
        kernel.correlation(near, near, scale)[0, 1], rel=1e-9
    )


def test_wrong_number_of_length_scales_is_an_error() -> None:
    X = np.zeros((2, 3))
    with pytest.raises(ValueError, match=r"\(L, 1\) or \(L, 3\), got \(1, 2\)"):
        build_kernel("se").correlation(X, X, np.array([1.0, 2.0]))


@for_each("graph_kernel", [build_graph_kernel(name) for name in graph_kernels.names()])
def test_densities_are_positive_and_do_not_grow(graph_kernel: GraphKernel) -> None:
    values = np.linspace(0.0, 10.0, 200)
    for length_scale in (0.01, 1.0, 1e4):
        density = graph_kernel.density(values, length_scale)
        assert (density > 0.0).all()
        assert (np.diff(density) <= 0.0).all()
