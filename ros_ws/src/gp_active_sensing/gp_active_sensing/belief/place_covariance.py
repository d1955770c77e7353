"""Covariance components in addition to a kernel, and the expected slope of the field at places."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy

import numpy as np

from gp_active_sensing.belief.prior import (
    CovarianceFamily,
    HyperParameters,
    JoinedCovariance,
    LocationCovariance,
    Points,
    SignalCovariance,
    length_scales_of,
)
from gp_active_sensing.kernels.base import Matern32
from gp_active_sensing.topology.geometry import spacing_of
from gp_active_sensing.types import FloatArray, IntArray


class AddedCovariance(LocationCovariance):
    """Covariance ``K + σ² S`` with a component S that is the same for all candidates λ.

    Args:
        rest: covariance K.
        std: name of the attribute of `HyperParameters` that contains σ.
    """

    def __init__(self, rest: LocationCovariance, std: str) -> None:
        self.rest = rest
        self.n = rest.n
        self.hyperparameters = rest.hyperparameters
        self._size = np.array([getattr(h, std) ** 2 for h in rest.hyperparameters])

    def variance(self, locations: IntArray) -> FloatArray:
        """Return the (L, m) prior variance at `locations` under each candidate λ."""
        return np.asarray(self.rest.variance(locations) + self._size[:, None])

    def only(self, which: Sequence[int]) -> AddedCovariance:
        """Return this covariance restricted to the hyper-parameter candidates `which`."""
        other = copy(self)
        other.rest = self.rest.only(which)
        other.hyperparameters = other.rest.hyperparameters
        other._size = self._size[list(which)]
        return other

    def _add(self, found: FloatArray, shared: FloatArray) -> FloatArray:
        """Add σ² times the component `shared` (r, c) to `found` (L, r, c)."""
        on = slice(None) if self._size.all() else np.flatnonzero(self._size)
        found[on] += self._size[on, None, None] * shared
        return found


class AttributeCovariance(AddedCovariance):
    """Covariance ``K + σ_a² Z Zᵀ``, in which slopes on the columns Z are integrated out.

    The slopes are ``β ~ N(0, σ_a² I)`` [Rasmussen2006, Sec. 2.7]. Candidates with σ_a = 0 do not
    use the columns.

    Args:
        rest: covariance K; `attribute_std` of its candidates is σ_a.
        columns: (n, q) Z, scaled so that the squares of a row sum to 1 on average; σ_a² is then
            the variance that all columns explain together.
    """

    def __init__(self, rest: LocationCovariance, columns: FloatArray) -> None:
        super().__init__(rest, "attribute_std")
        if len(columns) != rest.n:
            msg = f"expected attributes of {rest.n} places, got {len(columns)}"
            raise ValueError(msg)
        self.columns = columns

    def between(self, rows: IntArray, columns: IntArray) -> FloatArray:
        """Return the (L, r, c) prior covariance of `rows` and `columns` under each candidate λ."""
        shared = self.columns[rows] @ self.columns[columns].T
        return self._add(self.rest.between(rows, columns), shared)

    def with_points(self, rows: IntArray, points: Points) -> FloatArray:
        """Return the (L, r, m) prior covariance of places `rows` and m points for candidates λ."""
        shared = self.columns[rows] @ self.columns[points.nearest].T
        return self._add(self.rest.with_points(rows, points), shared)

    def variance(self, locations: IntArray) -> FloatArray:
        """Return the (L, m) prior variance at `locations` under each candidate λ."""
        own = np.square(self.columns[locations]).sum(axis=1)
        return np.asarray(self.rest.variance(locations) + self._size[:, None] * own)


class PlaceCovariance(AddedCovariance):
    """Covariance ``K_g + σ_u² I`` of a smooth field g and an independent component u of each place.

    u belongs to the field, not to the sensor: predictions include u. The covariance of g is
    `smooth`; σ_u is the `place_std` of a candidate λ.
    """

    def __init__(self, smooth: LocationCovariance) -> None:
        super().__init__(smooth, "place_std")

    def between(self, rows: IntArray, columns: IntArray) -> FloatArray:
        """Return the (L, r, c) prior covariance of `rows` and `columns` under each candidate λ."""
        rows, columns = np.asarray(rows), np.asarray(columns)
        found = self.rest.between(rows, columns)
        at, to = np.nonzero(rows[:, None] == columns)
        found[:, at, to] += self._size[:, None]
        return found

    def with_points(self, rows: IntArray, points: Points) -> FloatArray:
        """Return the (L, r, m) prior covariance of places `rows` and m points for candidates λ."""
        return self._add(self.rest.with_points(rows, points), points.shares_of(rows))


class LongCovariance(AddedCovariance):
    """Covariance ``K + σ_l² k_l``; the length-scale of component k_l is half of the map's extent.

    The component allows the field to have another level in regions far from the readings.

    Args:
        rest: covariance K; `long_std` of its candidates is σ_l.
        features: (n, p) features of the places; all candidates have the same `long_scales`.
    """

    def __init__(self, rest: LocationCovariance, features: FloatArray) -> None:
        super().__init__(rest, "long_std")
        self.features = features
        self._scale = np.array([rest.hyperparameters[0].long_scales])

    def between(self, rows: IntArray, columns: IntArray) -> FloatArray:
        """Return the (L, r, c) prior covariance of `rows` and `columns` under each candidate λ."""
        shared = self._shared(rows, self.features[columns])
        return self._add(self.rest.between(rows, columns), shared)

    def with_points(self, rows: IntArray, points: Points) -> FloatArray:
        """Return the (L, r, m) prior covariance of places `rows` and m points for candidates λ."""
        shared = self._shared(rows, points.features_on(self.features))
        return self._add(self.rest.with_points(rows, points), shared)

    def _shared(self, rows: IntArray, there: FloatArray) -> FloatArray:
        return np.asarray(Matern32().correlations(self.features[rows], there, self._scale)[0])


class NoNeighbours(SignalCovariance):
    """Covariance ``σ_s² I`` of a field at n places without spatial correlation.

    The length-scales of the candidates have no effect.
    """

    def between(self, rows: IntArray, columns: IntArray) -> FloatArray:
        """Return the (L, r, c) prior covariance of `rows` and `columns` under each candidate λ."""
        same = np.asarray(rows)[:, None] == np.asarray(columns)
        return np.asarray(self._signal[:, None, None] * same)

    def with_points(self, rows: IntArray, points: Points) -> FloatArray:
        """Return the (L, r, m) prior covariance of places `rows` and m points for candidates λ."""
        return np.asarray(self._signal[:, None, None] * points.shares_of(rows))


def with_components(
    smooth: CovarianceFamily, features: FloatArray, columns: FloatArray
) -> CovarianceFamily:
    """Return a family that adds the components of the candidates to the covariance `smooth`.

    A component is added if any candidate has a standard deviation above 0 for it. `features` (n, p)
    are used by `LongCovariance`, and `columns` (n, q) by `AttributeCovariance`.
    """

    def made(candidates: Sequence[HyperParameters]) -> LocationCovariance:
        found = smooth(candidates)
        if any(h.long_std for h in candidates):
            found = LongCovariance(found, features)
        if any(h.place_std for h in candidates):
            found = PlaceCovariance(found)
        if columns.shape[1] and any(h.attribute_std for h in candidates):
            found = AttributeCovariance(found, columns)
        return found

    return made


def smooth_part(covariance: LocationCovariance) -> LocationCovariance:
    """Return the covariance without attributes and independent components."""
    if isinstance(covariance, JoinedCovariance):
        return JoinedCovariance([smooth_part(part) for part in covariance.parts])
    if isinstance(covariance, AttributeCovariance):
        return smooth_part(covariance.rest)
    if isinstance(covariance, NoNeighbours):
        nothing = copy(covariance)
        nothing._signal = np.zeros_like(covariance._signal)
        return nothing
    return covariance.rest if isinstance(covariance, PlaceCovariance) else covariance


_NEAREST = 4
"""Largest number of nearest places from which the slope at a place is computed."""
_ABOVE = 2
"""Largest total number of places above and below a place that determine its vertical slope."""
_STEEP = 2.0
"""A step between places is horizontal if its horizontal part is at least this factor times its
vertical part. It is vertical in the opposite case. Both parts are relative to the map's spacing."""


