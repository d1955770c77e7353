"""Matérn kernel of a graph: a function of the Laplacian's eigenvalues."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gp_active_sensing.types import FloatArray

__all__ = ["GraphMatern", "GraphMatern12", "GraphMatern32", "GraphMatern52"]


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


class GraphMatern12(GraphMatern):
    """The same with ν = 0.5: rough, as matern12 on a road."""

    def __init__(self, smoothness: float = 0.5) -> None:
        super().__init__(0.5)


class GraphMatern32(GraphMatern):
    """The same with ν = 1.5: with a slope, as matern32 on a road."""

    def __init__(self, smoothness: float = 1.5) -> None:
        super().__init__(1.5)


class GraphMatern52(GraphMatern):
    """The same with ν = 2.5: with a curvature, as matern52 on a road."""

    def __init__(self, smoothness: float = 2.5) -> None:
        super().__init__(2.5)
