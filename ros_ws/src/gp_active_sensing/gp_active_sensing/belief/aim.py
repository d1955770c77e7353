"""Stopping criterion of a mission: the map error is small enough with a high probability."""

from __future__ import annotations

from collections.abc import Collection
from functools import cached_property

import numpy as np
from scipy.special import gammainc

from gp_active_sensing.belief.belief import Belief
from gp_active_sensing.belief.mixture import Mixture
from gp_active_sensing.belief.prior import IDENTITY
from gp_active_sensing.topology.base import Topology
from gp_active_sensing.types import MEAN, WORST, Aim, FloatArray, IntArray
from gp_active_sensing.util.groups import nearby_groups

SURE = 0.95
"""A mission ends only when the probability of an acceptable map error is at least this value. In
tests, 90 % of the actual errors were below the predicted 95 % quantile; see docs/fidelity.md."""
FEWEST = 10
"""Smallest number of observed places at which a mission with an unknown scale may end. `not_seen`
divides a map into the same number of parts."""
_TINY = 1e-300
_EXACT = 1e-9
"""Lower limit of ``Var[X] / E[X]²`` for the squared error X of the map (see `assurance`)."""
_MOST = 200
"""Largest number of places in the covariance matrix of errors. They are spread over the map."""
_LITTLE = 1e-4
"""The dependence of errors is computed for candidates λ with at least this posterior weight. Under
other candidates, the errors count as fully dependent."""
_FACTORS = 128
"""Number of equally probable values of the unknown variance factor in `assurance`."""


def met(aim: Aim, belief: Belief, topology: Topology, closed: Collection[int] = frozenset()) -> str:
    """Return the reason why a map is accurate enough; "" if it is not.

    The map error that the belief expects must not exceed `aim.error`. The probability that the
    actual error is at most `aim.error` must be at least `SURE` (see `assurance`). With an unknown
    scale of the variances, readings of `FEWEST` places and of each part of the map are required
    (see `not_seen`), because any field may look flat after a few readings.
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
    return f"the expected error {what} is {promised:.3g}, at most {aim.error:.6g} was asked for"


def not_seen(
    belief: Belief, topology: Topology, closed: Collection[int] = frozenset()
) -> list[IntArray]:
    """Divide a map into `FEWEST` equally large parts and return the parts without a reading.

    The belief assumes the same hyper-parameters and the same scale of variances all over the map.
    Only a reading in each part can test this assumption. The result is empty if the scale is known.

    Places with weight 0 belong to no part. Parts whose unread places are all `closed` are left out.
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
    r"""Return the belief's probability that the map error is at most `error`.

    The mean squared error of the belief's mean :math:`\mu` is
    :math:`X = \sum_p w_p (f_p - \mu_p)^2` with weights w that sum to one. W is the diagonal matrix
    of w. For a candidate λ, C is the posterior covariance, and :math:`\delta = \mu_\lambda - \mu`.
    An unknown factor c scales all variances; c is 1 if the scale is known.

    .. math::
        E[X] = c \operatorname{tr}(W C) + \delta^T W \delta, \qquad
        Var[X] = 2 c^2 \operatorname{tr}(W C W C) + 4 c\, \delta^T W C W \delta .

    X is approximated by a gamma distribution with this mean and this variance [Satterthwaite1946].
    The probability of :math:`X \le` `error`² is averaged over λ and c. The candidates λ have the
    weights of the belief. The distribution of c is :math:`Q_\lambda / c \sim \chi^2_\nu` (see
    `prior.integrate_scale`).

    With `WORST`, return the probability that no place has an expected squared error above `error`².

    Args:
        belief: belief with all readings.
        weights: (n,) weights of the places.
        error: largest acceptable error, in the sensor's unit.
        of: scope of the map error, one of `types.OF`.
    """
    found = belief.mixture()
    every = np.arange(len(found.weights))
    forecast = AimForecast(Aim(error, of), belief, weights, every, found.weights, found)
    return forecast.assurance(np.ones(len(every)))


