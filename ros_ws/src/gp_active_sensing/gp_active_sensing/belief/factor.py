"""Incremental Cholesky factors of ``K_DD + N``, one per candidate λ, and a cache of solves."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Iterable
from copy import copy

import numpy as np
from scipy.linalg.blas import dtrsm

from gp_active_sensing.belief.dated_readings import SlotCovariance
from gp_active_sensing.belief.prior import LocationCovariance
from gp_active_sensing.errors import BeliefError
from gp_active_sensing.types import FloatArray, IntArray

logger = logging.getLogger(__name__)

_JITTERS = (0.0, 1e-10, 1e-8, 1e-6)
"""Values of the diagonal jitter, relative to the prior variance, tried in this order."""
LEAST_NOISE = 1e-12
"""Smallest noise variance of a row, relative to the prior variance. A smaller one would be lost in
rounding."""


class Factor:
    """Lower Cholesky factors C with ``C Cᵀ = K + N``, one for each candidate λ.

    A row (place, value, noise) is a pseudo-reading that combines readings of one place. K is the
    prior covariance of the rows, N their noise, z their values and H the basis of the mean. Each
    new row extends C, ``C⁻¹ z`` and ``C⁻¹ H``. Appending r rows to R rows costs O(L r R²).

    Args:
        covariance: prior covariance of the latent field.
        basis: (n, q) prior-mean basis; q = 0 for a known mean.
        offset: (n,) known part of the prior mean.
    """

    def __init__(
        self, covariance: LocationCovariance | SlotCovariance, basis: FloatArray, offset: FloatArray
    ) -> None:
        self.covariance = covariance
        self.basis = basis
        self.offset = offset
        self.rows = 0
        self.jittered = 0
        self._floor_warned = False
        self._allocate(16)

    def _allocate(self, capacity: int) -> None:
        L, q = len(self.covariance.hyperparameters), self.basis.shape[1]
        self._capacity = capacity
        self._C = np.zeros((L, capacity, capacity))
        self._U = np.zeros((L, capacity, q))
        self._v = np.zeros((L, capacity))
        self._place = np.zeros(capacity, dtype=np.int64)
        self._precision = np.ones((L, capacity))
        self._value = np.zeros((L, capacity))

    def copy(self) -> Factor:
        """Return an independent copy."""
        other = copy(self)
        other._resize(self.rows)
        return other

    def _resize(self, capacity: int) -> None:
        R = self.rows
        old = (self._C, self._U, self._v, self._place, self._precision, self._value)
        self._allocate(capacity)
        self._C[:, :R, :R] = old[0][:, :R, :R]
        self._U[:, :R] = old[1][:, :R]
        self._v[:, :R] = old[2][:, :R]
        self._place[:R] = old[3][:R]
        self._precision[:, :R] = old[4][:, :R]
        self._value[:, :R] = old[5][:, :R]

    @property
    def place(self) -> IntArray:
        """(R,) place of each row."""
        return self._place[: self.rows]

    @property
    def precision(self) -> FloatArray:
        """(L, R) inverse noise variance of each row."""
        return self._precision[:, : self.rows]

    @property
    def value(self) -> FloatArray:
        """(L, R) value of each row."""
        return self._value[:, : self.rows]

    @property
    def U(self) -> FloatArray:
        """(L, R, q) ``C⁻¹ H`` for the basis H of the mean."""
        return self._U[:, : self.rows]

    @property
    def v(self) -> FloatArray:
        """(L, R) ``C⁻¹ (z - offset)`` for the values z."""
        return self._v[:, : self.rows]

    @property
    def log_diagonal(self) -> FloatArray:
        """(L,) ``Σ log C_ii``."""
        diagonal = np.diagonal(self._C[:, : self.rows, : self.rows], axis1=1, axis2=2)
        return np.asarray(np.log(diagonal).sum(axis=1))

    def truncate(self, rows: int) -> None:
        """Remove all rows with an index of at least `rows`."""
        self.rows = min(self.rows, rows)

    @property
    def C(self) -> FloatArray:
        """(L, R, R) lower factors C with ``C Cᵀ = K + N``."""
        return self._C[:, : self.rows, : self.rows]

    def solve(
        self, right: FloatArray, first: int = 0, *, which: IntArray | None = None
    ) -> FloatArray:
        """Return ``C⁻¹ B`` for B = `right` (L, R, m), which is overwritten.

        Only the rows and columns of C from index `first` on are used. With `which` (W,), only these
        candidates λ are used, and B is (W, R, m).
        """
        R = self.rows
        if R == first or not right.size:
            return np.zeros_like(right)
        factors = self._C[:, first:R, first:R]
        return _solve_lower(factors if which is None else (factors[i] for i in which), right)

    def append(self, places: IntArray, precision: FloatArray, value: FloatArray) -> None:
        """Append rows for `places` (r,) with precision and value (L, r).

        Raises:
            BeliefError: the covariance is not positive definite even with the largest jitter.
        """
        r, R = len(places), self.rows
        if R + r > self._capacity:
            self._resize(max(2 * self._capacity, R + r))
        index = np.arange(r)
        K = self.covariance.between(places, places)
        noise = self._floored(1.0 / precision, K[:, index, index], places)
        B = self.solve(self.covariance.between(self.place, places))
        S = K - np.swapaxes(B, 1, 2) @ B
        S[:, index, index] += noise
        corner = self._cholesky(S, K[:, index, index].mean(axis=1), places)
        stop = R + r
        self._C[:, R:stop, :R] = np.swapaxes(B, 1, 2)
        self._C[:, R:stop, R:stop] = corner
        rhs = np.concatenate(
            [
                (value - self.offset[places])[:, :, None]
                - np.swapaxes(B, 1, 2) @ self.v[:, :, None],
                self.basis[places] - np.swapaxes(B, 1, 2) @ self.U,
            ],
            axis=2,
        )
        solved = np.linalg.solve(corner, rhs) if r == 1 else _solve_lower(corner, rhs)
        self._v[:, R:stop] = solved[:, :, 0]
        self._U[:, R:stop] = solved[:, :, 1:]
        self._place[R:stop] = places
        self._precision[:, R:stop] = 1.0 / noise
        self._value[:, R:stop] = value
        self.rows = stop

    def _floored(self, noise: FloatArray, prior: FloatArray, places: IntArray) -> FloatArray:
        least = LEAST_NOISE * prior
        low = (noise < least).any(axis=0)
        if low.any():
            self.jittered += 1
            if not self._floor_warned:
                self._floor_warned = True
                logger.warning(
                    "the noise variance of readings at place %d is too small to compute with: it "
                    "is raised to %.0e of the prior variance (reported once)",
                    self._named(places[low])[0],
                    LEAST_NOISE,
                )
        return np.asarray(np.maximum(noise, least))

    def _cholesky(self, S: FloatArray, scale: FloatArray, places: IntArray) -> FloatArray:
        for jitter in _JITTERS:
            trial = S
            if jitter:
                trial = S + (jitter * scale)[:, None, None] * np.eye(S.shape[1])
            try:
                factor = np.linalg.cholesky(trial)
            except np.linalg.LinAlgError:
                continue
            if jitter:
                self.jittered += 1
                logger.warning(
                    "covariance of places %s is numerically singular: jitter %.0e of the prior "
                    "variance added; a larger noise_std avoids this",
                    self._named(places),
                    jitter,
                )
            return np.asarray(factor)
        msg = (
            f"covariance of places {self._named(places)} is not positive definite even with "
            f"jitter {_JITTERS[-1]:.0e} of the prior variance; use a larger noise_std or merge "
            "places with equal features"
        )
        raise BeliefError(msg)

    def _named(self, places: IntArray) -> list[int]:
        if isinstance(self.covariance, SlotCovariance):
            places = self.covariance.history.place[places]
        return list(places[:5].tolist())


def _solve_lower(factors: Iterable[FloatArray], right: FloatArray) -> FloatArray:
    """Return ``C⁻¹ B`` for L lower factors C (R, R) and B = `right` (L, R, m).

    The result is stored in the memory of B. Transposes are passed to BLAS, because it then neither
    copies nor checks B.
    """
    found = right if right[0].flags.c_contiguous else np.ascontiguousarray(right)
    for C, b in zip(factors, found, strict=True):
        dtrsm(1.0, C.T, b.T, side=1, overwrite_b=1)
    return found


_MOST = 256e6
"""Largest size of a cache [bytes]. If all solves would need more, each query recomputes them."""
_FEWEST = 64
"""Smallest number of places that are predicted together."""
_GROWTH = 1.5
"""Factor by which the capacity for rows grows when it is exhausted."""
_LATEST = 8
"""Number of last rows that the stored sums exclude, because these rows often change."""


class PredictionCache:
    """Cache of ``C⁻¹ K_D*``; K_D* is the covariance of the factor's rows and all places.

    A new row costs O(L R n), a full solve O(L R² n).
    """

    def __init__(self, n: int) -> None:
        self._everything = np.arange(n)
        self._kept: FloatArray = np.empty((0, 0, n))
        self._rows = 0
        self._now = -math.inf
        self._sums: FloatArray = np.empty((0, 0, n))
        self._summed = 0

    def fade(self, now: float, time_scale: float) -> None:
        """Scale the cached solves to the later time `now`; the covariance decays with time."""
        if now > self._now and self._rows:
            self._kept[:, : self._rows] *= math.exp(-(now - self._now) / time_scale)
            self._summed = 0
        self._now = now

    def truncate(self, rows: int) -> None:
        """Remove all rows with an index of at least `rows`; the factor has replaced these rows."""
        self._rows = min(self._rows, rows)
        if rows < self._summed:
            self._summed = 0

    def keeps(self, factor: Factor) -> bool:
        """Return whether the solves for all places fit into the cache."""
        size = 8.0 * _GROWTH * factor.C.shape[0] * factor.rows * self._everything.size
        return bool(size <= _MOST)

    def chunk(self, factor: Factor) -> int:
        """Return the number of places whose solves fill a quarter of the largest allowed cache."""
        return max(_FEWEST, int(_MOST / 4.0 / (8.0 * factor.C.shape[0] * max(factor.rows, 1))))

    def release(self) -> None:
        """Release the memory of the cache."""
        self._kept, self._rows = np.empty((0, 0, self._everything.size)), 0
        self._sums, self._summed = self._kept, 0

    def of(self, factor: Factor, cross: Callable[[IntArray, IntArray], FloatArray]) -> FloatArray:
        """Return ``C⁻¹ K_D*`` (L, R, n) of the factor's rows; callers must not modify the array.

        Args:
            factor: Cholesky factors of the readings' covariance.
            cross: function that returns the covariance (L, r, n) of two arrays of places: the
                places of r rows, and all n places of the map.
        """
        R, n = factor.rows, self._everything.size
        L = factor.C.shape[0]
        if not self.keeps(factor):
            self.release()
            return factor.solve(cross(factor.place, self._everything))
        if self._kept.shape[0] != L or self._kept.shape[1] < R:
            grown = np.empty((L, int(_GROWTH * R) + 1, n))
            if self._rows:
                grown[:, : self._rows] = self._kept[:, : self._rows]
            self._kept = grown
        if self._rows < R:
            old = self._rows
            new = cross(factor.place[old:], self._everything)
            if old:
                new = new - factor.C[:, old:, :old] @ self._kept[:, :old]
            self._kept[:, old:R] = factor.solve(new, old)
            self._rows = R
        return self._kept[:, :R]

    def sums(
        self, factor: Factor, cross: Callable[[IntArray, IntArray], FloatArray]
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return ``Σ W²`` and ``Wᵀ v`` (L, n) and ``Wᵀ U`` (L, n, q) for the W that `of` returns.

        Rows are always added in the same order, so the result is reproducible to the bit. A new row
        costs O(L n). Arguments are as in `of`.
        """
        W, R = self.of(factor, cross), factor.rows
        L, _, n = W.shape
        shape = (2 + factor.U.shape[2], L, n)
        if not self._summed or self._sums.shape != shape:
            self._sums, self._summed = np.zeros(shape), 0
        last = max(R - _LATEST, self._summed)
        _add_rows(self._sums, W, factor, self._summed, last)
        self._summed = last
        found = self._sums.copy()
        _add_rows(found, W, factor, last, R)
        return found[0], found[1], np.moveaxis(found[2:], 0, 2)


def _add_rows(sums: FloatArray, W: FloatArray, factor: Factor, first: int, last: int) -> None:
    """Add rows of W (L, R, n) to the sums (2 + q, L, n) of `PredictionCache.sums`."""
    for row in range(first, last):
        one = W[:, row]
        sums[0] += one * one
        sums[1] += one * factor.v[:, row, None]
        sums[2:] += one * factor.U[:, row].T[:, :, None]
