"""Kernels: their contract, and the built-in ones of positions and of a road graph."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np

from gp_active_sensing.types import FloatArray

__all__ = [
    "GraphKernel",
    "GraphMatern",
    "GraphMatern12",
    "GraphMatern32",
    "GraphMatern52",
    "Kernel",
    "Matern12",
    "Matern32",
    "Matern52",
    "SquaredExponential",
    "Stationary",
]


@runtime_checkable
class Kernel(Protocol):
    """A correlation function; the signal variance multiplies it elsewhere."""

    def correlation(self, X1: FloatArray, X2: FloatArray, length_scales: FloatArray) -> FloatArray:
        """Return the (n, m) correlations of the rows of `X1` (n, p) and `X2` (m, p).

        Args:
            X1: (n, p) features.
            X2: (m, p) features.
            length_scales: (1,) one for all features, or (p,) one per feature, in feature units.
        """
        ...

    def correlations(self, X1: FloatArray, X2: FloatArray, length_scales: FloatArray) -> FloatArray:
        """Return the (L, n, m) correlations for `length_scales` (L, 1) or (L, p)."""
        ...


@runtime_checkable
class GraphKernel(Protocol):
    """A function of the eigenvalues of a graph's Laplacian; `belief.graph_covariance` uses it."""

    def density(self, eigenvalues: FloatArray, length_scale: float) -> FloatArray:
        """Return the (k,) spectral densities, above 0 and not growing with the eigenvalue.

        Args:
            eigenvalues: (k,) from 0 up, squared wave numbers [1/m²].
            length_scale: metres along the links.
        """
        ...


class Stationary(ABC):
    """A kernel that is a function of the scaled distance ``r = |(x - x') / l|`` only.

    A new stationary kernel overrides `of_distance`.
    """

    @abstractmethod
    def of_distance(self, r: FloatArray) -> FloatArray:
        """Return the correlation at scaled distances `r`, any shape."""

    def correlation(self, X1: FloatArray, X2: FloatArray, length_scales: FloatArray) -> FloatArray:
        """Return the (n, m) correlations; see `Kernel.correlation`."""
        return np.asarray(self.correlations(X1, X2, np.atleast_2d(length_scales))[0])

    def correlations(self, X1: FloatArray, X2: FloatArray, length_scales: FloatArray) -> FloatArray:
        """Return the (L, n, m) correlations; see `Kernel.correlations`."""
        p = X1.shape[1]
        if length_scales.ndim != 2 or length_scales.shape[1] not in (1, p):
            msg = f"length_scales must be (L, 1) or (L, {p}), got {length_scales.shape}"
            raise ValueError(msg)
        if length_scales.shape[1] == 1:
            r = _distances(X1, X2)
            return self.of_distance(r[None] / length_scales[:, :, None])
        scaled = [_distances(X1 / ell, X2 / ell) for ell in length_scales]
        return self.of_distance(np.stack(scaled))


def _distances(X1: FloatArray, X2: FloatArray) -> FloatArray:
    from scipy.spatial.distance import cdist  # here, since it is slow to import

    # Of differences, not |x|^2 + |x'|^2 - 2xx': map coordinates are large and close together.
    return np.asarray(cdist(X1, X2))


@dataclass(frozen=True)
class SquaredExponential(Stationary):
    r"""The paper's covariance: very smooth fields. [Hoang2014, Sec. 2].

    .. math:: k(r) = \exp(-r^2/2), \quad r^2 = \sum_i (x_i - x'_i)^2 / \ell_i^2
    """

    def of_distance(self, r: FloatArray) -> FloatArray:
        """Return ``exp(-r**2/2)``."""
        return np.asarray(np.exp(-0.5 * r * r))


@dataclass(frozen=True)
class Matern12(Stationary):
    r"""Rough, continuous fields. [Rasmussen2006, Eq. 4.18].

    .. math:: k(r) = \exp(-r)
    """

    def of_distance(self, r: FloatArray) -> FloatArray:
        """Return ``exp(-r)``."""
        return np.asarray(np.exp(-r))


@dataclass(frozen=True)
class Matern32(Stationary):
    r"""Fields with a slope everywhere. [Rasmussen2006, Eq. 4.17].

    .. math:: k(r) = (1 + \sqrt{3}\,r)\,\exp(-\sqrt{3}\,r)
    """

    def of_distance(self, r: FloatArray) -> FloatArray:
        """Return ``(1 + sqrt(3)*r) * exp(-sqrt(3)*r)``."""
        s = np.sqrt(3.0) * r
        return np.asarray((1.0 + s) * np.exp(-s))


@dataclass(frozen=True)
class Matern52(Stationary):
    r"""Fields with a curvature everywhere. [Rasmussen2006, Eq. 4.17].

    .. math:: k(r) = (1 + \sqrt{5}\,r + 5 r^2/3)\,\exp(-\sqrt{5}\,r)
    """

    def of_distance(self, r: FloatArray) -> FloatArray:
        """Return ``(1 + sqrt(5)*r + 5*r**2/3) * exp(-sqrt(5)*r)``."""
        s = np.sqrt(5.0) * r
        return np.asarray((1.0 + s + s * s / 3.0) * np.exp(-s))


@dataclass(frozen=True)
class GraphMatern:
    r"""Whittle-Matérn field of a graph. [Borovitskiy2021, Eq. 9; Whittle1963; Lindgren2011].

    .. math:: K \propto \left(2\nu/\ell^2 + \Delta\right)^{-(\nu + 1/2)}

    With the Laplacian Δ of a map's `Spectrum` [1/m²] this is, on a long row of places, the Matérn
    kernel of the same ν and length-scale ℓ [m]. All densities are positive: K is positive definite.

    Args:
        smoothness: ν; 0.5, 1.5 and 2.5 are matern12, matern32 and matern52 of a road.
    """

    smoothness: float = 1.5

    def density(self, eigenvalues: FloatArray, length_scale: float) -> FloatArray:
        """Return the spectral densities, 1 at eigenvalue 0."""
        scaled = eigenvalues * (length_scale**2 / (2.0 * self.smoothness))
        return np.asarray((1.0 + scaled) ** -(self.smoothness + 0.5))


@dataclass(frozen=True)
class GraphMatern12(GraphMatern):
    """The same with ν = 0.5: rough, as matern12 on a road."""

    smoothness: float = 0.5


GraphMatern32 = GraphMatern
"""The same with ν = 1.5: with a slope, as matern32 on a road."""


@dataclass(frozen=True)
class GraphMatern52(GraphMatern):
    """The same with ν = 2.5: with a curvature, as matern52 on a road."""

    smoothness: float = 2.5
