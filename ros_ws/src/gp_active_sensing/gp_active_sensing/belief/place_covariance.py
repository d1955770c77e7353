"""What a place has of its own: attributes, a part that no other place shares, and its slope."""

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
    length_scales_of,
)
from gp_active_sensing.kernels.base import Matern32
from gp_active_sensing.topology.geometry import spacing_of
from gp_active_sensing.types import FloatArray, IntArray


class AddedCovariance(LocationCovariance):
    """``K + σ² S`` of a rest K and a part S that all candidates share.

    Args:
        rest: covariance of the rest.
        std: name of the standard deviation σ of its candidates.
    """

    def __init__(self, rest: LocationCovariance, std: str) -> None:
        self.rest = rest
        self.n = rest.n
        self.hyperparameters = rest.hyperparameters
        self._size = np.array([getattr(h, std) ** 2 for h in rest.hyperparameters])

    def variance(self, locations: IntArray) -> FloatArray:
        """Return the (L, m) prior variance of the latent field."""
        return np.asarray(self.rest.variance(locations) + self._size[:, None])

    def only(self, which: Sequence[int]) -> AddedCovariance:
        """Return the same under some of the candidates only."""
        other = copy(self)
        other.rest = self.rest.only(which)
        other.hyperparameters = other.rest.hyperparameters
        other._size = self._size[list(which)]
        return other

    def _add(self, found: FloatArray, shared: FloatArray) -> FloatArray:
        """Add (r, c) shared numbers to those of the rest (L, r, c)."""
        on = slice(None) if self._size.all() else np.flatnonzero(self._size)
        found[on] += self._size[on, None, None] * shared
        return found


class AttributeCovariance(AddedCovariance):
    """``K + σ_a² Z Zᵀ``: slopes ``β ~ N(0, σ_a² I)`` on columns Z, integrated out.

    [Rasmussen2006, Sec. 2.7]. The prior holds the slopes near zero, so that columns that tell
    nothing cost little; candidates with σ_a = 0 do without.

    Args:
        rest: covariance of the rest; `attribute_std` of its candidates is σ_a.
        columns: (n, q) Z; squares of a row sum to 1 on average, so that σ_a is what all together
            explain.
    """

    def __init__(self, rest: LocationCovariance, columns: FloatArray) -> None:
        super().__init__(rest, "attribute_std")
        if len(columns) != rest.n:
            msg = f"expected attributes of {rest.n} places, got {len(columns)}"
            raise ValueError(msg)
        self.columns = columns

    def between(self, rows: IntArray, columns: IntArray) -> FloatArray:
        """Return the (L, r, c) covariance of the latent field."""
        shared = self.columns[rows] @ self.columns[columns].T
        return self._add(self.rest.between(rows, columns), shared)

    def with_points(self, rows: IntArray, points: Points) -> FloatArray:
        """Return the (L, r, m) covariance of the latent field at places and at points."""
        shared = self.columns[rows] @ self.columns[points.nearest].T
        return self._add(self.rest.with_points(rows, points), shared)

    def variance(self, locations: IntArray) -> FloatArray:
        """Return the (L, m) prior variance of the latent field."""
        own = np.square(self.columns[locations]).sum(axis=1)
        return np.asarray(self.rest.variance(locations) + self._size[:, None] * own)


def with_attributes(family: CovarianceFamily, columns: FloatArray) -> CovarianceFamily:
    """Return the family whose candidates have an `attribute_std`; see `AttributeCovariance`."""

    def made(candidates: Sequence[HyperParameters]) -> LocationCovariance:
        rest = family(candidates)
        some = columns.shape[1] and any(h.attribute_std for h in candidates)
        return AttributeCovariance(rest, columns) if some else rest

    return made


