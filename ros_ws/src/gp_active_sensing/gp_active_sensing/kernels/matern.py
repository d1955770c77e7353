"""Matérn kernels with smoothness 1/2, 3/2 and 5/2."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gp_active_sensing.kernels.base import Stationary
from gp_active_sensing.types import FloatArray

__all__ = ["Matern12", "Matern32", "Matern52"]


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
