r"""The error of the map, as a mean variance, and what readings take off it.

The places have weights :math:`w_p`, whose sum is one here. C is the posterior covariance under one
candidate λ. Let :math:`v_x = C_{xx} + \sigma_e^2` and :math:`S = C W C`. A reading at x reduces
:math:`J = \sum_p w_p \operatorname{Var}(f_p)` by :math:`S_{xx} / v_x`, whatever its value
[Cohn1996, "ALC"; Sacks1989, "IMSE"]. Readings at a set A reduce it by
:math:`\operatorname{tr}((C_{AA} + \sigma_e^2 I)^{-1} S_{AA})`. Let
:math:`M = (C_{AA} + \sigma_e^2 I)^{-1}` and :math:`B = M S_{AA} M`. A place x that joins A reduces
it further by

.. math:: \frac{S_{xx} - 2 C_{xA} M S_{Ax} + C_{xA} B C_{Ax}}
               {C_{xx} + \sigma_e^2 - C_{xA} M C_{Ax}},

and the removal of a place a from A increases it by :math:`B_{aa} / M_{aa}`.

Of several quantities q with weights :math:`\omega_q` it is the relative error
:math:`\sum_q \omega_q J_q / v_q`, where :math:`v_q` is the variance of quantity q over the map
before its readings. The quantities are independent. The candidates of one follow those of another,
with variances divided by :math:`v_q`, and have the weights of their own belief times
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
from gp_active_sensing.topology.lookup import runs
from gp_active_sensing.types import BoolArray, FloatArray, IntArray
from gp_active_sensing.util.ties import first_best

VAGUE_MEAN = 1e3
"""Variance of the mean at most, in those of a reading: S holds its square, and shares of 1e-10."""
_TARGETS = 500
"""Places at most over which the error of the map is summed one by one,"""
_MANY = 2000
"""and where only the gain of one reading is asked."""
_NUMBERS = 4_000_000
"""Numbers in the largest temporary array."""
_ROUNDING = 1e-12
"""Noise, as a share of the largest variance, below which an inverse is not to be trusted."""
_NO_VARIANCE = 1e-300
"""Variance below which a reading carries no information."""
_KNOWN = 1e-12
"""Variance below which a place is known, as a share of the largest."""
_WORTHWHILE = 1e-9
"""Share of a value that an exchange has to bring: less is rounding."""
_FEW = 48
"""Places at most by which the variance of a quantity over the map is estimated."""
_LEAST = 1e-100
"""Smallest variance of a quantity over the map; where all readings are equal, it is not 0."""
_FLAT = 1e-9
"""Smallest variance over the map, as a share of the variance at a place."""


@dataclass(frozen=True)
class Targets:
    """Places that stand for the whole map where its error is summed.

    Args:
        places: (T,) sorted.
        weights: (T,) each with the weights of those it stands for; sum to one.
        own: (n,) weight of each place by itself; sums to one.
    """

    places: IntArray
    weights: FloatArray
    own: FloatArray


class Part(NamedTuple):
    """The candidates of one of several quantities.

    Args:
        rows: their numbers.
        unit: variance that all of theirs are divided by.
        sampled: the quantity is read only where a probe stops.
    """

    rows: slice
    unit: float
    sampled: bool


@dataclass(frozen=True, eq=False)
class MapVariance:
    """Covariances of m readable places with the error of the map, under L candidates.

    Variances are those the Gaussian process sees (after the belief's transform). Those of several
    quantities are divided by the variance of each over the map.

    Args:
        places: (m,) sorted.
        weights: (L,) belief; sums to one.
        noise: (L,) variance of the noise of a reading.
        covariance: (L, m, m) posterior covariance C of the noise-free field.
        shared: (L, m, m) S = C W C, with weights that sum to one.
        total: (L,) the mean variance of the map.
        parts: candidates of each of several quantities, the main one first; () = of one quantity.
    """

    places: IntArray
    weights: FloatArray
    noise: FloatArray
    covariance: FloatArray
    shared: FloatArray
    total: FloatArray
    parts: tuple[Part, ...] = ()

    def of(self, number: int) -> MapVariance:
        """Return the part of one quantity, by its number, in that quantity's own unit."""
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
        """Return whether a quantity is read only where a probe stops."""
        return any(part.sampled for part in self.parts)

    def gains(self) -> FloatArray:
        """Return by how much one reading of each place reduces the mean variance, (L, m)."""
        variance = np.diagonal(self.covariance, axis1=1, axis2=2) + self.noise[:, None]
        shared = np.diagonal(self.shared, axis1=1, axis2=2)
        return np.asarray(np.maximum(shared, 0.0) / np.maximum(variance, _NO_VARIANCE))

    def value(self, which: IntArray, stops: IntArray | None = None) -> float:
        """Return by how much readings of some places reduce the mean variance, on average.

        It does not count what the readings tell about λ, so it is no bound. O(L k³).

        A probe reads the places `which` (k,), numbers among the m, and stops at those of `stops`,
        where alone sampled quantities are read; None = all of them.
        """
        if stops is None or not self.sampled:
            return float(self.weights @ self.values(which))
        sampled = np.zeros(len(self.weights), dtype=np.bool_)
        for part in self.parts:
            sampled[part.rows] = part.sampled
        found = np.where(sampled, self.values(stops, sampled), self.values(which, ~sampled))
        return float(self.weights @ found)

    def values(self, which: IntArray, rows: BoolArray | None = None) -> FloatArray:
        """Return `value` under each candidate, (L,); 0 where `rows` (L,) leaves it out."""
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
            if info:  # rounding: places known for certain, and an exact sensor
                found[row] = float(np.trace(np.linalg.pinv(self.covariance[row][index]) @ shared))
            else:
                found[row] = float(np.trace(dpotrs(factor, shared, lower=1)[0]))
        return found

    def given(self, which: IntArray) -> MapVariance:
        """Return the covariances after readings at the places A, `which` (k,), of any value.

        With M = (C_AA + σ² I)⁻¹ and K = C_·A M, S' = S - K S_A· - S_·A Kᵀ + K S_AA Kᵀ. O(L m² k).
        """
        if not len(which):
            return self
        C, S = self.covariance, self.shared
        k = len(which)
        block = C[:, which[:, None], which].copy()
        largest = np.diagonal(block, axis1=1, axis2=2).max(axis=1)
        least = np.maximum(_ROUNDING * largest, _NO_VARIANCE)
        block[:, np.arange(k), np.arange(k)] += np.maximum(self.noise, least)[:, None]
        gain = np.swapaxes(np.linalg.solve(block, C[:, which, :]), 1, 2)  # (L, m, k)
        side = gain @ S[:, which, :]
        shared = S - side - np.swapaxes(side, 1, 2)
        shared += gain @ S[:, which[:, None], which] @ np.swapaxes(gain, 1, 2)
        covariance = C - gain @ C[:, which, :]
        total = self.total - self.values(which)
        return replace(self, covariance=covariance, shared=shared, total=total)

    def at(self, which: IntArray) -> MapVariance:
        """Return the map error restricted to some of the places."""
        index = (slice(None), which[:, None], which)
        return replace(
            self,
            places=self.places[which],
            covariance=self.covariance[index],
            shared=self.shared[index],
        )


def targets_of(topology: Topology, most: int = _TARGETS) -> Targets:
    """Return the places over which the error of a map is summed.

    All that have a weight where these are few. Otherwise about `most`, evenly over the map: the
    places are put in the order of a space-filling curve, cut into runs, and the middle of each run
    stands for it.
    """
    weights = topology.weights
    own = weights / weights.sum()
    counted = np.flatnonzero(own)
    if len(counted) <= most:
        return Targets(counted, own[counted], own)
    groups = runs(topology.points, counted, most)
    places = np.array([run[len(run) // 2] for run in groups])
    total = np.array([own[run].sum() for run in groups])
    by_place = np.argsort(places)
    return Targets(places[by_place], total[by_place], own)


def thinned(topology: Topology, places: IntArray, most: int) -> tuple[IntArray, IntArray]:
    """Return about `most` of some places, and which one stands for each; all where they are few.

    They are evenly over where the places are.

    Args:
        topology: the map.
        places: (m,) sorted.
        most: number of places.

    Returns:
        (k,) those places, sorted; (n,) the number among them of the one that stands for a place of
        the map, -1 for one that is not among `places`.
    """
    group_of = np.full(topology.n, -1, dtype=np.int64)
    if len(places) <= most:
        group_of[places] = np.arange(len(places))
        return places, group_of
    groups = runs(topology.points, places, most)
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
    """Return how readings at some places would change the error of the map. O(L' m² (T + |D|)).

    Args:
        belief: what is known.
        topology: knows the weights of its places.
        places: (m,) that may be read, sorted.
        pending: places that will have been read before, with values not known yet.
        candidates: most λ of a quantity; of those that predict alike the most probable one stands
            for all.
        targets: over which the error is summed; None = `targets_of(topology)`.
        others: further quantities that are read together with that of `belief`.
        weight: of the quantity of `belief` among them.
    """
    targets = targets_of(topology) if targets is None else targets
    if not others:
        return _map_error(belief, places, pending, candidates, targets)[0]
    several = _weighed(belief, weight, others)
    found: list[MapVariance] = []
    parts: list[Part] = []
    end = 0
    for q, share in several:
        field, which = _map_error(q.belief, places, pending, candidates, targets)
        unit = _variance_of(q.belief, targets, which, field.weights)
        begin, end = end, end + len(which)
        parts.append(Part(slice(begin, end), unit, q.sampled))
        found.append(
            MapVariance(
                places,
                share * field.weights,
                field.noise / unit,
                field.covariance / unit,
                field.shared / unit**2,
                field.total / unit,
            )
        )
    return MapVariance(
        places,
        np.concatenate([field.weights for field in found]),
        np.concatenate([field.noise for field in found]),
        np.concatenate([field.covariance for field in found]),
        np.concatenate([field.shared for field in found]),
        np.concatenate([field.total for field in found]),
        tuple(parts),
    )


def _weighed(
    belief: Belief, weight: float, others: Sequence[QuantityBelief]
) -> list[tuple[QuantityBelief, float]]:
    """Return the quantities, the main one first, each with its share of the weights."""
    several = (QuantityBelief("", belief, weight), *others)
    total = sum(q.weight for q in several)
    return [(q, q.weight / total if total > 0.0 else 1.0 / len(several)) for q in several]


def _map_error(
    belief: Belief, places: IntArray, pending: Collection[int], candidates: int, targets: Targets
) -> tuple[MapVariance, IntArray]:
    """Return `map_error_of` of one quantity, and the numbers of its candidates."""
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
        found = found.given(np.searchsorted(everything, before))
        found = found.at(np.searchsorted(everything, places))
    return found, which


def _variance_of(belief: Belief, targets: Targets, which: IntArray, weights: FloatArray) -> float:
    r"""Return the expected variance of a field over the map before its readings.

    :math:`\sum_\lambda b(\lambda) (\operatorname{tr}(W K_\lambda) - w^T K_\lambda w)` with today's
    belief. What an unknown mean adds is not in it. In the sensor's unit.
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
    """Return targets whose weights make a variance, as it is seen, one in the sensor's unit.

    To first order, about the expected value of each place. Of the other places' own weights only
    those of `places` are of use.
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
    """Return weights (L',) and what a reading of each place takes off the mean variance (L', m).

    For many places: no covariance between them is formed. O(L' m T |D|). Arguments as of
    `map_error_of`.
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
    """Return `map_error_gains` of one quantity, and the numbers of its candidates."""
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
        _, variance = belief.marginals(part)
        variance = variance[which]
        alone = np.where(belief.visited[part], 0.0, own[:, None])
        at, to = np.nonzero(part[:, None] == targets.places)
        cross[:, at, to] -= alone[:, at]
        shared = np.square(cross) @ targets.weights
        smooth = np.maximum(variance - alone, 0.0)
        shared += targets.own[part] * alone * (2.0 * smooth + alone)
        gains[:, start : start + step] = shared / np.maximum(
            variance + noise[:, None], _NO_VARIANCE
        )
    return weights, gains, which


def _shared(
    belief: Belief, which: IntArray, places: IntArray, covariance: FloatArray, targets: Targets
) -> FloatArray:
    """Return S = C W C between places, (L, m, m).

    What belongs to a place alone is summed exactly, wherever the targets are: with C = G + D, D its
    variance at places not read yet, S = G W G + w D G + G w D + w D².
    """
    alone = np.where(belief.visited[places], 0.0, _own_variance(belief, which)[:, None])
    everywhere = np.array_equal(places, targets.places)
    cross = covariance.copy() if everywhere else belief.between(places, targets.places, which)
    at, to = np.nonzero(places[:, None] == targets.places)
    cross[:, at, to] -= alone[:, at]
    cross *= np.sqrt(targets.weights)
    own = targets.own[places] * alone
    shared = np.empty_like(covariance)
    here = np.arange(len(places))
    for row, (half, part, share) in enumerate(zip(cross, covariance, own, strict=True)):
        lower = dsyrk(1.0, half.T, trans=1, lower=1)  # zero above the diagonal
        shared[row] = lower + lower.T
        shared[row, here, here] *= 0.5
        shared[row] += (share[:, None] + share) * part
    # On the diagonal that has w D too often, in both products.
    shared[:, here, here] -= own * alone
    return shared


def _own_variance(belief: Belief, which: IntArray) -> FloatArray:
    """Return the (L',) variance of what belongs to each place alone."""
    candidates = belief.hyperparameters
    return np.array(
        [
            h.variance if h.kernel == NONE else h.place_std**2
            for h in (candidates[i] for i in which.tolist())
        ]
    )


def greedy_design(field: MapVariance, count: int) -> IntArray:
    """Return `count` = k places; each reduces the error most, given those before it. O(L k² m).

    Returns:
        (k,) numbers among the m, in the order in which they were chosen; fewer than `count` where
        nothing is left to be learned.
    """
    L, m = field.covariance.shape[:2]
    count = min(count, m)
    open_ = np.ones(m, dtype=np.bool_)
    variance = np.diagonal(field.covariance, axis1=1, axis2=2).copy()
    shared = np.diagonal(field.shared, axis1=1, axis2=2).copy()
    floor = _KNOWN * variance.max(axis=1, initial=0.0)[:, None]
    # C <- C - g gᵀ and S <- S - (g tᵀ + t gᵀ) after each place: g and t are kept, C and S are not.
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
    """Return the reduction by each of the m places, given those of `which` (k,), (m,).

    0 for those themselves. O(L (k³ + k² m)).
    """
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
    """Return by how much the error grows without each place of `which` (k,), (k,). O(L k³)."""
    total = np.zeros(len(which))
    for weight, noise, C, S in _each(field):
        M = _precision(C, which, noise)
        B = M @ S[np.ix_(which, which)] @ M
        total += weight * np.maximum(np.diagonal(B), 0.0) / np.maximum(np.diagonal(M), 1e-300)
    return total


def exchange(field: MapVariance, which: IntArray, more: Callable[[], bool]) -> IntArray:
    """Return a set of the same size that is not worse: better places replace the least useful.

    O(L (k³ + k² m)) an exchange. Ends where none of them brings anything, or
    `more` says that there is no room for it.
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
    """Yield weight, noise, C and S of each candidate."""
    for row, (weight, noise) in enumerate(zip(field.weights, field.noise, strict=True)):
        yield float(weight), float(noise), field.covariance[row], field.shared[row]


def _precision(C: FloatArray, which: IntArray, noise: float) -> FloatArray:
    """Return ``(C_AA + σ² I)⁻¹``, with a little more noise where rounding would spoil it."""
    block = C[np.ix_(which, which)]
    least = _KNOWN * float(np.diagonal(block).max(initial=0.0))
    block[np.diag_indices_from(block)] += max(noise, least, 1e-300)
    inverse = np.linalg.inv(block)
    return np.asarray(0.5 * (inverse + inverse.T))
