r"""Promised error: root mean squared error of a belief's mean, expected by the belief.

With weights :math:`w_p` of the places the promised error is

.. math:: \sqrt{\sum_p w_p \operatorname{Var}(f_p | z) / \sum_p w_p} .

The variance is over all candidates λ, including the differences between their means. The promised
error is correct on average over fields drawn from the belief, but varies around the actual error.
A mission checks it repeatedly and might end at a moment when it is too low. `aim.assurance` is
therefore an additional condition.

`floor_of` computes a lower bound of the promised error for any choice of k places. For one
candidate λ, M is the prior covariance of the places, including the unknown mean. W is the diagonal
matrix of their weights. Let :math:`m_1 \ge m_2 \ge \dots` be the eigenvalues of
:math:`W^{1/2} M W^{1/2}`. Readings of precisions :math:`p_1 \ge \dots \ge p_k` at any k places
leave a posterior covariance C with

.. math::
    \sum_p w_p C_{pp} \ge \sum_{i \le k} \frac{1}{1/m_i + p_i/w_{min}} + \sum_{i > k} m_i .

The proof is in docs/theory.md [Bhatia1997, Sec. III.4; Fan1949]. A place of weight zero makes
:math:`w_{min}` zero, and every :math:`p_i / w_{min}` infinite. The bound is averaged over the
candidates with their current weights, and summed over blocks of a large map. The variance of a
vague mean is limited to avoid rounding errors. This limit can only lower the bound.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import accumulate
from typing import Any, NamedTuple

import numpy as np

from gp_active_sensing.belief.conditioning import Conditioning
from gp_active_sensing.belief.mixture import Mixture
from gp_active_sensing.belief.prior import JoinedCovariance, LocationCovariance
from gp_active_sensing.types import FloatArray, IntArray


class Promise(NamedTuple):
    """Expected error of the map, in the sensor's unit.

    Args:
        error: root of the weighted mean of the places' variances.
        worst: largest standard deviation of a place with a weight above 0.
    """

    error: float
    worst: float


def to_record(promise: Promise | None) -> dict[str, Any]:
    """Return the record entries for a promise; without a promise, their values are None."""
    error, worst = (None, None) if promise is None else promise
    return {"promised_error": error, "promised_worst": worst}


def promise_of(found: Mixture, weights: FloatArray) -> Promise:
    """Return the expected error of a map; `weights` (n,) are the weights of its places."""
    _, variance = found.moments()
    counted = weights > 0.0
    mean = float(weights @ variance) / float(weights.sum())
    return Promise(float(np.sqrt(mean)), float(np.sqrt(variance[counted].max())))


MOST_PLACES = 2000
"""Largest number of places for which a lower bound of the promised error is computed."""
_NUMBERS = 8_000_000
"""Largest number of entries of an array in the computation of the lower bound."""
_LITTLE = 1e-3
"""Smallest weight of a candidate λ that contributes to the lower bound."""
_VAGUE = 1e6
"""Largest variance of the mean that enters the lower bound, relative to the field's variance."""


class PromiseBound(NamedTuple):
    """Lower bound of the promised error that holds wherever the readings are taken.

    Args:
        error: the bound, in the sensor's unit.
        places: number of observed places that the bound assumes.
    """

    error: float
    places: int


def floor_of(data: Conditioning, belief: FloatArray, weights: FloatArray) -> PromiseBound:
    """Return a lower bound of the promised error that holds wherever the readings are taken.

    The bound assumes as many observed places as now, and readings of the same precisions. `belief`
    (L,) and `weights` (n,) are the weights of the candidates λ and of the places. Call
    `data.update` first. O(L n³), in blocks of bounded size.
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
                    top = spectrum[:k][spectrum[:k] > 0.0]
                    read = precision[row, : len(top)] / shares.min()
                    left += float((top / (1.0 + top * read)).sum())
                total += float(belief[row] * data.scales[row]) * left
    return PromiseBound(float(np.sqrt(total)), k)


def _precisions(data: Conditioning) -> FloatArray:
    """Return the (L, k) precisions of the observed places at a scale of 1, largest first."""
    places, which = np.unique(data.factor.place, return_inverse=True)
    total = np.zeros((len(data.scales), len(places)))
    for row, column in enumerate(which.reshape(-1).tolist()):
        total[:, column] += data.factor.precision[:, row]
    return np.asarray(-np.sort(-total, axis=1))


def _by_kernel(covariance: LocationCovariance) -> Iterator[tuple[int, LocationCovariance]]:
    """Return each kernel's covariance, with the index of its first candidate λ."""
    parts = covariance.parts if isinstance(covariance, JoinedCovariance) else (covariance,)
    starts = accumulate((len(part.hyperparameters) for part in parts), initial=0)
    return zip(starts, parts, strict=False)


def _blocks(n: int, candidates: int) -> list[IntArray]:
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
    """Return the eigenvalues of ``W^½ M W^½`` (see the module), largest first."""
    roots = np.sqrt(shares)
    fields = covariance.between(places, places)
    basis = roots[:, None] * data.basis[places]
    unknown = float(np.square(basis).sum())
    spectra: list[FloatArray] = []
    for number, row in enumerate(which.tolist()):
        if number and np.array_equal(fields[row], fields[which[number - 1]]):
            spectra.append(spectra[-1])  # the candidates differ only in noise
            continue
        M = roots[:, None] * fields[row] * roots
        if unknown > 0.0:
            factor = min(1.0, _VAGUE * float(np.trace(M)) / unknown)
            M += factor * (basis @ basis.T)
        spectra.append(np.maximum(np.linalg.eigvalsh(M)[::-1], 0.0))
    return spectra
