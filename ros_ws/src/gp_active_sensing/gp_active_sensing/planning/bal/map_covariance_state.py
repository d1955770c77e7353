"""Covariance states with what readings take off the error of the map: C and S = C W C."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import cast

import numpy as np

from gp_active_sensing.planning.bal.covariance_state import (
    DELICATE,
    CovarianceState,
    DecisionProblem,
)
from gp_active_sensing.planning.bal.disagreement import Disagreement
from gp_active_sensing.planning.bal.tail import AlongRoute, Tails
from gp_active_sensing.planning.base import PlanRequest
from gp_active_sensing.planning.beliefs import representatives, unread
from gp_active_sensing.planning.entropy import noise_entropy
from gp_active_sensing.planning.map_error import VAGUE_MEAN, MapVariance, targets_of
from gp_active_sensing.planning.routes.follow import unread_of
from gp_active_sensing.types import Budget, FloatArray, IntArray

__all__ = ["MapCovarianceState", "MapProblem", "map_start"]

_NO_VARIANCE = 1e-300
"""Where a place is known for certain, and its sensor exact, a reading tells nothing."""
_KEPT = 1 << 18
"""Bytes above which a matrix is kept only where it is used again."""
_ELSEWHERE = 250
"""Places out of reach, at most, that stand for all of these in the error of the map."""


class MapProblem:
    """What all sequences of one decision have in common.

    Args:
        locations: (m,) places of the root, sorted.
        disagreement: of the candidates, by numbers of these places.
        weights: (L,) belief at the root.
        scale: the present error of the map, of which values are shares [the field's unit squared].
        total: (L,) what is left of it under each λ, as a share of `scale`.
    """

    def __init__(
        self,
        locations: IntArray,
        disagreement: Disagreement,
        weights: FloatArray,
        scale: float,
        total: FloatArray,
    ) -> None:
        self.locations = locations
        self.disagreement = disagreement
        self.weights = weights
        self.scale = scale
        self.total = total
        self.tails: Tails | None = None
        """What follows the last readings, None where nothing is counted."""


class MapCovarianceState(CovarianceState):
    """A `CovarianceState` with S = C W C beside C.

    Args:
        of: what all sequences of the decision share.
        problem, k, visited, locations, candidates, sequences, covariance: see `CovarianceState`.
        shared: (L, m, m) S, as a share of the present error, or how to compute it.
        read: numbers of the places chosen since the root, sorted.
        latent: see `CovarianceState`.
        own: how to compute the (L, A) S_xx of the candidates, where one reading is to come.
        ceiling: (L,) more than this no set of k places takes off the error under λ.
        at, left: see `CovarianceState`.
    """

    def __init__(
        self,
        of: MapProblem,
        problem: DecisionProblem,
        k: int,
        visited: frozenset[int],
        locations: IntArray,
        candidates: IntArray,
        sequences: int | None,
        covariance: FloatArray | Callable[[], FloatArray],
        shared: FloatArray | Callable[[], FloatArray],
        read: tuple[int, ...],
        latent: Callable[[], FloatArray] | None = None,
        own: Callable[[], FloatArray] | None = None,
        ceiling: FloatArray | None = None,
        *,
        at: int | None = None,
        left: Budget | None = None,
    ) -> None:
        super().__init__(
            problem,
            k,
            visited,
            locations,
            candidates,
            sequences,
            covariance,
            latent,
            at=at,
            left=left,
        )
        self.of = of
        self.read = read
        self.ceiling = of.total if ceiling is None else ceiling
        self.map_bounds: tuple[FloatArray, list[tuple[int, ...]], FloatArray] | None = None
        """What `map_branching.best_sets` found; None before it was asked."""
        self.children_map_bounds: tuple[FloatArray, FloatArray, FloatArray] | None = None
        self._shared = shared
        self._own = own
        self._doubt: FloatArray | None = None
        self._child_doubts: FloatArray | None = None
        self._leaf_doubts: FloatArray | None = None

    @property
    def numbers(self) -> IntArray:
        """(m,) numbers of `locations` among the root's."""
        return np.searchsorted(self.of.locations, self.locations)

    @property
    def shared(self) -> FloatArray:
        """(L, m, m) S = C W C, as a share of the present error."""
        if callable(self._shared):
            computed = self._shared()
            if computed.nbytes > _KEPT and (self.k <= 2 or not self._keep):
                return computed
            self._shared = computed
            self.problem.nbytes += computed.nbytes
        return np.asarray(self._shared)

    def prepare(self) -> None:
        """Compute what an expansion needs: as `CovarianceState.prepare`, and `drop` (L, A).

        That is S_xx / v_x, what a reading of each candidate takes off the error under λ.
        """
        if self._prepared:
            return
        super().prepare()
        if self.k == 1 and self._own is not None:
            self.drop = self._own() / np.maximum(self.variance, _NO_VARIANCE) + self.bonus()
            return
        S = self.shared
        rows = S[:, self.candidates, :]
        own = np.maximum(rows[:, np.arange(len(self.candidates)), self.candidates], 0.0)
        variance = np.maximum(self.variance, _NO_VARIANCE)
        self.drop = own / variance
        self.shared_diagonal = np.diagonal(S, axis1=1, axis2=2).copy()
        # S' = S - c eᵀ - e cᵀ with e = (s - ½ S_xx c / v) / v.
        self._side = (rows - 0.5 * self.drop[:, :, None] * self._rows) / variance[:, :, None]
        if self.k == 1:
            self.drop = self.drop + self.bonus()
        self.problem.nbytes += rows.nbytes + self._side.nbytes

    def bonus(self) -> FloatArray:
        """(L, A) what follows the candidates, the last places to be read; 0 where nothing does."""
        tails = self.of.tails
        found = np.zeros((len(self.problem.noise), len(self.candidates)))
        if tails is None:
            return found
        for a in range(len(self.candidates)):
            found[:, a] = tails.bonus(*self.end(a))
        return found

    def end(self, a: int) -> tuple[tuple[int, ...], int, frozenset[int], Budget | None]:
        """Return the places chosen after candidate `a` and where the probe is then, for `Tails`."""
        x = int(self.locations[self.candidates[a]])
        visited, left = self.problem.after(self.at, self.visited, self.left, x)
        return tuple(self.of.locations[list(self._read_with(x))].tolist()), x, visited, left

    def child(self, a: int) -> MapCovarianceState:
        """Return the state after visiting candidate number `a`."""
        return cast(MapCovarianceState, super().child(a))

    def _key(self, x: int, state: Hashable) -> Hashable:
        return (self.k, state, self._read_with(x))

    def _read_with(self, x: int) -> tuple[int, ...]:
        number = int(np.searchsorted(self.of.locations, x))
        return tuple(sorted((*self.read, number)))

    def _following(
        self,
        a: int,
        kept: IntArray,
        candidates: IntArray,
        sequences: int | None,
        visited: frozenset[int],
        left: Budget | None,
    ) -> MapCovarianceState:
        x = int(self.locations[self.candidates[a]])
        self.prepare()
        return MapCovarianceState(
            self.of,
            self.problem,
            self.k - 1,
            visited,
            self.locations[kept],
            candidates,
            sequences,
            self._downdated(a, kept),
            self._shared_downdated(a, kept),
            self._read_with(x),
            lambda: self.child_variance(a),
            lambda: self._child_shared(a),
            np.maximum(self.ceiling - self.drop[:, a], 0.0),
            at=x,
            left=left,
        )

    def _shared_downdated(self, a: int, kept: IntArray) -> Callable[[], FloatArray]:
        def compute() -> FloatArray:
            row, side = self._rows[:, a, kept], self._side[:, a, kept]
            block = self.shared[:, kept[:, None], kept[None, :]]
            product = row[:, :, None] * side[:, None, :]
            return np.asarray(block - product - np.swapaxes(product, 1, 2))

        return compute

    def _child_shared(self, a: int) -> FloatArray:
        """(L, A') S_yy of the candidates of `child(a)`."""
        child = self.child(a)
        where = self.kept[a][child.candidates]
        found = self.shared_diagonal[:, where]
        found = found - 2.0 * self._rows[:, a, where] * self._side[:, a, where]
        return np.asarray(np.maximum(found, 0.0))

    def drop_after(self, part: slice) -> FloatArray:
        """(L, a, m) what a reading of each location takes off after some of the candidates.

        With what follows, where it is the last reading and the location may be next.
        """
        latent = self.latent_after(part) + self.problem.noise[:, None, None]
        found = self.shared_diagonal[:, None] - 2.0 * self._rows[:, part] * self._side[:, part]
        drop = np.maximum(found, 0.0) / np.maximum(latent, _NO_VARIANCE)
        if self.k == 2 and self.of.tails is not None:
            for i, a in enumerate(range(len(self.candidates))[part]):
                child = self.child(a)
                drop[:, i, self.kept[a][child.candidates]] += child.bonus()
        return np.asarray(drop)

    def leaf_drops(self) -> FloatArray:
        """(L, X) what the readings of `leaves` take off."""
        found = [self._child_shared(a) for a in range(len(self.candidates))]
        leaves = self.leaves()
        variance = np.ones(1) if leaves is None else leaves.variance
        drop = np.concatenate(found, axis=1) / np.maximum(variance, _NO_VARIANCE)
        if self.of.tails is not None:
            drop += np.concatenate(
                [self.child(a).bonus() for a in range(len(self.candidates))], axis=1
            )
        return np.asarray(drop)

    @property
    def doubt(self) -> FloatArray:
        """(L, L) of `Disagreement` here."""
        if self._doubt is None:
            self._doubt = self.of.disagreement.after([self.read])[0]
        return self._doubt

    def child_doubts(self) -> FloatArray:
        """(A, L, L) after each candidate."""
        if self._child_doubts is None:
            self._child_doubts = self.of.disagreement.after(
                self._read_with(int(x)) for x in self.locations[self.candidates]
            )
        return self._child_doubts

    def leaf_doubts(self) -> FloatArray:
        """(X, L, L) after each of `leaves`."""
        if self._leaf_doubts is None:
            leaves = self.leaves()
            numbers = self.numbers
            found: list[tuple[int, ...]] = []
            if leaves is not None:
                first, last = numbers[self.candidates[leaves.owner]], numbers[leaves.where]
                pairs = zip(first.tolist(), last.tolist(), strict=True)
                found = [tuple(sorted((*self.read, x, y))) for x, y in pairs]
            self._leaf_doubts = self.of.disagreement.after(found)
        return self._leaf_doubts


def map_start(
    request: PlanRequest,
    problem: DecisionProblem,
    locations: IntArray,
    first: IntArray,
    horizon: int,
    sequences: int | None,
    candidates: int,
    mass: float,
    route: Sequence[int] = (),
) -> tuple[MapCovarianceState, FloatArray, FloatArray]:
    """Return the root's sequence, means (L, m) and belief (L,); the problem gets its noise.

    The map is all places in reach and at most `_ELSEWHERE` that stand for the others, see
    `targets_of`. O(L (m + T) m |D|) and the products of covariances.

    Args:
        request: what is known and what is left.
        problem: the decision.
        locations: (m,) places in reach, sorted.
        first: (A,) numbers of those that may be next.
        horizon: readings to come.
        sequences: number of visiting sequences; None when more than the cap.
        candidates: most λ that are planned with.
        mass: share of the belief that is planned with.
        route: that is gone on with after the last of these readings, where visiting sequences are
            few enough to be enumerated.
    """
    belief, left = request.belief.with_mean_within(VAGUE_MEAN), request.remaining
    if sequences is None:
        route = ()
    places = np.union1d(locations, np.array(route, dtype=np.int64))
    which, weights = representatives(belief, candidates, mass)
    noise = belief.noise_variance[which]
    targets = targets_of(problem.topology, _ELSEWHERE, always=places)
    before = unread(belief, request.pending)
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
        field = MapVariance(
            places, weights, noise, whole, np.swapaxes(columns, 1, 2) @ columns, total
        )
        continuation = AlongRoute(problem.topology, route, unread_of(request), left)
        tails = Tails(problem, field, horizon, request.at, left, continuation, scale)
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
        at=request.at,
        left=left,
    )
    return sequence, mean, weights
