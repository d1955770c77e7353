r"""Lower bound on the error of a map that any set of so many readings can promise.

Under one candidate λ let M be the covariance of the places before any reading, what the unknown
mean adds included, W the diagonal matrix of their weights and :math:`m_1 \ge m_2 \ge \dots` the
eigenvalues of :math:`W^{1/2} M W^{1/2}`. Readings of precisions :math:`p_1 \ge \dots \ge p_k` at k
places, whichever they are, leave a covariance C with

.. math::
    \sum_p w_p C_{pp} \ge \sum_{i \le k} \frac{1}{1/m_i + p_i/w_{min}} + \sum_{i > k} m_i .

*Proof.* With E the k columns of the identity that belong to the places read and P the precisions,
:math:`C^{-1} = M^{-1} + E P E^T` (a singular M is a limit of regular ones). So
:math:`W^{1/2} C W^{1/2}` is the inverse of X + Y with :math:`X = (W^{1/2} M W^{1/2})^{-1}` and
:math:`Y = W^{-1/2} E P E^T W^{-1/2}`, whose eigenvalues are k numbers :math:`p/w`, the i-th largest
at most :math:`p_i / w_{min}`, and zeros. The eigenvalues of X + Y majorise those of X, ascending,
added to those of Y, descending [Bhatia1997, Sec. III.4]; the trace of the inverse is a
symmetric convex function of them, hence no less at X + Y than at these sums; and it falls with Y.
With :math:`p \to \infty` what is left is :math:`\sum_{i>k} m_i`: k readings take a matrix of rank k
and not larger than M off M [Fan1949]. That is used where a place has weight zero.

The sum over the candidates with the weights of today's belief bounds what any robot that had read
as many places, with readings as good, could promise under that belief; what the candidates' means
differ by only adds to its promise. Every term is positive, so candidates may be left out.

An unknown mean of huge variance would drown the eigenvalues in rounding. A smaller variance of it
makes M smaller, and so each of its eigenvalues and the bound; it is made as small as rounding
needs. (To project the mean's q columns out and count k - q readings is the limit of an infinite
variance, and above the bound of a finite one: no bound at all where the mean is nearly known.)

On many places the map is taken apart: the bound of a part, of which any k readings take a matrix
of rank k as well, is one of the error there, and the sum over the parts one of the whole.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from gp_active_sensing.belief.conditioning import Conditioning
from gp_active_sensing.belief.covariance import JoinedCovariance, LocationCovariance
from gp_active_sensing.types import FloatArray, IntArray

__all__ = ["MOST_PLACES", "Floor", "floor_of"]

MOST_PLACES = 2000
"""Places of a map of which it is worked out; it takes seconds then."""
_NUMBERS = 8_000_000
"""Numbers in the largest array."""
_LITTLE = 1e-3
"""Weight of a candidate that is left out."""
_VAGUE = 1e6
"""Variance of the mean at most, in those of the field: rounding takes 1e-10 of it."""


class Floor(NamedTuple):
    """What no readings of so many places could promise less than, under one belief.

    Args:
        error: root of the weighted mean of the places' variances, in the sensor's unit.
        places: how many were read.
    """

    error: float
    places: int


def floor_of(data: Conditioning, belief: FloatArray, weights: FloatArray) -> Floor:
    """Return the bound for as many places as were read, with readings as good as those were.

    O(L n³), in parts of a bounded size.

    Args:
        data: the readings' consequences, up to date.
        belief: (L,) weights of the candidates.
        weights: (n,) of the places.
    """
    counted = np.flatnonzero(weights)
    shares = weights[counted] / weights.sum()
    precision = _precisions(data)
    k = precision.shape[1]
    total = 0.0
    for start, part in _by_kernel(data.covariance):
        candidates = part.hyperparameters
        kept = np.flatnonzero(belief[start : start + len(candidates)] >= _LITTLE)
        if not kept.size:
            continue
        blocks = _blocks(len(counted), len(candidates))
        whole = len(blocks) == 1 and len(counted) == len(weights)
        for block in blocks:
            spectra = _spectra(data, part, kept, counted[block], shares[block])
            for row, spectrum in zip((start + kept).tolist(), spectra, strict=True):
                left = float(spectrum[k:].sum())
                if whole:
                    left += _of_read(spectrum[:k], precision[row] / shares.min())
                total += float(belief[row] * data.scales[row]) * left
    return Floor(float(np.sqrt(total)), k)


def _of_read(largest: FloatArray, precision: FloatArray) -> float:
    """Return what readings of these precisions leave of the largest eigenvalues."""
    top = largest[largest > 0.0]
    return float((top / (1.0 + top * precision[: len(top)])).sum())


def _precisions(data: Conditioning) -> FloatArray:
    """Return the (L, k) precisions of the k places that were read, at a factor of 1, descending."""
    places, which = np.unique(data.factor.place, return_inverse=True)
    total = np.zeros((len(data.scales), len(places)))
    for row, column in enumerate(which.reshape(-1).tolist()):
        total[:, column] += data.factor.precision[:, row]
    return np.asarray(-np.sort(-total, axis=1))


def _by_kernel(covariance: LocationCovariance) -> Iterator[tuple[int, LocationCovariance]]:
    """Yield covariances of some of the candidates each, with the number of the first one."""
    if not isinstance(covariance, JoinedCovariance):
        yield 0, covariance
        return
    start = 0
    for part in covariance.parts:
        yield start, part
        start += len(part.hyperparameters)


def _blocks(n: int, candidates: int) -> list[IntArray]:
    """Return n places in parts, each all over the map, of which the memory is bounded."""
    most = max(1, math.isqrt(_NUMBERS // candidates))
    count = -(-n // most)
    return [np.arange(i, n, count) for i in range(count)]


def _spectra(
    data: Conditioning,
    covariance: LocationCovariance,
    which: IntArray,
    places: IntArray,
    shares: FloatArray,
) -> list[FloatArray]:
    """Return the eigenvalues of ``W^½ M W^½`` under some candidates, each descending."""
    roots = np.sqrt(shares)
    fields = covariance.between(places, places)
    basis = roots[:, None] * data.basis[places]
    unknown = float(np.square(basis).sum())
    spectra: list[FloatArray] = []
    for number, row in enumerate(which.tolist()):
        if number and np.array_equal(fields[row], fields[which[number - 1]]):
            spectra.append(spectra[-1])  # they differ in the noise only
            continue
        M = roots[:, None] * fields[row] * roots
        if unknown > 0.0:
            factor = min(1.0, _VAGUE * float(np.trace(M)) / unknown)
            M += factor * (basis @ basis.T)
        spectra.append(np.maximum(np.linalg.eigvalsh(M)[::-1], 0.0))
    return spectra
