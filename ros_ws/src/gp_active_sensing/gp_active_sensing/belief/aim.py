"""Tell whether a map is good enough: its promised error, and how probable it is to hold."""

from __future__ import annotations

from collections.abc import Collection
from functools import cached_property

import numpy as np
from scipy.special import gammainc

from gp_active_sensing.belief.belief import Belief
from gp_active_sensing.belief.mixture import Mixture
from gp_active_sensing.belief.prior import IDENTITY
from gp_active_sensing.topology.base import Topology
from gp_active_sensing.topology.lookup import parts_that_count
from gp_active_sensing.types import MEAN, WORST, Aim, FloatArray, IntArray

SURE = 0.95
"""Probability, by the belief, of the error being at most the one asked for, that ends a mission.
Belief and field differ: over fields the 95 % quantile of the error holds in 90 % of the maps, the
90 % quantile in 82 %; see docs/fidelity.md."""
FEWEST = 10
"""Places to be read before a promise counts where the scale is not known; also parts of a map."""
_TINY = 1e-300
_EXACT = 1e-9
"""Relative variance of a squared error below which it counts as a constant."""
_MOST = 200
"""Largest number of places, evenly spread over the map, in the covariance of errors."""
_LITTLE = 1e-4
"""Weight of a candidate below which its errors count as fully dependent."""
_FACTORS = 128
"""Equally probable factors of an unknown scale that are summed over."""


def met(aim: Aim, belief: Belief, topology: Topology, closed: Collection[int] = frozenset()) -> str:
    """Return why a map is good enough, "" while it is not.

    Its promised error has to be at most the error asked for, and besides its actual error with a
    probability of `SURE`, see `assurance`. Where the scale is not known `FEWEST` places have
    to be read: a few readings that happen to be alike look like a flat field, on one map of many,
    whatever the probabilities say that they are of. And they may not all lie in one part of the
    map, see `not_seen`.
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

    Places without a weight are in no part. A part of `closed` places alone is not asked for.
    """
    if belief.scale_known:
        return []
    left = belief.readings == 0
    found = [part for part in parts_that_count(topology, FEWEST) if left[part].all()]
    if found and closed:
        left[list(closed)] = False
        found = [part for part in found if left[part].any()]
    return found


def assurance(belief: Belief, weights: FloatArray, error: float, of: str = MEAN) -> float:
    r"""Return how probable it is, by a belief, that the error of its map is at most so large.

    Under one λ, and one factor c of all variances where the scale is not known, the mean squared
    error of the belief's mean :math:`\mu`, :math:`X = \sum_p w_p (f_p - \mu_p)^2`, is a quadratic
    form of a normal vector. With C the posterior covariance, :math:`\delta = \mu_\lambda - \mu`
    and W the diagonal matrix of the weights, which sum to one,

    .. math::
        E[X] = c \operatorname{tr}(W C) + \delta^T W \delta, \qquad
        Var[X] = 2 c^2 \operatorname{tr}(W C W C) + 4 c\, \delta^T W C W \delta .

    X is taken to have a gamma distribution of this mean and variance [Satterthwaite1946]. λ has the
    belief's weights and :math:`Q_\lambda / c \sim \chi^2_\nu` (see `scale`); X is at most
    `error`² with the sum over both. A short length-scale that is not ruled out yet has a large X,
    and so has a large c while there are few readings; where errors are alike all over the map, one
    draw of them decides.

    Of the worst place it is the probability that its expected squared error is at most so large.

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

    The squared error under each λ and factor c, see `assurance`, is taken to fall as the mean
    variance of the map does under that λ, what the means under different λ are apart included.
    What readings will tell about λ and c is left out.

    Args:
        aim: what is asked for.
        belief: what is known.
        weights: (n,) of the places.
        which: (L',) numbers of the candidates that are counted,
        shares: (L',) and how probable they are; sum to one.
        found: mixture of the belief at every place; None = compute it.
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
        middle, (mean, variance) = found.moments()[0][counted], found.at(counted).each()
        self._variance = variance[which]
        self._scaled = found.transform is IDENTITY
        self._which, self._counted = which, np.flatnonzero(counted)
        self._signed = mean[which] - middle
        self._apart = np.square(self._signed)
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
        """Return the probability that the error is at most the one asked for, see `assurance`."""
        allowed = self._aim.error**2 / np.maximum(left, _TINY)
        variance, apart = self._variance, self._apart
        # Through a transform the factor is inside: it is taken as expected.
        factors = self._belief.scale_factors(_FACTORS) if self._scaled else np.ones(1)
        if not factors.size:
            return 0.0
        if self._aim.of == WORST:
            most = ((allowed[:, None] - apart) / np.maximum(variance, _TINY)).min(axis=1)
            return float(self._shares @ (most[:, None] >= factors).mean(axis=1))
        own, cross = (each[:, None] for each in self._alike)
        mean = self._of(variance)[:, None] * factors
        expected = np.maximum(mean + self._of(apart)[:, None], _TINY)
        share = mean / expected  # what is left of it is what the means are apart
        spread = 2.0 * own * share**2 + 4.0 * cross * share * (1.0 - share)
        shape = 1.0 / np.maximum(spread, _EXACT)
        below = gammainc(shape, shape * (allowed[:, None] / expected))
        return float(self._shares @ below.mean(axis=1))

    @cached_property
    def _alike(self) -> tuple[FloatArray, FloatArray]:
        """Return the dependence of errors: ``tr(WCWC) / tr(WC)²``, ``δᵀWCWδ / (tr(WC) δᵀWδ)``.

        Each is (L',), from 0 for independent errors to 1 for one error that all places share.
        """
        count = len(self._counted)
        some = np.unique(np.linspace(0, count - 1, min(count, _MOST)).round().astype(np.int64))
        places, roots = self._counted[some], np.sqrt(self._places[some])
        own, cross = np.ones((2, len(self._which)))
        for row in np.flatnonzero(self._shares >= _LITTLE):  # one after the other: memory
            C = self._belief.between(places, places, self._which[row : row + 1])[0]
            deviation = np.sqrt(np.maximum(C.diagonal(), _TINY))
            # Through a transform a place's variance is another one; how they depend is the same.
            size = _unit(roots * np.sqrt(self._variance[row, some]))
            apart = _unit(roots * self._signed[row, some])
            C = C / deviation[:, None] / deviation * (size[:, None] * size)
            cross[row] = max(0.0, float(apart @ C @ apart))
            # Pairs are a sample, each place with itself is known of all of them.
            alone, every = float(np.sum(size**4)), self._places * self._variance[row]
            pairs = (float(np.square(C).sum()) - alone) / max(1.0 - alone, _TINY)
            each = float(np.square(_unit(np.sqrt(every)) ** 2).sum())
            own[row] = each + (1.0 - each) * min(max(pairs, 0.0), 1.0)
        return own, cross

    def _of(self, square: FloatArray) -> FloatArray:
        """(L',) of numbers at places (L', s) their mean, or the largest of them."""
        if self._aim.of == WORST:
            return np.asarray(square.max(axis=1))
        return np.asarray(square @ self._places)


def _unit(vector: FloatArray) -> FloatArray:
    return np.asarray(vector / max(float(np.linalg.norm(vector)), _TINY))
