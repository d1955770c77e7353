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
"""Number of places around a point whose own parts may reach it."""
_NO_WEIGHT = 1e-13
"""Total weight of the candidates that are left out."""
_LINEAR = 1e-9
"""Largest error of a basis function that counts as linear in the coordinates."""


@dataclass(frozen=True)
class PointLocator:
    r"""Locator of points among the places of a map.

    The part u of the field that belongs to each place alone is continued between places as

    .. math:: u(x) = \sum_i w_i(x) u_i + r(x), \quad w_i(x) = \max(0, 1 - |x - x_i| / h_i)

    with the distance h_i from place i to its nearest neighbour and an independent rest r that
    keeps the variance of u. So u is continuous, has the place's value at each place, and no
    place beyond the nearest ones affects it.

    Args:
        places: (n, 2), or (n, 3) with heights [m].
        names: (p,) of the features that the covariance is a function of.
    """

    places: FloatArray
    names: tuple[str, ...] = ()

    def locate(self, positions: FloatArray, within: IntArray | None = None) -> Points:
        """Return what the belief has to know of points.

        Args:
            positions: (m, 2), or (m, 3) on a map with heights [m].
            within: (m,) place that each point is a part of, such as a road segment, whose own
                part is the same everywhere along it; None = places are points themselves.

        Raises:
            ValueError: positions of another shape, or not finite.
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
        at = distance[:, 0] == 0.0  # one of several places at one point stands for all
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
        """Return a tree of the places, and (n,) the distance of each to its nearest neighbour."""
        from scipy.spatial import cKDTree  # here, since it is slow to import

        tree = cKDTree(self.places)
        return tree, np.asarray(tree.query(self.places, k=[2])[0])[:, 0]  # inf without another


def mixture_at(
    data: Conditioning, weights: FloatArray, transform: Transform, points: Points
) -> Mixture:
    """Return the mixture of the noise-free field at points (m,). [Hoang2014, Eqs. 1-2].

    At a place it equals that of the place. O(L |D|² m).

    Args:
        data: readings, up to date.
        weights: (L,) of the candidates.
        transform: between values of the field and those in the sensor's unit.
        points: where.
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
    """Return the (m, q) basis of the mean at points: linear ones exactly, else the place's."""
    basis = data.basis
    if not basis.shape[1] or data.steepness is None or not np.ptp(basis, axis=0).any():
        return np.asarray(basis[points.nearest])
    places = data.steepness.points
    centre = places.mean(axis=0)
    columns = np.column_stack([np.ones(len(places)), places - centre])
    slopes = np.linalg.lstsq(columns, basis, rcond=None)[0]
    linear = np.abs(columns @ slopes - basis).max(axis=0) <= _LINEAR * np.abs(basis).max(axis=0)
    found = np.array(basis[points.nearest])
    found[:, linear] = (
        np.column_stack([np.ones(len(points.positions)), points.positions - centre])
        @ slopes[:, linear]
    )
    return found
