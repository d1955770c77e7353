"""Squared exponential kernel."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gp_active_sensing.kernels.base import Stationary
from gp_active_sensing.types import FloatArray

__all__ = ["SquaredExponential"]


@dataclass(frozen=True)
class SquaredExponential(Stationary):
    r"""The paper's covariance: very smooth fields. [Hoang2014, Sec. 2].

    .. math:: k(r) = \exp(-r^2/2), \quad r^2 = \sum_i (x_i - x'_i)^2 / \ell_i^2
    """

    def of_distance(self, r: FloatArray) -> FloatArray:
        """Return ``exp(-r**2/2)``."""
        return np.asarray(np.exp(-0.5 * r * r))
