"""The state of the map before the first visit, where the error of the map counts."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np

from gp_active_sensing.belief import Belief
from gp_active_sensing.planning.bal.disagreement import Disagreement
from gp_active_sensing.planning.bal.map_covariance_state import MapCovarianceState, MapProblem
from gp_active_sensing.planning.bal.merge import representatives
from gp_active_sensing.planning.bal.problem import DELICATE, DecisionProblem
from gp_active_sensing.planning.bal.tail import AlongRoute, Tails
from gp_active_sensing.planning.entropy import noise_entropy
from gp_active_sensing.planning.map_error import MapError, targets_of
from gp_active_sensing.planning.pending import unread
from gp_active_sensing.planning.routes.follow import unread_of
from gp_active_sensing.types import Budget, FloatArray, IntArray

__all__ = ["map_start"]

_ELSEWHERE = 250
"""Places out of reach, at most, that stand for all of these in the error of the map."""


def map_start(
    belief: Belief,
    problem: DecisionProblem,
    locations: IntArray,
    first: IntArray,
    pending: Collection[int],
    horizon: int,
    sequences: int | None,
    candidates: int,
    mass: float,
    *,
    at: int | None,
    left: Budget,
    route: Sequence[int] = (),
    unavailable: Collection[int] = (),
) -> tuple[MapCovarianceState, FloatArray, FloatArray]:
    """Return the root's sequence, means (L, m) and belief (L,); the problem gets its noise.

    The map is all places in reach and at most so many that stand for the others, see
    `targets_of`. O(L (m + T) m |D|) and the products of covariances.

    Args:
        belief: what is known.
        problem: the decision.
        locations: (m,) places in reach, sorted.
        first: (A,) numbers of those that may be next.
        pending: places that will have been read before, with values not known yet.
        horizon: readings to come.
        sequences: number of visiting sequences; None when more than the cap.
        candidates: most λ that are planned with.
        mass: share of the belief that is planned with.
        at: where the probe stands.
        left: of the budget.
        route: that is gone on with after the last of these readings, where visiting sequences are
            few enough to be enumerated.
        unavailable: places that bring no reading.
    """
    if sequences is None:
        route = ()
    places = np.union1d(locations, np.array(route, dtype=np.int64))
    which, weights = representatives(belief, candidates, mass)
    noise = belief.noise_variance[which]
    targets = targets_of(problem.topology, _ELSEWHERE, always=places)
    before = unread(belief, pending)
    everything = np.union1d(places, before)
    problem.check()
    covariance = belief.between(everything, everything, which)
    problem.check()
    root = np.sqrt(targets.weights)
    columns = belief.between(targets.places, everything, which) * root[:, None]
    mean, _ = belief.marginals_under(locations, which)
    map_mean, variance = belief.marginals_under(targets.places, which)
    map_mean, total = map_mean * root, variance @ targets.weights
    if before.size:
        where, gone = np.searchsorted(everything, places), np.searchsorted(everything, before)
        block = covariance[:, gone[:, None], gone] + noise[:, None, None] * np.eye(len(gone))
        told = np.linalg.solve(block, covariance[:, gone[:, None], where])
        lost = np.linalg.solve(block, np.swapaxes(columns[:, :, gone], 1, 2))
        total = total - (columns[:, :, gone] * np.swapaxes(lost, 1, 2)).sum(axis=(1, 2))
        covariance = (
            covariance[:, where[:, None], where] - covariance[:, where[:, None], gone] @ told
        )
        columns = columns[:, :, where] - columns[:, :, gone] @ told
    apart = map_mean - weights @ map_mean
    scale = float(weights @ total + weights @ np.square(apart).sum(axis=1))
    if not scale > 0.0:  # all is known
        scale = 1.0
    whole = covariance
    tree = np.searchsorted(places, locations)
    covariance = covariance[:, tree[:, None], tree]
    of_tree = columns[:, :, tree] / np.sqrt(scale)
    problem.noise, problem.reference = noise, noise_entropy(noise)
    largest = np.diagonal(covariance, axis1=1, axis2=2).max(axis=1)
    problem.delicate = bool((noise < DELICATE * largest).any())
    problem.check()
    table = Disagreement(weights, mean, covariance, noise, map_mean / np.sqrt(scale), of_tree)
    problem.check()
    shared = np.swapaxes(of_tree, 1, 2) @ of_tree
    problem.nbytes += table.nbytes + shared.nbytes
    of = MapProblem(locations, table, weights, scale, total / scale)
    if len(route):
        field = MapError(places, weights, noise, whole, np.swapaxes(columns, 1, 2) @ columns, total)
        fresh = unread_of(belief, pending, unavailable)
        continuation = AlongRoute(problem.topology, route, fresh, left)
        tails = Tails(problem, field, horizon, at, left, continuation, scale)
        of.tails = tails if tails.known else None
    sequence = MapCovarianceState(
        of,
        problem,
        horizon,
        frozenset(),
        locations,
        first,
        sequences,
        covariance,
        shared,
        (),
        at=at,
        left=left,
    )
    return sequence, mean, weights
