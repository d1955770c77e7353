r"""Error of the map as a mean variance, and its reduction by readings.

The places have weights :math:`w_p` with sum one, and W is the diagonal matrix of the weights. C is
the posterior covariance for one hyperparameter candidate λ. :math:`\sigma_e^2` is the variance of
the noise. Let :math:`v_x = C_{xx} + \sigma_e^2` and :math:`S = C W C`. A reading at x reduces
:math:`J = \sum_p w_p \operatorname{Var}(f_p)` by :math:`S_{xx} / v_x` [Cohn1996; Sacks1989].
Readings at a set A of places reduce J by
:math:`\operatorname{tr}((C_{AA} + \sigma_e^2 I)^{-1} S_{AA})`. Let
:math:`M = (C_{AA} + \sigma_e^2 I)^{-1}` and :math:`B = M S_{AA} M`. A place x that joins A reduces
J further by

.. math:: \frac{S_{xx} - 2 C_{xA} M S_{Ax} + C_{xA} B C_{Ax}}
               {C_{xx} + \sigma_e^2 - C_{xA} M C_{Ax}},

and the removal of a place a from A increases J by :math:`B_{aa} / M_{aa}`.

For several quantities q with weights :math:`\omega_q`, the error is the relative error
:math:`\sum_q \omega_q J_q / v_q`. The divisor :math:`v_q` is the variance of quantity q over the
map before any reading of q. The quantities are independent. Arrays concatenate the hyperparameter
candidates of all quantities. Variances are divided by :math:`v_q`, and weights are multiplied by
:math:`\omega_q`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from scipy.linalg.blas import dsyrk
from scipy.linalg.lapack import dpotrf, dpotrs

from gp_active_sensing.belief import Belief
from gp_active_sensing.belief.prior import IDENTITY
from gp_active_sensing.kernels import NONE
from gp_active_sensing.planning.beliefs import representatives, unread
from gp_active_sensing.planning.request import QuantityBelief
from gp_active_sensing.topology.base import Topology
from gp_active_sensing.types import BoolArray, FloatArray, IntArray
from gp_active_sensing.util.groups import nearby_groups
from gp_active_sensing.util.ties import first_best

VAGUE_MEAN = 1e3
"""Upper limit of an unknown mean's variance, against rounding errors [variances of a reading]."""
_TARGETS = 500
"""Largest number of places that represent the map when the map error is computed."""
_MANY = 2000
"""Largest number of places that represent the map in `map_error_gains`."""
_NUMBERS = 4_000_000
"""Largest number of entries of a temporary array."""
_NO_VARIANCE = 1e-300
"""Variance below which a reading has no information."""
_KNOWN = 1e-12
"""Variance below which a place counts as known, as a fraction of the largest variance. It is also
the lower limit of the noise variance in a matrix inverse."""
_WORTHWHILE = 1e-9
"""Relative improvement below which an exchange of places counts as a rounding error."""
_FEW = 48
"""Largest number of places from which a quantity's variance over the map is estimated."""
_LEAST = 1e-100
"""Lower limit of a quantity's variance over the map, because the variance is a divisor."""
_FLAT = 1e-9
"""Lower limit of the field's variance over the map, as a fraction of that at a place."""


@dataclass(frozen=True)
class Targets:
    """Target places: places that represent the whole map in sums over the map.

    Args:
        places: (T,) target places, sorted.
        weights: (T,) sum of the weights of the places that each target represents. All T sums add
            up to one.
        own: (n,) weights of all places of the map; they sum to one.
    """

    places: IntArray
    weights: FloatArray
    own: FloatArray


class Part(NamedTuple):
    """Part of the arrays of `MapVariance` that belongs to one quantity.

    Args:
        rows: indices of the quantity's hyperparameter candidates in the arrays.
        unit: variance by which the variances of the quantity are divided.
        sampled: True if a probe measures the quantity only where the probe stops.
    """

    rows: slice
    unit: float
    sampled: bool


