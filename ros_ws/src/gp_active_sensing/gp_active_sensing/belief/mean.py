"""Prior mean of the field: known, an unknown constant, or linear in the features."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gp_active_sensing.types import FloatArray

__all__ = ["PriorMean"]


@dataclass(frozen=True)
class PriorMean:
    """``m(x) = offset(x) + h(x)ᵀ β`` with ``β ~ N(0, diag(std²))`` integrated out.

    Integrating β out adds ``h(x)ᵀ diag(std²) h(x')`` to the covariance [Rasmussen2006, Sec. 2.7].
    It is kept apart from the covariance, so that a vague std does not spoil its condition number.

    Args:
        offset: (n,) known part.
        basis: (n, q) functions h; q = 0 for a known mean.
        std: (q,) prior standard deviation of each coefficient.
    """

    offset: FloatArray
    basis: FloatArray
    std: FloatArray

    @classmethod
    def known(cls, n: int, value: float) -> PriorMean:
        """Return the mean that is `value` everywhere, for certain."""
        return cls(np.full(n, float(value)), np.zeros((n, 0)), np.zeros(0))

    @classmethod
    def constant(cls, n: int, value: float, std: float) -> PriorMean:
        """Return an unknown constant, `value` ± `std`."""
        if std == 0.0:
            return cls.known(n, value)
        return cls(np.full(n, float(value)), np.ones((n, 1)), np.array([float(std)]))

    @classmethod
    def linear(cls, features: FloatArray, value: float, std: float) -> PriorMean:
        """Return an unknown constant plus unknown slopes on the standardised features.

        Constant features are left out: they cannot be told from the constant.
        """
        spread = features.std(axis=0)
        varying = spread > 1e-12 * np.maximum(1.0, np.abs(features).max(axis=0))
        columns = (features[:, varying] - features[:, varying].mean(axis=0)) / spread[varying]
        basis = np.column_stack([np.ones(len(features)), columns])
        return cls(np.full(len(features), float(value)), basis, np.full(basis.shape[1], std))
