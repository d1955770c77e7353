"""Positions between the places of a map, and the belief about the field there."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from gp_active_sensing.belief.conditioning import Conditioning
from gp_active_sensing.belief.mixture import Mixture
from gp_active_sensing.belief.prior import Points, Transform
from gp_active_sensing.types import FloatArray, IntArray

_AROUND = 8
"""Largest number of places whose independent components affect a point."""
_NO_WEIGHT = 1e-13
"""Largest total weight of the least probable candidates λ, which are left out."""
_LINEAR = 1e-9
"""A basis function counts as linear if the relative error of its linear fit is at most this."""


@dataclass(frozen=True)
class PointLocator:
    r"""Locator of points among the places of a map.

    Each place i has an independent component u_i of the field. Between the places, the component is

    .. math:: u(x) = \sum_i w_i(x) u_i + r(x), \quad w_i(x) = \max(0, 1 - |x - x_i| / h_i)

    Here h_i is the distance from place i to its nearest neighbour. The term r(x) is independent of
    all u_i. Its variance gives u(x) the same variance as each u_i. The function u(x) is continuous
    and has the value u_i at place i.

    Args:
        places: (n, 2) positions of the places, or (n, 3) with heights [m].
        names: (p,) names of the features that the covariance depends on.
    """

    places: FloatArray
    names: tuple[str, ...] = ()

    def locate(self, positions: FloatArray, within: IntArray | None = None) -> Points:
        """Return points with their features and nearby places.

        Args:
            positions: (m, 2), or (m, 3) on a map with heights [m].
            within: (m,) place that contains each point, such as a road segment. The independent
                component is constant within a place. None = places are points.

        Raises:
            ValueError: the positions have a wrong shape or are not finite.
        """
        positions = np.asarray(positions, dtype=np.float64)
        width = self.places.shape[1]
        if positions.ndim != 2 or positions.shape[1] != width or not np.isfinite(positions).all():
            msg = f"expected finite positions (m, {width}) [m], got shape {positions.shape}"
            raise ValueError(msg)
        if within is not None:
            within = np.asarray(within, dtype=np.int64)
            ones = np.ones((len(positions), 1))
            return self._points(positions, within[:, None], ones)
        tree, apart = self._neighbours
        count = min(_AROUND, len(self.places))
        distance, around = tree.query(positions, k=[*range(1, count + 1)])
        with np.errstate(divide="ignore", invalid="ignore"):
            shares = np.maximum(1.0 - distance / apart[around], 0.0)
        shares[~np.isfinite(shares)] = 0.0
        at = distance[:, 0] == 0.0  # of several places at one point, use the first
        shares[at] = np.arange(count) == 0
        return self._points(positions, around, shares)

    def _points(self, positions: FloatArray, around: IntArray, shares: FloatArray) -> Points:
        nearest, axes = around[:, 0], ("x", "y", "z")[: positions.shape[1]]
        if not self.names or not set(self.names) <= set(axes):
            return Points(positions, nearest, None, None, around, shares)
        columns = [axes.index(name) for name in self.names]
        there = self.places[nearest][:, columns]
        return Points(positions, nearest, positions[:, columns], there, around, shares)

    @cached_property
    def _neighbours(self) -> tuple[Any, FloatArray]:
        """Return a tree of the places, and the (n,) distance from each to its nearest neighbour."""
        from scipy.spatial import cKDTree  # here, since it is slow to import

        tree = cKDTree(self.places)
        return tree, np.asarray(tree.query(self.places, k=[2])[0])[:, 0]  # inf for a single place


def mixture_at(
    data: Conditioning, weights: FloatArray, transform: Transform, points: Points
) -> Mixture:
    """Return the mixture of the noise-free field at m points. [Hoang2014, Eqs. 1-2].

    At the point of a place, the result equals `Belief.mixture`. `weights` (L,) are the weights of
    the candidates λ. Call `data.update` first. O(L |D|² m).
    """
    order = np.argsort(weights, kind="stable")
    which = np.sort(order[np.cumsum(weights[order]) > _NO_WEIGHT])
    right = data.with_points(points, which)
    solved = data.factor.solve(right, which=which)
    basis = _basis_at(data, points)
    R = basis - np.swapaxes(solved, 1, 2) @ data.factor.U[which]
    mean, variance = data.moments(points.nearest, which, solved, R)
    if (least := data.floor(mean, which)) is not None:
        variance = np.maximum(variance, least)
    kept = weights[which]
    return Mixture(kept / kept.sum(), mean, variance, transform)


def _basis_at(data: Conditioning, points: Points) -> FloatArray:
    """Return the (m, q) basis of the mean at points.

    A basis function that is not linear in the coordinates has its value at the nearest place.
    """
    basis = data.basis
    if not basis.shape[1] or data.steepness is None or not np.ptp(basis, axis=0).any():
        return np.asarray(basis[points.nearest])
    places = data.steepness.points
    centre = places.mean(axis=0)
    columns = np.column_stack([np.ones(len(places)), places - centre])
    slopes = np.linalg.lstsq(columns, basis, rcond=None)[0]
    linear = np.abs(columns @ slopes - basis).max(axis=0) <= _LINEAR * np.abs(basis).max(axis=0)
    found = np.array(basis[points.nearest])
    there = np.column_stack([np.ones(len(points.positions)), points.positions - centre])
    found[:, linear] = there @ slopes[:, linear]
    return found