class PlaceCovariance(AddedCovariance):
    """``K_g + σ_u² I``: a field of a smooth part g and of a part u of each place's own.

    What makes this road segment or this cell itself is part of the field, not of the sensor: it
    is predicted, it is uncertain where nothing was read, and readings of the place remove it.

    Args:
        smooth: covariance of g; `place_std` of its candidates is σ_u.
    """

    def __init__(self, smooth: LocationCovariance) -> None:
        super().__init__(smooth, "place_std")

    def between(self, rows: IntArray, columns: IntArray) -> FloatArray:
        """Return the (L, r, c) covariance of the latent field."""
        rows, columns = np.asarray(rows), np.asarray(columns)
        found = self.rest.between(rows, columns)
        at, to = np.nonzero(rows[:, None] == columns)
        found[:, at, to] += self._size[:, None]
        return found

    def with_points(self, rows: IntArray, points: Points) -> FloatArray:
        """Return the (L, r, m) covariance of the latent field at places and at points."""
        return self._add(self.rest.with_points(rows, points), points.shares_of(rows))


class LongCovariance(AddedCovariance):
    """``K + σ_l² k_l``: a field with a part that varies over half of the map.

    What a robot has driven through then says little about the amplitude of what is far away: each
    kernel alone ties the two together.

    Args:
        rest: covariance of the rest; `long_std` of its candidates is σ_l.
        features: (n, p) of the places; all candidates have the same `long_scales`.
    """

    def __init__(self, rest: LocationCovariance, features: FloatArray) -> None:
        super().__init__(rest, "long_std")
        self.features = features
        self._scale = np.array([rest.hyperparameters[0].long_scales])

    def between(self, rows: IntArray, columns: IntArray) -> FloatArray:
        """Return the (L, r, c) covariance of the latent field."""
        shared = self._shared(rows, self.features[columns])
        return self._add(self.rest.between(rows, columns), shared)

    def with_points(self, rows: IntArray, points: Points) -> FloatArray:
        """Return the (L, r, m) covariance of the latent field at places and at points."""
        shared = self._shared(rows, points.features_on(self.features))
        return self._add(self.rest.with_points(rows, points), shared)

    def _shared(self, rows: IntArray, there: FloatArray) -> FloatArray:
        return np.asarray(_LONG.correlations(self.features[rows], there, self._scale)[0])


_LONG = Matern32()
"""Kernel of the part that varies over half of the map."""


def with_long_part(family: CovarianceFamily, features: FloatArray) -> CovarianceFamily:
    """Return the family whose candidates have a `long_std`; see `LongCovariance`."""

    def made(candidates: Sequence[HyperParameters]) -> LocationCovariance:
        rest = family(candidates)
        return LongCovariance(rest, features) if any(h.long_std for h in candidates) else rest

    return made


class NoNeighbours(LocationCovariance):
    """``σ_s² I``: a field without spatial correlation.

    Args:
        n: number of places.
        hyperparameters: the candidates; their length-scales have no effect.
    """

    def __init__(self, n: int, hyperparameters: Sequence[HyperParameters]) -> None:
        self.n = n
        self.hyperparameters = tuple(hyperparameters)
        self._own = np.array([h.signal_std**2 for h in hyperparameters])

    def between(self, rows: IntArray, columns: IntArray) -> FloatArray:
        """Return the (L, r, c) covariance of the latent field."""
        same = np.asarray(rows)[:, None] == np.asarray(columns)
        return np.asarray(self._own[:, None, None] * same)

    def with_points(self, rows: IntArray, points: Points) -> FloatArray:
        """Return the (L, r, m) covariance of the latent field at places and at points."""
        return np.asarray(self._own[:, None, None] * points.shares_of(rows))

    def variance(self, locations: IntArray) -> FloatArray:
        """Return the (L, m) prior variance of the latent field."""
        return np.repeat(self._own[:, None], len(locations), axis=1)

    def only(self, which: Sequence[int]) -> NoNeighbours:
        """Return the same under some of the candidates only."""
        other = copy(self)
        other._own = self._own[list(which)]
        other.hyperparameters = tuple(self.hyperparameters[i] for i in which)
        return other


def with_places(family: CovarianceFamily) -> CovarianceFamily:
    """Return the family whose candidates have a `place_std`, where any of them has."""

    def made(candidates: Sequence[HyperParameters]) -> LocationCovariance:
        smooth = family(candidates)
        return PlaceCovariance(smooth) if any(h.place_std for h in candidates) else smooth

    return made


