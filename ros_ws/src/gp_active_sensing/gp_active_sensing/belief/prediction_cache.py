"""``C⁻¹ K_D*`` for every place of the map, kept from one prediction to the next."""

from __future__ import annotations

import numpy as np

from gp_active_sensing.belief.factor import Factor
from gp_active_sensing.types import FloatArray

__all__ = ["PredictionCache"]

_MOST = 256e6
"""Bytes that may be kept; a larger map is solved for again each time."""
_FEWEST = 64
"""Places that are predicted together at least, however many candidates and readings there are."""
_GROWTH = 1.5
"""Factor by which the room for rows grows."""


class PredictionCache:
    """Grows with the rows of a factor: a new row costs O(L R n), not a solve of O(L R² n).

    Args:
        n: number of places.
    """

    def __init__(self, n: int) -> None:
        self._everything = np.arange(n)
        self._kept: FloatArray = np.empty((0, 0, n))
        self._rows = 0

    def truncate(self, rows: int) -> None:
        """Forget the rows from number `rows` on: the factor's are others now."""
        self._rows = min(self._rows, rows)

    def keeps(self, factor: Factor) -> bool:
        """Return whether the map is small enough for everything to be kept."""
        size = 8.0 * _GROWTH * factor.C.shape[0] * factor.rows * self._everything.size
        return bool(size <= _MOST)

    def chunk(self, factor: Factor) -> int:
        """Return how many places at a time take a quarter of the memory that may be kept."""
        return max(_FEWEST, int(_MOST / 4.0 / (8.0 * factor.C.shape[0] * max(factor.rows, 1))))

    def release(self) -> None:
        """Give back the memory of what is kept."""
        self._kept, self._rows = np.empty((0, 0, self._everything.size)), 0

    def of(self, factor: Factor) -> FloatArray:
        """Return ``C⁻¹ K_D*`` (L, R, n) of the factor's rows; not to be changed."""
        R, n = factor.rows, self._everything.size
        L = factor.C.shape[0]
        if not self.keeps(factor):
            self.release()
            return factor.solve(self._between(factor, 0))
        if self._kept.shape[0] != L or self._kept.shape[1] < R:
            grown = np.empty((L, int(_GROWTH * R) + 1, n))
            if self._rows:
                grown[:, : self._rows] = self._kept[:, : self._rows]
            self._kept = grown
        if self._rows < R:
            self._extend(factor)
        return self._kept[:, :R]

    def _between(self, factor: Factor, first: int) -> FloatArray:
        """Return the (L, r, n) covariance of the rows from number `first` on with every place."""
        return factor.covariance.between(factor.place[first:], self._everything)

    def _extend(self, factor: Factor) -> None:
        old, R = self._rows, factor.rows
        new = self._between(factor, old)
        if old:
            new = new - factor.C[:, old:, :old] @ self._kept[:, :old]
        self._kept[:, old:R] = factor.solve(new, old)
        self._rows = R