class AimForecast:
    """Forecast of whether a map will be accurate enough after a reduction of its variance.

    Let λ be a candidate and c a variance factor (see `assurance`). The squared error is assumed to
    be proportional to the mean variance of the map under λ and c. So are the squared differences
    between the candidates' means. The weights of λ and c are assumed to be constant.

    Args:
        aim: largest acceptable error of the map.
        belief: belief with all readings.
        weights: (n,) weights of the places.
        which: (L',) indices of the candidates in use.
        shares: (L',) probabilities of these candidates; they sum to one.
        found: mixture of the belief at every place; None = compute the mixture.
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
        """(L',) current weighted mean variance of the places, after the belief's transform."""

    def met(self, left: FloatArray) -> bool:
        """Return whether the expected map error and `assurance` will both meet their limits.

        Args:
            left: (L',) fraction of the mean variance that remains under each candidate λ.
        """
        square = self._of(self._variance + self._apart)
        promised = float(self._shares @ (left * square))
        return promised <= self._aim.error**2 and self.assurance(left) >= SURE

    def assurance(self, left: FloatArray) -> float:
        """Return the probability that the map error will be at most `aim.error`; see `met`."""
        allowed = self._aim.error**2 / np.maximum(left, _TINY)
        variance, apart = self._variance, self._apart
        # A transform is not linear in the variance factor c: use only the expectation of c.
        factors = self._belief.scale_factors(_FACTORS) if self._scaled else np.ones(1)
        if not factors.size:
            return 0.0
        if self._aim.of == WORST:
            most = ((allowed[:, None] - apart) / np.maximum(variance, _TINY)).min(axis=1)
            return float(self._shares @ (most[:, None] >= factors).mean(axis=1))
        own, cross = (each[:, None] for each in self._alike)
        mean = self._of(variance)[:, None] * factors
        expected = np.maximum(mean + self._of(apart)[:, None], _TINY)
        share = mean / expected  # 1 - share: differences of means
        spread = 2.0 * own * share**2 + 4.0 * cross * share * (1.0 - share)
        shape = 1.0 / np.maximum(spread, _EXACT)
        below = gammainc(shape, shape * (allowed[:, None] / expected))
        return float(self._shares @ below.mean(axis=1))

    @cached_property
    def _alike(self) -> tuple[FloatArray, FloatArray]:
        """Return two measures (L',) of the dependence between the errors at different places.

        With W, C and δ as in `assurance`, they are ``tr(WCWC) / tr(WC)²`` and
        ``δᵀWCWδ / (tr(WC) δᵀWδ)``. Both range from 0 (independent) to 1 (fully dependent).
        """
        count = len(self._counted)
        some = np.unique(np.linspace(0, count - 1, min(count, _MOST)).round().astype(np.int64))
        places, roots = self._counted[some], np.sqrt(self._places[some])
        own, cross = np.ones((2, len(self._which)))
        for row in np.flatnonzero(self._shares >= _LITTLE):  # one at a time to limit memory
            C = self._belief.between(places, places, self._which[row : row + 1])[0]
            deviation = np.sqrt(np.maximum(C.diagonal(), _TINY))
            # Assume that a transform changes the variances of places but not their correlations.
            size = _unit(roots * np.sqrt(self._variance[row, some]))
            apart = _unit(roots * self._signed[row, some])
            C = C / deviation[:, None] / deviation * (size[:, None] * size)
            cross[row] = max(0.0, float(apart @ C @ apart))
            # Off-diagonal entries come from a sample of places, diagonal entries from all places.
            alone, every = float(np.sum(size**4)), self._places * self._variance[row]
            pairs = (float(np.square(C).sum()) - alone) / max(1.0 - alone, _TINY)
            each = float(np.square(_unit(np.sqrt(every)) ** 2).sum())
            own[row] = each + (1.0 - each) * min(max(pairs, 0.0), 1.0)
        return own, cross

    def _of(self, square: FloatArray) -> FloatArray:
        """Return the (L',) weighted means of `square` (L', s) over places; maxima for `WORST`."""
        if self._aim.of == WORST:
            return np.asarray(square.max(axis=1))
        return np.asarray(square @ self._places)


def _unit(vector: FloatArray) -> FloatArray:
    return np.asarray(vector / max(float(np.linalg.norm(vector)), _TINY))


def parts_that_count(topology: Topology, count: int) -> list[IntArray]:
    """Divide the places with a weight above 0 into at most `count` groups of nearby places."""
    counted = np.flatnonzero(topology.weights > 0.0)
    return nearby_groups(topology.points, counted, min(count, len(counted)))
