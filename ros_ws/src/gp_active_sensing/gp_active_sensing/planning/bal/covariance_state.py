"""What depends on the visited places only: covariances and candidates.

Posterior covariances do not depend on readings, so all branches of the search that visit the same
places share one `CovarianceState`. Visiting a place is a rank-one downdate,
C <- C - c cᵀ / (c_x + σ_n²).
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import NamedTuple

import numpy as np

from gp_active_sensing.planning.bal.problem import DecisionProblem
from gp_active_sensing.types import BoolArray, Budget, FloatArray, IntArray

__all__ = ["MOST_LEAVES", "CovarianceState", "Leaves"]

MOST_LEAVES = 8
"""Candidates of a last stage whose mixture entropy is computed; the others are bounded."""


class Leaves(NamedTuple):
    """The last visits below a sequence with two readings to come, side by side.

    Args:
        owner: (X,) candidate that each follows.
        where: (X,) index into the sequence's `locations`.
        variance: (L, X) predictive variances, noise included.
        starts: (A,) where each candidate's leaves begin.
    """

    owner: IntArray
    where: IntArray
    variance: FloatArray
    starts: IntArray


class CovarianceState:
    """The state of the map after a set of visits, with `k` readings still to come.

    Args:
        problem: the decision this belongs to.
        k: readings still to come.
        visited: places visited since the root.
        locations: (m,) places the state keeps track of; they hold every later candidate.
        candidates: (A,) index into `locations` of the places that may be next.
        sequences: number of visiting sequences from here; None when more than the cap.
        covariance: (L, m, m) latent posterior covariance, or how to compute it.
        latent: how to compute the (L, A) latent variances of the candidates, where one reading is
            to come and that is all that is needed.
        at: where the probe stands.
        left: of the budget, where the problem has a constraint; None = all of it.
    """

    def __init__(
        self,
        problem: DecisionProblem,
        k: int,
        visited: frozenset[int],
        locations: IntArray,
        candidates: IntArray,
        sequences: int | None,
        covariance: FloatArray | Callable[[], FloatArray],
        latent: Callable[[], FloatArray] | None = None,
        *,
        at: int | None = None,
        left: Budget | None = None,
    ) -> None:
        self.problem = problem
        self.k = k
        self.visited = visited
        self.at = at
        self.left = left
        self.locations = locations
        self.candidates = candidates
        self.sequences = sequences
        self._covariance = covariance
        self._latent = latent
        self.children: list[CovarianceState | None] = [None] * len(candidates)
        self.kept: list[IntArray] = [np.empty(0, dtype=np.int64)] * len(candidates)
        self.bounds: tuple[FloatArray, FloatArray] | None = None
        """What `bounds.chain_rule` found; None before it was asked."""
        self.children_bounds: tuple[FloatArray, FloatArray] | None = None
        self._leaves: Leaves | None = None
        self._too_many_leaves = False
        self.known: dict[Hashable, CovarianceState] = {}
        self._keep = False
        self._prepared = False

    @property
    def covariance(self) -> FloatArray:
        """(L, m, m) latent posterior covariance."""
        if callable(self._covariance):
            computed = self._covariance()
            # There is a covariance for every sequence, most of which are never expanded: a large
            # one is not kept for its bounds alone, nor two readings from the end, where it
            # costs less than what is computed from it.
            if computed.nbytes > 1 << 18 and (self.k <= 2 or not self._keep):
                return computed
            self._covariance = computed
        return np.asarray(self._covariance)

    def prepare(self) -> None:
        """Compute what an expansion needs: `variance`, `entropy` (L, A) and `gain` (L, A, m).

        With one reading to come there is no gain: nothing follows.
        """
        if self._prepared:
            return
        self.problem.check()
        self._keep = True
        if self.k == 1 and self._latent is not None:
            latent = self._latent()
            self.variance = latent + self.problem.noise[:, None]
            self.entropy = self.problem.entropy(latent)
            self._prepared = True
            return
        C = self.covariance
        rows = C[:, self.candidates, :]
        latent = rows[:, np.arange(len(self.candidates)), self.candidates]
        # The rank-one downdates may leave a variance a hair below zero.
        self.variance = np.maximum(latent, 0.0) + self.problem.noise[:, None]
        self.entropy = self.problem.entropy(np.maximum(latent, 0.0))
        self.diagonal = np.diagonal(C, axis1=1, axis2=2).copy()  # a view would keep C alive
        if self.problem.delicate:
            # |C_xy| ≤ σ_x σ_y: what is beyond is rounding, which later downdates would blow up.
            most = np.sqrt(np.maximum(self.diagonal, 0.0))
            most = np.sqrt(np.maximum(latent, 0.0))[:, :, None] * most[:, None]
            rows = np.clip(rows, -most, most)
        self.gain = rows / self.variance[:, :, None]
        self._rows = rows
        self._prepared = True
        kept = 0 if callable(self._covariance) else self._covariance.nbytes
        self.problem.nbytes += kept + rows.nbytes + self.gain.nbytes

    def child(self, a: int) -> CovarianceState:
        """Return the state after visiting candidate number `a`."""
        existing = self.children[a]
        if existing is not None:
            return existing
        problem, x = self.problem, int(self.locations[self.candidates[a]])
        problem.check()
        visited, left = problem.after(self.at, self.visited, self.left, x)
        # Decisions that cross unobserved places may visit the same ones in fewer stages.
        key = self._key(x, problem.state(x, visited, left))
        known = self.known.get(key)
        if known is None:
            if problem.free:
                kept = np.flatnonzero(self.locations != x)
                candidates = np.arange(len(kept))
                sequences = problem.free_sequences(len(kept), self.k - 1)
            else:
                outlook = problem.outlook(x, visited, self.k - 1, left)
                kept = np.flatnonzero(np.isin(self.locations, list(outlook.places)))
                here = problem.candidates(x, visited, left)
                candidates = np.searchsorted(self.locations[kept], here)
                sequences = outlook.sequences
            known = self._following(a, kept, candidates, sequences, visited, left)
            known.known = self.known
            self.known[key] = known
        self.kept[a] = np.searchsorted(self.locations, known.locations)
        self.children[a] = known
        return known

    def _key(self, x: int, state: Hashable) -> Hashable:
        """Return what tells the states after a visit of `x` apart."""
        return (self.k, state)

    def _following(
        self,
        a: int,
        kept: IntArray,
        candidates: IntArray,
        sequences: int | None,
        visited: frozenset[int],
        left: Budget | None,
    ) -> CovarianceState:
        """Return the state after candidate `a`, which keeps track of some of the locations."""
        return CovarianceState(
            self.problem,
            self.k - 1,
            visited,
            self.locations[kept],
            candidates,
            sequences,
            self._downdated(a, kept),
            lambda: self.child_variance(a),
            at=int(self.locations[self.candidates[a]]),
            left=left,
        )

    def _downdated(self, a: int, kept: IntArray) -> Callable[[], FloatArray]:
        def compute() -> FloatArray:
            self.prepare()
            row = self._rows[:, a, kept]
            block = self.covariance[:, kept[:, None], kept[None, :]]
            scaled = row / self.variance[:, a, None]
            return np.asarray(block - row[:, :, None] * scaled[:, None, :])

        return compute

    def child_variance(self, a: int) -> FloatArray:
        """(L, A') latent variance of the candidates of `child(a)`, without its covariance."""
        child = self.child(a)
        where = self.kept[a][child.candidates]
        row = self._rows[:, a, where]
        variance = self.diagonal[:, where] - row * self.gain[:, a, where]
        return np.asarray(np.maximum(variance, 0.0))

    def latent_after(self, part: slice) -> FloatArray:
        """(L, a, m) latent variances of all `locations` after some of the candidates."""
        self.prepare()
        downdate = self._rows[:, part] * self.gain[:, part]
        return np.asarray(np.maximum(self.diagonal[:, None] - downdate, 0.0))

    def allowed_after(self, part: slice) -> BoolArray:
        """(a, m) which of `locations` may be next after some of the candidates."""
        here = range(len(self.candidates))[part]
        allowed = np.zeros((len(here), len(self.locations)), dtype=bool)
        if self.problem.free:
            allowed[:] = True
            allowed[np.arange(len(here)), self.candidates[part]] = False
        else:
            for i, a in enumerate(here):
                child = self.child(a)
                allowed[i, self.kept[a][child.candidates]] = True
        return allowed

    def leaves(self) -> Leaves | None:
        """All last visits below (k = 2), unless a candidate has none or more than `MOST_LEAVES`."""
        if self._leaves is None and not self._too_many_leaves:
            self.prepare()
            children = [self.child(a) for a in range(len(self.candidates))]
            counts = [len(child.candidates) for child in children]
            if min(counts) == 0 or max(counts) > MOST_LEAVES:
                self._too_many_leaves = True
                return None
            self._leaves = Leaves(
                np.repeat(np.arange(len(counts)), counts),
                np.concatenate([k[c.candidates] for k, c in zip(self.kept, children, strict=True)]),
                np.concatenate([self.child_variance(a) for a in range(len(counts))], axis=1)
                + self.problem.noise[:, None],
                np.concatenate([[0], np.cumsum(counts)[:-1]]),
            )
        return self._leaves