@dataclass(frozen=True, eq=False)
class MapVariance:
    """Covariances of m places, and their effect on the map error, for L hyperparameter candidates.

    Variances have the unit of the transformed readings. With several quantities, the variances of
    each quantity are divided by its variance over the map.

    Args:
        places: (m,) places that may be observed, sorted.
        weights: (L,) weights of the candidates; they sum to one.
        noise: (L,) variance of the noise of a reading.
        covariance: (L, m, m) posterior covariance C of the noise-free field.
        shared: (L, m, m) product S = C W C, with the diagonal matrix W of the places' weights.
        total: (L,) mean variance of the map.
        parts: one `Part` for each quantity, the main quantity first; () = only one quantity.
    """

    places: IntArray
    weights: FloatArray
    noise: FloatArray
    covariance: FloatArray
    shared: FloatArray
    total: FloatArray
    parts: tuple[Part, ...] = ()

    def of(self, number: int) -> MapVariance:
        """Return the map error of the quantity with index `number`, in the quantity's unit."""
        if not self.parts:
            return self
        rows, unit, _ = self.parts[number]
        weights = self.weights[rows]
        return MapVariance(
            self.places,
            weights / max(float(weights.sum()), _NO_VARIANCE),
            unit * self.noise[rows],
            unit * self.covariance[rows],
            unit**2 * self.shared[rows],
            unit * self.total[rows],
        )

    @property
    def sampled(self) -> bool:
        """True if at least one quantity is measured only where the probe stops."""
        return any(part.sampled for part in self.parts)

    def gains(self) -> FloatArray:
        """Return the reductions (L, m) of the mean variance, each by one reading at one place."""
        variance = np.diagonal(self.covariance, axis1=1, axis2=2) + self.noise[:, None]
        shared = np.diagonal(self.shared, axis1=1, axis2=2)
        return np.asarray(np.maximum(shared, 0.0) / np.maximum(variance, _NO_VARIANCE))

    def value(self, which: IntArray, stops: IntArray | None = None) -> float:
        """Return the expected reduction of the mean variance by readings at some places.

        The value ignores information about the hyperparameters λ.

        Args:
            which: (k,) indices in `places` of the observed places.
            stops: indices in `places` of the places where the probe stops; None = `which`. Sampled
                quantities are measured at stops only.
        """
        if stops is None or not self.sampled:
            return float(self.weights @ self.values(which))
        sampled = np.zeros(len(self.weights), dtype=np.bool_)
        for part in self.parts:
            sampled[part.rows] = part.sampled
        found = np.where(sampled, self.values(stops, sampled), self.values(which, ~sampled))
        return float(self.weights @ found)

    def values(self, which: IntArray, rows: BoolArray | None = None) -> FloatArray:
        """Return `value` for each hyperparameter candidate (L,); 0 where `rows` is False."""
        found = np.zeros(len(self.weights))
        if not len(which):
            return found
        index = np.ix_(which, which)
        for row, noise in enumerate(self.noise):
            if rows is not None and not rows[row]:
                continue
            block = self.covariance[row][index]
            block[np.diag_indices_from(block)] += noise
            factor, info = dpotrf(block, lower=1, overwrite_a=1)
            shared = self.shared[row][index]
            if info:  # not positive definite: known places and an exact sensor
                found[row] = float(np.trace(np.linalg.pinv(self.covariance[row][index]) @ shared))
            else:
                found[row] = float(np.trace(dpotrs(factor, shared, lower=1)[0]))
        return found

    def after(self, which: IntArray) -> MapVariance:
        """Return the map error after readings at the places A with the indices `which` (k,).

        The new S is ``S - K S_A· - S_·A Kᵀ + K S_AA Kᵀ`` with ``K = C_·A (C_AA + σ² I)⁻¹``.
        """
        if not len(which):
            return self
        C, S = self.covariance, self.shared
        k = len(which)
        block = C[:, which[:, None], which].copy()
        largest = np.diagonal(block, axis1=1, axis2=2).max(axis=1)
        least = np.maximum(_KNOWN * largest, _NO_VARIANCE)
        block[:, np.arange(k), np.arange(k)] += np.maximum(self.noise, least)[:, None]
        gain = np.swapaxes(np.linalg.solve(block, C[:, which, :]), 1, 2)  # (L, m, k)
        side = gain @ S[:, which, :]
        shared = S - side - np.swapaxes(side, 1, 2)
        shared += gain @ S[:, which[:, None], which] @ np.swapaxes(gain, 1, 2)
        covariance = C - gain @ C[:, which, :]
        total = self.total - self.values(which)
        return replace(self, covariance=covariance, shared=shared, total=total)

    def at(self, which: IntArray) -> MapVariance:
        """Return the same map error for readings at only the places with the indices `which`."""
        index = (slice(None), which[:, None], which)
        return replace(
            self,
            places=self.places[which],
            covariance=self.covariance[index],
            shared=self.shared[index],
        )