class Steepness:
    """Expected squared slopes of the field [variance/m²].

    Args:
        points: (n, 2) positions of the places, or (n, 3) with heights [m].
        names: names of the features, in the order of their length-scales.
    """

    def __init__(self, points: FloatArray, names: Sequence[str] = ()) -> None:
        self.points = points
        self.names = tuple(names)
        self._has_heights = points.shape[1] == 3
        self._stretch = 1.0 / spacing_of(points).ratio if self._has_heights else 1.0
        self._known: dict[int, FloatArray] = {}
        self._covariance: LocationCovariance | None = None

    def of(self, covariance: LocationCovariance, places: IntArray) -> FloatArray:
        """Return the (2, L, k) squared horizontal and vertical slopes at `places` (k,).

        Vertical slopes are 0 on a map without heights.
        """
        if covariance is not self._covariance:
            self._covariance, self._known = covariance, {}
        at = self._in_space if self._has_heights else self._in_plane
        for place in places.tolist():
            if place not in self._known:
                self._known[place] = at(covariance, place)
        return np.stack([self._known[place] for place in places.tolist()], axis=2)

    def _in_plane(self, covariance: LocationCovariance, place: int) -> FloatArray:
        apart = np.hypot(*(self.points - self.points[place]).T)
        found = np.zeros((2, len(covariance.hyperparameters)))
        near = _nearest(apart)[:_NEAREST]
        if near.size:
            found[0] = (_increments(covariance, place, near) / apart[near] ** 2).mean(axis=1)
        return found

    def _in_space(self, covariance: LocationCovariance, place: int) -> FloatArray:
        """Return the (2, L) squared horizontal and vertical slopes at a place.

        They follow from the field's expected differences to the nearest places (steps). If there
        are horizontal and vertical steps, both slopes are fitted by least squares. Otherwise the
        ratio of the two slopes follows from the ratio of the length-scales.
        """
        offsets = self.points - self.points[place]
        across, up = np.hypot(offsets[:, 0], offsets[:, 1]), np.abs(offsets[:, 2])
        apart = np.hypot(across, self._stretch * up)
        order = _nearest(apart)
        level = order[across[order] >= _STEEP * self._stretch * up[order]][:_NEAREST]
        above = order[_STEEP * across[order] <= self._stretch * up[order]][:_ABOVE]
        if level.size and above.size:
            near = np.concatenate([level, above])
            steps = _increments(covariance, place, near) / apart[near] ** 2
            shares = np.stack([across[near], self._stretch * up[near]]) ** 2 / apart[near] ** 2
            found = _least_squares(shares, steps)
            found[1] *= self._stretch**2
            return found
        found = np.zeros((2, len(covariance.hyperparameters)))
        near = order[:_NEAREST]
        if near.size:
            ratio = self._ratios(covariance)[:, None]
            squares = across[near] ** 2 + (ratio * up[near]) ** 2
            found[0] = (_increments(covariance, place, near) / squares).mean(axis=1)
            found[1] = ratio[:, 0] ** 2 * found[0]
        return found

    def _ratios(self, covariance: LocationCovariance) -> FloatArray:
        """Return the (L,) ratio of the horizontal length-scale to the length-scale along z."""
        axes = [k for k, name in enumerate(self.names) if name in ("x", "y")]
        if not axes or "z" not in self.names:
            return np.ones(len(covariance.hyperparameters))
        z = self.names.index("z")
        scales = length_scales_of(covariance.hyperparameters)
        if scales.shape[1] != len(self.names):  # one length-scale for all features
            return np.ones(len(scales))
        return np.asarray(scales[:, axes].mean(axis=1) / scales[:, z])


