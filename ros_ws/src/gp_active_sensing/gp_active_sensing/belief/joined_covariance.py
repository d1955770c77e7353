"""Candidates of several kernels in one belief, one kernel after the other."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from gp_active_sensing.belief.covariance import HyperParameters, LocationCovariance
from gp_active_sensing.types import FloatArray, IntArray

__all__ = ["JoinedCovariance", "joined"]


class JoinedCovariance:
    """The candidates of some covariances over the same places.

    Args:
        parts: one a kernel, in the order of their candidates.

    Raises:
        ValueError: none, or covariances of different numbers of places.
    """

    def __init__(self, parts: Sequence[LocationCovariance]) -> None:
        if len({part.n for part in parts}) != 1:
            msg = f"expected covariances of as many places, got {[part.n for part in parts]}"
            raise ValueError(msg)
        self.parts = tuple(parts)
        self._hyperparameters = tuple(h for part in parts for h in part.hyperparameters)

    @property
    def n(self) -> int:
        """Number of locations."""
        return self.parts[0].n

    @property
    def hyperparameters(self) -> tuple[HyperParameters, ...]:
        """(L,) the candidates Λ."""
        return self._hyperparameters

    def between(self, rows: IntArray, columns: IntArray) -> FloatArray:
        """Return the (L, r, c) covariance of the latent field."""
        return np.concatenate([part.between(rows, columns) for part in self.parts])

    def variance(self, locations: IntArray) -> FloatArray:
        """Return the (L, m) prior variance of the latent field."""
        return np.concatenate([part.variance(locations) for part in self.parts])

    def only(self, which: Sequence[int]) -> LocationCovariance:
        """Return the same under some of the candidates only."""
        found: list[LocationCovariance] = []
        start = 0
        for part in self.parts:
            end = start + len(part.hyperparameters)
            if mine := [i - start for i in which if start <= i < end]:
                found.append(part.only(mine))
            start = end
        return joined(found)


def joined(parts: Sequence[LocationCovariance]) -> LocationCovariance:
    """Return the candidates of all parts; a single part as it is."""
    return parts[0] if len(parts) == 1 else JoinedCovariance(parts)