def targets_of(topology: Topology, most: int = _TARGETS) -> Targets:
    """Return target places for the error of a map.

    If at most `most` places have a weight, all of them are targets. Otherwise the map is divided
    into about `most` groups of nearby places. The middle place of each group is a target.
    """
    weights = topology.weights
    own = weights / weights.sum()
    counted = np.flatnonzero(own)
    if len(counted) <= most:
        return Targets(counted, own[counted], own)
    groups = nearby_groups(topology.points, counted, most)
    places = np.array([run[len(run) // 2] for run in groups])
    total = np.array([own[run].sum() for run in groups])
    by_place = np.argsort(places)
    return Targets(places[by_place], total[by_place], own)


def thinned(topology: Topology, places: IntArray, most: int) -> tuple[IntArray, IntArray]:
    """Return about `most` evenly spread representatives of some places.

    Args:
        topology: the map.
        places: (m,) places, sorted.
        most: wanted number of representatives; if m is smaller, all places are returned.

    Returns:
        chosen: (k,) representatives, sorted.
        group_of: (n,) index in `chosen` of each place's representative; -1 = not in `places`.
    """
    group_of = np.full(topology.n, -1, dtype=np.int64)
    if len(places) <= most:
        group_of[places] = np.arange(len(places))
        return places, group_of
    groups = nearby_groups(topology.points, places, most)
    middles = np.array([group[len(group) // 2] for group in groups])
    order = np.argsort(middles)
    for number, i in enumerate(order.tolist()):
        group_of[groups[i]] = number
    return middles[order], group_of


def map_error_of(
    belief: Belief,
    topology: Topology,
    places: IntArray,
    *,
    pending: Collection[int] = (),
    candidates: int = 8,
    targets: Targets | None = None,
    others: Sequence[QuantityBelief] = (),
    weight: float = 1.0,
) -> MapVariance:
    """Return the effect of readings at some places on the error of the map.

    Args:
        belief: belief about the main quantity.
        topology: map with the weights of its places.
        places: (m,) places that may be observed, sorted.
        pending: places that will be observed before `places`, with unknown values.
        candidates: largest number of hyperparameter candidates of a quantity; see
            `representatives`.
        targets: target places of the error; None = `targets_of(topology)`.
        others: further quantities.
        weight: weight of the main quantity.
    """
    targets = targets_of(topology) if targets is None else targets
    if not others:
        return _map_error(belief, places, pending, candidates, targets)[0]
    found: list[tuple[FloatArray, ...]] = []
    parts: list[Part] = []
    end = 0
    for q, share in _weighed(belief, weight, others):
        field, which = _map_error(q.belief, places, pending, candidates, targets)
        unit = _variance_of(q.belief, targets, which, field.weights)
        begin, end = end, end + len(which)
        parts.append(Part(slice(begin, end), unit, q.sampled))
        noise, covariance, total = (a / unit for a in (field.noise, field.covariance, field.total))
        found.append((share * field.weights, noise, covariance, field.shared / unit**2, total))
    weights, noise, covariance, shared, total = map(np.concatenate, zip(*found, strict=True))
    return MapVariance(places, weights, noise, covariance, shared, total, tuple(parts))


def _weighed(
    belief: Belief, weight: float, others: Sequence[QuantityBelief]
) -> list[tuple[QuantityBelief, float]]:
    several = (QuantityBelief("", belief, weight), *others)
    total = sum(q.weight for q in several)
    return [(q, q.weight / total if total > 0.0 else 1.0 / len(several)) for q in several]


def _map_error(
    belief: Belief, places: IntArray, pending: Collection[int], candidates: int, targets: Targets
) -> tuple[MapVariance, IntArray]:
    """Return the result of `map_error_of` for one quantity, and the indices of its candidates."""
    belief = belief.with_mean_within(VAGUE_MEAN)
    targets = _in_own_unit(belief, targets, places)
    which, weights = representatives(belief, candidates)
    before = unread(belief, pending)
    everything = np.union1d(places, before)
    covariance = belief.between(everything, everything, which)
    found = MapVariance(
        everything,
        weights,
        belief.noise_variance[which],
        covariance,
        _shared(belief, which, everything, covariance, targets),
        belief.marginals_under(targets.places, which)[1] @ targets.weights,
    )
    if before.size:
        found = found.after(np.searchsorted(everything, before))
        found = found.at(np.searchsorted(everything, places))
    return found, which


def _variance_of(belief: Belief, targets: Targets, which: IntArray, weights: FloatArray) -> float:
    r"""Return the expected variance of a field over the map before any reading [sensor's unit²].

    The result is :math:`\sum_\lambda b(\lambda) (\operatorname{tr}(W K_\lambda) - w^T K_\lambda w)`
    with the prior covariance K_λ. The uncertainty of the mean is not included.
    """
    count = len(targets.places)
    some = np.unique(np.linspace(0, count - 1, min(count, _FEW)).round().astype(np.int64))
    places = targets.places[some]
    own = _in_own_unit(belief, targets, places).weights
    w = own[some] / own[some].sum()
    K = belief.covariance.only(which.tolist()).between(places, places)
    here = np.diagonal(K, axis1=1, axis2=2) @ w
    over = np.maximum(here - np.einsum("p,lpr,r->l", w, K, w), _FLAT * here)
    now, before = belief.hyperparameters, belief.covariance.hyperparameters
    scales = np.array([now[i].variance / before[i].variance for i in which.tolist()])
    return max(_LEAST, float(own.sum() * (weights @ (over * scales))))


def _in_own_unit(belief: Belief, targets: Targets, places: IntArray) -> Targets:
    """Return targets with weights that convert variances to the sensor's unit.

    The transform is linearised about the expected value of each place. The weights `own` of the
    result are valid only at `places` and at the targets.
    """
    if belief.transform is IDENTITY:
        return targets
    some = np.union1d(places, targets.places)
    mean = belief.weights @ belief.marginals(some)[0]
    steep = np.ones(belief.n)
    steep[some] = np.square(belief.transform.steepness(mean))
    return Targets(targets.places, targets.weights * steep[targets.places], targets.own * steep)


def map_error_gains(
    belief: Belief,
    topology: Topology,
    places: IntArray,
    *,
    candidates: int = 8,
    others: Sequence[QuantityBelief] = (),
    weight: float = 1.0,
) -> tuple[FloatArray, FloatArray]:
    """Return weights (L',) of hyperparameter candidates, and reductions (L', m) of the map error.

    Each reduction is by a single reading at one place. The arguments are those of `map_error_of`.
    """
    targets = targets_of(topology, _MANY)
    if not others:
        return _gains(belief, targets, places, candidates)[:2]
    some, weights, gains = targets_of(topology), [], []
    for q, share in _weighed(belief, weight, others):
        each, gain, which = _gains(q.belief, targets, places, candidates)
        weights.append(share * each)
        gains.append(gain / _variance_of(q.belief, some, which, each))
    return np.concatenate(weights), np.concatenate(gains)


def _gains(
    belief: Belief, targets: Targets, places: IntArray, candidates: int
) -> tuple[FloatArray, FloatArray, IntArray]:
    """Return the result of `map_error_gains` for one quantity, and its candidates' indices."""
    belief = belief.with_mean_within(VAGUE_MEAN)
    targets = _in_own_unit(belief, targets, places)
    which, weights = representatives(belief, candidates)
    noise = belief.noise_variance[which]
    gains = np.empty((len(which), len(places)))
    step = max(1, _NUMBERS // (len(which) * len(targets.places)))
    own = _own_variance(belief, which)
    for start in range(0, len(places), step):
        part = places[start : start + step]
        cross = belief.between(part, targets.places, which)
        variance = belief.marginals(part)[1][which]
        alone = np.where(belief.visited[part], 0.0, own[:, None])
        at, to = np.nonzero(part[:, None] == targets.places)
        cross[:, at, to] -= alone[:, at]
        shared = np.square(cross) @ targets.weights
        smooth = np.maximum(variance - alone, 0.0)
        shared += targets.own[part] * alone * (2.0 * smooth + alone)
        spread = np.maximum(variance + noise[:, None], _NO_VARIANCE)
        gains[:, start : start + step] = shared / spread
    return weights, gains, which


def _shared(
    belief: Belief, which: IntArray, places: IntArray, covariance: FloatArray, targets: Targets
) -> FloatArray:
    """Return S = C W C between places, (L, m, m).

    Let C = G + D, where D is diagonal. For unobserved places, D has the part of the variance that
    is independent of all other places. Then S = G W G + W D G + G W D + W D².
    """
    alone = np.where(belief.visited[places], 0.0, _own_variance(belief, which)[:, None])
    everywhere = np.array_equal(places, targets.places)
    cross = covariance.copy() if everywhere else belief.between(places, targets.places, which)
    at, to = np.nonzero(places[:, None] == targets.places)
    cross[:, at, to] -= alone[:, at]
    cross *= np.sqrt(targets.weights)
    own = targets.own[places] * alone
    shared = np.empty_like(covariance)
    if not len(places):  # BLAS prints an error about an empty matrix
        return shared
    here = np.arange(len(places))
    for row, (half, part, share) in enumerate(zip(cross, covariance, own, strict=True)):
        lower = dsyrk(1.0, half.T, trans=1, lower=1)  # the upper triangle is zero
        shared[row] = lower + lower.T
        shared[row, here, here] *= 0.5
        shared[row] += (share[:, None] + share) * part
    # Both products with D include w D² on the diagonal, so one is subtracted.
    shared[:, here, here] -= own * alone
    return shared


def _own_variance(belief: Belief, which: IntArray) -> FloatArray:
    """Return the part (L',) of a place's variance that is independent of all other places."""
    candidates = belief.hyperparameters
    chosen = [candidates[i] for i in which.tolist()]
    return np.array([h.variance if h.kernel == NONE else h.place_std**2 for h in chosen])


def greedy_design(field: MapVariance, count: int) -> IntArray:
    """Choose up to `count` places one by one, each with the largest reduction of the map error.

    Returns:
        (k,) indices in ``field.places``, in the order of choice. The choice ends early when no
        place reduces the error.
    """
    L, m = field.covariance.shape[:2]
    count = min(count, m)
    open_ = np.ones(m, dtype=np.bool_)
    variance = np.diagonal(field.covariance, axis1=1, axis2=2).copy()
    shared = np.diagonal(field.shared, axis1=1, axis2=2).copy()
    floor = _KNOWN * variance.max(axis=1, initial=0.0)[:, None]
    # Each place gives C <- C - g gᵀ and S <- S - (g tᵀ + t gᵀ); only g and t are stored.
    g, t = np.zeros((L, count, m)), np.zeros((L, count, m))
    chosen: list[int] = []
    for k in range(count):
        spread = np.maximum(variance, 0.0) + field.noise[:, None]
        gain = field.weights @ (np.maximum(shared, 0.0) / np.maximum(spread, floor + 1e-300))
        x = int(first_best(np.where(open_, gain, -np.inf)))
        if gain[x] <= 0.0:
            break
        past_g, past_t = g[:, :k], t[:, :k]
        c = field.covariance[:, :, x] - np.einsum("lk,lkm->lm", past_g[:, :, x], past_g)
        s = field.shared[:, :, x] - np.einsum("lk,lkm->lm", past_g[:, :, x], past_t)
        s -= np.einsum("lk,lkm->lm", past_t[:, :, x], past_g)
        root = np.sqrt(np.maximum(c[:, x] + field.noise, floor[:, 0] + 1e-300))[:, None]
        g[:, k] = c / root
        t[:, k] = s / root - 0.5 * s[:, x, None] * c / root**3
        variance -= g[:, k] ** 2
        shared -= 2.0 * g[:, k] * t[:, k]
        open_[x] = False
        chosen.append(x)
    return np.array(chosen, dtype=np.int64)


def joining(field: MapVariance, which: IntArray) -> FloatArray:
    """Return how much each place (m,) reduces the map error further if it joins `which` (k,)."""
    if not len(which):
        return np.asarray(field.weights @ field.gains())
    total = np.zeros(field.covariance.shape[1])
    for weight, noise, C, S in _each(field):
        M = _precision(C, which, noise)
        cross, shared = C[which], S[which]
        factors = M @ cross  # (k, m)
        numerator = np.diagonal(S) - 2.0 * (factors * shared).sum(axis=0)
        numerator += (factors * (S[np.ix_(which, which)] @ factors)).sum(axis=0)
        spread = np.diagonal(C) + noise - (factors * cross).sum(axis=0)
        floor = max(_KNOWN * float(np.diagonal(C).max()), noise, 1e-300)
        total += weight * np.maximum(numerator, 0.0) / np.maximum(spread, floor)
    total[which] = 0.0
    return total


def leaving(field: MapVariance, which: IntArray) -> FloatArray:
    """Return how much the map error increases (k,) if one place of `which` (k,) is removed."""
    total = np.zeros(len(which))
    for weight, noise, C, S in _each(field):
        M = _precision(C, which, noise)
        B = M @ S[np.ix_(which, which)] @ M
        total += weight * np.maximum(np.diagonal(B), 0.0) / np.maximum(np.diagonal(M), 1e-300)
    return total


def exchange(field: MapVariance, which: IntArray, more: Callable[[], bool]) -> IntArray:
    """Replace the least useful places of a set by better places, and return the new set.

    The search ends when no exchange improves the set, or when `more` returns False.
    """
    chosen = which.copy()
    value = field.value(chosen)
    while len(chosen) and more():
        least = int(first_best(-leaving(field, chosen)))
        rest = np.delete(chosen, least)
        gains = joining(field, rest)
        x = int(first_best(gains))
        if x == chosen[least]:
            break
        trial = np.append(rest, x)
        better = field.value(trial)
        if better <= value * (1.0 + _WORTHWHILE):
            break
        chosen, value = trial, better
    return np.asarray(chosen)


def _each(field: MapVariance) -> Iterator[tuple[float, float, FloatArray, FloatArray]]:
    for row, (weight, noise) in enumerate(zip(field.weights, field.noise, strict=True)):
        yield float(weight), float(noise), field.covariance[row], field.shared[row]


def _precision(C: FloatArray, which: IntArray, noise: float) -> FloatArray:
    """Return ``(C_AA + σ² I)⁻¹`` for A = `which`; σ² is raised if the inverse would be unstable."""
    block = C[np.ix_(which, which)]
    least = _KNOWN * float(np.diagonal(block).max(initial=0.0))
    block[np.diag_indices_from(block)] += max(noise, least, 1e-300)
    inverse = np.linalg.inv(block)
    return np.asarray(0.5 * (inverse + inverse.T))
