"""How much the field varies about a place, as each candidate has it.

The belief knows places only by index. For readings that were taken beside the point that a place
stands for it needs to know how far the field is from there to here: by the nearest places, which it
takes to lie on a straight slope.
"""

from __future__ import annotations

import numpy as np

from gp_active_sensing.belief.covariance import LocationCovariance
from gp_active_sensing.belief.place_covariance import smooth_part
from gp_active_sensing.types import FloatArray, IntArray

__all__ = ["Steepness"]

_NEAREST = 4
"""Places about one that are looked at."""


class Steepness:
    """Expected squares of the field's slope, per square metre.

    Args:
        positions: (n, 2) of the places [m].
    """

    def __init__(self, positions: FloatArray) -> None:
        self._positions = positions
        self._known: dict[int, FloatArray] = {}
        self._covariance: LocationCovariance | None = None

    def copy(self) -> Steepness:
        """Return an independent copy."""
        other = Steepness(self._positions)
        other._known, other._covariance = dict(self._known), self._covariance
        return other

    def of(self, covariance: LocationCovariance, places: IntArray) -> FloatArray:
        """Return (L, k) of some places.

        Args:
            covariance: prior covariance under each λ.
            places: (k,).
        """
        if covariance is not self._covariance:
            self._covariance, self._known = covariance, {}
        for place in places.tolist():
            if place not in self._known:
                self._known[place] = self._at(covariance, place)
        return np.stack([self._known[place] for place in places.tolist()], axis=1)

    def _at(self, covariance: LocationCovariance, place: int) -> FloatArray:
        apart = np.hypot(*(self._positions - self._positions[place]).T)
        # Two directions of one road are two places at one point: nothing is between them.
        elsewhere = np.flatnonzero(apart > 1e-6 * float(apart.max()))
        if not elsewhere.size:
            return np.zeros(len(covariance.hyperparameters))
        near = elsewhere[np.argsort(apart[elsewhere], kind="stable")[:_NEAREST]]
        # What belongs to each place alone is the same everywhere within it.
        joint = smooth_part(covariance).between(np.append(place, near), np.append(place, near))
        own = np.diagonal(joint, axis1=1, axis2=2)
        steps = own[:, :1] + own[:, 1:] - 2.0 * joint[:, 0, 1:]
        return np.asarray((np.maximum(steps, 0.0) / apart[near] ** 2).mean(axis=1))