def _nearest(apart: FloatArray) -> IntArray:
    """Return the places at other positions, nearest first."""
    elsewhere = np.flatnonzero(apart > 1e-6 * float(apart.max()))
    return np.asarray(elsewhere[np.argsort(apart[elsewhere], kind="stable")])


def _increments(covariance: LocationCovariance, place: int, near: IntArray) -> FloatArray:
    """Return the (L, m) expected squared differences between the field at `place` and at `near`.

    Independent components are left out: they do not contribute to slopes within a place.
    """
    joint = smooth_part(covariance).between(np.append(place, near), np.append(place, near))
    own = np.diagonal(joint, axis1=1, axis2=2)
    return np.asarray(np.maximum(own[:, :1] + own[:, 1:] - 2.0 * joint[:, 0, 1:], 0.0))


def _least_squares(shares: FloatArray, steps: FloatArray) -> FloatArray:
    """Return the non-negative least-squares solution x (2, L) of ``xᵀ shares = steps`` (L, m)."""
    square, right = shares @ shares.T, shares @ steps.T
    found = np.linalg.solve(square, right)
    for one in (0, 1):
        alone = found[1 - one] < 0.0
        found[one, alone] = right[one, alone] / square[one, one]
        found[1 - one, alone] = 0.0
    return np.asarray(found)