def smooth_part(covariance: LocationCovariance) -> LocationCovariance:
    """Return the covariance of what places share; all of it where none has a part of its own."""
    if isinstance(covariance, JoinedCovariance):
        return JoinedCovariance([smooth_part(part) for part in covariance.parts])
    if isinstance(covariance, AttributeCovariance):
        return smooth_part(covariance.rest)
    if isinstance(covariance, NoNeighbours):
        nothing = copy(covariance)
        nothing._own = np.zeros_like(covariance._own)
        return nothing
    return covariance.rest if isinstance(covariance, PlaceCovariance) else covariance


_NEAREST = 4
"""Places about one that are looked at."""
_ABOVE = 2
"""Those above and below it: as many for one axis as there are for each of the other two."""
_STEEP = 2.0
"""A step is across, or up, that goes so many times as far across, or up, in steps of the map."""


class Steepness:
    """Expected squares of the field's slope, per square metre.

    Args:
        points: (n, 2) of the places, or (n, 3) with heights [m].
        names: of the features that length-scales are of, where there are several.
    """

    def __init__(self, points: FloatArray, names: Sequence[str] = ()) -> None:
        self.points = points
        self.names = tuple(names)
        self._has_heights = points.shape[1] == 3
        self._stretch = 1.0 / spacing_of(points).ratio if self._has_heights else 1.0
        self._known: dict[int, FloatArray] = {}
        self._covariance: LocationCovariance | None = None

    def copy(self) -> Steepness:
        """Return an independent copy."""
        other = copy(self)
        other._known = dict(self._known)
        return other

    def of(self, covariance: LocationCovariance, places: IntArray) -> FloatArray:
        """Return (2, L, k) of some places: across and up, 0 where the map lies in the plane.

        Args:
            covariance: prior covariance under each λ.
            places: (k,).
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
        """Return (2, L): what steps to the nearest places come to, shared out to both directions.

        Where places lie in layers above one another each direction has steps of its own, and it is
        the mean of these. Where all steps are more or less across, or up, they do not tell the
        other one, and the length-scales do.
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
        """Return (L,) how many times as long the length-scale across is as that along z."""
        axes = [k for k, name in enumerate(self.names) if name in ("x", "y")]
        if not axes or "z" not in self.names:
            return np.ones(len(covariance.hyperparameters))
        z = self.names.index("z")
        scales = length_scales_of(covariance.hyperparameters)
        if scales.shape[1] != len(self.names):  # one for all features
            return np.ones(len(scales))
        return np.asarray(scales[:, axes].mean(axis=1) / scales[:, z])


def _nearest(apart: FloatArray) -> IntArray:
    """Return the places that are elsewhere, the nearest first.

    Two directions of one road are two places at one point: nothing is between them.
    """
    elsewhere = np.flatnonzero(apart > 1e-6 * float(apart.max()))
    return np.asarray(elsewhere[np.argsort(apart[elsewhere], kind="stable")])


def _increments(covariance: LocationCovariance, place: int, near: IntArray) -> FloatArray:
    """Return (L, m) expected squares of what the field differs by from a place to others.

    What belongs to each place alone is the same everywhere within it.
    """
    joint = smooth_part(covariance).between(np.append(place, near), np.append(place, near))
    own = np.diagonal(joint, axis1=1, axis2=2)
    return np.asarray(np.maximum(own[:, :1] + own[:, 1:] - 2.0 * joint[:, 0, 1:], 0.0))


def _least_squares(shares: FloatArray, steps: FloatArray) -> FloatArray:
    """Return non-negative parts (2, L) that `shares` (2, m) mixes into the steps (L, m)."""
    square, right = shares @ shares.T, shares @ steps.T
    found = np.linalg.solve(square, right)
    for one in (0, 1):
        alone = found[1 - one] < 0.0
        found[one, alone] = right[one, alone] / square[one, one]
        found[1 - one, alone] = 0.0
    return np.asarray(found)
