"""A mean that is linear in attributes of the places, with slopes that shrink to zero."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from gp_active_sensing.belief.covariance import (
    CovarianceFamily,
    HyperParameters,
    LocationCovariance,
)
from gp_active_sensing.types import FloatArray, IntArray

__all__ = ["AttributeCovariance", "with_attributes"]


class AttributeCovariance:
    """``K + σ_a² Z Zᵀ``: slopes ``β ~ N(0, σ_a² I)`` on columns Z, integrated out.

    [Rasmussen2006, Sec. 2.7]. The prior holds the slopes near zero, so that columns that tell
    nothing cost little; candidates with σ_a = 0 do without.

    Args:
        rest: covariance of the rest; `attribute_std` of its candidates is σ_a.
        columns: (n, q) Z; squares of a row sum to 1 on average, so that σ_a is what all together
            explain.
    """

    def __init__(self, rest: LocationCovariance, columns: FloatArray) -> None:
        if len(columns) != rest.n:
            msg = f"expected attributes of {rest.n} places, got {len(columns)}"
            raise ValueError(msg)
        self.rest = rest
        self.columns = columns
        self._size = np.array([h.attribute_std**2 for h in rest.hyperparameters])

    @property
    def n(self) -> int:
        """Number of locations."""
        return self.rest.n

    @property
    def hyperparameters(self) -> tuple[HyperParameters, ...]:
        """(L,) the candidates Λ."""
        return self.rest.hyperparameters

    def between(self, rows: IntArray, columns: IntArray) -> FloatArray:
        """Return the (L, r, c) covariance of the latent field."""
        found = self.rest.between(rows, columns)
        shared = self.columns[rows] @ self.columns[columns].T
        on = np.flatnonzero(self._size)
        found[on] += self._size[on, None, None] * shared
        return found

    def variance(self, locations: IntArray) -> FloatArray:
        """Return the (L, m) prior variance of the latent field."""
        own = np.square(self.columns[locations]).sum(axis=1)
        return np.asarray(self.rest.variance(locations) + self._size[:, None] * own)

    def only(self, which: Sequence[int]) -> AttributeCovariance:
        """Return the same under some of the candidates only."""
        return AttributeCovariance(self.rest.only(which), self.columns)


def with_attributes(family: CovarianceFamily, columns: FloatArray) -> CovarianceFamily:
    """Return the family whose candidates have an `attribute_std`, where any of them has.

    Args:
        family: of the rest.
        columns: (n, q), see `AttributeCovariance`.
    """

    def made(candidates: Sequence[HyperParameters]) -> LocationCovariance:
        rest = family(candidates)
        some = columns.shape[1] and any(h.attribute_std for h in candidates)
        return AttributeCovariance(rest, columns) if some else rest

    return made
