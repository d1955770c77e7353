"""Covariance on a graph: spectrum, positive definite, unit variance, metres."""

from __future__ import annotations

import tracemalloc
from dataclasses import replace

import numpy as np
import pytest

from gp_active_sensing.belief import HyperParameters
from gp_active_sensing.belief import graph_covariance as module
from gp_active_sensing.belief.graph_covariance import (
    KEPT,
    TRUNCATED,
    GraphCovariance,
    Spectrum,
    laplacian_spectrum,
)
from gp_active_sensing.kernels import build_kernel
from gp_active_sensing.kernels.base import GraphMatern
from gp_active_sensing.topology import make_grid, make_line
from gp_active_sensing.topology.segments import Links
from gp_active_sensing.types import FloatArray
from tests.cases import for_each


def candidates(*length_scales: float, signal: float = 1.0) -> list[HyperParameters]:
    return [HyperParameters((ell,), signal, 0.1) for ell in length_scales]


def row(n: int, spacing: float = 1.0) -> Links:
    found = make_line(n, spacing, moves="adjacent").links
    assert found is not None
    return found


def whole(covariance: GraphCovariance) -> FloatArray:
    everything = np.arange(covariance.n)
    return covariance.between(everything, everything)


@for_each(("smoothness", "name"), [(0.5, "matern12"), (1.5, "matern32"), (2.5, "matern52")])
def test_on_a_long_row_it_is_the_matern_kernel(smoothness: float, name: str) -> None:
    """The kernel agrees away from the ends, for long length-scales [m] and any spacing."""
    spacing, ell = 5.0, 100.0
    spectrum = laplacian_spectrum(row(601, spacing))
    covariance = GraphCovariance(GraphMatern(smoothness), spectrum, candidates(ell))
    middle = np.arange(260, 341)
    found = covariance.between(middle, middle)[0]
    x = spacing * middle[:, None]
    np.testing.assert_allclose(
        found, build_kernel(name).correlation(x, x, np.array([ell])), atol=4e-3
    )


def test_the_spectrum_is_that_of_the_laplacian() -> None:
    links = row(40, 3.0)
    spectrum = laplacian_spectrum(links)
    k = np.arange(40)
    np.testing.assert_allclose(
        spectrum.values, (2.0 - 2.0 * np.cos(np.pi * k / 40)) / 9.0, atol=1e-12
    )
    assert (spectrum.spacing, spectrum.extent, spectrum.whole) == (3.0, 117.0, True)


def test_tables_and_products_agree(monkeypatch: pytest.MonkeyPatch) -> None:
    spectrum = laplacian_spectrum(make_grid(7, 6, 10.0).links)
    some = [
        HyperParameters((ell,), signal, 0.1) for ell in (40.0, 10.0) for signal in (2.0, 1.0, 5.0)
    ]
    rows, columns = np.array([3, 3, 0]), np.array([41, 3, 7, 9])
    tables = GraphCovariance(GraphMatern(), spectrum, some)
    monkeypatch.setattr(module, "_TABLE", 0)
    products = GraphCovariance(GraphMatern(), spectrum, some)
    found = products.between(rows, columns)
    np.testing.assert_allclose(found, tables.between(rows, columns), rtol=1e-12, atol=1e-14)
    assert found[:, 0, 1].tolist() == [4.0, 1.0, 25.0, 4.0, 1.0, 25.0]
    assert tables.hyperparameters == tuple(some)


def test_a_truncated_spectrum_keeps_the_variance() -> None:
    """The truncated kernel is positive definite, and close to the full one for smooth fields."""
    full = laplacian_spectrum(make_grid(20, 20, 10.0).links)
    cut = replace(full, values=full.values[:150], vectors=full.vectors[:, :150])
    flat = full.values.copy()
    flat[150:] = full.values[149]
    for ell, error in ((200.0, 2e-3), (60.0, 0.05), (10.0, 1.0)):
        found, exact = (
            whole(GraphCovariance(GraphMatern(), spectrum, candidates(ell)))[0]
            for spectrum in (cut, full)
        )
        same = whole(
            GraphCovariance(
                GraphMatern(), Spectrum(flat, full.vectors, 10.0, 380.0), candidates(ell)
            )
        )[0]
        np.testing.assert_allclose(found, same, atol=1e-10)
        np.testing.assert_array_equal(np.diag(found), 1.0)
        assert np.linalg.eigvalsh(found).min() > 0.0
        assert np.abs(found - exact).max() < error


def test_sparse_and_dense_spectra_agree() -> None:
    links = make_grid(40, 20, 10.0).links
    assert links is not None
    dense, sparse = laplacian_spectrum(links, exact=800), laplacian_spectrum(links, exact=700)
    assert (dense.whole, sparse.whole) == (True, False)
    np.testing.assert_allclose(sparse.values, dense.values[:TRUNCATED], atol=1e-9)
    # Eigenvectors of equal eigenvalues may turn: compare what is made of them.
    made = [
        whole(GraphCovariance(GraphMatern(), spectrum, candidates(150.0)))[0]
        for spectrum in (sparse, dense)
    ]
    np.testing.assert_allclose(made[0], made[1], atol=2e-3)


def test_a_draw_has_the_covariance() -> None:
    full = laplacian_spectrum(make_grid(6, 5, 10.0).links)
    cut = replace(full, values=full.values[:12], vectors=full.vectors[:, :12])
    for spectrum in (full, cut):
        covariance = GraphCovariance(GraphMatern(), spectrum, candidates(25.0, signal=3.0))
        root = np.stack([covariance.times_root(unit) for unit in np.eye(30)], axis=1)
        np.testing.assert_allclose(root @ root.T, whole(covariance)[0], atol=1e-10)
        turned = GraphCovariance(
            GraphMatern(),
            replace(spectrum, vectors=-spectrum.vectors),
            candidates(25.0, signal=3.0),
        )
        np.testing.assert_allclose(turned.times_root(np.arange(30.0)), root @ np.arange(30.0))


def test_kept_on_disk(caplog: pytest.LogCaptureFixture) -> None:
    links = row(KEPT, 2.0)
    first = laplacian_spectrum(links)
    with caplog.at_level("INFO"):
        again = laplacian_spectrum(links)
    assert "spectrum taken from" in caplog.text
    np.testing.assert_array_equal(first.vectors, again.vectors)


def test_large_maps_are_not_tabulated(caplog: pytest.LogCaptureFixture) -> None:
    """A large map uses 500 eigenvectors, logs this, and stores no matrix of all pairs."""
    with caplog.at_level("INFO"):
        spectrum = laplacian_spectrum(row(900), exact=800)
    assert "the 500 smoothest eigenvectors are used; variation over less than about" in caplog.text
    many = candidates(*np.geomspace(1.0, 100.0, 70))
    covariance = GraphCovariance(GraphMatern(), spectrum, many)
    tracemalloc.start()
    assert covariance.between(np.arange(5), np.arange(900)).shape == (70, 5, 900)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 20e6  # tables of all pairs take 454 MB
