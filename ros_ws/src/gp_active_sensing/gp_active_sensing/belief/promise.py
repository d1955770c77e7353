r"""Promised error: how far a belief expects its mean to be from the truth.

With weights :math:`w_p` of the places the promised error is

.. math:: \sqrt{\sum_p w_p \operatorname{Var}(f_p | z) / \sum_p w_p} ,

the root of the expected mean squared error of the belief's mean, every candidate λ and what their
means differ by included. It holds on average over what is believed. A mission that ends at a
promised error looks at it again and again and ends where the promise happens to be low, so there
more is asked, see `assurance`.

The floor of it is a lower bound, of what any set of so many readings can promise (`floor_of`).

Under one candidate λ let M be the covariance of the places before any reading, what the unknown
mean adds included, W the diagonal matrix of their weights and :math:`m_1 \ge m_2 \ge \dots` the
eigenvalues of :math:`W^{1/2} M W^{1/2}`. Readings of precisions :math:`p_1 \ge \dots \ge p_k` at k
places, whichever they are, leave a covariance C with

.. math::
    \sum_p w_p C_{pp} \ge \sum_{i \le k} \frac{1}{1/m_i + p_i/w_{min}} + \sum_{i > k} m_i .

The proof is in docs/theory.md [Bhatia1997, Sec. III.4; Fan1949]. With :math:`p \to \infty`, used
where a place has weight zero, what is left is :math:`\sum_{i>k} m_i`.

The sum over the candidates with the weights of today's belief bounds what any robot that had read
as many places, with readings as good, could promise under that belief. Every term is positive, so
candidates may be left out. An unknown mean of huge variance would drown the eigenvalues in
rounding; a smaller variance of it makes the bound smaller, so it is made as small as rounding
needs. A large map is taken apart: the sum of the parts' bounds is one of the whole.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from gp_active_sensing.belief.conditioning import Conditioning
from gp_active_sensing.belief.mixture import Mixture
from gp_active_sensing.belief.prior import IDENTITY, JoinedCovariance, LocationCovariance
from gp_active_sensing.topology.base import Topology
from gp_active_sensing.topology.geometry import parts_that_count
from gp_active_sensing.types import MEAN, WORST, Aim, FloatArray, IntArray

if TYPE_CHECKING:
    from gp_active_sensing.belief.belief import Belief

__all__ = [
    "FEWEST",
    "MOST_PLACES",
    "SURE",
    "AimForecast",
    "Floor",
    "Promise",
    "assurance",
    "floor_of",
    "met",
    "not_seen",
    "promise_of",
    "to_record",
]

SURE = 0.9
"""Probability with which the error to be expected has to be at most the one that is asked for."""
FEWEST = 10
"""Places to be read before a promise counts where the scale is not known; also parts of a map."""
_TINY = 1e-300


class Promise(NamedTuple):
    """What a belief says of the error of its map, in the sensor's unit.

    Args:
        error: root of the weighted mean of the places' variances.
        worst: largest standard deviation of a place with a weight.
    """

    error: float
    worst: float


def met(aim: Aim, belief: Belief, topology: Topology, closed: Collection[int] = frozenset()) -> str:
    """Return why a map is good enough, "" while it is not.

    Its promised error has to be at most the error asked for, and besides the error to be expected
    with a probability of `SURE`, see `assurance`. Where the scale is not known `FEWEST` places have
    to be read: a few readings that happen to be alike look like a flat field, on one map of many,
    whatever the probabilities say that they are of. And they may not all lie in one part of the
    map, see `not_seen`.

    Args:
        aim: what is asked for.
        belief: what is known.
        topology: the map, with the weights of its places.
        closed: places that cannot be read.
    """
    few = int(np.count_nonzero(belief.readings)) < FEWEST
    if (few and not belief.scale_known) or not_seen(belief, topology, closed):
        return ""
    found = belief.mixture()
    promise = belief.promise(topology.weights, found)
    if promise is None:
        return ""
    promised = promise.worst if aim.of == WORST else promise.error
    if promised > aim.error or assurance(belief, topology.weights, aim.error, aim.of) < SURE:
        return ""
    what = "of its worst place" if aim.of == WORST else "of the map"
    return f"the promised error {what} is {promised:.3g}, at most {aim.error:.6g} was asked for"


def not_seen(
    belief: Belief, topology: Topology, closed: Collection[int] = frozenset()
) -> list[IntArray]:
    """Return the parts of a map, of `FEWEST` equally large ones, where nothing was read yet.

    What readings of one part tell about λ and the scale holds in another only as far as the field
    is of one kind everywhere. That is assumed, and no probability of the belief says how far it is
    true: only a reading there can. Of a belief that knows the scale no part is asked for: there the
    user has said how much the field varies, wherever it was not read.

    Args:
        belief: what is known.
        topology: the map; places without a weight are in no part.
        closed: places that cannot be read; a part without any other one is not asked for.
    """
    if belief.scale_known:
        return []
    left = belief.readings == 0
    found = [part for part in parts_that_count(topology, FEWEST) if left[part].all()]
    if found and closed:
        left[list(closed)] = False
        found = [part for part in found if left[part].any()]
    return found


def to_record(promise: Promise | None) -> dict[str, Any]:
    """Return a promise in the words of records and summaries, None where there is none."""
    error, worst = (None, None) if promise is None else promise
    return {"promised_error": error, "promised_worst": worst}


def promise_of(found: Mixture, weights: FloatArray) -> Promise:
    """Return what is promised of the error of a map.

    Args:
        found: what is believed of every place.
        weights: (n,) of the places, see `Topology.weights`.
    """
    _, variance = found.moments()
    counted = weights > 0.0
    mean = float(weights @ variance) / float(weights.sum())
    return Promise(float(np.sqrt(mean)), float(np.sqrt(variance[counted].max())))


def assurance(belief: Belief, weights: FloatArray, error: float, of: str = MEAN) -> float:
    r"""Return how probable it is, by a belief, that the error to be expected is at most so large.

    Under one λ, and one factor c of all variances where the scale is not known, the error to be
    expected of the belief's mean :math:`\mu` is a number,

    .. math:: E(\lambda, c)^2 = \sum_p w_p ( c\, v_{\lambda p} + (\mu_{\lambda p} - \mu_p)^2 ) ,

    or the largest of these terms. λ has the belief's weights and :math:`Q_\lambda / c \sim
    \chi^2_\nu` (see `scale`), so E has a distribution: the promised error is the root of the mean
    of its square, and this is how much of it lies at or below `error`. A short length-scale that
    is not ruled out yet has a large E, and so has a large c while there are few readings.

    Args:
        belief: what is known.
        weights: (n,) of the places.
        error: in the sensor's unit.
        of: one of `types.OF`.
    """
    found = belief.mixture()
    every = np.arange(len(found.weights))
    forecast = AimForecast(Aim(error, of), belief, weights, every, found.weights, found)
    return forecast.assurance(np.ones(len(every)))


class AimForecast:
    """Predicts whether a map is good enough once a share of its variance is gone.

    What is expected of the error under each λ and factor c, see `assurance`, is taken to fall as
    the mean variance of the map does under that λ: its square in the same proportion, what the
    means under different λ are apart included. What readings will tell about λ and c is left out.

    Args:
        aim: what is asked for.
        belief: what is known.
        weights: (n,) of the places.
        which: (L',) numbers of the candidates that are counted,
        shares: (L',) and how probable they are; sum to one.
        found: what the belief says of every place, where that was asked already.
    """

    def __init__(
        self,
        aim: Aim,
        belief: Belief,
        weights: FloatArray,
        which: IntArray,
        shares: FloatArray,
        found: Mixture | None = None,
    ) -> None:
        found = belief.mixture() if found is None else found
        counted = weights > 0.0
        self._aim = aim
        self._belief = belief
        self._shares = shares
        self._places = weights[counted] / weights.sum()
        middle = found.moments()[0][counted]
        mean, variance = found.transform.moments(found.mean[:, counted], found.variance[:, counted])
        self._variance = variance[which]
        self._apart = np.square(mean[which] - middle)
        self._scaled = found.transform is IDENTITY
        self.total: FloatArray = found.variance[which][:, counted] @ self._places
        """(L',) mean variance of the map now, of what the Gaussian process sees."""

    def met(self, left: FloatArray) -> bool:
        """Return whether the map is good enough then, by the promise and by `assurance`.

        Args:
            left: (L',) share of the mean variance that is left under each candidate.
        """
        square = self._of(self._variance + self._apart)
        promised = float(self._shares @ (left * square))
        return promised <= self._aim.error**2 and self.assurance(left) >= SURE

    def assurance(self, left: FloatArray) -> float:
        """Return the probability that the error to be expected is at most the one asked for."""
        allowed = self._aim.error**2 / np.maximum(left, _TINY)
        variance, apart = self._variance, self._apart
        if not self._scaled:  # the factor is inside the transform: as it is expected
            return float(self._shares @ (self._of(variance + apart) <= allowed))
        if self._aim.of == WORST:
            most = ((allowed[:, None] - apart) / np.maximum(variance, _TINY)).min(axis=1)
        else:
            most = (allowed - self._of(apart)) / np.maximum(self._of(variance), _TINY)
        return float(self._shares @ self._belief.scale_below(most))

    def _of(self, square: FloatArray) -> FloatArray:
        """(L',) of numbers at places (L', s) their mean, or the largest of them."""
        if self._aim.of == WORST:
            return np.asarray(square.max(axis=1))
        return np.asarray(square @ self._places)


MOST_PLACES = 2000
"""Places of a map of which it is worked out; it takes seconds then."""
_NUMBERS = 8_000_000
"""Numbers in the largest array."""
_LITTLE = 1e-3
"""Weight of a candidate that is left out."""
_VAGUE = 1e6
"""Variance of the mean at most, in those of the field: rounding takes 1e-10 of it."""


class Floor(NamedTuple):
    """The least error that readings of so many places can promise, under one belief.

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
