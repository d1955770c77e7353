r"""Promised error: how far a belief expects its mean to be from the truth.

With weights :math:`w_p` of the places the promised error is

.. math:: \sqrt{\sum_p w_p \operatorname{Var}(f_p | z) / \sum_p w_p} ,

the root of the expected mean squared error of the belief's mean, every candidate λ and what their
means differ by included. It holds on average over what is believed. A mission that ends at a
promised error looks at it again and again and ends where the promise happens to be low, so there
more is asked, see `assurance`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from gp_active_sensing.belief.mixture import Mixture
from gp_active_sensing.belief.transform import IDENTITY
from gp_active_sensing.types import MEAN, WORST, Aim, FloatArray

if TYPE_CHECKING:
    from gp_active_sensing.belief.belief import Belief

__all__ = ["FEWEST", "SURE", "Promise", "assurance", "met", "promise_of", "to_record"]

SURE = 0.9
"""Probability with which the error to be expected has to be at most the one that is asked for."""
FEWEST = 10
"""Places to be read before a promise in a scale that nobody knew is enough."""
_TINY = 1e-300


class Promise(NamedTuple):
    """What a belief says of the error of its map, in the sensor's unit.

    Args:
        error: root of the weighted mean of the places' variances.
        worst: largest standard deviation of a place with a weight.
    """

    error: float
    worst: float


def met(aim: Aim, belief: Belief, weights: FloatArray) -> str:
    """Return why a map is good enough, "" while it is not.

    Its promised error has to be at most the error asked for, and besides the error to be expected
    with a probability of `SURE`, see `assurance`. Where the scale is not known `FEWEST` places have
    to be read: a few readings that happen to be alike look like a flat field, on one map of many,
    whatever the probabilities say that they are of.

    Args:
        aim: what is asked for.
        belief: what is known.
        weights: (n,) of the places.
    """
    found = belief.mixture()
    promise = belief.promise(weights, found)
    few = not belief.scale_known and int(np.count_nonzero(belief.readings)) < FEWEST
    if promise is None or few:
        return ""
    promised = promise.worst if aim.of == WORST else promise.error
    if promised > aim.error or assurance(belief, weights, aim.error, aim.of) < SURE:
        return ""
    what = "of its worst place" if aim.of == WORST else "of the map"
    return f"the promised error {what} is {promised:.3g}, at most {aim.error:.6g} was asked for"


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
    counted = weights > 0.0
    shares = weights[counted] / weights.sum()
    middle = found.moments()[0][counted]
    mean, variance = found.transform.moments(found.mean[:, counted], found.variance[:, counted])
    apart = np.square(mean - middle)
    allowed = error * error
    if found.transform is not IDENTITY:  # the factor is inside the transform: as it is expected
        square = variance + apart
        mass = square.max(axis=1) if of == WORST else square @ shares
        return float(found.weights @ (mass <= allowed))
    if of == WORST:
        most = ((allowed - apart) / np.maximum(variance, _TINY)).min(axis=1)
    else:
        most = (allowed - apart @ shares) / np.maximum(variance @ shares, _TINY)
    return float(found.weights @ belief.scale_below(most))
