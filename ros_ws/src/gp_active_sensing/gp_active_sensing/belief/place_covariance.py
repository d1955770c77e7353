"""What a place has of its own: attributes, a part that no other place shares, and its slope."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from gp_active_sensing.belief.prior import (
    CovarianceFamily,
    HyperParameters,
    JoinedCovariance,
    LocationCovariance,
)
from gp_active_sensing.types import FloatArray, IntArray

__all__ = [
    "AttributeCovariance",
    "NoNeighbours",
    "PlaceCovariance",
    "Steepness",
    "smooth_part",
    "with_attributes",
    "with_places",
]


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
        self.n = rest.n
        self.hyperparameters = rest.hyperparameters
        self.columns = columns
        self._size = np.array([h.attribute_std**2 for h in rest.hyperparameters])

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


class PlaceCovariance:
    """``K_g + σ_u² I``: a field of a smooth part g and of a part u of each place's own.

    What makes this road segment or this cell itself is part of the field, not of the sensor: it
    is predicted, it is uncertain where nothing was read, and readings of the place remove it.

    Args:
        smooth: covariance of g; `place_std` of its candidates is σ_u.
    """

    def __init__(self, smooth: LocationCovariance) -> None:
        self.smooth = smooth
        self.n = smooth.n
        self.hyperparameters = smooth.hyperparameters
        self._own = np.array([h.place_std**2 for h in smooth.hyperparameters])

    def between(self, rows: IntArray, columns: IntArray) -> FloatArray:
        """Return the (L, r, c) covariance of the latent field."""
        rows, columns = np.asarray(rows), np.asarray(columns)
        found = self.smooth.between(rows, columns)
        at, to = np.nonzero(rows[:, None] == columns)
        found[:, at, to] += self._own[:, None]
        return found

    def variance(self, locations: IntArray) -> FloatArray:
        """Return the (L, m) prior variance of the latent field."""
        return np.asarray(self.smooth.variance(locations) + self._own[:, None])

    def only(self, which: Sequence[int]) -> PlaceCovariance:
        """Return the same under some of the candidates only."""
        return PlaceCovariance(self.smooth.only(which))


class NoNeighbours:
    """``σ_s² I``: a field of which no place tells anything about another, but for the mean.

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

    def variance(self, locations: IntArray) -> FloatArray:
        """Return the (L, m) prior variance of the latent field."""
        return np.repeat(self._own[:, None], len(locations), axis=1)

    def only(self, which: Sequence[int]) -> NoNeighbours:
        """Return the same under some of the candidates only."""
        return type(self)(self.n, [self.hyperparameters[i] for i in which])


class _Nothing(NoNeighbours):
    """What places share there: nothing."""

    def __init__(self, n: int, hyperparameters: Sequence[HyperParameters]) -> None:
        super().__init__(n, hyperparameters)
        self._own = np.zeros(len(self.hyperparameters))


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
        return _Nothing(covariance.n, covariance.hyperparameters)
    return covariance.smooth if isinstance(covariance, PlaceCovariance) else covariance


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
