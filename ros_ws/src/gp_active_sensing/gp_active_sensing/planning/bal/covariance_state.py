"""Possible drives of one decision, and the posterior covariance after a set of visits.

Posterior covariances do not depend on the values of readings. All branches of the search that visit
the same places therefore share one `CovarianceState`. A visit of place x changes the covariance
matrix C by a rank-one downdate, C <- C - c cᵀ / (c_x + σ_n²). Here c is the column of x in C, and
c_x is its entry at x.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Hashable
from dataclasses import KW_ONLY, dataclass, field
from functools import cached_property
from typing import NamedTuple

import numpy as np

from gp_active_sensing.planning.budget import BudgetConstraint, FeasibleMove
from gp_active_sensing.planning.entropy import gaussian_entropy
from gp_active_sensing.topology.base import Topology
from gp_active_sensing.types import BoolArray, Budget, FloatArray, IntArray

DELICATE = 1e-8
"""Ratio of noise variance to field variance below which covariances are clipped."""
MOST_LEAVES = 8
"""Largest number of possible last places whose entropies are computed, and not only bounded."""


_ENTRY, _MOVE = 800, 700
"""Approximate memory of one stored list of next places, and of one stored drive [bytes]."""


class Deadline(Exception):
    """Signal that the time for planning is over."""


class ReachableSet(NamedTuple):
    """Places that can still be visited, and the number of visiting sequences.

    Args:
        places: places that occur in a visiting sequence.
        sequences: number of visiting sequences; None = more than `DecisionProblem.cap`.
        longest: number of readings of the longest sequence; None = unknown.
    """

    places: frozenset[int]
    sequences: int | None
    longest: int | None = None


class _TooManyError(Exception):
    """Signal that there are more visiting sequences than `DecisionProblem.cap`."""


@dataclass(eq=False)
class DecisionProblem:
    """Possible drives of one decision, and the noise of its readings.

    Args:
        topology: map of the probe.
        observed: (n,) mask of the observed or pending places.
        unavailable: places that must not be chosen.
        noise: (L,) noise variances.
        reference: (L,) entropy of the noise, subtracted from the entropy of every reading [nat].
        cap: largest number of visiting sequences to enumerate. If there are more, the bounds come
            from greedy sequences.
        check: function that raises `Deadline` when the time is over.
        constraint: budget that every sequence obeys; None = the budget forbids no drive.
    """

    topology: Topology
    observed: BoolArray
    unavailable: Collection[int]
    noise: FloatArray
    reference: FloatArray
    cap: int
    check: Callable[[], None]
    constraint: BudgetConstraint | None = None
    nbytes: int = field(default=0, init=False)
    """Approximate memory of the covariances and the stored drives [bytes]."""
    delicate: bool = field(default=False, init=False)
    """True if the noise is so small that rounding errors of covariances must be clipped."""
    _enumerated: dict[Hashable, ReachableSet] = field(default_factory=dict, init=False)
    _drives: dict[Hashable, dict[int, FeasibleMove]] = field(default_factory=dict, init=False)
    _next: dict[Hashable, IntArray] = field(default_factory=dict, init=False)
    _hopeless: float = field(default=math.inf, init=False)
    _asked: int = field(default=0, init=False)

    @cached_property
    def free(self) -> bool:
        """True if every unvisited place may be next."""
        return self.topology.free and self.constraint is None

    def candidates(
        self, at: int | None, visited: Collection[int], left: Budget | None = None
    ) -> IntArray:
        """Return the sorted places that may be next after `visited` within the budget `left`."""
        if self.constraint is not None:
            return np.array(list(self._affordable(at, frozenset(visited), left)), dtype=np.int64)
        key = self.state(at, frozenset(visited), left)
        if key not in self._next:
            self._next[key] = self.topology.candidates(at, self._seen(visited), self.unavailable)
            self.nbytes += _ENTRY + self._next[key].nbytes
        return self._next[key]

    def _seen(self, visited: Collection[int]) -> BoolArray:
        seen: BoolArray = self.observed.copy()
        seen[list(visited)] = True
        return seen

    def after(
        self, at: int | None, visited: frozenset[int], left: Budget | None, x: int
    ) -> tuple[frozenset[int], Budget | None]:
        """Return the visited places and the remaining budget after a drive to `x`."""
        if self.constraint is None:
            return visited | {x}, None
        drive = self._affordable(at, visited, left)[x]
        return visited.union(drive.reads), drive.remaining(left or self.constraint.budget)

    def state(self, at: int | None, visited: frozenset[int], left: Budget | None) -> Hashable:
        """Return the key of a state. States with equal keys have equal successors.

        `left` is the remaining budget; None = the whole budget.
        """
        if self.free:
            return visited
        if self.constraint is None or left is None:
            return at, visited
        # Sums of costs in different orders differ by rounding errors.
        metres = None if left.metres is None else round(left.metres, 6)
        seconds = None if left.seconds is None else round(left.seconds, 6)
        return at, visited, left.readings, metres, seconds

    def _affordable(
        self, at: int | None, visited: frozenset[int], left: Budget | None
    ) -> dict[int, FeasibleMove]:
        key = self.state(at, visited, left)
        known = self._drives.get(key)
        if known is not None or self.constraint is None:
            return known or {}
        drives = self.constraint.drives(at, self._seen(visited), self.unavailable, left)
        known = self._drives[key] = {drive.place: drive for drive in drives}
        self.nbytes += _ENTRY + _MOVE * len(drives)
        return known

    def entropy(self, variance: FloatArray) -> FloatArray:
        """Return the entropy of a reading minus that of its noise, for each `variance` [nat]."""
        shape = (-1,) + (1,) * (variance.ndim - 1)
        noise, reference = self.noise.reshape(shape), self.reference.reshape(shape)
        return gaussian_entropy(variance + noise) - reference

    def outlook(
        self, at: int | None, visited: frozenset[int], k: int, left: Budget | None = None
    ) -> ReachableSet:
        """Return the places that can follow `visited` in k readings, and the number of sequences.

        If there are more sequences than `cap`, the places are those of `Topology.reachable`. They
        are a superset of the places in the sequences.
        """
        if not self.free and k < self._hopeless:
            self._asked = 0
            try:
                return self._enumerate(at, visited, k, left)
            except _TooManyError:
                self._hopeless = k
        found = self.topology.reachable(at, self._seen(visited), k, self.unavailable)
        reach = frozenset(np.flatnonzero(found).tolist())
        return ReachableSet(reach, self.free_sequences(len(reach), k) if self.free else None)

    def free_sequences(self, places: int, k: int) -> int | None:
        """Return the number of k-permutations of `places` places; None = more than `cap`."""
        count = math.perm(places, min(k, places))
        return count if count <= self.cap else None

    def _enumerate(
        self, at: int | None, visited: frozenset[int], k: int, left: Budget | None
    ) -> ReachableSet:
        key = (k, self.state(at, visited, left))
        known = self._enumerated.get(key)
        if known is not None:
            return known
        here = self.candidates(at, visited, left).tolist()
        self._asked += max(1, len(here))
        if self._asked > self.cap:
            raise _TooManyError
        places, sequences, longest = set(here), max(1, len(here)), min(1, len(here))
        if k > 1 and here:
            sequences = 0
            for x in here:
                then, rest = self.after(at, visited, left, x)
                inner = self._enumerate(x, then, k - 1, rest)
                places |= inner.places
                sequences += inner.sequences or 0
                longest = max(longest, 1 + (inner.longest or 0))
        if sequences > self.cap:
            raise _TooManyError
        self._enumerated[key] = outlook = ReachableSet(frozenset(places), sequences, longest)
        return outlook


class LastVisits(NamedTuple):
    """Last visits (leaves) after each candidate place, for a state with two remaining readings.

    Args:
        owner: (X,) index of the candidate that is visited before each leaf.
        where: (X,) index of each leaf in the state's `locations`.
        variance: (L, X) predictive variances with the noise.
        entropy: (L, X) entropies of the readings minus the entropy of the noise [nat].
        starts: (A,) index of the first leaf after each candidate.
    """

    owner: IntArray
    where: IntArray
    variance: FloatArray
    entropy: FloatArray
    starts: IntArray

    @property
    def parts(self) -> list[slice]:
        """For each candidate place, the slice of the last visits that follow it."""
        ends = (*self.starts[1:].tolist(), len(self.owner))
        return [slice(*part) for part in zip(self.starts.tolist(), ends, strict=True)]


class Pairs(NamedTuple):
    """Pairs of last visits after each candidate place, for a state with three remaining readings.

    A first visit follows the candidate, and a second visit follows the first one. Predictive
    variances contain the noise. The entropy of the noise is subtracted from entropies.

    Args:
        move: (G,) index of the candidate before each first visit.
        first: (G,) index of each first visit in the state's `locations`.
        variance: (L, G) predictive variance at each first visit, given the candidate.
        entropy: (L, G) entropy of each first visit plus the largest entropy of a second visit that
            follows it [nat].
        visit: (P,) index in `first` of the first visit in each pair.
        second: (P,) index of each second visit in `locations`.
        other: (L, P) predictive variance at the second visit, given the candidate.
        shared: (L, P) covariance of the two visits, given the candidate.
        last: (L, P) predictive variance at the second visit, given the candidate and the first
            visit.
        starts: (G,) index of the first pair of each first visit.
        moves: (A,) index of the first entry in `move` for each candidate.
    """

    move: IntArray
    first: IntArray
    variance: FloatArray
    entropy: FloatArray
    visit: IntArray
    second: IntArray
    other: FloatArray
    shared: FloatArray
    last: FloatArray
    starts: IntArray
    moves: IntArray


@dataclass(eq=False)
class CovarianceState:
    """Covariances of the map after a set of visits, with `k` remaining readings.

    Args:
        problem: possible drives and noise.
        k: number of remaining readings.
        visited: places visited since the root.
        locations: (m,) places of the covariance; all later candidates are among them.
        candidates: (A,) indices in `locations` of the places that may be next.
        sequences: number of visiting sequences after this state; None = more than ``problem.cap``.
        _covariance: (L, m, m) posterior covariance of the noise-free field, or a function that
            computes the covariance.
        _latent: function that computes the (L, A) variances of the field at the candidates. With
            this function, a state with one remaining reading needs no covariance.
        at: place of the probe.
        left: remaining budget of a problem with a constraint; None = the whole budget.
        known: states after the root that the search has made; all states share this dictionary.
    """

    problem: DecisionProblem
    k: int
    visited: frozenset[int]
    locations: IntArray
    candidates: IntArray
    sequences: int | None
    _covariance: FloatArray | Callable[[], FloatArray]
    _latent: Callable[[], FloatArray] | None = None
    _: KW_ONLY
    at: int | None = None
    left: Budget | None = None
    known: dict[Hashable, CovarianceState] = field(default_factory=dict)
    bounds: tuple[FloatArray, FloatArray] | None = field(default=None, init=False)
    """Result of `bounds.chain_rule`; None = not computed yet."""
    children_bounds: tuple[FloatArray, FloatArray] | None = field(default=None, init=False)
    _keep: bool = field(default=False, init=False)
    _prepared: bool = field(default=False, init=False)

    def __post_init__(self) -> None:
        self.children: list[CovarianceState | None] = [None] * len(self.candidates)
        self.kept: list[IntArray] = [np.empty(0, dtype=np.int64)] * len(self.candidates)

    @property
    def covariance(self) -> FloatArray:
        """Posterior covariance (L, m, m) of the noise-free field."""
        if callable(self._covariance):
            computed = self._covariance()
            # Most states are never expanded, so a large covariance is not stored for bounds alone.
            # With k <= 2 it is computed again, which costs less than the steps that use it.
            if computed.nbytes > 1 << 18 and (self.k <= 2 or not self._keep):
                return computed
            self._covariance = computed
        return np.asarray(self._covariance)

    def prepare(self) -> None:
        """Compute `variance` and `entropy` (L, A), and `gain` (L, A, m), for an expansion.

        A state with one remaining reading has no gain, because no visit follows.
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
        rows = C[:, self.candidates]
        self.diagonal = C.diagonal(axis1=1, axis2=2).copy()  # a view would keep C alive
        # Rounding errors of the downdates may make a variance negative.
        latent = np.maximum(self.diagonal[:, self.candidates], 0.0)
        self.variance = latent + self.problem.noise[:, None]
        self.entropy = self.problem.entropy(latent)
        if self.problem.delicate:
            # |C_xy| ≤ σ_x σ_y; an excess is a rounding error that downdates would amplify.
            most = np.sqrt(np.maximum(self.diagonal, 0.0))
            most = np.sqrt(latent)[:, :, None] * most[:, None]
            rows = np.clip(rows, -most, most)
        self.gain = rows / self.variance[:, :, None]
        self._rows = rows
        self._prepared = True
        kept = 0 if callable(self._covariance) else self._covariance.nbytes
        self.problem.nbytes += kept + rows.nbytes + self.gain.nbytes

    def child(self, a: int) -> CovarianceState:
        """Return the state after a visit of the candidate with index `a`."""
        existing = self.children[a]
        if existing is not None:
            return existing
        problem, x = self.problem, int(self.locations[self.candidates[a]])
        problem.check()
        visited, left = problem.after(self.at, self.visited, self.left, x)
        # Drives across unobserved places may visit the same places in fewer stages.
        key = (self.k, problem.state(x, visited, left))
        known = self.known.get(key)
        if known is None:
            if problem.free:
                kept = np.flatnonzero(self.locations != x)
                candidates = np.arange(len(kept))
                sequences = problem.free_sequences(len(kept), self.k - 1)
            else:
                outlook = problem.outlook(x, visited, self.k - 1, left)
                places = enumerate(self.locations.tolist())
                kept = np.array([i for i, place in places if place in outlook.places], np.int64)
                here = problem.candidates(x, visited, left)
                candidates = self.locations[kept].searchsorted(here)
                sequences = outlook.sequences
            known = CovarianceState(
                problem,
                self.k - 1,
                visited,
                self.locations[kept],
                candidates,
                sequences,
                lambda: self._downdated(a, kept),
                lambda: self._latent_after(a, self.kept[a][self.child(a).candidates]),
                at=x,
                left=left,
                known=self.known,
            )
            self.known[key] = known
        self.kept[a] = self.locations.searchsorted(known.locations)
        self.children[a] = known
        return known

    def _downdated(self, a: int, kept: IntArray) -> FloatArray:
        self.prepare()
        row = self._rows[:, a, kept]
        block = self.covariance[:, kept[:, None], kept[None, :]]
        scaled = row / self.variance[:, a, None]
        return np.asarray(block - row[:, :, None] * scaled[:, None, :])

    def _latent_after(self, a: int | IntArray, where: IntArray) -> FloatArray:
        """Return the variances (L, k) of the field at `where` after visits of candidates `a`."""
        variance = self.diagonal[:, where] - self._rows[:, a, where] * self.gain[:, a, where]
        return np.asarray(np.maximum(variance, 0.0))

    def latent_after(self, part: slice) -> FloatArray:
        """Return the variances (L, a, m) of `locations` after each of the a visits in `part`."""
        self.prepare()
        downdate = self._rows[:, part] * self.gain[:, part]
        return np.asarray(np.maximum(self.diagonal[:, None] - downdate, 0.0))

    def allowed_after(self, part: slice) -> BoolArray:
        """Return the (a, m) mask of `locations` that may follow each of the a visits in `part`."""
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

    @cached_property
    def leaves(self) -> LastVisits | None:
        """Last visits of a state with two remaining readings.

        None = a candidate can be followed by no visit, or by more than `MOST_LEAVES` visits.
        """
        self.prepare()
        problem, follow = self.problem, list[IntArray]()
        for x in self.locations[self.candidates].tolist():
            if problem.free:
                here = self.locations[self.locations != x]
            else:
                visited, left = problem.after(self.at, self.visited, self.left, x)
                here = problem.candidates(x, visited, left)
            if not 0 < len(here) <= MOST_LEAVES:
                return None
            follow.append(here)
        counts = [len(here) for here in follow]
        owner = np.repeat(np.arange(len(counts)), counts)
        where = self.locations.searchsorted(np.concatenate(follow))
        latent = self._latent_after(owner, where)
        variance, entropy = latent + problem.noise[:, None], problem.entropy(latent)
        return LastVisits(owner, where, variance, entropy, np.cumsum([0, *counts[:-1]]))

    @cached_property
    def pairs(self) -> Pairs | None:
        """Possible pairs of the last two places, for a state with three remaining readings.

        None = every unvisited place may be next, or a candidate leads to a state without `leaves`.
        """
        if self.problem.free or not len(self.candidates):
            return None
        found: list[tuple[FloatArray | IntArray, ...]] = []
        pairs = visits = 0
        for a in range(len(self.candidates)):
            child, kept = self.child(a), self.kept[a]
            leaves = child.leaves if len(child.candidates) else None
            if leaves is None:
                return None
            owner, where = leaves.owner, leaves.where
            found.append(
                (
                    np.full(len(leaves.starts), a),
                    kept[child.candidates],
                    child.variance,
                    child.entropy + np.maximum.reduceat(leaves.entropy, leaves.starts, axis=1),
                    visits + owner,
                    kept[where],
                    child.diagonal[:, where] + self.problem.noise[:, None],
                    child.gain[:, owner, where] * child.variance[:, owner],
                    leaves.variance,
                    pairs + leaves.starts,
                    np.array([visits]),
                )
            )
            pairs, visits = pairs + len(owner), visits + len(leaves.starts)
        every = Pairs(*(np.concatenate(part, axis=-1) for part in zip(*found, strict=True)))
        self.problem.nbytes += sum(part.nbytes for part in every)
        return every
