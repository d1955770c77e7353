"""Graph kernels: densities of Laplacian eigenvalues, and the names that choose them."""

from __future__ import annotations

import numpy as np
import pytest

from gp_active_sensing.errors import UnknownNameError
from gp_active_sensing.kernels import (
    GraphKernel,
    GraphMatern,
    build_graph_kernel,
    graph_kernels,
    kernel_problems,
)


@pytest.fixture(params=graph_kernels.names())
def kernel(request: pytest.FixtureRequest) -> GraphKernel:
    return build_graph_kernel(request.param, 1.5)


def test_densities_are_positive_and_do_not_grow(kernel: GraphKernel) -> None:
    values = np.linspace(0.0, 10.0, 200)
    for length_scale in (0.01, 1.0, 1e4):
        density = kernel.density(values, length_scale)
        assert (density > 0.0).all()
        assert (np.diff(density) <= 0.0).all()


def test_the_formula() -> None:
    found = GraphMatern(2.5).density(np.array([0.0, 0.02]), 20.0)
    stated = (2 * 2.5 / 20.0**2 + np.array([0.0, 0.02])) ** -3.0
    np.testing.assert_allclose(found, stated / stated[0])


def test_names() -> None:
    assert build_graph_kernel("graph_matern", 0.5) == GraphMatern(0.5)
    with pytest.raises(UnknownNameError, match="Did you mean 'graph_matern'"):
        build_graph_kernel("graph_mattern", 1.5)


def test_what_is_wrong_with_a_choice() -> None:
    assert kernel_problems("se", 1.5) == kernel_problems("graph_matern", 2.5) == []
    (unknown,) = kernel_problems("graf_matern", 1.5)
    assert "Did you mean 'graph_matern'" in unknown
    assert "Registered: graph_matern, graph_matern12, " in unknown
    assert kernel_problems("se", 2.5) == ["smoothness: is for graph_matern, the kernel is 'se'"]
