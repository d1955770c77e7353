"""What a kernel is: a correlation function of features and length-scales."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Protocol, runtime_checkable

import numpy as np

from gp_active_sensing.types import FloatArray

__all__ = ["GraphKernel", "Kernel", "Stationary"]


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
